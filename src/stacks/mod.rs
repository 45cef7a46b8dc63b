//! How did the ranks on this host get to where they are? Their call stacks, taken from outside.
//!
//! A rank is stopped only while its registers and its stack are copied. What they mean is found out afterwards, from the copy
//! and from the files that the rank runs. Of a rank with several threads it is the stack of the one that began in `main`, or those
//! of all, each of which is stopped by itself. What an interpreter of Python runs in its main thread is known from the keeper.

mod crash;
mod maps;
mod program;
mod stop;
#[cfg(test)]
mod tests;
mod tree;
mod unwind;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gyan_results::{CrashSeen, Doing, FrameNow, RankDoing, RankNow, StackNow, WithoutStack};

use self::maps::Maps;
use crate::input::directory::{Directory, RankProcess};
use crate::symbols::Symbols;
use program::{Program, ThreadStack};
use stop::Copied;
pub(crate) use tree::{TreeRow, tree};
use unwind::{ObjectFiles, Unwinder, Unwound};

/// How much of a stack is copied at first, and when that was not all that is needed.
const STACK_BYTES: [usize; 2] = [256 << 10, 64 << 20];

/// Whose stacks are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhichThreads {
    /// Those of the threads that began in `main`.
    Main,
    All,
}

/// The stacks of the ranks of a run that run on this host, and why others have none. `ranks`: what they are doing.
pub(crate) fn taken(
    directory: &Directory,
    ranks: &[RankDoing],
    which: WhichThreads,
) -> (Vec<StackNow>, Vec<WithoutStack>) {
    let still = ranks.iter().filter_map(|rank| match &rank.doing {
        Doing::Still(now) => Some((rank.rank, now)),
        _ => None,
    });
    let still: BTreeMap<u32, &RankNow> = still.collect();
    let mut reader = StackReader::default();
    let mut stacks = Stacks::default();
    for RankProcess { rank, host, pid } in directory.processes() {
        let taken = match pid {
            Some(pid) => reader.stacks(pid, still.get(&rank).copied(), which),
            None => vec![Err(elsewhere(&host, directory))],
        };
        stacks.extend(rank, taken);
    }
    stacks.finish()
}

/// The same of these processes, by rank.
pub(crate) fn of_processes(
    processes: &BTreeMap<u32, u32>,
    which: WhichThreads,
) -> (Vec<StackNow>, Vec<WithoutStack>) {
    let mut reader = StackReader::default();
    let mut stacks = Stacks::default();
    for (rank, pid) in processes {
        stacks.extend(*rank, reader.stacks(*pid, None, which));
    }
    stacks.finish()
}

fn elsewhere(host: &str, directory: &Directory) -> String {
    let path = directory.path.display();
    format!("it is on another host: on {host}, gyan now --stacks {path}")
}

/// The stacks of all ranks, those that are the same once.
#[derive(Default)]
struct Stacks {
    same: BTreeMap<(ThreadKind, Vec<FrameNow>, bool), SameStack>,
    /// The ranks without one, by the reason.
    without: BTreeMap<String, BTreeSet<u32>>,
}

#[derive(Default)]
struct SameStack {
    ranks: BTreeSet<u32>,
    threads: u64,
    stopped_us: u64,
}

impl Stacks {
    fn extend(&mut self, rank: u32, taken: Vec<Result<Taken, String>>) {
        for taken in taken {
            self.add(rank, taken);
        }
    }

    fn add(&mut self, rank: u32, taken: Result<Taken, String>) {
        match taken {
            Ok(Taken { kind, frames, is_cut, stopped_us }) => {
                let same = self.same.entry((kind, frames, is_cut)).or_default();
                same.ranks.insert(rank);
                same.threads += 1;
                same.stopped_us = stopped_us.max(same.stopped_us);
            }
            Err(why) => _ = self.without.entry(why).or_default().insert(rank),
        }
    }

    /// Those that began in `main` come first, and those of libraries last.
    fn finish(self) -> (Vec<StackNow>, Vec<WithoutStack>) {
        let stacks = self.same.into_iter().map(|((kind, frames, is_cut), same)| {
            let SameStack { ranks, threads, stopped_us } = same;
            let ranks = ranks.into_iter().collect();
            (kind, StackNow { ranks, threads, frames, is_cut, stopped_us })
        });
        let mut stacks: Vec<(ThreadKind, StackNow)> = stacks.collect();
        stacks.sort_by(|(kind, one), (other_kind, other)| {
            (kind, &one.ranks).cmp(&(other_kind, &other.ranks))
        });
        let without = self.without.into_iter().map(|(why, ranks)| {
            let ranks = ranks.into_iter().collect();
            WithoutStack { ranks, why }
        });
        (stacks.into_iter().map(|(_, stack)| stack).collect(), without.collect())
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum ThreadKind {
    /// It began in `main`.
    Main,
    OfProgram,
    /// A library keeps it for itself.
    OfLibrary,
}

struct Taken {
    kind: ThreadKind,
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
        let unwound = unwinder.unwind(&Copied::of_crash(crash, &maps));
        let mut program = Program { maps: &maps, symbols: &mut self.symbols, executable: "" };
        program.frames(&unwound.addresses, None).0
    }

    /// The stacks of a process, that of its main thread first.
    fn stacks(
        &mut self,
        pid: u32,
        now: Option<&RankNow>,
        which: WhichThreads,
    ) -> Vec<Result<Taken, String>> {
        let maps = match Maps::read(pid) {
            Ok(maps) => maps,
            Err(error) => return vec![Err(stop::why_not(pid, &error))],
        };
        // Before the rank is stopped: reading files may take long.
        let unwinder = self.files.unwinder(Some(pid), &maps);
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let executable = executable.to_string_lossy();
        let mut program =
            Program { maps: &maps, symbols: &mut self.symbols, executable: &executable };
        let mut taken = vec![main_stack(&unwinder, &mut program, pid, now)];
        if which == WhichThreads::All && taken.iter().all(Result::is_ok) {
            let others = threads(pid).into_iter().filter(|thread| *thread != pid);
            taken.extend(others.filter_map(|thread| {
                let stack = thread_stack(&unwinder, &mut program, thread);
                // It may have ended meanwhile.
                (stack.is_ok() || threads(pid).contains(&thread)).then_some(stack)
            }));
        }
        taken
    }
}

/// The threads of a process (proc(5)).
fn threads(pid: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

fn main_stack(
    unwinder: &Unwinder,
    program: &mut Program,
    pid: u32,
    now: Option<&RankNow>,
) -> Result<Taken, String> {
    let (unwound, stopped_us) = unwound(unwinder, program.maps, pid)?;
    let (frames, has_main) = program.frames(&unwound.addresses, now);
    let is_cut = unwound.is_cut && !has_main;
    Ok(Taken { kind: ThreadKind::Main, frames, is_cut, stopped_us })
}

fn thread_stack(unwinder: &Unwinder, program: &mut Program, thread: u32) -> Result<Taken, String> {
    let (unwound, stopped_us) = unwound(unwinder, program.maps, thread)?;
    let ThreadStack { frames, has_beginning, is_of_library } =
        program.frames_of_thread(&unwound.addresses);
    let kind = if is_of_library { ThreadKind::OfLibrary } else { ThreadKind::OfProgram };
    Ok(Taken { kind, frames, is_cut: unwound.is_cut && !has_beginning, stopped_us })
}

/// The way to where a thread is, and for how many microseconds it was stopped at most.
fn unwound(unwinder: &Unwinder, maps: &Maps, thread: u32) -> Result<(Unwound, u64), String> {
    let mut stopped_us = 0;
    let mut unwound = Unwound::default();
    for bytes in STACK_BYTES {
        let copy = stop::copy(thread, |stack| maps.end_of(stack), bytes)
            .map_err(|error| stop::why_not(thread, &error))?;
        stopped_us = stopped_us.max(u64::try_from(copy.stopped.as_micros()).unwrap_or(0));
        unwound = unwinder.unwind(&copy);
        if !unwound.needs_more {
            break;
        }
    }
    Ok((unwound, stopped_us))
}
