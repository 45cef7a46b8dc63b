//! The reports equal those that were reviewed: `BLESS=1` rewrites them.

use std::fs;
use std::path::Path;

use gyan_results::{
    CallStarts, Clock, RankProfile, SUMMARY_FILE, Summary, Waiting, rank_file_name, read_rank,
};
use serde_json::json;
use tempfile::TempDir;

use crate::common::{gyan, quiet, report, root, run, succeed};
use crate::golden::is_golden;

/// A run recorded before gyan timed calls, and one with times, samples, series and phases.
const OLD: &str = "tests/fixtures/gyan.rank-1";
const RUNNING: &str = "tests/fixtures/gyan.rank-1-running";
/// One with call sites.
const SITES: &str = "tests/fixtures/gyan.rank-1-sites";
/// One with watched receives, and with everything that callbacks report about messages.
const QUEUES: &str = "tests/fixtures/gyan.rank-1-queues";
/// `tests/programs/halo_exchange.c` on four ranks with what it sends.
const TRAFFIC: &str = "tests/fixtures/gyan.rank-1-traffic";

/// The reports of the committed fixtures, in each of their forms.
#[test]
fn reports_are_the_golden_ones() {
    for (name, fixture, options) in [
        ("report.txt", OLD, &[][..]),
        ("report-all.txt", OLD, &["--all"]),
        ("report-vars.txt", OLD, &["--vars", "MPI_*recv"]),
        ("report.md", OLD, &["--format", "markdown"]),
        ("report.csv", OLD, &["--format", "csv"]),
        ("report.json", OLD, &["--format", "json"]),
        ("running.txt", RUNNING, &[]),
        ("running-all.txt", RUNNING, &["--all"]),
        ("running.csv", RUNNING, &["--format", "csv"]),
        ("phases.txt", RUNNING, &["--phase"]),
        ("phase.txt", RUNNING, &["--phase=step/*"]),
        ("phase.csv", RUNNING, &["--phase=setup", "--format", "csv"]),
        ("series.txt", RUNNING, &["--series", "*unexpected*"]),
        ("series.csv", RUNNING, &["--series", "*msgq*", "--format", "csv"]),
        ("histogram.txt", RUNNING, &["--histogram", "*ait*"]),
        ("watch.txt", QUEUES, &[]),
        ("watch.csv", QUEUES, &["--format", "csv"]),
        ("queues.txt", QUEUES, &["--queues"]),
        ("queues-all.txt", QUEUES, &["--queues", "--all"]),
        ("queues.csv", QUEUES, &["--queues", "--format", "csv"]),
        ("queues.json", QUEUES, &["--queues", "--format", "json"]),
        ("queues-variables.txt", RUNNING, &["--queues"]),
        ("peers.txt", TRAFFIC, &["--peers"]),
        ("peers.csv", TRAFFIC, &["--peers", "--format", "csv"]),
        ("sizes.txt", TRAFFIC, &["--sizes"]),
        ("sizes.csv", TRAFFIC, &["--sizes", "--format", "csv"]),
        ("sites.txt", SITES, &["--sites"]),
        ("sites-all.txt", SITES, &["--sites", "--all"]),
        ("sites.md", SITES, &["--sites", "--format", "markdown"]),
        ("sites.csv", SITES, &["--sites", "--format", "csv"]),
        ("sites.json", SITES, &["--sites", "--format", "json"]),
        ("sites-first.txt", SITES, &[]),
        ("queues-histogram.txt", QUEUES, &["--histogram", "T_IN_*"]),
    ] {
        // A name after --phase would be the directory.
        let mut command = gyan();
        command.arg("report").arg(fixture).args(options).current_dir(root());
        let outcome = quiet(&mut command);
        is_golden(name, &outcome.stdout);
        for line in outcome.stdout.lines() {
            assert_eq!(line.trim_end(), line, "{name}: spaces at the end of a line");
        }
    }
}

/// The fixture with times, changed on each rank.
fn changed(change: impl Fn(&mut RankProfile)) -> TempDir {
    let directory = TempDir::new().unwrap();
    for rank in 0..4 {
        let name = rank_file_name(rank);
        let mut profile = read_rank(&root().join(RUNNING).join(&name)).unwrap();
        change(&mut profile);
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// The same, but rank 3 comes last in most calls of `MPI_Allreduce`, and others in those of `MPI_Barrier`.
fn waiting() -> TempDir {
    let times = |rank: u64, function: &str, calls: u64| {
        let time = |call: u64| match function {
            "MPI_Allreduce" if !call.is_multiple_of(10) => Some(20_000 + (3 - rank) * 9_700_000),
            "MPI_Allreduce" => Some(20_000 + 300_000 * rank),
            "MPI_Bcast" => Some(if rank == 2 { 20_000 } else { 420_000 }),
            "MPI_Ibcast" => Some(if rank == 2 { 20_000 } else { 320_000 }),
            _ => Some(3_000 + 1_000 * ((rank + call) % 4) * (1 + call % 3)),
        };
        Waiting::written((0..calls).map(time))
    };
    // The root, which is rank 2, is late by 400 us. Ranks wait at once, or 100 us later.
    let starts = |rank: u32, only_start: bool| {
        let late = if rank == 2 { 400_000 } else { 0 };
        let at =
            |later: u64| (0..20).map(move |call| Some(1_000_000_000 + 1_000_000 * call + later));
        let (begun, waits) = (at(late), at(late + 100_000));
        CallStarts {
            rank,
            clock: "0123".repeat(4),
            level: 0,
            roots: vec![(20, 2)],
            begun: CallStarts::written(begun.clone()),
            waits: if only_start { CallStarts::written_waits(begun, waits) } else { String::new() },
        }
    };
    changed(|profile| {
        let row = |function: &str, communicator: &str, half: bool, calls, level| Waiting {
            function: function.into(),
            communicator: communicator.into(),
            members: if half { format!("{:016x}", 7 + profile.rank % 2) } else { "89ab".repeat(4) },
            ordinal: u32::from(communicator == "solver"),
            size: if half { 2 } else { 4 },
            calls,
            level,
            times_ns: times(profile.rank.into(), function, calls >> level),
            starts: ["MPI_Bcast", "MPI_Ibcast"]
                .contains(&function)
                .then(|| starts(profile.rank, function == "MPI_Ibcast")),
        };
        profile.waiting = vec![
            row("MPI_Allreduce", "MPI_COMM_WORLD", false, 20, 0),
            row("MPI_Bcast", "MPI_COMM_WORLD", false, 20, 0),
            row("MPI_Ibcast", "MPI_COMM_WORLD", false, 20, 0),
            row("MPI_Barrier", "MPI_COMM_WORLD", false, 6400, 4),
            row("MPI_Barrier", "solver", false, 10, 0),
            row("MPI_Barrier", "communicator of 2 ranks", true, 100, 0),
        ];
    })
}

#[test]
fn the_reports_of_waiting_are_the_golden_ones() {
    let directory = waiting();
    for (name, options) in [
        ("waiting-report.txt", &[][..]),
        ("waiting.txt", &["--waiting"]),
        ("waiting.md", &["--waiting", "--format", "markdown"]),
        ("waiting.csv", &["--waiting", "--format", "csv"]),
        ("waiting.json", &["--waiting", "--format", "json"]),
    ] {
        let outcome = report(directory.path(), options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        // Advice names the directory.
        let shown = outcome.stdout.replace(&directory.path().display().to_string(), "DIR");
        is_golden(name, &shown);
    }
    fs::remove_file(directory.path().join(rank_file_name(3))).unwrap();
    let outcome = report(directory.path(), &["--waiting"]);
    let missing = "≥ where ranks are missing";
    assert!(outcome.stdout.contains(missing), "{}", outcome.stdout);
}

/// A summary of the same, in which ranks wait for each other in messages too: in a program in Python, and in one whose file is
/// gone.
fn waiting_in_messages() -> Summary {
    let shown = report(waiting().path(), &["--format", "json"]).stdout;
    let place = |function: &str, call: Option<u64>| json!({"function": function, "call": call});
    let pair = |ranks: [u32; 2], late: &str, waiting_s: f64, error_s: Option<f64>, calls| {
        let [waits, late_call]: [serde_json::Value; 2] = calls;
        json!({
            "rank": ranks[0], "late_rank": ranks[1], "late": late, "waiting_s": waiting_s,
            "waiting_error_s": error_s, "messages": 3000, "compared": 256, "waits": waits,
            "late_call": late_call,
            "wrong_order_s": 0.0,
            "share_there": if late_call["call"].is_null() { 0.4 } else { 1.0 },
        })
    };
    let recv = || place("MPI_Recv", Some(0));
    let send = || place("MPI_Send", Some(1));
    let messages = json!({
        "messages": 12_000, "paired": 9000, "compared": 768,
        "late_senders_s": 4.5, "late_senders_error_s": 0.09,
        "late_receivers_s": 0.25, "late_receivers_error_s": null, "wrong_order_s": 0.0,
        "pairs": [
            pair([3, 2], "sent", 3.5, Some(0.07), [recv(), send()]),
            pair([0, 2], "sent", 1.0, Some(0.0), [place("MPI_Waitall", Some(2)), send()]),
            pair([2, 1], "received", 0.25, None, [send(), place("MPI_Irecv", None)]),
        ],
        "addresses": [
            {"object": null, "address": 0, "name": "py::exchange:/home/user/halo.py:31"},
            {"object": null, "address": 0, "name": "py::exchange:/home/user/halo.py:29"},
            {"object": 0, "address": 4938},
        ],
        "load_map": [{"path": "/home/user/app", "build_id": "0b1e5c6ad1e1f3a5"}],
    });
    let mut summary: Summary = serde_json::from_str(&shown).unwrap();
    summary.message_waiting = Some(serde_json::from_value(messages).unwrap());
    summary
}

#[test]
fn the_reports_of_waiting_in_messages_are_the_golden_ones() {
    let mut summary = waiting_in_messages();
    let directory = TempDir::new().unwrap();
    let keep = |summary: &Summary| {
        let text = serde_json::to_string(summary).unwrap();
        fs::write(directory.path().join(SUMMARY_FILE), text).unwrap();
    };
    keep(&summary);
    for (name, options) in [
        ("waiting-messages.txt", &["--waiting"][..]),
        ("waiting-messages.csv", &["--waiting", "--format", "csv"]),
        ("waiting-messages.json", &["--waiting", "--format", "json"]),
        ("waiting-messages-findings.txt", &["--findings"]),
    ] {
        let outcome = report(directory.path(), options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        is_golden(name, &outcome.stdout.replace(&directory.path().display().to_string(), "DIR"));
    }
    // Of the page, the section that shows who waits for whom.
    let page = report(directory.path(), &["--format", "html"]).stdout;
    let (_, section) = page.split_once("<section id=\"waiting\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let lines = section.replace("<tr", "\n<tr").replace("<figure", "\n<figure");
    is_golden("waiting-messages.html", &lines.replace("<rect", "\n<rect"));
    let table = ["--table", "summary_waiting", "--format", "csv"];
    let exported = run(gyan().arg("export").arg(directory.path()).args(table));
    let rows = report(directory.path(), &["--waiting", "--format", "csv"]);
    assert_eq!((exported.code, exported.stdout), (0, rows.stdout), "{}", exported.stderr);
    let whole = report(directory.path(), &["--all"]).stdout;
    assert!(whole.contains("\nWaiting\n") && whole.contains("rank 3 waited 3.50 s"), "{whole}");
    // Without collectives messages stand alone.
    summary.waiting.clear();
    keep(&summary);
    let outcome = report(directory.path(), &["--waiting"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let has = |title: &str| outcome.stdout.contains(title);
    assert!(has("Waiting in messages") && !has("Waiting in collectives"), "{}", outcome.stdout);
    // Nor is there a matrix if no message waited.
    let matrix =
        || report(directory.path(), &["--format", "html"]).stdout.contains("Who waits for whom");
    assert!(matrix());
    summary.message_waiting.as_mut().unwrap().pairs.clear();
    keep(&summary);
    assert!(!matrix());
}

#[test]
fn without_collectives_that_wait_the_report_says_so() {
    let outcome = run(gyan().arg("report").arg(RUNNING).arg("--waiting").current_dir(root()));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no collective was compared"), "{}", outcome.stderr);
}

#[test]
fn where_nothing_is_known_of_queues_the_report_says_what_would_tell() {
    for (library, advice) in [
        ("Open MPI v5.0.11", "--enable-peruse"),
        ("MPICH Version: 5.0.2", "--enable-mpit-events"),
        ("Intel(R) MPI Library 2021.18", "another MPI may"),
        ("Strange MPI 1", ""),
    ] {
        let directory = changed(|profile| {
            profile.pvars.clear();
            profile.mpi.library = library.into();
        });
        let outcome = report(directory.path(), &["--queues"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("gyan run --watch umq --events"), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.contains('('), !advice.is_empty(), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(advice), "{}", outcome.stderr);
    }
}

#[test]
fn the_numbers_of_the_fixture_fit_together() {
    for rank in 0..4 {
        let profile = read_rank(&root().join(RUNNING).join(rank_file_name(rank))).unwrap();
        let close = |one: f64, other: f64| (one - other).abs() < 1e-6;
        let in_mpi: f64 = profile.calls.iter().filter_map(|call| call.time_s).sum();
        assert!(close(in_mpi, profile.in_mpi.unwrap().time_s), "rank {rank}");
        let phases: f64 = profile.phases.iter().map(|phase| phase.time_s).sum();
        assert!(close(phases, profile.job.elapsed_s), "rank {rank}: {phases}");
        for call in &profile.calls {
            let in_phases = profile.phases.iter().flat_map(|phase| &phase.calls);
            let same = in_phases.filter(|other| other.name == call.name);
            assert_eq!(same.map(|call| call.count).sum::<u64>(), call.count, "{}", call.name);
        }
        for pvar in &profile.pvars {
            let Some(samples) = &pvar.samples else { continue };
            assert_eq!(samples.histogram.iter().sum::<u64>(), samples.n, "{}", pvar.name);
        }
    }
}

#[test]
fn a_budget_that_was_exceeded_is_marked_with_the_reason() {
    let directory = changed(|profile| {
        if profile.rank > 1 {
            profile.overhead.sampling_s = 0.25;
            profile.overhead.running_share = 0.0205;
            profile.overhead.share = 0.0206;
        }
    });
    let first = report(directory.path(), &[]).stdout;
    assert!(
        first.contains("2.05 % while the program ran, BUDGET OF 0.50 % EXCEEDED on 2"),
        "{first}"
    );
    let outcome = report(directory.path(), &["--coverage"]);
    let text = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("2.06 % of the run on a rank: BUDGET EXCEEDED"), "{}", outcome.stdout);
    assert!(
        text.contains(
            "EXCEEDED its budget of 0.50 % of the run between start and end on ranks 2-3: 2.05 % \
             on rank 2; reading variables by itself takes 250 ms"
        ),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_slow_clock_is_said() {
    let directory = changed(|profile| {
        let clock = Clock { source: "clock_gettime".into(), read_s: 8e-7, slow: true };
        profile.clock = Some(clock);
    });
    let outcome = report(directory.path(), &["--coverage"]);
    assert!(
        outcome.stdout.contains("the clock is slow (clock_gettime, 800 ns a reading)"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn exact_times_have_no_errors() {
    let directory = changed(|profile| {
        for call in &mut profile.calls {
            call.timed = call.count;
            call.time_error_s = call.time_s.map(|_| 0.0);
        }
        profile.in_mpi.as_mut().unwrap().time_error_s = Some(0.0);
        profile.overhead.budget = None;
    });
    let outcome = report(directory.path(), &["--all"]);
    assert!(outcome.stdout.contains("PER CALL"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('±'), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("no budget (GYAN_BUDGET=none)"), "{}", outcome.stdout);
}

#[test]
fn of_many_ranks_the_series_with_the_largest_readings_are_shown() {
    let one = changed(|_| {});
    let many = TempDir::new().unwrap();
    for rank in 0..20 {
        let mut profile = read_rank(&one.path().join(rank_file_name(rank % 4))).unwrap();
        (profile.rank, profile.size) = (rank, 20);
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(many.path().join(rank_file_name(rank)), text).unwrap();
    }
    let lines = |options: &[&str]| {
        let outcome = report(many.path(), options);
        let left_out = outcome.stdout.contains("the 16 ranks with the largest readings of 20");
        (outcome.stdout.lines().filter(|line| line.contains('█')).count(), left_out)
    };
    // Every bar is as high as it can be.
    assert_eq!(lines(&["--series", "mpool*"]), (16, true));
    assert_eq!(lines(&["--series", "mpool*", "--all"]), (20, false));
}

#[test]
fn what_is_not_in_a_run_is_said_with_the_way_to_get_it() {
    for (fixture, options, expected) in [
        (OLD, &["--phase"][..], &["the program has no phases", "gyan_phase_begin"][..]),
        (OLD, &["--series", "*"], &["kept no series", "gyan run --series 100ms"]),
        (OLD, &["--histogram", "*"], &["no timed call, no sampled variable"]),
        (OLD, &["--sites"], &["no call sites are known", "GYAN_SITES=off"]),
        (OLD, &["--queues"], &["nothing is known of queues", "gyan run --watch"]),
        (RUNNING, &["--phase", "nosuch"], &["no phase matches", "step/exchange"]),
        (RUNNING, &["--series", "nosuch"], &["no sampled variable matches", "mpool"]),
    ] {
        let outcome = report(root().join(fixture), options);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{options:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        for part in expected {
            assert!(outcome.stderr.contains(part), "{options:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_directory_of_runs_is_refused_with_their_names() {
    let directory = TempDir::new().unwrap();
    for (name, expected) in [
        ("run-1", &["holds a run; ", "/run-1\n"][..]),
        ("run-2", &["holds 2 runs; ", "/run-1; ", "gyan diff"]),
    ] {
        let run = directory.path().join(name);
        fs::create_dir(&run).unwrap();
        fs::copy(root().join(OLD).join("rank-000000.json"), run.join("rank-000000.json")).unwrap();
        let outcome = report(directory.path(), &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        for part in expected {
            assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
        }
    }
}

/// The example of a tune, in the directory of one.
pub(crate) fn tune() -> TempDir {
    let directory = TempDir::new().unwrap();
    let example = root().join("results-schema/examples/tune.json");
    fs::copy(example, directory.path().join("tune.json")).unwrap();
    fs::write(directory.path().join("settings.conf"), "btl_tcp_eager_limit = 131072\n").unwrap();
    directory
}

#[test]
fn what_a_tune_found_is_reported_from_its_directory() {
    let tune = tune();
    let name = tune.path().to_str().unwrap();
    for (golden, options) in [("tune.txt", &[][..]), ("tune.md", &["--format", "markdown"])] {
        let outcome = report(tune.path(), options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{golden}");
        is_golden(golden, &outcome.stdout.replace(name, "gyan-tune-app"));
    }
    let of = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let json = report(tune.path(), &["--format", "json"]).stdout;
    assert_eq!(of(&json), of(&fs::read_to_string(tune.path().join("tune.json")).unwrap()));
    for options in [&["--format", "csv"][..], &["--findings"], &["--vars", "*"]] {
        let outcome = report(tune.path(), options);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{options:?}");
        assert!(outcome.stderr.contains("/runs\n"), "{}", outcome.stderr);
    }
    fs::write(tune.path().join("tune.json"), "{").unwrap();
    let outcome = report(tune.path(), &[]);
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
}

#[test]
fn what_a_tune_did_not_show_is_not_said() {
    let tune = tune();
    let file = tune.path().join("tune.json");
    let example: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut tuning = example.clone();
        tuning["winner"] = serde_json::Value::Null;
        change(&mut tuning["trials"]);
        fs::write(&file, tuning.to_string()).unwrap();
        report(tune.path(), &[])
    };
    // From -51 % to +42 %: it was called "Nothing beats the default settings".
    let wide = with(&|trials| {
        trials[0]["verdict"] = "not_proven".into();
        for (end, share) in [("share", 0.01), ("low", -0.51), ("high", 0.42)] {
            trials[0]["gain"][end] = share.into();
        }
        trials[0]["witness"]["moved"] = serde_json::Value::Null;
    });
    let says = "No setting was shown to be faster: btl_tcp_eager_limit=131072 gains 1.00 % (-51.0 % to 42.0 %, ";
    assert!(wide.stdout.starts_with(says) && wide.code == 0, "{}", wide.stdout);
    for said in ["not proven either way", "% sure)"] {
        assert!(wide.stdout.contains(said), "{said}: {}", wide.stdout);
    }
    assert!(!wide.stdout.contains("not moved") && !wide.stdout.contains("changed nothing"));
    let narrow = with(&|trials| {
        trials[0]["verdict"] = "no_difference".into();
        trials[0]["no_more_than"] = 0.03.into();
    });
    assert!(narrow.stdout.contains("no difference larger than 3.00 %"), "{}", narrow.stdout);
    let slower = with(&|trials| trials[0]["verdict"] = "slower".into());
    assert!(slower.stdout.contains("  slower\n"), "{}", slower.stdout);
    let nothing = with(&|trials| trials[0]["verdict"] = "disqualified".into());
    assert!(nothing.stdout.starts_with("None of the settings could be tried\n"));
    assert_eq!(nothing.code, 1);
}

#[test]
fn a_directory_after_phase_is_the_run_directory() {
    let outcome = succeed(gyan().args(["report", "--phase", RUNNING]).current_dir(root()));
    assert!(outcome.stdout.contains("Phases of the program"), "{}", outcome.stdout);
    let outcome = run(gyan().args(["report", "--phase", "step", RUNNING]).current_dir(root()));
    assert!(outcome.stdout.contains("Phase step\n"), "{}", outcome.stdout);
    let outcome = run(gyan().args(["report", "--phase", "step"]).current_dir(root()));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("no run directory"), "{}", outcome.stderr);
}

#[test]
fn a_summary_alone_has_phases_and_no_series() {
    let directory = changed(|_| {});
    assert_eq!(run(gyan().arg("reduce").arg(directory.path())).code, 0);
    let before = report(directory.path(), &["--phase=*"]);
    for rank in 0..4 {
        fs::remove_file(directory.path().join(rank_file_name(rank))).unwrap();
    }
    let after = report(directory.path(), &["--phase=*"]);
    assert_eq!((after.code, after.stdout), (0, before.stdout));
    let series = report(directory.path(), &["--series", "*"]);
    assert_eq!(series.code, 2);
    assert!(series.stderr.contains("holds a summary and no rank profiles"), "{}", series.stderr);
}

#[test]
fn series_for_programs_are_whole() {
    let series = |format| {
        let outcome = report(root().join(RUNNING), &["--series", "*msgq*", "--format", format]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout
    };
    let json: Vec<serde_json::Value> = serde_json::from_str(&series("json")).unwrap();
    assert_eq!(series("csv").lines().count(), json.len() + 1);
    let profile = read_rank(&root().join(RUNNING).join(rank_file_name(0))).unwrap();
    assert_eq!(json.len(), 4 * profile.series.unwrap().end_s.len());
}

/// Clears the screen, in both spellings, and forges a line.
const EVIL: &str = "evil\u{1b}[2J\u{9b}2J\u{7f}\r\nname";

/// `value` with [`EVIL`] in every free text: in other texts it would make the profile invalid.
fn spoil(whole: &serde_json::Value, pointer: &str, spoilt: &mut serde_json::Value) {
    let Some(here) = whole.pointer(pointer) else { return };
    match here {
        serde_json::Value::Object(fields) => {
            fields.keys().for_each(|key| spoil(whole, &format!("{pointer}/{key}"), spoilt));
        }
        serde_json::Value::Array(list) => {
            (0..list.len()).for_each(|at| spoil(whole, &format!("{pointer}/{at}"), spoilt));
        }
        serde_json::Value::String(text) => {
            let before = spoilt.clone();
            *spoilt.pointer_mut(pointer).unwrap() = format!("{text}{EVIL}").into();
            let is_profile = serde_json::from_value::<RankProfile>(spoilt.clone()).is_ok();
            if !is_profile || ["/schema", "/job/started"].contains(&pointer) {
                *spoilt = before;
            }
        }
        _ => {}
    }
}

#[test]
fn control_characters_of_names_never_reach_a_terminal() {
    let directory = TempDir::new().unwrap();
    let text = fs::read_to_string(root().join("results-schema/examples/rank.json")).unwrap();
    let mut whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    // A phase outside of all others has no name, and the example has no remarks.
    (whole["warnings"], whole["size"]) = (serde_json::json!(["remark"]), serde_json::json!(2));
    let mut spoilt = whole.clone();
    spoil(&whole, "", &mut spoilt);
    let evil = spoilt.to_string().matches("evil").count();
    assert!(evil > 50, "only {evil} texts are spoilt");
    fs::write(directory.path().join("rank-000000.json"), spoilt.to_string()).unwrap();
    // Each file that is left out gets a line on stderr.
    spoilt["schema"] = EVIL.into();
    fs::write(directory.path().join("rank-000001.json"), spoilt.to_string()).unwrap();
    for part in [
        &["--all"][..],
        &["--environment"],
        &["--all", "--series", "*"],
        &["--histogram", "*"],
        &["--all", "--phase=*"],
        &["--all", "--queues"],
        &["--vars", "nosuch"],
        &["--phase=nosuch"],
        &["--series", "nosuch"],
    ] {
        for format in ["table", "markdown", "csv", "json"] {
            let mut command = gyan();
            // As on a terminal: otherwise escape sequences for colours are stripped for a pipe.
            command.env("CLICOLOR_FORCE", "1").args(["report", "--format", format]);
            let outcome = run(command.args(part).arg(directory.path()));
            let found = if part.iter().any(|word| word.ends_with("nosuch")) { 2 } else { 1 };
            assert_eq!(outcome.code, found, "{part:?} {format}: {}", outcome.stderr);
            if found == 1 {
                assert!(outcome.stdout.contains("evil"), "{part:?} {format}: {}", outcome.stdout);
            }
            // gyan's own bold and dim.
            let own = ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[0m", "\n"];
            let printed =
                own.iter().fold(outcome.stdout.clone(), |text, own| text.replace(own, ""));
            assert!(!printed.contains(char::is_control), "{part:?} {format}: {printed:?}");
            assert!(!outcome.stdout.contains("\nname"), "{part:?} {format}: {}", outcome.stdout);
            let said = outcome.stderr.replace('\n', "");
            assert!(!said.contains(char::is_control), "{part:?} {format}: {said:?}");
            let lines = outcome.stderr.lines();
            assert!(lines.into_iter().all(|line| line.starts_with("gyan: ")), "{}", outcome.stderr);
        }
    }
    assert_eq!(run(gyan().arg("reduce").arg(directory.path())).code, 1);
    let summary = fs::read_to_string(directory.path().join("summary.json")).unwrap();
    assert!(summary.contains("evil") && !summary.replace('\n', "").contains(char::is_control));
}

/// The names of its files do not matter.
#[test]
fn a_summary_is_reported_like_the_run_that_it_is_of() {
    let place = TempDir::new().unwrap();
    let json = run(gyan().args(["report", "--format", "json", RUNNING]).current_dir(root()));
    let file = place.path().join("baseline.json");
    fs::write(&file, json.stdout).unwrap();
    for options in [&["--format", "csv"][..], &["--findings"], &["--all"]] {
        let of =
            |what: &Path| run(gyan().arg("report").args(options).arg(what).current_dir(root()));
        let (of_run, of_summary) = (of(Path::new(RUNNING)), of(&file));
        assert_eq!((of_summary.code, of_summary.stderr.as_str()), (0, ""), "{options:?}");
        let place = file.display().to_string();
        assert_eq!(of_summary.stdout.replace(&place, RUNNING), of_run.stdout, "{options:?}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    for (options, begin) in [
        ("--format csv", "kind,name,"),
        ("--format csv --series '*'", "rank,variable,"),
        ("--format json --series '*'", "["),
    ] {
        let command = format!(
            "'{}' report {options} {RUNNING} | head -n 1",
            gyan().get_program().to_string_lossy()
        );
        let outcome = quiet(
            std::process::Command::new("bash")
                .args(["-o", "pipefail", "-c", &command])
                .current_dir(root()),
        );
        assert!(outcome.stdout.starts_with(begin), "{options}");
    }
}
