//! Facts about the hosts and what the ranks used, one row each.

use gyan_results::{
    HostCountersSummary, MachineSummary, Number, PlacementSummary, ResourcesSummary, Statistic,
    Summary,
};
use serde::Serialize;

use crate::document::data::columns;
use crate::document::{Data, Value};

/// The data of the machine tables, in the form of the JSON.
#[derive(Clone, Copy, Serialize)]
#[allow(clippy::struct_field_names)] // those of a summary
pub(crate) struct Machines<'a> {
    pub(crate) machines: &'a [MachineSummary],
    pub(crate) placements: &'a [PlacementSummary],
    pub(crate) host_counters: &'a [HostCountersSummary],
    pub(crate) resources: Option<&'a ResourcesSummary>,
}

impl Machines<'_> {
    pub(super) fn new(summary: &Summary) -> Option<Machines<'_>> {
        let Summary { machines, placements, host_counters, resources, .. } = summary;
        let resources = resources.as_ref();
        let is_known = !machines.is_empty() || !placements.is_empty() || resources.is_some();
        is_known.then_some(Machines { machines, placements, host_counters, resources })
    }
}

pub(super) fn rows(machines: Machines<'_>) -> Data<'_> {
    let hosts = machines
        .machines
        .iter()
        .flat_map(|of| of.hosts.iter().flat_map(|host| facts("machine", host, &of.machine)));
    let placements = machines.placements.iter().flat_map(|of| {
        let about = PlacementSummary { hosts: Vec::new(), ..of.clone() };
        of.hosts.iter().flat_map(move |host| facts("placement", host, &about))
    });
    let counters = machines.host_counters.iter().flat_map(counters);
    let resources = machines.resources.into_iter().flat_map(ResourcesSummary::measures);
    let resources = resources.map(|(measure, _, of)| MachineFact {
        kind: "resources",
        measure: measure.to_owned(),
        statistic: Some(of),
        ..MachineFact::default()
    });
    Data::new(hosts.chain(placements).chain(counters).chain(resources))
}

/// A fact about a host, or a number over the ranks.
#[derive(Default)]
pub(super) struct MachineFact<'a> {
    kind: &'static str,
    host: Option<&'a str>,
    measure: String,
    text: Option<String>,
    number: Option<Number>,
    statistic: Option<&'a Statistic>,
}

columns! { of in MachineFact<'_>;
    /// machine, placement of ranks, energy and network of a host, or resources of a rank
    required(kind: Text) => of.kind,
    /// host; null for all of them; hosts that are alike have a row each
    column(host: Text) => of.host,
    /// name of the fact, with its unit
    required(measure: Text) => &of.measure,
    /// the fact in words
    column(text: Text) => of.text.as_ref(),
    /// the fact as a number
    column(value: Number) => of.number,
    /// smallest number of a rank
    column(min: Number) => of.statistic.map(|of| of.min),
    /// rank that has it
    column(min_rank: Integer) => of.statistic.map(|of| Value::Rank(of.min_rank)),
    /// mean over the ranks
    column(avg: Double) => of.statistic.map(|of| of.avg),
    /// largest number of a rank
    column(max: Number) => of.statistic.map(|of| of.max),
    /// rank that has it
    column(max_rank: Integer) => of.statistic.map(|of| Value::Rank(of.max_rank)),
    /// standard deviation over the ranks
    column(stddev: Double) => of.statistic.map(|of| of.stddev),
}

/// Each part whose energy is counted, and each counter of an interface, in a row.
fn counters(of: &HostCountersSummary) -> impl Iterator<Item = MachineFact<'_>> {
    let fact = |kind, measure, text, number| MachineFact {
        kind,
        host: Some(of.host.as_str()),
        measure,
        text,
        number,
        statistic: None,
    };
    let energy = of.counters.energy.iter().map(move |of| {
        fact(
            "energy",
            "energy_j".to_owned(),
            Some(of.part.clone()),
            Some(Number::Double(of.energy_j)),
        )
    });
    let why_none = of.counters.no_energy.clone();
    let why_none = why_none.map(|why| fact("energy", "no_energy".to_owned(), Some(why), None));
    let network = of.counters.network.iter().map(move |of| {
        let number = Some(Number::Integer(of.value.into()));
        fact("network", of.counter.clone(), Some(of.interface.clone()), number)
    });
    energy.chain(why_none).chain(network)
}

/// Each field of a struct in a row; the elements of a list in one each.
fn facts<'a>(kind: &'static str, host: &'a str, of: &impl Serialize) -> Vec<MachineFact<'a>> {
    let mut facts = Vec::new();
    let fields = serde_json::to_value(of).unwrap_or_default();
    for (measure, value) in fields.as_object().into_iter().flatten() {
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
            let (host, measure) = (Some(host), measure.clone());
            facts.push(MachineFact { kind, host, measure, text, number, statistic: None });
        }
    }
    facts
}

fn number_of(number: &serde_json::Number) -> Option<Number> {
    match number.as_i128() {
        Some(integer) => Some(Number::Integer(integer)),
        None => number.as_f64().map(Number::Double),
    }
}
