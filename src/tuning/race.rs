//! What runs next? Candidates race in turn, with a run of the default before each pass. After each round the slower half is
//! out (successive halving: Jamieson and Talwalkar 2016). New runs then compare the last candidate with the default: the best
//! of many is partly the luckiest, so the runs that chose it would flatter it.
//!
//! The next step follows from the runs so far, so a race that was stopped continues where it was.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::statistics::median;

/// Runs of the default before anything else.
const FIRST_DEFAULTS: usize = 2;
/// Runs of each candidate in a round. The first round has one, which shows whether the candidate works at all.
const PASSES: usize = 2;
/// Candidates that leave the first round, at most.
const GO_ON: usize = 8;
/// Confirming runs of the default, and as many of the best candidate.
pub(crate) const CONFIRMING: usize = 6;

/// What a run is for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The round of the race, from 0.
    Race(usize),
    /// To confirm the candidate that the race chose.
    Confirm,
}

/// The round of the candidate of several settings, after all others.
const TOGETHER: Stage = Stage::Race(usize::MAX);

/// A run that was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Done {
    /// Which candidate; none for the default.
    pub(crate) candidate: Option<usize>,
    pub(crate) stage: Stage,
    /// None if the candidate failed and must not run again.
    pub(crate) value: Option<f64>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Run {
        /// None for the default.
        candidate: Option<usize>,
        stage: Stage,
    },
    /// The race is over. The candidate that was left, if any; it was confirmed or not.
    Decided(Option<usize>),
}

#[derive(Clone, Debug)]
pub(crate) struct Race {
    /// The variable of each candidate, as a number: only one candidate of a variable can be set.
    pub(crate) variables: Vec<usize>,
    pub(crate) higher_is_better: bool,
    /// Whether the candidates that beat the default are also tried together, as one more candidate.
    pub(crate) combines: bool,
}

impl Race {
    /// What to do after these runs. `hurries` cuts the race short and confirms the best candidate so far.
    pub(crate) fn next(&self, done: &[Done], hurries: bool) -> Step {
        if let Some(chosen) = chosen(done) {
            return Self::confirm(done, chosen);
        }
        let number = |candidate, stage| {
            done.iter().filter(|run| run.candidate == candidate && run.stage == stage).count()
        };
        if number(None, Stage::Race(0)) < FIRST_DEFAULTS {
            return Step::Run { candidate: None, stage: Stage::Race(0) };
        }
        let mut left: Vec<usize> = (0..self.variables.len()).collect();
        for round in 0.. {
            left.retain(|candidate| !is_out(done, *candidate));
            let best = self.ranked(done, &left);
            if left.is_empty() {
                return Step::Decided(None);
            }
            if hurries && let Some(best) = best.first() {
                return Self::confirm(done, *best);
            }
            let stage = Stage::Race(round);
            let schedule = schedule(round, &left);
            let is_missing = |at: usize, candidate: Option<usize>| {
                let due = schedule[..=at].iter().filter(|each| **each == candidate).count();
                number(candidate, stage) < due
            };
            let mut due = schedule.iter().enumerate();
            // A candidate that is out by now does not run again.
            if let Some((_, candidate)) = due.find(|(at, candidate)| is_missing(*at, **candidate)) {
                return Step::Run { candidate: *candidate, stage };
            }
            let go_on = match round {
                0 => best.len().min(GO_ON),
                _ => best.len().div_ceil(2),
            };
            left = best[..go_on].to_vec();
            if round > 0 && left.len() <= 1 {
                break;
            }
        }
        let together = self.together(done);
        if !together.is_empty() {
            let all = self.variables.len();
            // As often as a candidate that was in each round so far.
            if number(Some(all), TOGETHER) < 1 + PASSES && !is_out(done, all) {
                let is_due = number(None, TOGETHER) <= number(Some(all), TOGETHER);
                return Step::Run { candidate: (!is_due).then_some(all), stage: TOGETHER };
            }
            left.push(all);
            left.retain(|candidate| !is_out(done, *candidate));
            left = self.ranked(done, &left);
        }
        match left.first() {
            Some(&best) if self.may_be_better(done, best) => Self::confirm(done, best),
            _ => Step::Decided(None),
        }
    }

    /// The candidates that are tried together, the best first: the best value of each variable whose median beats that of the
    /// default. Empty if there are fewer than two.
    pub(crate) fn together(&self, done: &[Done]) -> Vec<usize> {
        let Some(default) = median(&raced(done, None)).filter(|_| self.combines) else {
            return Vec::new();
        };
        let all: Vec<usize> =
            (0..self.variables.len()).filter(|candidate| !is_out(done, *candidate)).collect();
        let mut together: Vec<usize> = Vec::new();
        for candidate in self.ranked(done, &all) {
            let is_better = median(&raced(done, Some(candidate)))
                .is_some_and(|middle| self.compare(middle, default).is_lt());
            let is_new = together.iter().all(|of| self.variables[*of] != self.variables[candidate]);
            if is_better && is_new {
                together.push(candidate);
            }
        }
        if together.len() > 1 { together } else { Vec::new() }
    }

    /// The runs that are still to be done, at most, when no candidate fails.
    pub(crate) fn runs_left(&self, done: &[Done]) -> usize {
        let mut all = done.to_vec();
        while let Step::Run { candidate, stage } = self.next(&all, false) {
            // Made-up values, so that the race ends.
            all.push(Done { candidate, stage, value: Some(candidate.map_or(1.0, |_| 0.5)) });
        }
        all.len() - done.len()
    }

    fn confirm(done: &[Done], chosen: usize) -> Step {
        if is_out(done, chosen) {
            return Step::Decided(None);
        }
        let number = |candidate| {
            let is_one = |run: &&Done| run.stage == Stage::Confirm && run.candidate == candidate;
            done.iter().filter(is_one).count()
        };
        let (default, winner) = (number(None), number(Some(chosen)));
        if default >= CONFIRMING && winner >= CONFIRMING {
            return Step::Decided(Some(chosen));
        }
        // In pairs of alternating order: a machine that gets slower is fair to both. The chosen candidate comes first, so that
        // the runs tell which it was.
        let is_chosen = match winner.cmp(&default) {
            Ordering::Less => true,
            Ordering::Equal => default.is_multiple_of(2),
            Ordering::Greater => false,
        };
        let candidate = is_chosen.then_some(chosen);
        Step::Run { candidate, stage: Stage::Confirm }
    }

    /// Those that were run, the best first.
    fn ranked(&self, done: &[Done], candidates: &[usize]) -> Vec<usize> {
        let middle = |candidate: usize| median(&raced(done, Some(candidate)));
        let known = candidates.iter().filter_map(|of| Some((*of, middle(*of)?)));
        let mut known: Vec<(usize, f64)> = known.collect();
        known.sort_by(|(_, one), (_, other)| self.compare(*one, *other));
        known.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// What is better comes first.
    fn compare(&self, one: f64, other: f64) -> Ordering {
        if self.higher_is_better { other.total_cmp(&one) } else { one.total_cmp(&other) }
    }

    /// Whether any of its runs beat the median of the default.
    fn may_be_better(&self, done: &[Done], candidate: usize) -> bool {
        let Some(default) = median(&raced(done, None)) else { return true };
        let mut values = raced(done, Some(candidate)).into_iter();
        values.any(|value| self.compare(value, default).is_lt())
    }
}

/// The candidate that runs were made to confirm.
fn chosen(done: &[Done]) -> Option<usize> {
    done.iter().filter(|run| run.stage == Stage::Confirm).find_map(|run| run.candidate)
}

fn is_out(done: &[Done], candidate: usize) -> bool {
    done.iter().any(|run| run.candidate == Some(candidate) && run.value.is_none())
}

/// The values of the race, without those of the confirming runs.
fn raced(done: &[Done], candidate: Option<usize>) -> Vec<f64> {
    let is_one = |run: &&Done| {
        // The choice of what is tried together must not change while it runs.
        let is_early = candidate.is_some() || run.stage != TOGETHER;
        run.candidate == candidate && run.stage != Stage::Confirm && is_early
    };
    done.iter().filter(is_one).filter_map(|run| run.value).collect()
}

/// The order of a round: every other pass from the last to the first, a default before each, and one after the last.
fn schedule(round: usize, left: &[usize]) -> Vec<Option<usize>> {
    let passes = if round == 0 { 1 } else { PASSES };
    let mut order = Vec::new();
    // In the first round the default ran before.
    let before = if round == 0 { FIRST_DEFAULTS } else { 1 };
    order.extend(std::iter::repeat_n(None, before));
    for pass in 0..passes {
        if pass > 0 {
            order.push(None);
        }
        let candidates = left.iter().copied().map(Some);
        if (round + pass).is_multiple_of(2) {
            order.extend(candidates);
        } else {
            order.extend(candidates.rev());
        }
    }
    if round == 0 {
        order.push(None);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a race to its end; `value` of the number of a run and its candidate, none for a run that fails.
    fn run(
        race: &Race,
        mut value: impl FnMut(usize, Option<usize>) -> Option<f64>,
    ) -> (Vec<Done>, Option<usize>) {
        let mut done = Vec::new();
        loop {
            match race.next(&done, false) {
                Step::Decided(winner) => return (done, winner),
                Step::Run { candidate, stage } => {
                    let value = value(done.len(), candidate);
                    done.push(Done { candidate, stage, value });
                }
            }
        }
    }

    /// Times between 1 and 1.1, other ones in each run.
    fn noise(run: usize) -> f64 {
        1.0 + (run * 7919 % 100) as f64 / 1000.0
    }

    fn race(candidates: usize) -> Race {
        let variables = (0..candidates).collect();
        Race { variables, higher_is_better: false, combines: false }
    }

    fn runs_of(done: &[Done], candidate: Option<usize>) -> usize {
        done.iter().filter(|run| run.candidate == candidate).count()
    }

    #[test]
    fn the_fastest_of_many_wins_and_most_runs_are_its_own() {
        for (number, fastest) in [(1, 0), (2, 1), (5, 3), (16, 11)] {
            let time = |run, candidate| {
                Some(noise(run) * if candidate == Some(fastest) { 0.5 } else { 1.0 })
            };
            let (done, winner) = run(&race(number), time);
            assert_eq!(winner, Some(fastest), "{number}");
            let others = (0..number).filter(|other| *other != fastest);
            let most = others.map(|other| runs_of(&done, Some(other))).max().unwrap_or(0);
            let own = runs_of(&done, Some(fastest));
            assert!(own >= CONFIRMING + 3 && own > most, "{number}: {own}, {most}");
        }
    }

    #[test]
    fn the_default_runs_at_the_start_between_and_at_the_end() {
        let (done, _) = run(&race(6), |at, _| Some(noise(at)));
        assert_eq!(done[0].candidate, None);
        assert_eq!(done[1].candidate, None);
        let apart = done.split(|run| run.candidate.is_none()).map(<[Done]>::len).max().unwrap();
        assert!(apart <= 6, "{apart} runs without one");
        let last = &done[done.len() - 2..];
        assert!(last.iter().any(|run| run.candidate.is_none()), "{last:?}");
    }

    #[test]
    fn confirming_runs_are_new_and_in_pairs() {
        let (done, winner) = run(&race(3), |at, candidate| {
            Some(noise(at) * if candidate == Some(1) { 0.8 } else { 1.0 })
        });
        let confirming: Vec<&Done> =
            done.iter().filter(|run| run.stage == Stage::Confirm).collect();
        assert_eq!(confirming.len(), 2 * CONFIRMING);
        for pair in confirming.chunks(2) {
            let mut both = [pair[0].candidate, pair[1].candidate];
            both.sort_unstable();
            assert_eq!(both, [None, winner]);
        }
    }

    #[test]
    fn one_that_fails_is_run_no_more() {
        let (done, winner) = run(&race(4), |at, candidate| match candidate {
            Some(0) => None,
            Some(2) if at > 10 => None,
            _ => Some(noise(at)),
        });
        assert_eq!(runs_of(&done, Some(0)), 1);
        let failures = done.iter().filter(|run| run.candidate == Some(2) && run.value.is_none());
        assert!(failures.count() <= 1 && winner != Some(2) && winner != Some(0));
        let (done, winner) = run(&race(2), |at, of| of.is_none().then(|| noise(at)));
        assert_eq!((winner, runs_of(&done, Some(1))), (None, 1), "all fail");
    }

    #[test]
    fn what_is_slower_each_time_is_not_confirmed() {
        let (done, winner) = run(&race(3), |at, candidate| {
            Some(noise(at) * if candidate.is_some() { 2.0 } else { 1.0 })
        });
        assert_eq!(winner, None);
        assert!(done.iter().all(|run| run.stage != Stage::Confirm));
    }

    #[test]
    fn more_can_be_better() {
        let race = Race { higher_is_better: true, ..race(4) };
        let speed = |at, candidate| Some(noise(at) * if candidate == Some(2) { 2.0 } else { 1.0 });
        assert_eq!(run(&race, speed).1, Some(2));
    }

    #[test]
    fn a_race_that_was_stopped_goes_on_where_it_was() {
        let time =
            |at, candidate: Option<usize>| Some(noise(at) - candidate.unwrap_or(0) as f64 / 9.0);
        let (whole, winner) = run(&race(5), time);
        for stop in 0..whole.len() {
            let next = race(5).next(&whole[..stop], false);
            let Done { candidate, stage, .. } = whole[stop];
            assert_eq!(next, Step::Run { candidate, stage }, "after {stop}");
        }
        assert_eq!(race(5).next(&whole, false), Step::Decided(winner));
    }

    #[test]
    fn a_race_in_a_hurry_confirms_the_best_so_far() {
        let time = |at, candidate| Some(noise(at) * if candidate == Some(3) { 0.5 } else { 1.0 });
        let (whole, _) = run(&race(8), time);
        let soon = whole.iter().position(|run| run.candidate == Some(3)).unwrap() + 1;
        let mut done = whole[..soon].to_vec();
        while let Step::Run { candidate, stage } = race(8).next(&done, true) {
            assert_eq!(stage, Stage::Confirm);
            done.push(Done { candidate, stage, value: time(done.len(), candidate) });
        }
        assert_eq!(race(8).next(&done, true), Step::Decided(Some(3)));
        // And with more time afterwards it stays with what was chosen.
        assert_eq!(race(8).next(&done, false), Step::Decided(Some(3)));
    }

    #[test]
    fn what_is_better_is_tried_together() {
        // Two values of the first variable, one of the second, and one of a third that is slower.
        let race = Race { variables: vec![0, 0, 1, 2], combines: true, ..race(0) };
        let factors = [0.8, 0.7, 0.9, 1.5, 0.6];
        let time = |at, of: Option<usize>| Some(noise(at) * of.map_or(1.0, |of| factors[of]));
        let (done, winner) = run(&race, time);
        assert_eq!(race.together(&done), [1, 2]);
        assert_eq!(winner, Some(4), "both together");
        let (done, winner) = run(&race, |at, of| time(at, of).filter(|_| of != Some(4)));
        assert_eq!((winner, runs_of(&done, Some(4))), (Some(1), 1), "together they fail");
    }

    #[test]
    fn the_runs_that_are_left_are_known_before() {
        assert_eq!(race(0).runs_left(&[]), FIRST_DEFAULTS);
        let (done, _) = run(&race(5), |at, of| Some(noise(at) * of.map_or(1.0, |_| 0.5)));
        assert_eq!(race(5).runs_left(&[]), done.len());
        assert_eq!(race(5).runs_left(&done), 0);
    }
}
