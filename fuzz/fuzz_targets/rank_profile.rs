#![no_main]

#[path = "../bodies/rank_profile.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::rank_profile(bytes));
