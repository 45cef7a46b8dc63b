//! Numbers in an order on a linear scale, which need not begin at 0: points that lead to their pages, with the range of their
//! repeats, levels, and a line at each change with the band of places where it may be. It is not stretched, so the scale labels
//! are part of the drawing.

use std::fmt::Write as _;

use gyan_results::Number;
use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::{COLOURS, below, round, svg, swatch};
use crate::document::page::history::{HistoryChart, HistoryCourse};
use crate::document::page::pictures::Chart;

/// Sizes of the drawing, and of the area between the scales.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 8.0;
/// How many labels the scale has, about.
const TICKS: u32 = 5;
/// What is above the highest level by this factor is drawn at the upper edge: a run on a busy machine would hide all others.
const ABOVE_LEVELS: f64 = 1.5;
/// Radii of points, from few to many.
const RADII: [f64; 2] = [4.5, 1.5];

/// Where numbers are in the drawing.
struct HistoryArea {
    places: usize,
    from: f64,
    to: f64,
}

impl HistoryArea {
    fn of_chart(of: &HistoryChart) -> HistoryArea {
        let points = of.courses.iter().flat_map(|course| &course.points).flatten();
        let levels = of.levels.iter().map(|(_, level)| *level);
        let mut ends = [f64::INFINITY, f64::NEG_INFINITY];
        points.for_each(|[low, _, high]| ends = [ends[0].min(*low), ends[1].max(*high)]);
        let highest = levels.fold(f64::NEG_INFINITY, f64::max) * ABOVE_LEVELS;
        let [low, high] = match ends {
            [low, high] if low > high => [0.0, 1.0],
            [low, high] if highest > low => [low, high.min(highest)],
            ends => ends,
        };
        // A constant is drawn in the middle.
        let margin = if high > low { 0.08 * (high - low) } else { high.abs().max(1.0) / 10.0 };
        HistoryArea { places: of.places.len(), from: (low - margin).max(0.0), to: high + margin }
    }

    fn x(&self, place: f64) -> f64 {
        round(LEFT + (place + 0.5) / self.places.max(1) as f64 * (WIDTH - LEFT - RIGHT))
    }

    fn y(&self, value: f64) -> f64 {
        let part = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        round(HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM))
    }

    /// Round numbers.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / f64::from(TICKS);
        let decade = libm::pow(10.0, libm::floor(libm::log10(rough)));
        let steps = [1.0, 2.0, 5.0, 10.0].map(|of| of * decade);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = libm::ceil(self.from / step);
        let ticks = (0..=2 * TICKS).map(|at| (first + f64::from(at)) * step);
        ticks.take_while(|tick| *tick <= self.to).collect()
    }
}

pub(super) fn drawn(history: &HistoryChart, of: &Chart, id: &str) -> Markup {
    let area = HistoryArea::of_chart(history);
    let mut marks = scale(history, &area);
    changes(&mut marks, history, &area);
    for (stretch, level) in &history.levels {
        let [from, to] = [stretch.start as f64 - 0.5, stretch.end as f64 - 0.5];
        let (y, from, to) = (area.y(*level), area.x(from), area.x(to));
        // Writing to a string cannot fail.
        let _ = write!(marks, "<path class=\"course\" d=\"M{from} {y}H{to}\"/>");
    }
    for (at, course) in history.courses.iter().enumerate() {
        points(&mut marks, history, course, &colour(at), &area);
    }
    let ends = [history.places.first(), history.places.last()].into_iter().flatten();
    let ends: Vec<String> = ends.map(|place| text(&place.name)).collect();
    html! {
        (svg(of, id, "curves", &format!("0 0 {WIDTH} {HEIGHT}"), false, &marks))
        (below(&ends))
        @if history.courses.len() > 1 {
            ul.legend {
                @for (at, course) in history.courses.iter().enumerate() {
                    li { (swatch(&colour(at))) " " (text(&course.name)) }
                }
            }
        }
    }
}

fn colour(at: usize) -> String {
    format!("k{}", (at + 1) % COLOURS)
}

fn scale(history: &HistoryChart, area: &HistoryArea) -> String {
    let mut marks = String::new();
    for tick in area.ticks() {
        let (y, label) = (area.y(tick), number(history.unit, Number::Double(tick)));
        let right = WIDTH - RIGHT;
        let _ = write!(
            marks,
            "<path class=\"grid\" d=\"M{LEFT} {y}H{right}\"/><text class=\"right\" x=\"{}\" y=\"{}\">{label}</text>",
            LEFT - 6.0,
            round(y + 4.0)
        );
    }
    marks
}

fn changes(marks: &mut String, history: &HistoryChart, area: &HistoryArea) {
    let bottom = HEIGHT - BOTTOM;
    for (index, within) in &history.changes {
        let [from, to] = [*within.start() as f64 - 0.9, *within.end() as f64 - 0.1];
        let (from, to) = (area.x(from), area.x(to));
        let x = area.x(*index as f64 - 0.5);
        let name = history.places.get(*index).map(|place| text(&place.name)).unwrap_or_default();
        let name = html! { (name) }.into_string();
        let anchor = if x > WIDTH / 2.0 { "right" } else { "" };
        let _ = write!(
            marks,
            "<rect class=\"within\" x=\"{from}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>\
             <path class=\"line\" d=\"M{x} {TOP}V{bottom}\"/><text class=\"{anchor}\" x=\"{x}\" y=\"{}\">{name}</text>",
            round(to - from),
            bottom - TOP,
            TOP - 6.0,
        );
    }
}

fn points(
    marks: &mut String,
    history: &HistoryChart,
    course: &HistoryCourse,
    colour: &str,
    area: &HistoryArea,
) {
    let [most, least] = RADII;
    let radius = round((200.0 / area.places.max(1) as f64).clamp(least, most));
    let shown = |value: f64| number(history.unit, Number::Double(value));
    let there = history.places.iter().zip(&course.points).enumerate();
    for (at, (place, point)) in there {
        let Some([low, value, high]) = point else { continue };
        let (x, y) = (area.x(at as f64), area.y(*value));
        let range = if low < high {
            format!(", {} to {}", shown(*low), shown(*high))
        } else {
            String::new()
        };
        let quantity = text(&course.name);
        let name = format!("{}: {quantity} {}{range}", text(&place.name), shown(*value));
        let class = if *value > area.to { "odd" } else { colour };
        if low < high {
            let (low, high) = (area.y(*low), area.y(*high));
            let _ = write!(marks, "<path class=\"whisker\" d=\"M{x} {high}V{low}\"/>");
        }
        let circle = html! {
            circle class=(class) cx=(x) cy=(y) r=(radius) { title { (name) } }
        };
        let point = match &place.link {
            Some(link) => html! { a href=(link) { (circle) } },
            None => circle,
        };
        marks.push_str(&point.into_string());
    }
}
