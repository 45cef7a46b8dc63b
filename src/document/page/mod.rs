//! A page: its content and order, as typed data. Any view can be one: blocks of sentences, cards, charts and
//! tables.

pub(crate) mod history;
pub(crate) mod pictures;

use std::borrow::Cow;

use crate::document::page::pictures::Chart;
use crate::document::value::{Value, line};
use crate::document::{Section, View};

/// Rows of a table: a page must be small enough to mail.
pub(crate) const ROWS_AT_MOST: usize = 250;

/// How many bars a chart has, and how many tables of one kind a block.
pub(crate) const BARS_AT_MOST: usize = 12;
/// A table with up to this many rows is always open.
pub(crate) const ROWS_IF_OPEN: usize = 40;

pub(crate) struct Page<'a> {
    pub(crate) title: Value<'a>,
    /// The answer in one sentence.
    pub(crate) headline: Option<Value<'a>>,
    pub(crate) blocks: Vec<PageBlock<'a>>,
}

pub(crate) struct PageBlock<'a> {
    /// Its name in links.
    pub(crate) id: Cow<'static, str>,
    pub(crate) link: Cow<'static, str>,
    pub(crate) title: Cow<'static, str>,
    /// The heading of the tables that are folded.
    pub(crate) details: &'static str,
    pub(crate) says: Vec<Value<'a>>,
    pub(crate) cards: Vec<Card<'a>>,
    pub(crate) charts: Vec<Chart<'a>>,
    pub(crate) tables: Vec<FoldedTable<'a>>,
}

/// What to do about something, such as a finding.
pub(crate) struct Card<'a> {
    /// The share of the run at stake; none when the finding is about the measurement.
    pub(crate) share: Option<f64>,
    pub(crate) section: Section<'a>,
}

pub(crate) struct FoldedTable<'a> {
    pub(crate) section: Section<'a>,
    /// Whether it is shown open; otherwise it is folded.
    pub(crate) is_open: bool,
}

impl<'a> PageBlock<'a> {
    pub(crate) fn new(id: &'static str, title: &'static str) -> PageBlock<'a> {
        // With a capital letter.
        let (first, rest) = id.split_at(usize::from(!id.is_empty()));
        let link = format!("{}{rest}", first.to_uppercase());
        PageBlock::named(id.into(), link.into(), title.into())
    }

    /// A part whose names depend on what is shown.
    pub(crate) fn named(
        id: Cow<'static, str>,
        link: Cow<'static, str>,
        title: Cow<'static, str>,
    ) -> PageBlock<'a> {
        let (says, cards, charts, tables) = Default::default();
        PageBlock { id, link, title, details: "The numbers", says, cards, charts, tables }
    }

    /// Adds a table, cut to what a page may hold.
    pub(crate) fn push(&mut self, is_open: bool, mut section: Section<'a>) {
        let more = section.rows.len().saturating_sub(ROWS_AT_MOST);
        if more > 0 {
            section.rows.truncate(ROWS_AT_MOST);
            section.notes.push(line![more, " more rows are in the same report with --all"]);
        }
        self.tables.push(FoldedTable { section, is_open });
    }

    pub(crate) fn extend(
        &mut self,
        is_open: bool,
        sections: impl IntoIterator<Item = Section<'a>>,
    ) {
        sections.into_iter().for_each(|section| self.push(is_open, section));
    }

    pub(crate) fn with(
        mut self,
        is_open: bool,
        sections: impl IntoIterator<Item = Section<'a>>,
    ) -> PageBlock<'a> {
        self.extend(is_open, sections);
        self
    }

    pub(crate) fn of_view(self, is_open: bool, view: View<'a>) -> PageBlock<'a> {
        self.with(is_open, view.sections)
    }
}
