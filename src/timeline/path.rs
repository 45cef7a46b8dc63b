//! On which ranks is the critical path? Back in time from the call that ended last: on its rank as far as the end of the latest wait,
//! on from there on the rank that was waited for, and so on (Böhme and others, "Scalable critical-path based performance analysis",
//! IPDPS 2012). No wait is on the path, so each of its moments is work that the run had to wait for.
//!
//! Waits are those of [`super::waits`]. What is no certain wait looks like work of the rank.

use std::collections::BTreeMap;
use std::io;

use gyan_results::TimelineKind;
use serde::Serialize;

use super::totals::seconds;
use super::trace::RankTrace;
use super::waits::{Begins, CallWait, TimedEvents};
use super::{ClockAlignment, Timelines, lost};

/// The critical path of a timeline, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum PathKnowledge {
    Known(TimelinePath),
    Unknown { unknown_because: &'static str },
}

#[derive(Debug, Serialize)]
pub(crate) struct TimelinePath {
    /// From the first event of the timeline to the last one, in s.
    pub(crate) window_s: f64,
    /// How much of that the path is known for, in s: back to where the events of its rank were overwritten.
    pub(crate) known_s: f64,
    /// How much of it is serial, in s: one rank works, and all others wait.
    pub(crate) serial_s: f64,
    /// Those with the longest part of it first.
    pub(crate) ranks: Vec<RankOnPath>,
}

/// What a rank does on the path. Times are in s.
#[derive(Debug, Serialize)]
pub(crate) struct RankOnPath {
    pub(crate) rank: u32,
    pub(crate) time_s: f64,
    /// Outside of MPI.
    pub(crate) own_code_s: f64,
    /// While all other ranks wait.
    pub(crate) serial_s: f64,
    /// What MPI does, the longest first: transfer, and the cost of the calls.
    pub(crate) functions: Vec<FunctionOnPath>,
    /// The call that most of its own code leads up to.
    pub(crate) leads_to: Option<CallAfterCode>,
}

/// How long calls of a function take on the path.
#[derive(Debug, Serialize)]
pub(crate) struct FunctionOnPath {
    pub(crate) function: String,
    pub(crate) time_s: f64,
}

/// A call site, and how long the program runs its own code before it.
#[derive(Debug, Serialize)]
pub(crate) struct CallAfterCode {
    pub(crate) function: String,
    /// The line; empty if it is not known.
    pub(crate) place: String,
    pub(crate) time_s: f64,
}

/// What the path needs to know of a rank. Times are in ns on the clock of the run.
pub(super) struct RankForPath {
    rank: u32,
    /// From when on it is known what the rank did.
    known_from_ns: u64,
    ended_ns: u64,
    /// In the order in which they end.
    waits: Vec<PathWait>,
    /// Whether calls of several threads overlap, so that the rank may work while one of them waits.
    has_overlapping_threads: bool,
}

#[derive(Clone, Copy)]
struct PathWait {
    from_ns: u64,
    until_ns: u64,
    late_rank: u32,
}

/// By rank, when the path is on it: spans in the order of time, in ns on the clock of the run.
pub(super) type PathSpans = BTreeMap<u32, Vec<(u64, u64)>>;

/// A part of the path on one rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct PathStretch {
    rank: u32,
    from_ns: u64,
    to_ns: u64,
}

impl RankForPath {
    pub(super) fn new(rank: &TimedEvents, waits: &[CallWait]) -> RankForPath {
        let calls = rank.events.iter().filter(|event| matches!(event.kind, TimelineKind::Call(_)));
        let mut spans: Vec<(u64, u64)> = calls.map(|call| rank.span_ns(call)).collect();
        spans.sort_unstable();
        let is_whole = lost(rank.header, rank.events) == 0;
        let first_ns = spans.first().map_or(0, |(begun, _)| *begun);
        let wait = |wait: &CallWait| PathWait {
            from_ns: wait.from_ns,
            until_ns: wait.until_ns,
            late_rank: wait.late.rank,
        };
        let mut waits: Vec<PathWait> = waits.iter().map(wait).collect();
        waits.sort_by_key(|wait| wait.until_ns);
        RankForPath {
            rank: rank.header.rank,
            known_from_ns: if is_whole { 0 } else { first_ns },
            ended_ns: spans.iter().map(|(_, ended)| *ended).max().unwrap_or(0),
            waits,
            has_overlapping_threads: spans.windows(2).any(|pair| pair[1].0 < pair[0].1),
        }
    }
}

/// The path, the latest stretch first.
fn walk(ranks: &BTreeMap<u32, RankForPath>) -> Vec<PathStretch> {
    let mut stretches = Vec::new();
    // A wait is followed once, so the path ends even if clocks contradict each other.
    let mut left: BTreeMap<u32, &[PathWait]> =
        ranks.iter().map(|(rank, of)| (*rank, &of.waits[..])).collect();
    let last = ranks.values().max_by_key(|of| (of.ended_ns, std::cmp::Reverse(of.rank)));
    let Some(mut here) = last else { return stretches };
    let mut to_ns = here.ended_ns;
    loop {
        let own = left.entry(here.rank).or_default();
        *own = &own[..own.partition_point(|wait| wait.until_ns <= to_ns)];
        let next = own.split_off_last().and_then(|wait| Some((wait, ranks.get(&wait.late_rank)?)));
        let from_ns = next.map_or(here.known_from_ns, |(wait, _)| wait.until_ns).min(to_ns);
        stretches.push(PathStretch { rank: here.rank, from_ns, to_ns });
        let Some((_, late)) = next else { return stretches };
        (here, to_ns) = (late, from_ns);
    }
}

/// When the path is on which rank, in the order of time, in ns.
fn path_spans(ranks: &BTreeMap<u32, RankForPath>) -> PathSpans {
    let mut spans = PathSpans::new();
    for stretch in walk(ranks).into_iter().rev().filter(|of| of.to_ns > of.from_ns) {
        spans.entry(stretch.rank).or_default().push((stretch.from_ns, stretch.to_ns));
    }
    spans
}

fn by_rank(ranks: Vec<RankForPath>) -> BTreeMap<u32, RankForPath> {
    ranks.into_iter().map(|rank| (rank.rank, rank)).collect()
}

/// When all ranks but one wait, in the order of time, in ns.
fn serial_spans(ranks: &BTreeMap<u32, RankForPath>) -> Vec<(u64, u64)> {
    let waits = ranks.values().flat_map(|of| &of.waits);
    // Whether a wait begins there.
    let changes = waits.flat_map(|wait| [(wait.from_ns, true), (wait.until_ns, false)]);
    let mut changes: Vec<(u64, bool)> = changes.collect();
    changes.sort_unstable();
    let (mut waiting, mut since, mut spans) = (0_usize, 0, Vec::new());
    for (ns, begins) in changes {
        if waiting + 1 == ranks.len() && ns > since {
            spans.push((since, ns));
        }
        waiting = if begins { waiting + 1 } else { waiting.saturating_sub(1) };
        since = ns;
    }
    spans
}

/// How long spans of time, which are apart and in order, and this one have in common.
fn in_common(spans: &[(u64, u64)], (from_ns, to_ns): (u64, u64)) -> u64 {
    let first = spans.partition_point(|(_, end)| *end <= from_ns);
    let touched = spans[first..].iter().take_while(|(begin, _)| *begin < to_ns);
    touched.map(|(begin, end)| (*end).min(to_ns) - (*begin).max(from_ns)).sum()
}

impl Timelines {
    /// The critical path. `run_ns`: when the last event of the run ended.
    pub(super) fn path(&self, ranks: Vec<RankForPath>, run_ns: u64) -> io::Result<PathKnowledge> {
        if let Some(unknown_because) = self.why_no_path(&ranks) {
            return Ok(PathKnowledge::Unknown { unknown_because });
        }
        let ranks = by_rank(ranks);
        let spans = path_spans(&ranks);
        let serial = serial_spans(&ranks);
        let known_ns = spans.values().flatten().map(|(from, to)| to - from).sum();
        let on_path: Vec<u32> = spans.keys().copied().collect();
        let mut found = Vec::new();
        let look = |rank: &TimedEvents| {
            let spans = &spans[&rank.header.rank];
            let serial_ns = spans.iter().map(|span| in_common(&serial, *span)).sum();
            RankOnPath { serial_s: seconds(serial_ns), ..self.on_path(rank, spans) }
        };
        self.each(&on_path, look, |rank| found.push(rank))?;
        found.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
        Ok(PathKnowledge::Known(TimelinePath {
            window_s: seconds(run_ns),
            known_s: seconds(known_ns),
            serial_s: found.iter().map(|rank| rank.serial_s).sum(),
            ranks: found,
        }))
    }

    /// When the path is on which rank; nothing if it is not known.
    pub(super) fn path_spans(&self, begins: &Begins) -> io::Result<PathSpans> {
        let mut ranks = Vec::new();
        let look = |rank: &TimedEvents| {
            RankForPath::new(rank, &rank.waits(&self.arrows, &self.communicators, begins))
        };
        self.each(&self.ranks, look, |rank| ranks.push(rank))?;
        Ok(match self.why_no_path(&ranks) {
            None => path_spans(&by_rank(ranks)),
            Some(_) => PathSpans::new(),
        })
    }

    fn why_no_path(&self, ranks: &[RankForPath]) -> Option<&'static str> {
        let selection = self.selection.as_ref();
        if ranks.len() < 2 {
            Some("there is one rank only")
        } else if self.iterations.is_some() {
            Some("only some iterations were kept")
        } else if selection.is_some_and(|selection| !selection.begins_with_the_run()) {
            Some("calls may have been under way when recording began")
        } else if self.alignment() == ClockAlignment::Unknown {
            Some("the clocks of the hosts cannot be compared")
        } else if ranks.iter().any(|rank| rank.has_overlapping_threads) {
            Some(
                "several threads of a rank call MPI at once, so one may work while another one waits",
            )
        } else {
            None
        }
    }

    /// What a rank does in its parts of the path, which are in order. How much of that is serial is not known here.
    fn on_path(&self, rank: &TimedEvents, spans: &[(u64, u64)]) -> RankOnPath {
        let call = |event| Some((rank.span_ns(event), rank.function(event)?, event.site));
        let mut calls: Vec<((u64, u64), &str, u16)> = rank.events.iter().filter_map(call).collect();
        calls.sort_unstable();
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        let mut before_calls: BTreeMap<(&str, u16), u64> = BTreeMap::new();
        let mut since_ns = 0;
        for ((begun_ns, ended_ns), function, site) in calls {
            *before_calls.entry((function, site)).or_default() +=
                in_common(spans, (since_ns, begun_ns));
            *functions.entry(function).or_default() += in_common(spans, (begun_ns, ended_ns));
            since_ns = ended_ns;
        }
        let most = before_calls.iter().max_by_key(|(_, ns)| **ns).filter(|(_, ns)| **ns > 0);
        let places = RankTrace::new(self, rank.header).places;
        let leads_to = most.map(|((function, site), ns)| CallAfterCode {
            function: (*function).to_owned(),
            place: places.get(site).copied().unwrap_or_default().to_owned(),
            time_s: seconds(*ns),
        });
        let functions = functions.into_iter().filter(|(_, ns)| *ns > 0);
        let mut functions: Vec<FunctionOnPath> = functions
            .map(|(function, ns)| FunctionOnPath {
                function: function.to_owned(),
                time_s: seconds(ns),
            })
            .collect();
        functions.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
        RankOnPath {
            rank: rank.header.rank,
            time_s: seconds(spans.iter().map(|(from, to)| to - from).sum()),
            own_code_s: seconds(before_calls.values().sum()),
            serial_s: 0.0,
            functions,
            leads_to,
        }
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{TimelineEvent, TimelinePeer, timeline_file_name};

    use super::*;
    use crate::timeline::fixture::{call, file, header};

    const FUNCTIONS: [&str; 7] = [
        "MPI_Comm_rank",
        "MPI_Bsend",
        "MPI_Recv",
        "MPI_Ssend",
        "MPI_Barrier",
        "MPI_Bcast",
        "MPI_Reduce",
    ];
    const COMM_RANK: u16 = 0;
    const BSEND: u16 = 1;
    const RECV: u16 = 2;
    const SSEND: u16 = 3;
    const BARRIER: u16 = 4;
    const BCAST: u16 = 5;
    const REDUCE: u16 = 6;

    /// The longest chain of work that ends on a rank: how long it is, and how much of it is own code and MPI of each rank.
    #[derive(Clone, Debug, PartialEq)]
    struct LongestChain {
        length: u64,
        own: Vec<u64>,
        in_mpi: Vec<u64>,
    }

    /// A program that is simulated forwards. The longest chain comes from how long its steps take, and from which steps need which; no
    /// time of a call is compared.
    struct SimulatedProgram {
        clocks: Vec<u64>,
        events: Vec<Vec<TimelineEvent>>,
        chains: Vec<LongestChain>,
        /// By rank, when it waits.
        waits: Vec<Vec<(u64, u64)>>,
    }

    impl SimulatedProgram {
        fn new(ranks: usize) -> SimulatedProgram {
            let none = LongestChain { length: 0, own: vec![0; ranks], in_mpi: vec![0; ranks] };
            let mut all = SimulatedProgram {
                clocks: vec![0; ranks],
                events: vec![Vec::new(); ranks],
                chains: vec![none; ranks],
                waits: vec![Vec::new(); ranks],
            };
            all.marks();
            all
        }

        /// A call of each rank, so that its timeline begins or ends here.
        fn marks(&mut self) {
            for rank in 0..self.clocks.len() {
                self.calls(rank, COMM_RANK, &[], 1, (TimelinePeer::None, TimelineEvent::NO_TAG));
            }
        }

        fn computes(&mut self, rank: usize, takes: u64) {
            self.clocks[rank] += takes;
            self.chains[rank].length += takes;
            self.chains[rank].own[rank] += takes;
        }

        /// A call that needs that others have come to where they were, and takes some time after that.
        fn calls(
            &mut self,
            rank: usize,
            function: u16,
            needs: &[(u64, LongestChain)],
            takes: u64,
            (peer, tag): (TimelinePeer, i32),
        ) {
            let begun = self.clocks[rank];
            let mut chain = self.chains[rank].clone();
            for (_, other) in needs {
                if other.length > chain.length {
                    chain = other.clone();
                }
            }
            chain.length += takes;
            chain.in_mpi[rank] += takes;
            self.chains[rank] = chain;
            let from = needs.iter().map(|(clock, _)| *clock).fold(begun, u64::max);
            self.waits[rank].push((begun, from));
            self.clocks[rank] = from + takes;
            let event = call(function, (begun, from + takes));
            self.events[rank].push(TimelineEvent { peer, tag, ..event });
        }

        fn place(&self, rank: usize) -> (u64, LongestChain) {
            (self.clocks[rank], self.chains[rank].clone())
        }

        fn message(&mut self, from: usize, to: usize, is_synchronous: bool) {
            let (sender, receiver) = (self.place(from), self.place(to));
            let peer = |rank: usize| (TimelinePeer::Rank(u32::try_from(rank).unwrap()), 7);
            let (function, needs) =
                if is_synchronous { (SSEND, vec![receiver]) } else { (BSEND, vec![]) };
            self.calls(from, function, &needs, 2, peer(to));
            self.calls(to, RECV, &[sender], 3, peer(from));
        }

        fn collective(&mut self, function: u16, root: usize) {
            let places: Vec<_> = (0..self.clocks.len()).map(|rank| self.place(rank)).collect();
            let peer = match function {
                BARRIER => TimelinePeer::None,
                _ => TimelinePeer::Rank(u32::try_from(root).unwrap()),
            };
            for rank in 0..places.len() {
                let needs = match function {
                    BCAST => &places[root..=root],
                    REDUCE if rank != root => &[],
                    _ => &places[..],
                };
                let takes = 2 + rank as u64;
                self.calls(rank, function, needs, takes, (peer, TimelineEvent::NO_TAG));
            }
        }

        /// How many ns all ranks but one wait, each ns looked at by itself.
        fn serial_ns(&self) -> u64 {
            let end = self.clocks.iter().max().copied().unwrap();
            let waiting = |at: u64| {
                let waits =
                    |of: &&Vec<(u64, u64)>| of.iter().any(|(from, to)| (*from..*to).contains(&at));
                self.waits.iter().filter(waits).count()
            };
            (0..end).filter(|at| waiting(*at) + 1 == self.clocks.len()).count() as u64
        }

        /// What gyan finds in the files of its ranks. `lost`: how many of the first events of each rank are not in them.
        fn found(&self, lost: usize) -> TimelinePath {
            let place = tempfile::tempdir().unwrap();
            let size = u32::try_from(self.events.len()).unwrap();
            for (rank, events) in (0..size).zip(&self.events) {
                let header = header(rank, size, &FUNCTIONS);
                let bytes = file(header, lost as u64, &events[lost..]);
                std::fs::write(place.path().join(timeline_file_name(rank)), bytes).unwrap();
            }
            let run = Timelines::open(place.path(), &mut Vec::new()).unwrap();
            match run.waits().unwrap().critical_path {
                PathKnowledge::Known(path) => path,
                PathKnowledge::Unknown { unknown_because } => panic!("{unknown_because}"),
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn ns(seconds: f64) -> u64 {
        (seconds * 1e9).round() as u64
    }

    #[test]
    fn the_path_is_the_longest_chain_of_work_of_programs_drawn_at_random() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut serial = 0;
        for _ in 0..60 {
            let ranks = random.usize(2..6);
            let mut program = SimulatedProgram::new(ranks);
            for _ in 0..random.usize(5..60) {
                for rank in 0..ranks {
                    program.computes(rank, random.u64(1..400));
                }
                let root = random.usize(..ranks);
                match random.usize(..6) {
                    0 => program.collective(BARRIER, 0),
                    1 => program.collective(BCAST, root),
                    2 => program.collective(REDUCE, root),
                    kind => {
                        program.message(root, (root + random.usize(1..ranks)) % ranks, kind == 3);
                    }
                }
            }
            program.marks();
            let path = program.found(0);
            let last = (0..ranks).max_by_key(|rank| (program.clocks[*rank], ranks - rank)).unwrap();
            let truth = &program.chains[last];
            assert_eq!([ns(path.known_s), ns(path.window_s)], [truth.length; 2]);
            for rank in 0..ranks {
                let number = u32::try_from(rank).unwrap();
                let of_rank = path.ranks.iter().find(|of| of.rank == number);
                let own = of_rank.map_or(0, |of| ns(of.own_code_s));
                let in_mpi = |of: &RankOnPath| of.functions.iter().map(|of| ns(of.time_s)).sum();
                let in_mpi: u64 = of_rank.map_or(0, in_mpi);
                assert_eq!((own, in_mpi), (truth.own[rank], truth.in_mpi[rank]), "{rank}");
            }
            assert_eq!(ns(path.serial_s), program.serial_ns());
            serial += program.serial_ns();
        }
        assert!(serial > 0);
    }

    #[test]
    fn the_path_is_followed_as_far_back_as_its_rank_has_events() {
        let mut program = SimulatedProgram::new(2);
        for _ in 0..10 {
            program.computes(0, 10);
            program.computes(1, 100);
            program.collective(BARRIER, 0);
        }
        let path = program.found(3);
        // Rank 0 came to the first barrier that is left 90 ns before rank 1, which ended the one before 1 ns later.
        assert_eq!(ns(path.window_s) - ns(path.known_s), 91);
        assert_eq!(path.ranks.iter().map(|of| of.rank).collect::<Vec<_>>(), [1]);
        let leads_to = path.ranks[0].leads_to.as_ref().unwrap();
        assert_eq!((leads_to.function.as_str(), ns(leads_to.time_s)), ("MPI_Barrier", 700));
    }
}
