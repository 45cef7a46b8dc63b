//! What do the runs say about each candidate?

use gyan_results::{
    Assignment, Figure, Gain, Shift, Summary, Took, Trial, TrialVerdict, Witnessed,
};

use super::Candidate;
use super::race::{Done, Stage};
use crate::comparison::each_once;
use crate::comparison::judge::{Answer, FamilyRow, Judged, judge, judge_with_looks};
use crate::statistics::{ALPHA, Sides, median};

/// A difference of up to this part does not matter, and can be ruled out.
const LITTLE: f64 = 0.05;

/// What is known of a run.
pub(crate) struct Told<'a> {
    pub(crate) candidate: Option<usize>,
    pub(crate) stage: Stage,
    /// The metric, or how it failed.
    pub(crate) value: Result<f64, String>,
    pub(crate) took: Took,
    /// None where nothing was written.
    pub(crate) summary: Option<&'a Summary>,
}

impl Told<'_> {
    /// As the race wants it: what failed or was ignored is not run again.
    pub(crate) fn done(&self) -> Done {
        let is_ignored = matches!(self.took, Took::Ignored(_));
        let value = self.value.as_ref().ok().copied().filter(|_| !is_ignored);
        Done { candidate: self.candidate, stage: self.stage, value }
    }
}

/// How a race came out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It is not over.
    Open,
    /// No candidate was left.
    NobodyLeft,
    /// This one was left, and new runs confirmed it or did not.
    Left(usize),
}

/// The metric in the runs of a candidate or of the default, of the race and of the confirming runs.
struct Values {
    raced: Vec<f64>,
    confirmed: Vec<f64>,
}

impl Values {
    fn new(told: &[Told], candidate: Option<usize>) -> Values {
        let values = |is_confirming: bool| -> Vec<f64> {
            let runs = told.iter().filter(|run| run.candidate == candidate);
            let of_stage = runs.filter(|run| (run.stage == Stage::Confirm) == is_confirming);
            of_stage.filter_map(|run| run.value.as_ref().ok().copied()).collect()
        };
        Values { raced: values(false), confirmed: values(true) }
    }
}

/// What became of each candidate.
pub(crate) fn verdicts(
    candidates: &[Candidate],
    told: &[Told],
    higher_is_better: bool,
    outcome: Outcome,
) -> Vec<Trial> {
    let default = Values::new(told, None);
    let all: Vec<Values> = (0..candidates.len()).map(|of| Values::new(told, Some(of))).collect();
    let against = |a, b| FamilyRow { a, b, is_bound: false };
    // The race looks at the runs after each round, and drops what was slow so far: that is a test in each round.
    let stages = told.iter().filter(|run| run.stage != Stage::Confirm);
    let rounds = each_once(stages.map(|run| run.stage));
    let race: Vec<FamilyRow> =
        all.iter().map(|of| against(&default.raced[..], &of.raced)).collect();
    let of_race = judge_with_looks(&race, Sides::Both, rounds.len().max(1));
    let of = |(index, candidate): (usize, &Candidate)| {
        let runs: Vec<&Told> = told.iter().filter(|run| run.candidate == Some(index)).collect();
        let Values { raced, confirmed } = &all[index];
        let is_confirming = !confirmed.is_empty();
        let (before, with, judged) = if is_confirming {
            let row = against(&default.confirmed, confirmed);
            (&default.confirmed, confirmed, judge(&[row], Sides::Both)[0])
        } else {
            (&default.raced, raced, of_race[index])
        };
        let gain = gain(before, with, &judged, higher_is_better);
        let failure = runs.iter().find_map(|run| run.value.as_ref().err());
        let is_ignored = |run: &&&Told| matches!(run.took, Took::Ignored(_));
        let took = runs.iter().find(is_ignored).or_else(|| runs.last());
        let took = took.map_or(Took::NotRun, |run| run.took.clone());
        let witness = candidate.witness.as_ref();
        let witness = witness.and_then(|figure| {
            let of = |is_one: &dyn Fn(&Told) -> bool| -> Vec<f64> {
                let runs = told.iter().filter(|run| is_one(run));
                runs.filter_map(|run| figure.of(run.summary?)).collect()
            };
            let default = of(&|run| run.candidate.is_none());
            witnessed(figure, &default, &of(&|run| run.candidate == Some(index)))
        });
        let (verdict, why) = match (failure, &took) {
            (_, Took::Ignored(why)) => (TrialVerdict::Ignored, Some(why.clone())),
            (Some(failure), _) => (TrialVerdict::Disqualified, Some(failure.clone())),
            _ if outcome == Outcome::Open || runs.is_empty() => (TrialVerdict::Open, None),
            _ => (judged_gain(judged.answer, gain.as_ref(), is_confirming), None),
        };
        let reaches = |gain: Gain| gain.low.abs().max(gain.high.abs());
        Trial {
            settings: candidate.settings.clone(),
            nominated_by: candidate.nominated_by.clone(),
            hazard: candidate.hazard.clone(),
            took,
            witness,
            raced: raced.clone(),
            confirmed: confirmed.clone(),
            gain,
            verdict,
            no_more_than: gain.filter(|_| verdict == TrialVerdict::NoDifference).map(reaches),
            why,
        }
    };
    candidates.iter().enumerate().map(of).collect()
}

fn judged_gain(answer: Answer, gain: Option<&Gain>, is_confirmed: bool) -> TrialVerdict {
    match (answer, gain) {
        (Answer::Yes, Some(gain)) if gain.share < 0.0 => TrialVerdict::Slower,
        (Answer::Yes, Some(_)) if is_confirmed => TrialVerdict::Better,
        (Answer::Yes, Some(_)) => TrialVerdict::Outrun,
        (_, Some(gain)) if is_within_little(gain.low, gain.high, gain.confidence) => {
            TrialVerdict::NoDifference
        }
        _ => TrialVerdict::NotProven,
    }
}

/// Whether an interval, in parts of what it is compared with, leaves room for a small difference only.
fn is_within_little(low: f64, high: f64, confidence: f64) -> bool {
    confidence >= 1.0 - ALPHA && low.abs().max(high.abs()) <= LITTLE
}

/// From a single run of the default or with the setting there is no interval.
fn gain(default: &[f64], with: &[f64], judged: &Judged, higher_is_better: bool) -> Option<Gain> {
    let middle = median(default).filter(|middle| *middle > 0.0)?;
    let with_median = median(with)?;
    let estimate = with_median - middle;
    let of_one = Shift { estimate, low: estimate, high: estimate, confidence: 0.0 };
    let Shift { estimate, low, high, confidence } = judged.shift.unwrap_or(of_one);
    let (share, low, high) =
        if higher_is_better { (estimate, low, high) } else { (-estimate, -high, -low) };
    Some(Gain {
        share: share / middle,
        low: low / middle,
        high: high / middle,
        confidence,
        default_runs: default.len(),
        runs: with.len(),
    })
}

/// How much runs with the same settings differ: half the interquartile range, as a share of the median.
pub(crate) fn noise(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| *middle > 0.0)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quarter = sorted.len() / 4;
    (quarter > 0).then(|| (sorted[sorted.len() - 1 - quarter] - sorted[quarter]) / (2.0 * middle))
}

fn witnessed(figure: &Figure, default: &[f64], with: &[f64]) -> Option<Witnessed> {
    Some(Witnessed {
        name: figure.name(),
        unit: figure.unit().to_owned(),
        default: median(default)?,
        with: median(with)?,
        moved: moved(default, with),
    })
}

/// Whether numbers of runs differ by more than chance; none when the runs show neither.
fn moved(default: &[f64], with: &[f64]) -> Option<bool> {
    // A number that is the same in each run is a count: chance has no part in it.
    if let ([first, _, ..], [one, ..]) = (default, with)
        && default.iter().all(|value| value.total_cmp(first).is_eq())
        && with.iter().all(|value| value.total_cmp(one).is_eq())
    {
        return Some(one.total_cmp(first).is_ne());
    }
    let row = FamilyRow { a: default, b: with, is_bound: false };
    let Judged { answer, shift, .. } = judge(&[row], Sides::Both)[0];
    if answer == Answer::Yes {
        return Some(true);
    }
    let (middle, shift) = (median(default)?.abs(), shift?);
    let is_still = is_within_little(shift.low / middle, shift.high / middle, shift.confidence);
    is_still.then_some(false)
}

/// The settings of several candidates together. Of a variable that two of them set, the first value counts.
pub(crate) fn together<'a>(all: impl IntoIterator<Item = &'a Candidate>) -> Option<Candidate> {
    let mut settings: Vec<Assignment> = Vec::new();
    let mut number = 0;
    let mut hazards = Vec::new();
    for candidate in all {
        let is_new = |setting: &&Assignment| settings.iter().all(|of| of.name != setting.name);
        let new: Vec<Assignment> = candidate.settings.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            number += 1;
            settings.extend(new);
            hazards.extend(candidate.hazard.clone());
        }
    }
    let hazard = (!hazards.is_empty()).then(|| hazards.join("; "));
    let of_several = Candidate { settings, nominated_by: None, witness: None, hazard };
    (number > 1).then_some(of_several)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str) -> Candidate {
        let settings =
            vec![Assignment { name: name.into(), value: "1".into(), is_environment: false }];
        Candidate { settings, nominated_by: None, witness: None, hazard: None }
    }

    fn ran(candidate: Option<usize>, stage: Stage, value: f64) -> Told<'static> {
        Told { candidate, stage, value: Ok(value), took: Took::OnEveryRank, summary: None }
    }

    /// Six pairs of confirming runs of the first candidate, this much better.
    fn confirmed(by: f64) -> Vec<Told<'static>> {
        let pair = |at: u32| {
            let time = 1.0 + f64::from(at) / 100.0;
            [ran(None, Stage::Confirm, time), ran(Some(0), Stage::Confirm, time - by)]
        };
        (0..6).flat_map(pair).collect()
    }

    #[test]
    fn only_what_is_better_by_more_than_the_noise_is_better() {
        let all = [candidate("a")];
        let better = &verdicts(&all, &confirmed(0.2), false, Outcome::Left(0))[0];
        let gain = better.gain.unwrap();
        assert_eq!(better.verdict, TrialVerdict::Better);
        assert!((gain.share - 0.2 / 1.025).abs() < 1e-9 && gain.low > 0.1, "{gain:?}");
        let same = &verdicts(&all, &confirmed(0.01), false, Outcome::Left(0))[0];
        assert_eq!(same.verdict, TrialVerdict::NoDifference, "{:?}", same.gain);
        let most = same.no_more_than.unwrap();
        assert!(most <= 0.05 && most >= same.gain.unwrap().high, "{most}");
        // Where more is better the same runs are worse.
        let worse = &verdicts(&all, &confirmed(0.2), true, Outcome::Left(0))[0];
        assert_eq!(worse.verdict, TrialVerdict::Slower);
        assert!(worse.gain.unwrap().high < 0.0);
    }

    #[test]
    fn runs_that_chose_a_setting_do_not_confirm_it() {
        let mut told = confirmed(0.0);
        told.extend((0..9).map(|_| ran(Some(0), Stage::Race(1), 0.1)));
        let trial = &verdicts(&[candidate("a")], &told, false, Outcome::Left(0))[0];
        assert_eq!(trial.verdict, TrialVerdict::NoDifference);
        assert_eq!((trial.raced.len(), trial.confirmed.len()), (9, 6));
    }

    #[test]
    fn what_the_runs_of_the_race_say_is_only_what_they_can() {
        let told = |with: f64, runs: usize| {
            let mut told: Vec<Told> =
                (0..8_u32).map(|at| ran(None, Stage::Race(0), 1.0 + f64::from(at) / 1e3)).collect();
            told.extend((0..runs).map(|at| ran(Some(0), Stage::Race(0), with + at as f64 / 1e3)));
            told
        };
        let verdict = |with, runs| {
            let trials = verdicts(&[candidate("a")], &told(with, runs), false, Outcome::NobodyLeft);
            (trials[0].verdict, trials[0].gain.unwrap().confidence)
        };
        // -9 % of 5 and 3 runs was called "changed nothing".
        assert_eq!(verdict(2.0, 3).0, TrialVerdict::Slower);
        assert_eq!(verdict(2.0, 1).0, TrialVerdict::NotProven, "one run");
        assert_eq!(verdict(1.0, 3).0, TrialVerdict::NoDifference);
        assert_eq!(verdict(0.5, 3).0, TrialVerdict::Outrun, "no new runs confirm it");
        assert!(verdict(2.0, 1).1 == 0.0 && verdict(2.0, 3).1 > 0.9);
    }

    #[test]
    fn how_a_setting_failed_is_told() {
        use TrialVerdict::{Disqualified, Ignored, NotProven, Open};
        let all = ["a", "b", "c", "d"].map(candidate);
        let failed = Told { value: Err("exit code 1".into()), ..ran(Some(0), Stage::Race(0), 0.0) };
        let ignored = Took::Ignored("rank 0: the library has 4".into());
        let ignored = Told { took: ignored, ..ran(Some(1), Stage::Race(0), 1.0) };
        assert_eq!(ignored.done().value, None);
        let told = [failed, ignored, ran(Some(2), Stage::Race(0), 1.0)];
        let trials = verdicts(&all, &told, false, Outcome::NobodyLeft);
        let verdicts: Vec<TrialVerdict> = trials.iter().map(|trial| trial.verdict).collect();
        assert_eq!(verdicts, [Disqualified, Ignored, NotProven, Open]);
        assert_eq!(trials[0].why.as_deref(), Some("exit code 1"));
        assert_eq!(trials[3].took, Took::NotRun);
    }

    #[test]
    fn a_witness_moves_by_more_than_chance_or_not() {
        assert_eq!(moved(&[400.0; 3], &[200.0]), Some(true));
        assert_eq!(moved(&[400.0; 3], &[400.0; 2]), Some(false));
        let default = [1.0, 1.1, 1.2, 1.05, 1.15, 1.01];
        assert_eq!(moved(&default, &[0.2, 0.3, 0.25]), Some(true));
        // A p above 0.05 is no proof of no effect; a narrow interval is.
        assert_eq!(moved(&default, &[1.04, 1.11, 1.12]), None);
        let steady =
            |from: f64| -> Vec<f64> { (0..6).map(|at| from + f64::from(at) / 1e3).collect() };
        assert_eq!(moved(&steady(1.0), &steady(1.001)), Some(false));
        // Three times as little in most runs, but not in all: 2.22 ms to 672 us was called "not moved".
        assert_eq!(moved(&[2.2, 2.3, 0.6, 2.5, 2.1], &[0.67, 0.6, 0.7]), None);
        assert_eq!(moved(&default[..2], &[0.2]), None, "two runs and one say nothing");
    }

    #[test]
    fn several_together_set_each_variable_once() {
        let mut second = candidate("b");
        second.settings[0].value = "2".into();
        let both = together([&candidate("a"), &candidate("a"), &second]).unwrap();
        assert_eq!(super::super::label(&both.settings), "a=1 b=2");
        assert_eq!(together([&candidate("a"), &candidate("a")]), None);
    }
}
