//! A ring of the latest events, in memory that another process may read at any time, also when this one was killed in the middle
//! of an event. There may be several rings of one size side by side, of which one is in use at a time.
//!
//! The memory of each begins with the number of its events so far, the bytes of a ring, and a label of the caller's. Events of four
//! words follow from [`HEAD`] on: number `n` is at `n` modulo their room, a power of two. The last word of an event is 0 while it is
//! written.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence};

/// Where the events begin, in bytes.
pub(crate) const HEAD: usize = 64;
/// The words of an event.
pub(crate) const WORDS: usize = 4;
const EVENT: usize = WORDS * size_of::<u64>();

/// The words of a label.
pub(crate) const LABEL: usize = 6;
/// What a ring begins with.
type Head = [AtomicU64; 2 + LABEL];
const _: () = assert!(size_of::<Head>() == HEAD);

/// The bytes that so many rings take which have room for events of so many bytes in all.
pub(crate) fn size(bytes: usize, rings: usize) -> usize {
    let room = (bytes / EVENT / rings).max(1);
    rings * (HEAD + EVENT * (1 << room.ilog2()))
}

/// What is in the memory of a ring.
#[derive(Clone, Copy)]
pub(crate) struct RingContent<'a> {
    /// The number of events so far.
    pub(crate) number: u64,
    pub(crate) label: [u64; LABEL],
    /// The memory of the events.
    pub(crate) events: &'a [u8],
}

/// The rings in memory that [`Rings::begin`] got; none if it did not.
pub(crate) fn contents(memory: &[u8]) -> impl Iterator<Item = RingContent<'_>> {
    let head = |memory: &[u8]| {
        let (words, _) = memory.get(..HEAD)?.as_chunks();
        let words: [[u8; 8]; 2 + LABEL] = words.try_into().ok()?;
        Some(words.map(u64::from_ne_bytes))
    };
    let bytes = head(memory).and_then(|[_, bytes, ..]| usize::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| *bytes > 0).unwrap_or(usize::MAX);
    memory.chunks_exact(bytes).filter_map(move |memory| {
        let [number, _, label @ ..] = head(memory)?;
        Some(RingContent { number, label, events: memory.get(HEAD..)? })
    })
}

pub(crate) struct Rings {
    /// Of the ring in use; null until it begins.
    number: AtomicPtr<AtomicU64>,
    /// The room less 1.
    mask: AtomicUsize,
    first: AtomicPtr<AtomicU64>,
    /// How many there are.
    count: AtomicUsize,
    /// How many events were forgotten.
    forgotten: AtomicU64,
}

impl Rings {
    pub(crate) const fn new() -> Rings {
        Rings {
            number: AtomicPtr::new(std::ptr::null_mut()),
            mask: AtomicUsize::new(0),
            first: AtomicPtr::new(std::ptr::null_mut()),
            count: AtomicUsize::new(0),
            forgotten: AtomicU64::new(0),
        }
    }

    /// From now on events are added to the first of so many rings.
    ///
    /// # Safety
    ///
    /// There are `bytes` zeros, as [`size`] says for so many `rings`, aligned to words; they stay for ever, and nothing but these
    /// rings writes them.
    pub(crate) unsafe fn begin(&self, memory: *mut u8, bytes: usize, rings: usize) {
        let bytes = bytes / rings;
        self.mask.store(bytes.saturating_sub(HEAD) / EVENT - 1, Ordering::Relaxed);
        self.count.store(rings, Ordering::Relaxed);
        // Pairs with Acquire in `head`.
        self.first.store(memory.cast(), Ordering::Release);
        for ring in 0..rings {
            if let Some([_, size, ..]) = self.head(ring) {
                size.store(bytes as u64, Ordering::Relaxed);
            }
        }
        // Pairs with Acquire in `push`.
        self.number.store(memory.cast(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.number.load(Ordering::Relaxed).is_null()
    }

    /// The head of a ring, if there is that one.
    fn head(&self, ring: usize) -> Option<&'static Head> {
        let first = self.first.load(Ordering::Acquire);
        if first.is_null() || ring >= self.count.load(Ordering::Relaxed) {
            return None;
        }
        let bytes = HEAD + (self.mask.load(Ordering::Relaxed) + 1) * EVENT;
        // SAFETY: the memory has so many rings, each of these bytes.
        let head = unsafe { first.byte_add(ring * bytes) };
        // SAFETY: what a ring begins with; the memory stays.
        Some(unsafe { &*head.cast() })
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        let rings = 0..self.count.load(Ordering::Relaxed);
        let left = rings.filter_map(|ring| Some(self.head(ring)?[0].load(Ordering::Relaxed)));
        left.sum::<u64>() + self.forgotten.load(Ordering::Relaxed)
    }

    /// Forgets that there were events.
    pub(crate) fn forget(&self) {
        (0..self.count.load(Ordering::Relaxed)).for_each(|ring| self.clear(ring));
        self.forgotten.store(0, Ordering::Relaxed);
    }

    /// Forgets the events of a ring, and its label.
    pub(crate) fn clear(&self, ring: usize) {
        let Some([number, _, label @ ..]) = self.head(ring) else { return };
        // Whoever reads it meanwhile finds no label without events that it is about.
        for word in label {
            word.store(0, Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        self.forgotten.fetch_add(number.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Labels a ring.
    pub(crate) fn label(&self, ring: usize, words: [u64; LABEL]) {
        let Some([_, _, label @ ..]) = self.head(ring) else { return };
        for (place, word) in label.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Adds events to another ring from now on.
    pub(crate) fn turn_to(&self, ring: usize) {
        let Some([number, ..]) = self.head(ring) else { return };
        // Pairs with Acquire in `push`.
        self.number.store(std::ptr::from_ref(number).cast_mut(), Ordering::Release);
    }

    /// Adds an event; its last word is 0 if it says nothing. `alone`: no other thread adds any.
    #[inline]
    pub(crate) fn push(&self, alone: bool, event: [u64; WORDS]) {
        let memory = self.number.load(Ordering::Acquire);
        // SAFETY: none yet, or the first word of a ring, whose memory stays.
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
impl Rings {
    /// Rings with room for events of so many bytes in all, and their memory.
    pub(crate) fn leaked(bytes: usize, rings: usize) -> (Rings, &'static [AtomicU64]) {
        let size = size(bytes, rings);
        let words = Box::leak((0..size / 8).map(|_| AtomicU64::new(0)).collect());
        let all = Rings::new();
        // SAFETY: leaked zeros of this size.
        unsafe { all.begin(words.as_ptr().cast_mut().cast(), size, rings) };
        (all, words)
    }
}

/// The bytes of memory.
#[cfg(test)]
pub(crate) fn bytes_of(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// The first word of each place for an event.
    fn places(events: &[u8]) -> Vec<u64> {
        let (words, _) = events.as_chunks();
        words.iter().step_by(WORDS).map(|word| u64::from_ne_bytes(*word)).collect()
    }

    #[test]
    fn the_latest_events_stay() {
        let (ring, words) = Rings::leaked(5 * EVENT, 1);
        for number in 1..=6 {
            ring.push(true, [number; WORDS]);
        }
        assert_eq!((size(5 * EVENT, 1), ring.events()), (HEAD + 4 * EVENT, 6));
        let bytes = bytes_of(words);
        let [content] = contents(&bytes).collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!((content.number, places(content.events)), (6, vec![5, 6, 3, 4]));
    }

    #[test]
    fn each_ring_has_the_events_that_came_while_it_was_in_use_and_all_are_counted() {
        let (all, words) = Rings::leaked(3 * 2 * EVENT, 3);
        for (number, ring) in (1..).zip([0, 0, 2, 1, 1, 2]) {
            all.turn_to(ring);
            all.push(number % 2 == 0, [number; WORDS]);
        }
        all.label(2, [1, 2, 3, 4, 5, 6]);
        let seen = || {
            let bytes = bytes_of(words);
            let of =
                |content: RingContent| (content.number, content.label[5], places(content.events));
            contents(&bytes).map(of).collect::<Vec<_>>()
        };
        assert_eq!(seen(), [(2, 0, vec![1, 2]), (2, 0, vec![4, 5]), (2, 6, vec![3, 6])]);
        all.clear(2);
        all.turn_to(2);
        all.push(true, [7; WORDS]);
        assert_eq!(seen()[2], (1, 0, vec![7, 6]));
        assert_eq!(all.events(), 7);
        // There is no such ring.
        all.turn_to(3);
        all.push(true, [8; WORDS]);
        assert_eq!(seen()[2], (2, 0, vec![7, 8]));
    }

    #[test]
    fn no_event_of_threads_is_lost_while_there_is_room() {
        let (ring, words) = Rings::leaked(4096 * EVENT, 1);
        thread::scope(|scope| {
            for thread in 0..4 {
                let ring = &ring;
                scope.spawn(move || {
                    (1..=1024).for_each(|number| ring.push(false, [thread * 1024 + number; 4]));
                });
            }
        });
        let mut events = places(&bytes_of(words)[HEAD..]);
        events.sort_unstable();
        assert_eq!(events, (1..=4096).collect::<Vec<_>>());
    }

    #[test]
    fn before_it_begins_nothing_is_kept() {
        let ring = Rings::new();
        ring.push(true, [1; WORDS]);
        assert!(!ring.is_on() && ring.events() == 0);
    }
}
