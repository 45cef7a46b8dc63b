//! A window of a run: a row for each rank, with its calls. It is not stretched, so the names of ranks and of times are part of the
//! drawing. The page's script zooms it: what is in the group `time` becomes wider, and the names of ranks stay where they are.
//!
//! A row is drawn in cells, as thick lines: a few letters for each mark. The widest marks have a name of their own; the others share
//! one, or the drawing would be too large to mail.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::super::super::text::text;
use super::{round, svg, swatch};
use crate::document::page::pictures::{
    Chart, MarkKind, MessageLine, TimelineMark, TimelineRow, TimelineRows,
};
use crate::words::seconds;

/// Sizes of the drawing.
const LEFT: f64 = 64.0;
const WIDTH: f64 = 1000.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 22.0;
/// The height of a row, and of one of many.
const ROW: f64 = 24.0;
const ROW_OF_MANY: f64 = 13.0;
const FEW_ROWS: usize = 16;
/// How many marks have a name of their own.
const NAMED_AT_MOST: usize = 800;
/// About how many times are named.
const TICKS: f64 = 10.0;

/// A part of the width that is not seen.
const UNSEEN: f64 = 0.002;

const KINDS: [(MarkKind, &str); 3] =
    [(MarkKind::OtherCall, "k2"), (MarkKind::Collective, "k1"), (MarkKind::Waiting, "waits")];

pub(super) fn drawn(of_rows: &TimelineRows, of: &Chart, id: &str) -> Markup {
    let rows = &of_rows.rows;
    let height = if rows.len() <= FEW_ROWS { ROW } else { ROW_OF_MANY };
    let bottom = TOP + rows.len() as f64 * height;
    let hatch = format!("{id}-waits");
    // Red stripes: to be seen without colours, too. In rows, which are stretched, they are as wide as elsewhere.
    let stripes = format!("{id}-stripes");
    let cells = of_rows.cells;
    let mut marks = format!(
        "<defs><pattern id=\"{stripes}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect class=\"paper\" width=\"5\" height=\"5\"/><rect class=\"odd\" width=\"3\" height=\"5\"/></pattern>\
         <pattern id=\"{hatch}\" href=\"#{stripes}\" patternTransform=\"scale({} 1) rotate(45)\"/></defs>\
         <g class=\"time\" data-left=\"{LEFT}\" data-width=\"{WIDTH}\" data-cells=\"{cells}\" data-seconds=\"{}\">",
        cells as f64 / WIDTH,
        of_rows.length_s
    );
    let named = least_named(rows);
    let tops = || rows.iter().enumerate().map(|(at, row)| (row, TOP + at as f64 * height));
    for (row, y) in tops() {
        background(&mut marks, row, (y, height));
        marks_of(&mut marks, row, &hatch, (y, height, cells), named);
    }
    let mut labels = String::new();
    times((&mut marks, &mut labels), of_rows.length_s, bottom);
    for message in &of_rows.messages {
        message_line(&mut marks, message, height);
    }
    let noun = if rows.len() <= FEW_ROWS { "rank " } else { "" };
    // Writing to a string cannot fail.
    let _ = write!(
        marks,
        "</g><g class=\"axis\">{labels}</g><g class=\"ranks\"><rect class=\"paper\" width=\"{}\" height=\"{}\"/>",
        LEFT - 1.0,
        bottom
    );
    for (row, y) in tops() {
        rank(&mut marks, row, noun, (y, height));
    }
    marks.push_str("</g>");
    let whole = LEFT + WIDTH + RIGHT;
    let view_box = format!("0 0 {whole} {}", bottom + BOTTOM);
    let has = |kind: MarkKind| rows.iter().flat_map(|row| &row.marks).any(|mark| mark.kind == kind);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(text(&of.title)) {
            (svg(of, id, "timeline", &view_box, false, &marks))
        }
        ul.legend {
            li { (swatch("frame")) " the program's own code" }
            @if rows.iter().any(|row| row.known.0 > UNSEEN || row.known.1 < 1.0 - UNSEEN) {
                li { (swatch("paper")) " before the first event that is left, or after the last one" }
            }
            @if has(MarkKind::Collective) { li { (swatch("k1")) " collectives" } }
            @if has(MarkKind::OtherCall) { li { (swatch("k2")) " messages and other calls" } }
            @if has(MarkKind::Waiting) {
                li {
                    svg.swatch viewBox="0 0 10 10" aria-hidden="true" {
                        rect fill={ "url(#" (stripes) ")" } width="10" height="10" {}
                    }
                    " waiting for another rank"
                }
            }
        }
    }
}

/// How wide a mark must be to have a name, in cells.
fn least_named(rows: &[TimelineRow]) -> usize {
    let widths = rows.iter().flat_map(|row| &row.marks).map(|mark| mark.cells.len());
    let mut widths: Vec<usize> = widths.collect();
    widths.sort_unstable_by(|one, other| other.cmp(one));
    // The first that has none, and whatever is as narrow.
    widths.get(NAMED_AT_MOST).map_or(0, |width| width + 1)
}

fn rank(marks: &mut String, row: &TimelineRow, noun: &str, (y, height): (f64, f64)) {
    let says = html! { title { (text(&row.says)) } }.into_string();
    let _ = write!(
        marks,
        "<text class=\"rank\" x=\"{}\" y=\"{}\">{noun}{}{says}</text>",
        LEFT - 6.0,
        y + height / 2.0 + 4.0,
        row.rank
    );
}

/// What is behind the calls of a row: the program's own code.
fn background(marks: &mut String, row: &TimelineRow, (y, height): (f64, f64)) {
    let (from, to) = row.known;
    let says = html! { title { (text(&row.says)) } }.into_string();
    let _ = write!(
        marks,
        "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{says}</rect>",
        round(LEFT + from * WIDTH),
        y + 1.0,
        round((to - from).max(0.0) * WIDTH),
        height - 2.0
    );
}

/// `(y, height, cells)`: where the row is, and how many cells it has. `named`: how wide a mark with a name is.
fn marks_of(
    marks: &mut String,
    row: &TimelineRow,
    hatch: &str,
    (y, height, cells): (f64, f64, usize),
    named: usize,
) {
    let _ = write!(
        marks,
        "<g stroke-width=\"{}\" transform=\"translate({LEFT} {}) scale({} 1)\">",
        height - 2.0,
        y + height / 2.0,
        WIDTH / cells.max(1) as f64
    );
    for (kind, class) in KINDS {
        let own: Vec<&TimelineMark> = row.marks.iter().filter(|mark| mark.kind == kind).collect();
        if own.is_empty() {
            continue;
        }
        let _ = match kind {
            MarkKind::Waiting => write!(marks, "<g stroke=\"url(#{hatch})\">"),
            MarkKind::Collective | MarkKind::OtherCall => write!(marks, "<g class=\"{class}\">"),
        };
        let (wide, narrow): (Vec<&TimelineMark>, Vec<_>) =
            own.into_iter().partition(|mark| mark.cells.len() >= named);
        for mark in wide {
            let title = html! { title { (text(&mark.name)) } }.into_string();
            let (from, length) = (mark.cells.start, mark.cells.len());
            let _ = write!(marks, "<path d=\"M{from} 0h{length}\">{title}</path>");
        }
        if !narrow.is_empty() {
            marks.push_str("<path d=\"");
            let mut end = None;
            for mark in narrow {
                let (from, length) = (mark.cells.start, mark.cells.len());
                let _ = match end {
                    None => write!(marks, "M{from} 0h{length}"),
                    Some(end) => write!(marks, "m{} 0h{length}", from - end),
                };
                end = Some(mark.cells.end);
            }
            marks.push_str("\"><title>short calls</title></path>");
        }
        marks.push_str("</g>");
    }
    marks.push_str("</g>");
}

/// Lines at round times, and their names.
fn times((lines, names): (&mut String, &mut String), length_s: f64, bottom: f64) {
    let step = round_step(length_s / TICKS);
    let mut at = 0_u32;
    while f64::from(at) * step <= length_s * 1.000_001 {
        let time = f64::from(at) * step;
        let x = round(LEFT + time / length_s.max(f64::MIN_POSITIVE) * WIDTH);
        let _ = write!(lines, "<path class=\"grid\" d=\"M{x} {TOP}V{}\"/>", bottom + 4.0);
        let _ = write!(names, "<text x=\"{x}\" y=\"{}\">{}</text>", bottom + 17.0, seconds(time));
        at += 1;
    }
}

/// The next 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let decade = libm::pow(10.0, libm::floor(libm::log10(least.max(1e-9))));
    let steps = [1.0, 2.0, 5.0, 10.0].map(|part| part * decade);
    steps.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(10.0 * decade)
}

fn message_line(marks: &mut String, message: &MessageLine, height: f64) {
    let place = |(row, part): (usize, f64)| {
        (round(LEFT + part * WIDTH), round(TOP + (row as f64 + 0.5) * height))
    };
    let ((from_x, from_y), (to_x, to_y)) = (place(message.from), place(message.to));
    let title = html! { title { (text(&message.name)) } }.into_string();
    let _ = write!(
        marks,
        "<g><path class=\"message\" d=\"M{from_x} {from_y}L{to_x} {to_y}\"/>\
         <path class=\"arrival\" d=\"M{to_x} {to_y}h0\"/>{title}</g>"
    );
}

#[cfg(test)]
mod tests {
    use crate::document::page::pictures::Picture;

    use super::*;

    fn mark(cells: std::ops::Range<usize>, kind: MarkKind) -> TimelineMark<'static> {
        TimelineMark { cells, kind, name: "MPI_Sendrecv_replace, 12.3 µs; a_file.c:1234".into() }
    }

    fn row(rank: u32, marks: Vec<TimelineMark<'static>>) -> TimelineRow<'static> {
        let says = "rank 0: 12.3 % in MPI, 10.1 % waiting".into();
        TimelineRow { rank, says, known: (0.0, 1.0), marks }
    }

    fn picture(rows: Vec<TimelineRow<'static>>, cells: usize) -> String {
        let message = |_| MessageLine {
            from: (0, 0.123_456),
            to: (rows.len() - 1, 0.133_333),
            name: "a message from rank 10 to rank 11, which waited 12.3 ms for it".into(),
        };
        let messages = (0..60).map(message).collect();
        let rows = TimelineRows { length_s: 0.1, cells, rows, messages };
        let of = Chart::new("Who?", "says", Picture::Tree(Vec::new()));
        drawn(&rows, &of, "timeline-0").into_string()
    }

    #[test]
    fn a_mark_is_as_wide_as_its_cells_and_what_waits_is_hatched() {
        let marks = vec![mark(0..30, MarkKind::Waiting), mark(30..31, MarkKind::Collective)];
        let drawing = picture(vec![row(3, marks)], 100);
        let title = "<title>MPI_Sendrecv_replace, 12.3 µs; a_file.c:1234</title>";
        for part in [
            "scale(10 1)",
            &format!("<g stroke=\"url(#timeline-0-waits)\"><path d=\"M0 0h30\">{title}"),
            &format!("<g class=\"k1\"><path d=\"M30 0h1\">{title}"),
            ">rank 3<title>rank 0:",
            ">100 ms</text>",
        ] {
            assert!(drawing.contains(part), "{part}: {drawing}");
        }
        assert!(!drawing.contains("messages and other calls"), "{drawing}");
    }

    #[test]
    fn the_largest_picture_has_less_than_300_kb() {
        let kinds = [MarkKind::Waiting, MarkKind::OtherCall, MarkKind::Collective];
        for (ranks, cells) in [(64, 468), (30, 1000), (4, 7500), (1, 8000)] {
            // Each cell is another mark; some of them are wider, and have names.
            let marks = |rank: u32| {
                let wide = (0..14).map(|at| mark(2 * at..2 * at + 2, kinds[at % 3]));
                let narrow = (28..cells).map(|at| mark(at..at + 1, kinds[at % 3]));
                row(rank, wide.chain(narrow).collect())
            };
            let size = picture((0..ranks).map(marks).collect(), cells).len();
            assert!(size < 300_000, "{ranks} ranks: {size} bytes");
        }
    }

    #[test]
    fn times_are_round() {
        let steps = [0.172, 0.2, 0.21, 1e-7].map(round_step);
        assert_eq!(
            steps.map(|step| format!("{step:.1e}")),
            ["2.0e-1", "2.0e-1", "5.0e-1", "1.0e-7"]
        );
    }
}
