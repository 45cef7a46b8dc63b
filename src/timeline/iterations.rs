//! Which iterations of a run are shown? The slowest ones that all ranks kept, and a typical one: of those that were drawn by lot, the
//! one in the middle by its duration.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{TimelineHeader, TimelineIteration};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunIterations {
    /// How many there were.
    pub(crate) ended: u64,
    /// The function and the communicator between whose calls they lie; none if they are passes through a phase, or if there were none.
    pub(crate) between: Option<(String, String)>,
    /// Ranks do not agree on that, so it is not known which of their iterations are the same one.
    pub(crate) differ: bool,
    /// The slowest ones that are shown, by their numbers, and how long they took on the rank on which they took longest, in ns: the
    /// slowest one first.
    pub(crate) slowest: Vec<(u64, u64)>,
    /// The same of the typical one.
    pub(crate) typical: Option<(u64, u64)>,
    /// A rank was killed, so that what it did last is shown as well.
    pub(crate) was_killed: bool,
}

/// What the ranks kept, one after the other.
#[derive(Default)]
pub(super) struct KeptIterations {
    run: RunIterations,
    /// What the ranks say of the function, and of the communicator: one that was killed may not have left its name.
    functions: BTreeSet<Option<String>>,
    communicators: BTreeSet<String>,
    asked: usize,
    ranks: usize,
    /// By number, how many ranks kept it as a slow one, and how many as one drawn by lot, and its longest duration, in ns.
    all: BTreeMap<u64, KeptByRanks>,
}

#[derive(Clone, Copy, Default)]
struct KeptByRanks {
    slow: usize,
    drawn: usize,
    ns: u64,
}

impl KeptIterations {
    pub(super) fn add(&mut self, header: &TimelineHeader) {
        let Some(own) = &header.iterations else { return };
        let function = own.between.and_then(|(of, _)| header.functions.get(usize::from(of)));
        self.functions.insert(function.cloned());
        let at = own.between.and_then(|(_, on)| usize::from(on).checked_sub(1));
        let communicator = at.and_then(|at| header.communicators.get(at));
        self.communicators.extend(communicator.map(super::communicator_name));
        self.ranks += 1;
        self.run.ended = self.run.ended.max(own.ended);
        self.run.was_killed |= header.ended.is_none();
        let slowest = header.selection.as_ref().and_then(|selection| selection.slowest);
        self.asked = slowest.map_or(0, |slowest| slowest as usize);
        for iteration in &own.kept {
            let Some(ended) = iteration.ended_ticks else { continue };
            let ns = header.clock.ns(ended).saturating_sub(header.clock.ns(iteration.begun_ticks));
            let of = self.all.entry(iteration.number).or_default();
            of.slow += usize::from(iteration.is_slow);
            of.drawn += usize::from(iteration.is_drawn);
            of.ns = of.ns.max(ns);
        }
    }

    /// Those that are shown; none if the latest calls are.
    pub(super) fn chosen(self) -> Option<RunIterations> {
        let KeptIterations { mut run, mut communicators, mut functions, asked, ranks, all } = self;
        if ranks == 0 {
            return None;
        }
        if functions.len() > 1 || communicators.len() > 1 {
            run.differ = true;
            return Some(run);
        }
        let communicator = communicators.pop_first();
        let function = functions.pop_first().flatten();
        run.between = function.map(|function| (function, communicator.unwrap_or_default()));
        let by_duration = |of: fn(&KeptByRanks) -> usize| {
            let by_all = all.iter().filter(|(_, kept)| of(kept) == ranks);
            let mut found: Vec<(u64, u64)> =
                by_all.map(|(number, kept)| (*number, kept.ns)).collect();
            found.sort_by_key(|(_, ns)| *ns);
            found
        };
        run.slowest = by_duration(|kept| kept.slow).into_iter().rev().take(asked).collect();
        let drawn = by_duration(|kept| kept.drawn);
        let middle = drawn.get(drawn.len().saturating_sub(1) / 2);
        run.typical = middle.filter(|middle| !run.slowest.contains(middle)).copied();
        Some(run)
    }
}

impl RunIterations {
    /// What an iteration of a rank is called that is shown; none if it is not.
    pub(super) fn name(&self, iteration: &TimelineIteration) -> Option<String> {
        let number = iteration.number;
        let is_it = |(shown, _): &(u64, u64)| *shown == number;
        if number == 0 {
            return Some("before any iteration".into());
        }
        if iteration.ended_ticks.is_none() {
            return self.was_killed.then(|| format!("unfinished iteration {number}"));
        }
        if self.differ {
            return Some(format!("iteration {number}"));
        }
        if self.slowest.iter().any(is_it) {
            return Some(format!("slow iteration {number}"));
        }
        self.typical.as_ref().is_some_and(is_it).then(|| format!("typical iteration {number}"))
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{Ending, TimelineClock, TimelineIterations, TimelineSelection};

    use super::*;

    /// A rank that kept these: number, duration in ns, slow, drawn.
    fn rank(kept: &[(u64, u64, bool, bool)], communicator: u16) -> TimelineHeader {
        let iteration = |(number, ns, is_slow, is_drawn): &(u64, u64, bool, bool)| {
            let begun_ticks = number * 1000;
            let ended_ticks = Some(begun_ticks + ns);
            let number = *number;
            let (is_slow, is_drawn) = (*is_slow, *is_drawn);
            TimelineIteration {
                number,
                begun_ticks,
                ended_ticks,
                is_slow,
                is_drawn,
                ..TimelineIteration::default()
            }
        };
        let named = |name: &str| gyan_results::TimelineCommunicator {
            name: name.into(),
            ..gyan_results::TimelineCommunicator::default()
        };
        TimelineHeader {
            ended: Some(Ending::Finalize),
            clock: TimelineClock { ns_per_tick: 1.0, ..TimelineClock::default() },
            selection: Some(TimelineSelection { slowest: Some(2), ..TimelineSelection::default() }),
            functions: vec!["MPI_Allreduce".into()],
            communicators: vec![named("MPI_COMM_WORLD"), named("other")],
            iterations: Some(TimelineIterations {
                ended: 100,
                between: Some((0, communicator)),
                kept: kept.iter().map(iteration).collect(),
            }),
            ..TimelineHeader::default()
        }
    }

    fn chosen(ranks: &[TimelineHeader]) -> RunIterations {
        let mut all = KeptIterations::default();
        for rank in ranks {
            all.add(rank);
        }
        all.chosen().unwrap()
    }

    #[test]
    fn what_all_ranks_kept_is_shown_by_its_longest_duration() {
        let one = [
            (3, 50, false, true),
            (7, 900, true, false),
            (8, 500, true, true),
            (9, 700, true, false),
            (12, 40, false, true),
            (30, 60, false, true),
        ];
        let mut other = one;
        // It was not among the slowest here, and another one took longer.
        (other[1].2, other[2].1) = (false, 701);
        let run = chosen(&[rank(&one, 1), rank(&other, 1)]);
        assert_eq!(run.slowest, [(8, 701), (9, 700)]);
        // 40, 50, 60 and 701.
        assert_eq!(run.typical, Some((3, 50)));
        assert_eq!(run.between, Some(("MPI_Allreduce".into(), "MPI_COMM_WORLD".into())));
        assert_eq!(run.ended, 100);
        let names = |run: &RunIterations| {
            let header = rank(&one, 1);
            let kept = header.iterations.unwrap().kept;
            kept.iter().filter_map(|kept| run.name(kept)).collect::<Vec<_>>()
        };
        assert_eq!(names(&run), ["typical iteration 3", "slow iteration 8", "slow iteration 9"]);
    }

    #[test]
    fn ranks_that_differ_in_what_an_iteration_is_show_all_that_they_kept() {
        let kept = [(3, 50, true, true)];
        let run = chosen(&[rank(&kept, 1), rank(&kept, 2)]);
        assert!(run.differ && run.slowest.is_empty() && run.typical.is_none());
        let header = rank(&kept, 1);
        let name = run.name(&header.iterations.unwrap().kept[0]);
        assert_eq!(name.as_deref(), Some("iteration 3"));
    }

    #[test]
    fn what_a_killed_rank_did_last_is_shown() {
        let unfinished = TimelineIteration { number: 5, ..TimelineIteration::default() };
        let killed = TimelineHeader { ended: None, ..rank(&[], 1) };
        let name = |ranks: &[TimelineHeader]| chosen(ranks).name(&unfinished);
        assert_eq!(name(&[rank(&[], 1), killed]).as_deref(), Some("unfinished iteration 5"));
        assert_eq!(name(&[rank(&[], 1)]), None);
        // It left no name of the communicator.
        let nameless = TimelineHeader { communicators: Vec::new(), ..rank(&[], 1) };
        let run = chosen(&[nameless, rank(&[], 1)]);
        assert_eq!(run.between, Some(("MPI_Allreduce".into(), "MPI_COMM_WORLD".into())));
    }
}
