//! Numbers in an order, such as those of the commits of a program.

use std::ops::{Range, RangeInclusive};

use gyan_results::Unit;

use crate::document::value::Value;

/// The numbers of one or several quantities at each place.
pub(crate) struct HistoryChart<'a> {
    pub(crate) unit: Unit,
    /// What each place is, such as a commit.
    pub(crate) places: Vec<HistoryPlace<'a>>,
    pub(crate) courses: Vec<HistoryCourse<'a>>,
    /// Numbers that hold for a stretch of places.
    pub(crate) levels: Vec<(Range<usize>, f64)>,
    /// The first place after each change, and where that may be.
    pub(crate) changes: Vec<(usize, RangeInclusive<usize>)>,
}

pub(crate) struct HistoryPlace<'a> {
    pub(crate) name: Value<'a>,
    /// What a point at this place leads to.
    pub(crate) link: Option<String>,
}

/// A quantity: least, middle and largest number at each place; none where there is no number.
pub(crate) struct HistoryCourse<'a> {
    pub(crate) name: Value<'a>,
    pub(crate) points: Vec<Option<[f64; 3]>>,
}
