//! What ran, with which MPI, and how it ended.

use crate::data::{Data, Serialize, derive};

/// The program that wrote a file.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Tool {
    /// Always `gyan`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This version of gyan.
    pub fn gyan() -> Tool {
        Tool { name: "gyan".into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Which run of which program this is.
#[derive(Data!, Serialize, Default)]
pub struct Job {
    /// The launcher's id of the run, the same on every rank.
    pub id: String,
    /// The command line of the rank; empty when it was not to be recorded.
    pub command: Vec<String>,
    /// The user's labels of the run (`GYAN_LABELS`), which tell it from others.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// When `MPI_Init` was called: UTC, RFC 3339.
    pub started: String,
    /// Seconds from `MPI_Init` to the end; for a rank without a profile, to now or to when its process was last seen.
    pub elapsed_s: f64,
    /// Seconds from `MPI_Init` to the last numbers of a rank without a profile; none where they are of the whole run.
    #[serde(default)]
    pub known_until_s: Option<f64>,
}

impl Job {
    /// Seconds from `MPI_Init` to the last numbers.
    pub fn known_s(&self) -> f64 {
        self.known_until_s.unwrap_or(self.elapsed_s)
    }

    /// Takes the longest times of both.
    pub(crate) fn lasts_as_long_as(&mut self, other: &Job) {
        let known_s = self.known_s().max(other.known_s());
        let is_partly = self.known_until_s.is_some() || other.known_until_s.is_some();
        self.known_until_s = is_partly.then_some(known_s);
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
    }
}

/// A label of a run, such as the size of its problem.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct Label {
    /// Its name, such as `size`.
    pub name: String,
    /// Its value in this run.
    pub value: String,
}

/// The MPI library.
#[derive(Data!, Serialize, Default, Eq, Ord, PartialOrd)]
pub struct Mpi {
    /// Its binary interface: `openmpi`, `mpich` or `standard` (the MPI-5 ABI).
    pub abi: String,
    /// The version of the standard that it implements, such as `3.1`.
    pub standard: String,
    /// The first line of `MPI_Get_library_version`.
    pub library: String,
    /// What MPICH and its descendants were built with, such as `ch4:ofi`.
    #[serde(default)]
    pub device: Option<String>,
    /// The file that it was loaded from.
    pub library_path: String,
    /// What `MPI_Query_thread` gave, such as `MPI_THREAD_SINGLE`.
    pub thread_level: String,
}

/// A control variable as it was set in a run.
#[derive(Data!, Serialize, Eq)]
pub struct CvarSetting {
    /// Its name.
    pub name: String,
    /// Its value, for an enumeration by name; none when it could not be read.
    pub value: Option<String>,
    /// What set it, such as `environment OMPI_MCA_pml`; none when nothing is known to have set it.
    pub set_by: Option<String>,
    /// The value that `GYAN_CVARS` asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
}

/// How a rank ended.
#[derive(Data!, Serialize, Default, Eq)]
pub struct End {
    /// By what.
    pub how: Ending,
    /// The code that came with it; 0 for `MPI_Finalize`. Of a killed process, the number of the signal, or 0 if that is not
    /// known.
    pub code: i32,
}

/// What ended a rank.
#[derive(Data!, Serialize, Copy, Default, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// `MPI_Finalize`.
    Finalize,
    /// `MPI_Abort`, with the code that it was given.
    Abort,
    /// `exit`, or the return from `main`, before `MPI_Finalize`, with the code of the process.
    Exit,
    /// It had not ended: the program asked for the profile with `MPI_Pcontrol(2)` and no later one was written;
    /// or this is from the live file of a running process.
    Running,
    /// A signal, `_exit` or a crash of the node: the process is gone, and its live file has what was known
    /// before.
    Killed,
    /// The end is not known: a live file of a process on another node, which may still be running.
    #[default]
    Unknown,
}

/// A rank that did not end with `MPI_Finalize`.
#[derive(Data!, Serialize)]
pub struct BadEnding {
    /// The rank.
    pub rank: u32,
    /// What ended it.
    pub how: Ending,
    /// The code.
    pub code: i32,
    /// Seconds from the start to the last data.
    #[serde(default)]
    pub elapsed_s: f64,
    /// Seconds from the start to the end of its process, or to when it was last seen; none where that is the last data.
    #[serde(default)]
    pub ended_s: Option<f64>,
}
