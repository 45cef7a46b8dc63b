//! What gyan cost, whether that was within its budget, and if not, why.

use gyan_results::{OverheadSummary, Statistic, Summary};

use super::super::numbers::{percent, plural, ranges, seconds, share};
use super::Section;

pub(super) fn cost(summary: &Summary) -> Section {
    let overhead = &summary.overhead;
    let over = if overhead.over_budget.is_empty() { "" } else { ": BUDGET EXCEEDED" };
    let mut notes = vec![format!(
        "{}; MPI_T_init_thread inside the library: {}",
        parts(overhead),
        largest(&overhead.mpit_init_s)
    )];
    notes.extend(budget(summary));
    if let Some(clock) = summary.clock.as_ref().filter(|clock| clock.slow) {
        notes.push(format!(
            "the clock is slow ({}, {} a reading), so fewer calls were timed",
            clock.source,
            seconds(clock.read_s)
        ));
    }
    Section {
        title: format!(
            "Cost of gyan: at most {} of the run on a rank{over}",
            percent(overhead.share.max.as_f64())
        ),
        columns: Vec::new(),
        rows: Vec::new(),
        notes,
    }
}

fn largest(statistic: &Statistic) -> String {
    seconds(statistic.max.as_f64())
}

fn parts(overhead: &OverheadSummary) -> String {
    let start = largest(&overhead.init_s);
    let sampling = largest(&overhead.sampling_s);
    let end = largest(&overhead.finalize_s);
    let events = overhead.events_s.as_ref().filter(|events| !events.is_zero());
    let events = events.map_or(String::new(), |events| {
        format!(" {} in callbacks of the library,", largest(events))
    });
    match &overhead.wrappers_s {
        Some(wrappers) => format!(
            "{start} at the start, {sampling} sampling variables and for the live file, {} counting and timing calls,{events} \
             {end} at the end (largest of all ranks)",
            largest(wrappers)
        ),
        None => format!(
            "{start} at the start, {sampling} between, {end} at the end (largest of all ranks, \
             without counting)"
        ),
    }
}

fn budget(summary: &Summary) -> Option<String> {
    let overhead = &summary.overhead;
    let running = overhead.running_share.as_ref()?;
    let Some(budget) = overhead.budget else {
        return Some("no budget (GYAN_BUDGET=none): every call was timed and sampled".into());
    };
    let over = &overhead.over_budget;
    let most = match over.as_slice() {
        [_] => share(running.max.as_f64()),
        _ => format!("{} on rank {}", share(running.max.as_f64()), running.max_rank),
    };
    if over.is_empty() {
        return Some(format!(
            "kept its budget of {} of the run after the start: at most {most}",
            share(budget)
        ));
    }
    Some(format!(
        "EXCEEDED its budget of {} of the run after the start on rank{} {}: {most}; {}",
        share(budget),
        plural(over.len() as u64),
        ranges(over),
        why(overhead, budget, summary.job.elapsed_s),
    ))
}

/// The part that is more than the budget by itself, and what would help. The end and the counts
/// cost what they cost: no budget makes them less.
fn why(overhead: &OverheadSummary, budget: f64, elapsed_s: f64) -> String {
    let allowed_s = budget * elapsed_s;
    let end_s = overhead.finalize_s.max.as_f64();
    let wrappers_s = overhead.wrappers_s.as_ref().map_or(0.0, |wrappers| wrappers.max.as_f64());
    let events_s = overhead.events_s.as_ref().map_or(0.0, |events| events.max.as_f64());
    let sampling_s = overhead.sampling_s.max.as_f64();
    if end_s > allowed_s {
        format!(
            "the end alone takes {}, for which the run of {} is too short: {} would do",
            seconds(end_s),
            seconds(elapsed_s),
            seconds(end_s / budget),
        )
    } else if events_s > allowed_s {
        format!(
            "the callbacks of the library alone take {}: they cost something for every message, so run \
             without GYAN_EVENTS",
            seconds(events_s)
        )
    } else if wrappers_s > allowed_s {
        format!(
            "counting the calls alone takes {}: the program calls MPI very often",
            seconds(wrappers_s)
        )
    } else if sampling_s > allowed_s {
        format!("reading variables alone takes {}", seconds(sampling_s))
    } else {
        "no part does alone, all of them do together".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{Number, Statistics};

    use super::*;

    fn seconds_of(end_s: f64, wrappers_s: f64, sampling_s: f64) -> OverheadSummary {
        let of = |value| Statistics::of(Number::Double(value), 0).finish().unwrap();
        OverheadSummary {
            mpit_init_s: of(0.0),
            init_s: of(0.0),
            sampling_s: of(sampling_s),
            wrappers_s: Some(of(wrappers_s)),
            events_s: None,
            finalize_s: of(end_s),
            share: of(0.0),
            running_share: Some(of(0.0)),
            budget: Some(0.01),
            over_budget: vec![0],
        }
    }

    #[test]
    fn a_budget_that_was_exceeded_has_the_reason() {
        let why = |end_s, wrappers_s, sampling_s| {
            why(&seconds_of(end_s, wrappers_s, sampling_s), 0.01, 1.0)
        };
        let end = why(0.02, 0.0, 0.0);
        assert!(end.contains("the end alone takes 20.0 ms"), "{end}");
        assert!(end.ends_with("2.00 s would do"), "{end}");
        assert!(why(0.009, 0.02, 0.0).starts_with("counting the calls alone takes 20.0 ms"));
        assert!(why(0.009, 0.0, 0.02).starts_with("reading variables alone takes 20.0 ms"));
        assert!(why(0.009, 0.009, 0.0).starts_with("no part does alone"));
    }

    #[test]
    fn callbacks_that_cost_too_much_are_named_with_what_to_do() {
        let mut overhead = seconds_of(0.0, 0.0, 0.0);
        overhead.events_s = Statistics::of(Number::Double(0.02), 0).finish();
        let why = why(&overhead, 0.01, 1.0);
        assert!(why.contains("callbacks of the library alone take 20.0 ms"), "{why}");
        assert!(why.ends_with("without GYAN_EVENTS"), "{why}");
        assert!(parts(&overhead).contains(" 20.0 ms in callbacks of the library, 0 s at the end"));
    }
}
