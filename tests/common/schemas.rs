//! Does a text match a committed JSON Schema?

use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use crate::common::root;

pub(crate) fn schema(name: &str) -> Validator {
    let path = root().join("results-schema/schemas").join(name);
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

pub(crate) fn validate(schema: &Validator, text: &str, what: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:?}");
}
