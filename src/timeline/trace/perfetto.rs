//! Perfetto's trace as protocol buffers: the few messages and fields of `perfetto_trace.proto` that tracks, slices and arrows need,
//! with their numbers. A test reads them with the definitions that Perfetto publishes.

use std::collections::HashMap;

use super::{Argument, MessagePart, Slice, TraceWriter, Track};

/// Fields, as `MESSAGE_FIELD`.
const TRACE_PACKET: u32 = 1;
const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE: u32 = 10;
const PACKET_TRACK_EVENT: u32 = 11;
const PACKET_INTERNED: u32 = 12;
const PACKET_FLAGS: u32 = 13;
const PACKET_TRACK: u32 = 60;
const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PARENT: u32 = 5;
const TRACK_COUNTER: u32 = 8;
const TRACK_CHILDREN: u32 = 11;
const TRACK_RANK: u32 = 12;
const EVENT_ANNOTATION: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_NAME: u32 = 10;
const EVENT_TRACK: u32 = 11;
const EVENT_VALUE: u32 = 44;
const EVENT_FLOW: u32 = 47;
const EVENT_FLOW_END: u32 = 48;
const ANNOTATION_NAME: u32 = 1;
const ANNOTATION_INT: u32 = 4;
const ANNOTATION_TEXT: u32 = 17;
const INTERNED_NAMES: u32 = 2;
const INTERNED_ANNOTATIONS: u32 = 3;
const INTERNED_TEXTS: u32 = 29;
const ENTRY_NUMBER: u32 = 1;
const ENTRY_TEXT: u32 = 2;

/// `TrackEvent.Type`, `TrackDescriptor.ChildTracksOrdering` and `TracePacket.SequenceFlags`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
const CHILDREN_EXPLICIT: u64 = 3;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// A message of protocol buffers that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

/// Most messages are shorter.
const ROOM: usize = 96;

impl Message {
    fn new() -> Message {
        Message(Vec::with_capacity(ROOM))
    }

    #[allow(clippy::cast_possible_truncation)]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u32, number: u64) -> Message {
        self.varint(u64::from(field << 3));
        self.varint(number);
        self
    }

    fn fixed(mut self, field: u32, number: u64) -> Message {
        self.varint(u64::from(field << 3 | 1));
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn message(self, field: u32, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }
}

/// Texts that were written once, by their numbers from 1.
#[derive(Default)]
struct Interned(HashMap<String, u64>);

impl Interned {
    /// The number of a text; new ones are added to `data`.
    fn number(&mut self, text: &str, field: u32, data: &mut Message) -> u64 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.to_owned(), number);
        let entry = Message::default().number(ENTRY_NUMBER, number);
        let entry = entry.bytes(ENTRY_TEXT, text.as_bytes());
        *data = std::mem::take(data).message(field, &entry);
        number
    }
}

/// The packets of one rank.
pub(super) struct Packets {
    out: Vec<u8>,
    sequence: u64,
    names: Interned,
    annotations: Interned,
    texts: Interned,
}

impl Packets {
    /// `sequence`: above 0, and another one for each rank.
    pub(super) fn new(sequence: u64) -> Packets {
        let mut all = Packets {
            out: Vec::new(),
            sequence,
            names: Interned::default(),
            annotations: Interned::default(),
            texts: Interned::default(),
        };
        all.packet(Message::default().number(PACKET_FLAGS, STATE_CLEARED));
        all
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn packet(&mut self, packet: Message) {
        let packet = packet.number(PACKET_SEQUENCE, self.sequence);
        let mut out = Message(std::mem::take(&mut self.out));
        out = out.message(TRACE_PACKET, &packet);
        self.out = out.0;
    }

    fn event(&mut self, ns: u64, event: &Message, interned: &Message) {
        let mut packet = Message::new().number(PACKET_TIMESTAMP, ns);
        packet = packet.number(PACKET_FLAGS, NEEDS_STATE);
        if !interned.0.is_empty() {
            packet = packet.message(PACKET_INTERNED, interned);
        }
        self.packet(packet.message(PACKET_TRACK_EVENT, event));
    }
}

impl TraceWriter for Packets {
    fn track(&mut self, track: &Track) {
        let mut of = Message::default().number(TRACK_UUID, track.id);
        of = of.bytes(TRACK_NAME, track.name.as_bytes());
        of = of.number(TRACK_CHILDREN, CHILDREN_EXPLICIT).number(TRACK_RANK, track.order);
        if let Some(parent) = track.parent {
            of = of.number(TRACK_PARENT, parent);
        }
        if track.is_counter {
            of = of.message(TRACK_COUNTER, &Message::default());
        }
        self.packet(Message::default().message(PACKET_TRACK, &of));
    }

    fn value(&mut self, track: &Track, ns: u64, value: f64) {
        let event = Message::new().number(EVENT_TYPE, COUNTER).number(EVENT_TRACK, track.id);
        self.event(ns, &event.fixed(EVENT_VALUE, value.to_bits()), &Message::default());
    }

    fn slice(&mut self, slice: &Slice) {
        let mut interned = Message::default();
        let name = self.names.number(slice.name, INTERNED_NAMES, &mut interned);
        let on_track =
            |kind| Message::new().number(EVENT_TYPE, kind).number(EVENT_TRACK, slice.track);
        let mut begin = on_track(SLICE_BEGIN).number(EVENT_NAME, name);
        for (name, argument) in slice.arguments() {
            let name = self.annotations.number(name, INTERNED_ANNOTATIONS, &mut interned);
            let of = Message::new().number(ANNOTATION_NAME, name);
            let of = match argument {
                #[allow(clippy::cast_sign_loss)]
                Argument::Number(number) => of.number(ANNOTATION_INT, number as u64),
                Argument::Text(text) => {
                    let text = self.texts.number(text, INTERNED_TEXTS, &mut interned);
                    of.number(ANNOTATION_TEXT, text)
                }
            };
            begin = begin.message(EVENT_ANNOTATION, &of);
        }
        for arrow in slice.arrows(MessagePart::Sent) {
            begin = begin.fixed(EVENT_FLOW, arrow);
        }
        self.event(slice.begun_ns, &begin, &interned);
        // An arrow ends where the message was received: its receive may begin before the send.
        let end = slice
            .arrows(MessagePart::Received)
            .fold(on_track(SLICE_END), |end, arrow| end.fixed(EVENT_FLOW_END, arrow));
        self.event(slice.ended_ns, &end, &Message::default());
    }
}
