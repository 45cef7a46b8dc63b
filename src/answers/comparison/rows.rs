//! What changed between runs as rows: the run time, its parts, phases and their parts, then all other numbers.

use gyan_results::{Change, Difference, PartDifference, PartKind, Split};

use crate::document::data::{Data, TakeRow, word};
use crate::document::value::{Value, row};
use crate::document::{Column, Kind, column, required};

const COLUMNS: [Column; 18] = [
    // run, part, phase, part_of_phase, or the group of a number.
    required("what", Kind::Text),
    column("phase", Kind::Text),
    column("name", Kind::Text),
    column("from_bytes", Kind::Integer),
    column("unit", Kind::Text),
    column("a", Kind::Double),
    column("b", Kind::Double),
    required("change", Kind::Double),
    column("error", Kind::Double),
    column("by_number", Kind::Double),
    column("by_each", Kind::Double),
    column("shift", Kind::Double),
    column("low", Kind::Double),
    column("high", Kind::Double),
    column("confidence", Kind::Double),
    column("p", Kind::Double),
    column("p_adjusted", Kind::Double),
    required("verdict", Kind::Text),
];

pub(crate) fn comparison(of: &Difference) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        if let Some(run) = &of.run_time {
            take(&cells(
                row!["run", Value::Nothing, Value::Nothing, Value::Nothing, "s"],
                run,
                None,
            )?)?;
        }
        of.parts.iter().try_for_each(|of| take(&part("part", Value::Nothing, of)?))?;
        for phase in &of.phases {
            let name = || Value::from(&phase.name);
            let first = row!["phase", name(), Value::Nothing, Value::Nothing, "s"];
            take(&cells(first, &phase.time, Some(phase.split))?)?;
            let mut parts = phase.parts.iter();
            parts.try_for_each(|of| take(&part("part_of_phase", name(), of)?))?;
        }
        of.numbers.iter().try_for_each(|of| {
            let unit = Some(&of.unit).filter(|unit| !unit.is_empty());
            let first = row![word(of.group)?, Value::Nothing, &of.name, of.from_bytes, unit];
            take(&cells(first, &of.number, None)?)
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}

fn part<'a>(
    what: &'static str,
    phase: Value<'a>,
    of: &'a PartDifference,
) -> std::io::Result<Vec<Value<'a>>> {
    let name = match of.kind {
        PartKind::Function => of.name.as_str(),
        PartKind::Outside => "(outside)",
    };
    cells(row![what, phase, name, Value::Nothing, "s"], &of.time, of.split)
}

fn cells<'a>(
    mut first: Vec<Value<'a>>,
    change: &Change,
    split: Option<Split>,
) -> std::io::Result<Vec<Value<'a>>> {
    let [a, b] = [&change.a, &change.b].map(|side| side.as_ref().map(|of| of.mean));
    let shift = change.shift;
    first.extend(row![
        a,
        b,
        change.change,
        change.error,
        split.map(|of| of.by_number_s),
        split.map(|of| of.by_each_s),
        shift.map(|of| of.estimate),
        shift.map(|of| of.low),
        shift.map(|of| of.high),
        shift.map(|of| of.confidence),
        change.p,
        change.p_adjusted,
        word(change.verdict)?,
    ]);
    Ok(first)
}
