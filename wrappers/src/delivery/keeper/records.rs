//! What is known of a rank so far, in memory shared with its host's keeper. Two records are written in turn, so
//! that one of them is complete at any moment, even if the process is killed in the middle of the other.
//!
//! The memory begins with a header for each record: its sequence number, from 1, its length, and a checksum
//! (CRC-32) of both and of the text, little-endian. Then there is room for the two texts. It is a file in
//! memory (`memfd_create(2)`) that cannot shrink, so that no access to it ever waits for a disk or fails.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

/// The size of a record's header in bytes, of which the last 4 are unused.
const ABOUT: usize = 24;
const HEADER: usize = 2 * ABOUT;
/// A profile grows while the program runs: there is room for this many times the size of the first one.
const TIMES: usize = 2;
/// Plus this much.
const MORE: usize = 16 << 10;

/// The records, for the rank that writes them.
pub(crate) struct Records {
    memory: MmapMut,
    file: File,
    sequence: u64,
}

impl Records {
    /// With room for records like this one, which is the first.
    pub(crate) fn begin(text: &[u8]) -> io::Result<Records> {
        let room = text.len() * TIMES + MORE;
        let size = HEADER + 2 * room;
        let file = memory_file("gyan-records", size)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size as u64)?;
        // SAFETY: the file has this many bytes and keeps them: it is sealed. Another process may read them
        // while they are written, and detects that with the checksum; this one never reads them.
        let memory = unsafe { MmapMut::map_mut(&file) }?;
        let mut records = Records { memory, file, sequence: 0 };
        records.write(text);
        Ok(records)
    }

    /// Writes another record; false when there is no room for it.
    pub(crate) fn write(&mut self, text: &[u8]) -> bool {
        let sequence = self.sequence + 1;
        let (about_at, at) = places(self.memory.len(), sequence);
        let room = (self.memory.len() - HEADER) / 2;
        let numbers = [sequence, text.len() as u64].map(u64::to_le_bytes);
        let numbers = numbers.as_flattened();
        let about = [numbers, &checksum_of(numbers, text).to_le_bytes()].concat();
        if text.len() > room {
            return false;
        }
        // The text first, then the header.
        for (at, bytes) in [(at, text), (about_at, about.as_slice())] {
            if let Some(place) = self.memory.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        self.sequence = sequence;
        true
    }

    /// The file for the keeper.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A file in memory whose size stays as it is.
pub(super) fn memory_file(name: &str, size: usize) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create(name, flags)?);
    file.set_len(size as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// The latest record in the memory of a rank, which may be writing; none when no record is complete.
pub(super) fn latest(file: &File) -> io::Result<Option<Vec<u8>>> {
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, 0)?;
    let whole = [1, 2].into_iter().filter_map(|sequence| whole(&bytes, sequence));
    Ok(whole.max_by_key(|(sequence, _)| *sequence).map(|(_, text)| text.to_vec()))
}

/// The sequence number and text of the first or second record.
fn whole(bytes: &[u8], place: u64) -> Option<(u64, &[u8])> {
    let (about_at, at) = places(bytes.len(), place);
    let about = bytes.get(about_at..)?.get(..ABOUT)?;
    let (numbers, checksum) = about.split_at(16);
    let number = |at: usize| Some(u64::from_le_bytes(numbers.get(at..at + 8)?.try_into().ok()?));
    let (sequence, length) = (number(0)?, usize::try_from(number(8)?).ok()?);
    let text = bytes.get(at..)?.get(..length)?;
    let is_whole = sequence > 0 && checksum.get(..4)? == checksum_of(numbers, text).to_le_bytes();
    is_whole.then_some((sequence, text))
}

/// The offsets of a record's header and text in a file of this many bytes.
fn places(size: usize, sequence: u64) -> (usize, usize) {
    let place = usize::from(sequence % 2 == 1);
    (place * ABOUT, HEADER + place * (size.saturating_sub(HEADER) / 2))
}

fn checksum_of(numbers: &[u8], text: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(numbers);
    hasher.update(text);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(records: &Records) -> Option<String> {
        latest(&records.file).unwrap().map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_latest_record_is_what_is_known() {
        let mut records = Records::begin(b"one").unwrap();
        assert_eq!(known(&records).unwrap(), "one");
        for text in ["two", "three", "", "five"] {
            assert!(records.write(text.as_bytes()));
            assert_eq!(known(&records).unwrap(), text);
        }
        assert!(!records.write(&vec![b' '; MORE + TIMES * 3 + 1]));
        assert_eq!(known(&records).unwrap(), "five");
    }

    /// A process may be killed after any byte.
    #[test]
    fn a_process_killed_at_any_byte_of_a_record_leaves_the_one_before() {
        let (before, after) = ("before".repeat(20), "after".repeat(30));
        let mut records = Records::begin(b"first").unwrap();
        records.write(before.as_bytes());
        let old = records.memory.to_vec();
        records.write(after.as_bytes());
        let new = records.memory.to_vec();
        let (about_at, at) = places(old.len(), 3);
        let text = at..at + after.len();
        let read = |bytes: &[u8]| {
            let whole = [1, 2].into_iter().filter_map(|place| whole(bytes, place));
            whole.max_by_key(|(sequence, _)| *sequence).unwrap().1.to_vec()
        };
        let mut torn = old;
        for byte in text.chain(about_at..about_at + ABOUT) {
            torn[byte] = new[byte];
            let read = read(&torn);
            // The last bytes that make it whole are zeros.
            let may_be_whole = byte < at && byte >= about_at + 16;
            assert!(read == before.as_bytes() || (may_be_whole && read == after.as_bytes()));
        }
        assert_eq!(read(&torn), after.as_bytes());
    }

    #[test]
    fn no_changed_byte_gives_a_text_that_was_not_written() {
        let mut records = Records::begin(b"one and only").unwrap();
        records.write(b"the second");
        let good = records.memory.to_vec();
        for at in (0..HEADER + 40).chain(good.len() / 2..good.len() / 2 + 40) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            for (_, text) in [1, 2].into_iter().filter_map(|place| whole(&bytes, place)) {
                assert!(text == b"one and only" || text == b"the second", "{at}");
            }
        }
    }
}
