//! Which ranks of `MPI_COMM_WORLD` does a communicator have, or a window? For calls, which ask by handle: the
//! recently used ones are cached, and found in a few instructions without a lock.
//!
//! An entry is created when a communicator is first asked about, so others cost nothing, and is reused for
//! another one after that is freed. Entries are never freed, so anyone who holds one can read it at any time.
//! An entry contains the handle of its communicator, so a holder only needs to compare that.
//!
//! Does not know what its users store with a communicator.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calls::traffic::ELSEWHERE;
use crate::mpi::abi::{Inquiry, inquiry};
use crate::sys::alloc;
use crate::sys::lookup::spread;

/// Limits: communicators that are alive at a time, and ranks in the lists of all of them together.
const ENTRIES_AT_MOST: usize = 1 << 14;
const RANKS_AT_MOST: usize = 4 << 20;

/// The size of the cache: a power of two.
const AT_HAND_BITS: u32 = 8;

/// How many numbers users may store with a communicator.
pub(crate) const NOTES: usize = 96;

/// Not the handle of any communicator, in any known library.
const NOBODY: usize = usize::MAX;

/// A bit that no handle has, for windows.
const WINDOW: usize = 1 << (usize::BITS - 2);

/// A communicator.
pub(crate) struct Communicator {
    handle: AtomicUsize,
    size: AtomicU32,
    members: AtomicU64,
    is_inter: AtomicBool,
    /// Its ranks are those of `MPI_COMM_WORLD`.
    is_same: AtomicBool,
    /// Otherwise its ranks there; there may be room for more.
    ranks: Box<[AtomicU32]>,
    notes: [AtomicU16; NOTES],
}

/// What is known of a new communicator.
struct Known {
    size: u32,
    is_inter: bool,
    /// Empty: its ranks are those of `MPI_COMM_WORLD`.
    ranks: Vec<u32>,
}

/// All of them.
struct Table {
    /// None if the library does not tell, or there is no room.
    entries: BTreeMap<usize, Option<&'static Communicator>>,
    /// Free entries, by the binary logarithm of their room.
    free: Vec<Vec<&'static Communicator>>,
    /// The room of all entries together.
    ranks: usize,
}

static TABLE: Mutex<Table> = Mutex::new(Table::new());

/// The cache, indexed by handle. Null or an entry.
static AT_HAND: [AtomicPtr<Communicator>; 1 << AT_HAND_BITS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; 1 << AT_HAND_BITS];

/// `MPI_COMM_WORLD`, if there is one.
static WORLD: AtomicUsize = AtomicUsize::new(NOBODY);
/// The bits of a word that hold the handle: the upper half of an `int` handle is undefined.
static BITS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From now on communicators can be asked about, if there is a `world`.
pub(crate) fn begin(world: Option<usize>) {
    let is_int = inquiry().is_some_and(|mpi| mpi.abi.handle_bytes == size_of::<u32>());
    BITS.store(if is_int { 0xffff_ffff } else { usize::MAX }, Ordering::Relaxed);
    WORLD.store(world.unwrap_or(NOBODY), Ordering::Relaxed);
}

/// `MPI_COMM_WORLD`, if ranks in it are known.
pub(crate) fn world() -> Option<usize> {
    Some(WORLD.load(Ordering::Relaxed)).filter(|world| *world != NOBODY)
}

/// MPI or its world ends: no communicator remains valid.
pub(crate) fn end() {
    WORLD.store(NOBODY, Ordering::Relaxed);
    table().forget_all();
}

/// The communicator that a program passed as `word` to a call, from C, or after its conversion. None when its
/// ranks in `MPI_COMM_WORLD` are not known. Call only where the library may be asked (`mpi::abi::inquiry`).
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn of(word: usize) -> Option<&'static Communicator> {
    at_hand(word & BITS.load(Ordering::Relaxed))
}

/// The same if it is cached.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn of_late(word: usize) -> Option<&'static Communicator> {
    last_at_place(word & BITS.load(Ordering::Relaxed))
}

/// Whether [`of`] would ask the library, which it may do only of a communicator that a call has accepted.
#[inline]
pub(crate) fn is_new(word: usize) -> bool {
    let handle = word & BITS.load(Ordering::Relaxed);
    last_at_place(handle).is_none() && !table().entries.contains_key(&handle)
}

/// The same for a window.
#[inline]
pub(crate) fn of_window(word: usize) -> Option<&'static Communicator> {
    at_hand(word & BITS.load(Ordering::Relaxed) | WINDOW)
}

#[allow(clippy::inline_always)]
#[inline(always)]
fn at_hand(handle: usize) -> Option<&'static Communicator> {
    match last_at_place(handle) {
        Some(entry) => Some(entry),
        None => find(handle),
    }
}

#[allow(clippy::inline_always)]
#[inline(always)]
fn last_at_place(handle: usize) -> Option<&'static Communicator> {
    let entry = AT_HAND.get(place(handle))?.load(Ordering::Acquire);
    // SAFETY: null or an entry, which is never freed.
    let entry = unsafe { entry.as_ref() }?;
    entry.is_of(handle).then_some(entry)
}

#[cold]
#[inline(never)]
fn find(handle: usize) -> Option<&'static Communicator> {
    let known = table().entries.get(&handle).copied();
    let entry = if let Some(entry) = known {
        entry
    } else {
        let world = WORLD.load(Ordering::Relaxed);
        if world == NOBODY || alloc::is_short() {
            return None;
        }
        // Not while the table is locked: the library may wait for a lock of its own.
        let known = inquiry().and_then(|mpi| Known::of(mpi, world, handle));
        table().comes(handle, known)
    }?;
    if let Some(at_hand) = AT_HAND.get(place(handle)) {
        at_hand.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
    }
    Some(entry)
}

/// A communicator is about to be freed, or a new one has its handle.
pub(crate) fn goes(word: usize) {
    table().goes(word & BITS.load(Ordering::Relaxed));
}

/// The same for a window.
pub(crate) fn window_goes(word: usize) {
    table().goes(word & BITS.load(Ordering::Relaxed) | WINDOW);
}

/// A communicator of a simulated run, in which no library can be asked: `ranks` are empty where they are those of
/// `MPI_COMM_WORLD`.
#[cfg(test)]
pub(crate) fn made_up(handle: usize, size: u32, ranks: &[u32]) {
    table().comes(handle, Some(Known { size, is_inter: false, ranks: ranks.to_vec() }));
}

/// The cache slot of a communicator.
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
fn place(handle: usize) -> usize {
    (spread(handle) >> (u64::BITS - AT_HAND_BITS)) as usize
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Communicator {
    fn new(room: usize) -> Communicator {
        Communicator {
            handle: AtomicUsize::new(NOBODY),
            size: AtomicU32::new(0),
            members: AtomicU64::new(0),
            is_inter: AtomicBool::new(false),
            is_same: AtomicBool::new(false),
            ranks: (0..room).map(|_| AtomicU32::new(ELSEWHERE)).collect(),
            notes: [const { AtomicU16::new(0) }; NOTES],
        }
    }

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn is_of(&self, handle: usize) -> bool {
        // Pairs with Release in `takes`: the content of the entry then belongs to this communicator.
        self.handle.load(Ordering::Acquire) == handle
    }

    /// The ranks that peer ranks refer to: for an intercommunicator, those of the remote group.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    pub(crate) fn is_inter(&self) -> bool {
        self.is_inter.load(Ordering::Relaxed)
    }

    /// A hash of the list of its ranks in `MPI_COMM_WORLD`: the same on all of them.
    pub(crate) fn members(&self) -> u64 {
        self.members.load(Ordering::Relaxed)
    }

    /// Whether it has the ranks of `MPI_COMM_WORLD`, or the first of them, in their order.
    pub(crate) fn is_same(&self) -> bool {
        self.is_same.load(Ordering::Relaxed)
    }

    /// The rank in `MPI_COMM_WORLD` of one of its ranks; none if it has no such rank, or that is not in there.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn rank_in_world(&self, rank: u32) -> Option<u32> {
        if rank >= self.size() {
            return None;
        }
        if self.is_same() {
            return Some(rank);
        }
        let rank = self.ranks.get(rank as usize)?.load(Ordering::Relaxed);
        (rank != ELSEWHERE).then_some(rank)
    }

    /// A number that its user has stored, initially 0.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn note(&self, place: usize) -> u16 {
        self.notes.get(place).map_or(0, |note| note.load(Ordering::Relaxed))
    }

    pub(crate) fn set_note(&self, place: usize, number: u16) {
        if let Some(note) = self.notes.get(place) {
            note.store(number, Ordering::Relaxed);
        }
    }

    /// Assigns it to a communicator.
    fn takes(&self, handle: usize, known: &Known) {
        self.size.store(known.size, Ordering::Relaxed);
        self.is_inter.store(known.is_inter, Ordering::Relaxed);
        self.is_same.store(known.ranks.is_empty(), Ordering::Relaxed);
        self.members.store(known.members(), Ordering::Relaxed);
        for (room, rank) in self.ranks.iter().zip(&known.ranks) {
            room.store(*rank, Ordering::Relaxed);
        }
        for note in &self.notes {
            note.store(0, Ordering::Relaxed);
        }
        self.handle.store(handle, Ordering::Release);
    }
}

impl Known {
    fn of(mpi: &Inquiry, world: usize, handle: usize) -> Option<Known> {
        if handle & WINDOW != 0 {
            let window = handle & !WINDOW;
            let size = u32::try_from(mpi.win_size(window)?).ok()?;
            return Some(Known { size, is_inter: false, ranks: mpi.win_ranks_in(world, window)? });
        }
        let is_inter = mpi.is_intercommunicator(handle);
        let size = if is_inter { mpi.remote_size(handle) } else { mpi.size(handle) };
        let size = u32::try_from(size?).ok()?;
        let ranks = if handle == world { Vec::new() } else { mpi.ranks_in(world, handle)? };
        Some(Known { size, is_inter, ranks })
    }

    /// FNV-1a by words, with a final step that mixes all bits.
    fn members(&self) -> u64 {
        let add = |hash: u64, rank: u32| (hash ^ u64::from(rank)).wrapping_mul(0x0100_0000_01b3);
        let hash = match self.ranks.as_slice() {
            [] => (0..self.size).fold(0xcbf2_9ce4_8422_2325, add),
            ranks => ranks.iter().copied().fold(0xcbf2_9ce4_8422_2325, add),
        };
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^ (hash >> 32)
    }
}

impl Table {
    const fn new() -> Table {
        Table { entries: BTreeMap::new(), free: Vec::new(), ranks: 0 }
    }

    /// A communicator is asked about for the first time.
    fn comes(&mut self, handle: usize, known: Option<Known>) -> Option<&'static Communicator> {
        // Another thread was faster.
        if let Some(entry) = self.entries.get(&handle) {
            return *entry;
        }
        if self.entries.len() >= ENTRIES_AT_MOST {
            return None;
        }
        let entry = known.and_then(|known| {
            let entry = self.with_room_for(known.ranks.len())?;
            entry.takes(handle, &known);
            Some(entry)
        });
        self.entries.insert(handle, entry);
        entry
    }

    /// A free entry with room for this many ranks.
    fn with_room_for(&mut self, ranks: usize) -> Option<&'static Communicator> {
        let class = class(ranks);
        if let Some(entry) = self.free.get_mut(class).and_then(Vec::pop) {
            return Some(entry);
        }
        let room = if ranks == 0 { 0 } else { ranks.next_power_of_two() };
        if self.ranks + room > RANKS_AT_MOST {
            return None;
        }
        self.ranks += room;
        Some(Box::leak(Box::new(Communicator::new(room))))
    }

    fn goes(&mut self, handle: usize) {
        if let Some(Some(entry)) = self.entries.remove(&handle) {
            self.takes_back(entry);
        }
    }

    fn takes_back(&mut self, entry: &'static Communicator) {
        entry.handle.store(NOBODY, Ordering::Relaxed);
        let class = class(entry.ranks.len());
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        if let Some(free) = self.free.get_mut(class) {
            free.push(entry);
        }
    }

    fn forget_all(&mut self) {
        for entry in std::mem::take(&mut self.entries).into_values().flatten() {
            self.takes_back(entry);
        }
    }
}

/// Entries of one class have the same room: 0 for none, otherwise the binary logarithm plus 1.
fn class(ranks: usize) -> usize {
    if ranks == 0 { 0 } else { ranks.next_power_of_two().trailing_zeros() as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(size: u32, ranks: &[u32]) -> Known {
        Known { size, is_inter: false, ranks: ranks.to_vec() }
    }

    fn ranks(entry: &Communicator) -> Vec<Option<u32>> {
        (0..5).map(|rank| entry.rank_in_world(rank)).collect()
    }

    #[test]
    fn an_entry_has_the_ranks_of_its_communicator() {
        let mut table = Table::new();
        let world = table.comes(7, Some(known(3, &[]))).unwrap();
        assert_eq!(ranks(world), [Some(0), Some(1), Some(2), None, None]);
        let split = table.comes(8, Some(known(3, &[5, ELSEWHERE, 1]))).unwrap();
        assert_eq!(ranks(split), [Some(5), None, Some(1), None, None]);
        assert!(world.is_of(7) && split.is_of(8) && !world.is_of(8));
        // Two threads asked at once.
        assert!(ptr::eq(table.comes(8, Some(known(2, &[1, 0]))).unwrap(), split));
        assert_eq!(table.comes(9, None).map(Communicator::size), None);
        assert!(table.comes(9, Some(known(1, &[]))).is_none(), "what is not known stays so");
    }

    #[test]
    fn the_same_list_of_members_has_the_same_hash_and_another_has_another() {
        let mut table = Table::new();
        let mut members = |handle, size, ranks: &[u32]| {
            table.comes(handle, Some(known(size, ranks))).unwrap().members()
        };
        let world = members(1, 4, &[]);
        assert_eq!(members(2, 4, &[0, 1, 2, 3]), world);
        let others = [
            members(3, 3, &[]),
            members(4, 4, &[0, 1, 3, 2]),
            members(5, 2, &[1, 0]),
            members(6, 2, &[0, 2]),
            members(7, 1, &[]),
            members(8, 1, &[1]),
            world,
        ];
        let different: std::collections::BTreeSet<u64> = others.into();
        assert_eq!(different.len(), others.len());
    }

    #[test]
    fn an_entry_is_used_again_and_what_was_noted_is_gone() {
        let mut table = Table::new();
        let first = table.comes(1, Some(known(3, &[3, 2, 1]))).unwrap();
        first.set_note(5, 9);
        assert_eq!((first.note(5), first.note(4), first.note(NOTES)), (9, 0, 0));
        table.goes(1);
        assert!(!first.is_of(1));
        assert!(!ptr::eq(table.comes(1, Some(known(5, &[]))).unwrap(), first), "of another class");
        let second = table.comes(2, Some(known(4, &[4, 3, 2, 1]))).unwrap();
        assert!(ptr::eq(first, second) && second.is_of(2));
        assert_eq!((second.note(5), second.rank_in_world(3)), (0, Some(1)));
        // No communicator has it.
        table.goes(3);
        table.forget_all();
        assert!(!second.is_of(2) && table.entries.is_empty());
    }

    #[test]
    fn communicators_one_after_the_other_take_the_room_of_one_and_no_more_than_there_is() {
        let mut table = Table::new();
        let list: Vec<u32> = (1..1001).collect();
        for handle in 0..100_000 {
            assert!(table.comes(handle, Some(known(1000, &list))).is_some());
            table.goes(handle);
        }
        assert_eq!((table.ranks, table.entries.len()), (1024, 0));
        let came =
            (0..10_000).filter(|&at| table.comes(at, Some(known(1000, &list))).is_some()).count();
        assert_eq!(came, RANKS_AT_MOST / 1024);
        assert!(
            table.comes(20_000, Some(known(1000, &[]))).is_some(),
            "for these there is still room"
        );
        for handle in 0..30_000 {
            table.goes(handle);
        }
        let came = (0..30_000).filter(|&at| table.comes(at, Some(known(2, &[]))).is_some()).count();
        assert_eq!(came, ENTRIES_AT_MOST);
    }

    #[test]
    fn whoever_asks_finds_the_one_that_has_the_handle_now() {
        // No other test asks about these.
        let handles = || (0x4400_0000..0x4400_0400).step_by(4);
        for handle in handles() {
            table().comes(handle, Some(known(1, &[u32::try_from(handle).unwrap()])));
        }
        for _ in 0..2 {
            for handle in handles() {
                let rank = of(handle).and_then(|entry| entry.rank_in_world(0));
                assert_eq!(rank, u32::try_from(handle).ok());
            }
        }
        for handle in handles() {
            goes(handle);
            table().comes(handle, Some(known(1, &[3])));
            assert_eq!(of(handle).and_then(|entry| entry.rank_in_world(0)), Some(3));
            goes(handle);
            // Without MPI nothing can be asked.
            assert!(of(handle).is_none());
        }
    }
}
