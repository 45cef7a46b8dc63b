//! A pack without its index: which frames and lines are there?

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use serde::Deserialize;

use super::SCHEMA;
use super::index::{Frame, Index};

/// The first bytes of a zstd frame (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// More text than any of gyan's frames has; a damaged one must not fill the memory.
pub(super) const TEXT_AT_MOST: u64 = 1 << 30;
/// An upper bound for the first frame.
const BEGINNING: usize = 256;
/// How many bytes to search at a time for the next frame.
const WINDOW: usize = 1 << 16;

#[derive(Deserialize)]
struct Schema {
    schema: String,
}

#[derive(Deserialize)]
struct Rank {
    rank: u32,
}

/// The schema that the first line of a file names.
pub(super) fn schema(file: &File) -> Option<String> {
    let mut beginning = [0; BEGINNING];
    let length = file.read_at(&mut beginning, 0).ok()?;
    let mut line = Vec::new();
    let beginning = beginning.get(..length)?;
    let decoder = zstd::stream::read::Decoder::with_buffer(beginning).ok()?.single_frame();
    decoder.take(BEGINNING as u64).read_to_end(&mut line).ok()?;
    serde_json::from_slice(&line).ok().map(|line: Schema| line.schema)
}

/// The index rebuilt from the frames that are there, and what is damaged: a name and the reason for each.
pub(super) fn index(file: &File) -> io::Result<(Index, Vec<(String, String)>)> {
    let mut index = Index { schema: SCHEMA.to_owned(), frames: Vec::new() };
    let mut lost = Vec::new();
    let (mut at, mut line) = (0, 1);
    let mut text = Vec::new();
    while starts_frame(file, at) {
        text.clear();
        let read = read_frame(file, at, &mut text);
        // In a frame that ends too early, every complete line is as it was written; in a damaged frame, nothing
        // guarantees that.
        let cut = matches!(&read, Err(error) if error.kind() == io::ErrorKind::UnexpectedEof);
        let end = match &read {
            Ok(end) => *end,
            Err(_) if cut => file.metadata()?.len(),
            Err(_) => next_frame(file, at + 1)?,
        };
        if read.is_ok() || cut {
            let mut frame =
                Frame { at, bytes: end - at, text: text.len() as u64, ..Frame::default() };
            for whole in text.split_inclusive(|&byte| byte == b'\n') {
                let Some(whole) = whole.strip_suffix(b"\n") else { continue };
                // The first line and the index are not profiles.
                if let Ok(Rank { rank }) = serde_json::from_slice(whole) {
                    frame.ranks.push(rank);
                    frame.checksums.push(crc32fast::hash(whole));
                } else if line > 1 && !is_index(whole) {
                    lost.push((format!("line {line}"), "is damaged; pack it again".to_owned()));
                }
                line += 1;
            }
            if !frame.ranks.is_empty() {
                index.frames.push(frame);
            }
        } else {
            let why = "is damaged, and so may be those compressed with it; pack them again";
            lost.push((format!("line {line}"), why.to_owned()));
        }
        at = end;
    }
    Ok((index, lost))
}

fn is_index(line: &[u8]) -> bool {
    serde_json::from_slice(line).is_ok_and(|line: Schema| line.schema == SCHEMA)
}

fn starts_frame(file: &File, at: u64) -> bool {
    let mut magic = [0; MAGIC.len()];
    file.read_exact_at(&mut magic, at).is_ok() && magic == MAGIC
}

/// Appends the content of the frame at `at`. Returns where it ends.
fn read_frame(file: &File, at: u64, text: &mut Vec<u8>) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(WINDOW, file);
    reader.seek(SeekFrom::Start(at))?;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(&mut reader)?.single_frame();
    (&mut decoder).take(TEXT_AT_MOST).read_to_end(text)?;
    let reader = decoder.finish();
    reader.stream_position()
}

/// Where the next frame begins, or the end of the file.
fn next_frame(file: &File, from: u64) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(WINDOW, file);
    reader.seek(SeekFrom::Start(from))?;
    let (mut at, mut found) = (from, [0; MAGIC.len()]);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(at);
        }
        let length = buffer.len();
        for (byte, end) in buffer.iter().zip(at + 1..) {
            found.rotate_left(1);
            found[MAGIC.len() - 1] = *byte;
            if found == MAGIC && end >= from + MAGIC.len() as u64 {
                return Ok(end - MAGIC.len() as u64);
            }
        }
        at += length as u64;
        reader.consume(length);
    }
}
