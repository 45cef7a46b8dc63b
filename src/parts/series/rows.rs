//! Sampled variables over time, one row per interval. Intervals without a reading have no row.

use std::io;

use gyan_results::{RankProfile, Series, SeriesColumn};
use wildmatch::WildMatch;

use crate::document::data::{Data, TakeRow, classes};
use crate::document::value::{Value, cells};
use crate::document::{Column, Kind, column, required};

const COLUMNS: [Column; 9] = [
    required("rank", Kind::Integer),
    required("variable", Kind::Text),
    required("class", Kind::Text),
    required("behaves_as", Kind::Text),
    column("object", Kind::Text),
    required("end_s", Kind::Double),
    required("min", Kind::Double),
    required("mean", Kind::Double),
    required("max", Kind::Double),
];

/// For the variables whose name matches; an interval ends at `end_s`.
pub(crate) fn series<'a>(
    mut profiles: impl Iterator<Item = RankProfile> + 'a,
    pattern: &'a WildMatch,
) -> Data<'a> {
    let rows = move |take: &mut TakeRow| {
        profiles.try_for_each(|profile| {
            each_interval(&profile, |name| pattern.matches(name), &mut |interval| {
                let mut row = vec![Value::Rank(profile.rank)];
                row.extend(interval);
                take(&row)
            })
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}

/// The columns of an interval in which a variable was read, without the rank.
type Interval<'p> = [Value<'p>; 8];

/// Each interval of the selected variables of a rank.
pub(crate) fn each_interval<'p>(
    profile: &'p RankProfile,
    is_wanted: impl Fn(&str) -> bool,
    take: &mut dyn FnMut(Interval<'p>) -> io::Result<()>,
) -> io::Result<()> {
    profile.series.iter().try_for_each(|series| {
        let mut columns = series.columns.iter().filter(|one| is_wanted(&one.name));
        columns.try_for_each(|one| course(profile, series, one, take))
    })
}

/// One variable on one rank.
fn course<'p>(
    profile: &RankProfile,
    series: &Series,
    column: &'p SeriesColumn,
    take: &mut dyn FnMut(Interval<'p>) -> io::Result<()>,
) -> io::Result<()> {
    let SeriesColumn { name, class, object, min, mean, max } = column;
    let known = profile.pvars.iter();
    let mut known =
        known.filter(|pvar| (&pvar.name, &pvar.class, &pvar.object) == (name, class, object));
    let corrected = known.next().and_then(|pvar| pvar.behaves_as);
    for (at, &end_s) in series.end_s.iter().enumerate() {
        let readings = [min, mean, max].map(|readings| readings.get(at).copied().flatten());
        if let [Some(min), Some(mean), Some(max)] = readings {
            let [class, behaves_as] = classes(*class, corrected);
            take(cells![name, class, behaves_as, object.as_ref(), end_s, min, mean, max])?;
        }
    }
    Ok(())
}
