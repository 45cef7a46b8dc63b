//! Which law describes how a number grows with the size of a run? One term and a constant, `c0 + c p^i
//! log2(p)^j`, after Extra-P (Calotoiu, Hoefler, Poke and Wolf: Using Automated Performance Modeling to Find
//! Scalability Bugs in Complex Codes, SC13).
//!
//! Least squares of relative residuals: runs differ by a fraction of the number, and plain residuals would let
//! the largest size decide. A law is judged by its error at sizes that it was not fitted to. Of the laws that
//! fit equally well, the simplest is named, and the interval of a prediction spans them all. A constant is kept
//! unless a term is clearly better. Fewer than five sizes give only a slope.
//!
//! Not covered by a law: numbers that change direction, such as those that grow until a node is full and then
//! fall.

#[cfg(test)]
mod tests;

use gyan_results::{Fit, Growth, Predicted};

/// Extra-P's rule of thumb: with fewer, any law fits.
const SIZES_AT_LEAST: usize = 5;
/// A term must reduce the error of a constant to less than this fraction: then 3 of 100 series of five sizes
/// with nothing but noise get a law (measured by a test).
const CLEARLY_BETTER: f64 = 0.3;
/// Among laws whose error is within this factor of the least one, the simplest is named.
const AS_WELL: f64 = 1.3;
/// Laws whose error is within this factor may also be right, so the interval includes their predictions. With
/// 1.3 the interval contains the right number in 86 of 100 series of 6 sizes with a noise of 3 %.
const MAY_HOLD: f64 = 2.0;
/// The error of rounding.
const ROUNDING: f64 = 1e-9;
/// A law with a larger error says nothing, nor does one that is off by this factor, either way, at any size.
const IRREGULAR: f64 = 0.5;
const TIMES_OFF: f64 = 3.0;
/// A number below this fraction of the largest counts as that fraction, so that 0 has no infinite weight.
const LEAST_SCALE: f64 = 0.01;
/// Smaller steps are ignored, whatever the noise.
const LEAST_STEP: f64 = 0.05;

/// A term `p^exponent log2(p)^logarithms`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Term {
    exponent: f64,
    logarithms: i32,
}

const fn term(exponent: f64, logarithms: i32) -> Term {
    Term { exponent, logarithms }
}

/// The exponents of Extra-P, and their negatives for work that is divided among the ranks; the simplest first.
const WHOLE: [Term; 11] = [
    term(1.0, 0),
    term(0.0, 1),
    term(-1.0, 0),
    term(2.0, 0),
    term(1.0, 1),
    term(0.5, 0),
    term(-0.5, 0),
    term(0.0, 2),
    term(3.0, 0),
    term(1.5, 0),
    term(-2.0, 0),
];
const BROKEN: [f64; 15] = [
    1.0 / 3.0,
    2.0 / 3.0,
    0.25,
    0.75,
    -1.0 / 3.0,
    -2.0 / 3.0,
    -0.25,
    -0.75,
    4.0 / 3.0,
    5.0 / 4.0,
    5.0 / 3.0,
    7.0 / 4.0,
    2.5,
    7.0 / 3.0,
    8.0 / 3.0,
];
const WITH_LOGARITHMS: [f64; 8] = [1.0, 2.0, 0.5, 1.5, 3.0, 2.0 / 3.0, 1.0 / 3.0, 0.25];

fn terms() -> impl Iterator<Item = Term> {
    let broken = BROKEN.into_iter().map(|exponent| term(exponent, 0));
    let with = WITH_LOGARITHMS.into_iter().flat_map(|i| [term(i, 1), term(i, 2)]);
    WHOLE.into_iter().chain(broken).chain(with.filter(|term| !WHOLE.contains(term)))
}

impl Term {
    fn at(self, size: f64) -> f64 {
        libm::pow(size, self.exponent) * libm::log2(size).powi(self.logarithms)
    }
}

/// A measured number at a size.
pub(super) type Point = (f64, f64);

/// A constant, with or without a term, fitted to points.
struct Law {
    term: Option<Term>,
    constant: f64,
    coefficient: f64,
    /// The root mean square of the relative errors, with each point left out once.
    error: f64,
    /// The relative standard deviation of the residuals.
    noise: f64,
    /// The inverse of the weighted moments, for the error of predictions.
    inverse: [f64; 3],
    /// How many more points there are than coefficients.
    freedom: usize,
}

impl Law {
    /// None when the term is the same at every size.
    fn fitted(points: &[Point], term: Option<Term>) -> Option<Law> {
        let largest = points.iter().fold(0.0_f64, |most, point| most.max(point.1.abs()));
        let scale = |value: f64| value.abs().max(LEAST_SCALE * largest);
        let x = |size: f64| term.map_or(0.0, |term| term.at(size));
        let (mut w, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(size, y) in points {
            let (weight, x) = (scale(y).powi(-2), x(size));
            w += weight;
            wx += weight * x;
            wxx += weight * x * x;
            wy += weight * y;
            wxy += weight * x * y;
        }
        let determinant = w * wxx - wx * wx;
        let inverse = match term {
            None => [1.0 / w, 0.0, 0.0],
            Some(_) if determinant <= w * wxx * 1e-12 => return None,
            Some(_) => [wxx / determinant, -wx / determinant, w / determinant],
        };
        let constant = inverse[0] * wy + inverse[1] * wxy;
        let coefficient = inverse[1] * wy + inverse[2] * wxy;
        let freedom = points.len().checked_sub(if term.is_some() { 2 } else { 1 })?;
        let (mut left_out, mut residuals) = (0.0, 0.0);
        for &(size, y) in points {
            let x = x(size);
            let residual = (y - constant - coefficient * x) / scale(y);
            let leverage =
                (inverse[0] + 2.0 * x * inverse[1] + x * x * inverse[2]) * scale(y).powi(-2);
            // Without the point (Allen 1974).
            left_out += (residual / (1.0 - leverage).max(ROUNDING)).powi(2);
            residuals += residual * residual;
        }
        let error = (left_out / points.len() as f64).sqrt();
        // Coefficients of counts are whole, but for rounding.
        let whole = |value: f64| {
            let near = value.round();
            if (value - near).abs() <= ROUNDING * largest { near } else { value }
        };
        let (constant, coefficient) = if error < ROUNDING {
            (whole(constant), whole(coefficient))
        } else {
            (constant, coefficient)
        };
        let noise = (residuals / freedom.max(1) as f64).sqrt();
        error.is_finite().then_some(Law {
            term,
            constant,
            coefficient,
            error,
            noise,
            inverse,
            freedom,
        })
    }

    fn at(&self, size: f64) -> f64 {
        self.constant + self.coefficient * self.term.map_or(0.0, |term| term.at(size))
    }

    /// Whether it is several times too high or too low at a size; numbers that are near 0 compared with the
    /// others do not count.
    fn is_far_off(&self, points: &[Point], outlier: Option<f64>) -> bool {
        let largest = points.iter().fold(0.0_f64, |most, point| most.max(point.1.abs()));
        points.iter().filter(|point| Some(point.0) != outlier).any(|&(size, value)| {
            let (one, other) = (self.at(size).abs(), value.abs());
            one.max(other) > TIMES_OFF * one.min(other).max(LEAST_SCALE * largest)
        })
    }

    /// With the interval of a new measurement.
    fn predicted(&self, size: f64) -> Predicted {
        let (value, x) = (self.at(size), self.term.map_or(0.0, |term| term.at(size)));
        let [a, b, c] = self.inverse;
        let variance = value * value + (a + 2.0 * x * b + x * x * c).max(0.0);
        let half = student(self.freedom) * self.noise * variance.sqrt();
        Predicted { size, value, low: value - half, high: value + half }
    }

    fn growth(&self) -> Growth {
        let (constant, coefficient) = (self.constant, self.coefficient);
        match self.term {
            None => Growth::Constant { value: constant },
            Some(Term { exponent, logarithms }) => {
                Growth::Law { constant, coefficient, exponent, logarithms }
            }
        }
    }
}

/// The 0.975 quantile of Student's t: 95 % on both sides.
fn student(freedom: usize) -> f64 {
    const FIRST: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let later = 1.96 + 2.68 / freedom.max(1) as f64;
    FIRST.get(freedom.saturating_sub(1)).copied().unwrap_or(later)
}

/// How numbers at sizes above 0, the smallest first, grow, and what that predicts for `target`. Steps smaller
/// than `noise`, a fraction of the number, are ignored.
pub(super) fn fit(points: &[Point], noise: f64, target: f64) -> Fit {
    let of =
        |growth| Fit { growth, error: None, outlier: None, predicted: None, curve: Vec::new() };
    if points.iter().all(|point| point.1 == 0.0) {
        return of(Growth::Zero);
    }
    let mut laws = laws(points, noise);
    let error = laws.first().map_or(f64::INFINITY, |law| law.error);
    let mut outlier = None;
    if let Some((at, without)) = without_outlier(points, noise, error) {
        outlier = Some(points[at].0);
        laws = without;
    } else if error > step(noise)
        && let Some(bend) = bend(points, noise)
    {
        return of(bend);
    }
    let Some(law) = laws.first() else {
        return of(Growth::Slope { slope: slope(points) });
    };
    if law.error > IRREGULAR || law.is_far_off(points, outlier) {
        return of(Growth::Irregular);
    }
    let floor = if points.iter().all(|point| point.1 >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    let spanned = |size: f64| {
        let first = law.predicted(size);
        let ends = laws.iter().map(|law| law.predicted(size));
        let (low, high) = ends.fold((first.low, first.high), |(low, high), other| {
            (low.min(other.low), high.max(other.high))
        });
        let value = first.value.max(floor);
        Predicted { value, low: low.max(floor), high: high.max(value), ..first }
    };
    Fit {
        growth: law.growth(),
        error: Some(law.error),
        outlier,
        predicted: Some(spanned(target)),
        curve: sizes_to(points, target).into_iter().map(spanned).collect(),
    }
}

/// The best guess for `target`, even without a law, to sort rows by importance.
pub(super) fn expected(fit: &Fit, points: &[Point], target: f64) -> f64 {
    let Some(&(size, last)) = points.last() else { return 0.0 };
    let by = |slope: Option<f64>| last * libm::pow(target / size, slope.unwrap_or(0.0));
    match (fit.predicted, fit.growth) {
        (Some(predicted), _) => predicted.value,
        (None, Growth::Slope { slope } | Growth::Bend { after: slope, .. }) => by(slope),
        (None, _) => last,
    }
}

/// The sizes, continued by factors of two up to the target.
fn sizes_to(points: &[Point], target: f64) -> Vec<f64> {
    let mut sizes: Vec<f64> = points.iter().map(|point| point.0).collect();
    while let Some(&last) = sizes.last().filter(|&&last| last < target) {
        sizes.push((last * 2.0).min(target));
    }
    sizes
}

/// The law that is named, and those that fit equally well; none for too few sizes.
fn laws(points: &[Point], noise: f64) -> Vec<Law> {
    if points.len() < SIZES_AT_LEAST {
        return Vec::new();
    }
    let constant = Law::fitted(points, None);
    let mut laws: Vec<Law> = terms().filter_map(|term| Law::fitted(points, Some(term))).collect();
    let least = laws.iter().fold(f64::INFINITY, |least, law| least.min(law.error)).max(ROUNDING);
    laws.retain(|law| law.error <= MAY_HOLD * least);
    // The simplest of them first.
    if let Some(named) = laws.iter().position(|law| law.error <= AS_WELL * least) {
        laws.swap(0, named);
    }
    match constant {
        Some(constant) if least > CLEARLY_BETTER * constant.error || constant.error <= noise => {
            vec![constant]
        }
        _ => laws,
    }
}

/// A size, neither first nor last, whose number is far from the law that all others follow, and that law.
fn without_outlier(points: &[Point], noise: f64, error: f64) -> Option<(usize, Vec<Law>)> {
    if points.len() <= SIZES_AT_LEAST || error <= step(noise) {
        return None;
    }
    let without = |at: usize| {
        let mut others = points.to_vec();
        let (size, value) = others.remove(at);
        let laws = laws(&others, noise);
        let law = laws.first()?;
        let off = (value - law.at(size)).abs() / law.at(size).abs();
        let is_far =
            off > (5.0 * law.error).max(0.25) && law.error < (0.2 * error).min(step(noise));
        is_far.then_some((at, laws))
    };
    let mut found: Vec<(usize, Vec<Law>)> = (1..points.len() - 1).filter_map(without).collect();
    // If two are, neither is an outlier.
    if found.len() == 1 { found.pop() } else { None }
}

/// The fraction by which a number must change to count as rising or falling.
fn step(noise: f64) -> f64 {
    (2.0 * noise).max(LEAST_STEP)
}

/// A number that rises up to a size and then falls or stays, or falls and then rises or stays.
fn bend(points: &[Point], noise: f64) -> Option<Growth> {
    let step = step(noise);
    let differs = |a: f64, b: f64| (b - a).abs() > step * a.abs().max(b.abs());
    let turn = |rises: bool| {
        let ahead = |a: f64, b: f64| if rises { b > a } else { b < a };
        let goes = |part: &[Point], forth: bool| {
            part.windows(2).all(|two| {
                let (a, b) = (two[0].1, two[1].1);
                !differs(a, b) || ahead(a, b) == forth
            })
        };
        let is_bend = |at: usize| {
            let (before, after) = (&points[..=at], &points[at..]);
            let (first, knee, last) = (points[0].1, points[at].1, after.last()?.1);
            let clearly = |a: f64, b: f64| (b - a).abs() > 2.0 * step * a.abs().max(b.abs());
            let moves = clearly(first, knee) && ahead(first, knee) && goes(before, true);
            let stays = after.len() > 2 && after.iter().all(|point| !differs(knee, point.1));
            let turns = goes(after, false) && clearly(knee, last) && ahead(last, knee);
            // A curve that flattens out has no knee.
            let is_sharp = slope(&points[at - 1..=at]).is_none_or(|slope| slope.abs() >= 0.4);
            let found = moves && (turns || (stays && is_sharp));
            found.then(|| Growth::Bend {
                until: points[at].0,
                before: slope(before),
                after: slope(after),
                rises,
                stays: !turns,
            })
        };
        let extreme = |at: &usize| points.iter().all(|other| !ahead(points[*at].1, other.1));
        let inner = 2..points.len().saturating_sub(1);
        // It turns at the extreme, and begins to stay at the first number that all later ones resemble.
        let turned = inner.clone().find(extreme).and_then(is_bend);
        turned.or_else(|| inner.clone().find_map(is_bend))
    };
    turn(true).or_else(|| turn(false))
}

/// The slope on logarithmic scales, by least squares; none when a number is 0 or below.
fn slope(points: &[Point]) -> Option<f64> {
    let n = points.len() as f64;
    let logarithms: Option<Vec<Point>> = points
        .iter()
        .map(|&(size, value)| (value > 0.0).then(|| (libm::log2(size), libm::log2(value))))
        .collect();
    let logarithms = logarithms?;
    let mean = |of: fn(&Point) -> f64| logarithms.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let squares: f64 = logarithms.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f64 = logarithms.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (squares > 0.0).then(|| products / squares)
}
