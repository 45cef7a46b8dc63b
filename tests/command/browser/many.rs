//! The page of 100,000 ranks, only from their summary: the profiles are those that benches/scale/measure.py
//! makes from the same fixture, reduced without ever being files.

use std::path::{Path, PathBuf};
use std::thread;

use gyan_results::{
    MessageWaitingSummary, PairWaiting, PeerTraffic, Peers, RankProfile, Reduction, Summary,
    rank_file_name, read_rank,
};

use crate::common::root;

const RANKS: u32 = 100_000;
const RANKS_OF_A_HOST: u32 = 64;
pub(super) const ODD: &str = "node00777";

/// A directory with the summary.
pub(super) fn ranks(place: &Path) -> PathBuf {
    let directory = place.join("many");
    std::fs::create_dir(&directory).unwrap();
    let mut file = std::fs::File::create(directory.join("summary.json")).unwrap();
    let summary = Summary { message_waiting: Some(waiting()), ..summary() };
    gyan_results::write_summary(&mut file, &summary).unwrap();
    directory
}

fn summary() -> Summary {
    let of = |rank: u32| {
        let file = root().join("tests/fixtures/gyan.rank-1-running").join(rank_file_name(rank));
        let mut profile = read_rank(&file).unwrap();
        // The same on a smaller scale: enough for tables, and the test is quick.
        profile.pvars.truncate(3);
        profile.calls.truncate(4);
        profile.phases.truncate(1);
        profile.coverage.skipped.clear();
        profile.cvars.truncate(1);
        profile.knobs.clear();
        profile
    };
    let profiles = [0, 1, 2, 3].map(of);
    let threads = 4;
    let part = |part: u32| {
        let mut profiles = profiles.clone();
        let mut reduction = Reduction::default();
        for rank in (RANKS / threads * part)..(RANKS / threads * (part + 1)) {
            let profile = &mut profiles[rank as usize % 4];
            change(profile, rank);
            reduction.add(&rank_file_name(rank), profile);
        }
        reduction
    };
    let whole = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|at| scope.spawn(move || part(at))).collect();
        let mut parts = parts.into_iter().map(|part| part.join().unwrap());
        let mut whole = parts.next().unwrap();
        parts.for_each(|part| whole.merge(part));
        whole
    });
    whole.finish().unwrap()
}

/// Many ranks wait for one in the middle, and each of the first ones waits for the next one.
fn waiting() -> MessageWaitingSummary {
    let pair = |rank: u32, late_rank: u32, waiting_s: f64| PairWaiting {
        rank,
        late_rank,
        waiting_s,
        messages: 8,
        compared: 8,
        share_there: 1.0,
        ..PairWaiting::default()
    };
    let for_one = (0..2048).map(|at| pair(at * 48, RANKS / 2, 2.0));
    let for_next = (0..2048).map(|rank| pair(rank, rank + 1, 0.5));
    MessageWaitingSummary {
        messages: 1 << 20,
        paired: 1 << 20,
        compared: 1 << 15,
        // As much again is not in the pairs that are kept.
        late_senders_s: 10_240.0,
        late_senders_error_s: Some(0.0),
        late_receivers_error_s: Some(0.0),
        pairs: for_one.chain(for_next).collect(),
        ..MessageWaitingSummary::default()
    }
}

/// Turns it into that of another rank.
fn change(profile: &mut RankProfile, rank: u32) {
    let mut dice = (u64::from(rank) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut roll = || {
        // xorshift64 (Marsaglia, 2003).
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    (profile.rank, profile.size) = (rank, RANKS);
    profile.host = format!("node{:05}", rank / RANKS_OF_A_HOST);
    for call in &mut profile.calls {
        call.count = roll() >> 24;
        call.time_s = call.time_s.map(|_| (roll() >> 40) as f64 * 1e-7);
    }
    let next = |by: u32| PeerTraffic {
        rank: Some((rank + by) % RANKS),
        number: u64::from(by),
        bytes: u64::from(by) * 1_000_000,
    };
    profile.peers = Some(Peers { messages: [1, 700].map(next).into(), accesses: Vec::new() });
    let in_mpi = (roll() >> 11) as f64 / (1_u64 << 53) as f64;
    if let Some(of) = &mut profile.in_mpi {
        // One host is far from the others.
        of.share = if profile.host == ODD { 0.7 } else { 0.2 } + 0.1 * in_mpi;
        of.time_s = of.share * profile.job.elapsed_s;
    }
}
