//! Each rule of `gyan report --findings` finds its problem, with the right function, rank and numbers, but not
//! in a twin without the problem: another program, other settings, or what the finding itself advises. The
//! numbers that change between the two are recorded for the table of docs/findings.md.

mod cases;
mod witnesses;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use gyan_results::{Finding, Summary};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::common::{command, gyan, in_some_try, report, root, run, target};
use cases::{Case, Start, Twin, cases};
use witnesses::{compared, is_known};

/// How a case is run.
struct RunAs<'a> {
    start: &'a Start,
    is_healthy: bool,
    /// Settings beside those of its start.
    more: Vec<String>,
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

/// A finding of each rule, which its page and `gyan explain` show.
pub(crate) const EXAMPLES: &str = "src/findings/examples.json";

pub(crate) fn examples() -> Vec<Finding> {
    serde_json::from_slice(&fs::read(root().join(EXAMPLES)).unwrap()).unwrap()
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

impl Case {
    /// Runs it with these settings too, and reads the report. A run that others disturb, as gyan itself says, tells nothing of the
    /// rule: it is run again, a few times.
    fn ran(&self, run_as: &RunAs) -> Ran {
        const DISTURBED_AT_MOST: usize = 10;
        let is_as_started = |ran: &Ran| {
            run_as.start.is_beside_others || finding(&ran.summary, OTHER_LOAD).is_none()
        };
        let mut runs = (0..DISTURBED_AT_MOST).map(|_| self.ran_once(run_as));
        runs.find(is_as_started).unwrap_or_else(|| self.ran_once(run_as))
    }

    fn ran_once(&self, run_as: &RunAs) -> Ran {
        let RunAs { start, is_healthy, more } = run_as;
        let rule = self.rule.as_str();
        let here = TempDir::new().unwrap();
        let ranks = start.ranks_per_processor.map_or(start.ranks, |ranks| ranks * processors());
        let mut words: Vec<String> = Vec::new();
        if start.is_bound {
            words.extend(["taskset", "-c", &first_processor()].map(str::to_owned));
        }
        words.extend([gyan().get_program().display().to_string()]);
        words.extend(["run", "-o", "out"].map(str::to_owned));
        let sets = start.set.iter().chain(more);
        words.extend(sets.flat_map(|set| ["--set".to_owned(), set.clone()]));
        words.push("--".into());
        let mut words = start.mpi.mpirun_after(&words, ranks);
        // Its component for fabrics is part of the problem.
        if rule == "slow-start" {
            words.retain(|word| word != "OMPI_MCA_btl=^ofi");
        }
        if start.has_slots {
            words.extend(["--host".into(), format!("localhost:{ranks}")]);
        }
        // GNU's runtime tells nothing of its regions.
        let is_openmp = self.program == "problems_openmp";
        let compiler: &[&str] = if is_openmp { &["-cc=clang", "-fopenmp"] } else { &[] };
        words.push(start.mpi.compiled(self.program, compiler).display().to_string());
        words.push(rule.into());
        words.extend(is_healthy.then(|| "healthy".into()));
        let others = Others::new(if start.is_beside_others { 2 * processors() } else { 0 });
        let mut command = command(&words);
        let environment = start.environment.iter().filter_map(|set| set.split_once('='));
        let outcome = run(command.current_dir(&here).envs(environment));
        drop(others);
        let is_killed = rule == "incomplete" && !is_healthy;
        assert_eq!(outcome.code != 0, is_killed, "{words:?} {}", outcome.stderr);
        let clock = outcome.stdout.split("by its own clock: ").nth(1);
        let clock_s = clock.and_then(|rest| rest.split(' ').next()?.parse().ok());
        // Of ranks that were killed some may be missing.
        let shown = report(here.path().join("out"), &["--format", "json"]);
        let summary = serde_json::from_str(&shown.stdout);
        let summary = summary.unwrap_or_else(|error| panic!("{words:?} {error}: {}", shown.stderr));
        Ran { summary, clock_s }
    }

    /// In the form that a user writes.
    fn words(&self, run_as: &RunAs) -> String {
        let RunAs { start, is_healthy, more } = run_as;
        let mut words: Vec<String> = Vec::new();
        words.extend(start.is_bound.then(|| "on one processor:".to_owned()));
        words.extend(start.is_beside_others.then(|| "beside busy processes:".to_owned()));
        words.extend(start.environment.iter().cloned());
        words.extend(start.set.iter().chain(more).map(|set| format!("--set {set}")));
        words.push(match start.ranks_per_processor {
            None => format!("-n {}", start.ranks),
            Some(1) => "-n PROCESSORS".into(),
            Some(ranks) => format!("-n {ranks}*PROCESSORS"),
        });
        words.push(format!("{} {}", self.program, self.rule));
        words.extend(is_healthy.then(|| "healthy".into()));
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
fn advised(finding: &Finding, meaning: &BTreeMap<String, String>) -> Vec<String> {
    let command = finding.advice.iter().find_map(|advice| advice.command.as_ref());
    let command = command.unwrap_or_else(|| panic!("no command in {finding:?}"));
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["gyan", "run"], "{command}");
    let sets = words.windows(2).filter(|two| two[0] == "--set").map(|two| two[1]);
    let meant = |set: &str| {
        let (name, value) = set.split_once('=').unwrap();
        format!("{name}={}", meaning.get(value).map_or(value, String::as_str))
    };
    let sets: Vec<String> = sets.map(meant).collect();
    assert!(!sets.is_empty(), "{command}");
    sets
}

impl Case {
    fn is_proven(&self) -> Vec<Proof> {
        let Case { rule, start, .. } = self;
        let run_as = RunAs { start, is_healthy: false, more: Vec::new() };
        let ran = self.ran(&run_as);
        let before = &ran.summary;
        let ids: Vec<&str> = before.findings.iter().map(|finding| finding.id.as_str()).collect();
        let what = format!("{rule} with {}", start.mpi.name);
        let finding = finding(before, rule).unwrap_or_else(|| panic!("{what} is not in {ids:?}"));
        let what = format!("{what}: {finding:?}");
        assert_eq!(finding.functions, self.functions, "{what}");
        assert_eq!(finding.ranks, self.ranks, "{what}");
        for (name, range) in &self.evidence {
            let number = finding.evidence.iter().find(|number| number.what == *name);
            let value = number.unwrap_or_else(|| panic!("no {name} in {what}")).value;
            assert!(range.contains(value), "{name} of {what}");
        }
        let compared = |twin: &Option<Twin>, is_healthy, is_advised: bool| {
            let twin = twin.as_ref()?;
            let more = if is_advised { advised(finding, &twin.meaning) } else { Vec::new() };
            let run_as = RunAs { start: twin.start.as_ref().unwrap_or(start), is_healthy, more };
            Some(self.compared(&ran, finding, twin, &run_as))
        };
        let proofs = [
            compared(&self.healthy, true, false),
            compared(&self.started, false, false),
            compared(&self.advised, false, true),
        ];
        proofs.into_iter().flatten().collect()
    }

    fn compared(&self, ran: &Ran, found: &Finding, twin: &Twin, run_as: &RunAs) -> Proof {
        let Case { rule, start, .. } = self;
        let before = &ran.summary;
        let of_twin = self.ran(run_as);
        let after = &of_twin.summary;
        let what = self.words(run_as);
        if !twin.may_stay {
            assert!(finding(after, rule).is_none(), "{what}: {:?}", finding(after, rule));
        }
        let mpis = BTreeSet::from([start.mpi.name, run_as.start.mpi.name]);
        let witness = twin.witness.as_deref();
        Proof {
            rule: rule.clone(),
            before: self.words(&RunAs { start, is_healthy: false, more: Vec::new() }),
            after: what.clone(),
            mpi: mpis.into_iter().collect::<Vec<_>>().join(", "),
            witness: witness.unwrap_or_default().into(),
            values: witness.map(|name| compared(name, twin.counted, [before, after], &what)),
            elapsed_s: [ran, &of_twin].map(|ran| ran.clock_s.unwrap_or(ran.summary.job.elapsed_s)),
            finding: found.clone(),
        }
    }
}

/// The number of cases must match the tests.
const PARTS: usize = 4;
const TRIES: usize = 5;
/// The rule that finds that others want the processors.
const OTHER_LOAD: &str = "other-load";

/// Proves a quarter of the cases.
fn prove(part: usize) {
    let mut cases = cases();
    let length = cases.len().div_ceil(PARTS);
    cases = cases.into_iter().skip(part * length).take(length).collect();
    let proofs = proven(&cases);
    fs::create_dir_all(directory()).unwrap();
    let text = serde_json::to_string_pretty(&proofs).unwrap();
    fs::write(directory().join(format!("{part}.json")), text).unwrap();
}

fn proven(cases: &[Case]) -> Vec<Proof> {
    // A failure does not hide the others. On a busy machine another explanation can be the best one for once.
    let tried = |case: &Case| in_some_try(TRIES, || case.is_proven());
    let proofs: Vec<Option<Vec<Proof>>> = cases.iter().map(tried).collect();
    let failed = cases.iter().zip(&proofs).filter(|(_, proofs)| proofs.is_none());
    let failed: Vec<&str> = failed.map(|(case, _)| case.rule.as_str()).collect();
    assert!(failed.is_empty(), "{failed:?} are not proven");
    proofs.into_iter().flatten().flatten().collect()
}

/// With `BLESS=1` what it finds becomes the example of the rule.
#[test]
#[ignore = "for one rule that is being written: RULE=ID in the environment"]
fn the_rule_of_the_environment_is_proven() {
    let Ok(rule) = std::env::var("RULE") else { return println!("RULE=ID names none") };
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.rule == rule).collect();
    assert!(!cases.is_empty(), "no case of {rule}");
    let proofs = proven(&cases);
    for proof in &proofs {
        println!("{} | {} | {:?}", proof.before, proof.after, proof.values);
    }
    if std::env::var_os("BLESS").is_some() {
        let mut kept = examples();
        let found = proofs.into_iter().next().expect("a twin").finding;
        match kept.iter_mut().find(|kept| kept.id == rule) {
            Some(kept) => *kept = found,
            None => kept.push(found),
        }
        fs::write(root().join(EXAMPLES), serde_json::to_string_pretty(&kept).unwrap() + "\n")
            .unwrap();
    }
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
    let known = cases();
    let witnesses = known.iter().flat_map(Case::twins).filter_map(|twin| twin.witness.as_ref());
    for witness in witnesses {
        assert!(is_known(witness), "witnesses.rs does not know: {witness}");
    }
    let mut cases: BTreeSet<String> = known.into_iter().map(|case| case.rule).collect();
    println!("need a processor that counts, and have no case: {WITHOUT_A_CASE:?}");
    cases.extend(WITHOUT_A_CASE.map(str::to_owned));
    assert_eq!(cases, rules);
}
