//! What do all ranks know together, before any of them is written? Who the ranks of a communicator are, which of its collective
//! operations all of them have, how large a message was that another rank sent, and which names there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use gyan_results::{MessageDirection, TimelineCommunicator, TimelineKind};

use super::functions::{CollectiveFunction, collective};
use crate::timeline::arrows::{Countable, Counted, in_stream};
use crate::timeline::messages::{RankMessages, communicator, number};
use crate::timeline::waits::TimedEvents;
use crate::timeline::{Timelines, communicator_name, lost};

/// A communicator all of whose ranks are known.
pub(super) struct ArchiveCommunicator {
    /// Its number in the archive.
    pub(super) reference: u32,
    pub(super) name: String,
    /// Its ranks, by those in `MPI_COMM_WORLD`.
    pub(super) ranks: Vec<u32>,
    /// Which of its collective operations every rank has.
    counted: Option<Counted>,
    /// How many collective operations each of its ranks has, by the rank in `MPI_COMM_WORLD`.
    collectives: HashMap<u32, u64>,
    /// Which of those that every rank has were not seen to complete on some rank.
    unfinished: HashSet<u64>,
}

struct CommunicatorRank {
    world: u32,
    countable: Countable,
    operations: OperationCount,
}

/// The collective operations of a rank on a communicator.
#[derive(Clone, Default)]
struct OperationCount {
    all: u64,
    /// How many there were before each that was not seen to complete.
    unfinished: Vec<u64>,
}

/// The ranks of a communicator that are known so far.
struct PartialCommunicator {
    name: String,
    size: u32,
    ranks: BTreeMap<u32, CommunicatorRank>,
}

impl PartialCommunicator {
    fn is_whole(&self) -> bool {
        self.ranks.len() == self.size as usize && self.ranks.keys().copied().eq(0..self.size)
    }

    fn whole(self, reference: u32) -> ArchiveCommunicator {
        let every =
            |is: fn(&Countable) -> bool| self.ranks.values().all(|rank| is(&rank.countable));
        let fewest = self.ranks.values().map(|rank| rank.operations.all).min().unwrap_or(0);
        let counted = if every(|countable| countable.from_start) {
            Some(Counted::FromStart(fewest))
        } else if every(|countable| countable.from_end) {
            Some(Counted::FromEnd(fewest))
        } else {
            None
        };
        let operations = || self.ranks.values().map(|rank| (rank.world, &rank.operations));
        let unfinished = operations().flat_map(|(_, OperationCount { all, unfinished })| {
            unfinished.iter().filter_map(|before| counted?.ordinal(*before, *all))
        });
        ArchiveCommunicator {
            reference,
            counted,
            ranks: operations().map(|(rank, _)| rank).collect(),
            collectives: operations().map(|(rank, operations)| (rank, operations.all)).collect(),
            unfinished: unfinished.collect(),
            name: self.name,
        }
    }
}

impl ArchiveCommunicator {
    /// Whether all ranks have a whole collective operation of a rank, which had `before` of them before it.
    pub(super) fn is_of_all(&self, rank: u32, before: u64) -> bool {
        let all = self.collectives.get(&rank).copied().unwrap_or(0);
        let ordinal = self.counted.and_then(|counted| counted.ordinal(before, all));
        ordinal.is_some_and(|ordinal| !self.unfinished.contains(&ordinal))
    }
}

#[derive(Default)]
struct RankKnowledge {
    communicators: Vec<(u64, u32, CommunicatorRank, TimelineCommunicator)>,
    sizes: HashMap<u64, Vec<SizeRun>>,
    unfinished: Vec<u64>,
    functions: BTreeSet<String>,
    phases: BTreeSet<String>,
}

/// Messages in a row that are of one size.
struct SizeRun {
    /// The number of the first one.
    first: usize,
    bytes: u64,
}

impl RankKnowledge {
    fn new(run: &Timelines, rank: &TimedEvents) -> RankKnowledge {
        let TimedEvents { header, events, .. } = *rank;
        let mut all = RankKnowledge::default();
        let collectives: Vec<Option<CollectiveFunction>> =
            header.functions.iter().map(|name| collective(name)).collect();
        let completed: HashSet<usize> =
            rank.messages.other_operations.iter().map(|(begun_in, _)| *begun_in).collect();
        // By the number of the communicator.
        let mut counts: HashMap<u64, OperationCount> = HashMap::new();
        let mut called: BTreeSet<u16> = BTreeSet::new();
        for (at, event) in events.iter().enumerate() {
            let TimelineKind::Call(function) = event.kind else { continue };
            called.insert(function);
            let of = collectives.get(usize::from(function)).copied().flatten();
            if let (Some(of), Some((number, _))) = (of, communicator(header, event)) {
                let count = counts.entry(number).or_default();
                if of.is_nonblocking && !completed.contains(&at) {
                    count.unfinished.push(count.all);
                }
                count.all += 1;
            }
        }
        let name = |function: u16| header.functions.get(usize::from(function)).cloned();
        all.functions = called.into_iter().filter_map(name).collect();
        all.phases = header.phases.iter().filter(|name| !name.is_empty()).cloned().collect();
        let countable = Countable::new(header, lost(header, events));
        for known in &header.communicators {
            let (Some(number), Some(rank)) = (known.number.as_deref().and_then(number), known.rank)
            else {
                continue;
            };
            // A rank may have met it twice: the first time has all of them.
            let operations = counts.remove(&number).unwrap_or_default();
            let own = CommunicatorRank { world: header.rank, countable, operations };
            all.communicators.push((number, rank, own, known.clone()));
        }
        all.messages(run, rank.messages);
        all
    }

    fn messages(&mut self, run: &Timelines, messages: &RankMessages) {
        for (message, arrow) in run.arrows.of(messages) {
            let Some(arrow) = arrow else { continue };
            match message.direction {
                MessageDirection::Sent => {
                    let (stream, first) = in_stream(arrow);
                    let runs = self.sizes.entry(stream).or_default();
                    if runs.last().is_none_or(|run| run.bytes != message.bytes) {
                        runs.push(SizeRun { first, bytes: message.bytes });
                    }
                }
                MessageDirection::Received if message.ended_in.is_none() => {
                    self.unfinished.push(arrow);
                }
                MessageDirection::Received => {}
            }
        }
    }
}

pub(super) struct JobKnowledge {
    /// By the number that their ranks agree on.
    pub(super) communicators: BTreeMap<u64, ArchiveCommunicator>,
    /// How many others there are of which not all ranks are known.
    pub(super) incomplete: usize,
    /// By the stream of their arrows.
    sizes: HashMap<u64, Vec<SizeRun>>,
    /// The messages whose receive was not seen to complete.
    unfinished: HashSet<u64>,
    /// The functions that were called, and the phases, by name in their order.
    pub(super) functions: BTreeSet<String>,
    pub(super) phases: BTreeSet<String>,
}

impl JobKnowledge {
    /// Reads all timelines, a few ranks at a time.
    pub(super) fn gather(run: &Timelines) -> io::Result<JobKnowledge> {
        let mut partial: BTreeMap<u64, PartialCommunicator> = BTreeMap::new();
        let mut all = JobKnowledge {
            communicators: BTreeMap::new(),
            incomplete: 0,
            sizes: HashMap::new(),
            unfinished: HashSet::new(),
            functions: BTreeSet::new(),
            phases: BTreeSet::new(),
        };
        let look = |rank: &TimedEvents| RankKnowledge::new(run, rank);
        run.each(&run.ranks, look, |part| {
            for (number, rank, own, known) in part.communicators {
                let fresh = || PartialCommunicator {
                    name: communicator_name(&known),
                    size: known.size,
                    ranks: BTreeMap::new(),
                };
                let known = partial.entry(number).or_insert_with(fresh);
                known.ranks.entry(rank).or_insert(own);
            }
            // Only one rank sends a stream.
            all.sizes.extend(part.sizes);
            all.unfinished.extend(part.unfinished);
            all.functions.extend(part.functions);
            all.phases.extend(part.phases);
        })?;
        let known = partial.len();
        let whole = partial.into_iter().filter(|(_, communicator)| communicator.is_whole());
        all.communicators = (0..)
            .zip(whole)
            .map(|(reference, (number, communicator))| (number, communicator.whole(reference)))
            .collect();
        all.incomplete = known - all.communicators.len();
        Ok(all)
    }

    /// How large a message is, in bytes.
    pub(super) fn bytes(&self, arrow: u64) -> u64 {
        let (stream, ordinal) = in_stream(arrow);
        let Some(runs) = self.sizes.get(&stream) else { return 0 };
        let (first, last) = (runs.first(), runs.last());
        let rises = first.map(|run| run.first) <= last.map(|run| run.first);
        let is_before =
            |run: &SizeRun| if rises { run.first <= ordinal } else { run.first >= ordinal };
        let next = runs.partition_point(is_before);
        runs.get(next.saturating_sub(1)).map_or(0, |run| run.bytes)
    }

    /// Whether the receive of a message was seen to complete.
    pub(super) fn is_finished(&self, arrow: u64) -> bool {
        !self.unfinished.contains(&arrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of each message of a stream, as they were gathered in this order of their numbers.
    fn sizes(gathered: &[(usize, u64)], asked: &[u64]) -> Vec<u64> {
        let run = |&(first, bytes): &(usize, u64)| SizeRun { first, bytes };
        let knowledge = JobKnowledge {
            communicators: BTreeMap::new(),
            incomplete: 0,
            sizes: HashMap::from([(5, gathered.iter().map(run).collect())]),
            unfinished: HashSet::new(),
            functions: BTreeSet::new(),
            phases: BTreeSet::new(),
        };
        asked.iter().map(|ordinal| knowledge.bytes(5 << 32 | ordinal)).collect()
    }

    #[test]
    fn messages_have_the_size_of_the_run_that_they_are_in() {
        // Numbers rise if they are counted from the start, and fall if from the end.
        assert_eq!(sizes(&[(0, 8), (3, 16)], &[0, 2, 3, 9]), [8, 8, 16, 16]);
        assert_eq!(sizes(&[(9, 8), (3, 16)], &[9, 4, 3, 0]), [8, 8, 16, 16]);
        assert_eq!(sizes(&[(4, 8)], &[4, 0]), [8, 8]);
        assert_eq!(sizes(&[], &[0]), [0]);
    }

    /// A communicator of three ranks, of which these are known with how many collective operations they have.
    fn partial(ranks: &[(u32, u64)], from_start: bool, from_end: bool) -> PartialCommunicator {
        let countable = Countable { from_start, from_end };
        let rank = |&(rank, collectives): &(u32, u64)| {
            let operations = OperationCount { all: collectives, unfinished: Vec::new() };
            (rank, CommunicatorRank { world: 10 + rank, countable, operations })
        };
        let ranks = ranks.iter().map(rank).collect();
        PartialCommunicator { name: String::new(), size: 3, ranks }
    }

    #[test]
    fn a_communicator_is_whole_with_all_of_its_ranks() {
        assert!(!partial(&[(0, 1), (2, 1)], true, true).is_whole());
        let whole = partial(&[(2, 1), (0, 1), (1, 1)], true, true);
        assert!(whole.is_whole());
        assert_eq!(whole.whole(0).ranks, [10, 11, 12]);
    }

    #[test]
    fn collective_operations_that_some_rank_lacks_are_left_out() {
        let ranks = [(0, 3), (1, 2), (2, 5)];
        let of_all = |from_start, from_end| {
            let known = partial(&ranks, from_start, from_end).whole(0);
            (0..5).map(|before| known.is_of_all(12, before)).collect::<Vec<_>>()
        };
        assert_eq!(of_all(true, false), [true, true, false, false, false]);
        assert_eq!(of_all(false, true), [false, false, false, true, true]);
        assert_eq!(of_all(false, false), [false; 5]);
    }

    #[test]
    fn an_operation_that_did_not_complete_on_a_rank_is_left_out_on_all() {
        let of_all = |from_start, from_end| {
            let mut known = partial(&[(0, 3), (1, 2), (2, 5)], from_start, from_end);
            known.ranks.get_mut(&0).unwrap().operations.unfinished.push(1);
            let known = known.whole(0);
            (0..5).map(|before| known.is_of_all(12, before)).collect::<Vec<_>>()
        };
        assert_eq!(of_all(true, false), [true, false, false, false, false]);
        // The second of three is the last but one.
        assert_eq!(of_all(false, true), [false, false, false, false, true]);
    }
}
