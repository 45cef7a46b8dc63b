//! What does `gyan diff` say about made-up runs, and about things that it cannot compare?

use std::fs;
use std::path::Path;

use gyan_results::{
    Call, ChangeVerdict, CvarSetting, Difference, RankProfile, rank_file_name, read_rank,
};
use tempfile::TempDir;

use crate::common::{Outcome, gyan, one_line, root, run};
use crate::golden::is_golden;
use crate::schemas::{schema, validate};

const RUNNING: &str = "tests/fixtures/gyan.rank-1-running";

/// A run of four ranks in `place`, changed on each of them.
fn profiles(place: &Path, change: impl Fn(&mut RankProfile)) {
    fs::create_dir_all(place).unwrap();
    for rank in 0..4 {
        let name = rank_file_name(rank);
        let mut profile = read_rank(&root().join(RUNNING).join(&name)).unwrap();
        change(&mut profile);
        fs::write(place.join(name), serde_json::to_string(&profile).unwrap()).unwrap();
    }
}

/// Seconds of waiting that disappear with a larger eager limit, together with half of the sends.
fn faster(profile: &mut RankProfile, factor: f64) {
    let mut saved_s = 0.0;
    for call in
        profile.calls.iter_mut().chain(profile.phases.iter_mut().flat_map(|of| &mut of.calls))
    {
        if call.name == "MPI_Waitall" {
            let before = call.time_s.unwrap();
            (call.time_s, saved_s) = (Some(before * factor), before * (1.0 - factor));
        } else if call.name == "MPI_Isend" {
            call.count /= 2;
        }
    }
    profile.job.elapsed_s -= saved_s;
    let exchange = profile.phases.iter_mut().find(|of| of.name == "step/exchange").unwrap();
    exchange.time_s -= saved_s;
    profile.cvars.push(CvarSetting {
        name: "btl_vader_eager_limit".into(),
        value: Some("65536".into()),
        set_by: Some("GYAN_CVARS".into()),
        requested: Some("65536".into()),
    });
}

/// All of the run takes this many times as long.
fn slower(profile: &mut RankProfile, factor: f64) {
    profile.job.elapsed_s *= factor;
    for call in
        profile.calls.iter_mut().chain(profile.phases.iter_mut().flat_map(|of| &mut of.calls))
    {
        call.time_s = call.time_s.map(|time_s| time_s * factor);
    }
    profile.phases.iter_mut().for_each(|phase| phase.time_s *= factor);
}

/// `before`, `after`, and five runs of each in two directories.
pub(crate) fn made_up_runs() -> TempDir {
    let directory = TempDir::new().unwrap();
    let place = |name: &str| directory.path().join(name);
    profiles(&place("before"), |_| ());
    profiles(&place("after"), |profile| faster(profile, 0.3));
    for (at, noise) in [1.0, 1.004, 0.997, 1.01, 0.992].into_iter().enumerate() {
        profiles(&place("runs-a").join(format!("run-{at}")), |profile| slower(profile, noise));
        profiles(&place("runs-b").join(format!("run-{at}")), |profile| {
            faster(profile, 0.3);
            slower(profile, 2.0 - noise);
        });
    }
    directory
}

fn diff(directory: &Path, arguments: &[&str]) -> Outcome {
    run(gyan().arg("diff").args(arguments).current_dir(directory))
}

#[test]
fn differences_are_the_golden_ones() {
    let directory = made_up_runs();
    for (name, arguments) in [
        ("diff.txt", &["before", "after"][..]),
        ("diff-all.txt", &["--all", "before", "after"]),
        ("diff.md", &["--format", "markdown", "before", "after"]),
        ("diff.csv", &["--format", "csv", "before", "after"]),
        ("diff-several.txt", &["runs-a", "runs-b"]),
        ("diff-several.md", &["--format", "markdown", "runs-a", "runs-b"]),
        ("../../results-schema/examples/diff.json", &["--format", "json", "before", "after"]),
    ] {
        let outcome = diff(directory.path(), arguments);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        is_golden(name, &outcome.stdout);
        for line in outcome.stdout.lines() {
            assert_eq!(line.trim_end(), line, "{name}: spaces at the end of a line");
        }
    }
}

fn json(directory: &Path, arguments: &[&str]) -> Difference {
    let outcome = diff(directory, &[&["--format", "json"], arguments].concat());
    validate(&schema("diff.schema.json"), &outcome.stdout, "diff");
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn several_runs_of_a_side_follow_two_hyphens_or_are_in_a_directory() {
    let directory = made_up_runs();
    let of_directories = json(directory.path(), &["runs-a", "runs-b"]);
    let runs = |side: &str| (0..5).map(|at| format!("{side}/run-{at}")).collect::<Vec<_>>();
    let named = [runs("runs-a"), vec!["--".into()], runs("runs-b")].concat();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(json(directory.path(), &named), of_directories);
    let run_time = of_directories.run_time.unwrap();
    assert_eq!(run_time.verdict, ChangeVerdict::Changed);
    assert!(run_time.p.unwrap() < 0.01);
}

#[test]
fn the_answer_names_the_functions_that_only_one_side_calls() {
    let directory = made_up_runs();
    let with_barriers = |profile: &mut RankProfile| {
        let like = profile.calls.iter().find(|call| call.name == "MPI_Allreduce").unwrap().clone();
        profile.calls.push(Call { name: "MPI_Barrier".into(), time_s: Some(1e-4), ..like });
    };
    profiles(&directory.path().join("more"), |profile| {
        slower(profile, 1.5);
        with_barriers(profile);
    });
    // However little of the change it makes.
    let answer = |a, b| json(directory.path(), &[a, b]).answer;
    let longer = answer("before", "more");
    assert!(longer.starts_with("B takes "), "{longer}");
    assert!(longer.contains("; only B calls MPI_Barrier"), "{longer}");
    assert!(answer("more", "before").contains("; only A calls MPI_Barrier"));
    profiles(&directory.path().join("as-long"), with_barriers);
    let same = answer("before", "as-long");
    assert!(same.contains("; only B calls MPI_Barrier"), "{same}");
}

#[test]
fn a_run_with_itself_did_not_change() {
    let directory = made_up_runs();
    let outcome = diff(directory.path(), &["before", "before"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().next(), Some("nothing changed"), "{}", outcome.stdout);
    let of = json(directory.path(), &["runs-a", "runs-a"]);
    assert!(of.numbers.is_empty() && of.setup.is_empty(), "{of:?}");
    assert_eq!(of.run_time.unwrap().verdict, ChangeVerdict::Same);
    // The same program again, with other times.
    let answer = json(directory.path(), &["runs-a/run-1", "runs-a/run-2"]).answer;
    assert!(answer.starts_with("no change of the run time"), "{answer}");
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let directory = made_up_runs();
    let path = directory.path();
    one_line(&diff(path, &["before"]), 2, &["1 run,", "name two runs"]);
    one_line(&diff(path, &["before", "after", "after"]), 2, &["3 runs,", "put --"]);
    one_line(&diff(path, &["before", "nosuch"]), 2, &["nosuch", "no such file"]);
    fs::create_dir(path.join("empty")).unwrap();
    one_line(&diff(path, &["before", "empty"]), 2, &["empty", "nor runs"]);
    one_line(&diff(path, &["--format", "xml", "before", "after"]), 2, &["gyan diff prints table"]);
    profiles(&path.join("newer"), |profile| profile.schema = "gyan.rank/9".into());
    let newer = diff(path, &["before", "newer"]);
    assert_eq!(newer.code, 2, "{newer:?}");
    assert!(newer.stderr.contains("gyan.rank/9"), "{}", newer.stderr);
}

#[test]
fn a_rank_that_is_missing_is_said_and_the_others_are_compared() {
    let directory = made_up_runs();
    fs::remove_file(directory.path().join("after").join(rank_file_name(2))).unwrap();
    let outcome = diff(directory.path(), &["before", "after"]);
    one_line(&outcome, 1, &["after", "1 of 4 ranks"]);
    assert!(outcome.stdout.starts_with("B takes "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("ranks are missing"), "{}", outcome.stdout);
}

#[test]
fn an_older_summary_without_times_is_compared_by_its_counts() {
    let directory = TempDir::new().unwrap();
    let text = fs::read_to_string(root().join("results-schema/examples/summary.json")).unwrap();
    let mut summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    fs::write(directory.path().join("new.json"), &text).unwrap();
    summary.as_object_mut().unwrap().remove("elapsed_s");
    summary["calls"][0]["count"]["sum"] = 24.into();
    fs::write(directory.path().join("old.json"), summary.to_string()).unwrap();
    let outcome = diff(directory.path(), &["new.json", "old.json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{}", outcome.stdout);
    for part in [
        "times are not known on both sides; 1 count changed",
        "times and findings are not compared",
        "MPI_Allreduce  5  6",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
}

#[test]
fn a_page_has_the_answer_the_waterfall_and_the_intervals() {
    let directory = made_up_runs();
    let page =
        |arguments: &[&str]| diff(directory.path(), &[&["--format", "html"], arguments].concat());
    let outcome = page(&["-o", "diff.html", "runs-a", "runs-b"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "diff.html\n"), "{}", outcome.stderr);
    let text = fs::read_to_string(directory.path().join("diff.html")).unwrap();
    let parts =
        ["because each call is ", "Where did the time change?", "How sure is it?", "MPI_Waitall: "];
    for part in parts {
        assert!(text.contains(part), "{part}");
    }
    // With one run on each side there are no intervals.
    let text = page(&["before", "after"]).stdout;
    assert!(text.contains("Where did the time change?") && !text.contains("How sure is it?"));
    one_line(&page(&["-o", "diff.html", "before", "after"]), 2, &["diff.html: already exists"]);
    one_line(&diff(directory.path(), &["-o", "x", "before", "after"]), 2, &["--format html only"]);
}

#[test]
fn names_from_a_run_do_nothing_in_any_format() {
    let directory = made_up_runs();
    profiles(&directory.path().join("hostile"), |profile| {
        profile.mpi.library = "<script>alert(1)</script>\u{1b}[2J|".into();
        for call in &mut profile.calls {
            call.name = format!("<b>{}\u{9b}", call.name);
        }
    });
    for format in ["table", "markdown", "csv", "json", "html"] {
        let outcome = diff(directory.path(), &["--format", format, "--all", "before", "hostile"]);
        assert_eq!(outcome.code, 0, "{format}: {}", outcome.stderr);
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!outcome.stdout.contains(is_control), "{format}");
        let is_markup = outcome.stdout.contains("<script>alert") || outcome.stdout.contains("<b>");
        assert_eq!(is_markup, !["markdown", "html"].contains(&format), "{format}");
    }
}
