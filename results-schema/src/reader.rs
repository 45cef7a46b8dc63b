//! Reads profiles one after another, each into the previous one, so that names and lists take no new memory. See the
//! table of readers in ARCHITECTURE.md.
//!
//! Whatever does not work that way goes to [`parse_rank`](crate::parse_rank), which also says what is wrong with it. The
//! result is the same either way.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

use crate::alike::Alike;
use crate::read::{ReadError, check_rank, parse_rank_with};
use crate::regular::open_regular;
use crate::{RANK_SCHEMA, RankProfile};

/// Room for a profile of an ordinary size.
const ROOM: usize = 1 << 16;

/// Reads profiles.
#[derive(Debug, Default)]
pub struct RankReader {
    latest: Option<RankProfile>,
    alike: Alike,
    /// The bytes of the latest file.
    buffer: Vec<u8>,
}

impl RankReader {
    /// The profile in a file.
    ///
    /// # Errors
    /// As for [`read_rank`](crate::read_rank).
    pub fn read(&mut self, path: &Path) -> Result<&mut RankProfile, ReadError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let length = read_into(&mut buffer, path);
        self.buffer = buffer;
        let length = length?;
        let Self { latest, alike, buffer } = self;
        parse(latest, alike, buffer.get(..length).unwrap_or_default())
    }

    /// Replaces the latest profile by one that was read in another way.
    pub fn hold(&mut self, profile: RankProfile) -> &mut RankProfile {
        self.latest.insert(profile)
    }

    /// The profile that a file holds.
    ///
    /// # Errors
    /// As for [`crate::parse_rank`].
    pub fn parse(&mut self, bytes: &[u8]) -> Result<&mut RankProfile, ReadError> {
        parse(&mut self.latest, &mut self.alike, bytes)
    }
}

/// Reads a whole file without asking for its length, which would take as long as reading it.
fn read_into(buffer: &mut Vec<u8>, path: &Path) -> io::Result<usize> {
    let mut file = open_regular(path)?;
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize((2 * length).max(ROOM), 0);
        }
        match file.read(buffer.get_mut(length..).unwrap_or_default()) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn parse<'a>(
    latest: &'a mut Option<RankProfile>,
    alike: &mut Alike,
    bytes: &[u8],
) -> Result<&'a mut RankProfile, ReadError> {
    if latest.as_mut().is_none_or(|latest| read(latest, alike, bytes).is_none()) {
        *latest = None;
    }
    let profile = match latest {
        Some(profile) => profile,
        none => none.insert(parse_rank_with(alike, bytes)?),
    };
    check_rank(profile.rank, profile.size)?;
    Ok(profile)
}

/// None when that fails; the profile is then unspecified.
fn read(latest: &mut RankProfile, alike: &mut Alike, bytes: &[u8]) -> Option<()> {
    alike.fold(&mut latest.pvars);
    let mut text = serde_json::Deserializer::from_slice(bytes);
    RankProfile::deserialize_in_place(&mut text, latest).ok()?;
    text.end().ok()?;
    alike.unfold(&mut latest.pvars)?;
    (latest.schema == RANK_SCHEMA).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_rank;

    /// Otherwise all of this would be useless.
    #[test]
    fn profiles_as_gyan_writes_them_are_read_in_place() {
        let mut alike = Alike::default();
        let mut latest = parse_rank(include_bytes!("../examples/rank.json")).unwrap();
        for rank in ["0", "1", "2", "3"] {
            let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/gyan.rank-1-");
            for run in ["running", "queues"] {
                let text = std::fs::read(format!("{fixtures}{run}/rank-00000{rank}.json")).unwrap();
                let profile = parse_rank(&text).unwrap();
                let written = serde_json::to_vec(&profile).unwrap();
                assert!(read(&mut latest, &mut alike, &written).is_some(), "{run} {rank}");
                assert_eq!(latest, profile);
            }
        }
    }

    /// Recursion would end the process.
    #[test]
    fn a_field_of_a_later_gyan_is_nested_as_deeply_as_it_likes() {
        const DEPTH: usize = 1 << 20;
        let example = include_str!("../examples/rank.json");
        let field = format!("\"later\": {}{}, \"tool\":", "[".repeat(DEPTH), "]".repeat(DEPTH));
        let later = example.replacen("\"tool\":", &field, 1);
        assert!(later.len() > 2 * DEPTH);
        let mut reader = RankReader::default();
        for text in [example, &later] {
            assert_eq!(
                *reader.parse(text.as_bytes()).unwrap(),
                parse_rank(example.as_bytes()).unwrap()
            );
        }
    }
}
