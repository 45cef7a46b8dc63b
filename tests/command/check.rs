//! `gyan check` with made-up runs, so that we know exactly what got worse.

use std::fs;
use std::path::Path;

use gyan_results::{
    Call, CheckResult, Ending, Judgement, Number, RankProfile, rank_file_name, read_rank,
};
use tempfile::TempDir;

use crate::common::{self, Outcome, gyan, root, run};
use crate::golden::is_golden;
use crate::schemas::{schema, validate};

/// `tests/programs/halo_exchange.c` on four ranks, each with 400 calls of `MPI_Isend`.
const FIXTURE: &str = "tests/fixtures/gyan.rank-1-traffic";

/// Several runs in one directory.
struct Runs(TempDir);

impl Runs {
    fn new() -> Runs {
        Runs(TempDir::new().unwrap())
    }

    /// The run of the fixture, changed on each rank.
    fn add(&self, name: &str, change: impl Fn(&mut RankProfile)) -> &Runs {
        let directory = self.0.path().join(name);
        fs::create_dir_all(&directory).unwrap();
        for rank in 0..4 {
            let file = rank_file_name(rank);
            let mut profile = read_rank(&root().join(FIXTURE).join(&file)).unwrap();
            // A run of its own.
            name.clone_into(&mut profile.job.id);
            change(&mut profile);
            fs::write(directory.join(file), serde_json::to_string(&profile).unwrap()).unwrap();
        }
        self
    }

    /// Runs that take the given seconds each.
    fn of_seconds(&self, folder: &str, seconds: &[f64]) -> &Runs {
        for (at, seconds) in seconds.iter().enumerate() {
            self.add(&format!("{folder}/run-{at}"), |profile| {
                let in_mpi = profile.in_mpi.as_mut().unwrap();
                in_mpi.time_s *= seconds / profile.job.elapsed_s;
                profile.job.elapsed_s = *seconds;
            });
        }
        self
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn check(&self, arguments: &[&str]) -> Outcome {
        run(gyan().current_dir(self.path()).arg("check").args(arguments))
    }

    fn judged(&self, arguments: &[&str]) -> (i32, Judgement) {
        let outcome = self.check(&[arguments, &["--format", "json"]].concat());
        validate(&schema("check.schema.json"), &outcome.stdout, "gyan check");
        (outcome.code, serde_json::from_str(&outcome.stdout).unwrap())
    }
}

fn call<'a>(profile: &'a mut RankProfile, name: &str) -> &'a mut Call {
    profile.calls.iter_mut().find(|call| call.name == name).unwrap()
}

/// 50 % more sends on rank 1, a function that was not called before, communicators that are not freed, and any
/// number of tests.
fn worse(profile: &mut RankProfile) {
    if profile.rank == 1 {
        let sends = call(profile, "MPI_Isend");
        sends.count += sends.count / 2;
        sends.bytes = sends.bytes.map(|bytes| bytes * 3 / 2);
        let peers = &mut profile.peers.as_mut().unwrap().messages;
        for peer in peers {
            (peer.number, peer.bytes) = (peer.number * 3 / 2, peer.bytes * 3 / 2);
        }
    }
    for (name, count) in [("MPI_Barrier", 200), ("MPI_Comm_dup", 150), ("MPI_Test", 123_456)] {
        let count = if name == "MPI_Test" { count + u64::from(profile.rank) } else { count };
        let like = call(profile, "MPI_Wtime").clone();
        profile.calls.push(Call { name: name.into(), count, ..like });
    }
}

/// What failed.
fn failed(judgement: &Judgement) -> Vec<(&str, &str)> {
    judgement.failed().map(|row| (row.rule.name(), row.what.as_str())).collect()
}

#[test]
fn what_got_worse_is_named_with_both_numbers() {
    let runs = Runs::new();
    runs.add("base", |_| ()).add("new", worse);
    let arguments = ["new", "--against", "base"];
    let (code, judgement) = runs.judged(&arguments);
    assert_eq!((code, judgement.passed), (1, false));
    let expected = [
        ("calls", "MPI_Barrier"),
        ("calls", "MPI_Comm_dup"),
        ("calls", "MPI_Isend"),
        ("bytes", "MPI_Isend"),
        ("messages", "messages"),
        ("messages", "bytes of messages"),
        ("findings", "leak"),
    ];
    assert_eq!(failed(&judgement), expected);
    let sends = judgement.failed().find(|row| row.what == "MPI_Isend").unwrap();
    let numbers = [sends.baseline, sends.now, sends.at_most];
    assert_eq!(numbers, [1600, 1800, 1616].map(|number| Some(Number::Integer(number))));
    assert!(judgement.ignored.iter().any(|name| name == "MPI_Test"));
    for (name, format) in [("check.txt", "table"), ("check.md", "markdown"), ("check.xml", "junit")]
    {
        let outcome = runs.check(&[&arguments[..], &["--format", format]].concat());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (1, ""), "{format}");
        is_golden(name, &outcome.stdout);
    }
}

#[test]
fn the_same_run_passes_whatever_is_asked_often() {
    let runs = Runs::new();
    runs.add("base", |_| ()).add("new", |profile| {
        let count = 1_000_000 * u64::from(profile.rank + 1);
        let like = call(profile, "MPI_Wtime").clone();
        profile.calls.push(Call { name: "MPI_Iprobe".into(), count, ..like });
    });
    let outcome = runs.check(&["new", "base", "--against", "base"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.starts_with("passed: "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("it takes 4 baselines and 4 new runs"), "{}", outcome.stdout);
    // A stored summary is a baseline like any other.
    assert_eq!(run(gyan().current_dir(runs.path()).args(["reduce", "base"])).code, 0);
    fs::rename(runs.path().join("base/summary.json"), runs.path().join("kept.json")).unwrap();
    let kept = runs.check(&["new", "base", "--against", "kept.json"]);
    let without_names = |text: &str| text.lines().skip(2).collect::<Vec<_>>().join("\n");
    assert_eq!(without_names(&kept.stdout), without_names(&outcome.stdout));
    // It got better: that is not a failure.
    runs.add("more", worse);
    assert_eq!(runs.check(&["base", "--against", "more"]).code, 0);
}

#[test]
fn the_test_cases_are_well_formed_and_as_many_as_they_say() {
    let runs = Runs::new();
    // A name may contain XML special characters.
    runs.add("base", |_| ()).add("<new> & \"co\"", worse);
    let file = runs.path().join("check.xml");
    let out = ["--format", "junit", "-o", "check.xml"];
    let arguments = [&["<new> & \"co\"", "--against", "base"][..], &out].concat();
    let outcome = runs.check(&arguments);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("FAILED: 7 of "), "{}", outcome.stdout);
    let text = fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let named = |name: &'static str| document.descendants().filter(move |of| of.has_tag_name(name));
    let sum = |of: &str| -> usize {
        named("testsuite").map(|suite| suite.attribute(of).unwrap().parse::<usize>().unwrap()).sum()
    };
    let of_all = |of: &str| document.root_element().attribute(of).unwrap().parse().unwrap();
    for (attribute, element) in [("tests", "testcase"), ("failures", "failure")] {
        assert_eq!((sum(attribute), of_all(attribute)), (named(element).count(), sum(attribute)));
    }
    assert_eq!((sum("failures"), sum("skipped")), (7, named("skipped").count()));
    let cases: Vec<_> = named("testcase").filter_map(|case| case.attribute("name")).collect();
    assert!(cases.contains(&"<new> & \"co\"") && cases.contains(&"calls of MPI_Isend"));
    // A file is replaced if asked for.
    assert_eq!(runs.check(&arguments).code, 2);
    assert_eq!(runs.check(&[&arguments[..], &["--force"]].concat()).code, 1);
}

#[test]
fn times_fail_when_noise_does_not_explain_them() {
    let base = [1.00, 1.04, 0.98, 1.02];
    for (new, expected) in [
        // All slower, and by more than a tenth.
        (&[1.30, 1.25, 1.31, 1.40][..], &[("times", "run"), ("times", "in_mpi")][..]),
        // All slower, by less than that.
        (&[1.05, 1.06, 1.07, 1.08], &[]),
        // Two of them are as fast as before.
        (&[1.01, 1.03, 9.0, 9.0], &[]),
        // Too few to tell.
        (&[9.0, 9.0, 9.0], &[]),
    ] {
        let runs = Runs::new();
        runs.of_seconds("base", &base).of_seconds("new", new);
        let (code, judgement) = runs.judged(&["new", "--against", "base"]);
        assert_eq!(failed(&judgement), expected, "{new:?}");
        let is_judged = new.len() >= 4;
        // What was asked for and not judged is not green.
        let expected_code = if is_judged { i32::from(!expected.is_empty()) } else { 2 };
        assert_eq!((code, judgement.passed), (expected_code, expected_code == 0), "{new:?}");
        let times = judgement.rows.iter().filter(|row| row.rule.name() == "times");
        let results: Vec<CheckResult> = times.map(|row| row.result).collect();
        assert_eq!(results.contains(&CheckResult::NotJudged), !is_judged, "{new:?}");
    }
    let runs = Runs::new();
    runs.of_seconds("base", &base).of_seconds("new", &[9.0, 8.0, 9.0, 9.0]);
    let outcome = runs.check(&["new", "--against", "base"]);
    is_golden("check-times.txt", &outcome.stdout);
    runs.write("rules.toml", "times.judge = []");
    let outcome = runs.check(&["new", "--against", "base", "--rules", "rules.toml"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
}

#[test]
fn a_program_that_is_slower_in_own_code_only_fails_at_each_documented_number_of_runs() {
    let seconds = |from: f64, number: u32| -> Vec<f64> {
        (0..number).map(|at| from + f64::from(at) / 100.0).collect()
    };
    // All new ones are the slowest in one of so many orders: C(n + m, m).
    for (before, now, orders) in [(4, 4, 70.0), (5, 3, 56.0), (8, 2, 45.0)] {
        let runs = Runs::new();
        runs.of_seconds("base", &seconds(11.0, before));
        for (at, seconds) in seconds(21.0, now).into_iter().enumerate() {
            // The time in MPI stays as it is.
            runs.add(&format!("new/run-{at}"), |profile| profile.job.elapsed_s = seconds);
        }
        // Of both sides.
        runs.of_seconds("same", &seconds(11.005, now));
        let (code, judgement) = runs.judged(&["new", "--against", "base"]);
        assert_eq!((code, failed(&judgement)), (1, vec![("times", "run")]), "{before} {now}");
        let row = judgement.failed().next().unwrap();
        // Of two times.
        assert!((row.p.unwrap() - 2.0 / orders).abs() < 1e-12, "{row:?}");
        assert_eq!(runs.check(&["same", "--against", "base"]).code, 0);
    }
}

#[test]
fn counts_in_which_baselines_differ_may_grow_once_more_as_much() {
    let runs = Runs::new();
    let sends = |more: u64| {
        move |profile: &mut RankProfile| {
            call(profile, "MPI_Waitall").count += if profile.rank == 0 { more } else { 0 };
        }
    };
    // With 800 and 900, growth up to 1,000 plus 1 % is within that range.
    runs.add("base/run-1", sends(0)).add("base/run-2", sends(100));
    runs.add("new", sends(210)).add("worse", sends(211));
    runs.write("rules.toml", "times.judge = []");
    assert_eq!(runs.check(&["new", "--against", "base"]).code, 0);
    let (code, judgement) = runs.judged(&["worse", "--against", "base"]);
    assert_eq!((code, failed(&judgement)), (1, vec![("calls", "MPI_Waitall")]));
    // The best of several new runs counts.
    let several = ["worse", "new", "--against", "base", "--rules", "rules.toml"];
    assert_eq!(runs.check(&several).code, 0);
    // Which are too few for times, unless they are not asked for.
    let outcome = runs.check(&several[..4]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stdout.starts_with("NOT JUDGED: times ("), "{}", outcome.stdout);
}

#[test]
fn rules_change_what_fails() {
    let runs = Runs::new();
    runs.add("base", |_| ()).add("new", worse);
    runs.write(
        "rules.toml",
        "findings.new = []\nmessages.growth_percent = 50\nbytes.growth_percent = false\n\
         [calls.functions]\n'MPI_Comm_*' = false\nMPI_Isend = 12.5",
    );
    let (code, judgement) = runs.judged(&["new", "--against", "base", "--rules", "rules.toml"]);
    assert_eq!((code, failed(&judgement)), (1, vec![("calls", "MPI_Barrier")]));
    // The printed rules are the defaults.
    let rules = run(gyan().args(["check", "--print-rules"]));
    assert_eq!(rules.code, 0);
    runs.write("default.toml", &rules.stdout);
    let by_default = runs.check(&["new", "--against", "base"]);
    let by_file = runs.check(&["new", "--against", "base", "--rules", "default.toml"]);
    assert_eq!(by_default.stdout, by_file.stdout);
}

#[test]
fn what_cannot_be_compared_is_said_and_the_rest_is_compared() {
    let runs = Runs::new();
    let as_two_ranks = |profile: &mut RankProfile| profile.size = 2;
    runs.add("base", |_| ()).add("two", as_two_ranks).add("other", |profile| {
        profile.job.command = vec!["./other".into()];
        call(profile, "MPI_Isend").count = 4000;
    });
    for rank in [2, 3] {
        fs::remove_file(runs.path().join("two").join(rank_file_name(rank))).unwrap();
    }
    let (code, judgement) = runs.judged(&["two", "--against", "base"]);
    assert_eq!((code, failed(&judgement)), (0, vec![]), "{judgement:?}");
    assert!(judgement.remarks[0].starts_with("4 and 2 ranks: "), "{:?}", judgement.remarks);
    // Each rank calls it equally often.
    let calls = judgement.rows.iter().find(|row| row.what == "MPI_Isend").unwrap();
    assert_eq!(calls.now, Some(Number::Integer(400)));
    assert!(judgement.rows.iter().all(|row| !["bytes", "messages"].contains(&row.rule.name())));
    let (code, judgement) = runs.judged(&["other", "--against", "base"]);
    assert_eq!((code, failed(&judgement)), (1, vec![("calls", "MPI_Isend")]));
    assert_eq!(judgement.remarks, ["runs of different programs: halo and other"]);
}

#[test]
fn a_killed_run_fails_and_is_no_baseline() {
    let runs = Runs::new();
    runs.add("base", |_| ()).add("killed", |profile| {
        if profile.rank == 3 {
            (profile.end.how, profile.end.code) = (Ending::Killed, 9);
        }
    });
    let (code, judgement) = runs.judged(&["killed", "--against", "base"]);
    assert_eq!((code, failed(&judgement)), (1, vec![("ended", "killed")]));
    one_line(
        &runs,
        &["base", "--against", "killed"],
        &["killed: ", "first rank 3", "new baseline"],
    );
    runs.write("rules.toml", "ended = false");
    let outcome = runs.check(&["base", "--against", "killed", "--rules", "rules.toml"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    // A missing rank has a line of its own.
    fs::remove_file(runs.path().join("killed").join(rank_file_name(3))).unwrap();
    let (code, judgement) = runs.judged(&["killed", "--against", "base"]);
    assert_eq!((code, failed(&judgement)), (1, vec![("ended", "killed")]));
}

/// Expects exit code 2, and one line on stderr that contains each of `parts`.
#[track_caller]
fn one_line(runs: &Runs, arguments: &[&str], parts: &[&str]) {
    let outcome = runs.check(arguments);
    assert_eq!(outcome.stdout, "", "{}", outcome.stderr);
    common::one_line(&outcome, 2, parts);
}

#[test]
fn bad_input_is_one_clear_line() {
    let runs = Runs::new();
    runs.add("base", |_| ());
    fs::create_dir(runs.path().join("empty")).unwrap();
    runs.write("rules.toml", "[call]\ngrowth_percent = 1");
    runs.write("broken.toml", "calls = [");
    runs.write("findings.toml", "findings.new = ['leek']");
    let rules = |name: &'static str| ["base", "--against", "base", "--rules", name];
    one_line(&runs, &["empty", "--against", "base"], &["gyan: empty: ", "name run directories"]);
    one_line(&runs, &["base", "--against", "nosuch"], &["gyan: nosuch: no such file"]);
    one_line(
        &runs,
        &rules("rules.toml"),
        &["gyan: rules.toml: unknown field `call`", "--print-rules"],
    );
    one_line(&runs, &rules("broken.toml"), &["gyan: broken.toml: line 1"]);
    one_line(&runs, &rules("findings.toml"), &["there is no finding leek"]);
    one_line(&runs, &rules("missing.toml"), &["gyan: missing.toml: no such file"]);
    one_line(
        &runs,
        &["base", "--against", "base", "-f", "xml"],
        &["table, markdown, junit or json"],
    );
    // clap explains usage errors.
    assert_eq!(runs.check(&["base"]).code, 2);
    assert_eq!(runs.check(&["--against", "base"]).code, 2);
}
