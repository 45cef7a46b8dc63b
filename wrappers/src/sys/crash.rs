//! Where does the process crash? A handler copies what tells it to memory that another process shares: the registers, the
//! memory map and the inner part of the stack. Then what was there before gets its turn, and the process ends as without gyan.
//!
//! The handler allocates nothing, takes no lock, and writes nothing but that memory.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use rustix::fs::{Mode, OFlags};

use super::handlers::{self, CRASHES, Former};
use super::maps::{self, MappedPart};

/// Where the map is, after the header, and the stack after that. Memory that is not written takes no room.
const MAPS_AT: usize = 4 << 10;
const STACK_AT: usize = 1 << 20;
/// Of a larger stack, the inner part is copied.
const STACK_ROOM: usize = 1 << 20;
/// The size of the memory.
pub(crate) const BYTES: usize = STACK_AT + STACK_ROOM;
/// Below the stack pointer, functions that call no other may have data (System V ABI for x86-64, 3.2.2).
const RED_ZONE: usize = 128;
/// A thread whose stack is full has its stack pointer at most so far below it.
const BELOW_A_FULL_STACK: usize = 64 << 10;

/// What is at the beginning of the memory.
#[repr(C)]
struct CrashHeader {
    /// One of the states below.
    state: AtomicU32,
    signal: c_int,
    /// 1 if another process sent it, otherwise 0.
    sent: c_int,
    registers: CrashRegisters,
    stack_begin: usize,
    /// How much of the stack was copied.
    stack_bytes: usize,
    /// Where it ends.
    stack_end: usize,
    maps_bytes: usize,
}

/// Nothing has crashed.
const NONE: u32 = 0;
/// A thread writes it.
const BEGUN: u32 = 1;
const WHOLE: u32 = 2;

/// The registers that say where a thread is, and how it got there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub(crate) struct CrashRegisters {
    pub(crate) pc: usize,
    pub(crate) sp: usize,
    pub(crate) fp: usize,
    /// Where a function returns to that calls no other; only on processors that have it.
    pub(crate) lr: usize,
}

/// A stack for the handler: a crash can be the overflow of the program's. Large enough for all registers of any processor.
struct CrashStack(UnsafeCell<[u128; 4096]>);

// SAFETY: the system uses it for the one thread that has it.
unsafe impl Sync for CrashStack {}

static STACK: CrashStack = CrashStack(UnsafeCell::new([0; 4096]));
/// The memory; null while crashes are not noted.
static MEMORY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// A forked copy of the process is not it.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static FORMER: [Former; CRASHES.len()] = [const { Former::new() }; CRASHES.len()];

/// Notes a crash in `memory` from now on: [`BYTES`] zeros that stay. A handler that is there already stays alone unless
/// `goes_before(handler)`.
pub(crate) fn begin(memory: *mut c_void, goes_before: impl Fn(usize) -> bool) {
    PROCESS.store(process(), Ordering::Relaxed);
    MEMORY.store(memory, Ordering::Release);
    for (signal, former) in CRASHES.into_iter().zip(&FORMER) {
        let now = handlers::action(signal);
        let is_default = now.sa_sigaction == libc::SIG_DFL;
        let is_ours = now.sa_sigaction == our_handler();
        let is_wanted = is_default || goes_before(now.sa_sigaction);
        // The former action is noted first: another thread may need it at once.
        if is_ours || now.sa_sigaction == libc::SIG_IGN || !is_wanted || !former.note(signal) {
            continue;
        }
        let mut action = now;
        action.sa_sigaction = our_handler();
        let ours = libc::SA_SIGINFO | libc::SA_ONSTACK;
        action.sa_flags = (now.sa_flags & !libc::SA_RESETHAND) | ours;
        // SAFETY: the handler has the type that the flags say and does what a handler may do.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    if handlers::has_no_stack() {
        let stack = libc::stack_t {
            ss_sp: STACK.0.get().cast(),
            ss_flags: 0,
            ss_size: size_of::<[u128; 4096]>(),
        };
        // SAFETY: the memory lives forever, and no other thread has it: a process begins once.
        unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
    }
}

/// Notes none any more. A handler that the program has put in gyan's place stays.
pub(crate) fn end() {
    if MEMORY.swap(ptr::null_mut(), Ordering::Relaxed).is_null() {
        return;
    }
    for (signal, former) in CRASHES.into_iter().zip(&FORMER) {
        let is_ours = handlers::action(signal).sa_sigaction == our_handler();
        if let Some(former) = former.last().filter(|_| is_ours) {
            // SAFETY: what was there before is valid.
            unsafe { libc::sigaction(signal, former, ptr::null_mut()) };
        }
    }
    if handlers::stack().is_some_and(|stack| stack.ss_sp == STACK.0.get().cast()) {
        handlers::give_up_stack();
    }
}

fn our_handler() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// As the system says it: a copy that `vfork` or `clone` made may have what the C library knows of its parent.
fn process() -> i32 {
    // SAFETY: getpid(2) takes nothing.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    i32::try_from(pid).unwrap_or(0)
}

/// # Safety
/// Called by the kernel, with what it gives to a handler with `SA_SIGINFO`.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let memory = MEMORY.load(Ordering::Acquire);
    let mut stack = 0..0;
    // SAFETY: the kernel gives a context.
    let registers = registers(unsafe { &*context.cast() });
    // SAFETY: the kernel gives what has happened.
    let what = unsafe { &*info };
    if !memory.is_null() && process() == PROCESS.load(Ordering::Relaxed) {
        // SAFETY: as `begin` was promised.
        stack = unsafe { note(memory, signal, is_sent(what), registers) };
    }
    let known = CRASHES.into_iter().zip(&FORMER).find(|(known, _)| *known == signal);
    let Some(former) = known.and_then(|(_, former)| former.last()) else { return };
    let is_full = signal == libc::SIGSEGV && is_full(&stack, registers.sp, what);
    if is_full && former.sa_flags & libc::SA_ONSTACK == 0 {
        // Without gyan there would have been no room for that handler. The fault recurs by itself.
        // SAFETY: the default action is always allowed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: as the kernel gave them.
    unsafe { handlers::call(former, signal, info, context) };
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> CrashRegisters {
    let all = &context.uc_mcontext.gregs;
    let register = |name: c_int| {
        let value = usize::try_from(name).ok().and_then(|place| all.get(place)).copied();
        usize::try_from(value.unwrap_or(0).cast_unsigned()).unwrap_or(0)
    };
    let [pc, sp, fp] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(register);
    CrashRegisters { pc, sp, fp, lr: 0 }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> CrashRegisters {
    let machine = &context.uc_mcontext;
    let register = |place: usize| machine.regs.get(place).copied().unwrap_or(0) as usize;
    let (pc, sp) = (machine.pc as usize, machine.sp as usize);
    CrashRegisters { pc, sp, fp: register(29), lr: register(30) }
}

/// Whether another process sent a signal, by kill(2).
fn is_sent(info: &libc::siginfo_t) -> bool {
    // SAFETY: a signal that was sent has a sender.
    info.si_code == libc::SI_USER && unsafe { info.si_pid() } != PROCESS.load(Ordering::Relaxed)
}

/// Whether a fault was that of a thread whose stack is full.
fn is_full(stack: &Range<usize>, sp: usize, info: &libc::siginfo_t) -> bool {
    // SAFETY: a fault has an address.
    let at = unsafe { info.si_addr() }.addr();
    let is_near = |one: usize, other: usize| one.abs_diff(other) <= BELOW_A_FULL_STACK;
    let is_below = at < stack.start && is_near(at, stack.start);
    handlers::is_fault(info) && is_below && is_near(sp, stack.start)
}

/// Returns where the stack is, if it was looked for.
///
/// # Safety
/// `memory` has [`BYTES`] bytes that other threads write here only.
unsafe fn note(
    memory: *mut c_void,
    signal: c_int,
    sent: bool,
    registers: CrashRegisters,
) -> Range<usize> {
    // SAFETY: the header is at the beginning of it.
    let state = unsafe { &(*memory.cast::<CrashHeader>()).state };
    // The first crash is what went wrong. A thread that crashes meanwhile would end the process.
    let (relaxed, acquire) = (Ordering::Relaxed, Ordering::Acquire);
    if state.compare_exchange(NONE, BEGUN, acquire, relaxed).is_err() {
        wait_until_whole(state);
        return 0..0;
    }
    // SAFETY: the map's room is inside of it.
    let place = unsafe { memory.byte_add(MAPS_AT) }.cast();
    // SAFETY: as above; only this thread writes it.
    let place = unsafe { std::slice::from_raw_parts_mut(place, STACK_AT - MAPS_AT) };
    let maps_bytes = read_maps(place);
    let stack = stack_at(registers.sp, place.get(..maps_bytes).unwrap_or_default());
    let begin = registers.sp.saturating_sub(RED_ZONE).max(stack.start);
    let stack_bytes = stack.end.saturating_sub(begin).min(STACK_ROOM);
    // SAFETY: the stack's room is inside of it.
    let place: *mut u8 = unsafe { memory.byte_add(STACK_AT) }.cast();
    // SAFETY: this much of the stack is mapped there, by the map, and has room here.
    unsafe { ptr::copy_nonoverlapping(begin as *const u8, place, stack_bytes) };
    let header = CrashHeader {
        state: AtomicU32::new(BEGUN),
        signal,
        sent: sent.into(),
        registers,
        stack_begin: begin,
        stack_bytes,
        stack_end: stack.end,
        maps_bytes,
    };
    // SAFETY: there is room for it, and only this thread writes it.
    unsafe { memory.cast::<CrashHeader>().write(header) };
    state.store(WHOLE, Ordering::Release);
    stack
}

fn wait_until_whole(state: &AtomicU32) {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    for _ in 0..100 {
        if state.load(Ordering::Acquire) == WHOLE {
            return;
        }
        // SAFETY: nanosleep(2) with a time, whatever is left of it.
        unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
    }
}

/// Returns how many bytes there were.
fn read_maps(into: &mut [u8]) -> usize {
    let mut length = 0;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(c"/proc/self/maps", flags, Mode::empty()) else { return 0 };
    while let Some(rest) = into.get_mut(length..)
        && let Ok(read @ 1..) = rustix::io::read(&file, rest)
    {
        length += read;
    }
    length
}

/// The memory that the stack pointer is in, or slightly below of.
fn stack_at(sp: usize, maps: &[u8]) -> Range<usize> {
    let above = maps::parts(maps).map(|part| part.range).filter(|range| range.end > sp);
    let nearest = above.min_by_key(|range| range.start);
    nearest.filter(|range| range.start <= sp.saturating_add(BELOW_A_FULL_STACK)).unwrap_or(0..0)
}

/// What was noted of a crash.
pub(crate) struct NotedCrash<'a> {
    pub(crate) signal: c_int,
    pub(crate) sent: bool,
    pub(crate) registers: CrashRegisters,
    maps: &'a [u8],
    /// Where the copied part of the stack begins, and where all of it ends.
    pub(crate) stack_begin: usize,
    pub(crate) stack_end: usize,
    pub(crate) stack: &'a [u8],
}

impl NotedCrash<'_> {
    /// What is in `memory`: none if nothing has crashed.
    pub(crate) fn read(memory: &[u8]) -> Option<NotedCrash<'_>> {
        let bytes = memory.get(..size_of::<CrashHeader>())?;
        // SAFETY: so many bytes, which are a header whatever their values.
        let header = unsafe { bytes.as_ptr().cast::<CrashHeader>().read_unaligned() };
        if header.state.into_inner() != WHOLE {
            return None;
        }
        Some(NotedCrash {
            signal: header.signal,
            sent: header.sent != 0,
            registers: header.registers,
            maps: memory.get(MAPS_AT..)?.get(..header.maps_bytes)?,
            stack_begin: header.stack_begin,
            stack_end: header.stack_end,
            stack: memory.get(STACK_AT..)?.get(..header.stack_bytes)?,
        })
    }

    /// The code that was mapped.
    pub(crate) fn code(&self) -> impl Iterator<Item = MappedPart<'_>> {
        maps::parts(self.maps).filter(|part| part.is_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"400000-500000 r-xp 00000000 08:02 1 /app\n\
        700000-800000 rw-p 00000000 00:00 0 [stack]\n";

    #[test]
    fn the_stack_of_a_thread_is_found_also_if_it_is_full() {
        let stack = 0x70_0000..0x80_0000;
        let found =
            [0x70_1000, 0x70_0000 - 4096, 0x60_0000, 0x90_0000].map(|sp| stack_at(sp, MAPS));
        assert_eq!(found, [stack.clone(), stack, 0..0, 0..0]);
    }

    #[test]
    fn what_is_noted_is_read_and_the_first_crash_stays() {
        let mut memory = vec![0_u64; BYTES / 8];
        assert!(NotedCrash::read(&[0; 4096]).is_none());
        let here = 7_u64;
        let sp = (&raw const here).addr();
        let registers = CrashRegisters { pc: our_handler(), sp, fp: 3, lr: 4 };
        let (first, second) = (libc::SIGSEGV, libc::SIGABRT);
        for signal in [first, second] {
            // SAFETY: so many bytes, of this thread alone; the stack pointer is one of this thread's stack.
            unsafe { note(memory.as_mut_ptr().cast(), signal, false, registers) };
        }
        let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let noted = NotedCrash::read(&bytes).unwrap();
        assert_eq!((noted.signal, noted.sent, noted.registers), (first, false, registers));
        let at = sp - noted.stack_begin;
        assert_eq!(noted.stack[at..at + 8], 7_u64.to_ne_bytes());
        assert!(noted.code().any(|part| part.range.contains(&our_handler())));
        assert!(noted.stack_end > sp && noted.stack.len() <= STACK_ROOM);
    }
}
