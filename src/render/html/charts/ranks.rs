//! One number of each rank or host, from the least to the most.

use std::fmt::Write as _;

use gyan_results::Number;
use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::super::values::value;
use super::{below, beside_scale, rectangle, round, svg};
use crate::document::page::pictures::{Bin, Chart, FEW, Ranks};

/// The base line of the columns: the highest is 100, with room for a mark above it.
const FOOT: f64 = 105.0;

pub(super) fn drawn(ranks: &Ranks, of: &Chart, id: &str) -> Markup {
    if ranks.bins.len() <= FEW {
        return few_ranks(ranks, of, id);
    }
    let scale = |value: f64| 100.0 * value / ranks.largest.max(f64::MIN_POSITIVE);
    let width = 1000.0 / ranks.bins.len().max(1) as f64;
    let gap = if width > 5.0 { width * 0.1 } else { 0.0 };
    let mut marks = String::new();
    let shown = |value: f64| number(ranks.unit, Number::Double(value));
    for (at, bin) in ranks.bins.iter().enumerate() {
        let x = at as f64 * width;
        let who = text(&bin.who);
        let name = if bin.min < bin.max {
            format!(
                "{who}: {} to {}, {} on average",
                shown(bin.min),
                shown(bin.max),
                shown(bin.mean)
            )
        } else {
            format!("{who}: {}", shown(bin.mean))
        };
        if bin.min < bin.max {
            let (top, height) = (FOOT - scale(bin.max), scale(bin.max));
            rectangle(&mut marks, "range", [x, top, width - gap, height], &name);
        }
        if bin.is_odd {
            rectangle(&mut marks, "odd", [x, 0.0, width - gap, 3.0], &name);
        }
        let height = scale(bin.mean);
        rectangle(&mut marks, "k1", [x, FOOT - height, width - gap, height], &name);
    }
    let mean = round(FOOT - scale(ranks.mean));
    let _ = write!(marks, "<path class=\"line\" d=\"M0 {mean}H1000\"/>");
    let end = |bin: Option<&Bin>| bin.map_or_else(String::new, |bin| text(&bin.who));
    let mean = format!("line: mean, {}", shown(ranks.mean));
    let ends = [end(ranks.bins.first()), mean, end(ranks.bins.last())];
    html! {
        (beside_scale([&shown(ranks.largest), "0"], &svg(of, id, "columns", "0 0 1000 105", true, &marks)))
        (below(&ends))
    }
}

/// A row for each, with its number.
fn few_ranks(ranks: &Ranks, of: &Chart, id: &str) -> Markup {
    let shown = |value: f64| number(ranks.unit, Number::Double(value));
    let drawn = |at: usize, value: f64| {
        let mut marks = String::new();
        let width = 1000.0 * value / ranks.largest.max(f64::MIN_POSITIVE);
        rectangle(&mut marks, "k1", [0.0, 0.0, width, 20.0], &shown(value));
        svg(of, &format!("{id}-{at}"), "bar", "0 0 1000 20", true, &marks)
    };
    html! {
        div.rows {
            @for (at, bin) in ranks.bins.iter().enumerate() {
                div.name { (value(&bin.who)) }
                (drawn(at, bin.mean))
                div.total { (shown(bin.mean)) }
            }
        }
    }
}
