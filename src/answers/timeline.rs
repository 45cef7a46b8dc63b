//! How ranks wait in the calls of a timeline, and where its critical path is.

use crate::document::value::{InUnit, Value, line, row, seconds, share};
use crate::document::{Kind, Section, View, column, numbers, plural, texts};
use crate::timeline::{
    FunctionWaits, PathKnowledge, RankOnPath, TimelinePath, TimelineWaits, WaitState,
};
use crate::words::NEARLY_ALL;

/// Functions and ranks that are shown.
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
    View {
        title,
        subtitle: Vec::new(),
        sections: vec![section, critical_path(&waits.critical_path)],
    }
}

fn critical_path(known: &PathKnowledge) -> Section<'_> {
    let mut columns = vec![column("RANK", Kind::Integer)];
    columns.extend(numbers(["ON THE PATH", "OF IT", "OWN CODE", "IN MPI", "OTHERS ALL WAIT"]));
    columns.extend(texts(["MOST IN MPI", "MOST OWN CODE BEFORE"]));
    let title = "critical path".into();
    let path = match known {
        PathKnowledge::Known(path) => path,
        PathKnowledge::Unknown { unknown_because } => {
            let notes = vec![line!["not known: ", *unknown_because]];
            return Section { title, columns, rows: Vec::new(), notes };
        }
    };
    let TimelinePath { window_s, known_s, serial_s, ranks } = path;
    let mut notes: Vec<Value> = vec![line![
        "time that is saved on the path makes the run shorter; for ",
        seconds(*serial_s),
        " of it, ",
        share(serial_s / known_s.max(f64::MIN_POSITIVE)),
        ", one rank works and all others wait"
    ]];
    if known_s / window_s < NEARLY_ALL {
        notes.push(line![
            "followed back for ",
            seconds(*known_s),
            " of ",
            seconds(*window_s),
            ": earlier events of its rank were overwritten"
        ]);
    }
    if let Some(more) = ranks.len().checked_sub(ROWS).filter(|more| *more > 0) {
        notes.push(line![more, " more ranks in --format json"]);
    }
    let rows = ranks.iter().take(ROWS).map(|rank| path_row(rank, *known_s)).collect();
    Section { title, columns, rows, notes }
}

fn path_row(of: &RankOnPath, known_s: f64) -> Vec<Value<'_>> {
    let in_mpi_s: f64 = of.functions.iter().map(|function| function.time_s).sum();
    let most =
        of.functions.first().map(|most| line![most.function.as_str(), ", ", seconds(most.time_s)]);
    let leads_to = of.leads_to.as_ref().map(|call| {
        let at = if call.place.is_empty() { "" } else { " at " };
        line![call.function.as_str(), at, call.place.as_str(), ", ", seconds(call.time_s)]
    });
    row![
        Value::Rank(of.rank),
        seconds(of.time_s),
        gyan_results::Unit::Share.double(of.time_s / known_s.max(f64::MIN_POSITIVE)),
        seconds(of.own_code_s),
        seconds(in_mpi_s),
        seconds(of.serial_s),
        most,
        leads_to
    ]
}

fn waits_row(of: &FunctionWaits) -> Vec<Value<'_>> {
    let what = match of.state {
        WaitState::LateSender => "a message to be sent",
        WaitState::LateReceiver => "its receive to be posted",
        WaitState::Collective => "the last rank",
        WaitState::LateRoot => "the root",
        WaitState::EarlyRoot => "the others, at the root",
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
