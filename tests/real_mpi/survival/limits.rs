//! The application at its resource limits: it is unharmed, there is one line, and as much as possible is kept.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{
    MPIS, Mpi, Outcome, Profiled, command, counts, libgyan, only_run_directory, profiles, run,
};
use crate::fakempi::Faked;
use crate::faults::inject;

/// From the table of faults.
const GROUP: &str = "limits";

/// The program `limits`, which ends the same way without gyan and with it. Returns the only line of gyan's.
fn at_limit(mpi: Mpi, here: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> String {
    let what = "the exit code and the program's own lines are as without gyan";
    let fault = inject(GROUP, &format!("`{}`", arguments.join(" ")), what);
    let words = mpi.launch(2, "limits", arguments);
    let bare = run(command(&words).current_dir(here));
    let temporary = TempDir::new().unwrap();
    let mut command = command(&words);
    command.current_dir(here).env("LD_PRELOAD", libgyan()).env("TMPDIR", temporary.path());
    let with = run(command.envs(settings.iter().copied()));
    assert_eq!(with.code, bare.code, "{mpi:?} {arguments:?}: {}", with.stderr);
    // MPICH's UCX writes to stdout that it cannot open files, with times.
    for outcome in [&bare, &with] {
        assert_eq!(outcome.stdout.matches("alive, 0 waits").count(), 2, "{mpi:?}: {outcome:?}");
    }
    fault.survived();
    let [line] = with.notices()[..] else { panic!("{mpi:?}: not one line: {}", with.stderr) };
    line.to_owned()
}

/// The keeper, which has the rank's initial limits, still writes the profile.
#[test]
fn a_limit_of_files_or_their_size_that_a_program_sets_is_none_for_its_profile() {
    for arguments in [&["size", "1024"][..], &["files"]] {
        for mpi in MPIS {
            let here = TempDir::new().unwrap();
            let line = at_limit(mpi, here.path(), arguments, &[]);
            let directory = only_run_directory(here.path());
            let name = directory.file_name().unwrap().to_str().unwrap();
            assert!(line.ends_with(name), "{mpi:?}: {line}");
            for profile in profiles(&directory, 2) {
                assert_eq!(counts(&profile)["MPI_Barrier"], 1, "{mpi:?} {arguments:?}");
                assert!(profile.overhead.finalize_s > 0.0, "{mpi:?} {arguments:?}");
            }
            let report = crate::common::report(&directory, &[]);
            assert_eq!((report.code, report.stderr.as_str()), (0, ""), "{mpi:?} {arguments:?}");
        }
    }
}

/// Without a keeper the rank itself hits them: one line says which limit it is.
#[test]
fn where_no_file_can_be_written_one_line_says_which_limit_it_is() {
    for (arguments, reason, remedy) in [
        // SIGXFSZ would kill the application.
        (&["size", "1024"][..], "File too large", "raise the limit of a file's size (ulimit -f)"),
        (&["files"], "Too many open files", "raise the limit of open files (ulimit -n)"),
    ] {
        for mpi in MPIS {
            let here = TempDir::new().unwrap();
            let line = at_limit(mpi, here.path(), arguments, &[("GYAN_KEEPER", "off")]);
            assert!(line.contains(reason) && line.contains(remedy), "{mpi:?}: {line}");
            let directory = only_run_directory(here.path());
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "half a file was left");
        }
    }
}

#[test]
fn with_no_address_space_left_to_take_the_profiles_are_complete() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let line = at_limit(mpi, here.path(), &["memory", "0"], &[]);
        let directory = line.rsplit(' ').next().unwrap();
        profiles(&here.path().join(directory), 2);
    }
}

#[test]
fn a_program_that_goes_to_another_directory_has_its_profiles_where_it_began() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        // Which is gone then.
        let line = at_limit(mpi, here.path(), &["directory"], &[]);
        let directory = only_run_directory(here.path());
        assert!(line.ends_with(&directory.display().to_string()), "{mpi:?}: {line}");
        profiles(&directory, 2);
        Profiled::run(mpi, 2, &["limits", "directory"], &[]).succeeded().profiles();
    }
}

/// The address space that libgyan.so takes when it is loaded.
fn mapped() -> u64 {
    let headers = run(command(&["readelf", "-lW"]).arg(libgyan())).stdout;
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let ends = headers.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["LOAD", _, address, _, _, size, ..] = words[..] else { return None };
        Some(number(address) + number(size))
    });
    ends.max().unwrap()
}

/// An MPI that needs hardly any memory itself, so that gyan is the one that runs out: at its start, while the
/// program runs, or at its end.
#[test]
fn wherever_memory_runs_out_the_application_goes_on() {
    const STEP: u64 = 512 << 10;
    // The loader's own notes of another library.
    const LOADER: u64 = 256 << 10;
    let variables = 2000;
    let mut script = String::new();
    for n in 0..variables {
        writeln!(script, "pvar variable_{n} LEVEL MPI_INT bind MPI_COMM continuous").unwrap();
    }
    let program = ["fake_events", "3", "2", "2"];
    let whole = Faked::alone(&script, &program).outcome.stdout;
    let fits = |bytes: &u64| {
        let outcome = Faked::limited(*bytes, &script, &program, &[]).outcome;
        outcome.code == 0 && outcome.stdout == whole
    };
    let least = (1..1000).map(|step| step * (STEP / 4)).find(fits).unwrap();
    let libgyan = libgyan().display().to_string();
    let (mut off, mut unwritten, mut written) = (0, 0, 0);
    for step in 0..64 {
        let bytes = least + mapped() + LOADER + step * STEP;
        let what = "the same exit code and output as without gyan, and one line";
        let fault = inject(GROUP, "memory that runs out at one of many limits (`RLIMIT_AS`)", what);
        let with = Faked::limited(bytes, &script, &program, &[("LD_PRELOAD", &libgyan)]);
        let Outcome { code, stdout, stderr } = &with.outcome;
        assert_eq!((*code, stdout), (0, &whole), "{bytes} bytes: {stderr}");
        let [line] = with.outcome.notices()[..] else { panic!("{bytes} bytes: {stderr}") };
        assert_eq!(with.has_profile(), line.starts_with("gyan: profiles of"), "{line}");
        match line {
            _ if with.has_profile() => written += 1,
            _ if line.contains("to start") => off += 1,
            _ if line.contains("cannot be written: there is not enough memory") => unwritten += 1,
            _ => panic!("{bytes} bytes: {line}"),
        }
        fault.survived();
    }
    assert!(off > 0 && unwritten > 0 && written > 0, "{off} {unwritten} {written}");
}
