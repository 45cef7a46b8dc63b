//! How does a test start a process? Always under a timeout, and without the user's settings of gyan.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use wait_timeout::ChildExt;

/// No run of a test takes longer, even on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code, or 128 and the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The project's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo puts its output.
pub(crate) fn target() -> PathBuf {
    // .../target/<profile>/deps/<this test>
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// A command line as a command without any setting of gyan except those that the test gives it.
pub(crate) fn command<S: AsRef<OsStr>>(words: &[S]) -> Command {
    let (program, arguments) = words.split_first().unwrap();
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Runs to the end, or fails the test if that takes too long.
pub(crate) fn run(command: &mut Command) -> Outcome {
    run_within(command, TIMEOUT)
}

/// The same for a command that has to succeed.
pub(crate) fn succeed(command: &mut Command) -> Outcome {
    let outcome = run(command);
    assert_eq!(outcome.code, 0, "{command:?}:\n{}\n{}", outcome.stdout, outcome.stderr);
    outcome
}

/// The same for one that has nothing to say on stderr either.
pub(crate) fn quiet(command: &mut Command) -> Outcome {
    let outcome = succeed(command);
    assert_eq!(outcome.stderr, "", "{command:?}");
    outcome
}

/// The same for commands that may take longer.
pub(crate) fn run_within(command: &mut Command, timeout: Duration) -> Outcome {
    let directory = TempDir::new().unwrap();
    let (stdout, stderr) = (directory.path().join("stdout"), directory.path().join("stderr"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let explicit = command.get_envs().any(|(set, _)| set == OsStr::new(&name));
        if name.starts_with("GYAN") && name != "GYAN_TESTBED" && !explicit {
            command.env_remove(&name);
        }
    }
    let root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    let mut child = command
        .envs(root.map(|name| (name, "1")))
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let Some(status) = child.wait_timeout(timeout).unwrap() else {
        let group = rustix::process::Pid::from_child(&child);
        let threads = threads_of_group(child.id());
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        let said = fs::read_to_string(&stderr).unwrap_or_default();
        panic!("{command:?} did not end\n{said}{threads}");
    };
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Outcome {
        code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap()),
        stdout: text(&stdout),
        stderr: text(&stderr),
    }
}

/// What the threads of a process group are doing: id, name, state, and where in the kernel they wait.
fn threads_of_group(group: u32) -> String {
    let mut lines = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        for thread in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
            let text =
                |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let stat = text("stat");
            // `pid (name) state parent group ...`
            let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
            let mut words = rest.split_whitespace();
            let (state, of_group) = (words.next(), words.nth(1));
            if of_group == Some(&*group.to_string()) {
                let (wchan, stack) = (text("wchan"), text("stack"));
                lines.push(format!("{name}) {state:?} {wchan}\n{stack}"));
            }
        }
    }
    lines.join("\n")
}

/// Far longer than it takes to install some hundred megabytes from `PyPI`.
const INSTALLING: Duration = Duration::from_secs(1200);

/// A Python with modules from `PyPI`, in a place of its own below the target directory, where the first test that needs it
/// installs it; none where that is not possible.
pub(crate) fn python_with(name: &str, modules: &str, packages: &[&str]) -> Option<PathBuf> {
    // Tests that run at the same time may need the same.
    static INSTALLS: Mutex<()> = Mutex::new(());
    let _alone = INSTALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = target().join(name);
    let python = place.join("bin/python");
    let has_them = || {
        let import = format!("import {modules}");
        let found = Command::new(&python).args(["-c", &import]).output();
        found.is_ok_and(|found| found.status.success())
    };
    if !has_them() {
        let script = format!(
            "'{}/scripts/packages' python3 python3-venv && rm -rf '{place}' && python3 -m venv '{place}' && \
             '{place}/bin/pip' install --quiet --disable-pip-version-check '{}'",
            root().display(),
            packages.join("' '"),
            place = place.display()
        );
        let outcome = run_within(Command::new("sh").args(["-c", &script]), INSTALLING);
        if outcome.code != 0 {
            assert!(std::env::var_os("CI").is_none(), "no {modules}: {}", outcome.stderr);
            eprintln!("skipped: {modules} cannot be installed from PyPI:\n{}", outcome.stderr);
            return None;
        }
    }
    assert!(has_them());
    Some(python)
}
