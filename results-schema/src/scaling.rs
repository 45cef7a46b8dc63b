//! How a program scales: its runs at several sizes, and the laws by which its numbers grow. Schema
//! `gyan.scale/1`.

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::{Tool, Unit};

/// Runs of one program at several sizes.
#[derive(Data!, Serialize)]
pub struct Scaling {
    /// [`SCALE_SCHEMA`](crate::SCALE_SCHEMA).
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// The program: the name of its file.
    pub program: String,
    /// What the size is: `ranks`, or the name of a setting.
    pub by: String,
    /// Whether the work grows with the number of ranks; otherwise it is the same at each size.
    pub is_weak: bool,
    /// The size for which numbers are predicted.
    pub target: f64,
    /// The sizes, the smallest first.
    pub sizes: Vec<ScaleSize>,
    /// The last size at which all ranks are on as many hosts as at the first, if a later one takes more hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_boundary: Option<f64>,
    /// The numbers at each size: those with the largest predicted share of the run time first, then those that
    /// grow most.
    pub rows: Vec<ScaleRow>,
    /// What cannot be compared, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// One size: one run or several.
#[apply(datum!)]
pub struct ScaleSize {
    /// The size.
    pub size: f64,
    /// The runs, as they were named.
    pub runs: Vec<String>,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of hosts.
    pub hosts: usize,
    /// Whether ranks share processors, so that times mean little.
    pub is_oversubscribed: bool,
    /// Seconds of the run: of the rank that takes longest; the median of the runs.
    pub run_s: f64,
    /// The shortest and the longest of several runs.
    pub run_range_s: Option<[f64; 2]>,
    /// How many times as fast as at the smallest size; if the work grows, times the work.
    pub speed_up: Option<f64>,
    /// The speed-up as a fraction of the ideal one, which is the number of ranks as a multiple of that of the
    /// smallest size.
    pub efficiency: Option<f64>,
    /// The efficiencies of POP, the median of the runs.
    pub pop: Option<ScalePop>,
}

/// The efficiencies of POP at one size (see [`Efficiencies`](crate::Efficiencies)).
#[apply(datum!)]
#[derive(Copy)]
pub struct ScalePop {
    /// 1 when each rank has the same work.
    pub load_balance: f64,
    /// 1 when the rank with the most work spends no time in MPI.
    pub communication: f64,
    /// 1 when no rank with the most work has to wait for others; none when that is not known of each run.
    pub serialisation: Option<f64>,
    /// 1 when moving data takes no time: with `serialisation` it makes `communication`.
    pub transfer: Option<f64>,
    /// Whether ranks may have waited longer than is known: then `serialisation` is at most this, and `transfer` at least.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bound: bool,
    /// The part of the time of all ranks that is spent outside MPI.
    pub parallel: f64,
    /// The time outside MPI of all ranks at the smallest size, as a multiple of that at this size; if the work
    /// grows, of one rank.
    pub computation: f64,
    /// What makes up `computation`; none when the instructions and cycles of a run are not known.
    pub computation_parts: Option<ScaleComputation>,
    /// `parallel` x `computation`.
    pub global: f64,
    /// Those of the threads of OpenMP; none when they are not known of each run.
    pub hybrid: Option<ScaleHybrid>,
}

/// The efficiencies of the threads at one size (see [`HybridEfficiencies`](crate::HybridEfficiencies)), the median of the runs.
#[derive(Data!, Serialize, Copy)]
pub struct ScaleHybrid {
    /// Threads of all ranks.
    pub threads: f64,
    /// 1 when threads lose nothing to MPI.
    pub mpi: f64,
    /// 1 when threads are never idle outside MPI.
    pub openmp: f64,
    /// `mpi` x `openmp`.
    pub parallel: f64,
}

/// Why the time outside MPI changes with the size: `instructions` x `ipc` x `frequency` is the computation scalability of POP.
#[derive(Data!, Serialize, Copy)]
pub struct ScaleComputation {
    /// The instructions outside MPI of all ranks at the smallest size, as a multiple of those at this size; if the work grows, of
    /// one rank.
    pub instructions: f64,
    /// Instructions per cycle outside MPI, as a multiple of those at the smallest size.
    pub ipc: f64,
    /// Cycles a second outside MPI, as a multiple of those at the smallest size.
    pub frequency: f64,
}

/// The kind of a number.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum ScaleKind {
    /// Seconds of the whole run.
    RunTime,
    /// Seconds in MPI.
    InMpi,
    /// Seconds outside MPI.
    OwnCode,
    /// Seconds in a function.
    Time,
    /// Calls of a function.
    Calls,
    /// Bytes that a function was given.
    Bytes,
    /// A performance variable.
    Variable,
    /// The queues of messages.
    Queue,
    /// What the process used of the machine.
    Resource,
    /// How many other ranks a rank sends to.
    Peers,
    /// Seconds in which a rank waits for others, as part of the time in MPI. Only the average over the ranks is known: it stands
    /// for the minimum and the maximum too.
    Waiting,
}

/// One number over the sizes.
#[apply(datum!)]
pub struct ScaleRow {
    /// Its kind.
    pub kind: ScaleKind,
    /// The name of the function, the variable, or whatever it is.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The number at each size that has it.
    pub points: Vec<ScalePoint>,
    /// How the average over the ranks grows.
    pub average: Fit,
    /// How the maximum over the ranks grows.
    pub maximum: Fit,
    /// How the maximum as a multiple of the average grows; none when that is 1 at every size.
    pub imbalance: Option<Fit>,
    /// Its share of the run time at the largest size, for the times that make up the run, own code and functions; and for
    /// waiting, which is part of them.
    pub share: Option<f64>,
    /// The same at the target according to the laws: its share of the sum of all such predictions.
    pub target_share: Option<f64>,
}

/// One number at one size, over ranks: the median of the runs of that size. For the run time and its parts, those of the run of
/// middle length, so that parts add up.
#[derive(Data!, Serialize, Copy)]
pub struct ScalePoint {
    /// The size.
    pub size: f64,
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub avg: f64,
    /// The largest.
    pub max: f64,
    /// The smallest and the largest mean of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// How a number grows.
#[apply(datum!)]
pub struct Fit {
    /// The law.
    pub growth: Growth,
    /// The error of the law at a size that it was not fitted to: the root mean square of the relative errors,
    /// with each size left out once. None if there is no law.
    pub error: Option<f64>,
    /// A size at which the number is far from the law that all others follow, and which was therefore left out.
    pub outlier: Option<f64>,
    /// The prediction of the law at the target.
    pub predicted: Option<Predicted>,
    /// The law at sizes from the smallest to the target, for a picture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Predicted>,
}

/// The value of a law at a size, and from where to where the laws lead that fit about as well, with the noise of the runs. A new run
/// lies in between in about 85 to 95 of 100 cases, if one of these laws is right.
#[derive(Data!, Serialize, Copy)]
pub struct Predicted {
    /// The size.
    pub size: f64,
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The shapes of growth that gyan distinguishes.
#[derive(Data!, Serialize, Copy)]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum Growth {
    /// 0 at every size.
    Zero,
    /// The same at every size, except for noise.
    Constant {
        /// The mean.
        value: f64,
    },
    /// `constant + coefficient * p^exponent * log2(p)^logarithms`.
    Law {
        /// The part that does not depend on the size.
        constant: f64,
        /// The coefficient of the term.
        coefficient: f64,
        /// The exponent of the size.
        exponent: f64,
        /// The exponent of its logarithm.
        logarithms: i32,
    },
    /// Too few sizes for a law: only the slope on logarithmic scales. 1 is proportional, 0 is constant.
    Slope {
        /// By least squares; none when a number is 0 or below.
        slope: Option<f64>,
    },
    /// The direction changes at some size.
    Bend {
        /// The last size of the first direction.
        until: f64,
        /// The slope up to there, on logarithmic scales; none when a number is 0 or below.
        before: Option<f64>,
        /// The slope after it.
        after: Option<f64>,
        /// Whether it rises before.
        rises: bool,
        /// Whether it then stays; otherwise it reverses.
        stays: bool,
    },
    /// The sum of the laws of its parts: for the run time, and for the time in MPI.
    Sum,
    /// None of these.
    Irregular,
}
