//! Facts about the hosts and what the ranks used, one row each.

use std::io;

use gyan_results::{MachineSummary, PlacementSummary, ResourcesSummary, Statistic, Summary};
use serde::Serialize;

use crate::document::value::cells;
use crate::document::{Column, Data, Kind, TakeRow, Value, column, required};

/// The data of the machine tables, in the form of the JSON.
#[derive(Clone, Copy, Serialize)]
#[allow(clippy::struct_field_names)] // those of a summary
pub(crate) struct Machines<'a> {
    pub(crate) machines: &'a [MachineSummary],
    pub(crate) placements: &'a [PlacementSummary],
    pub(crate) resources: Option<&'a ResourcesSummary>,
}

impl Machines<'_> {
    pub(super) fn new(summary: &Summary) -> Option<Machines<'_>> {
        let Summary { machines, placements, resources, .. } = summary;
        let resources = resources.as_ref();
        let is_known = !machines.is_empty() || !placements.is_empty() || resources.is_some();
        is_known.then_some(Machines { machines, placements, resources })
    }
}

const COLUMNS: [Column; 11] = [
    // `machine`, `placement` of ranks, or `resources` of a rank.
    required("kind", Kind::Text),
    // Empty for all of them; hosts that are alike have a row each.
    column("host", Kind::Text),
    required("measure", Kind::Text),
    column("text", Kind::Text),
    column("value", Kind::Number),
    column("min", Kind::Number),
    column("min_rank", Kind::Integer),
    column("avg", Kind::Double),
    column("max", Kind::Number),
    column("max_rank", Kind::Integer),
    column("stddev", Kind::Double),
];

pub(super) fn rows(machines: Machines<'_>) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        for of in machines.machines {
            of.hosts.iter().try_for_each(|host| facts("machine", host, &of.machine, take))?;
        }
        for of in machines.placements {
            let about = PlacementSummary { hosts: Vec::new(), ..of.clone() };
            of.hosts.iter().try_for_each(|host| facts("placement", host, &about, take))?;
        }
        machines.resources.into_iter().flat_map(measures).try_for_each(|(measure, of)| {
            let Statistic { min, min_rank, avg, max, max_rank, stddev, .. } = *of;
            let ranks = [min_rank, max_rank].map(Value::Rank);
            let [min_rank, max_rank] = ranks;
            let none = || Value::Nothing;
            take(&cells![
                "resources",
                none(),
                measure,
                none(),
                none(),
                min,
                min_rank,
                avg,
                max,
                max_rank,
                stddev
            ])
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}

/// Each field of a struct in a row; the elements of a list in one each.
fn facts(kind: &str, host: &str, of: &impl Serialize, take: &mut TakeRow) -> io::Result<()> {
    let value = serde_json::to_value(of)?;
    for (measure, value) in value.as_object().into_iter().flatten() {
        let elements = match value {
            serde_json::Value::Array(elements) => elements.as_slice(),
            one => std::slice::from_ref(one),
        };
        for element in elements {
            let (text, number) = match element {
                serde_json::Value::Null => continue,
                serde_json::Value::String(text) => (Some(text.clone()), None),
                serde_json::Value::Number(number) => (None, number_of(number)),
                // A nested struct, or a boolean.
                other => (Some(other.to_string()), None),
            };
            let mut row = [const { Value::Nothing }; COLUMNS.len()];
            let cells = cells![kind, host, measure, text, number];
            row.iter_mut().zip(cells).for_each(|(place, cell)| *place = cell);
            take(&row)?;
        }
    }
    Ok(())
}

fn number_of(number: &serde_json::Number) -> Option<gyan_results::Number> {
    match number.as_i128() {
        Some(integer) => Some(gyan_results::Number::Integer(integer)),
        None => number.as_f64().map(gyan_results::Number::Double),
    }
}

/// Each number over the ranks, by its name in a summary.
pub(crate) fn measures(of: &ResourcesSummary) -> impl Iterator<Item = (&'static str, &Statistic)> {
    let ResourcesSummary {
        processors,
        memory_limit_bytes,
        user_s,
        system_s,
        voluntary_switches,
        involuntary_switches,
        processor_wait_s,
        minor_faults,
        major_faults,
        peak_memory_bytes,
    } = of;
    [
        ("processors", Some(processors)),
        ("memory_limit_bytes", memory_limit_bytes.as_ref()),
        ("user_s", Some(user_s)),
        ("system_s", Some(system_s)),
        ("voluntary_switches", Some(voluntary_switches)),
        ("involuntary_switches", Some(involuntary_switches)),
        ("processor_wait_s", processor_wait_s.as_ref()),
        ("minor_faults", Some(minor_faults)),
        ("major_faults", Some(major_faults)),
        ("peak_memory_bytes", Some(peak_memory_bytes)),
    ]
    .into_iter()
    .filter_map(|(measure, of)| Some((measure, of?)))
}
