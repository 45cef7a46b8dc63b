//! A pack: the profiles of a run in one file, JSON Lines compressed with zstd (`zstdcat` shows it).
//! Where is each rank in it, and which parts are intact?
//!
//! | zstd frame | holds |
//! | :-- | :-- |
//! | the first | the line `{"schema":"gyan.pack/1"}` |
//! | each of the others | some lines, the profile of a rank each |
//! | the last but one | the index as one line: of each frame where it is, its ranks, and a checksum of each line |
//! | the last, which decompressors skip | where the index is |
//!
//! A file that was cut short has no index: it is then rebuilt from what is there.

#[cfg(test)]
mod fuzzed;
mod index;
mod scan;
mod write;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gyan_results::{RankProfile, RankReader, open_regular, parse_rank_without, rank_file_name};

use crate::error::Error;
use crate::input::directory::{check, why};
use crate::say;
use index::{Frame, Index};
pub use write::{CompressedProfiles, Writer};

/// The file name extension of a pack.
pub(crate) const SUFFIX: &str = ".gyan.zst";
/// The tag of a pack of this version.
const SCHEMA: &str = "gyan.pack/1";

/// A pack that is open for reading.
pub struct Packed {
    pub(crate) path: PathBuf,
    file: File,
    index: Index,
    /// Lines in frames that cannot be read, and why.
    lost: Vec<(String, String)>,
    /// The index was rebuilt.
    is_cut_short: bool,
}

/// One line of a pack, or what is wrong with it.
pub struct Line<'a> {
    pub(crate) rank: u32,
    pub(crate) text: Result<&'a [u8], String>,
}

impl Line<'_> {
    /// The profile of the line. `left_out`: fields that nobody asks for, as of [`parse_rank_without`].
    pub fn profile(self, left_out: &[&str]) -> Result<RankProfile, String> {
        let profile = parse_rank_without(self.text?, left_out).map_err(why)?;
        check(self.rank, &profile)?;
        Ok(profile)
    }

    /// The same for a caller that reads many.
    pub fn profile_with(self, reader: &mut RankReader) -> Result<&mut RankProfile, String> {
        let profile = reader.parse(self.text?).map_err(why)?;
        check(self.rank, profile)?;
        Ok(profile)
    }
}

impl Packed {
    /// Opens a pack; its end may be missing.
    pub fn open(path: &Path) -> Result<Packed, Error> {
        let io_error = |error| Error::io(path, &error, "name a run directory or a pack of one");
        let file = open_regular(path).map_err(io_error)?;
        let begin = scan::schema(&file).unwrap_or_default();
        if begin != SCHEMA {
            let is_newer = begin.starts_with("gyan.pack/");
            let why = format!("has schema {begin}, this gyan reads {SCHEMA}");
            return Err(if is_newer {
                Error::new(path.display(), why, "update gyan")
            } else {
                let why = "is neither a run directory nor a pack of one";
                Error::new(path.display(), why, "gyan pack DIR makes a pack")
            });
        }
        let mut pack = Packed {
            path: path.to_owned(),
            file,
            index: Index::default(),
            lost: Vec::new(),
            is_cut_short: false,
        };
        if let Some(index) = index::read(&pack.file) {
            pack.index = index;
        } else {
            (pack.index, pack.lost) = scan::index(&pack.file).map_err(io_error)?;
            pack.is_cut_short = true;
        }
        Ok(pack)
    }

    /// How many profiles there are, the damaged ones included.
    pub fn lines(&self) -> usize {
        self.index.frames.iter().map(|frame| frame.ranks.len()).sum::<usize>() + self.lost.len()
    }

    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// How many frames hold profiles.
    pub fn frames(&self) -> usize {
        self.index.frames.len()
    }

    /// The rank of each line, with the number of its frame.
    pub(crate) fn each_rank(&self, mut take: impl FnMut(u32, usize)) {
        for (frame, at) in self.index.frames.iter().zip(0..) {
            frame.ranks.iter().for_each(|rank| take(*rank, at));
        }
    }

    /// Parts that cannot be read at all: a name for each, and the reason.
    pub fn lost(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lost.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// Says on stderr if the index is missing. Returns whether it is there.
    pub(crate) fn warn(&self) -> bool {
        if self.is_cut_short {
            say::warn(format!(
                "{}: has no index, so its end is missing or damaged; the lines that are \
                 there were read, pack the directory again",
                self.path.display()
            ));
        }
        !self.is_cut_short
    }

    /// Each line of a frame, and its name in messages: its rank, or its number if it is damaged.
    pub fn each_in(&self, frame: usize, mut take: impl FnMut(&str, Line)) {
        let before = self.index.frames.iter().take(frame).map(|frame| frame.ranks.len());
        // The first line of the file identifies it.
        let first = 2 + before.sum::<usize>();
        let Some(frame) = self.index.frames.get(frame) else { return };
        let text = self.text(frame);
        let mut lines = text.split_inclusive(|&byte| byte == b'\n');
        for (at, (&rank, &checksum)) in frame.ranks.iter().zip(&frame.checksums).enumerate() {
            let text = lines.next().and_then(|line| line.strip_suffix(b"\n")).unwrap_or_default();
            if crc32fast::hash(text) == checksum {
                take(&rank_file_name(rank), Line { rank, text: Ok(text) });
            } else {
                let why = format!("the profile of rank {rank} is damaged; pack it again");
                take(&format!("line {}", first + at), Line { rank, text: Err(why) });
            }
        }
    }

    /// As much text of a frame as can be decompressed.
    fn text(&self, frame: &Frame) -> Vec<u8> {
        let mut compressed = vec![0; usize::try_from(frame.bytes).unwrap_or_default()];
        let mut text = Vec::new();
        if self.file.read_exact_at(&mut compressed, frame.at).is_ok() {
            // After an error `text` holds what came before it; the checksums say whether that is intact.
            let _ = decompress(&compressed, frame.text, &mut text);
        }
        text
    }
}

/// Appends the content of a frame, up to a limit in bytes.
fn decompress(frame: &[u8], at_most: u64, text: &mut Vec<u8>) -> io::Result<()> {
    let decoder = zstd::stream::read::Decoder::with_buffer(frame)?.single_frame();
    decoder.take(at_most).read_to_end(text).map(drop)
}

pub(crate) fn is_named_so(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(SUFFIX))
}

/// `job.gyan.zst` to `job.name`; to `job` for an empty name.
pub(crate) fn beside(pack: &Path, name: &str) -> PathBuf {
    let whole = pack.file_name().unwrap_or_default().to_string_lossy();
    let stem = whole.strip_suffix(SUFFIX).or_else(|| whole.strip_suffix(".zst"));
    let stem = stem.unwrap_or(&whole);
    let name = match (name, stem == whole) {
        ("", true) => format!("{stem}.unpacked"),
        ("", false) => stem.to_owned(),
        _ => format!("{stem}.{name}"),
    };
    pack.with_file_name(name)
}
