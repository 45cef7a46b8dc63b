//! Which seconds of the ranks has no finding claimed yet? Every second is claimed once: by the first rule, in the order of
//! `RULES`, that knows what it went to.
//!
//! The time of all ranks is own code and the time in each MPI function. What is known of a function to be waiting for the
//! last rank is kept apart from the rest of it. That work is uneven is a loss of its own, which shows as waiting in
//! functions.

use std::collections::BTreeMap;

use gyan_results::{Efficiencies, Summary};

use super::kinds::{FunctionKind, kind_of};
use super::run::{RunFacts, Time};

/// What a finding says that seconds went to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cause {
    /// Ranks wait for others.
    Waiting,
    /// The functions themselves take it.
    Work,
    /// Either.
    Any,
}

/// Which seconds a finding is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claim {
    /// Time outside MPI.
    OwnCode,
    /// Time in functions.
    Calls { functions: Vec<String>, cause: Cause },
    /// What other ranks wait because one has more to do.
    Uneven,
    /// What threads of a rank wait for each other. Seconds in functions are those of all threads, so it is in no account.
    Threads,
}

/// What is at stake, and where the seconds are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stake {
    pub(super) claims: Vec<(Claim, f64)>,
    /// The standard error of all of it; none where the seconds are a lower bound.
    pub(super) error: Option<f64>,
}

impl Stake {
    pub(super) fn new(claim: Claim, time: Time) -> Stake {
        Stake { claims: vec![(claim, time.seconds)], error: time.error }
    }

    /// Time in functions.
    pub(super) fn calls<'n>(
        functions: impl IntoIterator<Item = &'n str>,
        cause: Cause,
        time: Time,
    ) -> Stake {
        let functions = functions.into_iter().map(str::to_owned).collect();
        Stake::new(Claim::Calls { functions, cause }, time)
    }

    /// Whether it is wall time although times in functions are those of several threads.
    pub(super) fn is_of_threads(&self) -> bool {
        self.claims.iter().all(|(claim, _)| *claim == Claim::Threads)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.claims.iter().map(|(_, seconds)| seconds).sum()
    }
}

/// Time of one function, or outside MPI, that no finding has claimed yet.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// For the last rank to come.
    waiting_s: f64,
    /// Known to be no such waiting.
    work_s: f64,
    unknown_s: f64,
    /// Which findings claimed how much of it, by their number.
    claimed: BTreeMap<usize, f64>,
}

impl Entry {
    fn free(&mut self, cause: Cause) -> Vec<&mut f64> {
        let Entry { waiting_s, work_s, unknown_s, .. } = self;
        match cause {
            Cause::Waiting => vec![waiting_s, unknown_s],
            Cause::Work => vec![work_s, unknown_s],
            Cause::Any => vec![waiting_s, work_s, unknown_s],
        }
    }
}

#[derive(Default)]
pub(super) struct Account {
    own: Entry,
    functions: BTreeMap<String, Entry>,
    /// A part of the waiting in functions.
    uneven: Entry,
}

impl Account {
    pub(super) fn new(summary: &Summary, efficiencies: Option<&Efficiencies>) -> Account {
        let entry = |call: &gyan_results::CallSummary| {
            let all_s = call.time_s.as_ref().map_or(0.0, |time| time.sum.as_f64());
            let of = summary.waiting_in(&call.name);
            let (waiting_s, compared_s) =
                of.map_or((0.0, 0.0), |of| (of.waiting_s.min(of.time_s), of.time_s));
            let compared_s = f64::min(compared_s, all_s);
            let waiting_s = waiting_s.min(compared_s);
            let work_s = compared_s - waiting_s;
            let unknown_s = all_s - compared_s;
            (call.name.clone(), Entry { waiting_s, work_s, unknown_s, ..Entry::default() })
        };
        let elapsed_s = summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.sum.as_f64());
        let in_mpi_s = summary.in_mpi.as_ref().map_or(0.0, |in_mpi| in_mpi.time_s.sum.as_f64());
        let own_s = (elapsed_s - in_mpi_s).max(0.0);
        let uneven_s = efficiencies.map_or(0.0, |_| uneven_s(summary));
        Account {
            own: Entry { unknown_s: own_s, ..Entry::default() },
            functions: summary.calls.iter().map(entry).collect(),
            uneven: Entry { unknown_s: uneven_s, ..Entry::default() },
        }
    }

    /// Seconds of a function that are not claimed.
    pub(super) fn free(&self, function: &str, cause: Cause) -> f64 {
        let entry = self.functions.get(function).cloned();
        entry.map_or(0.0, |mut entry| entry.free(cause).iter().map(|seconds| **seconds).sum())
    }

    /// Seconds of this claim that are not claimed, at most as many as it wants.
    pub(super) fn available(&self, claim: &Claim, wanted_s: f64) -> f64 {
        let free_s = match claim {
            Claim::OwnCode => self.own.unknown_s,
            Claim::Calls { functions, cause } => {
                functions.iter().map(|function| self.free(function, *cause)).sum()
            }
            Claim::Uneven => self.uneven.unknown_s,
            Claim::Threads => f64::INFINITY,
        };
        wanted_s.clamp(0.0, f64::max(free_s, 0.0))
    }

    /// Takes seconds out of the account for a finding.
    pub(super) fn take(&mut self, finding: usize, stake: &Stake) {
        for (claim, wanted_s) in &stake.claims {
            let seconds = self.available(claim, *wanted_s);
            match claim {
                Claim::OwnCode => take(vec![(&mut self.own, Cause::Any)], seconds, finding),
                Claim::Calls { functions, cause } => {
                    let entries = self.functions.iter_mut();
                    let entries = entries.filter(|(name, _)| functions.contains(name));
                    take(entries.map(|(_, entry)| (entry, *cause)).collect(), seconds, finding);
                }
                Claim::Uneven => {
                    take(vec![(&mut self.uneven, Cause::Any)], seconds, finding);
                    self.take_waiting(seconds, finding);
                }
                Claim::Threads => {}
            }
        }
    }

    /// First where waiting was measured, then in all functions that wait for other ranks.
    fn take_waiting(&mut self, seconds: f64, finding: usize) {
        let known_s: f64 = self.functions.values().map(|entry| entry.waiting_s).sum();
        for entry in self.functions.values_mut() {
            let part = if known_s > 0.0 { (seconds / known_s).min(1.0) } else { 0.0 };
            let taken_s = entry.waiting_s * part;
            entry.waiting_s -= taken_s;
            *entry.claimed.entry(finding).or_default() += taken_s;
        }
        let rest_s = (seconds - known_s).max(0.0);
        let waits =
            |name: &str| !matches!(kind_of(name), FunctionKind::Local | FunctionKind::Start);
        let entries = self.functions.iter_mut().filter(|(name, _)| waits(name));
        take(entries.map(|(_, entry)| (entry, Cause::Waiting)).collect(), rest_s, finding);
    }

    /// The finding that has claimed the most of what this one wants.
    pub(super) fn holder(&self, stake: &Stake) -> Option<usize> {
        let mut held: BTreeMap<usize, f64> = BTreeMap::new();
        for (claim, _) in &stake.claims {
            let entries: Vec<&Entry> = match claim {
                Claim::OwnCode => vec![&self.own],
                Claim::Uneven => vec![&self.uneven],
                Claim::Threads => Vec::new(),
                Claim::Calls { functions, .. } => {
                    functions.iter().filter_map(|name| self.functions.get(name)).collect()
                }
            };
            for (finding, seconds) in entries.into_iter().flat_map(|entry| &entry.claimed) {
                *held.entry(*finding).or_default() += seconds;
            }
        }
        let most = held.into_iter().filter(|(_, seconds)| *seconds > 0.0);
        most.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(finding, _)| finding)
    }
}

/// Takes seconds from entries in proportion to what they have.
fn take(mut entries: Vec<(&mut Entry, Cause)>, seconds: f64, finding: usize) {
    let free_s = |(entry, cause): &mut (&mut Entry, Cause)| -> f64 {
        entry.free(*cause).iter().map(|seconds| **seconds).sum()
    };
    let all_s: f64 = entries.iter_mut().map(free_s).sum();
    let part = if all_s > 0.0 { (seconds / all_s).clamp(0.0, 1.0) } else { 0.0 };
    for (entry, cause) in entries {
        let mut taken_s = 0.0;
        for free in entry.free(cause) {
            taken_s += *free * part;
            *free -= *free * part;
        }
        *entry.claimed.entry(finding).or_default() += taken_s;
    }
}

/// How much less the other ranks have to do than the one with the most, all together.
pub(super) fn uneven_s(summary: &Summary) -> f64 {
    let useful = summary.useful_s.as_ref();
    useful.map_or(0.0, |of| of.ranks as f64 * of.max.as_f64() - of.sum.as_f64()).max(0.0)
}

impl RunFacts<'_> {
    /// Which of these functions has the most seconds that no finding has claimed.
    pub(super) fn worst_left<'n>(&self, names: &[&'n str]) -> Option<(&'n str, f64)> {
        let left = names.iter().map(|name| (*name, self.account.free(name, Cause::Any)));
        left.filter(|(_, seconds)| *seconds > 0.0).max_by(|one, other| one.1.total_cmp(&other.1))
    }
}
