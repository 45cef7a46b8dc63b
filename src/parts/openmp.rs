//! What became of the time of the threads of OpenMP: the parallel regions, and what is lost in each.

use gyan_results::{Fidelity, HybridEfficiencies, OpenMpRegionSummary, Unit};
use serde::Serialize;

use super::headings::{library_and_job, title};
use super::{Part, PartOption, ReportInput, SummaryTable, watch};
use crate::document::data::columns;
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::pictures::{Bar, Bars, Chart, LegendKey, Picture};
use crate::document::page::{BARS_AT_MOST, PageBlock};
use crate::document::value::{Amount, InUnit, line, row, seconds, share};
use crate::document::{
    Data, Document, Kind, Presentation, Section, Value, View, column, numbers, plural, texts,
};
use crate::error::Error;
use crate::findings::hybrid;
use crate::symbols::StackFrame;

/// Parallel regions.
pub(super) const OPENMP: Part = Part {
    option: Some(PartOption::new(
        "openmp",
        "The parallel regions of OpenMP: how long they take, and what their threads lose to imbalance, \
         barriers and MPI",
        show,
    )),
    table: Some(SummaryTable::new::<RegionRow>(
        "summary_openmp",
        "parallel region of OpenMP",
        |of| of.summary.openmp.as_ref().map(|_| Data::new(rows(of))),
    )),
    block: Some(block),
};

const EFFICIENCIES: &str = "Efficiencies of the threads";
/// Less of the threads' time is not named on the first screen.
const NAMED_AT_LEAST: f64 = 0.005;

/// A parallel region, and where it is.
#[derive(Serialize)]
struct RegionRow<'a> {
    /// The function that starts it; none for those that are not kept apart.
    place: Option<&'a StackFrame>,
    /// The library that it is in, if it is in one.
    object: Option<&'a str>,
    /// Its wall time as a part of that of all ranks.
    share: Option<f64>,
    numbers: &'a OpenMpRegionSummary,
}

impl RegionRow<'_> {
    /// A part of what its threads had.
    fn of_threads(&self, thread_s: f64) -> Option<f64> {
        let whole_s = self.numbers.threads_s.sum.as_f64();
        (whole_s > 0.0).then(|| (thread_s / whole_s).clamp(0.0, 1.0))
    }
}

/// What JSON has.
#[derive(Serialize)]
struct OpenMpReport<'a> {
    runtime: &'a str,
    efficiencies: Option<HybridEfficiencies>,
    regions: Vec<RegionRow<'a>>,
    remarks: &'a [String],
}

fn rows<'r>(of: &'r ReportInput) -> Vec<RegionRow<'r>> {
    let Some(openmp) = &of.summary.openmp else { return Vec::new() };
    let elapsed_s = openmp.elapsed_s.sum.as_f64();
    let (places, _) = of.regions();
    let row = |region: &'r OpenMpRegionSummary| {
        let place = region.place.and_then(|at| places.get(at));
        RegionRow {
            place: place.map(|place| &place.frame),
            object: place.and_then(|place| place.object.as_deref()),
            share: (elapsed_s > 0.0).then(|| region.time_s.sum.as_f64() / elapsed_s),
            numbers: region,
        }
    };
    openmp.regions.iter().map(row).collect()
}

fn efficiencies(of: &ReportInput) -> Option<HybridEfficiencies> {
    of.answers().efficiencies.as_ref()?.hybrid
}

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let openmp = of.summary.openmp.as_ref().ok_or_else(|| {
        of.lacks(
            "no OpenMP runtime told of its parallel regions",
            "LLVM's and Intel's tell (clang -fopenmp, icx -qopenmp), GNU's libgomp does not; gyan help openmp says more",
        )
    })?;
    let (_, remarks) = of.regions();
    let document = Document::new(OpenMpReport {
        runtime: &openmp.runtime,
        efficiencies: efficiencies(of),
        regions: rows(of),
        remarks,
    });
    Ok(Presentation { view: view(of, of.all), rows: Data::new(rows(of)), document })
}

fn view<'r>(of: &'r ReportInput, all: bool) -> View<'r> {
    let mut subtitle = vec![library_and_job(of.summary)];
    subtitle.extend(of.summary.openmp.as_ref().map(|of| line!["OpenMP: ", &of.runtime]));
    let said = first(of);
    let why_none = || Section::of_notes(EFFICIENCIES, vec![hybrid::why_unknown(of.summary).into()]);
    let of_threads = efficiencies(of).map(of_threads).or_else(|| said.is_none().then(why_none));
    subtitle.extend(said);
    let sections = of_threads.into_iter().chain([table(of, all)]).collect();
    View { title: title(of.summary), subtitle, sections }
}

fn table<'r>(of: &'r ReportInput, all: bool) -> Section<'r> {
    let (shown, cut_off) = first_rows(rows(of), all);
    if shown.is_empty() {
        let none = "no parallel region was entered between MPI_Init and MPI_Finalize";
        return Section::of_notes("Parallel regions", vec![none.into()]);
    }
    let mut notes = more_rows(cut_off);
    notes.push(
        "TIME is the wall time of an average rank; from WORK on: parts of the time of the threads in the region".into(),
    );
    notes.push(
        "IMBALANCE is what threads have less to do than the one with the most; BARRIERS is waiting for it, and for threads that begin late"
            .into(),
    );
    if shown.iter().any(|row| row.numbers.time_error_s != Some(0.0)) {
        let at_least = shown.iter().any(|row| row.numbers.time_error_s.is_none());
        let least = if at_least { "; ≥ where too few were to tell how wrong it is" } else { "" };
        notes.push(format!("± is the standard error: not every entry was timed{least}").into());
    }
    notes.extend(of.regions().1.iter().map(Value::from));
    let mut columns = vec![column("REGION", Kind::Place)];
    columns.extend(numbers([
        "ENTRIES",
        "THREADS",
        "TIME",
        "OF RUN",
        "PER ENTRY",
        "WORK",
        "IMBALANCE",
        "BARRIERS",
        "IN MPI",
    ]));
    let ranks = f64::from(of.summary.ranks.reduced.max(1));
    Section {
        title: "Parallel regions".into(),
        columns,
        rows: shown.iter().map(|row| cells(row, ranks, all)).collect(),
        notes,
    }
}

fn cells<'a>(row: &RegionRow<'a>, ranks: f64, all: bool) -> Vec<Value<'a>> {
    let OpenMpRegionSummary { entries, threads, time_s, time_error_s, work_s, .. } = row.numbers;
    let (time, entries) = (time_s.sum.as_f64(), entries.sum.as_f64());
    let error = time_error_s.map(|error| error / ranks);
    let part = |of: &gyan_results::Statistic| row.of_threads(of.sum.as_f64()).map(share);
    row![
        place(row, all),
        Unit::Count.double(entries / ranks),
        threads.max,
        seconds(time / ranks).estimated(error),
        row.share.map(share),
        (entries > 0.0).then(|| seconds(time / entries)),
        part(work_s),
        part(&row.numbers.lost_to_imbalance_s),
        part(&row.numbers.barrier_s),
        part(&row.numbers.in_mpi_s),
    ]
}

fn place(row: &RegionRow, all: bool) -> String {
    match (row.place, row.object) {
        (None, _) => "elsewhere".to_owned(),
        // Where the function has no name, its place begins with the object.
        (Some(frame), Some(object)) if frame.is_named => {
            format!("{} in {object}", watch::place(frame, all))
        }
        (Some(frame), _) => watch::place(frame, all),
    }
}

/// The efficiencies of the threads.
pub(super) fn of_threads<'a>(of: HybridEfficiencies) -> Section<'a> {
    let HybridEfficiencies {
        threads,
        parallel,
        parallel_error,
        mpi,
        openmp,
        serialisation,
        load_balance,
        scheduling,
    } = of;
    let part = |value: f64| share(value).known(Fidelity::Estimated);
    let whole = Amount { error: parallel_error, ..part(parallel) };
    let mut columns = texts(["OF"]);
    columns.extend(numbers([
        "MPI",
        "OPENMP",
        "SERIALISATION",
        "LOAD BALANCE",
        "SCHEDULING",
        "PARALLEL",
    ]));
    let cells = row![
        line!["all ", threads, " threads"],
        part(mpi),
        part(openmp),
        part(serialisation),
        part(load_balance),
        part(scheduling),
        whole
    ];
    let notes = vec![
        "PARALLEL, the useful part of the threads' time, is MPI x OPENMP; OPENMP is SERIALISATION x LOAD BALANCE x SCHEDULING"
            .into(),
        "gyan help openmp says what they are".into(),
    ];
    Section { title: EFFICIENCIES.into(), columns, rows: vec![cells], notes }
}

/// `2 ranks of 8 threads: 61 % of the threads' time was useful; lost: 22 % to serial code, ...`; none where no rank has several.
pub(super) fn first<'r>(of: &'r ReportInput) -> Option<Value<'r>> {
    let ranks = u64::from(of.summary.ranks.reduced);
    let threads = &of.summary.openmp.as_ref()?.threads;
    if threads.max.as_f64() < 2.0 {
        return None;
    }
    let team = if threads.min == threads.max {
        line![threads.max]
    } else {
        line![threads.min, " to ", threads.max]
    };
    let who = line![ranks, " rank", plural(ranks), " of ", team, " threads: "];
    let Some(hybrid) = efficiencies(of) else {
        return Some(line![
            who,
            "the useful part of their time is ",
            hybrid::why_unknown(of.summary)
        ]);
    };
    let whole = Amount { error: hybrid.parallel_error, ..share(hybrid.parallel) };
    let mut parts: Vec<Value> = Vec::new();
    let names = ["to serial code", "to imbalance", "to scheduling", "to MPI"];
    for (at, (lost, name)) in hybrid.lost().into_iter().zip(names).enumerate() {
        if lost < NAMED_AT_LEAST {
            continue;
        }
        let joint = if parts.is_empty() { "; lost: " } else { ", " };
        let region = if at == 1 { uneven(of) } else { None };
        let region = region.map_or("".into(), |place| line![" (most in ", place, ")"]);
        parts.extend([joint.into(), line![share(lost), " ", name, region]]);
    }
    Some(line![who, whole, " of the threads' time was useful", Value::Line(parts)])
}

/// The region that loses the most to imbalance.
fn uneven(of: &ReportInput) -> Option<String> {
    let lost = |row: &RegionRow| row.numbers.lost_to_imbalance_s.sum.as_f64();
    let most = rows(of).into_iter().max_by(|one, other| lost(one).total_cmp(&lost(other)))?;
    most.place.map(StackFrame::short_place)
}

columns! { row in RegionRow<'_>;
    /// function that starts the region; null for regions beyond those that are kept apart
    column(function: Text) => row.place.map(|place| &place.function),
    /// its file
    column(file: Text) => row.place.and_then(|place| place.file.as_ref()),
    /// line from which it is started
    column(line: Integer) => row.place.and_then(|place| place.line).map(u64::from),
    /// library that it is in; null in the program itself
    column(object: Text) => row.object,
    /// how often it was entered, on all ranks
    required(entries: Number, Exact) => row.numbers.entries.sum,
    /// entries that were timed
    required(timed: Integer, Exact) => row.numbers.timed,
    /// threads of its largest team
    required(threads: Number, Exact) => row.numbers.threads.max,
    /// wall seconds in it, summed over the ranks
    required(time_s: Number, Estimated) => row.numbers.time_s.sum,
    /// standard error of time_s; null when it is not known, and time_s the least that it can be
    column(time_error_s: Double, Estimated) => row.numbers.time_error_s,
    /// its part of the wall time of all ranks
    column(share: Double, Estimated) => row.share,
    /// seconds that its threads had: time_s times the threads of its largest team
    required(threads_s: Number, Estimated) => row.numbers.threads_s.sum,
    /// seconds of its threads outside of barriers and MPI
    required(work_s: Number, Estimated) => row.numbers.work_s.sum,
    /// seconds that its threads had less to do than the one with the most
    required(imbalance_s: Number, Estimated) => row.numbers.lost_to_imbalance_s.sum,
    /// seconds that its threads waited at barriers, that at its end included
    required(barrier_s: Number, Estimated) => row.numbers.barrier_s.sum,
    /// seconds of its threads in MPI
    required(in_mpi_s: Number, Estimated) => row.numbers.in_mpi_s.sum,
    /// rank with the most time in it
    required(worst_rank: Integer) => Value::Rank(row.numbers.time_s.max_rank),
    /// wall seconds of that rank in it
    required(worst_time_s: Number, Estimated) => row.numbers.time_s.max,
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    // What has no OpenMP needs no word about it.
    of.summary.openmp.as_ref().ok_or(Value::Nothing)?;
    let mut block = PageBlock::new("threads", "Threads of OpenMP");
    block.says.extend(first(of));
    let key = |name: &'static str| LegendKey { name: name.into(), is_background: name == "work" };
    // The first two colours differ the most.
    let keys = ["work", "in MPI", "imbalance", "other barriers and scheduling"].map(key).into();
    let bar = |row: RegionRow<'r>| {
        let sum = |of: &gyan_results::Statistic| of.sum.as_f64();
        let numbers = row.numbers;
        let [work, uneven, in_mpi] =
            [&numbers.work_s, &numbers.lost_to_imbalance_s, &numbers.in_mpi_s].map(sum);
        let rest = (sum(&numbers.threads_s) - work - uneven - in_mpi).max(0.0);
        let parts = [work, in_mpi, uneven, rest].map(seconds);
        Bar { name: place(&row, false).into(), parts: parts.into() }
    };
    let bars: Vec<Bar> = rows(of).into_iter().take(BARS_AT_MOST).map(bar).collect();
    if !bars.is_empty() {
        block.charts.push(Chart::new(
            "Which parallel regions take the time, and what do their threads do?",
            "time of all threads of all ranks together",
            Picture::Bars(Bars { keys, bars }),
        ));
    }
    Ok(block.of_view(true, view(of, true)))
}
