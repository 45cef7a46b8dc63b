//! Runs the body of the fuzzer of records over the inputs that are committed in `fuzz/`, and over records with another number or
//! text in one place.

#[path = "../../fuzz/bodies/record.rs"]
mod record;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/record")
}

#[test]
fn every_record_is_refused_or_gives_rows() {
    let inputs: Vec<_> = fs::read_dir(corpus()).unwrap().collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        record::record(&fs::read(input.unwrap().path()).unwrap());
    }
}

#[test]
fn a_record_with_anything_in_one_place_is_refused_or_gives_rows() {
    let whole: Value =
        serde_json::from_slice(&fs::read(corpus().join("job.json")).unwrap()).unwrap();
    let mut places = Vec::new();
    places_in(&whole, String::new(), &mut places);
    let mut random = fastrand::Rng::with_seed(4711);
    let (mut taken, all) = (0, 400);
    for _ in 0..all {
        let mut changed = whole.clone();
        for _ in 0..random.usize(1..4) {
            let place = &places[random.usize(..places.len())];
            *changed.pointer_mut(place).unwrap() = other(&mut random);
        }
        taken +=
            usize::from(record::taken_or_refused(&record::packed(changed.to_string().as_bytes())));
    }
    println!("{taken} of {all} taken");
    assert!((all / 20..all).contains(&taken), "{taken}");
}

/// The paths of numbers and texts.
fn places_in(value: &Value, path: String, places: &mut Vec<String>) {
    match value {
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                places_in(value, format!("{path}/{at}"), places);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                places_in(
                    value,
                    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")),
                    places,
                );
            }
        }
        _ => places.push(path),
    }
}

/// Something that no program writes.
fn other(random: &mut fastrand::Rng) -> Value {
    let numbers = [0.0, -0.0, -1.0, 0.5, 1e18, 1e19, 1e300, -1e300, 5e-324, f64::MAX];
    let texts = [
        "",
        "NaN",
        "inf",
        "../../etc",
        "\u{1b}[2J\r\n",
        "9999-12-31T23:59:59Z",
        "0-4294967295",
        "'; drop table jobs",
    ];
    match random.u8(..4) {
        0 => numbers[random.usize(..numbers.len())].into(),
        1 => texts[random.usize(..texts.len())].into(),
        2 => [0, 1, u64::from(u32::MAX), u64::MAX][random.usize(..4)].into(),
        _ => [-1, i64::MIN, i64::MAX][random.usize(..3)].into(),
    }
}
