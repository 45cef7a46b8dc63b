//! What do the threads of OpenMP lose?

use gyan_results::{OpenMpRegionSummary, OpenMpSummary};

use super::{Rule, RuleMatch, percent};
use crate::findings::MUCH_SHARE;
use crate::findings::account::{Cause, Claim, Stake};
use crate::findings::hybrid::{ThreadSeconds, thread_seconds};
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, START_AND_END, Time, estimated, exact, taken, time_of};
use crate::words::seconds;

pub(super) const RULES: &[Rule] = rules! {
    90 "serial-code": Program, "the OpenMP efficiency (gyan report --openmp)", serial_code;
    100 "openmp-imbalance": Program,
        "the load balance of the threads (gyan report --openmp)",
        imbalance;
    110 "short-regions": Program,
        "the OpenMP efficiency, and the number of entries (gyan report --openmp)",
        short_regions;
    350 "threads-wait-for-mpi": Program,
        "the MPI efficiency of the threads (gyan report --openmp)",
        threads_wait_for_mpi;
};

const SHOWN_BY: &str = "gyan report --openmp";
/// With this part of its threads' time lost to imbalance a region is worth a look, as POP has it.
const UNEVEN: f64 = 0.2;
/// So much of a region's time without work is worth a look, too.
const MUCH_OVERHEAD: f64 = 0.2;
/// To start and end a region takes up to about 20 us (EPCC's benchmarks: see the page). That is much of a shorter one.
const SHORT_S: f64 = 100e-6;
/// It takes longer where threads sleep between regions. GROMACS with 221 molecules of water on two threads: 60 us for a region, and
/// 4.1 s for the run; 1.4 s where they wait actively.
const ASLEEP_S: f64 = 20e-6;
/// What gyan may take of each entry. EPCC's measure of a region of two threads is 0.8 us more with gyan than without.
const OWN_S: f64 = 1e-6;

/// What all threads know together, where the efficiencies can be trusted.
fn known<'a>(run: &RunFacts<'a>) -> Option<(&'a OpenMpSummary, ThreadSeconds)> {
    run.efficiencies.as_ref()?.hybrid?;
    Some((run.summary.openmp.as_ref()?, thread_seconds(run.summary)?))
}

/// What a rank would gain if all its threads shared it.
fn own_code(of: &OpenMpSummary, thread_s: f64, error: Option<f64>) -> Stake {
    Stake::new(Claim::OwnCode, Time { seconds: thread_s / of.threads.avg, error })
}

fn serial_code(run: &RunFacts) -> Vec<RuleMatch> {
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

/// ` and 2 more regions`, next to the one that is named.
fn and_more(regions: usize) -> String {
    match regions {
        0 | 1 => String::new(),
        2 => " and 1 more region".to_owned(),
        number => format!(" and {} more regions", number - 1),
    }
}

fn imbalance(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((of, all)) = known(run) else { return Vec::new() };
    let lost = |region: &OpenMpRegionSummary| region.lost_to_imbalance_s.sum.as_f64();
    let part = |region: &OpenMpRegionSummary| lost(region) / region.threads_s.sum.as_f64();
    let uneven = || of.regions.iter().filter(|region| part(region) >= UNEVEN);
    let Some(most) = uneven().max_by(|one, other| lost(one).total_cmp(&lost(other))) else {
        return Vec::new();
    };
    let (lost_s, most_s) = (uneven().map(lost).sum::<f64>(), lost(most));
    let title = format!(
        "threads wait for the one with the most work in the parallel region{}{}: {} of the threads' time",
        at(run, most),
        and_more(uneven().count()),
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

fn short_regions(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((of, _)) = known(run) else { return Vec::new() };
    let time_s = |region: &OpenMpRegionSummary| region.time_s.sum.as_f64();
    let entries = |region: &OpenMpRegionSummary| region.entries.sum.as_f64();
    // Nobody works meanwhile: it is the time of the whole rank.
    let overhead_s = |region: &OpenMpRegionSummary| {
        let busy_s = region.most_work_s.sum.as_f64() + region.in_mpi_s.sum.as_f64();
        (time_s(region) - busy_s - OWN_S * entries(region)).max(0.0)
    };
    let is_short = |region: &&OpenMpRegionSummary| {
        time_s(region) < SHORT_S * entries(region)
            && overhead_s(region) >= MUCH_OVERHEAD * time_s(region)
    };
    let short = || of.regions.iter().filter(is_short);
    let most = short().max_by(|one, other| overhead_s(one).total_cmp(&overhead_s(other)));
    let Some(most) = most else { return Vec::new() };
    let lost_s: f64 = short().map(overhead_s).sum();
    let mean_s = |all_s: f64| all_s / entries(most);
    let title = format!(
        "starting and ending the parallel region{} takes {} of its {}{}: {} of the run",
        at(run, most),
        seconds(mean_s(overhead_s(most))),
        seconds(mean_s(time_s(most))),
        match short().count() {
            1 => String::new(),
            number => format!(", and {} more are as short", number - 1),
        },
        percent(run.share(lost_s)),
    );
    let mut advice = Vec::new();
    if mean_s(overhead_s(most)) > ASLEEP_S && run.oversubscribed().is_none() {
        advice.push(command(
            "if its threads sleep between regions, have them wait actively",
            "OMP_WAIT_POLICY=active",
        ));
    }
    advice.extend([
        say(
            "put several loops into one parallel region (omp parallel around, omp for within; nowait where the next loop allows it)",
        ),
        say("or parallelise an outer loop, or have small loops run on one thread: if(n > 10000)"),
        command("see how short they are", "gyan report --openmp DIR"),
    ]);
    let evidence = vec![
        exact("entries on all ranks", entries(most), "", SHOWN_BY),
        estimated("time of an entry", mean_s(time_s(most)), "s", SHOWN_BY),
        estimated("of that to start and end", mean_s(overhead_s(most)), "s", SHOWN_BY),
    ];
    let time = Time { seconds: lost_s, error: time_error_s(short()) };
    let at_stake = Some(Stake::new(Claim::OwnCode, time));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

fn threads_wait_for_mpi(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((of, all)) = known(run) else { return Vec::new() };
    let all_in_mpi_s = of.serial_in_mpi_s.sum.as_f64();
    let in_regions_s: f64 = of.regions.iter().map(|region| region.in_mpi_s.sum.as_f64()).sum();
    // Nothing can be done while MPI starts.
    let in_mpi_s = (all_in_mpi_s - run.start_and_end().seconds).max(0.0);
    let part = if all_in_mpi_s > 0.0 { in_mpi_s / all_in_mpi_s } else { 0.0 };
    let idle_s = (of.lost_to_mpi_s.sum.as_f64() - in_regions_s - all_in_mpi_s).max(0.0) * part;
    let names = run.summary.calls.iter().map(|call| call.name.as_str());
    let others: Vec<&str> = names.filter(|name| !START_AND_END.contains(name)).collect();
    let (Some(worst), true) = (run.worst(&others), idle_s >= MUCH_SHARE * all.capacity) else {
        return Vec::new();
    };
    let title = format!(
        "threads have nothing to do while one is in MPI, above all in {}: {} of the threads' time",
        run.with_place(&worst.name),
        percent(idle_s / all.capacity)
    );
    let advice = vec![
        say(
            "start communication early with nonblocking calls, and compute what does not need it before the wait",
        ),
        say(
            "or have one thread communicate in a task while the others compute (MPI_THREAD_SERIALIZED is enough for one at a time)",
        ),
        command(
            "or try more ranks with fewer threads each (OMP_NUM_THREADS), and compare",
            "gyan diff DIR OTHER",
        ),
    ];
    let error = run.summary.in_mpi.as_ref().and_then(|of| of.time_error_s);
    let evidence = vec![
        exact("threads of a rank", of.threads.avg, "", SHOWN_BY),
        taken(
            "time in MPI outside of parallel regions",
            Time { seconds: in_mpi_s, error },
            SHOWN_BY,
        ),
        estimated("threads' time that it leaves idle", idle_s, "s", SHOWN_BY),
        taken(&format!("time in {}", worst.name), time_of(worst), "gyan report"),
    ];
    // Threads that share all work meanwhile gain no more than there is work.
    let gained_s = idle_s.min(all.useful) / of.threads.avg;
    let time = Time { seconds: gained_s, error };
    let at_stake = Some(run.stake(&others, Cause::Any, time));
    let functions = vec![worst.name.clone()];
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

/// The standard error of the time of regions.
fn time_error_s<'r>(regions: impl Iterator<Item = &'r OpenMpRegionSummary>) -> Option<f64> {
    regions.map(|region| region.time_error_s).sum()
}
