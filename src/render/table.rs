//! Aligned columns for a terminal.

use std::io::{self, Write};

use anstyle::{Effects, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use textwrap::{Options, WordSplitter};

use super::cells::{Cells, cells};
use super::text::text;
use crate::view::{Kind, Section, View};

/// Remarks longer than this continue on the next line.
const NOTE_WIDTH: usize = 100;
/// The width that columns of prose share, including the gaps between them.
const PROSE_WIDTH: usize = 76;
const GAP: usize = 4;
const HEADING: Style = Style::new().effects(Effects::BOLD);
const ASIDE: Style = Style::new().effects(Effects::DIMMED);

pub(crate) fn table(mut out: impl Write, view: &View) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", text(&view.title))?;
    for line in &view.subtitle {
        paragraph(&mut out, &text(line))?;
    }
    for section in &view.sections {
        let title = text(&section.title);
        writeln!(out)?;
        if !title.is_empty() {
            writeln!(out, "{HEADING}{title}{HEADING:#}")?;
        }
        if !section.rows.is_empty() {
            writeln!(out, "{}", aligned(section))?;
        }
        for note in &section.notes {
            for line in textwrap::wrap(&text(note), options(NOTE_WIDTH).subsequent_indent("    ")) {
                writeln!(out, "{ASIDE}{line}{ASIDE:#}")?;
            }
        }
    }
    Ok(())
}

fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    wrapped(text).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The lines of a text: those after the first are indented like it, and by two more.
pub(crate) fn wrapped(text: &str) -> Vec<String> {
    let indent = " ".repeat(text.len() - text.trim_start().len() + 2);
    let lines = textwrap::wrap(text, options(NOTE_WIDTH).subsequent_indent(&indent));
    lines.into_iter().map(Into::into).collect()
}

/// Options of configure and names of variables stay whole.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width).word_splitter(WordSplitter::NoHyphenation)
}

fn aligned(section: &Section) -> String {
    let Cells { columns, mut rows } = cells(section);
    let prose = columns.iter().filter(|column| column.kind == Kind::Prose).count().max(1);
    let width = (PROSE_WIDTH - GAP * (prose - 1)) / prose;
    for row in &mut rows {
        for (cell, column) in row.iter_mut().zip(&columns) {
            if column.kind == Kind::Prose {
                *cell = textwrap::wrap(cell, options(width).break_words(false)).join("\n");
            }
        }
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|column| column.name));
    table.add_rows(rows);
    let last = columns.len().saturating_sub(1);
    for (at, column) in columns.iter().enumerate() {
        if let Some(layout) = table.column_mut(at) {
            layout.set_padding((0, if at == last { 0 } else { 2 }));
            layout.set_cell_alignment(match column.kind {
                Kind::Text | Kind::Prose => CellAlignment::Left,
                Kind::Integer | Kind::Double | Kind::Number => CellAlignment::Right,
            });
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
