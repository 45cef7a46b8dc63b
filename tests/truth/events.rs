//! What happens when a program runs: events on one clock, from which both the profiles and the truth are made.
//!
//! A thread that works, or waits inside of MPI (which polls), wants a processor; the threads on a host share its
//! processors equally. Nothing here knows of gyan.

use std::collections::{BTreeMap, VecDeque};

use super::program::{Action, Call, Program, WORLD, What};
use crate::mpi::functions::Function;
use crate::mpi::functions::by_hand::MPI_Init;
use crate::mpi::functions::point_to_point::MPI_Test;

/// Seconds in which a call that concerns no other rank returns.
const AT_ONCE_S: f64 = 3e-7;

/// What happened to a thread, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Called(Called),
    /// A phase begins, or the last one ends.
    Phase {
        at: f64,
        name: Option<&'static str>,
    },
}

/// A call of MPI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub(super) function: Function,
    pub(super) begun: f64,
    pub(super) ended: f64,
    /// What it handed to MPI.
    pub(super) bytes: u64,
    /// Whom it sent a message.
    pub(super) to: Option<u32>,
    /// From whom it received one.
    pub(super) from: Option<u32>,
    pub(super) tag: u32,
    /// How it deals with messages that end in another call.
    pub(super) requests: Requests,
    /// The communicator on which ranks wait for each other in it, and the rank that is its root.
    pub(super) together: Option<(usize, Option<u32>)>,
    /// Seconds in which another rank was not there yet, and which.
    pub(super) waited: f64,
    pub(super) waited_for: Option<u32>,
}

/// What a call does with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Requests {
    #[default]
    Nothing,
    Starts,
    CompletesAll,
}

impl Called {
    pub(super) fn seconds(&self) -> f64 {
        self.ended - self.begun
    }
}

impl Event {
    pub(super) fn begun(&self) -> f64 {
        match self {
            Event::Called(called) => called.begun,
            Event::Phase { at, .. } => *at,
        }
    }
}

/// A run of a program. All times in seconds since its start.
pub(super) struct Events {
    pub(super) ranks: Vec<OfRank>,
}

/// What a rank saw.
#[derive(Default)]
pub(super) struct OfRank {
    /// From `MPI_Init` to `MPI_Finalize`.
    pub(super) elapsed_s: f64,
    pub(super) threads: Vec<Vec<Event>>,
    /// Seconds in which its first thread wanted a processor and had none.
    pub(super) processor_wait_s: f64,
    /// Seconds of processors.
    pub(super) processor_s: f64,
}

impl Events {
    pub(super) fn of(program: &Program) -> Events {
        let mut run = Run::new(program);
        while run.advance() {}
        let mut ranks: Vec<OfRank> = program.ranks.iter().map(|_| OfRank::default()).collect();
        for thread in run.threads {
            let rank = &mut ranks[thread.rank as usize];
            rank.elapsed_s = rank.elapsed_s.max(thread.ended_at);
            if rank.threads.is_empty() {
                rank.processor_wait_s = thread.processor_wait_s;
            }
            rank.processor_s += thread.processor_s;
            rank.threads.push(thread.events);
        }
        Events { ranks }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Not started.
    Idle,
    Ready,
    /// Needs this many seconds of a processor.
    Busy(f64),
    /// In MPI, until then.
    Until(f64),
    Sleeping(f64),
    /// In MPI, until somebody comes.
    Blocked,
    Done,
}

struct Thread<'p> {
    rank: u32,
    actions: &'p [Action],
    next: usize,
    state: State,
    call: Option<Called>,
    /// What the last test said, in a loop of them.
    polls: bool,
    requests: Vec<Request>,
    in_wait_all: bool,
    events: Vec<Event>,
    ended_at: f64,
    processor_wait_s: f64,
    processor_s: f64,
}

/// A send or a receive that was started.
#[derive(Clone, Copy, Default)]
struct Request {
    done: Option<f64>,
    /// When the other side came, and who that is.
    came: f64,
    peer: u32,
    waits_for_peer: bool,
}

/// One end of a message: a thread, and its request if it does not wait in the call.
#[derive(Clone, Copy)]
struct Side {
    thread: usize,
    request: Option<usize>,
    at: f64,
    bytes: u64,
}

#[derive(Default)]
struct Channel {
    /// Eager messages also have the time at which they arrive.
    sends: VecDeque<(Side, Option<f64>)>,
    receives: VecDeque<Side>,
}

#[derive(Default)]
struct Gathering {
    /// Who has come, and when.
    came: Vec<(usize, f64)>,
    root_came: Option<f64>,
}

struct Run<'p> {
    program: &'p Program,
    now: f64,
    threads: Vec<Thread<'p>>,
    ready: Vec<usize>,
    /// By sender, receiver and tag.
    channels: BTreeMap<(u32, u32, u32), Channel>,
    /// By communicator and the number of the call there.
    gatherings: BTreeMap<(usize, usize), Gathering>,
    /// How many collectives each thread has called on each communicator.
    collectives: BTreeMap<(usize, usize), usize>,
}

impl<'p> Run<'p> {
    fn new(program: &'p Program) -> Run<'p> {
        let mut threads = Vec::new();
        for (rank, of_rank) in program.numbers().zip(&program.ranks) {
            for (number, actions) in of_rank.threads.iter().enumerate() {
                threads.push(Thread {
                    rank,
                    actions,
                    next: 0,
                    // The start of MPI_T comes before the first call.
                    state: if number == 0 { State::Sleeping(program.mpit_s) } else { State::Idle },
                    call: None,
                    polls: false,
                    requests: Vec::new(),
                    in_wait_all: false,
                    events: Vec::new(),
                    ended_at: 0.0,
                    processor_wait_s: 0.0,
                    processor_s: 0.0,
                });
            }
        }
        Run {
            program,
            now: 0.0,
            threads,
            ready: Vec::new(),
            channels: BTreeMap::new(),
            gatherings: BTreeMap::new(),
            collectives: BTreeMap::new(),
        }
    }

    /// Goes on to the next time at which something happens; false at the end.
    fn advance(&mut self) -> bool {
        while let Some(thread) = self.ready.pop() {
            self.go_on(thread);
        }
        if self.threads.iter().all(|thread| thread.state == State::Done) {
            return false;
        }
        let mut rates = Vec::new();
        for (number, host) in self.program.hosts.iter().enumerate() {
            let wants = |thread: &&Thread| {
                self.program.ranks[thread.rank as usize].host == number
                    && matches!(thread.state, State::Busy(_) | State::Until(_) | State::Blocked)
            };
            let wanting = self.threads.iter().filter(wants).count() as f64 + host.others;
            rates.push((host.processors / wanting.max(1e-9)).min(1.0));
        }
        let rate_of = |thread: &Thread| rates[self.program.ranks[thread.rank as usize].host];
        let left = |thread: &Thread| match thread.state {
            State::Busy(seconds) => seconds / rate_of(thread),
            State::Until(until) | State::Sleeping(until) => until - self.now,
            _ => f64::INFINITY,
        };
        let step = self.threads.iter().map(left).fold(f64::INFINITY, f64::min).max(0.0);
        assert!(step.is_finite(), "nobody can go on");
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let rate = rates[self.program.ranks[thread.rank as usize].host];
            if matches!(thread.state, State::Busy(_) | State::Until(_) | State::Blocked) {
                thread.processor_s += rate * step;
                thread.processor_wait_s += (1.0 - rate) * step;
            }
            let is_over = match &mut thread.state {
                State::Busy(seconds) => {
                    *seconds -= rate * step;
                    *seconds < 1e-12
                }
                State::Until(until) | State::Sleeping(until) => *until - self.now - step < 1e-12,
                _ => false,
            };
            if is_over {
                thread.state = State::Ready;
                self.ready.push(number);
            }
        }
        self.now += step;
        true
    }

    /// What the thread did is over.
    fn go_on(&mut self, number: usize) {
        let now = self.now;
        let thread = &mut self.threads[number];
        if thread.events.is_empty() && thread.call.is_none() && thread.next == 0 {
            let is_main = number == 0 || self.threads[number - 1].rank != self.threads[number].rank;
            if is_main {
                let what =
                    What::Together { communicator: WORLD, seconds: self.program.init_s, bytes: 0 };
                self.start(number, Call { function: MPI_Init, what });
                return;
            }
        }
        let thread = &mut self.threads[number];
        if let Some(call) = thread.call.take() {
            thread.events.push(Event::Called(Called { ended: now, ..call }));
            if call.function == MPI_Init {
                // Now the others may call MPI.
                let rank = thread.rank;
                for (other, thread) in self.threads.iter_mut().enumerate() {
                    if thread.rank == rank && thread.state == State::Idle {
                        thread.state = State::Ready;
                        self.ready.push(other);
                    }
                }
            }
        }
        loop {
            let thread = &mut self.threads[number];
            let Some(action) = thread.actions.get(thread.next).copied() else {
                thread.state = State::Done;
                thread.ended_at = now;
                return;
            };
            if let Action::Poll { from, each_s, between_s } = action {
                if thread.polls {
                    thread.polls = false;
                    thread.state = State::Busy(between_s);
                    return;
                }
                let to = thread.rank;
                let is_there = self.is_there((from, to, 0));
                let thread = &mut self.threads[number];
                if is_there {
                    thread.next += 1;
                } else {
                    thread.polls = true;
                }
                let what = What::Local(each_s);
                self.start(number, Call { function: MPI_Test, what });
                return;
            }
            thread.next += 1;
            match action {
                Action::Work(seconds) if seconds > 0.0 => {
                    thread.state = State::Busy(seconds);
                    return;
                }
                Action::Sleep(seconds) if seconds > 0.0 => {
                    thread.state = State::Sleeping(now + seconds);
                    return;
                }
                Action::Call(call) => {
                    self.start(number, call);
                    return;
                }
                Action::Begin(name) => {
                    thread.events.push(Event::Phase { at: now, name: Some(name) });
                }
                Action::End => thread.events.push(Event::Phase { at: now, name: None }),
                _ => {}
            }
        }
    }

    fn is_there(&self, channel: (u32, u32, u32)) -> bool {
        let sends = self.channels.get(&channel).map(|channel| &channel.sends);
        let first = sends.and_then(|sends| sends.front());
        first.is_some_and(|(_, arrives)| arrives.is_none_or(|at| at <= self.now))
    }

    fn start(&mut self, number: usize, call: Call) {
        let now = self.now;
        let thread = &mut self.threads[number];
        let rank = thread.rank;
        thread.call = Some(call_at(call, now));
        thread.state = State::Blocked;
        let side = |request, bytes| Side { thread: number, request, at: now, bytes };
        match call.what {
            What::Local(seconds) => thread.state = State::Busy(seconds),
            What::Send { to, bytes, tag } => self.send((rank, to, tag), side(None, bytes)),
            What::Recv { from, tag } => self.receive((from, rank, tag), side(None, 0)),
            What::StartSend { to, bytes, tag } => {
                let request = Some(thread.request());
                thread.state = State::Until(now + AT_ONCE_S);
                self.send((rank, to, tag), side(request, bytes));
            }
            What::StartRecv { from, tag } => {
                let request = Some(thread.request());
                thread.state = State::Until(now + AT_ONCE_S);
                self.receive((from, rank, tag), side(request, 0));
            }
            What::WaitAll => {
                thread.in_wait_all = true;
                thread.complete_all(now);
            }
            What::Together { communicator, seconds, .. } => {
                let ranks = self.program.communicators[communicator].len();
                let gathering = self.gathering(number, communicator);
                gathering.came.push((number, now));
                if gathering.came.len() == ranks {
                    for (thread, at) in std::mem::take(&mut gathering.came) {
                        self.released(thread, now - at, rank, now + seconds);
                    }
                }
            }
            What::FromRoot { communicator, root, seconds, .. } => {
                let gathering = self.gathering(number, communicator);
                if root == rank {
                    gathering.root_came = Some(now);
                    for (thread, at) in std::mem::take(&mut gathering.came) {
                        self.released(thread, now - at, rank, now + seconds);
                    }
                    self.threads[number].state = State::Until(now + seconds);
                } else if let Some(came) = gathering.root_came {
                    let until = (came + seconds).max(now + AT_ONCE_S);
                    self.threads[number].state = State::Until(until);
                } else {
                    gathering.came.push((number, now));
                }
            }
            What::ToRoot { communicator, root, seconds, .. } => {
                let ranks = self.program.communicators[communicator].len();
                let gathering = self.gathering(number, communicator);
                gathering.came.push((number, now));
                if root == rank {
                    gathering.root_came = Some(now);
                }
                let all = gathering.came.len() == ranks;
                let of_root = gathering.root_came;
                let came = gathering.came.clone();
                if root != rank {
                    self.threads[number].state = State::Until(now + AT_ONCE_S);
                }
                if all && let Some(at) = of_root {
                    let is_root = |&&(thread, _): &&(usize, f64)| self.threads[thread].rank == root;
                    let of_root = came.iter().find(is_root).unwrap().0;
                    self.released(of_root, now - at, rank, now + seconds);
                }
            }
        }
    }

    /// The collective call on a communicator that the thread makes now.
    fn gathering(&mut self, number: usize, communicator: usize) -> &mut Gathering {
        let call = self.collectives.entry((number, communicator)).or_default();
        *call += 1;
        self.gatherings.entry((communicator, *call)).or_default()
    }

    /// A thread waited in its call for `rank`, and leaves it at `until`.
    fn released(&mut self, number: usize, waited: f64, rank: u32, until: f64) {
        let thread = &mut self.threads[number];
        thread.state = State::Until(until);
        if let Some(call) = thread.call.as_mut().filter(|_| thread.rank != rank) {
            call.waited = waited;
            call.waited_for = Some(rank);
        }
    }

    fn send(&mut self, channel: (u32, u32, u32), send: Side) {
        let network = self.program.network;
        let is_eager = send.bytes <= network.eager_bytes;
        let arrives = is_eager.then(|| send.at + network.transfer_s(send.bytes));
        if is_eager {
            self.matched(send, channel.1, send.at, send.at + AT_ONCE_S, false);
        }
        let waiting = self.channels.entry(channel).or_default();
        match waiting.receives.pop_front() {
            Some(receive) => self.meet(channel, (send, arrives), receive),
            None => waiting.sends.push_back((send, arrives)),
        }
    }

    fn receive(&mut self, channel: (u32, u32, u32), receive: Side) {
        let waiting = self.channels.entry(channel).or_default();
        match waiting.sends.pop_front() {
            Some(send) => self.meet(channel, send, receive),
            None => waiting.receives.push_back(receive),
        }
    }

    /// Both sides of a message are there.
    fn meet(
        &mut self,
        (from, to, _): (u32, u32, u32),
        (send, arrives): (Side, Option<f64>),
        receive: Side,
    ) {
        let network = self.program.network;
        let both = send.at.max(receive.at);
        if let Some(arrives) = arrives {
            self.matched(receive, from, send.at, arrives.max(receive.at + AT_ONCE_S), true);
        } else {
            let done = both + network.latency_s + network.transfer_s(send.bytes);
            self.matched(receive, from, send.at, done, true);
            self.matched(send, to, receive.at, done, true);
        }
    }

    /// A side of a message is done at `done`; the other, `peer`, came at `came`.
    fn matched(&mut self, side: Side, peer: u32, came: f64, done: f64, waits_for_peer: bool) {
        let now = self.now;
        match side.request {
            Some(request) => {
                let thread = &mut self.threads[side.thread];
                thread.requests[request] = Request { done: Some(done), came, peer, waits_for_peer };
                if thread.in_wait_all {
                    thread.complete_all(now);
                }
            }
            None if waits_for_peer && came > side.at => {
                self.released(side.thread, came - side.at, peer, done);
            }
            None => self.threads[side.thread].state = State::Until(done),
        }
    }
}

/// A call as it begins.
fn call_at(call: Call, now: f64) -> Called {
    let (bytes, to) = match call.what {
        What::Send { bytes, to, .. } | What::StartSend { bytes, to, .. } => (bytes, Some(to)),
        What::Together { bytes, .. }
        | What::FromRoot { bytes, .. }
        | What::ToRoot { bytes, .. } => (bytes, None),
        _ => (0, None),
    };
    let (from, tag) = match call.what {
        What::Recv { from, tag } | What::StartRecv { from, tag } => (Some(from), tag),
        What::Send { tag, .. } | What::StartSend { tag, .. } => (None, tag),
        _ => (None, 0),
    };
    let requests = match call.what {
        What::StartSend { .. } | What::StartRecv { .. } => Requests::Starts,
        What::WaitAll => Requests::CompletesAll,
        _ => Requests::Nothing,
    };
    let together = match call.what {
        What::Together { communicator, .. } if call.function != MPI_Init => {
            Some((communicator, None))
        }
        What::FromRoot { communicator, root, .. } | What::ToRoot { communicator, root, .. } => {
            Some((communicator, Some(root)))
        }
        _ => None,
    };
    Called {
        function: call.function,
        begun: now,
        ended: now,
        bytes,
        to,
        from,
        tag,
        requests,
        together,
        waited: 0.0,
        waited_for: None,
    }
}

impl Thread<'_> {
    fn request(&mut self) -> usize {
        self.requests.push(Request::default());
        self.requests.len() - 1
    }

    /// Leaves the call that waits for all requests once their ends are known.
    fn complete_all(&mut self, now: f64) {
        if self.requests.iter().any(|request| request.done.is_none()) {
            return;
        }
        self.in_wait_all = false;
        let done = self.requests.iter().filter_map(|request| request.done).fold(now, f64::max);
        self.state = State::Until(done.max(now + AT_ONCE_S));
        let Some(call) = &mut self.call else { return };
        let late = self.requests.iter().filter(|of| of.waits_for_peer && of.came > call.begun);
        if let Some(last) = late.max_by(|one, other| one.came.total_cmp(&other.came)) {
            call.waited = last.came - call.begun;
            call.waited_for = Some(last.peer);
        }
        self.requests.clear();
    }
}
