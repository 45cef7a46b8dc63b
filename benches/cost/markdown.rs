//! How do the results read as tables, and where in a document do they belong?

use std::fmt::Write as _;

use super::accuracy::{AccuracyMode, AccuracyRow, Told};
use super::modes::{BUDGETED, UNLIMITED};
use super::results::{AccountRow, ModeRow, Results, Row};
use super::statistics::{Spread, spread};

/// The markers of a place for tables in a document: the parts that belong there are between the first two, and
/// the tables before the last.
const PLACE: &str = "<!-- the tables of ";
const WRITTEN: &str = ": scripts/bench --write writes them -->";
const END: &str = "<!-- end of the tables -->";

/// `document` with the measured tables in their places, and everything else unchanged; none when there is no
/// place for any of them.
pub(super) fn replaced(document: &str, results: &Results) -> Option<String> {
    let (mut text, mut rest, mut is_written) = (String::new(), document, false);
    while let Some((before, place)) = rest.split_once(PLACE) {
        let (words, place) = place.split_once(WRITTEN)?;
        let (old, after) = place.split_once(END)?;
        let belongs =
            |part: &str| words.split(' ').any(|word| Some(word) == part.split('-').next());
        let is_measured = results.parts().any(belongs);
        let new = is_measured.then(|| format!("\n\n{}\n", tables_of(results, &belongs)));
        is_written |= is_measured;
        text += &[before, PLACE, words, WRITTEN, new.as_deref().unwrap_or(old), END].concat();
        rest = after;
    }
    is_written.then(|| text + rest)
}

/// The machine, and the tables for each MPI.
pub(super) fn tables(results: &Results) -> String {
    tables_of(results, &|_| true)
}

/// The same for some parts.
fn tables_of(results: &Results, belongs: &dyn Fn(&str) -> bool) -> String {
    let rows: Vec<&Row> = results.rows.iter().filter(|row| belongs(row.part)).collect();
    let accuracy = results.accuracy.iter().filter(|row| belongs(row.part));
    let accuracy: Vec<&AccuracyRow> = accuracy.collect();
    let mut text = machine(results);
    let mut mpis: Vec<&str> = Vec::new();
    let of_rows = rows.iter().map(|row| row.mpi.as_str());
    for mpi in of_rows.chain(accuracy.iter().map(|row| row.mpi.as_str())) {
        if !mpis.contains(&mpi) {
            mpis.push(mpi);
        }
    }
    for mpi in mpis {
        let library =
            results.libraries.get(mpi).map_or_else(String::new, |library| version(library));
        let _ = write!(text, "\n### {mpi}{library}\n");
        costs(&mut text, rows.iter().filter(|row| row.mpi == mpi), results.rounds);
        accuracies(&mut text, accuracy.iter().filter(|row| row.mpi == mpi));
    }
    let left_out = results.left_out.iter().filter(|left_out| left_out.part.is_none_or(belongs));
    for (at, left_out) in left_out.enumerate() {
        if at == 0 {
            text.push_str("\nNot measured:\n\n");
        }
        let part = left_out.part.map(|part| format!(", {part}")).unwrap_or_default();
        let _ = writeln!(text, "- {}{part}: {}", left_out.mpi, left_out.why);
    }
    text
}

/// The table of figures compared with bare runs.
fn costs<'a>(text: &mut String, rows: impl Iterator<Item = &'a &'a Row>, rounds: usize) {
    let mut rows = rows.peekable();
    if rows.peek().is_some() {
        text.push_str(
            "\n| what | mode | median (quartiles) | difference | ratio | ratio in a round (quartiles) | share, from outside | by gyan, running | by gyan, with start |\n\
             | :-- | :-- | --: | --: | --: | --: | --: | --: | --: |\n",
        );
    }
    for row in rows {
        for (at, mode) in row.modes.iter().enumerate() {
            let what = if at == 0 { row.what } else { "" };
            let _ = writeln!(text, "| {what} | {} |", cells(row, mode, rounds));
        }
    }
}

/// The table of the times of functions.
fn accuracies<'a>(text: &mut String, rows: impl Iterator<Item = &'a &'a AccuracyRow>) {
    let mut rows = rows.peekable();
    if rows.peek().is_some() {
        text.push_str(
            "\n| program, function | mode | calls | timed | time | stated error | a call against all timed, in a round (quartiles) | truth | against that (quartiles) | in stated errors (largest) |\n\
             | :-- | :-- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
        );
    }
    for row in rows {
        let program = row.part.trim_start_matches("accuracy-");
        let share = percent(row.share_of_run, 1);
        let what = format!("{program}, `{}`: {share} of the run", row.function);
        let all_timed = row.modes.iter().find(|mode| mode.mode == UNLIMITED);
        for (at, mode) in row.modes.iter().enumerate() {
            let what = if at == 0 { what.as_str() } else { "" };
            let all_timed = all_timed.filter(|other| other.mode != mode.mode);
            let cells = accuracy_cells(mode, all_timed).join(" | ");
            let _ = writeln!(text, "| {what} | {} | {cells} |", mode.mode);
        }
    }
}

/// The MPI and the programs of the measurement.
fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let kind = if machine.is_virtual { " of a virtual machine" } else { "" };
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "gyan {}, {}, by `{}`: {} rounds in {:.0} minutes.\n\n\
         {}, {} {cores}{kind}, {:.1} GiB, {}, Linux {}, clock source {}; load before the first run {}.\n",
        results.gyan,
        results.date,
        results.command,
        results.rounds,
        results.minutes,
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.system,
        machine.kernel,
        machine.clock,
        machine.load_before,
    )
}

/// The cells of a row after the first.
fn cells(row: &Row, mode: &ModeRow, rounds: usize) -> String {
    let Spread { low_quartile, median, high_quartile } = mode.spread;
    let mut cells = vec![
        mode.mode.clone(),
        format!(
            "{} ({}-{}) {}",
            number(median),
            number(low_quartile),
            number(high_quartile),
            row.unit
        ),
    ];
    match &mode.comparison {
        None => cells.extend([const { String::new() }; 3]),
        Some(comparison) => {
            let Spread { low_quartile, median, high_quartile } = comparison.ratios;
            let sign = if comparison.difference < 0.0 { "-" } else { "+" };
            cells.push(format!("{sign}{} {}", number(comparison.difference.abs()), row.unit));
            cells.push(format!("{:.4}", comparison.ratio));
            cells.push(format!("{median:.4} ({low_quartile:.4}-{high_quartile:.4})"));
        }
    }
    match &mode.account {
        Some(account) if row.longer_than_a_second => {
            // Compared with a run that also has gyan, it would be the share of something else.
            let is_whole = row.modes.first().is_some_and(|first| first.account.is_none());
            let outside = mode.comparison.as_ref().filter(|_| is_whole);
            let share = outside.map(|comparison| 1.0 - 1.0 / comparison.ratios.median);
            cells.push(share.map(|share| percent(share, 3)).unwrap_or_default());
            let AccountRow { running_share, share, over_budget, .. } = account;
            let over = if *over_budget > 0 {
                format!(", over budget in {over_budget} of {rounds}")
            } else {
                String::new()
            };
            cells.push(percent(*running_share, 3) + &over);
            cells.push(percent(*share, 3));
        }
        _ => cells.extend([const { String::new() }; 3]),
    }
    cells.join(" | ")
}

/// The cells of a mode after its name.
fn accuracy_cells(mode: &AccuracyMode, all_timed: Option<&AccuracyMode>) -> [String; 8] {
    let rounds = &mode.rounds;
    let median = |pick: fn(&Told) -> f64| {
        spread(&rounds.iter().map(pick).collect::<Vec<f64>>()).map_or(0.0, |spread| spread.median)
    };
    let is_gyan = mode.mode == BUDGETED || mode.mode == UNLIMITED;
    let errors: Vec<f64> =
        rounds.iter().filter_map(|told| Some(told.error_s? / told.time_s)).collect();
    let without = rounds.len() - errors.len();
    // A lower bound in one round makes the median a lower bound.
    let at_least = if is_gyan && without > 0 { "at least " } else { "" };
    let error = match spread(&errors) {
        _ if !is_gyan => String::new(),
        None => "none".into(),
        Some(spread) if without == 0 => percent(spread.median, 2),
        Some(spread) => {
            format!("{}, none in {without} of {}", percent(spread.median, 2), rounds.len())
        }
    };
    let others = all_timed.map_or(&[][..], |other| &other.rounds);
    let differences = rounds.iter().zip(others).map(|(told, other)| told.mean_s() / other.mean_s());
    let with_truth = || rounds.iter().filter_map(|told| Some((told, told.truth_s?)));
    let truths: Vec<f64> = with_truth().map(|(_, truth)| truth).collect();
    let in_errors: Vec<f64> = with_truth()
        .filter_map(|(told, truth)| Some((told.time_s - truth) / told.error_s?))
        .map(f64::abs)
        .filter(|errors| errors.is_finite())
        .collect();
    let largest = in_errors.iter().copied().reduce(f64::max).unwrap_or_default();
    let timed = median(|told| told.timed as f64 / told.count as f64);
    [
        format!("{:.0}", median(|told| told.count as f64)),
        if is_gyan { percent(timed, 2) } else { String::new() },
        format!("{at_least}{} s", number(median(|told| told.time_s))),
        error,
        signed(differences),
        spread(&truths).map_or_else(String::new, |truth| format!("{} s", number(truth.median))),
        signed(with_truth().map(|(told, truth)| told.time_s / truth)),
        spread(&in_errors)
            .map_or_else(String::new, |errors| format!("{:.1} ({largest:.1})", errors.median)),
    ]
}

/// Ratios as percents more or less.
fn signed(ratios: impl Iterator<Item = f64>) -> String {
    let more: Vec<f64> = ratios.map(|ratio| (ratio - 1.0) * 100.0).collect();
    spread(&more).map_or_else(String::new, |Spread { low_quartile, median, high_quartile }| {
        format!("{median:+.2} % ({low_quartile:+.2} to {high_quartile:+.2})")
    })
}

fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$} %", share * 100.0)
}

/// Four digits, which is more than the figures deserve.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A version up to the first comma, after the name of an MPI.
fn version(library: &str) -> String {
    let words = library.split(',').next().unwrap_or(library).split_whitespace();
    format!(": {}", words.collect::<Vec<&str>>().join(" "))
}
