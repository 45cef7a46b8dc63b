//! `gyan archive report`: what the jobs of some days have in common.

use std::fmt::Display;
use std::io::ErrorKind;
use std::time::SystemTime;

use serde::Deserialize;

use crate::answers::{self, Extent};
use crate::archive::days::{LAST_DAY, day_at, day_of};
use crate::archive::report::{Selection, report as report_of};
use crate::archive::store::{self, Store};
use crate::cli::{ArchiveReportOptions, parse_span};
use crate::error::{Error, reason};
use crate::format::ReportFormat as Format;
use crate::output::may_be_page;
use crate::{DONE, print};

/// What a site says of its archive, in the archive.
const SETTINGS: &str = "archive.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveSettings {
    /// Whether reports may name users.
    #[serde(default)]
    users: bool,
}

pub(super) fn report(options: &ArchiveReportOptions) -> Result<u8, Error> {
    let format = options.page.format.clone()?;
    may_be_page("gyan archive report", &options.page, matches!(format, Format::Html))?;
    let store = store::open(&options.archive)?;
    if options.users && !settings(store.as_ref())?.users {
        return Err(Error::new(
            "--users",
            "this archive does not allow reports about users",
            format!("write `users = true` into {SETTINGS} in the archive"),
        ));
    }
    let now = day_at(SystemTime::now()).unwrap_or(0);
    let since = day("--since", &options.since, now)?;
    let until = options.until.as_deref().map_or(Ok(LAST_DAY), |text| day("--until", text, now))?;
    let selection = Selection {
        days: [since, until],
        program: options.program.clone(),
        cluster: options.cluster.clone(),
        users: options.users,
    };
    let report = report_of(store.as_ref(), &selection)?;
    let extent = Extent { all: options.all, weeks: options.weeks };
    let page = || answers::page_of_archive(&report);
    print::answer(format, &options.page, page, || answers::archive_report(&report, extent))?;
    Ok(DONE)
}

fn settings(store: &dyn Store) -> Result<ArchiveSettings, Error> {
    let text = match store.read(SETTINGS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ArchiveSettings::default()),
        text => text.map_err(|error| Error::new(SETTINGS, reason(&error), "make it readable"))?,
    };
    let remedy = "its only key is `users`";
    let wrong = |why: &dyn Display| Error::new(SETTINGS, why, remedy);
    let text = String::from_utf8(text).map_err(|error| wrong(&error))?;
    toml::from_str(&text).map_err(|error| wrong(&error.message()))
}

/// A day such as `2026-11-28`, or that at a time ago.
fn day(option: &str, text: &str, now: i32) -> Result<i32, Error> {
    let ago = || {
        let days = parse_span(text)?.as_secs() / 86_400;
        now.checked_sub(i32::try_from(days).ok()?)
    };
    day_of(text).or_else(ago).ok_or_else(|| {
        let remedy = "give a day such as 2026-11-28, or a time ago such as 30d";
        Error::new(format!("{option} {text}"), "is no day", remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_or_ago() {
        assert_eq!(day("--since", "1970-01-11", 100).unwrap(), 10);
        assert_eq!(day("--since", "30d", 100).unwrap(), 70);
        let error = day("--since", "soon", 100).unwrap_err().to_string();
        assert!(error.starts_with("--since soon: is no day"), "{error}");
    }
}
