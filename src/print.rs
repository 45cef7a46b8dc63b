//! How is a result printed in the format that the user asked for? A view is for people; rows and JSON documents are for
//! programs.

use gyan_results::write_json;
use serde::Serialize;

use crate::cli::PageOptions;
use crate::document::page::Page;
use crate::document::{Document, Presentation, View};
use crate::error::Error;
use crate::format::{ListFormat, ReportFormat};
use crate::output::{print, write_page};
use crate::render;

/// In any format: a page goes where the options say, anything else to standard output.
pub(crate) fn answer<'a>(
    format: ReportFormat,
    options: &PageOptions,
    page: impl FnOnce() -> Page<'a>,
    shown: impl FnOnce() -> Presentation<'a>,
) -> Result<(), Error> {
    match format {
        ReportFormat::Html => self::page(options, page()),
        format => report(format, shown()),
    }
}

/// A page without a summary in it, or the fragment of it that is asked for.
pub(crate) fn page(options: &PageOptions, mut page: Page) -> Result<(), Error> {
    match options.fragment.as_deref() {
        None => return write_page(options, |out| render::html(out, &page, "")),
        Some("") => {}
        Some(name) => {
            let names: Vec<&str> = page.blocks.iter().map(|block| &*block.id).collect();
            let remedy = format!("name one of {}", names.join(", "));
            page.blocks.retain(|block| block.id == name);
            page.headline = None;
            if page.blocks.is_empty() {
                return Err(Error::new(
                    format!("--fragment={name}"),
                    "the page has no such part",
                    remedy,
                ));
            }
        }
    }
    write_page(options, |out| render::fragment(out, &page))
}

/// In any format but a page.
pub(crate) fn report(format: ReportFormat, shown: Presentation) -> Result<(), Error> {
    let Presentation { view, rows, document } = shown;
    print(|out| match format {
        ReportFormat::Table => render::table(out, &view),
        ReportFormat::Markdown => render::markdown(out, &view),
        ReportFormat::Csv => render::all_rows(rows, |columns| render::Csv::new(out, columns)),
        ReportFormat::Json => match document {
            Document::Json(write) => write(out),
            Document::Rows => {
                render::all_rows(rows, |columns| Ok(render::Json::array(out, columns)))
            }
        },
        ReportFormat::Html => Ok(()),
    })
}

/// What has no rows and no page of its own.
pub(crate) fn listing(
    format: ListFormat,
    view: &View,
    document: &impl Serialize,
) -> Result<(), Error> {
    print(|out| match format {
        ListFormat::Table => render::table(out, view),
        ListFormat::Markdown => render::markdown(out, view),
        ListFormat::Json => write_json(out, document),
    })
}
