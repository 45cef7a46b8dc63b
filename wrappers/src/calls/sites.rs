//! Where in the program do the timed calls come from? By function and place: how many were timed, how many
//! others they stand for, how long they took, and for some of them the stack.
//!
//! A call that is not timed leaves nothing here. Each timed call is weighted by the inverse of its probability
//! (`estimate`). The known totals of a function are divided between its sites: each gets what was timed there,
//! and a share of the rest according to the weights of its timed calls. So sites add up to their function.
//!
//! A table for each ledger, made with it, so that nothing is locked; a new site gets memory for its stacks.

mod shares;

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use crate::calls::addresses::{self, Map};
use crate::calls::budget::{self, budget};
use crate::calls::ledger::{self, Ledger};
use crate::calls::stacks::{self, Stacks};
use crate::mpi::functions::Function;
use crate::sys::alloc;
use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;
use crate::sys::later::Later;

pub(crate) use shares::{Places, described};

/// Sites that a thread keeps apart, and as many of a profile.
const SITES_AT_MOST: usize = 256;
/// Functions whose further sites are merged into one.
const ELSEWHERE_AT_MOST: usize = 64;
const ROOM: usize = SITES_AT_MOST + ELSEWHERE_AT_MOST;
/// At most two thirds of them are in use.
const SLOTS: usize = 512;
/// Stands for all places that are not kept separately.
const ELSEWHERE: usize = 0;

static ON: AtomicBool = AtomicBool::new(false);
/// When a stack may next be recorded, and how many ticks that takes.
static STACK_DUE: Counter = Counter::new(0);
static STACK: Gauge = Gauge::new(0.0);

pub(crate) fn begin() {
    addresses::prepare();
    resume(true);
}

/// Sets whether sites are recorded from now on.
pub(crate) fn resume(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// The program may unload an object. Returns what [`unloaded`] needs, if any site is in a library, or `always`.
pub(crate) fn before_unloading(always: bool) -> Option<Map> {
    let mut any = always;
    ledger::each_at_once(|ledger| {
        let sites = ledger.sites.get();
        any |= sites.is_some_and(|sites| sites.known().any(|site| site.foreign.get() == 1));
    });
    any.then(Map::now)
}

/// Addresses in objects that were unloaded meanwhile are replaced: another may be loaded there. Returns those objects.
pub(crate) fn unloaded(before: Map) -> Map {
    let gone = before.only_gone();
    if !gone.is_empty() {
        ledger::each_at_once(|ledger| {
            for site in ledger.sites.get().iter().flat_map(|sites| sites.known()) {
                site.replace_addresses(&|address| gone.lasting(address));
            }
        });
    }
    gone
}

/// The sites of one ledger.
pub(crate) struct Sites {
    /// The index in `all`, plus 1, of the site whose hash belongs here; 0 for none.
    slots: Box<[AtomicU16]>,
    all: Box<[Site]>,
    len: AtomicUsize,
    /// How many calls were timed since a stack was last recorded that was not the first of its site.
    since: Counter,
    /// How many more are timed before a stack is recorded; 0 when none was drawn.
    until: Counter,
}

#[derive(Default)]
struct Site {
    function: Counter,
    address: Counter,
    /// 1 for a place in a library, which the program may reach by many paths.
    foreign: Counter,
    sum: Sums,
    max: Gauge,
    stacks: Later<Stacks>,
}

/// Data on the timed calls of a site.
#[derive(Default)]
struct Sums {
    timed: Counter,
    /// Ticks of the timed calls.
    ticks: Gauge,
    /// How many untimed calls they stand for, and the ticks of those.
    others: Gauge,
    other_ticks: Gauge,
    /// The contributions of the calls to the variances of both and to their covariance, and the sum of the
    /// squares of the second.
    others_variance: Gauge,
    variance: Gauge,
    covariance: Gauge,
    squares: Gauge,
    bytes: Counter,
    other_bytes: Gauge,
}

/// A timed call that was recorded.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    site: &'static Site,
    others: f64,
    /// The stack was recorded, and charged to the budget.
    pub(crate) looked: bool,
}

impl Noted {
    /// The call handed this many bytes to MPI.
    pub(crate) fn moved(self, bytes: u64) {
        self.site.sum.bytes.add(bytes);
        self.site.sum.other_bytes.add(self.others * bytes as f64);
    }
}

/// A call of `function` was timed. It returns to `caller` (0 if its entry point does not know), took `ticks`
/// and stands for `weight` calls.
pub(crate) fn note(
    ledger: &'static Ledger,
    function: Function,
    caller: usize,
    (ticks, weight): (f64, f64),
) -> Option<Noted> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    let sites = match ledger.sites.get() {
        None if alloc::is_short() => return None,
        None => ledger.sites.get_or_make(Sites::new),
        Some(sites) => sites,
    };
    let site = sites.site(function, caller)?;
    let is_first = site.sum.timed.get() == 0;
    let ticks = ticks.max(0.0);
    site.sum.take(ticks, weight);
    site.max.set(site.max.get().max(ticks));
    sites.since.add(1);
    let all = budget().is_unlimited() && site.foreign.get() == 1;
    let stands_for = if is_first || all { Some(1) } else { sites.draw(ledger) };
    if let Some(calls) = stands_for {
        let weight = weight * calls as f64;
        look(site, weight, weight * ticks);
    }
    Some(Noted { site, others: weight - 1.0, looked: stands_for.is_some() })
}

/// Records the stack of a call of this site.
#[cold]
#[inline(never)]
fn look(site: &Site, calls: f64, ticks: f64) {
    let begun = clock::now();
    let stacks = match site.stacks.get() {
        None if alloc::is_short() => return,
        None => site.stacks.get_or_make(Stacks::new),
        Some(stacks) => stacks,
    };
    stacks.look(calls, ticks);
    let ended = clock::now();
    let spent = ended.saturating_sub(begun);
    STACK.set(budget::learned(STACK.get(), spent as f64));
    STACK_DUE.set(ended.saturating_add(clock::whole(budget().between_stacks(STACK.get()))));
    budget().spent(spent);
}

impl Sites {
    fn new() -> Sites {
        Sites {
            slots: (0..SLOTS).map(|_| AtomicU16::new(0)).collect(),
            all: (0..ROOM).map(|_| Site::default()).collect(),
            len: AtomicUsize::new(0),
            since: Counter::new(0),
            until: Counter::new(0),
        }
    }

    /// The site of a call that returns to `caller`; none when the table is full.
    fn site(&'static self, function: Function, caller: usize) -> Option<&'static Site> {
        // A known address is a place in the program.
        if caller != ELSEWHERE
            && let Ok(site) = self.find(function, caller)
        {
            return Some(site);
        }
        let address = stacks::place_of(caller);
        let is_full = || self.len.load(Ordering::Relaxed) >= SITES_AT_MOST;
        let slot = match self.find(function, address) {
            Ok(site) => return Some(site),
            Err(slot) if let Some(site) = self.comes_back(function, address, slot) => {
                return Some(site);
            }
            Err(_) if is_full() && address != ELSEWHERE => {
                return self.site_elsewhere(function);
            }
            Err(slot) => slot,
        };
        self.make(slot?, function, address)
    }

    /// The site, if its object was unloaded and is loaded again.
    fn comes_back(
        &'static self,
        function: Function,
        address: usize,
        slot: Option<&AtomicU16>,
    ) -> Option<&'static Site> {
        if addresses::none_is_gone() {
            return None;
        }
        let now = Map::now();
        let lasting = now.lasting(address) as u64;
        let is_it =
            |site: &Site| site.address.get() == lasting && site.function.get() == function.0 as u64;
        let at = self.known().position(is_it)?;
        let site = self.all.get(at)?;
        site.replace_addresses(&|address| now.present(address));
        // It has its slot still if it is where it was.
        if self.find(function, address).is_err() {
            slot?.store(u16::try_from(at + 1).ok()?, Ordering::Relaxed);
        }
        Some(site)
    }

    fn site_elsewhere(&'static self, function: Function) -> Option<&'static Site> {
        match self.find(function, ELSEWHERE) {
            Ok(site) => Some(site),
            Err(slot) => self.make(slot?, function, ELSEWHERE),
        }
    }

    /// The site, or a free slot for it.
    fn find(
        &'static self,
        function: Function,
        address: usize,
    ) -> Result<&'static Site, Option<&'static AtomicU16>> {
        // Addresses of calls differ in their middle bits most; Fibonacci hashing takes the upper ones.
        let key = (address as u64) ^ (function.0 as u64) << 48;
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55;
        let start = usize::try_from(hash).unwrap_or(0);
        for step in 0..SLOTS {
            let Some(slot) = self.slots.get((start + step) % SLOTS) else { return Err(None) };
            let Some(at) = usize::from(slot.load(Ordering::Relaxed)).checked_sub(1) else {
                return Err(Some(slot));
            };
            if let Some(site) = self.all.get(at)
                && site.address.get() == address as u64
                && site.function.get() == function.0 as u64
            {
                return Ok(site);
            }
        }
        Err(None)
    }

    fn make(
        &'static self,
        slot: &AtomicU16,
        function: Function,
        address: usize,
    ) -> Option<&'static Site> {
        let at = self.len.load(Ordering::Relaxed);
        let site = self.all.get(at)?;
        site.function.set(function.0 as u64);
        site.address.set(address as u64);
        site.foreign.set(u64::from(!addresses::is_of_program(address)));
        slot.store(u16::try_from(at + 1).ok()?, Ordering::Relaxed);
        // Pairs with the Acquire in `known`.
        self.len.store(at + 1, Ordering::Release);
        Some(site)
    }

    fn known(&self) -> impl Iterator<Item = &Site> {
        self.all.iter().take(self.len.load(Ordering::Acquire))
    }

    /// Whether to record the stack of the call just timed; returns how many timed calls it stands for. When the
    /// next look is due, one of the following calls is drawn, out of as many as there were since the last look:
    /// the first one after the due time would too often be one after a long gap.
    fn draw(&self, ledger: &Ledger) -> Option<u64> {
        let since = self.since.get();
        let until = match self.until.get() {
            0 if clock::now() < STACK_DUE.get() => return None,
            0 => clock::whole(ledger.random() * since as f64),
            until => until - 1,
        };
        self.until.set(until);
        (until == 0).then(|| {
            self.since.set(0);
            since
        })
    }
}

impl Site {
    fn replace_addresses(&self, by: &impl Fn(usize) -> usize) {
        self.address.set(by(usize::try_from(self.address.get()).unwrap_or(0)) as u64);
        if let Some(stacks) = self.stacks.get() {
            stacks.replace(by);
        }
    }
}

impl Sums {
    fn take(&self, ticks: f64, weight: f64) {
        self.timed.add(1);
        self.ticks.add(ticks);
        if weight > 1.0 {
            let others = weight - 1.0;
            self.others.add(others);
            self.other_ticks.add(others * ticks);
            let scale = weight * others;
            let variance = scale * ticks * ticks;
            self.others_variance.add(scale);
            self.variance.add(variance);
            self.covariance.add(scale * ticks);
            self.squares.add(variance * variance);
        }
    }
}

#[cfg(test)]
impl Sites {
    pub(crate) fn leaked() -> &'static Sites {
        Box::leak(Box::new(Sites::new()))
    }

    /// Like [`note`], without recording the stack.
    pub(crate) fn take(&'static self, call: (Function, usize), ticks: f64, weight: f64) {
        let site = self.site(call.0, call.1).unwrap();
        site.sum.take(ticks, weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::point_to_point::{MPI_Isend, MPI_Recv};

    #[test]
    fn sites_beyond_the_limit_are_one_for_each_function() {
        let sites = Sites::leaked();
        for address in 1..=SITES_AT_MOST + 50 {
            sites.take((MPI_Recv, address), 10.0, 1.0);
            sites.take((MPI_Isend, address), 10.0, 1.0);
        }
        // The same places once more.
        for address in 1..=SITES_AT_MOST + 50 {
            sites.take((MPI_Recv, address), 10.0, 1.0);
        }
        let of = |function: Function, is_elsewhere: bool| {
            let sites = sites.known().filter(move |site| {
                site.function.get() == function.0 as u64
                    && (site.address.get() == ELSEWHERE as u64) == is_elsewhere
            });
            sites.map(|site| site.sum.timed.get()).collect::<Vec<_>>()
        };
        assert_eq!(of(MPI_Recv, false), [2; SITES_AT_MOST / 2]);
        let elsewhere = (SITES_AT_MOST / 2 + 50) as u64;
        assert_eq!(of(MPI_Recv, true), [2 * elsewhere]);
        assert_eq!(of(MPI_Isend, true), [elsewhere]);
    }
}
