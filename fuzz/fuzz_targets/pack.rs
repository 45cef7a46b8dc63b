#![no_main]

#[path = "../bodies/pack.rs"]
mod body;
#[path = "../../src/directory.rs"]
mod directory;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/killed.rs"]
mod killed;
#[path = "../../src/packed/mod.rs"]
mod packed;
#[path = "../../src/printable.rs"]
mod printable;

/// What these modules use of others.
mod source {
    pub(crate) const LINES_AT_MOST: usize = 8;
}
mod view {
    pub(crate) use crate::printable::printable;
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::pack(bytes));
