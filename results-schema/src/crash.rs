//! Where a rank crashed: what its call stack can be found out from, as its memory is gone.

use serde::{Deserialize, Serialize};

/// What was in the registers and on the stack of the thread that crashed.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CrashSeen {
    /// The number of the signal.
    pub signal: i32,
    /// Whether another process sent it.
    pub sent: bool,
    /// The register with the address of the instruction.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer.
    pub fp: u64,
    /// Where a function returns to that calls no other; 0 on processors that do not have it.
    pub lr: u64,
    /// Where the memory of the stack ends.
    pub stack_end: u64,
    /// The words on the stack that may be addresses of code or of the stack: each after its own address, which ascends.
    pub words: Vec<(u64, u64)>,
    /// The code that these words, or the registers, are addresses of.
    pub code: Vec<CodeSeen>,
}

/// Code that was mapped.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CodeSeen {
    /// Its address.
    pub begin: u64,
    /// The address of its end.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file; empty for code that is in none.
    pub path: String,
}
