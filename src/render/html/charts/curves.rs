//! Numbers over sizes on logarithmic scales: points with the range over the ranks, and the law as a line in its
//! band. It is not stretched, so the scale labels are part of the drawing.

use std::fmt::Write as _;

use gyan_results::{Number, Unit};
use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::{round, svg, swatch};
use crate::document::page::pictures::{At, Chart, Curve, Curves};

use crate::words::double;

/// Sizes of the drawing, and of the area between the scales.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 24.0;
/// Anything below is drawn at the lower edge: 0 has no logarithm.
const DECADES_AT_MOST: f64 = 6.0;
/// Labels next to the drawing.
const TICKS_AT_MOST: usize = 6;

/// The position of a number between two others on a logarithmic scale: 0 to 1.
#[derive(Clone, Copy)]
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    fn spanning(values: impl Iterator<Item = f64>) -> Scale {
        let above = values.filter(|value| *value > 0.0 && value.is_finite());
        let ends = above
            .fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(value), high.max(value)]);
        let [low, high] = if ends[1] > 0.0 { ends } else { [1.0, 2.0] };
        let low = low.max(high / libm::pow(10.0, DECADES_AT_MOST));
        // A constant is drawn in the middle.
        if high / low < 1.2 {
            Scale { from: low / 2.0, to: high * 2.0 }
        } else {
            Scale { from: low, to: high }
        }
    }

    fn part(self, value: f64) -> f64 {
        let part =
            libm::log2(value.max(f64::MIN_POSITIVE) / self.from) / libm::log2(self.to / self.from);
        part.clamp(0.0, 1.0)
    }

    /// Powers of two within the range, no more than fit.
    fn ticks(self) -> Vec<f64> {
        let (first, last) = (libm::ceil(libm::log2(self.from)), libm::floor(libm::log2(self.to)));
        let step = libm::ceil(((last - first).max(0.0) + 1.0) / TICKS_AT_MOST as f64);
        let tick = |at: usize| libm::exp2(first + at as f64 * step);
        (0..TICKS_AT_MOST).map(tick).take_while(|tick| *tick <= self.to * 1.000_1).collect()
    }

    /// Powers of ten, and if these are few, also 2 and 5 times as much.
    fn decimal_ticks(self) -> Vec<f64> {
        let (first, last) = (libm::floor(libm::log10(self.from)), libm::ceil(libm::log10(self.to)));
        let decades = (last - first).max(1.0);
        let parts: &[f64] = if decades <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        let mut decade = first;
        while decade <= last {
            ticks.extend(parts.iter().map(|part| part * libm::pow(10.0, decade)));
            decade += 1.0;
        }
        let is_in = |tick: &f64| (self.from * 0.999_9..=self.to * 1.000_1).contains(tick);
        ticks.retain(is_in);
        ticks
    }
}

/// Where a number is in the drawing.
#[derive(Clone, Copy)]
struct PlotArea {
    x: Scale,
    y: Scale,
}

impl PlotArea {
    fn x(self, value: f64) -> f64 {
        round(LEFT + self.x.part(value) * (WIDTH - LEFT - RIGHT))
    }

    fn y(self, value: f64) -> f64 {
        round(HEIGHT - BOTTOM - self.y.part(value) * (HEIGHT - TOP - BOTTOM))
    }
}

pub(super) fn drawn(curves: &Curves, of: &Chart, id: &str) -> Markup {
    let all = || curves.drawn.iter().flat_map(|curve| &curve.points);
    // A band may be cut off, but the points must be visible.
    let seen = all().map(|at| at.value);
    let measured = curves.drawn.iter().filter(|curve| curve.is_measured);
    let measured = measured.flat_map(|curve| &curve.points).flat_map(|at| [at.low, at.high]);
    let frame = PlotArea {
        x: Scale::spanning(all().map(|at| at.x)),
        y: Scale::spanning(seen.chain(measured)),
    };
    let mut marks = scales(curves, frame);
    // Points are on top of the lines.
    let laws = curves.drawn.iter().filter(|curve| !curve.is_measured);
    laws.for_each(|curve| law(&mut marks, curve, frame));
    for curve in curves.drawn.iter().filter(|curve| curve.is_measured) {
        points(&mut marks, curve, curves, frame);
    }
    html! {
        (svg(of, id, "curves", &format!("0 0 {WIDTH} {HEIGHT}"), false, &marks))
        ul.legend {
            @for curve in &curves.drawn {
                li { (swatch(if curve.is_measured { "k1" } else { "area" })) " " (text(&curve.name)) }
            }
            @if let Some(at) = curves.boundary {
                li { "dashed: one node until " (double(at)) }
            }
        }
    }
}

/// Lines at round numbers, with labels.
fn scales(curves: &Curves, frame: PlotArea) -> String {
    let mut marks = String::new();
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let mut ticks =
        if curves.unit == Unit::Bytes { frame.y.ticks() } else { frame.y.decimal_ticks() };
    // No scale without two numbers.
    if ticks.len() < 2 {
        ticks = vec![frame.y.from, frame.y.to];
    }
    // Writing to a string cannot fail.
    for tick in ticks {
        let (y, label) = (frame.y(tick), number(curves.unit, Number::Double(tick)));
        let _ = write!(marks, "<path class=\"grid\" d=\"M{LEFT} {y}H{right}\"/>");
        let _ = write!(
            marks,
            "<text class=\"right\" x=\"{}\" y=\"{}\">{label}</text>",
            LEFT - 6.0,
            round(y + 4.0)
        );
    }
    for tick in frame.x.ticks() {
        let x = frame.x(tick);
        let _ = write!(marks, "<path class=\"grid\" d=\"M{x} {TOP}V{bottom}\"/>");
        let _ = write!(
            marks,
            "<text class=\"middle\" x=\"{x}\" y=\"{}\">{}</text>",
            HEIGHT - 8.0,
            double(tick)
        );
    }
    if let Some(at) = curves.boundary {
        let x = frame.x(at);
        let _ = write!(marks, "<path class=\"line\" d=\"M{x} {TOP}V{bottom}\"/>");
    }
    marks
}

fn law(marks: &mut String, curve: &Curve, frame: PlotArea) {
    let path = |of: &mut dyn Iterator<Item = (f64, f64)>| {
        of.map(|(x, y)| format!("{} {}", frame.x(x), frame.y(y))).collect::<Vec<_>>().join("L")
    };
    let there = path(&mut curve.points.iter().map(|at| (at.x, at.high)));
    let back = path(&mut curve.points.iter().rev().map(|at| (at.x, at.low)));
    let middle = path(&mut curve.points.iter().map(|at| (at.x, at.value)));
    let _ = write!(
        marks,
        "<path class=\"area\" d=\"M{there}L{back}Z\"/><path class=\"course\" d=\"M{middle}\"/>"
    );
}

fn points(marks: &mut String, curve: &Curve, curves: &Curves, frame: PlotArea) {
    let shown = |value: f64| number(curves.unit, Number::Double(value));
    for &At { x, low, value, high } in &curve.points {
        let (at_x, at_y) = (frame.x(x), frame.y(value));
        let range =
            if low < high { format!(", {} to {}", shown(low), shown(high)) } else { String::new() };
        let name = format!("{} {}: {}{range}", double(x), text(&curves.by), shown(value));
        let name = html! { (name) }.into_string();
        if low < high {
            let _ = write!(
                marks,
                "<path class=\"whisker\" d=\"M{at_x} {}V{}\"/>",
                frame.y(low),
                frame.y(high)
            );
        }
        let _ = write!(
            marks,
            "<circle class=\"k1\" cx=\"{at_x}\" cy=\"{at_y}\" r=\"4.5\"><title>{name}</title></circle>"
        );
    }
}
