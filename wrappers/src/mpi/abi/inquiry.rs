//! What gyan asks MPI about the arguments of a call: only local questions, by the profiling names.
//!
//! Ask only after the call with the arguments succeeded, or just before one that needs them: a library answers
//! a wrong handle with the program's error handler.

use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Abi, FortranConstant, FromFortran, Library};
use crate::sys::foreign::foreign;
use crate::sys::symbols::{self, Address};

foreign! {
    /// Looked up once; as in MPI 4.1, chapters 5, 7, 8, 12 and 14, with handles as machine words.
    struct InquiryFunctions: any [extern "C"] {
        type_size(usize, *mut i64) = c"PMPI_Type_size_x";
        type_get_envelope(usize, *mut c_int, *mut c_int, *mut c_int, *mut c_int)
            = c"PMPI_Type_get_envelope";
        comm_size(usize, *mut c_int) = c"PMPI_Comm_size";
        comm_rank(usize, *mut c_int) = c"PMPI_Comm_rank";
        comm_remote_size(usize, *mut c_int) = c"PMPI_Comm_remote_size";
        comm_test_inter(usize, *mut c_int) = c"PMPI_Comm_test_inter";
        comm_get_name(usize, *mut c_char, *mut c_int) = c"PMPI_Comm_get_name";
        win_get_name(usize, *mut c_char, *mut c_int) = c"PMPI_Win_get_name";
        win_get_group(usize, *mut usize) = c"PMPI_Win_get_group";
        file_get_group(usize, *mut usize) = c"PMPI_File_get_group";
        comm_group(usize, *mut usize) = c"PMPI_Comm_group";
        comm_remote_group(usize, *mut usize) = c"PMPI_Comm_remote_group";
        group_size(usize, *mut c_int) = c"PMPI_Group_size";
        group_translate_ranks(usize, c_int, *const c_int, usize, *mut c_int)
            = c"PMPI_Group_translate_ranks";
        group_free(*mut usize) = c"PMPI_Group_free";
        topo_test(usize, *mut c_int) = c"PMPI_Topo_test";
        cartdim_get(usize, *mut c_int) = c"PMPI_Cartdim_get";
        cart_shift(usize, c_int, c_int, *mut c_int, *mut c_int) = c"PMPI_Cart_shift";
        graph_neighbors_count(usize, c_int, *mut c_int) = c"PMPI_Graph_neighbors_count";
        dist_graph_neighbors_count(usize, *mut c_int, *mut c_int, *mut c_int)
            = c"PMPI_Dist_graph_neighbors_count";
    }
}

pub(crate) struct Inquiry {
    pub(crate) abi: &'static Abi,
    functions: InquiryFunctions,
    /// The handles that Fortran has numbers for.
    pub(crate) from_fortran: FromFortran<FortranHandles>,
    /// Fortran's `MPI_IN_PLACE`: its address, or the place that holds its address.
    fortran_in_place: Option<InPlace>,
}

/// A function that asks for a value of a handle.
type OfHandle<T> = extern "C" fn(usize, *mut T) -> c_int;
type FromInteger = extern "C" fn(c_int) -> usize;
type GetName = extern "C" fn(usize, *mut c_char, *mut c_int) -> c_int;

#[derive(Clone, Copy)]
pub(crate) enum FortranHandles {
    /// Fortran's numbers are the handles themselves.
    Same,
    By(FromInteger),
    /// The function for it was not found.
    Unknown,
}

/// Fortran's `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
enum InPlace {
    At(usize),
    /// The address is in this variable of the library, once Fortran is used.
    In(&'static AtomicUsize),
}

static INQUIRY: OnceLock<Option<Inquiry>> = OnceLock::new();

/// The questions that can be asked; none when the library is not known.
#[inline]
pub(crate) fn inquiry() -> Option<&'static Inquiry> {
    match INQUIRY.get() {
        Some(inquiry) => inquiry.as_ref(),
        None => prepare(),
    }
}

/// The same for a call that is counted: the functions were looked up before the first such call.
#[inline]
pub(crate) fn known_inquiry() -> Option<&'static Inquiry> {
    INQUIRY.get()?.as_ref()
}

/// Looks the functions up in advance, so that no call has to.
pub(crate) fn prepare_inquiry(library: &Library) {
    INQUIRY.get_or_init(|| Some(Inquiry::find(library)));
}

#[cold]
fn prepare() -> Option<&'static Inquiry> {
    INQUIRY.get_or_init(|| Library::find().ok().map(|library| Inquiry::find(&library))).as_ref()
}

impl Inquiry {
    fn find(library: &Library) -> Inquiry {
        let handles = |name: Option<&'static CStr>| match name {
            None => FortranHandles::Same,
            Some(name) => library.function(name).map_or(FortranHandles::Unknown, |address| {
                // MPI_Comm_f2c and its relatives take an INTEGER and return a handle (MPI 4.1,
                // 19.3.4; MPI 5.0 for those that are called fromint).
                FortranHandles::By(foreign!(address, FromInteger))
            }),
        };
        let abi = library.abi;
        let FromFortran { comm, datatype, group, win, file } = abi.from_fortran;
        Inquiry {
            abi,
            functions: InquiryFunctions::find(|name| library.function(name)),
            from_fortran: FromFortran {
                comm: handles(comm),
                datatype: handles(datatype),
                group: handles(group),
                win: handles(win),
                file: handles(file),
            },
            fortran_in_place: match abi.fortran_in_place {
                FortranConstant::Symbol(name) => {
                    in_program(name).map(|at| InPlace::At(at.as_ptr() as usize))
                }
                FortranConstant::Variable(name) => in_program(name)
                    // SAFETY: a variable of the library, which is never unloaded, holds a pointer.
                    .map(|at| InPlace::In(unsafe { at.cast::<AtomicUsize>().as_ref() })),
                FortranConstant::None => None,
            },
        }
    }

    /// Bytes per element; none when the library does not say.
    pub(crate) fn type_size(&self, datatype: usize) -> Option<u64> {
        ask(self.functions.type_size, datatype, -1).and_then(|size: i64| u64::try_from(size).ok())
    }

    /// Whether a datatype is a predefined one: only such are made from nothing (MPI 4.1, 5.1.13).
    pub(crate) fn is_predefined(&self, datatype: usize) -> bool {
        let Some(envelope) = self.functions.type_get_envelope else { return false };
        let [mut integers, mut addresses, mut datatypes, mut combiner]: [c_int; 4] = [-1; 4];
        let code = envelope(
            datatype,
            &raw mut integers,
            &raw mut addresses,
            &raw mut datatypes,
            &raw mut combiner,
        );
        code == 0 && [integers, addresses, datatypes] == [0; 3]
    }

    /// Processes in the group of a communicator.
    #[inline(always)]
    pub(crate) fn size(&self, comm: usize) -> Option<usize> {
        number(self.functions.comm_size, comm)
    }

    pub(crate) fn rank(&self, comm: usize) -> Option<usize> {
        number(self.functions.comm_rank, comm)
    }

    #[inline(always)]
    pub(crate) fn is_intercommunicator(&self, comm: usize) -> bool {
        ask(self.functions.comm_test_inter, comm, 0).is_some_and(|flag| flag != 0)
    }

    /// Processes in the remote group of an intercommunicator.
    pub(crate) fn remote_size(&self, comm: usize) -> Option<usize> {
        number(self.functions.comm_remote_size, comm)
    }

    /// Processes that a process exchanges data with in a collective operation.
    #[inline(always)]
    pub(crate) fn peers(&self, comm: usize) -> Option<usize> {
        if self.is_intercommunicator(comm) { self.remote_size(comm) } else { self.size(comm) }
    }

    /// How many neighbours send to this process, and to how many it sends (MPI 4.1, 8.6).
    pub(crate) fn neighbors(&self, comm: usize) -> Option<(usize, usize)> {
        let topology = ask(self.functions.topo_test, comm, 0)?;
        let [cart, graph, dist_graph] = self.abi.topologies;
        if topology == cart {
            let both = 2 * number(self.functions.cartdim_get, comm)?;
            return Some((both, both));
        }
        let (mut sources, mut destinations, mut weighted): (c_int, c_int, c_int) = (0, 0, 0);
        if topology == graph {
            let rank = c_int::try_from(self.rank(comm)?).ok()?;
            let code = (self.functions.graph_neighbors_count?)(comm, rank, &raw mut sources);
            let count = usize::try_from(sources).ok().filter(|_| code == 0)?;
            return Some((count, count));
        }
        if topology != dist_graph {
            return None;
        }
        let code = (self.functions.dist_graph_neighbors_count?)(
            comm,
            &raw mut sources,
            &raw mut destinations,
            &raw mut weighted,
        );
        let counts = (usize::try_from(sources).ok()?, usize::try_from(destinations).ok()?);
        (code == 0).then_some(counts)
    }

    /// Whether there is a process at this place in the list of destinations: there is none beyond the edge of a grid. In each
    /// dimension the one below comes first (MPI 4.1, 8.6).
    pub(crate) fn has_destination(&self, comm: usize, place: usize) -> bool {
        if ask(self.functions.topo_test, comm, 0) != Some(self.abi.topologies[0]) {
            return true;
        }
        let (mut below, mut above): (c_int, c_int) = (0, 0);
        let dimension = c_int::try_from(place / 2);
        let (Ok(dimension), Some(shift)) = (dimension, self.functions.cart_shift) else {
            return true;
        };
        let code = shift(comm, dimension, 1, &raw mut below, &raw mut above);
        let neighbor = if place.is_multiple_of(2) { below } else { above };
        code != 0 || neighbor != self.abi.proc_null
    }

    /// The name of a communicator; none for an empty one.
    pub(crate) fn comm_name(&self, comm: usize) -> Option<String> {
        self.name(self.functions.comm_get_name?, comm)
    }

    /// The name of a window; none for an empty one.
    pub(crate) fn win_name(&self, win: usize) -> Option<String> {
        self.name(self.functions.win_get_name?, win)
    }

    fn name(&self, function: GetName, handle: usize) -> Option<String> {
        let mut text: Vec<u8> = vec![0; self.abi.object_name_bytes + 1];
        let mut length: c_int = 0;
        if function(handle, text.as_mut_ptr().cast(), &raw mut length) != 0 {
            return None;
        }
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The ranks in `world` of the processes that peer ranks in a communicator refer to, `u32::MAX` for those
    /// that are not in there. Empty when they are the same; none when the library does not say.
    pub(crate) fn ranks_in(&self, world: usize, comm: usize) -> Option<Vec<u32>> {
        let (peers, all) = (self.peer_group(comm)?, self.comm_group(world)?);
        let own: Vec<u32> = (0..u32::try_from(peers.size()?).ok()?).collect();
        let ranks = peers.ranks_in(&all, &own)?;
        Some(if ranks == own { Vec::new() } else { ranks })
    }

    /// The processes of a communicator.
    pub(crate) fn comm_group(&self, comm: usize) -> Option<Group<'_>> {
        self.group(self.functions.comm_group, comm)
    }

    /// The processes that peer ranks in a communicator refer to.
    pub(crate) fn peer_group(&self, comm: usize) -> Option<Group<'_>> {
        if self.is_intercommunicator(comm) {
            self.group(self.functions.comm_remote_group, comm)
        } else {
            self.comm_group(comm)
        }
    }

    /// The processes of a window.
    pub(crate) fn win_group(&self, win: usize) -> Option<Group<'_>> {
        self.group(self.functions.win_get_group, win)
    }

    fn group(&self, get: Option<OfHandle<usize>>, of: usize) -> Option<Group<'_>> {
        Some(Group { handle: ask(get, of, 0)?, functions: &self.functions })
    }

    /// The ranks in `world` of the processes of a group of the program, `u32::MAX` for those that are not in there. None of more
    /// than `at_most`.
    pub(crate) fn ranks_of_group(
        &self,
        world: usize,
        group: usize,
        at_most: usize,
    ) -> Option<Vec<u32>> {
        // The program frees it.
        let group = ManuallyDrop::new(Group { handle: group, functions: &self.functions });
        let size = group.size().filter(|size| *size <= at_most)?;
        let own: Vec<u32> = (0..u32::try_from(size).ok()?).collect();
        group.ranks_in(&self.comm_group(world)?, &own)
    }

    /// Processes in the group of a window.
    pub(crate) fn win_size(&self, win: usize) -> Option<usize> {
        self.win_group(win)?.size()
    }

    /// Processes in the group of a file.
    pub(crate) fn file_size(&self, file: usize) -> Option<usize> {
        self.group(self.functions.file_get_group, file)?.size()
    }

    /// Whether a Fortran program passed `MPI_IN_PLACE`; none when that is not known.
    pub(crate) fn is_fortran_in_place(&self, address: usize) -> Option<bool> {
        let known = match self.fortran_in_place? {
            InPlace::At(known) => known,
            InPlace::In(variable) => variable.load(Ordering::Relaxed),
        };
        Some(known == address)
    }
}

/// Processes in an order. The library frees it when it is dropped.
pub(crate) struct Group<'a> {
    handle: usize,
    functions: &'a InquiryFunctions,
}

impl Group<'_> {
    pub(crate) fn size(&self) -> Option<usize> {
        number(self.functions.group_size, self.handle)
    }

    /// The ranks in another group of some of its ranks, `u32::MAX` for those that are not in there.
    pub(crate) fn ranks_in(&self, other: &Group, ranks: &[u32]) -> Option<Vec<u32>> {
        // One object: a library may translate that rank by rank, too.
        if self.handle == other.handle {
            return Some(ranks.to_vec());
        }
        let ranks: Vec<c_int> = ranks.iter().map(|rank| rank.cast_signed()).collect();
        let mut there: Vec<c_int> = vec![-1; ranks.len()];
        let translate = self.functions.group_translate_ranks?;
        let number = c_int::try_from(ranks.len()).ok()?;
        let code = translate(self.handle, number, ranks.as_ptr(), other.handle, there.as_mut_ptr());
        let rank = |rank: c_int| u32::try_from(rank).unwrap_or(u32::MAX);
        (code == 0).then(|| there.into_iter().map(rank).collect())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if let Some(free) = self.functions.group_free {
            free(&raw mut self.handle);
        }
    }
}

/// A variable that Fortran shares with the library: the program's own copy, if it has one.
fn in_program(name: &CStr) -> Option<Address> {
    symbols::default(name).or_else(|| symbols::next(name))
}

#[inline(always)]
fn ask<T>(function: Option<OfHandle<T>>, handle: usize, before: T) -> Option<T> {
    let mut value = before;
    (function?(handle, &raw mut value) == 0).then_some(value)
}

#[inline(always)]
fn number(function: Option<OfHandle<c_int>>, handle: usize) -> Option<usize> {
    ask(function, handle, -1).and_then(|value| usize::try_from(value).ok())
}

impl FortranHandles {
    /// The handle of a number.
    pub(crate) fn handle(self, number: c_int) -> Option<usize> {
        match self {
            // The upper half of the word is ignored.
            FortranHandles::Same => Some(number.cast_unsigned() as usize),
            FortranHandles::By(function) => Some(function(number)),
            FortranHandles::Unknown => None,
        }
    }
}
