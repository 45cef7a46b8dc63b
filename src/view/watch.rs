//! Receives that were called while a queue was long: where in the program, and how it came there.

use gyan_results::Number;

use super::numbers::{cut, double_text, grouped, integer_text, plural, share};
use super::report::{first_rows, more_rows};
use super::{Align, Column, Section};
use crate::symbols::Frame;
use crate::symbols::stacks::{Site, Watched, Way};

/// Sites whose stacks are shown, and how deep, so that they fit on a screen with the rest.
const STACKS_AT_MOST: usize = 3;
const FRAMES_AT_MOST: usize = 10;
/// Names of C++ can be longer than a line.
const NAME_AT_MOST: usize = 60;

/// The call sites of every watch, the one with the most hits first.
pub(super) fn sites(watched: &[Watched], remarks: &[String], all: bool) -> Vec<Section> {
    let mut sections: Vec<Section> = watched.iter().map(|watched| sites_of(watched, all)).collect();
    if let Some(last) = sections.last_mut() {
        last.notes.extend(remarks.iter().cloned());
    }
    sections
}

fn sites_of(watched: &Watched, all: bool) -> Section {
    let (hits, receives) = (watched.hits.sum, watched.receives.sum);
    let part = hits.as_f64() / receives.as_f64().max(1.0);
    let (sites, cut_off) = first_rows(watched.sites.iter().collect(), all);
    // Who sent most of what waits is only known of a variable with an element for each peer.
    let elements = sites.iter().any(|site| site.worst.longest_from.is_some());
    let known = |number: Option<String>| number.unwrap_or_else(|| "-".into());
    let cells = |site: &&Site| {
        let (hits, worst) = (site.hits.sum, site.worst);
        let mut cells = vec![
            site.function.to_owned(),
            text(hits),
            double_text(site.sum as f64 / hits.as_f64().max(1.0)),
            format!("{} ({})", grouped(worst.value.into()), site.worst_rank),
            known(worst.source.map(|rank| rank.to_string())),
            known(worst.tag.map(|tag| tag.to_string())),
        ];
        if elements {
            cells.push(known(worst.longest_from.map(|rank| rank.to_string())));
        }
        cells.push(known(worst.communicator.clone()));
        cells.push(place(&site.caller, all));
        cells
    };
    let mut notes = more_rows(cut_off);
    if watched.hits_elsewhere > 0 {
        let elsewhere = grouped(watched.hits_elsewhere.into());
        notes.push(format!("{elsewhere} more hits at call sites that were too many to keep apart"));
    }
    if watched.not_compared > 0 {
        let receives = grouped(watched.not_compared.into());
        notes.push(format!("{receives} more receives on communicators that were not followed"));
    }
    if sites.is_empty() {
        let (max, rank) = (text(watched.max.max), watched.max.max_rank);
        notes.push(format!("the largest value at a receive was {max} (rank {rank})"));
    } else {
        let most = if elements { "; MOST FROM: whose part of the value was largest" } else { "" };
        notes.push(format!(
            "MEAN and LARGEST are values at the hits; FROM, TAG and COMMUNICATOR are those of the \
             receive with the largest, ranks are the communicator's{most}"
        ));
    }
    let right = |title| Column { title, align: Align::Right };
    let left = |title| Column { title, align: Align::Left };
    let mut columns = vec![
        left("CALL"),
        right("HITS"),
        right("MEAN"),
        right("LARGEST (RANK)"),
        right("FROM"),
        right("TAG"),
    ];
    if elements {
        columns.push(right("MOST FROM"));
    }
    columns.extend([left("COMMUNICATOR"), left("WHERE")]);
    Section {
        title: format!(
            "Receives with {} > {}: {} of {} ({})",
            watched.variable,
            grouped(watched.threshold.into()),
            text(hits),
            text(receives),
            share(part)
        ),
        columns,
        rows: sites.iter().map(cells).collect(),
        notes,
    }
}

fn text(number: Number) -> String {
    match number {
        Number::Integer(integer) => integer_text(integer),
        Number::Double(double) => double_text(double),
    }
}

/// File, line and function; names of C++ can be longer than a line.
fn place(frame: &Frame, all: bool) -> String {
    let function = name(frame, all);
    Frame { function, ..frame.clone() }.place()
}

fn name(frame: &Frame, all: bool) -> String {
    if all { frame.function.clone() } else { cut(&frame.function, NAME_AT_MOST) }
}

/// How the program came to the worst call sites.
pub(super) fn stacks(watched: &[Watched], all: bool) -> Vec<Section> {
    let sites = watched.iter().flat_map(|watched| &watched.sites);
    let sites = sites.filter(|site| !site.stacks.is_empty());
    let at_most = if all { usize::MAX } else { STACKS_AT_MOST };
    sites.take(at_most).flat_map(|site| stacks_of(site, all)).collect()
}

fn stacks_of(site: &Site, all: bool) -> Vec<Section> {
    let ways = if all { site.stacks.len() } else { 1 };
    let other = site.stacks.len() - ways.min(site.stacks.len());
    let stack = |(at, way): (usize, &Way)| {
        let mut notes = Vec::new();
        let frames = if all { way.frames.len() } else { FRAMES_AT_MOST };
        if way.frames.len() > frames {
            let more = way.frames.len() - frames;
            notes.push(format!("{more} more function{}; --all shows them", plural(more as u64)));
        }
        if at == 0 && other > 0 {
            notes.push(format!("{other} more way{} there; --all shows them", plural(other as u64)));
        }
        let row = |frame: &Frame| {
            let inlined = if frame.inlined { " (inlined)" } else { "" };
            let place = match (&frame.file, frame.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                (Some(file), None) => file.clone(),
                _ => String::new(),
            };
            vec![format!("{}{inlined}", name(frame, all)), place]
        };
        let left = |title| Column { title, align: Align::Left };
        Section {
            title: format!(
                "{} at {}: {} of {} stacks that were looked at",
                site.function,
                place(&site.caller, all),
                grouped(way.hits.into()),
                grouped(site.stacks_taken.into())
            ),
            columns: vec![left("FUNCTION"), left("LINE")],
            rows: way.frames.iter().take(frames).map(row).collect(),
            notes,
        }
    };
    site.stacks.iter().take(ways).enumerate().map(stack).collect()
}
