//! Which numbers of a run are followed over its sizes? Minimum, average and maximum over the ranks of each.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    Class, Element, PvarSummary, QueueRow, QueueSource, ScaleKind, Statistic, Summary, TrafficKind,
    Unit,
};

use crate::comparison::resources::resources;
use crate::comparison::variables::{Telling, of_object, telling};

/// For what the program does: the same each time.
const EXACT: f64 = 0.0;
/// For memory: runs of the same program differ by about a hundredth.
const OF_MEMORY: f64 = 0.02;
/// For times, and for anything that depends on when messages arrive.
const NOISE: f64 = 0.1;

/// Which number: the same key in each run.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ScaleKey {
    pub(crate) kind: ScaleKind,
    pub(crate) name: String,
}

/// A number of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) unit: Unit,
    /// The assumed difference from run to run, as a fraction of it, when there is only one run.
    pub(crate) noise: f64,
    pub(crate) min: f64,
    pub(crate) avg: f64,
    pub(crate) max: f64,
}

impl Spread {
    fn over(statistic: &Statistic, unit: Unit, noise: f64) -> Spread {
        let (min, max) = (statistic.min.as_f64(), statistic.max.as_f64());
        Spread { unit, noise, min, avg: statistic.avg, max }
    }
}

/// All numbers of a run that are followed.
pub(super) fn numbers(summary: &Summary) -> BTreeMap<ScaleKey, Spread> {
    let mut numbers = BTreeMap::new();
    let mut put = |kind: ScaleKind, name: &str, spread: Spread| {
        numbers.insert(ScaleKey { kind, name: name.to_owned() }, spread);
    };
    times(summary, &mut put);
    for call in &summary.calls {
        if let Some(time_s) = &call.time_s {
            put(ScaleKind::Time, &call.name, Spread::over(time_s, Unit::Seconds, NOISE));
        }
        put(ScaleKind::Calls, &call.name, Spread::over(&call.count, Unit::Count, EXACT));
        if let Some(bytes) = &call.bytes {
            put(ScaleKind::Bytes, &call.name, Spread::over(bytes, Unit::Bytes, EXACT));
        }
    }
    variables(&summary.pvars, &mut put);
    // Queue numbers from variables are already listed under the variables' names.
    for row in summary.queues().iter().filter(|row| row.source != QueueSource::Pvar) {
        queue(row, &mut put);
    }
    for (name, unit, statistic) in resources(summary) {
        let noise = if unit == Unit::Bytes { OF_MEMORY } else { NOISE };
        put(ScaleKind::Resource, name, Spread::over(statistic, unit, noise));
    }
    peers(summary, &mut put);
    waiting(summary, &mut put);
    numbers
}

fn waiting(summary: &Summary, put: &mut impl FnMut(ScaleKind, &str, Spread)) {
    let ranks = f64::from(summary.ranks.reduced.max(1));
    let mut of = |name: &str, waiting_s: f64| {
        let avg = waiting_s / ranks;
        let spread = Spread { unit: Unit::Seconds, noise: NOISE, min: avg, avg, max: avg };
        put(ScaleKind::Waiting, name, spread);
    };
    if !summary.waiting.is_empty() {
        of("waiting in collectives", summary.waiting.iter().map(|of| of.waiting_s).sum());
    }
    if let Some(messages) = &summary.message_waiting {
        of("waiting for late senders", messages.late_senders_s);
        of("waiting for late receivers", messages.late_receivers_s);
    }
}

fn times(summary: &Summary, put: &mut impl FnMut(ScaleKind, &str, Spread)) {
    let Some(run) = summary.rank_times_s() else { return };
    put(ScaleKind::RunTime, "run time", Spread::over(run, Unit::Seconds, NOISE));
    let Some(in_mpi) = summary.in_mpi.as_ref().map(|in_mpi| &in_mpi.time_s) else { return };
    put(ScaleKind::InMpi, "time in MPI", Spread::over(in_mpi, Unit::Seconds, NOISE));
    if let Some(useful) = &summary.useful_s {
        put(ScaleKind::OwnCode, "own code", Spread::over(useful, Unit::Seconds, NOISE));
    }
}

/// The telling number of each variable, by its class: how much it grew, what it reached, or how high it was.
fn variables(pvars: &[PvarSummary], put: &mut impl FnMut(ScaleKind, &str, Spread)) {
    let mut classes: BTreeMap<&str, BTreeSet<Class>> = BTreeMap::new();
    for pvar in pvars {
        classes.entry(&pvar.name).or_default().insert(pvar.class);
    }
    // For a vector its sum, or the element with the largest value.
    let mut shown: BTreeMap<String, &PvarSummary> = BTreeMap::new();
    for pvar in pvars {
        let Some(telling) = telling(pvar) else { continue };
        let measure = match telling {
            Telling::Grown | Telling::Reached => "",
            Telling::Mean => " (mean)",
            Telling::Largest if pvar.name.contains("length") => " (longest)",
            Telling::Largest => " (largest)",
        };
        let several = classes.get(pvar.name.as_str()).is_some_and(|classes| classes.len() > 1);
        let class = if several { format!(" ({})", pvar.class.name()) } else { String::new() };
        let element = match pvar.element {
            Element::Scalar => "",
            Element::Sum => "[sum]",
            Element::Index(_) => "[largest]",
            Element::Min | Element::Max => continue,
        };
        let object = of_object(pvar);
        let name = format!("{}{element}{class}{measure}{object}", pvar.name);
        let largest = shown.entry(name).or_insert(pvar);
        if pvar.statistic.max.compare(largest.statistic.max).is_gt() {
            *largest = pvar;
        }
    }
    for (name, pvar) in shown {
        // What the library counts depends on when messages arrive.
        put(ScaleKind::Variable, &name, Spread::over(&pvar.statistic, pvar.unit(), NOISE));
    }
}

/// The length of a queue, or a number of events.
fn queue(row: &QueueRow, put: &mut impl FnMut(ScaleKind, &str, Spread)) {
    let (Some(mean), Some(max)) = (row.mean, row.max) else { return };
    let unit = match row.unit {
        Unit::Messages | Unit::Receives => Unit::Count,
        unit => unit,
    };
    let spread = Spread { unit, noise: NOISE, min: 0.0, avg: mean, max: max.value };
    let quantity = serde_json::to_value(row.quantity).unwrap_or_default();
    let quantity = quantity.as_str().unwrap_or_default().replace('_', " ");
    put(ScaleKind::Queue, &format!("{quantity} ({})", row.name), spread);
}

fn peers(summary: &Summary, put: &mut impl FnMut(ScaleKind, &str, Spread)) {
    let Some(of) = summary.peers.iter().find(|of| of.kind == TrafficKind::Messages) else { return };
    let ranks = summary.ranks.reduced.max(1) as usize;
    let all = || of.ranks.iter().map(|rank| rank.peers as f64);
    // A rank that sends nothing is not in the list.
    let least = all().fold(f64::INFINITY, f64::min);
    let min = if of.ranks.len() < ranks { 0.0 } else { least };
    let avg = all().sum::<f64>() / ranks as f64;
    let max = all().fold(0.0, f64::max);
    let spread = Spread { unit: Unit::Count, noise: EXACT, min, avg, max };
    put(ScaleKind::Peers, "ranks that a rank sends to", spread);
}
