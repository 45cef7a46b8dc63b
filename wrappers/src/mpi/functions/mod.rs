//! One row for each function of MPI 4.1, by chapter: its name, its Fortran names, its arguments, and other
//! facts about its calls. Only data; `entry` turns rows into entry points, and `ledger` counts by [`Function`].
//!
//! A chapter is a macro that passes its rows to a given macro, so that one list yields names, numbers, entry
//! points and the matrix of wrapped functions. One row describes both a function for `int` counts and its large-count
//! function, `[MPI_Send, MPI_Send_c]`: the types of arguments that differ mean those of [`int_counts`] in the first
//! and those of [`large_counts`] in the second, and in every row with one name. After the arguments a row can say in
//! brackets
//!
//! - `samples`: variables are sampled at its calls: receives, probes, waits and collective operations, where a
//!   program sees what others did;
//! - `waits(comm)` or `waits(comm, root)`: ranks of the communicator wait for each other in a call, as the dependencies of its
//!   data say (6.13, and `WaitsFor` of the results), or in the call that completes its request;
//!   `waits(win unless assert)`: those of the window do, unless it is asserted that they need not (12.5.5);
//! - `anywhere`, and nothing else: any thread may call it at any time, at every level of thread support
//!   (11.2.2, 11.4.1, 11.6), or programs do so although the standard does not say that they may;
//! - its role in receiving, and the arguments involved, see [`Receives`];
//!
//! and after that
//!
//! - `moves formula(...)`: how many bytes a call hands to MPI and to whom, by a function of `bytes`;
//! - `prepares formula(...)`: the same for the operation behind the request in the last argument, each time it
//!   is started;
//! - `creates kind(...)`, `frees kind(...)`: a communicator, window or file is created or freed, or a request
//!   is freed;
//! - `creates duplicate(...)`, `creates topology(...)`, `creates part(...)`, `creates window(...)`: a communicator or window is
//!   created, with ranks of a communicator;
//! - `synchronises post(...)` and its kin: an epoch of a window begins or ends, for some of its ranks;
//! - `locks lock(...)` and its kin: a lock of a window is asked for, may be waited for or is given back;
//! - `finds comm(...)`: a communicator that exists already is asked for;
//! - `begins duplicate(...)`: a communicator with the ranks of another one exists once the request completes;
//! - `completes one(...)`, `completes many(...)`: the call waits until a request completes; `one_if(...)`, `many_if(...)`: it does not
//!   wait, and the last argument says whether one has completed;
//! - `ends with(...)`: the program is ended, with a code.

mod argument;
pub(crate) mod by_hand;
pub(crate) mod caching;
pub(crate) mod collective;
pub(crate) mod communicators;
pub(crate) mod datatypes;
pub(crate) mod deprecated;
pub(crate) mod environment;
pub(crate) mod external;
pub(crate) mod groups;
pub(crate) mod info;
pub(crate) mod io;
pub(crate) mod one_sided;
pub(crate) mod partitioned;
pub(crate) mod point_to_point;
pub(crate) mod processes;
pub(crate) mod topologies;
#[cfg(test)]
mod unwrapped;
pub(crate) mod values;

pub(crate) use argument::*;

/// The number of a wrapped function, below [`LEN`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Function(pub(crate) usize);

/// The row of a function in the matrix.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Its name in C.
    pub(crate) name: &'static str,
    /// Its names in Fortran, in lower case; none for functions that Fortran has only inside `mpi_f08`.
    #[cfg(test)]
    pub(crate) fortran: &'static [&'static str],
    /// Whether its bytes are counted.
    pub(crate) bytes: bool,
    /// Whether ranks wait for each other in it, or in the call that completes what it starts.
    pub(crate) waits: bool,
    /// The names of its arguments.
    pub(crate) arguments: &'static [&'static str],
}

/// Passes the rows of a chapter on as `$apply` wants them. Two names in brackets become two rows, which differ in what
/// the types of their arguments mean, and of which only the first has names in Fortran. Facts are in brackets even if
/// there are none.
macro_rules! forms {
    ($apply:ident [$($first:tt)*] $(
        $([$small:ident, $large:ident])? $($name:ident)? $(/ $($fortran:ident)+)?
        ( $($arg:ident : $type:ident),* ) $([$($known:tt)*])? $($effect:ident $what:ident ( $($on:ident),* ))? ;
    )*) => {
        $crate::mpi::functions::forms! { @ $apply [$($first)*] $(
            [$($small $large)?] [$($name)?] [$($($fortran)+)?]
            { ( $($arg : $type),* ) [$($($known)*)?] $($effect $what ( $($on),* ))? }
        )* }
    };
    (@ $apply:ident [$($first:tt)*] $(
        [$($small:ident $large:ident)?] [$($name:ident)?] $fortran:tt $rest:tt
    )*) => {
        $apply! { $($first)* $(
            $(int_counts $small $fortran $rest large_counts $large [] $rest)?
            $(large_counts $name $fortran $rest)?
        )* }
    };
}
pub(crate) use forms;

/// Expands the rows of every chapter except the two whose entry points are written by hand.
macro_rules! every_row {
    ($apply:ident) => {
        $crate::mpi::functions::point_to_point::rows! { $apply point_to_point; }
        $crate::mpi::functions::partitioned::rows! { $apply partitioned; }
        $crate::mpi::functions::datatypes::rows! { $apply datatypes; }
        $crate::mpi::functions::collective::rows! { $apply collective; }
        $crate::mpi::functions::groups::rows! { $apply groups; }
        $crate::mpi::functions::communicators::rows! { $apply communicators; }
        $crate::mpi::functions::caching::rows! { $apply caching; }
        $crate::mpi::functions::topologies::rows! { $apply topologies; }
        $crate::mpi::functions::environment::rows! { $apply environment; }
        $crate::mpi::functions::info::rows! { $apply info; }
        $crate::mpi::functions::processes::rows! { $apply processes; }
        $crate::mpi::functions::one_sided::rows! { $apply one_sided; }
        $crate::mpi::functions::external::rows! { $apply external; }
        $crate::mpi::functions::io::rows! { $apply io; }
        $crate::mpi::functions::deprecated::rows! { $apply deprecated; }
    };
}
pub(crate) use every_row;

/// The chapters with their rows, in the order of the numbers.
pub(crate) const CHAPTERS: &[(&str, &[Row])] = &[
    ("Start and end (11.2 to 11.4)", by_hand::ROWS),
    ("Point-to-point communication (3)", point_to_point::ROWS),
    ("Partitioned communication (4)", partitioned::ROWS),
    ("Datatypes (5)", datatypes::ROWS),
    ("Collective communication (6)", collective::ROWS),
    ("Groups (7.3)", groups::ROWS),
    ("Communicators (7.4 to 7.6)", communicators::ROWS),
    ("Attributes and names (7.7, 7.8)", caching::ROWS),
    ("Topologies and neighbourhood collectives (8)", topologies::ROWS),
    ("Versions, memory, errors (9)", environment::ROWS),
    ("Info objects (10)", info::ROWS),
    ("Sessions and processes (11)", processes::ROWS),
    ("One-sided communication (12)", one_sided::ROWS),
    ("Generalised requests and statuses (13)", external::ROWS),
    ("Files (14)", io::ROWS),
    ("Deprecated and removed (16, 17)", deprecated::ROWS),
    ("Time, addresses, MPI_Pcontrol", values::ROWS),
];

/// Whether variables are sampled at calls of a function, according to the brackets of its row.
macro_rules! samples {
    ([samples $($fact:tt)*]) => {
        true
    };
    ($known:tt) => {
        false
    };
}
pub(crate) use samples;

/// A function's role in receiving, according to the brackets of its row.
macro_rules! receives {
    ($arguments:tt [samples $($fact:tt)*]) => {
        receives! { $arguments [$($fact)*] }
    };
    ($arguments:tt [waits $on:tt $($fact:tt)*]) => {
        receives! { $arguments [$($fact)*] }
    };
    ($arguments:tt []) => {
        None
    };
    (( $($arg:ident)* ) [$fact:ident ( $($on:ident),* )]) => {{
        #[allow(non_camel_case_types, dead_code)]
        enum Place { $($arg),* }
        Some(Receives::$fact($(Place::$on as u8),*))
    }};
}
pub(crate) use receives;

/// Where a function in which ranks wait for each other, or which starts such an operation, has its communicator, and its root if it
/// has one; or its window, and what is asserted of that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Meeting {
    OnComm {
        comm: u8,
        root: Option<u8>,
    },
    /// Unless that is said.
    OnWindow {
        win: u8,
        assert: u8,
    },
}

/// The [`Meeting`] of a row, according to its brackets.
macro_rules! waits {
    ($arguments:tt [samples $($fact:tt)*]) => {
        $crate::mpi::functions::waits! { $arguments [$($fact)*] }
    };
    (( $($arg:ident)* ) [waits ( $on:ident $(, $root:ident)? ) $($fact:tt)*]) => {{
        #[allow(non_camel_case_types, dead_code)]
        enum Position { $($arg),* }
        #[allow(unused_mut, unused_assignments)]
        let mut root = None;
        $( root = Some(Position::$root as u8); )?
        Some($crate::mpi::functions::Meeting::OnComm { comm: Position::$on as u8, root })
    }};
    (( $($arg:ident)* ) [waits ( $win:ident unless $assert:ident ) $($fact:tt)*]) => {{
        #[allow(non_camel_case_types, dead_code)]
        enum WindowPosition { $($arg),* }
        Some($crate::mpi::functions::Meeting::OnWindow {
            win: WindowPosition::$win as u8,
            assert: WindowPosition::$assert as u8,
        })
    }};
    ($arguments:tt $known:tt) => {
        None::<$crate::mpi::functions::Meeting>
    };
}
pub(crate) use waits;

/// A function's role in receiving, with the positions of its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Receives {
    /// It posts one.
    Posts(Posted),
    /// It receives a message that was matched before.
    Matched,
    /// It prepares one, whose request is the last argument, to be started later.
    Prepares { posted: Posted, request: u8 },
    /// It starts a request at a position.
    Starts { request: u8 },
    /// It starts as many requests as the first position says.
    StartsAll { count: u8, requests: u8 },
    /// It frees a request.
    Frees { request: u8 },
}

/// Where the arguments of a receive are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Posted {
    pub(crate) source: u8,
    pub(crate) tag: u8,
    pub(crate) comm: u8,
    pub(crate) status: Option<u8>,
}

/// The words about receives that a row can use, with their arguments.
impl Receives {
    pub(crate) const fn posts(source: u8, tag: u8, comm: u8) -> Receives {
        Receives::Posts(Posted { source, tag, comm, status: None })
    }

    // The word used in rows.
    #[allow(clippy::self_named_constructors)]
    pub(crate) const fn receives(source: u8, tag: u8, comm: u8, status: u8) -> Receives {
        Receives::Posts(Posted { source, tag, comm, status: Some(status) })
    }

    pub(crate) const fn receives_matched() -> Receives {
        Receives::Matched
    }

    pub(crate) const fn prepares(source: u8, tag: u8, comm: u8, request: u8) -> Receives {
        let posted = Posted { source, tag, comm, status: None };
        Receives::Prepares { posted, request }
    }

    pub(crate) const fn starts(request: u8) -> Receives {
        Receives::Starts { request }
    }

    pub(crate) const fn starts_all(count: u8, requests: u8) -> Receives {
        Receives::StartsAll { count, requests }
    }

    pub(crate) const fn frees(request: u8) -> Receives {
        Receives::Frees { request }
    }
}

/// How many functions are wrapped.
pub(crate) const LEN: usize = values::END;

/// Every wrapped function with its row.
pub(crate) fn functions() -> impl Iterator<Item = (Function, &'static Row)> {
    let rows = CHAPTERS.iter().flat_map(|(_, rows)| rows.iter());
    rows.enumerate().map(|(number, row)| (Function(number), row))
}

/// The name of a function in C; none of a number that is not one.
pub(crate) const fn name(function: Function) -> &'static str {
    let mut before = function.0;
    let mut chapters = CHAPTERS;
    while let [(_, rows), others @ ..] = chapters {
        let mut rows = *rows;
        while let [row, more @ ..] = rows {
            if before == 0 {
                return row.name;
            }
            before -= 1;
            rows = more;
        }
        chapters = others;
    }
    ""
}

/// Whether ranks wait for each other in a function, or in the call that completes what it starts.
pub(crate) fn waits_for_others(function: Function) -> bool {
    let chapters = [
        (collective::MPI_Allgather, collective::ROWS),
        (one_sided::MPI_Accumulate, one_sided::ROWS),
    ];
    let row =
        |(first, rows): (Function, &'static [Row])| rows.get(function.0.checked_sub(first.0)?);
    chapters.into_iter().find_map(row).is_some_and(|row| row.waits)
}

/// Numbers the rows of a chapter from `$first` on.
macro_rules! number_rows {
    ($first:expr; $(
        $form:ident $name:ident [$($fortran:ident)*] {
            ( $($arg:ident : $type:ident),* ) $known:tt $($effect:ident $what:ident ( $($on:ident),* ))?
        }
    )*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(usize)]
        enum Number { $($name),* }
        $(
            #[allow(non_upper_case_globals)]
            pub(crate) const $name: $crate::mpi::functions::Function =
                $crate::mpi::functions::Function($first + Number::$name as usize);
        )*
        pub(crate) const ROWS: &[$crate::mpi::functions::Row] = &[$(
            $crate::mpi::functions::Row {
                name: stringify!($name),
                #[cfg(test)]
                fortran: &[$(stringify!($fortran)),*],
                bytes: $crate::mpi::functions::moves!($($effect)?),
                waits: $crate::mpi::functions::waits!(( $($arg)* ) $known).is_some(),
                arguments: &[$(stringify!($arg)),*],
            }
        ),*];
        pub(crate) const END: usize = $first + ROWS.len();
    };
}
use number_rows;

macro_rules! moves {
    (moves) => {
        true
    };
    ($($effect:ident)?) => {
        false
    };
}
use moves;

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        let all: Vec<_> = functions().collect();
        assert_eq!(all.len(), LEN);
        assert_eq!(all[by_hand::MPI_Finalize.0].1.name, "MPI_Finalize");
        assert_eq!(all[point_to_point::MPI_Recv.0].1.name, "MPI_Recv");
        assert_eq!(all[io::MPI_File_write_shared_c.0].1.name, "MPI_File_write_shared_c");
        assert_eq!(all[LEN - 1].0, Function(LEN - 1));
    }

    /// The matrix of what is wrapped in each language: `BLESS=1` writes it.
    #[test]
    fn the_matrix_in_the_documentation_is_that_of_the_table() {
        let mut text = String::from(
            "# Functions of MPI\n\nWhich functions gyan wraps, so that their calls are counted; \
             generated from the table in\n`wrappers/src/mpi/functions`. *Fortran*: through \
             `mpif.h`, `use mpi` and `use mpi_f08`. *start*: seen through the\nC function that \
             every binding calls. The large-count functions (`_c`) have no names of their own\nin \
             `mpif.h` and `use mpi`; those of `mpi_f08` are seen where the library calls the C \
             function, as\nMPICH does for the ones with a buffer. *Bytes*: whether the data that a \
             call hands to MPI is counted.\n",
        );
        for (title, rows) in CHAPTERS {
            writeln!(text, "\n## {title}\n\n| function | C | Fortran | bytes |").unwrap();
            text += "| :-- | :-- | :-- | :-- |\n";
            for row in *rows {
                let fortran = match (*title == CHAPTERS[0].0, row.fortran.is_empty()) {
                    (true, _) => "start",
                    (false, true) => "",
                    (false, false) => "yes",
                };
                let bytes = if row.bytes { "yes" } else { "" };
                writeln!(text, "| `{}` | yes | {fortran} | {bytes} |", row.name).unwrap();
            }
        }
        text += "\n## Not wrapped\n\n| function | why |\n| :-- | :-- |\n";
        for (pattern, why) in unwrapped::UNWRAPPED {
            writeln!(text, "| `{pattern}` | {why} |").unwrap();
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/functions.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(text, written, "docs/functions.md is not the table's; BLESS=1 writes it");
    }

    #[test]
    fn a_name_in_fortran_is_the_name_in_c_in_small_letters() {
        for row in CHAPTERS.iter().flat_map(|(_, rows)| rows.iter()) {
            for fortran in row.fortran {
                let plain = fortran.strip_suffix("_cptr").unwrap_or(fortran);
                assert_eq!(plain, row.name.to_lowercase());
            }
        }
    }
}
