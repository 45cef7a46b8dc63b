//! The differences of two listings.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{Class, Variables};

use crate::document::value::{Value, line, row};
use crate::document::{Section, View, cut, texts};
use crate::parts::headings;

/// The length at which a value is cut.
const VALUE_AT_MOST: usize = 40;

/// Added, removed and changed variables from `a` to `b`.
pub(crate) fn difference<'a>(a: &'a Variables, b: &'a Variables) -> View<'a> {
    let mut sections = vec![cvars(a, b), pvars(a, b)];
    sections.retain(|section| !section.rows.is_empty());
    let about = |which: &'static str, listing: &'a Variables| {
        line![which, headings::library(&listing.mpi), ", ", &listing.mpi.library_path]
    };
    let differ = !sections.is_empty();
    View {
        title: if differ { "differences of two listings" } else { "the listings do not differ" }
            .into(),
        subtitle: vec![about("A: ", a), about("B: ", b)],
        sections,
    }
}

/// The control variables by name, with their values.
fn values(listing: &Variables) -> BTreeMap<&str, String> {
    let named = listing.cvars.iter().filter_map(|cvar| {
        let value = cvar.value_text().unwrap_or_else(|| {
            cvar.problem.as_ref().map_or_else(String::new, |problem| format!("({problem})"))
        });
        Some((cvar.name.as_deref()?, value))
    });
    named.collect()
}

/// Names of control variables whose value in `b` differs from `a`, or that `a` lacks.
pub(crate) fn changed<'b>(a: &Variables, b: &'b Variables) -> Vec<&'b str> {
    let before = values(a);
    let now = values(b);
    now.into_iter()
        .filter(|(name, value)| before.get(name) != Some(value))
        .map(|(name, _)| name)
        .collect()
}

fn cvars<'a>(a: &'a Variables, b: &'a Variables) -> Section<'a> {
    let (before, now) = (values(a), values(b));
    let short = |value: Option<&String>| cut(value.map_or("", String::as_str), VALUE_AT_MOST);
    let changed = changed(a, b)
        .into_iter()
        .map(|name| (if before.contains_key(name) { "changed" } else { "added" }, name));
    let removed = before.keys().filter(|name| !now.contains_key(*name));
    let mut names: Vec<(&str, &str)> =
        changed.chain(removed.map(|name| ("removed", *name))).collect();
    names.sort_unstable();
    let row = |&(what, name): &(&'static str, &'a str)| {
        row![what, name, short(before.get(name)), short(now.get(name))]
    };
    Section {
        title: line!["Control variables: ", names.len(), " differences"],
        columns: texts(["", "Variable", "A", "B"]),
        rows: names.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn pvars<'a>(a: &'a Variables, b: &'a Variables) -> Section<'a> {
    let keys = |listing: &'a Variables| -> BTreeSet<(&'a str, &'static str)> {
        let named = listing
            .pvars
            .iter()
            .filter_map(|pvar| Some((pvar.name.as_deref()?, pvar.class.map_or("", Class::name))));
        named.collect()
    };
    let (before, now) = (keys(a), keys(b));
    let added = now.difference(&before).map(|(name, class)| row!["added", *name, *class]);
    let removed = before.difference(&now).map(|(name, class)| row!["removed", *name, *class]);
    let rows: Vec<Vec<Value>> = added.chain(removed).collect();
    Section {
        title: line!["Performance variables: ", rows.len(), " differences"],
        columns: texts(["", "Variable", "Class"]),
        rows,
        notes: Vec::new(),
    }
}
