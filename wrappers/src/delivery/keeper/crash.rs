//! Memory in which a rank notes its crash, and what the keeper tells of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use gyan_results::{CodeSeen, CrashSeen};
use memmap2::MmapMut;

use super::records::memory_file;
use crate::sys::crash::{self, NotedCrash};
use crate::sys::maps::MappedPart;
use crate::sys::sigmask;

/// More words than these, from the inner end of the stack, are not told.
const WORDS_AT_MOST: usize = 2048;

/// For the rank.
pub(crate) struct CrashMemory {
    file: File,
    /// The handler writes it.
    _memory: MmapMut,
}

impl CrashMemory {
    /// A crash is noted in it from now on. A handler that is there already stays alone unless `goes_before(handler)`.
    pub(super) fn begin(goes_before: impl Fn(usize) -> bool) -> io::Result<CrashMemory> {
        // A limit on the size of files applies to memory files, too.
        let file = sigmask::without_signals(|| memory_file("gyan-crash", crash::BYTES))?;
        // SAFETY: the file has this many bytes and keeps them: it is sealed. The keeper reads them when this process has ended.
        let mut memory = unsafe { MmapMut::map_mut(&file) }?;
        crash::begin(memory.as_mut_ptr().cast(), goes_before);
        Ok(CrashMemory { file, _memory: memory })
    }

    /// The file for the keeper.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for CrashMemory {
    fn drop(&mut self) {
        crash::end();
    }
}

/// What a rank that has ended noted in its memory: none if it did not crash.
pub(super) fn seen(file: &File) -> Option<CrashSeen> {
    let mut bytes = vec![0; crash::BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    NotedCrash::read(&bytes).map(|noted| told(&noted))
}

fn told(noted: &NotedCrash) -> CrashSeen {
    let code: Vec<MappedPart> = noted.code().collect();
    let of = |address: usize| code.iter().position(|part| part.range.contains(&address));
    let stack = noted.stack_begin..noted.stack_end;
    let registers = noted.registers;
    let mut is_used = vec![false; code.len()];
    let mut uses = |address: usize| {
        let at = of(address);
        if let Some(used) = at.and_then(|at| is_used.get_mut(at)) {
            *used = true;
        }
        at.is_some()
    };
    uses(registers.pc);
    uses(registers.lr);
    // Its words are at addresses that are multiples of their size.
    let skipped = stack.start.next_multiple_of(size_of::<usize>()) - stack.start;
    let (words, _) = noted.stack.get(skipped..).unwrap_or_default().as_chunks();
    let addresses = (stack.start + skipped..).step_by(size_of::<usize>());
    let words = addresses.zip(words.iter().map(|word| usize::from_ne_bytes(*word)));
    let words = words.filter(|(_, word)| uses(*word) || stack.contains(word));
    let words = words.take(WORDS_AT_MOST).map(|(at, word)| (at as u64, word as u64)).collect();
    let code = code.iter().zip(is_used).filter(|(_, is_used)| *is_used);
    let code = code.map(|(part, _)| CodeSeen {
        begin: part.range.start as u64,
        end: part.range.end as u64,
        offset: part.offset as u64,
        path: String::from_utf8_lossy(part.path.unwrap_or_default()).into_owned(),
    });
    CrashSeen {
        signal: noted.signal,
        sent: noted.sent,
        pc: registers.pc as u64,
        sp: registers.sp as u64,
        fp: registers.fp as u64,
        lr: registers.lr as u64,
        stack_end: stack.end as u64,
        words,
        code: code.collect(),
    }
}
