//! What time is it, as cheaply as this machine can tell?
//!
//! The processor's time-stamp counter where it is invariant (CPUID `8000_0007h`, EDX bit 8), the kernel trusts
//! it, and the process may read it; else `clock_gettime`. Times are kept in ticks, and converted to seconds at
//! the end, when the length of a tick is known best.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::sys::cells::{Counter, Gauge};
use crate::sys::kernel_files;
use crate::sys::lookup::hash;

/// A clock is slow when one reading takes longer than this: then timing a call costs more than most calls.
const SLOW_NS: f64 = 100.0;
const KERNEL_CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

static COUNTER: AtomicBool = AtomicBool::new(false);
static NS_PER_TICK: Gauge = Gauge::new(1.0);
/// Ticks between two immediately successive readings.
static READING: Gauge = Gauge::new(0.0);

/// The time of a simulated run; 0 outside of one.
#[cfg(test)]
static SIMULATED: Counter = Counter::new(0);

/// From now on it is `ticks`, in this process.
#[cfg(test)]
pub(crate) fn simulate(ticks: u64) {
    SIMULATED.set(ticks);
    // Another test of this process may have started the clock of the host.
    for place in &ORIGIN {
        place.set(0);
    }
}

/// A moment, on all clocks.
#[derive(Clone, Copy)]
pub(crate) struct ClockReading {
    ticks: u64,
    instant: Instant,
    /// What `CLOCK_MONOTONIC` says.
    kernel_ns: u64,
}

impl ClockReading {
    pub(crate) fn ticks(self) -> u64 {
        self.ticks
    }
}

/// When ticks began to be measured, and what `CLOCK_MONOTONIC` said then, in ns.
static ORIGIN: [Counter; 2] = [const { Counter::new(0) }; 2];

/// What `CLOCK_MONOTONIC`, which all processes of a host share, said at a time in ticks, in ns.
pub(crate) fn on_host(ticks: u64) -> u64 {
    let [began, origin] = ORIGIN.each_ref().map(Counter::get);
    origin.saturating_add(whole(ticks.saturating_sub(began) as f64 * ns_per_tick()))
}

/// How ticks become times of that clock.
pub(crate) fn for_timeline() -> gyan_results::TimelineClock {
    let [origin_ticks, origin_ns] = ORIGIN.each_ref().map(Counter::get);
    gyan_results::TimelineClock {
        host: of_host().unwrap_or_default().to_owned(),
        origin_ticks,
        origin_ns,
        ns_per_tick: ns_per_tick(),
        ..gyan_results::TimelineClock::default()
    }
}

/// A number of that clock: of this boot of the kernel, and of this namespace of times (`time_namespaces(7)`).
pub(crate) fn of_host() -> Option<&'static str> {
    // Each record of a rank names it.
    static NUMBER: OnceLock<Option<String>> = OnceLock::new();
    let number = || {
        let boot = kernel_files::bytes("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let bytes = boot.iter().chain(namespace.as_os_str().as_bytes());
        Some(format!("{:016x}", hash(bytes.map(|byte| u32::from(*byte)))))
    };
    NUMBER.get_or_init(number).as_deref()
}

/// Chooses the clock; the moment from which ticks are measured.
pub(crate) fn start() -> ClockReading {
    COUNTER.store(counter::is_good() && kernel_trusts_counter(), Ordering::Relaxed);
    let moment = moment();
    for (place, time) in ORIGIN.iter().zip([moment.ticks, moment.kernel_ns]) {
        place.set(time);
    }
    moment
}

/// The moment now: of several readings of the clocks the one that took least, as the system may do something else between two.
fn moment() -> ClockReading {
    const READINGS: usize = 5;
    let read = || {
        let before = now();
        let (instant, kernel_ns) = (Instant::now(), of_kernel());
        let took = now().saturating_sub(before);
        (took, ClockReading { ticks: before.saturating_add(took / 2), instant, kernel_ns })
    };
    let mut best = read();
    for _ in 1..READINGS {
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Ticks, monotonically increasing.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(test)]
    if SIMULATED.get() != 0 {
        return SIMULATED.get();
    }
    if COUNTER.load(Ordering::Relaxed) { counter::read() } else { of_kernel() }
}

/// The ticks by which a measured interval may be off although the cost of its readings is subtracted: how much of a reading the
/// processor does beside the code before and after it depends on that code. Seen in loops of calls of 15 to 50 ns.
pub(crate) fn resolution() -> f64 {
    const PART_OF_A_READING: f64 = 0.4;
    // Simulated clocks are exact.
    if cfg!(test) { 0.0 } else { PART_OF_A_READING * READING.get() }
}

/// The ticks by which a call that is timed may take longer than one that is not, beside that: the processor has not foreseen the
/// way it goes, and does nothing else meanwhile. Seen in loops of calls of 3 to 200 ns: up to 28 ns more, where a reading took 9.4.
pub(crate) fn unforeseen() -> f64 {
    const READINGS: f64 = 4.0;
    if cfg!(test) { 0.0 } else { READINGS * READING.get() }
}

/// The ticks that a reading takes.
pub(crate) fn reading() -> f64 {
    READING.get()
}

/// Nanoseconds on the clock that `clock_gettime` reads.
pub(crate) fn of_kernel() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written; the clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Determines from the time since `start` how long a tick is, and how long a reading takes.
pub(crate) fn calibrate(start: ClockReading) {
    const BATCHES: u32 = 4;
    const READINGS: u32 = 32;
    measure(start);
    // The minimum of several, which excludes other activity of the machine.
    let batch = || {
        let begun = now();
        for _ in 1..READINGS {
            std::hint::black_box(now());
        }
        now().wrapping_sub(begun) as f64 / f64::from(READINGS)
    };
    READING.set((0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min));
}

/// Determines from the time since `start` how long a tick is; the longer, the better.
pub(crate) fn measure(start: ClockReading) {
    let now = moment();
    let ticks = now.ticks.wrapping_sub(start.ticks);
    if ticks > 0 {
        NS_PER_TICK.set(now.instant.duration_since(start.instant).as_nanos() as f64 / ticks as f64);
    }
}

pub(crate) fn ns_per_tick() -> f64 {
    NS_PER_TICK.get()
}

/// Ticks, or a fraction of one, in seconds.
pub(crate) fn seconds(ticks: f64) -> f64 {
    ticks * NS_PER_TICK.get() * 1e-9
}

/// Seconds in ticks.
pub(crate) fn ticks(seconds: f64) -> f64 {
    seconds * 1e9 / NS_PER_TICK.get()
}

/// Whole ticks of a non-negative time; saturates at 2^64.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn whole(ticks: f64) -> u64 {
    ticks as u64
}

/// The clock in the form of the profile.
pub(crate) fn described() -> gyan_results::Clock {
    let read_s = seconds(READING.get());
    gyan_results::Clock {
        source: if COUNTER.load(Ordering::Relaxed) { "tsc" } else { "clock_gettime" }.into(),
        read_s,
        slow: read_s * 1e9 > SLOW_NS,
    }
}

/// Whether the kernel uses the counter, or could: it rules out one that is not the same on all processors. If
/// it does not tell, the processor's own flag counts.
fn kernel_trusts_counter() -> bool {
    kernel_files::text(KERNEL_CLOCKS)
        .is_none_or(|clocks| clocks.split_whitespace().any(|clock| clock == "tsc"))
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};
    use std::ffi::c_int;

    /// Whether it ticks at one rate whatever the processor does, and can be read here.
    pub(super) fn is_good() -> bool {
        const POWER: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        let has = |leaf| __cpuid(0x8000_0000).eax >= leaf;
        has(POWER) && __cpuid(POWER).edx & INVARIANT != 0 && may_be_read()
    }

    /// A process can be forbidden to read it, and then dies if it does.
    fn may_be_read() -> bool {
        let mut mode: c_int = 0;
        // SAFETY: the kernel writes an int (prctl(2), PR_GET_TSC).
        let result = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
        result == 0 && mode == libc::PR_TSC_ENABLE
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 has it, and `may_be_read` has said yes.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) fn is_good() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        super::of_kernel()
    }
}

/// How often it is measured what something takes: what else the machine does takes longer, at least once not.
pub(crate) const BATCHES: u32 = 6;

/// Ticks that something takes which is done so many times in a row: the least of some batches.
pub(crate) fn least_of(times: u32, what: impl Fn()) -> f64 {
    let batch = || {
        let begun = now();
        for _ in 0..times {
            what();
        }
        now().wrapping_sub(begun) as f64 / f64::from(times)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_the_time_that_passes() {
        let begun = start();
        while begun.instant.elapsed().as_millis() < 20 {}
        calibrate(begun);
        let (from, instant) = (now(), Instant::now());
        while instant.elapsed().as_millis() < 20 {}
        let measured = seconds(now().wrapping_sub(from) as f64);
        let truth = instant.elapsed().as_secs_f64();
        assert!((measured / truth - 1.0).abs() < 0.01, "{measured} s instead of {truth} s");
        assert!(READING.get() > 0.0);
    }
}
