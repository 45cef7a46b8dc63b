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

pub use addresses::*;
pub use alike::*;
pub use archive_report::*;
pub use call::*;
pub use class::*;
pub use cost::*;
pub use counters::*;
pub use coverage::*;
pub use crash::*;
pub use critical_path::*;
pub use datatype::*;
pub use diagnosis::*;
pub use difference::*;
pub use figures::*;
pub use findings::*;
pub use host_counters::*;
pub use hosts::*;
pub use job::*;
pub use judgement::*;
pub use knobs::*;
pub use live::*;
pub use loads::*;
pub use lock_times::*;
pub use machine::*;
pub use merge::*;
pub use message_times::*;
pub use messages::*;
pub use now::*;
pub use number::*;
pub use objects::*;
pub use openmp::*;
pub use order::*;
pub use phase::*;
pub use process_note::*;
pub use pvar::*;
pub use queues::*;
pub use ranges::*;
pub use rank::*;
pub use read::*;
pub use reader::*;
pub use readings::*;
pub use record::*;
pub use reduction::*;
pub use regular::*;
pub use samples::*;
pub use scaling::*;
#[cfg(feature = "site")]
pub use site_settings::*;
pub use sites::*;
pub use statistics::*;
pub use summary::*;
pub use timeline::*;
pub use traffic::*;
pub use tuning::*;
pub use units::*;
pub use values::*;
pub use variables::*;
pub use waiting::*;
pub use watch::*;
pub use write::*;

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
