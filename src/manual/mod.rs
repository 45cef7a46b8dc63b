//! What does the manual say of something? The chapters of `docs/` and its pages of findings, which are in the command; the
//! man pages, which are made of the command line.
//!
//! It does not say how a page looks on a terminal: that is for `render::prose`.

mod findings;
pub(crate) mod man;
mod settings;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use rust_embed::RustEmbed;

pub(crate) use findings::{page_of, pages};

#[derive(RustEmbed)]
#[folder = "docs/"]
#[include = "*.md"]
struct Docs;

/// The table of contents.
const SUMMARY: &str = "SUMMARY.md";

/// A part of the manual, as the table of contents has it.
#[derive(Debug, Default)]
pub(crate) struct ManualPart {
    /// Empty before the first heading.
    pub(crate) title: String,
    pub(crate) chapters: Vec<Chapter>,
}

/// A page of `docs/`.
#[derive(Debug, Default)]
pub(crate) struct Chapter {
    pub(crate) title: String,
    /// Its file without `.md`.
    pub(crate) name: String,
}

impl Chapter {
    /// What it says, in Markdown.
    pub(crate) fn text(&self) -> String {
        text(&format!("{}.md", self.name))
    }
}

/// A file of `docs/`; empty where there is none.
fn text(file: &str) -> String {
    let file = Docs::get(file);
    file.map(|file| String::from_utf8_lossy(&file.data).into_owned()).unwrap_or_default()
}

/// The table of contents, without the pages of findings.
pub(crate) fn parts() -> Vec<ManualPart> {
    let summary = text(SUMMARY);
    let mut parts: Vec<ManualPart> = Vec::new();
    let mut title = String::new();
    let mut name = None;
    for event in Parser::new(&summary) {
        match event {
            Event::Start(Tag::Heading { .. }) => title.clear(),
            Event::Start(Tag::Link { dest_url, .. }) => {
                title.clear();
                name = dest_url.strip_suffix(".md").map(str::to_owned);
            }
            Event::Text(text) | Event::Code(text) => title.push_str(&text),
            Event::End(TagEnd::Heading(_)) => {
                // The first one is that of the table itself.
                let title = if parts.is_empty() { String::new() } else { title.clone() };
                parts.push(ManualPart { title, ..ManualPart::default() });
            }
            Event::End(TagEnd::Link) => {
                let chapter = name.take().filter(|name| !name.contains('/'));
                let chapter = chapter.map(|name| Chapter { title: title.clone(), name });
                if let Some(part) = parts.last_mut() {
                    part.chapters.extend(chapter);
                }
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.chapters.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chapter_of_the_table_of_contents_is_in_the_command() {
        let parts = parts();
        assert!(parts.len() > 5, "{parts:?}");
        for chapter in parts.iter().flat_map(|part| &part.chapters) {
            assert!(chapter.text().starts_with("# "), "{chapter:?}");
        }
    }
}
