//! How do the results read as a table? One for each MPI; and where in a document does it belong?

use std::fmt::Write as _;

use super::results::{AccountRow, ModeRow, Results, Row};
use super::statistics::Spread;

/// The place of the tables in a document.
pub(super) const BEGIN: &str = "<!-- the tables: scripts/bench --write writes them -->";
pub(super) const END: &str = "<!-- end of the tables -->";

/// `document` with these tables in their place, and all else as it was.
pub(super) fn replaced(document: &str, tables: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

/// The machine, and a table for each MPI.
pub(super) fn tables(results: &Results) -> String {
    let mut text = machine(results);
    let mut mpis: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !mpis.contains(&row.mpi.as_str()) {
            mpis.push(&row.mpi);
        }
    }
    for mpi in mpis {
        let library =
            results.libraries.get(mpi).map_or_else(String::new, |library| version(library));
        let _ = write!(
            text,
            "\n### {mpi}{library}\n\n\
             | what | mode | median (quartiles) | difference | ratio | ratio in a round (quartiles) | share, from outside | by gyan, running | by gyan, with start |\n\
             | :-- | :-- | --: | --: | --: | --: | --: | --: | --: |\n"
        );
        for row in results.rows.iter().filter(|row| row.mpi == mpi) {
            for (at, mode) in row.modes.iter().enumerate() {
                let what = if at == 0 { row.what } else { "" };
                let _ = writeln!(text, "| {what} | {} |", cells(row, mode, results.rounds));
            }
        }
    }
    if !results.left_out.is_empty() {
        text.push_str("\nNot measured:\n\n");
    }
    for left_out in &results.left_out {
        let part = left_out.part.map(|part| format!(", {part}")).unwrap_or_default();
        let _ = writeln!(text, "- {}{part}: {}", left_out.mpi, left_out.why);
    }
    text
}

/// What was measured with, and on what.
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

/// The cells of a row behind the first.
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
            // Against a run that has gyan too it would be the share of something else.
            let is_whole = row.modes.first().is_some_and(|first| first.account.is_none());
            let outside = mode.comparison.as_ref().filter(|_| is_whole);
            let share = outside.map(|comparison| 1.0 - 1.0 / comparison.ratios.median);
            cells.push(share.map(percent).unwrap_or_default());
            let AccountRow { running_share, share, over_budget, .. } = account;
            let over = if *over_budget > 0 {
                format!(", over budget in {over_budget} of {rounds}")
            } else {
                String::new()
            };
            cells.push(percent(*running_share) + &over);
            cells.push(percent(*share));
        }
        _ => cells.extend([const { String::new() }; 3]),
    }
    cells.join(" | ")
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}

/// Four digits, which is more than any of it is worth.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A version without what comes behind the first comma, behind the name of an MPI.
fn version(library: &str) -> String {
    let words = library.split(',').next().unwrap_or(library).split_whitespace();
    format!(": {}", words.collect::<Vec<&str>>().join(" "))
}
