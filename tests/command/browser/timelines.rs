//! The page of a run with a timeline: four ranks, of which one comes late to every barrier.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gyan_results::{
    Ending, TIMELINE_SCHEMA, TimelineClock, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineKind, TimelineRing, rank_file_name, timeline_file_name, write_timeline,
};

use crate::common::root;

const RANKS: u32 = 4;
const BARRIERS: u64 = 300;
const LATE_RANK: u32 = 2;

/// A directory with profiles and timelines.
pub(super) fn recorded(place: &Path) -> PathBuf {
    let directory = place.join("recorded");
    fs::create_dir(&directory).unwrap();
    for rank in 0..RANKS {
        let name = rank_file_name(rank);
        let profile = root().join("tests/fixtures/gyan.rank-1-quickstart").join(&name);
        fs::copy(profile, directory.join(&name)).unwrap();
        write(&directory.join(timeline_file_name(rank)), rank);
    }
    directory
}

fn write(file: &Path, rank: u32) {
    let barrier = |number: u64| {
        let begun = number * 10_000 + if rank == LATE_RANK { 6_000 } else { 0 };
        let took = (number + 1) * 10_000 - 3_000 - begun;
        TimelineEvent { communicator: 1, took, ..TimelineEvent::new(TimelineKind::Call(0), begun) }
    };
    let words = (0..BARRIERS).map(|number| barrier(number).packed().map(u64::to_le_bytes));
    let events: Vec<u8> = words.flatten().flatten().collect();
    let world = TimelineCommunicator {
        number: Some("0000000000000001".into()),
        size: RANKS,
        rank: Some(rank),
        ..TimelineCommunicator::default()
    };
    let clock = TimelineClock { now_ticks: 1 << 40, ns_per_tick: 1.0, ..TimelineClock::default() };
    let header = TimelineHeader {
        schema: TIMELINE_SCHEMA.into(),
        rank,
        size: RANKS,
        recorded: BARRIERS,
        ended: Some(Ending::Finalize),
        functions: vec!["MPI_Barrier".into()],
        communicators: vec![world],
        clock,
        ..TimelineHeader::default()
    };
    let ring = TimelineRing { recorded: BARRIERS, events: &events };
    write_timeline(&mut File::create(file).unwrap(), &header, &[ring]).unwrap();
}
