//! What a rank is doing now, as the keeper of its host sees it from outside; and what `gyan now` makes of all of them.

use std::collections::BTreeMap;

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::job::Tool;

/// A rank that has not moved between two looks: it is in the same call of MPI, or in its own code since the same call.
#[apply(datum!)]
#[derive(Default, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is true of a rank whatever the others are
pub struct RankNow {
    /// Whether it is inside the call; otherwise it is in its own code, and this was its last one.
    pub in_mpi: bool,
    /// The function that it called, by its name in C; none before the first one.
    pub function: Option<String>,
    /// Which of its calls of that function it is, from 1.
    pub number: u64,
    /// When it was first seen so, in milliseconds since 1970; it was so up to a second before.
    pub since_ms: u64,
    /// The rank that it receives from.
    pub source: Option<Peer>,
    /// The rank that it sends to.
    pub dest: Option<Peer>,
    /// The tag of the message that it receives or, without a source, sends; none for any.
    pub tag: Option<i32>,
    /// The root of a collective operation, as the call says it.
    pub root: Option<i32>,
    /// The amount of a collective operation that has to be the same in this call of every rank: what one rank gives or
    /// gets.
    pub bytes: Option<u64>,
    /// Whether its calls of a function that have the same number as those of another rank are the same call there: not once
    /// the program has made a communicator of a part of the ranks, nor where several threads call MPI.
    #[serde(default)]
    pub numbers_agree: bool,
    /// The number of requests that it waits for or tests.
    pub requests: Option<u64>,
    /// What they stand for: the same operations once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationNow>,
    /// How many of them stand for something that is not known; those that are null do not count.
    #[serde(default)]
    pub unknown_requests: u64,
    /// What it started before, and may not have ended: the same operations once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<OperationNow>,
    /// It may have started more than those.
    #[serde(default)]
    pub more_earlier: bool,
    /// How many messages it has sent to each rank in `MPI_COMM_WORLD`, without those to which it has sent none; none if that is
    /// not known, or these are too many ranks.
    pub sent: Option<BTreeMap<u32, u64>>,
    /// It is stopped, by a signal or a debugger.
    #[serde(default)]
    pub stopped: bool,
    /// The communicator.
    pub communicator: Option<CommunicatorNow>,
    /// The ranks in `MPI_COMM_WORLD` of a communicator that is another one (`0,2-5`), if they are known.
    pub members: Option<String>,
    /// Where the call was made.
    pub from: Option<CallPlace>,
    /// The functions of Python that led to it, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<FrameNow>,
    /// The same of its other threads that call MPI, if it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<RankNow>,
}

impl RankNow {
    /// What each of its threads does.
    pub fn each_thread(&self) -> impl Iterator<Item = &RankNow> {
        std::iter::once(self).chain(&self.threads)
    }
}

/// An operation that was started.
#[apply(datum!)]
#[derive(Eq)]
pub struct OperationNow {
    /// The function that started it, by its name in C.
    pub function: String,
    /// The rank that it receives from or sends to.
    pub peer: Option<Peer>,
    /// The tag of its message; none for any.
    pub tag: Option<i32>,
    /// The communicator.
    pub communicator: CommunicatorNow,
}

/// The other side of a message.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// A rank in `MPI_COMM_WORLD`.
    World(u32),
    /// A rank of a communicator whose rank in `MPI_COMM_WORLD` is not known.
    InCommunicator(i32),
    /// `MPI_ANY_SOURCE`.
    Any,
    /// `MPI_PROC_NULL`.
    Nobody,
}

/// A communicator.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum CommunicatorNow {
    /// `MPI_COMM_WORLD`.
    World,
    /// Another one: how many ranks it has, and a hash of them, which is 0 if not known.
    Other(u32, u64),
    /// Nothing is known of it.
    Unknown,
}

/// A place in the code of a process.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct CallPlace {
    /// The file that is mapped there.
    pub path: String,
    /// Where in that file.
    pub offset: u64,
    /// Of a file with the source of Python it is this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What every rank of a running job is doing, who waits for whom, and why it does not go on: what `gyan now` says.
#[derive(Data!, Serialize)]
pub struct JobNow {
    /// `gyan.now/1`.
    pub schema: String,
    /// What wrote this.
    pub tool: Tool,
    /// The job's id.
    pub job: String,
    /// The number of ranks in `MPI_COMM_WORLD`.
    pub size: u32,
    /// Whether no rank is running any more: then this is what they did last.
    pub is_over: bool,
    /// When this was found out, in milliseconds since 1970.
    pub looked_ms: u64,
    /// The ranks of which something is known.
    pub ranks: Vec<RankDoing>,
    /// Ranks that do the same, the most numerous first.
    pub groups: Vec<GroupNow>,
    /// Why it does not go on, if that is clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HangCause>,
    /// The call stacks of the ranks on one host, if they were asked for: those that are the same once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackNow>,
    /// Ranks whose stacks were asked for and cannot be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_stack: Vec<WithoutStack>,
}

/// Ranks with threads that have the same call stack.
#[derive(Data!, Serialize, Eq)]
pub struct StackNow {
    /// These ranks.
    pub ranks: Vec<u32>,
    /// How many threads of these ranks have it; if all threads were not asked for, each rank's main thread.
    pub threads: u64,
    /// From the outermost function, `main` or that of the thread, to the one that the threads are in; of MPI only the function
    /// that was called. Of a thread that a library keeps for itself it is the library.
    pub frames: Vec<FrameNow>,
    /// Whether it does not begin there, because the rest could not be read.
    pub is_cut: bool,
    /// For how many microseconds one of these threads was stopped at most.
    pub stopped_us: u64,
}

/// A function on a call stack.
#[apply(datum!)]
#[derive(Eq, Ord, PartialOrd)]
pub struct FrameNow {
    /// Its name, demangled; an address in a file if it has none.
    pub function: String,
    /// The source file, as the compiler was told.
    pub file: Option<String>,
    /// The line that it is at.
    pub line: Option<u32>,
    /// Whether the compiler put it into the function before it.
    pub inlined: bool,
}

/// Ranks whose call stacks cannot be had.
#[derive(Data!, Serialize, Eq)]
pub struct WithoutStack {
    /// These ranks.
    pub ranks: Vec<u32>,
    /// The reason, and what to do about it.
    pub why: String,
}

/// A rank and what it does.
#[apply(datum!)]
#[derive(Eq)]
pub struct RankDoing {
    /// In `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Where it runs.
    pub host: String,
    /// What it does.
    pub doing: Doing,
    /// The signal that ended it, by its name, if it is gone and that is known.
    pub ended_by: Option<String>,
    /// Where that signal came from, if that is known.
    pub ended_from: Option<EndedFrom>,
    /// The functions that it crashed in, from the outermost one on, if that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed_in: Vec<FrameNow>,
    /// When it was last seen, or had just ended, in milliseconds since 1970; none if it is there.
    pub ended_ms: Option<u64>,
}

impl RankDoing {
    /// A rank that is there, or has written its profile.
    pub fn new(rank: u32, host: &str, doing: Doing) -> RankDoing {
        let (host, ended_by, ended_from) = (host.to_owned(), None, None);
        let (crashed_in, ended_ms) = (Vec::new(), None);
        RankDoing { rank, host, doing, ended_by, ended_from, crashed_in, ended_ms }
    }
}

/// Where the signal that ended a rank came from.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum EndedFrom {
    /// Another process sent it.
    OtherProcess,
    /// The system, for lack of memory.
    OutOfMemory,
}

/// What a rank does.
#[derive(Data!, Serialize, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It has not moved between two looks.
    Still(RankNow),
    /// It calls MPI.
    Moves,
    /// It cannot be seen, for this reason.
    NotSeen(String),
    /// Its process ended without `MPI_Finalize`; what it did last, if that is known.
    Gone(Option<RankNow>),
    /// It has written its profile, in `MPI_Finalize`.
    Ended,
}

/// Ranks that do the same at the same place.
#[derive(Data!, Serialize)]
pub struct GroupNow {
    /// These ranks.
    pub ranks: Vec<u32>,
    /// What they do, in a sentence.
    pub sentence: String,
    /// Seconds for which all of them have done it; none for ranks that move or have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_s: Option<f64>,
}

/// Why a job does not go on.
#[derive(Data!, Serialize)]
pub struct HangCause {
    /// What it is.
    pub kind: HangKind,
    /// The ranks that are the cause.
    pub ranks: Vec<u32>,
    /// In a sentence.
    pub sentence: String,
}

/// The kinds of causes.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HangKind {
    /// Ranks wait for each other, so none of them can go on.
    Deadlock,
    /// Ranks of a communicator are in different collective operations.
    Mismatch,
    /// Ranks of a communicator have different amounts in the same collective operation.
    Amounts,
    /// Ranks wait for one that is gone.
    Gone,
    /// Ranks wait for one that has called `MPI_Finalize`.
    Finalized,
    /// Ranks wait for one that is in its own code.
    Straggler,
}
