//! The summary that is in a page: how it gets there, and how it is read.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gyan_results::{Summary, json_line, open_regular, parse_summary};

use crate::error::{Error, reason};

/// The tags around the summary: an element that no browser runs or shows. The summary is compressed with zstd
/// and encoded in Base64.
const BEGIN: &str = "<script type=\"application/zstd\" id=\"gyan-summary\">";
const END: &str = "</script>";
/// The first bytes of a page.
const PAGE: &[u8] = b"<!DOCTYPE html>";
/// Higher levels compress little better and take longer.
const LEVEL: i32 = 9;
/// A damaged page must not fill the memory.
const BYTES_AT_MOST: u64 = 1 << 30;

/// Limit of the element in bytes: a page must stay below 1 MB for any run.
const ELEMENT_AT_MOST: usize = 400_000;
/// How many ranks and pairs of hosts are kept of more: those with the most bytes.
const KEPT_AT_MOST: usize = 1024;
/// Data that grows with the ranks or with their square: what it is, and how to leave it out. The most
/// dispensable comes first.
const DETAILS: [Detail; 5] = [
    ("what each rank sent to each other rank", |summary| {
        summary.peers.iter_mut().for_each(|traffic| traffic.matrix.clear());
    }),
    ("how much each rank sent, beyond the 1,024 that sent most", |summary| {
        for traffic in &mut summary.peers {
            traffic.ranks.sort_by_key(|of| (Reverse(of.bytes), of.rank));
            traffic.ranks.truncate(KEPT_AT_MOST);
            traffic.ranks.sort_by_key(|of| of.rank);
        }
    }),
    ("pairs of hosts beyond the 1,024 with most bytes", |summary| {
        for traffic in &mut summary.peers {
            traffic.by_host.sort_by_key(|of| Reverse(of.bytes));
            traffic.by_host.truncate(KEPT_AT_MOST);
        }
    }),
    ("the time in MPI and the queues of each host", |summary| {
        for host in &mut summary.by_host {
            (host.in_mpi, host.unexpected_length, host.posted_length) = (None, None, None);
        }
    }),
    ("the chains of callers of call sites", |summary| {
        let sites = summary.sites.iter_mut().flat_map(|sites| &mut sites.sites);
        sites.for_each(|site| site.stacks.clear());
    }),
];

type Detail = (&'static str, fn(&mut Summary));

/// The element that holds a summary, and what was left out to keep it small.
pub(crate) fn element(summary: &Summary) -> io::Result<(String, Vec<&'static str>)> {
    let made = |summary: &Summary| -> io::Result<String> {
        let compressed = zstd::encode_all(json_line(summary)?.as_bytes(), LEVEL)?;
        Ok(format!("{BEGIN}{}{END}", STANDARD.encode(compressed)))
    };
    let mut element = made(summary)?;
    let (mut smaller, mut left_out) = (Cow::Borrowed(summary), Vec::new());
    for (what, leave_out) in DETAILS {
        if element.len() <= ELEMENT_AT_MOST {
            break;
        }
        leave_out(smaller.to_mut());
        let without = made(&smaller)?;
        if without.len() < element.len() {
            left_out.push(what);
        }
        element = without;
    }
    Ok((element, left_out))
}

/// Whether a file is an HTML page, by gyan or by anybody else.
pub(crate) fn is_page(file: &Path) -> bool {
    let mut begin = [0; PAGE.len()];
    let read = open_regular(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin.eq_ignore_ascii_case(PAGE)
}

/// Whether a page is of a run: pages of comparisons have no summary.
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

#[cfg(test)]
mod tests {
    use gyan_results::{MatrixRow, read_summary};

    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_and_named() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/summary.json");
        let small = read_summary(example.as_ref()).unwrap();
        assert_eq!(element(&small).unwrap().1, [""; 0]);
        let mut large = small.clone();
        // Bytes that do not compress.
        let mut dice = 1_u64;
        let mut roll = move || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            dice >> 16
        };
        let mut row =
            |rank| MatrixRow { rank, to: (0..300).map(|to| (Some(to), 1, roll())).collect() };
        large.peers[0].matrix = (0..300).map(&mut row).collect();
        let (element, left_out) = element(&large).unwrap();
        assert_eq!(left_out, ["what each rank sent to each other rank"]);
        assert!(element.len() <= ELEMENT_AT_MOST, "{}", element.len());
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("page.html");
        fs::write(&page, element).unwrap();
        large.peers.iter_mut().for_each(|traffic| traffic.matrix.clear());
        assert!(read(&page).unwrap() == large);
    }
}
