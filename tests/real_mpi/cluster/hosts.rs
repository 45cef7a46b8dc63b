//! Several hosts on this machine for as long as a test needs them: those of `scripts/cluster`, which are namespaces of
//! the kernel.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use wait_timeout::ChildExt;

use crate::common::{Outcome, comes_true, command, root, run};

/// They end in a moment.
const PATIENCE: Duration = Duration::from_secs(60);
/// The script's exit code when hosts are not possible.
const NOT_HERE: i32 = 3;

/// Dropping it ends everything on the hosts; the same happens if the test is killed, because they end with the
/// other end of a pipe.
pub(crate) struct Cluster {
    holder: Child,
    keep: TempDir,
}

impl Cluster {
    /// Hosts with these names. None, and a message, without root or user namespaces.
    pub(crate) fn of(names: &[&str]) -> Option<Cluster> {
        let keep = TempDir::new().unwrap();
        let possible = run(&mut script(&keep, &["possible"]));
        if possible.code == NOT_HERE {
            eprintln!("skipped: {}", possible.stderr.trim());
            return None;
        }
        assert_eq!(possible.code, 0, "{}", possible.stderr);
        let said = [keep.path().join("stdout"), keep.path().join("stderr")];
        let [stdout, stderr] = said.each_ref().map(|path| File::create(path).unwrap());
        let mut hold = script(&keep, &["hold", "--names", &names.join(",")]);
        let mut holder = hold.stdin(Stdio::piped()).stdout(stdout).stderr(stderr).spawn().unwrap();
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let is_up = || read(&said[0]).ends_with('\n');
        assert!(comes_true(|| is_up() || holder.try_wait().unwrap().is_some()));
        assert!(is_up(), "{}", read(&said[1]));
        Some(Cluster { holder, keep })
    }

    /// The directory that all hosts share.
    pub(crate) fn shared(&self) -> PathBuf {
        folder(&self.keep).join("shared")
    }

    /// A command on the first host, under an MPI of the test bed whose launchers know all hosts. It runs in a
    /// directory that they share.
    pub(crate) fn under<S: AsRef<str>>(&self, mpi: &str, words: &[S]) -> Command {
        let mut command = self.with(&["run", mpi, "--"], words);
        // MPICH exchanges addresses of UCX that Slurm's PMI-2 cuts short, as their sizes happen to be, and those of
        // libfabric well: tests/mpi-libraries.md.
        if words.iter().any(|word| ["srun", "sbatch"].contains(&word.as_ref())) {
            command.env("MPIR_CVAR_CH4_NETMOD", "ofi");
        }
        command
    }

    /// A command on a host: 1 is the first.
    pub(crate) fn on<S: AsRef<str>>(&self, host: usize, words: &[S]) -> Command {
        self.with(&["host", &host.to_string(), "--"], words)
    }

    fn with<S: AsRef<str>>(&self, front: &[&str], words: &[S]) -> Command {
        let words: Vec<&str> =
            front.iter().copied().chain(words.iter().map(AsRef::as_ref)).collect();
        let mut command = script(&self.keep, &words);
        command.current_dir(self.shared());
        command
    }

    /// Starts a Slurm on all hosts. False, and a message, if that is not possible.
    pub(crate) fn has_slurm(&self) -> bool {
        let outcome = run(&mut script(&self.keep, &["slurm"]));
        if outcome.code == NOT_HERE {
            eprintln!("skipped: {}", outcome.stderr.trim());
            return false;
        }
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        true
    }

    /// Another subcommand of the script: `link`, `delay`, `kill`.
    pub(crate) fn does(&self, words: &[&str]) {
        let outcome = run(&mut script(&self.keep, words));
        assert_eq!(outcome.code, 0, "{words:?}: {}", outcome.stderr);
    }

    /// What remains of the hosts, or was not ended with them.
    pub(crate) fn left(&self) -> Outcome {
        run(&mut script(&self.keep, &["left"]))
    }

    /// Kills the process that holds the hosts, and leaves it no time to take them down.
    pub(crate) fn kill_holder(&mut self) {
        self.holder.kill().unwrap();
        self.holder.wait().unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        if !matches!(self.holder.wait_timeout(PATIENCE), Ok(Some(_))) {
            let _ = self.holder.kill();
            let _ = self.holder.wait();
        }
        if !thread::panicking() {
            let is_gone = comes_true(|| self.left().code == 0);
            assert!(is_gone, "left behind: {}", self.left().stdout);
        }
    }
}

fn folder(keep: &TempDir) -> PathBuf {
    keep.path().join("cluster")
}

fn script(keep: &TempDir, words: &[&str]) -> Command {
    let script: &Path = &root().join("scripts/cluster");
    let words: Vec<&str> =
        [script.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    let mut command = command(&words);
    command.env("GYAN_CLUSTER", folder(keep));
    command
}
