//! Runs the bodies of the fuzzers in `fuzz/` over the inputs that are committed there: a fuzzer is not
//! installed everywhere, but its target must still compile and pass.

#[path = "../../fuzz/bodies/library_version.rs"]
mod library_version;
#[path = "../../fuzz/bodies/settings.rs"]
mod settings;

use std::fs;
use std::path::Path;

use crate::config;
use crate::mpi::abi::identity;

fn over_corpus(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let inputs: Vec<_> = fs::read_dir(corpus).unwrap().collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        body(&fs::read(input.unwrap().path()).unwrap());
    }
}

#[test]
fn every_setting_is_understood_or_named() {
    over_corpus("settings", settings::settings);
}

#[test]
fn every_text_has_a_maker_and_a_version() {
    over_corpus("library_version", library_version::library_version);
}
