//! How many bytes calls move.

use super::histogram::{shown, sizes, view};
use super::{Part, PartOption, ReportInput};
use crate::document::page::PageBlock;
use crate::document::page::pictures::{Chart, HistogramChart, Picture};
use gyan_results::Unit;

use crate::document::value::{bytes, integer, line, share};
use crate::document::{Presentation, Value};
use crate::error::Error;

/// How much calls move.
pub(super) const SIZES: Part = Part {
    option: Some(PartOption::new(
        "sizes",
        "How many bytes calls moved: a histogram of each function, exact",
        show,
    )),
    table: None,
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let sizes = sizes(of.summary);
    if sizes.is_empty() {
        return Err(of.lacks(
            "nothing is known of the sizes of messages",
            "no function that moves data was called, or an older gyan wrote the profiles",
        ));
    }
    Ok(shown(of.summary, sizes))
}

/// How many functions get a chart.
const HISTOGRAMS_AT_MOST: usize = 4;
/// Least classes of a histogram: with fewer, a bar would fill the chart.
const CLASSES_AT_LEAST: usize = 8;

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let sizes = sizes(of.summary);
    if sizes.is_empty() {
        return Err("sizes: no function that moves data was called".into());
    }
    let mut block = PageBlock::new("sizes", "How much calls move");
    if let Some((limit, above)) = of.eager() {
        let part = if above > 0.0 { share(above).into() } else { Value::from("none") };
        block.says.push(line![
            part,
            " of the messages are above the eager limit of ",
            bytes(limit),
            "."
        ]);
    }
    for size in sizes.iter().take(HISTOGRAMS_AT_MOST) {
        let mut bars: Vec<_> =
            size.bars.iter().map(|bar| (bar.from, bar.below, bar.count)).collect();
        while let (Some(&(_, below, _)), true) = (bars.last(), bars.len() < CLASSES_AT_LEAST) {
            bars.push((below, 2.0 * below, 0));
        }
        let calls: u64 = size.bars.iter().map(|bar| bar.count).sum();
        let moved: u64 = size.bars.iter().filter_map(|bar| bar.bytes).sum();
        let is_message = size.name.contains("send") || size.name.contains("Send");
        let limit = of.eager().map(|(limit, _)| limit).filter(|_| is_message);
        let says = line![integer(calls), " calls moved ", bytes(moved as f64)];
        block.charts.push(Chart::new(
            line!["How much does a call of ", size.name.clone(), " move?"],
            says,
            Picture::Histogram(HistogramChart { unit: Unit::Bytes, bars, limit }),
        ));
    }
    Ok(block.of_view(false, view(of.summary, &sizes)))
}
