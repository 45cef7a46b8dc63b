//! What `gyan now` shows: the cause first, then what the ranks do.

use std::path::Path;
use std::time::Duration;

use gyan_results::{GroupNow, JobNow};

use crate::document::value::{line, row};
use crate::document::{Kind, Section, Value, View, column};

pub(crate) fn now<'a>(now: &'a JobNow, directory: &Path) -> View<'a> {
    let known = now.ranks.len();
    let title = match now.size as usize {
        size if known == size => line!["What the ", known as u64, " ranks are doing"],
        size => line!["What ", known as u64, " of ", size as u64, " ranks are doing"],
    };
    let mut subtitle = vec![line!["in ", directory.display().to_string()]];
    if let Some(cause) = &now.cause {
        subtitle.extend(["".into(), line![&cause.sentence, "."]]);
    }
    View { title, subtitle, sections: vec![groups(&now.groups)] }
}

fn groups(groups: &[GroupNow]) -> Section<'_> {
    let rows = groups.iter().map(|group| {
        let still = group.still_s.map(|still| {
            let seconds = Duration::from_secs_f64(still.max(0.0)).as_secs();
            Value::from(humantime::format_duration(Duration::from_secs(seconds)).to_string())
        });
        row![still.unwrap_or_default(), &group.sentence]
    });
    Section {
        title: "".into(),
        columns: vec![column("FOR", Kind::Text), column("WHO", Kind::Prose)],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
