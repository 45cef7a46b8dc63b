//! `gyan run`, starting the launcher and started by it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Outcome, Profiled, bag_of, gyan, only_run_directory, only_warning,
    profiles, run, succeed,
};

/// `gyan run <options> -- mpirun -n <ranks> <program>`
fn gyan_run(mpi: Mpi, here: &TempDir, options: &[&str], ranks: usize, program: &[&str]) -> Outcome {
    let mut command = gyan();
    command.current_dir(here).arg("run").args(options).arg("--").args(mpi.mpirun(ranks));
    command.arg(mpi.program(program[0])).args(&program[1..]);
    run(&mut command)
}

#[test]
fn before_the_launcher_it_reports_and_leaves_stdout_to_the_program() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let outcome = gyan_run(mpi, &here, &[], 3, &["exit_code"]);
        assert_eq!(outcome.code, 0, "{mpi:?}");
        assert_eq!(outcome.stdout_of_ranks(), bag_of("out\nout\nout\n"), "{mpi:?}");
        assert!(outcome.stderr.contains("exit_code: 3 ranks on "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("MPI_Init "), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("performance variables could be read"),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("cost of gyan on a rank: at most "), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains('\u{1b}'), "colours although stderr is no terminal");
        let made: Vec<_> =
            fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [directory] = &made[..] else { panic!("{mpi:?}: {made:?}") };
        let name = directory.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("gyan-exit_code-"), "{name}");
        profiles(directory, 3);
    }
}

/// Values of options may be programs too, and an option can hide the program in a file: rank 0 names the
/// directory.
#[test]
fn the_directory_has_the_name_of_the_program_whatever_the_options_of_the_launcher() {
    for (mpi, options) in [
        (OPENMPI, &["--mca", "plm_rsh_agent", "/bin/true"][..]),
        (OPENMPI, &["--display-topo"]),
        (MPICH, &["-launcher", "fork", "-launcher-exec", "/bin/true"]),
        // The program is in this file.
        (MPICH, &["-configfile", "programs"]),
    ] {
        let here = TempDir::new().unwrap();
        let program = mpi.program("exit_code").display().to_string();
        fs::write(here.path().join("programs"), format!("-n 2 {program}\n")).unwrap();
        let options = options.iter().map(|word| (*word).to_owned());
        let mut words = mpi.mpirun(2);
        if options.clone().any(|option| option == "-configfile") {
            words.truncate(1);
            words.extend(options);
        } else {
            words.splice(1..1, options);
            words.push(program);
        }
        let outcome = run(gyan().current_dir(&here).args(["run", "--"]).args(&words));
        assert_eq!(outcome.code, 0, "{words:?} {}", outcome.stderr);
        let directory = only_run_directory(here.path());
        let name = directory.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("gyan-exit_code-"), "{words:?}: {name}");
        assert!(outcome.stderr.contains(&format!("profiles in {name};")), "{}", outcome.stderr);
        profiles(&directory, 2);
    }
}

/// If a run did not end completely, ranks may still write to its directory.
#[test]
fn a_run_that_is_killed_keeps_the_name_that_it_began_with() {
    let here = TempDir::new().unwrap();
    let mut command = gyan();
    command.current_dir(&here).args(["run", "--", "mpirun.openmpi", "--oversubscribe"]);
    // Rank 0 would call it after the program that the shell becomes.
    let becomes = format!("exec {} signal 9", OPENMPI.program("endings").display());
    command.args(["--display-topo", "-n", "2", "sh", "-c", &becomes]);
    let outcome = run(&mut command);
    assert_ne!(outcome.code, 0, "{}", outcome.stderr);
    let directory = only_run_directory(here.path());
    let name = directory.file_name().unwrap().to_string_lossy();
    assert!(name.starts_with("gyan-sh-"), "{name}");
    assert!(outcome.stderr.contains(&format!("profiles in {name};")), "{}", outcome.stderr);
}

#[test]
fn a_program_that_a_signal_ends_has_the_exit_code_of_a_shell() {
    let here = TempDir::new().unwrap();
    let mut command = gyan();
    command.args(["run", "--", "sh", "-c", "kill -TERM $$"]).current_dir(&here);
    let outcome = run(&mut command);
    assert_eq!(outcome.code, 128 + 15, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no profile was written"), "{}", outcome.stderr);
}

#[test]
fn options_reach_the_ranks() {
    for mpi in MPIS {
        let options = ["--no-report", "--pvars", "nothing_of_this_name"];
        let words = mpi.launch(2, "exit_code", &[]);
        let run = Profiled::by_command(&options, 2, &words, &[]).succeeded();
        for profile in run.profiles() {
            assert!(profile.pvars.is_empty());
            only_warning(&profile, "nothing_of_this_name");
        }
        assert!(!run.outcome.stderr.contains("Coverage"));
    }
}

#[test]
fn what_is_sampled_watched_and_listened_to_and_what_it_may_cost_reaches_the_program() {
    let sampled = "--budget 1% --series 100ms --sample posted*,unexpected* --sample other";
    for (options, expected) in [
        (
            sampled,
            &["GYAN_BUDGET=1%", "GYAN_SAMPLE=posted*,unexpected*,other", "GYAN_SERIES=100ms"][..],
        ),
        ("--events", &["GYAN_EVENTS=all"]),
        ("--events=peruse --watch umq>5", &["GYAN_EVENTS=peruse", "GYAN_WATCH=umq>5"]),
        ("", &[]),
    ] {
        let here = TempDir::new().unwrap();
        let mut command = gyan();
        command.current_dir(&here).args(["run", "--no-report"]).args(options.split_whitespace());
        let outcome = succeed(command.args(["--", "env"]));
        let names = ["BUDGET", "EVENTS", "SAMPLE", "SERIES", "WATCH"];
        let is_one = |line: &&str| {
            line.strip_prefix("GYAN_")
                .is_some_and(|rest| names.iter().any(|of| rest.starts_with(of)))
        };
        let mut set: Vec<&str> = outcome.stdout.lines().filter(is_one).collect();
        set.sort_unstable();
        assert_eq!(set, expected);
    }
}

#[test]
fn two_runs_are_never_mixed() {
    let mpi = MPIS[0];
    let here = TempDir::new().unwrap();
    assert_eq!(gyan_run(mpi, &here, &["-o", "out"], 3, &["exit_code"]).code, 0);
    let refused = gyan_run(mpi, &here, &["-o", "out"], 2, &["exit_code"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("out: holds 3 profiles of an earlier run"), "{refused:?}");
    let forced = gyan_run(mpi, &here, &["-o", "out", "--force"], 2, &["exit_code"]);
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    profiles(&here.path().join("out"), 2);
}

#[test]
fn wrong_usage_is_one_line_and_code_2() {
    let here = TempDir::new().unwrap();
    for words in [&["run", "--", "no-such-program"][..], &["run", "--", "./nosuch", "-n", "2"]] {
        let outcome = run(gyan().args(words).current_dir(&here));
        assert_eq!(outcome.code, 2);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("no such program"), "{}", outcome.stderr);
    }
    let outcome = run(gyan()
        .args(["run", "--", "true"])
        .env("GYAN_LIBRARY", "/nonexistent")
        .current_dir(&here));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("set GYAN_LIBRARY"), "{}", outcome.stderr);
    assert_eq!(run(gyan().arg("run")).code, 2);
    assert_eq!(run(&mut gyan()).code, 2);
    assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
}

#[test]
fn each_rank_of_an_mpmd_job_has_its_profile() {
    for mpi in MPIS {
        let other = mpi.program("exit_code").display().to_string();
        let words = mpi.launch(1, "exit_code", &[":", "-n", "2", &other]);
        Profiled::by_command(&[], 3, &words, &[]).succeeded().profiles();
    }
}

/// The value of a setting in the environment of the ranks, as recorded by rank 0.
fn recorded(directory: &Path, name: &str) -> Option<String> {
    let profile = &profiles(directory, 2)[0];
    let cvar = profile.cvars.iter().find(|cvar| cvar.name == name)?;
    cvar.value.clone()
}

#[test]
fn it_runs_a_program_again_and_again_in_turn_with_settings_and_stops_where_one_fails() {
    for (mpi, cvar, variable) in [
        (OPENMPI, "btl_vader_eager_limit", "OMPI_MCA_btl_vader_eager_limit=8192"),
        (MPICH, "MPIR_CVAR_BCAST_MIN_PROCS", "MPIR_CVAR_BCAST_MIN_PROCS=3"),
    ] {
        let here = TempDir::new().unwrap();
        let options = ["-o", "runs", "--repeat", "2", "--label", "size=7", "--alternate", variable];
        let outcome = gyan_run(mpi, &here, &options, 2, &["exit_code"]);
        assert_eq!(outcome.code, 0, "{mpi:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout_of_ranks(), bag_of(&"out\n".repeat(8)), "{mpi:?}");
        let value = variable.split_once('=').unwrap().1;
        for (group, labels, set) in
            [("default", &["size=7"][..], None), (variable, &["size=7", variable], Some(value))]
        {
            for run in ["run-1", "run-2"] {
                let run = here.path().join("runs").join(group).join(run);
                let ranks = profiles(&run, 2);
                let said = ranks[0].job.labels.iter().map(|of| format!("{}={}", of.name, of.value));
                assert_eq!(said.collect::<Vec<_>>(), labels, "{mpi:?}");
                // Others may have set it too, to another value.
                assert_eq!(
                    recorded(&run, cvar).as_deref() == Some(value),
                    set.is_some(),
                    "{mpi:?}"
                );
            }
        }
        for words in [
            "4 runs\n",
            "default",
            variable,
            "MEDIAN",
            "runs in runs\n",
            "compare them: gyan diff runs/",
        ] {
            assert!(outcome.stderr.contains(words), "{mpi:?}: {words}: {}", outcome.stderr);
        }
    }
    let here = TempDir::new().unwrap();
    let outcome = gyan_run(MPICH, &here, &["-o", "runs", "--repeat", "3"], 1, &["exit_code", "3"]);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    let told = "gyan: run 1 of 3 ended with code 3, so no more were started; its profiles are in runs/run-1\n";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    assert!(!here.path().join("runs/run-2").exists());
}
