//! Are the numbers true, and is their stated error?

use gyan_results::{Call, PhaseEfficiencies, RankProfile};

use super::definition::{self, TruthOfRank};
use super::{Cover, Run, Sight};
use crate::sys::clock;

/// What a clock in ns and a profile resolve.
const RESOLUTION_S: f64 = 1e-8;
/// What a lower bound may be above the truth.
const AT_LEAST: f64 = 0.01;
/// What an efficiency may be off.
pub(super) const EFFICIENCY: f64 = 0.02;
/// Where even the rank with the most work works so little, a ratio of its work to that of others says nothing.
pub(super) const HARDLY_ANY: f64 = 0.05;
/// What times of messages are rounded to, on either rank, in `gyan_results::MessageTimes`; and how long a message may take that
/// the library takes at once.
const UNIT_S: f64 = 2.0 * 64e-9 + 3e-7;
/// The relative error of a time in `gyan_results::Waiting`.
const WRITTEN: f64 = 0.01;

pub(super) fn times(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    for profile in &sight.run.profiles {
        let truth = &sight.run.truth.ranks[profile.rank as usize];
        faults.extend(of_functions(profile, truth, sight.cover));
        for phase in &profile.phases {
            let Some(of_ranks) = sight.run.truth.phases.get(&phase.name) else { continue };
            let of = &of_ranks[profile.rank as usize].functions;
            for call in &phase.calls {
                // Only the first thread's are known by phase.
                if let (Some(seconds), 1) = (of.get(&*call.name), sight.run.threads(profile.rank)) {
                    faults.extend(of_call(call, *seconds, "time in a phase", sight.cover));
                }
            }
        }
    }
    faults
}

/// Of all ranks together, as findings rest on them.
pub(super) fn times_on_all_ranks(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    for call in &sight.run.summary.calls {
        let seconds = sight.run.truth.function(&call.name).seconds;
        let of_all = Call {
            name: call.name.clone(),
            count: clock::whole(call.count.sum.as_f64()),
            time_s: call.time_s.as_ref().map(|time| time.sum.as_f64()),
            time_error_s: call.time_error_s,
            ..Call::default()
        };
        faults.extend(of_call(&of_all, seconds, "time of a function on all ranks", sight.cover));
    }
    faults
}

/// The time of calls that took `seconds`.
fn of_call(call: &Call, seconds: f64, what: &'static str, cover: &mut Cover) -> Option<String> {
    let time_s = call.time_s.unwrap_or(0.0);
    let resolution = RESOLUTION_S + 2e-9 * call.count as f64;
    match call.time_error_s {
        Some(error) => cover.add(what, time_s - seconds, error, resolution),
        None if time_s > seconds * (1.0 + AT_LEAST) + resolution => {
            return Some(format!("{what}: {}: at least {time_s} s, but {seconds}", call.name));
        }
        None => {}
    }
    None
}

fn of_functions(profile: &RankProfile, truth: &TruthOfRank, cover: &mut Cover) -> Vec<String> {
    let mut faults = Vec::new();
    for call in &profile.calls {
        let of = truth.functions.get(&*call.name).copied().unwrap_or_default();
        faults.extend(of_call(call, of.seconds, "time of a function", cover));
        let longest = call.time_max_s.unwrap_or(0.0);
        if longest > of.longest_s + RESOLUTION_S {
            faults.push(format!("{}: the longest {longest} s, not {}", call.name, of.longest_s));
        }
    }
    faults
}

/// What gyan cost is own code of the run that it saw; in a few milliseconds it may be much. So the lengths are those of
/// the profiles, and the time in MPI is the truth.
pub(super) fn efficiencies(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    let run = sight.run;
    let Some(found) = &sight.shown.efficiencies else { return faults };
    let length_s = |profile: &RankProfile| profile.job.elapsed_s - run.program.mpit_s;
    let useful: Vec<f64> = run
        .profiles
        .iter()
        .map(|profile| length_s(profile) - run.truth.ranks[profile.rank as usize].in_mpi_s)
        .collect();
    let truth =
        definition::efficiencies(&useful, run.profiles.iter().map(length_s).fold(0.0, f64::max));
    if truth[1] < HARDLY_ANY {
        return faults;
    }
    let error = found.parallel_error.unwrap_or(0.0);
    let off = found.parallel - truth[0] * truth[1];
    sight.cover.add("parallel efficiency", off, error, EFFICIENCY);
    // The largest of several estimates is one that is too large.
    if 2.0 * error * f64::from(run.program.size()).sqrt() > 0.1 * EFFICIENCY * truth[1] {
        return faults;
    }
    let off = [found.load_balance - truth[0], found.communication - truth[1]];
    for (name, off) in ["load balance", "communication"].iter().zip(off) {
        if off.abs() > EFFICIENCY {
            faults.push(format!("{name}: {off:+.3} from {truth:.3?}"));
        }
    }
    let most = useful.iter().copied().fold(0.0, f64::max);
    if useful[found.busiest_rank as usize] < 0.99 * most - 1e-6 {
        faults.push(format!("rank {} is not the busiest", found.busiest_rank));
    }
    faults.extend(of_phases(run, &found.phases));
    faults
}

fn of_phases(run: &Run, found: &[PhaseEfficiencies]) -> Vec<String> {
    let mut faults = Vec::new();
    for phase in found {
        let Some(of_ranks) = run.truth.phases.get(&phase.phase) else { continue };
        let lengths = run.profiles.iter().filter_map(|profile| {
            profile.phases.iter().find(|of| of.name == phase.phase).map(|of| of.time_s)
        });
        let lengths: Vec<f64> = lengths.collect();
        // Outside of all phases is also the start.
        if phase.phase.is_empty() || lengths.len() != of_ranks.len() {
            continue;
        }
        let useful: Vec<f64> =
            lengths.iter().zip(of_ranks).map(|(seconds, of)| seconds - of.in_mpi_s).collect();
        let [balance, most] =
            definition::efficiencies(&useful, lengths.iter().copied().fold(0.0, f64::max));
        if most < HARDLY_ANY {
            continue;
        }
        let parallel = useful.iter().sum::<f64>() / lengths.iter().sum::<f64>();
        let off = [phase.load_balance - balance, phase.parallel - parallel];
        if off.iter().any(|off| off.abs() > EFFICIENCY) {
            faults.push(format!("phase {}: {off:+.3?} from {balance} {parallel}", phase.phase));
        }
    }
    faults
}

/// By what was waited in the same events, which is the definition.
pub(super) fn split(sight: &mut Sight) -> Vec<String> {
    let run = sight.run;
    let found = sight.shown.efficiencies.as_ref();
    let Some((found, split)) = found.and_then(|found| Some((found, found.split?))) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let product = split.serialisation * split.transfer;
    if (product - found.communication).abs() > 1e-9 {
        faults.push(format!("{split:?} make {product} instead of {}", found.communication));
    }
    let length_s = |profile: &RankProfile| profile.job.elapsed_s - run.program.mpit_s;
    let ideal_s = run.profiles.iter().map(|profile| {
        let of = &run.truth.ranks[profile.rank as usize];
        length_s(profile) - of.in_mpi_s + of.waited_s
    });
    let longest_s = run.profiles.iter().map(length_s).fold(0.0, f64::max);
    let truth = ideal_s.fold(0.0, f64::max) / longest_s;
    let (off, error) = (split.transfer - truth, split.transfer_error.unwrap_or(0.0));
    if split.is_bound {
        sight.cover.add("transfer, at least", off.max(0.0), error, EFFICIENCY);
    } else {
        sight.cover.add("transfer", off, error, EFFICIENCY);
    }
    faults
}

/// For each other in messages.
pub(super) fn message_waiting(sight: &mut Sight) -> Vec<String> {
    let run = sight.run;
    let Some(found) = &run.summary.message_waiting else { return Vec::new() };
    let mut faults = Vec::new();
    if found.paired != found.messages {
        faults.push(format!("{} of {} messages are paired", found.paired, found.messages));
    }
    let truth: f64 = run.truth.waited_in_messages.values().sum();
    let waiting_s = found.late_senders_s + found.late_receivers_s;
    let errors = found.late_senders_error_s.zip(found.late_receivers_error_s);
    if let Some((senders, receivers)) = errors {
        let (off, error) = (waiting_s - truth, senders.hypot(receivers));
        let resolution = WRITTEN * truth + UNIT_S * found.messages as f64;
        sight.cover.add("waiting in messages", off, error, resolution);
        if error == 0.0 && off.abs() > resolution {
            faults.push(format!("waiting in messages: {waiting_s} s instead of {truth}"));
        }
    }
    faults
}

pub(super) fn waiting(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    let run = sight.run;
    for of in &run.summary.waiting {
        let truth = run.truth.function(&of.function);
        let resolution = WRITTEN * truth.seconds + RESOLUTION_S * f64::from(run.program.size());
        if of.waiting_s < 0.0 || of.waiting_s > of.time_s * (1.0 + 1e-9) {
            faults.push(format!("{}: {} s of {}", of.function, of.waiting_s, of.time_s));
        }
        if of.calls > truth.calls {
            faults.push(format!("{}: {} calls of {}", of.function, of.calls, truth.calls));
        }
        if let Some(error) = of.waiting_error_s.filter(|_| of.calls == truth.calls) {
            let off = of.waiting_s - truth.waited_together_s;
            sight.cover.add("waiting", off, error, resolution);
        }
    }
    faults
}
