//! A live file that may hold anything: it is refused in one line that says what to do. One that was whole
//! and was changed then, as the input says, is refused or read as what one of its records was.

use gyan_results::{LiveLayout, RankProfile, parse_live, parse_rank};

const EXAMPLE: &[u8] = include_bytes!("../../results-schema/examples/rank.json");

pub(crate) fn live_file(bytes: &[u8]) {
    refused_or_read(bytes);
    // As a record: what is read is what a profile of this text is.
    let (layout, file) = file_of(&[bytes]);
    assert_eq!(parse_live(&file).is_ok(), parse_rank(bytes).is_ok());
    assert_eq!(layout.size(), file.len());
    // As changes: where, in two bytes, and what is there then.
    let (_, mut file) = file_of(&[EXAMPLE, b"{}", EXAMPLE]);
    for change in bytes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let length = file.len();
        file[at % length] = change[2];
    }
    let was = |profile: &RankProfile| serde_json::to_string(profile).unwrap();
    if let Some(read) = refused_or_read(&file) {
        assert_eq!(was(&read), was(&parse_rank(EXAMPLE).unwrap()));
    }
}

fn refused_or_read(bytes: &[u8]) -> Option<RankProfile> {
    match parse_live(bytes) {
        Ok(profile) => Some(profile),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(text.contains("; ") && text.len() < 1000, "{text}");
            None
        }
    }
}

/// A live file to which these records were written.
fn file_of(records: &[&[u8]]) -> (LiveLayout, Vec<u8>) {
    let room = records.iter().map(|text| text.len()).max().unwrap_or(0);
    let layout = LiveLayout::with_room(room);
    let mut file = vec![0; layout.size()];
    let header = layout.header();
    file[..header.len()].copy_from_slice(&header);
    for (sequence, text) in (1..).zip(records) {
        let record = layout.record(sequence, text).unwrap();
        file[record.at..][..text.len()].copy_from_slice(text);
        file[record.about_at..][..record.about.len()].copy_from_slice(&record.about);
    }
    (layout, file)
}
