//! Another tool that comes before gyan: calls that it hides from gyan are reported, and nothing else.

use std::path::Path;

use gyan_results::{RankProfile, Verdict};
use tempfile::TempDir;

use crate::common::{MPIS, Mpi, Profiled, command, counts, gyan, libgyan, root, run};
use crate::matrix;
use crate::variables::doctor::{obstacle, of_program, says};

const RANKS: usize = 2;

struct Seen {
    run: Profiled,
    profiles: Vec<RankProfile>,
    report: String,
    summary: String,
}

/// Runs a program whose ranks have these libraries preloaded, and reports.
fn seen(mpi: Mpi, program: &[&str], preload: &[&Path]) -> Seen {
    let settings = [("GYAN_NOTICES", "warnings")];
    let run = Profiled::with_libraries(mpi, RANKS, preload, program, &settings).succeeded();
    let report = |options: &[&str]| crate::common::report(&run.directory, options).stdout;
    let (shown, summary) = (report(&[]), report(&["--format", "json"]));
    Seen { profiles: run.profiles(), report: shown, summary, run }
}

fn preloaded(libraries: &[&Path]) -> String {
    let words: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
    words.join(" ")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

impl Seen {
    /// The sentence is in every profile, at the top of the report, and in the data; no share is stated.
    fn tells(&self, parts: &[&str], what: &str) {
        for profile in &self.profiles {
            let told: Vec<&String> = of_order(&profile.warnings).collect();
            let [sentence] = told[..] else { panic!("{what}: {:?}", profile.warnings) };
            for part in parts {
                assert!(sentence.contains(part), "{what}: {part:?} is not in {sentence:?}");
            }
            assert_eq!(profile.in_mpi, None, "{what}");
        }
        let place = |text: &str| self.report.find(text);
        let (warning, calls) = (place("comes before libgyan.so"), place("Calls of MPI functions"));
        assert!(warning.is_some() && warning < calls, "{what}\n{}", self.report);
        assert!(!self.report.contains(" of the run is in MPI"), "{what}\n{}", self.report);
        assert!(self.summary.contains("comes before libgyan.so"), "{what}");
        let [notice] = self.notices()[..] else { panic!("{what}: {}", self.run.outcome.stderr) };
        assert!(notice.contains(parts[0]), "{what}: {notice}");
    }

    fn tells_nothing(&self, what: &str) {
        for profile in &self.profiles {
            assert_eq!(of_order(&profile.warnings).count(), 0, "{what}: {:?}", profile.warnings);
            assert!(profile.in_mpi.is_some(), "{what}");
        }
        assert!(self.report.contains(" of the run is in MPI"), "{what}\n{}", self.report);
        assert!(self.notices().is_empty(), "{what}: {}", self.run.outcome.stderr);
    }

    fn notices(&self) -> Vec<&str> {
        let lines = self.run.outcome.notices().into_iter();
        lines.filter(|line| line.contains("comes before")).collect()
    }
}

fn of_order(warnings: &[String]) -> impl Iterator<Item = &String> {
    warnings.iter().filter(|warning| warning.contains("comes before"))
}

#[test]
fn a_tool_that_calls_the_profiling_names_is_named_with_what_it_keeps() {
    for mpi in MPIS {
        let program = text(&mpi.program("receives"));
        let tool = mpi.preloadable("tool", &[]);
        let seen = seen(mpi, &[&program], &[&tool, &libgyan()]);
        assert!(!counts(&seen.profiles[0]).contains_key("MPI_Recv"), "{mpi:?}");
        let parts = ["comes before libgyan.so", "MPI_", "; put libgyan.so first in LD_PRELOAD"];
        seen.tells(&parts, &format!("{mpi:?}"));
        assert!(seen.notices()[0].contains("refers to the profiling names"), "{mpi:?}");
    }
}

/// As Darshan does: nothing in the tool refers to a profiling name.
#[test]
fn a_tool_that_looks_the_profiling_names_up_is_known_by_what_gyan_did_not_see() {
    for mpi in MPIS {
        let program = text(&mpi.program("receives"));
        let tool = mpi.preloadable("tool", &["-DFORWARD_PMPI"]);
        let seen = seen(mpi, &[&program], &[&tool, &libgyan()]);
        seen.tells(&["comes before libgyan.so", "gyan saw no call"], &format!("{mpi:?}"));
    }
}

#[test]
fn nothing_is_told_of_a_tool_that_hands_its_calls_on_or_comes_after_gyan() {
    for mpi in MPIS {
        let program = text(&mpi.program("receives"));
        let calling_pmpi = mpi.preloadable("tool", &[]);
        let calling_next = mpi.preloadable("tool", &["-DFORWARD_NEXT"]);
        let gyan = libgyan();
        for preload in [
            vec![gyan.as_path()],
            vec![&calling_next, &gyan],
            vec![&gyan, &calling_next],
            vec![&gyan, &calling_pmpi],
            // It defines no function of MPI.
            vec![Path::new("libm.so.6"), &gyan],
        ] {
            let seen = seen(mpi, &[&program], &preload);
            assert!(counts(&seen.profiles[0])["MPI_Recv"] > 0, "{mpi:?} {preload:?}");
            seen.tells_nothing(&format!("{mpi:?} {preload:?}"));
        }
    }
}

/// The functions that a tool defines do not matter if the program calls none of them.
#[test]
fn nothing_is_told_of_functions_that_the_program_does_not_call() {
    for mpi in MPIS {
        let tool = mpi.preloadable("tool", &[]);
        let program = text(&mpi.program("exit_code"));
        let seen = seen(mpi, &[&program, "0"], &[&tool, &libgyan()]);
        seen.tells_nothing(&format!("{mpi:?}"));
    }
}

#[test]
fn a_tool_that_is_linked_into_the_program_is_told() {
    for mpi in MPIS {
        let tool = text(&root().join("tests/programs/tool.c"));
        for (kind, told) in [("-DCALLS_PMPI", true), ("-DFORWARD_NEXT", false)] {
            let program = text(&mpi.compiled("receives", &[kind, &tool]));
            let seen = seen(mpi, &[&program], &[&libgyan()]);
            let what = format!("{mpi:?} {kind}");
            if told {
                seen.tells(&["the program itself comes before libgyan.so", "MPI_"], &what);
            } else {
                seen.tells_nothing(&what);
            }
        }
    }
}

#[test]
fn a_tool_for_c_keeps_nothing_from_gyan_of_a_program_in_fortran_and_one_for_fortran_does() {
    for mpi in MPIS {
        let program = text(&mpi.fortran_program("fortran_mpif.f", &[]));
        let for_c = mpi.preloadable("tool", &[]);
        let of_c = seen(mpi, &[&program], &[&for_c, &libgyan()]);
        assert!(counts(&of_c.profiles[0])["MPI_Recv"] > 0, "{mpi:?}");
        of_c.tells_nothing(&format!("{mpi:?}"));
        let for_fortran = mpi.preloadable("tool", &["-DFORTRAN"]);
        let of_both = seen(mpi, &[&program], &[&for_fortran, &libgyan()]);
        assert!(!counts(&of_both.profiles[0]).contains_key("MPI_Recv"), "{mpi:?}");
        of_both.tells(&["comes before libgyan.so", "MPI_Recv"], &format!("{mpi:?}"));
    }
}

#[test]
fn a_tool_in_front_is_told_in_python() {
    let program = text(&root().join("tests/programs/receives.py"));
    for mpi in matrix::two_with_python() {
        let tool = mpi.preloadable("tool", &[]);
        let seen = seen(mpi, &["python-mpi4py", &program, "mprobe"], &[&tool, &libgyan()]);
        seen.tells(&["comes before libgyan.so", "MPI_"], &format!("{mpi:?}"));
    }
}

/// `gyan run` puts gyan before what the user preloads; a script in between can reverse that.
#[test]
fn the_first_screen_of_a_run_tells_it_and_doctor_does_before_any_run() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let tool = mpi.preloadable("tool", &[]);
        let mut words = mpi.mpirun(RANKS);
        let order = format!("LD_PRELOAD={}", preloaded(&[&tool, &libgyan()]));
        words.extend(["env".to_owned(), order, text(&mpi.program("receives"))]);
        let outcome = run(gyan().args(["run", "--"]).args(&words).current_dir(&here));
        assert_eq!(outcome.code, 0, "{mpi:?} {}", outcome.stderr);
        let screen = outcome.stderr.split_once("ranks on").unwrap().1;
        let place = |text: &str| screen.find(text);
        let (warning, calls) = (place("comes before libgyan.so"), place("Calls of MPI functions"));
        assert!(warning.is_some() && warning < calls, "{mpi:?}\n{screen}");
        assert!(!screen.contains(" of the run is in MPI"), "{mpi:?}\n{screen}");

        let remedy = "; put libgyan.so first in LD_PRELOAD";
        says(&obstacle(&words, &[]), &["comes before libgyan.so", remedy]);
    }
}

/// Some sites preload the MPI library itself; then gyan gets no call at all.
#[test]
fn an_mpi_library_that_is_preloaded_before_gyan_is_what_doctor_names() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let program = text(&mpi.program("receives"));
        let linked = run(&mut command(&["ldd", &program])).stdout;
        let library = linked.lines().find(|line| line.trim().starts_with("libmpi"));
        let library = library.and_then(|line| line.split_whitespace().nth(2)).unwrap();
        let mut words = mpi.mpirun(RANKS);
        let order = format!("LD_PRELOAD={}", preloaded(&[Path::new(library), &libgyan()]));
        words.extend(["env".to_owned(), order, program]);
        let outcome = run(gyan().args(["run", "--"]).args(&words).current_dir(&here));
        assert_eq!(outcome.code, 0, "{mpi:?} {}", outcome.stderr);
        for part in ["no profile was written", "gyan doctor -- COMMAND"] {
            assert!(outcome.stderr.contains(part), "{mpi:?} {}", outcome.stderr);
        }
        says(&obstacle(&words, &[]), &[&format!(": {library} comes before libgyan.so")]);
    }
}

#[test]
fn doctor_remarks_on_the_order_that_the_user_preloads_and_runs_with_gyan_first() {
    for mpi in MPIS {
        let order = preloaded(&[&mpi.preloadable("tool", &[]), &libgyan()]);
        let words = mpi.launch(1, "exit_code", &[]);
        let (code, diagnosis) = of_program(&words, &[("LD_PRELOAD", &order)]);
        assert_eq!(code, 0, "{:?}", diagnosis.checks);
        let order = diagnosis.checks.iter().find(|check| check.what == "order").unwrap();
        assert_eq!(order.verdict, Verdict::Note, "{mpi:?}");
        assert!(order.finding.contains("before libgyan.so"), "{mpi:?}: {}", order.finding);
    }
}
