//! The types of arguments: every one is a machine word, passed on as it came.

use std::ffi::{c_int, c_void};

/// A choice buffer, or any pointer that gyan only passes on.
pub(crate) type Pointer = *mut c_void;
/// `int`.
pub(crate) type Int = c_int;
/// `MPI_Aint`, in every form of the function.
pub(crate) type Aint = i64;
/// `MPI_Offset`.
pub(crate) type Offset = i64;
/// A handle that gyan only passes on. A machine word works for libraries whose handles are pointers and for
/// those whose handles are `int`, whose upper half is undefined.
pub(crate) type Handle = usize;

/// How an argument of a large-count function (`MPI_Send_c`) is converted when the library has only the function
/// for `int` counts (`MPI_Send`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ArgumentKind {
    /// It stays as it is.
    Same,
    /// A number that must fit into an `int`.
    Count,
    /// An array of such numbers, one for each process of the (remote) group of `comm`.
    PerRank,
    /// The same, but only at `root`; other ranks may pass anything.
    PerRankAtRoot,
    /// One for each neighbour that sends to this process.
    PerSource,
    /// One for each neighbour that this process sends to.
    PerDestination,
    /// As many as the argument `count` or `ndims` says.
    PerItem,
    /// A number that is written, and read first if the standard says so.
    OutCount,
    /// It cannot be converted: a callback with its own prototype, or something that the function for `int` counts
    /// is not given.
    Inconvertible,
}

/// The name of an argument, if it determines the length of another, or how long that is needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Name {
    Comm,
    Count,
    Ndims,
    Request,
    Root,
    Other,
}

impl Name {
    pub(crate) const fn from_text(name: &str) -> Name {
        match name.as_bytes() {
            b"comm" => Name::Comm,
            b"count" => Name::Count,
            b"ndims" => Name::Ndims,
            b"request" => Name::Request,
            b"root" => Name::Root,
            _ => Name::Other,
        }
    }
}

/// An argument of a row.
pub(crate) trait Argument: Copy {
    const KIND: ArgumentKind = ArgumentKind::Same;

    /// As it lies in a register.
    fn word(self) -> usize;
}

impl Argument for Pointer {
    fn word(self) -> usize {
        self as usize
    }
}

impl Argument for Int {
    #[allow(clippy::cast_sign_loss)]
    fn word(self) -> usize {
        self as usize
    }
}

impl Argument for i64 {
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    fn word(self) -> usize {
        self as usize
    }
}

impl Argument for Handle {
    fn word(self) -> usize {
        self
    }
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident($word:ty) $kind:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(crate) $word);

            impl Argument for $name {
                const KIND: ArgumentKind = ArgumentKind::$kind;

                fn word(self) -> usize {
                    Argument::word(self.0)
                }
            }
        )*
    };
}

arguments! {
    /// `MPI_Comm`.
    Comm(Handle) Same;
    /// `MPI_Datatype`.
    Datatype(Handle) Same;
    /// `MPI_Win`.
    Win(Handle) Same;
    /// `MPI_File`.
    File(Handle) Same;
    /// `MPI_Request`.
    Request(Handle) Same;
    /// One or more of them that a formula reads.
    Requests(Pointer) Same;
    /// A string; Fortran passes its length after the other arguments.
    Text(Pointer) Same;
    /// An array of `int`.
    Ints(Pointer) Same;
    /// An array of datatypes that a formula reads.
    Datatypes(Pointer) Same;
    /// `MPI_Count` that the form for smaller counts does not have.
    OwnCount(i64) Inconvertible;
    /// The address of one.
    OutOwnCount(Pointer) Inconvertible;
}

/// What the types in [`large_counts`] are in the function for `int` counts that shares the row.
pub(crate) mod int_counts {
    use super::{Int, Ints, Pointer};

    pub(crate) type Count = Int;
    pub(crate) type PerRank = Ints;
    pub(crate) type PerRankAtRoot = Ints;
    pub(crate) type PerSource = Ints;
    pub(crate) type PerDestination = Ints;
    pub(crate) type PerItem = Ints;
    pub(crate) type OutCount = Pointer;
    pub(crate) type Callback = Pointer;
}

/// The arguments of a large-count function that its function for `int` counts has in another form.
pub(crate) mod large_counts {
    use super::{Argument, ArgumentKind, Pointer};

    arguments! {
        /// `MPI_Count`.
        Count(i64) Count;
        /// See [`ArgumentKind::PerRank`].
        PerRank(Pointer) PerRank;
        /// See [`ArgumentKind::PerRankAtRoot`].
        PerRankAtRoot(Pointer) PerRankAtRoot;
        /// See [`ArgumentKind::PerSource`].
        PerSource(Pointer) PerSource;
        /// See [`ArgumentKind::PerDestination`].
        PerDestination(Pointer) PerDestination;
        /// See [`ArgumentKind::PerItem`].
        PerItem(Pointer) PerItem;
        /// See [`ArgumentKind::OutCount`].
        OutCount(Pointer) OutCount;
        /// One with counts among its own arguments.
        Callback(Pointer) Inconvertible;
    }
}
