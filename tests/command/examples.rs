//! The committed JSON Schemas accept the committed examples, and reject damaged ones.

use std::fs;

use serde_json::Value;

use crate::common::root;
use crate::schemas::{schema, validate};

#[test]
fn the_examples_are_valid() {
    for name in ["rank", "summary", "variables", "doctor", "diff", "tune"] {
        let path = root().join(format!("results-schema/examples/{name}.json"));
        let text = fs::read_to_string(path).unwrap();
        validate(&schema(&format!("{name}.schema.json")), &text, name);
    }
}

#[test]
fn a_damaged_profile_is_not_valid() {
    let text = fs::read_to_string(root().join("results-schema/examples/rank.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["rank"] = "zero".into();
    assert!(!schema("rank.schema.json").is_valid(&value));
}
