//! Charts as SVG. A drawing that is stretched to the width of the page contains no text: labels are next to it.
//! Each has a title and a description for readers who cannot see it, and names its numbers when one points at
//! them.

mod bands;
mod bars;
mod curves;
mod histogram;
mod history;
mod matrix;
mod ranks;
mod spans;
mod timeline;
mod tree;

use std::fmt::Write as _;

use gyan_results::{Number, Unit};
use maud::{Markup, PreEscaped, html};

use super::super::text::{number, text};
use super::values::value;
use crate::document::page::pictures::{Chart, Picture};
use crate::document::value::Plot;
use crate::words::{seconds, share};

/// Colours of marks; with more keys they repeat.
const COLOURS: usize = 7;

pub(super) fn chart(of: &Chart, id: &str) -> Markup {
    // Two charts that need not be wide fit side by side.
    let is_narrow = matches!(
        of.picture,
        Picture::Histogram(_) | Picture::Matrix(_) | Picture::Curves(_) | Picture::History(_)
    );
    html! {
        figure class=[is_narrow.then_some("half")] {
            figcaption {
                span.question { (value(&of.title)) }
                span.says { (value(&of.says)) }
            }
            @match &of.picture {
                Picture::Bars(bars) => (bars::drawn(bars, of, id)),
                Picture::Ranks(ranks) => (ranks::drawn(ranks, of, id)),
                Picture::Tree(nodes) => (tree::drawn(nodes, of, id)),
                Picture::Histogram(histogram) => (histogram::drawn(histogram, of, id)),
                Picture::Matrix(matrix) => (matrix::drawn(matrix, of, id)),
                Picture::Spans(spans) => (spans::drawn(spans, of, id)),
                Picture::Curves(curves) => (curves::drawn(curves, of, id)),
                Picture::History(history) => (history::drawn(history, of, id)),
                Picture::Bands(bands) => (bands::drawn(bands, of, id)),
                Picture::Timeline(rows) => (timeline::drawn(rows, of, id)),
            }
            @if !of.notes.is_empty() {
                ul.notes { @for note in &of.notes { li { (value(note)) } } }
            }
        }
    }
}

/// A drawing with its name. `stretched`: to the available width.
fn svg(of: &Chart, id: &str, class: &str, view_box: &str, stretched: bool, marks: &str) -> Markup {
    let aspect = stretched.then_some("none");
    html! {
        svg class=(class) viewBox=(view_box) preserveAspectRatio=[aspect] role="img"
            aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (text(&of.title)) }
            desc id={ (id) "-d" } { (text(&of.says)) }
            (PreEscaped(marks))
        }
    }
}

fn rectangle(marks: &mut String, class: &str, [x, y, width, height]: [f64; 4], name: &str) {
    let name = html! { (name) }.into_string();
    // Writing to a string cannot fail.
    let _ = write!(
        marks,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{name}</title></rect>",
        round(x),
        round(y),
        round(width),
        round(height)
    );
}

/// A drawing beside its scale, whose ends are named, the upper one first.
fn beside_scale([top, bottom]: [&str; 2], drawing: &Markup) -> Markup {
    html! {
        div.plot {
            div.scale { span { (top) } span { (bottom) } }
            (drawing)
        }
    }
}

/// Labels for the ends of the axis below a drawing, and for the middle.
fn below(names: &[String]) -> Markup {
    html! { div.ends { @for name in names { span { (name) } } } }
}

/// Rounded to what can be seen.
fn round(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

fn colour(at: usize, is_background: bool) -> String {
    if is_background { "quiet".to_owned() } else { format!("k{}", at % COLOURS) }
}

fn swatch(class: &str) -> Markup {
    html! { svg.swatch viewBox="0 0 10 10" aria-hidden="true" { rect class=(class) width="10" height="10" {} } }
}

/// Of the run, at stake.
pub(super) fn meter(part: f64) -> Markup {
    let width = round(part.clamp(0.0, 1.0) * 100.0);
    html! {
        p.meter {
            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                rect.rail width="100" height="10" {}
                rect.k0 width=(width) height="10" {}
            }
            " " (share(part)) " of the run at stake"
        }
    }
}

/// A picture in a cell.
pub(super) fn plot(plot: &Plot) -> Markup {
    match plot {
        Plot::Bar { part, longest } => {
            let width = round(*part as f64 / (*longest).max(1) as f64 * 100.0);
            html! {
                svg.spark viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                    rect.k1 width=(width) height="10" {}
                }
            }
        }
        Plot::Course { peaks, highest } => {
            let width = 100.0 / peaks.len().max(1) as f64;
            let mut marks = String::new();
            for (at, peak) in peaks.iter().enumerate() {
                let Some(peak) = peak else { continue };
                let height = (peak / highest.max(f64::MIN_POSITIVE) * 20.0).max(1.0);
                rectangle(
                    &mut marks,
                    "k1",
                    [at as f64 * width, 20.0 - height, width * 0.8, height],
                    &number(Unit::Count, Number::Double(*peak)),
                );
            }
            html! {
                svg.spark viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label="distribution" {
                    (PreEscaped(marks))
                }
            }
        }
        Plot::Axis { end_s, .. } => html! { (seconds(*end_s)) },
    }
}
