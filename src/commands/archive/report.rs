//! `gyan archive report`: what the jobs of some days have in common.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use crate::answers::{self, Extent};
use crate::archive::report::{Selection, report as report_of};
use crate::archive::scan::{day_at, day_of};
use crate::cli::{ArchiveReportOptions, parse_span};
use crate::error::Error;
use crate::format::ReportFormat as Format;
use crate::output::may_be_page;
use crate::{DONE, print};

/// What a site says of its archive, in the archive.
const SETTINGS: &str = "archive.toml";

/// The settings of an archive.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveSettings {
    /// Whether reports may name users.
    #[serde(default)]
    users: bool,
}

pub(super) fn report(options: &ArchiveReportOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    may_be_page("gyan archive report", &options.page, matches!(format, Format::Html))?;
    if options.users && !settings(&options.archive)?.users {
        return Err(Error::new(
            "--users",
            "this archive does not allow reports about users",
            format!("write `users = true` into {}", options.archive.join(SETTINGS).display()),
        ));
    }
    let now = day_at(SystemTime::now()).unwrap_or(0);
    let since = day("--since", &options.since, now)?;
    let until = options.until.as_deref().map_or(Ok(i32::MAX), |text| day("--until", text, now))?;
    let selection = Selection {
        days: [since, until],
        program: options.program.clone(),
        cluster: options.cluster.clone(),
        users: options.users,
    };
    let report = report_of(&options.archive, &selection)?;
    let extent = Extent { all: options.all, weeks: options.weeks };
    let page = || answers::page_of_archive(&report);
    print::answer(format, &options.page, page, || answers::archive_report(&report, extent))?;
    Ok(DONE)
}

fn settings(archive: &Path) -> Result<ArchiveSettings, Error> {
    let path = archive.join(SETTINGS);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ArchiveSettings::default()),
        text => text.map_err(|error| Error::io(&path, &error, "make it readable"))?,
    };
    toml::from_str(&text)
        .map_err(|error| Error::new(path.display(), error.message(), "its only key is `users`"))
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
