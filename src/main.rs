//! The binary `gyan`: a thin shell over the library, which tests and fuzzers use too.

use std::process::ExitCode;

fn main() -> ExitCode {
    gyan_command::main()
}
