//! `gyan watch` of a running job, on a terminal and in a file.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::common::{MPIS, OPENMPI, comes_true, gyan};
use crate::hang::{RANKS, looked, program_of};
use crate::survival::live::{AT_ONCE, Waiting};

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
    for mpi in MPIS {
        let program = [program_of(mpi), "healthy".to_owned()];
        let mut waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[AT_ONCE]);
        assert!(comes_true(|| looked(&waiting).is_some_and(|now| now.ranks.len() == RANKS)));
        let mut watched = Watched::in_file(&waiting);
        assert!(watched.has_shown("calls a second"), "{mpi:?}");
        waiting.goes_on();
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
