//! How did a program do over its commits? Runs in their order, with the changes of their times, and the findings that came
//! and went.
//!
//! It deliberately asks no version control: which commit a run is of, its label says, and what the order is, the start of the
//! runs or the user.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gyan_results::{Finding, Summary};
use strum::VariantArray;

use super::change_points::{ChangePoint, Unchanged, VALUES_AT_LEAST, change_points};
use super::check::{Checked, what_is_missing};
use super::{each_once, program};
use crate::findings::efficiencies;
use crate::statistics::{ALPHA, median};

/// How the runs of a history are told apart.
pub(crate) struct HistoryRules<'a> {
    /// The label that says of which commit a run is.
    pub(crate) label: &'a str,
    /// The commits in their order; empty where the start of their runs tells it.
    pub(crate) order: &'a [String],
    /// How many commits are kept, of each program: the latest.
    pub(crate) last: Option<usize>,
}

/// The runs of a program with the same arguments on the same number of ranks.
pub(crate) struct ProgramHistory<'a> {
    pub(crate) program: String,
    pub(crate) arguments: String,
    pub(crate) ranks: u32,
    /// In their order.
    pub(crate) commits: Vec<Commit<'a>>,
    /// One for each [`Measure`], in their order.
    pub(crate) series: Vec<Series>,
    pub(crate) findings: Vec<FindingHistory<'a>>,
}

/// The runs of a commit, which are repeats; or a run without a label.
pub(crate) struct Commit<'a> {
    /// The value of the label, or when the run started.
    pub(crate) name: &'a str,
    pub(crate) has_label: bool,
    /// When its first run started.
    pub(crate) started: &'a str,
    /// At least one. Those that did not end well count in no number.
    pub(crate) runs: Vec<&'a Checked>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, VariantArray)]
pub(crate) enum Measure {
    /// Seconds from the start of MPI to its end.
    Run,
    /// Seconds of an average rank in MPI.
    InMpi,
    Parallel,
    LoadBalance,
    Communication,
}

impl Measure {
    /// None where it is not known, or only a bound of it.
    fn value(self, summary: &Summary) -> Option<f64> {
        let efficiencies = || efficiencies(summary);
        match self {
            Measure::Run => Some(summary.run_time_s()),
            Measure::InMpi => {
                let in_mpi = summary.in_mpi.as_ref()?;
                in_mpi.time_error_s.map(|_| in_mpi.time_s.avg)
            }
            Measure::Parallel => efficiencies().map(|of| of.parallel),
            Measure::LoadBalance => efficiencies().map(|of| of.load_balance),
            Measure::Communication => efficiencies().map(|of| of.communication),
        }
    }
}

/// A number over the commits.
pub(crate) struct Series {
    pub(crate) measure: Measure,
    /// For each commit: the least, median and largest of its runs; none where no run has it.
    pub(crate) values: Vec<Option<[f64; 3]>>,
    /// The changes, by the places of the commits; only of the time of the run.
    pub(crate) changes: Vec<ChangePoint>,
    /// Whether there are enough commits to look for changes.
    pub(crate) is_judged: bool,
}

impl Series {
    /// The median of what is known of some commits.
    pub(crate) fn level(&self, commits: Range<usize>) -> Option<f64> {
        let values: Vec<f64> = self.values[commits].iter().flatten().map(|of| of[1]).collect();
        median(&values)
    }

    /// The stretches between changes, as commits, each with its level.
    pub(crate) fn levels(&self) -> Vec<(Range<usize>, f64)> {
        let places = || self.changes.iter().map(|change| change.index);
        let parts = [0].into_iter().chain(places()).zip(places().chain([self.values.len()]));
        parts.filter_map(|(from, to)| Some((from..to, self.level(from..to)?))).collect()
    }

    /// The commits between the change before and this one, and between this one and the next.
    pub(crate) fn sides(&self, change: usize) -> [Range<usize>; 2] {
        let place = |at: usize| self.changes.get(at).map(|of| of.index);
        let at = place(change).unwrap_or(0);
        let before = change.checked_sub(1).and_then(place).unwrap_or(0);
        [before..at, at..place(change + 1).unwrap_or(self.values.len())]
    }
}

/// A finding, and in which commits it was in more than half of the runs.
pub(crate) struct FindingHistory<'a> {
    /// As the latest commit that has it says it.
    pub(crate) finding: &'a Finding,
    /// For each commit.
    pub(crate) is_there: Vec<bool>,
}

/// The programs of `runs`, in the order of their first run.
pub(crate) fn histories<'a>(
    runs: &'a [Checked],
    rules: &HistoryRules,
    unchanged: &mut Unchanged,
) -> Vec<ProgramHistory<'a>> {
    let key = |run: &Checked| {
        let arguments = run.summary.job.command.get(1..).unwrap_or_default().join(" ");
        (program(&run.summary), arguments, run.summary.ranks.expected)
    };
    let mut in_order: Vec<&Checked> = runs.iter().collect();
    in_order.sort_by_key(|run| &run.summary.job.started);
    let keys = each_once(in_order.iter().map(|run| key(run)));
    let history = |of: (String, String, u32)| {
        let runs = in_order.iter().copied().filter(|run| key(run) == of).collect();
        let commits = commits(runs, rules);
        let measures = Measure::VARIANTS.iter();
        let series = measures.map(|measure| series(&commits, *measure, unchanged)).collect();
        let findings = findings(&commits);
        let (program, arguments, ranks) = of;
        ProgramHistory { program, arguments, ranks, commits, series, findings }
    };
    keys.into_iter().map(history).collect()
}

/// `runs`: in the order of their start.
fn commits<'a>(runs: Vec<&'a Checked>, rules: &HistoryRules) -> Vec<Commit<'a>> {
    let mut commits: Vec<Commit> = Vec::new();
    for run in runs {
        let job = &run.summary.job;
        let label = job.labels.iter().find(|label| label.name == rules.label);
        let name = label.map(|label| label.value.as_str());
        match commits.iter_mut().find(|of| of.has_label && Some(of.name) == name) {
            Some(commit) => commit.runs.push(run),
            None => commits.push(Commit {
                name: name.unwrap_or(&job.started),
                has_label: name.is_some(),
                started: &job.started,
                runs: vec![run],
            }),
        }
    }
    if !rules.order.is_empty() {
        // An abbreviated name is the same commit. Those that are not in the order come last.
        let place = |of: &Commit| {
            let is_it = |name: &String| name.starts_with(of.name) || of.name.starts_with(&**name);
            rules.order.iter().position(is_it).unwrap_or(usize::MAX)
        };
        commits.sort_by_key(place);
    }
    let first = rules.last.map_or(0, |last| commits.len().saturating_sub(last));
    commits.split_off(first)
}

fn series(commits: &[Commit], measure: Measure, unchanged: &mut Unchanged) -> Series {
    let value = |commit: &Commit| {
        let ended_well = commit.runs.iter().filter(|run| what_is_missing(&run.summary).is_none());
        let values: Vec<f64> = ended_well.filter_map(|run| measure.value(&run.summary)).collect();
        let ends = values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
            [low.min(*value), high.max(*value)]
        });
        Some([ends[0], median(&values)?, ends[1]])
    };
    let values: Vec<Option<[f64; 3]>> = commits.iter().map(value).collect();
    let (places, medians): (Vec<usize>, Vec<f64>) =
        values.iter().enumerate().filter_map(|(at, of)| Some((at, (*of)?[1]))).unzip();
    // The others follow from it: each that is judged as well would add its false alarms.
    let is_judged = measure == Measure::Run && medians.len() >= VALUES_AT_LEAST;
    let mut changes =
        if is_judged { change_points(&medians, ALPHA, unchanged) } else { Vec::new() };
    for change in &mut changes {
        let within = change.within.clone();
        change.index = places[change.index];
        change.within = places[*within.start()]..=places[*within.end()];
    }
    Series { measure, values, changes, is_judged }
}

fn findings<'a>(commits: &[Commit<'a>]) -> Vec<FindingHistory<'a>> {
    let mut latest: BTreeMap<&str, &Finding> = BTreeMap::new();
    let all = commits.iter().flat_map(|commit| &commit.runs).flat_map(|run| &run.findings);
    all.for_each(|finding| {
        latest.insert(&finding.id, finding);
    });
    let is_in = |commit: &Commit, id: &str| {
        let has = |run: &&&Checked| run.findings.iter().any(|finding| finding.id == id);
        2 * commit.runs.iter().filter(has).count() > commit.runs.len()
    };
    let history = |finding: &'a Finding| {
        let is_there = commits.iter().map(|commit| is_in(commit, &finding.id)).collect();
        FindingHistory { finding, is_there }
    };
    let mut findings: Vec<FindingHistory> = latest.into_values().map(history).collect();
    findings.retain(|of| of.is_there.contains(&true));
    let share = |of: &FindingHistory| of.finding.at_stake_share.unwrap_or(0.0);
    findings.sort_by(|one, other| share(other).total_cmp(&share(one)));
    findings
}

pub(crate) fn libraries<'a>(commits: &[Commit<'a>]) -> BTreeSet<&'a str> {
    let runs = commits.iter().flat_map(|commit| &commit.runs);
    runs.map(|run| run.summary.mpi.library.as_str()).collect()
}
