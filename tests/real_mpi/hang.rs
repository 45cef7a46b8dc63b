//! Programs that hang: `gyan now` says what every rank does, and why the job does not go on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;

use gyan_results::{Doing, HangCause, HangKind, JobNow};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::common::{BED, MPICH, Mpi, OPENMPI, OPENMPI5, comes_true, gyan, root, run};
use crate::survival::live::{AT_ONCE, Waiting};

const RANKS: usize = 4;

/// A case of `tests/programs/stuck.c`.
struct Case {
    what: &'static str,
    kind: HangKind,
    /// The ranks that are named as the cause; none where that depends on how far the library lets them go.
    ranks: &'static [u32],
    /// What the sentence names: a function, and the comment at the line that calls it.
    names: &'static [(&'static str, &'static str)],
}

const RECEIVE: (&str, &str) = ("MPI_Recv", "receive");
const BARRIER: (&str, &str) = ("MPI_Barrier", "barrier");

const CASES: &[Case] = &[
    Case { what: "cycle", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[RECEIVE] },
    Case { what: "barrier", kind: HangKind::Deadlock, ranks: &[1, 3], names: &[RECEIVE, BARRIER] },
    Case { what: "tag", kind: HangKind::Deadlock, ranks: &[1, 3], names: &[RECEIVE] },
    Case {
        what: "collectives",
        kind: HangKind::Mismatch,
        ranks: &[2],
        names: &[("MPI_Allreduce", "allreduce"), BARRIER],
    },
    Case { what: "root", kind: HangKind::Mismatch, ranks: &[], names: &[("MPI_Bcast", "bcast")] },
    Case { what: "any", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[RECEIVE] },
    Case {
        what: "waitall",
        kind: HangKind::Deadlock,
        ranks: &[0, 2],
        names: &[("MPI_Waitall", "waitall"), RECEIVE],
    },
    Case {
        what: "split",
        kind: HangKind::Deadlock,
        ranks: &[0, 1],
        names: &[("MPI_Barrier", "half"), RECEIVE],
    },
    Case { what: "finalize", kind: HangKind::Finalized, ranks: &[3], names: &[BARRIER] },
    Case { what: "straggler", kind: HangKind::Straggler, ranks: &[3], names: &[] },
    Case { what: "sender", kind: HangKind::Straggler, ranks: &[3], names: &[] },
];

/// With the lines of its calls.
fn program_of(mpi: Mpi) -> String {
    mpi.compiled("stuck", &["-g"]).display().to_string()
}

/// What `gyan now` finds out, once there is something to say.
fn looked(waiting: &Waiting) -> Option<JobNow> {
    let outcome = run(gyan().args(["now", "--format", "json"]).arg(waiting.directory()));
    (outcome.code == 0).then(|| serde_json::from_str(&outcome.stdout).unwrap())
}

fn cause_of(waiting: &Waiting, what: &str) -> HangCause {
    let mut cause = None;
    let found = comes_true(|| {
        cause = looked(waiting).and_then(|now| now.cause);
        cause.is_some()
    });
    assert!(found, "{what}: {:?}", looked(waiting));
    cause.unwrap()
}

/// The line of `stuck.c` that ends with this comment.
fn line_of(comment: &str) -> usize {
    let text = fs::read_to_string(root().join("tests/programs/stuck.c")).unwrap();
    let comment = format!("/* {comment} */");
    1 + text.lines().position(|line| line.ends_with(&comment)).unwrap()
}

fn says_why(mpi: Mpi) {
    for Case { what, kind, ranks, names } in CASES {
        // Intel MPI broadcasts through shared memory: with different roots, the program ends.
        if *what == "root" && mpi == BED[5] {
            continue;
        }
        let program = [program_of(mpi), (*what).to_owned()];
        let waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[]);
        let cause = cause_of(&waiting, what);
        assert_eq!(cause.kind, *kind, "{mpi:?} {what}: {cause:?}");
        assert!(ranks.is_empty() || cause.ranks == *ranks, "{mpi:?} {what}: {cause:?}");
        for (function, comment) in *names {
            let expected = format!("{function} at stuck.c:{}", line_of(comment));
            let sentence = cause.sentence.replace(" with root 0", "").replace(" with root 1", "");
            assert!(sentence.contains(&expected), "{mpi:?} {what}: {expected}: {cause:?}");
        }
        // The report says it above everything else.
        let report = run(gyan().arg("report").arg(waiting.directory())).stdout;
        let flat = report.split_whitespace().collect::<Vec<&str>>().join(" ");
        let said = flat.find(&cause.sentence).unwrap_or_else(|| panic!("{what}\n{report}"));
        assert!(said < 400, "{what}\n{report}");
    }
}

#[test]
fn why_a_job_hangs_is_said_with_open_mpi_4() {
    says_why(OPENMPI);
}

#[test]
fn why_a_job_hangs_is_said_with_open_mpi_5() {
    says_why(OPENMPI5);
}

#[test]
fn why_a_job_hangs_is_said_with_mpich_4() {
    says_why(MPICH);
}

#[test]
fn why_a_job_hangs_is_said_with_mpich_5() {
    says_why(BED[3]);
}

#[test]
fn why_a_job_hangs_is_said_with_intel_mpi() {
    says_why(BED[5]);
}

/// What `gyan watch` writes to a file, or to a terminal.
struct Watched {
    watch: Child,
    out: PathBuf,
    terminal: Option<(File, Termios)>,
}

impl Watched {
    fn in_file(waiting: &Waiting) -> Watched {
        let out = waiting.here.path().join("looks");
        let file = File::create(&out).unwrap();
        let mut command = gyan();
        command.args(["watch", "--interval", "1s"]).arg(waiting.directory());
        let watch = command.stdin(Stdio::null()).stdout(file).spawn().unwrap();
        Watched { watch, out, terminal: None }
    }

    /// What the terminal gets is copied to a file.
    fn on_terminal(waiting: &Waiting) -> Watched {
        let out = waiting.here.path().join("shown");
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let terminal = File::from(rustix::pty::openpt(flags).unwrap());
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&name).unwrap();
        let before = tcgetattr(open()).unwrap();
        let size = Winsize { ws_row: 40, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let mut command = gyan();
        command.args(["watch", "--interval", "1s"]).arg(waiting.directory());
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let watch = command.stdin(open()).stdout(open()).spawn().unwrap();
        let (mut from, mut to) = (terminal.try_clone().unwrap(), File::create(&out).unwrap());
        thread::spawn(move || {
            // Reading fails once nobody has it open any more.
            let _ = std::io::copy(&mut from, &mut to);
        });
        Watched { watch, out, terminal: Some((terminal, before)) }
    }

    fn has_shown(&self, what: &str) -> bool {
        comes_true(|| String::from_utf8_lossy(&fs::read(&self.out).unwrap()).contains(what))
    }

    /// The exit code, once it has ended by itself.
    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        comes_true(|| {
            status = self.watch.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

#[test]
fn a_job_is_watched_until_it_has_ended() {
    for mpi in [OPENMPI, MPICH] {
        let program = [program_of(mpi), "healthy".to_owned()];
        let mut waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[AT_ONCE]);
        assert!(comes_true(|| looked(&waiting).is_some_and(|now| now.ranks.len() == RANKS)));
        let mut watched = Watched::in_file(&waiting);
        assert!(watched.has_shown("calls a second"), "{mpi:?}");
        fs::write(waiting.here.path().join("go"), "").unwrap();
        assert_eq!(waiting.end(), 0, "{mpi:?}");
        assert_eq!(watched.end(), Some(0), "{mpi:?}");
        assert!(watched.has_shown("The job has ended."), "{mpi:?}");
    }
}

#[test]
fn a_terminal_on_which_a_job_was_watched_is_as_before() {
    let program = [program_of(OPENMPI), "healthy".to_owned()];
    let waiting = Waiting::launch(&OPENMPI.mpirun(RANKS), &program, &[AT_ONCE]);
    assert!(comes_true(|| looked(&waiting).is_some_and(|now| now.ranks.len() == RANKS)));
    for way in ["q", "\x1b", "\x03", "a signal"] {
        let mut watched = Watched::on_terminal(&waiting);
        assert!(watched.has_shown("q leaves"), "{way:?}");
        let (terminal, before) = watched.terminal.as_mut().unwrap();
        let modes = tcgetattr(&*terminal).unwrap().local_modes;
        assert!(!modes.contains(LocalModes::ECHO), "{way:?}");
        if way == "a signal" {
            kill_process(Pid::from_child(&watched.watch), Signal::TERM).unwrap();
        } else if way == "\x03" {
            // It is no controlling terminal, so nobody makes a signal of the key.
            kill_process(Pid::from_child(&watched.watch), Signal::INT).unwrap();
        } else {
            terminal.write_all(way.as_bytes()).unwrap();
        }
        let modes = before.local_modes;
        let code = watched.end();
        assert_eq!(code, if way == "a signal" { None } else { Some(0) }, "{way:?}");
        assert!(watched.has_shown("\x1b[?1049h"), "{way:?}");
        assert!(watched.has_shown("\x1b[?1049l"), "{way:?}");
        let (terminal, _) = watched.terminal.as_ref().unwrap();
        assert_eq!(tcgetattr(terminal).unwrap().local_modes, modes, "{way:?}");
    }
}

#[test]
fn a_program_that_goes_on_is_not_said_to_hang() {
    for mpi in [OPENMPI, MPICH] {
        let program = [program_of(mpi), "healthy".to_owned()];
        let mut waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[]);
        assert!(comes_true(|| looked(&waiting).is_some_and(|now| now.ranks.len() == RANKS)));
        let looks = (0..20).filter_map(|_| looked(&waiting));
        let doing: BTreeSet<bool> = looks
            .flat_map(|now| {
                assert_eq!(now.cause, None, "{mpi:?}");
                now.ranks
            })
            .map(|rank| rank.doing == Doing::Moves)
            .collect();
        assert!(!doing.is_empty(), "{mpi:?}");
        fs::write(waiting.here.path().join("go"), "").unwrap();
        assert_eq!(waiting.end(), 0, "{mpi:?}");
    }
}
