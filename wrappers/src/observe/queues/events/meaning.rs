//! What do the events of receive queues mean? A table, and how to read their elements.

use wildmatch::WildMatch;

use crate::mpi::abi::Implementation;
use crate::mpi::libraries::quirks;
use crate::mpi::tool::{Element, EventType};

/// The meaning of the events of receive queues: libraries name them as they like.
struct Meaning {
    /// Pattern of the name.
    name: &'static str,
    what: What,
    /// The elements that are the rank of the sender in the communicator and the tag.
    source: usize,
    tag: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// A message arrived that no receive waited for.
    Came,
    /// Such a message was received.
    Went,
}

/// The events in Open MPI from version 6 on are about its life cycle (`mpi.initialization`,
/// `mpi.communicator_created` and others): they are counted, but say nothing about messages.
const MEANINGS: &[Meaning] = &[
    // MPICH, ch4, configured with --enable-mpit-events: source and tag, bound to nothing, so for all
    // communicators together.
    Meaning { name: "unexp_message_enqueued", what: What::Came, source: 0, tag: 1 },
    Meaning { name: "unexp_message_dequeued", what: What::Went, source: 0, tag: 1 },
];

/// How an event of a receive queue is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) what: What,
    /// Sender and tag; none when reading them kills.
    pub(super) elements: Option<(Element, Element)>,
}

impl Meaning {
    fn of(event: &EventType) -> Option<&'static Meaning> {
        MEANINGS.iter().find(|meaning| WildMatch::new(meaning.name).matches(&event.name))
    }

    /// The elements that hold sender and tag, if the event has them.
    fn elements(&self, event: &EventType) -> Option<(Element, Element)> {
        let element = |index: usize| {
            let datatype = (*event.elements.get(index)?)?;
            Some(Element { index: i32::try_from(index).ok()?, datatype })
        };
        element(self.source).zip(element(self.tag))
    }
}

/// How to read each event about messages, and a sentence about what cannot be told.
pub(super) fn understood(
    events: &[EventType],
    implementation: Implementation,
) -> (Vec<Option<Reading>>, Option<String>) {
    let known: Vec<Option<&Meaning>> = events.iter().map(Meaning::of).collect();
    let tells = |what| known.iter().flatten().any(|meaning| meaning.what == what);
    if !tells(What::Came) || !tells(What::Went) {
        // The length of a queue cannot be known from only one of its ends.
        return (vec![None; events.len()], None);
    }
    // If it cannot be read which message left, knowing which one came is useless.
    let unreadable = events.iter().zip(&known).find_map(|(event, meaning)| {
        let missing = (*meaning)?.elements(event).is_none().then_some("its elements are different");
        let why = quirks::reason_not_to_read_event(implementation, &event.name).or(missing)?;
        Some(format!(
            "event {}: {why}: messages are taken to leave the queue in the order in which they came, so \
             that the mean of T_IN_UNEX_Q is right, its maximum and histogram are estimates, and no peer \
             is known",
            event.name
        ))
    });
    let readings = events.iter().zip(known).map(|(event, meaning)| {
        let meaning = meaning?;
        let elements = if unreadable.is_none() { meaning.elements(event) } else { None };
        Some(Reading { what: meaning.what, elements })
    });
    (readings.collect(), unreadable)
}

#[cfg(test)]
mod tests {
    use gyan_results::Datatype;

    use super::*;
    use crate::mpi::abi::Bind;

    fn event(name: &str, elements: &[Option<Datatype>]) -> EventType {
        let bind = Some(Bind::NoObject);
        EventType { index: 0, name: name.into(), bind, elements: elements.to_vec() }
    }

    #[test]
    fn a_queue_of_which_one_end_is_told_has_no_length() {
        let both = [Some(Datatype::Int), Some(Datatype::Int)];
        let came = event("unexp_message_enqueued", &both);
        let (readings, sentence) = understood(std::slice::from_ref(&came), Implementation::Other);
        assert!(readings.iter().all(Option::is_none) && sentence.is_none());
        let went = event("unexp_message_dequeued", &both);
        let events = [came.clone(), event("other", &[]), went];
        let (readings, sentence) = understood(&events, Implementation::Other);
        let [Some(came_is), None, Some(went_is)] = readings.as_slice() else { panic!("readings") };
        assert_eq!((came_is.what, went_is.what), (What::Came, What::Went));
        assert!(came_is.elements.is_some() && went_is.elements.is_some() && sentence.is_none());
        // If the elements are not the known ones, nothing is read from either event.
        let events = [came, event("unexp_message_dequeued", &[Some(Datatype::Int)])];
        let (readings, sentence) = understood(&events, Implementation::Other);
        assert!(readings.iter().all(|one| one.is_some_and(|reading| reading.elements.is_none())));
        assert!(sentence.is_some_and(|text| text.contains("its elements are different")));
    }
}
