//! Which MPI is tested with which language and launcher: what it lacks, and what passed?
//!
//! A test records a cell when all of it has passed; `tables::mpis` makes the table from the records.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{BED, Mpi, Outcome, command, each_library, root, run, target};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Column {
    C,
    Cxx,
    MpifH,
    UseMpi,
    UseMpiF08,
    Mpi4py,
    Rust,
    Mpirun,
    Mpiexec,
    Srun,
    NoLauncher,
    Before,
    After,
    Mpmd,
    Spawn,
}

use Column::{
    After, Before, C, Cxx, Mpi4py, Mpiexec, MpifH, Mpirun, Mpmd, NoLauncher, Rust, Spawn, Srun,
    UseMpi, UseMpiF08,
};

/// The columns with their titles, as two tables that fit a page.
pub(crate) const LANGUAGES: [(Column, &str); 7] = [
    (C, "C"),
    (Cxx, "C++"),
    (MpifH, "`mpif.h`"),
    (UseMpi, "`use mpi`"),
    (UseMpiF08, "`mpi_f08`"),
    (Mpi4py, "mpi4py"),
    (Rust, "Rust"),
];
pub(crate) const LAUNCHERS: [(Column, &str); 8] = [
    (Mpirun, "mpirun"),
    (Mpiexec, "mpiexec"),
    (Srun, "srun"),
    (NoLauncher, "none"),
    (Before, "gyan run -- mpirun"),
    (After, "mpirun gyan run"),
    (Mpmd, "MPMD"),
    (Spawn, "spawn"),
];

/// The rows, in the order of [`BED`]: the MPI, and the binary interface of its programs.
pub(crate) const ROWS: [(&str, &str); BED.len()] = [
    ("Open MPI 4, Debian", "Open MPI"),
    ("MPICH 4, Debian", "MPICH"),
    ("Open MPI 5, PyPI", "Open MPI"),
    ("MPICH 5, PyPI", "MPICH"),
    ("MPICH 5, PyPI", "MPI 5"),
    ("Intel MPI, PyPI", "MPICH"),
    ("Intel MPI, PyPI", "MPI 5"),
    ("MPICH 4 with all variables", "MPICH"),
    ("Open MPI 4 with SPC", "Open MPI"),
];

/// A property of MPIs, by the name in the test bed and the interface, that leaves cells empty.
struct Lack {
    of: &'static [(&'static str, &'static str)],
    columns: &'static [Column],
    reason: &'static str,
}

const FORTRAN: &[Column] = &[MpifH, UseMpi, UseMpiF08];

/// Why cells are empty. See [`what_is_left_out_fails_without_gyan_too`].
const LACKS: [Lack; 7] = [
    Lack {
        of: &[("openmpi5", "Open MPI"), ("mpich5", "MPICH"), ("mpich5", "MPI 5")],
        columns: FORTRAN,
        reason: "The package brings no Fortran.",
    },
    Lack {
        of: &[("intelmpi", "MPI 5")],
        columns: FORTRAN,
        reason: "The package brings no Fortran for this interface that gfortran can use.",
    },
    Lack {
        of: &[("intelmpi", "MPICH")],
        columns: &[UseMpiF08],
        reason: "gfortran cannot read the package's `mpi_f08`.",
    },
    Lack {
        of: &[("mpich-pvars", "MPICH")],
        columns: FORTRAN,
        reason: "It is built without Fortran.",
    },
    Lack {
        of: &[("mpich5", "MPI 5"), ("intelmpi", "MPI 5")],
        columns: &[Mpi4py],
        reason: "The wheel of mpi4py has no module for this interface.",
    },
    Lack {
        of: &[("mpich-pvars", "MPICH")],
        columns: &[Mpi4py],
        reason: "It is built without `MPI_File_open` and its kin, which the wheel of mpi4py needs.",
    },
    Lack {
        of: &[("mpich4", "MPICH")],
        columns: &[Spawn],
        reason: "`MPI_Comm_spawn` fails: MPICH 4.0 over UCX cannot.",
    },
];

/// The binary interface of an MPI of the test bed.
pub(crate) fn interface(mpi: Mpi) -> &'static str {
    ROWS[BED.iter().position(|row| *row == mpi).unwrap()].1
}

/// Why `mpi` has no cell in `column`.
pub(crate) fn reason(mpi: Mpi, column: Column) -> Option<&'static str> {
    let row = (mpi.name, interface(mpi));
    let lack = LACKS.iter().find(|lack| lack.of.contains(&row) && lack.columns.contains(&column));
    lack.map(|lack| lack.reason)
}

/// The MPIs that have `column`.
pub(crate) fn with(column: Column) -> impl Iterator<Item = Mpi> {
    each_library().into_iter().filter(move |mpi| reason(*mpi, column).is_none())
}

/// Two with mpi4py, one of each family, where what is tested is the language and not the MPI.
pub(crate) fn two_with_python() -> [Mpi; 2] {
    ["openmpi4", "mpich5"].map(Mpi::named)
}

/// Records that `mpi` passed. `scripts/test` removes the records of earlier runs.
pub(crate) fn passed(mpi: Mpi, column: Column) {
    let record = record(mpi, column);
    fs::create_dir_all(record.parent().unwrap()).unwrap();
    fs::write(record, "").unwrap();
}

pub(crate) fn has_passed(mpi: Mpi, column: Column) -> bool {
    record(mpi, column).exists()
}

fn record(mpi: Mpi, column: Column) -> PathBuf {
    let row = format!("{} {}", mpi.name, interface(mpi));
    target().join("matrix").join(row).join(format!("{column:?}"))
}

/// Tries the combination of a cell without gyan.
fn attempt(mpi: Mpi, column: Column) -> Outcome {
    let here = TempDir::new().unwrap();
    let words: Vec<String> = match column {
        Column::MpifH | Column::UseMpi | Column::UseMpiF08 => {
            let source = match column {
                Column::MpifH => "fortran_mpif.f",
                Column::UseMpi => "fortran_use_mpi.f90",
                _ => "fortran_use_mpi_f08.f90",
            };
            let source = root().join("tests/programs").join(source);
            // Only the MPI's own: later on PATH there may be that of another.
            let abi = if mpi.environment().1.ends_with("_abi") { "_abi" } else { "" };
            let script = format!(
                "own=$(dirname \"$(command -v mpirun)\") && for name in mpifort{abi} mpif90{abi}; do \
                 if [ -x $own/$name ]; then exec $own/$name -fallow-argument-mismatch -o program {}; \
                 fi; done; exit 1",
                source.display()
            );
            let shell = mpi.alone(Path::new("sh"));
            [shell, vec!["-c".into(), script]].concat()
        }
        Column::Mpi4py => {
            // By default it takes the module for another interface, whose library is also installed.
            let standard = if interface(mpi) == "MPI 5" { "MPI4PY_MPIABI=mpiabi" } else { "" };
            let words = ["env", standard, "python-mpi4py", "-c", "import mpi4py.MPI"];
            let words = words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned);
            mpi.mpirun(1).into_iter().chain(words).collect()
        }
        Column::Spawn => [mpi.mpirun(2), vec![mpi.program("spawn").display().to_string()]].concat(),
        other => panic!("{other:?}: every MPI has it"),
    };
    run(command(&words).current_dir(&here))
}

#[test]
fn what_is_left_out_fails_without_gyan_too() {
    for mpi in each_library() {
        for (column, _) in LANGUAGES.into_iter().chain(LAUNCHERS) {
            if let Some(reason) = reason(mpi, column) {
                let outcome = attempt(mpi, column);
                assert_ne!(outcome.code, 0, "{mpi:?} {column:?} works: no longer \"{reason}\"");
            }
        }
    }
}
