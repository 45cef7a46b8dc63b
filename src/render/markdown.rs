//! Tables for a document.

use std::io::{self, Write};

use super::cells::{Cells, cells};
use super::text::text;
use crate::document::{Kind, Value, View};

pub(crate) fn markdown(mut out: impl Write, view: &View) -> io::Result<()> {
    writeln!(out, "# {}", escaped(&view.title))?;
    if !view.subtitle.is_empty() {
        writeln!(out)?;
    }
    for line in view.subtitle.iter().map(escaped).filter(|line| !line.is_empty()) {
        writeln!(out, "- {}", line.trim_start())?;
    }
    for section in &view.sections {
        let title = escaped(&section.title);
        if !title.is_empty() {
            writeln!(out, "\n## {title}")?;
        }
        writeln!(out)?;
        if !section.rows.is_empty() {
            let Cells { columns, rows } = cells(section);
            let titles: Vec<_> = columns.iter().map(|column| column.name).collect();
            let rules = columns.iter().map(|column| match column.kind {
                Kind::Text | Kind::Place | Kind::Prose => ":--",
                Kind::Integer | Kind::Time | Kind::Double | Kind::Number | Kind::Spare => "--:",
            });
            writeln!(out, "| {} |", titles.join(" | "))?;
            writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
            for row in rows {
                let cells: Vec<_> = row.iter().map(|cell| without_markup(cell)).collect();
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
            if !section.notes.is_empty() {
                writeln!(out)?;
            }
        }
        for line in &section.notes {
            match line {
                Value::Fact(label, value) => writeln!(out, "- {label}: {}", escaped(value))?,
                line => {
                    let line = escaped(line);
                    let indent = line.len() - line.trim_start().len();
                    writeln!(out, "{}- {}", &line[..indent], &line[indent..])?;
                }
            }
        }
    }
    Ok(())
}

fn escaped(value: &Value) -> String {
    without_markup(&text(value))
}

/// Text with markup escaped. An underscore inside a word is not markup, and names read better without the
/// escape.
fn without_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*[]<>|".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
