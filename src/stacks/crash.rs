//! What is known of the stack of a rank that crashed.

use gyan_results::{CodeSeen, CrashSeen};

use super::maps::{Mapping, Maps};
use super::stop::{Copied, RED_ZONE, Registers};

/// The inner part of a stack that is looked at is no larger.
const STACK_AT_MOST: u64 = 64 << 20;
const WORD: usize = size_of::<u64>();

impl From<&[CodeSeen]> for Maps {
    fn from(code: &[CodeSeen]) -> Maps {
        let mapping = |code: &CodeSeen| Mapping {
            range: code.begin..code.end,
            is_code: true,
            offset: code.offset,
            path: code.path.clone(),
        };
        Maps::of_parts(code.iter().map(mapping).collect())
    }
}

impl Copied {
    /// `maps`: those of its code.
    pub(super) fn of_crash(crash: &CrashSeen, maps: &Maps) -> Copied {
        let CrashSeen { pc, sp, fp, lr, stack_end: end, .. } = *crash;
        // What is not told is no address: zero does as well.
        let begin = sp.saturating_sub(RED_ZONE);
        let mut stack = Vec::new();
        for (at, word) in &crash.words {
            let Some(offset) = at.checked_sub(begin).filter(|offset| *offset < STACK_AT_MOST)
            else {
                break;
            };
            let Ok(offset) = usize::try_from(offset) else { break };
            stack.resize(stack.len().max(offset + WORD), 0);
            if let Some(place) = stack.get_mut(offset..offset + WORD) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        let mut copied = Copied {
            registers: Registers { pc, sp, fp, lr },
            begin,
            stack,
            end,
            ..Copied::default()
        };
        if !maps.has_code(pc) {
            copied.return_from_nowhere();
        }
        copied
    }

    /// A call of an address where there is no code, as of a null pointer: it is the caller that can be named,
    /// by an address inside of its call.
    fn return_from_nowhere(&mut self) {
        let Registers { sp, lr, .. } = self.registers;
        if lr != 0 {
            self.registers.pc = lr.saturating_sub(1);
        } else if let Some(word) = self.word(sp) {
            self.registers.pc = word.saturating_sub(1);
            self.registers.sp = sp.saturating_add(WORD as u64);
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn words_are_put_where_they_were_and_a_call_of_nothing_is_its_callers() {
        let code = vec![CodeSeen { begin: 0x400, end: 0x500, offset: 0, path: "/app".into() }];
        let words = vec![(0x1000, 0x410), (0x1018, 0x1020), (0x1020, 0x420)];
        let crash = CrashSeen {
            pc: 0x404,
            sp: 0x1000,
            stack_end: 0x2000,
            words,
            code,
            ..CrashSeen::default()
        };
        let maps = Maps::from(&crash.code[..]);
        let copied = Copied::of_crash(&crash, &maps);
        let found =
            [0xf78, 0xff8, 0x1000, 0x1008, 0x1018, 0x1020, 0x1028].map(|at| copied.word(at));
        assert_eq!(found, [None, Some(0), Some(0x410), Some(0), Some(0x1020), Some(0x420), None]);
        assert_eq!((copied.registers.pc, copied.registers.sp), (0x404, 0x1000));
        let copied = Copied::of_crash(&CrashSeen { pc: 0, ..crash.clone() }, &maps);
        assert_eq!((copied.registers.pc, copied.registers.sp), (0x40f, 0x1008));
        // What a damaged file says takes no memory.
        let far = CrashSeen { sp: 0, words: vec![(8, 1), (1 << 60, 2), (4, 3)], ..crash };
        assert_eq!(Copied::of_crash(&far, &maps).stack.len(), 2 * WORD);
    }
}
