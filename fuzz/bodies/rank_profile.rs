//! A file that should be the profile of a rank and may hold anything is refused in one line that says what to do, or is a
//! profile that can be written, read and reduced.

use gyan_results::{Reduction, parse_rank, parse_summary, write_summary};

pub(crate) fn rank_profile(bytes: &[u8]) {
    let profile = match parse_rank(bytes) {
        Ok(profile) => profile,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(text.contains("; ") && text.len() < 1000, "{text}");
            return;
        }
    };
    let text = serde_json::to_string(&profile).unwrap();
    let again = parse_rank(text.as_bytes()).unwrap();
    // As text: NaN is not equal to itself.
    assert_eq!(text, serde_json::to_string(&again).unwrap());
    // The ranks that are missing are listed, which takes long for millions.
    if profile.size > 1000 {
        return;
    }
    let mut reduction = Reduction::default();
    reduction.add("rank-000000.json", &profile);
    let mut written = Vec::new();
    write_summary(&mut written, &reduction.finish().unwrap()).unwrap();
    let mut again = Vec::new();
    write_summary(&mut again, &parse_summary(&written).unwrap()).unwrap();
    assert_eq!(String::from_utf8(written), String::from_utf8(again));
}
