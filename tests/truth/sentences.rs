//! Do findings and titles say what is true?

use std::collections::BTreeSet;

use gyan_results::{Fidelity, Finding};

use super::numbers::HARDLY_ANY;
use super::{Cover, Sight};

/// What a number in a sentence may be off: it has three digits, of which a title rounds the last.
const DIGITS: f64 = 0.012;
/// A finding may say this part more than there is.
const MORE: f64 = 0.1;
/// And so many standard errors of what it is made of: there are thousands of runs.
const ERRORS: f64 = 3.0;

/// Calls that end when a message has come.
const RECEIVES: &[&str] = &["MPI_Recv", "MPI_Waitall"];

/// Seconds that two findings claim, or that nobody has.
pub(super) fn claims(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    let run = sight.run;
    // Ranks that end early wait for the last one.
    let longest = run.summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.max.as_f64());
    let total = longest * f64::from(run.program.size());
    let findings = &sight.shown.findings;
    let claimed: f64 = findings.iter().filter_map(|finding| finding.at_stake_s).sum();
    if claimed > total * (1.0 + 1e-6) {
        faults.push(format!("{claimed} s at stake in a run of {total} s"));
    }
    let mut said = BTreeSet::new();
    for finding in findings {
        let Finding { id, functions, ranks, .. } = finding;
        if !said.insert((id, functions, ranks)) {
            faults.push(format!("{id} twice"));
        }
        let Some(seconds) = finding.at_stake_s else { continue };
        let share = finding.at_stake_share.unwrap_or(0.0);
        if seconds <= 0.0 || (share - seconds / total).abs() > 1e-3 {
            faults.push(format!("{id}: {seconds} s are {share} of {total} s"));
        }
        let of_functions: f64 = functions.iter().map(|name| run.truth.function(name).seconds).sum();
        let calls = run.summary.calls.iter().filter(|call| functions.contains(&call.name));
        let error: f64 = calls.filter_map(|call| call.time_error_s).sum();
        let is_all = !["imbalance", "communication", "late-senders"].contains(&id.as_str());
        if is_all
            && !functions.is_empty()
            && seconds > of_functions * (1.0 + MORE) + ERRORS * error + 1e-6
        {
            faults.push(format!("{id}: {seconds} s of {functions:?}, which take {of_functions} s"));
        }
        for function in functions {
            let others = ["waiting", "algorithm"].map(|id| {
                findings.iter().any(|other| other.id == id && other.functions.contains(function))
            });
            if others == [true, true] {
                faults.push(format!("{function} is mostly waiting, and is to be tuned"));
            }
        }
    }
    faults
}

/// The most that a cause can have taken, of all ranks together.
pub(super) fn causes(sight: &mut Sight) -> Vec<String> {
    let truth = &sight.run.truth;
    let total: f64 = truth.ranks.iter().map(|rank| rank.elapsed_s).sum();
    // The others wait for the rank that lacked a processor the longest.
    let lacked = truth.ranks.iter().map(|rank| rank.processor_wait_s).fold(0.0, f64::max)
        * f64::from(sight.run.program.size());
    let useful: Vec<f64> = truth.ranks.iter().map(|rank| rank.useful_s).collect();
    let most = useful.iter().copied().fold(0.0, f64::max);
    let uneven: f64 = useful.iter().map(|of| most - of).sum();
    let mut faults = Vec::new();
    for Finding { id, at_stake_s, functions, ranks, title, .. } in &sight.shown.findings {
        let stake = at_stake_s.unwrap_or(0.0);
        let together = |name: &String| truth.function(name).waited_together_s;
        let at_most = match id.as_str() {
            // Where hardly anything is work, what gyan costs is much of it.
            "imbalance" if most < HARDLY_ANY * total / useful.len() as f64 => continue,
            "imbalance" => uneven,
            "waiting" => functions.iter().map(together).sum(),
            "late-senders" => {
                RECEIVES.iter().map(|name| truth.function(name).waited_s).sum::<f64>() * 2.0
            }
            "oversubscribed" | "other-load" => lacked,
            _ => continue,
        };
        if stake > at_most * (1.0 + MORE) + 0.005 * total {
            faults.push(format!("{id}: {stake} s of {at_most} s: {title}"));
        }
        if let ("imbalance", [rank]) = (id.as_str(), &ranks[..])
            && useful[*rank as usize] < 0.99 * most
        {
            faults.push(format!("rank {rank} has not the most work: {useful:.4?}"));
        }
        if let ("waiting", [rank]) = (id.as_str(), &ranks[..]) {
            let waited = |rank: u32| {
                let of = functions
                    .iter()
                    .filter_map(|name| truth.waited_for.get(&(name.clone(), rank)).copied());
                of.sum::<f64>()
            };
            let all: f64 = sight.run.program.numbers().map(waited).sum();
            if waited(*rank) < 0.55 * all {
                faults.push(format!("{id}: rank {rank} caused {} s of {all} s", waited(*rank)));
            }
        }
    }
    faults
}

/// The numbers that findings rest on.
pub(super) fn evidence(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    for finding in &sight.shown.findings {
        for evidence in &finding.evidence {
            let Some(function) = evidence.what.strip_prefix("time in MPI_") else { continue };
            let truth = sight.run.truth.function(&format!("MPI_{function}"));
            let off = evidence.value - truth.seconds;
            let resolution = 1e-8 * truth.calls as f64 + 1e-3 * truth.seconds;
            match (evidence.known, evidence.error) {
                (Fidelity::Exact, _) if off.abs() > resolution => {
                    faults.push(format!("{}: exact, but off by {off} s", evidence.what));
                }
                (Fidelity::LowerBound, _) if off > resolution => {
                    faults.push(format!("{}: at least, but {off} s more", evidence.what));
                }
                _ => {}
            }
        }
    }
    let texts = sight.shown.texts.iter().filter(|(name, _)| ["first", "findings"].contains(name));
    for line in texts.flat_map(|(_, text)| text.lines()) {
        if line.contains("at most") && line.contains('≥') && !line.contains('≤') {
            faults.push(format!("at most what is a lower bound: {line}"));
        }
    }
    faults
}

/// The first sentence.
pub(super) fn headline(sight: &mut Sight) -> Vec<String> {
    let first = sight.shown.texts.iter().find(|(name, _)| *name == "first");
    let Some((_, text)) = first else { return vec!["no first screen".into()] };
    let Some(line) = text.lines().find(|line| line.contains("of the run is in MPI")) else {
        return Vec::new();
    };
    let share = line.split("of the run").next().unwrap_or_default();
    let is_number = |sign: &char| sign.is_ascii_digit() || ".< ".contains(*sign);
    let plain: String = share.chars().filter(is_number).collect();
    let numbers: Vec<f64> =
        plain.split(' ').filter_map(|word| word.trim_start_matches('<').parse().ok()).collect();
    let Some(said) = numbers.first().map(|percent| percent / 100.0) else {
        return vec![format!("no number: {line}")];
    };
    // An error below 0.01 % is written as such.
    let error = numbers.get(1).map_or(0.0, |percent| percent / 100.0);
    let is_at_least = share.contains('≥');
    let run = sight.run;
    let in_mpi: f64 = run.truth.ranks.iter().map(|rank| rank.in_mpi_s).sum();
    let mpit = run.program.mpit_s * f64::from(run.program.size());
    // With what gyan cost, which is much of a loop of short calls at its beginning.
    let elapsed = run.summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.sum.as_f64());
    let truths = [0.0, mpit].map(|gone| in_mpi / (elapsed - gone));
    let offs = truths.map(|truth| said - truth);
    let off = if offs[0].abs() < offs[1].abs() { offs[0] } else { offs[1] };
    if error > 0.0 {
        sight.cover.add("the first sentence", off, error, DIGITS);
    } else if off > DIGITS || (!is_at_least && off < -DIGITS) {
        return vec![format!("{truths:.4?}: {line}")];
    }
    Vec::new()
}

/// A program in which nothing is wrong.
pub(super) fn nothing_is_found(sight: &mut Sight) -> Vec<String> {
    let costs = sight.shown.findings.iter().filter(|finding| finding.at_stake_s.is_some());
    costs.map(|finding| format!("{}: {}", finding.id, finding.title)).collect()
}

/// A program in which one thing is wrong, `id`.
pub(super) fn is_found(sight: &mut Sight, ids: &[&str]) -> Vec<String> {
    let findings = &sight.shown.findings;
    let first = findings.iter().find(|finding| finding.at_stake_s.is_some());
    match first {
        Some(first) if ids.contains(&first.id.as_str()) => Vec::new(),
        Some(first) => vec![format!("first: {}: {}", first.id, first.title)],
        None => vec!["nothing is found".into()],
    }
}

/// Estimates of all runs together.
pub(super) fn whole_time(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    let Sight { run, cover, .. } = sight;
    let cover: &mut Cover = cover;
    for profile in &run.profiles {
        let Some(in_mpi) = &profile.in_mpi else { continue };
        let truth = &run.truth.ranks[profile.rank as usize];
        let seconds: f64 = truth.functions.values().map(|of| of.seconds).sum();
        let calls: u64 = truth.functions.values().map(|of| of.calls).sum();
        let resolution = 1e-8 + 2e-9 * calls as f64 + 1e-3 * seconds;
        match in_mpi.time_error_s {
            Some(error) => cover.add("time in MPI", in_mpi.time_s - seconds, error, resolution),
            None if in_mpi.time_s > seconds + resolution => {
                faults.push(format!("at least {} s in MPI, but {seconds}", in_mpi.time_s));
            }
            None => {}
        }
    }
    faults
}
