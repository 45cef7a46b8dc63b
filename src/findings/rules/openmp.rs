//! What do the threads of OpenMP lose?

use gyan_results::{OpenMpRegionSummary, OpenMpSummary};

use super::{RuleMatch, percent};
use crate::findings::account::{Claim, Stake};
use crate::findings::hybrid::{ThreadSeconds, thread_seconds};
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, Time, estimated, exact, taken};

const SHOWN_BY: &str = "gyan report --openmp";
/// With this part of its threads' time lost to imbalance a region is worth a look, as POP has it.
const UNEVEN: f64 = 0.2;

/// What all threads know together, where the efficiencies can be trusted.
fn known<'a>(run: &RunFacts<'a>) -> Option<(&'a OpenMpSummary, ThreadSeconds)> {
    run.efficiencies.as_ref()?.hybrid?;
    Some((run.summary.openmp.as_ref()?, thread_seconds(run.summary)?))
}

/// What a rank would gain if all its threads shared it.
fn own_code(of: &OpenMpSummary, thread_s: f64, error: Option<f64>) -> Stake {
    Stake::new(Claim::OwnCode, Time { seconds: thread_s / of.threads.avg, error })
}

pub(super) fn serial_code(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((of, all)) = known(run) else { return Vec::new() };
    let serial_s = of.serial_s.sum.as_f64();
    let title = format!(
        "outside of parallel regions one thread of a rank works and the others have nothing to do: {} of the threads' time",
        percent(all.serial / all.capacity)
    );
    let advice = vec![
        command(
            "see which parallel regions there are, and have threads share the rest, too",
            "gyan report --openmp DIR",
        ),
        say("or start more ranks with fewer threads each (OMP_NUM_THREADS), which share it out"),
    ];
    let evidence = vec![
        exact("threads of a rank", of.threads.avg, "", SHOWN_BY),
        taken("time outside of parallel regions and of MPI", Time::exact(serial_s), SHOWN_BY),
        estimated("threads' time that it leaves idle", all.serial, "s", SHOWN_BY),
    ];
    let at_stake = Some(own_code(of, all.serial, Some(0.0)));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

/// ` at smooth.c:12`, if that is known.
fn at(run: &RunFacts, region: &OpenMpRegionSummary) -> String {
    let place = region.place.and_then(|at| run.places.regions.get(at));
    place.map_or_else(String::new, |place| format!(" at {place}"))
}

pub(super) fn imbalance(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((of, all)) = known(run) else { return Vec::new() };
    let lost = |region: &OpenMpRegionSummary| region.lost_to_imbalance_s.sum.as_f64();
    let part = |region: &OpenMpRegionSummary| lost(region) / region.threads_s.sum.as_f64();
    let uneven = || of.regions.iter().filter(|region| part(region) >= UNEVEN);
    let Some(most) = uneven().max_by(|one, other| lost(one).total_cmp(&lost(other))) else {
        return Vec::new();
    };
    let (lost_s, most_s) = (uneven().map(lost).sum::<f64>(), lost(most));
    let others = match uneven().count() {
        1 => String::new(),
        number => format!(" and {} more regions", number - 1),
    };
    let title = format!(
        "threads wait for the one with the most work in the parallel region{}{others}: {} of the threads' time",
        at(run, most),
        percent(lost_s / all.capacity)
    );
    let advice = vec![
        say(
            "hand out the iterations of its loop as threads ask for them: schedule(dynamic) or schedule(guided)",
        ),
        command("or share the work out more evenly", "gyan report --openmp DIR"),
    ];
    let evidence = vec![
        estimated("threads' time that the region has less work", most_s, "s", SHOWN_BY),
        estimated("of its threads' time", part(most), "", SHOWN_BY),
        exact("entries on all ranks", most.entries.sum.as_f64(), "", SHOWN_BY),
    ];
    let at_stake = Some(own_code(of, lost_s, time_error_s(uneven())));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

/// The standard error of the time of regions.
fn time_error_s<'r>(regions: impl Iterator<Item = &'r OpenMpRegionSummary>) -> Option<f64> {
    regions.map(|region| region.time_error_s).sum()
}
