//! What do callbacks of the library tell about messages: how long do they and their receives wait, and how long
//! do the queues get?
//!
//! Callbacks come from inside the library, on any thread, some while it holds a lock. So nothing here allocates
//! after it is set up, and nothing calls MPI.

mod events;
mod peers;
#[allow(unsafe_code)]
mod peruse;
mod sources;
mod tally;
mod waiting;

use gyan_results::{MessageMetric, MessageSource, Messages, Metric, Traffic};

use crate::sys::clock;
pub(crate) use peers::Peer;
use peers::PeerTallies;
pub(crate) use sources::{CallbackResults, Callbacks};
use tally::Tally;
pub(crate) use waiting::Stream;
use waiting::Waiting;

const TRAFFICS: [Traffic; 2] = [Traffic::Program, Traffic::Collectives];

/// The results of one source.
pub(crate) struct Queues {
    tallies: [[Tally; TRAFFICS.len()]; Metric::ALL.len()],
    waiting: Waiting,
    /// The lengths of the queues, for each kind of traffic.
    unexpected: [u64; TRAFFICS.len()],
    posted: [u64; TRAFFICS.len()],
    /// For the program's messages.
    peers: PeerTallies,
    lost: u64,
}

impl Queues {
    pub(crate) fn new() -> Queues {
        Queues {
            tallies: [const { [const { Tally::new() }; TRAFFICS.len()] }; Metric::ALL.len()],
            waiting: Waiting::new(),
            unexpected: [0; TRAFFICS.len()],
            posted: [0; TRAFFICS.len()],
            peers: PeerTallies::new(),
            lost: 0,
        }
    }

    fn tally(&mut self, metric: Metric, traffic: Traffic) -> Option<&mut Tally> {
        self.tallies.get_mut(metric as usize)?.get_mut(traffic as usize)
    }

    /// A time was measured.
    pub(crate) fn time(&mut self, metric: Metric, traffic: Traffic, ticks: u64) {
        let ticks = ticks as f64;
        if let Some(tally) = self.tally(metric, traffic) {
            tally.add(ticks, ticks * clock::ns_per_tick());
        }
    }

    fn length(&mut self, metric: Metric, traffic: Traffic, length: u64) {
        if let Some(tally) = self.tally(metric, traffic) {
            tally.add(length as f64, length as f64);
        }
    }

    /// A message arrived that no receive waited for.
    pub(crate) fn came(&mut self, stream: Stream, peer: Peer, traffic: Traffic, now: u64) {
        if !self.waiting.came(stream, now) {
            self.lost += 1;
            return;
        }
        let length = grown(&mut self.unexpected, traffic);
        self.length(Metric::NUnexQLen, traffic, length);
        if traffic == Traffic::Program {
            self.peers.came(peer);
        }
    }

    /// Such a message was received. One that arrived before gyan listened changes nothing.
    pub(crate) fn went(&mut self, stream: Stream, peer: Peer, traffic: Traffic, now: u64) {
        let Some(since) = self.waiting.went(stream) else { return };
        shrink(&mut self.unexpected, traffic);
        let ticks = now.saturating_sub(since);
        self.time(Metric::TInUnexQ, traffic, ticks);
        if traffic == Traffic::Program {
            self.peers.went(peer, ticks as f64);
        }
    }

    /// A receive was posted before its message came.
    pub(crate) fn posted(&mut self, peer: Peer, traffic: Traffic) {
        let length = grown(&mut self.posted, traffic);
        self.length(Metric::NPostedQLen, traffic, length);
        if traffic == Traffic::Program {
            self.peers.posted(peer);
        }
    }

    /// Such a receive got its message, or was cancelled, after `ticks`.
    pub(crate) fn unposted(&mut self, peer: Peer, traffic: Traffic, ticks: u64) {
        shrink(&mut self.posted, traffic);
        self.time(Metric::TInPostedQ, traffic, ticks);
        if traffic == Traffic::Program {
            self.peers.unposted(peer);
        }
    }

    /// Something could not be followed.
    pub(crate) fn lose(&mut self, number: u64) {
        self.lost += number;
    }

    /// In the form of the profile; times are in ticks here and in seconds there.
    pub(crate) fn described(&self, source: MessageSource) -> Messages {
        let rows = Metric::ALL.iter().zip(&self.tallies);
        let metrics = rows.flat_map(|(&metric, tallies)| {
            let number = move |number: f64| {
                if metric.is_time() { clock::seconds(number) } else { number }
            };
            TRAFFICS.into_iter().zip(tallies).map(move |(traffic, tally)| MessageMetric {
                metric,
                traffic,
                n: tally.n,
                sum: number(tally.sum),
                max: number(tally.max),
                histogram: tally.histogram(),
            })
        });
        Messages {
            source,
            metrics: metrics.filter(|metric| metric.n > 0).collect(),
            peers: self.peers.described(),
            without_peer: self.peers.without_row(),
            lost: self.lost,
        }
    }
}

/// Adds one; returns the new number.
fn grown(lengths: &mut [u64; TRAFFICS.len()], traffic: Traffic) -> u64 {
    let Some(length) = lengths.get_mut(traffic as usize) else { return 0 };
    *length += 1;
    *length
}

fn shrink(lengths: &mut [u64; TRAFFICS.len()], traffic: Traffic) {
    if let Some(length) = lengths.get_mut(traffic as usize) {
        *length = length.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(messages: &Messages, metric: Metric) -> (u64, f64) {
        let found = messages.metrics.iter().find(|row| row.metric == metric);
        found.map_or((0, 0.0), |row| (row.n, row.max))
    }

    #[test]
    fn lengths_are_those_after_each_that_came() {
        let mut queues = Queues::new();
        let stream = Stream { comm: 1, source: 2, tag: 3 };
        // It arrived before gyan listened.
        queues.went(stream, Peer::Rank(2), Traffic::Program, 5);
        for now in 10..15 {
            queues.came(stream, Peer::Rank(2), Traffic::Program, now);
        }
        for now in 20..23 {
            queues.went(stream, Peer::Rank(2), Traffic::Program, now);
        }
        queues.came(stream, Peer::Rank(2), Traffic::Program, 30);
        queues.posted(Peer::Any, Traffic::Program);
        queues.unposted(Peer::Any, Traffic::Program, 4);
        let messages = queues.described(MessageSource::Peruse);
        assert_eq!(metric(&messages, Metric::NUnexQLen), (6, 5.0));
        let (times, longest) = metric(&messages, Metric::TInUnexQ);
        assert_eq!(times, 3);
        assert!((longest - clock::seconds(10.0)).abs() < 1e-15);
        assert_eq!(metric(&messages, Metric::NPostedQLen), (1, 1.0));
        let [of_two, of_any] = messages.peers.as_slice() else { panic!("{:?}", messages.peers) };
        assert_eq!((of_two.peer, of_two.unexpected, of_two.unexpected_max), (Some(2), 6, 5));
        assert!((of_two.unexpected_mean - f64::from(1 + 2 + 3 + 4 + 5 + 3) / 6.0).abs() < 1e-12);
        assert_eq!((of_any.peer, of_any.posted), (None, 1));
    }
}
