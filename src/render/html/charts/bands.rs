//! Variables over a common time axis: a band from the rank with the least to the one with the most, and a line
//! for the mean.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::super::super::text::text;
use super::{below, beside_scale, round, svg};
use crate::document::page::pictures::{Band, Bands, Chart};
use crate::words::{double, seconds};

pub(super) fn drawn(bands: &Bands, of: &Chart, id: &str) -> Markup {
    html! {
        div.bands {
            @for (at, band) in bands.bands.iter().enumerate() { (course(band, bands.end_s, of, &format!("{id}-{at}"))) }
        }
        (below(&["0 s".to_owned(), seconds(bands.end_s)]))
    }
}

fn course(band: &Band, end_s: f64, of: &Chart, id: &str) -> Markup {
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
    // Shown when one points at a part: its least, mean and most, or one number if all three are the same.
    let numbers = |part: &Option<[f64; 3]>| match part {
        None => String::new(),
        Some([min, _, max]) if min >= max => double(*min),
        Some(part) => part.map(double).join("|"),
    };
    let parts: Vec<String> = band.parts.iter().map(numbers).collect();
    html! {
        div.name { b { (text(&(&band.name).into())) } " " small { (band.class) (text(&object.into())) } }
        div.course-of data-parts=(parts.join(";")) data-end=(end_s) {
            (beside_scale(
                [&double(highest), &double(lowest)],
                &svg(of, id, "curve", "0 0 1000 60", true, &marks),
            ))
        }
    }
}
