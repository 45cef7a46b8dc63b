//! Is it different? The one answer that `gyan diff`, `gyan check` and `gyan tune` give of numbers that differ from run to run.
//!
//! Only the order of the runs counts: when nothing changed, every order is equally likely, whatever the distribution of run
//! times. By chance the new runs are the slowest of all in one of C(n + m, m) cases, so a test without assumptions needs several
//! runs of each. What so few runs could not have shown is not judged, and nothing is said of it but how many runs it takes. A
//! limit for one more run from a few baselines (Hahn and Meeker, Statistical Intervals, chapter 4) assumes that run times are
//! log-normal. On a busy machine they are not: of 100 checks of one run against 5 or 10 baselines of the same program 7 and 8
//! failed at 5 %.
//!
//! It deliberately knows nothing of counts, which need no test, nor of how large a difference has to be to matter.

use gyan_results::Shift;

use crate::statistics::{ALPHA, Sides, holm, least_p, mann_whitney, shift};

/// Nobody makes more runs than this of each side.
const RUNS_AT_MOST: usize = 100;

/// One row of a family: the numbers of the runs on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FamilyRow<'a> {
    pub(crate) a: &'a [f64],
    pub(crate) b: &'a [f64],
    /// Whether any of them is only a lower bound, or is made of one: then nothing is said of the row.
    pub(crate) is_bound: bool,
}

/// Whether a row is different.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// By more than chance.
    Yes,
    /// The runs could have shown it, and do not.
    NotShown,
    /// Not judged: the runs could not have shown it, whatever they took. It takes this many of each side; none where that is
    /// out of reach.
    TooFew(Option<usize>),
    /// Not judged: the numbers are lower bounds.
    Bound,
}

/// What is said of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// How far `b` is from `a`; none with a single run on a side, or of lower bounds.
    pub(crate) shift: Option<Shift>,
    /// The probability that chance makes a row differ as much; none where it is not judged.
    pub(crate) p: Option<f64>,
    /// The probability that it makes any row of the family do so.
    pub(crate) p_adjusted: Option<f64>,
    pub(crate) answer: Answer,
}

/// Judges the rows of a family: of [`ALPHA`] of all families in which nothing changed, some row is [`Answer::Yes`].
pub(crate) fn judge(family: &[FamilyRow], sides: Sides) -> Vec<Judged> {
    judge_with_looks(family, sides, 1)
}

/// The same for numbers that were looked at this many times while they were made, to decide on more of them.
pub(crate) fn judge_with_looks(family: &[FamilyRow], sides: Sides, looks: usize) -> Vec<Judged> {
    let is_tested = |row: &&FamilyRow| !row.is_bound && row.a.len().min(row.b.len()) > 0;
    let tests = family.iter().filter(is_tested).count();
    let size = tests.max(1) * looks;
    let p_of = |row: &FamilyRow| {
        let p = Some(row).filter(is_tested).and_then(|row| mann_whitney(row.a, row.b, sides))?;
        Some((p * looks as f64).min(1.0))
    };
    let p: Vec<Option<f64>> = family.iter().map(p_of).collect();
    let known: Vec<f64> = p.iter().copied().flatten().collect();
    let mut adjusted = holm(&known).into_iter();
    let judged = |(row, p): (&FamilyRow, Option<f64>)| {
        let p_adjusted = p.and_then(|_| adjusted.next());
        let answer = match p_adjusted {
            None if row.is_bound => Answer::Bound,
            Some(p) if p <= ALPHA => Answer::Yes,
            _ if could_show(row.a.len(), row.b.len(), sides, size) => Answer::NotShown,
            _ => Answer::TooFew(runs_of_each(sides, size)),
        };
        let has_shift = !row.is_bound && row.a.len().min(row.b.len()) > 1;
        let is_judged = matches!(answer, Answer::Yes | Answer::NotShown);
        let p = p.map(|p| p / looks as f64);
        Judged {
            shift: has_shift.then(|| shift(row.a, row.b)).flatten(),
            p: p.filter(|_| is_judged),
            p_adjusted: p_adjusted.filter(|_| is_judged),
            answer,
        }
    };
    family.iter().zip(p).map(judged).collect()
}

/// Whether so many runs can show a difference of one row in a family of this many tests.
pub(crate) fn could_show(a: usize, b: usize, sides: Sides, family: usize) -> bool {
    a.min(b) > 0 && family as f64 * least_p(a, b, sides) <= ALPHA
}

pub(crate) fn runs_of_each(sides: Sides, family: usize) -> Option<usize> {
    (2..=RUNS_AT_MOST).find(|runs| could_show(*runs, *runs, sides, family))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(a: &'a [f64], b: &'a [f64]) -> FamilyRow<'a> {
        FamilyRow { a, b, is_bound: false }
    }

    fn answers(family: &[FamilyRow], sides: Sides) -> Vec<Answer> {
        judge(family, sides).iter().map(|of| of.answer).collect()
    }

    const A: [f64; 8] = [1.0, 1.1, 1.2, 1.3, 1.05, 1.15, 1.25, 1.35];
    const SLOWER: [f64; 4] = [2.0, 2.1, 2.2, 2.3];

    #[test]
    fn one_of_two_times_that_only_may_not_grow_can_fail_at_each_documented_number_of_runs() {
        for (a, b) in [(4, 4), (5, 3), (8, 2)] {
            let (before, now) = (&A[..a], &SLOWER[..b]);
            let same = row(before, &A[..b]);
            let answer = answers(&[row(before, now), same], Sides::Larger);
            assert_eq!(answer, [Answer::Yes, Answer::NotShown], "{a} and {b}");
            // Which a two-sided test of two could not.
            assert!(!could_show(a, b, Sides::Both, 2), "{a} and {b}");
        }
    }

    #[test]
    fn what_the_runs_could_not_show_is_not_judged_and_it_is_said_how_many_it_takes() {
        let (a, b) = (&A[..3], &SLOWER[..3]);
        let judged = judge(&[row(a, b)], Sides::Both)[0];
        assert_eq!(judged.answer, Answer::TooFew(Some(4)));
        assert_eq!((judged.p, judged.p_adjusted), (None, None));
        assert!(judged.shift.is_some());
        // Neither that they overlap is a result.
        assert_eq!(answers(&[row(a, a)], Sides::Both), [Answer::TooFew(Some(4))]);
        let four = row(&A[..4], &SLOWER);
        assert_eq!(answers(&[four], Sides::Both), [Answer::Yes]);
        assert_eq!(answers(&[four; 6], Sides::Both), [Answer::TooFew(Some(5)); 6]);
        for (family, runs) in [(1, 4), (2, 5), (6, 5), (7, 6), (23, 6), (24, 7)] {
            assert_eq!(runs_of_each(Sides::Both, family), Some(runs), "{family}");
        }
        assert_eq!(answers(&[row(&[], b)], Sides::Both), [Answer::TooFew(Some(4))]);
    }

    #[test]
    fn a_lower_bound_is_not_judged_and_takes_nothing_from_the_others() {
        let rows = [row(&A[..4], &SLOWER), FamilyRow { is_bound: true, ..row(&A[..4], &SLOWER) }];
        let judged = judge(&rows, Sides::Both);
        assert_eq!([judged[0].answer, judged[1].answer], [Answer::Yes, Answer::Bound]);
        assert!(judged[1].shift.is_none() && judged[1].p.is_none());
    }

    #[test]
    fn each_look_at_the_numbers_counts() {
        let rows = [row(&A[..4], &SLOWER)];
        let judged = judge_with_looks(&rows, Sides::Both, 2);
        assert_eq!(judged[0].answer, Answer::TooFew(Some(5)));
        let rows = [row(&A, &SLOWER)];
        let of = judge_with_looks(&rows, Sides::Both, 3)[0];
        assert!((of.p_adjusted.unwrap() - 3.0 * of.p.unwrap()).abs() < 1e-12);
    }
}
