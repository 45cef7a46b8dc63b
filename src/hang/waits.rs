//! The wait-for graph: its nodes are the ranks, and the operations in which many ranks wait for many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gyan_results::{CommunicatorNow, Doing, OperationNow, Peer, RankDoing, RankNow};

/// For whom a node waits.
#[derive(Clone, Debug, Default)]
enum Wait {
    /// For none: a rank in its own code, or that moves, or of which that is not known.
    #[default]
    Nobody,
    /// It is gone, and nothing will come from it.
    Forever,
    All(Vec<usize>),
    Any(Vec<usize>),
}

impl Wait {
    fn others(&self) -> &[usize] {
        match self {
            Wait::All(others) | Wait::Any(others) => others,
            Wait::Nobody | Wait::Forever => &[],
        }
    }
}

/// Who waits for whom.
pub(super) struct WaitGraph<'a> {
    ranks: Vec<Option<&'a RankDoing>>,
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
/// Operations in which the root needs something of every other rank, and in which every other rank needs something of it.
const TO_ROOT: [&str; 3] = ["MPI_Reduce", "MPI_Gather", "MPI_Gatherv"];
const FROM_ROOT: [&str; 3] = ["MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"];
const RECEIVES: [&str; 5] =
    ["MPI_Recv", "MPI_Probe", "MPI_Mprobe", "MPI_Sendrecv", "MPI_Sendrecv_replace"];
const SENDS: [&str; 3] = ["MPI_Send", "MPI_Ssend", "MPI_Rsend"];

/// The function without the suffix of its form for large counts.
fn base(function: &str) -> &str {
    function.strip_suffix("_c").unwrap_or(function)
}

/// The operation on `MPI_COMM_WORLD` that a rank is in.
fn operation(now: &RankNow) -> Option<&str> {
    let function = base(now.function.as_deref()?);
    let is_one = [&OF_ALL[..], &TO_ROOT, &FROM_ROOT].iter().any(|all| all.contains(&function));
    let is_on_all = now.in_mpi && now.communicator == Some(CommunicatorNow::World);
    (is_one && is_on_all).then_some(function)
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
        // The ranks in each operation, and its node.
        let mut arrived: BTreeMap<&str, (usize, BTreeSet<usize>)> = BTreeMap::new();
        for (number, rank) in ranks.iter().enumerate() {
            if let Some(Doing::Still(now)) = rank.map(|rank| &rank.doing)
                && let Some(function) = operation(now)
            {
                let node = size + arrived.len();
                let (_, here) = arrived.entry(function).or_insert((node, BTreeSet::new()));
                here.insert(number);
            }
        }
        let anyone = size + arrived.len();
        let wait = |rank: &Option<&RankDoing>| match rank.map(|rank| &rank.doing) {
            Some(Doing::Gone(_)) => Wait::Forever,
            Some(Doing::Still(now)) if now.in_mpi => wait_of(now, anyone, &arrived),
            _ => Wait::Nobody,
        };
        let mut waits: Vec<Wait> = ranks.iter().map(wait).collect();
        waits.resize(anyone, Wait::Nobody);
        for (node, here) in arrived.values() {
            if let Some(wait) = waits.get_mut(*node) {
                *wait = Wait::All((0..size).filter(|rank| !here.contains(rank)).collect());
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
        WaitGraph { ranks, waits, waiters }
    }

    pub(super) fn doing(&self, rank: u32) -> Option<&'a RankDoing> {
        *self.ranks.get(rank as usize)?
    }

    /// The nodes that are ranks.
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

    /// A short circle of stuck ranks of which each waits for the next, near `from`.
    pub(super) fn circle(&self, stuck: &BTreeSet<u32>, from: u32, starts: usize) -> Vec<u32> {
        let is_stuck = |node: &usize| u32::try_from(*node).is_ok_and(|node| stuck.contains(&node));
        let near = self.breadth_first(from as usize, &is_stuck, None).1;
        let circles = near
            .into_iter()
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

/// For whom a rank waits in a call. `anyone`: the node that stands for any rank.
fn wait_of(
    now: &RankNow,
    anyone: usize,
    arrived: &BTreeMap<&str, (usize, BTreeSet<usize>)>,
) -> Wait {
    let one = |peer: Option<Peer>| match peer {
        Some(Peer::World(rank)) => Wait::All(vec![rank as usize]),
        Some(Peer::Any) if now.communicator == Some(CommunicatorNow::World) => {
            Wait::Any(vec![anyone])
        }
        _ => Wait::Nobody,
    };
    let Some(function) = now.function.as_deref().map(base) else { return Wait::Nobody };
    if RECEIVES.contains(&function) {
        return one(now.source);
    }
    if SENDS.contains(&function) {
        return one(now.dest);
    }
    if function.starts_with("MPI_Wait") {
        return wait_for_requests(now, anyone);
    }
    let Some((node, here)) = operation(now).and_then(|function| arrived.get(function)) else {
        return Wait::Nobody;
    };
    let root = now.root.and_then(|root| usize::try_from(root).ok());
    let own = |root: usize| here.contains(&root);
    match root {
        None if OF_ALL.contains(&function) => Wait::All(vec![*node]),
        // Only the root is known to need the others.
        Some(root) if FROM_ROOT.contains(&function) && !own(root) => Wait::All(vec![root]),
        _ => Wait::Nobody,
    }
}

/// Any of the requests may be those that are missing, so a rank is only stuck if no peer can go on.
fn wait_for_requests(now: &RankNow, anyone: usize) -> Wait {
    let node = |operation: &OperationNow| match (operation.peer?, operation.communicator) {
        (Peer::World(rank), _) => Some(rank as usize),
        (Peer::Any, CommunicatorNow::World) => Some(anyone),
        _ => None,
    };
    let nodes: Option<Vec<usize>> = now.operations.iter().map(node).collect();
    match nodes {
        Some(nodes) if !nodes.is_empty() && now.unknown_requests == 0 => Wait::Any(nodes),
        _ => Wait::Nobody,
    }
}
