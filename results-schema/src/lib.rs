//! The format in which libgyan.so and the `gyan` command meet: the profile of one rank
//! ([`RankProfile`]), the summary over all ranks of a job ([`Summary`]), the listing of what an MPI
//! library has ([`Variables`]), what `gyan diff` finds between runs ([`Difference`]), what `gyan tune` found ([`Tuning`]), and what `gyan doctor` finds
//! ([`Diagnosis`]), and from what ([`ProcessNote`]).
//!
//! The two ends never see each other. This crate holds the serde types, the statistics and their
//! merge, and the version check; it knows no MPI, has no unsafe code, and does no I/O beyond
//! reading and writing these files.
//!
//! Large functions that are also in libgyan.so are `#[inline]`, so that each crate compiles its own copy: the
//! command for speed, libgyan.so for size.

#![forbid(unsafe_code)]

mod alike;
mod datatype;
mod diagnosis;
mod difference;
mod figures;
mod findings;
mod hosts;
mod judgement;
mod knobs;
mod live;
mod machine;
mod messages;
mod number;
mod order;
mod process_note;
#[cfg(test)]
mod properties;
mod queues;
mod ranges;
mod rank;
mod read;
mod reader;
mod readings;
mod reduction;
mod regular;
mod rows;
mod running;
mod scaling;
#[cfg(feature = "schema")]
pub mod schema;
mod sites;
mod statistics;
mod summary;
mod traffic;
mod tuning;
mod units;
mod values;
mod variables;
mod waiting;
mod write;

pub use alike::unfold;
pub use datatype::Datatype;
pub use diagnosis::{Check, Diagnosis, Exports, Verdict};
pub use difference::{
    Change, ChangeVerdict, Difference, FindingDifference, NumberDifference, NumberGroup,
    NumberKind, PartDifference, PartKind, PhaseDifference, SetupDifference, Shift, Side,
    SideNumber, Split,
};
pub use figures::Figure;
pub use findings::{Actor, Advice, AlsoTrue, Efficiencies, Evidence, Finding, PhaseEfficiencies};
pub use hosts::{Differing, HostDifference, HostMeasure, HostStatistic, HostSummary};
pub use judgement::{CheckResult, CheckRule, JudgedRow, Judgement};
pub use knobs::{KNOBS, Knob, is_knob};
pub use live::{
    LiveFile, LiveRank, LiveText, is_live_file_name, live_file_name, parse_live, write_live,
};
pub use machine::{
    Cgroup, CoreKind, Crowded, Machine, MachineSummary, Network, PlacementSummary, Resources,
    ResourcesSummary, Transport,
};
pub use messages::{
    Address, EventCount, Hit, LoadedObject, MessageMetric, MessageSource, Messages, Metric,
    PeerQueues, Stack, Traffic, Watch, WatchSite,
};
pub use number::Number;
pub use order::{collected, sort_by};
pub use process_note::{ProcessNote, ProcessStart};
pub use queues::{OnRank, Quantity, QueueRow, QueueSource};
pub use ranges::Ranges;
pub use rank::{
    Call, Class, Coverage, CvarSetting, End, Ending, Job, Label, Mpi, ObjectsLeftOut, ObjectsMade,
    Overhead, Pvar, RankProfile, Skipped, Tool,
};
pub use read::{
    ReadError, Whose, parse_rank, parse_summary, read_rank, read_summary, read_tuning,
    read_variables,
};
pub use reader::RankReader;
pub use readings::{Measure, Reading, Readings};
pub use reduction::{Reduction, ReductionInOrder};
pub use regular::{open_regular, read_regular};
pub use rows::{
    CallSummary, Element, EventSummary, MessagesSummary, MetricSummary, PairSummary, PhaseSummary,
    PvarSummary, SamplesSummary, StateSummary, WatchSiteSummary, WatchSummary,
};
pub use running::{
    Clock, InMpi, Phase, PhasePvar, SampledSum, Samples, Series, SeriesColumn, StateShare,
    add_histogram,
};
pub use scaling::{
    Fit, Growth, Predicted, ScaleKind, ScalePoint, ScalePop, ScaleRow, ScaleSize, Scaling,
};
pub use sites::{CodeAddress, Site, SiteStack, SiteSummary, Sites, SitesSummary};
pub use statistics::{Statistic, Statistics};
pub use summary::{
    BadEnding, CoverageSummary, InMpiSummary, LeftOut, ObjectsLeftOutSummary, ObjectsMadeSummary,
    OverheadSummary, Ranks, ReducedInMpi, SkippedSummary, Summary, Warning,
};
pub use traffic::{
    DistanceTraffic, HostTraffic, MatrixRow, PairTraffic, PeerTraffic, Peers, RankTraffic,
    TrafficKind, TrafficSummary,
};
pub use tuning::{
    Assignment, Gain, Took, Trial, TrialVerdict, TuneEnd, TuneMetric, Tuning, Witnessed,
};
pub use units::{Fidelity, Unit};
pub use values::{Digest, Values};
pub use variables::{
    Category, Cvar, Event, Item, Moment, PvarInfo, Source, Switch, Variables, described_items,
    is_described, value_text,
};
pub use waiting::{
    CommunicatorWaiting, DURATIONS_AT_MOST, LastRank, Waiting, WaitingOfRanks, WaitingSummary,
};
pub use write::{
    json_line, rank_file_name, rank_of_file_name, write_json, write_rank, write_summary,
};

/// The tag of a rank profile of this version.
pub const RANK_SCHEMA: &str = "gyan.rank/1";
/// The tag of a live file of this version.
pub const LIVE_SCHEMA: &str = "gyan.live/1";
/// The tag of a summary of this version.
pub const SUMMARY_SCHEMA: &str = "gyan.summary/1";
/// The tag of a listing of variables of this version.
pub const VARIABLES_SCHEMA: &str = "gyan.variables/1";
/// The tag of a diagnosis of this version.
pub const DOCTOR_SCHEMA: &str = "gyan.doctor/1";
/// The tag of a judgement of this version.
pub const CHECK_SCHEMA: &str = "gyan.check/1";
/// The tag of a difference of this version.
pub const DIFF_SCHEMA: &str = "gyan.diff/1";
/// The tag of what `gyan tune` found, of this version.
pub const TUNE_SCHEMA: &str = "gyan.tune/1";

/// The tag of how a program scales, of this version.
pub const SCALE_SCHEMA: &str = "gyan.scale/1";

/// The name of the summary inside a run directory.
pub const SUMMARY_FILE: &str = "summary.json";
