#![no_main]

#[path = "../bodies/settings.rs"]
mod body;
#[path = "../../wrappers/src/config/mod.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::settings(bytes));
