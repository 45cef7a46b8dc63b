//! The profile of one rank: schema `gyan.rank/1`.

use crate::data::{apply, datum};
use crate::{
    Call, Clock, Coverage, CvarSetting, End, EventCount, HostCounters, InMpi, Job, Knob, Machine,
    MessageTimes, Messages, Mpi, ObjectsMade, OpenMp, Overhead, Peers, Phase, Pvar, Resources,
    Series, Sites, Tool, Waiting, Watch,
};

/// What one rank of a job saw, from `MPI_Init` to its end.
#[apply(datum!)]
#[derive(Default)]
pub struct RankProfile {
    /// [`RANK_SCHEMA`](crate::RANK_SCHEMA).
    pub schema: String,
    /// What wrote this profile.
    pub tool: Tool,
    /// The job that the rank belongs to.
    pub job: Job,
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Size of `MPI_COMM_WORLD`.
    pub size: u32,
    /// Host name of the node.
    pub host: String,
    /// Process id on that node.
    pub pid: u32,
    /// The MPI library in the process.
    pub mpi: Mpi,
    /// How the run ended.
    pub end: End,
    /// Control variables and their values: on rank 0 those of the run, on others only those that gyan was asked to set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cvars: Vec<CvarSetting>,
    /// The control variables of the library that findings rest on, set or not; only on rank 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<Knob>,
    /// How many objects of MPI the program made and freed, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects_made: Vec<ObjectsMade>,
    /// The performance variables that were read.
    pub pvars: Vec<Pvar>,
    /// The MPI functions that the program called, with their exact counts.
    pub calls: Vec<Call>,
    /// The time in MPI functions; none when nothing was timed.
    pub in_mpi: Option<InMpi>,
    /// What the rank sent to each of the others; none when that was not counted (`GYAN_PEERS=off`), or without
    /// `MPI_COMM_WORLD`.
    pub peers: Option<Peers>,
    /// What happened in each phase, in the order in which they came; empty for a program without phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Sampled variables over time; none unless `GYAN_SERIES` asked for it.
    pub series: Option<Series>,
    /// Receives that were watched; none unless `GYAN_WATCH` asked for it.
    pub watch: Option<Watch>,
    /// The description of the host; none unless the rank is the first on it, or with `GYAN_MACHINE=off`.
    pub machine: Option<Machine>,
    /// What the counters of the host counted while the rank ran; none unless the rank is the first on it, and at its end.
    pub host_counters: Option<HostCounters>,
    /// The part of the host that the rank may use, and what it used.
    pub resources: Option<Resources>,
    /// Where in the program the timed calls came from; none with `GYAN_SITES=off`, or when none was timed.
    pub sites: Option<Sites>,
    /// What the OpenMP runtime told; none where none does, and with `GYAN_OPENMP=off`.
    pub openmp: Option<OpenMp>,
    /// How long the same calls of collectives took on each rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// When messages began and ended; none with `GYAN_WAITING=off` or where ranks cannot be told.
    pub message_times: Option<MessageTimes>,
    /// What each source reported about messages; empty unless `GYAN_EVENTS` asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Messages>,
    /// The events of `MPI_T` that were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCount>,
    /// What the library exports and which of it was not read.
    pub coverage: Coverage,
    /// The clock; none in profiles of early versions of gyan that did not read one.
    pub clock: Option<Clock>,
    /// What a reader of the numbers should know.
    pub warnings: Vec<String>,
    /// What gyan itself cost. This is the last key, so that it can include the cost of writing all others.
    pub overhead: Overhead,
}
