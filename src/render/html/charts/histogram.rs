//! How many were how large, in classes that double in size.

use std::fmt::Write as _;

use gyan_results::Number;
use maud::{Markup, html};

use super::super::super::text::number;
use super::{below, beside_scale, rectangle, round, svg};
use crate::document::page::pictures::{Chart, HistogramChart};
use crate::words::{double, share};

pub(super) fn drawn(histogram: &HistogramChart, of: &Chart, id: &str) -> Markup {
    let most = histogram.bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1) as f64;
    let all: u64 = histogram.bars.iter().map(|bar| bar.2).sum();
    let width = 1000.0 / histogram.bars.len().max(1) as f64;
    let shown = |value: f64| number(histogram.unit, Number::Double(value));
    let mut marks = String::new();
    for (at, &(from, below, count)) in histogram.bars.iter().enumerate() {
        if count == 0 {
            continue;
        }
        // A class that is not empty is visible.
        let height = (count as f64 / most * 100.0).max(1.5);
        let part = share(count as f64 / all.max(1) as f64);
        let name = format!("{} to below {}: {count}, {part}", shown(from), shown(below));
        rectangle(
            &mut marks,
            "k1",
            [at as f64 * width, 100.0 - height, width * 0.92, height],
            &name,
        );
    }
    let place = |limit: f64| {
        let at =
            histogram.bars.iter().position(|&(from, below, _)| from <= limit && limit < below)?;
        let (from, below, _) = *histogram.bars.get(at)?;
        Some((at as f64 + (limit - from) / (below - from)) * width)
    };
    let limit = histogram.limit.and_then(|limit| Some((limit, place(limit)?)));
    if let Some((_, x)) = limit {
        let _ = write!(marks, "<path class=\"line\" d=\"M{} 0V100\"/>", round(x));
    }
    let first = histogram.bars.first().map_or(0.0, |bar| bar.0);
    let last = histogram.bars.last().map_or(0.0, |bar| bar.1);
    let mut ends = vec![shown(first), shown(last)];
    if let Some((limit, _)) = limit {
        ends.insert(1, format!("line: eager limit, {}", shown(limit)));
    }
    html! {
        (beside_scale([&double(most), "0"], &svg(of, id, "columns", "0 0 1000 100", true, &marks)))
        (below(&ends))
    }
}
