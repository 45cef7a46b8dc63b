//! What must one know about the numbers themselves?

use gyan_results::Ending;

use super::{Rule, RuleMatch, percent};
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, estimated, exact};
use crate::words::{double, plural_of, seconds, share};

pub(super) const RULES: &[Rule] = rules! {
    450 "nothing-in-mpi": Measurement, "the time in MPI", nothing_in_mpi;
    460 "incomplete": Measurement, "the number of profiles", incomplete;
    470 "too-short": Measurement, "the time of the run", too_short;
    480 "over-budget": Measurement, "the cost of gyan", over_budget;
    490 "no-variables": Measurement, "the number of variables that are not zero", no_variables;
};

fn nothing_in_mpi(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(in_mpi) = &run.summary.in_mpi else { return Vec::new() };
    // A lower bound is not the ground of a finding, and of a short run, or of the rest of one, nothing can be said.
    let is_known = run.is_known_to_its_end() && too_short(run).is_empty();
    if in_mpi.time_error_s.is_none() || !is_known {
        return Vec::new();
    }
    let start_and_end = run.share(run.start_and_end().seconds);
    let rest = |share: f64| (share - start_and_end).max(0.0);
    if rest(in_mpi.share.max.as_f64()) >= 0.05 {
        return Vec::new();
    }
    let title = format!(
        "nothing in MPI is worth your time: {} of the run between MPI_Init and MPI_Finalize",
        percent(rest(in_mpi.share.avg))
    );
    let between_s = (in_mpi.time_s.sum.as_f64() - run.start_and_end().seconds).max(0.0);
    let time = estimated("time in MPI between them", between_s, "s", "gyan report");
    let evidence = vec![gyan_results::Evidence { error: in_mpi.time_error_s, ..time }];
    let tells = run.summary.openmp.as_ref();
    let threads = tells.map(|_| command("see what its threads do", "gyan report --openmp DIR"));
    let mut advice: Vec<_> = threads.into_iter().collect();
    advice.push(say("look at the program itself, with perf for instance"));
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}

fn too_short(run: &RunFacts) -> Vec<RuleMatch> {
    let init_s = run.of_a_rank(run.time(&["MPI_Init", "MPI_Init_thread"]).seconds);
    let Some(elapsed) = run.summary.elapsed_s.as_ref().filter(|_| run.is_known_to_its_end()) else {
        return Vec::new();
    };
    // The library starts in whichever of them comes first.
    let own_s = elapsed.avg - init_s - run.summary.overhead.mpit_init_s.avg;
    if own_s >= 0.5 {
        return Vec::new();
    }
    let title = format!(
        "the run is short ({} after MPI_Init): its shares say little",
        seconds(own_s.max(0.0))
    );
    let evidence = vec![exact("time after MPI_Init, average rank", own_s, "s", "gyan report")];
    let advice = vec![say("measure a run with more steps")];
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}

fn incomplete(run: &RunFacts) -> Vec<RuleMatch> {
    let ranks = &run.summary.ranks;
    let ended: Vec<u32> = ranks
        .ended_badly
        .iter()
        .filter(|ending| ending.how != Ending::Finalize)
        .map(|ending| ending.rank)
        .collect();
    let missing = ranks.missing.len() as f64;
    if ranks.missing.is_empty() && ended.is_empty() {
        return Vec::new();
    }
    let number = ended.len() as f64;
    let title = match (ranks.missing.is_empty(), ended.is_empty()) {
        (false, true) => {
            format!("profiles of {} rank{} are missing", double(missing), plural_of(missing))
        }
        (true, _) => {
            format!("{} rank{} did not end by MPI_Finalize", double(number), plural_of(number))
        }
        _ => format!(
            "profiles of {} rank{} are missing, and {} did not end by MPI_Finalize",
            double(missing),
            plural_of(missing),
            double(number)
        ),
    };
    let evidence = vec![
        exact("profiles that are missing", missing, "", "gyan report"),
        exact("ranks that did not end by MPI_Finalize", number, "", "gyan report"),
    ];
    let advice = vec![command("see what is known of them", "gyan report --all DIR")];
    let all = [ranks.missing.as_slice(), &ended].concat();
    vec![RuleMatch { title, evidence, advice, ranks: all, ..RuleMatch::default() }]
}

/// Who uses up a budget ends near it, a little above as well as below.
const WELL_ABOVE: f64 = 1.5;

fn over_budget(run: &RunFacts) -> Vec<RuleMatch> {
    let overhead = &run.summary.overhead;
    let (Some(running), Some(budget)) = (&overhead.running_share, overhead.budget) else {
        return Vec::new();
    };
    let most = running.max.as_f64();
    if most <= WELL_ABOVE * budget || !run.is_known_to_its_end() {
        return Vec::new();
    }
    let counting = overhead.counting_beyond_budget_s(run.summary.job.known_s());
    let most_called = run.summary.most_called().filter(|_| counting.is_some());
    let why = most_called
        .map_or_else(String::new, |call| format!(": the program calls {} very often", call.name));
    let title =
        format!("gyan took {} of the run, its budget is {}{why}", share(most), share(budget));
    let evidence = vec![exact(
        "largest cost over the ranks, as a share of the run",
        most,
        "",
        "gyan report --all",
    )];
    let advice = vec![say("take differences between very short calls with care; counts are right")];
    vec![RuleMatch {
        title,
        evidence,
        advice,
        ranks: overhead.over_budget.clone(),
        ..RuleMatch::default()
    }]
}

fn no_variables(run: &RunFacts) -> Vec<RuleMatch> {
    let coverage = &run.summary.coverage;
    let is_alive = run.summary.pvars.iter().any(|pvar| !pvar.statistic.is_zero());
    let sends = run.count(super::SENDS) + run.count(super::COLLECTIVES);
    if is_alive || sends < 100.0 || coverage.advice.is_empty() {
        return Vec::new();
    }
    let title = if coverage.sampled == 0 {
        "no performance variable of the library could be read".to_owned()
    } else {
        format!("all {} performance variables of the library stay zero", coverage.sampled)
    };
    let evidence = vec![
        exact("variables of the library", coverage.exported as f64, "", "gyan report --coverage"),
        exact("variables that were read", coverage.sampled as f64, "", "gyan report --coverage"),
    ];
    let advice = coverage.advice.iter().take(1).map(|advice| say(advice.clone())).collect();
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}
