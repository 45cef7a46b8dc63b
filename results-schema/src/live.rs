//! The live file of a rank (`rank-000003.live`): what was known of it at the latest look, in a file that
//! is there also when the process was killed.
//!
//! A header, then room for two records, which are written in turn, so that one is always whole. A record
//! is the profile of the rank as JSON. The header says which is the later one, how long each is, and has a
//! checksum (CRC-32) of each record and of what it says about it. Numbers are little-endian.
//!
//! | bytes | what |
//! | :-- | :-- |
//! | 0..16 | the schema, then zeros |
//! | 16..24 | the room for one record |
//! | 24..28 | checksum of the bytes before |
//! | 32..56, 56..80 | for each record: its sequence, from 1, its length, its checksum |
//! | 128.. | the records |

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::read::{ReadError, check_schema, parse_rank, read_rank};
use crate::{LIVE_SCHEMA, RankProfile};

const HEADER: usize = 128;
const SCHEMA: usize = 16;
/// Where the header says how much room there is, and the checksum of that.
const ROOM: usize = SCHEMA;
const ROOM_CHECKSUM: usize = 24;
/// Where the header says what it says of records, and how many bytes that takes for each.
const RECORDS: usize = 32;
const RECORD: usize = 24;
/// A process that writes while the file is read is waited for so many times.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// How a live file is laid out, for one who writes it.
#[derive(Clone, Copy, Debug)]
pub struct LiveLayout {
    room: usize,
}

/// What is to be written where, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LiveRecord {
    /// Where the text of the record begins.
    pub at: usize,
    /// Where [`about`](Self::about) goes.
    pub about_at: usize,
    /// What the header says of the record.
    pub about: [u8; RECORD],
}

impl LiveLayout {
    /// A file for records of up to `room` bytes.
    #[must_use]
    pub fn with_room(room: usize) -> LiveLayout {
        LiveLayout { room }
    }

    /// The bytes of the whole file.
    #[must_use]
    pub fn size(self) -> usize {
        HEADER.saturating_add(self.room.saturating_mul(2))
    }

    /// The beginning of the file.
    #[must_use]
    pub fn header(self) -> [u8; RECORDS] {
        let mut header = [0; RECORDS];
        put(&mut header, 0, LIVE_SCHEMA.as_bytes());
        put(&mut header, ROOM, &(self.room as u64).to_le_bytes());
        let checksum = crc32fast::hash(header.get(..ROOM_CHECKSUM).unwrap_or_default());
        put(&mut header, ROOM_CHECKSUM, &checksum.to_le_bytes());
        header
    }

    /// Where record `sequence`, from 1, with this text goes; none when there is no room for it.
    #[must_use]
    pub fn record(self, sequence: u64, text: &[u8]) -> Option<LiveRecord> {
        if text.len() > self.room {
            return None;
        }
        let place = usize::from(sequence % 2 == 1);
        let mut about = [0; RECORD];
        put(&mut about, 0, &sequence.to_le_bytes());
        put(&mut about, 8, &(text.len() as u64).to_le_bytes());
        let checksum = checksum(about.get(..16).unwrap_or_default(), text);
        put(&mut about, 16, &checksum.to_le_bytes());
        let at = HEADER + place * self.room;
        Some(LiveRecord { at, about_at: RECORDS + place * RECORD, about })
    }
}

/// The name of a rank's live file.
#[must_use]
pub fn live_file_name(rank: u32) -> String {
    format!("rank-{rank:06}.live")
}

/// The rank that a file name stands for; none when it is not the name of a live file.
#[must_use]
pub fn rank_of_live_file_name(name: &str) -> Option<u32> {
    let rank = name.strip_prefix("rank-")?.strip_suffix(".live")?.parse().ok()?;
    (live_file_name(rank) == name).then_some(rank)
}

/// Reads what a live file knows of its rank.
///
/// # Errors
/// When the file cannot be read, is no live file, is damaged, or is newer than this version.
pub fn read_live(path: &Path) -> Result<RankProfile, ReadError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match parse_live(&fs::read(path)?) {
            Err(ReadError::Damaged(_)) if tries < TRIES => thread::sleep(BETWEEN_TRIES),
            result => return result,
        }
    }
}

/// The same of what the file holds.
///
/// # Errors
/// As for [`read_live`].
pub fn parse_live(bytes: &[u8]) -> Result<RankProfile, ReadError> {
    let damaged = |what: &str| ReadError::Damaged(what.to_owned());
    let tag = bytes.get(..SCHEMA).unwrap_or(bytes);
    let tag = tag.split(|byte| *byte == 0).next().unwrap_or_default();
    check_schema(&String::from_utf8_lossy(tag), LIVE_SCHEMA)?;
    let whole = bytes.get(..ROOM_CHECKSUM).zip(number(bytes, ROOM_CHECKSUM, 4));
    let room = whole
        .filter(|(header, checksum)| u64::from(crc32fast::hash(header)) == *checksum)
        .and_then(|_| usize::try_from(number(bytes, ROOM, 8)?).ok())
        .ok_or_else(|| damaged("its header is not what was written"))?;
    let layout = LiveLayout::with_room(room);
    if bytes.len() != layout.size() {
        let size = layout.size();
        return Err(ReadError::Damaged(format!("it has {} of {size} bytes", bytes.len())));
    }
    let latest = [0, 1].into_iter().filter_map(|place| record(bytes, layout, place));
    let (_, text) = latest
        .max_by_key(|(sequence, _)| *sequence)
        .ok_or_else(|| damaged("neither of its two records is whole"))?;
    parse_rank(text)
}

/// Reads what a file of a run directory knows of one rank: its profile, or its live file, by its name.
///
/// # Errors
/// As for [`read_rank`] and [`read_live`].
pub fn read_profile(path: &Path) -> Result<RankProfile, ReadError> {
    if path.extension().is_some_and(|extension| extension == "live") {
        read_live(path)
    } else {
        read_rank(path)
    }
}

/// The sequence and the text of a record that is whole.
fn record(bytes: &[u8], layout: LiveLayout, place: usize) -> Option<(u64, &[u8])> {
    let about = RECORDS + place * RECORD;
    let sequence = number(bytes, about, 8)?;
    let length = usize::try_from(number(bytes, about + 8, 8)?).ok()?;
    let at = HEADER + place * layout.room;
    let text = bytes.get(at..)?.get(..length).filter(|_| length <= layout.room)?;
    let found = checksum(bytes.get(about..about + 16)?, text);
    let is_whole = sequence > 0 && number(bytes, about + 16, 4)? == u64::from(found);
    is_whole.then_some((sequence, text))
}

fn checksum(about: &[u8], text: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(about);
    hasher.update(text);
    hasher.finalize()
}

/// An integer of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut whole = [0; 8];
    put(&mut whole, 0, bytes.get(at..)?.get(..length)?);
    Some(u64::from_le_bytes(whole))
}

fn put(to: &mut [u8], at: usize, from: &[u8]) {
    for (to, from) in to.iter_mut().skip(at).zip(from) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(elapsed_s: f64) -> Vec<u8> {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rank.json");
        let mut profile = parse_rank(&fs::read(example).unwrap()).unwrap();
        profile.job.elapsed_s = elapsed_s;
        serde_json::to_vec(&profile).unwrap()
    }

    fn write(file: &mut [u8], layout: LiveLayout, sequence: u64, text: &[u8]) {
        let record = layout.record(sequence, text).unwrap();
        put(file, record.at, text);
        put(file, record.about_at, &record.about);
    }

    /// A file with records of 1 to `records` seconds.
    fn file(records: u32) -> (LiveLayout, Vec<u8>) {
        let layout = LiveLayout::with_room(text(0.0).len() + 100);
        let mut file = vec![0; layout.size()];
        put(&mut file, 0, &layout.header());
        for sequence in 1..=records {
            write(&mut file, layout, sequence.into(), &text(sequence.into()));
        }
        (layout, file)
    }

    /// The second of the record that is read.
    #[allow(clippy::cast_possible_truncation)]
    fn known_until(file: &[u8]) -> Result<i64, String> {
        let second = |profile: RankProfile| profile.job.elapsed_s as i64;
        parse_live(file).map(second).map_err(|error| error.to_string())
    }

    #[test]
    fn the_latest_record_is_what_is_known() {
        for records in 1..6 {
            assert_eq!(known_until(&file(records).1), Ok(records.into()));
        }
        let (layout, _) = file(1);
        assert_eq!(layout.record(1, &vec![b' '; layout.room + 1]), None);
    }

    #[test]
    fn a_process_killed_at_any_byte_of_a_record_leaves_the_one_before() {
        let (layout, before) = file(3);
        let text = text(4.0);
        let record = layout.record(4, &text).unwrap();
        for written in (0..text.len()).step_by(97).chain([text.len()]) {
            let mut file = before.clone();
            put(&mut file, record.at, &text[..written]);
            for of_about in 0..RECORD {
                let mut file = file.clone();
                put(&mut file, record.about_at, &record.about[..of_about]);
                let known = known_until(&file).unwrap();
                // The last bytes that make it whole are zeros.
                assert!(
                    (3..=3 + i64::from(of_about > 16)).contains(&known),
                    "{written} {of_about}"
                );
            }
        }
    }

    #[test]
    fn no_changed_byte_gives_a_number_that_was_not_written() {
        let (_, whole) = file(1);
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] ^= 0x10;
            match known_until(&file) {
                Ok(known) => assert_eq!(known, 1, "{at}"),
                Err(error) => assert!(error.contains("; "), "{error}"),
            }
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error() {
        let (_, whole) = file(2);
        for length in (0..whole.len()).step_by(31) {
            assert!(known_until(&whole[..length]).is_err(), "{length}");
        }
        let error = known_until(&whole[..1000]).unwrap_err();
        let size = whole.len();
        let what = format!("is damaged: it has 1000 of {size} bytes; run the program again");
        assert_eq!(error, what);
    }

    #[test]
    fn other_versions_and_other_files_are_refused_by_name() {
        let (_, mut file) = file(1);
        put(&mut file, 0, b"gyan.live/2\0\0\0\0\0");
        assert_eq!(
            known_until(&file).unwrap_err(),
            "has schema gyan.live/2, this gyan reads up to gyan.live/1; update gyan"
        );
        assert!(known_until(b"{\"schema\":\"gyan.rank/1\"}").unwrap_err().contains("instead of"));
        assert!(known_until(&[0; 4096]).unwrap_err().contains("no schema"));
    }

    #[test]
    fn names_stand_for_ranks() {
        assert_eq!(live_file_name(3), "rank-000003.live");
        assert_eq!(rank_of_live_file_name("rank-000003.live"), Some(3));
        for other in ["rank-3.live", "rank-000003.json", ".rank-000003.live"] {
            assert_eq!(rank_of_live_file_name(other), None);
        }
    }
}
