//! Stretches of one scale, one below the other: steps of a waterfall, or intervals with the most likely value
//! marked.

use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::super::values::{amount, value};
use super::{below, rectangle, svg};
use crate::document::page::pictures::{Chart, Direction, Span, Spans};
use gyan_results::Number;

pub(super) fn drawn(spans: &Spans, of: &Chart, id: &str) -> Markup {
    let ends = || spans.spans.iter().flat_map(|span| [span.from, span.to]);
    let least = ends().fold(0.0_f64, f64::min);
    let most = ends().fold(0.0_f64, f64::max);
    let range = (most - least).max(f64::MIN_POSITIVE);
    let x = |at: f64| (at - least) / range * 1000.0;
    let end = |at: f64| number(spans.unit, Number::Double(at));
    html! {
        div.rows {
            @for (at, span) in spans.spans.iter().enumerate() {
                div.name { (value(&span.name)) }
                (svg(of, &format!("{id}-{at}"), "bar", "0 0 1000 20", true, &marks(span, x, &end)))
                div.total { (amount(&span.amount)) }
            }
        }
        (below(&[end(least), end(most)]))
    }
}

fn marks(span: &Span, x: impl Fn(f64) -> f64, end: &dyn Fn(f64) -> String) -> String {
    let class = match span.direction {
        Direction::Less => "k1",
        Direction::More => "odd",
        Direction::Unknown => "quiet",
    };
    let (left, right) = (x(span.from.min(span.to)), x(span.from.max(span.to)));
    let name = format!("{}: {} to {}", text(&span.name), end(span.from), end(span.to));
    let mut marks = String::new();
    // When nothing changed.
    rectangle(&mut marks, "frame", [(x(0.0) - 1.0).max(0.0), 0.0, 2.0, 20.0], "0");
    // An interval is thin, and its most likely value stands out.
    let (top, height) = if span.estimate.is_some() { (7.0, 6.0) } else { (2.0, 16.0) };
    rectangle(&mut marks, class, [left, top, (right - left).max(2.0), height], &name);
    if let Some(estimate) = span.estimate {
        rectangle(&mut marks, class, [x(estimate) - 2.0, 1.0, 4.0, 18.0], &end(estimate));
    }
    marks
}
