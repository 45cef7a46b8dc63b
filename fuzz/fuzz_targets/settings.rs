#![no_main]

#[path = "../bodies/settings.rs"]
mod body;
#[path = "../../wrappers/src/config.rs"]
mod config;
#[path = "../../wrappers/src/exclusions.rs"]
mod exclusions;
#[path = "../../wrappers/src/selection.rs"]
mod selection;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::settings(bytes));
