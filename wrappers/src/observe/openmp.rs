//! How is the time of OpenMP threads spent? What the runtime's callbacks tell of parallel regions: work, barriers, MPI.
//!
//! Every entry of a region is counted, and as many are timed as the budget allows: chosen and estimated as calls of MPI are, by
//! [`estimate`](crate::calls::estimate). Each thread writes into a slot of its own; the thread that began the region reads the slots of its team after
//! the barrier at the end, by which the runtime orders both. Only the outermost regions count: what runs in a team inside of one
//! is work of the thread that began it. A thread that begins outermost regions has one team, which it uses for all of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use gyan_results::{OpenMp, OpenMpRegion, sort_by};

use crate::calls::addresses::Map;
use crate::calls::budget::budget;
use crate::calls::estimate::{Estimate, NEGLIGIBLE, Timing, WORTH_TELLING};
use crate::calls::sites::Places;
use crate::sys::alloc;
use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;
use crate::sys::later::Later;
use crate::sys::locks::held;
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
    /// How many entries come before the next one that is timed.
    left: Counter,
    threads: Counter,
    timing: Timing,
    /// Ticks of the timed entries, each multiplied by how many entries its own stands for.
    time: Gauge,
    /// Of `time`, where the first thread began the region.
    of_first: Gauge,
    parts: Parts,
    /// Several threads may begin it.
    adding: Mutex<()>,
    random: Counter,
}

/// Ticks of the threads of a region. Work may be negative where time in MPI is an estimate.
struct Parts {
    work: Gauge,
    most_work: Gauge,
    waited: Gauge,
    in_mpi: Gauge,
}

/// The threads of the region that one thread has begun.
struct Team {
    region: Counter,
    /// How many entries this one stands for; 0 when it is not timed.
    weight: Gauge,
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

impl Parts {
    const fn new() -> Parts {
        Parts {
            work: Gauge::new(0.0),
            most_work: Gauge::new(0.0),
            waited: Gauge::new(0.0),
            in_mpi: Gauge::new(0.0),
        }
    }

    /// Adds these, multiplied by `weight`.
    fn add(&self, weight: f64, of: &Parts) {
        self.work.add(weight * of.work.get());
        self.most_work.add(weight * of.most_work.get());
        self.waited.add(weight * of.waited.get());
        self.in_mpi.add(weight * of.in_mpi.get());
    }
}

impl Region {
    const fn new() -> Region {
        Region {
            address: Counter::new(0),
            entries: Counter::new(0),
            left: Counter::new(0),
            threads: Counter::new(0),
            timing: Timing::new(),
            time: Gauge::new(0.0),
            of_first: Gauge::new(0.0),
            parts: Parts::new(),
            adding: Mutex::new(()),
            random: Counter::new(0),
        }
    }

    /// Counts an entry. Returns how many it stands for; 0 when it is not timed.
    fn enter(&self) -> f64 {
        self.entries.add_shared(1);
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            return 0.0;
        }
        // The entry after it is timed.
        if self.timing.warms_up() {
            return 0.0;
        }
        self.timing.weight()
    }

    /// An entry that stands for `weight` took `ticks`, and its threads `parts` of it.
    fn add(&self, weight: f64, ticks: u64, parts: &Parts) {
        let cost = READINGS * clock::reading();
        self.add_within(budget().for_regions(), cost, weight, ticks, parts);
    }

    /// The same where timing an entry costs `cost` ticks, and may take this share of the time of the entries.
    fn add_within(&self, share: f64, cost: f64, weight: f64, ticks: u64, parts: &Parts) {
        let _adding = held(&self.adding);
        let (entries, ticks) = (self.entries.get(), ticks as f64);
        self.timing.take_as(weight, entries, ticks, clock::ns_per_tick());
        self.time.add(weight * ticks);
        if here().is_first.get() {
            self.of_first.add(weight * ticks);
        }
        self.parts.add(weight, parts);
        self.draw(share, cost, entries);
    }

    /// Chooses the next entry to time: what that costs is a part of the budget of the time of those before it.
    fn draw(&self, share: f64, cost: f64, entries: u64) {
        if self.timing.timed() < TIMED_AT_FIRST || share.is_infinite() {
            return;
        }
        let seed = match self.random.get() {
            0 => clock::now(),
            seed => seed,
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let probability = share * self.timing.mean(entries) / cost.max(1.0);
        let next = self.timing.allot(probability, entries, random.f64());
        self.left.set(next - entries);
        self.random.set(random.get_seed());
    }

    /// Ticks of all entries, in a run of `elapsed` ticks. What may take as long as the longest timed entry, or a turn of another
    /// process, may also come so rarely that no timed entry shows it: once in the time of all of them.
    fn known(&self, elapsed: f64) -> Estimate {
        let (entries, longest) = (self.entries.get(), self.timing.max());
        let times = self.timing.times(entries, elapsed);
        let known = times.known(entries, longest, elapsed);
        if known.error.is_some_and(|error| error <= 0.0) {
            return known;
        }
        let total = times.within(times.total(), entries, longest);
        let others = total - times.sum;
        let few = (others < NEGLIGIBLE * times.sum).then_some(others);
        let hidden = times.hidden(longest);
        let error = known.error.or(few).map(|error| libm::hypot(error, hidden));
        match error.filter(|error| *error <= WORTH_TELLING * total) {
            None => times.at_least(entries, longest),
            error => Estimate { total, error },
        }
    }

    /// The region as a profile has it, provided that an entry was timed; and seconds in it of those that the first thread began.
    fn described(&self, place: Option<usize>, elapsed: f64) -> (OpenMpRegion, f64) {
        let known = self.known(elapsed);
        // The timed entries say how the time is divided.
        let scale = known.total / self.time.get().max(1.0);
        let seconds = |ticks: &Gauge| clock::seconds(ticks.get() * scale);
        let Parts { work, most_work, waited, in_mpi } = &self.parts;
        let region = OpenMpRegion {
            place,
            entries: self.entries.get(),
            timed: self.timing.timed(),
            threads: self.threads.get(),
            time_s: clock::seconds(known.total),
            time_error_s: known.error.map(clock::seconds),
            work_s: seconds(work).max(0.0),
            most_work_s: seconds(most_work).max(0.0),
            barrier_s: seconds(waited),
            in_mpi_s: seconds(in_mpi),
        };
        (region, seconds(&self.of_first))
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
            weight: Gauge::new(0.0),
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
        let Some(region) = REGIONS.get(row) else { return };
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
        let parts = Parts {
            work: Gauge::new(work.cast_signed() as f64),
            most_work: Gauge::new(most_work as f64),
            waited: Gauge::new(waited as f64),
            in_mpi: Gauge::new(in_mpi as f64),
        };
        region.threads.raise(size);
        region.add(weight, now.saturating_sub(self.begun.get()), &parts);
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
    let weight = REGIONS.get(row).map_or(0.0, Region::enter);
    team.region.set(row as u64);
    team.weight.set(weight);
    if weight > 0.0 {
        team.begun.set(clock::now());
    }
    number
}

/// This thread ends a region.
pub(crate) fn region_ends(region: u64) {
    if let Some(team) = Team::numbered(region) {
        here().slot.set(None);
        if team.weight.get() > 0.0 {
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
    let is_timed = team.weight.get() > 0.0;
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
    let timed = REGIONS.iter().filter(|region| region.timing.timed() > 0);
    let mut in_regions_s = 0.0;
    let mut regions: Vec<OpenMpRegion> = timed
        .map(|region| {
            let address = usize::try_from(region.address.get()).ok().filter(|at| *at != 0);
            let place = address.map(|address| places.at(address));
            let (region, of_first_s) = region.described(place, clock::ticks(elapsed_s));
            in_regions_s += of_first_s;
            region
        })
        .collect();
    sort_by(&mut regions, |one, other| other.time_s.total_cmp(&one.time_s));
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

    /// How long the entries of a region take, in seconds.
    #[derive(Clone, Copy, Debug)]
    enum RegionTimes {
        Constant,
        /// In this part of the entries a thread loses its processor for some ms; the others take so long.
        Interrupted(f64, f64),
        /// The variance is infinite (Pareto, with an index of 2).
        HeavyTailed,
        Bursty,
        Drifting,
        Wandering,
    }

    impl RegionTimes {
        fn durations(self, entries: u64, seed: u64) -> impl Iterator<Item = f64> {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut burst, mut log) = (0_u32, 0.0);
            (0..entries).map(move |entry| {
                let number = random.f64();
                match self {
                    RegionTimes::Constant => 150e-6,
                    RegionTimes::Interrupted(part, _) if number < part => {
                        4e-3 + 2e-3 * random.f64()
                    }
                    RegionTimes::Interrupted(_, short) => short,
                    RegionTimes::HeavyTailed => 20e-6 / (1.0 - number).sqrt(),
                    RegionTimes::Bursty => {
                        burst = if number < 5e-4 { 30 } else { burst.saturating_sub(1) };
                        if burst > 0 { 4e-3 } else { 50e-6 }
                    }
                    RegionTimes::Drifting => 20e-6 + 200e-6 * entry as f64 / entries as f64,
                    RegionTimes::Wandering => {
                        log = 0.9 * log + number - 0.5;
                        30e-6 * libm::exp(2.0 * log)
                    }
                }
            })
        }
    }

    /// Many runs of a region, where timing may take a share of the time in it.
    #[derive(Debug, Default)]
    struct RegionTrial {
        /// The mean of estimates over the truth, less 1, and its standard error.
        bias: f64,
        bias_error: f64,
        /// How many had an error, and how many were true.
        told: u64,
        right: u64,
    }

    fn trial(times: RegionTimes, entries: u64, share: f64) -> RegionTrial {
        /// Timing an entry takes so many ticks.
        const COST: f64 = 160.0;
        let (mut trial, mut squares) = (RegionTrial::default(), 0.0);
        for seed in 1..=RUNS {
            let region = Region::new();
            region.random.set(seed);
            let mut truth = 0.0;
            for seconds in times.durations(entries, !seed) {
                let ticks = clock::whole(clock::ticks(seconds));
                truth += ticks as f64;
                let weight = region.enter();
                if weight > 0.0 {
                    region.add_within(share, COST, weight, ticks, &Parts::new());
                }
            }
            let known = region.known(truth);
            let off = region.timing.times(entries, truth).total() / truth - 1.0;
            trial.bias += off / RUNS as f64;
            squares += off * off / RUNS as f64;
            trial.told += u64::from(known.error.is_some());
            trial.right += u64::from(match known.error {
                Some(error) => (known.total - truth).abs() <= 2.0 * error + 1e-3 * truth,
                None => known.total <= truth * 1.001,
            });
        }
        trial.bias_error = (squares / RUNS as f64).sqrt();
        trial
    }

    const RUNS: u64 = 1000;

    #[test]
    fn simulated_regions_have_no_bias_and_what_is_said_of_them_is_true() {
        let all = [
            RegionTimes::Constant,
            RegionTimes::Interrupted(0.01, 150e-6),
            RegionTimes::Interrupted(0.002, 150e-6),
            RegionTimes::HeavyTailed,
            RegionTimes::Bursty,
            RegionTimes::Drifting,
            RegionTimes::Wandering,
        ];
        let mut trials: Vec<(RegionTimes, u64, f64)> =
            all.into_iter().flat_map(|of| [(of, 2000, 9e-5), (of, 8000, 1e-3)]).collect();
        // A sample of 3,000 entries has hardly ever one of those that are interrupted.
        trials.push((RegionTimes::Interrupted(1e-4, 5e-6), 20_000, 5e-3));
        for (times, entries, share) in trials {
            let found = trial(times, entries, share);
            let about = format!("{times:?} {entries} {share}: {found:?}");
            assert!(found.bias.abs() < f64::max(0.01, 4.0 * found.bias_error), "{about}");
            assert!(found.right >= RUNS * 9 / 10, "{about}");
        }
    }

    #[test]
    fn an_entry_stands_for_as_many_as_its_chance_says_and_the_last_ones_are_like_those_before() {
        let region = Region::new();
        region.random.set(1);
        let mut random = fastrand::Rng::with_seed(1);
        let parts = Parts::new();
        parts.work.set(150e3);
        for _ in 0..50_000 {
            let weight = region.enter();
            if weight > 0.0 {
                let ticks = 50_000 + random.u64(..100_000);
                region.add_within(0.1, 40e3, weight, ticks, &parts);
            }
        }
        let (found, _) = region.described(None, 1e12);
        assert!(found.timed > 2500 && found.timed < 25_000, "{found:?}");
        let error = clock::ticks(found.time_error_s.unwrap_or_default());
        let far = (clock::ticks(found.time_s) - 100e3 * 50_000.0).abs();
        assert!(far < 2.0 * error, "{far} {found:?}");
        let per_entry = clock::ticks(found.work_s) / clock::ticks(found.time_s);
        assert!((per_entry - 1.5).abs() < 0.03, "{found:?}");
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
