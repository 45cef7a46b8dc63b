//! Timelines for tests.

use gyan_results::{
    Ending, TIMELINE_SCHEMA, TimelineClock, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineKind, TimelineRing, write_timeline,
};

/// A call of a function by its number, on the communicator of all ranks, from one time to another one, in ns.
pub(super) fn call(function: u16, (begun, ended): (u64, u64)) -> TimelineEvent {
    TimelineEvent {
        communicator: 1,
        took: ended - begun,
        ..TimelineEvent::new(TimelineKind::Call(function), begun)
    }
}

/// The header of a rank of `size` ranks that ended well, on a clock of 1 ns.
pub(super) fn header(rank: u32, size: u32, functions: &[&str]) -> TimelineHeader {
    let world = TimelineCommunicator {
        number: Some("0000000000000001".into()),
        size,
        rank: Some(rank),
        ..TimelineCommunicator::default()
    };
    let clock = TimelineClock { now_ticks: 1 << 40, ns_per_tick: 1.0, ..TimelineClock::default() };
    TimelineHeader {
        schema: TIMELINE_SCHEMA.into(),
        rank,
        size,
        ended: Some(Ending::Finalize),
        functions: functions.iter().map(|function| (*function).to_owned()).collect(),
        communicators: vec![world],
        clock,
        ..TimelineHeader::default()
    }
}

/// The file of a rank. `lost`: how many events before these were overwritten.
pub(super) fn file(header: TimelineHeader, lost: u64, events: &[TimelineEvent]) -> Vec<u8> {
    let left = events.len() as u64;
    let header = TimelineHeader { recorded: lost + left, ..header };
    let words = events.iter().map(|event| event.packed().map(u64::to_le_bytes));
    let events: Vec<u8> = words.flatten().flatten().collect();
    let mut file = Vec::new();
    let ring = TimelineRing { recorded: left, events: &events };
    write_timeline(&mut file, &header, &[ring]).unwrap();
    file
}
