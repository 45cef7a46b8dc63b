//! Each rule of `gyan report --findings` finds its problem, with the right function, rank and numbers, but not
//! in a twin without the problem: another program, other settings, or what the finding itself advises. The
//! numbers that change between the two are recorded for the table of docs/findings.md.

mod cases;
mod witnesses;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use gyan_results::{Finding, Summary};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::common::{Mpi, Outcome, command, gyan, in_some_try, root, run, target};
use cases::CASES;
use witnesses::Witness;

/// How many ranks.
#[derive(Clone, Copy)]
enum Ranks {
    Are(usize),
    PerProcessor(usize),
}

/// A run of `tests/programs/problems.c`, or of `problems_openmp.c`.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // what a case may want
struct Start {
    mpi: Mpi,
    ranks: Ranks,
    /// On one processor.
    is_bound: bool,
    /// Next to twice as many busy processes as there are processors.
    is_beside_others: bool,
    /// The launcher does not see that there are too few processors.
    has_slots: bool,
    /// As by `gyan run --set`.
    set: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    is_healthy: bool,
    /// Of threads of OpenMP.
    is_openmp: bool,
}

const fn start(mpi: Mpi) -> Start {
    Start {
        mpi,
        ranks: Ranks::Are(2),
        is_bound: false,
        is_beside_others: false,
        has_slots: false,
        set: &[],
        environment: &[],
        is_healthy: false,
        is_openmp: false,
    }
}

/// The run to compare with.
enum Twin {
    /// The program without the problem.
    Healthy,
    /// The same program, started differently.
    Started(Start),
    /// With the first command that the finding advises. Pairs of placeholders in it and their values.
    Advised(&'static [(&'static str, &'static str)]),
}

/// Whether the twin has the finding.
enum Then {
    Gone,
    /// It may stay: the advice makes the problem smaller, or is only worth a try.
    MayStay,
}

struct Case {
    rule: &'static str,
    start: Start,
    functions: &'static [&'static str],
    ranks: &'static [u32],
    /// The numbers that it rests on, and their ranges.
    evidence: &'static [(&'static str, f64, f64)],
    twins: &'static [(Twin, Then, Witness)],
}

impl Case {
    const fn of(rule: &'static str, start: Start) -> Case {
        let (functions, ranks, evidence, twins): (&[_], &[_], &[_], &[_]) = (&[], &[], &[], &[]);
        Case { rule, start, functions, ranks, evidence, twins }
    }
}

/// A run, and how long it took by its own clock, unless it was killed.
struct Ran {
    summary: Summary,
    clock_s: Option<f64>,
}

/// A row of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Proof {
    pub(crate) rule: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) mpi: String,
    pub(crate) witness: String,
    pub(crate) values: Option<[String; 2]>,
    pub(crate) elapsed_s: [f64; 2],
    /// What was found.
    pub(crate) finding: Finding,
}

/// What was proven, in the order of the cases.
pub(crate) fn proofs() -> Vec<Proof> {
    let files = (0..PARTS).map(|part| directory().join(format!("{part}.json")));
    let read = |file: PathBuf| -> Vec<Proof> {
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        serde_json::from_slice(&text).unwrap()
    };
    files.flat_map(read).collect()
}

/// Where the tests put their rows.
fn directory() -> PathBuf {
    target().join("findings")
}

/// Processes that just burn processor time until this is dropped.
struct Others(Vec<Child>);

impl Others {
    fn new(number: usize) -> Others {
        let busy = |_| {
            let mut busy = Command::new("timeout");
            busy.args(["60", "sh", "-c", "while :; do :; done"]);
            busy.stdin(Stdio::null()).spawn().unwrap()
        };
        Others((0..number).map(busy).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Ending `timeout` ends what it started.
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn processors() -> usize {
    available_parallelism().unwrap().get()
}

impl Start {
    /// Runs it with these settings too, and reads the report.
    fn ran(self, rule: &str, more: &[String]) -> Ran {
        let here = TempDir::new().unwrap();
        let ranks = match self.ranks {
            Ranks::Are(ranks) => ranks,
            Ranks::PerProcessor(ranks) => ranks * processors(),
        };
        let mut words: Vec<String> = Vec::new();
        if self.is_bound {
            words.extend(["taskset", "-c", &first_processor()].map(str::to_owned));
        }
        words.extend([gyan().get_program().display().to_string()]);
        words.extend(["run", "-o", "out"].map(str::to_owned));
        let sets = self.set.iter().map(|set| (*set).to_owned()).chain(more.iter().cloned());
        words.extend(sets.flat_map(|set| ["--set".to_owned(), set]));
        words.push("--".into());
        let mut words = self.mpi.mpirun_after(&words, ranks);
        // Its component for fabrics is part of the problem.
        if rule == "slow-start" {
            words.retain(|word| word != "OMPI_MCA_btl=^ofi");
        }
        if self.has_slots {
            words.extend(["--host".into(), format!("localhost:{ranks}")]);
        }
        // GNU's runtime tells nothing of its regions.
        let compiler: &[&str] = if self.is_openmp { &["-cc=clang", "-fopenmp"] } else { &[] };
        words.push(self.mpi.compiled(self.program(), compiler).display().to_string());
        words.push(rule.into());
        words.extend(self.is_healthy.then(|| "healthy".into()));
        let others = Others::new(if self.is_beside_others { 2 * processors() } else { 0 });
        let mut command = command(&words);
        let outcome = run(command.current_dir(&here).envs(self.environment.iter().copied()));
        drop(others);
        let is_killed = rule == "incomplete" && !self.is_healthy;
        assert_eq!(outcome.code != 0, is_killed, "{words:?} {}", outcome.stderr);
        let clock = outcome.stdout.split("by its own clock: ").nth(1);
        let clock_s = clock.and_then(|rest| rest.split(' ').next()?.parse().ok());
        let report = ["report", "--format", "json", "out"];
        let Outcome { stdout, stderr, .. } = run(gyan().args(report).current_dir(&here));
        let summary = serde_json::from_str(&stdout);
        let summary = summary.unwrap_or_else(|error| panic!("{words:?} {error}: {stderr}"));
        Ran { summary, clock_s }
    }

    fn program(self) -> &'static str {
        if self.is_openmp { "problems_openmp" } else { "problems" }
    }

    /// In the form that a user writes.
    fn words(self, rule: &str, more: &[String]) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.is_bound.then(|| "on one processor:".to_owned()));
        words.extend(self.is_beside_others.then(|| "beside busy processes:".to_owned()));
        words.extend(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        words.extend(self.set.iter().map(|set| format!("--set {set}")));
        words.extend(more.iter().map(|set| format!("--set {set}")));
        words.push(match self.ranks {
            Ranks::Are(ranks) => format!("-n {ranks}"),
            Ranks::PerProcessor(1) => "-n PROCESSORS".into(),
            Ranks::PerProcessor(ranks) => format!("-n {ranks}*PROCESSORS"),
        });
        words.push(format!("{} {rule}", self.program()));
        words.extend(self.is_healthy.then(|| "healthy".into()));
        words.join(" ")
    }
}

/// The first processor that this process may run on.
fn first_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().split([',', '-']).next().unwrap().to_owned()
}

fn finding<'a>(summary: &'a Summary, rule: &str) -> Option<&'a Finding> {
    summary.findings.iter().find(|finding| finding.id == rule)
}

/// The settings of the first command that it advises.
fn advised(finding: &Finding, stands_for: &[(&str, &str)]) -> Vec<String> {
    let command = finding.advice.iter().find_map(|advice| advice.command.as_ref());
    let command = command.unwrap_or_else(|| panic!("no command in {finding:?}"));
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["gyan", "run"], "{command}");
    let sets = words.windows(2).filter(|two| two[0] == "--set").map(|two| two[1]);
    let meant = |set: &str| {
        let (name, value) = set.split_once('=').unwrap();
        let meant = stands_for.iter().find(|(word, _)| *word == value);
        format!("{name}={}", meant.map_or(value, |(_, meant)| *meant))
    };
    let sets: Vec<String> = sets.map(meant).collect();
    assert!(!sets.is_empty(), "{command}");
    sets
}

impl Case {
    fn is_proven(&self) -> Vec<Proof> {
        let Case { rule, start, .. } = self;
        let ran = start.ran(rule, &[]);
        let before = &ran.summary;
        let ids: Vec<&str> = before.findings.iter().map(|finding| finding.id.as_str()).collect();
        let what = format!("{rule} with {}", start.mpi.name);
        let finding = finding(before, rule).unwrap_or_else(|| panic!("{what} is not in {ids:?}"));
        let what = format!("{what}: {finding:?}");
        assert_eq!(finding.functions, self.functions, "{what}");
        assert_eq!(finding.ranks, self.ranks, "{what}");
        for (name, least, most) in self.evidence {
            let number = finding.evidence.iter().find(|number| number.what == *name);
            let value = number.unwrap_or_else(|| panic!("no {name} in {what}")).value;
            assert!((*least..=*most).contains(&value), "{name} of {what}");
        }
        self.twins.iter().map(|twin| self.compared(&ran, finding, twin)).collect()
    }

    fn compared(&self, ran: &Ran, found: &Finding, twin: &(Twin, Then, Witness)) -> Proof {
        let Case { rule, start, .. } = self;
        let (twin, then, witness) = twin;
        let (twin, more) = match twin {
            Twin::Healthy => (Start { is_healthy: true, ..*start }, Vec::new()),
            Twin::Started(other) => (*other, Vec::new()),
            Twin::Advised(stands_for) => (*start, advised(found, stands_for)),
        };
        let before = &ran.summary;
        let of_twin = twin.ran(rule, &more);
        let after = &of_twin.summary;
        let what = twin.words(rule, &more);
        if matches!(then, Then::Gone) {
            assert!(finding(after, rule).is_none(), "{what}: {:?}", finding(after, rule));
        }
        let mpis = BTreeSet::from([start.mpi.name, twin.mpi.name]);
        Proof {
            rule: (*rule).into(),
            before: start.words(rule, &[]),
            after: what.clone(),
            mpi: mpis.into_iter().collect::<Vec<_>>().join(", "),
            witness: witness.name.into(),
            values: witness.compared([before, after], &what),
            elapsed_s: [ran, &of_twin].map(|ran| ran.clock_s.unwrap_or(ran.summary.job.elapsed_s)),
            finding: found.clone(),
        }
    }
}

/// The number of cases must match the tests.
const PARTS: usize = 4;
const TRIES: usize = 5;

fn prove(part: usize) {
    let length = CASES.len().div_ceil(PARTS);
    let cases: Vec<&Case> = CASES.iter().skip(part * length).take(length).collect();
    // A failure does not hide the others. On a busy machine another explanation can be the best one for once.
    let tried = |case: &&Case| in_some_try(TRIES, || case.is_proven());
    let proofs: Vec<Option<Vec<Proof>>> = cases.iter().map(tried).collect();
    let failed = cases.iter().zip(&proofs).filter(|(_, proofs)| proofs.is_none());
    let failed: Vec<&str> = failed.map(|(case, _)| case.rule).collect();
    assert!(failed.is_empty(), "{failed:?} are not proven");
    let proofs: Vec<Proof> = proofs.into_iter().flatten().flatten().collect();
    fs::create_dir_all(directory()).unwrap();
    let text = serde_json::to_string_pretty(&proofs).unwrap();
    fs::write(directory().join(format!("{part}.json")), text).unwrap();
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn where_ranks_run_and_how_work_is_shared_out_is_found() {
    prove(0);
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn what_messages_cost_is_found() {
    prove(1);
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn what_the_program_does_needlessly_is_found() {
    prove(2);
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn what_settings_and_numbers_say_is_found() {
    prove(3);
}

/// Rules that look at the counters of the processor, which virtual machines do not have. Their examples are of made-up runs
/// (`src/findings/tests.rs`).
pub(crate) const WITHOUT_A_CASE: [&str; 2] = ["memory-bound", "different-clocks"];

#[test]
fn each_rule_has_a_case() {
    let pages = fs::read_dir(root().join("docs/findings")).unwrap();
    let names = pages.map(|page| page.unwrap().path().file_stem().unwrap().to_owned());
    let mut rules: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(rules.remove("efficiencies"), "{rules:?}");
    let mut cases: BTreeSet<String> = CASES.iter().map(|case| case.rule.to_owned()).collect();
    println!("need a processor that counts, and have no case: {WITHOUT_A_CASE:?}");
    cases.extend(WITHOUT_A_CASE.map(str::to_owned));
    assert_eq!(cases, rules);
}
