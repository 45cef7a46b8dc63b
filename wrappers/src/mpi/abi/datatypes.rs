//! How many bytes does an element of a predefined datatype have? The library is asked once of each: a predefined
//! datatype lives as long as MPI does, so its handle never means another one (MPI 4.1, 5.1.9: it cannot be freed).

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Inquiry;
use crate::sys::lookup::spread_low;

/// The size of the table: a power of two. Programs use a few of the predefined datatypes.
const PLACES_BITS: u32 = 7;

/// Not the handle of any datatype, in any known library; of none there are no bytes.
const FREE: usize = 0;
/// Neither is this: the size is being written.
const TAKEN: usize = 1;

/// A predefined datatype. Never changes once it has a handle.
#[repr(C)]
struct DatatypeSlot {
    handle: AtomicUsize,
    bytes: AtomicUsize,
}

static PLACES: [DatatypeSlot; 1 << PLACES_BITS] =
    [const { DatatypeSlot { handle: AtomicUsize::new(FREE), bytes: AtomicUsize::new(0) } };
        1 << PLACES_BITS];

#[inline(always)]
fn place(handle: usize) -> Option<&'static DatatypeSlot> {
    PLACES.get((spread_low(handle) >> (u32::BITS - PLACES_BITS)) as usize)
}

/// Bytes per element of a predefined datatype that was asked about before. `handle`: as a machine word whose unused
/// bits may be anything, for which the datatype is not found.
#[inline(always)]
pub(crate) fn known_size(handle: usize) -> Option<u64> {
    let place = place(handle)?;
    // Pairs with the Release in `learn`.
    (place.handle.load(Ordering::Acquire) == handle)
        .then(|| place.bytes.load(Ordering::Relaxed) as u64)
}

/// For the keeper: where in memory the words of a predefined datatype are that was asked about.
pub(crate) fn words_at(handle: usize) -> Option<usize> {
    place(handle).map(|place| std::ptr::from_ref(place).addr())
}

/// What such words say of a datatype.
pub(crate) fn size_in(words: [usize; 2], handle: usize) -> Option<u64> {
    let [found, bytes] = words;
    (found == handle && ![FREE, TAKEN].contains(&found)).then_some(bytes as u64)
}

/// Bytes per element of any datatype; remembers those of a predefined one. None when the library does not say.
#[cold]
pub(crate) fn size(mpi: &Inquiry, handle: usize) -> Option<u64> {
    let size = mpi.type_size(handle)?;
    if let Some(place) = place(handle)
        && place.handle.load(Ordering::Relaxed) == FREE
        && mpi.is_predefined(handle)
    {
        learn(place, handle, size);
    }
    Some(size)
}

/// Not if another thread is quicker.
fn learn(place: &DatatypeSlot, handle: usize, size: u64) {
    let Ok(size) = usize::try_from(size) else { return };
    let relaxed = Ordering::Relaxed;
    if place.handle.compare_exchange(FREE, TAKEN, relaxed, relaxed).is_ok() {
        place.bytes.store(size, relaxed);
        place.handle.store(handle, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_the_first_datatype_and_answers_for_no_other() {
        let (first, other) = (0x4c00_0405, 0x4c00_0406);
        assert_eq!(known_size(first), None);
        learn(place(first).unwrap(), first, 4);
        learn(place(first).unwrap(), other, 8);
        assert_eq!((known_size(first), known_size(other)), (Some(4), None));
        assert_eq!([first, other].map(|handle| size_in([first, 4], handle)), [Some(4), None]);
        assert_eq!(size_in([FREE, 0], FREE), None);
        // The library's handles are `int`, and the upper half of the word is not part of it.
        assert_eq!(known_size(first | 1 << 40), None);
    }
}
