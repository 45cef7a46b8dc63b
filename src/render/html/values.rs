//! A value in a page: as in a table, with marks for how well a number is known, and the exact number on hover.

use gyan_results::{Fidelity, Number};
use maud::{Markup, html};

use super::super::text::{error, number, text};
use super::charts;
use crate::document::Value;
use crate::document::value::Amount;

pub(super) fn value(of: &Value) -> Markup {
    html! {
        @match of {
            Value::Nothing => "–",
            Value::Amount(of) => (amount(of)),
            Value::Line(parts) => @for part in parts { (value(part)) },
            Value::Fact(label, of) => { (label) ": " (value(of)) },
            Value::Link(_, to) => a href=(to) { (text(of)) },
            Value::Plot(plot) => (charts::plot(plot)),
            Value::Indent(depth) => @for _ in 0..*depth { "\u{a0}\u{a0}" },
            Value::Text(_) | Value::Rank(_) | Value::Ranks(_) => (text(of)),
        }
    }
}

/// A cell of a table: sorted by its number, if it has one.
pub(super) fn cell(of: &Value, is_number: bool, is_first: bool, span: Option<usize>) -> Markup {
    let sort = match of {
        Value::Amount(amount) => Some(plain(amount.number)),
        Value::Rank(rank) => Some(rank.to_string()),
        _ => None,
    };
    html! {
        @if is_first && !is_number {
            th scope="row" { (value(of)) }
        } @else {
            td.n[is_number] data-v=[sort] colspan=[span.filter(|&span| span > 1)] { (value(of)) }
        }
    }
}

pub(super) fn amount(of: &Amount) -> Markup {
    let (mark, known) = match of.fidelity {
        Fidelity::Exact => ("", ""),
        Fidelity::Sampled => ("s", ", sampled"),
        Fidelity::Estimated => ("e", ", estimated"),
        Fidelity::LowerBound => ("", ", at least"),
    };
    let rounded = number(of.unit, of.number);
    html! {
        @if let Some(sign) = of.bound.sign() { (sign) "\u{a0}" }
        span title={ (exact(of)) (known) } { (rounded.replace(' ', "\u{a0}")) }
        @if !mark.is_empty() { sup { (mark) } }
        @if let Some(error) = error(of) {
            " " small { "±\u{a0}" (error) }
        }
        @if let Some(rank) = of.rank { " " small { "(" (rank) ")" } }
    }
}

/// All digits, in the unit itself.
pub(super) fn exact(of: &Amount) -> String {
    let (number, unit) = (plain(of.number), of.unit.symbol());
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

fn plain(number: Number) -> String {
    match number {
        Number::Integer(integer) => integer.to_string(),
        Number::Double(double) => double.to_string(),
    }
}
