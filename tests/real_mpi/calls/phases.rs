//! A program names its phases, in C, C++ and Fortran, and runs unchanged without gyan; counts, times
//! and variables are kept apart by phase, exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{Ending, Number, RankProfile, Values, read_rank};
use tempfile::TempDir;

use crate::common::{
    BED, MPICH, MPIS, Mpi, OPENMPI, OPENMPI_SPC, Outcome, Profiled, command, counts, include,
    libgyan, run, succeed,
};
use crate::matrix::{self, Column};

/// Functions and their number of calls, in each phase.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// The phases in the profile, without the call that switches them.
fn found(profile: &RankProfile) -> Counts {
    let mut phases = Counts::new();
    for phase in &profile.phases {
        let mut calls = BTreeMap::new();
        for call in phase.calls.iter().filter(|call| call.name != "MPI_Pcontrol") {
            assert!(call.count > 0, "{} in {:?}", call.name, phase.name);
            calls.insert(call.name.clone(), call.count);
        }
        assert!(
            phases.insert(phase.name.clone(), calls).is_none(),
            "{:?} is there twice",
            phase.name
        );
    }
    phases
}

/// What the program recorded for `kind`: the numbers, by the words before them, in each phase.
fn truth(run: &Profiled, rank: u32, kind: &str) -> Counts {
    let mut phases = Counts::new();
    for words in run.truth(rank).iter().filter(|words| words[0] == kind) {
        let at = words.iter().position(|word| word.parse::<u64>().is_ok()).unwrap();
        let phase = phases.entry(words[at + 1..].join(" ")).or_default();
        let number: u64 = words[at].parse().unwrap();
        if number > 0 {
            *phase.entry(words[1..at].join(" ")).or_default() += number;
        }
    }
    phases
}

/// Every call is counted in exactly one phase, and calls while gyan was off only in `off`.
fn assert_whole(profile: &RankProfile, what: &str) {
    let mut sum = BTreeMap::new();
    for phase in profile.phases.iter().filter(|phase| phase.name != "off") {
        for call in &phase.calls {
            *sum.entry(call.name.as_str()).or_default() += call.count;
        }
    }
    let mut total = counts(profile);
    for calls in [&mut sum, &mut total] {
        calls.remove("MPI_Pcontrol");
    }
    assert_eq!(sum, total, "{what}");
    // gyan's own start and end are not phases.
    let time: f64 = profile.phases.iter().map(|phase| phase.time_s).sum();
    let own = profile.overhead.init_s + profile.overhead.finalize_s + 0.001;
    let elapsed = profile.job.elapsed_s;
    assert!((time - elapsed).abs() < own, "{what}: {time} of {elapsed}, own {own}");
    for phase in &profile.phases {
        assert!(phase.time_s >= 0.0, "{what}: {phase:?}");
        // Within the rest one may begin inside another.
        let begun_again = phase.name == "more phases";
        assert!(begun_again || phase.stretches >= phase.entries, "{what}: {phase:?}");
        assert!(phase.stretches_read <= phase.stretches, "{what}: {phase:?}");
    }
}

/// How often each phase began.
fn assert_entries(run: &Profiled, profile: &RankProfile, what: &str) {
    let named = profile.phases.iter().filter(|phase| !phase.name.is_empty());
    let entries: BTreeMap<String, u64> =
        named.map(|phase| (phase.name.clone(), phase.entries)).collect();
    let expected: BTreeMap<String, u64> = truth(run, profile.rank, "entries")
        .into_iter()
        .map(|(phase, entries)| (phase, entries[""]))
        .collect();
    assert_eq!(entries, expected, "{what}");
}

fn assert_phases(run: &Profiled, what: &str) {
    assert_eq!(run.outcome.code, 0, "{what} {}", run.outcome.stderr);
    let profiles = run.profiles();
    for profile in &profiles {
        let what = format!("{what}, rank {}", profile.rank);
        assert_eq!(found(profile), truth(run, profile.rank, "call"), "{what}");
        assert_entries(run, profile, &what);
        assert_whole(profile, &what);
    }
}

#[test]
fn calls_are_counted_exactly_by_phase() {
    for mpi in BED {
        let program = mpi.with_header("phases");
        assert_phases(&Profiled::preloaded(mpi, 3, &program, &[], &[]), &format!("{mpi:?}"));
    }
    for budget in ["none", "0.000001%"] {
        for mpi in MPIS {
            let settings = [("GYAN_BUDGET", budget)];
            let run = Profiled::preloaded(mpi, 2, &mpi.with_header("phases"), &[], &settings);
            assert_phases(&run, &format!("{mpi:?} {budget}"));
        }
    }
}

/// `tests/programs/phases.c` by one compiler, and which it is.
fn by_compiler(mpi: Mpi, compiler: &str, arguments: &[&str], here: &Path) -> PathBuf {
    let (words, wrapper) = mpi.environment();
    let program = here.join("phases");
    let mut compile = command(&[words, vec![wrapper]].concat());
    compile.env("OMPI_CC", compiler).env("MPICH_CC", compiler);
    compile.args(["-Wall", "-Wextra", "-Werror", "-Wno-deprecated", "-Wno-cast-function-type"]);
    // The C++ bindings, which MPI no longer has.
    compile.args(["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]);
    compile.arg("-I").arg(include()).arg("-o").arg(&program);
    compile.arg(crate::common::root().join("tests/programs/phases.c")).args(arguments);
    let outcome = run(&mut compile);
    assert_eq!(outcome.code, 0, "{compiler} {arguments:?}\n{}", outcome.stderr);
    program
}

/// A run without gyan.
fn bare(mpi: Mpi, ranks: usize, program: &Path, here: &Path) -> Outcome {
    let mut words = mpi.mpirun(ranks);
    words.push(program.display().to_string());
    run(command(&words).current_dir(here))
}

#[test]
fn the_header_works_with_each_compiler_and_kind_of_program() {
    let library = libgyan();
    let folder = library.parent().unwrap().display().to_string();
    // cargo sets LD_LIBRARY_PATH, which takes precedence over the newer kind of run path.
    let path = format!("-Wl,--disable-new-dtags,-rpath,{folder}");
    let linked = ["-Wl,--no-as-needed", &format!("-L{folder}"), "-lgyan", &path];
    for compiler in ["gcc", "g++", "clang", "clang++"] {
        for kind in [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]] {
            for mpi in MPIS {
                let here = TempDir::new().unwrap();
                let what = format!("{mpi:?} {compiler} {kind:?}");
                let program = by_compiler(mpi, compiler, &kind, here.path());
                let bare = bare(mpi, 2, &program, here.path());
                assert_eq!(bare.code, 0, "{what} {}", bare.stderr);
                let with = Profiled::preloaded(mpi, 2, &program, &[], &[]);
                assert_eq!(with.outcome.stdout_of_ranks(), bare.stdout_of_ranks(), "{what}");
                assert_phases(&with, &what);
                let arguments = [&kind[..], &linked[..]].concat();
                let program = by_compiler(mpi, compiler, &arguments, here.path());
                assert_phases(
                    &Profiled::run_file(mpi, 2, &program, &[], &[]),
                    &format!("{what}, linked"),
                );
            }
        }
    }
}

#[test]
fn phases_in_a_shared_library_are_those_of_the_program() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let library = here.path().join("libwork.so");
        let arguments = ["-shared", "-fPIC", "-Dmain=work"];
        fs::rename(by_compiler(mpi, "gcc", &arguments, here.path()), &library).unwrap();
        let source = here.path().join("main.c");
        let text = "int work(int, char **); int main(int c, char **v) { return work(c, v); }\n";
        fs::write(&source, text).unwrap();
        let program = here.path().join("main");
        let mut compile = command(&["gcc", "-no-pie", "-o"]);
        succeed(compile.arg(&program).arg(&source).arg(&library));
        let bare = bare(mpi, 2, &program, here.path());
        assert_eq!(bare.code, 0, "{mpi:?} {}", bare.stderr);
        assert_phases(&Profiled::preloaded(mpi, 2, &program, &[], &[]), &format!("{mpi:?}"));
    }
}

#[test]
fn phases_in_fortran_are_those_of_c() {
    let module = include().join("gyan.f90").display().to_string();
    for mpi in matrix::with(Column::UseMpi) {
        for kind in ["-fPIE", "-fno-pie"] {
            let link = if kind == "-fPIE" { "-pie" } else { "-no-pie" };
            let program = mpi.fortran_program("phases.F90", &[kind, link, &module]);
            let here = TempDir::new().unwrap();
            let bare = bare(mpi, 2, &program, here.path());
            assert_eq!(bare.code, 0, "{mpi:?} {kind} {}", bare.stderr);
            let run = Profiled::preloaded(mpi, 2, &program, &[], &[]).succeeded();
            assert_eq!(run.outcome.stdout_of_ranks(), bare.stdout_of_ranks());
            for profile in run.profiles() {
                let received: BTreeMap<String, (u64, u64)> = profile
                    .phases
                    .iter()
                    .map(|phase| {
                        let receives = phase.calls.iter().find(|call| call.name == "MPI_Recv");
                        let entries = if phase.name.is_empty() { 0 } else { phase.entries };
                        (phase.name.clone(), (entries, receives.unwrap().count))
                    })
                    .collect();
                let expected = [
                    ("", (0, 2)),
                    ("step", (3, 6)),
                    ("step/exchange", (3, 9)),
                    ("level 3", (1, 4)),
                    ("off", (1, 5)),
                ];
                let expected = expected.map(|(name, numbers)| (name.to_owned(), numbers)).into();
                assert_eq!(received, expected, "{mpi:?} {kind} rank {}", profile.rank);
                assert_whole(&profile, &format!("{mpi:?}"));
            }
        }
    }
}

#[test]
fn phases_in_python_have_the_passes_of_the_program() {
    let program = crate::common::root().join("tests/programs/phases.py").display().to_string();
    let package = crate::common::root().join("packaging/wheel").display().to_string();
    for mpi in matrix::with(Column::Mpi4py) {
        let path = [("PYTHONPATH", package.as_str()), ("PYTHONDONTWRITEBYTECODE", "1")];
        let python = Path::new("python-mpi4py");
        let run = Profiled::preloaded(mpi, 2, python, &[&program], &path).succeeded();
        for profile in run.profiles() {
            let what = format!("{mpi:?}, rank {}", profile.rank);
            let mut phases = found(&profile);
            // Outside of phases mpi4py calls more than the program.
            phases.get_mut("").unwrap().retain(|function, _| function == "MPI_Barrier");
            phases.retain(|_, calls| !calls.is_empty());
            assert_eq!(phases, truth(&run, profile.rank, "call"), "{what}");
            assert_entries(&run, &profile, &what);
            assert_whole(&profile, &what);
        }
        let here = TempDir::new().unwrap();
        let words = [mpi.mpirun(2), vec!["python-mpi4py".to_owned(), program.clone()]].concat();
        let bare = crate::common::run(command(&words).envs(path).current_dir(here.path()));
        assert_eq!(bare.code, 0, "{mpi:?} {}", bare.stderr);
        assert_eq!(bare.stdout_of_ranks(), run.outcome.stdout_of_ranks(), "{mpi:?}");
    }
}

#[test]
fn a_program_without_phases_has_none_in_its_profile() {
    for mpi in MPIS {
        for profile in Profiled::run(mpi, 2, &["receives"], &[]).profiles() {
            assert!(profile.phases.is_empty(), "{:?}", profile.phases);
        }
    }
}

#[test]
fn a_variable_grows_in_each_phase_by_what_happened_there() {
    let mpi = OPENMPI_SPC;
    let settings = [("GYAN_ENABLE", "spc"), ("GYAN_BUDGET", "none")];
    let run = Profiled::preloaded(mpi, 3, &mpi.with_header("phases"), &[], &settings);
    assert_phases(&run, "spc");
    let pairs = [
        ("runtime_spc_OMPI_SPC_RECV", "MPI_Recv"),
        ("runtime_spc_OMPI_SPC_SENDRECV", "MPI_Sendrecv"),
        ("runtime_spc_OMPI_SPC_ALLREDUCE", "MPI_Allreduce"),
        ("runtime_spc_OMPI_SPC_BARRIER", "MPI_Barrier"),
    ];
    for profile in run.profiles() {
        let calls = truth(&run, profile.rank, "call");
        for phase in &profile.phases {
            assert_eq!(phase.stretches_read, phase.stretches, "{phase:?}");
            for (variable, function) in pairs {
                let expected = calls[&phase.name].get(function).copied().unwrap_or(0);
                let pvar = phase.pvars.iter().find(|pvar| pvar.name == variable);
                let delta = match pvar.and_then(|pvar| pvar.delta.clone()) {
                    Some(Values::Elements(elements)) => elements[0],
                    None => Number::Integer(0),
                    other => panic!("{other:?}"),
                };
                let what = format!("{variable} in {:?} on rank {}", phase.name, profile.rank);
                assert_eq!(delta, Number::Integer(expected.into()), "{what}");
            }
        }
    }
}

#[test]
fn odd_phases_do_no_harm() {
    for mpi in MPIS {
        let program = mpi.with_header("odd_phases");
        for settings in [&[][..], &[("GYAN_BUDGET", "none"), ("GYAN_SERIES", "1ms")][..]] {
            let run = Profiled::preloaded(mpi, 1, &program, &[], settings).succeeded();
            assert_eq!(run.outcome.stdout, "received 411\n", "{mpi:?}");
            let profile = &run.profiles()[0];
            assert_eq!(counts(profile)["MPI_Recv"], 411, "{mpi:?}");
            assert_whole(profile, &format!("{mpi:?} {settings:?}"));
            let names: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
            // 64 names, one for time outside all phases, and one for the rest.
            assert!(names.len() <= 66, "{}: {names:?}", names.len());
            assert_eq!(names.iter().filter(|name| **name == "more phases").count(), 1, "{names:?}");
            assert!(names.contains(&"détour ∑"), "{names:?}");
            let outer = profile.phases.iter().find(|phase| phase.name == "outer").unwrap();
            assert_eq!(outer.calls[0].count, 1, "{mpi:?} {outer:?}");
            // Names of 4 KiB do not make a profile of megabytes.
            let size = fs::metadata(run.directory.join("rank-000000.json")).unwrap().len();
            assert!(size < 1 << 20, "{size} bytes");
        }
    }
}

#[test]
fn a_profile_is_there_while_the_program_runs_and_the_final_one_replaces_it() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 1, &["flush"], &[]).succeeded();
        let flushed = read_rank(&run.place().join("flushed.json")).unwrap();
        assert_eq!(counts(&flushed)["MPI_Recv"], 3, "{mpi:?}");
        assert_eq!(flushed.end.how, Ending::Running, "{mpi:?}");
        assert!(!counts(&flushed).contains_key("MPI_Finalize"));
        let files: Vec<_> = fs::read_dir(&run.directory).unwrap().collect();
        assert_eq!(files.len(), 1, "{mpi:?} {files:?}");
        let profile = &run.profiles()[0];
        assert_eq!(counts(profile)["MPI_Recv"], 7, "{mpi:?}");
        assert_eq!(profile.end.how, Ending::Finalize, "{mpi:?}");
        assert!(profile.job.elapsed_s >= flushed.job.elapsed_s);
        assert_eq!(profile.job.id, flushed.job.id);
    }
}

#[test]
fn what_a_program_asked_for_is_left_when_it_is_killed() {
    // Without a launcher, which would see to other processes first.
    for mpi in [OPENMPI, MPICH] {
        let here = TempDir::new().unwrap();
        let mut words = mpi.alone(&mpi.program("flush"));
        words.push("die".into());
        let outcome = run(command(&words)
            .current_dir(&here)
            .env("LD_PRELOAD", libgyan())
            .env("GYAN_OUTPUT", here.path().join("out")));
        assert_eq!(outcome.code, 137, "{mpi:?} {}", outcome.stderr);
        let profiles = crate::common::profiles(&here.path().join("out"), 1);
        assert_eq!(profiles[0].end.how, Ending::Running, "{mpi:?}");
        assert_eq!(counts(&profiles[0])["MPI_Recv"], 3, "{mpi:?}");
    }
}

#[test]
fn phases_begin_and_end_while_eight_threads_call() {
    for mpi in MPIS {
        let program = mpi.with_header("threads_phases");
        for settings in [&[][..], &[("GYAN_BUDGET", "none")][..]] {
            let run = Profiled::preloaded(mpi, 2, &program, &[], settings);
            let what = format!("{mpi:?} {settings:?}");
            assert_eq!(run.outcome.code, 0, "{what} {}", run.outcome.stderr);
            for profile in run.profiles() {
                assert_eq!(counts(&profile)["MPI_Recv"], 188_100, "{what}");
                assert_whole(&profile, &what);
                for name in ["round", "round/inner"] {
                    let phase = profile.phases.iter().find(|phase| phase.name == name).unwrap();
                    assert_eq!(phase.entries, 50, "{what} {name}");
                }
            }
        }
    }
}
