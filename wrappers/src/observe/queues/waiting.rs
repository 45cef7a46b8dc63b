//! Which unexpected messages wait for their receives, and since when?
//!
//! Libraries tell the communicator, source and tag of a message, but not which message it is. They need not:
//! among messages that agree in these, the first to arrive is the first to be received (MPI 4.1, 3.5). So each
//! such stream is a queue.

use crate::sys::fixed_map::FixedMap;

/// Messages that are followed at a time.
const MESSAGES_AT_MOST: usize = 16 * 1024;
const STREAMS_AT_MOST: usize = 4 * 1024;

/// Messages that cannot overtake each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Stream {
    /// Anything that identifies a communicator.
    pub(crate) comm: usize,
    /// The sender's rank in it.
    pub(crate) source: i32,
    pub(crate) tag: i32,
}

pub(super) struct Waiting {
    streams: FixedMap<Stream, WaitingLine>,
    messages: Vec<Message>,
    /// The first unused message.
    free: Option<u32>,
}

/// A stream with waiting messages.
struct WaitingLine {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Message {
    since: u64,
    next: Option<u32>,
}

impl Waiting {
    pub(super) fn new() -> Waiting {
        let unused = (1..=MESSAGES_AT_MOST).map(|next| Message {
            since: 0,
            next: u32::try_from(next).ok().filter(|_| next < MESSAGES_AT_MOST),
        });
        Waiting {
            streams: FixedMap::new(STREAMS_AT_MOST),
            messages: unused.collect(),
            free: Some(0),
        }
    }

    /// A message has arrived; false when there is no room for it.
    pub(super) fn came(&mut self, stream: Stream, now: u64) -> bool {
        let Some(at) = self.free else { return false };
        let Some(next) = self.message(at).map(|message| message.next) else { return false };
        let last = self.streams.get(&stream).map(|line| std::mem::replace(&mut line.last, at));
        if let Some(last) = last {
            if let Some(last) = self.message(last) {
                last.next = Some(at);
            }
        } else if !self.streams.put(stream, WaitingLine { first: at, last: at }) {
            return false;
        }
        self.free = next;
        if let Some(message) = self.message(at) {
            *message = Message { since: now, next: None };
        }
        true
    }

    /// The first message of a stream leaves: returns since when it waited.
    pub(super) fn went(&mut self, stream: Stream) -> Option<u64> {
        let at = self.streams.get(&stream)?.first;
        let free = self.free;
        let message = self.message(at)?;
        let Message { since, next } = std::mem::replace(message, Message { since: 0, next: free });
        self.free = Some(at);
        match (next, self.streams.get(&stream)) {
            (Some(next), Some(line)) => line.first = next,
            _ => _ = self.streams.take(&stream),
        }
        Some(since)
    }

    fn message(&mut self, at: u32) -> Option<&mut Message> {
        self.messages.get_mut(at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(source: i32, tag: i32) -> Stream {
        Stream { comm: 7, source, tag }
    }

    #[test]
    fn messages_of_a_stream_go_in_the_order_in_which_they_came() {
        let mut waiting = Waiting::new();
        for now in 0..10 {
            let (source, tag) = if now % 2 == 0 { (1, 5) } else { (2, 5) };
            assert!(waiting.came(stream(source, tag), now));
        }
        assert_eq!(waiting.went(stream(1, 6)), None);
        for now in [0, 2, 4, 6, 8] {
            assert_eq!(waiting.went(stream(1, 5)), Some(now));
        }
        assert_eq!(waiting.went(stream(1, 5)), None);
        assert!(waiting.came(stream(1, 5), 11));
        assert_eq!(waiting.went(stream(2, 5)), Some(1));
        assert_eq!(waiting.went(stream(1, 5)), Some(11));
    }

    #[test]
    fn one_too_many_is_told_and_the_room_comes_back() {
        let mut waiting = Waiting::new();
        for now in 0..MESSAGES_AT_MOST as u64 {
            assert!(waiting.came(stream(1, 5), now));
        }
        assert!(!waiting.came(stream(1, 5), 0));
        assert_eq!(waiting.went(stream(1, 5)), Some(0));
        assert!(waiting.came(stream(3, 5), 1));
        assert!(!waiting.came(stream(1, 5), 0));
        for now in 1..MESSAGES_AT_MOST as u64 {
            assert_eq!(waiting.went(stream(1, 5)), Some(now));
        }
        for tag in 1..STREAMS_AT_MOST {
            assert!(waiting.came(stream(1, i32::try_from(tag).unwrap()), 0));
        }
        assert!(!waiting.came(stream(1, 0), 0));
    }
}
