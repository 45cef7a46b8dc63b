//! Every launcher: one run directory with all ranks, exact counts, and the exit code passed on.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::slurm::Slurm;
use crate::common::{
    Mpi, NOBODY_IS_LEFT, OPENMPI5, Outcome, comes_true, command, counts, each_library, gyan,
    libgyan, only_run_directory, profiles, ranks_that_left, receives, report, run, run_directories,
    succeed, true_counts,
};
use crate::matrix::{self, Column};

fn gyan_run() -> [String; 2] {
    [gyan().get_program().to_str().unwrap().to_owned(), "run".into()]
}

fn name(directory: &Path) -> &str {
    directory.file_name().unwrap().to_str().unwrap()
}

/// Checks that the profiles in `directory` are of `ranks` and count what the program counted in `here`.
fn assert_exact(here: &Path, directory: &Path, ranks: &[u32]) {
    let profiles = profiles(directory, ranks.len());
    let found: Vec<u32> = profiles.iter().map(|profile| profile.rank).collect();
    assert_eq!(found, ranks, "{}", directory.display());
    for profile in &profiles {
        let expected = true_counts(here, profile.rank);
        assert_eq!(receives(profile), expected, "rank {}", profile.rank);
        assert_eq!(profile.job.id, profiles[0].job.id);
    }
}

/// The files that a spawning program left in a new directory. MPICH 5 over UCX sometimes fails there on a busy
/// machine, even without gyan (tests/mpi-libraries.md): then it is run once more.
fn spawned(
    words: &[String],
    settings: impl Fn(&Path) -> Vec<(&'static str, PathBuf)>,
) -> (TempDir, Outcome) {
    for _ in 0..5 {
        let here = TempDir::new().unwrap();
        let mut command = command(words);
        command.current_dir(&here).env(TO_SPAWN.0, TO_SPAWN.1).envs(settings(here.path()));
        let outcome = run(&mut command);
        if !outcome.stderr.contains("MPIDI_UCX_insert_upid") {
            assert_eq!(outcome.code, 0, "{command:?}\n{}", outcome.stderr);
            return (here, outcome);
        }
    }
    panic!("{words:?}: fails in UCX each time");
}

#[test]
fn preloaded_by_each_launcher_and_without_one_every_receive_of_the_standard_is_counted_exactly() {
    for mpi in each_library() {
        let program = mpi.program("receives");
        let launched = |words: Vec<String>| [words, vec![program.display().to_string()]].concat();
        // Seven receives of MPI 3, twelve more of MPI 4, and start and end.
        let functions = match mpi.name {
            name if name.starts_with("openmpi") => 9,
            // Its device has no partitioned communication.
            "mpich-pvars" => 20,
            _ => 21,
        };
        for (column, words, ranks) in [
            (Column::Mpirun, launched(mpi.mpirun(3)), &[0, 1, 2][..]),
            (Column::Mpiexec, launched(mpi.mpiexec(3)), &[0, 1, 2]),
            (Column::NoLauncher, mpi.alone(&program), &[0]),
        ] {
            let here = TempDir::new().unwrap();
            succeed(command(&words).current_dir(&here).env("LD_PRELOAD", libgyan()));
            let directory = only_run_directory(here.path());
            assert_exact(here.path(), &directory, ranks);
            for profile in profiles(&directory, ranks.len()) {
                let receives = receives(&profile).len();
                assert!(profile.size == 1 || receives == functions, "{mpi:?} {receives}");
                assert!(profile.phases.is_empty(), "{mpi:?} {:?}", profile.phases);
            }
            matrix::passed(mpi, column);
        }
        matrix::passed(mpi, Column::C);
    }
}

#[test]
fn gyan_run_works_before_and_after_each_launcher() {
    for mpi in each_library() {
        let program = mpi.program("receives").display().to_string();
        let before = [&gyan_run()[..], &["--".into()]].concat();
        let before = [mpi.mpirun_after(&before, 2), vec![program.clone()]].concat();
        let after = [mpi.mpirun(2), gyan_run().into(), vec![program]].concat();
        for (column, words, reports) in
            [(Column::Before, before, true), (Column::After, after, false)]
        {
            let here = TempDir::new().unwrap();
            let outcome = succeed(command(&words).current_dir(&here));
            let directory = only_run_directory(here.path());
            assert!(name(&directory).starts_with("gyan-receives-"), "{mpi:?} {directory:?}");
            assert_exact(here.path(), &directory, &[0, 1]);
            // The title of the report; a long path is cut there.
            let titles = outcome.stderr.matches(": 2 ranks on ").count();
            assert_eq!(titles, usize::from(reports), "{mpi:?} {}", outcome.stderr);
            assert_eq!(
                outcome.notices().len(),
                usize::from(!reports),
                "{mpi:?} {}",
                outcome.stderr
            );
            assert_eq!(report(&directory, &[]).code, 0, "{mpi:?}");
            matrix::passed(mpi, column);
        }
    }
}

#[test]
fn each_launcher_passes_the_exit_code_on() {
    for mpi in each_library() {
        let program = mpi.program("exit_code").display().to_string();
        let before = [&gyan_run()[..], &["--".into()]].concat();
        let after = [&gyan_run()[..], &["-o", "profile"].map(str::to_owned)].concat();
        for mut words in [mpi.mpirun_after(&before, 1), [mpi.mpiexec(1), after].concat()] {
            let here = TempDir::new().unwrap();
            words.extend([program.clone(), "9".into()]);
            let mut command = command(&words);
            command.env(NOBODY_IS_LEFT.0, NOBODY_IS_LEFT.1);
            let outcome = run(command.current_dir(&here));
            assert_eq!(outcome.code, 9, "{mpi:?} {words:?}\n{}", outcome.stderr);
            assert!(outcome.stdout.starts_with("out\n"), "{words:?}\n{}", outcome.stdout);
            profiles(&only_run_directory(here.path()), 1);
        }
    }
}

/// `receives` under another name.
fn other_program(mpi: Mpi, here: &Path) -> String {
    let other = here.join("other");
    fs::copy(mpi.program("receives"), &other).unwrap();
    other.display().to_string()
}

#[test]
fn two_programs_of_one_job_have_one_run_directory() {
    for mpi in matrix::with(Column::Mpmd) {
        let here = TempDir::new().unwrap();
        let other = other_program(mpi, here.path());
        let words = mpi.launch(2, "receives", &[":", "-n", "2", &other]);
        succeed(command(&words).current_dir(&here).env("LD_PRELOAD", libgyan()));
        let directory = only_run_directory(here.path());
        assert_exact(here.path(), &directory, &[0, 1, 2, 3]);
        assert_eq!(report(&directory, &[]).code, 0, "{mpi:?}");
        matrix::passed(mpi, Column::Mpmd);
    }
}

#[test]
fn gyan_in_one_of_two_programs_has_profiles_of_its_ranks_only() {
    for mpi in ["openmpi4", "mpich4", "openmpi5", "mpich5", "intelmpi"].map(Mpi::named) {
        for first in [true, false] {
            let here = TempDir::new().unwrap();
            let with = |here: bool, program: String| {
                let preload = format!("LD_PRELOAD={}", libgyan().display());
                let front = if here { vec!["env".to_owned(), preload] } else { Vec::new() };
                [front, vec![program]].concat()
            };
            let mut words = mpi.mpirun(2);
            words.extend(with(first, mpi.program("receives").display().to_string()));
            words.extend([":", "-n", "2"].map(str::to_owned));
            words.extend(with(!first, other_program(mpi, here.path())));
            succeed(command(&words).current_dir(&here));
            let directory = only_run_directory(here.path());
            let (ranks, missing) = if first { ([0, 1], "2-3") } else { ([2, 3], "0-1") };
            assert_exact(here.path(), &directory, &ranks);
            let report = report(&directory, &[]);
            assert_eq!(report.code, 1, "{mpi:?} {}", report.stderr);
            let text = format!("2 of 4 ranks have no usable profile ({missing})");
            assert!(report.stderr.contains(&text), "{mpi:?} {}", report.stderr);
            assert!(report.stderr.contains("ran without gyan"), "{}", report.stderr);
        }
    }
}

/// Intel MPI spawns only with this setting; elsewhere it has no meaning.
const TO_SPAWN: (&str, &str) = ("I_MPI_SPAWN", "on");

#[test]
fn spawned_processes_are_runs_of_their_own() {
    for mpi in matrix::with(Column::Spawn) {
        let words = mpi.launch(2, "spawn", &[]);
        let (here, outcome) = spawned(&words, |_| vec![("LD_PRELOAD", libgyan())]);
        let directories = run_directories(here.path());
        let mut receives = Vec::new();
        for directory in &directories {
            assert!(name(directory).starts_with("gyan-spawn-"), "{mpi:?} {directory:?}");
            receives.push(assert_ranks_of_spawn(mpi, directory));
            let told = outcome.stderr.contains(&format!("gyan report {}\n", name(directory)));
            assert_eq!(told, profiles(directory, 2)[0].rank == 0, "{mpi:?} {}", outcome.stderr);
        }
        receives.sort_unstable();
        let expected = [0, 1, 1].into_iter();
        assert!(expected.eq(receives), "{mpi:?} {directories:?}");
        matrix::passed(mpi, Column::Spawn);
    }
}

/// One profile for each of two ranks, both of parents or both of children of one spawn. How many
/// receives each counted.
fn assert_ranks_of_spawn(mpi: Mpi, directory: &Path) -> u64 {
    let profiles = profiles(directory, 2);
    let of_child = profiles[0].job.command.get(1).is_some();
    let ranks: Vec<_> = profiles.iter().map(|profile| (profile.rank, profile.size)).collect();
    assert_eq!(ranks, [(0, 2), (1, 2)], "{mpi:?} {}", directory.display());
    assert_eq!(report(directory, &[]).code, 0);
    for profile in &profiles {
        assert_eq!(profile.job.id, profiles[0].job.id);
        let receives = counts(profile).get("MPI_Recv").copied().unwrap_or(0);
        assert_eq!(receives, u64::from(of_child), "{}", directory.display());
    }
    u64::from(of_child)
}

#[test]
fn spawned_processes_stay_within_the_output_directory_that_the_user_chose() {
    for mpi in matrix::with(Column::Spawn) {
        let words = mpi.launch(2, "spawn", &[]);
        let (here, _) = spawned(&words, |here| {
            let (output, id) = (here.join("out"), "mine".into());
            vec![("LD_PRELOAD", libgyan()), ("GYAN_OUTPUT", output), ("GYAN_JOB_ID", id)]
        });
        let output = here.path().join("out");
        assert_eq!(only_run_directory(here.path()), output);
        assert_eq!(assert_ranks_of_spawn(mpi, &output), 0, "{mpi:?}");
        let nested = run_directories(&output);
        assert_eq!(nested.len(), 2, "{mpi:?} {nested:?}");
        let said = report(&output, &[]).stderr;
        for directory in &nested {
            assert!(name(directory).starts_with("spawned-spawn-mine-"), "{directory:?}");
            assert_eq!(assert_ranks_of_spawn(mpi, directory), 1, "{mpi:?}");
            let words = format!("show them with: gyan report {}", directory.display());
            assert!(said.contains(&words), "{mpi:?} {said}");
        }
    }
}

#[test]
fn a_process_without_a_launcher_spawns_as_without_gyan() {
    // Those of MPICH 4.0 cannot: their launcher does not know the options that they start it with.
    for mpi in ["openmpi4", "openmpi5", "mpich5"].map(Mpi::named) {
        let words = mpi.alone(&mpi.program("spawn"));
        let (here, _) = spawned(&words, |_| vec![("LD_PRELOAD", libgyan())]);
        // No launcher waits for the spawned processes: they end after the one that was started.
        let written = || {
            let directories = run_directories(here.path()).into_iter();
            let mut ranks: Vec<usize> =
                directories.map(|directory| ranks_that_left(&directory).len()).collect();
            ranks.sort_unstable();
            ranks
        };
        assert!(comes_true(|| written() == [1, 2, 2]), "{mpi:?} {:?}", written());
        for directory in run_directories(here.path()) {
            let size = ranks_that_left(&directory).len();
            for profile in profiles(&directory, size) {
                assert_eq!(profile.size as usize, size, "{mpi:?} {}", directory.display());
            }
        }
    }
}

#[test]
fn a_second_run_with_the_same_job_id_does_not_overwrite_the_first() {
    for mpi in ["openmpi4", "mpich4"].map(Mpi::named) {
        let here = TempDir::new().unwrap();
        let words = mpi.launch(2, "exit_code", &[]);
        let again = || {
            let mut command = command(&words);
            command.env("LD_PRELOAD", libgyan()).env("GYAN_JOB_ID", "mine");
            succeed(command.current_dir(&here))
        };
        again();
        let directory = only_run_directory(here.path());
        assert_eq!(name(&directory), "gyan-exit_code-mine");
        let pids = |directory: &Path| -> Vec<u32> {
            profiles(directory, 2).iter().map(|profile| profile.pid).collect()
        };
        let first = pids(&directory);
        let second = again();
        assert_eq!(pids(&directory), first, "{mpi:?}");
        let inner = only_run_directory(&directory);
        assert_eq!((name(&inner), pids(&inner).len()), ("again-2", 2));
        let text = "rank-000000.json: is of another process of this job and stays";
        assert_eq!(second.stderr.matches(text).count(), 1, "{}", second.stderr);
        assert!(
            report(&directory, &[]).stderr.contains("again-2: holds profiles of further processes")
        );
    }
}

#[test]
fn two_programs_that_one_rank_runs_after_each_other_keep_their_profiles() {
    // Other MPIs end the second in MPI_Init.
    let mpi = OPENMPI5;
    let here = TempDir::new().unwrap();
    let program = mpi.program("exit_code").display().to_string();
    let twice = format!("{program} && {program}");
    let words = mpi.launch_file(2, Path::new("sh"), &["-c", &twice]);
    succeed(command(&words).current_dir(&here).env("LD_PRELOAD", libgyan()));
    let directory = only_run_directory(here.path());
    profiles(&directory, 2);
    let inner = only_run_directory(&directory);
    assert_eq!((name(&inner), profiles(&inner, 2).len()), ("again-2", 2));
}

/// The srun options for the programs of an MPI.
const SRUN: [(&str, &str); 2] = [("mpich4", "--mpi=pmi2"), ("openmpi4", "--mpi=pmix")];

/// The same for every one.
fn plugin(mpi: Mpi) -> &'static str {
    SRUN[usize::from(mpi.name.starts_with("openmpi"))].1
}

#[test]
fn under_srun_the_library_is_in_the_ranks_and_nowhere_else() {
    let slurm = Slurm::start();
    for (mpi, plugin) in SRUN.map(|(name, plugin)| (Mpi::named(name), plugin)) {
        for code in ["0", "9"] {
            let here = TempDir::new().unwrap();
            let program = mpi.program("exit_code").display().to_string();
            let srun = || {
                // Quiet, because it may have to wait for an earlier job to end, and would say so.
                let words = ["srun", "-Q", plugin, "-n", "2", &program, code];
                let mut command = slurm.command(&words);
                command.current_dir(&here);
                command
            };
            let bare = run(&mut srun());
            assert_eq!(bare.code.to_string(), code, "{}", bare.stderr);
            let with = run(srun().env("LD_PRELOAD", libgyan()).env("GYAN_NOTICES", "none"));
            assert_eq!(with.code, bare.code, "{mpi:?}");
            assert_eq!(with.stdout_of_ranks(), bare.stdout_of_ranks(), "{mpi:?}");
            assert_eq!(lines_of_srun(&with), lines_of_srun(&bare), "{mpi:?}");
            profiles(&only_run_directory(here.path()), 2);
        }
    }
}

/// What is on stderr, without the number of the job and the order of the ranks.
fn lines_of_srun(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome
        .stderr
        .lines()
        .map(|line| line.chars().filter(|c| !c.is_ascii_digit()).collect())
        .collect();
    lines.sort();
    lines
}

#[test]
fn under_srun_counts_are_exact_and_the_directory_has_slurms_id() {
    let slurm = Slurm::start();
    for mpi in matrix::with(Column::Srun) {
        let here = TempDir::new().unwrap();
        let program = mpi.program("receives").display().to_string();
        let script = format!("echo $SLURM_JOB_ID.$SLURM_STEP_ID >id && exec {program}");
        let (front, _) = mpi.environment();
        let preload = format!("LD_PRELOAD={}", libgyan().display());
        let srun = ["env", &preload, "srun", "-Q", plugin(mpi), "-n", "2", "sh", "-c", &script];
        let words = [&front[..], &srun.map(str::to_owned)].concat();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = succeed(slurm.command(&words).current_dir(&here));
        let id = fs::read_to_string(here.path().join("id")).unwrap();
        let expected = format!("gyan-receives-{}", id.trim());
        let directory = only_run_directory(here.path());
        assert_eq!(name(&directory), expected, "{mpi:?}");
        assert_exact(here.path(), &directory, &[0, 1]);
        let notice =
            format!("gyan: profiles of 2 ranks in {expected}; show them with: gyan report");
        assert_eq!(outcome.notices(), [format!("{notice} {expected}")], "{mpi:?}");
        matrix::passed(mpi, Column::Srun);
    }
}

#[test]
fn gyan_run_works_before_and_after_srun() {
    let slurm = Slurm::start();
    let [gyan, run_word] = gyan_run();
    for (mpi, plugin) in SRUN.map(|(name, plugin)| (Mpi::named(name), plugin)) {
        let receives = mpi.program("receives").display().to_string();
        let exit_code = mpi.program("exit_code").display().to_string();
        let before = [&gyan, &run_word, "--", "srun", plugin, "-n", "2"];
        let after = ["srun", plugin, "-n", "2", &gyan, &run_word];
        for (front, reports) in [(&before[..], 1), (&after[..], 0)] {
            let here = TempDir::new().unwrap();
            let words = [front, &[&receives]].concat();
            let outcome = succeed(slurm.command(&words).current_dir(&here));
            assert_eq!(outcome.stderr.matches(": 2 ranks on ").count(), reports, "{mpi:?}");
            let directory = only_run_directory(here.path());
            assert_exact(here.path(), &directory, &[0, 1]);
            assert_eq!(report(&directory, &[]).code, 0, "{mpi:?}");
            let words = [front, &[&exit_code, "9"]].concat();
            assert_eq!(run(slurm.command(&words).current_dir(&here)).code, 9, "{mpi:?}");
            assert_eq!(run_directories(here.path()).len(), 2, "{mpi:?}");
        }
    }
}

#[test]
fn two_programs_of_one_step_have_one_run_directory() {
    let slurm = Slurm::start();
    for (mpi, plugin) in SRUN.map(|(name, plugin)| (Mpi::named(name), plugin)) {
        let here = TempDir::new().unwrap();
        let program = mpi.program("receives").display().to_string();
        let other = other_program(mpi, here.path());
        fs::write(here.path().join("programs"), format!("0-1 {program}\n2-3 {other}\n")).unwrap();
        let mut srun = slurm.command(&["srun", plugin, "-n", "4", "--multi-prog", "programs"]);
        succeed(srun.current_dir(&here).env("LD_PRELOAD", libgyan()));
        assert_exact(here.path(), &only_run_directory(here.path()), &[0, 1, 2, 3]);
    }
}

#[test]
fn each_step_and_each_mpirun_of_a_batch_job_is_a_run() {
    let slurm = Slurm::start();
    for (mpi, plugin) in SRUN.map(|(name, plugin)| (Mpi::named(name), plugin)) {
        let here = TempDir::new().unwrap();
        let program = mpi.program("receives").display().to_string();
        let mpirun = mpi.mpirun(2).join(" ");
        let script = format!(
            "#!/bin/sh\nset -e\nexport LD_PRELOAD={}\necho $SLURM_JOB_ID >id\n\
             srun {plugin} -n 2 {program}\nsrun {plugin} -n 2 {program}\n{mpirun} {program}\n",
            libgyan().display()
        );
        fs::write(here.path().join("script"), script).unwrap();
        // Its own --wait polls every few seconds.
        let words = ["sbatch", "--parsable", "-n", "2", "-o", "out", "script"];
        let job = succeed(slurm.command(&words).current_dir(&here)).stdout;
        let state = slurm.end_of_job(job.trim());
        let out = fs::read_to_string(here.path().join("out")).unwrap_or_default();
        assert_eq!(state, "COMPLETED", "{mpi:?} {out}");
        let id = fs::read_to_string(here.path().join("id")).unwrap();
        let directories = run_directories(here.path());
        assert_eq!(directories.len(), 3, "{mpi:?} {directories:?}");
        for directory in &directories {
            let start = format!("gyan-receives-{}", id.trim());
            assert!(name(directory).starts_with(&start), "{mpi:?} {directory:?}");
            assert_exact(here.path(), directory, &[0, 1]);
        }
        for step in ["0", "1"] {
            let expected = format!("gyan-receives-{}.{step}", id.trim());
            assert!(directories.iter().any(|directory| name(directory) == expected), "{mpi:?}");
        }
    }
}
