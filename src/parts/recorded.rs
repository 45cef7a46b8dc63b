//! The table of the calls that `gyan run --timeline` recorded.

use gyan_results::Number;

use crate::document::Value;
use crate::document::data::columns;
use crate::timeline::TimelineCall;

/// The name of the table, and what there is a row for.
pub(crate) const TIMELINE_TABLE: [&str; 2] = ["timeline", "call that gyan run --timeline recorded"];

columns! { call in TimelineCall<'_>;
    /// id of the job, by the launcher
    required(job: Text) => call.job,
    /// rank in MPI_COMM_WORLD
    required(rank: Integer) => Value::Rank(call.rank),
    /// thread that called, from 0; 255 for all further ones
    required(thread: Integer) => u64::from(call.thread),
    /// name in C
    required(function: Text) => call.function,
    /// when the call began, in ns after the first event of the run, on one clock for all ranks
    required(begun_ns: Integer) => call.begun_ns,
    /// when it ended, on the same clock
    required(ended_ns: Integer) => call.ended_ns,
    /// communicator or window: its name in MPI, or its size in words
    column(communicator: Text) => call.communicator,
    /// the other rank or the root, in the communicator
    column(peer: Integer) => call.peer.map(Value::Rank),
    /// tag of the message; null without one, and for MPI_ANY_TAG
    column(tag: Integer) => call.tag.map(|tag| Number::Integer(tag.into())),
    /// bytes handed to MPI
    required(bytes: Integer, Exact) => call.bytes,
    /// line that it was called from, where that is known
    column(place: Text) => call.place,
    /// host of the rank
    required(host: Text) => call.host,
}
