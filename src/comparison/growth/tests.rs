use super::*;

const SIZES: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Noise with a standard deviation of 1, the same in each run of the tests.
struct Noise(u64);

impl Noise {
    /// The sum of twelve numbers from 0 to 1 is about normal.
    fn next(&mut self) -> f64 {
        let one = |of: &mut Noise| {
            of.0 =
                of.0.wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
            (of.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| one(self)).sum::<f64>() - 6.0
    }
}

fn points(sizes: &[f64], of: impl Fn(f64) -> f64) -> Vec<Point> {
    sizes.iter().map(|&size| (size, of(size))).collect()
}

fn noisy(sizes: &[f64], noise: &mut Noise, part: f64, of: impl Fn(f64) -> f64) -> Vec<Point> {
    sizes.iter().map(|&size| (size, of(size) * (1.0 + part * noise.next()))).collect()
}

fn law(fit: &Fit) -> (f64, i32) {
    match fit.growth {
        Growth::Law { exponent, logarithms, .. } => (exponent, logarithms),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn exact_laws_are_found_with_their_coefficients() {
    for term in terms() {
        let fit = fit(&points(&SIZES, |p| 7.0 + 3.0 * term.at(p)), 0.0, 256.0);
        assert_eq!(law(&fit), (term.exponent, term.logarithms));
        let Growth::Law { constant, coefficient, .. } = fit.growth else { unreachable!() };
        assert!((constant - 7.0).abs() < 1e-4 && (coefficient - 3.0).abs() < 1e-4, "{term:?}");
        let (said, right) = (fit.predicted.unwrap(), 7.0 + 3.0 * term.at(256.0));
        assert!((said.value / right - 1.0).abs() < 1e-6, "{term:?}: {said:?} {right}");
        assert!(said.low <= right * 1.000_001 && right <= said.high * 1.000_001, "{term:?}");
    }
}

#[test]
fn with_noise_the_right_number_is_in_the_interval() {
    for right in [term(1.0, 0), term(0.0, 1), term(2.0, 0), term(-1.0, 0), term(1.0, 1)] {
        let mut noise = Noise(7);
        let is_in = |_: &usize| {
            let points = noisy(&SIZES, &mut noise, 0.03, |p| 3.0 * right.at(p));
            let fit = fit(&points, 0.0, 256.0);
            let truth = 3.0 * right.at(256.0);
            fit.predicted.is_some_and(|said| said.low <= truth && truth <= said.high)
        };
        let found = (0..200).filter(is_in).count();
        assert!(found >= 180, "{right:?}: {found} of 200");
    }
}

#[test]
fn a_constant_with_noise_is_a_constant() {
    for sizes in [&SIZES[..5], &SIZES] {
        let mut noise = Noise(1);
        let is_law = |_: &usize| {
            let fit = fit(&noisy(sizes, &mut noise, 0.1, |_| 50.0), 0.0, 256.0);
            matches!(fit.growth, Growth::Law { .. })
        };
        let laws = (0..1000).filter(is_law).count();
        println!("{} sizes: {laws} of 1000 constants have a law", sizes.len());
        assert!(laws <= 50, "{} sizes: {laws} of 1000", sizes.len());
    }
}

#[test]
fn what_is_within_the_noise_is_a_constant() {
    let growing = points(&SIZES, |p| 100.0 + libm::log2(p));
    assert_eq!(law(&fit(&growing, 0.0, 256.0)), (0.0, 1));
    assert!(matches!(fit(&growing, 0.1, 256.0).growth, Growth::Constant { .. }));
}

#[test]
fn zeros_are_zeros_and_do_not_weigh_infinitely() {
    assert_eq!(fit(&points(&SIZES, |_| 0.0), 0.0, 256.0).growth, Growth::Zero);
    // Zero with two ranks.
    assert_eq!(law(&fit(&points(&SIZES, |p| p - 2.0), 0.0, 256.0)), (1.0, 0));
}

#[test]
fn one_value_that_is_off_is_left_out_and_named() {
    let mut points = points(&SIZES, |p| 5.0 * p);
    points[3].1 *= 4.0;
    let found = fit(&points, 0.0, 256.0);
    assert_eq!((law(&found), found.outlier), ((1.0, 0), Some(16.0)));
    assert!((found.predicted.unwrap().value - 1280.0).abs() < 1e-6);
}

#[test]
fn fewer_than_five_sizes_tell_a_slope_only() {
    let four = fit(&points(&SIZES[..4], |p| 3.0 * p * p), 0.0, 256.0);
    let Growth::Slope { slope: Some(slope) } = four.growth else { panic!("{four:?}") };
    assert!((slope - 2.0).abs() < 1e-9 && four.predicted.is_none() && four.error.is_none());
    let with_zero = fit(&points(&SIZES[..3], |p| p - 2.0), 0.0, 256.0);
    assert_eq!(with_zero.growth, Growth::Slope { slope: None });
    assert!(
        (expected(&four, &points(&SIZES[..4], |p| 3.0 * p * p), 256.0) - 196_608.0).abs() < 1e-3
    );
}

#[test]
fn what_turns_round_is_a_bend() {
    // The paper's Figure 3a: it grows until the node is full.
    let peak = |p: f64| if p <= 16.0 { 10.0 * p } else { 2560.0 / p };
    let found = fit(&points(&SIZES, peak), 0.0, 256.0).growth;
    let Growth::Bend { until, before: Some(before), after: Some(after), rises, stays } = found
    else {
        panic!("{found:?}")
    };
    assert!((until - 16.0).abs() < 1e-9 && rises && !stays);
    assert!((before - 1.0).abs() < 1e-9 && (after + 1.0).abs() < 1e-9);

    let valley = |p: f64| if p <= 8.0 { 64.0 / p } else { p };
    let found = fit(&points(&SIZES, valley), 0.0, 256.0).growth;
    assert!(matches!(found, Growth::Bend { until: 8.0, rises: false, stays: false, .. }));

    let ceiling = |p: f64| p.min(16.0);
    let found = fit(&points(&SIZES, ceiling), 0.0, 256.0).growth;
    assert!(matches!(found, Growth::Bend { until: 16.0, rises: true, stays: true, .. }));
}

#[test]
fn a_curve_that_flattens_out_is_a_law() {
    // Neighbours in a row: all but two ranks have two.
    let fit = fit(&points(&SIZES, |p| 2.0 - 2.0 / p), 0.0, 256.0);
    assert_eq!(law(&fit), (-1.0, 0));
}

#[test]
fn noise_is_neither_a_bend_nor_a_law() {
    let wild = [3.0, 90.0, 1.0, 70.0, 5.0, 40.0];
    let points: Vec<Point> = SIZES.into_iter().zip(wild).collect();
    assert_eq!(fit(&points, 0.0, 256.0).growth, Growth::Irregular);
    // A hundred times as much at the last size, which hardly shows in the relative residuals of a low constant.
    let points: Vec<Point> = SIZES.into_iter().zip([1.0, 3.0, 2.0, 3.0, 2.0, 200.0]).collect();
    assert_eq!(fit(&points, 0.1, 256.0).growth, Growth::Irregular);
}

#[test]
fn the_curve_goes_from_the_smallest_size_to_the_target() {
    let fit = fit(&points(&SIZES, |p| p), 0.0, 200.0);
    let sizes: Vec<f64> = fit.curve.iter().map(|at| at.size).collect();
    assert_eq!(sizes, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 200.0]);
}

#[test]
fn the_terms_are_those_of_extra_p_and_what_is_divided_among_ranks() {
    let twelfths = |logarithms| {
        let those = terms().filter(|term| term.logarithms == logarithms);
        let mut twelfths: Vec<f64> = those.map(|term| (12.0 * term.exponent).round()).collect();
        twelfths.sort_by(f64::total_cmp);
        twelfths.into_iter().map(|number| format!("{number}")).collect::<Vec<_>>().join(" ")
    };
    let negative = "-24 -12 -9 -8 -6 -4 -3";
    let positive = "3 4 6 8 9 12 15 16 18 20 21 24 28 30 32 36";
    assert_eq!(twelfths(0), format!("{negative} {positive}"));
    assert_eq!([twelfths(1), twelfths(2)], ["0 3 4 6 8 12 18 24 36"; 2]);
}

#[test]
fn a_term_that_is_the_same_at_every_point_fits_nothing_however_its_sums_are_rounded() {
    for size in (1_000_001..1_000_101).map(f64::from) {
        let points = [(size, 3.0), (size, 7.0), (size, 11.0)];
        assert!(Law::fitted(&points, Some(term(3.0, 0))).is_none(), "{size}");
    }
}

#[test]
fn the_interval_of_a_prediction_is_that_of_weighted_least_squares() {
    let off = [1.01, 0.99, 0.98, 1.03, 0.99, 1.0];
    let points: Vec<Point> =
        SIZES.into_iter().zip(off).map(|(p, off)| (p, (7.0 + 3.0 * p) * off)).collect();
    let law = Law::fitted(&points, Some(term(1.0, 0))).unwrap();
    // About the weighted mean of the sizes, the errors of level and slope are independent.
    let weights: f64 = points.iter().map(|point| point.1.powi(-2)).sum();
    let mean = points.iter().map(|point| point.0 * point.1.powi(-2)).sum::<f64>() / weights;
    let squares: f64 = points.iter().map(|point| (point.0 - mean).powi(2) * point.1.powi(-2)).sum();
    let residuals: f64 = points.iter().map(|point| (1.0 - law.at(point.0) / point.1).powi(2)).sum();
    let said = law.predicted(256.0);
    let of_line = 1.0 / weights + (256.0 - mean).powi(2) / squares;
    let half = 2.776 * (residuals / 4.0).sqrt() * (law.at(256.0).powi(2) + of_line).sqrt();
    for found in [said.high - said.value, said.value - said.low] {
        assert!((found / half - 1.0).abs() < 1e-9, "{found} for {half}");
    }
}

#[test]
fn numbers_near_zero_are_not_far_off() {
    let law = Law::fitted(&points(&SIZES, |p| p - 2.0), Some(term(1.0, 0))).unwrap();
    assert!(!law.is_far_off(&[(2.0, 0.5), (64.0, 62.0)], None));
    assert!(law.is_far_off(&[(2.0, 5.0), (64.0, 62.0)], None));
}

#[test]
fn what_cannot_be_negative_is_not_predicted_to_be() {
    let predicted = fit(&points(&SIZES, |p| 100.0 - p), 0.0, 256.0).predicted.unwrap();
    assert!(predicted.value.abs() < 1e-9 && predicted.low.abs() < 1e-9, "{predicted:?}");
}

#[test]
fn the_law_that_is_named_fits_about_as_well_as_the_best() {
    let mut noise = Noise(3);
    for _ in 0..200 {
        let found = laws(&noisy(&SIZES, &mut noise, 0.03, |p| 3.0 * p), 0.0);
        let least = found.iter().map(|law| law.error).fold(f64::INFINITY, f64::min);
        assert!(found[0].error <= AS_WELL * least, "{} of {least}", found[0].error);
    }
}

#[test]
fn neither_the_first_nor_the_last_size_is_an_outlier() {
    for at in [0, 5] {
        let mut points = points(&SIZES, |p| 5.0 * p);
        points[at].1 *= 4.0;
        assert_eq!(fit(&points, 0.0, 256.0).outlier, None, "{at}");
    }
}

#[test]
fn what_falls_to_zero_and_stays_there_is_a_bend() {
    let points: Vec<Point> = SIZES.into_iter().zip([64.0, 32.0, 0.0, 0.0, 0.0, 0.0]).collect();
    let found = fit(&points, 0.0, 256.0).growth;
    assert!(
        matches!(found, Growth::Bend { until: 8.0, rises: false, stays: true, .. }),
        "{found:?}"
    );
}
