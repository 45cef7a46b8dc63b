//! `gyan run` and `gyan tune` as parts of a shell script: signals reach the program, what cannot be printed changes no
//! exit code, and processes of others live on.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::{Outcome, comes_true, command, gyan, run};

/// What a shell says in a directory, where `gyan` is on the path.
fn in_shell(directory: &TempDir, line: &str) -> Outcome {
    let command_of_gyan = gyan();
    let bin = Path::new(command_of_gyan.get_program()).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = command(&["bash", "-c", line]);
    for (name, value) in command_of_gyan.get_envs() {
        shell.env(name, value.unwrap());
    }
    run(shell.current_dir(directory).env("PATH", path))
}

#[test]
fn what_cannot_be_printed_changes_no_exit_code_of_a_program() {
    let here = TempDir::new().unwrap();
    for (line, code) in [
        ("gyan run -o a -- true 2>/dev/full", 0),
        ("gyan run -o b -- false 2>/dev/full", 1),
        ("gyan run -o c -- true 2>&-", 0),
    ] {
        assert_eq!(in_shell(&here, line).code, code, "{line}");
    }
}

/// A program that goes on until it gets SIGTERM, and then ends as if all was well.
const OBEYS: &str = "trap 'exit 0' TERM; echo x >> started; while :; do sleep 0.05; done";

#[test]
fn a_signal_ends_the_program_and_no_other_is_started() {
    let here = TempDir::new().unwrap();
    let started = || fs::read_to_string(here.path().join("started")).unwrap_or_default();
    let mut runs: Child = gyan()
        .args(["run", "--repeat", "1000", "-o", "runs", "--", "bash", "-c", OBEYS])
        .current_dir(&here)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(comes_true(|| started().starts_with('x')), "no run began");
    kill_process(Pid::from_child(&runs), Signal::TERM).unwrap();
    assert!(comes_true(|| runs.try_wait().unwrap().is_some()), "gyan goes on");
    assert_eq!(runs.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(started(), "x\n");
}

#[test]
fn a_tune_spares_the_children_that_a_shell_left_to_it() {
    let here = TempDir::new().unwrap();
    let line = "sleep 4321 & echo $! > pid; \
                exec gyan tune --set X_Y=1,2 --budget 5s -o tuned -- sh -c 'exit 3' >out 2>&1";
    in_shell(&here, line);
    let pid: i32 = fs::read_to_string(here.path().join("pid")).unwrap().trim().parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    let lives = kill_process(pid, Signal::KILL).is_ok();
    let said = fs::read_to_string(here.path().join("out")).unwrap();
    assert!(lives, "{said}");
}
