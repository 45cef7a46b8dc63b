#![no_main]

#[path = "../bodies/pack.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::pack(bytes));
