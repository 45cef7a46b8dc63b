//! `gyan diff`: what changed from some runs to others, explained exactly where possible, and how much of it is
//! noise.

mod change;
mod numbers;
mod setup;
#[cfg(test)]
mod tests;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use super::program;
use gyan_results::{DIFF_SCHEMA, Difference, Finding, FindingDifference, Side, Summary, Tool};

pub(crate) struct ComparedRun<'a> {
    /// Where it is.
    pub(crate) name: String,
    pub(crate) summary: &'a Summary,
    pub(crate) findings: Vec<Finding>,
    /// Whether it has all ranks, up to their end.
    pub(crate) is_complete: bool,
}

/// What changed from the runs of `a` to those of `b`; each side has at least one. The answer is left empty: the
/// view writes it.
pub(crate) fn difference(a: &[ComparedRun], b: &[ComparedRun]) -> Difference {
    let [of_a, of_b] = [a, b].map(|side| side.iter().map(|run| run.summary).collect::<Vec<_>>());
    let (run_time, parts) = times::run_time(&of_a, &of_b).unzip();
    let (numbers, only) = numbers::numbers(&of_a, &of_b);
    let knows_times = run_time.is_some();
    Difference {
        schema: DIFF_SCHEMA.to_owned(),
        tool: Tool::gyan(),
        answer: String::new(),
        a: side(a),
        b: side(b),
        remarks: remarks(&of_a, &of_b, knows_times, &only),
        setup: setup::setup(&of_a, &of_b),
        run_time,
        parts: parts.unwrap_or_default(),
        phases: times::phases(&of_a, &of_b),
        numbers,
        // Most of them are about times.
        findings: if knows_times { findings(a, b) } else { Vec::new() },
    }
}

fn side(runs: &[ComparedRun]) -> Side {
    let incomplete = runs.iter().filter(|run| !run.is_complete);
    Side {
        runs: runs.iter().map(|run| run.name.clone()).collect(),
        incomplete: incomplete.map(|run| run.name.clone()).collect(),
    }
}

/// What cannot be compared, or not well.
fn remarks(
    a: &[&Summary],
    b: &[&Summary],
    knows_times: bool,
    only: &[BTreeSet<String>; 2],
) -> Vec<String> {
    let mut remarks = Vec::new();
    let all = || a.iter().chain(b);
    let programs: BTreeSet<String> =
        all().map(|run| program(run)).filter(|name| !name.is_empty()).collect();
    if programs.len() > 1 {
        let names = programs.into_iter().collect::<Vec<_>>().join(", ");
        remarks.push(format!(
            "the programs differ ({names}): functions are compared by name, whatever they are \
             called for"
        ));
    }
    let ranks: BTreeSet<u32> = all().map(|run| run.ranks.expected).collect();
    if ranks.len() > 1 {
        remarks.push(
            "the runs differ in ranks: numbers are those of an average rank, and pairs of ranks are not compared".to_owned(),
        );
    }
    if !knows_times {
        remarks.push(
            "a run was recorded by a gyan that did not time calls: times and findings are not \
             compared"
                .to_owned(),
        );
    }
    let of_timed = |is_timed: bool| -> BTreeSet<&str> {
        let calls = all().flat_map(|run| &run.calls).filter(|call| !call.count.is_zero());
        calls
            .filter(|call| call.time_s.is_some() == is_timed)
            .map(|call| call.name.as_str())
            .collect()
    };
    let (timed, not_timed) = (of_timed(true), of_timed(false));
    let sometimes: Vec<&str> = timed.intersection(&not_timed).copied().collect();
    if let [first, more @ ..] = sometimes.as_slice() {
        let others =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        remarks.push(format!(
            "{first}{others} was not timed in each run: its time counts as outside MPI"
        ));
    }
    let phases = [a, b].map(|side| side.iter().any(|run| !run.phases.is_empty()));
    if let [true, false] | [false, true] = phases {
        let which = if phases[0] { "A" } else { "B" };
        remarks.push(format!("only {which} has phases: they are not compared"));
    }
    for (which, names) in ["A", "B"].into_iter().zip(only) {
        if let Some(first) = names.first() {
            let more = names.len() - 1;
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            remarks.push(format!("only {which} has the variable {first}{others}: not compared"));
        }
    }
    remarks
}

/// Findings by their rule, those that came and went first.
fn findings(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<FindingDifference> {
    let mut found: BTreeMap<&str, FindingDifference> = BTreeMap::new();
    for (run, is_b) in a.iter().map(|run| (run, false)).chain(b.iter().map(|run| (run, true))) {
        let mut seen = BTreeSet::new();
        for finding in run.findings.iter().filter(|finding| seen.insert(&finding.id)) {
            let of = found.entry(&finding.id).or_insert_with(|| FindingDifference {
                id: finding.id.clone(),
                title: String::new(),
                acts: finding.acts,
                a_runs: 0,
                b_runs: 0,
                a_share: None,
                b_share: None,
            });
            of.title.clone_from(&finding.title);
            let (runs, share) = if is_b {
                (&mut of.b_runs, &mut of.b_share)
            } else {
                (&mut of.a_runs, &mut of.a_share)
            };
            *runs += 1;
            if let Some(at_stake) = finding.at_stake_share {
                *share = Some(share.unwrap_or(0.0) + at_stake);
            }
        }
    }
    let mut found: Vec<FindingDifference> = found.into_values().collect();
    for of in &mut found {
        of.a_share = of.a_share.map(|sum| sum / of.a_runs as f64);
        of.b_share = of.b_share.map(|sum| sum / of.b_runs as f64);
    }
    let is_on_both = |of: &FindingDifference| of.a_runs > 0 && of.b_runs > 0;
    let share = |of: &FindingDifference| of.a_share.unwrap_or(0.0).max(of.b_share.unwrap_or(0.0));
    found.sort_by(|one, other| {
        let by_share = share(other).total_cmp(&share(one));
        is_on_both(one).cmp(&is_on_both(other)).then(by_share)
    });
    found
}
