//! Tables for a document.

use std::io::{self, Write};

use crate::view::{Align, View};

pub(crate) fn markdown(out: &mut impl Write, view: &View) -> io::Result<()> {
    writeln!(out, "# {}\n", escaped(&view.title))?;
    for line in &view.subtitle {
        writeln!(out, "- {}", escaped(line))?;
    }
    for section in &view.sections {
        writeln!(out, "\n## {}\n", escaped(&section.title))?;
        if !section.rows.is_empty() {
            let titles: Vec<_> = section.columns.iter().map(|column| column.title).collect();
            let rules = section.columns.iter().map(|column| match column.align {
                Align::Left => ":--",
                Align::Right => "--:",
            });
            writeln!(out, "| {} |", titles.join(" | "))?;
            writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
            for row in &section.rows {
                let cells: Vec<_> = row.iter().map(|cell| escaped(cell)).collect();
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
            if !section.notes.is_empty() {
                writeln!(out)?;
            }
        }
        for line in &section.notes {
            writeln!(out, "- {}", escaped(line.trim_start()))?;
        }
    }
    Ok(())
}

/// Text in which nothing is markup. An underscore inside a word is none, and names read better so.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*[]<>|".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
