//! Bars with the same divisions, one below the other.

use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::super::values::{amount, value};
use super::{colour, rectangle, svg, swatch};
use crate::document::page::pictures::{Bars, Chart};
use crate::words::{seconds, share};

pub(super) fn drawn(bars: &Bars, of: &Chart, id: &str) -> Markup {
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
            // A gap, if there is room for one.
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
