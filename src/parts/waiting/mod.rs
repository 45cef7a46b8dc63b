//! How much of the time in collectives is waiting, and for whom? How long do ranks wait for messages (`messages`), and which
//! for which (`matrix`)? Which ranks is the critical path on (`path`)?

mod matrix;
mod messages;
mod path;
mod rows;

use gyan_results::{
    CommunicatorWaiting, Fidelity, LastRank, Summary, WaitingOfRanks, WaitingSummary, WaitsFor,
    only_starts,
};

use crate::document::limits::{first_rows, more_rows};
use crate::document::page::pictures::{Bar, Bars, Chart, LegendKey, Picture};
use crate::document::page::{BARS_AT_MOST, PageBlock};
use crate::document::value::{Amount, Bound, line, row, seconds, share};
use crate::document::{Document, Presentation, Section, Value, View, cut, numbers, texts};
use crate::error::Error;
use crate::parts::headings::{library_and_job, title};
use crate::parts::{Part, PartOption, ReportInput, SummaryTable};

pub(super) use path::{PATH, critical_path, first};
use rows::{Waits, rows};

/// Waiting in collectives and in messages.
pub(super) const WAITING: Part = Part {
    option: Some(PartOption::new(
        "waiting",
        "How much of the time in barriers, reductions, broadcasts and their kin is waiting, and \
         for whom; and who waits for whom in messages",
        show,
    )),
    table: Some(SummaryTable::new::<rows::WaitingRow>(
        "summary_waiting",
        "collective and communicator, and pair of ranks of which one waited for the other in messages",
        |of| Some(rows(Waits::new(of))),
    )),
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let waiting = &of.summary.waiting;
    if waiting.is_empty() && of.summary.message_waiting.is_none() {
        return Err(of.lacks(
            "no collective was compared between ranks",
            "waiting is known of calls such as MPI_Allreduce, MPI_Barrier and MPI_Bcast, on communicators of at \
             least two ranks, and not with GYAN_WAITING=off",
        ));
    }
    let view = view(of, of.all);
    let document = Document::new(Waits::new(of));
    Ok(Presentation { view, rows: rows(Waits::new(of)), document })
}

/// The share of the time of all ranks that makes a function worth a sentence, and the most sentences.
const SHARE_AT_LEAST: f64 = 0.01;
const SENTENCES_AT_MOST: usize = 3;
/// The sentence names a single rank when this share of all waiting is for it, and twice as much as for any
/// other.
const MOST: f64 = 0.5;
const LAST_AT_MOST: usize = 2;
/// Length limit of a list of ranks, in characters.
const RANKS_AT_MOST: usize = 16;

type OnCommunicator<'a> = (&'a WaitingSummary, &'a CommunicatorWaiting);

fn view<'r>(of: &'r ReportInput, all: bool) -> View<'r> {
    let summary = of.summary;
    let mut subtitle = vec![library_and_job(summary)];
    subtitle.extend(summary.waiting.iter().map(sentence));
    subtitle.extend(messages::longest(of));
    subtitle.extend(path::sentence(of));
    let functions = &summary.waiting;
    let rows = functions.iter().flat_map(|of| of.communicators.iter().map(move |on| (of, on)));
    let mut rows: Vec<OnCommunicator> = rows.collect();
    rows.sort_by(|(_, one), (_, other)| other.waiting_s.total_cmp(&one.waiting_s));
    let (rows, cut_off) = first_rows(rows, all);
    let of_ranks = by_rank(&rows);
    let collectives = (!functions.is_empty()).then(|| table(functions, rows, cut_off));
    let sections =
        collectives.into_iter().chain(of_ranks).chain(messages::table(of, all)).collect();
    View { title: title(summary), subtitle, sections }
}

/// Whether so many seconds of all ranks together are worth a sentence.
fn is_much(summary: &Summary, seconds: f64) -> bool {
    let elapsed = summary.elapsed_s.as_ref();
    elapsed.is_some_and(|elapsed| seconds >= SHARE_AT_LEAST * elapsed.sum.as_f64())
}

/// A sentence for each function that takes much of the time, and for the pair of ranks that waits longest.
pub(crate) fn sentences<'r>(of: &'r ReportInput) -> Option<Section<'r>> {
    let summary = of.summary;
    let mut much: Vec<&WaitingSummary> =
        summary.waiting.iter().filter(|of| is_much(summary, of.time_s)).collect();
    much.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    much.truncate(SENTENCES_AT_MOST);
    let mut notes: Vec<Value> = much.into_iter().map(sentence).collect();
    let in_messages = messages::longest(of).zip(summary.message_waiting.as_ref());
    let (title, more) = match &in_messages {
        Some(_) => ("Waiting", "--waiting shows it by communicator, and by pair of ranks"),
        None => ("Waiting in collectives", "--waiting shows them by communicator"),
    };
    notes.extend(
        in_messages.into_iter().flat_map(|(longest, all)| [longest, messages::totals(all)]),
    );
    notes.extend(path::sentence(of));
    if notes.is_empty() {
        return None;
    }
    notes.push(more.into());
    Some(Section::of_notes(title, notes))
}

fn sentence(of: &WaitingSummary) -> Value<'_> {
    let part = (of.calls_not_compared > 0).then(|| line![" in ", of.calls, " calls"]);
    let waiting = waited(of.waiting_s, of.waiting_error_s, of.ranks_missing);
    let place = if only_starts(&of.function) { " where it is completed" } else { "" };
    let of_which = line![&of.function, ": ", seconds(of.time_s), part.unwrap_or("".into()), place];
    line![of_which, ", of which ", waiting, " is waiting", for_whom(&of.last)]
}

/// For whom ranks wait in a function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WaitedFor {
    Rank(u32),
    Several,
}

impl WaitedFor {
    pub(crate) fn in_words(self) -> Value<'static> {
        match self {
            WaitedFor::Rank(rank) => line!["rank ", Value::Rank(rank)],
            WaitedFor::Several => "several".into(),
        }
    }
}

/// For whom ranks wait in a function, if they do for much of its time.
pub(crate) fn waited_for(summary: &Summary, function: &str) -> Option<WaitedFor> {
    /// Less of the function's time is not worth naming.
    const MUCH: f64 = 0.2;
    let time_s = summary.calls.iter().find(|call| call.name == function)?.time_s.as_ref()?;
    let is_much = |waiting_s: f64| waiting_s >= MUCH * time_s.sum.as_f64();
    if let Some(of) = summary.waiting_in(function) {
        return is_much(of.waiting_s).then(|| most_waited_for(&of.last)).flatten();
    }
    let of = summary.message_waiting.iter().flat_map(|of| &of.functions);
    let of = of.into_iter().find(|of| of.function == function)?;
    let whom =
        if of.late_share >= MOST { WaitedFor::Rank(of.late_rank) } else { WaitedFor::Several };
    is_much(of.waiting_s).then_some(whom)
}

/// The one rank for which most of the waiting is, if there is one. `last`: the ranks, that with the most first.
fn most_waited_for(last: &[LastRank]) -> Option<WaitedFor> {
    let next = last.get(1).map_or(0.0, |next| next.waiting_share);
    let first = last.first().filter(|first| first.waiting_share > 0.0)?;
    let is_one = first.waiting_share >= MOST.max(2.0 * next);
    Some(if is_one { WaitedFor::Rank(first.rank) } else { WaitedFor::Several })
}

fn for_whom(last: &[LastRank]) -> Value<'_> {
    match (most_waited_for(last), last.first()) {
        (Some(WaitedFor::Rank(rank)), _) => line![" for rank ", Value::Rank(rank)],
        (Some(WaitedFor::Several), Some(first)) => {
            let part = share(first.waiting_share);
            line![" for several ranks, ", part, " of it for rank ", Value::Rank(first.rank)]
        }
        _ => "".into(),
    }
}

/// Nobody knows how much later missing ranks came.
fn waited(waiting_s: f64, error: Option<f64>, ranks_missing: bool) -> Amount {
    let amount = seconds(waiting_s).estimated(error);
    Amount { bound: if ranks_missing { Bound::AtLeast } else { amount.bound }, ..amount }
}

fn table<'a>(
    functions: &'a [WaitingSummary],
    rows: Vec<OnCommunicator<'a>>,
    cut_off: usize,
) -> Section<'a> {
    let mut notes = more_rows(cut_off);
    notes.push(
        "times are those of all ranks together; TRANSFER is the time without WAITING; LAST is whom \
         most of the waiting was for"
            .into(),
    );
    let mut how: Vec<&str> =
        functions.iter().map(|of| how_waiting_is_known(&of.function)).collect();
    how.sort_unstable();
    how.dedup();
    notes.extend(how.into_iter().map(Value::from));
    let compared = |(_, on): &OnCommunicator| on.compared.saturating_mul(on.size.into());
    if rows.iter().any(|(_, on)| on.waiting_error_s != Some(0.0)) {
        let compared = rows.iter().map(compared).fold(0, u64::saturating_add);
        let calls = rows.iter().map(|(_, on)| on.calls).fold(0, u64::saturating_add);
        let error = "; ± is the standard error of the estimate for the others";
        notes.push(line![compared, " of ", calls, " calls were timed on all ranks", error]);
    }
    for of in functions.iter().filter(|of| of.calls_not_compared > 0) {
        let why = match &*of.function {
            "MPI_Win_fence" => {
                " more calls are not compared: with MPI_MODE_NOPRECEDE, or on windows of one rank, or of too many"
            }
            _ => {
                " more calls are not compared: on communicators of one rank or of two groups, or of too many"
            }
        };
        notes.push(line![&of.function, ": ", of.calls_not_compared, why]);
    }
    if functions.iter().any(|of| of.ranks_missing) {
        notes.push("≥ where ranks are missing, which may have come later than all others".into());
    }
    let mut columns = texts(["FUNCTION", "COMMUNICATOR", "RANKS"]);
    columns.extend(numbers(["CALLS", "TIME", "WAITING", "OF TIME", "TRANSFER"]));
    columns.extend(texts(["LAST"]));
    Section {
        title: "Waiting in collectives".into(),
        columns,
        rows: rows.into_iter().map(|(of, on)| cells(of, on)).collect(),
        notes,
    }
}

/// What WAITING is in a function, in words.
fn how_waiting_is_known(function: &str) -> &'static str {
    if only_starts(function) {
        return "TIME of a nonblocking function such as MPI_Ibcast is that of the calls that complete it (MPI_Wait), and \
                WAITING the part of it until those that a rank waits for have started the operation; a call that \
                completes several counts for the one with the longest waiting";
    }
    match WaitsFor::in_function(function) {
        WaitsFor::All => {
            "WAITING in MPI_Barrier, MPI_Allreduce and their kin is how much longer ranks took for a call than the \
             one that came last"
        }
        WaitsFor::Root => {
            "WAITING in MPI_Bcast, MPI_Scatter and MPI_Scatterv is the time until the root began the call"
        }
        WaitsFor::AtRoot => {
            "WAITING in MPI_Reduce, MPI_Gather and MPI_Gatherv is the time of the root until the last other rank \
             began the call"
        }
        WaitsFor::Lower => {
            "WAITING in MPI_Scan and MPI_Exscan is the time until the last rank with a lower number began the call"
        }
    }
}

fn cells<'a>(of: &'a WaitingSummary, on: &'a CommunicatorWaiting) -> Vec<Value<'a>> {
    let missing = of.ranks_missing;
    let waiting = waited(on.waiting_s, on.waiting_error_s, missing);
    let part = if on.time_s > 0.0 { on.waiting_s / on.time_s } else { 0.0 };
    let mut last: Vec<Value> = Vec::new();
    for one in on.last.iter().filter(|one| one.waiting_share > 0.0).take(LAST_AT_MOST) {
        if !last.is_empty() {
            last.push(", ".into());
        }
        last.push(line![Value::Rank(one.rank), " (", share(one.waiting_share), ")"]);
    }
    row![
        &of.function,
        &on.communicator,
        cut(&on.ranks, RANKS_AT_MOST),
        on.calls,
        seconds(on.time_s),
        waiting,
        share(part),
        seconds(on.time_s - on.waiting_s),
        Value::Line(last),
    ]
}

/// Which ranks wait most and which least, on the communicators of `rows`.
fn by_rank<'a>(rows: &[OnCommunicator<'a>]) -> Option<Section<'a>> {
    let cells = |(of, on): &OnCommunicator<'a>| {
        let WaitingOfRanks { min_s, min_rank, avg_s, max_s, max_rank } = on.of_ranks?;
        let is_all = on.waiting_error_s == Some(0.0);
        let known = if is_all { Fidelity::Exact } else { Fidelity::Estimated };
        let [min, avg, max] = [min_s, avg_s, max_s].map(|of| seconds(of).known(known));
        Some(row![&of.function, &on.communicator, min.on(min_rank), avg, max.on(max_rank)])
    };
    let rows: Vec<_> = rows.iter().filter_map(cells).collect();
    let mut columns = texts(["FUNCTION", "COMMUNICATOR"]);
    columns.extend(numbers(["MIN (RANK)", "AVERAGE", "MAX (RANK)"]));
    let title = "Waiting by rank".into();
    (!rows.is_empty()).then(|| Section { title, columns, rows, notes: Vec::new() })
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    if summary.waiting.is_empty() && summary.message_waiting.is_none() {
        return Err("waiting in collectives: none in which ranks wait for each other was called, or GYAN_WAITING was off".into());
    }
    let title =
        if summary.message_waiting.is_some() { "Waiting" } else { "Waiting in collectives" };
    let mut block = PageBlock::new("waiting", title);
    block.says.extend(summary.waiting.iter().take(BARS_AT_MOST).map(sentence));
    block.says.extend(messages::longest(of));
    let bar = |of: &'_ gyan_results::WaitingSummary| Bar {
        name: of.function.clone().into(),
        parts: vec![seconds(of.waiting_s), seconds((of.time_s - of.waiting_s).max(0.0))],
    };
    let bars: Vec<Bar> = summary.waiting.iter().take(BARS_AT_MOST).map(bar).collect();
    if !bars.is_empty() {
        block.charts.push(Chart::new(
            "How much of the collectives is waiting for others?",
            "time of all ranks together",
            Picture::Bars(Bars { keys: LegendKey::pair("waiting", "transfer"), bars }),
        ));
    }
    block.charts.extend(matrix::chart(summary));
    Ok(block.of_view(false, view(of, true)))
}
