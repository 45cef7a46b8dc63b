//! What did gyan cost, was that within its budget, and if not, why?

use gyan_results::{OverheadSummary, Statistic, Summary, Unit};

use super::{Part, ReportInput};
use crate::document::page::PageBlock;
use crate::document::value::{Amount, InUnit, line, seconds, share};
use crate::document::{Section, Value, plural};

/// What gyan itself cost.
pub(super) const COST: Part = Part { option: None, table: None, block: Some(|of| Ok(block(of))) };

/// `all`: also work that the library does because of gyan, although it is not gyan's cost.
pub(crate) fn cost(summary: &Summary, all: bool) -> Section<'_> {
    let overhead = &summary.overhead;
    let over = if overhead.over_budget.is_empty() { "" } else { ": BUDGET EXCEEDED" };
    let mut notes = vec![parts(overhead)];
    notes.extend(all.then(|| mpit_init(summary)));
    notes.extend(budget(summary));
    if let Some(clock) = summary.clock.as_ref().filter(|clock| clock.slow) {
        let reading = seconds(clock.read_s);
        notes.push(line![
            "the clock is slow (",
            &clock.source,
            ", ",
            reading,
            " a reading), so fewer calls were timed"
        ]);
    }
    let most = Unit::Share.amount(overhead.share.max);
    Section::of_notes(line!["Cost of gyan: at most ", most, " of the run on a rank", over], notes)
}

/// It runs before `MPI_Init` and takes over some of its work.
fn mpit_init(summary: &Summary) -> Value<'_> {
    let instead = match summary.mpi.abi.as_str() {
        "openmpi" => ": Open MPI opens its components once, there or else in MPI_Init",
        _ => "",
    };
    let time = largest(&summary.overhead.mpit_init_s);
    line!["MPI_T_init_thread inside the library took ", time, ", which is not counted", instead]
}

fn largest(statistic: &Statistic) -> Amount {
    Unit::Seconds.amount(statistic.max)
}

fn parts(overhead: &OverheadSummary) -> Value<'static> {
    let start = largest(&overhead.init_s);
    let sampling = largest(&overhead.sampling_s);
    let end = largest(&overhead.finalize_s);
    let Some(wrappers) = &overhead.wrappers_s else {
        return line![
            start,
            " at the start, ",
            sampling,
            " between, ",
            end,
            " at the end (largest of all ranks, without counting)"
        ];
    };
    let events = overhead.events_s.as_ref().filter(|events| !events.is_zero());
    let events = events
        .map_or("".into(), |events| line![" ", largest(events), " in callbacks of the library,"]);
    let timeline = overhead.timeline_s.as_ref();
    let timeline = timeline
        .map_or("".into(), |timeline| line![" ", largest(timeline), " recording the timeline,"]);
    line![
        start,
        " at the start, ",
        sampling,
        " sampling variables and for the live file, ",
        largest(wrappers),
        " counting and timing calls,",
        events,
        timeline,
        " ",
        end,
        " at the end (largest of all ranks)"
    ]
}

fn budget(summary: &Summary) -> Option<Value<'_>> {
    let overhead = &summary.overhead;
    let running = overhead.running_share.as_ref()?;
    let Some(budget) = overhead.budget else {
        return Some("no budget (GYAN_BUDGET=none): every call was timed and sampled".into());
    };
    let over = overhead.over_budget.as_slice();
    let most = Unit::Share.amount(running.max);
    let most = match over {
        [_] => most.into(),
        _ => line![most, " on rank ", Value::Rank(running.max_rank)],
    };
    Some(if over.is_empty() {
        line![
            "kept its budget of ",
            share(budget),
            " of the run between start and end: at most ",
            most
        ]
    } else {
        let ranks = line![" on rank", plural(over.len() as u64), " ", Value::Ranks(over.into())];
        let most_called = summary.most_called().map_or("MPI", |call| &call.name);
        let why = why(overhead, budget, summary.job.known_s(), most_called);
        line![
            "EXCEEDED its budget of ",
            share(budget),
            " of the run between start and end",
            ranks,
            ": ",
            most,
            "; ",
            why
        ]
    })
}

/// The part that exceeds the budget on its own, and what would help. No budget can reduce the cost of counting.
fn why<'a>(
    overhead: &OverheadSummary,
    budget: f64,
    elapsed_s: f64,
    most_called: &'a str,
) -> Value<'a> {
    let allowed_s = budget * elapsed_s;
    let events_s = overhead.events_s.as_ref().map_or(0.0, |events| events.max.as_f64());
    let sampling_s = overhead.sampling_s.max.as_f64();
    if events_s > allowed_s {
        line![
            "the callbacks of the library by themselves take ",
            seconds(events_s),
            ": they cost something for every message, so run without GYAN_EVENTS"
        ]
    } else if let Some(counting_s) = overhead.counting_beyond_budget_s(elapsed_s) {
        line![
            "counting the calls by itself takes ",
            seconds(counting_s),
            ": the program calls ",
            most_called,
            " very often"
        ]
    } else if sampling_s > allowed_s {
        line!["reading variables by itself takes ", seconds(sampling_s)]
    } else {
        "no part does by itself, all of them do together".into()
    }
}

fn block<'r>(of: &'r ReportInput) -> PageBlock<'r> {
    let summary = of.summary;
    let Section { title, notes, .. } = cost(summary, true);
    let mut block = PageBlock::new("cost", "What gyan itself cost");
    block.says.push(title);
    block.says.extend(notes);
    block
}

#[cfg(test)]
mod tests {
    use gyan_results::{Number, Statistics};

    use super::*;
    use crate::render::text;

    fn seconds_of(end_s: f64, wrappers_s: f64, sampling_s: f64) -> OverheadSummary {
        let of = |value| Statistics::of(Number::Double(value), 0).finish().unwrap();
        OverheadSummary {
            mpit_init_s: of(0.0),
            init_s: of(0.0),
            sampling_s: of(sampling_s),
            wrappers_s: Some(of(wrappers_s)),
            events_s: None,
            timeline_s: None,
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
            text(&why(&seconds_of(end_s, wrappers_s, sampling_s), 0.01, 1.0, "MPI_Wtime"))
        };
        // The end is not part of it.
        let counting = "counting the calls by itself takes 20.0 ms: the program calls MPI_Wtime";
        assert!(why(0.5, 0.02, 0.0).starts_with(counting));
        assert!(why(0.5, 0.0, 0.02).starts_with("reading variables by itself takes 20.0 ms"));
        assert!(why(0.5, 0.009, 0.0).starts_with("no part does by itself"));
    }

    #[test]
    fn what_a_timeline_took_is_said_beside_what_the_budget_limits() {
        let mut overhead = seconds_of(0.0, 0.001, 0.0);
        overhead.timeline_s = Statistics::of(Number::Double(0.02), 0).finish();
        let said = text(&parts(&overhead));
        assert!(
            said.contains("1.00 ms counting and timing calls, 20.0 ms recording the timeline, "),
            "{said}"
        );
    }

    #[test]
    fn callbacks_that_cost_too_much_are_named_with_what_to_do() {
        let mut overhead = seconds_of(0.0, 0.0, 0.0);
        overhead.events_s = Statistics::of(Number::Double(0.02), 0).finish();
        let why = text(&why(&overhead, 0.01, 1.0, "MPI_Wtime"));
        assert!(why.contains("callbacks of the library by themselves take 20.0 ms"), "{why}");
        assert!(why.ends_with("without GYAN_EVENTS"), "{why}");
        assert!(
            text(&parts(&overhead))
                .contains(" 20.0 ms in callbacks of the library, 0 s at the end")
        );
    }
}
