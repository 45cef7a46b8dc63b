//! How often does a check of times fail? Made-up runs of a program whose change is known, on machines whose noise is known.

use gyan_results::{InMpiSummary, MessageWaitingSummary, Statistic, Statistics};

use super::*;

/// Comparisons for each cell of the table in benches/results/made-up-runs.md.
const COMPARISONS: usize = 200;
const TABLE: [&str; 2] = ["<!-- made-up runs -->\n", "<!-- end of made-up runs -->"];
/// The numbers of runs that are documented as enough: baselines, and new runs.
const RUNS: [(usize, usize); 3] = [(4, 4), (5, 3), (8, 2)];
const CHANGES_PERCENT: [u32; 4] = [0, 5, 10, 30];

/// How times differ from run to run. Noise is log-normal.
#[derive(Clone, Copy, Debug)]
enum Machine {
    Quiet,
    Noisy,
    /// Half of the runs share it with something else, and take up to twice as long.
    Loaded,
}

impl Machine {
    fn words(self) -> &'static str {
        match self {
            Machine::Quiet => "quiet: 1 %",
            Machine::Noisy => "noisy: 3 %",
            Machine::Loaded => "loaded: 3 %, and every other run up to twice as long",
        }
    }

    fn sigma(self) -> f64 {
        match self {
            Machine::Quiet => 0.01,
            Machine::Noisy | Machine::Loaded => 0.03,
        }
    }
}

const MACHINES: [Machine; 3] = [Machine::Quiet, Machine::Noisy, Machine::Loaded];

/// By Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (one, other) = (1.0 - random.f64(), random.f64());
    (-2.0 * libm::log(one)).sqrt() * libm::cos(std::f64::consts::TAU * other)
}

/// What a change made longer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SlowerPart {
    OwnCode,
    Mpi,
}

fn alike(seconds: f64) -> Statistic {
    let mut of = Statistics::default();
    (0..2).for_each(|rank| of.add(Number::Double(seconds), rank));
    of.finish().unwrap()
}

fn without_numbers() -> Summary {
    let text = include_str!("../../../results-schema/examples/summary.json");
    let mut run: Summary = serde_json::from_str(text).unwrap();
    run.calls.clear();
    run.pvars.clear();
    run.phases.clear();
    run.peers.clear();
    run.cvars.clear();
    run.placements.clear();
    run.warnings.clear();
    run
}

/// A run of 7 s of own code and 3 s in MPI, of which `part` takes longer by this share of the run.
fn run(
    like: &Summary,
    random: &mut fastrand::Rng,
    machine: Machine,
    part: SlowerPart,
    longer: f64,
) -> Checked {
    let mut noise = || libm::exp(machine.sigma() * normal(random));
    let [mut own_s, mut mpi_s] = [7.0 * noise(), 3.0 * noise()];
    let more_s = 10.0 * longer * noise();
    *(if part == SlowerPart::OwnCode { &mut own_s } else { &mut mpi_s }) += more_s;
    let is_shared = matches!(machine, Machine::Loaded) && random.bool();
    let load = if is_shared { 1.0 + random.f64() } else { 1.0 };
    let mut summary = like.clone();
    summary.elapsed_s = Some(alike((own_s + mpi_s) * load));
    summary.run_s.clone_from(&summary.elapsed_s);
    let time_s = alike(mpi_s * load);
    let share = time_s.clone();
    summary.in_mpi = Some(InMpiSummary { time_s, time_error_s: Some(0.0), share });
    Checked { name: "run".into(), summary, findings: Vec::new() }
}

/// How many of so many checks fail.
fn failing(
    rules: &Rules,
    (before, now): (usize, usize),
    machine: Machine,
    (part, percent): (SlowerPart, u32),
    comparisons: usize,
) -> usize {
    let like = without_numbers();
    let mut random = fastrand::Rng::with_seed(32);
    let mut fails = || {
        let mut runs = |number: usize, longer: f64| -> Vec<Checked> {
            (0..number).map(|_| run(&like, &mut random, machine, part, longer)).collect()
        };
        let (baselines, new) = (runs(before, 0.0), runs(now, f64::from(percent) / 100.0));
        let judged = judge(&new, &baselines, rules, &[], Tool::gyan());
        assert_ne!(judged.result, CheckResult::NotJudged, "{judged:?}");
        judged.result == CheckResult::Failed
    };
    (0..comparisons).filter(|_| fails()).count()
}

fn rules(text: &str) -> Rules {
    Rules::parse(&format!("findings.new = []\n{text}"), &[]).unwrap()
}

#[test]
fn what_is_30_percent_slower_fails_on_a_quiet_machine_wherever_the_time_went() {
    for runs in RUNS {
        for machine in [Machine::Quiet, Machine::Noisy] {
            for part in [SlowerPart::OwnCode, SlowerPart::Mpi] {
                let failed = failing(&rules(""), runs, machine, (part, 30), COMPARISONS);
                assert_eq!(failed, COMPARISONS, "{runs:?} {machine:?} {part:?}");
            }
        }
    }
}

#[test]
fn what_did_not_change_fails_at_most_as_often_as_stated() {
    const MANY: usize = 500;
    // Without a limit, so that only the test decides: 5 % over both times, plus three standard deviations of the count.
    let only_the_test = rules("times.growth_percent = 0");
    let most = 0.05 * MANY as f64 + 3.0 * (0.05 * 0.95 * MANY as f64).sqrt();
    for runs in RUNS {
        for machine in MACHINES {
            let failed = failing(&only_the_test, runs, machine, (SlowerPart::OwnCode, 0), MANY);
            assert!(failed as f64 <= most, "{runs:?} {machine:?}: {failed} of {MANY}");
            // And it is a test of 5 %, not of nothing.
            assert!(failed > 0, "{runs:?} {machine:?}");
        }
    }
}

#[test]
fn a_check_that_could_not_judge_times_is_not_passed() {
    let like = without_numbers();
    let judged = |before: usize, now: usize, rules: &Rules| {
        let mut random = fastrand::Rng::with_seed(1);
        let mut runs = |number: usize, longer: f64| -> Vec<Checked> {
            let of = |_| run(&like, &mut random, Machine::Quiet, SlowerPart::OwnCode, longer);
            (0..number).map(of).collect()
        };
        let (baselines, new) = (runs(before, 0.0), runs(now, 1.0));
        judge(&new, &baselines, rules, &[], Tool::gyan())
    };
    let named = rules("times.judge = ['run', 'in_mpi']");
    for (before, now, rules, result, remark) in [
        // For one baseline, counts are what is asked for.
        (1, 1, &rules(""), CheckResult::Passed, "it takes 4 baselines and 4 new runs"),
        (1, 1, &named, CheckResult::NotJudged, "it takes 4 baselines and 4 new runs"),
        (3, 3, &rules(""), CheckResult::NotJudged, "with 3 baselines it takes 5 new runs"),
        (1, 3, &rules(""), CheckResult::Passed, "here there is 1 baseline and 3 new"),
        (3, 5, &rules(""), CheckResult::Failed, ""),
    ] {
        let of = judged(before, now, rules);
        assert_eq!(of.result, result, "{before} {now}");
        let why = of.of(CheckRule::Times).find_map(|row| row.remark.as_deref()).unwrap_or("");
        assert!(why.contains(remark), "{before} {now}: {why}");
    }
}

#[test]
fn times_of_which_only_a_lower_bound_is_known_are_not_judged() {
    let like = without_numbers();
    let mut random = fastrand::Rng::with_seed(1);
    let mut runs = |longer: f64| -> Vec<Checked> {
        (0..4).map(|_| run(&like, &mut random, Machine::Quiet, SlowerPart::Mpi, longer)).collect()
    };
    let (baselines, mut new) = (runs(0.0), runs(1.0));
    new[2].summary.in_mpi.as_mut().unwrap().time_error_s = None;
    let of = judge(&new, &baselines, &rules(""), &[], Tool::gyan());
    let results: Vec<(&str, CheckResult)> =
        of.of(CheckRule::Times).map(|row| (row.what.as_str(), row.result)).collect();
    assert_eq!(results, [("run", CheckResult::Failed), ("in_mpi", CheckResult::NotJudged)]);
}

#[test]
fn waiting_for_late_senders_is_judged_if_a_rule_names_it() {
    let like = without_numbers();
    let runs = |late_s: f64| -> Vec<Checked> {
        let of = |at: u32| {
            let waiting = MessageWaitingSummary {
                late_senders_s: late_s + f64::from(at) / 100.0,
                late_senders_error_s: Some(0.0),
                ..MessageWaitingSummary::default()
            };
            let summary = Summary { message_waiting: Some(waiting), ..like.clone() };
            Checked { name: "run".into(), summary, findings: Vec::new() }
        };
        (0..4).map(of).collect()
    };
    let named = rules("times.judge = ['late_senders']");
    for (now_s, result) in [(1.0, CheckResult::Passed), (4.0, CheckResult::Failed)] {
        let of = judge(&runs(now_s), &runs(1.0), &named, &[], Tool::gyan());
        let found: Vec<(&str, CheckResult)> =
            of.of(CheckRule::Times).map(|row| (row.what.as_str(), row.result)).collect();
        assert_eq!(found, [("late_senders", result)]);
    }
}

#[test]
fn a_time_that_several_rules_name_is_judged_once() {
    let mut like = without_numbers();
    let text = include_str!("../../../results-schema/examples/summary.json");
    let example: Summary = serde_json::from_str(text).unwrap();
    like.calls = vec![example.calls.into_iter().find(|call| call.time_s.is_some()).unwrap()];
    let name = like.calls[0].name.clone();
    let side = || -> Vec<Checked> {
        let of = |_| Checked { name: "run".into(), summary: like.clone(), findings: Vec::new() };
        (0..4).map(of).collect()
    };
    let rules = rules(&format!("times.judge = ['{name}', 'run', 'MPI_*']"));
    let of = judge(&side(), &side(), &rules, &[], Tool::gyan());
    let times: Vec<&str> = of.of(CheckRule::Times).map(|row| row.what.as_str()).collect();
    assert_eq!(times, [name.as_str(), "run"]);
}

#[test]
fn a_number_that_grows_by_the_limit_passes() {
    let rules = rules("calls.growth_percent = 16");
    let with = |number: i128| {
        let mut like = without_numbers();
        let text = include_str!("../../../results-schema/examples/summary.json");
        let example: Summary = serde_json::from_str(text).unwrap();
        let mut call = example.calls.into_iter().next().unwrap();
        call.name = "MPI_Send".into();
        call.count.sum = Number::Integer(number);
        like.calls = vec![call];
        [Checked { name: "run".into(), summary: like, findings: Vec::new() }]
    };
    let result = |now| judge(&with(now), &with(100), &rules, &[], Tool::gyan()).result;
    assert_eq!([result(116), result(117)], [CheckResult::Passed, CheckResult::Failed]);
}

/// `BLESS=1` writes it.
#[test]
fn the_table_is_what_made_up_runs_give() {
    let mut table = format!(
        "| baselines and new runs | machine | what took longer | {} |\n| :-- | :-- | :-- |{}\n",
        CHANGES_PERCENT.map(|percent| format!("{percent} %")).join(" | "),
        " --: |".repeat(CHANGES_PERCENT.len())
    );
    for (before, now) in RUNS {
        for machine in MACHINES {
            for (part, words) in [(SlowerPart::OwnCode, "own code"), (SlowerPart::Mpi, "MPI")] {
                let failed = CHANGES_PERCENT.map(|percent| {
                    let change = (part, percent);
                    failing(&rules(""), (before, now), machine, change, COMPARISONS).to_string()
                });
                let cells = [machine.words(), words].join(" | ");
                let row = format!("| {before} and {now} | {cells} | {} |\n", failed.join(" | "));
                table.push_str(&row);
            }
        }
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
