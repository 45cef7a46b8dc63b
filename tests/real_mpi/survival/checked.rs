//! libgyan.so under a checker of memory, and under many threads that do everything at once.

use std::process::Command;

use gyan_results::Ending;
use tempfile::TempDir;

use crate::common::{MPICH, MPIS, Profiled, command, counts, libgyan, profiles, run};

/// Whether it is libgyan's: who owns the innermost frame outside the checker and the C library? MPI libraries
/// have errors of their own, further in.
fn is_ours(error: &str) -> bool {
    let stack = error.split("</stack>").next().unwrap();
    let mut objects = stack.split("<obj>").skip(1).filter_map(|rest| rest.split("</obj>").next());
    let passed_over = ["vgpreload", "/libc.so", "/ld-linux"];
    let found = objects.find(|object| !passed_over.iter().any(|part| object.contains(part)));
    found.is_some_and(|object| object.contains("libgyan.so"))
}

/// Each error that memcheck finds is an element with its stacks, and each frame has its object. In this mode it
/// always looks for leaks, too, and the loader has some: gyan never closes libraries.
fn errors(report: &str) -> impl Iterator<Item = &str> {
    let errors = report.split("<error>").skip(1).filter_map(|rest| rest.split("</error>").next());
    errors.filter(|error| !error.contains("<kind>Leak_"))
}

#[test]
fn memcheck_finds_no_error_of_libgyan() {
    if run(Command::new("sh").args(["-c", "command -v valgrind"])).code != 0 {
        assert!(std::env::var_os("CI").is_none(), "there is no valgrind");
        eprintln!("skipped: there is no valgrind (Debian's package of that name)");
        return;
    }
    for program in [&["receives"][..], &["threads_phases"], &["stress", "20"]] {
        let here = TempDir::new().unwrap();
        let (output, report) = (here.path().join("profile"), here.path().join("report.xml"));
        let memcheck = ["valgrind", "--num-callers=100", "--xml=yes"];
        let mut words: Vec<String> = memcheck.map(str::to_owned).to_vec();
        words.push(format!("--xml-file={}", report.display()));
        words.push(MPICH.with_header(program[0]).display().to_string());
        words.extend(program[1..].iter().map(|word| (*word).to_owned()));
        let mut checked = command(&words);
        checked.current_dir(&here).env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", &output);
        let checked = run(&mut checked);
        assert_eq!(checked.code, 0, "{program:?}: {}", checked.stderr);
        // gyan was active from start to end.
        assert_eq!(profiles(&output, 1)[0].end.how, Ending::Finalize);
        let report = std::fs::read_to_string(report).unwrap();
        assert!(report.contains("<state>FINISHED</state>"), "{program:?}: {report}");
        let ours: Vec<&str> = errors(&report).filter(|error| is_ours(error)).collect();
        assert!(ours.is_empty(), "{program:?}: {}", ours.join("\n"));
    }
}

#[test]
fn threads_that_do_everything_at_once_lose_no_count() {
    const ROUNDS: u64 = 300;
    for mpi in MPIS {
        let file = mpi.with_header("stress");
        for settings in [&[][..], &[("GYAN_BUDGET", "none"), ("GYAN_SERIES", "1ms")]] {
            let stressed = Profiled::preloaded(mpi, 2, &file, &[&ROUNDS.to_string()], settings);
            let outcome = &stressed.outcome;
            assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "done\n"), "{outcome:?}");
            for profile in stressed.profiles() {
                let counts = counts(&profile);
                for (name, count) in [
                    ("MPI_Comm_dup", 9 * ROUNDS + 8),
                    ("MPI_Comm_free", 9 * ROUNDS + 8),
                    ("MPI_Isend", 32 * ROUNDS),
                    ("MPI_Recv", 32 * ROUNDS),
                    ("MPI_Wait", 32 * ROUNDS),
                    ("MPI_Pcontrol", ROUNDS),
                ] {
                    assert_eq!(counts[name], count, "{mpi:?} {settings:?} {name}");
                }
                let rounds = profile.phases.iter().find(|phase| phase.name == "round").unwrap();
                assert_eq!(rounds.entries, ROUNDS, "{mpi:?}");
                let in_phases = profile.phases.iter().flat_map(|phase| &phase.calls);
                let in_phases: u64 = in_phases.map(|call| call.count).sum();
                assert_eq!(in_phases, counts.values().sum::<u64>(), "{mpi:?} {settings:?}");
            }
        }
    }
}

#[test]
fn an_error_of_libgyan_is_told_from_one_of_mpi() {
    let stack = |objects: &[&str]| {
        let frames: Vec<String> =
            objects.iter().map(|object| format!("<frame><obj>{object}</obj></frame>")).collect();
        format!("<what>Invalid read</what><stack>{}</stack>", frames.concat())
    };
    let (gyan, mpi, libc) = ("/x/libgyan.so", "/x/libmpich.so.12", "/x/libc.so.6");
    assert!(is_ours(&stack(&[libc, gyan, "/x/program"])));
    assert!(!is_ours(&stack(&[libc, mpi, gyan, "/x/program"])));
    let report = format!("<error>{}</error><error>{}</error>", stack(&[gyan]), stack(&[mpi]));
    assert_eq!(errors(&report).filter(|error| is_ours(error)).count(), 1);
}
