//! Histograms with classes that double: how long calls took and how much they moved, the values of sampled
//! variables, and what callbacks measured of messages.

use gyan_results::{
    CallSummary, MessageSource, MetricSummary, SamplesSummary, Summary, Traffic, Unit,
};
use serde::Serialize;
use wildmatch::WildMatch;

use super::queues::source_name;
use super::{Part, PartOption, ReportInput, SummaryTable, Takes, headings};
use crate::document::data::{Row, columns};
use crate::document::value::{InUnit, Plot, line, row, share};
use crate::document::{Data, Document, Kind, Presentation, Section, Value, View, column, numbers};
use crate::error::Error;

/// Histograms of what matches.
pub(super) const HISTOGRAM: Part = Part {
    option: Some(PartOption {
        takes: Takes::Glob,
        ..PartOption::new(
            "histogram",
            "Histograms of what matches: how long calls took and how much they moved, the values \
             of sampled variables, and what callbacks measured of messages",
            show,
        )
    }),
    table: Some(SummaryTable::new::<(&Histogram, &HistogramBar)>(
        "summary_histograms",
        "bar of a histogram over the ranks",
        |of| Some(rows(histograms(of.summary, "*"))),
    )),
    block: None,
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let name = of.glob.unwrap_or("*");
    let histograms = histograms(of.summary, name);
    if histograms.is_empty() {
        return Err(Error::new(
            format!("--histogram {name}"),
            "no timed call, no sampled variable and no metric of messages matches",
            "gyan report --all shows the names",
        ));
    }
    Ok(shown(of.summary, histograms))
}

/// Histograms in every format.
pub(super) fn shown(summary: &Summary, histograms: Vec<Histogram>) -> Presentation<'_> {
    let view = view(summary, &histograms);
    Presentation { view, rows: rows(histograms.clone()), document: Document::new(histograms) }
}

#[derive(Clone, Serialize)]
pub(crate) struct Histogram {
    /// `call` (seconds of a call), `size` (bytes that a call moved), `pvar` (a reading; for a vector, the sum
    /// over the elements), or `message` (a time in seconds or a length, as reported by callbacks of the
    /// library).
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) object: Option<String>,
    #[serde(skip)]
    unit: Unit,
    /// From the first non-empty bar to the last.
    pub(crate) bars: Vec<HistogramBar>,
}

/// How many numbers were at least `from` and below `below`.
#[derive(Clone, Serialize)]
pub(crate) struct HistogramBar {
    pub(crate) from: f64,
    pub(crate) below: f64,
    pub(crate) count: u64,
    /// For calls by size, the bytes that they moved together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
}

/// The histograms of the functions and variables of a run whose name matches.
fn histograms(summary: &Summary, name: &str) -> Vec<Histogram> {
    let pattern = WildMatch::new(name);
    let of_call = |call: &CallSummary| Histogram {
        kind: "call",
        name: call.name.clone(),
        object: None,
        unit: Unit::Seconds,
        bars: bars(&call.time_histogram, 1e-9),
    };
    let of_samples = |samples: &SamplesSummary| Histogram {
        kind: "pvar",
        name: samples.name.clone(),
        object: samples.object.clone(),
        unit: Unit::Count,
        bars: bars(&samples.histogram, 1.0),
    };
    let calls = summary.calls.iter().filter(|call| pattern.matches(&call.name)).map(of_call);
    // The number of a state is not a quantity.
    let samples = summary.samples.iter().filter(|samples| samples.states.is_empty());
    let samples = samples.filter(|samples| pattern.matches(&samples.name)).map(of_samples);
    let messages = summary.messages.iter().flat_map(|messages| {
        let metrics = messages.metrics.iter();
        let metrics = metrics.filter(|metric| pattern.matches(metric.metric.name()));
        metrics.map(|metric| of_metric(messages.source, metric))
    });
    let sizes = sizes_of(summary).filter(|sizes| pattern.matches(&sizes.name));
    let all = calls.chain(sizes).chain(samples).chain(messages);
    all.filter(|histogram| !histogram.bars.is_empty()).collect()
}

/// How much calls moved, for each function that moved anything, the one that moved most first.
pub(super) fn sizes(summary: &Summary) -> Vec<Histogram> {
    let bytes = |of: &Histogram| of.bars.iter().filter_map(|bar| bar.bytes).sum::<u64>();
    let mut sizes: Vec<Histogram> = sizes_of(summary).filter(|of| bytes(of) > 0).collect();
    sizes.sort_by_key(|of| std::cmp::Reverse(bytes(of)));
    sizes
}

fn sizes_of(summary: &Summary) -> impl Iterator<Item = Histogram> {
    summary.calls.iter().map(|call| {
        let first = call.size_histogram.iter().position(|&count| count > 0).unwrap_or(0);
        let mut bars = bars(&call.size_histogram, 1.0);
        for (bar, bytes) in bars.iter_mut().zip(call.size_histogram_bytes.iter().skip(first)) {
            bar.bytes = Some(*bytes);
        }
        Histogram { kind: "size", name: call.name.clone(), object: None, unit: Unit::Bytes, bars }
    })
}

fn of_metric(source: MessageSource, metric: &MetricSummary) -> Histogram {
    let is_time = metric.metric.is_time();
    let source = source_name(source);
    Histogram {
        kind: "message",
        name: metric.metric.name().to_owned(),
        object: Some(match metric.traffic {
            Traffic::Program => source.to_owned(),
            Traffic::Collectives => format!("{source}, collectives"),
        }),
        unit: if is_time { Unit::Seconds } else { Unit::Count },
        bars: bars(&metric.histogram, if is_time { 1e-9 } else { 1.0 }),
    }
}

pub(super) fn bars(counts: &[u64], unit: f64) -> Vec<HistogramBar> {
    let first = counts.iter().position(|&count| count > 0).unwrap_or(counts.len());
    let bars = (0..).zip(counts).skip(first).map(|(at, &count)| HistogramBar {
        from: if at == 0 { 0.0 } else { unit * 2_f64.powi(at - 1) },
        below: unit * 2_f64.powi(at),
        count,
        bytes: None,
    });
    bars.collect()
}

pub(super) fn view<'a>(summary: &'a Summary, histograms: &[Histogram]) -> View<'a> {
    View {
        title: headings::title(summary),
        subtitle: vec![headings::library_and_job(summary)],
        sections: histograms.iter().map(section).collect(),
    }
}

fn section(histogram: &Histogram) -> Section<'static> {
    let unit = histogram.unit;
    let total: u64 = histogram.bars.iter().map(|bar| bar.count).sum();
    let longest = histogram.bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    // There are few sizes, far apart.
    let shown = histogram.bars.iter().filter(|bar| bar.count > 0 || histogram.kind != "size");
    let rows = shown.map(|bar| {
        let part = share(bar.count as f64 / total as f64);
        let length = Value::Plot(Plot::Bar { part: bar.count, longest });
        let mut cells = row![unit.double(bar.from), unit.double(bar.below), bar.count, part];
        cells.extend(bar.bytes.map(|bytes| Unit::Bytes.double(bytes as f64).into()));
        cells.push(length);
        cells
    });
    let counted = match histogram.kind {
        "call" | "size" => "CALLS",
        "message" => "MESSAGES",
        _ => "READINGS",
    };
    let mut columns = numbers(["FROM", "BELOW", counted, "SHARE"]);
    if histogram.kind == "size" {
        columns.extend(numbers(["BYTES"]));
    }
    columns.push(column("", Kind::Text));
    let name = histogram.name.clone();
    let title = match &histogram.object {
        Some(object) => line![name, " (", object.clone(), ")"],
        None if histogram.kind == "size" => {
            let bytes: u64 = histogram.bars.iter().filter_map(|bar| bar.bytes).sum();
            line![name, ": ", Unit::Bytes.double(bytes as f64), " in ", total, " calls"]
        }
        None => name.into(),
    };
    Section { title, columns, rows: rows.collect(), notes: Vec::new() }
}

fn rows(histograms: Vec<Histogram>) -> Data<'static> {
    Data::from_each(<(&Histogram, &HistogramBar)>::COLUMNS, move |take| {
        let mut bars = histograms.iter().flat_map(|of| of.bars.iter().map(move |bar| (of, bar)));
        bars.try_for_each(|row| row.write(take))
    })
}

columns! { (of, bar) in (&Histogram, &HistogramBar);
    required(kind: Text) => of.kind,
    required(name: Text) => &of.name,
    column(object: Text) => of.object.as_ref(),
    required(from: Double) => bar.from,
    required(below: Double) => bar.below,
    required(count: Integer) => bar.count,
    column(bytes: Integer) => bar.bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_double_and_begin_at_the_first_that_is_not_empty() {
        let bars = bars(&[0, 0, 3, 0, 1], 1.0);
        let edges: Vec<(f64, f64, u64)> =
            bars.iter().map(|bar| (bar.from, bar.below, bar.count)).collect();
        assert_eq!(edges, [(2.0, 4.0, 3), (4.0, 8.0, 0), (8.0, 16.0, 1)]);
        assert!(super::bars(&[], 1.0).is_empty());
    }
}
