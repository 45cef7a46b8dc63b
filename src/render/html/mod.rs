//! A page: one file that needs no network and is complete without its script. The policy in its head forbids
//! anything that is not in the page. A fragment is the same to be put into another page, such as a notebook: without a script,
//! and with a style that holds within it only.

mod charts;
mod values;

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::cells::is_below;
use super::text::text;
use crate::document::page::{Card, FoldedTable, Page, PageBlock};
use crate::document::{Kind, Section, Value};
use values::{cell, value};

const STYLE: &str = concat!(
    ":root{color-scheme:light dark;",
    include_str!("light.css"),
    "}\n@media(prefers-color-scheme:dark){:root{",
    include_str!("dark.css"),
    "}}\n",
    include_str!("style.css"),
    include_str!("page.css")
);
/// The last two rules are for `JupyterLab` and Visual Studio Code, whose themes need not be that of the system. Three classes, so
/// that it goes before the style of the notebook.
const STYLE_OF_FRAGMENT: &str = concat!(
    ".gyan{color-scheme:light dark;",
    include_str!("light.css"),
    "}\n@media screen and (prefers-color-scheme:dark){.gyan{",
    include_str!("dark.css"),
    "}}\n[data-jp-theme-light=true] .gyan,.vscode-light .gyan{color-scheme:light;",
    include_str!("light.css"),
    "}\n[data-jp-theme-light=false] .gyan,.vscode-dark .gyan{color-scheme:dark;",
    include_str!("dark.css"),
    "}\n.gyan.gyan.gyan{",
    include_str!("style.css"),
    include_str!("notebook.css"),
    "}"
);
const SCRIPT: &str = include_str!("script.js");

/// Tables with fewer rows need no search field.
const ROWS_TO_SEARCH: usize = 20;

/// `summary`: an element for programs that read the page as input.
pub(crate) fn html(out: &mut (impl Write + ?Sized), page: &Page, summary: &str) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="gyan";
                title { "gyan: " (text(&page.title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.brand { "gyan" }
                    h1 { (value(&page.title)) }
                    @if let Some(headline) = &page.headline {
                        p.headline { (value(headline)) "." }
                    }
                    nav aria-label="Parts of this page" {
                        @for block in &page.blocks { a href={ "#" (block.id) } { (short(block.id)) } " " }
                    }
                }
                main { @for of in &page.blocks { (block(of, "")) } }
                script { (PreEscaped(SCRIPT)) }
                (PreEscaped(summary))
            }
        }
    };
    out.write_all(document.into_string().as_bytes())?;
    out.write_all(b"\n")
}

/// An element with the same blocks, for a page that has others: its identifiers follow from its content, so they differ from
/// those of other fragments.
pub(crate) fn fragment(out: &mut (impl Write + ?Sized), page: &Page) -> io::Result<()> {
    let content = |prefix: &str| {
        html! {
            header {
                h1 { (value(&page.title)) }
                @if let Some(headline) = &page.headline {
                    p.headline { (value(headline)) "." }
                }
            }
            @for of in &page.blocks { (block(of, prefix)) }
        }
    };
    let hash = Sha256::digest(content("").into_string());
    let prefix =
        hash.iter().take(4).fold("gyan-".to_owned(), |prefix, byte| format!("{prefix}{byte:02x}"));
    let element = html! {
        div.gyan {
            style { (PreEscaped(STYLE_OF_FRAGMENT)) }
            (content(&format!("{prefix}-")))
        }
    };
    writeln!(out, "{}", element.into_string())
}

/// The text of a link: the heading that it leads to, with a capital letter.
fn short(id: &str) -> String {
    let (first, rest) = id.split_at(usize::from(!id.is_empty()));
    format!("{}{rest}", first.to_uppercase())
}

/// Its hash, as a policy names it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// `prefix`: what its identifiers begin with.
fn block(block: &PageBlock, prefix: &str) -> Markup {
    let id = format!("{prefix}{}", block.id);
    let open = block.tables.iter().filter(|of| of.is_open);
    let details: Vec<&FoldedTable> = block.tables.iter().filter(|of| !of.is_open).collect();
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (block.title) }
            @for line in &block.says {
                @if !text(line).is_empty() { p { (value(line)) } }
            }
            @if !block.cards.is_empty() {
                ol.cards { @for of in &block.cards { (card(of)) } }
            }
            @if !block.charts.is_empty() {
                div.charts {
                    @for (at, chart) in block.charts.iter().enumerate() {
                        (charts::chart(chart, &format!("{id}-{at}")))
                    }
                }
            }
            @for of in open { (section(&of.section, block.title)) }
            @if !details.is_empty() {
                details {
                    summary { (block.details) }
                    @for of in details { (section(&of.section, block.title)) }
                }
            }
        }
    }
}

fn card(Card { share, section: of }: &Card) -> Markup {
    html! {
        li.card {
            h3 { (value(&of.title)) }
            @if let Some(share) = share { (charts::meter(*share)) }
            @for note in &of.notes { (line(note)) }
            @if !of.rows.is_empty() {
                details {
                    summary { "What it rests on" }
                    (table(of, &text(&of.title)))
                }
            }
        }
    }
}

/// A paragraph, indented if the text is.
fn line(of: &Value) -> Markup {
    let is_todo = text(of).starts_with(' ');
    html! { p.todo[is_todo] { (value(of)) } }
}

fn section(of: &Section, block: &str) -> Markup {
    let title = text(&of.title);
    let name = if title.is_empty() { block } else { &title };
    html! {
        @if !title.is_empty() && title != block { h3 { (value(&of.title)) } }
        @if !of.rows.is_empty() { (table(of, name)) }
        @if !of.notes.is_empty() {
            ul.notes { @for note in &of.notes { li { (value(note)) } } }
        }
    }
}

/// How many cells to show: text that continues below a row takes the remaining width.
fn told(row: &[Value], is_below: bool) -> usize {
    let last = row.iter().rposition(|value| !text(value).is_empty());
    if is_below { last.map_or(row.len(), |last| last + 1) } else { row.len() }
}

fn table(of: &Section, name: &str) -> Markup {
    let is_number = |kind: Kind| {
        matches!(kind, Kind::Integer | Kind::Time | Kind::Double | Kind::Number | Kind::Spare)
    };
    let has_heads = of.columns.iter().any(|column| !column.name.is_empty());
    let kind = |at: usize| of.columns.get(at).map_or(Kind::Text, |column| column.kind);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) data-search[of.rows.len() >= ROWS_TO_SEARCH] {
            table.data[has_heads].facts[!has_heads] {
                @if has_heads {
                    thead {
                        tr {
                            @for column in &of.columns {
                                @if column.name.is_empty() {
                                    td {}
                                } @else {
                                    th.n[is_number(column.kind)] scope="col" { (column.name) }
                                }
                            }
                        }
                    }
                }
                tbody {
                    @for row in &of.rows {
                        @let is_below = has_heads && is_below(row);
                        tr.sub[is_below] {
                            @for (at, value) in row.iter().take(told(row, is_below)).enumerate() {
                                @let span = row.len() - at;
                                @let is_last = is_below && at + 1 == told(row, is_below);
                                (cell(value, is_number(kind(at)), at == 0, is_last.then_some(span)))
                            }
                        }
                    }
                }
            }
        }
    }
}
