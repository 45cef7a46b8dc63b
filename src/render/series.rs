//! How sampled variables went, one record for each interval: for a spreadsheet or a script.

use std::borrow::Cow;
use std::io::{self, Write};

use csv::Writer;
use gyan_results::{RankProfile, json_line};
use serde::Serialize;
use wildmatch::WildMatch;

use super::csv::io_error;
use crate::view::printable;

/// What was read of one variable in one interval, which ends at `end_s`.
#[derive(Serialize)]
struct Record<'a> {
    rank: u32,
    variable: Cow<'a, str>,
    class: &'a str,
    object: Option<Cow<'a, str>>,
    end_s: f64,
    min: f64,
    mean: f64,
    max: f64,
}

pub(crate) fn series_csv(
    out: &mut impl Write,
    profiles: impl Iterator<Item = RankProfile>,
    pattern: &WildMatch,
) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    for profile in profiles {
        for record in records(&profile, pattern) {
            let record = Record {
                variable: printable(&record.variable),
                object: record.object.as_deref().map(printable),
                ..record
            };
            writer.serialize(record).map_err(io_error)?;
        }
    }
    writer.flush()
}

/// An array of records, one a line.
pub(crate) fn series_json(
    out: &mut impl Write,
    profiles: impl Iterator<Item = RankProfile>,
    pattern: &WildMatch,
) -> io::Result<()> {
    let mut before = "[\n";
    for profile in profiles {
        for record in records(&profile, pattern) {
            out.write_all(before.as_bytes())?;
            out.write_all(json_line(&record)?.as_bytes())?;
            before = ",\n";
        }
    }
    out.write_all(b"\n]\n")
}

/// Intervals without a reading have no record.
fn records<'a>(
    profile: &'a RankProfile,
    pattern: &'a WildMatch,
) -> impl Iterator<Item = Record<'a>> {
    let series = profile.series.iter();
    series.flat_map(move |series| {
        let columns = series.columns.iter().filter(|column| pattern.matches(&column.name));
        columns.flat_map(move |column| {
            series.end_s.iter().enumerate().filter_map(move |(at, &end_s)| {
                Some(Record {
                    rank: profile.rank,
                    variable: Cow::Borrowed(&column.name),
                    class: column.class.name(),
                    object: column.object.as_deref().map(Cow::Borrowed),
                    end_s,
                    min: column.min.get(at).copied().flatten()?,
                    mean: column.mean.get(at).copied().flatten()?,
                    max: column.max.get(at).copied().flatten()?,
                })
            })
        })
    })
}
