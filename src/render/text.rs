//! A value as people read it.

use gyan_results::{Number, Unit};

use super::plot::plot;
use crate::document::Value;
use crate::document::value::Amount;
use crate::words::{bytes, double, integer, seconds, share};
use crate::words::{printable, ranges, relative_error};

/// On one line, whatever the names in it contain.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Nothing => "-".to_owned(),
        Value::Text(text) | Value::Link(text, _) => printable(text).into_owned(),
        Value::Amount(amount) => {
            // An error that would be written as "<0.01 %" says nothing in a sentence.
            let shown = |error: &f64| amount.unit != Unit::Share || *error >= 1e-4;
            let error = amount
                .error
                .filter(shown)
                .map(|error| format!(" ± {}", number(amount.unit, Number::Double(error))));
            with_rank(amount, &error.unwrap_or_default())
        }
        Value::Rank(rank) => rank.to_string(),
        Value::Ranks(list) => ranges(list),
        Value::Line(parts) => parts.iter().map(text).collect(),
        Value::Fact(label, value) => format!("  {label:<13} {}", text(value)),
        Value::Indent(depth) => "  ".repeat(*depth),
        Value::Plot(what) => plot(what),
    }
}

/// The same when the error has a column of its own.
pub(super) fn without_error(value: &Value) -> String {
    match value {
        Value::Amount(amount) => with_rank(amount, ""),
        other => text(other),
    }
}

/// The standard error of an amount in a table: a share of the number, but that of a share is in the same percents.
pub(super) fn error(amount: &Amount) -> Option<String> {
    let number = amount.number.as_f64();
    amount.error.map(|error| match amount.unit {
        Unit::Share => share(error),
        _ => relative_error(error, number),
    })
}

fn with_rank(amount: &Amount, error: &str) -> String {
    let rank = amount.rank.map_or_else(String::new, |rank| format!(" ({rank})"));
    let bound = amount.bound.sign().map_or_else(String::new, |sign| format!("{sign} "));
    let sign = if amount.is_change && amount.number.as_f64() > 0.0 { "+" } else { "" };
    format!("{bound}{sign}{}{error}{rank}", number(amount.unit, amount.number))
}

pub(super) fn number(unit: Unit, number: Number) -> String {
    match (unit, number) {
        (Unit::Seconds, number) => seconds(number.as_f64()),
        (Unit::Bytes, number) => bytes(number.as_f64()),
        (Unit::Share, number) => share(number.as_f64()),
        (Unit::PerSecond, number) => per_second(&double(number.as_f64())),
        (Unit::Count | Unit::Messages | Unit::Receives, Number::Integer(number)) => integer(number),
        (Unit::Count | Unit::Messages | Unit::Receives, Number::Double(number)) => double(number),
    }
}

/// `12 /s`, but `2.50 G/s`.
fn per_second(number: &str) -> String {
    let space = if number.ends_with(char::is_alphabetic) { "" } else { " " };
    format!("{number}{space}/s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::value::share;

    #[test]
    fn a_share_has_its_error_where_there_is_a_digit_of_it() {
        let with_error =
            |error| text(&Value::Amount(Amount { error: Some(error), ..share(0.607) }));
        assert_eq!(with_error(0.007), "60.7 % ± 0.70 %");
        assert_eq!(with_error(0.0001), "60.7 % ± 0.01 %");
        assert_eq!(with_error(0.000_099), "60.7 %");
    }
}
