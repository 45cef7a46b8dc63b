//! The questions that rules ask about a run.

use std::collections::BTreeMap;

use gyan_results::{
    CallSummary, Efficiencies, Evidence, Fidelity, MessagePlace, PlacementSummary, Quantity,
    QueueRow, Summary, TrafficKind, WaitingSummary,
};

use super::account::{Account, Cause, Stake};
use super::{CallPlaces, efficiencies};

/// What every program calls once.
pub(super) const START_AND_END: &[&str] = &["MPI_Init", "MPI_Init_thread", "MPI_Finalize"];

/// The MPI library of a run, as far as knobs differ between libraries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Family {
    OpenMpi,
    Mpich,
    IntelMpi,
    Other,
}

/// Seconds on all ranks together, with their standard error; without one, a lower bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time {
    pub(super) seconds: f64,
    pub(super) error: Option<f64>,
}

impl Time {
    pub(super) fn exact(seconds: f64) -> Time {
        Time { seconds, error: Some(0.0) }
    }

    pub(super) fn plus(self, other: Time) -> Time {
        let Time { seconds, error } = self;
        let error = error.zip(other.error).map(|(one, other)| one.hypot(other));
        Time { seconds: seconds + other.seconds, error }
    }

    pub(super) fn times(self, part: f64) -> Time {
        Time { seconds: self.seconds * part, error: self.error.map(|error| error * part) }
    }

    /// At most so many seconds of it.
    pub(super) fn at_most(self, seconds: f64) -> Time {
        Time { seconds: self.seconds.min(seconds).max(0.0), ..self }
    }
}

/// What ranks lose at most for want of processors, in seconds of all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostWithoutProcessors {
    /// While they wanted one for their own code.
    pub(super) own: f64,
    /// In MPI, while they wanted one, or the ranks that they waited for.
    pub(super) in_mpi: f64,
    /// In MPI, because one rank lacked one for longer than the others.
    pub(super) uneven: f64,
}

pub(super) struct RunFacts<'a> {
    pub(super) summary: &'a Summary,
    pub(super) efficiencies: Option<Efficiencies>,
    pub(super) queues: &'a [QueueRow],
    pub(super) family: Family,
    pub(super) version: u64,
    /// Seconds of all ranks together.
    pub(super) total_s: f64,
    pub(super) ranks: f64,
    /// What no finding has claimed so far.
    pub(super) account: Account,
    calls: BTreeMap<&'a str, &'a CallSummary>,
    pub(super) places: &'a CallPlaces,
}

impl<'a> RunFacts<'a> {
    /// Whether the numbers are of nearly the whole run, not of a part before ranks were killed, or hung.
    pub(super) fn is_known_to_its_end(&self) -> bool {
        self.summary.job.known_s() > 0.9 * self.summary.job.elapsed_s
    }

    pub(super) fn new(
        summary: &'a Summary,
        queues: &'a [QueueRow],
        places: &'a CallPlaces,
    ) -> RunFacts<'a> {
        let elapsed = summary.elapsed_s.as_ref();
        let (family, version) = library(&summary.mpi.library);
        let efficiencies = efficiencies(summary);
        RunFacts {
            summary,
            account: Account::new(summary, efficiencies.as_ref()),
            efficiencies,
            queues,
            family,
            version,
            total_s: elapsed.map_or(0.0, |elapsed| elapsed.sum.as_f64()),
            ranks: f64::from(summary.ranks.reduced),
            calls: summary.calls.iter().map(|call| (call.name.as_str(), call)).collect(),
            places,
        }
    }

    /// Seconds of the run: of the rank that took longest, since one that ends early waits for it.
    pub(super) fn elapsed_s(&self) -> f64 {
        self.summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.max.as_f64())
    }

    /// Share of the time of all ranks.
    pub(super) fn share(&self, seconds: f64) -> f64 {
        let whole_s = self.elapsed_s() * self.ranks;
        if whole_s > 0.0 { seconds / whole_s } else { 0.0 }
    }

    /// Seconds of a rank on average.
    pub(super) fn of_a_rank(&self, seconds: f64) -> f64 {
        if self.ranks > 0.0 { seconds / self.ranks } else { 0.0 }
    }

    /// How often it happens on a rank each second, of a number on all ranks.
    pub(super) fn each_second(&self, number: f64) -> f64 {
        if self.total_s > 0.0 { number / self.total_s } else { 0.0 }
    }

    pub(super) fn call(&self, name: &str) -> Option<&'a CallSummary> {
        self.calls.get(name).copied()
    }

    /// The functions of a list that were called, including their large-count form (`_c`).
    pub(super) fn called<'n>(
        &self,
        names: &'n [&str],
    ) -> impl Iterator<Item = &'a CallSummary> + use<'a, 'n> {
        let calls: Vec<&'a CallSummary> = self.calls.values().copied().collect();
        calls.into_iter().filter(|call| {
            let name = call.name.strip_suffix("_c").unwrap_or(&call.name);
            names.contains(&name)
        })
    }

    /// Time in functions of a list, as far as it has a cause.
    pub(super) fn stake(&self, names: &[&str], cause: Cause, time: Time) -> Stake {
        Stake::calls(self.called(names).map(|call| call.name.as_str()), cause, time)
    }

    pub(super) fn time(&self, names: &[&str]) -> Time {
        self.called(names).map(time_of).fold(Time::exact(0.0), Time::plus)
    }

    pub(super) fn count(&self, names: &[&str]) -> f64 {
        // The sum of no doubles at all is -0.
        self.called(names).map(|call| call.count.sum.as_f64()).fold(0.0, |sum, count| sum + count)
    }

    /// The time of starting and ending MPI, which is not communication of the program.
    pub(super) fn start_and_end(&self) -> Time {
        self.time(START_AND_END)
    }

    /// Which of these functions takes the most time.
    pub(super) fn worst(&self, names: &[&str]) -> Option<&'a CallSummary> {
        let by_time = |one: &&CallSummary, other: &&CallSummary| {
            time_of(one).seconds.total_cmp(&time_of(other).seconds)
        };
        self.called(names).max_by(by_time)
    }

    /// `MPI_Waitall at halo.c:112`, `MPI_Waitall (21 % of its time at halo.c:112)`, or the name only.
    pub(super) fn with_place(&self, function: &str) -> String {
        match self.places.functions.get(function) {
            Some(place) => format!("{function} {place}"),
            None => function.to_owned(),
        }
    }

    /// `MPI_Recv at halo.c:31`, or the name only.
    pub(super) fn with_place_of(&self, call: &MessagePlace) -> String {
        let place = call.call.and_then(|at| self.places.messages.get(at));
        match place.filter(|place| !place.is_empty()) {
            Some(place) => format!("{} at {place}", call.function),
            None => call.function.clone(),
        }
    }

    /// The messages or calls of all ranks by size: the lower end of a bar, how many, and how many bytes.
    pub(super) fn sizes(&self, names: &[&str]) -> Vec<(f64, f64, f64)> {
        let mut sizes: Vec<(f64, f64, f64)> = Vec::new();
        for call in self.called(names) {
            let bars = call.size_histogram.iter().zip(&call.size_histogram_bytes).enumerate();
            for (bar, (&number, &bytes)) in bars {
                if sizes.len() <= bar {
                    let from = |bar: usize| bar.checked_sub(1).map(power_of_two);
                    let new = (sizes.len()..=bar).map(|bar| (from(bar).unwrap_or(0.0), 0.0, 0.0));
                    sizes.extend(new.collect::<Vec<_>>());
                }
                sizes[bar].1 += number as f64;
                sizes[bar].2 += bytes as f64;
            }
        }
        sizes
    }

    /// How many messages ranks sent to each other: the sizes include calls to `MPI_PROC_NULL`, which send none.
    pub(super) fn messages(&self) -> Option<f64> {
        let of = self.summary.peers.iter().find(|of| of.kind == TrafficKind::Messages)?;
        Some(of.number as f64).filter(|number| *number > 0.0)
    }

    /// The value of a knob, if the library has it.
    pub(super) fn knob(&self, name: &str) -> Option<&'a str> {
        let knob = self.summary.knobs.iter().find(|knob| knob.name == name)?;
        Some(&knob.value)
    }

    pub(super) fn is_on(&self, knob: &str) -> Option<bool> {
        Some(is_true(self.knob(knob)?))
    }

    /// What MPICH and its descendants were built with: `ch3` or `ch4`.
    pub(super) fn has_device(&self, device: &str) -> bool {
        self.summary.mpi.device.as_ref().is_some_and(|own| own.starts_with(device))
    }

    /// Whether a component was loaded on any host that was examined.
    pub(super) fn has_transport(&self, name: &str) -> bool {
        let machines = self.summary.machines.iter();
        machines.flat_map(|of| &of.machine.transports).any(|transport| transport.name == name)
    }

    pub(super) fn is_on_one_host(&self) -> bool {
        self.summary.hosts.len() == 1
    }

    /// The first host with more ranks, or busy threads, than processors.
    pub(super) fn oversubscribed(&self) -> Option<&'a PlacementSummary> {
        self.summary.placements.iter().find(|placement| placement.is_oversubscribed)
    }

    /// Whether ranks have more than one busy thread.
    fn are_threads_busy(&self) -> bool {
        self.summary.placements.iter().any(|placement| placement.threads.is_some())
    }

    /// Seconds for which ranks were ready to run and had no processor: counted by the kernel, or else the time
    /// that they were not running while their processors were busy. Of a rank with several busy threads, what one of
    /// them waited on average.
    pub(super) fn waits_for_processors(&self) -> Option<(f64, Fidelity)> {
        let used = self.summary.resources.as_ref()?;
        let of_threads = used.thread_wait_s.as_ref().filter(|_| self.are_threads_busy());
        if let Some(wait) = of_threads.or(used.processor_wait_s.as_ref()) {
            return Some((wait.sum.as_f64(), Fidelity::Exact));
        }
        let running_s = used.user_s.sum.as_f64() + used.system_s.sum.as_f64();
        let hosts = self.summary.placements.iter();
        let processors: f64 = hosts.map(|of| of.capacity() * of.hosts.len() as f64).sum();
        let wall_s = self.summary.elapsed_s.as_ref()?.max.as_f64();
        let is_busy = running_s > 0.8 * processors * wall_s;
        is_busy.then(|| ((self.total_s - running_s).max(0.0), Fidelity::Estimated))
    }

    /// The share of the run for which ranks wanted a processor, although there are enough of them.
    pub(super) fn lacks_processors(&self) -> f64 {
        if self.oversubscribed().is_some() || self.summary.placements.is_empty() {
            return 0.0;
        }
        match self.waits_for_processors() {
            Some((wait_s, Fidelity::Exact)) => self.share(wait_s),
            _ => 0.0,
        }
    }

    /// What ranks lose at most for want of processors, if that is known.
    pub(super) fn lost_without_processors(&self) -> Option<LostWithoutProcessors> {
        let (wait_s, _) = self.waits_for_processors()?;
        let used = self.summary.resources.as_ref()?;
        // How much of it is in MPI is not known where the time there is a lower bound.
        self.summary.in_mpi.as_ref()?.time_error_s?;
        // Ranks that sleep are in neither.
        let mut awake_s = wait_s + used.user_s.sum.as_f64() + used.system_s.sum.as_f64();
        if self.are_threads_busy() {
            // At most one thread of a rank is on its way through the run at a time.
            awake_s = awake_s.min(self.total_s);
        }
        let in_mpi_s = self.summary.in_mpi.as_ref().map_or(0.0, |of| of.time_s.sum.as_f64());
        // The library starts before MPI_Init.
        let in_mpi_s = in_mpi_s + self.summary.overhead.mpit_init_s.sum.as_f64();
        let own_awake_s = (awake_s - in_mpi_s).max(0.0);
        let part = own_awake_s / awake_s;
        let own_s = wait_s * part;
        // A rank that waits in MPI loses by it as far as the one that it waits for runs, and not more than even the
        // rank with the most work spends there.
        let runs = (own_awake_s / (self.total_s - in_mpi_s)).clamp(0.0, 1.0);
        let most_s = self.communication_s().unwrap_or(0.0);
        let in_mpi_s = (wait_s - own_s).min(most_s).max(0.0) * runs;
        let uneven = used.processor_wait_s.as_ref();
        let uneven_s = uneven.map_or(0.0, |of| self.ranks * (of.max.as_f64() - of.avg)) * part;
        let lost = LostWithoutProcessors { own: own_s, in_mpi: in_mpi_s, uneven: uneven_s };
        (awake_s > 0.0 && own_s.is_finite() && in_mpi_s.is_finite()).then_some(lost)
    }

    /// What even the rank with the most work spends in MPI between start and end, times the number of ranks.
    pub(super) fn communication_s(&self) -> Option<f64> {
        let efficiencies = self.efficiencies.as_ref()?;
        let run_s = self.summary.run_s.as_ref()?.max.as_f64() * self.ranks;
        let start_and_end_s = self.start_and_end().seconds;
        Some((1.0 - efficiencies.communication) * run_s - start_and_end_s)
    }

    pub(super) fn queue(&self, quantity: Quantity) -> impl Iterator<Item = &QueueRow> {
        self.queues.iter().filter(move |row| row.quantity == quantity)
    }

    pub(super) fn waiting(&self) -> &'a [WaitingSummary] {
        &self.summary.waiting
    }
}

/// Where a bar of a histogram begins. (`exp2` of the C library would take glibc 2.29.)
pub(super) fn power_of_two(exponent: usize) -> f64 {
    2_f64.powi(i32::try_from(exponent).unwrap_or(i32::MAX))
}

/// What a function took on all ranks.
pub(super) fn time_of(call: &CallSummary) -> Time {
    let seconds = call.time_s.as_ref().map_or(0.0, |time| time.sum.as_f64());
    Time { seconds, error: call.time_s.as_ref().map_or(Some(0.0), |_| call.time_error_s) }
}

/// How well it is known.
pub(super) fn knowledge_of(time: Time) -> Fidelity {
    match time.error {
        Some(0.0) => Fidelity::Exact,
        Some(_) => Fidelity::Sampled,
        None => Fidelity::LowerBound,
    }
}

pub(super) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on" | "enabled")
}

/// A number that a finding rests on, counted or read.
pub(super) fn exact(what: &str, value: f64, unit: &str, shown_by: &str) -> Evidence {
    Evidence {
        what: what.to_owned(),
        value,
        unit: unit.to_owned(),
        known: Fidelity::Exact,
        error: None,
        shown_by: shown_by.to_owned(),
    }
}

/// The value of a setting, if it is a number.
pub(super) fn setting(name: &str, value: &str, shown_by: &str) -> Option<Evidence> {
    Some(exact(name, value.parse().ok()?, "", shown_by))
}

/// A number from a model.
pub(super) fn estimated(what: &str, value: f64, unit: &str, shown_by: &str) -> Evidence {
    Evidence { known: Fidelity::Estimated, ..exact(what, value, unit, shown_by) }
}

/// Seconds on all ranks.
pub(super) fn taken(what: &str, time: Time, shown_by: &str) -> Evidence {
    let error = time.error.filter(|error| *error > 0.0);
    Evidence { known: knowledge_of(time), error, ..exact(what, time.seconds, "s", shown_by) }
}

fn library(name: &str) -> (Family, u64) {
    let family = if name.starts_with("Open MPI") {
        Family::OpenMpi
    } else if name.starts_with("Intel") {
        Family::IntelMpi
    } else if name.starts_with("MPICH") {
        Family::Mpich
    } else {
        Family::Other
    };
    let digits = name.split(|sign: char| !sign.is_ascii_digit()).find(|word| !word.is_empty());
    (family, digits.and_then(|digits| digits.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_known_by_its_first_line() {
        for (name, expected) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI", (Family::OpenMpi, 4)),
            ("MPICH Version:\t5.0.2", (Family::Mpich, 5)),
            ("MPICH Version:      4.0.2", (Family::Mpich, 4)),
            ("Intel(R) MPI Library 2021.18.1 for Linux* OS", (Family::IntelMpi, 2021)),
            ("Another", (Family::Other, 0)),
        ] {
            assert_eq!(library(name), expected, "{name}");
        }
    }
}
