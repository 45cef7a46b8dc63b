//! The profile of one rank: schema `gyan.rank/1`.

use serde::{Deserialize, Serialize};

use crate::{
    Clock, Datatype, EventCount, InMpi, Knob, Machine, Messages, Peers, Phase, Resources, Samples,
    Series, Sites, Values, Waiting, Watch,
};

/// What one rank of a job saw, from `MPI_Init` to its end.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_mpi: Option<InMpi>,
    /// What the rank sent to each of the others; none when that was not counted (`GYAN_PEERS=off`), or without
    /// `MPI_COMM_WORLD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Peers>,
    /// What happened in each phase, in the order in which they came; empty for a program without phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Sampled variables over time; none unless `GYAN_SERIES` asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Receives that were watched; none unless `GYAN_WATCH` asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// The description of the host; none unless the rank is the first on it, or with `GYAN_MACHINE=off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The part of the host that the rank may use, and what it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Where in the program the timed calls came from; none with `GYAN_SITES=off`, or when none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<Sites>,
    /// How long the same calls of synchronising collectives took on each rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// What each source reported about messages; empty unless `GYAN_EVENTS` asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Messages>,
    /// The events of `MPI_T` that were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCount>,
    /// What the library exports and which of it was not read.
    pub coverage: Coverage,
    /// The clock; none in profiles of early versions of gyan that did not read one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// What a reader of the numbers should know.
    pub warnings: Vec<String>,
    /// What gyan itself cost. This is the last key, so that it can include the cost of writing all others.
    pub overhead: Overhead,
}

/// Objects of MPI of one kind that came back from calls of a rank, and those that it freed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ObjectsMade {
    /// `communicator`, `window` or `file`.
    pub kind: String,
    /// Handles that are not null.
    pub made: u64,
    /// Freed, closed or disconnected.
    pub freed: u64,
}

/// The program that wrote a file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Tool {
    /// Always `gyan`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This version of gyan.
    #[must_use]
    pub fn gyan() -> Tool {
        Tool { name: "gyan".into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Which run of which program this is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    /// Seconds from `MPI_Init` to the end.
    pub elapsed_s: f64,
}

/// A label of a run, such as the size of its problem.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Label {
    /// Its name, such as `size`.
    pub name: String,
    /// Its value in this run.
    pub value: String,
}

/// The MPI library.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
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

/// How a rank ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct End {
    /// By what.
    pub how: Ending,
    /// The code that came with it; 0 for `MPI_Finalize`.
    pub code: i32,
}

/// What ended a rank.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
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
    Unknown,
}

/// A class of performance variables (MPI 4.1, 15.3.7).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Class {
    State,
    Level,
    Size,
    Percentage,
    HighWatermark,
    LowWatermark,
    Counter,
    Aggregate,
    Timer,
    Generic,
}

impl Class {
    /// Every class, in the order of the standard.
    pub const ALL: [Class; 10] = [
        Class::State,
        Class::Level,
        Class::Size,
        Class::Percentage,
        Class::HighWatermark,
        Class::LowWatermark,
        Class::Counter,
        Class::Aggregate,
        Class::Timer,
        Class::Generic,
    ];

    /// The standard's name, without the prefix `MPI_T_PVAR_CLASS_`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether variables of this class only grow, so that the difference of two readings says what happened in
    /// between.
    #[must_use]
    pub fn accumulates(self) -> bool {
        matches!(self, Class::Counter | Class::Aggregate | Class::Timer)
    }
}

/// One performance variable, bound to one object.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Pvar {
    /// Its name; unique only together with the class.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it really behaves as, if the library is known to be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The datatype of an element.
    pub datatype: Datatype,
    /// The kind of object that it binds to, such as `MPI_COMM`; none for `MPI_T_BIND_NO_OBJECT`.
    pub bind: Option<String>,
    /// The object that it is bound to here, such as `MPI_COMM_WORLD`.
    pub object: Option<String>,
    /// The verbosity level, without the prefix `MPI_T_VERBOSITY_`.
    pub verbosity: String,
    /// Whether it runs all the time.
    pub continuous: bool,
    /// Whether it cannot be written.
    pub readonly: bool,
    /// Whether it can be read and reset in one step.
    pub atomic: bool,
    /// Number of elements.
    pub count: usize,
    /// The reading after `MPI_Init`; none for a variable that appeared later.
    pub start: Option<Values>,
    /// The reading before `MPI_Finalize`; none when it failed.
    pub end: Option<Values>,
    /// `end - start` of a variable that accumulates, wrapping in the datatype's own width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Values>,
    /// Its readings while the program ran; none for a variable that was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// What a reader of this number should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The names of other variables, of which all the rest is true too, in a file: gyan lists those that were always 0
    /// so. Each is a word: how many bytes it has in common with the beginning of the name before it (of `name`, for
    /// the first), a colon, and the rest. After `bytes_from_a`, `11:b` is
    /// `bytes_from_b`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub also: String,
}

impl Pvar {
    /// What identifies a variable: name, class and object.
    #[must_use]
    pub fn identity(&self) -> (&str, Class, Option<&str>) {
        (&self.name, self.class, self.object.as_deref())
    }

    /// The class that decides how it is reported.
    #[must_use]
    pub fn effective_class(&self) -> Class {
        self.behaves_as.unwrap_or(self.class)
    }

    /// Adds the readings of the same variable after MPI was initialised again: the differences add up, the
    /// reading at the end is the later one. False when it is not the same variable.
    pub fn continued(&mut self, later: &Pvar) -> bool {
        if self.identity() != later.identity() {
            return false;
        }
        let Pvar {
            name: _,
            class: _,
            behaves_as: _,
            datatype: _,
            bind: _,
            object: _,
            verbosity: _,
            continuous: _,
            readonly: _,
            atomic: _,
            count: _,
            start: _,
            end,
            delta,
            samples,
            notes,
            also: _,
        } = later;
        self.delta = match (&self.delta, delta) {
            (Some(earlier), Some(later)) => earlier.plus(later),
            _ => None,
        };
        self.end.clone_from(end);
        match (&mut self.samples, samples) {
            (Some(samples), Some(later)) => samples.extend(later),
            (samples @ None, later) => samples.clone_from(later),
            (Some(_), None) => {}
        }
        for note in notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        true
    }
}

/// A control variable as it was set in a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
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

/// How often a function of MPI was called, and how long that took.
///
/// The count is exact. The times are an unbiased estimate from the calls that were timed; when all
/// were, they are exact too and their standard error is 0.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Call {
    /// Its name in C.
    pub name: String,
    /// The exact number of calls by the program; calls that MPI makes internally do not count.
    pub count: u64,
    /// Bytes that the calls handed to MPI: sent, contributed to a collective operation, or requested from a
    /// window or a file. None when that is not counted, as for receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How many calls were timed.
    #[serde(default)]
    pub timed: u64,
    /// Seconds in all calls; none when none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// The standard error of `time_s`; none when the calls that were timed cannot tell it: then `time_s` is a
    /// lower bound. It is also a lower bound when the error exceeds half of it; the error is then half of the
    /// longest time that the calls can have taken in addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_s: Option<f64>,
    /// Seconds of the longest call that was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_max_s: Option<f64>,
    /// How many calls took less than 1 ns, [1, 2), [2, 4), [4, 8), ... ns: an estimate like the time, up to the
    /// last that is not 0. For the whole run, not for a phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_histogram: Vec<u64>,
    /// How many calls moved 0 bytes, 1, [2, 4), [4, 8), ... bytes, up to the last that is not 0; exact. Only
    /// calls that succeeded are included; the last of 48 bars has all from 2^46 bytes up. For the whole run,
    /// not for a phase, and empty when bytes are not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram: Vec<u64>,
    /// The bytes of the calls in each of those bars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram_bytes: Vec<u64>,
}

/// What the library exports, what of it was read, and what was not, with the reasons.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Coverage {
    /// Number of performance variables that the library exports.
    pub exported: usize,
    /// Number of those that were read.
    pub sampled: usize,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// The communicators, windows and files that are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectsLeftOut>,
    /// What is missing from events and the watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// What would give more.
    pub advice: Vec<String>,
}

/// A variable that was not read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Skipped {
    /// Its index in the library.
    pub index: usize,
    /// Its name, if the library gives one.
    pub name: Option<String>,
    /// Why it was not read.
    pub reason: String,
}

/// Communicators, windows or files that the profile does not cover.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ObjectsLeftOut {
    /// One of them: its kind and its size in ranks.
    pub what: String,
    /// How many.
    pub number: u64,
    /// Why.
    pub reason: String,
}

/// The time that gyan spent in this process.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Overhead {
    /// Seconds in `MPI_T_init_thread` of the library.
    pub mpit_init_s: f64,
    /// Seconds that gyan added to `MPI_Init`, `mpit_init_s` excluded.
    pub init_s: f64,
    /// Seconds that gyan spent reading variables in between: at calls, when objects came and went,
    /// and between phases; and writing to the live file.
    #[serde(default)]
    pub sampling_s: f64,
    /// Seconds that gyan spent counting and timing calls, summed over all threads: their numbers times the cost
    /// of each, measured at the start.
    #[serde(default)]
    pub wrappers_s: f64,
    /// Seconds that gyan spent in callbacks of the library, summed over all threads: their number times the
    /// measured cost of some of them.
    #[serde(default)]
    pub events_s: f64,
    /// Seconds that gyan added to the end, up to the last write of this profile.
    pub finalize_s: f64,
    /// `(init_s + sampling_s + wrappers_s + events_s + finalize_s) / elapsed_s`.
    pub share: f64,
    /// `(sampling_s + wrappers_s + events_s) / elapsed_s`: the cost that the budget limits.
    #[serde(default)]
    pub running_share: f64,
    /// The share that `GYAN_BUDGET` allows; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
}

impl Overhead {
    /// Seconds that the run took longer to begin because of gyan. In MPI libraries that would do the work of
    /// `mpit_init_s` themselves, `MPI_Init` is shorter for it.
    #[must_use]
    pub fn start_s(&self) -> f64 {
        self.mpit_init_s + self.init_s
    }

    /// Whether gyan cost more than it was allowed to.
    #[must_use]
    pub fn is_over_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.running_share > budget)
    }
}
