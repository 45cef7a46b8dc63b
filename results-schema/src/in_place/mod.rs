//! Reads profiles one after another, each into the previous one: unchanged parts, above all names, are compared
//! and kept, so nothing is allocated. No reader without its own decoder is half as fast; see the table in
//! ARCHITECTURE.md.
//!
//! This works for profiles as gyan writes them: keys in order, no spaces. Anything else goes to
//! [`parse_rank`](crate::parse_rank), which also says what is wrong with it. The result is the same either way.

mod fields;
mod text;

use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::alike::Alike;
use crate::read::{ReadError, check_rank, parse_rank_with};
use crate::regular::open_regular;
use crate::{Number, RANK_SCHEMA, RankProfile, Values};
use text::Text;

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

fn read(latest: &mut RankProfile, alike: &mut Alike, bytes: &[u8]) -> Option<()> {
    let mut text = Text::new(std::str::from_utf8(bytes).ok()?);
    alike.fold(&mut latest.pvars);
    latest.read(&mut text)?;
    alike.unfold(&mut latest.pvars)?;
    (text.is_at_end() && latest.schema == RANK_SCHEMA).then_some(())
}

/// A type that can be read into a previous value. None when the text is not written as gyan writes it; the
/// value is then unspecified.
trait InPlace: DeserializeOwned {
    fn read(&mut self, text: &mut Text) -> Option<()>;

    /// The value of a field that is left out.
    fn clear(&mut self) {}
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl InPlace for $type {
            #[inline]
            fn read(&mut self, text: &mut Text) -> Option<()> {
                *self = match text.integer() {
                    Some(integer) => integer.try_into().ok()?,
                    // A negative one, or one that needs all 64 bits.
                    None => text.value()?,
                };
                Some(())
            }

            fn clear(&mut self) {
                *self = 0;
            }
        }
    )+};
}
integers!(u32, u64, usize, i32);

impl InPlace for Number {
    #[inline]
    fn read(&mut self, text: &mut Text) -> Option<()> {
        // Those that JSON cannot write are strings.
        *self = match text.number() {
            Some(number) => number,
            None => text.value()?,
        };
        Some(())
    }
}

impl InPlace for f64 {
    #[inline]
    fn read(&mut self, text: &mut Text) -> Option<()> {
        *self = text.number()?.as_f64();
        Some(())
    }

    fn clear(&mut self) {
        *self = 0.0;
    }
}

impl InPlace for bool {
    fn read(&mut self, text: &mut Text) -> Option<()> {
        *self = text.eat("true");
        (*self || text.eat("false")).then_some(())
    }
}

impl InPlace for String {
    #[inline]
    fn read(&mut self, text: &mut Text) -> Option<()> {
        if !text.eat_string(self) {
            let string = text.string()?;
            self.clear();
            self.push_str(string);
        }
        Some(())
    }
}

impl<T: InPlace> InPlace for Option<T> {
    fn read(&mut self, text: &mut Text) -> Option<()> {
        if text.eat("null") {
            *self = None;
        } else if let Some(place) = self {
            place.read(text)?;
        } else {
            *self = Some(text.value()?);
        }
        Some(())
    }

    fn clear(&mut self) {
        *self = None;
    }
}

impl<T: InPlace> InPlace for Vec<T> {
    fn read(&mut self, text: &mut Text) -> Option<()> {
        text.expect("[")?;
        let mut length = 0;
        if !text.eat("]") {
            loop {
                if let Some(place) = self.get_mut(length) {
                    place.read(text)?;
                } else {
                    self.push(text.value()?);
                }
                length += 1;
                if !text.eat(",") {
                    break;
                }
            }
            text.expect("]")?;
        }
        self.truncate(length);
        Some(())
    }

    fn clear(&mut self) {
        self.clear();
    }
}

impl InPlace for Values {
    fn read(&mut self, text: &mut Text) -> Option<()> {
        if let Values::Elements(elements) = self
            && text.is_list()
        {
            return elements.read(text);
        }
        *self = text.value()?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_rank;

    /// Otherwise all of this would be useless.
    #[test]
    fn profiles_as_gyan_writes_them_are_read_in_place() {
        let mut alike = Alike::default();
        let mut latest = parse_rank(include_bytes!("../../examples/rank.json")).unwrap();
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
}
