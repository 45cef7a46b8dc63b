//! The wait-for graph: its nodes are the ranks, and the operations in which many ranks wait for many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gyan_results::{CommunicatorNow, Doing, OperationNow, Peer, Ranges, RankDoing, RankNow};

/// For whom a node waits.
#[derive(Clone, Debug, Default)]
enum Wait {
    /// For none: a rank in its own code, or that moves, or of which that is not known.
    #[default]
    Nobody,
    /// It is gone or has called `MPI_Finalize`, and nothing will come from it.
    Forever,
    All(Vec<usize>),
    Any(Vec<usize>),
}

impl Wait {
    fn unless(self, is_free: bool) -> Wait {
        if is_free { Wait::Nobody } else { self }
    }

    fn others(&self) -> &[usize] {
        match self {
            Wait::All(others) | Wait::Any(others) => others,
            Wait::Nobody | Wait::Forever => &[],
        }
    }
}

type RanksByBytes = BTreeMap<u64, Vec<u32>>;

pub(super) struct WaitGraph<'a> {
    ranks: Vec<Option<&'a RankDoing>>,
    meetings: Meetings<'a>,
    /// First those of the ranks.
    waits: Vec<Wait>,
    /// By node, who waits for it.
    waiters: Vec<Vec<usize>>,
}

/// Operations in which each rank needs something of every other one.
const OF_ALL: [&str; 12] = [
    "MPI_Barrier",
    "MPI_Allreduce",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "MPI_Comm_create",
];
/// Operations that a rank may leave before others come, but in which it cannot stay without need of one of them.
const OF_SOME: [&str; 13] = [
    "MPI_Bcast",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Reduce",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Comm_free",
    "MPI_Comm_split_type",
    "MPI_Win_create",
    "MPI_Win_allocate",
    "MPI_File_open",
];
/// Those whose names begin so.
const MOVE_LITTLE: [&str; 4] = ["MPI_Barrier", "MPI_Comm", "MPI_Win", "MPI_File"];
const RECEIVES: [&str; 3] = ["MPI_Recv", "MPI_Probe", "MPI_Mprobe"];
const SENDS: [&str; 3] = ["MPI_Send", "MPI_Ssend", "MPI_Rsend"];
const BOTH: [&str; 2] = ["MPI_Sendrecv", "MPI_Sendrecv_replace"];

/// Whether the call may just be slow because it moves much, as far as is known. A rank may have left one of [`OF_ALL`] or
/// [`OF_SOME`] while others still move their part of it.
pub(super) fn may_move_much(now: &RankNow) -> bool {
    const MUCH: u64 = 1 << 20;
    let of_call = |now: &RankNow| {
        let function = base(now.function.as_deref().unwrap_or_default());
        let is_collective = [&OF_ALL[..], &OF_SOME].iter().any(|all| all.contains(&function));
        let moves = is_collective && !MOVE_LITTLE.iter().any(|little| function.starts_with(little));
        now.in_mpi && moves && now.bytes.is_none_or(|bytes| bytes > MUCH)
    };
    now.each_thread().any(of_call)
}

/// The function without the suffix of its form for large counts.
fn base(function: &str) -> &str {
    function.strip_suffix("_c").unwrap_or(function)
}

/// A collective operation, as one of its ranks calls it: ranks whose operations differ do not meet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Collective<'a> {
    communicator: CommunicatorNow,
    function: &'a str,
    root: Option<i32>,
}

impl<'a> Collective<'a> {
    /// The one that a rank is in, if it is known which ranks take part.
    fn current(now: &'a RankNow) -> Option<Collective<'a>> {
        let function = base(now.function.as_deref()?);
        let is_one = [&OF_ALL[..], &OF_SOME].iter().any(|all| all.contains(&function));
        let communicator = now.communicator.filter(|_| now.in_mpi && is_one)?;
        let is_known = match communicator {
            CommunicatorNow::World => true,
            CommunicatorNow::Other(_, hash) => hash != 0 && now.members.is_some(),
            CommunicatorNow::Unknown => false,
        };
        is_known.then_some(Collective { communicator, function, root: now.root })
    }
}

/// The ranks that are in a collective operation, and those that are missing.
struct Meeting {
    /// The node that waits for all who are missing. The next one waits for any of them.
    node: usize,
    here: BTreeSet<usize>,
    missing: Vec<usize>,
}

type Meetings<'a> = BTreeMap<Collective<'a>, Meeting>;

/// More ranks are not noted as missing, over all operations: beyond it, of an operation it is not known for whom it waits.
const MISSING_AT_MOST: usize = 10_000_000;

/// `first`: the number of the first node that is no rank, and of ranks.
fn meetings<'a>(ranks: &[Option<&'a RankDoing>], first: usize) -> Meetings<'a> {
    let mut meetings: Meetings = BTreeMap::new();
    let mut left = MISSING_AT_MOST;
    for (number, rank) in ranks.iter().enumerate() {
        let Some(Doing::Still(now)) = rank.map(|rank| &rank.doing) else { continue };
        for (now, collective) in
            now.each_thread().filter_map(|now| Some((now, Collective::current(now)?)))
        {
            if let Some(meeting) = meetings.get_mut(&collective) {
                meeting.here.insert(number);
                continue;
            }
            let missing: Vec<usize> = match (&now.members, collective.communicator) {
                (_, CommunicatorNow::World) | (None, _) => (0..first).collect(),
                (Some(members), _) => {
                    let members = members.parse::<Ranges>().unwrap_or_default();
                    let members = members.iter().map(|rank| rank as usize);
                    members.take_while(|rank| *rank < first).collect()
                }
            };
            let Some(less) = left.checked_sub(missing.len()) else { continue };
            left = less;
            let node = first + 2 * meetings.len();
            let here = BTreeSet::from([number]);
            meetings.insert(collective, Meeting { node, here, missing });
        }
    }
    for Meeting { here, missing, .. } in meetings.values_mut() {
        missing.retain(|rank| !here.contains(rank));
    }
    meetings
}

/// One side of a message that is on its way, or will be.
#[derive(Clone, Copy)]
struct HalfMessage {
    is_sent: bool,
    peer: Peer,
    /// None for any.
    tag: Option<i32>,
    communicator: CommunicatorNow,
}

impl HalfMessage {
    fn of_operation(operation: &OperationNow) -> Option<HalfMessage> {
        Some(HalfMessage {
            is_sent: operation.function.contains("send"),
            peer: operation.peer?,
            tag: operation.tag,
            communicator: operation.communicator,
        })
    }

    fn of_call(now: &RankNow) -> Vec<HalfMessage> {
        let Some(function) = now.function.as_deref().map(base) else { return Vec::new() };
        if function.starts_with("MPI_Wait") {
            return now.operations.iter().filter_map(HalfMessage::of_operation).collect();
        }
        let communicator = now.communicator.unwrap_or(CommunicatorNow::Unknown);
        let half = |is_sent: bool, peer: Option<Peer>| {
            // What is known is the tag of the receive.
            let tag = now.tag.filter(|_| !is_sent || !BOTH.contains(&function));
            Some(HalfMessage { is_sent, peer: peer?, tag, communicator })
        };
        let sends = half(true, now.dest).filter(|_| !RECEIVES.contains(&function));
        let receives = half(false, now.source).filter(|_| !SENDS.contains(&function));
        sends.into_iter().chain(receives).collect()
    }

    /// Whether they may be the two sides of one message. `own` and `others`: the ranks whose calls these are.
    fn matches(&self, own: usize, other: &HalfMessage, others: usize) -> bool {
        let is_peer = |peer, rank| match peer {
            Peer::World(peer) => peer as usize == rank,
            Peer::Any | Peer::InCommunicator(_) => true,
            Peer::Nobody => false,
        };
        let is_same = |one: CommunicatorNow, other: CommunicatorNow| {
            one == other || [one, other].contains(&CommunicatorNow::Unknown)
        };
        self.is_sent != other.is_sent
            && is_peer(self.peer, others)
            && is_peer(other.peer, own)
            && (self.tag == other.tag || self.tag.is_none() || other.tag.is_none())
            && is_same(self.communicator, other.communicator)
    }
}

impl<'a> WaitGraph<'a> {
    pub(super) fn new(size: u32, doing: &'a [RankDoing]) -> WaitGraph<'a> {
        let size = size as usize;
        let mut ranks: Vec<Option<&RankDoing>> = vec![None; size];
        for rank in doing {
            if let Some(place) = ranks.get_mut(rank.rank as usize) {
                *place = Some(rank);
            }
        }
        let meetings = meetings(&ranks, size);
        let anyone = size + 2 * meetings.len();
        let messages = Messages::of_ranks(&ranks);
        let wait = |(own, rank): (usize, Option<&RankDoing>)| match rank.map(|rank| &rank.doing) {
            Some(Doing::Gone(_) | Doing::Ended) => Wait::Forever,
            Some(Doing::Still(now)) if !messages.may_be_under_way(own) => {
                wait_of_threads(now, anyone, &meetings)
            }
            _ => Wait::Nobody,
        };
        let mut waits: Vec<Wait> = ranks.iter().copied().enumerate().map(wait).collect();
        waits.resize(anyone, Wait::Nobody);
        for Meeting { node, missing, .. } in meetings.values() {
            for (at, wait) in
                [(*node, Wait::All(missing.clone())), (node + 1, Wait::Any(missing.clone()))]
            {
                // Where all are there, nobody is waited for.
                if let Some(place) = waits.get_mut(at).filter(|_| !missing.is_empty()) {
                    *place = wait;
                }
            }
        }
        waits.push(Wait::Any((0..size).collect()));
        let mut waiters = vec![Vec::new(); waits.len()];
        for (node, wait) in waits.iter().enumerate() {
            for other in wait.others() {
                if let Some(waiters) = waiters.get_mut(*other) {
                    waiters.push(node);
                }
            }
        }
        WaitGraph { ranks, meetings, waits, waiters }
    }

    pub(super) fn doing(&self, rank: u32) -> Option<&'a RankDoing> {
        *self.ranks.get(rank as usize)?
    }

    /// What a rank does that does not move.
    pub(super) fn now(&self, rank: u32) -> Option<&'a RankNow> {
        match &self.doing(rank)?.doing {
            Doing::Still(now) => Some(now),
            _ => None,
        }
    }

    fn as_ranks(&self, nodes: impl Iterator<Item = usize>) -> impl Iterator<Item = u32> {
        nodes.filter(|node| *node < self.ranks.len()).filter_map(|node| u32::try_from(node).ok())
    }

    /// The nodes that cannot go on: the ranks come first.
    pub(super) fn stuck(&self) -> BTreeSet<u32> {
        // How many of the others have to be free before a node is.
        let mut needs: Vec<usize> = self
            .waits
            .iter()
            .map(|wait| match wait {
                Wait::Nobody => 0,
                Wait::Forever => usize::MAX,
                Wait::All(others) => others.len(),
                Wait::Any(_) => 1,
            })
            .collect();
        let mut free: Vec<usize> = (0..needs.len()).filter(|node| needs[*node] == 0).collect();
        while let Some(node) = free.pop() {
            for waiter in &self.waiters[node] {
                let needs = &mut needs[*waiter];
                if *needs > 0 && *needs != usize::MAX {
                    *needs -= 1;
                    if *needs == 0 {
                        free.push(*waiter);
                    }
                }
            }
        }
        let stuck = (0..needs.len()).filter(|node| needs[*node] > 0);
        stuck.filter_map(|node| u32::try_from(node).ok()).collect()
    }

    /// The ranks that cannot go on, and of which it is known what they do.
    pub(super) fn knot(&self) -> Vec<u32> {
        self.stuck().into_iter().filter(|rank| self.now(*rank).is_some()).collect()
    }

    /// The ranks that wait for one of these, directly or through others.
    pub(super) fn waiting_for(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let wanted = self.as_ranks(0..self.waits.len()).filter(|rank| is_wanted(*rank));
        let mut next: Vec<usize> = wanted.map(|rank| rank as usize).collect();
        let mut waiting = BTreeSet::new();
        while let Some(node) = next.pop() {
            for waiter in &self.waiters[node] {
                if waiting.insert(*waiter) {
                    next.push(*waiter);
                }
            }
        }
        self.as_ranks(waiting.into_iter()).collect()
    }

    /// The ranks for which any other waits.
    pub(super) fn waited_for(&self) -> impl Iterator<Item = u32> {
        // The last node stands for all ranks, and waits for them even if none waits for it.
        let anyone = self.waits.len() - 1;
        let is_unused = self.waiters[anyone].is_empty();
        let nodes = (0..self.waits.len()).filter(move |node| {
            self.waiters[*node].iter().any(|waiter| *waiter != anyone || !is_unused)
        });
        self.as_ranks(nodes)
    }

    /// Ranks of one communicator in different collective operations, by operation, if that is an error. It is none where
    /// some are ahead: they have left an operation that others are still in. Nobody can have left one of [`OF_ALL`] that
    /// others wait in; and if no rank is elsewhere, those that are behind could go on.
    pub(super) fn mismatch(&self, knot: &[u32]) -> Option<Vec<Vec<u32>>> {
        let is_stuck =
            |rank: &usize| u32::try_from(*rank).is_ok_and(|rank| knot.binary_search(&rank).is_ok());
        let mut communicators: BTreeMap<CommunicatorNow, Vec<(&Collective, &Meeting)>> =
            BTreeMap::new();
        for (collective, meeting) in &self.meetings {
            if meeting.here.iter().all(is_stuck) {
                communicators
                    .entry(collective.communicator)
                    .or_default()
                    .push((collective, meeting));
            }
        }
        communicators.into_values().find_map(|mut meetings| {
            let here: BTreeSet<usize> =
                meetings.iter().flat_map(|(_, meeting)| &meeting.here).copied().collect();
            let is_away = |rank: &usize| {
                let rank = self.ranks.get(*rank).copied().flatten();
                rank.is_none_or(|rank| rank.doing != Doing::Ended)
            };
            let missing = meetings.first().map(|(_, meeting)| &meeting.missing)?;
            if missing.iter().any(|rank| !here.contains(rank) && is_away(rank)) {
                meetings.retain(|(collective, _)| OF_ALL.contains(&collective.function));
            }
            let groups = meetings
                .iter()
                .map(|(_, meeting)| self.as_ranks(meeting.here.iter().copied()).collect());
            (meetings.len() > 1).then(|| groups.collect())
        })
    }

    /// Ranks in the same call of a collective operation that have different amounts, by amount. All ranks of the communicator
    /// are in it, or those that are cannot go on.
    pub(super) fn amounts(
        &self,
        knot: &[u32],
        is_still: impl Fn(u32) -> bool,
    ) -> Option<Vec<Vec<u32>>> {
        self.meetings.values().find_map(|Meeting { here, missing, .. }| {
            let here: Vec<u32> = self.as_ranks(here.iter().copied()).collect();
            if !missing.is_empty() && !here.iter().all(|rank| knot.binary_search(rank).is_ok()) {
                return None;
            }
            let here = here.into_iter().filter(|rank| is_still(*rank));
            let differ = self.by_call(here).into_values().find(|amounts| amounts.len() > 1)?;
            Some(differ.into_values().collect())
        })
    }

    /// Ranks whose amount is known, by call and amount, as far as calls of a function with the same number are the same call.
    fn by_call(
        &self,
        ranks: impl Iterator<Item = u32>,
    ) -> BTreeMap<(Option<&'a str>, u64), RanksByBytes> {
        let mut calls: BTreeMap<_, RanksByBytes> = BTreeMap::new();
        for rank in ranks {
            let Some(now) = self.now(rank) else { continue };
            if let Some(bytes) = now.bytes.filter(|_| now.numbers_agree) {
                let amounts = calls.entry((now.function.as_deref(), now.number)).or_default();
                amounts.entry(bytes).or_default().push(rank);
            }
        }
        calls
    }

    /// A short circle of stuck ranks of which each waits for the next, near `from`.
    pub(super) fn circle(&self, stuck: &BTreeSet<u32>, from: u32, starts: usize) -> Vec<u32> {
        let is_stuck = |node: &usize| u32::try_from(*node).is_ok_and(|node| stuck.contains(&node));
        let near = self.breadth_first(from as usize, &is_stuck, None).1;
        let circles = near
            .into_iter()
            .filter(|node| *node < self.ranks.len())
            .take(starts)
            .filter_map(|start| self.breadth_first(start, &is_stuck, Some(start)).0);
        let ranks = circles.map(|circle| self.as_ranks(circle.into_iter()).collect::<Vec<u32>>());
        ranks.filter(|circle| !circle.is_empty()).min_by_key(Vec::len).unwrap_or_default()
    }

    /// Walks from a node to those for which it waits: a way to `end` through another rank, and all nodes that were met.
    fn breadth_first(
        &self,
        start: usize,
        is_wanted: &impl Fn(&usize) -> bool,
        end: Option<usize>,
    ) -> (Option<Vec<usize>>, Vec<usize>) {
        let mut before: BTreeMap<usize, usize> = BTreeMap::from([(start, start)]);
        let mut met = vec![start];
        let mut next = VecDeque::from([start]);
        while let Some(node) = next.pop_front() {
            for other in self.waits[node].others().iter().copied().filter(|other| is_wanted(other))
            {
                // A rank that waits for any rank does not wait for itself.
                let is_own = node >= self.ranks.len() && before[&node] == other;
                if Some(other) == end && !is_own {
                    let mut way = vec![node];
                    let mut at = node;
                    while at != start {
                        at = before[&at];
                        way.push(at);
                    }
                    way.reverse();
                    return (Some(way), met);
                }
                if let std::collections::btree_map::Entry::Vacant(place) = before.entry(other) {
                    place.insert(node);
                    met.push(other);
                    next.push_back(other);
                }
            }
        }
        (None, met)
    }
}

/// The messages that ranks send and receive.
struct Messages {
    /// By rank, those of the call that it is in.
    of_calls: Vec<Vec<HalfMessage>>,
    /// By rank, those and what it started before.
    all: Vec<Vec<HalfMessage>>,
    /// The ranks that may have started more.
    unknown: Vec<bool>,
    senders: Vec<usize>,
    receivers: Vec<usize>,
}

impl Messages {
    fn of_ranks(ranks: &[Option<&RankDoing>]) -> Messages {
        let threads = ranks.iter().map(|rank| match rank.map(|rank| &rank.doing) {
            Some(Doing::Still(now)) => now.each_thread().collect(),
            _ => Vec::new(),
        });
        let threads: Vec<Vec<&RankNow>> = threads.collect();
        let of_calls: Vec<Vec<HalfMessage>> = threads
            .iter()
            .map(|threads| {
                let in_mpi = threads.iter().filter(|now| now.in_mpi);
                in_mpi.flat_map(|now| HalfMessage::of_call(now)).collect()
            })
            .collect();
        let all: Vec<Vec<HalfMessage>> = of_calls
            .iter()
            .zip(&threads)
            .map(|(of_call, threads)| {
                let mut all = of_call.clone();
                for now in threads {
                    all.extend(now.earlier.iter().filter_map(HalfMessage::of_operation));
                }
                all
            })
            .collect();
        let unknown =
            threads.iter().map(|threads| threads.iter().any(|now| now.more_earlier)).collect();
        let that = |is_sent: bool| {
            let ranks = all.iter().enumerate();
            let ranks = ranks.filter(|(_, of)| of.iter().any(|half| half.is_sent == is_sent));
            ranks.map(|(rank, _)| rank).collect()
        };
        Messages { senders: that(true), receivers: that(false), of_calls, all, unknown }
    }

    /// Whether a message of a rank's call meets one of its peer's, also one that the peer does not wait for: a large one may take
    /// long, and goes on in whatever call the peer is. The peer may be another thread of the same rank.
    fn may_be_under_way(&self, own: usize) -> bool {
        self.of_calls.get(own).into_iter().flatten().any(|half| {
            let meets = |other: &usize| {
                let mut others = self.all.get(*other).into_iter().flatten();
                others.any(|others| half.matches(own, others, *other))
            };
            match half.peer {
                // Of what is not known, a receive matters: who waits for a message that was sent long ago has it.
                Peer::World(peer) => {
                    let peer = peer as usize;
                    let is_unknown = self.unknown.get(peer).copied().unwrap_or(false);
                    meets(&peer) || half.is_sent && is_unknown
                }
                Peer::Any | Peer::InCommunicator(_) if half.is_sent => {
                    self.receivers.iter().any(meets)
                }
                Peer::Any | Peer::InCommunicator(_) => self.senders.iter().any(meets),
                Peer::Nobody => false,
            }
        })
    }
}

/// For whom a rank waits: if several of its threads call MPI, it is stuck if all of them are.
fn wait_of_threads(now: &RankNow, anyone: usize, meetings: &Meetings) -> Wait {
    if now.stopped || now.each_thread().any(|now| !now.in_mpi) {
        return Wait::Nobody;
    }
    if now.threads.is_empty() {
        return wait_of(now, anyone, meetings);
    }
    let mut all = Vec::new();
    for now in now.each_thread() {
        match wait_of(now, anyone, meetings) {
            Wait::Any(others) | Wait::All(others) => all.extend(others),
            Wait::Nobody | Wait::Forever => return Wait::Nobody,
        }
    }
    Wait::Any(all)
}

/// For whom a rank waits in a call. `anyone`: the node that stands for any rank.
fn wait_of(now: &RankNow, anyone: usize, meetings: &Meetings) -> Wait {
    let node = |peer: Option<Peer>, communicator| match (peer?, communicator) {
        (Peer::World(rank), _) => Some(rank as usize),
        (Peer::Any, Some(CommunicatorNow::World)) => Some(anyone),
        _ => None,
    };
    // Any of them may be what is missing: the rank is only stuck if none of the peers can go on.
    let any = |nodes: Option<Vec<usize>>| match nodes {
        Some(nodes) if !nodes.is_empty() => Wait::Any(nodes),
        _ => Wait::Nobody,
    };
    let Some(function) = now.function.as_deref().map(base) else { return Wait::Nobody };
    if RECEIVES.contains(&function) {
        return any(node(now.source, now.communicator).map(|node| vec![node]));
    }
    if SENDS.contains(&function) {
        return any(node(now.dest, now.communicator).map(|node| vec![node]));
    }
    if BOTH.contains(&function) {
        let peers = [now.source, now.dest].into_iter().filter(|peer| *peer != Some(Peer::Nobody));
        return any(peers.map(|peer| node(peer, now.communicator)).collect());
    }
    if function.starts_with("MPI_Wait") {
        let nodes = now
            .operations
            .iter()
            .map(|operation| node(operation.peer, Some(operation.communicator)))
            .collect();
        return any(nodes).unless(now.unknown_requests > 0);
    }
    let collective = Collective::current(now);
    let Some(Meeting { node, missing, .. }) = collective.and_then(|own| meetings.get(&own)) else {
        return Wait::Nobody;
    };
    match missing.is_empty() {
        true => Wait::Nobody,
        false if OF_ALL.contains(&function) => Wait::Any(vec![*node]),
        // The root may have left it.
        false => Wait::Any(vec![node + 1]),
    }
}
