//! How do the clocks of hosts differ? Each thing that is known bounds the difference of two clocks: a message is received after its
//! send began, and no rank leaves a collective operation in which each waits for all others before all have begun it.
//!
//! What all bounds together allow are shortest paths in the graph whose nodes are clocks (a system of difference constraints; Cormen
//! and others, Introduction to Algorithms). The middle of what is left for each clock satisfies all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use gyan_results::{ClockOffsets, MessageDirection, rank_file_name, read_rank};

use super::Timelines;
use super::arrows::in_stream;
use super::messages::OwnMessage;
use super::waits::TimedEvents;

/// Bounds of the differences between clocks, each by its number. `x` is what is added to a time on a clock for one on that of all.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockBounds(BTreeMap<(usize, usize), i128>);

/// What is added to times on a clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct HostClock {
    /// Twice that, in ns, as the middle between two whole numbers is a half.
    doubled_ns: i128,
    /// How far it may be wrong.
    error_ns: u64,
}

impl HostClock {
    /// A time on this clock, on that of all.
    pub(super) fn on_first(self, ns: u64) -> i128 {
        // This rounds down, so that what is later stays later.
        (2 * i128::from(ns) + self.doubled_ns).div_euclid(2)
    }

    pub(super) fn error_ns(self) -> u64 {
        self.error_ns
    }
}

impl ClockBounds {
    /// Something at `earlier_ns` on one clock was before something at `later_ns` on another one.
    pub(super) fn was_before(
        &mut self,
        (earlier, earlier_ns): (usize, u64),
        (later, later_ns): (usize, u64),
    ) {
        self.at_most(later, earlier, i128::from(later_ns) - i128::from(earlier_ns));
    }

    /// `x` of `to` is at most that of `from` and `most_ns`.
    fn at_most(&mut self, from: usize, to: usize, most_ns: i128) {
        let known = self.0.entry((from, to)).or_insert(most_ns);
        *known = (*known).min(most_ns);
    }

    /// A clock's `x` is `offset_ns` more than that of the first one, up to `error_ns`.
    pub(super) fn differs(&mut self, clock: usize, offset_ns: i128, error_ns: u64) {
        self.at_most(0, clock, offset_ns + i128::from(error_ns));
        self.at_most(clock, 0, i128::from(error_ns) - offset_ns);
    }

    pub(super) fn absorb(&mut self, other: &ClockBounds) {
        for (&(from, to), &most_ns) in &other.0 {
            self.at_most(from, to, most_ns);
        }
    }

    /// What is added to times on each of `count` clocks: nothing for the first one; none for one that is bounded on one side only.
    /// None at all if the bounds contradict each other, as those of clocks do that do not go equally fast.
    pub(super) fn solved(&self, count: usize) -> Option<Vec<Option<HostClock>>> {
        let most = self.distances(count, |from, to| (from, to))?;
        let least = self.distances(count, |from, to| (to, from))?;
        let clock = |(most, least): (Option<i128>, Option<i128>)| {
            let (most, least) = (most?, -least?);
            let error_ns = u64::try_from((most - least + 1) / 2).unwrap_or(u64::MAX);
            Some(HostClock { doubled_ns: most + least, error_ns })
        };
        Some(most.into_iter().zip(least).map(clock).collect())
    }

    /// The shortest paths from the first clock to each one (Bellman and Ford), `way` being the direction in which bounds are followed.
    fn distances(
        &self,
        count: usize,
        way: impl Fn(usize, usize) -> (usize, usize),
    ) -> Option<Vec<Option<i128>>> {
        let mut distances = vec![None; count];
        if let Some(first) = distances.first_mut() {
            *first = Some(0);
        }
        for _ in 0..=count {
            let mut has_changed = false;
            for (&(from, to), &most_ns) in &self.0 {
                let (from, to) = way(from, to);
                let Some(through) = distances.get(from).copied().flatten() else { continue };
                let Some(known) = distances.get_mut(to) else { continue };
                let length: i128 = through + most_ns;
                if known.is_none_or(|known| length < known) {
                    *known = Some(length);
                    has_changed = true;
                }
            }
            if !has_changed {
                return Some(distances);
            }
        }
        None
    }
}

/// How the clocks of hosts were brought together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClockAlignment {
    OneHost,
    /// They cannot be compared.
    Unknown,
    /// They go so differently that some messages arrive before they were sent.
    Drifting,
    /// A time on any of these hosts' clocks differs from that on the first one by at most so much.
    Within {
        hosts: usize,
        error_ns: u64,
    },
}

impl Timelines {
    /// Clocks of several hosts are compared by the collective operations in the profiles, and by the messages between them.
    pub(super) fn compare_clocks(&mut self) -> io::Result<()> {
        let names: Vec<String> = self.clocks.keys().cloned().collect();
        let [first, _, ..] = names.as_slice() else {
            self.clocks.values_mut().for_each(|clock| *clock = Some(HostClock::default()));
            return Ok(());
        };
        let profiles = self
            .ranks
            .iter()
            .filter_map(|rank| read_rank(&self.directory.join(rank_file_name(*rank))).ok());
        let offsets = ClockOffsets::of(profiles);
        let mut of_profiles = ClockBounds::default();
        for (number, name) in names.iter().enumerate() {
            if let Some((offset_ns, error_ns)) = offsets.between(name, first) {
                of_profiles.differs(number, offset_ns, error_ns);
            }
        }
        let of_messages = self.bounds_of_messages()?;
        let mut all = of_profiles.clone();
        all.absorb(&of_messages);
        self.clocks_drift = all.solved(names.len()).is_none();
        // What contradicts itself is left out: profiles are of the whole run, in which clocks drift apart further.
        let solved = [of_profiles, of_messages, all]
            .iter()
            .filter_map(|bounds| bounds.solved(names.len()))
            .max_by_key(|clocks| clocks.iter().flatten().count());
        for (name, clock) in names.into_iter().zip(solved.into_iter().flatten()) {
            self.clocks.insert(name, clock);
        }
        Ok(())
    }

    /// A message is received after its send began.
    fn bounds_of_messages(&self) -> io::Result<ClockBounds> {
        let mut bounds = ClockBounds::default();
        let clock = |rank: usize| self.clock_numbers.get(rank).copied().unwrap_or(0);
        let mut sent = self.arrows.times_between(|from, to| clock(from) != clock(to));
        let streams = sent.streams();
        if streams.is_empty() {
            return Ok(bounds);
        }
        for direction in [MessageDirection::Sent, MessageDirection::Received] {
            let mut place = 0;
            let look = |rank: &TimedEvents| self.times_of_arrows(rank, direction, &streams);
            self.each(&self.ranks, look, |times| {
                for (arrow, ns) in times {
                    let Some((sender, sent_ns)) = sent.get_mut(arrow) else { continue };
                    match direction {
                        MessageDirection::Sent => *sent_ns = ns,
                        MessageDirection::Received if *sent_ns > 0 => {
                            bounds.was_before((clock(sender), *sent_ns), (clock(place), ns));
                        }
                        MessageDirection::Received => {}
                    }
                }
                place += 1;
            })?;
        }
        Ok(bounds)
    }

    /// When the messages of a rank in these streams were sent, or received, on its clock, in ns: by the number of the arrow.
    fn times_of_arrows(
        &self,
        rank: &TimedEvents,
        direction: MessageDirection,
        streams: &BTreeSet<u64>,
    ) -> Vec<(u64, u64)> {
        let arrows = self.arrows.of(rank.messages).into_iter();
        let time = |(message, arrow): (&OwnMessage, Option<u64>)| {
            let arrow = arrow.filter(|arrow| {
                message.direction == direction && streams.contains(&in_stream(*arrow).0)
            })?;
            let event = rank.events.get(message.arrow_at()?)?;
            let ticks = match direction {
                MessageDirection::Sent => event.begun,
                MessageDirection::Received => event.begun + event.took,
            };
            Some((arrow, rank.header.clock.ns(ticks)))
        };
        arrows.filter_map(time).collect()
    }

    /// How the clocks of hosts were brought together.
    pub(crate) fn alignment(&self) -> ClockAlignment {
        match self.clocks.len() {
            0 | 1 => ClockAlignment::OneHost,
            _ if self.clocks.values().any(Option::is_none) => ClockAlignment::Unknown,
            _ if self.clocks_drift => ClockAlignment::Drifting,
            hosts => {
                let errors = self.clocks.values().flatten().map(|clock| clock.error_ns());
                ClockAlignment::Within { hosts, error_ns: errors.max().unwrap_or(0) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages between clocks whose differences are known, each on its way for 5 µs and more.
    #[test]
    fn no_message_arrives_before_it_was_sent_and_the_truth_is_within_the_error() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let count = random.usize(2..6);
            let behind: Vec<u64> = (0..count).map(|_| random.u64(..1_000_000_000)).collect();
            let mut bounds = ClockBounds::default();
            let mut messages = Vec::new();
            for _ in 0..random.usize(1..60) {
                let (from, to) = (random.usize(..count), random.usize(..count));
                if from == to {
                    continue;
                }
                let sent = random.u64(2_000_000_000..9_000_000_000);
                let received = sent + random.u64(5_000..2_000_000);
                let message = ((from, sent - behind[from]), (to, received - behind[to]));
                bounds.was_before(message.0, message.1);
                messages.push(message);
            }
            let clocks = bounds.solved(count).expect("the clocks go equally fast");
            assert_eq!(clocks[0], Some(HostClock::default()));
            for ((from, sent), (to, received)) in messages {
                if let (Some(from), Some(to)) = (clocks[from], clocks[to]) {
                    assert!(from.on_first(sent) <= to.on_first(received));
                }
            }
            for (clock, behind_ns) in clocks.iter().zip(&behind) {
                let Some(clock) = clock else { continue };
                let truth = i128::from(*behind_ns) - i128::from(behind[0]);
                let found = clock.on_first(0);
                assert!((found - truth).unsigned_abs() <= u128::from(clock.error_ns) + 1);
            }
        }
    }

    #[test]
    fn clocks_that_do_not_go_equally_fast_contradict_each_other() {
        let mut bounds = ClockBounds::default();
        bounds.was_before((0, 100), (1, 150));
        bounds.was_before((1, 1_000), (0, 1_010));
        assert!(bounds.solved(2).is_some());
        // The second clock is 100 ahead now.
        bounds.was_before((1, 2_110), (0, 2_020));
        assert!(bounds.solved(2).is_none());
    }

    #[test]
    fn a_clock_that_is_bounded_on_one_side_is_not_known() {
        let mut bounds = ClockBounds::default();
        bounds.was_before((0, 100), (1, 150));
        assert_eq!(bounds.solved(2), Some(vec![Some(HostClock::default()), None]));
        bounds.differs(1, -20, 100);
        assert!(bounds.solved(2).unwrap()[1].is_some());
    }
}
