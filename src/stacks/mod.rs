//! How did the ranks on this host get to where they are? Their call stacks, taken from outside.
//!
//! A rank is stopped only while its registers and its stack are copied. What they mean is found out afterwards, from the copy
//! and from the files that the rank runs. Of a rank with several threads it is the stack of the one that began in `main`. What an
//! interpreter of Python runs is known from the keeper.

mod crash;
mod maps;
mod program;
mod stop;
#[cfg(test)]
mod tests;
mod tree;
mod unwind;

use std::collections::BTreeMap;

use gyan_results::{CrashSeen, Doing, FrameNow, RankDoing, RankNow, StackNow, WithoutStack};

use self::maps::Maps;
use crate::input::directory::{Directory, RankProcess};
use crate::symbols::Symbols;
use program::Program;
use stop::Copied;
pub(crate) use tree::tree;
use unwind::{ObjectFiles, Unwound};

/// How much of a stack is copied at first, and when that was not all that is needed.
const STACK_BYTES: [usize; 2] = [256 << 10, 64 << 20];

/// The stacks of the ranks of a run that run on this host, and why others have none. `ranks`: what they are doing.
pub(crate) fn taken(
    directory: &Directory,
    ranks: &[RankDoing],
) -> (Vec<StackNow>, Vec<WithoutStack>) {
    let still = ranks.iter().filter_map(|rank| match &rank.doing {
        Doing::Still(now) => Some((rank.rank, now)),
        _ => None,
    });
    let still: BTreeMap<u32, &RankNow> = still.collect();
    let mut reader = StackReader::default();
    let mut stacks: BTreeMap<(Vec<FrameNow>, bool), (Vec<u32>, u64)> = BTreeMap::new();
    let mut without: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for RankProcess { rank, host, pid } in directory.processes() {
        let stack = pid.map_or_else(
            || Err(elsewhere(&host, directory)),
            |pid| reader.stack(pid, still.get(&rank).copied()),
        );
        match stack {
            Ok(Taken { frames, is_cut, stopped_us }) => {
                let (ranks, longest_us) = stacks.entry((frames, is_cut)).or_default();
                ranks.push(rank);
                *longest_us = stopped_us.max(*longest_us);
            }
            Err(why) => without.entry(why).or_default().push(rank),
        }
    }
    let stacks = stacks.into_iter().map(|((frames, is_cut), (ranks, stopped_us))| StackNow {
        ranks,
        frames,
        is_cut,
        stopped_us,
    });
    let mut stacks: Vec<StackNow> = stacks.collect();
    stacks.sort_by(|one, other| one.ranks.cmp(&other.ranks));
    let without = without.into_iter().map(|(why, ranks)| WithoutStack { ranks, why });
    (stacks, without.collect())
}

fn elsewhere(host: &str, directory: &Directory) -> String {
    let path = directory.path.display();
    format!("it is on another host: on {host}, gyan now --stacks {path}")
}

/// The stack of a rank.
struct Taken {
    frames: Vec<FrameNow>,
    is_cut: bool,
    stopped_us: u64,
}

/// What all ranks have in common: the files that they run.
#[derive(Default)]
pub(crate) struct StackReader {
    files: ObjectFiles,
    symbols: Symbols,
}

impl StackReader {
    /// The functions that a rank crashed in, from the outermost one on.
    pub(crate) fn crashed_in(&mut self, crash: &CrashSeen) -> Vec<FrameNow> {
        let maps = Maps::from(&crash.code[..]);
        // Nothing of the process is there any more.
        let unwinder = self.files.unwinder(None, &maps);
        let unwound = unwinder.unwind(&Copied::from(crash));
        let program = Program { maps: &maps, symbols: &mut self.symbols };
        program.frames(&unwound.addresses, None).0
    }

    fn stack(&mut self, pid: u32, now: Option<&RankNow>) -> Result<Taken, String> {
        let mut stopped_us = 0;
        let mut unwound = Unwound::default();
        let maps = Maps::read(pid).map_err(|error| stop::why_not(pid, &error))?;
        // Before the rank is stopped: reading files may take long.
        let unwinder = self.files.unwinder(Some(pid), &maps);
        for bytes in STACK_BYTES {
            let copy = stop::copy(pid, |stack| maps.end_of(stack), bytes)
                .map_err(|error| stop::why_not(pid, &error))?;
            stopped_us = stopped_us.max(u64::try_from(copy.stopped.as_micros()).unwrap_or(0));
            unwound = unwinder.unwind(&copy);
            if !unwound.needs_more {
                break;
            }
        }
        let program = Program { maps: &maps, symbols: &mut self.symbols };
        let (frames, has_main) = program.frames(&unwound.addresses, now);
        let is_cut = unwound.is_cut && !has_main;
        Ok(Taken { frames, is_cut, stopped_us })
    }
}
