//! What libgyan.so writes of a run: its own ledger, budget, phases and tallies see each call at its time, in a
//! forked copy of this process for each rank, because they belong to a process.

use std::ops::Range;

use gyan_results::{
    Coverage, End, Ending, InMpi, Job, MessageDirection, Mpi, Overhead, PeerTraffic, Peers,
    RANK_SCHEMA, RankProfile, Reduction, Resources, Summary, Tool, parse_rank, rank_file_name,
};

use super::events::{Called, Event, Events, OfRank, Requests};
use super::program::{Program, WORLD};
use super::row;
use crate::calls::budget::{Costs, budget};
use crate::calls::gate;
use crate::calls::ledger::{self, Ledger};
use crate::calls::together::InTimedCall;
use crate::calls::traffic::{Sent, Way};
use crate::mpi::functions::Function;
use crate::mpi::functions::by_hand::MPI_Init;
use crate::mpi::handles::Language;
use crate::observe::communicators;
use crate::observe::pending;
use crate::observe::phases::{PhaseChange, Phases, RunCalls};
use crate::observe::streams::{self, Ends};
use crate::observe::waiting::{self, AsCalled};
use crate::run::in_mpi_together;
use crate::sys::clock;
use crate::sys::fork::{Survived, survive};

const BUDGET: f64 = 0.005;
/// Seconds of counting and of timing a call.
const COSTS_S: (f64, f64) = (2e-9, 100e-9);
/// The clock at the start of a run, in seconds: any but 0.
const START_S: f64 = 1.0;
/// The handle of the first communicator; those of the others follow.
const HANDLE: usize = 0x4400_0000;

/// The profiles of the ranks.
pub(super) fn profiles(program: &Program, events: &Events, seed: u64) -> Vec<RankProfile> {
    let ranks = program.numbers().zip(&events.ranks);
    let texts = ranks.map(|(rank, of_rank)| {
        // A copy that does not come back, on a busy machine, is made once more.
        let survived = survive(1, |_, _, _, out| {
            let profile = observed(program, rank, of_rank, seed);
            out.write_all(&serde_json::to_vec(&profile)?)
        });
        let Survived { lines, casualties } = survived.unwrap();
        assert!(!lines.is_empty(), "{:?}", casualties.first().map(|casualty| &casualty.how));
        lines
    });
    texts.map(|text| parse_rank(text.as_bytes()).unwrap()).collect()
}

/// The summary of profiles, as the command reduces them.
pub(super) fn summary(profiles: &[RankProfile]) -> Summary {
    let mut reduction = Reduction::default();
    for profile in profiles {
        reduction.add(&rank_file_name(profile.rank), profile);
    }
    reduction.finish().unwrap()
}

fn ticks(seconds: f64) -> u64 {
    clock::whole(clock::ticks(START_S + seconds))
}

/// The profile of a rank, made in this process.
fn observed(program: &Program, rank: u32, of_rank: &OfRank, seed: u64) -> RankProfile {
    clock::simulate(ticks(0.0));
    budget().begin(Some(BUDGET), ticks(0.0));
    let (counted, timed) = (clock::ticks(COSTS_S.0), clock::ticks(COSTS_S.1));
    budget().learn(Costs { counted, timed, ..Costs::default() });
    let mut phases = Phases::new(ticks(0.0));
    let is_threaded = program.ranks.iter().any(|rank| rank.threads.len() > 1);
    gate::open(is_threaded);
    ledger::count_peers(program.size());
    pending::begin(true);
    waiting::begin(true);
    communicators::simulate_world(HANDLE + 4 * WORLD);
    streams::begin(!is_threaded);
    let mut requests = 0..0;
    for (number, ranks) in program.communicators.iter().enumerate() {
        let ranks: &[u32] = if number == WORLD { &[] } else { ranks };
        let size = program.communicators[number].len();
        communicators::made_up(HANDLE + 4 * number, u32::try_from(size).unwrap(), ranks);
    }
    let ledgers: Vec<&Ledger> = of_rank
        .threads
        .iter()
        .map(|_| if is_threaded { ledger::new_ledger() } else { ledger::alone() })
        .collect();
    for (number, ledger) in (1..).zip(&ledgers) {
        ledger.begin_at_random(seed.wrapping_mul(64) + 8 * u64::from(rank) + number);
    }
    // What counting and timing took so far: the rest of the run comes later by that. Not with several threads, which do
    // not wait for each other's.
    let mut later_s = 0.0;
    let costs_s = if is_threaded { (0.0, 0.0) } else { COSTS_S };
    let mut inside: Vec<Option<Inside>> = ledgers.iter().map(|_| None).collect();
    for (at, thread, moment) in moments(of_rank) {
        let at = at + later_s;
        match moment {
            Moment::Begins(call) => {
                let together = call.together.and_then(|(communicator, root)| {
                    let of = &program.communicators[communicator];
                    let place = |rank| of.iter().position(|other| *other == rank);
                    waiting::simulate_rank(u32::try_from(place(rank)?).ok()?);
                    let root = root.and_then(|root| i32::try_from(place(root)?).ok());
                    Some((HANDLE + 4 * communicator, root.unwrap_or(waiting::NO_ROOT)))
                });
                let at = at + costs_s.0;
                inside[thread] = Some(begins(ledgers[thread], !is_threaded, call, together, at));
                later_s += costs_s.0;
            }
            Moment::Ends(call) => {
                let inside = inside[thread].take();
                let is_timed = inside.as_ref().is_some_and(|inside| inside.is_due);
                let timed_s = if is_timed { costs_s.1 } else { 0.0 };
                ends(ledgers[thread], !is_threaded, call, inside, (at, timed_s));
                if !is_threaded {
                    exchanged(call, &mut requests);
                }
                later_s += timed_s;
            }
            Moment::Phase(name) => {
                let now = ticks(at);
                clock::simulate(now);
                let change = name.map_or(PhaseChange::End, |name| PhaseChange::Begin(name.into()));
                if let Some(next) = phases.change(change) {
                    phases.go_on(next.phase, now, true);
                }
            }
        }
    }
    let elapsed_s = of_rank.elapsed_s + later_s;
    clock::simulate(ticks(elapsed_s));
    gate::end_gap();
    phases.settle(ticks(elapsed_s), || None);
    described(program, rank, (of_rank, elapsed_s), &phases)
}

/// Something that libgyan.so sees.
enum Moment<'e> {
    Begins(&'e Called),
    Ends(&'e Called),
    Phase(Option<&'static str>),
}

/// What it sees of a rank, in order: when, and by which thread.
fn moments(of_rank: &OfRank) -> Vec<(f64, usize, Moment<'_>)> {
    let mut moments = Vec::new();
    for (thread, of_thread) in of_rank.threads.iter().enumerate() {
        for event in of_thread {
            match event {
                Event::Called(call) => {
                    moments.push((call.begun, thread, Moment::Begins(call)));
                    moments.push((call.ended, thread, Moment::Ends(call)));
                }
                Event::Phase { at, name } => moments.push((*at, thread, Moment::Phase(*name))),
            }
        }
    }
    moments.sort_by(|one, other| one.0.total_cmp(&other.0));
    moments
}

/// What is kept while a call is made.
struct Inside {
    begun: u64,
    is_due: bool,
    due: Option<waiting::Due>,
    together: Option<InTimedCall>,
}

/// A call begins at `begun_s`, after it was counted. `together`: the communicator and the root.
fn begins(
    ledger: &Ledger,
    alone: bool,
    call: &Called,
    together: Option<(usize, i32)>,
    begun_s: f64,
) -> Inside {
    let function = call.function;
    let begun = ticks(begun_s);
    clock::simulate(ticks(begun_s - if alone { COSTS_S.0 } else { 0.0 }));
    gate::end_gap();
    clock::simulate(begun);
    if function == MPI_Init {
        return Inside { begun, is_due: false, due: None, together: None };
    }
    let called = |root| AsCalled { root, request: None };
    let due = together.and_then(|(comm, root)| waiting::due(alone, function, comm, called(root)));
    let is_due = ledger.is_due(function);
    let is_together = !alone && (is_due || due.is_some());
    let together = is_together.then(|| InTimedCall::enter(begun));
    Inside { begun, is_due, due, together }
}

/// It ends at `ended_s`, and then takes `timed_s` where it is timed.
fn ends(
    ledger: &Ledger,
    alone: bool,
    call: &Called,
    inside: Option<Inside>,
    (ended_s, timed_s): (f64, f64),
) {
    let Called { function, bytes, to, .. } = *call;
    let Some(Inside { begun, is_due, due, together }) = inside else { return };
    let ended = ticks(ended_s);
    clock::simulate(ended);
    drop(together);
    if function == MPI_Init {
        ledger::time(function, begun, ended);
        ledger::count(function);
        return;
    }
    if is_due {
        ledger.timed(budget(), function, begun, ended, due.is_some());
    } else if due.is_some() {
        ledger.timed_besides(budget(), function, begun, ended);
    }
    if let Some(due) = due {
        // What gyan's own work takes comes later on all ranks alike, as they wait for each other.
        due.took(ticks(call.begun), ended - begun, true);
    }
    ledger.count_slowly(function);
    clock::simulate(ticks(ended_s + timed_s));
    if alone && ledger.wants_gap() {
        gate::begin_gap(ledger);
    }
    if row(function).bytes {
        ledger.moved_slowly(function, bytes);
        if let Some(to) = to {
            ledger.sent_slowly(Sent::to(to, Way::Message, bytes));
        }
    }
}

/// The messages of a call. `requests`: those that are started and have not been completed. As in collective operations, gyan's own work
/// is not in these times.
fn exchanged(call: &Called, requests: &mut Range<usize>) {
    let (begun, ended) = (ticks(call.begun), ticks(call.ended));
    let called = streams::CallTimes { function: call.function, caller: 1, begun, ended };
    let tag = i32::try_from(call.tag).unwrap();
    let rank = |rank: u32| i32::try_from(rank).unwrap();
    let sent = call.to.map(|to| (MessageDirection::Sent, rank(to), tag));
    let received = call.from.map(|from| (MessageDirection::Received, rank(from), tag));
    let way = match call.requests {
        Requests::Starts => {
            requests.end += 1;
            Ends::InAnother(Some((Language::C, requests.end)))
        }
        _ => Ends::Here,
    };
    streams::simulate(HANDLE + 4 * WORLD, [sent, received], way, called);
    if call.requests == Requests::CompletesAll {
        for request in requests.by_ref() {
            pending::completed(Language::C, request + 1, false, called);
        }
    }
}

/// As `run::ending` does it, without what a simulated run has not.
fn described(
    program: &Program,
    rank: u32,
    (of_rank, elapsed_s): (&OfRank, f64),
    phases: &Phases,
) -> RankProfile {
    let RunCalls { calls, time } = phases.calls();
    let time_s = clock::seconds(time.total);
    let threads = ledger::threads();
    let wall_s = (threads > 1).then(|| in_mpi_together(time.total, elapsed_s)).flatten();
    let wrappers_s = clock::seconds(budget().wrappers(&ledger::ways()));
    let peers = ledger::peers(Way::Message);
    let messages =
        peers.into_iter().map(|(rank, number, bytes)| PeerTraffic { rank, number, bytes });
    RankProfile {
        schema: RANK_SCHEMA.into(),
        tool: Tool::gyan(),
        job: Job {
            id: "simulated".into(),
            command: vec!["./simulated".into()],
            started: "2026-01-01T00:00:00Z".into(),
            elapsed_s,
            ..Job::default()
        },
        rank,
        size: program.size(),
        host: format!("host{}", program.ranks[rank as usize].host),
        pid: 1000 + rank,
        mpi: Mpi {
            abi: "openmpi".into(),
            standard: "3.1".into(),
            library: "Open MPI v4.1.4".into(),
            library_path: "/usr/lib/libmpi.so".into(),
            thread_level: "MPI_THREAD_MULTIPLE".into(),
            ..Mpi::default()
        },
        end: End { how: Ending::Finalize, code: 0 },
        in_mpi: calls.iter().any(|call| call.timed > 0).then(|| InMpi {
            time_s,
            time_error_s: time.error.map(clock::seconds),
            share: wall_s.unwrap_or(time_s) / elapsed_s,
            threads,
            wall_s,
        }),
        calls,
        peers: Some(Peers { messages: messages.collect(), accesses: Vec::new() }),
        phases: phases.described(&[]),
        resources: Some(resources(program, rank, of_rank)),
        waiting: waiting::described(),
        message_times: streams::described(program.size()),
        coverage: Coverage { objects: waiting::left_out(), ..Coverage::default() },
        clock: Some(clock::described()),
        overhead: Overhead {
            mpit_init_s: program.mpit_s,
            wrappers_s,
            share: wrappers_s / elapsed_s,
            running_share: wrappers_s / elapsed_s,
            budget: Some(BUDGET),
            ..Overhead::default()
        },
        ..RankProfile::default()
    }
}

fn resources(program: &Program, rank: u32, of_rank: &OfRank) -> Resources {
    let host = &program.hosts[program.ranks[rank as usize].host];
    let last = clock::whole(host.processors).saturating_sub(1);
    Resources {
        processors: format!("0-{last}"),
        user_s: of_rank.processor_s,
        processor_wait_s: Some(of_rank.processor_wait_s),
        ..Resources::default()
    }
}

/// Whether calls of the function are counted with the bytes that they move.
pub(super) fn counts_bytes(function: Function) -> bool {
    row(function).bytes
}
