//! The listing of an MPI library: its variables as in the tables of VARLIST (Islam, Mohror, Schulz
//! 2014, Figure 1), or in the long form, with everything known about each.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gyan_results::{Category, Cvar, Datatype, Event, Item, Moment, PvarInfo, Source, Variables};

use crate::document::value::{Value, line, row};
use crate::document::{Section, View, cut, texts};
use crate::parts::headings;

/// Which parts of a listing are shown.
#[allow(clippy::struct_excessive_bools)] // options of the command line
pub(crate) struct Choice {
    pub(crate) cvars: bool,
    pub(crate) pvars: bool,
    pub(crate) events: bool,
    pub(crate) categories: bool,
    /// The highest verbosity level, 1 to 9.
    pub(crate) verbosity: usize,
    /// Everything known about each variable.
    pub(crate) long: bool,
    /// Names and values of enumerations.
    pub(crate) enumerations: bool,
}

/// The levels with their abbreviations, starting at 1.
const LEVELS: [(&str, &str); 9] = [
    ("USER_BASIC", "U/B-1"),
    ("USER_DETAIL", "U/D-2"),
    ("USER_ALL", "U/A-3"),
    ("TUNER_BASIC", "T/B-4"),
    ("TUNER_DETAIL", "T/D-5"),
    ("TUNER_ALL", "T/A-6"),
    ("MPIDEV_BASIC", "D/B-7"),
    ("MPIDEV_DETAIL", "D/D-8"),
    ("MPIDEV_ALL", "D/A-9"),
];

/// The length at which a value is cut in a table.
const VALUE_AT_MOST: usize = 48;

/// The level of a verbosity, 1 to 9; a verbosity that the library does not tell counts as the last.
pub(crate) fn level(verbosity: Option<&str>) -> usize {
    let known = LEVELS.iter().position(|(name, _)| Some(*name) == verbosity);
    known.map_or(LEVELS.len(), |at| at + 1)
}

fn level_text(verbosity: Option<&str>) -> &'static str {
    let known = LEVELS.iter().find(|(name, _)| Some(*name) == verbosity);
    known.map_or("?", |(_, text)| *text)
}

/// `whole` is the listing before anything was filtered out, for the numbers in the headings.
pub(crate) fn variables<'a>(
    listing: &'a Variables,
    whole: &'a Variables,
    choice: &Choice,
) -> View<'a> {
    let mut sections = Vec::new();
    let until = LEVELS.get(choice.verbosity - 1).map_or("", |(_, text)| *text);
    let found = |what: &'static str, all: usize, shown: usize| {
        line![what, ": ", all, " found, ", shown, " shown, with verbosity <= ", until]
    };
    if choice.cvars {
        let title = found("Control variables", whole.cvars.len(), listing.cvars.len());
        if choice.long {
            sections.push(Section::of_notes(title, Vec::new()));
            sections.extend(listing.cvars.iter().map(long_cvar));
        } else {
            sections.push(cvars(title, &listing.cvars));
        }
    }
    if choice.pvars {
        let title = found("Performance variables", whole.pvars.len(), listing.pvars.len());
        if choice.long {
            sections.push(Section::of_notes(title, Vec::new()));
            sections.extend(listing.pvars.iter().map(long_pvar));
        } else {
            sections.push(pvars(title, &listing.pvars));
        }
    }
    if choice.enumerations && !choice.long {
        sections.push(enumerations(listing));
    }
    if choice.events {
        sections.push(events(listing));
        sections.push(sources(&listing.sources));
    }
    if choice.categories {
        sections.push(categories(whole));
    }
    let moment = match listing.listed {
        Moment::BeforeInit => "before MPI_Init",
        Moment::AfterInit => "after MPI_Init",
    };
    let mpi = &listing.mpi;
    let how = line![" interface, listed ", moment, " on ", &listing.host];
    View {
        title: headings::library(mpi).into(),
        subtitle: vec![line![&mpi.library_path, ", ", &mpi.abi, how]],
        sections,
    }
}

/// Datatypes as the original prints them.
fn type_text(datatype: Option<Datatype>) -> &'static str {
    match datatype {
        Some(Datatype::Int) => "INT",
        Some(Datatype::Unsigned) => "UINT",
        Some(Datatype::Long) => "LONG",
        Some(Datatype::UnsignedLong) => "ULONG",
        Some(Datatype::LongLong) => "LLONG",
        Some(Datatype::UnsignedLongLong) => "ULLONG",
        Some(Datatype::Count) => "COUNT",
        Some(Datatype::Char) => "CHAR",
        Some(Datatype::Double) => "DOUBLE",
        Some(Datatype::CBool) => "BOOL",
        Some(Datatype::Int32) => "INT32",
        Some(Datatype::Uint32) => "UINT32",
        Some(Datatype::Int64) => "INT64",
        Some(Datatype::Uint64) => "UINT64",
        None => "UNKNOWN",
    }
}

fn name_text(name: Option<&str>, index: usize) -> Value<'_> {
    name.map_or_else(|| format!("#{index}").into(), Value::from)
}

fn bind_text(bind: Option<&str>) -> &str {
    bind.unwrap_or("n/a")
}

fn flag(flag: Option<bool>) -> &'static str {
    flag.map_or("?", |flag| if flag { "YES" } else { "NO" })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value, or why there is none; marked when it is from before `MPI_Init`.
fn value(text: Option<String>, problem: Option<&str>, before_init: bool) -> String {
    let text = text.map(|text| cut(&one_line(&text), VALUE_AT_MOST));
    let text = if before_init { Some(format!("{} *", text.unwrap_or_default())) } else { text };
    // The mark already says that the library no longer tells.
    let problem = problem.filter(|problem| !before_init || !problem.contains("MPI_T_ERR_"));
    let problem = problem.map(|problem| format!("({problem})"));
    let parts = text.into_iter().chain(problem);
    parts.collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn remark_on_mark(marked: bool) -> Vec<Value<'static>> {
    let remark = "* as before MPI_Init; afterwards the library no longer reports it, because its \
        component is not in use here";
    if marked { vec![remark.into()] } else { Vec::new() }
}

fn cvars<'a>(title: Value<'a>, cvars: &'a [Cvar]) -> Section<'a> {
    let row = |cvar: &'a Cvar| {
        row![
            name_text(cvar.name.as_deref(), cvar.index),
            level_text(cvar.verbosity.as_deref()),
            type_text(cvar.datatype),
            bind_text(cvar.bind.as_deref()),
            cvar.scope.as_deref().unwrap_or("UNKNOWN"),
            value(cvar.value_text(), cvar.problem.as_deref(), cvar.before_init),
        ]
    };
    Section {
        title,
        columns: texts(["Variable", "VRB", "Type", "Bind", "Scope", "Value"]),
        rows: cvars.iter().map(row).collect(),
        notes: remark_on_mark(cvars.iter().any(|cvar| cvar.before_init)),
    }
}

fn pvars<'a>(title: Value<'a>, pvars: &'a [PvarInfo]) -> Section<'a> {
    let row = |pvar: &'a PvarInfo| {
        row![
            name_text(pvar.name.as_deref(), pvar.index),
            level_text(pvar.verbosity.as_deref()),
            pvar.class.map_or("?", |class| class.name()),
            type_text(pvar.datatype),
            bind_text(pvar.bind.as_deref()),
            flag(pvar.readonly),
            flag(pvar.continuous),
            flag(pvar.atomic),
            value(pvar.value_text(), pvar.problem.as_deref(), pvar.before_init),
        ]
    };
    Section {
        title,
        columns: texts(["Variable", "VRB", "Class", "Type", "Bind", "R/O", "CNT", "ATM", "Value"]),
        rows: pvars.iter().map(row).collect(),
        notes: remark_on_mark(pvars.iter().any(|pvar| pvar.before_init)),
    }
}

/// The labelled facts, without those that are empty.
fn facts<'a, const N: usize>(
    title: Value<'a>,
    facts: [(&'static str, Option<Cow<'a, str>>); N],
) -> Section<'a> {
    let known = facts.into_iter().filter_map(|(label, text)| Some((label, text?)));
    let notes = known
        .filter(|(_, text)| !text.is_empty())
        .map(|(label, text)| Value::Fact(label, Box::new(one_line(&text).into())));
    Section::of_notes(title, notes.collect())
}

fn items_text(items: Option<&[Item]>) -> Option<String> {
    let items = items?.iter().map(|item| format!("{} = {}", item.value, item.name));
    Some(items.collect::<Vec<_>>().join(", "))
}

/// Whether a control variable can be written at the moment, by its scope (MPI 4.1, 15.3.6).
fn writable(scope: Option<&str>) -> &'static str {
    match scope {
        Some("CONSTANT") => "never",
        Some("READONLY") => "not through MPI_T; before the start, as below",
        Some("LOCAL") => "yes, on each rank by itself",
        Some("GROUP") => "yes, on the ranks of a group together",
        Some("GROUP_EQ") => "yes, on the ranks of a group together, to the same value",
        Some("ALL") => "yes, on all ranks together",
        Some("ALL_EQ") => "yes, on all ranks together, to the same value",
        _ => "unknown",
    }
}

fn long_cvar(cvar: &Cvar) -> Section<'_> {
    facts(
        name_text(cvar.name.as_deref(), cvar.index),
        [
            ("value", cvar.value_text().map(Into::into)),
            ("as of", cvar.before_init.then_some("before MPI_Init".into())),
            ("problem", cvar.problem.as_ref().map(Into::into)),
            ("description", Some((&cvar.description).into())),
            ("names", items_text(cvar.enumeration.as_deref()).map(Into::into)),
            ("type", Some(count_text(cvar.datatype, cvar.count).into())),
            ("verbosity", cvar.verbosity.as_ref().map(Into::into)),
            ("binds to", cvar.bind.as_ref().map(Into::into)),
            ("scope", cvar.scope.as_ref().map(Into::into)),
            ("writable now", Some(writable(cvar.scope.as_deref()).into())),
            ("environment", cvar.environment.as_ref().map(|name| format!("{name}=VALUE").into())),
            ("launcher", cvar.launcher_option.as_ref().map(Into::into)),
        ],
    )
}

fn long_pvar(pvar: &PvarInfo) -> Section<'_> {
    let flags = [
        (pvar.readonly, "read-only", "can be reset"),
        (pvar.continuous, "continuous", "must be started"),
        (pvar.atomic, "atomic read and reset", ""),
    ];
    let flags = flags.into_iter().filter_map(|(flag, yes, no)| Some(if flag? { yes } else { no }));
    let flags: Vec<&str> = flags.filter(|text| !text.is_empty()).collect();
    facts(
        name_text(pvar.name.as_deref(), pvar.index),
        [
            ("value", pvar.value_text().map(Into::into)),
            ("as of", pvar.before_init.then_some("before MPI_Init".into())),
            ("problem", pvar.problem.as_ref().map(Into::into)),
            ("description", Some((&pvar.description).into())),
            ("names", items_text(pvar.enumeration.as_deref()).map(Into::into)),
            ("class", pvar.class.map(|class| class.name().into())),
            ("type", Some(count_text(pvar.datatype, pvar.count).into())),
            ("verbosity", pvar.verbosity.as_ref().map(Into::into)),
            ("binds to", pvar.bind.as_ref().map(Into::into)),
            ("access", Some(flags.join(", ").into())),
        ],
    )
}

fn count_text(datatype: Option<Datatype>, count: Option<usize>) -> String {
    match count {
        Some(count) if count > 1 && datatype == Some(Datatype::Char) => {
            format!("CHAR, up to {count} characters")
        }
        Some(count) if count > 1 => format!("{} x {count}", type_text(datatype)),
        _ => type_text(datatype).to_owned(),
    }
}

fn enumerations(listing: &Variables) -> Section<'_> {
    let cvars = listing.cvars.iter().map(|cvar| (&cvar.name, cvar.index, &cvar.enumeration));
    let pvars = listing.pvars.iter().map(|pvar| (&pvar.name, pvar.index, &pvar.enumeration));
    let rows = cvars.chain(pvars).filter_map(|(name, index, items)| {
        Some(row![name_text(name.as_deref(), index), items_text(items.as_deref())?])
    });
    let rows: Vec<Vec<Value>> = rows.collect();
    Section {
        title: line!["Enumerations: ", rows.len(), " variables"],
        columns: texts(["Variable", "Values and names"]),
        rows,
        notes: Vec::new(),
    }
}

/// What is wrong with something, or what the library says of it.
fn problem_or(problem: Option<&str>, description: &str) -> String {
    problem.map_or_else(|| one_line(description), str::to_owned)
}

fn events<'a>(listing: &'a Variables) -> Section<'a> {
    let row = |event: &'a Event| {
        row![
            name_text(event.name.as_deref(), event.index),
            level_text(event.verbosity.as_deref()),
            bind_text(event.bind.as_deref()),
            event.elements,
            problem_or(event.problem.as_deref(), &event.description),
        ]
    };
    let mut notes = Vec::new();
    if !listing.has_events {
        notes.push("this library has no event interface (MPI 4.0)".into());
    }
    Section {
        title: line!["Events: ", listing.events.len(), " found"],
        columns: texts(["Event", "VRB", "Bind", "Elements", "Description"]),
        rows: listing.events.iter().map(row).collect(),
        notes,
    }
}

fn sources<'a>(sources: &'a [Source]) -> Section<'a> {
    let row = |source: &'a Source| {
        row![
            name_text(source.name.as_deref(), source.index),
            if source.ordered { "ORDERED" } else { "UNORDERED" },
            line![source.ticks_per_second.to_string(), " ticks/s"],
            problem_or(source.problem.as_deref(), &source.description),
        ]
    };
    Section {
        title: line!["Sources of events: ", sources.len(), " found"],
        columns: texts(["Source", "Order", "Clock", "Description"]),
        rows: sources.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// The categories as a tree, each with its variables.
fn categories(listing: &Variables) -> Section<'_> {
    let inner: BTreeSet<usize> = listing
        .categories
        .iter()
        .flat_map(|category| category.categories.iter().copied())
        .collect();
    let mut notes = Vec::new();
    let mut seen = BTreeSet::new();
    // Roots first; what remains is part of a cycle, which libraries should not have.
    let (roots, others): (Vec<&Category>, Vec<&Category>) =
        listing.categories.iter().partition(|category| !inner.contains(&category.index));
    for category in roots.into_iter().chain(others) {
        branch(listing, category, 0, &mut seen, &mut notes);
    }
    Section::of_notes(line!["Categories: ", listing.categories.len(), " found"], notes)
}

fn branch<'a>(
    listing: &'a Variables,
    category: &'a Category,
    depth: usize,
    seen: &mut BTreeSet<usize>,
    lines: &mut Vec<Value<'a>>,
) {
    if !seen.insert(category.index) {
        return;
    }
    let about: Value = match (&category.problem, category.description.as_str()) {
        (Some(problem), _) => line![" (", problem, ")"],
        (None, "") => "".into(),
        (None, description) => line![": ", one_line(description)],
    };
    let name = name_text(category.name.as_deref(), category.index);
    lines.push(line![Value::Indent(depth), name, about]);
    for &index in &category.cvars {
        let cvar = listing.cvars.iter().find(|cvar| cvar.index == index);
        let name = name_text(cvar.and_then(|cvar| cvar.name.as_deref()), index);
        lines.push(line![Value::Indent(depth + 1), "cvar ", name]);
    }
    for &index in &category.pvars {
        let pvar = listing.pvars.iter().find(|pvar| pvar.index == index);
        let name = name_text(pvar.and_then(|pvar| pvar.name.as_deref()), index);
        lines.push(line![Value::Indent(depth + 1), "pvar ", name]);
    }
    for index in &category.categories {
        if let Some(inner) = listing.categories.iter().find(|category| category.index == *index) {
            branch(listing, inner, depth + 1, seen, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_run_from_one_to_nine() {
        assert_eq!(level(Some("USER_BASIC")), 1);
        assert_eq!(level(Some("MPIDEV_ALL")), 9);
        assert_eq!(level(None), 9);
        assert_eq!(level_text(Some("TUNER_BASIC")), "T/B-4");
    }

    #[test]
    fn a_cycle_of_categories_ends() {
        let category = |index: usize, inner: usize| Category {
            index,
            name: Some(format!("c{index}")),
            categories: vec![inner],
            ..Category::default()
        };
        let text = include_str!("../../results-schema/examples/variables.json");
        let mut listing: Variables = serde_json::from_str(text).unwrap();
        listing.categories = vec![category(0, 1), category(1, 2), category(2, 1)];
        let lines = |listing: &Variables| -> Vec<String> {
            categories(listing).notes.iter().map(crate::render::text).collect()
        };
        assert_eq!(lines(&listing), ["c0", "  c1", "    c2"]);
        listing.categories = vec![category(0, 1), category(1, 0)];
        assert_eq!(lines(&listing), ["c0", "  c1"]);
    }
}
