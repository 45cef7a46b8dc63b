//! A program names its phases, in C, C++ and Fortran, and runs unchanged without gyan; counts, times
//! and variables are kept apart by phase, exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{Ending, Number, RankProfile, Values, read_rank};
use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, OPENMPI_SPC, Profiled, command, counts, each_library, include,
    libgyan, phase, run, succeed,
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
        assert!(phases.insert(phase.name.clone(), calls).is_none(), "{:?} twice", phase.name);
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
fn assert_whole(profile: &RankProfile) {
    let mut sum = BTreeMap::new();
    for phase in profile.phases.iter().filter(|phase| phase.name != "off") {
        for call in &phase.calls {
            *sum.entry(call.name.clone()).or_default() += call.count;
        }
    }
    let mut total = counts(profile);
    for calls in [&mut sum, &mut total] {
        calls.remove("MPI_Pcontrol");
    }
    assert_eq!(sum, total);
    // gyan's own start and end are not phases.
    let time: f64 = profile.phases.iter().map(|phase| phase.time_s).sum();
    let own = profile.overhead.init_s + profile.overhead.finalize_s + 0.001;
    let elapsed = profile.job.elapsed_s;
    assert!((time - elapsed).abs() < own, "{time} of {elapsed}, own {own}");
    for phase in &profile.phases {
        assert!(phase.time_s >= 0.0, "{phase:?}");
        // Within the rest one may begin inside another.
        let begun_again = phase.name == "more phases";
        assert!(begun_again || phase.stretches >= phase.entries, "{phase:?}");
        assert!(phase.stretches_read <= phase.stretches, "{phase:?}");
    }
}

/// How often each phase began.
fn assert_entries(run: &Profiled, profile: &RankProfile) {
    let named = profile.phases.iter().filter(|phase| !phase.name.is_empty());
    let entries: BTreeMap<String, u64> =
        named.map(|phase| (phase.name.clone(), phase.entries)).collect();
    let expected: BTreeMap<String, u64> = truth(run, profile.rank, "entries")
        .into_iter()
        .map(|(phase, entries)| (phase, entries[""]))
        .collect();
    assert_eq!(entries, expected);
}

fn assert_phases(run: &Profiled) {
    assert_eq!(run.outcome.code, 0);
    for profile in &run.profiles() {
        assert_eq!(found(profile), truth(run, profile.rank, "call"));
        assert_entries(run, profile);
        assert_whole(profile);
    }
}

#[test]
fn calls_are_counted_exactly_by_phase() {
    for mpi in each_library() {
        let program = mpi.with_header("phases");
        assert_phases(&Profiled::preloaded(mpi, 3, &program, &[], &[]));
    }
    for budget in ["none", "0.000001%"] {
        for mpi in MPIS {
            let settings = [("GYAN_BUDGET", budget)];
            let program = mpi.with_header("phases");
            assert_phases(&Profiled::preloaded(mpi, 2, &program, &[], &settings));
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

#[test]
fn the_header_works_with_each_compiler_and_kind_of_program() {
    let library = libgyan();
    let folder = library.parent().unwrap().display().to_string();
    // cargo sets LD_LIBRARY_PATH, which takes precedence over the newer kind of run path.
    let path = format!("-Wl,--disable-new-dtags,-rpath,{folder}");
    let linked = ["-Wl,--no-as-needed", &format!("-L{folder}"), "-lgyan", &path];
    // What a compiler makes of it does not depend on the MPI.
    for (compiler, mpi) in
        [("gcc", OPENMPI), ("g++", MPICH), ("clang", MPICH), ("clang++", OPENMPI)]
    {
        for kind in [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]] {
            let here = TempDir::new().unwrap();
            let program = by_compiler(mpi, compiler, &kind, here.path());
            assert_phases(&Profiled::preloaded(mpi, 2, &program, &[], &[]).ends_as_without());
            let arguments = [&kind[..], &linked[..]].concat();
            let program = by_compiler(mpi, compiler, &arguments, here.path());
            assert_phases(&Profiled::run_file(mpi, 2, &program, &[], &[]));
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
        assert_phases(&Profiled::preloaded(mpi, 2, &program, &[], &[]).ends_as_without());
    }
}

#[test]
fn phases_in_fortran_are_those_of_c() {
    let module = include().join("gyan.f90").display().to_string();
    for mpi in matrix::with(Column::UseMpi) {
        for kind in ["-fPIE", "-fno-pie"] {
            let link = if kind == "-fPIE" { "-pie" } else { "-no-pie" };
            let program = mpi.fortran_program("phases.F90", &[kind, link, &module]);
            let run = Profiled::preloaded(mpi, 2, &program, &[], &[]).succeeded().ends_as_without();
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
                assert_eq!(received, expected);
                assert_whole(&profile);
            }
        }
    }
}

#[test]
fn phases_in_python_have_the_passes_of_the_program() {
    let program = crate::common::root().join("tests/programs/phases.py").display().to_string();
    let package = crate::common::root().join("packaging/wheel").display().to_string();
    for mpi in matrix::two_with_python() {
        let path = [("PYTHONPATH", package.as_str()), ("PYTHONDONTWRITEBYTECODE", "1")];
        let python = Path::new("python-mpi4py");
        let run =
            Profiled::preloaded(mpi, 2, python, &[&program], &path).succeeded().ends_as_without();
        for profile in run.profiles() {
            let mut phases = found(&profile);
            // Outside of phases mpi4py calls more than the program.
            phases.get_mut("").unwrap().retain(|function, _| function == "MPI_Barrier");
            phases.retain(|_, calls| !calls.is_empty());
            assert_eq!(phases, truth(&run, profile.rank, "call"));
            assert_entries(&run, &profile);
            assert_whole(&profile);
        }
    }
}

#[test]
fn a_variable_grows_in_each_phase_by_what_happened_there() {
    let mpi = OPENMPI_SPC;
    let settings = [("GYAN_ENABLE", "spc"), ("GYAN_BUDGET", "none")];
    let run = Profiled::preloaded(mpi, 3, &mpi.with_header("phases"), &[], &settings);
    assert_phases(&run);
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
            assert_whole(profile);
            let names: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
            // 64 names, one for time outside all phases, and one for the rest.
            assert!(names.len() <= 66, "{}: {names:?}", names.len());
            assert_eq!(names.iter().filter(|name| **name == "more phases").count(), 1, "{names:?}");
            assert!(names.contains(&"détour ∑"), "{names:?}");
            assert_eq!(phase(profile, "outer").calls[0].count, 1);
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
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let mut command = command(&mpi.alone(&mpi.program("flush")));
        command.arg("die").current_dir(&here).env("LD_PRELOAD", libgyan());
        let outcome = run(command.env("GYAN_OUTPUT", "out"));
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
            let run = Profiled::preloaded(mpi, 2, &program, &[], settings).succeeded();
            for profile in run.profiles() {
                assert_eq!(counts(&profile)["MPI_Recv"], 188_100);
                assert_whole(&profile);
                for name in ["round", "round/inner"] {
                    assert_eq!(phase(&profile, name).entries, 50, "{name}");
                }
            }
        }
    }
}
