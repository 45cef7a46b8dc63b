//! One row for each MPI function: its name, its name in Fortran where it has one outside of `mpi_f08`,
//! and its arguments. Data only; `export` turns rows into
//! entry points, `store` counts by [`Function`].
//!
//! A chapter is a macro that hands its rows to the macro that it is given, so that one list
//! yields names, numbers and entry points.

#![forbid(unsafe_code)]

pub(crate) mod environment;
pub(crate) mod point_to_point;

use std::ffi::{c_int, c_void};

/// A choice buffer, or a pointer to anything that gyan only passes on.
pub(crate) type Pointer = *mut c_void;
/// `int`.
pub(crate) type Int = c_int;
/// `MPI_Count`.
pub(crate) type Count = i64;
/// Any handle, passed by value. As a machine word it is right for libraries whose handles are
/// pointers and for those whose handles are `int`, of which the upper half is undefined.
pub(crate) type Handle = usize;

/// The number of a wrapped function, below [`LEN`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Function(pub(crate) usize);

/// How many functions are wrapped.
pub(crate) const LEN: usize = point_to_point::END;

/// Every wrapped function with its name.
pub(crate) fn functions() -> impl Iterator<Item = (Function, &'static str)> {
    let names = environment::NAMES.iter().chain(point_to_point::NAMES);
    names.enumerate().map(|(number, name)| (Function(number), *name))
}

/// Numbers the rows of a chapter from `$first` on.
macro_rules! number_rows {
    ($first:expr; $($(#[$doc:meta])* $name:ident $(/ $fortran:ident)? ( $($arg:ident : $type:ident),* );)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(usize)]
        enum Row { $($name),* }
        $(
            $(#[$doc])*
            #[allow(non_upper_case_globals)]
            pub(crate) const $name: $crate::table::Function =
                $crate::table::Function($first + Row::$name as usize);
        )*
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        pub(crate) const END: usize = $first + NAMES.len();
    };
}
use number_rows;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        let all: Vec<_> = functions().collect();
        assert_eq!(all.len(), LEN);
        assert_eq!(all[environment::MPI_Finalize.0].1, "MPI_Finalize");
        assert_eq!(all[point_to_point::MPI_Recv.0].1, "MPI_Recv");
        assert_eq!(all[LEN - 1].0, Function(LEN - 1));
    }
}
