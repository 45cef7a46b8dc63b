//! How sampled variables went over the run: a line of bars for each rank.

use gyan_results::{Series, SeriesColumn, Summary};

use super::numbers::{double_text, grouped, seconds};
use super::{Align, Column, Section, View, report};

/// Lines of one variable that fit on a screen.
const RANKS_AT_MOST: usize = 16;
/// From 0 to the largest reading.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// An interval in which the variable was not read.
const UNREAD: char = '·';

/// The course of one variable on one rank, as coarse as it is shown.
pub(crate) struct Course {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) object: Option<String>,
    pub(crate) rank: u32,
    min: f64,
    mean: f64,
    max: f64,
    /// The largest reading in each part of the run; none where there is no reading.
    peaks: Vec<Option<f64>>,
}

impl Course {
    /// The column of a series, condensed to `width` parts of a run of `elapsed_s`. None when it has
    /// no reading.
    pub(crate) fn of(
        rank: u32,
        series: &Series,
        column: &SeriesColumn,
        elapsed_s: f64,
        width: usize,
    ) -> Option<Course> {
        let mut peaks: Vec<Option<f64>> = vec![None; width];
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        // Each record counts as long as its interval is.
        let (mut area, mut read_s) = (0.0, 0.0);
        let mut begin_s = 0.0;
        for (at, &end_s) in series.end_s.iter().enumerate() {
            let value = |list: &[Option<f64>]| list.get(at).copied().flatten();
            if let (Some(low), Some(mean), Some(high)) =
                (value(&column.min), value(&column.mean), value(&column.max))
            {
                (min, max) = (min.min(low), max.max(high));
                area += mean * (end_s - begin_s);
                read_s += end_s - begin_s;
                let (first, last) = parts(begin_s, end_s, elapsed_s, width);
                for peak in peaks.iter_mut().take(last + 1).skip(first) {
                    *peak = Some(peak.map_or(high, |peak| peak.max(high)));
                }
            }
            begin_s = end_s;
        }
        let mean = if read_s > 0.0 { area / read_s } else { max };
        max.is_finite().then(|| Course {
            name: column.name.clone(),
            class: column.class.name(),
            object: column.object.clone(),
            rank,
            min,
            mean,
            max,
            peaks,
        })
    }
}

/// The first and the last of `width` equal parts of the run that an interval covers.
fn parts(begin_s: f64, end_s: f64, elapsed_s: f64, width: usize) -> (usize, usize) {
    // Not negative, and beyond the last part it is the last.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let part = |position: f64| (position.max(0.0) as usize).min(width.saturating_sub(1));
    let scale = if elapsed_s > 0.0 { width as f64 / elapsed_s } else { 0.0 };
    let first = part(begin_s * scale);
    // An interval that ends where a part begins is not in that part.
    (first, part((end_s * scale).ceil() - 1.0).max(first))
}

/// `courses` by variable, in the order of the ranks. `width`: parts of a line.
pub(crate) fn series(summary: &Summary, courses: Vec<Course>, width: usize, all: bool) -> View {
    let mut variables: Vec<Vec<Course>> = Vec::new();
    for course in courses {
        let same = |other: &Course| {
            (&other.name, other.class, &other.object)
                == (&course.name, course.class, &course.object)
        };
        match variables.iter_mut().find(|courses| courses.iter().any(same)) {
            Some(courses) => courses.push(course),
            None => variables.push(vec![course]),
        }
    }
    let sections = variables.into_iter().map(|courses| section(courses, summary, width, all));
    let mut view = View {
        title: report::title(summary),
        subtitle: vec![
            report::library_and_job(summary),
            "sampled while the program ran; of a vector the sum over its elements; MEAN is over the time"
                .to_owned(),
        ],
        sections: sections.collect(),
    };
    view.make_printable();
    view
}

fn section(mut courses: Vec<Course>, summary: &Summary, width: usize, all: bool) -> Section {
    let number = courses.len();
    if !all && number > RANKS_AT_MOST {
        courses.sort_by(|a, b| b.max.total_cmp(&a.max).then(a.rank.cmp(&b.rank)));
        courses.truncate(RANKS_AT_MOST);
    }
    courses.sort_by_key(|course| course.rank);
    let largest = courses.iter().fold(0.0_f64, |largest, course| largest.max(course.max));
    let mut rows: Vec<Vec<String>> = courses.iter().map(|course| row(course, largest)).collect();
    rows.push(axis(summary.job.elapsed_s, width));
    let unread = courses.iter().any(|course| course.peaks.contains(&None));
    let scale = match double_text(largest).as_str() {
        "0" => "every reading was 0".to_owned(),
        largest => {
            format!("each bar is the largest reading in its part of the run, from 0 to {largest}")
        }
    };
    let unread = if unread { format!("; {UNREAD} no reading") } else { String::new() };
    let mut notes = vec![scale + &unread];
    if courses.len() < number {
        notes.push(format!(
            "the {RANKS_AT_MOST} ranks with the largest readings of {}; --all shows every one",
            grouped(number as u128)
        ));
    }
    let about = courses.first().map_or_else(String::new, |course| {
        let object = course.object.as_ref().map_or(String::new(), |object| format!(", {object}"));
        format!("{} ({}{object})", course.name, course.class)
    });
    let right = |title| Column { title, align: Align::Right };
    Section {
        title: about,
        columns: vec![
            right("RANK"),
            right("MIN"),
            right("MEAN"),
            right("MAX"),
            Column { title: "OVER THE RUN", align: Align::Left },
        ],
        rows,
        notes,
    }
}

fn row(course: &Course, largest: f64) -> Vec<String> {
    let line = course.peaks.iter().map(|peak| peak.map_or(UNREAD, |peak| bar(peak, largest)));
    vec![
        course.rank.to_string(),
        double_text(course.min),
        double_text(course.mean),
        double_text(course.max),
        line.collect(),
    ]
}

/// What is not 0 never looks like 0.
fn bar(value: f64, largest: f64) -> char {
    let steps = (BARS.len() - 1) as f64;
    let height = if value > 0.0 && largest > 0.0 { (value / largest * steps).ceil() } else { 0.0 };
    // From 0 to the number of steps.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = height.clamp(0.0, steps) as usize;
    BARS[index]
}

/// The time below the bars.
fn axis(elapsed_s: f64, width: usize) -> Vec<String> {
    let (begin, end) = ("0 s", seconds(elapsed_s));
    let gap = width.saturating_sub(begin.len() + end.chars().count()).max(1);
    let line = format!("{begin}{}{end}", " ".repeat(gap));
    vec![String::new(), String::new(), String::new(), String::new(), line]
}

#[cfg(test)]
mod tests {
    use gyan_results::Class;

    use super::*;

    fn course(end_s: &[f64], values: &[Option<f64>], width: usize) -> Course {
        let series = Series { interval_s: 1.0, end_s: end_s.to_vec(), columns: Vec::new() };
        let column = SeriesColumn {
            name: "length".into(),
            class: Class::Level,
            object: None,
            min: values.to_vec(),
            mean: values.to_vec(),
            max: values.to_vec(),
        };
        Course::of(0, &series, &column, 4.0, width).unwrap()
    }

    #[test]
    fn a_long_interval_fills_every_part_that_it_covers() {
        let course = course(&[2.0, 3.0, 4.0], &[Some(5.0), None, Some(1.0)], 4);
        assert_eq!(course.peaks, [Some(5.0), Some(5.0), None, Some(1.0)]);
        assert!((course.mean - 11.0 / 3.0).abs() < 1e-12, "{}", course.mean);
    }

    #[test]
    fn of_several_intervals_in_one_part_the_peak_is_shown() {
        let course = course(&[1.0, 2.0, 3.0, 4.0], &[Some(1.0), Some(7.0), Some(2.0), None], 2);
        assert_eq!(course.peaks, [Some(7.0), Some(2.0)]);
    }

    #[test]
    fn bars_go_from_zero_to_the_largest() {
        let bars: String = [0.0, 0.001, 4.0, 8.0].map(|value| bar(value, 8.0)).iter().collect();
        assert_eq!(bars, "▁▂▅█");
        assert_eq!(bar(0.0, 0.0), '▁');
    }
}
