//! Where in the program the time in MPI is spent: the call sites of its functions.

use std::collections::BTreeMap;

use gyan_results::{Number, Summary};

use super::headings::{library_and_job, title};
use super::limits::{first_rows, more_rows};
use super::value::{Amount, Unit, Value, bytes, row, seconds, share};
use super::{Column, Section, View, numbers, texts, watch};
use crate::symbols::sites::{CallSite, CallSites, Library};

/// How many library functions between the program and MPI fit into a line.
const LIBRARIES_AT_MOST: usize = 4;

/// Where in the program each function takes the most time: a line of a file, if known.
pub(crate) fn places(found: Option<&CallSites>) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    // The one with the most time first.
    for site in found.iter().flat_map(|found| &found.sites) {
        let Some(caller) = &site.caller else { continue };
        places.entry(site.function.to_owned()).or_insert_with(|| caller.short_place());
    }
    places
}

fn columns() -> Vec<Column> {
    let mut columns = texts(["FUNCTION", "WHERE"]);
    columns.extend(numbers(["CALLS", "TIME", "OF RUN", "PER CALL", "WORST (RANK)", "DATA"]));
    columns
}

pub(crate) fn sites<'a>(summary: &'a Summary, found: &'a CallSites, all: bool) -> View<'a> {
    let (shown, cut_off) = first_rows(found.sites.iter().collect::<Vec<&CallSite>>(), all);
    let mut notes = more_rows(cut_off);
    notes.push(
        "TIME is that of all ranks together, WORST that of the rank with the most of it".into(),
    );
    let amounts = || shown.iter().flat_map(|site| [calls(site), time(site)]);
    if amounts().any(|amount| amount.error.is_some()) {
        notes.push("± is the standard error of the estimate".into());
    }
    if amounts().any(|amount| is_vague(&amount)) {
        let about = "without ± where too few calls were timed to tell how wrong an estimate is";
        notes.push(about.into());
    }
    notes.extend(found.remarks.iter().map(Value::from));
    let columns = columns();
    let rows = shown.iter().flat_map(|site| rows(site, all)).collect();
    let table = Section { title: "Call sites of MPI functions".into(), columns, rows, notes };
    let mut sections = vec![table];
    if all {
        sections.extend(shown.iter().flat_map(|site| {
            let place = site.caller.as_ref().map(|caller| watch::place(caller, all));
            let place = place.unwrap_or_else(|| "places that were too many".to_owned());
            watch::ways(site.function, &place, site.stacks_taken, &site.stacks, all)
        }));
    }
    View { title: title(summary), subtitle: vec![library_and_job(summary)], sections }
}

/// A site, and below it the path to it unless the program calls it directly.
fn rows<'a>(site: &'a CallSite, all: bool) -> Vec<Vec<Value<'a>>> {
    let place: Value = match &site.caller {
        Some(caller) => watch::place(caller, all).into(),
        None => "elsewhere".into(),
    };
    let worst = seconds(site.worst_time_s).on(site.worst_rank);
    let part = site.share.map(share);
    let data = site.bytes.map(bytes);
    let mean = seconds(site.mean_s);
    let mut rows =
        vec![row![site.function, place, calls(site), time(site), part, mean, worst, data]];
    let mut below = |what: String| {
        rows.push(row!["", what, "", "", "", "", "", ""]);
    };
    for frame in &site.inlined_into {
        below(format!("  inlined into {}", watch::place(frame, all)));
    }
    if !site.via.is_empty() {
        let shown = if all { site.via.len() } else { LIBRARIES_AT_MOST };
        let mut names: Vec<String> =
            site.via.iter().rev().take(shown).map(|library| name(library, all)).collect();
        if site.via.len() > shown {
            names.push("...".to_owned());
        }
        below(format!("  via {}", names.join(", ")));
    }
    rows
}

fn name(Library { frame, object }: &Library, all: bool) -> String {
    let place = watch::place(frame, all);
    match object {
        Some(object) if !place.starts_with(object.as_str()) => format!("{place} of {object}"),
        _ => place,
    }
}

fn calls(site: &CallSite) -> Amount {
    Unit::Count.of(Number::Integer(whole(site.calls))).estimated_part(site.calls_error)
}

fn time(site: &CallSite) -> Amount {
    seconds(site.time_s).estimated_part(site.time_error_s)
}

fn is_vague(amount: &Amount) -> bool {
    amount.fidelity != gyan_results::Fidelity::Exact && amount.error.is_none()
}

// A number of calls is far below 2^63.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: f64) -> i128 {
    number.round() as i128
}
