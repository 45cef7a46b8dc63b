//! Which ranks of `MPI_COMM_WORLD` does a communicator have, or a window? For calls, which ask by handle: the
//! recently used ones are cached, and found in a few instructions without a lock.
//!
//! An entry is created when a communicator is first asked about, or is made as a duplicate, so others cost nothing,
//! and is reused for another one after that is freed. Its list of ranks is filled in one by one, as peers are met, and
//! is shared with its duplicates: a library may compare each rank with each other one to translate them all. Neither
//! entries nor lists are ever freed, so anyone who holds one can read it at any time. An entry contains the handle of
//! its communicator, so a holder only needs to compare that.
//!
//! Does not know what its users store with a communicator.

use std::collections::BTreeMap;
use std::iter;
use std::mem::offset_of;
use std::ptr;
use std::slice;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use crate::calls::budget::budget;
use crate::calls::traffic::ELSEWHERE;
use crate::mpi::abi::{Group, Inquiry, inquiry};
use crate::sys::alloc;
use crate::sys::clock;
use crate::sys::locks::held;
use crate::sys::lookup::{hash, spread_low};
use crate::sys::memory::ReadProcess;

/// Limits: communicators that are alive at a time, and ranks in the lists of all of them together.
const ENTRIES_AT_MOST: usize = 1 << 14;
const RANKS_AT_MOST: usize = 4 << 20;

/// All members of a communicator are translated up to this many comparisons of ranks in a library that compares each
/// with each other one: some 30 ms.
const COMPARISONS_AT_MOST: u64 = 10_000_000;

/// The size of the cache: a power of two.
const AT_HAND_BITS: u32 = 8;

/// How many numbers users may store with a communicator.
pub(crate) const NOTES: usize = 112;

/// One more is the number that a timeline has for it.
pub(crate) const TIMELINE_NOTE: usize = NOTES;

/// Not the handle of any communicator, in any known library; nor what [`by_word`] is asked about.
const NOBODY: usize = usize::MAX - 1;

/// What a caller passes that has no handle: nothing is known of it.
pub(crate) const NO_HANDLE: usize = usize::MAX;

/// A bit that no handle has, for windows.
const WINDOW: usize = 1 << (usize::BITS - 2);

/// A communicator. What a message needs is in the first line of the cache.
#[repr(C, align(64))]
pub(crate) struct Communicator {
    handle: AtomicUsize,
    /// The first word of its list.
    list: AtomicPtr<AtomicU32>,
    size: AtomicU32,
    /// The same if its ranks are those of `MPI_COMM_WORLD`, or the first of them, in their order. Otherwise 0, and they
    /// are in the list.
    same: AtomicU32,
    is_inter: AtomicBool,
    /// 0 if not known yet.
    members: AtomicU64,
    notes: [AtomicU16; NOTES + 1],
}

/// The number of words; the number of communicators that share the list, which only the holder of the table's lock
/// uses; and for each rank of the communicator its rank in `MPI_COMM_WORLD`, `NOT_THERE` or `NOT_ASKED`. There may be
/// room for more ranks.
type List = &'static [AtomicU32];

const SHARED: usize = 1;
const FIRST: usize = 2;

/// Instead of a rank in `MPI_COMM_WORLD`.
const NOT_THERE: u32 = u32::MAX - 1;
const NOT_ASKED: u32 = u32::MAX;

/// Of communicators with the ranks of `MPI_COMM_WORLD`.
static NO_LIST: [AtomicU32; FIRST] = [AtomicU32::new(2), AtomicU32::new(0)];

/// What is known of a new communicator.
struct Members {
    size: u32,
    is_inter: bool,
    is_same: bool,
    /// 0 if not known.
    hash: u64,
}

struct Table {
    /// None if the library does not tell, or there is no room.
    entries: BTreeMap<usize, Option<&'static Communicator>>,
    free: Vec<&'static Communicator>,
    /// Free lists, by the binary logarithm of their room.
    free_lists: Vec<Vec<List>>,
    /// The room of all lists together.
    ranks: usize,
}

static TABLE: Mutex<Table> = Mutex::new(Table::new());

/// The cache, indexed by handle. An entry, or the one of no communicator.
static AT_HAND: [AtomicPtr<Communicator>; 1 << AT_HAND_BITS] =
    [const { AtomicPtr::new((&raw const NO_COMMUNICATOR).cast_mut()) }; 1 << AT_HAND_BITS];

static NO_COMMUNICATOR: Communicator = Communicator::new();

/// `MPI_COMM_WORLD`, if there is one.
static WORLD: AtomicUsize = AtomicUsize::new(NOBODY);
static WORLD_SIZE: AtomicUsize = AtomicUsize::new(0);
/// The bits of a word that hold the handle: the upper half of an `int` handle is undefined.
static BITS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From now on communicators can be asked about, if there is a `world`.
pub(crate) fn begin(world: Option<usize>) {
    let is_int = inquiry().is_some_and(|mpi| mpi.abi.handle_bytes == size_of::<u32>());
    BITS.store(if is_int { 0xffff_ffff } else { usize::MAX }, Ordering::Relaxed);
    let size = world.and_then(|world| inquiry()?.size(world));
    WORLD_SIZE.store(size.unwrap_or(0), Ordering::Relaxed);
    WORLD.store(world.unwrap_or(NOBODY), Ordering::Relaxed);
}

/// `MPI_COMM_WORLD`, if ranks in it are known.
pub(crate) fn world() -> Option<usize> {
    Some(WORLD.load(Ordering::Relaxed)).filter(|world| *world != NOBODY)
}

/// MPI or its world ends: no communicator remains valid.
pub(crate) fn end() {
    WORLD.store(NOBODY, Ordering::Relaxed);
    held(&TABLE).forget_all();
}

/// The communicator that a program passed as `word` to a call, from C, or after its conversion. None when its
/// ranks in `MPI_COMM_WORLD` are not known. Call only where the library may be asked (`mpi::abi::inquiry`).
#[inline(always)]
pub(crate) fn by_word(word: usize) -> Option<&'static Communicator> {
    at_hand(word & BITS.load(Ordering::Relaxed))
}

/// The handle that a program passed as `word`: what its entry is found by.
#[inline(always)]
pub(crate) fn handle(word: usize) -> usize {
    word & BITS.load(Ordering::Relaxed)
}

/// The same for a window: no communicator has it.
#[inline(always)]
pub(crate) fn window(word: usize) -> usize {
    handle(word) | WINDOW
}

/// The handle in MPI behind what [`window`] returned; none for a communicator.
pub(crate) fn window_behind(handle: usize) -> Option<usize> {
    (handle & WINDOW != 0).then_some(handle & !WINDOW)
}

/// The same as [`by_word`] of a handle or a window.
#[inline]
pub(crate) fn by_handle(handle: usize) -> Option<&'static Communicator> {
    at_hand(handle)
}

/// The same if it is cached.
#[inline(always)]
pub(crate) fn of_late(handle: usize) -> Option<&'static Communicator> {
    last_at_place(handle)
}

/// Whether [`by_handle`] would ask the library, which it may do only of a communicator that a call has accepted.
#[inline]
pub(crate) fn is_new(handle: usize) -> bool {
    last_at_place(handle).is_none() && !held(&TABLE).is_decided(handle)
}

/// The window that a program passed as `word`.
#[inline]
pub(crate) fn of_window(word: usize) -> Option<&'static Communicator> {
    at_hand(window(word))
}

/// The ranks in `MPI_COMM_WORLD` of a group of the program that a call has accepted; none of one with more than `at_most`. The
/// library is asked each time, as a group may end unseen.
#[cold]
pub(crate) fn ranks_of_group(group: usize, at_most: usize) -> Option<Vec<u32>> {
    charged(|| {
        let (mpi, world) = askable()?;
        mpi.ranks_of_group(world, group, at_most)
    })
}

#[inline(always)]
fn at_hand(handle: usize) -> Option<&'static Communicator> {
    match last_at_place(handle) {
        Some(entry) => Some(entry),
        None => find(handle),
    }
}

#[inline(always)]
fn last_at_place(handle: usize) -> Option<&'static Communicator> {
    let entry = AT_HAND.get(place(handle))?.load(Ordering::Acquire);
    // SAFETY: an entry, which is never freed, or the static one of no communicator.
    let entry = unsafe { &*entry };
    entry.is_of(handle).then_some(entry)
}

#[cold]
#[inline(never)]
fn find(handle: usize) -> Option<&'static Communicator> {
    if handle | WINDOW == NO_HANDLE & BITS.load(Ordering::Relaxed) | WINDOW {
        return None;
    }
    charged(|| {
        let (is_decided, known) = {
            let table = held(&TABLE);
            (table.is_decided(handle), table.known(handle))
        };
        let entry = if is_decided {
            known
        } else {
            let (mpi, world) = askable()?;
            let known = Members::ask(mpi, world, handle);
            held(&TABLE).created(handle, known)
        }?;
        if let Some(at_hand) = AT_HAND.get(place(handle)) {
            at_hand.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        }
        Some(entry)
    })
}

/// The library and `MPI_COMM_WORLD`, if ranks in that can be asked for. Not while the table is locked: the library may
/// wait for a lock of its own.
fn askable() -> Option<(&'static Inquiry, usize)> {
    let world = WORLD.load(Ordering::Relaxed);
    if world == NOBODY || alloc::is_short() { None } else { Some((inquiry()?, world)) }
}

/// The budget pays for what is done about a communicator, which nobody does without gyan.
fn charged<T>(work: impl FnOnce() -> T) -> T {
    let begun = clock::now();
    let result = work();
    budget().spent(clock::now().saturating_sub(begun));
    result
}

/// How a new communicator follows from its parent.
#[derive(Clone, Copy)]
pub(crate) enum Like {
    /// It has the same ranks.
    Duplicate,
    /// It has the same ranks in the same order, or the first of them.
    InOrder,
}

/// A communicator or window comes like a communicator, both as their entries are found: nothing is asked again about its ranks. If
/// nothing is known of the parent, the first use of the new one decides. The call that makes it pays for it.
#[cold]
pub(crate) fn comes_like(like: Like, parent: usize, handle: usize) {
    let Some((mpi, world)) = askable() else { return };
    let known = if parent == world { at_hand(parent) } else { held(&TABLE).known(parent) };
    let Some(known) = known else { return };
    let size = match like {
        // A duplicate whose request has not completed cannot be asked.
        Like::Duplicate => Some(known.size()),
        Like::InOrder => mpi.size(handle).and_then(|size| u32::try_from(size).ok()),
    };
    if let Some(size) = size {
        held(&TABLE).comes_like(parent, handle, size);
    }
}

/// A communicator or window is about to be freed, or a new one has its handle.
pub(crate) fn freed(handle: usize) {
    held(&TABLE).freed(handle);
}

#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn place(handle: usize) -> usize {
    (spread_low(handle) >> (u32::BITS - AT_HAND_BITS)) as usize
}

impl Communicator {
    const fn new() -> Communicator {
        Communicator {
            handle: AtomicUsize::new(NOBODY),
            list: AtomicPtr::new((&raw const NO_LIST).cast_mut().cast()),
            size: AtomicU32::new(0),
            same: AtomicU32::new(0),
            is_inter: AtomicBool::new(false),
            members: AtomicU64::new(0),
            notes: [const { AtomicU16::new(0) }; NOTES + 1],
        }
    }

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

    /// A hash of its ranks in `MPI_COMM_WORLD`, the same on all of them: of all, or, where asking for all would take
    /// too long, of their number and the first, the middle and the last one. Call only where the library may be asked.
    pub(crate) fn members(&self) -> u64 {
        match self.members.load(Ordering::Relaxed) {
            0 => charged(|| self.hash(WORLD_SIZE.load(Ordering::Relaxed))),
            known => known,
        }
    }

    #[cold]
    fn hash(&self, world_size: usize) -> u64 {
        let size = self.size();
        // Each rank has to decide alike.
        let comparisons = u64::from(size).saturating_mul(world_size as u64);
        let all = comparisons <= COMPARISONS_AT_MOST;
        let ranks: Vec<u32> =
            if all { (0..size).collect() } else { vec![0, size / 2, size.saturating_sub(1)] };
        self.ask(&ranks);
        let size = (!all).then_some(size);
        let hash = hash(size.into_iter().chain(ranks.iter().map(|rank| self.there(*rank))));
        self.members.store(hash, Ordering::Relaxed);
        hash
    }

    /// Whether it has the ranks of `MPI_COMM_WORLD`, or the first of them, in their order.
    #[inline(always)]
    fn is_same(&self) -> bool {
        self.same.load(Ordering::Relaxed) > 0
    }

    /// The rank in `MPI_COMM_WORLD` of one of its ranks; none if it has no such rank, or that is not in there.
    #[inline(always)]
    pub(crate) fn rank_in_world(&self, rank: u32) -> Option<u32> {
        if rank < self.same.load(Ordering::Relaxed) {
            return Some(rank);
        }
        if self.is_same() || rank >= self.size() {
            return None;
        }
        let there = self.listed(rank);
        if there < NOT_THERE { Some(there) } else { self.met(rank) }
    }

    /// A peer is met for the first time, or is not in `MPI_COMM_WORLD`.
    #[cold]
    #[inline(never)]
    fn met(&self, rank: u32) -> Option<u32> {
        if self.there(rank) == NOT_ASKED {
            charged(|| self.ask(&[rank]));
        }
        Some(self.there(rank)).filter(|there| *there < NOT_THERE)
    }

    /// What is known of a rank: that in `MPI_COMM_WORLD`, `NOT_THERE` or `NOT_ASKED`.
    fn there(&self, rank: u32) -> u32 {
        if self.is_same() { rank } else { self.listed(rank) }
    }

    #[inline(always)]
    fn listed(&self, rank: u32) -> u32 {
        let slot = self.list().get(FIRST + rank as usize);
        slot.map_or(NOT_THERE, |slot| slot.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn list(&self) -> List {
        // Pairs with Release in `takes`: the first word of the list is written.
        let first = self.list.load(Ordering::Acquire);
        // SAFETY: the first word of a list, which is never freed.
        let words = unsafe { &*first }.load(Ordering::Relaxed) as usize;
        // SAFETY: the list has as many words as its first one says.
        unsafe { slice::from_raw_parts(first, words) }
    }

    /// Asks the library for those of its ranks that it was not asked for.
    fn ask(&self, ranks: &[u32]) {
        let ranks: Vec<u32> =
            ranks.iter().copied().filter(|rank| self.there(*rank) == NOT_ASKED).collect();
        let handle = self.handle.load(Ordering::Acquire);
        if ranks.is_empty() || handle == NOBODY {
            return;
        }
        let Some((mpi, world)) = askable() else { return };
        let there = peers(mpi, handle)
            .and_then(|peers| peers.ranks_in(&mpi.comm_group(world)?, &ranks))
            .unwrap_or_else(|| vec![ELSEWHERE; ranks.len()]);
        // Another thread may have freed it in the meantime.
        if self.is_of(handle) {
            self.learns(ranks.iter().zip(there));
        }
    }

    fn learns<'a>(&self, there: impl Iterator<Item = (&'a u32, u32)>) {
        let list = self.list();
        for (rank, there) in there {
            if let Some(slot) = list.get(FIRST + *rank as usize) {
                slot.store(there.min(NOT_THERE), Ordering::Relaxed);
            }
        }
    }

    /// A number that its user has stored, initially 0.
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
    fn takes(&self, handle: usize, known: &Members, list: List) {
        self.size.store(known.size, Ordering::Relaxed);
        self.is_inter.store(known.is_inter, Ordering::Relaxed);
        self.same.store(if known.is_same { known.size } else { 0 }, Ordering::Relaxed);
        self.members.store(known.hash, Ordering::Relaxed);
        self.list.store(list.as_ptr().cast_mut(), Ordering::Release);
        for note in &self.notes {
            note.store(0, Ordering::Relaxed);
        }
        self.handle.store(handle, Ordering::Release);
    }
}

/// The group that peer ranks in a communicator or window refer to.
fn peers(mpi: &Inquiry, handle: usize) -> Option<Group<'_>> {
    if handle & WINDOW == 0 { mpi.peer_group(handle) } else { mpi.win_group(handle & !WINDOW) }
}

impl Members {
    fn ask(mpi: &Inquiry, world: usize, handle: usize) -> Option<Members> {
        let is_window = handle & WINDOW != 0;
        let is_inter = !is_window && mpi.is_intercommunicator(handle);
        let size = match (is_window, is_inter) {
            (true, _) => mpi.win_size(handle & !WINDOW),
            (_, true) => mpi.remote_size(handle),
            _ => mpi.size(handle),
        };
        let size = u32::try_from(size?).ok()?;
        Some(Members { size, is_inter, is_same: handle == world, hash: 0 })
    }
}

impl Table {
    const fn new() -> Table {
        Table { entries: BTreeMap::new(), free: Vec::new(), free_lists: Vec::new(), ranks: 0 }
    }

    fn known(&self, handle: usize) -> Option<&'static Communicator> {
        self.entries.get(&handle).copied().flatten()
    }

    /// Whether it would be in vain to ask about a communicator: it was asked about, or there is no room.
    fn is_decided(&self, handle: usize) -> bool {
        self.entries.contains_key(&handle) || self.entries.len() >= ENTRIES_AT_MOST
    }

    /// A communicator is asked about for the first time.
    fn created(&mut self, handle: usize, known: Option<Members>) -> Option<&'static Communicator> {
        // Another thread was faster.
        if self.is_decided(handle) {
            return self.known(handle);
        }
        let entry = known.and_then(|known| {
            let list = if known.is_same { &NO_LIST } else { self.list(known.size as usize)? };
            Some(self.entry(handle, &known, list))
        });
        self.entries.insert(handle, entry);
        entry
    }

    /// A communicator has the first `size` ranks of its parent.
    fn comes_like(
        &mut self,
        parent: usize,
        handle: usize,
        size: u32,
    ) -> Option<&'static Communicator> {
        // Another thread may have freed the parent.
        let parent = self.known(parent)?;
        if size > parent.size() || self.is_decided(handle) {
            return None;
        }
        let is_all = size == parent.size();
        let known = Members {
            size,
            is_inter: parent.is_inter(),
            is_same: parent.is_same(),
            hash: if is_all { parent.members.load(Ordering::Relaxed) } else { 0 },
        };
        let entry = self.entry(handle, &known, parent.list());
        self.entries.insert(handle, Some(entry));
        Some(entry)
    }

    /// An entry for a communicator, which shares a list.
    fn entry(&mut self, handle: usize, known: &Members, list: List) -> &'static Communicator {
        let entry = self.free.pop().unwrap_or_else(|| Box::leak(Box::new(Communicator::new())));
        share(list, 1);
        entry.takes(handle, known, list);
        entry
    }

    /// A list with room for this many ranks, of which none is known.
    fn list(&mut self, ranks: usize) -> Option<List> {
        let room = ranks.next_power_of_two();
        if let Some(list) = self.free_lists.get_mut(class(room)).and_then(Vec::pop) {
            for slot in list.iter().skip(FIRST).take(ranks) {
                slot.store(NOT_ASKED, Ordering::Relaxed);
            }
            return Some(list);
        }
        if self.ranks + room > RANKS_AT_MOST {
            return None;
        }
        self.ranks += room;
        let words = u32::try_from(FIRST + room).ok()?;
        let list = [words, 0].into_iter().chain(iter::repeat_n(NOT_ASKED, room));
        Some(list.map(AtomicU32::new).collect::<Vec<_>>().leak())
    }

    fn freed(&mut self, handle: usize) {
        if let Some(Some(entry)) = self.entries.remove(&handle) {
            self.takes_back(entry);
        }
    }

    fn takes_back(&mut self, entry: &'static Communicator) {
        entry.handle.store(NOBODY, Ordering::Relaxed);
        self.free.push(entry);
        let list = entry.list();
        if share(list, -1) == 0 && list.len() > FIRST {
            let class = class(list.len() - FIRST);
            if self.free_lists.len() <= class {
                self.free_lists.resize_with(class + 1, Vec::new);
            }
            if let Some(free) = self.free_lists.get_mut(class) {
                free.push(list);
            }
        }
    }

    fn forget_all(&mut self) {
        for entry in std::mem::take(&mut self.entries).into_values().flatten() {
            self.takes_back(entry);
        }
    }
}

/// So many more communicators share a list; returns how many do. Only for the holder of the table's lock.
fn share(list: List, more: i32) -> u32 {
    let Some(shared) = list.get(SHARED) else { return 0 };
    let number = shared.load(Ordering::Relaxed).saturating_add_signed(more);
    shared.store(number, Ordering::Relaxed);
    number
}

/// Lists of one class have the same room, which is a power of two.
fn class(room: usize) -> usize {
    room.trailing_zeros() as usize
}

/// A communicator of a simulated run, in which no library can be asked: `ranks` are empty where they are those of
/// `MPI_COMM_WORLD`.
#[cfg(test)]
pub(crate) fn made_up(handle: usize, size: u32, ranks: &[u32]) {
    let known = Members { size, is_inter: false, is_same: ranks.is_empty(), hash: 0 };
    if let Some(entry) = held(&TABLE).created(handle, Some(known)) {
        entry.learns((0..size).collect::<Vec<_>>().iter().zip(ranks.iter().copied()));
    }
}

/// From now on this is `MPI_COMM_WORLD` of a simulated run.
#[cfg(test)]
pub(crate) fn simulate_world(handle: usize) {
    WORLD.store(handle, Ordering::Relaxed);
}

/// For [`SeenCommunicators`]: an address from which the other statics are known.
pub(crate) fn statics() -> usize {
    (&raw const WORLD).addr()
}

/// The communicators of another process that runs this library.
pub(crate) struct SeenCommunicators {
    world: usize,
    bits: usize,
}

pub(crate) struct SeenCommunicator {
    pub(crate) size: u32,
    /// As of [`Communicator::members`]; 0 if not known.
    pub(crate) members: u64,
    same: u32,
    is_inter: bool,
    /// Its ranks in `MPI_COMM_WORLD`, if they are in a list.
    list: Vec<u32>,
}

impl SeenCommunicators {
    /// `at`: of [`statics`] there.
    pub(crate) fn read(process: ReadProcess, at: usize) -> Option<SeenCommunicators> {
        let there = |here: usize| process.read(at.wrapping_add(here).wrapping_sub(statics()));
        Some(SeenCommunicators { world: there(statics())?, bits: there((&raw const BITS).addr())? })
    }

    pub(crate) fn world(&self) -> Option<usize> {
        Some(self.world).filter(|world| *world != NOBODY)
    }

    /// Whether the program passed `MPI_COMM_WORLD`; none if that is not known.
    pub(crate) fn is_world(&self, word: usize) -> Option<bool> {
        Some(self.world()? == word & self.bits)
    }

    /// A communicator as the program passed it, if it was asked about lately. `distance`: from the statics of this
    /// process to those of the other.
    pub(crate) fn find(
        &self,
        process: ReadProcess,
        word: usize,
        distance: usize,
    ) -> Option<SeenCommunicator> {
        let handle = word & self.bits;
        let slot = (&raw const AT_HAND).addr() + place(handle) * size_of::<usize>();
        let entry: usize = process.read(slot.wrapping_add(distance))?;
        if process.read::<usize>(entry + offset_of!(Communicator, handle))? != handle {
            return None;
        }
        let size: u32 = process.read(entry + offset_of!(Communicator, size))?;
        let same: u32 = process.read(entry + offset_of!(Communicator, same))?;
        let members: u64 = process.read(entry + offset_of!(Communicator, members))?;
        let is_inter: u8 = process.read(entry + offset_of!(Communicator, is_inter))?;
        let list: usize = process.read(entry + offset_of!(Communicator, list))?;
        let words = process.read::<u32>(list)? as usize;
        let listed = (size as usize).min(words.saturating_sub(FIRST)).min(RANKS_AT_MOST);
        let mut bytes = vec![0; if same > 0 { 0 } else { listed * 4 }];
        process.read_into(list + FIRST * 4, &mut bytes)?;
        let (list, _) = bytes.as_chunks();
        let list = list.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        Some(SeenCommunicator { size, members, same, is_inter: is_inter != 0, list })
    }
}

impl SeenCommunicator {
    /// Its ranks in `MPI_COMM_WORLD`, as ranges; none if not all of them are known, or it has two groups.
    pub(crate) fn members_in_world(&self) -> Option<String> {
        let mut all = (0..self.size)
            .map(|rank| self.rank_in_world(rank))
            .collect::<Option<Vec<u32>>>()
            .filter(|_| !self.is_inter)?;
        all.sort_unstable();
        Some(all.into_iter().collect::<gyan_results::Ranges>().to_string())
    }

    /// The rank in `MPI_COMM_WORLD` of one of its ranks, if that is known.
    pub(crate) fn rank_in_world(&self, rank: u32) -> Option<u32> {
        if rank < self.same {
            return Some(rank);
        }
        self.list.get(rank as usize).copied().filter(|there| *there < NOT_THERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(size: u32, is_same: bool) -> Members {
        Members { size, is_inter: false, is_same, hash: 0 }
    }

    fn learn(entry: &Communicator, ranks: &[u32]) {
        let own: Vec<u32> = (0..entry.size()).collect();
        entry.learns(own.iter().zip(ranks.iter().copied()));
    }

    /// A communicator of these ranks, all of which are known.
    fn created(table: &mut Table, handle: usize, ranks: &[u32]) -> Option<&'static Communicator> {
        let size = u32::try_from(ranks.len()).unwrap();
        let entry = table.created(handle, Some(known(size, false)))?;
        learn(entry, ranks);
        Some(entry)
    }

    fn ranks(entry: &Communicator) -> Vec<Option<u32>> {
        (0..5).map(|rank| entry.rank_in_world(rank)).collect()
    }

    #[test]
    fn an_entry_has_the_ranks_of_its_communicator() {
        let mut table = Table::new();
        let world = table.created(7, Some(known(3, true))).unwrap();
        assert_eq!(ranks(world), [Some(0), Some(1), Some(2), None, None]);
        let split = created(&mut table, 8, &[5, ELSEWHERE, 1]).unwrap();
        assert_eq!(ranks(split), [Some(5), None, Some(1), None, None]);
        assert!(world.is_of(7) && split.is_of(8) && !world.is_of(8));
        // Two threads asked at once.
        assert!(ptr::eq(table.created(8, Some(known(2, false))).unwrap(), split));
        assert_eq!(table.created(9, None).map(Communicator::size), None);
        assert!(table.created(9, Some(known(1, true))).is_none(), "what is not known stays so");
    }

    #[test]
    fn what_a_message_needs_is_in_the_first_line_of_the_cache() {
        use std::mem::{align_of, offset_of};
        assert_eq!(align_of::<Communicator>(), 64);
        assert!(offset_of!(Communicator, notes) <= 64);
    }

    #[test]
    fn a_rank_is_not_known_until_it_is_asked_for() {
        let mut table = Table::new();
        let entry = table.created(1, Some(known(3, false))).unwrap();
        let there = |entry: &Communicator| [0, 1, 2, 3].map(|rank| entry.there(rank));
        assert_eq!(there(entry), [NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED]);
        entry.learns([(&1, 7), (&2, ELSEWHERE)].into_iter());
        assert_eq!(there(entry), [NOT_ASKED, 7, NOT_THERE, NOT_ASKED]);
        assert_eq!(entry.rank_in_world(3), None, "beyond its ranks");
        table.freed(1);
        let entry = table.created(2, Some(known(4, false))).unwrap();
        assert_eq!(there(entry), [NOT_ASKED; 4], "the list of another one is forgotten");
    }

    #[test]
    fn a_duplicate_shares_the_list_of_its_parent_as_long_as_one_of_them_lives() {
        let mut table = Table::new();
        let parent = table.created(1, Some(known(3, false))).unwrap();
        let duplicate = table.comes_like(1, 2, 3).unwrap();
        let grid = table.comes_like(2, 3, 2).unwrap();
        learn(grid, &[6, 5]);
        learn(parent, &[6, 5, 4]);
        assert_eq!(ranks(duplicate), [Some(6), Some(5), Some(4), None, None]);
        assert_eq!(ranks(grid), [Some(6), Some(5), None, None, None]);
        assert_eq!(duplicate.members(), parent.members());
        assert_eq!(table.comes_like(2, 4, 3).unwrap().members(), parent.members());
        assert_ne!(grid.members(), parent.members());
        for handle in [1, 4, 2] {
            table.freed(handle);
            let other = created(&mut table, 9, &[8, 8, 8]).unwrap();
            assert!(!ptr::eq(other.list(), grid.list()), "{handle}");
            table.freed(9);
        }
        assert_eq!(ranks(grid), [Some(6), Some(5), None, None, None]);
        let list = grid.list();
        table.freed(3);
        let next = [5, 6].map(|handle| created(&mut table, handle, &[8, 8, 8]).unwrap().list());
        assert!(next.iter().any(|next| ptr::eq(*next, list)), "nobody has it any more");
        assert_eq!(table.ranks, 8);
    }

    #[test]
    fn a_duplicate_of_the_world_is_like_it_and_nothing_is_made_of_an_unknown_parent() {
        let mut table = Table::new();
        table.created(1, Some(known(4, true)));
        let duplicate = table.comes_like(1, 2, 4).unwrap();
        let grid = table.comes_like(2, 3, 3).unwrap();
        assert_eq!(ranks(duplicate), [Some(0), Some(1), Some(2), Some(3), None]);
        assert_eq!(ranks(grid), [Some(0), Some(1), Some(2), None, None]);
        assert!(table.comes_like(1, 4, 5).is_none(), "more than the parent has");
        assert!(table.comes_like(9, 5, 1).is_none() && !table.is_decided(5));
        assert_eq!(table.ranks, 0);
    }

    #[test]
    fn the_same_list_of_members_has_the_same_hash_and_another_has_another() {
        let mut table = Table::new();
        let world = table.created(1, Some(known(4, true))).unwrap().members();
        let mut members =
            |handle, ranks: &[u32]| created(&mut table, handle, ranks).unwrap().members();
        assert_eq!(members(2, &[0, 1, 2, 3]), world);
        let others = [
            members(3, &[0, 1, 2]),
            members(4, &[0, 1, 3, 2]),
            members(5, &[1, 0]),
            members(6, &[0, 2]),
            members(7, &[0]),
            members(8, &[1]),
            world,
        ];
        let different: std::collections::BTreeSet<u64> = others.into();
        assert_eq!(different.len(), others.len());
    }

    #[test]
    fn of_too_many_members_the_first_the_middle_and_the_last_one_are_compared() {
        let mut table = Table::new();
        let mut members = |handle, ranks: &[u32], world_size| {
            created(&mut table, handle, ranks).unwrap().hash(world_size)
        };
        let (few, many) = (2_000_000, 2_000_001);
        assert_ne!(members(1, &[5, 1, 2, 3, 4], few), members(2, &[5, 6, 2, 7, 4], few));
        let one = members(3, &[5, 1, 2, 3, 4], many);
        assert_eq!(members(4, &[5, 6, 2, 7, 4], many), one);
        for (handle, ranks) in
            [[0, 1, 2, 3, 4], [5, 1, 0, 3, 4], [5, 1, 2, 3, 0]].iter().enumerate()
        {
            assert_ne!(members(5 + handle, ranks, many), one);
        }
        assert_ne!(members(8, &[5, 1, 2, 4], 3_000_000), one, "of another size");
        let same = table.created(9, Some(known(5, true))).unwrap();
        assert_eq!(same.hash(many), created(&mut table, 10, &[0, 9, 2, 9, 4]).unwrap().hash(many));
    }

    #[test]
    fn an_entry_is_used_again_and_what_was_noted_is_gone() {
        let mut table = Table::new();
        let first = created(&mut table, 1, &[3, 2, 1]).unwrap();
        first.set_note(5, 9);
        assert_eq!((first.note(5), first.note(4), first.note(NOTES)), (9, 0, 0));
        assert_ne!(first.members(), 0);
        table.freed(1);
        assert!(!first.is_of(1));
        let second = created(&mut table, 2, &[4, 3, 2, 1]).unwrap();
        assert!(ptr::eq(first, second) && second.is_of(2));
        assert_eq!((second.note(5), second.rank_in_world(3)), (0, Some(1)));
        assert_eq!(second.members.load(Ordering::Relaxed), 0);
        // No communicator has it.
        table.freed(3);
        table.forget_all();
        assert!(!second.is_of(2) && table.entries.is_empty());
    }

    #[test]
    fn communicators_one_after_the_other_take_the_room_of_one_and_no_more_than_there_is() {
        let mut table = Table::new();
        for handle in 0..100_000 {
            assert!(table.created(handle, Some(known(1000, false))).is_some());
            table.freed(handle);
        }
        assert_eq!((table.ranks, table.entries.len(), table.free.len()), (1024, 0, 1));
        let came =
            |table: &mut Table, handles: std::ops::Range<usize>, known: &dyn Fn() -> Members| {
                handles.filter(|&at| table.created(at, Some(known())).is_some()).count()
            };
        assert_eq!(came(&mut table, 0..10_000, &|| known(1000, false)), RANKS_AT_MOST / 1024);
        assert_eq!(came(&mut table, 20_000..20_001, &|| known(1000, true)), 1, "no list");
        assert!(table.comes_like(0, 20_001, 1000).is_some(), "no list of its own");
        for handle in 0..30_000 {
            table.freed(handle);
        }
        assert_eq!(came(&mut table, 0..30_000, &|| known(2, true)), ENTRIES_AT_MOST);
        assert!(table.is_decided(29_999), "nothing is asked in vain");
    }

    #[test]
    fn whoever_asks_finds_the_one_that_has_the_handle_now() {
        // No other test asks about these.
        let handles = || (0x4400_0000..0x4400_0400).step_by(4);
        for handle in handles() {
            made_up(handle, 1, &[u32::try_from(handle).unwrap()]);
        }
        for _ in 0..2 {
            for handle in handles() {
                let rank = by_word(handle).and_then(|entry| entry.rank_in_world(0));
                assert_eq!(rank, u32::try_from(handle).ok());
            }
        }
        for handle in handles() {
            freed(handle);
            made_up(handle, 1, &[3]);
            assert_eq!(by_word(handle).and_then(|entry| entry.rank_in_world(0)), Some(3));
            freed(handle);
            // Without MPI nothing can be asked; it takes time to find out.
            let spent = budget().beside();
            assert!(by_word(handle).is_none());
            assert!(budget().beside() > spent);
        }
    }
}
