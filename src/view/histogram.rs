//! Histograms with classes that double: how long calls took, which values sampled variables had, and
//! what callbacks measured of messages.

use gyan_results::{CallSummary, MessageSource, MetricSummary, SamplesSummary, Summary, Traffic};
use serde::Serialize;
use wildmatch::WildMatch;

use super::queues::source_name;
use super::value::{Plot, Unit, Value, line, row, share};
use super::{Kind, Section, View, column, headings, numbers};

#[derive(Serialize)]
pub(crate) struct Histogram {
    /// `call` (seconds of a call), `pvar` (a reading, of a vector the sum over the elements), or
    /// `message` (a time in seconds or a length, as callbacks of the library told).
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) object: Option<String>,
    /// Whether the numbers are seconds.
    #[serde(skip)]
    is_time: bool,
    /// From the first that is not empty to the last.
    pub(crate) bars: Vec<Bar>,
}

/// How many numbers were at least `from` and `below` that.
#[derive(Serialize)]
pub(crate) struct Bar {
    pub(crate) from: f64,
    pub(crate) below: f64,
    pub(crate) count: u64,
}

/// Of the functions and variables of a run whose name matches.
pub(crate) fn histograms(summary: &Summary, pattern: &WildMatch) -> Vec<Histogram> {
    let of_call = |call: &CallSummary| Histogram {
        kind: "call",
        name: call.name.clone(),
        object: None,
        is_time: true,
        bars: bars(&call.time_histogram, 1e-9),
    };
    let of_samples = |samples: &SamplesSummary| Histogram {
        kind: "pvar",
        name: samples.name.clone(),
        object: samples.object.clone(),
        is_time: false,
        bars: bars(&samples.histogram, 1.0),
    };
    let calls = summary.calls.iter().filter(|call| pattern.matches(&call.name)).map(of_call);
    // The number of a state is no size.
    let samples = summary.samples.iter().filter(|samples| samples.states.is_empty());
    let samples = samples.filter(|samples| pattern.matches(&samples.name)).map(of_samples);
    let messages = summary.messages.iter().flat_map(|messages| {
        let metrics = messages.metrics.iter();
        let metrics = metrics.filter(|metric| pattern.matches(metric.metric.name()));
        metrics.map(|metric| of_metric(messages.source, metric))
    });
    calls.chain(samples).chain(messages).filter(|histogram| !histogram.bars.is_empty()).collect()
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
        is_time,
        bars: bars(&metric.histogram, if is_time { 1e-9 } else { 1.0 }),
    }
}

pub(super) fn bars(counts: &[u64], unit: f64) -> Vec<Bar> {
    let first = counts.iter().position(|&count| count > 0).unwrap_or(counts.len());
    let bars = (0..).zip(counts).skip(first).map(|(at, &count)| Bar {
        from: if at == 0 { 0.0 } else { unit * 2_f64.powi(at - 1) },
        below: unit * 2_f64.powi(at),
        count,
    });
    bars.collect()
}

pub(crate) fn histogram<'a>(summary: &'a Summary, histograms: &'a [Histogram]) -> View<'a> {
    View {
        title: headings::title(summary),
        subtitle: vec![headings::library_and_job(summary)],
        sections: histograms.iter().map(section).collect(),
    }
}

fn section(histogram: &Histogram) -> Section<'_> {
    let unit = if histogram.is_time { Unit::Seconds } else { Unit::Count };
    let total: u64 = histogram.bars.iter().map(|bar| bar.count).sum();
    let longest = histogram.bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let rows = histogram.bars.iter().map(|bar| {
        let part = share(bar.count as f64 / total as f64);
        let length = Value::Plot(Plot::Bar { part: bar.count, longest });
        row![unit.double(bar.from), unit.double(bar.below), bar.count, part, length]
    });
    let counted = match histogram.kind {
        "call" => "CALLS",
        "message" => "MESSAGES",
        _ => "READINGS",
    };
    let mut columns = numbers(["FROM", "BELOW", counted, "SHARE"]);
    columns.push(column("", Kind::Text));
    let name = histogram.name.as_str();
    let title = match &histogram.object {
        Some(object) => line![name, " (", object, ")"],
        None => name.into(),
    };
    Section { title, columns, rows: rows.collect(), notes: Vec::new() }
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
