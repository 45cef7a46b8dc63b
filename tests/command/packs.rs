//! `gyan pack` and `gyan unpack`: nothing is lost, reports equal those of the directory, and damage is reported
//! and costs no more than what was compressed together with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gyan_results::{
    Ending, LiveEntry, RankProfile, Summary, live_file_name, rank_file_name, read_rank,
    read_summary, write_live,
};
use tempfile::TempDir;

use crate::common::{Outcome, gyan, root, run};

const RUNNING: &str = "tests/fixtures/gyan.rank-1-running";
/// The number of profiles that are compressed together.
const TOGETHER: u32 = 16;

/// A directory `run` with this many ranks, whose receives tell them apart.
fn directory(ranks: u32) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    for rank in 0..ranks {
        let mut profile = read_rank(&root().join(RUNNING).join(rank_file_name(rank % 4))).unwrap();
        (profile.rank, profile.size) = (rank, ranks);
        profile.host = format!("node{rank}");
        profile.calls[0].count += u64::from(rank) * 7919;
        write(&directory.path().join("run"), &profile);
    }
    directory
}

fn write(directory: &Path, profile: &RankProfile) {
    let text = serde_json::to_string(profile).unwrap() + "\n";
    fs::write(directory.join(rank_file_name(profile.rank)), text).unwrap();
}

fn run_in(directory: &TempDir, arguments: &[&str]) -> Outcome {
    run(gyan().args(arguments).current_dir(directory.path()))
}

fn done(directory: &TempDir, arguments: &[&str]) -> Outcome {
    let outcome = run_in(directory, arguments);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
    outcome
}

fn packed(ranks: u32) -> (TempDir, PathBuf) {
    let directory = directory(ranks);
    done(&directory, &["pack", "run"]);
    let pack = directory.path().join("run.gyan.zst");
    (directory, pack)
}

/// The result of reducing a pack: the summary, and the lines on stderr.
fn reduced(directory: &TempDir) -> (i32, Summary, Vec<String>) {
    let outcome = run_in(directory, &["reduce", "run.gyan.zst"]);
    let summary = read_summary(&directory.path().join("run.summary.json"));
    let lines = outcome.stderr.lines().map(str::to_owned).collect();
    (outcome.code, summary.unwrap(), lines)
}

#[test]
fn what_is_unpacked_is_what_was_packed() {
    let (directory, pack) = packed(3 * TOGETHER + 1);
    assert_eq!(fs::metadata(&pack).unwrap().permissions().mode() & 0o777, 0o600);
    done(&directory, &["unpack", "run.gyan.zst", "again"]);
    for rank in 0..=3 * TOGETHER {
        let name = rank_file_name(rank);
        let of = |place: &str| fs::read(directory.path().join(place).join(&name)).unwrap();
        assert_eq!(of("run"), of("again"), "{name}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "a temporary file is left");
}

#[test]
fn reports_of_a_pack_are_those_of_the_directory() {
    let (directory, _) = packed(TOGETHER + 3);
    for options in [
        &["--all"][..],
        &["--format", "json"],
        &["--queues"],
        &["--phase=step*"],
        &["--series", "*unexpected*"],
        &["--series", "*", "--format", "csv"],
    ] {
        let of = |place| done(&directory, &[&["report", place], options].concat()).stdout;
        // Advice names what the report is of.
        let of_pack = of("run.gyan.zst").replace(" run.gyan.zst", " run");
        assert_eq!(of("run"), of_pack, "{options:?}");
    }
    done(&directory, &["reduce", "run"]);
    let of_directory = read_summary(&directory.path().join("run/summary.json")).unwrap();
    assert_eq!(reduced(&directory).1, of_directory);
    let phases = done(&directory, &["report", "--phase", "run.gyan.zst"]);
    assert!(phases.stdout.contains("step/exchange"), "{}", phases.stdout);
}

#[test]
fn nothing_is_overwritten_or_removed_unless_it_is_asked_for() {
    let (directory, pack) = packed(2);
    let before = fs::read(&pack).unwrap();
    for (arguments, expected) in [
        (&["pack", "run"][..], "run.gyan.zst: already exists; name another file"),
        (&["unpack", "run.gyan.zst"], "run: holds profiles; name another directory"),
    ] {
        let outcome = run_in(&directory, arguments);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
    assert_eq!(fs::read(&pack).unwrap(), before);
    assert!(directory.path().join("run/rank-000001.json").exists());
    done(&directory, &["pack", "run", "--force", "--remove"]);
    assert_eq!(fs::read_dir(directory.path().join("run")).unwrap().count(), 0);
    done(&directory, &["unpack", "run.gyan.zst"]);
    assert!(directory.path().join("run/rank-000001.json").exists());
}

#[test]
fn a_damaged_byte_costs_what_was_compressed_with_it_and_is_said() {
    let (directory, pack) = packed(3 * TOGETHER);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&pack, bytes).unwrap();
    let (code, summary, lines) = reduced(&directory);
    assert_eq!(code, 1);
    let lost = summary.ranks.missing;
    assert!((1..=TOGETHER as usize).contains(&lost.len()), "{lost:?}");
    assert!(lost.iter().all(|rank| rank / TOGETHER == lost[0] / TOGETHER), "{lost:?}");
    // The first line identifies the file.
    let line =
        format!("run.gyan.zst: line {}: the profile of rank {} is damaged", lost[0] + 2, lost[0]);
    assert!(lines[0].contains(&line), "{}", lines[0]);
    let outcome = run_in(&directory, &["unpack", "run.gyan.zst", "again"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
    let files = fs::read_dir(directory.path().join("again")).unwrap().count();
    assert_eq!(files + lost.len(), 3 * TOGETHER as usize);
}

#[test]
fn of_a_pack_that_was_cut_short_every_whole_line_is_read() {
    let (directory, pack) = packed(3 * TOGETHER);
    let whole = fs::read(&pack).unwrap();
    let mut left = Vec::new();
    for share in [99, 80, 60, 45] {
        fs::write(&pack, &whole[..whole.len() * share / 100]).unwrap();
        let (code, summary, lines) = reduced(&directory);
        assert_eq!(code, 1);
        let about_index = lines.iter().filter(|line| line.contains("has no index"));
        assert_eq!(about_index.count(), 1, "{lines:?}");
        left.push(summary.ranks.reduced);
    }
    assert!(left.is_sorted_by(|a, b| a >= b) && left[0] >= 2 * TOGETHER, "{left:?}");
    assert!(left[3] >= TOGETHER, "{left:?}");
    // Without any byte of the index it says the same about all ranks.
    fs::write(&pack, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(reduced(&directory).1.ranks.reduced, 3 * TOGETHER);
    fs::write(&pack, &whole[..60]).unwrap();
    let outcome = run_in(&directory, &["report", "run.gyan.zst"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("is cut short before"), "{}", outcome.stderr);
}

#[test]
fn a_pack_without_index_and_with_a_damaged_byte_is_read_around_it() {
    let (directory, pack) = packed(3 * TOGETHER);
    let mut bytes = fs::read(&pack).unwrap();
    bytes.pop();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&pack, bytes).unwrap();
    let (code, summary, lines) = reduced(&directory);
    assert_eq!((code, summary.ranks.reduced), (1, 2 * TOGETHER));
    assert!(lines[0].contains("is damaged, and so may be those"), "{lines:?}");
}

#[test]
fn what_is_no_pack_is_said_in_one_line() {
    let directory = directory(1);
    let pack = directory.path().join("run.gyan.zst");
    let newer = zstd(b"{\"schema\":\"gyan.pack/2\"}\n");
    for (bytes, expected) in [
        (&b"some text"[..], "is neither a run directory nor a pack of one"),
        (b"", "is neither"),
        (&newer, "has schema gyan.pack/2, this gyan reads gyan.pack/1; update gyan"),
    ] {
        fs::write(&pack, bytes).unwrap();
        for command in ["report", "reduce", "unpack"] {
            let outcome = run_in(&directory, &[command, "run.gyan.zst"]);
            assert_eq!(outcome.code, 2, "{command}: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
            assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        }
    }
}

/// One frame, stored without compression (RFC 8878).
fn zstd(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    let header = [0x28, 0xB5, 0x2F, 0xFD, 0x20, length];
    [&header[..], &block[..3], text].concat()
}

#[test]
fn a_damaged_profile_stays_where_it_is() {
    let directory = directory(3);
    let damaged = directory.path().join("run/rank-000001.json");
    fs::write(&damaged, "{").unwrap();
    let outcome = run_in(&directory, &["pack", "run", "--remove"]);
    assert_eq!(outcome.code, 1);
    let expected = "run/rank-000001.json: is truncated";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("2 profiles packed"), "{}", outcome.stdout);
    let left: Vec<_> = fs::read_dir(directory.path().join("run")).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert!(damaged.exists());
}

#[test]
fn a_live_file_is_packed_as_what_it_knows_and_stays_while_its_process_may_be_there() {
    let directory = directory(2);
    let run = directory.path().join("run");
    let mut profile = read_rank(&run.join(rank_file_name(1))).unwrap();
    profile.end.how = Ending::Running;
    "another-node".clone_into(&mut profile.host);
    let text = serde_json::to_vec(&profile).unwrap();
    let mut file = Vec::new();
    write_live(&mut file, &profile.job.id, "another-node", &[LiveEntry::not_seen(1, false, &text)])
        .unwrap();
    let name = live_file_name("another-node", 7);
    fs::remove_file(run.join(rank_file_name(1))).unwrap();
    fs::write(run.join(&name), file).unwrap();
    let outcome = run_in(&directory, &["pack", "run", "--remove"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("its process may be running; packed"), "{}", outcome.stderr);
    let left: Vec<_> =
        fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [name.as_str()]);
    done(&directory, &["unpack", "run.gyan.zst", "again"]);
    let unpacked = read_rank(&directory.path().join("again").join(rank_file_name(1))).unwrap();
    assert_eq!(unpacked.end.how, Ending::Unknown);
    profile.end.how = Ending::Unknown;
    assert_eq!(unpacked, profile);
}
