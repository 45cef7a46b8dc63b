//! README's table of MPIs, languages and launchers is what the tests before have shown.
//!
//! The tests run one after the other in the order of their names: this one comes last.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{BED, Mpi, Outcome, command, root, run};
use crate::matrix::{Column, LANGUAGES, LAUNCHERS, ROWS, has_passed, interface, reason};

/// Set by `scripts/test`, which runs all tests and removes the records of earlier ones.
const WHOLE: &str = "GYAN_TEST_MATRIX";

const BEGIN: &str = "<!-- the table of tests: BLESS=1 scripts/test writes it -->\n";
const END: &str = "<!-- end of the table of tests -->\n";

/// The two tables, with the reasons below; `pass` tells which cells passed.
fn tables(pass: impl Fn(Mpi, Column) -> bool) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    let mut text = String::from("\n");
    for columns in [&LANGUAGES[..], &LAUNCHERS] {
        let titles: Vec<&str> = columns.iter().map(|(_, title)| *title).collect();
        writeln!(text, "| MPI | interface | {} |", titles.join(" | ")).unwrap();
        writeln!(text, "| :-- | :-- |{}", " :-: |".repeat(columns.len())).unwrap();
        for (mpi, (name, interface)) in BED.into_iter().zip(ROWS) {
            let cells = columns.iter().map(|(column, _)| match reason(mpi, *column) {
                Some(reason) => {
                    let known = reasons.iter().position(|known| *known == reason);
                    let at = known.unwrap_or_else(|| {
                        reasons.push(reason);
                        reasons.len() - 1
                    });
                    (at + 1).to_string()
                }
                None if pass(mpi, *column) => "✓".to_owned(),
                None => "not run".to_owned(),
            });
            let cells: Vec<String> = cells.collect();
            writeln!(text, "| {name} | {interface} | {} |", cells.join(" | ")).unwrap();
        }
        text.push('\n');
    }
    for (at, reason) in reasons.iter().enumerate() {
        writeln!(text, "{}. {reason}", at + 1).unwrap();
    }
    text
}

#[test]
fn readme_shows_what_was_run_and_nothing_was_left_out() {
    let whole = std::env::var_os(WHOLE).is_some();
    let table = if whole { tables(has_passed) } else { tables(|_, _| true) };
    assert!(!table.contains("not run"), "a test did not run, or failed:\n{table}");
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("README.md has the place of the table");
    let (current, after) = rest.split_once(END).expect("README.md has the end of the table");
    if whole && std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(current, table, "README.md is out of date; BLESS=1 scripts/test writes it");
    }
    if !whole {
        eprintln!(
            "only what README.md says was compared: {WHOLE} is not set, as scripts/test does"
        );
    }
}

/// Tries what a cell stands for, without gyan.
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
            // Only the MPI's own: on PATH behind it may be that of another.
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
            // By itself it takes the module for another interface, whose library is there as well.
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
    for mpi in BED {
        for (column, _) in LANGUAGES.into_iter().chain(LAUNCHERS) {
            if let Some(reason) = reason(mpi, column) {
                let outcome = attempt(mpi, column);
                assert_ne!(outcome.code, 0, "{mpi:?} {column:?} works: no longer \"{reason}\"");
            }
        }
    }
}
