//! A file that must not become larger than a limit, written rank by rank.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Writing fails once the file is too large, or will be.
pub(super) struct LimitedFile<'a> {
    out: BufWriter<&'a mut File>,
    limit: Option<u64>,
    bytes: u64,
    ranks: usize,
    all_ranks: usize,
    too_large: Option<f64>,
}

/// How far the ranks that were written may differ from the others before it is too early to say how large the file will be.
const MARGIN: f64 = 1.5;

impl LimitedFile<'_> {
    /// `limit`: in bytes.
    pub(super) fn new(file: &mut File, limit: Option<u64>, all_ranks: usize) -> LimitedFile<'_> {
        let out = BufWriter::new(file);
        LimitedFile { out, limit, bytes: 0, ranks: 0, all_ranks, too_large: None }
    }

    pub(super) fn put_rank(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ranks += 1;
        self.put(bytes)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if let Some(limit) = self.limit {
            let share = self.all_ranks as f64 / self.ranks.max(1) as f64;
            let expected = self.bytes as f64 * share / limit as f64;
            if self.bytes > limit || (self.ranks > 0 && expected > MARGIN) {
                self.too_large = Some(expected);
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        self.out.write_all(bytes)
    }

    /// How many times as large as its limit the whole file would be, if that is why writing has failed.
    pub(super) fn too_large(&self) -> Option<f64> {
        self.too_large
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
