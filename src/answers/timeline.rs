//! How ranks wait in the calls of a timeline.

use crate::document::value::{InUnit, Value, line, row, seconds};
use crate::document::{Section, View, numbers, plural, texts};
use crate::timeline::{FunctionWaits, TimelineWaits, WaitState};

/// Functions that are shown.
const ROWS: usize = 12;

/// All waits by definition, the longest first.
pub(crate) fn timeline_waits(waits: &TimelineWaits) -> View<'_> {
    let TimelineWaits { ranks, calls, lost, .. } = waits;
    let title = line!["waits in ", *calls, " calls of ", *ranks, " ranks"];
    let mut columns = texts(["FUNCTION", "WAITS FOR"]);
    columns.extend(numbers(["CALLS THAT WAIT", "WAITING", "OF ITS TIME"]));
    columns.extend(texts(["MOST"]));
    let rows = waits.waits.iter().take(ROWS).map(waits_row).collect();
    let mut notes: Vec<Value> = Vec::new();
    if waits.waits.is_empty() {
        notes.push(
            "no call waits for another rank, as far as it is certain which calls belong together"
                .into(),
        );
    } else {
        notes.push("exact for these calls, summed over ranks: a call waits from its begin until the other rank begins its own".into());
    }
    if let Some(more) = waits.waits.len().checked_sub(ROWS).filter(|more| *more > 0) {
        notes.push(line![more, " more in --format json"]);
    }
    if *lost > 0 {
        notes.push(line![
            *lost,
            " earlier event",
            plural(*lost),
            " overwritten: they are not in it"
        ]);
    }
    let section = Section { title: "".into(), columns, rows, notes };
    View { title, subtitle: Vec::new(), sections: vec![section] }
}

fn waits_row(of: &FunctionWaits) -> Vec<Value<'_>> {
    let what = match of.state {
        WaitState::LateSender => "a message to be sent",
        WaitState::LateReceiver => "its receive to be posted",
        WaitState::Collective => "the last rank",
        WaitState::LateRoot => "the root",
    };
    let most = of.pairs.first().map_or("".into(), |pair| {
        line![
            "rank ",
            Value::Rank(pair.rank),
            " for rank ",
            Value::Rank(pair.late_rank),
            ", ",
            seconds(pair.waiting_s)
        ]
    });
    let share = gyan_results::Unit::Share.double(of.waiting_s / of.time_s.max(f64::MIN_POSITIVE));
    row![of.function.as_str(), what, of.waits, seconds(of.waiting_s), share, most]
}
