//! Waiting and transfer in synchronising collectives: a row for each function and communicator, and one for each
//! function.

use gyan_results::{LastRank, WaitingOfRanks, WaitingSummary};

use crate::document::data::{Data, TakeRow};
use crate::document::value::{Value, row};
use crate::document::{Column, Kind, column, required};

const COLUMNS: [Column; 19] = [
    required("function", Kind::Text),
    // Empty for all of them.
    column("communicator", Kind::Text),
    column("members", Kind::Text),
    column("ordinal", Kind::Integer),
    column("size", Kind::Integer),
    column("ranks", Kind::Text),
    required("calls", Kind::Integer),
    // How many of the calls were timed on every rank.
    column("compared", Kind::Integer),
    required("time_s", Kind::Double),
    required("waiting_s", Kind::Double),
    column("waiting_error_s", Kind::Double),
    required("transfer_s", Kind::Double),
    // The rank for which others waited longest, and its share of the waiting.
    column("last_rank", Kind::Integer),
    column("last_waiting_share", Kind::Double),
    // The ranks of a communicator, when all timed the same calls.
    column("waiting_min_s", Kind::Double),
    column("waiting_min_rank", Kind::Integer),
    column("waiting_avg_s", Kind::Double),
    column("waiting_max_s", Kind::Double),
    column("waiting_max_rank", Kind::Integer),
];

pub(crate) fn waiting(functions: &[WaitingSummary]) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        for of in functions {
            let mut cells = row![&of.function];
            cells.extend([const { Value::Nothing }; 5]);
            cells.extend(row![of.calls, Value::Nothing]);
            cells.extend(times(of.time_s, of.waiting_s, of.waiting_error_s, &of.last));
            cells.extend([const { Value::Nothing }; 5]);
            take(&cells)?;
            for on in &of.communicators {
                let mut cells = row![&of.function, &on.communicator, &on.members];
                cells.extend(row![u64::from(on.ordinal), u64::from(on.size), &on.ranks]);
                cells.extend(row![on.calls, on.compared]);
                cells.extend(times(on.time_s, on.waiting_s, on.waiting_error_s, &on.last));
                cells.extend(of_ranks(on.of_ranks.as_ref()));
                take(&cells)?;
            }
        }
        Ok(())
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}

fn times(
    time_s: f64,
    waiting_s: f64,
    error_s: Option<f64>,
    last: &[LastRank],
) -> Vec<Value<'static>> {
    let last = last.first().filter(|last| last.waiting_share > 0.0);
    row![
        time_s,
        waiting_s,
        error_s,
        time_s - waiting_s,
        last.map_or(Value::Nothing, |last| Value::Rank(last.rank)),
        last.map(|last| last.waiting_share),
    ]
}

fn of_ranks(of: Option<&WaitingOfRanks>) -> Vec<Value<'static>> {
    row![
        of.map(|of| of.min_s),
        of.map(|of| Value::Rank(of.min_rank)),
        of.map(|of| of.avg_s),
        of.map(|of| of.max_s),
        of.map(|of| Value::Rank(of.max_rank)),
    ]
}
