//! A full disk, pipes and devices where files were expected: one line, the right exit code, and nothing that belongs to
//! others is harmed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use gyan_results::rank_file_name;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::common::{Outcome, command, root, run_within};

const RUN: &str = "tests/fixtures/gyan.rank-1-running";

/// What a shell says in a directory, where `gyan` is on the path.
fn in_shell(directory: &TempDir, line: &str) -> Outcome {
    let bin = Path::new(env!("CARGO_BIN_EXE_gyan")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = command(&["bash", "-c", line]);
    run_within(shell.current_dir(directory).env("PATH", path), Duration::from_secs(60))
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn what_cannot_be_printed_is_one_line() {
    let here = TempDir::new().unwrap();
    let run = root().join(RUN).display().to_string();
    for (line, code) in [
        ("gyan completions bash >/dev/full", 2),
        (&format!("gyan report {run} >/dev/full"), 2),
        (&format!("gyan pack {run} -o packed.gyan.zst >/dev/full"), 2),
        (&format!("cp -r {run} run && gyan reduce run >/dev/full"), 2),
    ] {
        let outcome = in_shell(&here, line);
        assert_eq!(outcome.code, code, "{line}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{line}: {}", outcome.stderr);
        assert!(outcome.stderr.lines().count() <= 1, "{line}: {}", outcome.stderr);
    }
    assert!(here.path().join("packed.gyan.zst").is_file(), "what was written is there");
}

#[test]
fn pipes_and_devices_are_refused_and_not_waited_for() {
    let here = TempDir::new().unwrap();
    pipe(&here.path().join("pipe"));
    let directory = here.path().join("run");
    fs::create_dir(&directory).unwrap();
    pipe(&directory.join(rank_file_name(0)));
    let with_device = here.path().join("device");
    fs::create_dir(&with_device).unwrap();
    symlink("/dev/zero", with_device.join(rank_file_name(0))).unwrap();
    for line in ["report", "check", "scale", "diff", "unpack", "pack", "reduce"]
        .iter()
        .flat_map(|command| ["pipe", "run", "device"].map(|on| format!("gyan {command} {on} {on}")))
    {
        let outcome = in_shell(&here, &line);
        // 1 for data that is incomplete, 2 for none, and for a command that takes one argument.
        assert!([1, 2].contains(&outcome.code), "{line}: {} {}", outcome.code, outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{line}: {}", outcome.stderr);
    }
}

#[test]
fn a_result_is_written_through_a_link_and_others_may_read_it() {
    let here = TempDir::new().unwrap();
    let (target, link) = (here.path().join("target.html"), here.path().join("link.html"));
    fs::write(&target, "before").unwrap();
    symlink(&target, &link).unwrap();
    let run = root().join(RUN).display().to_string();
    let page = |name: &str, force: &str| {
        in_shell(&here, &format!("umask 022; gyan report --format html {force} -o {name} {run}"))
    };
    assert_eq!(page("link.html", "--force").code, 0);
    assert!(link.is_symlink(), "the link stays");
    assert!(fs::read_to_string(&target).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(page("new.html", "").code, 0);
    let export = format!("umask 022; gyan export --format csv --table calls -o tables/ {run}");
    let exported = in_shell(&here, &export);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    for name in ["new.html", "tables/calls.csv"] {
        let mode = fs::metadata(here.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{name}");
    }
}

#[test]
fn an_index_that_claims_more_than_there_can_be_takes_no_memory() {
    let here = TempDir::new().unwrap();
    let run = root().join(RUN).display().to_string();
    assert_eq!(in_shell(&here, &format!("gyan pack {run} -o whole.gyan.zst")).code, 0);
    let whole = fs::read(here.path().join("whole.gyan.zst")).unwrap();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let footer = whole.len() - 28;
    let (at, length) = (number(footer + 8), number(footer + 16));
    let (at, length) = (usize::try_from(at).unwrap(), usize::try_from(length).unwrap());
    let index = zstd::decode_all(&whole[at..at + length]).unwrap();
    for claim in [u64::MAX / 2, 1 << 45, (1 << 30) + 1] {
        let mut index: serde_json::Value = serde_json::from_slice(&index).unwrap();
        index["frames"][0]["text"] = claim.into();
        let index = zstd::encode_all(index.to_string().as_bytes(), 3).unwrap();
        let content = [(at as u64).to_le_bytes(), (index.len() as u64).to_le_bytes()].concat();
        let (magic, size) = (0x184D_2A5E_u32.to_le_bytes(), 20_u32.to_le_bytes());
        let sum = crc32fast::hash(&content).to_le_bytes();
        let bad = [&whole[..at], &index, &magic, &size, &content, &sum].concat();
        fs::write(here.path().join("bad.gyan.zst"), bad).unwrap();
        // Its index is not believed, and is rebuilt.
        let outcome = in_shell(&here, "ulimit -v 4000000; gyan report bad.gyan.zst");
        assert_eq!(outcome.code, 1, "{claim}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("has no index"), "{claim}: {}", outcome.stderr);
    }
}
