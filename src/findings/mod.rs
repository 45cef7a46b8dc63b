//! What costs time, why, and what to do about it? Rules look at a summary; what they find is ranked by the seconds at
//! stake.
//!
//! Each rule is a row of `rules::RULES` and a page of `docs/findings`. It fires only when its data are there and more than 1 % of the run is
//! at stake, and more than the error of that estimate. Of seconds that several rules explain, the first one claims
//! them (`account`). Efficiencies are those of POP.

#![forbid(unsafe_code)]

mod account;
mod efficiencies;
pub(crate) mod hybrid;
mod kinds;
mod knobs;
mod nominations;
pub(crate) mod rules;
mod run;

use std::collections::BTreeMap;

use gyan_results::{AlsoTrue, Efficiencies, Finding, QueueRow, Summary};

pub(crate) use efficiencies::efficiencies;
pub(crate) use kinds::{LOCK_COMPLETING, LOCKING, is_collective};
pub(crate) use knobs::{hazard_of, witness_of};
pub(crate) use nominations::nominate;
use rules::{LOAD, RULES, Rule, RuleMatch};
use run::RunFacts;

/// Less of the run is not worth anybody's attention.
const LEAST_SHARE: f64 = 0.01;

/// Where in the program functions of MPI are called, in words.
#[derive(Default)]
pub(crate) struct CallPlaces {
    /// Where each function takes the most time, to stand behind its name.
    pub(crate) functions: BTreeMap<String, String>,
    /// The addresses of `message_waiting`, by their index there.
    pub(crate) messages: Vec<String>,
    /// The addresses of `openmp`, by their index there.
    pub(crate) regions: Vec<String>,
}

/// The conclusions from a run.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) efficiencies: Option<Efficiencies>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) eager: Option<Eager>,
}

impl Answers {
    /// Whether the run lacked processors in the first place, which changes all else that was measured.
    pub(crate) fn are_under_load(&self) -> bool {
        self.findings.first().is_some_and(|finding| LOAD.contains(&finding.id.as_str()))
    }
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Eager {
    /// Up to this many bytes, header included, a message is sent without asking.
    pub(crate) limit_bytes: f64,
    /// The share of messages that are larger.
    pub(crate) above: f64,
}

/// When this little time is in MPI, less than this share of the run is no finding of its own.
const NOTHING: &str = "nothing-in-mpi";
/// What is lost outside of MPI has nothing to do with that.
const OUTSIDE: [&str; 3] = ["serial-code", "openmp-imbalance", "short-regions"];
const MUCH_SHARE: f64 = 0.05;

/// With this part of what it wants a finding stands; with less, others explain it.
const MOST_OF_IT: f64 = 0.5;

/// From this share of the run on that ranks lack a processor although there are enough, no other time says much.
const MUCH_LOAD: f64 = 0.2;

/// The efficiencies and the findings of a run.
pub(crate) fn find(summary: &Summary, queues: &[QueueRow], places: &CallPlaces) -> Answers {
    let mut run = RunFacts::new(summary, queues, places);
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES.iter() {
        for found in (rule.look)(&run) {
            judge(&mut run, rule, found, &mut findings);
        }
    }
    let eager = rules::eager(&run);
    let findings = ranked(&run, findings);
    Answers { efficiencies: run.efficiencies, findings, eager }
}

/// Makes a finding of what a rule found, with the seconds that no other has claimed; or has the finding that claimed
/// them say that this is true, too. Nothing where too little is at stake.
fn judge(run: &mut RunFacts, rule: &Rule, found: RuleMatch, findings: &mut Vec<Finding>) {
    let RuleMatch { title, at_stake, evidence, advice, functions, ranks } = found;
    let mut at_stake_s = None;
    if let Some(stake) = &at_stake {
        // A lower bound is the ground of nothing.
        let Some(error) = stake.error else { return };
        // Seconds of several threads at once are no part of the run.
        if run.summary.has_thread_seconds() && !stake.is_of_threads() {
            return;
        }
        let least_s = error.max(LEAST_SHARE * run.total_s);
        let wanted_s = stake.seconds();
        let left = stake.claims.iter().map(|(claim, wanted)| run.account.available(claim, *wanted));
        let left_s: f64 = left.sum();
        if wanted_s <= least_s {
            return;
        }
        if left_s <= least_s || left_s < MOST_OF_IT * wanted_s {
            if let Some(holder) = run.account.holder(stake).and_then(|at| findings.get_mut(at)) {
                let id = rule.id.to_owned();
                holder.also_true.push(AlsoTrue { id, title, seconds: wanted_s });
            }
            return;
        }
        run.account.take(findings.len(), stake);
        at_stake_s = Some(left_s);
    }
    findings.push(Finding {
        id: rule.id.to_owned(),
        title,
        at_stake_s,
        at_stake_share: at_stake_s.map(|seconds| run.share(seconds)),
        acts: rule.acts,
        evidence,
        advice,
        witness: rule.witness.to_owned(),
        functions,
        ranks,
        also_true: Vec::new(),
        under_load: false,
    });
}

/// The most seconds first; then what has none. The load of the machine comes first where it is most of what is lost, or
/// where no other time says much.
fn ranked(run: &RunFacts, mut findings: Vec<Finding>) -> Vec<Finding> {
    if let Some(nothing) = findings.iter().position(|finding| finding.id == NOTHING) {
        let is_small = |finding: &Finding| {
            let is_outside = OUTSIDE.contains(&finding.id.as_str());
            !is_outside && finding.at_stake_share.is_some_and(|of| of < MUCH_SHARE)
        };
        let also: Vec<AlsoTrue> = findings.iter().filter(|one| is_small(one)).map(also).collect();
        findings[nothing].also_true.extend(also);
        findings.retain(|finding| !is_small(finding));
    }
    let stake = |finding: &Finding| finding.at_stake_s.unwrap_or(-1.0);
    let all_s: f64 = findings.iter().filter_map(|finding| finding.at_stake_s).sum();
    let lacks_many = run.lacks_processors() >= MUCH_LOAD;
    let wait_s = run.waits_for_processors().map_or(0.0, |(seconds, _)| seconds);
    let is_first = |finding: &Finding| {
        let is_much = match finding.at_stake_s {
            Some(seconds) => seconds >= 0.5 * all_s,
            // What is lost is not known.
            None => run.share(wait_s) >= MUCH_LOAD,
        };
        LOAD.contains(&finding.id.as_str()) && (lacks_many || is_much)
    };
    findings.sort_by(|one, other| {
        let first = is_first(other).cmp(&is_first(one));
        first.then(stake(other).total_cmp(&stake(one)))
    });
    if findings.first().is_some_and(is_first) {
        for finding in &mut findings {
            finding.under_load =
                finding.at_stake_s.is_some() && !LOAD.contains(&finding.id.as_str());
        }
    }
    findings
}

fn also(finding: &Finding) -> AlsoTrue {
    let Finding { id, title, at_stake_s, .. } = finding;
    AlsoTrue { id: id.clone(), title: title.clone(), seconds: at_stake_s.unwrap_or(0.0) }
}

#[cfg(test)]
mod tests;
