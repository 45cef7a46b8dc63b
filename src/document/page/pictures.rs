//! What the charts of a page show, as typed data: which numbers, in which order. The renderer decides on width,
//! height and colours.

use std::ops::Range;

use gyan_results::Unit;

use crate::document::page::history::HistoryChart;
use crate::document::value::{Amount, Value};

/// A chart: the question that it answers, and what is drawn.
pub(crate) struct Chart<'a> {
    pub(crate) title: Value<'a>,
    /// A description in words, also for readers who cannot see it.
    pub(crate) says: Value<'a>,
    pub(crate) picture: Picture<'a>,
    /// Notes below it: who stands out, and what is not drawn.
    pub(crate) notes: Vec<Value<'a>>,
}

impl<'a> Chart<'a> {
    pub(crate) fn new(
        title: impl Into<Value<'a>>,
        says: impl Into<Value<'a>>,
        picture: Picture<'a>,
    ) -> Chart<'a> {
        Chart { title: title.into(), says: says.into(), picture, notes: Vec::new() }
    }

    pub(crate) fn noted(self, notes: Vec<Value<'a>>) -> Chart<'a> {
        Chart { notes, ..self }
    }
}

pub(crate) enum Picture<'a> {
    Bars(Bars<'a>),
    Ranks(Ranks<'a>),
    Tree(Vec<Node>),
    Histogram(HistogramChart),
    Matrix(Matrix),
    Bands(Bands),
    Spans(Spans<'a>),
    Curves(Curves<'a>),
    History(HistoryChart<'a>),
    Timeline(TimelineRows<'a>),
}

/// Bars with the same divisions, all on one scale.
pub(crate) struct Bars<'a> {
    pub(crate) keys: Vec<LegendKey<'a>>,
    pub(crate) bars: Vec<Bar<'a>>,
}

/// A part of each bar.
pub(crate) struct LegendKey<'a> {
    pub(crate) name: Value<'a>,
    /// Not the topic of the chart, such as the time outside MPI.
    pub(crate) is_background: bool,
}

impl LegendKey<'static> {
    /// The topic of a chart, and all else.
    pub(crate) fn pair(topic: &'static str, background: &'static str) -> Vec<LegendKey<'static>> {
        let key =
            |name: &'static str, is_background| LegendKey { name: name.into(), is_background };
        vec![key(topic, false), key(background, true)]
    }
}

pub(crate) struct Bar<'a> {
    /// Empty if there is only one bar.
    pub(crate) name: Value<'a>,
    /// One for each key.
    pub(crate) parts: Vec<Amount>,
}

/// Up to this many ranks or hosts, each one is named with its number.
pub(crate) const FEW: usize = 16;

/// One number of each rank, or of each host, the smallest first.
pub(crate) struct Ranks<'a> {
    pub(crate) unit: Unit,
    /// Bins of equally many ranks or hosts, but for rounding.
    pub(crate) bins: Vec<Bin<'a>>,
    pub(crate) mean: f64,
    pub(crate) largest: f64,
}

pub(crate) struct Bin<'a> {
    /// `rank 3 on n1`, or how many ranks there are.
    pub(crate) who: Value<'a>,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
    /// Whether one of them is far from the others.
    pub(crate) is_odd: bool,
}

/// A function, and what was called from it; the children add up to no more than its own time.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) time_s: f64,
    pub(crate) is_mpi: bool,
    /// The one with the most time first.
    pub(crate) children: Vec<Node>,
}

/// Classes that double in size, from the first that is not empty to the last.
pub(crate) struct HistogramChart {
    pub(crate) unit: Unit,
    /// From, below, and how many.
    pub(crate) bars: Vec<(f64, f64, u64)>,
    /// The eager limit, if it is known and within the classes.
    pub(crate) limit: Option<f64>,
}

/// An amount for each pair: a row and a column for each rank or host, or for each bin of them.
pub(crate) struct Matrix {
    pub(crate) unit: Unit,
    /// How many rows there are, and how many columns.
    pub(crate) side: usize,
    /// Row by row; in ns where the unit is seconds.
    pub(crate) cells: Vec<u64>,
    /// Which of the sentences says what a cell means, row by row.
    pub(crate) kinds: Vec<u8>,
    /// What each row and column stands for: a rank, several ranks, or a host.
    pub(crate) names: Vec<String>,
    pub(crate) words: MatrixWords,
}

#[derive(Clone, Copy)]
pub(crate) struct MatrixWords {
    /// What the rows are, and the columns: `senders`.
    pub(crate) rows: &'static str,
    pub(crate) columns: &'static str,
    /// What precedes the name of one in a sentence, such as `rank`; empty if the name is enough.
    pub(crate) noun: &'static str,
    /// What an empty cell means, for the legend.
    pub(crate) nothing: &'static str,
    /// What the cells of each kind mean, in pieces between bars: ROW, COLUMN and CELL stand for two names and the amount.
    pub(crate) sentences: &'static [&'static str],
}

/// Variables over the time of the run.
pub(crate) struct Bands {
    pub(crate) end_s: f64,
    pub(crate) bands: Vec<Band>,
}

/// One variable, in equal parts of the run.
#[derive(Clone)]
pub(crate) struct Band {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) object: Option<String>,
    pub(crate) ranks: u32,
    /// Least, mean and most over the ranks that read it in that part.
    pub(crate) parts: Vec<Option<[f64; 3]>>,
}

/// Stretches of one scale that includes 0: steps, or intervals.
pub(crate) struct Spans<'a> {
    pub(crate) unit: Unit,
    pub(crate) spans: Vec<Span<'a>>,
}

pub(crate) struct Span<'a> {
    pub(crate) name: Value<'a>,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// The most likely value in an interval; none for a step.
    pub(crate) estimate: Option<f64>,
    /// The text next to it.
    pub(crate) amount: Amount,
    pub(crate) direction: Direction,
}

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Less,
    More,
    /// The direction could be either.
    Unknown,
}

/// Numbers over sizes, both on logarithmic scales.
pub(crate) struct Curves<'a> {
    pub(crate) unit: Unit,
    /// The meaning of a size.
    pub(crate) by: Value<'a>,
    /// The last size on one node, if there are larger ones.
    pub(crate) boundary: Option<f64>,
    pub(crate) drawn: Vec<Curve<'a>>,
}

/// Measurements are points with the range over the ranks; a law is a line in a band.
pub(crate) struct Curve<'a> {
    pub(crate) name: Value<'a>,
    pub(crate) points: Vec<At>,
    pub(crate) is_measured: bool,
}

/// A number at a size, with its range.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) value: f64,
    pub(crate) high: f64,
}

/// What ranks did in a window of the run: a row for each, of equal cells of time.
pub(crate) struct TimelineRows<'a> {
    pub(crate) length_s: f64,
    /// How many cells a row has.
    pub(crate) cells: usize,
    pub(crate) rows: Vec<TimelineRow<'a>>,
    pub(crate) messages: Vec<MessageLine<'a>>,
}

pub(crate) struct TimelineRow<'a> {
    pub(crate) rank: u32,
    /// The row as a whole.
    pub(crate) says: Value<'a>,
    /// The part of the window of which it is known what the rank did.
    pub(crate) known: (f64, f64),
    /// In their order; what is between them is the program's own code.
    pub(crate) marks: Vec<TimelineMark<'a>>,
}

/// A call, or several.
pub(crate) struct TimelineMark<'a> {
    pub(crate) cells: Range<usize>,
    pub(crate) kind: MarkKind,
    pub(crate) name: Value<'a>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum MarkKind {
    /// It waits for another rank.
    Waiting,
    /// Functions that several ranks of a communicator call together.
    Collective,
    /// Any other function of MPI.
    OtherCall,
}

/// A message from one row to another one: the number of the row, and the part of the window that has passed.
pub(crate) struct MessageLine<'a> {
    pub(crate) from: (usize, f64),
    pub(crate) to: (usize, f64),
    pub(crate) name: Value<'a>,
}
