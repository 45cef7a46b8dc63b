//! Properties of all numbers and all files, tested on random ones: the merge of statistics, the
//! differences of readings, and (`profiles`) whole profiles and what is made of them.

mod profiles;

use proptest::prelude::*;

use crate::{
    Class, Datatype, Measure, Metric, Number, Statistic, Statistics, Values, add_histogram,
};

/// An integer that a variable can hold; the ends of the ranges come more often than by chance.
fn integer() -> impl Strategy<Value = i128> {
    prop_oneof![
        4 => -100_i128..100,
        2 => any::<i64>().prop_map(i128::from),
        2 => any::<u64>().prop_map(i128::from),
        1 => Just(i128::from(i64::MIN)),
        1 => Just(i128::from(u64::MAX)),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        3 => integer().prop_map(Number::Integer),
        3 => (-1e6..1e6).prop_map(Number::Double),
        1 => Just(Number::Double(f64::NAN)),
        1 => Just(Number::Double(-f64::NAN)),
        1 => Just(Number::Double(f64::INFINITY)),
        1 => Just(Number::Double(f64::NEG_INFINITY)),
        1 => Just(Number::Double(-0.0)),
        1 => Just(Number::Double(9_007_199_254_740_992.0)),
        1 => Just(Number::Integer(9_007_199_254_740_993)),
    ]
}

/// Ranks with a value each.
type RankValues<T> = Vec<(u32, T)>;

/// Ranks in two orders, and where to cut the second.
fn in_two_orders<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = (RankValues<T>, RankValues<T>, usize)> {
    proptest::collection::vec(value, 1..40).prop_flat_map(|values| {
        let ranks: RankValues<T> = (0..).zip(values).collect();
        let cut = 0..=ranks.len();
        (Just(ranks.clone()), Just(ranks).prop_shuffle(), cut)
    })
}

fn one_by_one(values: &[(u32, Number)]) -> Statistics {
    let mut statistics = Statistics::default();
    for &(rank, value) in values {
        statistics.add(value, rank);
    }
    statistics
}

/// Equal except for the rounding of doubles.
fn are_alike(one: &Statistic, other: &Statistic) -> Result<(), TestCaseError> {
    let without_doubles = |statistic: &Statistic| {
        let sum = match statistic.sum {
            Number::Integer(sum) => Some(sum),
            Number::Double(_) => None,
        };
        let min = (statistic.min, statistic.min_rank);
        (min, (statistic.max, statistic.max_rank), statistic.ranks, statistic.not_finite, sum)
    };
    prop_assert_eq!(without_doubles(one), without_doubles(other));
    // Rounding errors are relative to the numbers that were added, not to the result.
    let scale = one.min.as_f64().abs().max(one.max.as_f64().abs()).max(1.0) * one.ranks as f64;
    for (one, other) in [
        (one.avg, other.avg),
        (one.sum.as_f64(), other.sum.as_f64()),
        (one.stddev / 1e6, other.stddev / 1e6),
    ] {
        prop_assert!((one - other).abs() <= scale * 1e-12, "{one} is not {other}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn neither_order_nor_grouping_of_ranks_matters(
        (ranks, shuffled, cut) in in_two_orders(number()),
    ) {
        let whole = one_by_one(&ranks);
        let (first, second) = shuffled.split_at(cut);
        let mut parts = one_by_one(first);
        parts.merge(&one_by_one(second));
        prop_assert_eq!(whole.ranks(), ranks.len() as u64);
        match (whole.finish(), parts.finish()) {
            (Some(whole), Some(parts)) => are_alike(&whole, &parts)?,
            (whole, parts) => prop_assert_eq!(whole, parts),
        }
    }

    #[test]
    fn what_is_not_finite_is_counted_and_changes_nothing_else(
        (ranks, _, _) in in_two_orders(number()),
    ) {
        let finite: Vec<_> = ranks.iter().copied().filter(|(_, n)| n.is_finite()).collect();
        let not_finite = (ranks.len() - finite.len()) as u64;
        let (all, finite) = (one_by_one(&ranks).finish(), one_by_one(&finite).finish());
        let Some(mut all) = all else {
            prop_assert_eq!(finite, None);
            return Ok(());
        };
        prop_assert_eq!(all.not_finite, not_finite);
        all.ranks -= not_finite;
        all.not_finite = 0;
        prop_assert_eq!(Some(all), finite);
    }

    #[test]
    fn sums_of_integers_are_exact((ranks, shuffled, _) in in_two_orders(integer())) {
        let exact: i128 = ranks.iter().map(|(_, value)| value).sum();
        let numbers: Vec<_> = shuffled.iter().map(|&(rank, n)| (rank, Number::Integer(n))).collect();
        prop_assert_eq!(one_by_one(&numbers).finish().unwrap().sum, Number::Integer(exact));
    }

    #[test]
    fn a_sum_beyond_128_bits_is_the_nearest_double(a in any::<i128>(), b in any::<i128>()) {
        let expected = a.checked_add(b).map_or(Number::Double(a as f64 + b as f64), Number::Integer);
        prop_assert_eq!(Number::Integer(a).plus(Number::Integer(b)), expected);
    }

    #[test]
    fn comparing_is_an_order(a in number(), b in number(), c in number()) {
        prop_assert_eq!(a.compare(b), b.compare(a).reverse());
        if a.compare(b).is_le() && b.compare(c).is_le() {
            prop_assert!(a.compare(c).is_le(), "{a} <= {b} <= {c}");
        }
    }

    #[test]
    fn histograms_add_up_in_any_order_and_never_overflow(
        (ranks, shuffled, _) in in_two_orders(proptest::collection::vec(
            prop_oneof![0_u64..10, Just(u64::MAX)], 0..6,
        )),
    ) {
        let total = |ranks: &[(u32, Vec<u64>)]| {
            let mut total = Vec::new();
            for (_, bars) in ranks {
                add_histogram(&mut total, bars);
            }
            total
        };
        let bars = total(&ranks);
        prop_assert_eq!(&bars, &total(&shuffled));
        for (at, &bar) in bars.iter().enumerate() {
            let of = ranks.iter().filter_map(|(_, bars)| bars.get(at));
            prop_assert_eq!(bar, of.fold(0_u64, |sum, bar| sum.saturating_add(*bar)));
        }
    }

    #[test]
    fn a_difference_is_what_was_added_however_often_that_wrapped(
        datatype in proptest::sample::select(Datatype::ALL.as_slice()),
        start in any::<[u8; 8]>(),
        added in any::<[u8; 8]>(),
    ) {
        prop_assume!(datatype != Datatype::Double);
        let width = datatype.size();
        let sum = u64::from_ne_bytes(start).wrapping_add(u64::from_ne_bytes(added)).to_ne_bytes();
        // The low bytes of the sum are the sum of the low bytes.
        prop_assume!(cfg!(target_endian = "little"));
        let difference = Values::difference(datatype, &start[..width], &sum[..width], 1);
        let expected = datatype.decode(&added[..width]).unwrap();
        prop_assert_eq!(difference, Values::Elements(vec![expected]));
    }

    #[test]
    fn a_difference_takes_what_both_readings_have(
        datatype in proptest::sample::select(Datatype::ALL.as_slice()),
        start in proptest::collection::vec(any::<u8>(), 0..70),
        end in proptest::collection::vec(any::<u8>(), 0..70),
        limit in 0_usize..8,
    ) {
        let elements = start.len().min(end.len()) / datatype.size();
        match Values::difference(datatype, &start, &end, limit) {
            Values::Elements(kept) => prop_assert_eq!(kept.len(), elements),
            Values::Digest(digest) => prop_assert_eq!(digest.count, elements),
            Values::Text(text) => prop_assert!(false, "{text}"),
        }
    }
}

#[test]
fn names_are_those_of_the_files() {
    for class in Class::ALL {
        assert_eq!(serde_json::to_string(&class).unwrap(), format!("{:?}", class.name()));
    }
    for metric in Metric::ALL {
        assert_eq!(serde_json::to_string(&metric).unwrap(), format!("{:?}", metric.name()));
    }
    for measure in [Measure::Delta, Measure::SampledMin] {
        assert_eq!(serde_json::to_string(&measure).unwrap(), format!("{:?}", measure.name()));
    }
}
