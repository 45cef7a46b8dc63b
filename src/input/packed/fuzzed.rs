//! Runs the bodies of the fuzzers in `fuzz/` over the inputs that are committed there: a fuzzer is not
//! installed everywhere, but its target must still compile and pass.

#[path = "../../../fuzz/bodies/pack.rs"]
mod pack;

use std::fs;
use std::path::Path;

#[test]
fn every_pack_is_refused_or_read_as_it_was_written() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/pack");
    let inputs: Vec<_> = fs::read_dir(corpus).unwrap().collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        pack::pack(&fs::read(input.unwrap().path()).unwrap());
    }
}
