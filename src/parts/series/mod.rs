//! Sampled variables over the run: a line of bars for each rank.

pub(crate) mod rows;

use gyan_results::{Series, SeriesColumn, Summary};

use crate::document::value::{Plot, Value, line, row};
use crate::document::{Kind, Section, View, column, numbers};
use crate::parts::headings;

/// How many lines of one variable fit on a screen.
const RANKS_AT_MOST: usize = 16;

/// The course of one variable on one rank, as coarse as it is shown.
pub(crate) struct Course {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) object: Option<String>,
    pub(crate) rank: u32,
    min: f64,
    mean: f64,
    max: f64,
    /// The largest reading in each part of the run; none when there is no reading.
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
        // Each record is weighted by the length of its interval.
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
pub(crate) fn parts(begin_s: f64, end_s: f64, elapsed_s: f64, width: usize) -> (usize, usize) {
    // Not negative; beyond the last part it is the last.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let part = |position: f64| (position.max(0.0) as usize).min(width.saturating_sub(1));
    let scale = if elapsed_s > 0.0 { width as f64 / elapsed_s } else { 0.0 };
    let first = part(begin_s * scale);
    // An interval that ends where a part begins is not in that part.
    (first, part((end_s * scale).ceil() - 1.0).max(first))
}

/// `courses` by variable, in the order of the ranks. `width`: parts of a line.
pub(crate) fn series(summary: &Summary, courses: Vec<Course>, width: usize, all: bool) -> View<'_> {
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
    let about = "sampled while the program ran; for a vector, the sum over its elements; MEAN is \
        over the time";
    View {
        title: headings::title(summary),
        subtitle: vec![headings::library_and_job(summary), about.into()],
        sections: sections.collect(),
    }
}

fn section(
    mut courses: Vec<Course>,
    summary: &Summary,
    parts: usize,
    all: bool,
) -> Section<'static> {
    let number = courses.len();
    if !all && number > RANKS_AT_MOST {
        courses.sort_by(|a, b| b.max.total_cmp(&a.max).then(a.rank.cmp(&b.rank)));
        courses.truncate(RANKS_AT_MOST);
    }
    courses.sort_by_key(|course| course.rank);
    let highest = courses.iter().fold(0.0_f64, |highest, course| highest.max(course.max));
    let scale = if highest > 0.0 {
        line!["each bar is the largest reading in its part of the run, from 0 to ", highest]
    } else {
        "every reading was 0".into()
    };
    let unread = courses.iter().any(|course| course.peaks.contains(&None));
    let mut notes = vec![line![scale, if unread { "; · no reading" } else { "" }]];
    if courses.len() < number {
        let shown = RANKS_AT_MOST;
        notes.push(line![
            "the ",
            shown,
            " ranks with the largest readings of ",
            number,
            "; --all shows every one"
        ]);
    }
    let title = courses.first().map(|course| {
        let about = line![course.name.clone(), " (", course.class];
        match course.object.clone() {
            Some(object) => line![about, ", ", object, ")"],
            None => line![about, ")"],
        }
    });
    let mut rows: Vec<Vec<Value>> = courses
        .into_iter()
        .map(|course| {
            let Course { rank, min, mean, max, peaks, .. } = course;
            row![
                Value::Rank(rank),
                min,
                mean,
                max,
                Value::Plot(Plot::Course { peaks: peaks.into(), highest })
            ]
        })
        .collect();
    let axis = Value::Plot(Plot::Axis { end_s: summary.job.elapsed_s, parts });
    rows.push(row!["", "", "", "", axis]);
    let mut columns = numbers(["RANK", "MIN", "MEAN", "MAX"]);
    columns.push(column("OVER THE RUN", Kind::Text));
    Section { title: title.into(), columns, rows, notes }
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
}
