//! Aligned columns for a terminal.

use std::io::{self, Write};

use anstyle::{Effects, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use textwrap::{Options, WordSplitter};

use crate::view::{Align, Section, View};

/// Remarks longer than this go on in the next line.
const NOTE_WIDTH: usize = 100;
const HEADING: Style = Style::new().effects(Effects::BOLD);
const ASIDE: Style = Style::new().effects(Effects::DIMMED);

pub(crate) fn table(mut out: impl Write, view: &View) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", view.title)?;
    for line in &view.subtitle {
        writeln!(out, "{line}")?;
    }
    for section in &view.sections {
        writeln!(out, "\n{HEADING}{}{HEADING:#}", section.title)?;
        if !section.rows.is_empty() {
            writeln!(out, "{}", aligned(section))?;
        }
        for note in &section.notes {
            for line in textwrap::wrap(note, note_options()) {
                writeln!(out, "{ASIDE}{line}{ASIDE:#}")?;
            }
        }
    }
    Ok(())
}

/// Options of configure and names of variables stay whole.
fn note_options() -> Options<'static> {
    Options::new(NOTE_WIDTH).subsequent_indent("    ").word_splitter(WordSplitter::NoHyphenation)
}

fn aligned(section: &Section) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(section.columns.iter().map(|column| column.title));
    table.add_rows(&section.rows);
    let last = section.columns.len().saturating_sub(1);
    for (at, column) in section.columns.iter().enumerate() {
        if let Some(layout) = table.column_mut(at) {
            layout.set_padding((0, if at == last { 0 } else { 2 }));
            layout.set_cell_alignment(match column.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
