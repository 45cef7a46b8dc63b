//! A made-up program: what each thread of each rank does, one action after the other, and the machine it runs on.

use fastrand::Rng;

use crate::mpi::functions::Function;
use crate::mpi::functions::collective::{
    MPI_Allreduce, MPI_Alltoall, MPI_Barrier, MPI_Bcast, MPI_Reduce,
};
use crate::mpi::functions::one_sided::MPI_Put;
use crate::mpi::functions::point_to_point::{
    MPI_Irecv, MPI_Isend, MPI_Recv, MPI_Send, MPI_Test, MPI_Waitall,
};

/// The number of `MPI_COMM_WORLD` among the communicators.
pub(super) const WORLD: usize = 0;

/// A program on a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) hosts: Vec<Host>,
    pub(super) ranks: Vec<Rank>,
    /// The ranks of each communicator; the first is `MPI_COMM_WORLD`.
    pub(super) communicators: Vec<Vec<u32>>,
    /// Seconds that the start of MPI_T takes, which gyan causes.
    pub(super) mpit_s: f64,
    /// Seconds of `MPI_Init` once all ranks are there.
    pub(super) init_s: f64,
    pub(super) network: Network,
}

/// A host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) processors: f64,
    /// How many processes that are not the program's always want a processor.
    pub(super) others: f64,
}

/// What messages cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) latency_s: f64,
    pub(super) bytes_per_s: f64,
    /// A larger message is not sent before its receive is there.
    pub(super) eager_bytes: u64,
}

impl Default for Network {
    fn default() -> Network {
        Network { latency_s: 1e-6, bytes_per_s: 5e9, eager_bytes: 4096 }
    }
}

impl Network {
    pub(super) fn transfer_s(self, bytes: u64) -> f64 {
        self.latency_s + bytes as f64 / self.bytes_per_s
    }
}

/// A process of the program.
#[derive(Clone, Debug, Default)]
pub(super) struct Rank {
    pub(super) host: usize,
    /// What each thread does between `MPI_Init` and `MPI_Finalize`; the first one makes those calls.
    pub(super) threads: Vec<Vec<Action>>,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Computes: seconds of a processor.
    Work(f64),
    /// Does nothing, for seconds.
    Sleep(f64),
    Call(Call),
    /// Asks with `MPI_Test` until a message from this rank is there.
    Poll {
        from: u32,
        each_s: f64,
        between_s: f64,
    },
    Begin(&'static str),
    End,
}

/// A call of MPI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) what: What,
}

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Something that takes seconds of a processor and concerns no other rank.
    Local(f64),
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    Recv {
        from: u32,
        tag: u32,
    },
    /// The request is completed by the next `WaitAll`.
    StartSend {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    StartRecv {
        from: u32,
        tag: u32,
    },
    WaitAll,
    /// No rank leaves before all have come, and then after these seconds.
    Together {
        communicator: usize,
        seconds: f64,
        bytes: u64,
    },
    /// No rank leaves before the root has come.
    FromRoot {
        communicator: usize,
        root: u32,
        seconds: f64,
        bytes: u64,
    },
    /// The root does not leave before all have come.
    ToRoot {
        communicator: usize,
        root: u32,
        seconds: f64,
        bytes: u64,
    },
}

/// How long something takes, again and again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    Constant,
    Uniform,
    Bimodal,
    HeavyTailed,
}

impl Spread {
    pub(super) const ALL: [Spread; 4] =
        [Spread::Constant, Spread::Uniform, Spread::Bimodal, Spread::HeavyTailed];

    /// Seconds, around `about_s`.
    pub(super) fn draw(self, random: &mut Rng, about_s: f64) -> f64 {
        let rare = random.f64();
        about_s
            * match self {
                Spread::Constant => 1.0,
                Spread::Uniform => 0.5 + rare,
                Spread::Bimodal if rare < 0.1 => 8.0,
                Spread::HeavyTailed if rare < 2e-3 => 500.0,
                Spread::Bimodal | Spread::HeavyTailed => 0.5,
            }
    }
}

impl Program {
    /// One host, on which each of the ranks has a processor of its own.
    pub(super) fn of_ranks(ranks: u32) -> Program {
        let all: Vec<u32> = (0..ranks).collect();
        Program {
            hosts: vec![Host { processors: f64::from(ranks), others: 0.0 }],
            ranks: all.iter().map(|_| Rank { host: 0, threads: vec![Vec::new()] }).collect(),
            communicators: vec![all],
            mpit_s: 0.0,
            init_s: 1e-3,
            network: Network::default(),
        }
    }

    /// The same program where moving data takes no time, nor does MPI anything else.
    pub(super) fn on_an_ideal_network(&self) -> Program {
        let mut ideal = self.clone();
        ideal.init_s = 0.0;
        ideal.network.latency_s = 0.0;
        ideal.network.bytes_per_s = f64::INFINITY;
        let threads = ideal.ranks.iter_mut().flat_map(|rank| &mut rank.threads);
        for action in threads.flatten() {
            let Action::Call(Call { what, .. }) = action else { continue };
            match what {
                What::Local(seconds)
                | What::Together { seconds, .. }
                | What::FromRoot { seconds, .. }
                | What::ToRoot { seconds, .. } => *seconds = 0.0,
                _ => {}
            }
        }
        ideal
    }

    pub(super) fn size(&self) -> u32 {
        u32::try_from(self.ranks.len()).unwrap()
    }

    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.size()
    }

    pub(super) fn add(&mut self, rank: u32, action: Action) {
        self.ranks[rank as usize].threads[0].push(action);
    }

    pub(super) fn work(&mut self, rank: u32, seconds: f64) {
        self.add(rank, Action::Work(seconds));
    }

    pub(super) fn call(&mut self, rank: u32, function: Function, what: What) {
        self.add(rank, Action::Call(Call { function, what }));
    }

    /// Each rank of the communicator calls it.
    pub(super) fn all_call(&mut self, communicator: usize, function: Function, what: What) {
        for rank in self.communicators[communicator].clone() {
            self.call(rank, function, what);
        }
    }

    pub(super) fn barrier(&mut self) {
        self.all_call(
            WORLD,
            MPI_Barrier,
            What::Together { communicator: WORLD, seconds: 2e-6, bytes: 0 },
        );
    }

    pub(super) fn begin(&mut self, name: &'static str) {
        self.numbers().for_each(|rank| self.add(rank, Action::Begin(name)));
    }

    pub(super) fn end(&mut self) {
        self.numbers().for_each(|rank| self.add(rank, Action::End));
    }

    /// Any program: of a few parts, each of which is repeated.
    pub(super) fn random(random: &mut Rng) -> Program {
        let ranks = if random.u8(..) < 16 { 1 } else { random.u32(2..=8) };
        let mut program = Program::of_ranks(ranks);
        program.mpit_s = [0.0, 0.0, 0.1][random.usize(..3)] * random.f64();
        program.init_s = 10_f64.powf(-4.0 + 3.0 * random.f64());
        program.network.eager_bytes = [0, 4096, 65_536][random.usize(..3)];
        if random.bool() && ranks >= 4 {
            // Two halves, on two hosts.
            let half = ranks / 2;
            program.communicators.extend([(0..half).collect(), (half..ranks).collect()]);
            let processors = f64::from(ranks);
            program.hosts = vec![Host { processors, others: 0.0 }; 2];
            (half..ranks).for_each(|rank| program.ranks[rank as usize].host = 1);
        }
        if random.u8(..) < 32 {
            // Too few processors, or other programs on them.
            for host in &mut program.hosts {
                let wanted = host.processors;
                if random.bool() {
                    host.processors = (wanted / 2.0).ceil();
                } else {
                    host.others = wanted * 2.0 * random.f64();
                }
            }
        }
        let has_phases = random.u8(..) < 64;
        // Seconds of the work between two calls of MPI, by part.
        let parts = random.usize(1..=3);
        for part in 0..parts {
            if has_phases {
                program.begin(["setup", "solve", "write"][part]);
            }
            let about_s = 10_f64.powf(-5.0 + 3.5 * random.f64());
            let rounds = random.usize(1..=120);
            program.random_part(random, rounds, about_s);
            if has_phases {
                program.end();
            }
        }
        program
    }

    /// A loop of nothing but short calls of one function.
    pub(super) fn of_short_calls(random: &mut Rng) -> Program {
        let mut program = Program::of_ranks(2);
        let (rounds, each_s) = (random.usize(5_000..40_000), 10_f64.powf(-5.9 + random.f64()));
        let (spread, work_s) = (Spread::ALL[random.usize(..4)], each_s * random.f64());
        let is_together = random.bool();
        for _ in 0..rounds {
            for rank in program.numbers() {
                program.work(rank, work_s);
                if !is_together {
                    let what = What::Local(spread.draw(random, each_s));
                    program.call(rank, MPI_Put, what);
                }
            }
            if is_together {
                let seconds = spread.draw(random, each_s);
                let what = What::Together { communicator: WORLD, seconds, bytes: 8 };
                program.all_call(WORLD, MPI_Allreduce, what);
            }
        }
        program
    }

    /// Equal work, and little of it in MPI.
    pub(super) fn without_problems(random: &mut Rng) -> Program {
        let mut program = Program::of_ranks(random.u32(1..=8));
        let (rounds, work_s) = (random.usize(20..200), 10_f64.powf(-2.5 + random.f64()));
        let ranks = program.size();
        for _ in 0..rounds {
            for rank in 0..ranks {
                program.work(rank, work_s * (1.0 + 1e-3 * random.f64()));
                if ranks > 1 {
                    let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                    program.call(rank, MPI_Irecv, What::StartRecv { from, tag: 0 });
                    program.call(rank, MPI_Isend, What::StartSend { to, bytes: 1024, tag: 0 });
                    program.call(rank, MPI_Waitall, What::WaitAll);
                }
            }
            let what = What::Together { communicator: WORLD, seconds: 5e-6, bytes: 8 };
            program.all_call(WORLD, MPI_Allreduce, what);
        }
        program
    }

    /// One rank has more to do than each of the others.
    pub(super) fn with_a_busy_rank(random: &mut Rng) -> Program {
        let ranks = random.u32(3..=8);
        let mut program = Program::of_ranks(ranks);
        let (rounds, work_s) = (random.usize(20..100), 10_f64.powf(-2.5 + random.f64()));
        let (busy, more) = (random.u32(..ranks), 1.8 + random.f64());
        // With a collective in each round, a message to the next one, or nothing until the end.
        let how = random.u8(..3);
        for _ in 0..rounds {
            for rank in 0..ranks {
                let part = if rank == busy { more } else { 0.98 + 0.02 * random.f64() };
                program.work(rank, work_s * part);
            }
            if how == 0 {
                let what = What::Together { communicator: WORLD, seconds: 5e-6, bytes: 8 };
                program.all_call(WORLD, MPI_Allreduce, what);
            }
            if how == 1 {
                program.ring(1024);
            }
        }
        program
    }

    /// The ranks work one after the other: each waits for the one before.
    pub(super) fn in_turn(random: &mut Rng) -> Program {
        let ranks = random.u32(2..=8);
        let mut program = Program::of_ranks(ranks);
        let (rounds, work_s) = (random.usize(5..40), 10_f64.powf(-3.0 + random.f64()));
        let is_broadcast = random.bool();
        for _ in 0..rounds {
            for rank in 0..ranks {
                program.work(rank, work_s);
                if is_broadcast {
                    let what =
                        What::FromRoot { communicator: WORLD, root: rank, seconds: 3e-6, bytes: 8 };
                    program.all_call(WORLD, MPI_Bcast, what);
                } else {
                    let (to, from) = ((rank + 1) % ranks, rank);
                    program.call(rank, MPI_Send, What::Send { to, bytes: 8, tag: 0 });
                    program.call(to, MPI_Recv, What::Recv { from, tag: 0 });
                }
            }
        }
        program
    }

    /// Moving data takes much of its time: again and again the same operations, of random kinds.
    pub(super) fn of_much_transfer(random: &mut Rng) -> Program {
        let kinds: Vec<u8> = (0..random.usize(1..=3)).map(|_| random.u8(..5)).collect();
        Program::of_operations(random, &kinds)
    }

    /// The same, but all ranks wait for all in each operation.
    pub(super) fn in_step(random: &mut Rng) -> Program {
        Program::of_operations(random, &[0])
    }

    fn of_operations(random: &mut Rng, kinds: &[u8]) -> Program {
        let ranks = random.u32(2..=6);
        let mut program = Program::of_ranks(ranks);
        program.init_s = 1e-6;
        program.network.bytes_per_s = 1e9;
        // In one call that ends a send and a receive, a send that waits for nobody cannot be told from one that does.
        let is_eager = random.bool() && !kinds.contains(&3);
        program.network.eager_bytes = if is_eager { u64::MAX } else { 0 };
        let (rounds, work_s) = (random.usize(20..80), 1e-3);
        let weights: Vec<f64> = (0..ranks).map(|_| 0.5 + random.f64()).collect();
        let is_even = random.bool();
        // How long an operation takes.
        let bytes = random.u64(50_000..1_500_000);
        let seconds = program.network.transfer_s(bytes);
        for _ in 0..rounds {
            for kind in kinds {
                for rank in 0..ranks {
                    let weight = if is_even { 1.0 } else { weights[rank as usize] };
                    program.work(rank, work_s * weight * (0.8 + 0.4 * random.f64()));
                }
                let (communicator, root) = (WORLD, random.u32(..ranks));
                match kind {
                    0 => {
                        let what = What::Together { communicator, seconds, bytes };
                        program.all_call(WORLD, MPI_Allreduce, what);
                    }
                    1 => {
                        let what = What::FromRoot { communicator, root, seconds, bytes };
                        program.all_call(WORLD, MPI_Bcast, what);
                    }
                    2 => {
                        let what = What::ToRoot { communicator, root, seconds, bytes };
                        program.all_call(WORLD, MPI_Reduce, what);
                    }
                    3 => program.ring(bytes),
                    _ => {
                        // A pipeline.
                        for rank in 1..ranks {
                            let what = What::Send { to: rank, bytes, tag: 0 };
                            program.call(rank - 1, MPI_Send, what);
                            program.call(rank, MPI_Recv, What::Recv { from: rank - 1, tag: 0 });
                            program.work(rank, 0.1 * work_s);
                        }
                    }
                }
            }
        }
        program
    }

    /// Each rank sends to the right, and receives from the left.
    fn ring(&mut self, bytes: u64) {
        let ranks = self.size();
        for rank in 0..ranks {
            let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            self.call(rank, MPI_Irecv, What::StartRecv { from, tag: 0 });
            self.call(rank, MPI_Isend, What::StartSend { to, bytes, tag: 0 });
            self.call(rank, MPI_Waitall, What::WaitAll);
        }
    }

    /// Each rank exchanges messages with the ranks at both sides.
    pub(super) fn halo(&mut self, bytes: u64) {
        let ranks = self.size();
        for rank in 0..ranks {
            let sides = [(rank + 1) % ranks, (rank + ranks - 1) % ranks];
            for (tag, from) in (0..).zip(sides) {
                self.call(rank, MPI_Irecv, What::StartRecv { from, tag });
            }
            for (tag, to) in (0..).zip([sides[1], sides[0]]) {
                self.call(rank, MPI_Isend, What::StartSend { to, bytes, tag });
            }
            self.call(rank, MPI_Waitall, What::WaitAll);
        }
    }

    /// A random one, in which further threads of some rank call MPI at the same time.
    pub(super) fn with_threads(random: &mut Rng) -> Program {
        let mut program = Program::random(random);
        let rank = random.usize(..program.ranks.len());
        let of_rank = &mut program.ranks[rank];
        let number = random.usize(1..=3);
        program.hosts[of_rank.host].processors += number as f64;
        for _ in 0..number {
            let (calls, seconds) = (random.usize(1..=200), 10_f64.powf(-5.0 + 2.0 * random.f64()));
            let actions = (0..calls).flat_map(|_| {
                let what = What::Local(seconds * random.f64());
                let call = Call { function: MPI_Put, what };
                [Action::Call(call), Action::Work(0.2 * seconds)]
            });
            of_rank.threads.push(actions.collect());
        }
        program
    }

    fn random_part(&mut self, random: &mut Rng, rounds: usize, about_s: f64) {
        let ranks = self.size();
        let spread = Spread::ALL[random.usize(..4)];
        // How much each rank has to do.
        let weights: Vec<f64> = match random.u8(..4) {
            0 => vec![1.0; ranks as usize],
            1 => (0..ranks).map(|_| 0.5 + random.f64()).collect(),
            2 => {
                let busy = random.u32(..ranks);
                (0..ranks).map(|rank| if rank == busy { 3.0 } else { 1.0 }).collect()
            }
            _ => vec![0.0; ranks as usize],
        };
        let pattern = random.u8(..9);
        let communicator = random.usize(..self.communicators.len());
        let root = self.communicators[communicator][0];
        let bytes = 1_u64 << random.u32(..22);
        let call_s = 10_f64.powf(-6.5 + 2.0 * random.f64());
        for round in 0..rounds {
            for rank in 0..ranks {
                let seconds = weights[rank as usize] * spread.draw(random, about_s);
                self.work(rank, seconds);
            }
            let communicators: Vec<usize> = if communicator == WORLD {
                vec![WORLD]
            } else {
                (1..self.communicators.len()).collect()
            };
            match pattern {
                0 | 1 => {
                    let function = [MPI_Allreduce, MPI_Barrier, MPI_Alltoall][random.usize(..3)];
                    let seconds = self.network.transfer_s(bytes);
                    for communicator in communicators {
                        let bytes = if function == MPI_Barrier { 0 } else { bytes };
                        let what = What::Together { communicator, seconds, bytes };
                        self.all_call(communicator, function, what);
                    }
                }
                2 => {
                    let seconds = self.network.transfer_s(bytes);
                    let what = What::FromRoot { communicator, root, seconds, bytes };
                    self.all_call(communicator, MPI_Bcast, what);
                }
                3 => {
                    let seconds = self.network.transfer_s(bytes);
                    let what = What::ToRoot { communicator, root, seconds, bytes };
                    self.all_call(communicator, MPI_Reduce, what);
                }
                4 if ranks > 1 => self.ring(bytes),
                5 if ranks > 1 => {
                    // A pipeline.
                    for rank in 0..ranks {
                        if rank > 0 {
                            self.call(rank, MPI_Recv, What::Recv { from: rank - 1, tag: 0 });
                        }
                        self.work(rank, 0.1 * about_s);
                        if rank + 1 < ranks {
                            let what = What::Send { to: rank + 1, bytes, tag: 0 };
                            self.call(rank, MPI_Send, what);
                        }
                    }
                }
                6 if ranks > 1 => {
                    // One after the other.
                    let turn = u32::try_from(round).unwrap() % ranks;
                    self.work(turn, about_s);
                    self.barrier();
                }
                7 if ranks > 1 => {
                    // Somebody asks for what another one sends.
                    let (asks, sends) = (0, ranks - 1);
                    let bytes = bytes.min(self.network.eager_bytes);
                    self.call(sends, MPI_Send, What::Send { to: asks, bytes, tag: 0 });
                    // Some hundred times.
                    let each_s = call_s.max(about_s / 100.0);
                    let poll = Action::Poll { from: sends, each_s, between_s: each_s };
                    self.add(asks, poll);
                    self.call(asks, MPI_Recv, What::Recv { from: sends, tag: 0 });
                }
                _ => {
                    let function = [MPI_Test, MPI_Put][random.usize(..2)];
                    for _ in 0..random.usize(1..=40) {
                        for rank in 0..ranks {
                            let seconds = spread.draw(random, call_s);
                            self.call(rank, function, What::Local(seconds));
                        }
                    }
                }
            }
        }
    }
}
