//! What if there is no memory left? Rust ends a process whose allocation fails, which would end the
//! application. So gyan has a small reserve for when the C library has no memory. It bridges the moment and the
//! end of the run: code that would need more asks [`is_short`] and does without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Address space, which takes no memory until it is needed. A start and an end take far less.
const RESERVE_BYTES: usize = 4 << 20;

/// The memory that gyan needs for one reading of a variable, including names and texts, and the fixed part:
/// more than was measured.
const READING_BYTES: usize = 4 << 10;
const OTHER_BYTES: usize = 1 << 20;

/// Serves only gyan's allocations: libgyan.so has its own copy of std.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator { reserve: Reserve::new() };

/// Whether the C library has had no memory for gyan.
static SHORT: AtomicBool = AtomicBool::new(false);

struct Allocator {
    reserve: Reserve,
}

/// Whether memory has run out.
#[inline]
pub(crate) fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Whether there is memory for work on this many readings of variables.
pub(crate) fn is_enough_for(readings: usize) -> bool {
    let is_there = is_there(needed(readings));
    if !is_there {
        SHORT.store(true, Ordering::Relaxed);
    }
    is_there
}

/// The same for the last work of the run, which may use up the reserve.
pub(crate) fn is_enough_at_the_end_for(readings: usize) -> bool {
    is_enough_for(readings) || needed(readings) <= ALLOCATOR.reserve.left()
}

fn needed(readings: usize) -> usize {
    readings.saturating_mul(READING_BYTES).saturating_add(OTHER_BYTES)
}

/// Whether this many bytes are available. Does not ask the C library, which would handle the application's
/// blocks differently afterwards.
fn is_there(bytes: usize) -> bool {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: mmap(2) of new memory at a place of the kernel's choice.
    let place = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    if place == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: munmap(2) of that memory, which nobody has used.
    unsafe { libc::munmap(place, bytes) };
    true
}

// SAFETY: blocks from `System` are passed on unchanged and go back there. Other blocks come from the reserve,
// where each has a single owner, has the requested size and alignment, and stays in place until it is freed.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            return block;
        }
        SHORT.store(true, Ordering::Relaxed);
        self.reserve.take(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.reserve.holds(block) {
            self.reserve.give_back(block, layout);
        } else {
            // SAFETY: the caller's contract, and it came from there.
            unsafe { System.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !self.reserve.holds(block) {
            // SAFETY: the caller's contract, and it came from there.
            let larger = unsafe { System.realloc(block, layout, bytes) };
            if !larger.is_null() {
                return larger;
            }
        }
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else {
            return ptr::null_mut();
        };
        // SAFETY: the size is not 0, as the caller promises.
        let other = unsafe { self.alloc(wanted) };
        if !other.is_null() {
            // SAFETY: two blocks, each of which has at least this many bytes.
            unsafe { ptr::copy_nonoverlapping(block, other, layout.size().min(bytes)) };
            // SAFETY: the caller's contract; it is not used any more.
            unsafe { self.dealloc(block, layout) };
        }
        other
    }
}

/// Memory that is handed out from bottom to top. Only the topmost block can be freed.
#[repr(C, align(4096))]
struct Reserve {
    bytes: UnsafeCell<[u8; RESERVE_BYTES]>,
    taken: AtomicUsize,
}

// SAFETY: its bytes are used only by the owners of blocks, and `taken` is atomic.
unsafe impl Sync for Reserve {}

impl Reserve {
    // It is evaluated at compile time.
    #[allow(clippy::large_stack_arrays)]
    const fn new() -> Reserve {
        Reserve { bytes: UnsafeCell::new([0; RESERVE_BYTES]), taken: AtomicUsize::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    fn left(&self) -> usize {
        RESERVE_BYTES.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    fn holds(&self, block: *mut u8) -> bool {
        self.offset(block) < RESERVE_BYTES
    }

    fn offset(&self, block: *mut u8) -> usize {
        (block as usize).wrapping_sub(self.start() as usize)
    }

    /// A block; null when there is no room.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let mut taken = self.taken.load(Ordering::Acquire);
        loop {
            // The whole is aligned to a page.
            let end = taken
                .checked_next_multiple_of(layout.align())
                .and_then(|begin| begin.checked_add(layout.size()))
                .filter(|end| *end <= RESERVE_BYTES && layout.align() <= align_of::<Reserve>());
            let Some(end) = end else { return ptr::null_mut() };
            // Acquire pairs with the Release of the thread that freed the bytes.
            let exchanged =
                self.taken.compare_exchange(taken, end, Ordering::Acquire, Ordering::Acquire);
            match exchanged {
                // SAFETY: inside of the bytes.
                Ok(_) => return unsafe { self.start().add(end - layout.size()) },
                Err(now) => taken = now,
            }
        }
    }

    #[cold]
    fn give_back(&self, block: *mut u8, layout: Layout) {
        let begin = self.offset(block);
        let end = begin + layout.size();
        // Alignment padding below it stays taken; if it is not the topmost, all of it does.
        let _ = self.taken.compare_exchange(end, begin, Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).unwrap()
    }

    #[test]
    fn blocks_of_the_reserve_are_aligned_apart_and_no_more_than_there_are() {
        // Too large for a stack.
        static RESERVE: Reserve = Reserve::new();
        let reserve = &RESERVE;
        let first = reserve.take(layout(3, 1));
        let second = reserve.take(layout(100, 64));
        assert!(reserve.holds(first) && reserve.holds(second));
        assert_eq!((second as usize % 64, reserve.offset(second)), (0, 64));
        assert!(reserve.take(layout(RESERVE_BYTES, 1)).is_null());
        assert!(reserve.take(layout(usize::MAX / 4, 8)).is_null());
        // The topmost block is freed, others are not.
        reserve.give_back(first, layout(3, 1));
        reserve.give_back(second, layout(100, 64));
        assert_eq!(reserve.take(layout(1, 1)), second);
        let rest = reserve.take(layout(RESERVE_BYTES - 65, 1));
        assert!(reserve.holds(rest) && reserve.take(layout(1, 1)).is_null());
        assert!(!reserve.holds(ptr::from_ref(&reserve).cast_mut().cast()));
    }
}
