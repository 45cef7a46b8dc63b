//! The content of a cell, a title or a remark, before any formatting: a number with its unit, its error and how
//! well it is known, a rank, a text, or a sentence of these. Rounding and layout are up to the renderers.

use std::borrow::Cow;

use gyan_results::{Fidelity, Number, Statistic, Unit};

/// Something to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value<'a> {
    /// Not known, or does not apply.
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Amount(Amount),
    Rank(u32),
    Ranks(Cow<'a, [u32]>),
    /// Parts that are joined without a gap.
    Line(Vec<Value<'a>>),
    /// A labelled fact.
    Fact(&'static str, Box<Value<'a>>),
    /// A text that leads to a file beside the page, or to a part of it.
    Link(Cow<'a, str>, String),
    /// The rest of the line is this many steps below the root of a tree.
    Indent(usize),
    Plot(Plot<'a>),
}

/// A number of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Amount {
    pub(crate) number: Number,
    pub(crate) unit: Unit,
    pub(crate) fidelity: Fidelity,
    /// The standard error, in the same unit; none when it is not known, or there is none.
    pub(crate) error: Option<f64>,
    /// On which side the number may be wrong by an unknown amount.
    pub(crate) bound: Bound,
    pub(crate) rank: Option<u32>,
    /// A difference between two numbers, shown with its sign.
    pub(crate) is_change: bool,
}

/// How a number whose error is not known relates to the true one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Bound {
    /// The number is exact, or its error is stated.
    #[default]
    None,
    AtLeast,
    AtMost,
    About,
}

impl Bound {
    /// The sign before the number.
    pub(crate) fn sign(self) -> Option<&'static str> {
        match self {
            Bound::None => None,
            Bound::AtLeast => Some("≥"),
            Bound::AtMost => Some("≤"),
            Bound::About => Some("~"),
        }
    }
}

/// A number that is shown as a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plot<'a> {
    /// A bar as long as a part of the longest one.
    Bar { part: u64, longest: u64 },
    /// The height of readings in equal parts of the run; none where there was no reading.
    Course { peaks: Cow<'a, [Option<f64>]>, highest: f64 },
    /// The time axis below courses of this many parts.
    Axis { end_s: f64, parts: usize },
}

pub(crate) trait InUnit: Sized {
    fn amount(self, number: Number) -> Amount;

    fn double(self, double: f64) -> Amount {
        self.amount(Number::Double(double))
    }

    /// Minimum and maximum, each with its rank.
    fn extremes(self, statistic: &Statistic) -> [Amount; 2];
}

impl InUnit for Unit {
    fn amount(self, number: Number) -> Amount {
        let (fidelity, error, rank) = (Fidelity::Exact, None, None);
        let bound = Bound::None;
        Amount { number, unit: self, fidelity, error, bound, rank, is_change: false }
    }

    fn extremes(self, statistic: &Statistic) -> [Amount; 2] {
        let (min, max) = (self.amount(statistic.min), self.amount(statistic.max));
        [min.on(statistic.min_rank), max.on(statistic.max_rank)]
    }
}

impl Amount {
    pub(crate) fn on(self, rank: u32) -> Amount {
        Amount { rank: Some(rank), ..self }
    }

    /// A change, with its sign.
    pub(crate) fn as_change(self) -> Amount {
        Amount { is_change: true, ..self }
    }

    pub(crate) fn known(self, fidelity: Fidelity) -> Amount {
        Amount { fidelity, ..self }
    }

    /// An estimate with this standard error; an error of 0 counts as none. Without an error, or with one above
    /// half of the number, it is shown as a lower bound.
    pub(crate) fn estimated(self, error: Option<f64>) -> Amount {
        let is_exact = error == Some(0.0) || self.number.is_zero();
        let fidelity = if is_exact { Fidelity::Exact } else { Fidelity::Estimated };
        // With such an error, more cannot be said.
        let says_little = |error: f64| error > 0.5 * self.number.as_f64().abs();
        let at_least = !is_exact && error.is_none_or(says_little);
        let error = error.filter(|_| !is_exact && !at_least);
        let bound = if at_least { Bound::AtLeast } else { Bound::None };
        Amount { fidelity, error, bound, ..self }
    }

    /// The same for a sampled part of a whole, which without an error could be either too small or too large.
    pub(crate) fn estimated_part(self, error: Option<f64>) -> Amount {
        self.estimated(error).bounded_by(Bound::About)
    }

    /// The same for what an estimate leaves of a whole: the more it may be, the less is left.
    pub(crate) fn estimated_rest(self, error: Option<f64>) -> Amount {
        self.estimated(error).bounded_by(Bound::AtMost)
    }

    /// With this bound in place of the one that it has, if it has one.
    fn bounded_by(self, bound: Bound) -> Amount {
        Amount { bound: if self.bound == Bound::None { Bound::None } else { bound }, ..self }
    }
}

pub(crate) fn seconds(seconds: f64) -> Amount {
    Unit::Seconds.double(seconds)
}

pub(crate) fn bytes(bytes: f64) -> Amount {
    Unit::Bytes.double(bytes)
}

pub(crate) fn share(share: f64) -> Amount {
    Unit::Share.double(share)
}

pub(crate) fn integer(integer: impl Into<i128>) -> Amount {
    Unit::Count.amount(Number::Integer(integer.into()))
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Value<'a> {
        text.as_str().into()
    }
}

/// `Value::from` for types without a lifetime.
macro_rules! from {
    ($($type:ty: $value:ident => $made:expr),+ $(,)?) => { $(
        impl From<$type> for Value<'_> {
            fn from($value: $type) -> Self {
                $made
            }
        }
    )+ };
}

from! {
    String: text => Value::Text(Cow::Owned(text)),
    Amount: amount => Value::Amount(amount),
    Number: number => Value::Amount(Unit::Count.amount(number)),
    f64: double => Number::Double(double).into(),
    u64: integer => Number::Integer(integer.into()).into(),
    usize: integer => (integer as u64).into(),
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Value<'a> {
        Value::Text(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Nothing, Into::into)
    }
}

macro_rules! cells {
    ($($cell:expr),+ $(,)?) => { [$($crate::document::value::Value::from($cell)),+] };
}

macro_rules! row {
    ($($cell:expr),+ $(,)?) => { Vec::from($crate::document::value::cells![$($cell),+]) };
}

macro_rules! line {
    ($($part:expr),+ $(,)?) => { $crate::document::value::Value::Line($crate::document::value::row![$($part),+]) };
}

pub(crate) use {cells, line, row};
