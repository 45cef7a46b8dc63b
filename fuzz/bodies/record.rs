//! A record that may hold anything is refused in a few words, or gives rows that harm no reader: on one line each, with numbers that
//! can be summed up.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gyan_command::shown::archived;
use gyan_results::RECORD_SCHEMA;

/// Takes bytes as a file, and as the JSON of a file.
pub(crate) fn record(bytes: &[u8]) {
    taken_or_refused(bytes);
    taken_or_refused(&packed(bytes));
}

pub(crate) fn packed(json: &[u8]) -> Vec<u8> {
    let mut packed =
        ZlibEncoder::new(format!("{RECORD_SCHEMA}\n").into_bytes(), Compression::fast());
    packed.write_all(json).unwrap();
    packed.finish().unwrap()
}

/// Whether it is taken.
pub(crate) fn taken_or_refused(record: &[u8]) -> bool {
    let tables = match archived(4711, record) {
        Ok(tables) => tables,
        Err(why) => {
            // A rule that fails is a bug.
            assert!(!why.contains("bug"));
            return false;
        }
    };
    for text in &tables {
        let is_bad = |character: char| character.is_control() && !"\r\n".contains(character);
        assert!(!text.contains(is_bad), "{text:?}");
        for line in text.lines().skip(1) {
            assert!(line.len() < 20_000, "{line}");
            let cells = line.split(',').filter_map(|cell| cell.parse::<f64>().ok());
            assert!(
                cells.clone().all(|number| !number.is_infinite() || line.contains("inf")),
                "{line}"
            );
        }
    }
    assert_eq!(tables[0].lines().count(), 2, "{}", tables[0]);
    true
}
