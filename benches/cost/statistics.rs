//! What do the numbers of all rounds say? Medians, because a disturbed run can take any time; and quartiles,
//! which show how much the machine disturbs.

use serde::Serialize;

use super::measurements::Better;

/// Median and quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) low_quartile: f64,
    pub(super) median: f64,
    pub(super) high_quartile: f64,
}

/// For numbers in any order; none when there are none.
pub(super) fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    // Interpolates between two numbers if none is exactly at the quarter.
    let at = |quarter: usize| {
        let (below, part) = (last * quarter / 4, (last * quarter % 4) as f64 / 4.0);
        let above = (below + 1).min(last);
        sorted[below] * (1.0 - part) + sorted[above] * part
    };
    Some(Spread { low_quartile: at(1), median: at(2), high_quartile: at(3) })
}

/// How a mode compares with another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Comparison {
    /// The difference of the medians, in the unit of the figure.
    pub(super) difference: f64,
    /// The ratio of the medians: how much more it costs, above 1 if dearer, whichever number is better.
    pub(super) ratio: f64,
    /// The same round by round: the two runs of a round are close in time, so slow changes of the machine
    /// cancel out. Its quartiles are the noise.
    pub(super) ratios: Spread,
}

/// Compares `values` with `base`, round by round.
pub(super) fn comparison(base: &[f64], values: &[f64], better: Better) -> Option<Comparison> {
    let cost = |base: f64, value: f64| match better {
        Better::Lower => value / base,
        Better::Higher => base / value,
    };
    let (of_base, of_values) = (spread(base)?, spread(values)?);
    let ratios: Vec<f64> =
        base.iter().zip(values).map(|(&base, &value)| cost(base, value)).collect();
    Some(Comparison {
        difference: of_values.median - of_base.median,
        ratio: cost(of_base.median, of_values.median),
        ratios: spread(&ratios)?,
    })
}
