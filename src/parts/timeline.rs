//! The timeline on the page: what the ranks did in the window in which they waited longest.

use std::fmt::Write as _;

use gyan_results::{TimelineSelection, Unit, timeline_file_name};

use super::{Part, ReportInput};
use crate::document::page::PageBlock;
use crate::document::page::pictures::{
    Chart, MarkKind, MessageLine, Picture, TimelineMark, TimelineRow, TimelineRows,
};
use crate::document::value::{Amount, InUnit, bytes, integer, line, row, seconds, share};
use crate::document::{Kind, Section, Value, column, numbers, plural};
use crate::findings::is_collective;
use crate::input::source::Source;
use crate::timeline::{
    ClockAlignment, FILES_AT_MOST, RunIterations, TimelineWindow, Timelines, WaitState,
    WindowLimits, WindowRow, WindowSpan, files_bytes, files_in, recorded,
};
use crate::words;

/// Only on the page.
pub(super) const TIMELINE: Part = Part { option: None, table: None, block: Some(block) };

/// So that the picture has less than 300 kB.
const LIMITS: WindowLimits =
    WindowLimits { ranks: 64, cells: 30_000, cells_of_rank: 8000, messages: 60 };

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let absent = "a timeline: only the directory of a run with gyan run --timeline has one";
    let Some(Source::Directory(directory)) = of.source else { return Err(absent.into()) };
    if files_in(&directory.path).is_empty() {
        return Err(absent.into());
    }
    let size = files_bytes(&directory.path);
    if size > FILES_AT_MOST {
        return Err(line![
            "the timeline: its files have ",
            bytes(size as f64),
            ", too much for a page; gyan timeline makes a trace of them for a viewer"
        ]);
    }
    let mut bad = Vec::new();
    let run = Timelines::open(&directory.path, &mut bad)
        .map_err(|error| Value::from(format!("the timeline: {error}")))?;
    if run.alignment() == ClockAlignment::Unknown {
        return Err("the timeline: the clocks of its hosts cannot be compared".into());
    }
    let windows =
        run.windows(LIMITS).map_err(|error| Value::from(format!("the timeline: {error}")))?;
    Ok(match (&windows[..], &run.iterations, &run.selection) {
        ([window], None, _) => shown(&run, window, bad.len()),
        (windows, Some(iterations), Some(selection)) if windows.iter().all(|of| of.iteration.is_some()) => {
            let mut block = PageBlock::new("timeline", "Timeline");
            block.says.push(line!["It has ", iterations_kept(iterations, selection), "."]);
            let tables: Vec<Section> = windows.iter().map(table).collect();
            for window in windows {
                let chart = Chart::new(iteration_title(iterations, window), says(window), Picture::Timeline(picture(window)));
                block.charts.push(chart.noted(notes(&run, window, bad.len())));
            }
            block.with(false, tables)
        }
        _ => return Err("the timeline: no iteration was kept by all ranks; gyan timeline makes a trace of what was".into()),
    })
}

/// What an iteration is, and how long it took.
fn iteration_title(run: &RunIterations, window: &TimelineWindow) -> Value<'static> {
    let number = window.iteration.unwrap_or(0);
    let is_it = |of: &&(u64, u64)| of.0 == number;
    let slow = run.slowest.iter().find(is_it);
    let took_ns = slow.or(run.typical.as_ref()).map_or(0, |(_, ns)| *ns);
    let what = if slow.is_some() { "The slowest one" } else { "A typical one" };
    line![what, ": number ", number, ", ", of_ns(took_ns)]
}

pub(crate) fn iterations_kept(run: &RunIterations, selection: &TimelineSelection) -> String {
    let what = match (&run.between, &selection.phase) {
        (Some((function, communicator)), _) => {
            format!("iterations between calls of {function} on {communicator}")
        }
        (None, Some(phase)) => format!("passes through the phase {phase:?}"),
        (None, None) => {
            return "no iteration was seen, as no collective operation of all ranks was called 4 times: these are \
                    the latest calls"
                .into();
        }
    };
    if run.differ {
        return "the ranks do not agree on which operation begins an iteration, so each has those that were slowest on it; \
                gyan run --timeline-phase says what an iteration is"
            .into();
    }
    let ended = words::integer(run.ended.into());
    let took = |(_, ns): &(u64, u64)| words::seconds(*ns as f64 / 1e9);
    let slowest: Vec<String> = run.slowest.iter().map(took).collect();
    let mut text = match &slowest[..] {
        [] => format!("none of {ended} {what} was among the slowest of all ranks"),
        [one] => format!("the slowest of {ended} {what} ({one})"),
        [all @ .., last] => {
            format!(
                "the {} slowest of {ended} {what} ({} and {last})",
                slowest.len(),
                all.join(", ")
            )
        }
    };
    if let Some(typical) = &run.typical {
        let _ = write!(text, " beside a typical one ({})", took(typical));
    }
    if run.was_killed {
        text.push_str(" and what the ranks did last");
    }
    text
}

/// `unread`: how many timelines could not be read.
fn shown<'a>(run: &Timelines, window: &TimelineWindow, unread: usize) -> PageBlock<'a> {
    let mut block = PageBlock::new("timeline", "Timeline");
    let length_ns = window.to_ns - window.from_ns;
    let is_whole = length_ns >= window.run_ns;
    block.says.push(line![
        if is_whole {
            "All that was recorded: from "
        } else if window.waited_in_run_ns == 0 {
            "A part of the middle of what was recorded, as no rank waits for certain: from "
        } else {
            "The part of what was recorded in which ranks wait longest: from "
        },
        moment(window.from_ns, length_ns),
        " to ",
        moment(window.to_ns, length_ns),
        " after the first event",
        told((!is_whole).then(|| line![", of ", of_ns(window.run_ns)])),
        "; ",
        ranks_shown(window.rows.len(), run.ranks.len()),
        "."
    ]);
    block.says.push(line![
        "Ranks wait ",
        of_ns(window.waited_ns),
        " in it, all together, ",
        told((!is_whole).then(|| {
            line!["of ", of_ns(window.waited_in_run_ns), " in all that was recorded, "]
        })),
        "as far as it is certain from when calls began: a receive waits until its message is sent, a send until it is received, \
         a barrier and its kin until the last rank \
         begins it, a broadcast until its root does."
    ]);
    let picture = Picture::Timeline(picture(window));
    let says = says(window);
    let chart = Chart::new("Who waits for whom, and when?", says, picture);
    block.charts.push(chart.noted(notes(run, window, unread)));
    block.with(false, [table(window)])
}

fn of_ns(ns: u64) -> Amount {
    seconds(ns as f64 * 1e-9)
}

/// A time with as many digits as tell moments of a window apart.
fn moment(ns: u64, length_ns: u64) -> String {
    let digits = length_ns.max(1).ilog10();
    let decimals = 11_u32.saturating_sub(digits).min(9) as usize;
    format!("{:.decimals$} s", ns as f64 * 1e-9)
}

fn ranks_shown(shown: usize, all: usize) -> Value<'static> {
    if shown == all {
        line!["all ", all, " rank", plural(all as u64)]
    } else {
        line!["the ", shown, " of ", all, " ranks that wait longest in it"]
    }
}

/// The sentence for those who cannot see the picture.
fn says(window: &TimelineWindow) -> Value<'static> {
    let worst = window.rows.iter().max_by_key(|row| row.waited_ns).filter(|row| row.waited_ns > 0);
    let waits = worst.and_then(|row| {
        let (late, waited) = row.waited_for_ns.iter().max_by_key(|(_, waited)| **waited)?;
        let length_ns = (window.to_ns - window.from_ns).max(1);
        Some(line![
            "rank ",
            integer(row.rank),
            " waits longest, ",
            of_ns(row.waited_ns),
            " or ",
            share(row.waited_ns as f64 / length_ns as f64),
            " of the time, longest for rank ",
            integer(*late),
            " (",
            of_ns(*waited),
            ")"
        ])
    });
    line![
        "A row for each of ",
        window.rows.len(),
        " rank",
        plural(window.rows.len() as u64),
        " over ",
        of_ns(window.to_ns - window.from_ns),
        ", with the calls of MPI; ",
        waits.unwrap_or_else(|| "no rank waits for another one, as far as is certain".into())
    ]
}

fn notes(run: &Timelines, window: &TimelineWindow, unread: usize) -> Vec<Value<'static>> {
    let mut notes = vec![
        "times count from the left edge; calls that are too short to be told apart are drawn as one, and what is not certain to \
         wait is drawn as ordinary time in MPI"
            .into(),
    ];
    let drawn = window.messages.len();
    if window.more_messages > 0 {
        notes.push(line![
            "lines are the ",
            drawn,
            " messages that were waited for longest; ",
            window.more_messages,
            " more are not drawn"
        ]);
    } else if drawn > 0 {
        notes.push("a line is a message that its receiver waited for".into());
    }
    if let Some(selection) = run.selection.as_ref().filter(|_| window.iteration.is_none()) {
        let outside = "; what was not recorded looks like the program's own code";
        notes.push(line![recorded(selection), outside]);
    }
    if run.lost > 0 {
        notes.push(line![
            run.lost,
            " earlier event",
            plural(run.lost),
            " were overwritten; gyan run --timeline=SIZE keeps more"
        ]);
    }
    if unread > 0 {
        let name = timeline_file_name(0).replace('0', "N");
        notes.push(line![unread, " files ", name, " could not be read; gyan timeline says why"]);
    }
    notes.push("gyan timeline makes a trace of all that was recorded, for a viewer".into());
    notes
}

fn picture(window: &TimelineWindow) -> TimelineRows<'static> {
    let length_ns = (window.to_ns - window.from_ns).max(1);
    let part = |ns: u64| {
        let since = ns.clamp(window.from_ns, window.to_ns) - window.from_ns;
        since as f64 / length_ns as f64
    };
    let place = |rank: u32| window.rows.iter().position(|row| row.rank == rank);
    let messages = window.messages.iter().filter_map(|message| {
        Some(MessageLine {
            from: (place(message.from)?, part(message.sent_ns)),
            to: (place(message.to)?, part(message.received_ns)),
            name: line![
                "a message from rank ",
                integer(message.from),
                " to rank ",
                integer(message.to),
                ", which waited ",
                of_ns(message.waited_ns),
                " for it"
            ],
        })
    });
    TimelineRows {
        length_s: length_ns as f64 * 1e-9,
        cells: window.cells,
        rows: window
            .rows
            .iter()
            .map(|row| drawn_row(row, length_ns, (part(row.known_ns.0), part(row.known_ns.1))))
            .collect(),
        messages: messages.collect(),
    }
}

fn drawn_row(row: &WindowRow, length_ns: u64, known: (f64, f64)) -> TimelineRow<'static> {
    let of_window = |ns: u64| share(ns as f64 / length_ns as f64);
    TimelineRow {
        rank: row.rank,
        says: line![
            "rank ",
            integer(row.rank),
            ": ",
            of_window(row.in_mpi_ns),
            " in MPI, ",
            of_window(row.waited_ns),
            " waiting"
        ],
        known,
        marks: row.spans.iter().map(mark).collect(),
    }
}

fn mark(span: &WindowSpan) -> TimelineMark<'static> {
    let call = &span.longest;
    let kind = match span.waits {
        true => MarkKind::Waiting,
        false if is_collective(&call.function) => MarkKind::Collective,
        false => MarkKind::OtherCall,
    };
    let function = call.function.clone();
    let name = if span.is_single || span.calls <= 1 {
        let waits = call.wait.map(|wait| {
            let waited = of_ns(wait.until_ns - wait.from_ns);
            let whom = match wait.state {
                WaitState::LateSender => " to send",
                WaitState::LateReceiver => " to receive",
                WaitState::Collective | WaitState::EarlyRoot => ", which comes last",
                WaitState::LateRoot => ", the root",
            };
            line![", waits ", waited, " for rank ", integer(wait.late.rank), whom]
        });
        let place = (!call.place.is_empty()).then(|| line!["; ", call.place.clone()]);
        line![function, ", ", of_ns(call.took_ns), told(waits), told(place)]
    } else {
        let waits = (span.waited_ns > 0).then(|| line![", ", of_ns(span.waited_ns), " waiting"]);
        let in_mpi = of_ns(span.in_mpi_ns);
        line![span.calls, " calls, ", in_mpi, " in MPI", told(waits), "; the longest ", function]
    };
    TimelineMark { cells: span.cells.clone(), kind, name }
}

/// In a sentence nothing is an empty text.
fn told(part: Option<Value<'static>>) -> Value<'static> {
    part.unwrap_or_else(|| "".into())
}

fn table(window: &TimelineWindow) -> Section<'static> {
    let mut columns = vec![column("RANK", Kind::Integer)];
    columns.extend(numbers(["IN MPI", "WAITING", "OF WINDOW", "MOST FOR", "OTHERS FOR IT"]));
    let length_ns = (window.to_ns - window.from_ns).max(1);
    let others = |rank: u32| -> u64 {
        window.rows.iter().filter_map(|row| row.waited_for_ns.get(&rank)).sum()
    };
    let rows = window.rows.iter().map(|row| {
        let most = row.waited_for_ns.iter().max_by_key(|(_, waited)| **waited);
        row![
            Value::Rank(row.rank),
            of_ns(row.in_mpi_ns),
            of_ns(row.waited_ns),
            Unit::Share.double(row.waited_ns as f64 / length_ns as f64),
            most.map(|(late, _)| Value::Rank(*late)),
            of_ns(others(row.rank))
        ]
    });
    Section {
        title: "".into(),
        columns,
        rows: rows.collect(),
        notes: vec![
            "of this window and of the ranks in the picture; MOST FOR is the rank that one waits for longest, and OTHERS FOR IT \
             how long the others wait for it"
                .into(),
        ],
    }
}
