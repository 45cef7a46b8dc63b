#![no_main]

#[path = "../bodies/library_version.rs"]
mod body;
#[path = "../../wrappers/src/mpi/abi/identity.rs"]
mod identity;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::library_version(bytes));
