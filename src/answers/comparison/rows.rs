//! What changed between runs as rows: the run time, its parts, phases and their parts, then all other numbers.

use std::borrow::Cow;

use gyan_results::{Change, Difference, PartDifference, PartKind, Split};

use crate::document::data::{Data, columns, word};

pub(crate) fn comparison(of: &Difference) -> Data<'_> {
    let run = of.run_time.iter().map(|run| ChangeRow::of_time("run", run));
    let parts = of.parts.iter().map(|of| part("part", None, of));
    let phases = of.phases.iter().flat_map(|phase| {
        let (name, split) = (Some(phase.name.as_str()), Some(phase.split));
        let whole = ChangeRow { phase: name, split, ..ChangeRow::of_time("phase", &phase.time) };
        let parts = phase.parts.iter().map(move |of| part("part_of_phase", name, of));
        std::iter::once(whole).chain(parts)
    });
    let numbers = of.numbers.iter().map(|of| ChangeRow {
        what: word(of.group).unwrap_or_default().into(),
        name: Some(&of.name),
        from_bytes: of.from_bytes,
        unit: Some(of.unit.as_str()).filter(|unit| !unit.is_empty()),
        ..ChangeRow::of_time("", &of.number)
    });
    Data::new(run.chain(parts).chain(phases).chain(numbers))
}

fn part<'a>(what: &'static str, phase: Option<&'a str>, of: &'a PartDifference) -> ChangeRow<'a> {
    let name = match of.kind {
        PartKind::Function => of.name.as_str(),
        PartKind::Outside => "(outside)",
    };
    ChangeRow { phase, name: Some(name), split: of.split, ..ChangeRow::of_time(what, &of.time) }
}

/// What changed, and how.
struct ChangeRow<'a> {
    what: Cow<'static, str>,
    phase: Option<&'a str>,
    name: Option<&'a str>,
    from_bytes: Option<u64>,
    unit: Option<&'a str>,
    change: &'a Change,
    split: Option<Split>,
}

impl<'a> ChangeRow<'a> {
    fn of_time(what: &'static str, change: &'a Change) -> ChangeRow<'a> {
        let (phase, name, from_bytes, split) = (None, None, None, None);
        ChangeRow { what: what.into(), phase, name, from_bytes, unit: Some("s"), change, split }
    }
}

columns! { of in ChangeRow<'_>;
    // run, part, phase, part_of_phase, or the group of a number.
    required(what: Text) => of.what.as_ref(),
    column(phase: Text) => of.phase,
    column(name: Text) => of.name,
    column(from_bytes: Integer) => of.from_bytes,
    column(unit: Text) => of.unit,
    column(a: Double) => of.change.a.as_ref().map(|side| side.mean),
    column(b: Double) => of.change.b.as_ref().map(|side| side.mean),
    required(change: Double) => of.change.change,
    column(error: Double) => of.change.error,
    column(by_number: Double) => of.split.map(|of| of.by_number_s),
    column(by_each: Double) => of.split.map(|of| of.by_each_s),
    column(shift: Double) => of.change.shift.map(|of| of.estimate),
    column(low: Double) => of.change.shift.map(|of| of.low),
    column(high: Double) => of.change.shift.map(|of| of.high),
    column(confidence: Double) => of.change.shift.map(|of| of.confidence),
    column(p: Double) => of.change.p,
    column(p_adjusted: Double) => of.change.p_adjusted,
    required(verdict: Text) => word(of.change.verdict)?,
}
