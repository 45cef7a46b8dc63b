//! `gyan explain`: what a finding, an efficiency or a class of variables means, when it is wrong, what to do, and where it
//! comes from.

use gyan_results::Class;

use super::help::{List, lines, show, unknown};
use crate::cli::ExplainOptions;
use crate::error::Error;
use crate::{DONE, manual, output, parts};

pub(crate) fn explain(options: &ExplainOptions) -> Result<u8, Error> {
    let Some(id) = &options.id else {
        output::page(&lines(&names()))?;
        return Ok(DONE);
    };
    let Some(page) = manual::page_of(&id.to_lowercase()) else {
        let names = names();
        let names = names.iter().flat_map(|list| &list.rows).map(|(name, _)| name.as_str());
        return Err(unknown("gyan explain", id, names));
    };
    show(&page)?;
    Ok(DONE)
}

/// All that can be explained.
fn names() -> [List; 2] {
    let findings = manual::pages().map(|(name, about)| (name.to_owned(), about)).collect();
    let classes = Class::ALL.iter().map(|class| (class.name(), parts::explained(*class)));
    [
        List { heading: "Findings".into(), rows: findings },
        List {
            heading: "Classes of performance variables".into(),
            rows: classes.map(|(name, about)| (name.to_owned(), about.to_owned())).collect(),
        },
    ]
}
