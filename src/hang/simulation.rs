//! Random MPI programs in a simulator that knows nothing of the wait-for graph: what the graph says of them is compared
//! with what becomes of them.
//!
//! The simulator runs until only long computations and slow transfers are left, which is what a look at a job sees that
//! has not moved for a while; then one of these ends, and so on.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{CommunicatorNow, Doing, HangKind, OperationNow, Peer, RankDoing, RankNow};

use super::tests::{NOW_MS, call, of_ranks};
use super::waits::WaitGraph;

const TAGS: u64 = 2;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn rank(&mut self, size: usize) -> usize {
        usize::try_from(self.below(size as u64)).unwrap()
    }

    fn tag(&mut self) -> i32 {
        i32::try_from(self.below(TAGS)).unwrap()
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum SendWay {
    /// Ends when it is in the system's buffers.
    Eager,
    /// Ends when it is received.
    Rendezvous,
    /// As such, and takes long.
    Slow,
}

#[derive(Clone, Debug)]
enum Half {
    Send { to: usize, tag: i32, way: SendWay },
    Receive { from: Option<usize>, tag: Option<i32> },
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CollectiveOperation {
    Barrier,
    Allreduce,
    Bcast(usize),
    Reduce(usize),
}

#[derive(Clone, Debug)]
enum SimulatedStep {
    Blocking(Half),
    /// Several nonblocking operations, and the wait for all of them.
    Waitall(Vec<Half>),
    /// A nonblocking operation that goes on during the steps after it, up to the next wait for all of these.
    Start(Half),
    WaitForStarted,
    /// With its amount.
    Collective(CollectiveOperation, u64),
    Compute,
}

fn random_half(random: &mut Random, rank: usize, size: usize) -> Half {
    let other = (rank + 1 + random.rank(size - 1)) % size;
    if random.below(2) == 0 {
        let way = [SendWay::Eager, SendWay::Rendezvous, SendWay::Slow][random.rank(3)];
        Half::Send { to: other, tag: random.tag(), way }
    } else {
        let from = (random.below(4) > 0).then_some(other);
        let tag = (random.below(4) > 0).then(|| random.tag());
        Half::Receive { from, tag }
    }
}

fn random_collective(random: &mut Random, size: usize) -> SimulatedStep {
    let collective = match random.below(4) {
        0 => CollectiveOperation::Barrier,
        1 => CollectiveOperation::Allreduce,
        2 => CollectiveOperation::Bcast(random.rank(size)),
        _ => CollectiveOperation::Reduce(random.rank(size)),
    };
    SimulatedStep::Collective(collective, 8 << random.below(3))
}

/// Mostly what belongs together, and some steps that do not.
fn random_program(random: &mut Random) -> Vec<Vec<SimulatedStep>> {
    let size = 2 + random.rank(4);
    let mut ranks: Vec<Vec<SimulatedStep>> = vec![Vec::new(); size];
    for _ in 0..=random.below(5) {
        match random.below(3) {
            0 => {
                let collective = random_collective(random, size);
                for steps in &mut ranks {
                    steps.push(collective.clone());
                }
                let odd = random.rank(size);
                if random.below(8) == 0
                    && let Some(SimulatedStep::Collective(_, bytes)) = ranks[odd].last_mut()
                {
                    *bytes += 1;
                }
            }
            1 => {
                let (from, tag) = (random.rank(size), random.tag());
                let to = (from + 1 + random.rank(size - 1)) % size;
                let way = [SendWay::Eager, SendWay::Rendezvous, SendWay::Slow][random.rank(3)];
                let send = Half::Send { to, tag, way };
                let receive = Half::Receive { from: Some(from), tag: Some(tag) };
                ranks[from].push(match random.below(4) {
                    0 => SimulatedStep::Start(send),
                    _ => SimulatedStep::Blocking(send),
                });
                ranks[to].push(match random.below(4) {
                    0 => SimulatedStep::Start(receive),
                    1 => SimulatedStep::Waitall(vec![receive]),
                    _ => SimulatedStep::Blocking(receive),
                });
            }
            _ => {
                let rank = random.rank(size);
                ranks[rank].push(SimulatedStep::Compute);
            }
        }
    }
    for _ in 0..random.below(3) {
        let rank = random.rank(size);
        let step = match random.below(4) {
            0 => SimulatedStep::Blocking(random_half(random, rank, size)),
            3 => SimulatedStep::Start(random_half(random, rank, size)),
            1 => SimulatedStep::Waitall((0..2).map(|_| random_half(random, rank, size)).collect()),
            _ => random_collective(random, size),
        };
        let at = random.rank(ranks[rank].len() + 1);
        ranks[rank].insert(at, step);
    }
    // What is started ends before MPI_Finalize.
    for steps in &mut ranks {
        if steps.iter().any(|step| matches!(step, SimulatedStep::Start(_))) {
            steps.push(SimulatedStep::WaitForStarted);
        }
    }
    ranks
}

#[derive(Clone, Debug)]
struct Started {
    rank: usize,
    half: Half,
    /// It goes on after the step that started it.
    is_earlier: bool,
    /// The other side was found.
    is_matched: bool,
    is_done: bool,
}

struct Simulation<'a> {
    program: &'a [Vec<SimulatedStep>],
    /// The step that each rank is in.
    at: Vec<usize>,
    /// Whether it has started what it does in that step.
    has_entered: Vec<bool>,
    started: Vec<Started>,
    /// The pairs of slow messages.
    under_way: Vec<[usize; 2]>,
    /// By position and operation: who has come.
    arrived: BTreeMap<(usize, CollectiveOperation), Vec<usize>>,
    /// By rank: collective operations before this one.
    collectives: Vec<usize>,
    library: SimulatedLibrary,
}

/// What libraries do in different ways.
#[derive(Clone, Copy)]
struct SimulatedLibrary {
    /// The order in which ranks hand on what a root has.
    is_chain: bool,
    /// Nobody leaves a collective operation in which amounts differ.
    hangs_on_amounts: bool,
}

impl<'a> Simulation<'a> {
    fn new(program: &'a [Vec<SimulatedStep>], library: SimulatedLibrary) -> Simulation<'a> {
        let size = program.len();
        Simulation {
            program,
            at: vec![0; size],
            has_entered: vec![false; size],
            started: Vec::new(),
            under_way: Vec::new(),
            arrived: BTreeMap::new(),
            collectives: vec![0; size],
            library,
        }
    }

    fn step(&self, rank: usize) -> Option<&'a SimulatedStep> {
        self.program[rank].get(self.at[rank])
    }

    fn enter(&mut self, rank: usize) {
        if std::mem::replace(&mut self.has_entered[rank], true) {
            return;
        }
        let halves = match self.step(rank) {
            Some(SimulatedStep::Blocking(half) | SimulatedStep::Start(half)) => vec![half.clone()],
            Some(SimulatedStep::Waitall(halves)) => halves.clone(),
            Some(SimulatedStep::Collective(collective, _)) => {
                let key = (self.collectives[rank], *collective);
                self.arrived.entry(key).or_default().push(rank);
                Vec::new()
            }
            _ => Vec::new(),
        };
        for half in halves {
            let is_done = matches!(half, Half::Send { way: SendWay::Eager, .. });
            let is_earlier = matches!(self.step(rank), Some(SimulatedStep::Start(_)));
            self.started.push(Started { rank, half, is_earlier, is_matched: false, is_done });
        }
    }

    /// Messages of one rank to another are received in the order in which they were sent.
    fn match_messages(&mut self) {
        for receive in 0..self.started.len() {
            let Started { rank, half: Half::Receive { from, tag }, is_matched: false, .. } =
                self.started[receive].clone()
            else {
                continue;
            };
            let send = self.started.iter().position(|other| {
                let Half::Send { to, tag: sent, .. } = other.half else { return false };
                !other.is_matched
                    && to == rank
                    && from.is_none_or(|from| from == other.rank)
                    && tag.is_none_or(|tag| tag == sent)
            });
            let Some(send) = send else { continue };
            let is_slow = matches!(self.started[send].half, Half::Send { way: SendWay::Slow, .. });
            for side in [send, receive] {
                self.started[side].is_matched = true;
                self.started[side].is_done |= !is_slow;
            }
            if is_slow {
                self.under_way.push([send, receive]);
            }
        }
    }

    fn may_leave(&self, rank: usize) -> bool {
        let size = self.program.len();
        match self.step(rank) {
            Some(SimulatedStep::Compute) | None => false,
            Some(SimulatedStep::Start(_)) => true,
            Some(SimulatedStep::WaitForStarted) => self.earlier(rank).all(|own| own.is_done),
            Some(SimulatedStep::Blocking(_) | SimulatedStep::Waitall(_)) => {
                let of_step = |own: &&Started| own.rank == rank && !own.is_earlier;
                self.started.iter().filter(of_step).all(|own| own.is_done)
            }
            Some(SimulatedStep::Collective(..))
                if self.library.hangs_on_amounts
                    && amounts_differ(self.program, self.collectives[rank]) =>
            {
                false
            }
            Some(SimulatedStep::Collective(collective, _)) => {
                let key = (self.collectives[rank], *collective);
                let here = |rank: usize| self.arrived[&key].contains(&rank);
                match collective {
                    CollectiveOperation::Barrier | CollectiveOperation::Allreduce => {
                        (0..size).all(here)
                    }
                    // Everyone on the way from the root has come.
                    CollectiveOperation::Bcast(root) => {
                        let place = (rank + size - root) % size;
                        let first = if self.library.is_chain { 0 } else { place };
                        here(*root) && (first..place).all(|place| here((root + place) % size))
                    }
                    CollectiveOperation::Reduce(root) => {
                        let place = (rank + size - root) % size;
                        let last =
                            if self.library.is_chain || place == 0 { size } else { place + 1 };
                        (place + 1..last).all(|place| here((root + place) % size))
                    }
                }
            }
        }
    }

    fn earlier(&self, rank: usize) -> impl Iterator<Item = &Started> {
        self.started.iter().filter(move |own| own.rank == rank && own.is_earlier)
    }

    fn leave(&mut self, rank: usize) {
        let ends_earlier = matches!(self.step(rank), Some(SimulatedStep::WaitForStarted));
        if let Some(SimulatedStep::Collective(..)) = self.step(rank) {
            self.collectives[rank] += 1;
        }
        self.at[rank] += 1;
        self.has_entered[rank] = false;
        // Eager messages stay on their way.
        let is_over = |own: &Started| {
            let is_of_step = own.is_earlier == ends_earlier;
            own.rank == rank && is_of_step && (own.is_matched || !own.is_done)
        };
        for own in &mut self.started {
            if is_over(own) {
                own.rank = usize::MAX;
            }
        }
    }

    /// Until only long computations and slow transfers are left.
    fn settle(&mut self) {
        loop {
            (0..self.program.len()).for_each(|rank| self.enter(rank));
            self.match_messages();
            let free: Vec<usize> =
                (0..self.program.len()).filter(|rank| self.may_leave(*rank)).collect();
            if free.is_empty() {
                return;
            }
            for rank in free {
                self.leave(rank);
            }
        }
    }

    /// Ends one of the computations and slow transfers; false if there are none.
    fn goes_on(&mut self, random: &mut Random) -> bool {
        let computing: Vec<usize> = (0..self.program.len())
            .filter(|rank| matches!(self.step(*rank), Some(SimulatedStep::Compute)))
            .collect();
        let all = computing.len() + self.under_way.len();
        if all == 0 {
            return false;
        }
        let chosen = random.rank(all);
        match computing.get(chosen) {
            Some(rank) => self.leave(*rank),
            None => {
                for side in self.under_way.swap_remove(chosen - computing.len()) {
                    self.started[side].is_done = true;
                }
            }
        }
        true
    }

    /// Which call of its function it is that a rank is in.
    fn number(&self, rank: usize, collective: CollectiveOperation) -> u64 {
        let is_same = |step: &&SimulatedStep| {
            let SimulatedStep::Collective(other, _) = step else { return false };
            std::mem::discriminant(other) == std::mem::discriminant(&collective)
        };
        let steps = self.program[rank].iter().take(self.at[rank] + 1);
        steps.filter(is_same).count() as u64
    }

    fn look(&self) -> Vec<RankDoing> {
        let doing = |rank: usize| match self.step(rank) {
            None => Doing::Ended,
            Some(SimulatedStep::Compute) => {
                Doing::Still(RankNow { in_mpi: false, ..call("MPI_Send") })
            }
            Some(SimulatedStep::Blocking(half)) => Doing::Still(blocking(half)),
            Some(SimulatedStep::Waitall(halves)) => waitall(halves.iter()),
            Some(SimulatedStep::WaitForStarted) => {
                waitall(self.earlier(rank).map(|started| &started.half))
            }
            Some(SimulatedStep::Start(_)) => Doing::Moves,
            Some(SimulatedStep::Collective(collective, bytes)) => {
                let (function, root) = match collective {
                    CollectiveOperation::Barrier => ("MPI_Barrier", None),
                    CollectiveOperation::Allreduce => ("MPI_Allreduce", None),
                    CollectiveOperation::Bcast(root) => ("MPI_Bcast", i32::try_from(*root).ok()),
                    CollectiveOperation::Reduce(root) => ("MPI_Reduce", i32::try_from(*root).ok()),
                };
                let bytes = Some(*bytes).filter(|_| *collective != CollectiveOperation::Barrier);
                let number = self.number(rank, *collective);
                Doing::Still(RankNow { root, bytes, number, numbers_agree: true, ..call(function) })
            }
        };
        let rank = |rank: usize| {
            let mut doing = doing(rank);
            if let Doing::Still(now) = &mut doing {
                now.earlier = self.earlier(rank).map(|started| operation(&started.half)).collect();
            }
            RankDoing::new(u32::try_from(rank).unwrap(), "n1", doing)
        };
        (0..self.program.len()).map(rank).collect()
    }
}

fn world(rank: usize) -> Peer {
    Peer::World(u32::try_from(rank).unwrap())
}

fn blocking(half: &Half) -> RankNow {
    match half {
        Half::Send { to, tag, .. } => {
            RankNow { dest: Some(world(*to)), tag: Some(*tag), ..call("MPI_Send") }
        }
        Half::Receive { from, tag } => {
            let source = Some(from.map_or(Peer::Any, world));
            RankNow { source, tag: *tag, ..call("MPI_Recv") }
        }
    }
}

fn waitall<'a>(halves: impl Iterator<Item = &'a Half>) -> Doing {
    let operations: Vec<OperationNow> = halves.map(operation).collect();
    let requests = Some(operations.len() as u64);
    Doing::Still(RankNow { operations, requests, ..call("MPI_Waitall") })
}

fn operation(half: &Half) -> OperationNow {
    let RankNow { source, dest, tag, .. } = blocking(half);
    let function = if source.is_some() { "MPI_Irecv" } else { "MPI_Isend" };
    OperationNow {
        function: function.into(),
        peer: source.or(dest),
        tag,
        communicator: CommunicatorNow::World,
    }
}

/// The collective operations of a rank, with their amounts.
fn collectives(
    steps: &[SimulatedStep],
) -> impl Iterator<Item = (CollectiveOperation, u64)> + use<'_> {
    steps.iter().filter_map(|step| match step {
        SimulatedStep::Collective(collective, bytes) => Some((*collective, *bytes)),
        _ => None,
    })
}

/// Whether ranks have different amounts in the same collective operation at a position.
fn amounts_differ(program: &[Vec<SimulatedStep>], position: usize) -> bool {
    let mut amounts: BTreeMap<CollectiveOperation, BTreeSet<u64>> = BTreeMap::new();
    for (collective, bytes) in program.iter().filter_map(|steps| collectives(steps).nth(position)) {
        if collective != CollectiveOperation::Barrier {
            amounts.entry(collective).or_default().insert(bytes);
        }
    }
    amounts.values().any(|amounts| amounts.len() > 1)
}

/// Whether two ranks differ in a collective operation at the same position, as far as they have come.
fn differ(program: &[Vec<SimulatedStep>], at: &[usize]) -> bool {
    let all: Vec<Vec<CollectiveOperation>> = program
        .iter()
        .zip(at)
        .map(|(steps, at)| {
            let until = steps.len().min(at + 1);
            collectives(&steps[..until]).map(|(collective, _)| collective).collect()
        })
        .collect();
    let differ = |one: &Vec<CollectiveOperation>, other: &Vec<CollectiveOperation>| {
        one.iter().zip(other).any(|(one, other)| one != other)
    };
    // One that has ended has left out what others are still in.
    let has_ended = |rank: usize| at[rank] >= program[rank].len();
    (0..all.len()).any(|one| {
        (0..all.len()).any(|other| {
            differ(&all[one], &all[other]) || has_ended(one) && all[one].len() < all[other].len()
        })
    })
}

#[test]
fn who_is_said_to_be_stuck_never_goes_on_and_most_who_never_go_on_are_found() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut hung, mut found, mut mismatches, mut amounts) = (0, 0, 0, 0);
    for _ in 0..20_000 {
        let program = random_program(&mut random);
        let is_chain = random.below(2) == 0;
        let hangs_on_amounts = random.below(2) == 0;
        let library = SimulatedLibrary { is_chain, hangs_on_amounts };
        let mut simulation = Simulation::new(&program, library);
        // Who was said to be stuck, and the step that it was in.
        let mut said: BTreeMap<u32, usize> = BTreeMap::new();
        loop {
            simulation.settle();
            for (rank, at) in &said {
                assert_eq!(simulation.at[*rank as usize], *at, "rank {rank} of {program:#?}");
            }
            let ranks = simulation.look();
            let size = u32::try_from(program.len()).unwrap();
            for rank in WaitGraph::new(size, &ranks).stuck() {
                if rank < size && ranks[rank as usize].doing != Doing::Ended {
                    said.entry(rank).or_insert(simulation.at[rank as usize]);
                }
            }
            let now = of_ranks(size, ranks);
            assert_eq!(now.looked_ms, NOW_MS);
            if now.cause.as_ref().is_some_and(|cause| cause.kind == HangKind::Mismatch) {
                mismatches += 1;
                assert!(differ(&program, &simulation.at), "{now:#?}\n{program:#?}");
            }
            let has_amounts =
                now.cause.as_ref().is_some_and(|cause| cause.kind == HangKind::Amounts);
            if has_amounts {
                amounts += 1;
                let positions = &simulation.collectives;
                let differs = positions.iter().any(|position| amounts_differ(&program, *position));
                // Where a rank has one operation more, the same call is at different positions.
                let is_wrong = differs || differ(&program, &simulation.at);
                assert!(is_wrong, "{now:#?}\n{program:#?}");
            }
            if !simulation.goes_on(&mut random) {
                // It is not said of them that they are stuck.
                if has_amounts {
                    break;
                }
                let left = (0..program.len()).filter(|rank| simulation.step(*rank).is_some());
                hung += left.count();
                found += said.len();
                break;
            }
        }
    }
    assert!(hung > 1000 && mismatches > 100 && amounts > 100, "{hung} {mismatches} {amounts}");
    assert!(found * 10 > hung * 9, "{found} of {hung}");
}
