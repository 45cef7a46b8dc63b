//! How is the time of OpenMP threads spent? What the runtime's callbacks tell of parallel regions: work, barriers, MPI.
//!
//! Every entry of a region is counted, and as many are timed as the budget allows. A timed entry also stands for those before it
//! that were not. Each thread writes into a slot of its own; the thread that began the region reads the slots of its team after
//! the barrier at the end, by which the runtime orders both. Only the outermost regions count: what runs in a team inside of one
//! is work of the thread that began it. A thread that begins outermost regions has one team, which it uses for all of them.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gyan_results::{OpenMp, OpenMpRegion, sort_by};

use crate::calls::addresses::Map;
use crate::calls::budget::budget;
use crate::calls::sites::Places;
use crate::sys::alloc;
use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;
use crate::sys::later::Later;
use crate::sys::resources::openmp_runtimes;
use crate::sys::tls::thread_cells;

/// Regions that are kept apart; the last row is for all others.
const REGIONS_AT_MOST: usize = 64;
const ROWS: usize = REGIONS_AT_MOST + 1;
/// Threads that begin outermost regions and are timed.
const TEAMS_AT_MOST: usize = 64;
/// Threads of a team that are timed, and for how many at once there is memory.
const SLOTS_AT_MOST: usize = 1024;
const CHUNK: usize = 64;
/// The first entries of each region are timed.
const TIMED_AT_FIRST: u64 = 16;
/// Timing an entry costs each thread as much as so many readings of the clock: four, and what is done with them.
const READINGS: f64 = 8.0;
/// A region that is not outermost, or that began before MPI did.
const INNER: u64 = u64::MAX;

/// Whether regions count: from the start of MPI to its end.
static ON: AtomicBool = AtomicBool::new(false);
/// The runtime, once it has taken the callbacks.
static RUNTIME: OnceLock<String> = OnceLock::new();
static REGIONS: [Region; ROWS] = [const { Region::new() }; ROWS];
static TEAMS: [Later<Team>; TEAMS_AT_MOST] = [const { Later::new() }; TEAMS_AT_MOST];
/// How many threads have asked for a team.
static TEAMS_ASKED: Counter = Counter::new(0);
/// Threads of the largest team.
static THREADS: Counter = Counter::new(1);
/// Ticks in MPI that the first thread did not spend outside of all regions.
static NOT_SERIAL: Counter = Counter::new(0);

thread_cells! {
    "gyan_openmp"
    struct OpenMpThread {
        /// Where its part in an outermost region is kept.
        slot: Cell<Option<&'static ThreadPart>>,
        /// Whether that is timed.
        is_timed: Cell<bool>,
        /// In how many inner regions it is.
        inner: Cell<u32>,
        /// The number of its team, plus 1; 0 before it has one.
        team: Cell<u64>,
        /// It initialised MPI.
        is_first: Cell<bool>,
    }
}

/// The parallel regions that begin at one address.
struct Region {
    address: Counter,
    entries: Counter,
    timed: Counter,
    /// How many entries come before the next one that is timed, and how many came since the last one.
    left: Counter,
    since: Counter,
    /// For how many entries those that were timed stand.
    covered: Counter,
    threads: Counter,
    /// Ticks, each multiplied by the entries that its own stands for. Work may be negative where time in MPI is an estimate.
    time: Counter,
    /// Of `time`, where the first thread began the region.
    of_first: Counter,
    work: Counter,
    most_work: Counter,
    waited: Counter,
    in_mpi: Counter,
    /// Ticks of the timed entries themselves, their squares, and by how much the variance of one is multiplied in `time`.
    ticks: Gauge,
    squares: Gauge,
    variances: Gauge,
    random: Counter,
}

/// The threads of the region that one thread has begun.
struct Team {
    region: Counter,
    /// How many entries this one stands for; 0 when it is not timed.
    weight: Counter,
    begun: Counter,
    size: Counter,
    slots: [Later<[ThreadPart; CHUNK]>; SLOTS_AT_MOST / CHUNK],
}

/// The part of one thread in a region. On a cache line of its own.
#[repr(align(64))]
struct ThreadPart {
    begun: Counter,
    /// Ticks at barriers, and since when it is at one; 0 when it is at none.
    waited: Counter,
    waits_since: Counter,
    /// Whether it does a task while it is at a barrier.
    is_interrupted: AtomicBool,
    in_mpi: Counter,
}

impl Region {
    const fn new() -> Region {
        Region {
            address: Counter::new(0),
            entries: Counter::new(0),
            timed: Counter::new(0),
            left: Counter::new(0),
            since: Counter::new(0),
            covered: Counter::new(0),
            threads: Counter::new(0),
            time: Counter::new(0),
            of_first: Counter::new(0),
            work: Counter::new(0),
            most_work: Counter::new(0),
            waited: Counter::new(0),
            in_mpi: Counter::new(0),
            ticks: Gauge::new(0.0),
            squares: Gauge::new(0.0),
            variances: Gauge::new(0.0),
            random: Counter::new(0),
        }
    }

    /// Counts an entry. Returns how many it stands for; 0 when it is not timed.
    fn enter(&self) -> u64 {
        self.entries.add_shared(1);
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            self.since.add(1);
            return 0;
        }
        let since = self.since.get();
        self.since.set(0);
        since + 1
    }

    /// An entry that stands for `weight` took `ticks`.
    fn add(&self, weight: u64, ticks: u64, threads: u64) {
        self.threads.raise(threads);
        self.timed.add_shared(1);
        self.covered.add_shared(weight);
        self.time.add_shared(weight.wrapping_mul(ticks));
        if here().is_first.get() {
            self.of_first.add_shared(weight.wrapping_mul(ticks));
        }
        let (ticks, others) = (ticks as f64, weight.saturating_sub(1) as f64);
        self.ticks.add(ticks);
        self.squares.add(ticks * ticks);
        self.variances.add((others + 1.0) * others);
        self.draw();
    }

    /// Chooses the next entry to time: what that costs is a part of the budget of the time of those before it.
    fn draw(&self) {
        let timed = self.timed.get();
        let share = budget().for_regions();
        if timed < TIMED_AT_FIRST || share.is_infinite() {
            return;
        }
        let mean = self.ticks.get() / timed as f64;
        let others = READINGS * clock::reading() / (share * mean).max(1e-9) - 1.0;
        if others > 0.0 {
            let seed = match self.random.get() {
                0 => clock::now(),
                seed => seed,
            };
            let mut random = fastrand::Rng::with_seed(seed);
            self.left.set(clock::whole((2.0 * others * random.f64()).round()));
            self.random.set(random.get_seed());
        }
    }

    /// Seconds of all entries, of these ticks of those that are covered: the others are like them.
    fn seconds(&self, ticks: &Counter) -> f64 {
        let scale = self.entries.get() as f64 / self.covered.get().max(1) as f64;
        clock::seconds(ticks.get().cast_signed() as f64 * scale)
    }

    /// The region as a profile has it, provided that an entry was timed.
    fn described(&self, place: Option<usize>) -> OpenMpRegion {
        let [entries, timed, covered] =
            [&self.entries, &self.timed, &self.covered].map(Counter::get);
        let seconds = |ticks| self.seconds(ticks);
        OpenMpRegion {
            place,
            entries,
            timed,
            threads: self.threads.get(),
            time_s: seconds(&self.time),
            time_error_s: self.error(entries.saturating_sub(covered)).map(clock::seconds),
            work_s: seconds(&self.work).max(0.0),
            most_work_s: seconds(&self.most_work).max(0.0),
            barrier_s: seconds(&self.waited),
            in_mpi_s: seconds(&self.in_mpi),
        }
    }

    /// The standard error of the ticks of all entries, of which `rest` came after the last that was timed.
    fn error(&self, rest: u64) -> Option<f64> {
        let (number, rest) = (self.timed.get() as f64, rest as f64);
        let weights = self.variances.get() + rest + rest * rest / number;
        if weights == 0.0 {
            return Some(0.0);
        }
        let sum = self.ticks.get();
        let variance = (self.squares.get() - sum * sum / number) / (number - 1.0);
        (number > 1.0).then(|| (variance.max(0.0) * weights).sqrt())
    }
}

/// The row of the regions that begin at an address.
fn region_at(address: u64) -> usize {
    // Fibonacci hashing takes the upper bits.
    let start = usize::try_from(address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58).unwrap_or(0);
    let rows = (0..REGIONS_AT_MOST).map(|step| (start + step) % REGIONS_AT_MOST);
    let is_of = |row: &usize| {
        REGIONS.get(*row).is_some_and(|region| match region.address.get() {
            0 => region.address.claim(address),
            known => known == address,
        })
    };
    rows.into_iter().find(is_of).unwrap_or(REGIONS_AT_MOST)
}

impl Team {
    fn new() -> Team {
        Team {
            region: Counter::new(0),
            weight: Counter::new(0),
            begun: Counter::new(0),
            size: Counter::new(1),
            slots: [const { Later::new() }; SLOTS_AT_MOST / CHUNK],
        }
    }

    /// The team with this number, plus 1.
    fn numbered(number: u64) -> Option<&'static Team> {
        TEAMS.get(usize::try_from(number).ok()?.checked_sub(1)?)?.get()
    }

    /// The number, plus 1, of the team of this thread; none when there are too many.
    fn of_thread() -> Option<u64> {
        if here().team.get() == 0 {
            here().team.set(TEAMS_ASKED.next_shared() + 1);
            let team = TEAMS.get(usize::try_from(here().team.get()).ok()?.checked_sub(1)?)?;
            if !alloc::is_short() {
                team.get_or_make(Team::new);
            }
        }
        Some(here().team.get()).filter(|number| *number <= TEAMS_AT_MOST as u64)
    }

    fn slot(&self, index: usize) -> Option<&ThreadPart> {
        let slots = self.slots.get(index / CHUNK)?;
        let slots = if alloc::is_short() {
            slots.get()?
        } else {
            slots.get_or_make(|| [const { ThreadPart::new() }; CHUNK])
        };
        slots.get(index % CHUNK)
    }

    /// The region has ended.
    fn ends(&self, now: u64) {
        let (weight, size) = (self.weight.get(), self.size.get());
        let row = usize::try_from(self.region.get()).unwrap_or(REGIONS_AT_MOST);
        let Some(region) = REGIONS.get(row).filter(|_| weight > 0) else { return };
        let (mut work, mut most_work, mut waited, mut in_mpi) = (0u64, 0, 0u64, 0u64);
        let slots = (0..usize::try_from(size).unwrap_or(0)).map_while(|index| self.slot(index));
        for slot in slots {
            let waits = slot.waited_until(now);
            let own = now.wrapping_sub(slot.begun.get());
            let own = own.wrapping_sub(waits).wrapping_sub(slot.in_mpi.get());
            work = work.wrapping_add(own);
            most_work = most_work.max(own.cast_signed());
            waited = waited.wrapping_add(waits);
            in_mpi = in_mpi.wrapping_add(slot.in_mpi.get());
        }
        let sums = [
            (&region.work, work),
            (&region.most_work, most_work.cast_unsigned()),
            (&region.waited, waited),
            (&region.in_mpi, in_mpi),
        ];
        for (sum, ticks) in sums {
            sum.add_shared(weight.wrapping_mul(ticks));
        }
        region.add(weight, now.saturating_sub(self.begun.get()), size);
        budget().spent(clock::whole(size as f64 * READINGS * clock::reading()));
    }
}

impl ThreadPart {
    const fn new() -> ThreadPart {
        ThreadPart {
            begun: Counter::new(0),
            waited: Counter::new(0),
            waits_since: Counter::new(0),
            is_interrupted: AtomicBool::new(false),
            in_mpi: Counter::new(0),
        }
    }

    fn begins(&self, now: u64) {
        self.begun.set(now);
        self.waited.set(0);
        self.waits_since.set(0);
        self.is_interrupted.store(false, Ordering::Relaxed);
        self.in_mpi.set(0);
    }

    fn waited_until(&self, now: u64) -> u64 {
        let current = match self.waits_since.get() {
            0 => 0,
            since => now.saturating_sub(since),
        };
        self.waited.get().wrapping_add(current)
    }

    fn stops_waiting(&self) {
        self.waited.set(self.waited_until(clock::now()));
        self.waits_since.set(0);
    }
}

/// A runtime of this name has taken the callbacks.
pub(crate) fn is_told_by(runtime: &str) {
    _ = RUNTIME.set(runtime.to_owned());
}

/// MPI has begun, in a call of this thread: from now on regions count.
pub(crate) fn begin(on: bool) {
    here().is_first.set(true);
    ON.store(on, Ordering::Relaxed);
}

/// MPI ends: regions that begin from now on do not count.
pub(crate) fn end() {
    ON.store(false, Ordering::Relaxed);
}

/// This thread begins the region at `address`. Returns what stands for the region.
pub(crate) fn region_begins(address: usize) -> u64 {
    let here = here();
    let is_outermost = here.slot.get().is_none() && here.inner.get() == 0;
    if !is_outermost || !ON.load(Ordering::Relaxed) {
        return INNER;
    }
    let Some(number) = Team::of_thread() else { return INNER };
    let Some(team) = Team::numbered(number) else { return INNER };
    let row = region_at(address as u64);
    let weight = REGIONS.get(row).map_or(0, Region::enter);
    team.region.set(row as u64);
    team.weight.set(weight);
    if weight > 0 {
        team.begun.set(clock::now());
    }
    number
}

/// This thread ends a region.
pub(crate) fn region_ends(region: u64) {
    if let Some(team) = Team::numbered(region) {
        here().slot.set(None);
        if team.weight.get() > 0 {
            team.ends(clock::now());
        }
    }
}

/// This thread, number `index` of `size`, begins its part of a region. Returns what stands for its part.
pub(crate) fn part_begins(region: u64, size: u32, index: u32) -> u64 {
    let here = here();
    let Some(team) = Team::numbered(region) else {
        if region == INNER {
            here.inner.set(here.inner.get() + 1);
        }
        return region;
    };
    if index == 0 {
        team.size.set(size.into());
        THREADS.raise(size.into());
    }
    let slot = usize::try_from(index).ok().and_then(|index| team.slot(index));
    let is_timed = team.weight.get() > 0;
    here.slot.set(slot);
    here.is_timed.set(is_timed);
    if let Some(slot) = slot.filter(|_| is_timed) {
        slot.begins(clock::now());
    }
    region
}

/// This thread ends its part of a region. Workers may do so long after the region has ended.
pub(crate) fn part_ends(part: u64) {
    let here = here();
    match part {
        0 => {}
        INNER => here.inner.set(here.inner.get().saturating_sub(1)),
        _ => here.slot.set(None),
    }
}

/// Its slot, if `region` is the outermost one, and is timed.
#[inline]
fn timed_slot(region: u64) -> Option<&'static ThreadPart> {
    let here = here();
    if region == 0 || region == INNER || !here.is_timed.get() { None } else { here.slot.get() }
}

/// This thread comes to a barrier of a region.
pub(crate) fn barrier_begins(region: u64) {
    if let Some(slot) = timed_slot(region) {
        slot.waits_since.set(clock::now());
    }
}

/// This thread leaves a barrier of a region, which is not known where that has ended.
pub(crate) fn barrier_ends(region: u64) {
    if let Some(slot) = timed_slot(region) {
        slot.stops_waiting();
    }
}

/// This thread goes on with a task, `is_explicit` or its part of a region: what it does at a barrier is work.
pub(crate) fn task_continues(is_explicit: bool) {
    let Some(slot) = here().slot.get().filter(|_| here().is_timed.get()) else { return };
    if is_explicit && slot.waits_since.get() != 0 {
        slot.stops_waiting();
        slot.is_interrupted.store(true, Ordering::Relaxed);
    } else if !is_explicit && slot.is_interrupted.load(Ordering::Relaxed) {
        slot.is_interrupted.store(false, Ordering::Relaxed);
        slot.waits_since.set(clock::now());
    }
}

/// A call of MPI on this thread took `ticks`, and stands for `weight` calls.
#[inline]
pub(crate) fn in_mpi(ticks: f64, weight: f64) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let slot = here().slot.get();
    if slot.is_none() && here().is_first.get() {
        return;
    }
    let ticks = clock::whole(ticks.max(0.0) * weight);
    NOT_SERIAL.add_shared(ticks);
    if let Some(slot) = slot {
        slot.in_mpi.add(ticks);
    }
}

/// What the runtime told, of a run of `elapsed_s` with `in_mpi` ticks in MPI; none when no runtime tells anything.
pub(crate) fn described(elapsed_s: f64, in_mpi: f64) -> Option<OpenMp> {
    let runtime = RUNTIME.get()?.clone();
    let mut places = Places::new(Map::now());
    let timed = REGIONS.iter().filter(|region| region.timed.get() > 0);
    let mut regions: Vec<OpenMpRegion> = timed
        .map(|region| {
            let address = usize::try_from(region.address.get()).ok().filter(|at| *at != 0);
            region.described(address.map(|address| places.at(address)))
        })
        .collect();
    sort_by(&mut regions, |one, other| other.time_s.total_cmp(&one.time_s));
    let in_regions_s: f64 = REGIONS.iter().map(|region| region.seconds(&region.of_first)).sum();
    let serial_in_mpi_s = clock::seconds((in_mpi - NOT_SERIAL.get() as f64).max(0.0));
    let (addresses, load_map) = places.into_used();
    Some(OpenMp {
        runtime,
        threads: THREADS.get(),
        elapsed_s,
        serial_s: (elapsed_s - in_regions_s - serial_in_mpi_s).max(0.0),
        serial_in_mpi_s,
        regions,
        addresses,
        load_map,
    })
}

/// What would give more, where the program has an OpenMP runtime that tells nothing.
pub(crate) fn advice() -> Option<String> {
    let is_silent = RUNTIME.get().is_none()
        && openmp_runtimes().iter().any(|of| of.name == "libgomp" && !of.is_of_package);
    is_silent.then(|| {
        "GCC's OpenMP runtime (libgomp) tells tools nothing of parallel regions: link the program with LLVM's \
         (-lomp in place of -lgomp) to see them"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;
    use crate::sys::fork::in_a_copy;

    /// In a copy of its own, on a clock that this test moves.
    fn told(program: impl Fn(), out: &mut dyn Write) -> std::io::Result<()> {
        begin(true);
        is_told_by("of a test");
        clock::simulate(1000);
        program();
        let found = described(1e-5, 3000.0).unwrap();
        let ns = |seconds: f64| (seconds * 1e9).round();
        let serial = [found.serial_s, found.serial_in_mpi_s].map(ns);
        writeln!(out, "{} threads, {serial:?}", found.threads)?;
        for region in &found.regions {
            let OpenMpRegion { entries, timed, time_s, work_s, most_work_s, .. } = *region;
            let times = [time_s, work_s, most_work_s, region.barrier_s, region.in_mpi_s].map(ns);
            writeln!(out, "{entries} {timed} {times:?}")?;
        }
        Ok(())
    }

    fn wait_until(region: u64, from: u64, to: u64) {
        clock::simulate(from);
        barrier_begins(region);
        clock::simulate(to);
        barrier_ends(region);
    }

    #[test]
    fn threads_work_wait_and_are_in_mpi() {
        let lines = in_a_copy(|out| {
            let program = || {
                // Outside of all regions it is serial.
                in_mpi(500.0, 2.0);
                let region = region_begins(0x1234);
                let part = part_begins(region, 2, 0);
                let worker = || {
                    let part = part_begins(region, 2, 1);
                    wait_until(region, 1400, 1500);
                    clock::simulate(1800);
                    barrier_begins(region);
                    // A task, which is work.
                    task_continues(true);
                    clock::simulate(1850);
                    task_continues(false);
                    // It ends its part when the region has ended.
                    part
                };
                thread::scope(|scope| scope.spawn(worker).join().unwrap());
                in_mpi(100.0, 1.0);
                wait_until(region, 1900, 2000);
                part_ends(part);
                region_ends(region);
            };
            told(program, out)
        });
        // The worker: 1,000 without 250 at barriers; the first thread: 1,000 without 100 there and 100 in MPI.
        let region = "1 1 [1000.0, 1550.0, 800.0, 350.0, 100.0]";
        assert_eq!(lines, format!("2 threads, [6100.0, 2900.0]\n{region}\n"));
    }

    #[test]
    fn inner_regions_are_work_of_the_thread_that_begins_them() {
        let lines = in_a_copy(|out| {
            let program = || {
                let region = region_begins(0x1234);
                let part = part_begins(region, 1, 0);
                let inner = region_begins(0x5678);
                let inner_part = part_begins(inner, 4, 0);
                wait_until(inner, 1100, 1700);
                part_ends(inner_part);
                region_ends(inner);
                clock::simulate(2000);
                part_ends(part);
                region_ends(region);
                assert_eq!(region_begins(0x5678), region, "it is outermost again");
            };
            told(program, out)
        });
        assert_eq!(lines, "1 threads, [6000.0, 3000.0]\n1 1 [1000.0, 1000.0, 1000.0, 0.0, 0.0]\n");
    }

    #[test]
    fn an_entry_that_is_timed_stands_for_those_before_it_and_the_last_for_those_after_it() {
        let region = Region::new();
        let mut covered = 0;
        for left in [0, 3, 9] {
            region.left.set(left);
            let weights = (0..=left).map(|_| region.enter()).collect::<Vec<_>>();
            assert_eq!(weights.iter().sum::<u64>(), left + 1);
            covered += weights[usize::try_from(left).unwrap()];
            region.add(left + 1, 100, 2);
        }
        region.left.set(100);
        assert!((0..15).all(|_| region.enter() == 0));
        let found = region.described(None);
        assert_eq!((found.entries, found.timed, covered), (30, 3, 15));
        assert!((clock::ticks(found.time_s) / 100.0 - 30.0).abs() < 0.5);
        assert_eq!(found.time_error_s, Some(0.0), "all took as long");
    }

    #[test]
    fn regions_beyond_those_that_are_kept_apart_are_one() {
        let lines = in_a_copy(|out| {
            let rows = (1..=100).map(region_at).filter(|row| *row == REGIONS_AT_MOST);
            let others = rows.count();
            let again = (1..=100).filter(|address| region_at(*address) == REGIONS_AT_MOST).count();
            writeln!(out, "{others} {again}")
        });
        assert_eq!(lines, "36 36\n");
    }
}
