//! Receives that are called while a variable, such as the length of the queue of unexpected messages, is above
//! a threshold: how many, and where in the program? Modelled on the example tool of the standard (MPI 4.1,
//! 15.3.7).
//!
//! Every receive of the program passes through here, so one that is not a hit costs a reading of the variable
//! and little else. Hits are counted by return address; stacks are recorded as the budget allows.

mod arguments;
mod sites;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use gyan_results::Watch;
use wildmatch::WildMatch;

use crate::calls::addresses;
use crate::calls::budget::{self, budget};
use crate::calls::containment;
use crate::calls::stacks;
use crate::calls::thread;
use crate::config::WatchFor;
use crate::mpi::functions::{Function, Posted, Receives};
use crate::mpi::handles::Arguments;
use crate::mpi::tool::published;
use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;
use crate::sys::locks::{held, lock_soon};
use arguments::{Receive, Then};
use sites::{Call, WatchedHit, WatchedSites, Worst};

/// The name of the queue of unexpected messages whatever the library calls it.
pub(crate) const UNEXPECTED_QUEUE: &str = "umq";
/// What it stands for: the first of these names that the library has.
const UNEXPECTED: &[&str] = &[
    // MPICH and Intel MPI: all messages of the process.
    "unexpected_recvq_length",
    // Open MPI, pml ob1: those of a communicator, by rank.
    "pml_ob1_unexpected_msgq_length",
    // Open MPI's software counters: all messages of the process.
    "*SPC_UNEXPECTED_IN_QUEUE",
    // The example in the standard.
    "MPI_T_UMQ_LENGTH",
];

/// One receive in this many is measured.
const MEASURED_EVERY: u64 = 64;

/// Entry points read it directly.
pub(crate) use crate::calls::gate::WATCHES_RECEIVES as ON;

static THRESHOLD: Counter = Counter::new(0);
static RECEIVES: Counter = Counter::new(0);
static NOT_COMPARED: Counter = Counter::new(0);
static MAX: Counter = Counter::new(0);
/// Ticks taken by a comparison that is not a hit, and by recording a stack.
static LOOK: Gauge = Gauge::new(0.0);
static STACK: Gauge = Gauge::new(0.0);
/// When a stack was last recorded.
static LAST_STACK: Counter = Counter::new(0);
/// Held while a hit is recorded, but never while MPI is called.
static SITES: Mutex<Option<WatchedSites>> = Mutex::new(None);

/// The names of the variables that the user may mean.
pub(crate) fn candidates(wanted: &WatchFor) -> Vec<WildMatch> {
    match wanted.variable.as_str() {
        UNEXPECTED_QUEUE => UNEXPECTED.iter().map(|name| WildMatch::new(name)).collect(),
        name => vec![WildMatch::new(name)],
    }
}

/// Starts watching the variable that the library calls `variable`.
pub(crate) fn begin(variable: &str, wanted: &WatchFor) {
    addresses::prepare();
    with_sites(|sites| _ = sites.get_or_insert_with(|| WatchedSites::new(variable)));
    arguments::prepare();
    THRESHOLD.set(wanted.threshold);
    ON.store(true, Ordering::Relaxed);
}

/// Stops watching.
pub(crate) fn end() {
    ON.store(false, Ordering::Relaxed);
}

#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn with_sites<T>(work: impl FnOnce(&mut Option<WatchedSites>) -> T) -> T {
    work(&mut held(&SITES))
}

/// A hit: what remains to be recorded after the receive has returned.
pub(crate) struct Watched {
    noted: Option<WatchedHit>,
    then: Then,
}

/// The program is about to call a function that deals with receives, while these are watched. `alone`: no other
/// thread calls MPI.
#[inline]
pub(crate) fn before(
    alone: bool,
    function: Function,
    receives: Receives,
    arguments: Arguments,
) -> Option<Watched> {
    match receives {
        // A receive that is not a hit only needs the communicator.
        Receives::Posts(posted) => {
            let comm = arguments::comm(arguments.at(posted.comm));
            let value = compare(alone, comm)?;
            contain(|| Some(posts(function, arguments, posted, comm, value)))
        }
        _ => contain(|| other(alone, function, receives, arguments)),
    }
}

fn contain<T>(piece: impl FnOnce() -> Option<T>) -> Option<T> {
    containment::contain("watching receives", piece).flatten()
}

/// Compares the variable for one receive. Returns its value if that is a hit.
#[inline]
fn compare(alone: bool, comm: Option<usize>) -> Option<u64> {
    let number = RECEIVES.get();
    if number % MEASURED_EVERY == MEASURED_EVERY / 2 {
        return compare_measured(alone, comm);
    }
    compare_only(alone, comm)
}

#[inline]
fn compare_only(alone: bool, comm: Option<usize>) -> Option<u64> {
    let Some(value) = published::total(comm) else {
        NOT_COMPARED.add_shared(1);
        return None;
    };
    if alone {
        RECEIVES.add(1);
    } else {
        RECEIVES.add_shared(1);
    }
    if value > MAX.get() {
        MAX.raise(value);
    }
    (value > THRESHOLD.get()).then_some(value)
}

#[cold]
#[inline(never)]
fn compare_measured(alone: bool, comm: Option<usize>) -> Option<u64> {
    let begun = clock::now();
    let value = compare_only(alone, comm);
    let ticks = clock::now().saturating_sub(begun);
    LOOK.set(budget::learned(LOOK.get(), ticks as f64));
    budget().spent(clock::whole(LOOK.get() * MEASURED_EVERY as f64));
    value
}

/// A receive that is a hit.
#[cold]
#[inline(never)]
fn posts(
    function: Function,
    arguments: Arguments,
    posted: Posted,
    comm: Option<usize>,
    value: u64,
) -> Watched {
    let (source, tag) = arguments::source_and_tag(arguments, posted);
    let noted = hit(function, Receive { comm, source, tag }, value);
    let then = match posted.status {
        Some(status) if source.is_none() || tag.is_none() => Then::Status(status),
        _ => Then::Nothing,
    };
    Watched { noted, then }
}

/// Calls that are not a receive themselves, or are more than one.
#[inline(never)]
fn other(
    alone: bool,
    function: Function,
    receives: Receives,
    arguments: Arguments,
) -> Option<Watched> {
    let mut show = |receive: Receive| {
        if let Some(value) = compare(alone, receive.comm) {
            hit(function, receive, value);
        }
    };
    let then = arguments::other(receives, arguments, &mut show)?;
    Some(Watched { noted: None, then })
}

/// It has returned.
#[inline(always)]
pub(crate) fn after(watched: Option<Watched>, arguments: Arguments, succeeded: bool) {
    if let Some(watched) = watched.filter(|_| succeeded) {
        contain(|| {
            happened(watched, arguments);
            Some(())
        });
    }
}

#[cold]
#[inline(never)]
fn happened(Watched { noted, then }: Watched, arguments: Arguments) {
    if let (Some((source, tag)), Some(noted)) = (then.happened(arguments), noted) {
        with_sites(|sites| {
            if let Some(sites) = sites {
                sites.received(noted, source, tag);
            }
        });
    }
}

#[cold]
#[inline(never)]
fn hit(function: Function, receive: Receive, value: u64) -> Option<WatchedHit> {
    let begun = clock::now();
    // The return address recorded by its entry point.
    let address = stacks::place_of(thread::here().caller.get());
    let mut looked = false;
    let may_look = || {
        looked = budget().is_unlimited() || budget().allows(begun, LAST_STACK.get(), STACK.get());
        looked
    };
    let call = Call { function, address };
    let noted = with_sites(|sites| sites.as_mut()?.hit(call, value, may_look));
    if let Some(noted) = noted {
        let Receive { comm, source, tag } = receive;
        let longest_from = published::largest(comm);
        let worst = Worst { value, source, tag, comm, longest_from, name: None };
        with_sites(|sites| sites.as_mut().map(|sites| sites.is_worst(noted, worst)));
    }
    let ticks = clock::now().saturating_sub(begun);
    if looked {
        STACK.set(budget::learned(STACK.get(), ticks as f64));
        LAST_STACK.set(begun);
    }
    budget().spent(ticks);
    noted
}

/// Whether a recorded hit was on this communicator, so that its name is needed.
pub(crate) fn mentions(comm: usize) -> bool {
    with_sites(|sites| sites.as_ref().is_some_and(|sites| sites.mention(comm)))
}

/// A communicator of this name is about to be freed.
pub(crate) fn comm_goes(comm: usize, name: &str) {
    with_sites(|sites| {
        if let Some(sites) = sites {
            sites.freed(comm, name);
        }
    });
}

/// In the form of the profile; none when nothing was watched. `names`: of the communicators that are alive.
pub(crate) fn described(names: &dyn Fn(usize) -> Option<String>) -> Option<Watch> {
    let watch = Watch {
        threshold: THRESHOLD.get(),
        receives: RECEIVES.get(),
        not_compared: NOT_COMPARED.get(),
        max: MAX.get(),
        ..Watch::default()
    };
    Some(lock_soon(&SITES)?.as_ref()?.described(watch, names))
}
