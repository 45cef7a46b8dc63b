//! A pack that may hold anything is refused in one line that says what to do, or each of its lines is read or reported.
//! A whole one that is then changed as the input says gives only profiles that were packed.

use std::fs;
use std::path::Path;

use gyan_command::input::packed::{CompressedProfiles, Packed, Writer};
use gyan_results::{RankProfile, RankReader, parse_rank};

const EXAMPLE: &[u8] = include_bytes!("../../results-schema/examples/rank.json");
const RANKS: u32 = 5;
const TOGETHER: usize = 2;

pub(crate) fn pack(bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.gyan.zst");
    fs::write(&path, bytes).unwrap();
    refused_or_read(&path);
    // Three bytes of the input change one of the file: two are its place, the third its new value. Two that are left
    // over say where it is cut off.
    let (profiles, mut whole) = whole();
    let changes = bytes.chunks_exact(3);
    if let [low, high] = *changes.remainder() {
        whole.truncate(usize::from(u16::from_le_bytes([low, high])));
    }
    for change in changes {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(byte) = whole.get_mut(at) {
            *byte = change[2];
        }
    }
    fs::write(&path, &whole).unwrap();
    let read = refused_or_read(&path);
    assert!(read.iter().all(|text| profiles.contains(text)), "{read:?}");
    assert!(read.len() <= profiles.len());
    if bytes.is_empty() {
        assert_eq!(read, profiles);
    }
}

/// Some profiles, and a pack of them.
fn whole() -> (Vec<String>, Vec<u8>) {
    let mut profile = parse_rank(EXAMPLE).unwrap();
    let mut lines = Vec::new();
    for rank in 0..RANKS {
        (profile.rank, profile.size) = (rank, RANKS);
        lines.push((rank, text(&profile).into_bytes()));
    }
    let mut pack = Vec::new();
    let mut writer = Writer::new(&mut pack).unwrap();
    for lines in lines.chunks(TOGETHER) {
        writer.write(CompressedProfiles::new(lines).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    (lines.into_iter().map(|(_, line)| String::from_utf8(line).unwrap()).collect(), pack)
}

/// The profiles in a file: the same in each way of reading them.
fn refused_or_read(path: &Path) -> Vec<String> {
    let pack = match Packed::open(path) {
        Ok(pack) => pack,
        Err(error) => {
            one_line(&error.to_string());
            return Vec::new();
        }
    };
    let (mut read, mut told, mut in_place) = (Vec::new(), pack.lost().count(), Vec::new());
    let mut reader = RankReader::default();
    pack.lost().for_each(|(_, why)| one_line(why));
    for frame in 0..pack.frames() {
        pack.each_in(frame, |_, line| match line.profile(&[]) {
            Ok(profile) => read.push(text(&profile)),
            Err(why) => {
                one_line(&why);
                told += 1;
            }
        });
        pack.each_in(frame, |_, line| {
            in_place.extend(line.profile_with(&mut reader).map(|profile| text(profile)));
        });
    }
    assert_eq!(read.len() + told, pack.lines());
    assert_eq!(read, in_place);
    read
}

fn text(profile: &RankProfile) -> String {
    serde_json::to_string(profile).unwrap()
}

fn one_line(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(text.contains("; ") && text.len() < 1000, "{text}");
}
