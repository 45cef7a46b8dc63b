//! Who called whom, each box as wide as its time.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::super::super::text::text;
use super::{rectangle, round, svg, swatch};
use crate::document::page::pictures::{Chart, Node};
use crate::words::{seconds, share};

/// Width of the drawing, height of a box, and width of a character, in units of the drawing.
const TREE_WIDTH: f64 = 1000.0;
const BOX_HEIGHT: f64 = 22.0;
const CHARACTER: f64 = 6.6;

pub(super) fn drawn(nodes: &[Node], of: &Chart, id: &str) -> Markup {
    let whole: f64 = nodes.iter().map(|node| node.time_s).sum();
    let mut marks = String::new();
    let mut x = 0.0;
    let mut deepest = 0;
    for node in nodes {
        let width = node.time_s / whole * TREE_WIDTH;
        deepest = deepest.max(boxes(&mut marks, node, (x, 0, width), whole));
        x += width;
    }
    let view_box = format!("0 0 {TREE_WIDTH} {}", (deepest + 1) as f64 * BOX_HEIGHT);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(text(&of.title)) {
            (svg(of, id, "tree", &view_box, false, &marks))
        }
        ul.legend {
            li { (swatch("frame")) " the program and its libraries" }
            li { (swatch("k1")) " MPI" }
        }
    }
}

/// How deep it is.
fn boxes(
    marks: &mut String,
    node: &Node,
    (x, depth, width): (f64, usize, f64),
    whole: f64,
) -> usize {
    let (y, gap) = (depth as f64 * BOX_HEIGHT, if width > 3.0 { 1.0 } else { 0.0 });
    let class = if node.is_mpi { "k1" } else { "frame" };
    let part = share(node.time_s / whole);
    let name = format!("{}: {}, {part} of the time in MPI", node.name, seconds(node.time_s));
    rectangle(marks, class, [x, y, width - gap, BOX_HEIGHT - 1.0], &name);
    // Not negative, and small.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let room = ((width - 8.0).max(0.0) / CHARACTER) as usize;
    if room >= 3 {
        let label = html! { (shortened(&format!("{} {part}", node.name), &node.name, room)) };
        let class = if node.is_mpi { " class=\"on\"" } else { "" };
        let _ = write!(
            marks,
            "<text{class} x=\"{}\" y=\"{}\">{}</text>",
            round(x + 4.0),
            y + 15.0,
            label.into_string()
        );
    }
    let (mut at, mut deepest) = (x, depth);
    for child in &node.children {
        let width = child.time_s / node.time_s * width;
        deepest = deepest.max(boxes(marks, child, (at, depth + 1, width), whole));
        at += width;
    }
    deepest
}

/// The whole text if it fits, else the name, else as much of it as fits.
fn shortened(whole: &str, name: &str, room: usize) -> String {
    let length = |text: &str| text.chars().count();
    if length(whole) <= room {
        whole.to_owned()
    } else if length(name) <= room {
        name.to_owned()
    } else {
        name.chars().take(room - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_what_fits() {
        assert_eq!(shortened("main 50 %", "main", 9), "main 50 %");
        assert_eq!(shortened("main 50 %", "main", 8), "main");
        assert_eq!(shortened("main 50 %", "main", 3), "ma…");
    }
}
