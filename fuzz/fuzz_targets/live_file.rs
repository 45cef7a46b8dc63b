#![no_main]

#[path = "../bodies/live_file.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::live_file(bytes));
