//! What did each thread of a rank do, as events of OTF2? Those of a location follow each other, and regions are inside of each other
//! or apart. So calls of one track that overlap, as several threads may share it, get locations of their own.

use std::collections::{BTreeMap, HashMap};

use gyan_results::TimelinePeer;

use super::super::{MessagePart, PHASES, Slice, SliceMessage, TraceWriter, Track};
use super::ArchiveReferences;
use super::functions::{collective, sent_and_received};
use super::library::{ArchiveEvent, ArchiveMessage, ArchiveOperation, UNDEFINED};

/// The events of one rank.
pub(super) struct RankRecord<'a> {
    job: &'a ArchiveReferences,
    pub(super) rank: u32,
    pub(super) host: String,
    names: BTreeMap<u32, String>,
    /// By thread, the calls that follow each other.
    lanes: BTreeMap<u32, Vec<Vec<RecordedCall>>>,
    phases: Vec<RecordedPhase>,
    /// How many collective operations there were so far, by communicator.
    collectives: HashMap<u64, u64>,
    /// Those that were started and have not completed yet, by request.
    started: HashMap<u64, ArchiveOperation>,
}

struct RecordedCall {
    begun_ns: u64,
    ended_ns: u64,
    region: u32,
    called_at: Option<u32>,
    /// When it begins, and when it ends.
    first: Vec<ArchiveEvent>,
    last: Vec<ArchiveEvent>,
}

struct RecordedPhase {
    begun_ns: u64,
    ended_ns: u64,
    region: u32,
}

/// The events of a location, each with its time in ns.
pub(super) struct RecordedLocation {
    pub(super) name: String,
    pub(super) events: Vec<(u64, ArchiveEvent)>,
}

impl<'a> RankRecord<'a> {
    pub(super) fn new(job: &'a ArchiveReferences, rank: u32) -> RankRecord<'a> {
        RankRecord {
            job,
            rank,
            host: String::new(),
            names: BTreeMap::new(),
            lanes: BTreeMap::new(),
            phases: Vec::new(),
            collectives: HashMap::new(),
            started: HashMap::new(),
        }
    }

    /// The message events of a call: those of its begin, and those of its end.
    fn message(&self, message: &SliceMessage, call: &mut RecordedCall) {
        let job = &self.job.knowledge;
        let Some(communicator) = job.communicators.get(&message.communicator) else { return };
        if !job.is_finished(message.arrow) {
            return;
        }
        let request = message.request;
        let own = |bytes| ArchiveMessage {
            peer: message.peer,
            communicator: communicator.reference,
            tag: message.tag.unsigned_abs(),
            bytes,
        };
        match (message.part, request) {
            (MessagePart::Sent, _) => {
                call.first.push(ArchiveEvent::Send { message: own(message.bytes), request });
            }
            (MessagePart::Posted, Some(request)) => {
                call.first.push(ArchiveEvent::Posted { request });
            }
            (MessagePart::SendCompleted, Some(request)) => {
                call.last.push(ArchiveEvent::SendCompleted { request });
            }
            (MessagePart::Received, _) => {
                let message = own(job.bytes(message.arrow));
                call.last.push(ArchiveEvent::Received { message, request });
            }
            (MessagePart::Posted | MessagePart::SendCompleted, None) => {}
        }
    }

    /// The events of a collective operation that all ranks of its communicator have.
    fn collective(&mut self, slice: &Slice, call: &mut RecordedCall) {
        let Some(function) = collective(slice.name) else { return };
        let number = slice.communicator.and_then(|communicator| communicator.number);
        let known = number.and_then(|number| self.job.knowledge.communicators.get(&number));
        let (Some(number), Some(communicator)) = (number, known) else { return };
        let count = self.collectives.entry(number).or_default();
        let before = std::mem::replace(count, *count + 1);
        if !communicator.is_of_all(self.rank, before) {
            return;
        }
        let root = match slice.peer {
            TimelinePeer::Rank(root) => root,
            _ => UNDEFINED,
        };
        let is_root = communicator.ranks.get(root as usize) == Some(&self.rank);
        let (sent, received) = sent_and_received(slice.name, slice.bytes, is_root);
        let operation = ArchiveOperation {
            operation: function.operation,
            communicator: communicator.reference,
            root,
            sent,
            received,
        };
        if !function.is_nonblocking {
            call.first.push(ArchiveEvent::CollectiveBegin);
            call.last.push(ArchiveEvent::CollectiveEnd(operation));
        } else if let Some(request) = slice.started {
            call.first.push(ArchiveEvent::CollectiveRequested { request });
            self.started.insert(request, operation);
        }
    }

    /// The locations of the rank, the first of which stands for it.
    pub(super) fn into_locations(mut self) -> Vec<RecordedLocation> {
        let mut lanes: Vec<(String, Vec<RecordedCall>)> = Vec::new();
        for (thread, of_thread) in self.lanes {
            let name = self.names.remove(&thread).unwrap_or_default();
            for (number, calls) in (1..).zip(of_thread) {
                let name = if number == 1 { name.clone() } else { format!("{name}, {number}") };
                lanes.push((name, calls));
            }
        }
        if lanes.is_empty() {
            lanes.push(("MPI".to_owned(), Vec::new()));
        }
        // With several threads a phase is of none of them.
        if lanes.len() > 1 && !self.phases.is_empty() {
            lanes.push(("phases".to_owned(), Vec::new()));
        }
        let with_phases = lanes.len() - 1;
        let places = (0..).zip(lanes);
        let located = places.map(|(place, (name, calls))| {
            let phases =
                if place == with_phases { std::mem::take(&mut self.phases) } else { Vec::new() };
            RecordedLocation { name, events: in_order(calls, phases) }
        });
        located.collect()
    }
}

/// The events of calls that follow each other, and of phases, which begin and end between two of them.
fn in_order(calls: Vec<RecordedCall>, phases: Vec<RecordedPhase>) -> Vec<(u64, ArchiveEvent)> {
    let mut changes = phases
        .into_iter()
        .flat_map(|RecordedPhase { begun_ns, ended_ns, region }| {
            let enter = ArchiveEvent::Enter { region, called_at: None };
            [(begun_ns, enter), (ended_ns, ArchiveEvent::Leave { region })]
        })
        .peekable();
    let mut events = Vec::with_capacity(2 * calls.len());
    let mut now = 0;
    for call in calls {
        while let Some((ns, change)) = changes.next_if(|(ns, _)| *ns <= call.begun_ns) {
            now = ns.max(now);
            events.push((now, change));
        }
        let RecordedCall { begun_ns, ended_ns, region, called_at, first, last } = call;
        let begun = begun_ns.max(now);
        now = ended_ns.max(begun);
        events.push((begun, ArchiveEvent::Enter { region, called_at }));
        events.extend(first.into_iter().map(|event| (begun, event)));
        events.extend(last.into_iter().map(|event| (now, event)));
        events.push((now, ArchiveEvent::Leave { region }));
    }
    for (ns, change) in changes {
        now = ns.max(now);
        events.push((now, change));
    }
    events
}

impl TraceWriter for RankRecord<'_> {
    fn track(&mut self, track: &Track) {
        self.host.clone_from(&track.host);
        if let Some(thread) = track.thread.filter(|_| !track.is_counter) {
            self.names.insert(thread, track.name.clone());
        }
    }

    fn has_values(&self) -> bool {
        false
    }

    fn value(&mut self, _track: &Track, _ns: u64, _value: f64) {}

    fn slice(&mut self, slice: &Slice) {
        let Slice { begun_ns, ended_ns, .. } = *slice;
        let regions = if slice.thread == PHASES { &self.job.phases } else { &self.job.functions };
        let Some(region) = regions.get(slice.name).copied() else { return };
        if slice.thread == PHASES {
            self.phases.push(RecordedPhase { begun_ns, ended_ns, region });
            return;
        }
        let called_at = slice.place.and_then(|place| self.job.texts.numbers.get(place).copied());
        let (first, last) = (Vec::new(), Vec::new());
        let mut call = RecordedCall { begun_ns, ended_ns, region, called_at, first, last };
        self.collective(slice, &mut call);
        for request in &slice.completed {
            if let Some(operation) = self.started.remove(request) {
                call.last.push(ArchiveEvent::CollectiveCompleted { operation, request: *request });
            }
        }
        for message in &slice.messages {
            self.message(message, &mut call);
        }
        let lanes = self.lanes.entry(slice.thread).or_default();
        let is_free = |lane: &&mut Vec<RecordedCall>| {
            lane.last().is_none_or(|last| last.ended_ns <= begun_ns)
        };
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(call),
            None => lanes.push(vec![call]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_changes_inside_of_a_call_changes_behind_it() {
        let call = |begun_ns, ended_ns| RecordedCall {
            begun_ns,
            ended_ns,
            region: 1,
            called_at: None,
            first: Vec::new(),
            last: vec![ArchiveEvent::SendCompleted { request: 7 }],
        };
        let phase = |begun_ns, ended_ns| RecordedPhase { begun_ns, ended_ns, region: 2 };
        let [enter, enter_phase] =
            [1, 2].map(|region| ArchiveEvent::Enter { region, called_at: None });
        let [leave, leave_phase] = [1, 2].map(|region| ArchiveEvent::Leave { region });
        let ended = ArchiveEvent::SendCompleted { request: 7 };
        let events = in_order(vec![call(10, 20), call(30, 40)], vec![phase(5, 15), phase(25, 50)]);
        let expected = [
            (5, enter_phase),
            (10, enter),
            (20, ended),
            (20, leave),
            (20, leave_phase),
            (25, enter_phase),
            (30, enter),
            (40, ended),
            (40, leave),
            (50, leave_phase),
        ];
        assert_eq!(events, expected);
    }
}
