//! Receives that were called while a queue was long: where in the program, and how it got there.

use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{integer, line, row, share};
use crate::document::{Section, Value, cut, numbers, plural, texts};
use crate::symbols::stacks::{Site, Watched, Way};
use crate::symbols::{StackFrame, short_function};

/// How many sites get their stacks shown, and how deep, so that all fits on a screen.
const STACKS_AT_MOST: usize = 3;
const FRAMES_AT_MOST: usize = 10;
/// C++ names can be longer than a line.
const NAME_AT_MOST: usize = 60;

/// The call sites of every watch, the one with the most hits first.
pub(crate) fn sites<'a>(
    watched: &'a [Watched],
    remarks: &'a [String],
    all: bool,
) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> = watched.iter().map(|watched| sites_of(watched, all)).collect();
    if let Some(last) = sections.last_mut() {
        last.notes.extend(remarks.iter().map(Value::from));
    }
    sections
}

fn sites_of<'a>(watched: &'a Watched, all: bool) -> Section<'a> {
    let (hits, receives) = (watched.hits.sum, watched.receives.sum);
    let part = share(hits.as_f64() / receives.as_f64().max(1.0));
    let (sites, cut_off) = first_rows(watched.sites.iter().collect::<Vec<&'a Site>>(), all);
    // Who sent most of the waiting messages is only known for a variable with an element for each peer.
    let elements = sites.iter().any(|site| site.worst.longest_from.is_some());
    let cells = |site: &&'a Site<'a>| {
        let (hits, worst) = (site.hits.sum, site.worst);
        let mean = site.sum as f64 / hits.as_f64().max(1.0);
        let largest = integer(worst.value).on(site.worst_rank);
        let tag = worst.tag.map(|tag| tag.to_string());
        // A rank in the communicator, not in the job.
        let source = worst.source.map(|rank| rank.to_string());
        let mut cells = row![site.function, hits, mean, largest, source, tag];
        if elements {
            cells.push(worst.longest_from.map(|rank| rank.to_string()).into());
        }
        cells.extend(row![worst.communicator.as_ref(), place(&site.caller, all)]);
        cells
    };
    let mut notes = more_rows(cut_off);
    if watched.hits_elsewhere > 0 {
        let of = " more hits at call sites that were too many to keep apart";
        notes.push(line![watched.hits_elsewhere, of]);
    }
    if watched.not_compared > 0 {
        let of = " more receives on communicators that were not followed";
        notes.push(line![watched.not_compared, of]);
    }
    if sites.is_empty() {
        let (max, rank) = (watched.max.max, Value::Rank(watched.max.max_rank));
        notes.push(line!["the largest value at a receive was ", max, " (rank ", rank, ")"]);
    } else {
        let most = if elements { "; MOST FROM: whose part of the value was largest" } else { "" };
        let about = "MEAN and LARGEST are values at the hits; FROM, TAG and COMMUNICATOR are those of \
                     the receive with the largest, ranks are the communicator's";
        notes.push(line![about, most]);
    }
    let mut columns = texts(["CALL"]);
    columns.extend(numbers(["HITS", "MEAN", "LARGEST (RANK)", "FROM", "TAG"]));
    if elements {
        columns.extend(numbers(["MOST FROM"]));
    }
    columns.extend(texts(["COMMUNICATOR", "WHERE"]));
    let watch = line!["Receives with ", watched.variable, " > ", watched.threshold];
    Section {
        title: line![watch, ": ", hits, " of ", receives, " (", part, ")"],
        columns,
        rows: sites.iter().map(cells).collect(),
        notes,
    }
}

/// File, line and function; C++ names can be longer than a line.
pub(crate) fn place(frame: &StackFrame, all: bool) -> String {
    let function = name(frame, all);
    let offset = frame.offset.filter(|_| all);
    StackFrame { function, offset, ..frame.clone() }.place()
}

fn name(frame: &StackFrame, all: bool) -> String {
    if all { frame.function.clone() } else { cut(&short_function(&frame.function), NAME_AT_MOST) }
}

/// How the program got to the worst call sites.
pub(crate) fn stacks<'a>(watched: &'a [Watched], all: bool) -> Vec<Section<'a>> {
    let sites = watched.iter().flat_map(|watched| &watched.sites);
    let sites = sites.filter(|site| !site.stacks.is_empty());
    let at_most = if all { usize::MAX } else { STACKS_AT_MOST };
    let of_site = |site: &'a Site| {
        ways(site.function, &place(&site.caller, all), site.stacks_taken, &site.stacks, all)
    };
    sites.take(at_most).flat_map(of_site).collect()
}

/// How the program got to a call of `function` at `caller`, where the stack was recorded `taken` times.
pub(crate) fn ways<'a>(
    function: &'a str,
    caller: &str,
    taken: u64,
    stacks: &'a [Way],
    all: bool,
) -> Vec<Section<'a>> {
    let ways = if all { stacks.len() } else { 1 };
    let other = stacks.len() - ways.min(stacks.len());
    let more = |what: &'static str, number: usize, after: &'static str| {
        let plural = plural(number as u64);
        line![number, " more ", what, plural, after, "; --all shows them"]
    };
    let stack = |(at, way): (usize, &'a Way)| {
        let mut notes = Vec::new();
        let frames = if all { way.frames.len() } else { FRAMES_AT_MOST };
        if way.frames.len() > frames {
            notes.push(more("function", way.frames.len() - frames, ""));
        }
        if at == 0 && other > 0 {
            notes.push(more("way", other, " there"));
        }
        let row = |frame: &'a StackFrame| {
            let inlined = if frame.inlined { " (inlined)" } else { "" };
            let place: Value = match (&frame.file, frame.line) {
                (Some(file), Some(line)) => format!("{file}:{line}").into(),
                (Some(file), None) => file.into(),
                _ => "".into(),
            };
            row![line![name(frame, all), inlined], place]
        };
        let of = line![way.hits, " of ", taken, " stacks that were looked at"];
        Section {
            title: line![function, " at ", caller.to_owned(), ": ", of],
            columns: texts(["FUNCTION", "LINE"]),
            rows: way.frames.iter().take(frames).map(row).collect(),
            notes,
        }
    };
    stacks.iter().take(ways).enumerate().map(stack).collect()
}
