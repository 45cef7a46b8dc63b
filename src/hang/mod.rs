//! Why does a job not go on? From what every rank does: who waits for whom, and whether any of them can still move.
//!
//! A call waits for all of some ranks (a collective operation, a receive from one rank) or for any of them
//! (`MPI_ANY_SOURCE`). A rank can go on if it is in its own code, or moves, or if what it waits for can: the ranks
//! that are left wait for each other, a knot in the wait-for graph (Hilbrich and others, "A graph based approach for MPI
//! deadlock detection", ICS 2009). Of a rank whose call does not say for whom it waits, it is assumed that it can go on, so
//! that a deadlock is never said without proof.

mod pace;
mod sentences;
#[cfg(test)]
mod simulation;
mod stall;
mod starting;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gyan_results::{
    CallPlace, CommunicatorNow, Doing, EndedFrom, FrameNow, GroupNow, HangCause, HangKind, JobNow,
    NOW_SCHEMA, RankDoing, RankNow, Tool,
};

use crate::input::directory::{Directory, JobDoing, RankProgress};
use crate::input::killed;
use crate::stacks::StackReader;
use crate::symbols::{StackFrame, Symbols};
pub(crate) use pace::{Pace, PaceKeeper, RankPace};
use sentences::Sentences;
pub(crate) use stall::{STALL_FILE, Stall, stall, unseen};
pub(crate) use starting::{Starting, has_begun, starting};
#[cfg(test)]
pub(crate) use tests::call as a_call;
use waits::{WaitGraph, may_move_much};

/// Ranks that have not moved for less than this may just be slow.
const STILL_MS: u64 = 5_000;
/// A collective operation that may move much takes less.
const TRANSFER_MS: u64 = 60_000;
/// Processes that end within this time were ended together.
const TOGETHER_MS: u64 = 1_000;
/// How many ranks are tried to find a short circle.
const STARTS: usize = 50;

/// What the ranks of a run do, or did last, and what follows from it; none if nothing is known of that.
pub(crate) fn of_directory(directory: &Directory) -> Option<JobNow> {
    with_progress(directory, None)
}

/// The same; `progress` takes how far the running ranks have come.
pub(crate) fn with_progress(
    directory: &Directory,
    progress: Option<&mut Vec<RankProgress>>,
) -> Option<JobNow> {
    let (mut symbols, mut reader) = (Symbols::default(), StackReader::default());
    let mut name_place = |place: &CallPlace| {
        if let Some(line) = place.line {
            let file = Path::new(&place.path).file_name().unwrap_or_default();
            return format!("{}:{line}", file.to_string_lossy());
        }
        let frames = symbols.frames_at(&place.path, place.offset);
        frames.first().map(StackFrame::short_place).unwrap_or_default()
    };
    let doing = directory.doing(&mut |crash| reader.crashed_in(crash), progress);
    look_at(directory, doing, &mut name_place)
}

/// The same without the places in the code, for which programs have to be read.
pub(crate) fn without_places(directory: &Directory) -> Option<JobNow> {
    look_at(directory, directory.doing(&mut |_| Vec::new(), None), &mut |_| String::new())
}

fn look_at(
    directory: &Directory,
    doing: JobDoing,
    name_place: &mut dyn FnMut(&CallPlace) -> String,
) -> Option<JobNow> {
    let JobDoing { job, size, mut ranks } = doing;
    let lives = |rank: &RankDoing| !matches!(rank.doing, Doing::Gone(_) | Doing::Ended);
    let is_over = !ranks.iter().any(lives);
    let mut looked = SystemTime::now();
    if is_over {
        looked = directory.last_heard()?;
        let last = ranks.iter().max_by_key(|rank| rank.ended_ms).cloned();
        let stalled_ms = stalled_ms(directory, &job);
        let died = |rank: &RankDoing| {
            last.as_ref().is_some_and(|last| died_before(rank, last, stalled_ms))
        };
        for rank in ranks.iter_mut().filter(|rank| !died(rank)) {
            rank.doing = match &rank.doing {
                Doing::Gone(Some(now)) => Doing::Still(now.clone()),
                Doing::Gone(None) => Doing::Moves,
                other => other.clone(),
            };
        }
    }
    let looked_ms = ms_since_1970(looked);
    let size = size.max(u32::try_from(ranks.len()).unwrap_or(u32::MAX));
    let seen = Seen { job, size, is_over, looked_ms, ranks };
    (!seen.ranks.is_empty()).then(|| job_now(seen, name_place))
}

/// As the keepers count.
pub(crate) fn ms_since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// When `gyan run --stall` found that this job does not go on, in milliseconds since 1970; none if it did not.
fn stalled_ms(directory: &Directory, job: &str) -> Option<u64> {
    let text = fs::read(directory.path.join(STALL_FILE)).ok()?;
    let then: JobNow = serde_json::from_slice(&text).ok()?;
    (then.job == job).then_some(then.looked_ms)
}

/// Whether a rank ended by itself, before others were ended. `last`: the one that ended last. `stalled_ms`: since when it is known
/// that the job does not go on; whoever is killed later was ended for that, however long it takes to end all.
fn died_before(rank: &RankDoing, last: &RankDoing, stalled_ms: Option<u64>) -> bool {
    if rank.ended_from == Some(EndedFrom::OutOfMemory) {
        return true;
    }
    if let Some(signal) = &rank.ended_by {
        if killed::is_crash(signal) || killed::is_request(signal) {
            return killed::is_crash(signal);
        }
        if rank
            .ended_ms
            .zip(stalled_ms)
            .is_some_and(|(ended_ms, stalled_ms)| ended_ms >= stalled_ms)
        {
            return false;
        }
        if last.ended_by.as_ref().is_some_and(|last| last != signal) {
            return true;
        }
    }
    let before_ms = rank.ended_ms.zip(last.ended_ms).map(|(own, last)| last.saturating_sub(own));
    before_ms.is_some_and(|before_ms| before_ms > TOGETHER_MS)
}

struct Seen {
    job: String,
    size: u32,
    is_over: bool,
    looked_ms: u64,
    ranks: Vec<RankDoing>,
}

/// What follows from it. `name_place`: how a place in the code reads.
fn job_now(seen: Seen, name_place: &mut dyn FnMut(&CallPlace) -> String) -> JobNow {
    let Seen { job, size, is_over, looked_ms, ranks } = seen;
    let mut places = BTreeMap::new();
    for now in ranks.iter().filter_map(|rank| of_doing(&rank.doing)) {
        if let Some(place) = &now.from
            && !places.contains_key(place)
        {
            places.insert(place.clone(), name_place(place));
        }
    }
    let sentences = Sentences { looked_ms, size, is_over, places: &places };
    let groups = groups(&ranks, &sentences);
    let cause = cause(&ranks, &sentences);
    let (schema, tool) = (NOW_SCHEMA.to_owned(), Tool::gyan());
    let (stacks, without_stack) = (Vec::new(), Vec::new());
    JobNow {
        schema,
        tool,
        job,
        size,
        is_over,
        looked_ms,
        ranks,
        groups,
        cause,
        stacks,
        without_stack,
    }
}

fn of_doing(doing: &Doing) -> Option<&RankNow> {
    match doing {
        Doing::Still(now) | Doing::Gone(Some(now)) => Some(now),
        _ => None,
    }
}

/// What ranks of a group have in common.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum Alike<'a> {
    Still(bool, bool, Option<&'a str>, Option<CommunicatorNow>, Option<&'a CallPlace>, usize),
    Moves,
    NotSeen(&'a str),
    Gone(Option<&'a str>, Option<EndedFrom>, &'a [FrameNow]),
    Ended,
}

fn groups(ranks: &[RankDoing], sentences: &Sentences) -> Vec<GroupNow> {
    let mut groups: BTreeMap<Alike, Vec<&RankDoing>> = BTreeMap::new();
    for rank in ranks {
        let key = match &rank.doing {
            Doing::Still(now) => {
                let communicator = now.communicator.filter(|_| now.in_mpi);
                let (function, from) = (now.function.as_deref(), now.from.as_ref());
                Alike::Still(
                    now.in_mpi,
                    now.stopped,
                    function,
                    communicator,
                    from,
                    now.threads.len(),
                )
            }
            Doing::Moves => Alike::Moves,
            Doing::NotSeen(why) => Alike::NotSeen(why),
            Doing::Gone(_) => {
                Alike::Gone(rank.ended_by.as_deref(), rank.ended_from, &rank.crashed_in)
            }
            Doing::Ended => Alike::Ended,
        };
        groups.entry(key).or_default().push(rank);
    }
    let mut groups: Vec<Vec<&RankDoing>> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
        .into_iter()
        .map(|group| GroupNow {
            ranks: group.iter().map(|rank| rank.rank).collect(),
            sentence: sentences.of_group(&group),
            still_s: sentences.still_s(&group),
        })
        .collect()
}

/// Why the ranks do not go on, if that is clear.
fn cause(ranks: &[RankDoing], sentences: &Sentences) -> Option<HangCause> {
    let graph = WaitGraph::new(sentences.size, ranks);
    let now = |rank| graph.now(rank);
    let for_ms = |now: &RankNow| sentences.looked_ms.saturating_sub(now.since_ms);
    let is_still = |rank: u32| now(rank).is_some_and(|now| for_ms(now) >= STILL_MS);
    let is_slow =
        |rank: u32| now(rank).is_some_and(|now| may_move_much(now) && for_ms(now) < TRANSFER_MS);
    let knot = graph.knot();
    let amounts = || amounts(&graph, &knot, is_still, sentences);
    if !knot.is_empty() {
        let is_certain = knot.iter().all(|rank| is_still(*rank));
        let wrong = gone(&graph, &knot, sentences).or_else(amounts);
        if is_certain && (wrong.is_some() || knot.iter().any(|rank| is_slow(*rank))) {
            return wrong;
        }
        let wrong = wrong
            .or_else(|| mismatch(&graph, &knot, sentences))
            .or_else(|| finalized(&graph, &knot, sentences));
        if is_certain {
            return wrong.or_else(|| deadlock(&graph, sentences));
        }
        if wrong.is_some() {
            return None;
        }
        // A rank that came a moment ago, or moves much, may go on; those that are stuck without it are stuck.
        let mut lasting = ranks.to_vec();
        for rank in &mut lasting {
            let may_pass = !is_still(rank.rank) || is_slow(rank.rank);
            if matches!(rank.doing, Doing::Still(_)) && may_pass {
                rank.doing = Doing::Moves;
            }
        }
        return deadlock(&WaitGraph::new(sentences.size, &lasting), sentences);
    }
    // Those that are all in one operation do not wait for others.
    if let Some(cause) = amounts() {
        return Some(cause);
    }
    let is_own =
        |rank: u32| now(rank).is_some_and(|now| !now.in_mpi || now.stopped) && is_still(rank);
    let waiting = graph.waiting_for(is_own);
    if !waiting.iter().any(|rank| is_still(*rank)) {
        return None;
    }
    let ranks: Vec<u32> = graph.waited_for().filter(|rank| is_own(*rank)).collect();
    let last = ranks.first().and_then(|rank| now(*rank));
    let sentence = sentences.straggler(&ranks, last, waiting.len());
    Some(HangCause { kind: HangKind::Straggler, ranks, sentence })
}

/// Ranks that wait for each other in a circle.
fn deadlock(graph: &WaitGraph, sentences: &Sentences) -> Option<HangCause> {
    let (stuck, knot) = (graph.stuck(), graph.knot());
    let ranks = graph.circle(&stuck, *knot.first()?, STARTS);
    let steps: Vec<(u32, &RankNow)> =
        ranks.iter().filter_map(|rank| Some((*rank, graph.now(*rank)?))).collect();
    let sentence = sentences.deadlock(&steps, knot.len());
    Some(HangCause { kind: HangKind::Deadlock, ranks, sentence })
}

/// Which of the stuck ranks wait for such ranks, and for which of them.
fn waiting_for(
    graph: &WaitGraph,
    knot: &[u32],
    is_missing: impl Fn(&Doing) -> bool,
) -> Option<(Vec<u32>, Vec<u32>)> {
    let is_missing = |rank: u32| graph.doing(rank).is_some_and(|rank| is_missing(&rank.doing));
    let waiting = graph.waiting_for(is_missing);
    let waiting: Vec<u32> =
        waiting.into_iter().filter(|rank| knot.binary_search(rank).is_ok()).collect();
    let missing: Vec<u32> = graph.waited_for().filter(|rank| is_missing(*rank)).collect();
    (!waiting.is_empty()).then_some((missing, waiting))
}

/// Ranks that died, for which others wait.
fn gone(graph: &WaitGraph, knot: &[u32], sentences: &Sentences) -> Option<HangCause> {
    let has_died = |doing: &Doing| matches!(doing, Doing::Gone(_));
    let (ranks, waiting) = waiting_for(graph, knot, has_died)?;
    let first = ranks.first().and_then(|rank| graph.doing(*rank));
    let sentence = sentences.gone(&ranks, first, &waiting);
    Some(HangCause { kind: HangKind::Gone, ranks, sentence })
}

/// Ranks of a communicator in different collective operations.
fn mismatch(graph: &WaitGraph, knot: &[u32], sentences: &Sentences) -> Option<HangCause> {
    let say = |groups: &[SaidRanks]| sentences.mismatch(groups);
    Some(differing(graph, graph.mismatch(knot)?, HangKind::Mismatch, say))
}

/// Ranks in the same call of a collective operation whose amounts differ. That is an error even if the call ends (MPI 4.1,
/// 6.4).
fn amounts(
    graph: &WaitGraph,
    knot: &[u32],
    is_still: impl Fn(u32) -> bool,
    sentences: &Sentences,
) -> Option<HangCause> {
    let say = |groups: &[SaidRanks]| sentences.amounts(groups);
    Some(differing(graph, graph.amounts(knot, is_still)?, HangKind::Amounts, say))
}

type SaidRanks<'a> = (&'a [u32], &'a RankNow);

/// The cause is the ranks of all groups but the largest, if there is one.
fn differing(
    graph: &WaitGraph,
    mut groups: Vec<Vec<u32>>,
    kind: HangKind,
    say: impl Fn(&[SaidRanks]) -> String,
) -> HangCause {
    groups.sort_by_key(|ranks| (ranks.len(), ranks.first().copied()));
    let said: Vec<SaidRanks> =
        groups.iter().filter_map(|ranks| Some((&ranks[..], graph.now(*ranks.first()?)?))).collect();
    HangCause { kind, ranks: fewer(&groups), sentence: say(&said) }
}

/// The ranks of all groups but the largest, which comes last; of all if no group is the largest.
fn fewer(groups: &[Vec<u32>]) -> Vec<u32> {
    let Some((most, few)) = groups.split_last() else { return Vec::new() };
    let others = if few.iter().all(|ranks| ranks.len() < most.len()) { few } else { groups };
    let mut ranks = others.concat();
    ranks.sort_unstable();
    ranks
}

/// Ranks that have called `MPI_Finalize`, while others wait for them.
fn finalized(graph: &WaitGraph, knot: &[u32], sentences: &Sentences) -> Option<HangCause> {
    let has_ended = |doing: &Doing| *doing == Doing::Ended;
    let (ranks, waiting) = waiting_for(graph, knot, has_ended)?;
    let first = waiting.first().and_then(|rank| Some((*rank, graph.now(*rank)?)));
    let sentence = sentences.finalized(&ranks, &waiting, first);
    Some(HangCause { kind: HangKind::Finalized, ranks, sentence })
}
