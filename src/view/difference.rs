//! What differs between two listings.

use std::collections::BTreeMap;

use gyan_results::{Class, Variables};

use super::numbers::cut;
use super::{Align, Column, Section, View, library_line};

/// A value is cut there.
const VALUE_AT_MOST: usize = 40;

/// Added, removed and changed variables from `a` to `b`.
pub(crate) fn difference(a: &Variables, b: &Variables) -> View {
    let mut sections = vec![cvars(a, b), pvars(a, b)];
    sections.retain(|section| !section.rows.is_empty());
    let mut view = View {
        title: if sections.is_empty() {
            "the listings do not differ".to_owned()
        } else {
            "differences of two listings".to_owned()
        },
        subtitle: vec![
            format!("A: {}, {}", library_line(&a.mpi), a.mpi.library_path),
            format!("B: {}, {}", library_line(&b.mpi), b.mpi.library_path),
        ],
        sections,
    };
    view.make_printable();
    view
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

/// Names of control variables whose value in `b` is another than in `a`, or that `a` lacks.
pub(crate) fn changed<'b>(a: &Variables, b: &'b Variables) -> Vec<&'b str> {
    let before = values(a);
    let now = values(b);
    now.into_iter()
        .filter(|(name, value)| before.get(name) != Some(value))
        .map(|(name, _)| name)
        .collect()
}

fn cvars(a: &Variables, b: &Variables) -> Section {
    let (before, now) = (values(a), values(b));
    let short = |value: Option<&String>| cut(value.map_or("", String::as_str), VALUE_AT_MOST);
    let row = |what: &str, name: &str| {
        vec![what.to_owned(), name.to_owned(), short(before.get(name)), short(now.get(name))]
    };
    let mut rows: Vec<Vec<String>> = changed(a, b)
        .into_iter()
        .map(|name| row(if before.contains_key(name) { "changed" } else { "added" }, name))
        .collect();
    rows.extend(
        before.keys().filter(|name| !now.contains_key(*name)).map(|name| row("removed", name)),
    );
    rows.sort();
    let columns = ["", "Variable", "A", "B"];
    Section {
        title: format!("Control variables: {} differences", rows.len()),
        columns: columns.map(|title| Column { title, align: Align::Left }).into(),
        rows,
        notes: Vec::new(),
    }
}

fn pvars(a: &Variables, b: &Variables) -> Section {
    let keys = |listing: &Variables| {
        let named = listing
            .pvars
            .iter()
            .filter_map(|pvar| Some((pvar.name.clone()?, pvar.class.map_or("", Class::name))));
        named.collect::<std::collections::BTreeSet<_>>()
    };
    let (before, now) = (keys(a), keys(b));
    let row = |what: &str, (name, class): &(String, &str)| {
        vec![what.to_owned(), name.clone(), (*class).to_owned()]
    };
    let added = now.difference(&before).map(|key| row("added", key));
    let removed = before.difference(&now).map(|key| row("removed", key));
    let rows: Vec<Vec<String>> = added.chain(removed).collect();
    let columns = ["", "Variable", "Class"];
    Section {
        title: format!("Performance variables: {} differences", rows.len()),
        columns: columns.map(|title| Column { title, align: Align::Left }).into(),
        rows,
        notes: Vec::new(),
    }
}
