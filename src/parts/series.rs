//! Sampled variables over the run: a line of bars for each rank.

use std::io::{self, IsTerminal};

use gyan_results::{Pvar, RankProfile, Series, SeriesColumn, Summary, Unit};
use wildmatch::WildMatch;

use super::{Part, PartOption, ReportInput, Takes, headings};
use crate::document::data::classes;
use crate::document::data::{Row, columns};
use crate::document::page::pictures::{Chart, Picture};
use crate::document::page::{PageBlock, pictures};
use crate::document::value::{InUnit, Plot, integer, line, row};
use crate::document::{
    Data, Document, Kind, Presentation, Section, Value, View, column, numbers, texts,
};
use crate::error::Error;

/// Variables over time.
pub(super) const SERIES: Part = Part {
    option: Some(PartOption {
        takes: Takes::Glob,
        ..PartOption::new(
            "series",
            "The values over time, on every rank, of sampled variables whose name matches",
            show,
        )
    }),
    table: None,
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let (summary, glob) = (of.summary, of.glob.unwrap_or("*"));
    let source = of.source.filter(|source| !source.is_empty()).ok_or_else(|| {
        of.lacks(
            "holds a summary and no rank profiles",
            "only the profiles of the ranks have a series",
        )
    })?;
    source.warn_of_few();
    let pattern = WildMatch::new(glob);
    let elapsed_s = summary.job.elapsed_s;
    let width = width();
    // Condensed to what is shown before the next profile is read: a series can be long.
    let ranks = source.of_each(&summary.job.id, |profile| {
        let series = profile.series?;
        let names: Vec<String> = series.columns.iter().map(|column| column.name.clone()).collect();
        let matching = series.columns.iter().filter(|column| pattern.matches(&column.name));
        let of = |column| Course::new(profile.rank, &series, column, elapsed_s, width);
        Some((names, matching.filter_map(of).collect::<Vec<_>>()))
    });
    if ranks.iter().all(Option::is_none) {
        return Err(of.lacks(
            "the run kept no series",
            "run it with gyan run --series 100ms, or set GYAN_SERIES=100ms",
        ));
    }
    let (names, courses): (Vec<_>, Vec<_>) = ranks.into_iter().flatten().unzip();
    let courses: Vec<Course> = courses.into_iter().flatten().collect();
    if courses.is_empty() {
        let mut names: Vec<String> = names.into_iter().flatten().collect();
        names.sort();
        names.dedup();
        let remedy = if names.is_empty() {
            "no variable was sampled; --sample NAME of gyan run adds one".to_owned()
        } else {
            format!("the run has {}", names.join(", "))
        };
        return Err(Error::new(format!("--series {glob}"), "no sampled variable matches", remedy));
    }
    let view = view(summary, courses, width, of.all);
    let rows = rows(source.one_by_one(&summary.job.id), pattern);
    Ok(Presentation { view, rows, document: Document::Rows })
}

/// How many lines of one variable fit on a screen.
const RANKS_AT_MOST: usize = 16;

/// The course of one variable on one rank, as coarse as it is shown.
struct Course {
    name: String,
    class: &'static str,
    object: Option<String>,
    rank: u32,
    min: f64,
    mean: f64,
    max: f64,
    /// The largest reading in each part of the run; none when there is no reading.
    peaks: Vec<Option<f64>>,
}

impl Course {
    /// The column of a series, condensed to `width` parts of a run of `elapsed_s`. None when it has
    /// no reading.
    fn new(
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
pub(super) fn parts(begin_s: f64, end_s: f64, elapsed_s: f64, width: usize) -> (usize, usize) {
    // Not negative; beyond the last part it is the last.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let part = |position: f64| (position.max(0.0) as usize).min(width.saturating_sub(1));
    let scale = if elapsed_s > 0.0 { width as f64 / elapsed_s } else { 0.0 };
    let first = part(begin_s * scale);
    // An interval that ends where a part begins is not in that part.
    (first, part((end_s * scale).ceil() - 1.0).max(first))
}

/// `courses` by variable, in the order of the ranks. `width`: parts of a line.
fn view(summary: &Summary, courses: Vec<Course>, width: usize, all: bool) -> View<'_> {
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

/// For the variables whose name matches; an interval ends at `end_s`.
/// For the variables whose name matches.
fn rows<'a>(mut profiles: impl Iterator<Item = RankProfile> + 'a, pattern: WildMatch) -> Data<'a> {
    Data::from_each(<(u32, SeriesInterval)>::COLUMNS, move |take| {
        profiles.try_for_each(|profile| {
            let mut intervals = intervals(&profile).filter(|of| pattern.matches(of.variable));
            intervals.try_for_each(|interval| (profile.rank, interval).write(take))
        })
    })
}

/// A stretch of time in which a variable was read.
pub(super) struct SeriesInterval<'p> {
    pub(super) variable: &'p str,
    /// That of the library, and the one that it behaves as.
    pub(super) classes: [Value<'static>; 2],
    pub(super) object: Option<&'p String>,
    pub(super) end_s: f64,
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

pub(super) fn intervals(profile: &RankProfile) -> impl Iterator<Item = SeriesInterval<'_>> {
    let columns = profile
        .series
        .iter()
        .flat_map(|series| series.columns.iter().map(move |column| (column, &series.end_s)));
    columns.flat_map(|(column, end_s)| {
        let SeriesColumn { name, class, object, min, mean, max } = column;
        let same = |pvar: &&Pvar| (&pvar.name, &pvar.class, &pvar.object) == (name, class, object);
        let corrected = profile.pvars.iter().find(same).and_then(|pvar| pvar.behaves_as);
        end_s.iter().enumerate().filter_map(move |(at, &end_s)| {
            let reading = |readings: &[Option<f64>]| readings.get(at).copied().flatten();
            let (min, mean, max) = (reading(min)?, reading(mean)?, reading(max)?);
            let (classes, object) = (classes(*class, corrected), object.as_ref());
            Some(SeriesInterval { variable: name, classes, object, end_s, min, mean, max })
        })
    })
}

columns! { (rank, of) in (u32, SeriesInterval<'_>);
    required(rank: Integer) => Value::Rank(*rank),
    required(variable: Text) => of.variable,
    required(class: Text) => of.classes[0].clone(),
    required(behaves_as: Text) => of.classes[1].clone(),
    column(object: Text) => of.object,
    required(end_s: Double) => of.end_s,
    required(min: Double) => of.min,
    required(mean: Double) => of.mean,
    required(max: Double) => of.max,
}

/// Number of parts of a line when there is no terminal width to fill.
const WIDTH: usize = 60;
/// Characters next to the bars in a terminal.
const BESIDE: usize = 40;

fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0).saturating_sub(BESIDE).clamp(20, 160))
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    let bands = of.ranks().bands(summary).ok_or(
        "the course of variables over time: only the profiles of ranks have it, and only from a \
         run with gyan run --series 100ms in which a variable was not 0 all the time",
    )?;
    let mut block = PageBlock::new("series", "Over the time of the run");
    let mut columns = texts(["VARIABLE", "CLASS", "OBJECT"]);
    columns.extend(crate::document::numbers(["RANKS", "LEAST", "MEAN", "MOST"]));
    let cells = |band: &pictures::Band| {
        let parts = || band.parts.iter().flatten();
        let least = parts().fold(f64::INFINITY, |least, part| least.min(part[0]));
        let most = parts().fold(f64::NEG_INFINITY, |most, part| most.max(part[2]));
        let mean = parts().map(|part| part[1]).sum::<f64>() / parts().count().max(1) as f64;
        let [least, mean, most] = [least, mean, most]
            .map(|of| Unit::Count.double(of).known(gyan_results::Fidelity::Sampled));
        let object = band.object.clone();
        row![band.name.clone(), band.class, object, integer(band.ranks), least, mean, most]
    };
    let rows = bands.bands.iter().map(cells).collect();
    let section = Section { title: "".into(), columns, rows, notes: Vec::new() };
    block.charts.push(Chart::new(
        "How did variables of the library change over the run?",
        "sampled; the line is the mean over the ranks, the band goes from the rank with least to the one with most",
        Picture::Bands(bands),
    ));
    Ok(block.with(false, [section]))
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
        Course::new(0, &series, &column, 4.0, width).unwrap()
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
