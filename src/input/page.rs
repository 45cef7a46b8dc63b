//! The summary that is in a page: how it gets there, and how it is read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gyan_results::{Summary, json_line, parse_summary};

use crate::error::{Error, reason};

/// What the summary is between: an element that no browser runs or shows. It is compressed by zstd, in Base64.
const BEGIN: &str = "<script type=\"application/zstd\" id=\"gyan-summary\">";
const END: &str = "</script>";
/// What a page begins with.
const PAGE: &[u8] = b"<!DOCTYPE html>";
/// More compresses little better, and takes longer.
const LEVEL: i32 = 9;
/// A damaged page must not fill the memory.
const BYTES_AT_MOST: u64 = 1 << 30;

/// The element that holds a summary.
pub(crate) fn element(summary: &Summary) -> io::Result<String> {
    let compressed = zstd::encode_all(json_line(summary)?.as_bytes(), LEVEL)?;
    Ok(format!("{BEGIN}{}{END}", STANDARD.encode(compressed)))
}

/// Whether a file is a page, of gyan or of somebody else.
pub(crate) fn is_page(file: &Path) -> bool {
    let mut begin = [0; PAGE.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin.eq_ignore_ascii_case(PAGE)
}

/// Whether a page is that of a run: those of comparisons have no summary.
pub(crate) fn is_of_run(file: &Path) -> bool {
    is_page(file) && fs::read_to_string(file).is_ok_and(|text| text.contains(BEGIN))
}

/// The summary in a page.
pub(crate) fn read(file: &Path) -> Result<Summary, Error> {
    let text = fs::read_to_string(file)
        .map_err(|error| Error::new(file.display(), reason(&error), "write the page again"))?;
    let Some((_, rest)) = text.rsplit_once(BEGIN) else {
        let remedy = "name one that gyan report --format html wrote";
        return Err(Error::new(file.display(), "is a page without the summary of a run", remedy));
    };
    let damaged = |why: &dyn std::fmt::Display| {
        Error::new(file.display(), format!("its summary is damaged: {why}"), "write the page again")
    };
    let Some((encoded, _)) = rest.split_once(END) else {
        return Err(damaged(&"the page is cut short"));
    };
    let compressed = STANDARD.decode(encoded).map_err(|error| damaged(&error))?;
    let mut json = Vec::new();
    let read = zstd::Decoder::new(compressed.as_slice())
        .and_then(|decoder| decoder.take(BYTES_AT_MOST).read_to_end(&mut json));
    read.map_err(|error| damaged(&reason(&error)))?;
    parse_summary(&json).map_err(|error| {
        let text = error.to_string();
        let (why, remedy) = text.split_once("; ").unwrap_or((&text, "write the page again"));
        Error::new(file.display(), format!("its summary {why}"), remedy)
    })
}
