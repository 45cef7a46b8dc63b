//! What libgyan.so tells `gyan doctor` about a process: a file for each program that it becomes, with a line of
//! JSON per note.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessNote {
    /// libgyan.so was loaded: the first line.
    Loaded(ProcessStart),
    /// A function of MPI came through libgyan.so for the first time.
    Called(String),
    /// The program ended by itself, with these objects loaded.
    Ended(Vec<String>),
}

/// A program into which libgyan.so was loaded.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProcessStart {
    /// The file that it runs.
    pub program: String,
    /// Its command line.
    pub arguments: Vec<String>,
    /// The host that it runs on.
    pub host: String,
    /// The settings of gyan in its environment: `NAME=value`.
    pub settings: Vec<String>,
    /// The files that are loaded, in the order in which symbols are looked up; the program is the first.
    pub objects: Vec<String>,
    /// Which of them holds gyan.
    pub gyan: Option<usize>,
}
