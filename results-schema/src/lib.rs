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
// Functions that only ask are most of this crate.
#![allow(clippy::must_use_candidate)]

mod addresses;
mod alike;
mod archive_report;
mod call;
mod class;
mod cost;
mod counters;
mod coverage;
mod crash;
mod critical_path;
mod data;
mod datatype;
mod diagnosis;
mod difference;
mod figures;
mod findings;
mod host_counters;
mod hosts;
mod job;
mod judgement;
mod knobs;
mod live;
mod loads;
mod lock_times;
mod machine;
mod merge;
mod message_times;
mod messages;
mod now;
mod number;
mod objects;
mod openmp;
mod order;
mod phase;
mod process_note;
#[cfg(test)]
mod properties;
mod pvar;
mod queues;
mod ranges;
mod rank;
mod read;
mod reader;
mod readings;
mod record;
mod reduction;
mod regular;
mod samples;
mod scaling;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(feature = "site")]
mod site_settings;
mod sites;
mod statistics;
mod summary;
mod timeline;
mod traffic;
mod tuning;
mod units;
mod values;
mod variables;
mod waiting;
mod watch;
mod without;
mod write;

pub use addresses::{Address, LoadedObject, Stack};
pub use alike::unfold;
pub use archive_report::{
    ArchiveChange, ArchiveChangeKind, ArchiveHours, ArchiveProgram, ArchiveReport, ArchiveUser,
    ArchiveWeek, SlowHost, SlowerProgram,
};
pub use call::{Call, CallSummary, InMpi, InMpiSummary};
pub use class::{Class, Element, Measure};
pub use cost::{Clock, Overhead, OverheadSummary};
pub use counters::{Counters, Counts, CountsInMpi};
pub use coverage::{
    Coverage, CoverageSummary, ObjectsLeftOut, ObjectsLeftOutSummary, Skipped, SkippedSummary,
};
pub use crash::{CodeSeen, CrashSeen};
pub use critical_path::{CriticalPath, PathOfRank};
pub use datatype::Datatype;
pub use diagnosis::{Check, Diagnosis, Exports, Verdict};
pub use difference::{
    Change, ChangeVerdict, Difference, FindingDifference, NumberDifference, NumberGroup,
    NumberKind, PartDifference, PartKind, PhaseDifference, SetupDifference, Shift, Side,
    SideNumber, Split,
};
pub use figures::Figure;
pub use findings::{
    Actor, Advice, AlsoTrue, CommunicationSplit, Efficiencies, Evidence, Finding,
    HybridEfficiencies, PhaseEfficiencies,
};
pub use host_counters::{
    EnergyKind, HostCounters, HostCountersSummary, NetworkCount, NetworkCountKind, PartEnergy,
};
pub use hosts::{Differing, HostDifference, HostMeasure, HostStatistic, HostSummary};
pub use job::{BadEnding, CvarSetting, End, Ending, Job, Label, Mpi, Tool};
pub use judgement::{CheckResult, CheckRule, JudgedRow, Judgement};
pub use knobs::{KNOBS, Knob, is_knob};
pub use live::{
    LiveEntry, LiveFile, LiveRank, LiveText, end_of_process, is_live_file_name, live_file_name,
    parse_live, write_live,
};
pub use loads::Loads;
pub use lock_times::{LockCall, LockEpoch, LockTimes, WindowLocks};
pub use machine::{
    Cgroup, CoreKind, Crowded, Machine, MachineSummary, Network, OpenMpRuntime, PlacementSummary,
    Resources, ResourcesSummary, ThreadLoad, Threads, Transport,
};
pub use merge::add_histogram;
pub use message_times::{
    MessageDirection, MessageFunctionWaiting, MessagePlace, MessageStream, MessageTime,
    MessageTimes, MessageWaitingSummary, PairWaiting, STREAM_TIMES_AT_MOST, Signal,
};
pub use messages::{
    EventCount, EventSummary, MessageMetric, MessageSource, Messages, MessagesSummary, Metric,
    MetricSummary, PairSummary, PeerQueues, Traffic,
};
pub use now::{
    CallPlace, CommunicatorNow, Doing, EndedFrom, FrameNow, GroupNow, HangCause, HangKind, JobNow,
    OperationNow, Peer, RankDoing, RankNow, StackNow, WithoutStack,
};
pub use number::Number;
pub use objects::{ObjectsMade, ObjectsMadeSummary};
pub use openmp::{OpenMp, OpenMpRegion, OpenMpRegionSummary, OpenMpSummary};
pub use order::{collected, sort_by};
pub use phase::{Phase, PhaseCounters, PhasePvar, PhaseSummary};
pub use process_note::{ProcessNote, ProcessStart};
pub use pvar::{Pvar, PvarSummary};
pub use queues::{OnRank, Quantity, QueueRow, QueueSource};
pub use ranges::Ranges;
pub use rank::RankProfile;
pub use read::{
    ReadError, Whose, parse_rank, parse_rank_without, parse_summary, read_rank, read_rank_part,
    read_rank_without, read_summary, read_tuning, read_variables,
};
pub use reader::RankReader;
pub use readings::{Reading, Readings};
pub use record::{JobRecord, RECORD_BYTES, RECORD_HOSTS, RECORD_SUFFIX, RecordError, Shortening};
pub use reduction::{ClockOffsets, Reduction, ReductionInOrder};
pub use regular::{open_regular, read_regular};
pub use samples::{
    SampledSum, Samples, SamplesSummary, Series, SeriesColumn, StateShare, StateSummary,
};
pub use scaling::{
    Fit, Growth, Predicted, ScaleComputation, ScaleHybrid, ScaleKind, ScalePoint, ScalePop,
    ScaleRow, ScaleSize, Scaling,
};
#[cfg(feature = "site")]
pub use site_settings::{SiteError, SiteSettings};
pub use sites::{CodeAddress, Site, SiteStack, SiteSummary, Sites, SitesSummary};
pub use statistics::{Statistic, Statistics};
pub use summary::{LeftOut, Ranks, ReducedInMpi, Summary, Warning};
pub use timeline::{
    TIMELINE_EVENT_BYTES, TimelineClock, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineIteration, TimelineIterations, TimelineKind, TimelineLabel, TimelineMessages,
    TimelinePeer, TimelineRing, TimelineSelection, parse_timeline, rank_of_timeline_name,
    timeline_file_name, write_timeline,
};
pub use traffic::{
    DistanceTraffic, HostTraffic, MatrixRow, PairTraffic, PeerTraffic, Peers, RankTraffic,
    TrafficKind, TrafficSummary,
};
pub use tuning::{
    Assignment, Gain, Took, Trial, TrialVerdict, TuneEnd, TuneMetric, Tuning, Witnessed,
};
pub use units::{Fidelity, Unit, parse_bytes};
pub use values::{Digest, Values};
pub use variables::{
    Category, Cvar, Event, Item, Moment, PvarInfo, Source, Switch, Variables, described_items,
    is_described, value_text,
};
pub use waiting::{
    CallStarts, CommunicatorWaiting, DURATIONS_AT_MOST, LastRank, Waiting, WaitingOfRanks,
    WaitingSummary, WaitsFor, only_starts,
};
pub use watch::{Hit, Watch, WatchSite, WatchSiteSummary, WatchSummary};
pub use write::{
    json_line, rank_file_name, rank_of_file_name, write_json, write_rank, write_summary,
};

/// The tag of a rank profile of this version.
pub const RANK_SCHEMA: &str = "gyan.rank/1";
/// The tag of a live file of this version.
pub const LIVE_SCHEMA: &str = "gyan.live/1";
/// The tag of a summary of this version.
pub const SUMMARY_SCHEMA: &str = "gyan.summary/1";
/// The schema of a job's record in the archive of a site.
pub const RECORD_SCHEMA: &str = "gyan.record/1";
/// The tag of what the jobs of a site have in common, of this version.
pub const ARCHIVE_REPORT_SCHEMA: &str = "gyan.archive-report/1";
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

/// The tag of what ranks do now, of this version.
pub const NOW_SCHEMA: &str = "gyan.now/1";

/// The tag of the timeline of a rank, of this version.
pub const TIMELINE_SCHEMA: &str = "gyan.timeline/1";

/// The name of the summary inside a run directory.
pub const SUMMARY_FILE: &str = "summary.json";
