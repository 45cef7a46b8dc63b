//! Which ranks is the critical path on? Nothing is said where too little is known of waiting.

use gyan_results::{CriticalPath, PathOfRank};

use crate::document::data::columns;
use crate::document::value::{line, share};
use crate::document::{Data, Value};
use crate::parts::{Part, ReportInput, SummaryTable};
use crate::words::NEARLY_ALL;

/// As a table. It is told in a sentence with the waiting.
pub(in crate::parts) const PATH: Part = Part {
    option: None,
    table: Some(SummaryTable::new::<(&ReportInput, &PathOfRank)>(
        "summary_critical_path",
        "rank on the critical path",
        |of| Some(Data::new(critical_path(of)?.ranks.iter().map(move |rank| (of, rank)))),
    )),
    block: None,
};

/// So many ranks are named.
const RANKS_AT_MOST: usize = 3;
/// With less of the run, a rank is not named.
const SHARE_AT_LEAST: f64 = 0.05;
/// A share that may be off by more is no number to print: only what it is at least.
const OFF_AT_MOST: f64 = 0.1;
/// A rank with so many times its equal share is worth a line on the first screen.
const MUCH: f64 = 1.5;

/// Where as much is known of waiting as the split of communication demands.
pub(in crate::parts) fn critical_path<'r>(of: &'r ReportInput) -> Option<&'r CriticalPath> {
    of.answers().efficiencies.as_ref()?.split.as_ref()?;
    of.summary.critical_path.as_ref()
}

pub(super) fn sentence<'r>(of: &'r ReportInput) -> Option<Value<'r>> {
    let path = critical_path(of)?;
    let named = || path.ranks.iter().filter(|of| surely(of) >= SHARE_AT_LEAST).take(RANKS_AT_MOST);
    let mut ranks = named().map(|of| line!["rank ", Value::Rank(of.rank), " for ", on_path(of)]);
    let mut text = line!["critical path: ", ranks.next()?];
    for rank in ranks {
        text = line![text, ", ", rank];
    }
    let first = named().next()?;
    let known = match path.known_share {
        part if part >= NEARLY_ALL => "".into(),
        part => line![" (known for ", share(part), ")"],
    };
    let load = if of.answers().are_under_load() { ", measured under load" } else { "" };
    Some(line![text, " of the run", load, known, leads_to(of, first)])
}

/// In a line, if one rank has clearly more of it than its part, and not just because it lost its processor.
pub(in crate::parts) fn first<'r>(of: &'r ReportInput) -> Option<Value<'r>> {
    let first = critical_path(of)?.ranks.first().filter(|_| !of.answers().are_under_load())?;
    let equal = 1.0 / f64::from(of.summary.ranks.expected.max(1));
    let is_much = first.lower > MUCH * equal;
    is_much.then(|| sentence(of)).flatten()
}

/// Whether the share is known well enough to print it with its error.
fn is_known(of: &PathOfRank) -> bool {
    2.0 * of.share_error <= OFF_AT_MOST
}

/// The share, or what it is at least.
fn surely(of: &PathOfRank) -> f64 {
    if is_known(of) { of.share } else { of.lower }
}

fn on_path<'r>(of: &PathOfRank) -> Value<'r> {
    if is_known(of) {
        line![share(of.share).estimated_part(Some(of.share_error))]
    } else {
        line!["at least ", share(of.lower)]
    }
}

/// What most of the path on a rank leads up to.
fn leads_to<'r>(of: &ReportInput, rank: &PathOfRank) -> Value<'r> {
    let PathOfRank { leads_to, leads_to_share, .. } = rank;
    if leads_to.function.is_empty() {
        return "".into();
    }
    let place = of.path_place(leads_to).map(|place| format!(" at {place}")).unwrap_or_default();
    let call = format!("{}{place}", leads_to.function);
    let part = if 2.0 * leads_to_share >= rank.share { "most" } else { "the largest part" };
    line!["; on rank ", Value::Rank(rank.rank), " ", part, " of it leads up to ", call]
}

columns! { (of, path) in (&ReportInput<'_>, &PathOfRank);
    required(rank: Integer) => Value::Rank(path.rank),
    // The part of the run in which the critical path is on it.
    required(share: Double) => path.share,
    required(share_error: Double) => path.share_error,
    // The least and the most that it may be.
    required(lower: Double) => path.lower,
    required(upper: Double) => path.upper,
    // The call that most of it leads up to.
    required(leads_to_function: Text) => &path.leads_to.function,
    column(leads_to_place: Text) => of.path_place(&path.leads_to),
    required(leads_to_share: Double) => path.leads_to_share,
}
