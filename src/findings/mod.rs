//! What costs time, why, and what to do about it? Rules look at a summary; what they find is ranked by the seconds at
//! stake.
//!
//! Each rule is a row of `rules::RULES`. It fires only when its data are there and more than 1 % of the run is
//! at stake, and more than the error of that estimate. Efficiencies are those of POP.

#![forbid(unsafe_code)]

mod efficiencies;
mod knobs;
mod nominations;
pub(crate) mod rules;
mod run;

use std::collections::BTreeMap;

use gyan_results::{Efficiencies, Finding, QueueRow, Summary};

pub(crate) use efficiencies::efficiencies;
pub(crate) use knobs::{hazard_of, witness_of};
pub(crate) use nominations::nominate;
use rules::{Found, RULES, Rule};
use run::Run;

/// Less of the run is not worth anybody's attention.
const LEAST_SHARE: f64 = 0.01;

/// Explains the efficiencies.
pub(crate) const EFFICIENCIES: [(&str, &str); 5] = [
    (
        "What they are",
        "With the time T of an average rank and the time U that a rank spends outside MPI: load balance = mean U / max U; \
         communication efficiency = max U / T; parallel efficiency = load balance x communication efficiency = mean U / T. \
         POP calls values below 80 % worth a look.",
    ),
    (
        "What they mean",
        "The load balance says how evenly work is shared out: what it lacks of 100 % is time in \
         which ranks wait for the one with the most. The communication efficiency says how much \
         even that rank spends in MPI.",
    ),
    (
        "What they do not say",
        "How much of the time in MPI moves data and how much is waiting (POP's transfer and \
         serialisation): telling them apart takes an ideal network to compare with. How fast the \
         processors compute: instructions and clock rates are not counted.",
    ),
    (
        "When they are wrong",
        "Where ranks share processors (see oversubscribed) or sleep, time outside MPI is not work. Ranks that take turns in \
         having the most work have a good load balance over the whole run; phases tell more.",
    ),
    ("Source", "POP Centre of Excellence, Standard Metrics for Performance Audits (pop-coe.eu)"),
];

/// The conclusions from a run.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) efficiencies: Option<Efficiencies>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) eager: Option<Eager>,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Eager {
    /// Up to this many bytes, header included, a message is sent without asking.
    pub(crate) limit_bytes: f64,
    /// The share of messages that are larger.
    pub(crate) above: f64,
}

/// When this little time is in MPI, less than this share of the run is not reported.
const NOTHING: &str = "nothing-in-mpi";
const MUCH_SHARE: f64 = 0.05;

/// The efficiencies and the findings of a run. `places`: where in the program each function takes the most time.
pub(crate) fn find(
    summary: &Summary,
    queues: &[QueueRow],
    places: &BTreeMap<String, String>,
) -> Answers {
    let run = Run::new(summary, queues, places);
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES {
        findings
            .extend((rule.look)(&run).into_iter().filter_map(|found| rule.finding(&run, found)));
    }
    let eager = rules::eager(&run);
    Answers { efficiencies: run.efficiencies, findings: ranked(&findings), eager }
}

impl Rule {
    /// None where too little is at stake.
    fn finding(&self, run: &Run, found: Found) -> Option<Finding> {
        let Found { title, at_stake, evidence, advice, functions, ranks } = found;
        if let Some(at_stake) = at_stake {
            let least_s = at_stake.error.max(LEAST_SHARE * run.total_s);
            if at_stake.seconds <= least_s {
                return None;
            }
        }
        let at_stake_s = at_stake.map(|at_stake| at_stake.seconds.min(run.total_s));
        Some(Finding {
            id: self.id.to_owned(),
            title,
            at_stake_s,
            at_stake_share: at_stake_s.map(|seconds| run.share(seconds)),
            acts: self.acts,
            evidence,
            advice,
            witness: self.witness.to_owned(),
            functions,
            ranks,
        })
    }
}

/// How much of the time of a finding another one explains that takes its place.
pub(crate) fn most(other: &str) -> f64 {
    // Half of it is most of it. A rank that is held up, also in its sends, makes several others wait.
    if [rules::OTHER_LOAD, rules::SENDS_HELD_UP].contains(&other) { 0.35 } else { 0.5 }
}

/// Without those that others explain better, the most seconds first; then what has none.
fn ranked(findings: &[Finding]) -> Vec<Finding> {
    let stake = |finding: &Finding| finding.at_stake_s.unwrap_or(-1.0);
    let explains = |finding: &Finding| finding.at_stake_s.unwrap_or(0.0);
    let is_explained = |finding: &Finding| {
        let rule = RULES.iter().find(|rule| rule.id == finding.id);
        let yields_to = rule.map_or(&[] as &[&str], |rule| rule.yields_to);
        findings.iter().any(|other| {
            yields_to.contains(&other.id.as_str())
                && explains(other) >= most(&other.id) * explains(finding)
        })
    };
    let mut findings: Vec<Finding> =
        findings.iter().filter(|finding| !is_explained(finding)).cloned().collect();
    if findings.iter().any(|finding| finding.id == NOTHING) {
        findings.retain(|finding| finding.at_stake_share.is_none_or(|share| share >= MUCH_SHARE));
    }
    findings.sort_by(|one, other| stake(other).total_cmp(&stake(one)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_of_their_own_and_yield_to_others_that_exist() {
        let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        for (at, rule) in RULES.iter().enumerate() {
            assert!(!ids[..at].contains(&rule.id), "{}", rule.id);
            assert!(rule.id.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-'));
            for other in rule.yields_to {
                assert!(ids.contains(other) && *other != rule.id, "{}: {other}", rule.id);
            }
            let texts = [
                rule.needs,
                rule.when,
                rule.means,
                rule.wrong_when,
                rule.todo,
                rule.witness,
                rule.source,
            ];
            assert!(texts.iter().all(|text| text.len() > 10), "{}", rule.id);
        }
    }
}
