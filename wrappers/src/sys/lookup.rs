//! What belongs to a handle? Any thread can look it up without a lock, while others add and remove.
//!
//! Only code that may use a handle looks it up, so it is not removed meanwhile, and the value found is its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::{array, ptr};

use crate::sys::locks::held;

/// Their keys share a cache line.
const PLACES: usize = 8;
const BUCKETS_AT_FIRST: usize = 16;
const BUCKETS_AT_MOST: usize = 1 << 18;

/// Mixes all bits of a key, best into the highest ones: multiplies by the golden ratio (Knuth, The Art of
/// Computer Programming 3, 6.4). Handles of one library differ in a few bits only, low or high.
#[inline(always)]
pub(crate) fn spread(key: usize) -> u64 {
    (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The same of the lower half of a key only, with a factor that fits into the instruction.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
pub(crate) fn spread_low(key: usize) -> u32 {
    (key as u32).wrapping_mul(0x9e37_79b1)
}

/// FNV-1a by words, with a final step that mixes all bits.
pub(crate) fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    let add = |hash: u64, number: u32| (hash ^ u64::from(number)).wrapping_mul(0x0100_0000_01b3);
    let hash = numbers.fold(0xcbf2_9ce4_8422_2325, add);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Values by key, which never move. More room is made when needed.
pub(crate) struct Lookup<T: 'static> {
    now: AtomicPtr<Buckets<T>>,
    changes: Mutex<()>,
}

struct Buckets<T: 'static>(Box<[Bucket<T>]>);

#[repr(align(64))]
struct Bucket<T: 'static> {
    /// Each plus 1; 0 for a free place.
    keys: [AtomicUsize; PLACES],
    values: [AtomicPtr<T>; PLACES],
}

impl<T: Sync + 'static> Lookup<T> {
    pub(crate) const fn new() -> Lookup<T> {
        Lookup { now: AtomicPtr::new(ptr::null_mut()), changes: Mutex::new(()) }
    }

    #[inline]
    pub(crate) fn get(&self, key: usize) -> Option<&'static T> {
        self.now()?.bucket(key)?.get(key)
    }

    #[inline]
    fn now(&self) -> Option<&'static Buckets<T>> {
        // SAFETY: null, or made by `grown`, and never freed.
        unsafe { self.now.load(Ordering::Acquire).as_ref() }
    }

    /// Sets the value of a key. False when there is no room.
    pub(crate) fn put(&self, key: usize, value: &'static T) -> bool {
        let _changing = held(&self.changes);
        let mut buckets = match self.now() {
            Some(buckets) => buckets,
            None => self.grown(BUCKETS_AT_FIRST, None),
        };
        while !buckets.put(key, value) {
            let wider = 2 * buckets.0.len();
            if wider > BUCKETS_AT_MOST {
                return false;
            }
            buckets = self.grown(wider, Some(buckets));
        }
        true
    }

    /// Removes a key; returns its value.
    pub(crate) fn take(&self, key: usize) -> Option<&'static T> {
        let _changing = held(&self.changes);
        self.now()?.bucket(key)?.take(key)
    }

    /// Allocates room for at least this many buckets, with the content of `old`, which stays allocated because
    /// others may still be reading it. All outgrown tables together are no larger than the current one.
    fn grown(&self, buckets: usize, old: Option<&Buckets<T>>) -> &'static Buckets<T> {
        let mut number = buckets;
        let new = loop {
            let new = Buckets((0..number).map(|_| Bucket::new()).collect());
            let mut old = old.iter().flat_map(|old| old.0.iter()).flat_map(Bucket::entries);
            if old.all(|(key, value)| new.put(key, value)) {
                break new;
            }
            number *= 2;
        };
        let new: &'static mut Buckets<T> = Box::leak(Box::new(new));
        self.now.store(new, Ordering::Release);
        new
    }
}

impl<T: Sync + 'static> Buckets<T> {
    #[inline]
    fn bucket(&self, key: usize) -> Option<&Bucket<T>> {
        self.0.get((spread(key) >> 32) as usize & (self.0.len() - 1))
    }

    fn put(&self, key: usize, value: &'static T) -> bool {
        self.bucket(key).is_some_and(|bucket| bucket.put(key, value))
    }
}

impl<T: Sync + 'static> Bucket<T> {
    fn new() -> Bucket<T> {
        Bucket {
            keys: array::from_fn(|_| AtomicUsize::new(0)),
            values: array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    fn places(&self) -> impl Iterator<Item = (&AtomicUsize, &AtomicPtr<T>)> {
        self.keys.iter().zip(&self.values)
    }

    #[inline]
    fn get(&self, key: usize) -> Option<&'static T> {
        let key = key.wrapping_add(1);
        // Pairs with the Release in `put`: a thread that sees the key sees its value.
        let mut places = self.places();
        let (_, value) = places.find(|(of, _)| of.load(Ordering::Acquire) == key)?;
        // SAFETY: null, or a `&'static T` from `put`.
        unsafe { value.load(Ordering::Relaxed).as_ref() }
    }

    fn entries(&self) -> impl Iterator<Item = (usize, &'static T)> {
        let key = |key: &AtomicUsize| key.load(Ordering::Relaxed).checked_sub(1);
        self.places().filter_map(move |(of, _)| {
            let key = key(of)?;
            Some((key, self.get(key)?))
        })
    }

    fn put(&self, key: usize, value: &'static T) -> bool {
        let key = key.wrapping_add(1);
        let is = |wanted| move |(of, _): &(&AtomicUsize, _)| of.load(Ordering::Relaxed) == wanted;
        let Some((of, at)) = self.places().find(is(key)).or_else(|| self.places().find(is(0)))
        else {
            return false;
        };
        at.store(ptr::from_ref(value).cast_mut(), Ordering::Relaxed);
        of.store(key, Ordering::Release);
        true
    }

    fn take(&self, key: usize) -> Option<&'static T> {
        let value = self.get(key)?;
        let key = key.wrapping_add(1);
        let (of, _) = self.places().find(|(of, _)| of.load(Ordering::Relaxed) == key)?;
        of.store(0, Ordering::Relaxed);
        Some(value)
    }
}

/// The position of a name among several.
pub(crate) const fn position(names: &[&str], wanted: &str) -> Option<usize> {
    let mut at = 0;
    let mut rest = names;
    while let [name, others @ ..] = rest {
        if is_same(name.as_bytes(), wanted.as_bytes()) {
            return Some(at);
        }
        rest = others;
        at += 1;
    }
    None
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([first, one @ ..], [same, other @ ..]) => *first == *same && is_same(one, other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::sys::cells::Counter;

    fn number(number: u64) -> &'static Counter {
        Box::leak(Box::new(Counter::new(number)))
    }

    #[test]
    fn each_key_has_its_own_value_however_many_there_are() {
        let lookup: Lookup<Counter> = Lookup::new();
        assert!(lookup.get(0).is_none() && lookup.take(0).is_none());
        // Keys spaced like pointers, and like integers.
        let keys = |index: usize| [index, 0x7f00_0000_0000 + 320 * index];
        for index in 0..5000 {
            for key in keys(index) {
                assert!(lookup.put(key, number(key as u64)));
            }
        }
        for key in (0..5000).flat_map(keys) {
            assert_eq!(lookup.get(key).unwrap().get(), key as u64);
        }
        assert_eq!(lookup.take(7).unwrap().get(), 7);
        assert!(lookup.get(7).is_none());
        assert!(lookup.put(7, number(1)) && lookup.put(7, number(2)));
        assert_eq!(lookup.get(7).unwrap().get(), 2);
    }

    #[test]
    fn what_is_there_is_found_while_others_come_and_go() {
        static LOOKUP: Lookup<Counter> = Lookup::new();
        assert!(LOOKUP.put(1_000_000, number(5)));
        thread::scope(|scope| {
            for first in [0, 100_000] {
                scope.spawn(move || {
                    for key in first..first + 3000 {
                        assert!(LOOKUP.put(key, number(key as u64)));
                        if key % 2 == 0 {
                            assert_eq!(LOOKUP.take(key).unwrap().get(), key as u64);
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..10_000 {
                    assert_eq!(LOOKUP.get(1_000_000).unwrap().get(), 5);
                }
            });
        });
        assert!(LOOKUP.get(100_001).is_some() && LOOKUP.get(100_002).is_none());
    }
}
