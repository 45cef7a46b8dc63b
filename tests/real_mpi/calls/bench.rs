//! `scripts/bench`: how it evaluates its numbers, and that it runs what it says. No time is asserted.

// Parts of the bench that its own `main` calls.
#![allow(dead_code)]

#[path = "../../../benches/cost/accuracy.rs"]
mod accuracy;
#[path = "../../../benches/cost/machine.rs"]
mod machine;
#[path = "../../../benches/cost/markdown.rs"]
mod markdown;
#[path = "../../../benches/cost/measurements.rs"]
mod measurements;
#[path = "../../../benches/cost/modes.rs"]
mod modes;
#[path = "../../../benches/cost/mpip.rs"]
mod mpip;
#[path = "../../../benches/cost/mpis.rs"]
mod mpis;
#[path = "../../../benches/cost/results.rs"]
mod results;
#[path = "../../../benches/cost/runner.rs"]
mod runner;
#[path = "../../../benches/cost/statistics.rs"]
mod statistics;

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use crate::common::{self, MPICH, OPENMPI, OPENMPI_SPC, Outcome, root};
use accuracy::{Functions, Told};
use machine::machine;
use markdown::{replaced, tables};
use measurements::{ALL, Better, Figure, Measurement, Mpis, Program, Source};
use modes::{Mode, Tool};
use results::Results;
use runner::{Account, Measured, Measurements, measure, order, printed};
use statistics::{comparison, spread};

const RECEIVE: Measurement = Measurement {
    part: "receive",
    program: Program::Test("bench_calls"),
    ranks: 1,
    arguments: &["receive", "0.02"],
    environment: &[],
    modes: || vec![Mode::bare("bare", &[]), Mode::gyan("gyan", &[])],
    peers: true,
    mpis: Mpis::Only(&["openmpi4"]),
    figures: &[Figure {
        what: "a receive",
        unit: "ns",
        source: Source::Printed(1),
        better: Better::Lower,
    }],
};

fn names(measured: &Measurements) -> Vec<&str> {
    measured.modes.iter().map(|measured| measured.mode.name.as_str()).collect()
}

#[test]
fn no_mode_has_a_place_of_its_own() {
    for modes in 1..7 {
        let mut places = vec![vec![0; modes]; modes];
        let mut behind = vec![vec![0; modes]; modes];
        for round in 0..2 * modes {
            let order = order(round, modes);
            order.iter().enumerate().for_each(|(place, &mode)| places[mode][place] += 1);
            order.windows(2).for_each(|pair| behind[pair[0]][pair[1]] += 1);
        }
        assert!(places.iter().flatten().all(|&often| often == 2), "{places:?}");
        for (one, other) in (0..modes).flat_map(|one| (0..one).map(move |other| (one, other))) {
            assert_eq!(behind[one][other], behind[other][one], "{behind:?}");
        }
    }
}

#[test]
fn another_tool_is_measured_in_the_same_rounds() {
    let here = TempDir::new().unwrap();
    let counts = here.path().join("tool");
    let tool = OPENMPI.preloadable("tool", &[]);
    let mut peer = Mode::peer(&tool);
    peer.settings.push(("TOOL".into(), counts.display().to_string()));
    let measured = measure(OPENMPI, &RECEIVE, &[peer], 2);
    assert_eq!(measured.left_out, Vec::<String>::new());
    let name = tool.file_name().unwrap().to_str().unwrap();
    assert_eq!(names(&measured), ["bare", "gyan", name]);
    for one in &measured.modes {
        assert_eq!(one.values[0].len(), 2);
        assert!(one.values[0].iter().all(|&ns| ns > 0.0));
        let accounts = if one.mode.tool == Tool::Gyan { 2 } else { 0 };
        assert_eq!(one.accounts.len(), accounts, "{}", one.mode.name);
    }
    // The tool itself saw the calls: it really ran.
    let counts = fs::read_to_string(here.path().join("tool.0")).unwrap();
    assert!(counts.starts_with("MPI_Recv "), "{counts}");
}

#[test]
fn lines_of_a_tool_are_no_numbers_of_the_program() {
    let outcome = Outcome {
        code: 0,
        stdout: "tool 1.0\n\n1.5 2.5\n3 4\n".into(),
        stderr: "2 profiles\n0.25\n".into(),
    };
    assert_eq!(printed(&outcome, &Source::Printed(1)), Some(2.5));
    assert_eq!(printed(&outcome, &Source::Printed(2)), None);
    assert_eq!(printed(&outcome, &Source::Noted), Some(0.25));
}

#[test]
fn a_tool_of_another_mpi_stays_out_of_a_program() {
    let tool = Mode::peer(&OPENMPI_SPC.preloadable("tool", &[]));
    let measured = measure(MPICH, &RECEIVE, &[tool], 1);
    assert_eq!(names(&measured), ["bare", "gyan"]);
}

#[test]
fn a_mode_that_fails_is_named_and_the_others_go_on() {
    let modes = || {
        let off = Mode::gyan("off", &[("GYAN", "off")]);
        let fails = Mode::bare("fails", &["there is", "no such", "argument"]);
        vec![Mode::bare("bare", &[]), off, fails]
    };
    let measurement = Measurement { modes, arguments: &[], ..RECEIVE };
    let measured = measure(OPENMPI, &measurement, &[], 1);
    assert_eq!(names(&measured), Vec::<&str>::new());
    let why = measured.left_out.join("\n");
    assert!(why.contains("fails: exit code 2: "), "{why}");
    let measured = measure(OPENMPI, &Measurement { modes, ..RECEIVE }, &[], 1);
    assert_eq!(measured.left_out, ["off: 0 profiles of 1 ranks"]);
    assert_eq!(names(&measured), ["bare", "fails"]);
}

#[test]
fn quartiles_lie_between_numbers_where_there_is_none() {
    let four = spread(&[4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!((four.low_quartile, four.median, four.high_quartile), (1.75, 2.5, 3.25));
    let one = spread(&[7.0]).unwrap();
    assert_eq!((one.low_quartile, one.median, one.high_quartile), (7.0, 7.0, 7.0));
    assert_eq!(spread(&[]), None);
}

#[test]
fn a_ratio_above_1_is_dearer_whichever_number_is_the_better() {
    let nanoseconds = comparison(&[10.0, 20.0], &[20.0, 40.0], Better::Lower).unwrap();
    assert_eq!((nanoseconds.difference, nanoseconds.ratio), (15.0, 2.0));
    let per_second = comparison(&[10.0, 20.0], &[5.0, 10.0], Better::Higher).unwrap();
    assert_eq!((per_second.difference, per_second.ratio), (-7.5, 2.0));
}

#[test]
fn a_machine_that_becomes_slower_is_not_in_the_ratio_of_a_round() {
    let comparison = comparison(&[1.0, 2.0, 8.0], &[1.1, 2.2, 8.8], Better::Lower).unwrap();
    let of_rounds = comparison.ratios;
    assert!((of_rounds.high_quartile - of_rounds.low_quartile).abs() < 1e-9);
    assert!((of_rounds.median - 1.1).abs() < 1e-9);
}

fn results() -> Results {
    let account = || Account {
        elapsed_s: 1.5,
        running_share: 0.004,
        share: 0.006,
        over_budget: false,
        library: "MPICH Version:\t4.0.2".into(),
    };
    let measured = Measurements {
        modes: vec![
            Measured {
                mode: Mode::bare("bare", &[]),
                values: vec![vec![2.0, 4.0]],
                accounts: vec![],
                functions: vec![],
            },
            Measured {
                mode: Mode::gyan("gyan", &[]),
                values: vec![vec![2.5, 5.0]],
                accounts: vec![account(), Account { over_budget: true, ..account() }],
                functions: vec![],
            },
        ],
        left_out: vec!["slow.so: it did not end".into()],
    };
    let mut results = Results {
        schema: "gyan.bench/1",
        gyan: "1.2.3".into(),
        date: "2026-01-31".into(),
        command: "scripts/bench 2".into(),
        rounds: 2,
        minutes: 7.0,
        machine: machine(),
        libraries: BTreeMap::new(),
        rows: Vec::new(),
        accuracy: Vec::new(),
        left_out: Vec::new(),
    };
    results.add("mpich4", &ALL[0], &measured);
    results
}

#[test]
fn a_row_shows_what_a_reader_checks() {
    let tables = tables(&results());
    assert!(
        tables
            .starts_with("gyan 1.2.3, 2026-01-31, by `scripts/bench 2`: 2 rounds in 7 minutes.\n")
    );
    assert!(tables.contains("\n### mpich4: MPICH Version: 4.0.2\n"), "{tables}");
    assert!(tables.contains("| bare | 3.000 (2.500-3.500) ns |  |  |  |  |  |  |\n"), "{tables}");
    let gyan = "|  | gyan | 3.750 (3.125-4.375) ns | +0.750 ns | 1.2500 | 1.2500 (1.2500-1.2500) \
                | 20.000 % | 0.400 %, over budget in 1 of 2 | 0.600 % |\n";
    assert!(tables.contains(gyan), "{tables}");
    assert!(tables.ends_with("Not measured:\n\n- mpich4, receive: slow.so: it did not end\n"));
}

#[test]
fn every_row_has_as_many_cells_as_the_title() {
    let tables = tables(&results());
    let rows = tables.lines().filter(|line| line.starts_with('|'));
    let cells: Vec<usize> = rows.map(|row| row.split(" |").count()).collect();
    assert!(cells.len() == 4 && cells.iter().all(|&count| count == cells[0]), "{tables}");
}

#[test]
fn the_json_has_the_numbers_of_all_rounds() {
    let json = serde_json::to_value(results()).unwrap();
    let gyan = &json["rows"][0]["modes"][1];
    assert_eq!(gyan["values"], serde_json::json!([2.5, 5.0]));
    assert_eq!(gyan["comparison"]["ratios"]["median"], 1.25);
    assert_eq!(gyan["account"]["over_budget"], 1);
    assert_eq!(json["libraries"]["mpich4"], "MPICH Version:\t4.0.2");
}

#[test]
fn the_document_keeps_its_prose_and_the_tables_of_other_parts() {
    let document = "a\n<!-- the tables of watch: scripts/bench --write writes them -->old\
        <!-- end of the tables -->\nb\n\
        <!-- the tables of halo receive: scripts/bench --write writes them -->\n\nold\n\
        <!-- end of the tables -->\nc\n";
    let text = replaced(document, &results()).unwrap();
    let (before, after) = text.split_once("old").unwrap();
    assert!(before.starts_with("a\n") && after.starts_with("<!-- end"), "{text}");
    assert!(after.contains("writes them -->\n\ngyan 1.2.3, ") && !after.contains("old"), "{text}");
    assert!(text.ends_with("it did not end\n\n<!-- end of the tables -->\nc\n"), "{text}");
    assert_eq!(replaced("no place", &results()), None);
}

#[test]
fn every_part_has_one_place_in_the_document() {
    let document = fs::read_to_string(root().join("benches/results/measurements.md")).unwrap();
    let places: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("<!-- the tables of ")?.split_once(':'))
        .flat_map(|(words, _)| words.split(' '))
        .collect();
    for measurement in &ALL {
        let word = measurement.part.split('-').next().unwrap();
        assert_eq!(places.iter().filter(|&&place| place == word).count(), 1, "{word}");
    }
    assert_eq!(document.matches("<!-- the tables of ").count(), document.matches(END).count());
}

const END: &str = "\n<!-- end of the tables -->";

fn told(count: u64, time_s: f64, error_s: Option<f64>) -> Functions {
    let told = Told { count, timed: count / 4, time_s, error_s, truth_s: Some(2.0) };
    Functions::from([("MPI_Recv".into(), told.clone()), ("MPI_Test".into(), Told::default())])
}

fn accuracy_results(errors: [Option<f64>; 2]) -> Results {
    let accounts = || {
        let of_run = || Account {
            elapsed_s: 2.5,
            running_share: 0.004,
            share: 0.006,
            over_budget: false,
            library: "MPICH Version:\t4.0.2".into(),
        };
        vec![of_run(), of_run()]
    };
    let functions = [
        errors.map(|error| told(400, 2.1, error)),
        [0.0, 0.0].map(|error| told(200, 1.0, Some(error))),
    ];
    let modes = modes::accuracy().into_iter().zip(functions);
    let measured = modes.map(|(mode, functions)| Measured {
        mode,
        values: vec![],
        accounts: accounts(),
        functions: functions.into(),
    });
    let measurement = ALL.iter().find(|one| one.part == "accuracy-replay").unwrap();
    let mut results = results();
    results.rows.clear();
    let measured = Measurements { modes: measured.collect(), left_out: vec![] };
    results.add("mpich4", measurement, &measured);
    results
}

#[test]
fn a_time_stands_beside_that_of_all_calls_and_the_truth() {
    let results = accuracy_results([Some(0.021), Some(0.05)]);
    let tables = tables(&results);
    let budgeted = "| replay, `MPI_Recv`: 40.0 % of the run | gyan, `GYAN_BUDGET=0.5%` | 400 \
                    | 25.00 % | 2.100 s | 1.69 % | +5.00 % (+5.00 to +5.00) | 2.000 s \
                    | +5.00 % (+5.00 to +5.00) | 3.4 (4.8) |\n\
                    |  | gyan, `GYAN_BUDGET=none` | 200 | 25.00 % | 1.000 s | 0.00 % |  | 2.000 s \
                    | -50.00 % (-50.00 to -50.00) |  |\n";
    assert!(tables.contains(budgeted), "{tables}");
    assert!(!tables.contains("MPI_Test") && !tables.contains("| what |"), "{tables}");
    let titles = tables.lines().filter(|line| line.starts_with("| "));
    assert!(titles.clone().all(|row| row.split(" |").count() == 11), "{tables}");
    let json = serde_json::to_value(results).unwrap();
    assert_eq!(json["accuracy"][0]["modes"][0]["rounds"][1]["error_s"], 0.05);
}

#[test]
fn a_time_without_a_stated_error_is_a_lower_bound() {
    let tables = tables(&accuracy_results([Some(0.021), None]));
    assert!(tables.contains("| at least 2.100 s | 1.00 %, none in 1 of 2 |"), "{tables}");
}

#[test]
fn a_report_of_mpips_is_the_sum_over_call_sites() {
    // As its user guide describes it.
    let report = "\
@--- Aggregate Time (top twenty, descending, milliseconds) ----------------
Call                 Site       Time    App%    MPI%      Count    COV
Isend                  25        926    1.45   16.06      71742   0.20
---------------------------------------------------------------------------
@--- Callsite Time statistics (all, milliseconds): 5 ----------------------
---------------------------------------------------------------------------
Name              Site Rank  Count      Max     Mean      Min   App%   MPI%
Allreduce            1    0      1   0.0138    0.011   0.0138   0.00   0.01
Allreduce            1    *      4   0.0143     0.02    0.013   0.00   0.01

Allreduce            7    *      2      0.5    0.035    0.013   0.00   0.01

Isend              124    *  71742    2e+04 1.28e-02  0.00247   1.45  16.06
---------------------------------------------------------------------------
@--- Callsite Message Sent statistics (all, sent bytes) -------------------
---------------------------------------------------------------------------
Name              Site Rank   Count       Max      Mean       Min       Sum
Isend              124    *      40      6000      6000      6000   4.8e+05
";
    let functions = mpip::parsed(report);
    assert_eq!(functions.len(), 2);
    let (reduce, send) = (&functions["MPI_Allreduce"], &functions["MPI_Isend"]);
    assert_eq!((reduce.count, send.count), (6, 71_742));
    assert!((reduce.time_s - 0.00015).abs() < 1e-12, "{reduce:?}");
    assert!((send.time_s - 0.918_297_6).abs() < 1e-9, "{send:?}");
}

/// A single run cannot test that the estimate is right, but that it comes with the true value.
#[test]
fn the_replay_knows_the_truth_of_its_calls() {
    let replay = ALL.iter().find(|one| one.part == "accuracy-replay").unwrap();
    let short = Measurement {
        program: Program::Test("replay"),
        arguments: &["0.2"],
        modes: replay.modes,
        figures: &[],
        ..RECEIVE
    };
    let measured = measure(OPENMPI, &short, &[], 1);
    assert_eq!(measured.left_out, Vec::<String>::new());
    for mode in &measured.modes {
        let told = &mode.functions[0]["MPI_Reduce_local"];
        assert!(told.truth_s.is_some_and(|truth| truth > 0.05), "{told:?}");
        assert!(told.count > 10_000 && told.timed > 0, "{told:?}");
    }
    let all = &measured.modes[1].functions[0]["MPI_Reduce_local"];
    assert_eq!((all.timed, all.error_s), (all.count, Some(0.0)));
}
