//! How much fits on a screen: the first rows of a table, and a remark about the others.

use crate::document::plural;
use crate::document::value::{Value, line};

/// Rows of one table that fit on a screen with the rest.
const ROWS_AT_MOST: usize = 8;
/// Names shown of a list.
const NAMES_AT_MOST: usize = 3;

/// The rows to show, and how many are left out.
pub(crate) fn first_rows<T>(mut rows: Vec<T>, all: bool) -> (Vec<T>, usize) {
    let cut_off = if all { 0 } else { rows.len().saturating_sub(ROWS_AT_MOST) };
    rows.truncate(rows.len() - cut_off);
    (rows, cut_off)
}

pub(crate) fn more_rows<'a>(cut_off: usize) -> Vec<Value<'a>> {
    let more = || line![cut_off, " more row", plural(cut_off as u64), "; --all shows them"];
    (cut_off > 0).then(more).into_iter().collect()
}

pub(crate) fn some_of<'a, T: Into<Value<'a>>>(
    names: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    all: bool,
) -> Value<'a> {
    let names = names.into_iter();
    let limit = if all { names.len() } else { NAMES_AT_MOST };
    let more = names.len().saturating_sub(limit);
    let mut parts: Vec<Value> = Vec::new();
    for name in names.take(limit) {
        if !parts.is_empty() {
            parts.push(", ".into());
        }
        parts.push(name.into());
    }
    if more > 0 {
        parts.push(line![", ", more, " more"]);
    }
    Value::Line(parts)
}
