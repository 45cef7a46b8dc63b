//! Aligned columns for a terminal.

use std::io::{self, Write};

use anstyle::{Effects, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use textwrap::{Options, WordSplitter};

use super::cells::{Cells, cells};
use super::text::text;
use crate::document::{Column, Kind, Section, View};

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
            writeln!(out, "{}", fitted(section, crate::output::width()))?;
        }
        for note in &section.notes {
            for line in textwrap::wrap(
                &text(note),
                options(crate::output::width()).subsequent_indent("    "),
            ) {
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
    let lines = textwrap::wrap(text, options(crate::output::width()).subsequent_indent(&indent));
    lines.into_iter().map(Into::into).collect()
}

/// Options of configure and names of variables stay whole.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width).word_splitter(WordSplitter::NoHyphenation)
}

/// A table is no wider than this if it has spare columns enough, which are left out one by one, and one with places never is. Rows of nothing but a place are lines of their own; so are all
/// places if the table would be too wide with them. If it still is, its last columns are left out.
fn fitted(section: &Section, width: usize) -> String {
    let Cells { mut columns, mut rows } = cells(section);
    let is_wide = |table: &str| table.lines().any(|line| line.chars().count() > width);
    while let Some(at) = columns.iter().position(|column| column.kind == Kind::Spare)
        && is_wide(&aligned(&columns, rows.clone()))
    {
        columns.remove(at);
        for row in &mut rows {
            row.remove(at);
        }
    }
    let Some(at) = columns.iter().position(|column| column.kind == Kind::Place) else {
        return aligned(&columns, rows);
    };
    // The places below each row.
    let mut below: Vec<Vec<String>> = Vec::new();
    rows.retain(|row| {
        let is_below = row.iter().enumerate().all(|(cell, text)| cell == at || text.is_empty());
        match below.last_mut().filter(|_| is_below) {
            Some(last) => last.extend(row.get(at).cloned()),
            None => below.push(Vec::new()),
        }
        !is_below
    });
    let mut table = aligned(&columns, rows.clone());
    if is_wide(&table) {
        columns.remove(at);
        for (row, below) in rows.iter_mut().zip(&mut below) {
            below.insert(0, format!("  at {}", row.remove(at)));
        }
        table = aligned(&columns, rows.clone());
    }
    while is_wide(&table) && columns.len() > 2 {
        columns.pop();
        for row in &mut rows {
            row.truncate(columns.len());
        }
        table = aligned(&columns, rows.clone());
    }
    let mut lines: Vec<String> = Vec::new();
    // The headings come before the first row.
    let below = std::iter::once(Vec::new()).chain(below);
    for (line, below) in table.lines().zip(below) {
        lines.push(line.to_owned());
        lines.extend(below.iter().map(|place| shortened(place, width)));
    }
    lines.join("\n")
}

/// The text without its middle, so that it fits.
fn shortened(text: &str, width: usize) -> String {
    const GAP: &str = " ... ";
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let tail = width.saturating_sub(GAP.len()) / 2;
    let head = width.saturating_sub(GAP.len() + tail);
    let part = |part: Option<&[char]>| part.unwrap_or_default().iter().collect::<String>();
    let (first, last) = (part(letters.get(..head)), part(letters.get(letters.len() - tail..)));
    // Whole names, where there are several.
    let first = first.rsplit_once(", ").map_or(first.as_str(), |(first, _)| first);
    let last = last.split_once(", ").map_or(last.as_str(), |(_, last)| last);
    format!("{}{GAP}{last}", first.trim_end_matches(','))
}

fn aligned(columns: &[Column], mut rows: Vec<Vec<String>>) -> String {
    let prose = columns.iter().filter(|column| column.kind == Kind::Prose).count().max(1);
    let width = (PROSE_WIDTH - GAP * (prose - 1)) / prose;
    for row in &mut rows {
        for (cell, column) in row.iter_mut().zip(columns) {
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
                Kind::Text | Kind::Place | Kind::Prose => CellAlignment::Left,
                Kind::Integer | Kind::Time | Kind::Double | Kind::Number | Kind::Spare => {
                    CellAlignment::Right
                }
            });
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;

    #[test]
    fn places_have_lines_of_their_own_where_the_table_would_be_too_wide() {
        let column = |name, kind| Column { name, kind, required: false, fidelity: None, about: "" };
        let columns = vec![
            column("FUNCTION", Kind::Text),
            column("WHERE", Kind::Place),
            column("CALLS", Kind::Number),
            column("DATA", Kind::Number),
        ];
        let row = |cells: [&str; 4]| cells.map(|cell| Value::from(cell.to_owned())).to_vec();
        let rows = vec![
            row(["MPI_Send", "CommBrick::borders in liblammps.so.0", "1,604", "58.5 MiB"]),
            row(["", "  from Verlet::run, Run::command, Input::file, lmp", "", ""]),
            row(["MPI_Recv", "halo.c:42 (main)", "7", "1 B"]),
        ];
        let section = Section { title: "".into(), columns, rows, notes: Vec::new() };
        let wide = fitted(&section, 100);
        assert!(wide.starts_with("FUNCTION  WHERE"), "{wide}");
        assert!(wide.contains("\n  from Verlet::run, Run::command, Input::file, lmp\n"), "{wide}");
        let narrow = "\
FUNCTION  CALLS      DATA
MPI_Send  1,604  58.5 MiB
  at CommBrick::borders in liblammps.so.0
  from Verlet::run ... Input::file, lmp
MPI_Recv      7       1 B
  at halo.c:42 (main)";
        assert_eq!(fitted(&section, 42), narrow);
        let mut spare = section;
        spare.columns[2].kind = Kind::Spare;
        let narrow = fitted(&spare, 60);
        assert!(
            narrow.starts_with("FUNCTION  WHERE                                     DATA\n"),
            "{narrow}"
        );
        let section = spare;
        let least = fitted(&section, 20);
        assert!(least.lines().all(|line| line.chars().count() <= 20), "{least}");
        assert!(least.starts_with("FUNCTION      DATA\n"), "{least}");
    }
}
