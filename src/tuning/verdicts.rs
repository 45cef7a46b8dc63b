//! What do the runs say about each candidate?

use gyan_results::{Assignment, Figure, Gain, Summary, Took, Trial, TrialVerdict, Witnessed};

use super::Candidate;
use super::race::{Done, Stage};
use crate::comparison::statistics::{ALPHA, mann_whitney, median, shift};

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

/// What became of each candidate.
pub(crate) fn verdicts(
    candidates: &[Candidate],
    told: &[Told],
    higher_is_better: bool,
    outcome: Outcome,
) -> Vec<Trial> {
    let of = |(index, candidate): (usize, &Candidate)| {
        let runs: Vec<&Told> = told.iter().filter(|run| run.candidate == Some(index)).collect();
        let values = |runs: &[&Told], is_confirming: bool| -> Vec<f64> {
            let stage = runs.iter().filter(|run| (run.stage == Stage::Confirm) == is_confirming);
            stage.filter_map(|run| run.value.as_ref().ok().copied()).collect()
        };
        let defaults: Vec<&Told> = told.iter().filter(|run| run.candidate.is_none()).collect();
        let (raced, confirmed) = (values(&runs, false), values(&runs, true));
        let gain = match &confirmed[..] {
            [] => gain(&values(&defaults, false), &raced, higher_is_better),
            confirmed => gain(&values(&defaults, true), confirmed, higher_is_better),
        };
        let failure = runs.iter().find_map(|run| run.value.as_ref().err());
        let is_ignored = |run: &&&Told| matches!(run.took, Took::Ignored(_));
        let took = runs.iter().find(is_ignored).or_else(|| runs.last());
        let took = took.map_or(Took::NotRun, |run| run.took.clone());
        let witness = candidate.witness.as_ref();
        let witness = witness.and_then(|figure| {
            let of = |runs: &[&Told]| -> Vec<f64> {
                runs.iter().filter_map(|run| figure.of(run.summary?)).collect()
            };
            witnessed(figure, &of(&defaults), &of(&runs))
        });
        let is_chosen = outcome == Outcome::Left(index);
        let (verdict, why) = match (failure, &took) {
            (_, Took::Ignored(why)) => (TrialVerdict::Ignored, Some(why.clone())),
            (Some(failure), _) => (TrialVerdict::Disqualified, Some(failure.clone())),
            _ if is_chosen && gain.is_some_and(|gain| is_gain(&gain)) => {
                (TrialVerdict::Better, None)
            }
            _ if is_chosen => (TrialVerdict::NotConfirmed, None),
            _ if outcome != Outcome::Open && !runs.is_empty() => (TrialVerdict::Dropped, None),
            _ => (TrialVerdict::Open, None),
        };
        Trial {
            settings: candidate.settings.clone(),
            nominated_by: candidate.nominated_by.clone(),
            hazard: candidate.hazard.clone(),
            took,
            witness,
            raced,
            confirmed,
            gain,
            verdict,
            why,
        }
    };
    candidates.iter().enumerate().map(of).collect()
}

/// Whether the whole interval is on the good side, with the confidence that a gain needs.
fn is_gain(gain: &Gain) -> bool {
    gain.low > 0.0 && gain.confidence >= 1.0 - ALPHA
}

fn gain(default: &[f64], with: &[f64], higher_is_better: bool) -> Option<Gain> {
    let middle = median(default).filter(|middle| *middle > 0.0)?;
    let shift = shift(default, with)?;
    let (share, low, high) = if higher_is_better {
        (shift.estimate, shift.low, shift.high)
    } else {
        (-shift.estimate, -shift.high, -shift.low)
    };
    Some(Gain {
        share: share / middle,
        low: low / middle,
        high: high / middle,
        confidence: shift.confidence,
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

/// Whether numbers of runs differ by more than chance; none when there are too few to tell.
fn moved(default: &[f64], with: &[f64]) -> Option<bool> {
    // A number that is the same in each run is a count: chance has no part in it.
    if let ([first, _, ..], [one, ..]) = (default, with)
        && default.iter().all(|value| value.total_cmp(first).is_eq())
        && with.iter().all(|value| value.total_cmp(one).is_eq())
    {
        return Some(one.total_cmp(first).is_ne());
    }
    let p = mann_whitney(default, with)?;
    if p <= ALPHA {
        return Some(true);
    }
    // The smallest p that so many runs can have.
    let apart = |from: usize, number: usize| (from..from + number).map(|at| at as f64).collect();
    let (low, high): (Vec<f64>, Vec<f64>) =
        (apart(0, default.len()), apart(default.len(), with.len()));
    let could = mann_whitney(&low, &high).is_some_and(|least| least <= ALPHA);
    could.then_some(false)
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
        assert_eq!(same.verdict, TrialVerdict::NotConfirmed, "{:?}", same.gain);
        // Where more is better the same runs are worse.
        let worse = &verdicts(&all, &confirmed(0.2), true, Outcome::Left(0))[0];
        assert_eq!(worse.verdict, TrialVerdict::NotConfirmed);
        assert!(worse.gain.unwrap().high < 0.0);
    }

    #[test]
    fn runs_that_chose_a_setting_do_not_confirm_it() {
        let mut told = confirmed(0.0);
        told.extend((0..9).map(|_| ran(Some(0), Stage::Race(1), 0.1)));
        let trial = &verdicts(&[candidate("a")], &told, false, Outcome::Left(0))[0];
        assert_eq!(trial.verdict, TrialVerdict::NotConfirmed);
        assert_eq!((trial.raced.len(), trial.confirmed.len()), (9, 6));
    }

    #[test]
    fn how_a_setting_failed_is_told() {
        use TrialVerdict::{Disqualified, Dropped, Ignored, Open};
        let all = ["a", "b", "c", "d"].map(candidate);
        let failed = Told { value: Err("exit code 1".into()), ..ran(Some(0), Stage::Race(0), 0.0) };
        let ignored = Took::Ignored("rank 0: the library has 4".into());
        let ignored = Told { took: ignored, ..ran(Some(1), Stage::Race(0), 1.0) };
        assert_eq!(ignored.done().value, None);
        let told = [failed, ignored, ran(Some(2), Stage::Race(0), 1.0)];
        let trials = verdicts(&all, &told, false, Outcome::NobodyLeft);
        let verdicts: Vec<TrialVerdict> = trials.iter().map(|trial| trial.verdict).collect();
        assert_eq!(verdicts, [Disqualified, Ignored, Dropped, Open]);
        assert_eq!(trials[0].why.as_deref(), Some("exit code 1"));
        assert_eq!(trials[3].took, Took::NotRun);
    }

    #[test]
    fn a_witness_moves_by_more_than_chance_or_not() {
        assert_eq!(moved(&[400.0; 3], &[200.0]), Some(true));
        assert_eq!(moved(&[400.0; 3], &[400.0; 2]), Some(false));
        let default = [1.0, 1.1, 1.2, 1.05, 1.15, 1.01];
        assert_eq!(moved(&default, &[0.2, 0.3, 0.25]), Some(true));
        assert_eq!(moved(&default, &[1.04, 1.11, 1.12]), Some(false));
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
