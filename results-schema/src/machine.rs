//! What the ranks ran on: the hosts, the part of them that each rank may use, and what it used.

use crate::counters::{Counters, Counts};
use crate::data::{Data, Serialize, apply, datum, derive};
use crate::merge::{Lowest, reduced};
use crate::ranges::Ranges;
use crate::statistics::{Statistic, Statistics};

/// A host, as the kernel describes it, and what the MPI library has loaded for it. Written by the first rank on
/// each host, or by every rank if the launcher does not say which is the first.
#[derive(Data!, Serialize, Default, Eq, Ord, PartialOrd)]
pub struct Machine {
    /// The name and release of its kernel, such as `Linux 5.14.0-427.13.1.el9_4.x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The model of its processors.
    pub processor: Option<String>,
    /// The logical processors that are online, as ranges: `0-3,8`; empty when the kernel does not say.
    pub processors: String,
    /// Number of logical processors that are present but not online.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processors_offline: u64,
    /// Number of cores that are online.
    pub cores: Option<u64>,
    /// Number of threads that the core with the most threads has online.
    pub threads_per_core: Option<u64>,
    /// The logical processors of each core; empty when each core has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_processors: Vec<String>,
    /// The kinds of cores of a hybrid processor; empty when all are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_kinds: Vec<CoreKind>,
    /// Number of processor packages.
    pub packages: Option<u64>,
    /// Number of NUMA nodes.
    pub numa_nodes: Option<u64>,
    /// Bytes of memory that the kernel manages.
    pub memory_bytes: Option<u64>,
    /// Yama's limit on which processes may read each other's memory (`/proc/sys/kernel/yama/ptrace_scope`): 0
    /// all of the same user, also when the kernel has no such limit; 1 descendants, and processes that were
    /// allowed to; 2 only with `CAP_SYS_PTRACE`; 3 none.
    pub ptrace_scope: Option<u64>,
    /// Whether the process has `CAP_SYS_PTRACE`, so that only a scope of 3 keeps it from the memory of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ptrace_capability: bool,
    /// The network interfaces that MPI libraries bypass the kernel with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Network>,
    /// Loaded libraries and components that move messages, sorted. Those built into the MPI library itself are
    /// not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
}

/// Cores of one kind.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct CoreKind {
    /// The kernel's name for the kind, such as `cpu_atom`.
    pub kind: String,
    /// Their logical processors, as ranges.
    pub processors: String,
}

/// A port of a network interface.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct Network {
    /// The device, and the port if it has several: `mlx5_0`, `mlx5_0:2`.
    pub device: String,
    /// What kind it is, such as `InfiniBand`.
    pub kind: String,
    /// Its rate as the kernel writes it, such as `100 Gb/sec (4X EDR)`.
    pub rate: Option<String>,
    /// Its state as the kernel writes it, such as `ACTIVE`.
    pub state: Option<String>,
}

/// A library or a component that moves messages.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct Transport {
    /// Its file, without `lib` and `.so`: `mca_btl_vader`, `ucp`.
    pub name: String,
    /// What it is.
    pub what: String,
}

/// The part of its host that a rank may use, and what it used. Exact, as the kernel counts it.
#[apply(datum!)]
#[derive(Default)]
pub struct Resources {
    /// The logical processors that the rank may run on, as ranges: the affinity of the thread that
    /// initialised MPI, just after that. Empty when the kernel does not say.
    pub processors: String,
    /// The limits of its control group; none if there are none.
    pub cgroup: Option<Cgroup>,
    /// Seconds of processor time in the program, of all threads, since `MPI_Init`.
    pub user_s: f64,
    /// Seconds of processor time in the kernel, of all threads, since `MPI_Init`.
    pub system_s: f64,
    /// How often a thread gave up its processor, to wait, since `MPI_Init`.
    pub voluntary_switches: u64,
    /// How often the kernel took its processor from a thread, since `MPI_Init`.
    pub involuntary_switches: u64,
    /// Seconds for which its first thread was ready to run and had no processor, as the kernel's scheduler counts
    /// them (proc(5), `/proc/PID/schedstat`).
    pub processor_wait_s: Option<f64>,
    /// How many processors it used on average since `MPI_Init`, with the threads that have ended: its processor time
    /// by the time that has passed.
    pub processors_used: Option<f64>,
    /// Its threads; none when the kernel does not say.
    pub threads: Option<Threads>,
    /// Its OpenMP runtime; none if none was loaded.
    pub openmp: Option<OpenMpRuntime>,
    /// Page faults without input or output, since `MPI_Init`.
    pub minor_faults: u64,
    /// Page faults that had to read, since `MPI_Init`.
    pub major_faults: u64,
    /// The most memory that the process had resident since it began, in bytes.
    pub peak_memory_bytes: u64,
    /// The same, at `MPI_Init`.
    pub start_peak_memory_bytes: u64,
    /// What the processor counted; none where it could not be asked.
    pub counters: Option<Counters>,
    /// Why there are no counters; none in profiles of a gyan that did not look for them.
    pub counters_absent: Option<String>,
}

/// The threads that a rank had when its profile was made. One is busy if it ran, or was ready to run, for at least a
/// tenth of the time since `MPI_Init`, and ran for a twentieth of the time in which it was not kept waiting.
#[derive(Data!, Serialize, Default)]
pub struct Threads {
    /// How many there were, with those of libraries and of gyan.
    pub number: u64,
    /// How many of them were busy.
    pub busy: u64,
    /// Seconds for which a busy thread was ready to run and had no processor, on average over these threads, since
    /// `MPI_Init`; none when the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_wait_s: Option<f64>,
    /// Where the busy threads might run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<ThreadLoad>,
}

/// Processors that equally many busy threads might run on.
#[derive(Data!, Serialize, Default)]
pub struct ThreadLoad {
    /// The logical processors, as ranges.
    pub processors: String,
    /// Busy threads on each of them; one that might run on several counts as a fraction on each.
    pub threads: f64,
}

/// An OpenMP runtime that a rank has loaded.
#[derive(Data!, Serialize, Default)]
pub struct OpenMpRuntime {
    /// Its file, without `.so`: `libgomp`, `libomp`, `libiomp5`.
    pub runtime: String,
    /// `OMP_NUM_THREADS` at `MPI_Init`; none when it was not set.
    pub num_threads: Option<String>,
    /// What else the environment told it at `MPI_Init`, as `NAME=VALUE`, in the order of the names: `OMP_*`, `GOMP_*` and `KMP_*`,
    /// but for tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

/// The limits of a control group, versions 1 and 2: the tightest of the groups that the process is in.
#[derive(Data!, Serialize, Default)]
pub struct Cgroup {
    /// The path of the group that limits processor time; none when no group does.
    pub path: Option<String>,
    /// How much processor time the processes of that group may use together, in processors.
    pub processor_limit: Option<f64>,
    /// How much memory the processes of a group may use together, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The logical processors that the group may run on, if the rank may not run on all of them.
    pub processors: Option<String>,
}

/// Hosts that are alike.
#[derive(Data!, Serialize)]
pub struct MachineSummary {
    /// Their names, sorted.
    pub hosts: Vec<String>,
    /// The description that they share.
    pub machine: Machine,
}

/// Hosts on which equally many ranks share equally many processors.
#[derive(Data!, Serialize)]
pub struct PlacementSummary {
    /// Their names, sorted.
    pub hosts: Vec<String>,
    /// Number of ranks on each host, of those that are in the summary.
    pub ranks: u64,
    /// Number of their busy threads, if there are more of them than ranks; a rank without one counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Number of logical processors that any of these ranks may run on.
    pub processors: u64,
    /// Number of cores that these processors are on; none when the cores of the host are not known.
    pub cores: Option<u64>,
    /// How much processor time the control groups of the ranks allow all of them together, in processors; none
    /// when a rank has no limit.
    pub processor_limit: Option<f64>,
    /// Whether there are more ranks, or busy threads, than that.
    pub is_oversubscribed: bool,
    /// Cores with more than their share of the ranks, while others are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<Crowded>,
}

impl PlacementSummary {
    /// How many ranks or threads want to run at a time.
    pub fn demand(&self) -> u64 {
        self.threads.unwrap_or(self.ranks)
    }

    /// How many ranks or threads can run at a time.
    pub fn capacity(&self) -> f64 {
        let processors = self.processors as f64;
        self.processor_limit.map_or(processors, |limit| limit.min(processors))
    }
}

/// Cores to which more than one rank or busy thread is bound, although other cores are free.
#[derive(Data!, Serialize)]
pub struct Crowded {
    /// The logical processors of these cores, as ranges.
    pub processors: String,
    /// The number of ranks on the core with the most; a rank that may run on several processors counts as a
    /// fraction on each.
    pub ranks_per_core: f64,
    /// The same of busy threads, if there are more of them on the host than ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<f64>,
    /// Number of cores that no rank or busy thread of the job may run on, but could if it were not bound.
    pub free_cores: u64,
}

reduced! {
    /// What the ranks used, over the ranks that report it.
    Resources => ResourcesReduction => ResourcesSummary by () {
        /// Number of logical processors that a rank may run on.
        processors: Statistic = Statistics => |of| of.processors.parse::<Ranges>().unwrap_or_default().len(),
        /// Bytes of memory that the control group of a rank may use, over the ranks that have such a limit.
        + memory_limit_bytes: Option<Statistic> = Option<Statistics> => |of| of.memory_limit_bytes(),
        /// Seconds of processor time in the program.
        user_s: Statistic = Statistics,
        /// Seconds of processor time in the kernel.
        system_s: Statistic = Statistics,
        /// How often a thread gave up its processor.
        voluntary_switches: Statistic = Statistics,
        /// How often the kernel took its processor from a thread.
        involuntary_switches: Statistic = Statistics,
        /// Seconds for which the first thread was ready to run and had no processor.
        processor_wait_s: Option<Statistic> = Option<Statistics>,
        /// How many processors a rank used on average.
        processors_used: Option<Statistic> = Option<Statistics>,
        /// Number of threads at the end.
        threads: Option<Statistic> = Option<Statistics> => |of| of.threads.as_ref().map(|of| of.number),
        /// Number of threads that ran, or were ready to, for at least a tenth of the run, and were no helpers that waited.
        + busy_threads: Option<Statistic> = Option<Statistics> => |of| of.threads.as_ref().map(|of| of.busy),
        /// Seconds for which a busy thread was ready to run and had no processor, on average over those of a rank.
        + thread_wait_s: Option<Statistic> = Option<Statistics> => |of| of.threads.as_ref().and_then(|of| of.processor_wait_s),
        /// The OpenMP runtime of the lowest rank.
        openmp: Option<OpenMpRuntime> = Lowest<Option<OpenMpRuntime>>,
        /// Page faults without input or output.
        minor_faults: Statistic = Statistics,
        /// Page faults that had to read.
        major_faults: Statistic = Statistics,
        /// The most memory that the process had resident, in bytes.
        peak_memory_bytes: Statistic = Statistics,
        /// Instructions outside MPI, of the thread that initialised it.
        + useful_instructions: Option<Statistic> = Option<Statistics> => |of| {
            of.useful().map(|useful| useful.instructions)
        },
        /// Cycles outside MPI.
        + useful_cycles: Option<Statistic> = Option<Statistics> => |of| {
            of.useful().map(|useful| useful.cycles)
        },
        /// Instructions per cycle outside MPI.
        + useful_ipc: Option<Statistic> = Option<Statistics> => |of| {
            of.useful().and_then(|useful| useful.ipc())
        },
        /// Cache misses of the last level per 1000 instructions, outside MPI.
        + useful_misses_per_1000: Option<Statistic> = Option<Statistics> => |of| {
            of.useful().and_then(|useful| useful.misses_per_1000())
        },
        /// Instructions per cycle, in MPI too.
        + ipc: Option<Statistic> = Option<Statistics> => |of| {
            of.counters.as_ref().and_then(|counters| counters.total.ipc())
        },
        /// Cycles a second of processor time, in MPI too.
        + frequency_hz: Option<Statistic> = Option<Statistics> => |of| {
            of.counters.as_ref().and_then(Counters::frequency_hz)
        },
        /// The part of their time on a processor in which the counters counted.
        + counted_share: Option<Statistic> = Option<Statistics> => |of| {
            of.counters.as_ref().map(|counters| counters.counted_share)
        },
        /// Why there are no counters, according to the lowest rank.
        counters_absent: Option<String> = Lowest<Option<String>>,
    } without (cgroup, start_peak_memory_bytes, counters)
}

impl Resources {
    fn memory_limit_bytes(&self) -> Option<u64> {
        self.cgroup.as_ref()?.memory_limit_bytes
    }

    fn useful(&self) -> Option<Counts> {
        self.counters.as_ref()?.useful()
    }
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
