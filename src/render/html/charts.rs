//! Charts as SVG. What is stretched to the width of the page has no text in it: labels are beside it. Each has a title and
//! a description for those who do not see it, and names its numbers where one points at them.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};

use super::super::numbers::{double, seconds, share};
use super::super::text::{number, text};
use super::values::{amount, value};
use crate::view::page::pictures::{
    Band, Bands, Bars, Chart, Histogram, Matrix, Node, Picture, Ranks,
};
use crate::view::value::{Plot, Unit};
use gyan_results::Number;

/// Colours of marks; with more keys they repeat.
const COLOURS: usize = 7;
/// Of trees: units of the drawing, the height of a box, and what a character takes.
const TREE_WIDTH: f64 = 1000.0;
const BOX_HEIGHT: f64 = 22.0;
const CHARACTER: f64 = 6.6;
/// Ranks of more are columns.
const ROWS_AT_MOST: usize = 16;
/// A matrix of more rows is an image.
const SQUARES_AT_MOST: usize = 24;

pub(super) fn chart(of: &Chart, id: &str) -> Markup {
    html! {
        figure {
            figcaption {
                span.question { (value(&of.title)) }
                span.says { (value(&of.says)) }
            }
            @match &of.picture {
                Picture::Bars(bars) => (self::bars(bars, of, id)),
                Picture::Ranks(ranks) => (self::ranks(ranks, of, id)),
                Picture::Tree(nodes) => (tree(nodes, of, id)),
                Picture::Histogram(histogram) => (self::histogram(histogram, of, id)),
                Picture::Matrix(matrix) => (self::matrix(matrix, of, id)),
                Picture::Bands(bands) => (self::bands(bands, of, id)),
            }
        }
    }
}

/// A drawing with what it is called. `stretched`: to whatever width there is.
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

/// A rectangle that names itself.
fn rectangle(marks: &mut String, class: &str, [x, y, width, height]: [f64; 4], name: &str) {
    let name = html! { (name) }.into_string();
    // A string takes whatever is written.
    let _ = write!(
        marks,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{name}</title></rect>",
        round(x),
        round(y),
        round(width),
        round(height)
    );
}

/// To what can be seen.
fn round(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

fn colour(at: usize, is_background: bool) -> String {
    if is_background { "quiet".to_owned() } else { format!("k{}", at % COLOURS) }
}

fn swatch(class: &str) -> Markup {
    html! { svg.swatch viewBox="0 0 10 10" aria-hidden="true" { rect class=(class) width="10" height="10" {} } }
}

fn bars(bars: &Bars, of: &Chart, id: &str) -> Markup {
    let keys = bars.keys.iter().scan(0, |next, key| {
        let class = colour(*next, key.is_background);
        *next += usize::from(!key.is_background);
        Some((key, class))
    });
    let keys: Vec<_> = keys.collect();
    let totals =
        bars.bars.iter().map(|bar| bar.parts.iter().map(|part| part.number.as_f64()).sum());
    let totals: Vec<f64> = totals.collect();
    let longest = totals.iter().fold(f64::MIN_POSITIVE, |most: f64, &total| most.max(total));
    let single = bars.bars.len() == 1 && text(&bars.bars[0].name).is_empty();
    let drawn = |at: usize| {
        let (mut marks, mut x) = (String::new(), 0.0);
        let parts = bars.bars.get(at).map_or(&[][..], |bar| &bar.parts);
        for ((key, class), part) in keys.iter().zip(parts) {
            let width = part.number.as_f64() / longest * 1000.0;
            let name = format!("{}: {}", text(&key.name), number(part.unit, part.number));
            // A gap, where there is room for one.
            let gap = if width > 6.0 { 2.0 } else { 0.0 };
            rectangle(&mut marks, class, [x, 0.0, width - gap, 20.0], &name);
            x += width;
        }
        svg(of, &format!("{id}-{at}"), "bar", "0 0 1000 20", true, &marks)
    };
    html! {
        @if single {
            div.single { (drawn(0)) }
            ul.legend {
                @for ((key, class), part) in keys.iter().zip(&bars.bars[0].parts) {
                    li {
                        (swatch(class)) " " b { (value(&key.name)) } " "
                        (amount(part)) ", " (share(part.number.as_f64() / longest))
                    }
                }
            }
        } @else {
            ul.legend { @for (key, class) in &keys { li { (swatch(class)) " " (value(&key.name)) } } }
            div.rows {
                @for (at, bar) in bars.bars.iter().enumerate() {
                    div.name { (value(&bar.name)) }
                    (drawn(at))
                    div.total { (seconds(totals[at])) }
                }
            }
        }
    }
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

fn ranks(ranks: &Ranks, of: &Chart, id: &str) -> Markup {
    if ranks.bins.len() <= ROWS_AT_MOST {
        return few_ranks(ranks, of, id);
    }
    let scale = |value: f64| 100.0 * value / ranks.largest.max(f64::MIN_POSITIVE);
    let width = 1000.0 / ranks.bins.len().max(1) as f64;
    let gap = if width > 5.0 { width * 0.1 } else { 0.0 };
    let mut marks = String::new();
    let shown = |value: f64| number(ranks.unit, Number::Double(value));
    for (at, bin) in ranks.bins.iter().enumerate() {
        let x = at as f64 * width;
        let who = text(&bin.who);
        let name = if bin.min < bin.max {
            format!(
                "{who}: {} to {}, {} on average",
                shown(bin.min),
                shown(bin.max),
                shown(bin.mean)
            )
        } else {
            format!("{who}: {}", shown(bin.mean))
        };
        if bin.min < bin.max {
            let (top, height) = (100.0 - scale(bin.max), scale(bin.max));
            rectangle(&mut marks, "range", [x, top, width - gap, height], &name);
        }
        let height = scale(bin.mean);
        rectangle(&mut marks, "k1", [x, 100.0 - height, width - gap, height], &name);
    }
    let mean = round(100.0 - scale(ranks.mean));
    let _ = write!(marks, "<path class=\"line\" d=\"M0 {mean}H1000\"/>");
    let end = |bin: Option<&crate::view::page::pictures::Bin>| bin.map(|bin| text(&bin.who));
    html! {
        div.plot {
            div.scale { span { (shown(ranks.largest)) } span { "0" } }
            (svg(of, id, "columns", "0 0 1000 100", true, &marks))
        }
        div.ends {
            span { (end(ranks.bins.first()).unwrap_or_default()) }
            span { "line: mean, " (shown(ranks.mean)) }
            span { (end(ranks.bins.last()).unwrap_or_default()) }
        }
    }
}

/// A row for each, with its number.
fn few_ranks(ranks: &Ranks, of: &Chart, id: &str) -> Markup {
    let shown = |value: f64| number(ranks.unit, Number::Double(value));
    let drawn = |at: usize, value: f64| {
        let mut marks = String::new();
        let width = 1000.0 * value / ranks.largest.max(f64::MIN_POSITIVE);
        rectangle(&mut marks, "k1", [0.0, 0.0, width, 20.0], &shown(value));
        svg(of, &format!("{id}-{at}"), "bar", "0 0 1000 20", true, &marks)
    };
    html! {
        div.rows {
            @for (at, bin) in ranks.bins.iter().enumerate() {
                div.name { (value(&bin.who)) }
                (drawn(at, bin.mean))
                div.total { (shown(bin.mean)) }
            }
        }
    }
}

fn tree(nodes: &[Node], of: &Chart, id: &str) -> Markup {
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

/// The whole text where it fits, else the name, else what of that fits.
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

fn histogram(histogram: &Histogram, of: &Chart, id: &str) -> Markup {
    let most = histogram.bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1) as f64;
    let all: u64 = histogram.bars.iter().map(|bar| bar.2).sum();
    let width = 1000.0 / histogram.bars.len().max(1) as f64;
    let shown = |value: f64| number(histogram.unit, Number::Double(value));
    let mut marks = String::new();
    for (at, &(from, below, count)) in histogram.bars.iter().enumerate() {
        if count == 0 {
            continue;
        }
        // What is there is seen.
        let height = (count as f64 / most * 100.0).max(1.5);
        let part = share(count as f64 / all.max(1) as f64);
        let name = format!("{} to below {}: {count}, {part}", shown(from), shown(below));
        rectangle(
            &mut marks,
            "k1",
            [at as f64 * width, 100.0 - height, width * 0.92, height],
            &name,
        );
    }
    let place = |limit: f64| {
        let at =
            histogram.bars.iter().position(|&(from, below, _)| from <= limit && limit < below)?;
        let (from, below, _) = *histogram.bars.get(at)?;
        Some((at as f64 + (limit - from) / (below - from)) * width)
    };
    let limit = histogram.limit.and_then(|limit| Some((limit, place(limit)?)));
    if let Some((_, x)) = limit {
        let _ = write!(marks, "<path class=\"line\" d=\"M{} 0V100\"/>", round(x));
    }
    let first = histogram.bars.first().map_or(0.0, |bar| bar.0);
    let last = histogram.bars.last().map_or(0.0, |bar| bar.1);
    html! {
        div.plot {
            div.scale { span { (double(most)) } span { "0" } }
            (svg(of, id, "columns", "0 0 1000 100", true, &marks))
        }
        div.ends {
            span { (shown(first)) }
            @if let Some((limit, _)) = limit { span { "line: eager limit, " (shown(limit)) } }
            span { (shown(last)) }
        }
    }
}

fn matrix(matrix: &Matrix, of: &Chart, id: &str) -> Markup {
    let most = matrix.cells.iter().copied().max().unwrap_or(0);
    let least = matrix.cells.iter().copied().filter(|&cell| cell > 0).min().unwrap_or(0);
    let shown = |cell: u64| number(matrix.unit, Number::Integer(cell.into()));
    let side = matrix.side;
    let name = |at: usize| matrix.names.get(at).map_or("", String::as_str);
    let drawing = if side <= SQUARES_AT_MOST {
        let mut marks = String::new();
        for (at, &cell) in matrix.cells.iter().enumerate() {
            let (from, to) = (at / side, at % side);
            let about = format!("{} to {}: {}", name(from), name(to), shown(cell));
            let class = if cell == 0 {
                "none".to_owned()
            } else {
                format!("v{}", level(cell, least, most))
            };
            let square = [to as f64 * 10.0 + 0.25, from as f64 * 10.0 + 0.25, 9.5, 9.5];
            rectangle(&mut marks, &class, square, &about);
        }
        let view_box = format!("0 0 {0} {0}", side * 10);
        svg(of, id, "matrix", &view_box, false, &marks)
    } else {
        let alternative = format!("{}: {}", text(&of.title), text(&of.says));
        let data = STANDARD.encode(image(matrix, least, most));
        html! {
            img.matrix src={ "data:image/png;base64," (data) } width=(side) height=(side) alt=(alternative);
        }
    };
    html! {
        div.square { (drawing) }
        div.ends {
            span { "columns: receivers, rows: senders; " (name(0)) " at the top left, " (name(side - 1)) " at the bottom right" }
        }
        ul.legend {
            li { (swatch("none")) " nothing" }
            @if most > least { li { (swatch("v0")) " " (shown(least)) } }
            li { (swatch("v9")) " " (shown(most)) }
            @if most > least { li { "logarithmic" } }
        }
    }
}

/// One of ten, on a logarithmic scale.
// From 0 to 9.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn level(cell: u64, least: u64, most: u64) -> usize {
    if most <= least {
        return 9;
    }
    let part = (octaves(cell) - octaves(least)) / (octaves(most) - octaves(least));
    (part * 9.0).round().clamp(0.0, 9.0) as usize
}

/// The logarithm to the base 2, straight between powers of two: near enough for ten colours. (Those of the C library
/// would take glibc 2.29.)
fn octaves(number: u64) -> f64 {
    let whole = number.max(1).ilog2();
    f64::from(whole) + number.max(1) as f64 / (1_u64 << whole) as f64 - 1.0
}

/// The dark part of viridis, which is seen on white, from the least to the most: the same as in the style. Nothing is white.
const VIRIDIS: [[u8; 3]; 11] = [
    [255, 255, 255],
    [0x22, 0xa8, 0x84],
    [0x1f, 0x98, 0x8b],
    [0x23, 0x88, 0x8e],
    [0x2a, 0x78, 0x8e],
    [0x31, 0x68, 0x8e],
    [0x39, 0x56, 0x8c],
    [0x41, 0x44, 0x87],
    [0x47, 0x2f, 0x7d],
    [0x48, 0x1a, 0x6c],
    [0x44, 0x01, 0x54],
];

/// A pixel for each cell, as PNG.
fn image(matrix: &Matrix, least: u64, most: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let side = u32::try_from(matrix.side).unwrap_or(0);
    let place = |&cell: &u64| match cell {
        0 => 0,
        // At most 10.
        cell => u8::try_from(level(cell, least, most) + 1).unwrap_or(0),
    };
    let pixels: Vec<u8> = matrix.cells.iter().map(place).collect();
    let mut encoder = png::Encoder::new(&mut file, side, side);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(VIRIDIS.concat());
    // Memory takes whatever is written, and there are as many pixels as the size says.
    let _ = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    file
}

fn bands(bands: &Bands, of: &Chart, id: &str) -> Markup {
    html! {
        div.bands {
            @for (at, band) in bands.bands.iter().enumerate() { (course(band, of, &format!("{id}-{at}"))) }
        }
        div.ends { span { "0 s" } span { (seconds(bands.end_s)) } }
    }
}

fn course(band: &Band, of: &Chart, id: &str) -> Markup {
    let highest = band.parts.iter().flatten().fold(0.0_f64, |most, part| most.max(part[2]));
    let lowest = band.parts.iter().flatten().fold(0.0_f64, |least, part| least.min(part[0]));
    let range = (highest - lowest).max(f64::MIN_POSITIVE);
    let y = |value: f64| round(60.0 - (value - lowest) / range * 60.0);
    let width = 1000.0 / band.parts.len().max(1) as f64;
    let (mut area, mut line) = (String::new(), String::new());
    let mut was_read = false;
    for (at, part) in band.parts.iter().enumerate() {
        let (left, right) = (round(at as f64 * width), round((at + 1) as f64 * width));
        if let Some([min, mean, max]) = *part {
            let _ = write!(area, "M{left} {}H{right}V{}H{left}Z", y(max), y(min));
            let begin = if was_read { 'L' } else { 'M' };
            let _ = write!(line, "{begin}{left} {}H{right}", y(mean));
        }
        was_read = part.is_some();
    }
    let marks = format!("<path class=\"area\" d=\"{area}\"/><path class=\"course\" d=\"{line}\"/>");
    let object = band.object.as_ref().map_or_else(String::new, |object| format!(", {object}"));
    html! {
        div.name { b { (text(&(&band.name).into())) } " " small { (band.class) (text(&object.into())) } }
        div.plot {
            div.scale { span { (double(highest)) } span { (double(lowest)) } }
            (svg(of, id, "course-of", "0 0 1000 60", true, &marks))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_what_fits() {
        assert_eq!(shortened("main 50 %", "main", 9), "main 50 %");
        assert_eq!(shortened("main 50 %", "main", 8), "main");
        assert_eq!(shortened("main 50 %", "main", 3), "ma…");
    }

    #[test]
    fn the_least_and_the_most_are_at_the_ends_of_the_scale() {
        assert_eq!((level(1, 1, 1000), level(1000, 1, 1000)), (0, 9));
        assert_eq!(level(7, 7, 7), 9);
    }

    #[test]
    fn the_colours_of_images_are_those_of_the_style() {
        let style = include_str!("style.css");
        for (at, [red, green, blue]) in VIRIDIS.iter().skip(1).enumerate() {
            let rule = format!(".v{at}{{fill:#{red:02x}{green:02x}{blue:02x}}}");
            assert!(style.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn an_image_has_a_pixel_for_each_cell() {
        let side = 30;
        let cells = (0..side * side).map(|at| at as u64).collect();
        let names = vec![String::new(); side];
        let file = image(&Matrix { unit: Unit::Bytes, side, cells, names }, 1, 899);
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (30, 30));
        assert_eq!((pixels[0], pixels[1], pixels[899]), (0, 1, 10));
    }
}
