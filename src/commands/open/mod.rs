//! `gyan open`: the page of a run, written into its directory, or that of a tune, or a trace, shown in a browser.

mod viewer;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::OpenOptions;
use crate::commands::report::page;
use crate::commands::tune;
use crate::error::{Error, reason};
use crate::input::packed::beside;
use crate::input::page::is_page;
use crate::input::source::Source;
use crate::launch::keepers;
use crate::{DONE, INCOMPLETE, output, say};

/// The name of the page in a run directory.
const PAGE_FILE: &str = "report.html";

pub(crate) fn open(options: &OpenOptions) -> Result<u8, Error> {
    let directory = &options.directory;
    let tuned = directory.join(tune::PAGE_FILE);
    if tuned.is_file() {
        return show(&tuned).map(|()| DONE);
    }
    if is_page(directory) {
        return show(directory).map(|()| DONE);
    }
    if viewer::is_trace(directory) {
        return viewer::show(directory, show).map(|()| DONE);
    }
    keepers::write_now(directory);
    let source = Source::open(directory)?;
    let summary = source.summarize()?;
    let complete = source.warn_of_gaps(&summary);
    let file = place(directory);
    page::to_file(&source, &summary, &file, true)?;
    show(&file)?;
    Ok(if complete { DONE } else { INCOMPLETE })
}

fn place(directory: &Path) -> PathBuf {
    if directory.is_dir() { directory.join(PAGE_FILE) } else { beside(directory, PAGE_FILE) }
}

/// Only if there is a display. We do not wait for the browser.
fn show(place: &Path) -> Result<(), Error> {
    output::say(place.display())?;
    let has_display = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| has_display(name)) {
        return Ok(());
    }
    let nothing = Stdio::null;
    let mut browser = Command::new("xdg-open");
    browser.arg(place).stdin(nothing()).stdout(nothing()).stderr(nothing());
    if let Err(error) = browser.spawn() {
        say::warn(format!("xdg-open: {}; open it in a browser", reason(&error)));
    }
    Ok(())
}
