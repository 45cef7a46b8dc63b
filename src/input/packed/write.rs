//! Writing a pack: parts are compressed in parallel and written in order.

use std::io::{self, Write};

use super::SCHEMA;
use super::index::{Frame, Index, footer};

/// The default level of `zstd` itself.
const LEVEL: i32 = 3;

/// Profiles that are compressed together.
pub struct CompressedProfiles {
    compressed: Vec<u8>,
    frame: Frame,
}

/// The output, and what has been recorded about it.
pub struct Writer<W> {
    out: W,
    at: u64,
    index: Index,
}

impl CompressedProfiles {
    /// The lines of these ranks, each without its line end.
    pub fn new(lines: &[(u32, Vec<u8>)]) -> io::Result<CompressedProfiles> {
        let mut text = Vec::with_capacity(lines.iter().map(|(_, line)| line.len() + 1).sum());
        for (_, line) in lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let compressed = compress(&text)?;
        let frame = Frame {
            at: 0,
            bytes: compressed.len() as u64,
            text: text.len() as u64,
            ranks: lines.iter().map(|(rank, _)| *rank).collect(),
            checksums: lines.iter().map(|(_, line)| crc32fast::hash(line)).collect(),
        };
        Ok(CompressedProfiles { compressed, frame })
    }
}

impl<W: Write> Writer<W> {
    /// Begins a pack.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        let first = compress(format!("{{\"schema\":\"{SCHEMA}\"}}\n").as_bytes())?;
        out.write_all(&first)?;
        let index = Index { schema: SCHEMA.to_owned(), frames: Vec::new() };
        Ok(Writer { out, at: first.len() as u64, index })
    }

    /// Writes a part; parts come in the order of their ranks.
    pub fn write(&mut self, part: CompressedProfiles) -> io::Result<()> {
        if part.frame.ranks.is_empty() {
            return Ok(());
        }
        self.out.write_all(&part.compressed)?;
        let bytes = part.frame.bytes;
        self.index.frames.push(Frame { at: self.at, ..part.frame });
        self.at += bytes;
        Ok(())
    }

    /// Writes the index. Returns the size of the pack in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        let mut text = serde_json::to_vec(&self.index)?;
        text.push(b'\n');
        let index = compress(&text)?;
        self.out.write_all(&index)?;
        let footer = footer(self.at, index.len() as u64);
        self.out.write_all(&footer)?;
        self.out.flush()?;
        Ok(self.at + index.len() as u64 + footer.len() as u64)
    }
}

/// A frame with its own checksum, for readers without the index.
fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(text.len() as u64))?;
    encoder.write_all(text)?;
    encoder.finish()
}
