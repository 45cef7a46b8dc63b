//! What OpenMP runtimes tell of their threads, as programs know it by their own clocks.

use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::{OpenMp, OpenMpRegion};

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Profiled, in_some_try, libgyan, python_with, root, run, target,
};

/// How far gyan may be from the truth, as a part of what the threads had.
const CLOSE: f64 = 0.03;
/// On a busy machine a thread may lose its processor between its own clock and that of gyan; an error would be in all.
const TRIES: usize = 4;
const TWO_THREADS: (&str, &str) = ("OMP_NUM_THREADS", "2");

/// Where LLVM's runtime is; none, with a word, where it is not installed.
fn llvm() -> Option<PathBuf> {
    let found = Command::new("clang").arg("-print-resource-dir").output().ok();
    let resources = found.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    // `clang -print-file-name` does not look beside its own resources.
    let directory = resources.map(|path| PathBuf::from(path).join("../.."));
    let directory = directory.filter(|path| path.join("libomp.so").is_file());
    if directory.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no libomp: scripts/packages clang libomp-dev");
        eprintln!("skipped: there is no libomp; scripts/packages clang libomp-dev");
    }
    directory
}

/// A directory in which Intel's runtime has the name of LLVM's, whose functions it has.
fn intel() -> Option<PathBuf> {
    let place = python_with("test-openmp", "sys", &["intel-openmp"])?;
    let library = place.parent()?.parent()?.join("lib/libiomp5.so");
    assert!(library.is_file(), "{}", library.display());
    let directory = target().join("test-openmp-intel");
    std::fs::create_dir_all(&directory).unwrap();
    let link = directory.join("libomp.so.5");
    if !link.exists() {
        _ = std::os::unix::fs::symlink(&library, &link);
    }
    Some(directory)
}

fn numbers(words: &[String]) -> Vec<f64> {
    words.iter().skip(1).map(|word| word.parse().unwrap()).collect()
}

/// The region that a line of the program begins.
fn region_at<'a>(found: &'a OpenMp, program: &Path, line: f64) -> &'a OpenMpRegion {
    let is_there = |region: &&OpenMpRegion| {
        let place = region.place.map(|at| &found.addresses[at]);
        place.is_some_and(|place| line_of(program, place.address) == Some(line))
    };
    found.regions.iter().find(is_there).unwrap_or_else(|| panic!("no region at {line}: {found:#?}"))
}

/// The line of a return address.
fn line_of(program: &Path, address: u64) -> Option<f64> {
    let mut command = Command::new("addr2line");
    let outcome = run(command.arg("-e").arg(program).arg(format!("{:#x}", address - 1)));
    let line = outcome.stdout.trim().rsplit(':').next()?.split(' ').next()?.parse::<u32>().ok()?;
    Some(f64::from(line))
}

fn assert_true(mpi: Mpi, program: &Path, settings: &[(&str, &str)]) -> String {
    let run =
        Profiled::preloaded(mpi, 2, program, &[], &[&[TWO_THREADS], settings].concat()).succeeded();
    let mut runtime = String::new();
    for (rank, profile) in (0..).zip(run.profiles()) {
        let found = profile.openmp.expect("an OpenMP runtime that tells");
        for words in run.truth(rank) {
            let of = numbers(&words);
            let is_close = |pairs: &[(f64, f64)]| {
                let capacity = found.threads as f64 * found.elapsed_s;
                for (at, (found_s, true_s)) in pairs.iter().enumerate() {
                    let far = (found_s - true_s).abs();
                    assert!(far <= CLOSE * capacity, "{at}: {words:?}: {far} s: {found:#?}");
                }
            };
            if words[0] == "run" {
                assert!((found.threads as f64 - of[1]).abs() < 0.5, "{of:?}: {found:#?}");
                let start_s = profile.overhead.start_s();
                is_close(&[
                    (found.elapsed_s, of[0] - start_s),
                    (found.serial_s, of[2]),
                    (found.serial_in_mpi_s, of[3] - start_s),
                ]);
            } else {
                let region = region_at(&found, program, of[0]);
                assert!((region.entries as f64 - of[1]).abs() < 0.5, "{of:?}: {region:#?}");
                assert_eq!((region.timed, region.threads), (region.entries, 2), "{region:#?}");
                is_close(&[
                    (region.time_s, of[2]),
                    (region.work_s, of[3]),
                    (region.most_work_s, of[4]),
                    (region.in_mpi_s, of[5]),
                    (region.barrier_s, 2.0 * of[2] - of[3] - of[5]),
                ]);
            }
        }
        runtime = found.runtime;
    }
    runtime
}

#[test]
fn threads_do_what_their_own_clocks_say() {
    let Some(libraries) = llvm() else { return };
    for (mpi, source) in [
        (OPENMPI, "hybrid.c"),
        (MPICH, "hybrid.cpp"),
        (OPENMPI, "hybrid.f90"),
        (MPICH, "hybrid.f90"),
    ] {
        let program = mpi.openmp_program(source, &libraries);
        let is_true = in_some_try(TRIES, || assert_true(mpi, &program, &[])).is_some();
        assert!(is_true, "{mpi:?} {source}");
    }
}

#[test]
fn threads_of_intels_runtime_too() {
    let (Some(libraries), Some(intel)) = (llvm(), intel()) else { return };
    let program = MPICH.openmp_program("hybrid.c", &libraries);
    let settings = [("LD_LIBRARY_PATH", intel.to_str().unwrap())];
    let runtime = in_some_try(TRIES, || assert_true(MPICH, &program, &settings));
    assert!(runtime.is_some_and(|runtime| runtime.contains("Intel")));
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn short_regions_are_counted_and_their_time_is_estimated() {
    let Some(libraries) = llvm() else { return };
    let program = MPICH.openmp_program("hybrid.c", &libraries);
    let is_true = in_some_try(TRIES, || {
        let settings = [TWO_THREADS, ("GYAN_BUDGET", "0.2%")];
        let run = Profiled::preloaded(MPICH, 1, &program, &["10000"], &settings);
        let found = run.profiles().remove(0).openmp.unwrap();
        let words = run.truth(0).into_iter().find(|words| words[0] == "short").unwrap();
        let of = numbers(&words);
        let region = region_at(&found, &program, of[0]);
        assert_eq!(region.entries, 10_000);
        // On a slow machine the budget pays for all.
        let is_whole = region.timed == region.entries;
        assert!(region.timed > 16 && region.timed <= region.entries, "{region:#?}");
        let (time_s, close_s) = (region.time_s, CLOSE * of[2]);
        match region.time_error_s {
            Some(error_s) => {
                let far_s = (time_s - of[2]).abs();
                assert_ne!(error_s > 0.0, is_whole, "{region:#?}");
                assert!(far_s <= close_s + 2.0 * error_s, "{of:?} {region:#?}");
            }
            // Among others that are busy, a few entries have much of the time.
            None => assert!((0.3 * of[2]..of[2] + close_s).contains(&time_s), "{of:?} {region:#?}"),
        }
    });
    assert!(is_true.is_some());
}

/// Whether the profiles of a run with these settings know of OpenMP; what the program printed.
fn knows_of_openmp(mpi: Mpi, program: &Path, settings: &[(&str, &str)]) -> (bool, String) {
    let run =
        Profiled::run_file(mpi, 1, program, &[], &[&[TWO_THREADS], settings].concat()).succeeded();
    (run.profiles().iter().any(|profile| profile.openmp.is_some()), run.outcome.stdout.clone())
}

#[test]
fn nothing_is_asked_where_gyan_is_not_to_know_and_another_tool_goes_first() {
    let Some(libraries) = llvm() else { return };
    let gyan = libgyan().display().to_string();
    for mpi in MPIS {
        let program = mpi.openmp_program("hybrid.c", &libraries);
        for setting in [("GYAN_OPENMP", "off"), ("OMP_TOOL", "disabled")] {
            let (knows, _) = knows_of_openmp(mpi, &program, &[("LD_PRELOAD", &gyan), setting]);
            assert!(!knows, "{mpi:?} {setting:?}");
        }
        let tool = mpi.preloadable("ompt_tool", &["-fopenmp"]).display().to_string();
        let (before, behind) = (format!("{tool}:{gyan}"), format!("{gyan}:{tool}"));
        let ways = [
            &[("LD_PRELOAD", before.as_str())][..],
            &[("LD_PRELOAD", behind.as_str())],
            &[("LD_PRELOAD", gyan.as_str()), ("OMP_TOOL_LIBRARIES", tool.as_str())],
        ];
        for settings in ways {
            let (knows, said) = knows_of_openmp(mpi, &program, settings);
            assert!(
                !knows && said.contains("another tool saw regions: yes"),
                "{settings:?}: {said}"
            );
        }
    }
}

#[test]
fn regions_are_seen_though_python_loads_mpi_after_openmp() {
    if llvm().is_none() {
        return;
    }
    let script = root().join("tests/programs/openmp_library.py");
    for mpi in ["openmpi4", "mpich4"].map(Mpi::named) {
        let library = mpi.preloadable("openmp_library", &["-fopenmp"]);
        let words = [&script, &library].map(|path| path.to_str().unwrap());
        let run = Profiled::preloaded(mpi, 1, Path::new("python-mpi4py"), &words, &[TWO_THREADS])
            .succeeded();
        let found = run.profiles().remove(0).openmp.expect("an OpenMP runtime that tells");
        let regions: Vec<(u64, u64)> =
            found.regions.iter().map(|region| (region.entries, region.threads)).collect();
        assert_eq!(regions, [(7, 2)], "{mpi:?} {found:?}");
    }
}

#[test]
fn gccs_runtime_tells_nothing_and_the_profile_says_so() {
    let program = MPICH.fortran_program("hybrid.f90", &["-fopenmp"]);
    let run = Profiled::preloaded(MPICH, 1, &program, &[], &[TWO_THREADS]);
    let profile = run.profiles().remove(0);
    assert!(profile.openmp.is_none());
    let advice = &profile.coverage.advice;
    assert!(advice.iter().any(|text| text.contains("libgomp")), "{advice:?}");
}
