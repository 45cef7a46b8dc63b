//! The index of a pack: what each frame holds, and where the index itself is.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::scan::TEXT_AT_MOST;
use super::{SCHEMA, decompress};

/// A frame that decompressors skip (RFC 8878, 3.1.2): its magic number, and the bytes that follow.
const MAGIC: u32 = 0x184D_2A5E;
const CONTENT: u32 = 20;
const FOOTER: usize = 28;
/// Larger than the index of ten million ranks; a damaged or made-up index must not fill the memory.
const INDEX_AT_MOST: u64 = 1 << 28;

/// The frames that hold profiles.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Index {
    pub(super) schema: String,
    pub(super) frames: Vec<Frame>,
}

/// One frame, compressed by itself.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Frame {
    /// Where it begins.
    pub(super) at: u64,
    /// How long it is.
    pub(super) bytes: u64,
    /// The length of its content.
    pub(super) text: u64,
    pub(super) ranks: Vec<u32>,
    /// CRC-32 of each line, without the line end.
    pub(super) checksums: Vec<u32>,
}

/// The last bytes of a pack whose index is `bytes` bytes long and begins at `at`.
pub(super) fn footer(at: u64, bytes: u64) -> Vec<u8> {
    let content = [at.to_le_bytes(), bytes.to_le_bytes()].concat();
    let checksum = crc32fast::hash(&content);
    [&MAGIC.to_le_bytes(), &CONTENT.to_le_bytes(), &content[..], &checksum.to_le_bytes()].concat()
}

/// The index of a pack; none when it is missing or damaged.
pub(super) fn read(file: &File) -> Option<Index> {
    let length = file.metadata().ok()?.len();
    let footer_at = length.checked_sub(FOOTER as u64)?;
    let mut found = [0; FOOTER];
    file.read_exact_at(&mut found, footer_at).ok()?;
    let number = |at: usize| Some(u64::from_le_bytes(found.get(at..at + 8)?.try_into().ok()?));
    let (at, bytes) = (number(8)?, number(16)?);
    let is_ours = footer(at, bytes) == found && at.checked_add(bytes)? == footer_at;
    if !is_ours || bytes > INDEX_AT_MOST {
        return None;
    }
    let mut compressed = vec![0; usize::try_from(bytes).ok()?];
    file.read_exact_at(&mut compressed, at).ok()?;
    let mut text = Vec::new();
    decompress(&compressed, INDEX_AT_MOST, &mut text).ok()?;
    let index: Index = serde_json::from_slice(&text).ok()?;
    let is_whole = index.schema == SCHEMA
        && index.frames.iter().all(|frame| {
            let end = frame.at.checked_add(frame.bytes);
            frame.ranks.len() == frame.checksums.len()
                && frame.text <= TEXT_AT_MOST
                && end.is_some_and(|end| end <= at)
        });
    is_whole.then_some(index)
}
