//! What do the ranks of a job do before they have left `MPI_Init`? No keeper knows of them yet: their call stacks tell.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::SystemTime;

use gyan_results::{
    Doing, FrameNow, GroupNow, JobNow, NOW_SCHEMA, RankDoing, StackNow, Tool, WithoutStack,
};

use super::ms_since_1970;
use super::sentences::{Sentences, named};
use crate::input::directory::Directory;
use crate::input::killed;
use crate::launch::ranks::JobHere;
use crate::stacks::{WhichThreads, of_processes};
use crate::symbols::{file_and_line, short_function};
use crate::words::integer;

/// No rank leaves them before all have called one of them. Fortran has them in capitals.
const COLLECTIVE: [&str; 2] = ["MPI_Init", "MPI_Init_thread"];
/// What else begins to use MPI.
const SESSION: &str = "MPI_Session_init";
/// How many groups of ranks a sentence has.
const GROUPS_AT_MOST: usize = 4;

/// A job of which no rank is known to have left `MPI_Init`.
pub(crate) struct Starting {
    pub(crate) now: JobNow,
    /// The ranks that are in it.
    pub(crate) in_init: BTreeSet<u32>,
    /// One that had left it would be known.
    pub(crate) has_keeper: bool,
    /// And all are on this host.
    pub(crate) is_known: bool,
}

/// Whether a rank is known to have left `MPI_Init`.
pub(crate) fn has_begun(directory: Option<&Directory>) -> bool {
    directory.is_some_and(|directory| !directory.doing(&mut |_| Vec::new(), None).ranks.is_empty())
}

/// Takes the call stacks of the ranks that are on this host.
pub(crate) fn starting(job: &JobHere, which: WhichThreads) -> Starting {
    let (stacks, without) = of_processes(&job.processes, which);
    // Another thread than the main one may be in MPI_Init.
    let in_init: BTreeSet<u32> = stacks
        .iter()
        .filter(|stack| place(stack).is_in_init())
        .flat_map(|of| &of.ranks)
        .copied()
        .collect();
    let mut others = job.processes.clone();
    others.retain(|rank, _| !in_init.contains(rank));
    let (threads, _) = of_processes(&others, WhichThreads::All);
    of_stacks(job, stacks, &threads, without)
}

/// Where a rank is.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
enum Place {
    /// In this function of MPI, which was called there.
    InMpi(String, String),
    /// In this function of the program.
    Own(String),
    /// The same; what called that is not known.
    Cut(String),
    NoStack(String),
    NoProcess,
}

impl Place {
    fn is_in(&self, functions: &[&str]) -> bool {
        match self {
            Place::InMpi(of, _) => functions.iter().any(|name| of.eq_ignore_ascii_case(name)),
            _ => false,
        }
    }

    fn is_in_init(&self) -> bool {
        self.is_in(&COLLECTIVE) || self.is_in(&[SESSION])
    }
}

/// `threads`: the stacks of more threads.
fn of_stacks(
    job: &JobHere,
    stacks: Vec<StackNow>,
    threads: &[StackNow],
    without_stack: Vec<WithoutStack>,
) -> Starting {
    let mut places: BTreeMap<u32, Place> = BTreeMap::new();
    // The stack of the main thread comes first.
    for stack in stacks.iter().chain(threads) {
        let place = place(stack);
        for rank in &stack.ranks {
            let known = places.entry(*rank).or_insert_with(|| place.clone());
            if place.is_in_init() {
                known.clone_from(&place);
            }
        }
    }
    for WithoutStack { ranks, why } in &without_stack {
        for rank in ranks {
            places.entry(*rank).or_insert_with(|| Place::NoStack(why.clone()));
        }
    }
    let above = places.last_key_value().map_or(0, |(rank, _)| rank + 1);
    let size = job.size.unwrap_or(0).max(above);
    if job.is_whole {
        for rank in 0..size {
            places.entry(rank).or_insert(Place::NoProcess);
        }
    }
    let in_init = places.iter().filter(|(_, place)| place.is_in_init());
    let in_init: BTreeSet<u32> = in_init.map(|(rank, _)| *rank).collect();
    // Without the keeper, a rank may have left it.
    let is_first = job.has_keeper && places.values().any(|place| place.is_in(&COLLECTIVE));
    let looked_ms = ms_since_1970(SystemTime::now());
    let sentences = Sentences { looked_ms, size, is_over: false, places: &BTreeMap::new() };
    let mut groups: BTreeMap<&Place, Vec<u32>> = BTreeMap::new();
    for (rank, place) in &places {
        groups.entry(place).or_default().push(*rank);
    }
    let mut groups: Vec<(&Place, Vec<u32>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| (std::cmp::Reverse(ranks.len()), ranks.first().copied()));
    let groups = groups.into_iter().map(|(place, ranks)| {
        let sentence = sentence(&sentences, &ranks, place, is_first);
        GroupNow { ranks, sentence, still_s: None }
    });
    let groups = groups.collect();
    let host = killed::this_host();
    let ranks = places.iter().map(|(rank, place)| {
        let why = sentence(&sentences, &[*rank], place, is_first);
        RankDoing::new(*rank, &host, Doing::NotSeen(why))
    });
    let now = JobNow {
        schema: NOW_SCHEMA.to_owned(),
        tool: Tool::gyan(),
        job: job.id.clone(),
        size,
        is_over: false,
        looked_ms,
        ranks: ranks.collect(),
        groups,
        cause: None,
        stacks,
        without_stack,
    };
    let has_keeper = job.has_keeper;
    Starting { now, in_init, has_keeper, is_known: job.is_whole && has_keeper }
}

fn place(stack: &StackNow) -> Place {
    let is_mpi = |frame: &FrameNow| frame.function.starts_with("MPI_");
    if let Some(at) = stack.frames.iter().position(is_mpi) {
        let (callers, called) = stack.frames.split_at(at);
        let line = |frame: &FrameNow| file_and_line(frame.file.as_deref(), frame.line);
        let name = |frame: &FrameNow| short_function(&frame.function);
        let from = callers.iter().rev().find_map(line).or_else(|| callers.last().map(name));
        let function = called.first().map(name);
        return Place::InMpi(function.unwrap_or_default(), from.unwrap_or_default());
    }
    let place = own(&stack.frames);
    if stack.is_cut { Place::Cut(place) } else { Place::Own(place) }
}

/// The innermost function with a line, or what is known instead.
fn own(frames: &[FrameNow]) -> String {
    const FUNCTIONS_AT_MOST: usize = 4;
    if let Some(own) = frames.iter().rfind(|frame| frame.line.is_some()) {
        return named(own);
    }
    let mut functions: Vec<String> = frames.iter().rev().map(named).collect();
    functions.dedup();
    functions.truncate(FUNCTIONS_AT_MOST);
    functions.join(", called by ")
}

/// `is_first`: a rank that is not in `MPI_Init` has not called it.
fn sentence(sentences: &Sentences, ranks: &[u32], place: &Place, is_first: bool) -> String {
    let one = ranks.len() == 1;
    let (who, are, have) = (sentences.who(ranks), sentences.are(one), sentences.have(one));
    match place {
        Place::InMpi(function, at) if at.is_empty() => format!("{who} {are} in {function}"),
        Place::InMpi(function, at) => format!("{who} {are} in {function} at {at}"),
        Place::Own(place) if is_first => {
            let they = if one { "it" } else { "they" };
            format!("{who} {have} not called MPI_Init: {they} {are} in {place}")
        }
        Place::Own(place) => format!("{who} {are} outside of MPI_Init, in {place}"),
        Place::Cut(place) => {
            format!("{who} {are} in {place}, and what called that cannot be read")
        }
        Place::NoStack(why) => format!("{who} {have} no stack: {why}"),
        Place::NoProcess => format!("{who} {have} no process"),
    }
}

impl Starting {
    pub(crate) fn sentence(&self) -> String {
        let JobNow { groups, ranks, size, .. } = &self.now;
        let said = groups.iter().take(GROUPS_AT_MOST).map(|group| group.sentence.as_str());
        let mut text = said.collect::<Vec<&str>>().join("; ");
        let more: usize = groups.iter().skip(GROUPS_AT_MOST).map(|group| group.ranks.len()).sum();
        if more > 0 {
            let _ = write!(text, "; {} more ranks are elsewhere", integer(more as i128));
        }
        let known = ranks.len();
        if known < *size as usize {
            let (known, size) = (integer(known as i128), integer((*size).into()));
            text = format!("{known} of {size} ranks are on this host: {text}");
        }
        text
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn stack(ranks: &[u32], frames: &[(&str, u32)]) -> StackNow {
        let frame = |&(function, line): &(&str, u32)| FrameNow {
            function: function.into(),
            file: (line > 0).then(|| "/src/solver.c".into()),
            line: (line > 0).then_some(line),
            inlined: false,
        };
        let frames = frames.iter().map(frame).collect();
        StackNow { ranks: ranks.into(), threads: 1, frames, is_cut: false, stopped_us: 9 }
    }

    fn job(size: u32) -> JobHere {
        JobHere {
            id: "7".into(),
            output: None,
            size: Some(size),
            is_whole: true,
            has_keeper: true,
            processes: BTreeMap::new(),
        }
    }

    fn said(job: &JobHere, stacks: &[StackNow]) -> String {
        of_stacks(job, stacks.to_vec(), &[], Vec::new()).sentence()
    }

    const IN_INIT: [(&str, u32); 2] = [("main", 12), ("MPI_Init", 0)];
    const READS: [(&str, u32); 3] = [("main", 9), ("read_input", 40), ("read", 0)];

    #[test]
    fn who_is_in_mpi_init_and_who_has_not_called_it_is_one_sentence() {
        let stacks = [stack(&[0, 1, 2], &IN_INIT), stack(&[3], &READS)];
        let expected = "ranks 0-2 are in MPI_Init at solver.c:12; rank 3 has not called MPI_Init: it is in \
                        read_input at solver.c:40";
        assert_eq!(said(&job(4), &stacks), expected);
        let all = [stack(&[0, 1], &[("main", 0), ("setup", 0), ("MPI_Init_thread", 0)])];
        assert_eq!(said(&job(2), &all), "all 2 ranks are in MPI_Init_thread at setup");
    }

    #[test]
    fn that_a_rank_has_not_called_mpi_init_is_said_only_if_that_is_known() {
        let stacks = [stack(&[0, 1, 2], &IN_INIT), stack(&[3], &READS)];
        let without_keeper = JobHere { has_keeper: false, ..job(4) };
        let of_one = "rank 3 is outside of MPI_Init, in read_input at solver.c:40";
        assert!(said(&without_keeper, &stacks).ends_with(of_one));
        let nobody = [stack(&[0, 1, 2, 3], &READS)];
        let of_all = "all 4 ranks are outside of MPI_Init, in read_input at solver.c:40";
        assert_eq!(said(&job(4), &nobody), of_all);
        // A session may be left while others have none.
        let session = [stack(&[0, 1, 2], &[("main", 12), (SESSION, 0)]), stack(&[3], &READS)];
        assert!(said(&job(4), &session).ends_with(of_one));
        let cut = [stack(&[0, 1, 2], &IN_INIT), StackNow { is_cut: true, ..stack(&[3], &READS) }];
        assert!(said(&job(4), &cut).ends_with("and what called that cannot be read"));
    }

    #[test]
    fn a_rank_is_in_mpi_init_if_one_of_its_threads_is() {
        let stacks = [stack(&[0, 1, 2], &IN_INIT), stack(&[3], &[("main", 30), ("join", 0)])];
        let threads = [stack(&[3], &[("libmpi.so", 0)]), stack(&[3], &IN_INIT)];
        let starting = of_stacks(&job(4), stacks.to_vec(), &threads, Vec::new());
        assert_eq!(starting.sentence(), "all 4 ranks are in MPI_Init at solver.c:12");
    }

    #[test]
    fn ranks_elsewhere_are_counted_and_ranks_without_a_process_are_named() {
        let stacks = [stack(&[0, 1, 3], &IN_INIT)];
        let expected = "ranks 0-1, 3 are in MPI_Init at solver.c:12; rank 2 has no process";
        assert_eq!(said(&job(4), &stacks), expected);
        let far = JobHere { is_whole: false, ..job(8) };
        let expected = "3 of 8 ranks are on this host: ranks 0-1, 3 are in MPI_Init at solver.c:12";
        assert_eq!(said(&far, &stacks), expected);
        let why = WithoutStack { ranks: vec![0, 1], why: "the system forbids it".into() };
        let starting = of_stacks(&job(2), Vec::new(), &[], vec![why]);
        assert_eq!(starting.sentence(), "all 2 ranks have no stack: the system forbids it");
        assert!(starting.in_init.is_empty());
    }

    #[test]
    fn without_lines_the_functions_that_led_there_are_named() {
        let stacks = [stack(&[0], &[("main", 0), ("load", 0), ("libc.so.6+0x12", 0)])];
        let expected =
            "rank 0 is outside of MPI_Init, in libc.so.6, called by load, called by main";
        assert_eq!(said(&job(1), &stacks), expected);
    }
}
