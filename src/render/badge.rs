//! A badge: a label and a message as a picture of one line, and as the document that shields.io makes one of.

use std::io::{self, Write};

use gyan_results::write_json;
use maud::html;
use serde::Serialize;

use crate::document::badge::{Badge, Mood};

/// The height, the space beside a text, and the width of an average letter, in pixels. The text is fitted to its width, whatever
/// font there is.
const HEIGHT: usize = 20;
const SPACE: usize = 6;
const LETTER: usize = 7;

pub(crate) fn badge_svg(out: &mut (impl Write + ?Sized), badge: &Badge) -> io::Result<()> {
    let [label, message] =
        [badge.label, &badge.message].map(|text| (text, text.chars().count() * LETTER));
    let [left, right] = [label.1 + 2 * SPACE, message.1 + 2 * SPACE];
    let words = format!("{}: {}", badge.label, badge.message);
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(left + right) height=(HEIGHT) role="img" aria-label=(words) {
            title { (words) }
            rect width=(left + right) height=(HEIGHT) rx="3" fill="#444d56" {}
            rect x=(left) width=(right) height=(HEIGHT) rx="3" fill=(colour(badge.mood)) {}
            rect x=(left) width="4" height=(HEIGHT) fill=(colour(badge.mood)) {}
            g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" {
                text x=(SPACE) y="14" textLength=(label.1) { (label.0) }
                text x=(left + SPACE) y="14" textLength=(message.1) { (message.0) }
            }
        }
    };
    writeln!(out, "{}", document.into_string())
}

/// As JSON, for <https://img.shields.io/endpoint>.
pub(crate) fn badge_json(out: &mut (impl Write + ?Sized), badge: &Badge) -> io::Result<()> {
    let color = colour(badge.mood).trim_start_matches('#');
    write_json(
        out,
        &Endpoint { schema_version: 1, label: badge.label, message: &badge.message, color },
    )
}

/// White text on it can be read.
fn colour(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "#1a7f37",
        Mood::Bad => "#b3261e",
        Mood::Unknown => "#57606a",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    schema_version: u32,
    label: &'a str,
    message: &'a str,
    color: &'a str,
}
