//! How much of the host may this process use, and what has it used?

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Instant;

use gyan_results::{Cgroup, OpenMpRuntime, Ranges, Resources};

use super::cgroups::ControlGroup;
use super::elf_objects;
use super::threads::{ThreadTimes, scheduled};

use crate::sys::kernel_files::text;
use crate::sys::topology::{field, ranges};

/// Words for the processors of a thread's affinity: more than any kernel supports.
const AFFINITY_WORDS: usize = 256;
/// In version 1, no memory limit is written as the largest number of whole pages.
const NO_MEMORY_LIMIT: u64 = 1 << 62;

/// The OpenMP runtimes of GCC, LLVM and Intel.
const OPENMP_RUNTIMES: [&str; 3] = ["gomp", "omp", "iomp5"];

/// What a process has used so far.
pub(crate) struct Usage {
    at: Instant,
    threads: ThreadTimes,
    processor_wait_s: Option<f64>,
    peak_memory_bytes: u64,
    /// What the kernel counts.
    counted: libc::rusage,
}

impl Usage {
    pub(crate) fn now() -> Usage {
        let mut counted = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage(2) writes into `counted` and nowhere else.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, counted.as_mut_ptr()) };
        // SAFETY: only numbers, which are 0 where nothing was written.
        let counted = unsafe { counted.assume_init() };
        Usage {
            at: Instant::now(),
            threads: ThreadTimes::now(Path::new("/")),
            processor_wait_s: scheduled(Path::new("/proc/self")).and_then(|of| of.wanted_s),
            // ru_maxrss includes that of the launcher, from which the process was started by exec.
            peak_memory_bytes: peak_memory(Path::new("/"))
                .unwrap_or(number(counted.ru_maxrss).saturating_mul(1024)),
            counted,
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

fn number(counted: libc::c_long) -> u64 {
    u64::try_from(counted).unwrap_or(0)
}

/// The most that this program, since exec, had resident.
fn peak_memory(root: &Path) -> Option<u64> {
    let status = text(root.join("proc/self/status"))?;
    let (number, _) = field(&status, "VmHWM")?.split_once(' ')?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// See [`OpenMpRuntime::settings`].
fn openmp_settings(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let is_setting = |name: &str| {
        ["OMP_", "GOMP_", "KMP_"].iter().any(|prefix| name.starts_with(prefix))
            && !name.starts_with("OMP_TOOL")
            && name != "OMP_NUM_THREADS"
    };
    let text = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok().filter(|name| is_setting(name))?;
        Some(format!("{name}={}", value.to_string_lossy()))
    };
    let mut settings: Vec<String> = environment.filter_map(text).collect();
    settings.sort_unstable();
    settings
}

/// What a process may use, and what it had used at the start.
pub(crate) struct Allowed {
    processors: String,
    cgroup: Option<Cgroup>,
    num_threads: Option<String>,
    openmp_settings: Vec<String>,
    start: Usage,
}

impl Allowed {
    pub(crate) fn new(start: Usage) -> Allowed {
        let processors = affinity(0);
        let num_threads = std::env::var("OMP_NUM_THREADS").ok();
        let openmp_settings = openmp_settings(std::env::vars_os());
        let cgroup = cgroup(Path::new("/"), &processors);
        Allowed { processors: processors.to_string(), cgroup, num_threads, openmp_settings, start }
    }

    /// With what was used until now.
    pub(crate) fn resources(&self) -> Resources {
        let Allowed { processors, cgroup, num_threads, openmp_settings, start } = self;
        let now = Usage::now();
        let elapsed_s = (now.at - start.at).as_secs_f64();
        let counted = |of: fn(&libc::rusage) -> libc::c_long| {
            number(of(&now.counted)).saturating_sub(number(of(&start.counted)))
        };
        let running = |of: fn(&libc::rusage) -> libc::timeval| {
            seconds(of(&now.counted)) - seconds(of(&start.counted))
        };
        let (user_s, system_s) = (running(|of| of.ru_utime), running(|of| of.ru_stime));
        let openmp = openmp_runtimes().into_iter().next().map(|runtime| runtime.name);
        Resources {
            processors: processors.clone(),
            cgroup: cgroup.clone(),
            user_s: microseconds(user_s),
            system_s: microseconds(system_s),
            voluntary_switches: counted(|of| of.ru_nvcsw),
            involuntary_switches: counted(|of| of.ru_nivcsw),
            processor_wait_s: now
                .processor_wait_s
                .zip(start.processor_wait_s)
                .map(|(now, start)| microseconds(now - start)),
            processors_used: (elapsed_s > 0.0)
                .then(|| microseconds((user_s + system_s) / elapsed_s)),
            threads: now.threads.since(&start.threads, elapsed_s, affinity),
            openmp: openmp.map(|runtime| OpenMpRuntime {
                runtime,
                num_threads: num_threads.clone(),
                settings: openmp_settings.clone(),
            }),
            minor_faults: counted(|of| of.ru_minflt),
            major_faults: counted(|of| of.ru_majflt),
            peak_memory_bytes: now.peak_memory_bytes,
            start_peak_memory_bytes: start.peak_memory_bytes,
            counters: None,
            counters_absent: None,
        }
    }
}

/// The kernel counts in microseconds: smaller digits of a difference are rounding errors.
fn microseconds(seconds: f64) -> f64 {
    (seconds.max(0.0) * 1e6).round() / 1e6
}

/// An OpenMP runtime that is loaded.
pub(crate) struct LoadedOpenMp {
    /// Such as `libgomp`.
    pub(crate) name: String,
    /// A package of Python brought it along, so that no linker can replace it.
    pub(crate) is_of_package: bool,
}

/// All of them, in the loader's order.
pub(crate) fn openmp_runtimes() -> Vec<LoadedOpenMp> {
    let mut runtimes = Vec::new();
    elf_objects::each(&mut |object| {
        let file = object.name.to_string_lossy();
        let name = elf_objects::library(&file).filter(|name| OPENMP_RUNTIMES.contains(name));
        runtimes.extend(name.map(|name| {
            let name = format!("lib{name}");
            // Packages add a hash to the name of the file.
            let is_of_package = !file.contains(&format!("/{name}.so"));
            LoadedOpenMp { name, is_of_package }
        }));
    });
    runtimes
}

/// The processors that a thread of this process may run on: the calling one for 0.
fn affinity(thread: u32) -> Ranges {
    let Ok(thread) = libc::pid_t::try_from(thread) else { return Ranges::default() };
    let mut words = [0_usize; AFFINITY_WORDS];
    // SAFETY: sched_getaffinity(2) writes at most this many bytes; a set of processors is words of bits, which
    // the C library pads with zeros.
    let code = unsafe {
        libc::sched_getaffinity(
            thread,
            size_of_val(&words),
            words.as_mut_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    if code != 0 {
        return Ranges::default();
    }
    let bits = (0..).zip(words).filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
        let set = (0..usize::BITS).filter(move |bit| word >> bit & 1 == 1);
        set.map(move |bit| at * usize::BITS + bit)
    });
    bits.collect()
}

/// The limits of the control groups that this process is in. `own`: the processors that it may run on itself.
fn cgroup(root: &Path, own: &Ranges) -> Option<Cgroup> {
    let mut limits = Cgroup::default();
    let mut allowed = Ranges::default();
    for group in ControlGroup::of_process(root, "self") {
        if group.has("cpu") {
            let quota = match group.read("cpu.max") {
                Some(text) => quota(text.trim()),
                None => group.number("cpu.cfs_quota_us").zip(group.number("cpu.cfs_period_us")),
            };
            let limit = quota.filter(|(_, period)| *period > 0);
            let limit = limit.map(|(quota, period)| quota as f64 / period as f64);
            if limit.is_some_and(|limit| limits.processor_limit.is_none_or(|of| limit < of)) {
                limits.processor_limit = limit;
                limits.path = Some(group.path.to_string_lossy().into_owned());
            }
        }
        if group.has("memory") {
            let limit =
                group.number("memory.max").or_else(|| group.number("memory.limit_in_bytes"));
            let limit = limit.filter(|limit| *limit < NO_MEMORY_LIMIT);
            limits.memory_limit_bytes = limits.memory_limit_bytes.into_iter().chain(limit).min();
        }
        if group.has("cpuset") && allowed.is_empty() {
            let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
            let read = names.iter().map(|name| ranges(&group.place(name)));
            allowed = read.into_iter().find(|of| !of.is_empty()).unwrap_or_default();
        }
    }
    let is_bound = !allowed.without(own).is_empty();
    limits.processors = is_bound.then(|| allowed.to_string());
    (limits != Cgroup::default()).then_some(limits)
}

/// As `200000 100000`, in microseconds, or `max 100000`.
fn quota(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::trees::tree;

    fn limits(files: &[(&str, &str)], own: &str) -> Option<Cgroup> {
        cgroup(tree(files).path(), &own.parse().unwrap())
    }

    #[test]
    fn settings_of_openmp_are_known_and_no_other_variables() {
        let set = [
            ("OMP_SCHEDULE", "guided"),
            ("KMP_AFFINITY", "compact"),
            ("OMP_NUM_THREADS", "2"),
            ("OMP_TOOL_LIBRARIES", "/x"),
            ("HOME", "/root"),
        ];
        let set = set.map(|(name, value)| (name.into(), value.into()));
        let expected = ["KMP_AFFINITY=compact", "OMP_SCHEDULE=guided"];
        assert_eq!(openmp_settings(set.into_iter()), expected);
    }

    #[test]
    fn version_2_has_the_tightest_limit_of_the_group_and_those_above_it() {
        let files = [
            ("proc/self/cgroup", "0::/job/step/task\n"),
            ("sys/fs/cgroup/job/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/job/step/task/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/job/memory.max", "4096\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/task/memory.max", "8192\n"),
            ("sys/fs/cgroup/job/step/cpuset.cpus.effective", "0-7\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-63\n"),
        ];
        let found = limits(&files, "0-3").unwrap();
        assert_eq!(found.path.as_deref(), Some("/job/step"));
        assert_eq!(found.processor_limit, Some(1.5));
        assert_eq!(found.memory_limit_bytes, Some(4096));
        assert_eq!(found.processors.as_deref(), Some("0-7"));
        // If it may run on all of them, that is not recorded.
        assert_eq!(limits(&files, "0-7").unwrap().processors, None);
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let files = [
            (
                "proc/self/cgroup",
                "12:pids:/x\n7:cpu,cpuacct:/job\n5:memory:/job/step\n3:cpuset:/job\n0::/\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n"),
            ("sys/fs/cgroup/cpuset/job/cpuset.cpus", "2-3\n"),
            ("sys/fs/cgroup/pids/x/cpu.max", "1 100000\n"),
        ];
        let found = limits(&files, "2").unwrap();
        assert_eq!(found.path.as_deref(), Some("/job"));
        assert_eq!(found.processor_limit, Some(0.5));
        assert_eq!(found.memory_limit_bytes, Some(1 << 20));
        assert_eq!(found.processors.as_deref(), Some("2-3"));
    }

    #[test]
    fn in_a_container_the_limit_is_at_the_root_and_without_one_nothing_is_told() {
        let outside = ("proc/self/cgroup", "4:cpu:/docker/0123\n");
        let files = [
            outside,
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let found = limits(&files, "0-3").unwrap();
        assert_eq!((found.path.as_deref(), found.processor_limit), (Some("/"), Some(2.0)));
        assert_eq!(limits(&[outside], "0-3"), None);
        assert_eq!(limits(&[("proc/self/cgroup", "0::/../..\nnonsense\n")], "0"), None);
        assert_eq!(limits(&[], "0"), None);
    }

    #[test]
    fn what_a_process_does_is_counted() {
        let allowed = Allowed::new(Usage::now());
        // 64 MiB that are touched are 64 MiB that are resident.
        let block = vec![1_u8; 64 << 20];
        let used = allowed.resources();
        assert!(used.minor_faults > 0 && used.user_s + used.system_s > 0.0, "{used:?}");
        assert!(used.peak_memory_bytes >= block.len() as u64, "{used:?}");
        assert!(used.peak_memory_bytes >= used.start_peak_memory_bytes);
        let processors: Ranges = used.processors.parse().unwrap();
        let expected = std::thread::available_parallelism().unwrap().get() as u64;
        // A control group can allow fewer than the affinity does.
        assert!(processors.len() >= expected.max(1), "{used:?}");
    }
}
