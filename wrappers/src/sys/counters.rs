//! How many instructions, cycles and cache misses has the processor counted for a thread of this process?
//!
//! By `perf_event_open(2)`, in user mode only, as an unprivileged user may. The counters are a group, so that they count at
//! the same time. The kernel is asked for the totals (`read(2)`, from any thread). At a call the thread itself reads the
//! registers (`rdpmc`), as the kernel's `perf_event.h` says at `struct perf_event_mmap_page`.
//!
//! Other threads are not counted: the instructions of an OpenMP thread that spins at a barrier say nothing of the work.

use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use gyan_results::Counts;
use memmap2::{MmapMut, MmapOptions, MmapRaw};

use crate::sys::cells::Counter;
use crate::sys::kernel_files::text;
use crate::sys::tls::thread_cells;

/// Number of counters at most: what [`Counts`] has.
const COUNTERS: usize = 3;

/// A count of each counter, in the order of [`HARDWARE`].
pub(crate) type Each = [u64; COUNTERS];

/// What is to be counted: `type` and `config` of `struct perf_event_attr`.
#[derive(Clone, Copy)]
struct CountedEvent {
    kind: u32,
    config: u64,
}

const fn hardware(config: u64) -> CountedEvent {
    CountedEvent { kind: 0, config }
}

/// Instructions, cycles, and cache misses, without which one can do.
const HARDWARE: [CountedEvent; COUNTERS] = [hardware(1), hardware(0), hardware(3)];
/// Without these counters, there are none.
const NEEDED: usize = 2;

/// `struct perf_event_attr`, as long as it was at first.
#[derive(Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const ATTRIBUTES_BYTES: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == 64);
/// Of the first of a group: all wait until it is enabled. Otherwise the others begin with the next tick of the scheduler.
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// The time for which the group was enabled and counted, and then the counts of all of it.
const READ_FORMAT: u64 = 1 | 2 | 8;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ID`.
const IOCTL_ID: libc::Ioctl = 0x8008_2407;
const IOCTL_ENABLE: libc::Ioctl = 0x2400;

/// `struct perf_event_mmap_page`, as far as it is used. The kernel writes it, and the thread that is counted reads it.
#[repr(C)]
struct Page {
    version: AtomicU32,
    compatible_version: AtomicU32,
    /// Changes whenever the rest does.
    lock: AtomicU32,
    /// The register, plus 1; 0 while the counter does not count.
    index: AtomicU32,
    /// What was counted, without what the register has.
    offset: AtomicI64,
    time_enabled: AtomicU64,
    time_running: AtomicU64,
    capabilities: AtomicU64,
    /// The bits of the register.
    width: AtomicU16,
}

const _: () = assert!(offset_of!(Page, capabilities) == 40 && offset_of!(Page, width) == 48);

const USER_MAY_READ: u64 = 1 << 2;
const PAGE_BYTES: usize = 4096;

impl Page {
    fn may_be_read(&self) -> bool {
        self.capabilities.load(Ordering::Relaxed) & USER_MAY_READ != 0
    }

    /// The count; none while the counter does not count.
    fn count(&self, register: impl Fn(u32) -> u64) -> Option<u64> {
        loop {
            let version = self.lock.load(Ordering::Acquire);
            let register_of = self.index.load(Ordering::Relaxed).checked_sub(1);
            let offset = self.offset.load(Ordering::Relaxed);
            let unused = u64::BITS.saturating_sub(u32::from(self.width.load(Ordering::Relaxed)));
            let number = register_of.filter(|_| self.may_be_read()).map(&register);
            // Pairs with the kernel's barriers around its writes: all of the above was read before the version is again.
            fence(Ordering::Acquire);
            if self.lock.load(Ordering::Relaxed) == version {
                // The register is a signed number.
                let signed = (number? << unused).cast_signed() >> unused;
                return Some(offset.wrapping_add(signed).cast_unsigned());
            }
        }
    }
}

/// The counters of one thread.
struct CounterGroup {
    /// The first leads: it is asked for the counts of all. They are never closed: the program may have closed all files, and
    /// opened others under these numbers.
    files: Vec<File>,
    /// The kernel's number of the first, which says that the file is still that.
    id: Option<u64>,
    /// As far as the registers can be read, one for each file.
    pages: Vec<MmapRaw>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Total {
    pub(crate) counts: Counts,
    /// Nanoseconds for which the thread had a processor.
    enabled_ns: u64,
    /// Nanoseconds of those in which the counters counted.
    running_ns: u64,
}

impl Total {
    /// Seconds for which the thread had a processor.
    pub(crate) fn processor_s(&self) -> f64 {
        self.enabled_ns as f64 * 1e-9
    }

    /// The part of that in which the counters counted.
    pub(crate) fn counted_share(&self) -> f64 {
        if self.enabled_ns == 0 { 1.0 } else { self.running_ns as f64 / self.enabled_ns as f64 }
    }
}

impl CounterGroup {
    /// Counts the calling thread from now on. `open` opens a counter, in the group of another.
    fn new(
        events: &[CountedEvent],
        open: impl Fn(&Attributes, Option<&File>) -> io::Result<File>,
    ) -> io::Result<CounterGroup> {
        let mut files: Vec<File> = Vec::new();
        for CountedEvent { kind, config } in events {
            let disabled = if files.is_empty() { DISABLED } else { 0 };
            let attributes = Attributes {
                kind: *kind,
                size: ATTRIBUTES_BYTES,
                config: *config,
                read_format: READ_FORMAT,
                flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | disabled,
                ..Attributes::default()
            };
            match open(&attributes, files.first()) {
                Ok(file) => files.push(file),
                Err(error) if files.len() < NEEDED => return Err(error),
                Err(_) => break,
            }
        }
        if let Some(first) = files.first() {
            // SAFETY: this ioctl(2) has no argument, and a counter is all that knows it.
            unsafe { libc::ioctl(first.as_raw_fd(), IOCTL_ENABLE, 0) };
        }
        let map = |file| MmapOptions::new().len(PAGE_BYTES).map_raw_read_only(file).ok();
        let pages: Option<Vec<MmapRaw>> = files.iter().map(map).collect();
        let mut group = CounterGroup { id: files.first().and_then(id), files, pages: Vec::new() };
        group.pages = pages.unwrap_or_default();
        if !group.pages().all(Page::may_be_read) {
            group.pages.clear();
        }
        Ok(group)
    }

    fn pages(&self) -> impl Iterator<Item = &Page> {
        // SAFETY: a page of the kernel's is mapped there, at least as long as this, as long as the group lives. The kernel
        // writes to it meanwhile: the fields are atomics.
        self.pages.iter().map(|page| unsafe { &*page.as_ptr().cast::<c_void>().cast::<Page>() })
    }

    /// What the kernel has counted; none when it cannot say, or the program has closed the file.
    fn total(&self) -> Option<Total> {
        let file = self.files.first().filter(|file| id(file) == self.id)?;
        let mut words = [[0; size_of::<u64>()]; 3 + COUNTERS];
        let bytes = rustix::io::read(file, words.as_flattened_mut()).ok()?;
        let [counters, enabled_ns, running_ns, instructions, cycles, misses] =
            words.map(u64::from_ne_bytes);
        let is_whole = bytes >= size_of::<u64>() * (3 + self.files.len());
        // Other programs may have had the counters all the time.
        if !is_whole || counters != self.files.len() as u64 || running_ns == 0 && enabled_ns > 0 {
            return None;
        }
        let cache_misses = (self.files.len() == COUNTERS).then_some(misses);
        let counts = Counts { instructions, cycles, cache_misses };
        let counts = if running_ns < enabled_ns {
            counts.scaled(enabled_ns as f64 / running_ns as f64)
        } else {
            counts
        };
        Some(Total { counts, enabled_ns, running_ns })
    }

    /// What the registers have counted, read by the thread that is counted; none while they count something else.
    #[inline]
    fn read(&self, register: impl Fn(u32) -> u64) -> Option<Each> {
        let mut each = [0; COUNTERS];
        for (count, page) in each.iter_mut().zip(self.pages()) {
            *count = page.count(&register)?;
        }
        Some(each)
    }
}

/// The kernel's number of a counter; none of another file.
fn id(file: &File) -> Option<u64> {
    let mut id = 0_u64;
    // SAFETY: on a counter, this ioctl(2) writes a number; other files do not know it.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), IOCTL_ID, &raw mut id) };
    (code == 0).then_some(id)
}

/// `perf_event_open(2)` for the calling thread, on any processor.
fn open(attributes: &Attributes, leader: Option<&File>) -> io::Result<File> {
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the kernel reads as many bytes of the attributes as they say.
    let number = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            ptr::from_ref(attributes),
            0,
            -1,
            leader,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(number) {
        // SAFETY: a new file, of which nobody else knows.
        Ok(number) if number >= 0 => Ok(unsafe { File::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Why the kernel gives no counter. `paranoid`: `/proc/sys/kernel/perf_event_paranoid`.
fn why_not(error: &io::Error, paranoid: Option<i64>) -> String {
    match (error.raw_os_error(), paranoid) {
        (Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP), _) => {
            "this machine has no performance counters (a virtual machine?)".into()
        }
        // Debian's and Ubuntu's kernels have levels above 2.
        (Some(libc::EACCES | libc::EPERM), Some(paranoid)) if paranoid > 2 => {
            format!("kernel.perf_event_paranoid is {paranoid}; 2 allows it")
        }
        (Some(libc::EACCES | libc::EPERM), _) => {
            "perf_event_open is not allowed here (the seccomp filter of a container?)".into()
        }
        (Some(libc::ENOSYS), _) => "this kernel has no perf_event_open".into(),
        _ => format!("perf_event_open: {error}"),
    }
}

fn paranoid() -> Option<i64> {
    text("/proc/sys/kernel/perf_event_paranoid")?.trim().parse().ok()
}

thread_cells! {
    "gyan_counters"
    struct CountedThread {
        is_this: Cell<bool>,
    }
}

/// The counters of the thread that initialised MPI, or why there are none.
static GROUP: OnceLock<Result<CounterGroup, String>> = OnceLock::new();
/// The same group, where its registers can be read. In a forked process, which has not its pages, the kernel has cleared the
/// memory that this is in.
static READABLE: AtomicPtr<AtomicPtr<CounterGroup>> = AtomicPtr::new(ptr::null_mut());
/// What was counted in calls of MPI.
static IN_CALLS: [Counter; COUNTERS] = [const { Counter::new(0) }; COUNTERS];
/// The ticks that these calls took.
static TICKS: Counter = Counter::new(0);

/// Counts the calling thread from now on, unless a thread is counted already.
pub(crate) fn begin() {
    if GROUP.get().is_some() {
        return;
    }
    let group = CounterGroup::new(&HARDWARE, open).map_err(|error| why_not(&error, paranoid()));
    let Ok(group) = GROUP.get_or_init(|| group) else { return };
    if !can_read_registers() || group.pages.is_empty() {
        return;
    }
    let Ok(memory) = MmapMut::map_anon(PAGE_BYTES) else { return };
    let place = Box::leak(Box::new(memory)).as_mut_ptr();
    // SAFETY: the page is gyan's own.
    if unsafe { libc::madvise(place.cast(), PAGE_BYTES, libc::MADV_WIPEONFORK) } != 0 {
        return;
    }
    let place = place.cast::<c_void>().cast::<AtomicPtr<CounterGroup>>();
    // SAFETY: zeros, as long as a pointer and aligned as a page, which stay.
    unsafe { &*place }.store(ptr::from_ref(group).cast_mut(), Ordering::Relaxed);
    here().is_this.set(true);
    READABLE.store(place, Ordering::Release);
}

/// What was counted so far, or why nothing was; none before [`begin`].
pub(crate) fn total() -> Option<Result<Total, String>> {
    let lost = || "others used the performance counters all the time".to_owned();
    Some(match GROUP.get()? {
        Ok(group) => group.total().ok_or_else(lost),
        Err(why) => Err(why.clone()),
    })
}

/// What was counted so far; none where nothing is.
pub(crate) fn counts() -> Option<Counts> {
    Some(GROUP.get()?.as_ref().ok()?.total()?.counts)
}

/// The counts of this thread, where they can be read.
#[inline]
pub(crate) fn now() -> Option<Each> {
    let place = READABLE.load(Ordering::Acquire);
    if place.is_null() { None } else { read_at(place) }
}

#[cold]
fn read_at(place: *const AtomicPtr<CounterGroup>) -> Option<Each> {
    // SAFETY: it stays.
    let group = unsafe { &*place }.load(Ordering::Relaxed);
    if group.is_null() || !here().is_this.get() {
        return None;
    }
    // SAFETY: a static, of which the thread is this.
    unsafe { &*group }.read(registers)
}

/// A call of MPI by this thread, which began with these counts, has taken so many ticks.
#[inline]
pub(crate) fn called(before: Option<Each>, ticks: u64) {
    let Some((before, after)) = before.and_then(|before| Some((before, now()?))) else { return };
    for ((sum, before), after) in IN_CALLS.iter().zip(before).zip(after) {
        sum.add(after.saturating_sub(before));
    }
    TICKS.add(ticks);
}

/// Does what makes calls that are none of the program's: what is counted in these is forgotten.
pub(crate) fn forgetting<T>(work: impl FnOnce() -> T) -> T {
    let all = || IN_CALLS.iter().chain([&TICKS]);
    let before: Vec<u64> = all().map(Counter::get).collect();
    let done = work();
    all().zip(before).for_each(|(sum, before)| sum.set(before));
    done
}

/// What was counted in calls at which the counters were read, and the ticks that these took; none where there were none.
pub(crate) fn in_calls() -> Option<(Counts, u64)> {
    let Some(Ok(group)) = GROUP.get() else { return None };
    let [instructions, cycles, misses] = IN_CALLS.each_ref().map(Counter::get);
    let cache_misses = (group.files.len() == COUNTERS).then_some(misses);
    let ticks = TICKS.get();
    (ticks > 0).then_some((Counts { instructions, cycles, cache_misses }, ticks))
}

#[cfg(target_arch = "x86_64")]
fn can_read_registers() -> bool {
    true
}

/// What a register of the processor has counted.
#[cfg(target_arch = "x86_64")]
#[inline]
fn registers(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a register that the kernel has said that this thread may read now. Should it have changed its mind
    // since, the version of the page is another, and the kernel lets a process read as long as it has a page mapped.
    unsafe {
        std::arch::asm!(
            "rdpmc",
            in("ecx") number,
            out("eax") low,
            out("edx") high,
            options(nomem, nostack, preserves_flags),
        );
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The kernel reads them for others.
#[cfg(not(target_arch = "x86_64"))]
fn can_read_registers() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn registers(_: u32) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::fs::FileExt;

    use rustix::fs::MemfdFlags;

    use super::*;

    const fn software(config: u64) -> CountedEvent {
        CountedEvent { kind: 1, config }
    }

    /// A file that is like a counter: the page is at its start, and what is read comes behind it.
    fn fake(register: u32, words: &[u64]) -> File {
        let mut file: File =
            rustix::fs::memfd_create(c"counter", MemfdFlags::CLOEXEC).unwrap().into();
        let mut page = [0_u8; PAGE_BYTES];
        page[12..16].copy_from_slice(&register.to_ne_bytes());
        page[16..24].copy_from_slice(&1_000_i64.to_ne_bytes());
        page[40..48].copy_from_slice(&USER_MAY_READ.to_ne_bytes());
        page[48..50].copy_from_slice(&48_u16.to_ne_bytes());
        file.write_all(&page).unwrap();
        for word in words {
            file.write_all(&word.to_ne_bytes()).unwrap();
        }
        file.seek(SeekFrom::Start(PAGE_BYTES as u64)).unwrap();
        file
    }

    fn faked(words: &[u64], counters: u32) -> CounterGroup {
        let group = CounterGroup::new(&HARDWARE, |attributes, leader| {
            let mut numbered = (1..=counters).zip(HARDWARE);
            let found = numbered.find(|(_, event)| event.config == attributes.config);
            let (number, _) = found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
            assert_eq!(leader.is_some(), number > 1);
            Ok(fake(number, words))
        });
        group.unwrap()
    }

    #[test]
    fn a_busy_thread_has_time_and_faults_on_counters_of_the_kernel() {
        // Time on a processor in nanoseconds, page faults, changes of the processor.
        let events = [software(1), software(2), software(4)];
        let opened = CounterGroup::new(&events, open);
        let group = match opened {
            Ok(group) => group,
            Err(error) => {
                println!("skipped: {}", why_not(&error, paranoid()));
                return;
            }
        };
        let before = group.total().unwrap();
        // Memory that was freed before would be there already.
        let mut block = MmapMut::map_anon(16 << 20).unwrap();
        for place in block.iter_mut().step_by(PAGE_BYTES) {
            *place = black_box(1);
        }
        let after = group.total().unwrap();
        assert!(after.counts.instructions > before.counts.instructions, "{after:?}");
        let faults = after.counts.cycles - before.counts.cycles;
        // Large pages need fewer.
        assert!(faults >= 8 && faults <= 2 * (16 << 20) / PAGE_BYTES as u64, "{after:?}");
        assert!(after.processor_s() > before.processor_s());
        assert!((after.counted_share() - 1.0).abs() < f64::EPSILON);
        // There is no register of these.
        assert!(group.pages.is_empty());
    }

    #[test]
    fn counters_of_the_processor_count_a_loop_or_gyan_says_why_not() {
        let group = match CounterGroup::new(&HARDWARE, open) {
            Ok(group) => group,
            Err(error) => {
                println!("skipped: {}", why_not(&error, paranoid()));
                return;
            }
        };
        let work = || (0..1_000_000_u64).fold(0, |sum, number| black_box(sum ^ number));
        let before = group.total().unwrap();
        black_box(work());
        let after = group.total().unwrap();
        let counted = after.counts.without(&before.counts);
        assert!((1_000_000..100_000_000).contains(&counted.instructions), "{counted:?}");
        assert!((0.01..12.0).contains(&counted.ipc().unwrap()), "{counted:?}");
    }

    #[test]
    fn the_kernel_is_asked_for_the_whole_group_and_counts_are_scaled() {
        let group = faked(&[3, 100, 50, 4000, 2000, 10], 3);
        let total = group.total().unwrap();
        let counts = Counts { instructions: 8000, cycles: 4000, cache_misses: Some(20) };
        assert_eq!(total.counts, counts);
        assert_eq!((total.enabled_ns, total.counted_share()), (100, 0.5));
        // Without cache misses.
        let total = faked(&[2, 100, 100, 4000, 2000], 2).total().unwrap();
        assert_eq!(total.counts, Counts { instructions: 4000, cycles: 2000, cache_misses: None });
        // Never on the processor's counters; too short; another group.
        for words in [&[3, 100, 0, 0, 0, 0][..], &[3, 100, 100, 1, 1], &[1, 1, 1, 1, 1, 1]] {
            assert_eq!(faked(words, 3).total(), None, "{words:?}");
        }
    }

    #[test]
    fn a_register_is_a_signed_number_on_top_of_what_the_page_has() {
        let group = faked(&[], 3);
        let register = |number: u32| match number {
            0 => 5,
            // -1 in 48 bits.
            1 => (1 << 48) - 1,
            _ => 1 << 40,
        };
        assert_eq!(group.read(register), Some([1005, 999, 1000 + (1 << 40)]));
        // The counter counts for others now.
        group.files[1].write_all_at(&0_u32.to_ne_bytes(), 12).unwrap();
        assert_eq!(group.read(register), None);
        // The administrator has forbidden it.
        group.files[1].write_all_at(&2_u32.to_ne_bytes(), 12).unwrap();
        group.files[2].write_all_at(&0_u64.to_ne_bytes(), 40).unwrap();
        assert_eq!(group.read(register), None);
    }

    #[test]
    fn a_page_that_changes_while_it_is_read_is_read_again() {
        let group = faked(&[], 2);
        let changed = Cell::new(false);
        let register = |number: u32| {
            if number == 0 && !changed.replace(true) {
                group.files[0].write_all_at(&2_u32.to_ne_bytes(), 8).unwrap();
                group.files[0].write_all_at(&2_000_i64.to_ne_bytes(), 16).unwrap();
            }
            7
        };
        assert_eq!(group.read(register), Some([2007, 1007, 0]));
    }

    #[test]
    fn without_the_needed_counters_there_are_none_and_why_is_said() {
        let refused =
            |code| CounterGroup::new(&HARDWARE, |_, _| Err(io::Error::from_raw_os_error(code)));
        let why = |code, paranoid| why_not(&refused(code).err().unwrap(), paranoid);
        assert!(why(libc::ENOENT, Some(2)).contains("virtual machine"));
        assert!(why(libc::EACCES, Some(3)).contains("perf_event_paranoid is 3"));
        assert!(why(libc::EPERM, Some(2)).contains("seccomp"));
        assert!(why(libc::ENOSYS, None).contains("kernel has no"));
        assert!(why(libc::EMFILE, None).contains("Too many open files"));
    }
}
