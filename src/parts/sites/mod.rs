//! Where in the program the time in MPI is spent: the call sites of its functions.

pub(crate) mod rows;
pub(crate) mod tree;

use std::collections::BTreeMap;

use gyan_results::{Number, Summary};

use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Amount, Unit, Value, bytes, row, seconds, share};
use crate::document::{Column, Kind, Section, View, column, cut, numbers, texts};
use crate::parts::headings::{library_and_job, title};
use crate::parts::watch;
use crate::symbols::Frame;
use crate::symbols::sites::{CallSite, CallSites, Library};

/// A place with this share of a function's time stands for the function.
const NEARLY_ALL: f64 = 0.9;

/// The place in the program that takes the most time in a function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MainPlace {
    /// A line of a file, if known.
    pub(crate) place: String,
    /// What of the function's time it takes.
    pub(crate) share: f64,
}

impl MainPlace {
    /// `at halo.c:42`, or `(most at halo.c:42: 21 %)` behind the name of the function.
    pub(crate) fn in_words(&self) -> String {
        if self.share >= NEARLY_ALL {
            format!("at {}", self.place)
        } else {
            format!("(most at {}: {:.0} %)", self.place, 100.0 * self.share)
        }
    }

    /// `halo.c:42`, or `halo.c:42 (21 %)`.
    pub(crate) fn in_short(&self, length_at_most: usize) -> String {
        if self.share >= NEARLY_ALL {
            return cut(&self.place, length_at_most);
        }
        let share = format!(" ({:.0} %)", 100.0 * self.share);
        cut(&self.place, length_at_most.saturating_sub(share.len())) + &share
    }
}

/// Where in the program each function takes the most time.
pub(crate) fn places(found: Option<&CallSites>) -> BTreeMap<String, MainPlace> {
    let sites = || found.iter().flat_map(|found| &found.sites);
    let mut whole: BTreeMap<&str, f64> = BTreeMap::new();
    for site in sites() {
        *whole.entry(site.function).or_default() += site.time_s;
    }
    let mut places = BTreeMap::new();
    // The one with the most time first.
    for site in sites() {
        let Some(caller) = &site.caller else { continue };
        let all_s = whole.get(site.function).copied().unwrap_or(0.0);
        let share = if all_s > 0.0 { (site.time_s / all_s).min(1.0) } else { 0.0 };
        places
            .entry(site.function.to_owned())
            .or_insert_with(|| MainPlace { place: place_in_words(site, caller), share });
    }
    places
}

/// `halo.c:42`, or `CommBrick::borders in liblammps.so.0, from lmp` for a place in a library.
fn place_in_words(site: &CallSite, caller: &Frame) -> String {
    let from = site.from.last().map(|Library { frame, object }| match object {
        Some(object) if !frame.is_named => object.clone(),
        _ => frame.short_place(),
    });
    let place = in_object(caller.short_place(), site.object);
    from.map_or_else(|| place.clone(), |from| format!("{place}, from {from}"))
}

fn in_object(place: String, object: Option<&str>) -> String {
    match object {
        Some(object) if !place.starts_with(object) => format!("{place} in {object}"),
        _ => place,
    }
}

/// The same in words, to stand behind the name of the function.
pub(crate) fn places_in_words(found: Option<&CallSites>) -> BTreeMap<String, String> {
    places(found).into_iter().map(|(function, place)| (function, place.in_words())).collect()
}

fn columns() -> Vec<Column> {
    let mut columns = texts(["FUNCTION"]);
    columns.push(column("WHERE", Kind::Place));
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
        Some(caller) => in_object(watch::place(caller, all), site.object).into(),
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
    for (what, path, is_shown) in [("from", &site.from, true), ("via", &site.via, all)] {
        if is_shown && !path.is_empty() {
            let mut names: Vec<String> = path.iter().map(|library| name(library, all)).collect();
            names.dedup();
            below(format!("  {what} {}", names.join(", ")));
        }
    }
    rows
}

fn name(Library { frame, object }: &Library, all: bool) -> String {
    match object {
        Some(object) if !all && !frame.is_named => object.clone(),
        Some(object) if all => in_object(watch::place(frame, all), Some(object)),
        _ => watch::place(frame, all),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_for_its_function_from_nine_tenths_of_the_time_on() {
        let place = |share| MainPlace { place: "solve.c:12".into(), share };
        assert_eq!(place(0.9).in_words(), "at solve.c:12");
        assert_eq!(place(0.21).in_words(), "(most at solve.c:12: 21 %)");
        assert_eq!(place(0.21).in_short(28), "solve.c:12 (21 %)");
        assert_eq!(place(0.21).in_short(14), "solv... (21 %)");
    }
}
