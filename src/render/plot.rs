//! Pictures of numbers made of characters.

use crate::document::value::Plot;
use crate::words::seconds;

/// Characters of the longest bar.
const LONGEST: usize = 40;
/// From 0 to the highest reading.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A part of the run in which nothing was read.
const UNREAD: char = '·';

pub(super) fn plot(plot: &Plot) -> String {
    match plot {
        Plot::Bar { part, longest } => bar(*part, *longest),
        Plot::Course { peaks, highest } => {
            peaks.iter().map(|peak| peak.map_or(UNREAD, |peak| height(peak, *highest))).collect()
        }
        Plot::Axis { end_s, parts } => {
            let (begin, end) = ("0 s", seconds(*end_s));
            let gap = parts.saturating_sub(begin.len() + end.chars().count()).max(1);
            format!("{begin}{}{end}", " ".repeat(gap))
        }
    }
}

/// What is not 0 never looks like 0.
fn bar(part: u64, longest: u64) -> String {
    let length = (u128::from(part) * LONGEST as u128).div_ceil(u128::from(longest.max(1)));
    "█".repeat(usize::try_from(length).unwrap_or(LONGEST))
}

/// What is not 0 never looks like 0.
fn height(value: f64, highest: f64) -> char {
    let steps = (HEIGHTS.len() - 1) as f64;
    let height = if value > 0.0 && highest > 0.0 { (value / highest * steps).ceil() } else { 0.0 };
    // From 0 to the number of steps.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = height.clamp(0.0, steps) as usize;
    HEIGHTS[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_has_a_bar() {
        assert_eq!(bar(1, 1_000_000), "█");
        assert_eq!(bar(0, 1_000_000), "");
        assert_eq!(bar(5, 5).chars().count(), LONGEST);
    }

    #[test]
    fn courses_go_from_zero_to_the_highest() {
        let course: String =
            [0.0, 0.001, 4.0, 8.0].map(|value| height(value, 8.0)).iter().collect();
        assert_eq!(course, "▁▂▅█");
        assert_eq!(height(0.0, 0.0), '▁');
    }
}
