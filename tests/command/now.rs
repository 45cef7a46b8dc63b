//! `gyan now` of live files: what many hosts wrote is one answer.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use gyan_results::{
    CommunicatorNow, Ending, HangKind, JobNow, LiveEntry, Peer, RankNow, live_file_name,
    rank_file_name, read_rank, write_live,
};
use tempfile::TempDir;

use crate::common::{gyan, root, run, succeed};

const EXAMPLE: &str = "tests/fixtures/gyan.rank-1-running";
/// Set to measure a larger job (benches/results/measurements.md).
const RANKS_VARIABLE: &str = "GYAN_TEST_RANKS";

fn waits_in(function: &str) -> RankNow {
    RankNow {
        in_mpi: true,
        function: Some(function.into()),
        number: 1204,
        since_ms: 1_700_000_000_000,
        communicator: Some(CommunicatorNow::World),
        ..RankNow::default()
    }
}

/// A job on 100 hosts. Rank 17 receives from the last rank, which is in `MPI_Allreduce` with all others.
fn job(ranks: u32) -> TempDir {
    let here = TempDir::new().unwrap();
    let mut profile = read_rank(&root().join(EXAMPLE).join(rank_file_name(0))).unwrap();
    (profile.size, profile.end.how) = (ranks, Ending::Running);
    let source = Some(Peer::World(ranks - 1));
    for host in 0..100 {
        profile.host = format!("node{host}");
        let of_host = (0..ranks).filter(|rank| rank % 100 == host).map(|rank| {
            profile.rank = rank;
            let now = match rank {
                17 => RankNow { source, tag: Some(77), ..waits_in("MPI_Recv") },
                _ => waits_in("MPI_Allreduce"),
            };
            let text = serde_json::to_vec(&profile).unwrap();
            LiveEntry { now: Ok(Some(now)), ..LiveEntry::not_seen(rank, false, &text) }
        });
        let of_host: Vec<LiveEntry> = of_host.collect();
        let mut file = Vec::new();
        write_live(&mut file, &profile.job.id, &profile.host, &of_host).unwrap();
        fs::write(here.path().join(live_file_name(&profile.host, host)), file).unwrap();
    }
    here
}

#[test]
fn a_directory_that_is_to_be_watched_may_come_later() {
    let here = TempDir::new().unwrap();
    let (made, watched) = (here.path().join("made"), here.path().join("run"));
    let mut watch = gyan();
    watch.arg("watch").arg(&watched).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(watch.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let waiting = format!(
        "gyan: {}: is not there yet; waiting for the run that makes it\n",
        watched.display()
    );
    assert_eq!(said, waiting);
    fs::create_dir(&made).unwrap();
    let profile = rank_file_name(0);
    fs::copy(root().join(EXAMPLE).join(&profile), made.join(&profile)).unwrap();
    fs::rename(made, &watched).unwrap();
    let outcome = watch.wait_with_output().unwrap();
    let shown = String::from_utf8(outcome.stdout).unwrap();
    assert!(outcome.status.success() && shown.starts_with("The job has ended."), "{shown}");
    // Where there is no place for it, it is a spelling mistake.
    let outcome = run(gyan().arg("watch").arg(here.path().join("no/place")));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
}

#[test]
fn what_a_hundred_hosts_wrote_is_one_answer() {
    let ranks = std::env::var(RANKS_VARIABLE).map_or(1000, |ranks| ranks.parse().unwrap());
    let here = job(ranks);
    let outcome = succeed(gyan().args(["now", "--format", "json"]).arg(here.path()));
    let now: JobNow = serde_json::from_str(&outcome.stdout).unwrap();
    let groups: Vec<usize> = now.groups.iter().map(|group| group.ranks.len()).collect();
    assert_eq!(groups, [ranks as usize - 1, 1]);
    let cause = now.cause.unwrap();
    assert_eq!((cause.kind, cause.ranks), (HangKind::Deadlock, vec![17, ranks - 1]));
}
