//! Histories of which the truth is known, with noise that is not the one that a series is compared with.

use std::sync::Mutex;

use super::*;

/// How runs differ on a machine, around 1.
#[derive(Clone, Copy, Debug)]
enum BusyMachine {
    /// Normal, with this standard deviation.
    Normal(f64),
    /// Student's t with 3 degrees of freedom, of 3 %.
    HeavyTail,
    /// 2 %, and one of ten takes up to twice as long.
    Outliers,
    /// 2 %, and three of ten take 10 % longer.
    TwoModes,
    /// 3 %, half of which is that of the run before.
    Drifting,
    /// 2 %, and in stretches of three or four runs, which begin after 20 in the mean, up to 60 % longer.
    Loaded,
}

const MACHINES: [(BusyMachine, &str); 7] = [
    (BusyMachine::Normal(0.02), "normal, 2 %"),
    (BusyMachine::Normal(0.03), "normal, 3 %"),
    (BusyMachine::HeavyTail, "heavy tail (Student's t, 3 degrees of freedom), 3 %"),
    (BusyMachine::Outliers, "2 %, and every tenth run takes up to twice as long"),
    (BusyMachine::TwoModes, "2 %, and three of ten runs take 10 % longer"),
    (BusyMachine::Drifting, "3 %, half of it from the run before"),
    (BusyMachine::Loaded, "2 %, and stretches of three or four runs take up to 60 % longer"),
];

fn normal(random: &mut fastrand::Rng) -> f64 {
    // The sum of twelve uniform numbers is near enough, and another way than that of the product.
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn student(random: &mut fastrand::Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / squares.sqrt()
}

/// The times of a history: `level` is what the program needs in each run.
fn history(
    machine: BusyMachine,
    length: usize,
    level: impl Fn(usize) -> f64,
    seed: u64,
) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut last = normal(&mut random);
    let mut is_loaded = false;
    let time = |at| {
        let log = match machine {
            BusyMachine::Normal(sigma) => sigma * normal(&mut random),
            BusyMachine::HeavyTail => 0.03 * student(&mut random),
            BusyMachine::Outliers => {
                let longer = if random.f64() < 0.1 { 0.7 * random.f64() } else { 0.0 };
                0.02 * normal(&mut random) + longer
            }
            BusyMachine::TwoModes => {
                0.02 * normal(&mut random) + if random.f64() < 0.3 { 0.1 } else { 0.0 }
            }
            BusyMachine::Drifting => {
                last = 0.5 * last + 0.75_f64.sqrt() * normal(&mut random);
                0.03 * last
            }
            BusyMachine::Loaded => {
                is_loaded ^= random.f64() < if is_loaded { 0.3 } else { 0.05 };
                0.02 * normal(&mut random) + if is_loaded { 0.5 * random.f64() } else { 0.0 }
            }
        };
        10.0 * level(at) * libm::exp(log)
    };
    (0..length).map(time).collect()
}

fn step(at: usize, percent: f64) -> impl Fn(usize) -> f64 + Copy {
    move |run| if run < at { 1.0 } else { 1.0 + percent / 100.0 }
}

/// Of 100 histories of `length` runs, the changes that are found.
fn found(
    machine: BusyMachine,
    length: usize,
    level: impl Fn(usize) -> f64 + Copy,
) -> Vec<Vec<ChangePoint>> {
    let histories = (0..100).map(|seed| history(machine, length, level, seed));
    histories.map(|times| changes(&times, 0.05)).collect()
}

/// The distributions of all tests: they take seconds.
static UNCHANGED: Mutex<Unchanged> = Mutex::new(Unchanged { largest: BTreeMap::new() });

fn changes(values: &[f64], alpha: f64) -> Vec<ChangePoint> {
    change_points(values, alpha, &mut UNCHANGED.lock().unwrap())
}

fn alarms(of: &[Vec<ChangePoint>]) -> usize {
    of.iter().filter(|changes| !changes.is_empty()).count()
}

/// How many of the histories have a change within one run of the truth.
fn named(of: &[Vec<ChangePoint>], truth: usize) -> usize {
    let is_near = |change: &ChangePoint| change.index.abs_diff(truth) <= 1;
    of.iter().filter(|changes| changes.iter().any(is_near)).count()
}

#[test]
fn of_100_histories_without_a_change_at_most_5_have_one_whatever_the_noise() {
    for (machine, words) in MACHINES {
        for length in [15, 40] {
            let alarms = alarms(&found(machine, length, |_| 1.0));
            assert!(alarms <= 5, "{alarms} of 100 histories of {length} runs: {words}");
        }
    }
}

#[test]
fn a_step_of_8_percent_at_the_23rd_of_40_runs_is_named_within_one() {
    let truth = 22;
    for (machine, at_least) in [
        (BusyMachine::Normal(0.02), 95),
        (BusyMachine::Normal(0.03), 85),
        (BusyMachine::HeavyTail, 85),
    ] {
        let found = found(machine, 40, step(truth, 8.0));
        let all = || found.iter().flatten();
        let named = named(&found, truth);
        assert!(named >= at_least, "{named}: {machine:?}");
        // The intervals hold what they promise: of about 100 changes, no more than 9 are outside of 95 %.
        let within = all().filter(|change| change.within.contains(&truth)).count();
        let ratio = all().filter(|change| (change.low..=change.high).contains(&1.08)).count();
        let of = all().count();
        assert!(of - within <= 9 && of - ratio <= 9, "{within} and {ratio} of {of}: {machine:?}");
        let width = all().map(|change| change.within.clone().count()).sum::<usize>() as f64;
        assert!(width / of as f64 <= 4.0, "{width} of {of}: {machine:?}");
    }
}

#[test]
fn each_of_several_changes_is_found_with_its_size() {
    let level = |run| match run {
        0..25 => 1.0,
        25..50 => 1.1,
        50..75 => 0.95,
        _ => 1.2,
    };
    let times = history(BusyMachine::Normal(0.02), 100, level, 1);
    let found = changes(&times, 0.05);
    let places: Vec<usize> = found.iter().map(|change| change.index).collect();
    assert_eq!(places, [25, 50, 75]);
    for (change, ratio) in found.iter().zip([1.1, 0.95 / 1.1, 1.2 / 0.95]) {
        assert!(change.low <= ratio && ratio <= change.high, "{change:?} of {ratio}");
        assert!(change.low < change.ratio && change.ratio < change.high, "{change:?}");
        assert!(change.p < 0.01, "{change:?}");
    }
}

#[test]
fn small_probabilities_are_not_too_small() {
    // A hundredth of the error, as where a hundred series are looked at.
    let alarms = (0..2000).filter(|seed| {
        let times = history(BusyMachine::Normal(0.02), 20, |_| 1.0, *seed);
        !changes(&times, 0.0005).is_empty()
    });
    let alarms = alarms.count();
    assert!(alarms <= 4, "{alarms} of 2000, of which 1 is expected");
}

#[test]
fn numbers_that_are_equal_or_too_few_or_not_positive_have_no_change() {
    let of = |values: &[f64]| changes(values, 0.05).len();
    assert_eq!(of(&[]), 0);
    assert_eq!(of(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]), 0);
    assert_eq!(of(&[3.0; 30]), 0);
    let mut values = [[1.0; 15], [2.0; 15]].concat();
    assert_eq!(of(&values), 1);
    for not_positive in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        values[7] = not_positive;
        assert_eq!(of(&values), 0, "{not_positive}");
    }
}

#[test]
fn an_outlier_is_no_change() {
    let mut times = history(BusyMachine::Normal(0.02), 40, |_| 1.0, 3);
    times[20] *= 30.0;
    assert_eq!(changes(&times, 0.05), []);
}

#[test]
fn intervals_are_within_the_whole_and_overlap_by_half() {
    for length in [8, 9, 11, 40, 97] {
        let all = intervals(3..3 + length);
        assert_eq!(all[0], 3..3 + length);
        assert!(all.iter().all(|of| of.start >= 3 && of.end <= 3 + length && of.len() >= 8));
        for pair in all.windows(2).filter(|pair| pair[0].len() == pair[1].len()) {
            assert!(pair[1].start - pair[0].start <= pair[0].len().div_ceil(2), "{pair:?}");
        }
        assert!(all.iter().any(|of| of.len() <= 11 && of.end == 3 + length), "{all:?}");
    }
}

/// `BLESS=1` writes it.
#[test]
fn the_table_of_the_chapter_is_what_made_up_histories_give() {
    const TABLE: [&str; 2] = ["<!-- made-up histories -->\n", "<!-- end of made-up histories -->"];
    // The percentage, and the first of 40 runs that takes so much longer.
    const STEPS: [(f64, usize); 4] = [(8.0, 22), (5.0, 22), (8.0, 30), (8.0, 34)];
    let head = STEPS.map(|(percent, at)| format!("{percent} % at the {}th", at + 1));
    let mut table = format!(
        "| noise | no change | {} |\n| :-- | --: |{}\n",
        head.join(" | ").replace("23th", "23rd").replace("31th", "31st"),
        " --: |".repeat(STEPS.len())
    );
    for (machine, words) in MACHINES {
        let alarms = alarms(&found(machine, 40, |_| 1.0));
        let steps = STEPS.map(|(percent, at)| {
            let found = found(machine, 40, step(at, percent));
            format!("{}, {}", self::alarms(&found), named(&found, at))
        });
        let row = format!("| {words} | {alarms} | {} |\n", steps.join(" | "));
        table.push_str(&row);
    }
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/made-up-runs.md");
    let chapter = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = chapter.split_once(TABLE[0]).unwrap();
    let (is, after) = rest.split_once(TABLE[1]).unwrap();
    let wanted = format!("\n{table}\n");
    if std::env::var_os("BLESS").is_some() {
        let chapter = [before, TABLE[0], &wanted, TABLE[1], after].concat();
        std::fs::write(&file, chapter).unwrap();
        return;
    }
    assert_eq!(is, wanted);
}
