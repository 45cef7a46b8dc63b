//! A ring of the latest events, in memory that another process may read at any time, also when this one was killed in the middle
//! of an event.
//!
//! The memory begins with the number of events so far. Events of four words follow from [`HEAD`] on: number `n` is at `n` modulo
//! their room, a power of two. The last word of an event is 0 while it is written.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence};

/// Where the events begin, in bytes.
pub(crate) const HEAD: usize = 64;
/// The words of an event.
pub(crate) const WORDS: usize = 4;
const EVENT: usize = WORDS * size_of::<u64>();

/// The bytes that a ring takes which has room for events of so many bytes in all.
pub(crate) fn size(bytes: usize) -> usize {
    let room = (bytes / EVENT).max(1);
    HEAD + EVENT * (1 << room.ilog2())
}

/// The number of events so far, and those in the ring, from the bytes of its memory.
pub(crate) fn content(memory: &[u8]) -> Option<(u64, &[u8])> {
    let number = u64::from_ne_bytes(*memory.first_chunk()?);
    Some((number, memory.get(HEAD..)?))
}

pub(crate) struct Ring {
    /// Null until it begins.
    number: AtomicPtr<AtomicU64>,
    /// The room less 1.
    mask: AtomicUsize,
}

impl Ring {
    pub(crate) const fn new() -> Ring {
        Ring { number: AtomicPtr::new(std::ptr::null_mut()), mask: AtomicUsize::new(0) }
    }

    /// # Safety
    ///
    /// There are `bytes` zeros, as [`size`] says, aligned to words; they stay for ever, and nothing but this ring writes them.
    pub(crate) unsafe fn begin(&self, memory: *mut u8, bytes: usize) {
        self.mask.store(bytes.saturating_sub(HEAD) / EVENT - 1, Ordering::Relaxed);
        // Pairs with Acquire in `push`.
        self.number.store(memory.cast(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.number.load(Ordering::Relaxed).is_null()
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        // SAFETY: none yet, or the first word of the memory, which stays.
        let number = unsafe { self.number.load(Ordering::Acquire).as_ref() };
        number.map_or(0, |number| number.load(Ordering::Relaxed))
    }

    /// Forgets all events.
    pub(crate) fn forget(&self) {
        // SAFETY: none yet, or the first word of the memory, which stays.
        if let Some(number) = unsafe { self.number.load(Ordering::Acquire).as_ref() } {
            number.store(0, Ordering::Relaxed);
        }
    }

    /// Adds an event; its last word is 0 if it says nothing. `alone`: no other thread adds any.
    #[inline]
    pub(crate) fn push(&self, alone: bool, event: [u64; WORDS]) {
        let memory = self.number.load(Ordering::Acquire);
        // SAFETY: none yet, or the first word of the memory, which stays.
        let Some(next) = (unsafe { memory.as_ref() }) else { return };
        let number =
            if alone { next.load(Ordering::Relaxed) } else { next.fetch_add(1, Ordering::Relaxed) };
        #[allow(clippy::cast_possible_truncation)]
        let at = HEAD + (number as usize & self.mask.load(Ordering::Relaxed)) * EVENT;
        // SAFETY: the memory has room for this event.
        let place = unsafe { memory.byte_add(at) };
        // SAFETY: its words, which are only read and written as such.
        let [begin @ .., last] = unsafe { &*place.cast::<[AtomicU64; WORDS]>() };
        let [words @ .., last_word] = event;
        // Another process reads them when this one has ended: only the order of the instructions counts.
        last.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        for (place, word) in begin.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        last.store(last_word, Ordering::Relaxed);
        if alone {
            compiler_fence(Ordering::SeqCst);
            next.store(number + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn ring(bytes: usize) -> (Ring, &'static [AtomicU64]) {
        let words = Box::leak((0..size(bytes) / 8).map(|_| AtomicU64::new(0)).collect());
        let ring = Ring::new();
        // SAFETY: leaked zeros of this size.
        unsafe { ring.begin(words.as_ptr().cast_mut().cast(), size(bytes)) };
        (ring, words)
    }

    #[test]
    fn the_latest_events_stay() {
        let (ring, words) = ring(5 * EVENT);
        for number in 1..=6 {
            ring.push(true, [number; WORDS]);
        }
        assert_eq!((size(5 * EVENT), ring.events()), (HEAD + 4 * EVENT, 6));
        let words = words.iter().map(|word| word.load(Ordering::Relaxed)).skip(HEAD / 8);
        let events: Vec<u64> = words.step_by(WORDS).collect();
        assert_eq!(events, [5, 6, 3, 4]);
    }

    #[test]
    fn no_event_of_threads_is_lost_while_there_is_room() {
        let (ring, words) = ring(4096 * EVENT);
        thread::scope(|scope| {
            for thread in 0..4 {
                let ring = &ring;
                scope.spawn(move || {
                    (1..=1024).for_each(|number| ring.push(false, [thread * 1024 + number; 4]));
                });
            }
        });
        let words = words.iter().map(|word| word.load(Ordering::Relaxed)).skip(HEAD / 8);
        let mut events: Vec<u64> = words.step_by(WORDS).collect();
        events.sort_unstable();
        assert_eq!(events, (1..=4096).collect::<Vec<_>>());
    }

    #[test]
    fn before_it_begins_nothing_is_kept() {
        let ring = Ring::new();
        ring.push(true, [1; WORDS]);
        assert!(!ring.is_on() && ring.events() == 0);
    }
}
