//! Where in the program the time in MPI is spent: the call sites of its functions.

mod tree;

use std::collections::BTreeMap;

use gyan_results::{Number, Summary, Unit};

use crate::document::data::columns;
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::pictures::{Chart, Picture};
use crate::document::page::{BARS_AT_MOST, PageBlock, ROWS_IF_OPEN};
use crate::document::value::{Amount, InUnit, bytes, row, seconds, share};
use crate::document::{
    Column, Data, Document, Kind, Presentation, Section, Value, View, column, cut, numbers, texts,
};
use crate::error::Error;
use crate::parts::headings::{library_and_job, title};
use crate::parts::{Part, PartOption, ReportInput, SummaryTable, watch};
use crate::symbols::StackFrame;
use crate::symbols::sites::{CallSite, CallSites, Library};
use tree::tree;

/// Places in the program.
pub(super) const SITES: Part = Part {
    option: Some(PartOption {
        conflicts_with: None,
        ..PartOption::new(
            "sites",
            "The places in the program that call MPI: how often, and how long the calls take",
            show,
        )
    }),
    table: Some(SummaryTable::new::<CallSite>("summary_sites", "place in the program", |of| {
        of.called().map(|found| Data::new(&found.sites))
    })),
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let found = of.called().ok_or_else(|| {
        of.lacks(
            "no call sites are known",
            "run it again with timed calls, and without GYAN_SITES=off",
        )
    })?;
    let view = view(of.summary, found, of.all);
    Ok(Presentation { view, rows: Data::new(&found.sites), document: Document::new(found) })
}

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
    /// `at halo.c:42`, or `(21 % of its time at halo.c:42)` behind the name of the function.
    pub(crate) fn in_words(&self) -> String {
        if self.share >= NEARLY_ALL {
            format!("at {}", self.place)
        } else {
            format!("({:.0} % of its time at {})", 100.0 * self.share, self.place)
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
fn place_in_words(site: &CallSite, caller: &StackFrame) -> String {
    let from = site.from.last().map(|Library { frame, object }| match object {
        Some(object) if !frame.is_named => object.clone(),
        _ => frame.short_place(),
    });
    let place = in_object(caller.short_place(), site.object);
    from.map_or_else(|| place.clone(), |from| format!("{place}, from {from}"))
}

/// The same for a place that is known without its stacks.
pub(crate) fn library_in_words(Library { frame, object }: Library) -> String {
    in_object(frame.short_place(), object.as_deref())
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

fn view<'a>(summary: &'a Summary, found: &'a CallSites, all: bool) -> View<'a> {
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
    let rows = shown.iter().flat_map(|site| site_rows(site, all)).collect();
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
fn site_rows<'a>(site: &'a CallSite, all: bool) -> Vec<Vec<Value<'a>>> {
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
    Unit::Count.amount(Number::Integer(whole(site.calls))).estimated_part(site.calls_error)
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

/// The places of functions, the innermost first.
fn joined<'f>(frames: impl Iterator<Item = &'f StackFrame>) -> Option<String> {
    let places: Vec<String> = frames.map(StackFrame::place).collect();
    (!places.is_empty()).then(|| places.join(" < "))
}

columns! { site in CallSite<'_>;
    required(function: Text) => site.function,
    // The function that makes the call, and where it is.
    column(caller: Text) => site.caller.as_ref().map(|caller| &caller.function),
    column(file: Text) => site.caller.as_ref().and_then(|caller| caller.file.as_ref()),
    column(line: Integer) => site.caller.as_ref().and_then(|caller| caller.line).map(u64::from),
    // The functions that it was inlined into, those between it and MPI, and those that led to it, the innermost
    // first.
    column(inlined_into: Text) => joined(site.inlined_into.iter()),
    column(via: Text) => joined(site.via.iter().map(|on| &on.frame)),
    required(calls: Double) => site.calls,
    column(calls_error: Double) => site.calls_error,
    required(timed: Integer) => site.timed,
    required(time_s: Double) => site.time_s,
    column(time_error_s: Double) => site.time_error_s,
    column(share: Double) => site.share,
    required(mean_s: Double) => site.mean_s,
    required(time_max_s: Double) => site.time_max_s,
    column(bytes: Double) => site.bytes,
    required(worst_rank: Integer) => Value::Rank(site.worst_rank),
    required(worst_time_s: Double) => site.worst_time_s,
    required(stacks_taken: Integer) => site.stacks_taken,
    // The library that the caller is in, and how the program got there.
    column(object: Text) => site.object,
    column(from: Text) => joined(site.from.iter().map(|on| &on.frame)),
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let found = of
        .called()
        .ok_or("call sites: none were recorded; GYAN_SITES was off, or nothing was timed")?;
    let mut block = PageBlock::new("sites", "Which lines of the program");
    let nodes = tree(found);
    if !nodes.is_empty() {
        let says = "time in MPI on all ranks together; each box is a function, below it what it called, as wide as the \
                    time that was spent there";
        block.charts.push(Chart::new(
            "How does the program come to MPI, and where is its time spent?",
            says,
            Picture::Tree(nodes),
        ));
    }
    let mut sections = view(of.summary, found, true).sections.into_iter();
    let is_short = |section: &Section| section.rows.len() <= ROWS_IF_OPEN;
    if let Some(section) = sections.next() {
        block.push(is_short(&section), section);
    }
    let ways = sections.take(BARS_AT_MOST);
    Ok(block.with(false, ways))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_for_its_function_from_nine_tenths_of_the_time_on() {
        let place = |share| MainPlace { place: "solve.c:12".into(), share };
        assert_eq!(place(0.9).in_words(), "at solve.c:12");
        assert_eq!(place(0.21).in_words(), "(21 % of its time at solve.c:12)");
        assert_eq!(place(0.21).in_short(28), "solve.c:12 (21 %)");
        assert_eq!(place(0.21).in_short(14), "solv... (21 %)");
    }
}
