//! One variable that can be read at any call without a lock: its handles, by the object that they are bound to.
//! They are published while they live, by holders of the run's lock.
//!
//! A receive that names its communicator needs no lock: its slot stays as it is, because the program may
//! not free what it receives on. One that does not know its communicator (`MPI_Mrecv`) reads the handles
//! of all, of which another thread may be freeing one: it holds [`CHANGES`].

use std::ffi::c_void;
use std::mem::{self, MaybeUninit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::{ptr, slice};

use gyan_results::{Datatype, Number};

use super::api::{Api, Raw};
use super::handle::{PvarHandle, Session};
use crate::sys::guard;
use crate::sys::locks::held;

/// Objects whose handles are published at a time.
const SLOTS: usize = 256;
/// Elements that are read onto the stack.
const FEW: usize = 64;
/// As in `handle`: some libraries write 8 bytes per element whatever they say.
const SPARE: usize = 8;

type Read = unsafe extern "C" fn(Raw, Raw, *mut c_void) -> std::ffi::c_int;

/// A published handle. The one that binds to nothing has the object [`ANY`].
struct Slot {
    /// 0 for none.
    object: AtomicUsize,
    handle: AtomicPtr<c_void>,
    count: AtomicUsize,
    /// Place in [`Datatype::ALL`].
    datatype: AtomicU8,
}

/// Matches every object.
const ANY: usize = usize::MAX;

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        object: AtomicUsize::new(0),
        handle: AtomicPtr::new(ptr::null_mut()),
        count: AtomicUsize::new(0),
        datatype: AtomicU8::new(0),
    }
}; SLOTS];
/// Slots from this one on are unused.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Held while a slot changes, and while all of them are read.
static CHANGES: Mutex<()> = Mutex::new(());
static SESSION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static READ: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// For more elements than [`FEW`].
static MANY: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Whether a variable of this type can be read here.
pub(crate) fn can_read(datatype: Datatype) -> bool {
    datatype != Datatype::Char
}

/// Publishes a handle for `object`; none for one that binds to nothing.
pub(crate) fn publish(api: &Api, session: &Session, handle: &PvarHandle, object: Option<usize>) {
    SESSION.store(session.raw(), Ordering::Relaxed);
    READ.store(api.functions.pvar_read as *mut c_void, Ordering::Relaxed);
    put(handle.raw(), handle.count, handle.datatype(), object.unwrap_or(ANY));
}

fn put(handle: Raw, count: usize, datatype: Datatype, object: usize) {
    let _changes = held(&CHANGES);
    let mut slots = TABLE.iter().enumerate();
    let free = slots.find(|(_, slot)| slot.object.load(Ordering::Relaxed) == 0);
    // Communicators beyond the table cannot be compared.
    let (Some((at, slot)), true) = (free, can_read(datatype)) else { return };
    if count > FEW {
        let mut many = held(&MANY);
        let words = count + SPARE;
        if many.len() < words {
            many.resize(words, 0);
        }
    }
    slot.handle.store(handle, Ordering::Relaxed);
    slot.count.store(count, Ordering::Relaxed);
    let place = Datatype::ALL.iter().position(|known| *known == datatype);
    let place = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0);
    slot.datatype.store(place, Ordering::Relaxed);
    USED.fetch_max(at + 1, Ordering::Relaxed);
    slot.object.store(object, Ordering::Release);
}

/// The handle is about to be freed: nobody reads it after this returns.
pub(super) fn retract(handle: Raw) {
    let _changes = held(&CHANGES);
    for slot in TABLE.iter().take(USED.load(Ordering::Relaxed)) {
        if slot.handle.load(Ordering::Relaxed) == handle {
            slot.object.store(0, Ordering::Relaxed);
            slot.handle.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// The value for `object`, the sum over the elements; if the object is not known, the largest of all. None when
/// there is no handle, or it cannot be read.
#[inline]
pub(crate) fn total(object: Option<usize>) -> Option<u64> {
    if let Some(object) = object {
        return slot_of(object)?.sum();
    }
    let _changes = held(&CHANGES);
    slots().filter_map(Slot::sum).max()
}

/// The index of the largest element for `object`, for a variable with several.
pub(crate) fn largest(object: Option<usize>) -> Option<u32> {
    let slot = slot_of(object?)?;
    let several = slot.count.load(Ordering::Relaxed) > 1;
    let place = |elements: Elements| u32::try_from(place_of_largest(elements)).ok();
    if several { slot.read(place).flatten() } else { None }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let slots = TABLE.iter().take(USED.load(Ordering::Relaxed));
    slots.filter(|slot| slot.object.load(Ordering::Relaxed) != 0)
}

#[inline]
fn slot_of(object: usize) -> Option<&'static Slot> {
    let is_of = |slot: &&Slot| {
        let known = slot.object.load(Ordering::Acquire);
        known == object || known == ANY
    };
    TABLE.iter().take(USED.load(Ordering::Relaxed)).find(is_of)
}

/// The elements of a reading.
#[derive(Clone, Copy)]
struct Elements<'a> {
    words: &'a [u64],
    count: usize,
    datatype: Datatype,
}

impl Slot {
    #[inline]
    fn sum(&self) -> Option<u64> {
        let count = self.count.load(Ordering::Relaxed);
        // The usual type of lengths.
        let is_unsigned = self.datatype.load(Ordering::Relaxed) == Datatype::Unsigned as u8;
        if count > FEW || !is_unsigned {
            return self.read(sum);
        }
        let mut few = [const { MaybeUninit::<u64>::uninit() }; FEW + SPARE];
        let elements = few.as_mut_ptr().cast::<u32>();
        // SAFETY: the array has room for this many.
        unsafe { elements.write_bytes(0, count) };
        if !self.read_to(few.as_mut_ptr().cast()) {
            return None;
        }
        // SAFETY: as many were written above.
        let elements = unsafe { slice::from_raw_parts(elements, count) };
        Some(elements.iter().map(|element| u64::from(*element)).sum())
    }

    #[inline(never)]
    fn read<T>(&self, work: impl FnOnce(Elements) -> T) -> Option<T> {
        let count = self.count.load(Ordering::Relaxed);
        let datatype = *Datatype::ALL.get(usize::from(self.datatype.load(Ordering::Relaxed)))?;
        if count > FEW {
            let mut many = held(&MANY);
            if many.len() < count + SPARE || !self.read_to(many.as_mut_ptr()) {
                return None;
            }
            return Some(work(Elements { words: &many, count, datatype }));
        }
        let mut few = [const { MaybeUninit::<u64>::uninit() }; FEW + SPARE];
        // The library may write only part of the last word.
        let words = (count * datatype.size()).div_ceil(size_of::<u64>());
        for word in few.iter_mut().take(words) {
            word.write(0);
        }
        if !self.read_to(few.as_mut_ptr().cast()) {
            return None;
        }
        let few = few.get(..words)?;
        // SAFETY: this many words were written above.
        let words = unsafe { slice::from_raw_parts(few.as_ptr().cast::<u64>(), few.len()) };
        Some(work(Elements { words, count, datatype }))
    }

    /// `words` has room for all elements and some to spare.
    #[inline]
    fn read_to(&self, words: *mut u64) -> bool {
        let read = READ.load(Ordering::Relaxed);
        let (session, handle) =
            (SESSION.load(Ordering::Relaxed), self.handle.load(Ordering::Relaxed));
        if read.is_null() || handle.is_null() || guard::is_off() {
            return false;
        }
        // SAFETY: the address of MPI_T_pvar_read, which was stored as such.
        let read = unsafe { mem::transmute::<*mut c_void, Read>(read) };
        // SAFETY: the handle is published from its allocation until it is freed, and the room is for as many
        // elements as were published with it. It is freed together with its communicator, on which the program
        // then no longer receives, or at the end, when no thread calls MPI (MPI 4.1, 7.4.3 and 11.2.3); a
        // thread that reads the handles of other communicators holds CHANGES.
        let code = unsafe { read(session, handle, words.cast()) };
        code == 0
    }
}

impl Elements<'_> {
    #[inline]
    fn each(self) -> impl Iterator<Item = u64> {
        let Elements { words, count, datatype } = self;
        let size = datatype.size();
        // SAFETY: words consist of this many bytes; every datatype is aligned in them.
        let bytes =
            unsafe { slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
        let elements = bytes.chunks_exact(size.max(1)).take(count);
        elements.map(move |bytes| datatype.decode(bytes).map_or(0, natural))
    }
}

/// It is a length, so it is at least 0.
#[inline]
fn natural(number: Number) -> u64 {
    match number {
        Number::Integer(integer) => u64::try_from(integer).unwrap_or(0),
        // Saturating.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Number::Double(double) => double as u64,
    }
}

fn sum(elements: Elements) -> u64 {
    elements.each().fold(0, u64::saturating_add)
}

fn place_of_largest(elements: Elements) -> usize {
    let mut largest = (0, 0);
    for (at, element) in elements.each().enumerate() {
        if element > largest.1 {
            largest = (at, element);
        }
    }
    largest.0
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_uint};
    use std::sync::atomic::AtomicBool;
    use std::thread::{self, JoinHandle};

    use super::*;

    #[test]
    fn elements_of_every_width_are_summed() {
        let words = [0x0000_0002_0000_0001_u64, 0xffff_ffff_0000_0003];
        let of = |datatype, count| Elements { words: &words, count, datatype };
        assert_eq!(sum(of(Datatype::Unsigned, 3)), 6);
        // A negative number is not a length.
        assert_eq!(sum(of(Datatype::Int, 4)), 6);
        assert_eq!(sum(of(Datatype::UnsignedLong, 1)), 0x0000_0002_0000_0001);
        assert_eq!(place_of_largest(of(Datatype::Unsigned, 3)), 2);
        let doubles = [2.75_f64.to_bits(), (-1.0_f64).to_bits()];
        let of_doubles = Elements { words: &doubles, count: 2, datatype: Datatype::Double };
        assert_eq!(sum(of_doubles), 2);
        assert_eq!(total(Some(1)), None);
    }

    /// How often the handle was read; at a reading, another thread begins to retract it.
    unsafe extern "C" fn read(_: Raw, handle: Raw, to: *mut c_void) -> c_int {
        static READ_BEFORE: AtomicUsize = AtomicUsize::new(0);
        if READ_BEFORE.fetch_add(1, Ordering::Relaxed) == 0 {
            let handle = handle as usize;
            let retracting = thread::spawn(move || {
                retract(handle as Raw);
                IS_RETRACTED.store(true, Ordering::Relaxed);
            });
            // Long enough for a thread that does not wait.
            for _ in 0..1000 {
                thread::yield_now();
            }
            WAS_RETRACTED_MEANWHILE.store(IS_RETRACTED.load(Ordering::Relaxed), Ordering::Relaxed);
            *RETRACTING.lock().unwrap() = Some(retracting);
        }
        // SAFETY: the handle was published with one element of this type.
        unsafe { to.cast::<c_uint>().write(7) };
        0
    }

    static IS_RETRACTED: AtomicBool = AtomicBool::new(false);
    static WAS_RETRACTED_MEANWHILE: AtomicBool = AtomicBool::new(false);
    static RETRACTING: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

    #[test]
    fn a_handle_that_is_read_for_an_unknown_communicator_is_not_freed_meanwhile() {
        READ.store(read as *mut c_void, Ordering::Relaxed);
        put(ptr::without_provenance_mut(16), 1, Datatype::Unsigned, 3);
        assert_eq!(total(None), Some(7));
        assert!(!WAS_RETRACTED_MEANWHILE.load(Ordering::Relaxed));
        RETRACTING.lock().unwrap().take().unwrap().join().unwrap();
        assert_eq!((total(None), total(Some(3))), (None, None));
    }
}
