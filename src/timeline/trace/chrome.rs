//! The trace event format of Chrome, in JSON, which many viewers read. Times are in µs.

use serde_json::{Map, Value, json};

use super::{Argument, MessagePart, Slice, TraceWriter, Track};

/// The events of one rank, each on a line that ends with a comma.
pub(super) struct ChromeEvents {
    out: Vec<u8>,
    rank: u32,
}

impl ChromeEvents {
    pub(super) fn new(rank: u32) -> ChromeEvents {
        ChromeEvents { out: Vec::new(), rank }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn event(&mut self, event: &Value) {
        self.out.extend(event.to_string().into_bytes());
        self.out.extend(b",\n");
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl TraceWriter for ChromeEvents {
    fn track(&mut self, track: &Track) {
        // The first value of a variable makes its track.
        if track.is_counter {
            return;
        }
        let (kind, tid) = match track.thread {
            Some(thread) => ("thread_name", thread),
            None if track.parent.is_some() => ("process_name", 0),
            // There is nothing for a host.
            None => return,
        };
        let name = if tid == 0 && track.thread.is_none() {
            format!("{} on {}", track.name, track.host)
        } else {
            track.name.clone()
        };
        self.event(&json!({
            "ph": "M", "name": kind, "pid": self.rank, "tid": tid, "args": { "name": name }
        }));
    }

    fn value(&mut self, track: &Track, ns: u64, value: f64) {
        self.event(&json!({
            "ph": "C", "name": track.name, "pid": self.rank, "ts": us(ns), "args": { "value": value }
        }));
    }

    fn slice(&mut self, slice: &Slice) {
        let arguments: Map<String, Value> = slice
            .arguments()
            .into_iter()
            .map(|(name, argument)| {
                let value = match argument {
                    Argument::Number(number) => json!(number),
                    Argument::Text(text) => json!(text),
                };
                (name.to_owned(), value)
            })
            .collect();
        let (pid, tid) = (self.rank, slice.thread);
        let took = slice.ended_ns - slice.begun_ns;
        self.event(&json!({
            "ph": "X", "name": slice.name, "pid": pid, "tid": tid, "ts": us(slice.begun_ns),
            "dur": us(took), "args": arguments
        }));
        let mut arrow = |phase, arrow: u64, ns| {
            self.event(&json!({
                "ph": phase, "bp": "e", "name": "message", "cat": "message",
                "id": format!("{arrow:#x}"), "pid": pid, "tid": tid, "ts": us(ns)
            }));
        };
        slice.arrows(MessagePart::Sent).for_each(|number| arrow("s", number, slice.begun_ns));
        // Within the slice.
        let end = slice.ended_ns - u64::from(took > 0);
        slice.arrows(MessagePart::Received).for_each(|number| arrow("f", number, end));
    }
}
