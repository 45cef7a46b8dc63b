//! Is a program worse than it was? New runs against baselines, by rules: counts against a limit, findings by name, times
//! against the noise of the baselines.
//!
//! It deliberately ignores what got better, and explains nothing: `gyan diff` does that.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use gyan_results::{
    CHECK_SCHEMA, CallSummary, CheckResult, CheckRule, Finding, JudgedRow, Judgement, Number,
    Statistic, Summary, Tool, TrafficKind,
};
use wildmatch::WildMatch;

use super::judge::{self, Answer, FamilyRow, Judged, could_show, runs_of_each};
use super::program;
use crate::statistics::{self, median};
use crate::words::short_library;
use rules::Limit;
pub(crate) use rules::{DEFAULT as DEFAULT_RULES, Rules};

/// A run with its findings.
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) summary: Summary,
    pub(crate) findings: Vec<Finding>,
}

/// Why a run is not one whose ranks are all there and all ended with `MPI_Finalize`; none when it is.
pub(crate) fn what_is_missing(summary: &Summary) -> Option<String> {
    let ranks = &summary.ranks;
    if !ranks.is_complete() {
        return Some(format!("{} of {} ranks are there", ranks.reduced, ranks.expected));
    }
    let first = ranks.ended_badly.first()?;
    let (number, rank) = (ranks.ended_badly.len(), first.rank);
    Some(format!(
        "{number} of {} ranks did not call MPI_Finalize, first rank {rank}",
        ranks.expected
    ))
}

/// Judges `new` runs by `rules`. `findings`: the names of all existing findings. Both sides have at least one
/// run.
pub(crate) fn judge(
    new: &[Checked],
    baselines: &[Checked],
    rules: &Rules,
    findings: &[&str],
    tool: Tool,
) -> Judgement {
    let sides = RunsToJudge { new, baselines, rules };
    let (set_up, ignored) = (sides.set_up(), sides.ignored());
    let mut rows = sides.ended();
    rows.extend(sides.calls());
    rows.extend(sides.bytes());
    rows.extend(sides.messages());
    rows.extend(sides.findings(findings));
    rows.extend(sides.times());
    let names = |of: &[Checked]| of.iter().map(|run| run.name.clone()).collect();
    let result = sides.result(&rows);
    Judgement {
        schema: CHECK_SCHEMA.to_owned(),
        tool,
        passed: result == CheckResult::Passed,
        result,
        runs: names(new),
        baselines: names(baselines),
        remarks: set_up,
        ignored,
        rows,
    }
}

struct RunsToJudge<'a> {
    new: &'a [Checked],
    baselines: &'a [Checked],
    rules: &'a Rules,
}

fn row(rule: CheckRule, what: impl Into<String>, unit: &str, failed: bool) -> JudgedRow {
    let result = if failed { CheckResult::Failed } else { CheckResult::Passed };
    let (what, unit) = (what.into(), unit.to_owned());
    let (baseline, now, at_most, p, shift, remark) = Default::default();
    JudgedRow { rule, what, result, unit, baseline, now, at_most, p, shift, remark }
}

struct Times {
    name: String,
    before: Vec<f64>,
    now: Vec<f64>,
    /// Whether one of them is only a lower bound.
    is_bound: bool,
}

fn not_judged(rule: CheckRule, what: impl Into<String>, unit: &str, why: &str) -> JudgedRow {
    let result = CheckResult::NotJudged;
    JudgedRow { result, remark: Some(why.to_owned()), ..row(rule, what, unit, false) }
}

impl<'a> RunsToJudge<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.baselines.iter().chain(self.new).map(|run| &run.summary)
    }

    fn have_as_many_ranks(&self) -> bool {
        self.differs(|summary| summary.ranks.expected.to_string()).is_none()
    }

    /// The values of a baseline and of a new run for something in which not all runs agree.
    fn differs(&self, of: impl Fn(&Summary) -> String) -> Option<(String, String)> {
        let first = of(&self.baselines.first()?.summary);
        let other = self.all().map(&of).find(|other| *other != first)?;
        Some((first, other))
    }

    /// How runs whose numbers are compared differ.
    fn set_up(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let arguments =
            |summary: &Summary| summary.job.command.get(1..).unwrap_or_default().join(" ");
        if let Some((one, other)) = self.differs(program) {
            remarks.push(format!("runs of different programs: {one} and {other}"));
        } else if let Some((one, other)) = self.differs(arguments) {
            remarks.push(format!("different arguments: \"{one}\" and \"{other}\""));
        }
        if let Some((one, other)) = self.differs(|of| of.ranks.expected.to_string()) {
            remarks.push(format!(
                "{one} and {other} ranks: only calls that all ranks of a run make equally often \
                 are compared, per rank; bytes, messages and times are not"
            ));
        }
        if let Some((one, other)) = self.differs(|of| short_library(&of.mpi.library)) {
            remarks.push(format!("different MPI libraries: {one} and {other}"));
        }
        remarks
    }

    fn ignored(&self) -> Vec<String> {
        let functions = self.functions();
        let ignored = functions.iter().filter(|name| self.rules.ignores(name));
        ignored.map(|name| (*name).to_owned()).collect()
    }

    /// Whether the new runs finished.
    fn ended(&self) -> Vec<JudgedRow> {
        if !self.rules.wants_ends() {
            return Vec::new();
        }
        let row = |run: &Checked| {
            let missing = what_is_missing(&run.summary);
            let failed = missing.is_some();
            JudgedRow { remark: missing, ..row(CheckRule::Ended, &run.name, "", failed) }
        };
        self.new.iter().map(row).collect()
    }

    fn functions(&self) -> BTreeSet<&'a str> {
        self.all().flat_map(|summary| &summary.calls).map(|call| call.name.as_str()).collect()
    }

    fn judged_functions(&self) -> impl Iterator<Item = &'a str> {
        self.functions().into_iter().filter(|name| !self.rules.ignores(name))
    }

    fn calls(&self) -> Vec<JudgedRow> {
        let as_many_ranks = self.have_as_many_ranks();
        let row = |function: &str| {
            let limit = self.rules.calls.limit(function).0?;
            let count = |summary: &Summary| match call(summary, function) {
                None => Some(Number::Integer(0)),
                Some(call) if as_many_ranks => Some(call.count.sum),
                Some(call) => of_each_rank(&call.count, summary),
            };
            self.grown(CheckRule::Calls, function, "", limit, count)
        };
        self.judged_functions().filter_map(row).collect()
    }

    fn bytes(&self) -> Vec<JudgedRow> {
        if !self.have_as_many_ranks() {
            return Vec::new();
        }
        let row = |function: &str| {
            let limit = self.rules.bytes.limit(function).0?;
            let bytes = |summary: &Summary| match call(summary, function) {
                None => Some(Number::Integer(0)),
                Some(call) => call.bytes.as_ref().map(|bytes| bytes.sum),
            };
            self.grown(CheckRule::Bytes, function, "bytes", limit, bytes)
        };
        self.judged_functions().filter_map(row).collect()
    }

    fn messages(&self) -> Vec<JudgedRow> {
        let Limit(Some(limit)) = self.rules.messages.growth_percent else { return Vec::new() };
        if !self.have_as_many_ranks() {
            return Vec::new();
        }
        // When something was sent, but to nobody, peers were not recorded.
        let sends = |call: &CallSummary| call.name.to_ascii_lowercase().contains("send");
        if self.all().any(|of| of.peers.is_empty() && of.calls.iter().any(sends)) {
            let why = "a run does not say who sent to whom (GYAN_PEERS=off, or an older gyan)";
            return vec![not_judged(CheckRule::Messages, "messages", "", why)];
        }
        let traffic = |kind: TrafficKind, bytes: bool| {
            move |summary: &Summary| {
                let of = summary.peers.iter().find(|of| of.kind == kind);
                let number = of.map_or(0, |of| if bytes { of.bytes } else { of.number });
                Some(Number::Integer(number.into()))
            }
        };
        [
            ("messages", "", traffic(TrafficKind::Messages, false)),
            ("bytes of messages", "bytes", traffic(TrafficKind::Messages, true)),
            ("accesses", "", traffic(TrafficKind::Accesses, false)),
            ("bytes of accesses", "bytes", traffic(TrafficKind::Accesses, true)),
        ]
        .into_iter()
        .filter_map(|(what, unit, of)| self.grown(CheckRule::Messages, what, unit, limit, of))
        .collect()
    }

    /// A count, judged: even the smallest of the new runs is above what the baselines allow. When these differ
    /// from each other, the count depends on more than the program, and may grow by that much again. None when
    /// it is not known, or 0 in every run.
    fn grown(
        &self,
        rule: CheckRule,
        what: &str,
        unit: &str,
        limit: f64,
        of: impl Fn(&Summary) -> Option<Number>,
    ) -> Option<JudgedRow> {
        let numbers = |runs: &[Checked]| runs.iter().map(|run| of(&run.summary)).collect();
        let (before, now): (Option<Vec<Number>>, Option<Vec<Number>>) =
            (numbers(self.baselines), numbers(self.new));
        let by_size = |one: &Number, other: &Number| one.as_f64().total_cmp(&other.as_f64());
        let (before, now) = (before?, now?.into_iter().min_by(by_size)?);
        let most = before.iter().copied().max_by(by_size)?;
        let spread = most.as_f64() - before.into_iter().min_by(by_size)?.as_f64();
        let base = most.as_f64() + spread;
        // 116 is 16 % more than 100, though 100 x 1.16 is rounded to less.
        let at_most = (base * (1.0 + limit) + base * limit * 1e-9).floor();
        if most.is_zero() && now.is_zero() {
            return None;
        }
        Some(JudgedRow {
            baseline: Some(most),
            now: Some(now),
            at_most: Some(whole(at_most)),
            remark: (spread > 0.0).then(|| "the baselines differ from each other".to_owned()),
            ..row(rule, what, unit, now.as_f64() > at_most)
        })
    }

    fn findings(&self, ids: &[&str]) -> Vec<JudgedRow> {
        let least = self.rules.findings.least_share_percent / 100.0;
        let found = |run: &'a Checked, id: &str| run.findings.iter().find(|found| found.id == id);
        let row = |id: &&str| {
            let before = self.baselines.iter().filter(|run| found(run, id).is_some()).count();
            let weighty =
                |finding: &&Finding| finding.at_stake_share.is_none_or(|part| part >= least);
            let now: Vec<&Finding> =
                self.new.iter().filter_map(|run| found(run, id)).filter(weighty).collect();
            let failed = before == 0 && now.len() == self.new.len();
            let title = now.first().map(|finding| finding.title.clone());
            JudgedRow {
                baseline: Some(integer(before)),
                now: Some(integer(now.len())),
                remark: title,
                ..row(CheckRule::Findings, *id, "", failed)
            }
        };
        ids.iter().filter(|id| self.rules.names_finding(id)).map(row).collect()
    }

    fn times(&self) -> Vec<JudgedRow> {
        let (Limit(Some(limit)), true) =
            (self.rules.times.growth_percent, self.have_as_many_ranks())
        else {
            return Vec::new();
        };
        let mut times: Vec<Times> = Vec::new();
        let mut rows = Vec::new();
        for name in &self.rules.times.judge {
            let found = self.seconds(name);
            if found.is_empty() {
                let why = "not every run has it";
                rows.push(not_judged(CheckRule::Times, name, "s", why));
            }
            // A function may match several names.
            let is_new = |of: &Times| times.iter().all(|other| other.name != of.name);
            let new: Vec<Times> = found.into_iter().filter(is_new).collect();
            times.extend(new);
        }
        let family: Vec<FamilyRow> = times
            .iter()
            .map(|of| FamilyRow { a: &of.before, b: &of.now, is_bound: of.is_bound })
            .collect();
        // What is faster never fails.
        let judged = judge::judge(&family, statistics::Sides::Larger);
        let tests = times.iter().filter(|of| !of.is_bound).count();
        for (Times { name, before, now, .. }, judged) in times.iter().zip(judged) {
            let [Some(before_s), Some(now_s)] = [before, now].map(|of| median(of)) else {
                continue;
            };
            let at_most = before_s * (1.0 + limit);
            let Judged { p_adjusted, shift, answer, .. } = judged;
            let row = match answer {
                Answer::Yes => row(CheckRule::Times, name, "s", now_s > at_most),
                Answer::NotShown => row(CheckRule::Times, name, "s", false),
                Answer::TooFew(_) => not_judged(CheckRule::Times, name, "s", &self.too_few(tests)),
                Answer::Bound => {
                    let why = "too few of its calls were timed: the time is only a lower bound";
                    not_judged(CheckRule::Times, name, "s", why)
                }
            };
            let [baseline, now, at_most] =
                [before_s, now_s, at_most].map(|seconds| Some(Number::Double(seconds)));
            rows.push(JudgedRow { baseline, now, at_most, p: p_adjusted, shift, ..row });
        }
        rows
    }

    /// Why changes of so many times cannot be told from noise, and what it would take.
    fn too_few(&self, times: usize) -> String {
        const REASONABLE: usize = 10;
        let (before, now) = (self.baselines.len(), self.new.len());
        let is_enough = |new: &usize| could_show(before, *new, statistics::Sides::Larger, times);
        let is = if now == 1 { "is 1".to_owned() } else { format!("are {now}") };
        let of = if times == 1 { String::new() } else { format!(" of {times} times") };
        match ((1..=REASONABLE).find(is_enough), runs_of_each(statistics::Sides::Larger, times)) {
            (Some(new), _) => format!(
                "with {before} baselines it takes {new} new runs to tell a change{of} from noise; here there {is}"
            ),
            (None, Some(each)) => format!(
                "it takes {each} baselines and {each} new runs to tell a change{of} from noise; here there {}",
                if before == 1 {
                    format!("is 1 baseline and {now} new")
                } else {
                    format!("are {before} and {now}")
                }
            ),
            (None, None) => {
                format!("no number of runs can tell a change{of} from noise: judge fewer")
            }
        }
    }

    fn seconds(&self, name: &str) -> Vec<Times> {
        // With its standard error, which a lower bound does not have.
        type Time = (f64, Option<f64>);
        let of_runs = |name: &str, of: &dyn Fn(&Summary) -> Option<Time>| {
            let side = |runs: &[Checked]| runs.iter().map(|run| of(&run.summary)).collect();
            let (before, now): (Option<Vec<Time>>, Option<Vec<Time>>) =
                (side(self.baselines), side(self.new));
            let (before, now) = (before?, now?);
            let is_bound = before.iter().chain(&now).any(|(_, error)| error.is_none());
            let seconds = |of: Vec<Time>| of.into_iter().map(|(seconds, _)| seconds).collect();
            let (before, now) = (seconds(before), seconds(now));
            Some(Times { name: name.to_owned(), before, now, is_bound })
        };
        match name {
            "run" => {
                let longest = |of: &Summary| Some((of.run_time_s(), Some(0.0)));
                of_runs(name, &longest).into_iter().collect()
            }
            "in_mpi" => {
                let average = |of: &Summary| {
                    let in_mpi = of.in_mpi.as_ref()?;
                    Some((in_mpi.time_s.avg, in_mpi.time_error_s))
                };
                of_runs(name, &average).into_iter().collect()
            }
            "serial_code" | "openmp_imbalance" => {
                let average = |of: &Summary| {
                    let openmp = of.openmp.as_ref()?;
                    let idle = match name {
                        "serial_code" => &openmp.lost_to_serial_s,
                        _ => &openmp.lost_to_imbalance_s,
                    };
                    Some((idle.avg, Some(0.0)))
                };
                of_runs(name, &average).into_iter().collect()
            }
            "late_senders" | "late_receivers" => {
                let average = |of: &Summary| {
                    let waiting = of.message_waiting.as_ref()?;
                    let (waiting_s, error) = match name {
                        "late_senders" => (waiting.late_senders_s, waiting.late_senders_error_s),
                        _ => (waiting.late_receivers_s, waiting.late_receivers_error_s),
                    };
                    Some((waiting_s / f64::from(of.ranks.reduced.max(1)), error))
                };
                of_runs(name, &average).into_iter().collect()
            }
            glob => {
                let pattern = WildMatch::new(glob);
                let functions = self.functions().into_iter().filter(|name| pattern.matches(name));
                let average = |function: &str, of: &Summary| {
                    let Some(call) = call(of, function) else { return Some((0.0, Some(0.0))) };
                    let ranks = f64::from(of.ranks.reduced.max(1));
                    let time_s = call.time_s.as_ref()?.sum.as_f64();
                    Some((time_s / ranks, call.time_error_s))
                };
                functions.filter_map(|name| of_runs(name, &|of| average(name, of))).collect()
            }
        }
    }

    /// The result of all rows. A check that was to judge times and could not must not look as if it had.
    fn result(&self, rows: &[JudgedRow]) -> CheckResult {
        let has = |result: CheckResult| rows.iter().any(|row| row.result == result);
        let times = || rows.iter().filter(|row| row.rule == CheckRule::Times);
        let is_judged = |row: &JudgedRow| row.result != CheckResult::NotJudged;
        let has_repeats = self.new.len().min(self.baselines.len()) > 1;
        let wants_times = self.rules.times.are_asked_for || has_repeats;
        let lacks_times = times().next().is_some() && !times().any(is_judged);
        if has(CheckResult::Failed) {
            CheckResult::Failed
        } else if !has(CheckResult::Passed) || (wants_times && lacks_times) {
            CheckResult::NotJudged
        } else {
            CheckResult::Passed
        }
    }
}

fn call<'a>(summary: &'a Summary, function: &str) -> Option<&'a CallSummary> {
    summary.calls.iter().find(|call| call.name == function)
}

/// The number of each rank, if it is the same for all.
fn of_each_rank(count: &Statistic, summary: &Summary) -> Option<Number> {
    let is_same = count.min == count.max && count.ranks == u64::from(summary.ranks.reduced);
    is_same.then_some(count.min)
}

fn integer(number: usize) -> Number {
    Number::Integer(number as i128)
}

fn whole(double: f64) -> Number {
    // Counts lie far below 2^127.
    #[allow(clippy::cast_possible_truncation)]
    let integer = double as i128;
    Number::Integer(integer)
}
