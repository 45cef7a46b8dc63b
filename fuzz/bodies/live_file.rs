//! A live file that may hold anything is refused in one line that says what to do. A whole one that is then changed as
//! the input says is refused, or read as it was written.

use gyan_results::{LiveEntry, RankProfile, ReadError, parse_live, parse_rank, write_live};

const EXAMPLE: &[u8] = include_bytes!("../../results-schema/examples/rank.json");

pub(crate) fn live_file(bytes: &[u8]) {
    read(bytes);
    let example = parse_rank(EXAMPLE).unwrap();
    let text = serde_json::to_vec(&example).unwrap();
    let mut file = Vec::new();
    write_live(&mut file, "1", "n1", &[LiveEntry::not_seen(example.rank, true, &text)]).unwrap();
    let whole = read(&file);
    assert_eq!(whole.len(), 1);
    // Three bytes of the input change one of the file: two are its place, the third its new value.
    for change in bytes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let length = file.len();
        file[at % length] = change[2];
    }
    for profile in read(&file) {
        assert_eq!(serde_json::to_vec(&profile).unwrap(), text);
    }
}

/// The profiles that can be read.
fn read(bytes: &[u8]) -> Vec<RankProfile> {
    let whole = parse_live(bytes).map_err(|error| is_clear(&error)).unwrap_or_default();
    let read = whole.into_iter().map(|(_, read)| read.map_err(|error| is_clear(&error)));
    read.filter_map(Result::ok).collect()
}

fn is_clear(error: &ReadError) {
    let text = error.to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(text.contains("; ") && text.len() < 1000, "{text}");
}
