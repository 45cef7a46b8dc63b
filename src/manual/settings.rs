//! Which settings are there, and what do they mean? As the chapter has them, which a test of libgyan.so compares with what
//! it reads.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A variable of the environment.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    /// What holds when it is not set; empty where there is nothing to say.
    pub(super) default: String,
    pub(super) meaning: String,
}

/// In the order of the chapter.
pub(super) fn settings() -> Vec<Setting> {
    let chapter = super::text("settings.md");
    let mut settings = Vec::new();
    let mut row: Vec<String> = Vec::new();
    for event in Parser::new_ext(&chapter, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableRow) => row.clear(),
            Event::Start(Tag::TableCell) => row.push(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(cell) = row.last_mut() {
                    cell.push_str(&text);
                }
            }
            Event::End(TagEnd::TableRow) => {
                if let [name, default, meaning] = row.as_slice() {
                    let [name, default, meaning] = [name, default, meaning].map(String::clone);
                    settings.push(Setting { name, default, meaning });
                }
            }
            _ => {}
        }
    }
    settings
}
