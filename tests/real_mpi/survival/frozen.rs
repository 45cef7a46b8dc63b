//! A file system that stops answering while a program runs.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::live::{AT_ONCE, Waiting};
use crate::common::{MPIS, comes_true, known_live, profiles, ranks_that_left, run, succeed};
use crate::faults::inject;

/// An ext4 in a file, for as long as this lives. While it is frozen, any process that writes to it waits and
/// cannot be killed, as with a file server that is gone.
pub(crate) struct Disk {
    here: TempDir,
}

impl Disk {
    /// None if there are no loop devices.
    pub(crate) fn new() -> Option<Disk> {
        let here = TempDir::new().unwrap();
        let image = here.path().join("image");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let disk = Disk { here };
        fs::create_dir(disk.root()).unwrap();
        succeed(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let mounted = run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(disk.root()));
        if mounted.code == 0 {
            return Some(disk);
        }
        assert!(std::env::var_os("CI").is_none(), "no loop device: {}", mounted.stderr);
        eprintln!("skipped: no loop device can be mounted here");
        None
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.here.path().join("disk")
    }

    /// Freezes it (`-f`) or thaws it (`-u`).
    pub(crate) fn freeze(&self, how: &str) {
        succeed(Command::new("fsfreeze").arg(how).arg(self.root()));
    }

    /// Leaves no room on it for anybody.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.root().join("filling")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // After a failed test it is still frozen.
        run(Command::new("fsfreeze").arg("-u").arg(self.root()));
        comes_true(|| run(Command::new("umount").arg(self.root())).code == 0);
    }
}

#[test]
fn a_program_goes_on_while_its_file_system_is_frozen_and_ends_in_time() {
    let Some(disk) = Disk::new() else { return };
    for mpi in MPIS {
        let fault = inject(
            "surroundings",
            "a file system that is frozen while the program runs, until after its end",
            "the program goes on and ends, the profiles are in /tmp until it is thawed, one line",
        );
        let temporary = TempDir::new().unwrap();
        let output = disk.root().join(mpi.name);
        let settings = [
            AT_ONCE,
            ("GYAN_OUTPUT", output.to_str().unwrap()),
            ("GYAN_WRITE_TIMEOUT", "1s"),
            ("TMPDIR", temporary.path().to_str().unwrap()),
        ];
        let mut waiting = Waiting::start(mpi, &settings);
        assert!(comes_true(|| known_live(&output, &[]).len() == 2), "{mpi:?}: no live file");
        disk.freeze("-f");
        waiting.goes_on();
        let said = waiting.stderr();
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("gyan: ")).collect();
        let [line] = lines[..] else { panic!("{mpi:?}: not one line: {said}") };
        let (what, elsewhere) = line.rsplit_once(" are in ").unwrap();
        assert!(what.contains("not written within 1s (GYAN_WRITE_TIMEOUT)"), "{mpi:?}: {line}");
        profiles(Path::new(elsewhere), 2);
        disk.freeze("-u");
        // Work that nobody waits for any more is still done.
        assert!(ranks_that_left(&output).iter().eq(&[0, 1]), "{mpi:?}");
        profiles(&output, 2);
        assert!(!Path::new(elsewhere).exists(), "{mpi:?}");
        fault.survived();
    }
}
