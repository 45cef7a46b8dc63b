//! A table as texts in columns, shared by the formats for people. Known errors of numbers get a column of their
//! own.

use super::text::{error, text, without_error};
use crate::document::value::Amount;
use crate::document::{Column, Kind, Section, Value};

pub(super) struct Cells {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

pub(super) fn cells(section: &Section) -> Cells {
    let has_errors = |at: usize| {
        let cells = section.rows.iter().filter_map(|row| row.get(at));
        cells.into_iter().any(|cell| matches!(cell, Value::Amount(Amount { error: Some(_), .. })))
    };
    let errors: Vec<bool> = (0..section.columns.len()).map(has_errors).collect();
    let columns = section.columns.iter().zip(&errors).flat_map(|(column, &errors)| {
        let error =
            Column { name: "±", kind: Kind::Number, required: false, fidelity: None, about: "" };
        [Some(*column), errors.then_some(error)].into_iter().flatten()
    });
    let row = |row: &Vec<Value>| {
        let cells = row.iter().zip(&errors).flat_map(|(cell, &errors)| {
            let first = if errors { without_error(cell) } else { text(cell) };
            [Some(first), errors.then(|| error_of(cell))].into_iter().flatten()
        });
        cells.collect()
    };
    Cells { columns: columns.collect(), rows: section.rows.iter().map(row).collect() }
}

/// Whether a row continues the one above.
pub(super) fn is_below(row: &[Value]) -> bool {
    matches!(row.first(), Some(Value::Text(text)) if text.is_empty())
}

fn error_of(cell: &Value) -> String {
    match cell {
        Value::Amount(amount) => error(amount).unwrap_or_default(),
        Value::Text(text) if text.is_empty() => String::new(),
        _ => "-".to_owned(),
    }
}
