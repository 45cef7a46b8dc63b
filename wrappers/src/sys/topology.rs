//! What is this host, according to `/proc` and `/sys`? Read once, at the start. Anything that a kernel or a
//! container hides is left out.
//!
//! `root` contains both: `/`, or a tree that a test has made.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use gyan_results::{CoreKind, Machine, Network, Ranges};

use super::kernel_files::text;

/// Bit of `CAP_SYS_PTRACE` (capabilities(7)).
const PTRACE_CAPABILITY: u64 = 1 << 19;
/// This much contains the first processor; reading all of `/proc/cpuinfo` takes long on machines with many.
const CPUINFO_AT_MOST: usize = 4096;

/// The host, without the components that the MPI library has loaded.
pub(crate) fn machine(root: &Path) -> Machine {
    let processors = root.join("sys/devices/system/cpu");
    let online = ranges(&processors.join("online"));
    let present = ranges(&processors.join("present"));
    // Kernels before 5.2 have only the older name.
    let cores = groups(&processors, &online, ["core_cpus_list", "thread_siblings_list"]);
    let packages = groups(&processors, &online, ["package_cpus_list", "core_siblings_list"]);
    let number = |groups: &[Ranges]| (!groups.is_empty()).then_some(groups.len() as u64);
    let threads_per_core = cores.iter().map(Ranges::len).max();
    let nodes = ranges(&root.join("sys/devices/system/node/online"));
    let status = text(root.join("proc/self/status"));
    let capabilities = status.as_deref().and_then(|status| field(status, "CapEff"));
    let capabilities = capabilities.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let scope = text(root.join("proc/sys/kernel/yama/ptrace_scope"));
    let release = text(root.join("proc/sys/kernel/osrelease"));
    Machine {
        system: release.map(|release| format!("Linux {}", release.trim())),
        processor: processor(root),
        processors: online.to_string(),
        processors_offline: present.without(&online).len(),
        cores: number(&cores),
        threads_per_core,
        core_processors: if threads_per_core.is_some_and(|threads| threads > 1) {
            cores.iter().map(ToString::to_string).collect()
        } else {
            Vec::new()
        },
        core_kinds: core_kinds(root),
        packages: number(&packages),
        numa_nodes: (!nodes.is_empty()).then(|| nodes.len()),
        memory_bytes: memory(root),
        // A kernel without Yama has no such file; without /proc nothing is known.
        ptrace_scope: match scope {
            Some(scope) => scope.trim().parse().ok(),
            None => status.is_some().then_some(0),
        },
        has_ptrace_capability: capabilities.is_some_and(|of| of & PTRACE_CAPABILITY != 0),
        networks: networks(root),
        transports: Vec::new(),
    }
}

pub(super) fn ranges(path: &Path) -> Ranges {
    text(path).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The text after the colon of the first line with that name.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim_end() == name).map(|(_, value)| value.trim())
}

/// The processors that share something, from the file that each of them has: one file per group is read, not
/// one per processor.
fn groups(processors: &Path, online: &Ranges, names: [&str; 2]) -> Vec<Ranges> {
    let mut groups: Vec<Ranges> = Vec::new();
    let mut left = online.clone();
    loop {
        let Some(first) = left.iter().next() else { return groups };
        let topology = processors.join(format!("cpu{first}/topology"));
        let read = names.iter().map(|name| ranges(&topology.join(name)));
        let Some(group) = read.into_iter().find(|group| group.contains(first)) else {
            return Vec::new();
        };
        left = left.without(&group);
        groups.push(group);
    }
}

/// The processors of each kind, if there are several: Intel's hybrid processors have a performance monitoring
/// unit for each.
fn core_kinds(root: &Path) -> Vec<CoreKind> {
    let devices = root.join("sys/devices");
    let kinds = ["cpu_atom", "cpu_core", "cpu_lowpower"].into_iter();
    let kinds = kinds.filter_map(|kind| {
        let processors = ranges(&devices.join(kind).join("cpus"));
        let kind = kind.to_owned();
        (!processors.is_empty()).then(|| CoreKind { kind, processors: processors.to_string() })
    });
    kinds.collect()
}

/// The model of the first processor: x86, POWER, then Arm, which has numbers for it.
fn processor(root: &Path) -> Option<String> {
    let mut first = vec![0; CPUINFO_AT_MOST];
    let length = File::open(root.join("proc/cpuinfo")).ok()?.read(&mut first).ok()?;
    let text = String::from_utf8_lossy(first.get(..length)?).into_owned();
    let named = ["model name", "cpu"].into_iter().find_map(|name| field(&text, name));
    let name = if let Some(name) = named {
        name.to_owned()
    } else {
        let [implementer, part] = ["CPU implementer", "CPU part"].map(|name| field(&text, name));
        format!("Arm implementer {}, part {}", implementer?, part?)
    };
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn memory(root: &Path) -> Option<u64> {
    let text = text(root.join("proc/meminfo"))?;
    let (number, unit) = field(&text, "MemTotal")?.split_once(' ')?;
    (unit == "kB").then(|| number.parse::<u64>().ok()).flatten()?.checked_mul(1024)
}

/// The ports of interfaces for RDMA, and Slingshot's.
fn networks(root: &Path) -> Vec<Network> {
    let class = root.join("sys/class");
    let mut networks = Vec::new();
    let rdma = class.join("infiniband");
    for device in names(&rdma) {
        let place = rdma.join(&device);
        let driver = fs::read_link(place.join("device/driver")).unwrap_or_default();
        let driver = driver.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ports = names(&place.join("ports"));
        for port in &ports {
            let of_port = |name: &str| {
                let text = text(place.join("ports").join(port).join(name));
                text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
            };
            let kind = match (driver.as_str(), of_port("link_layer").as_deref()) {
                ("efa", _) => "EFA".to_owned(),
                ("hfi1", _) => "Omni-Path".to_owned(),
                (_, Some("Ethernet")) => "RDMA over Ethernet".to_owned(),
                (_, Some(layer)) => layer.to_owned(),
                (_, None) => "RDMA".to_owned(),
            };
            let name = if ports.len() > 1 { format!("{device}:{port}") } else { device.clone() };
            // As `4: ACTIVE`.
            let state = of_port("state");
            let state = state.map(|state| match state.split_once(": ") {
                Some((_, word)) => word.to_owned(),
                None => state,
            });
            networks.push(Network { device: name, kind, rate: of_port("rate"), state });
        }
    }
    let slingshot = class.join("cxi");
    for device in names(&slingshot) {
        let about = |name: &str| {
            let text = text(slingshot.join(&device).join("device/properties").join(name));
            text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let (rate, state) = (about("speed"), about("link"));
        networks.push(Network { device: device.clone(), kind: "Slingshot".into(), rate, state });
    }
    networks
}

/// The names in a directory, sorted.
pub(super) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::trees::tree;

    const ONLINE: &str = "sys/devices/system/cpu/online";
    const PRESENT: &str = "sys/devices/system/cpu/present";

    fn topology(processor: u32, name: &str) -> String {
        format!("sys/devices/system/cpu/cpu{processor}/topology/{name}")
    }

    #[test]
    fn where_there_is_nothing_to_read_nothing_is_told() {
        assert_eq!(machine(tree::<&str>(&[]).path()), Machine::default());
    }

    #[test]
    fn threads_cores_packages_and_nodes_are_told_apart() {
        let mut files = vec![
            (ONLINE.to_owned(), "0-7\n"),
            (PRESENT.to_owned(), "0-7\n"),
            ("sys/devices/system/node/online".to_owned(), "0-1\n"),
            ("proc/meminfo".to_owned(), "MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            ("proc/sys/kernel/osrelease".to_owned(), "6.1.0-18-amd64\n"),
            (
                "proc/cpuinfo".to_owned(),
                "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some   Processor @ 2 GHz\n",
            ),
        ];
        let cores = ["0,4", "1,5", "2,6", "3,7"];
        for processor in 0..8 {
            // The names of an old kernel.
            let core = cores[processor as usize % 4];
            files.push((topology(processor, "thread_siblings_list"), core));
            let package = if processor % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
            files.push((topology(processor, "core_siblings_list"), package));
        }
        let machine = machine(tree(&files).path());
        assert_eq!(machine.processor.as_deref(), Some("Some Processor @ 2 GHz"));
        assert_eq!(machine.system.as_deref(), Some("Linux 6.1.0-18-amd64"));
        assert_eq!((machine.processors.as_str(), machine.processors_offline), ("0-7", 0));
        assert_eq!((machine.cores, machine.threads_per_core), (Some(4), Some(2)));
        assert_eq!(machine.core_processors, cores);
        assert_eq!((machine.packages, machine.numa_nodes), (Some(2), Some(2)));
        assert_eq!(machine.memory_bytes, Some(16 << 20));
        assert!(machine.core_kinds.is_empty());
    }

    #[test]
    fn cores_of_a_hybrid_processor_differ_in_threads_and_kind() {
        let mut files = vec![
            (ONLINE.to_owned(), "0-5\n"),
            (PRESENT.to_owned(), "0-5\n"),
            ("sys/devices/cpu_core/cpus".to_owned(), "0-3\n"),
            ("sys/devices/cpu_atom/cpus".to_owned(), "4-5\n"),
        ];
        for (processor, core) in (0..).zip(["0-1", "0-1", "2-3", "2-3", "4", "5"]) {
            files.push((topology(processor, "core_cpus_list"), core));
            files.push((topology(processor, "package_cpus_list"), "0-5"));
        }
        let machine = machine(tree(&files).path());
        assert_eq!((machine.cores, machine.threads_per_core), (Some(4), Some(2)));
        assert_eq!(machine.core_processors, ["0-1", "2-3", "4", "5"]);
        let kinds: Vec<(&str, &str)> =
            machine.core_kinds.iter().map(|of| (&*of.kind, &*of.processors)).collect();
        assert_eq!(kinds, [("cpu_atom", "4-5"), ("cpu_core", "0-3")]);
        assert_eq!((machine.packages, machine.numa_nodes), (Some(1), None));
    }

    #[test]
    fn processors_that_are_offline_are_no_cores() {
        let mut files = vec![(ONLINE.to_owned(), "0,2-3\n"), (PRESENT.to_owned(), "0-5\n")];
        for processor in [0, 2, 3] {
            let own = ["0", "", "2", "3"][processor as usize];
            files.push((topology(processor, "core_cpus_list"), own));
            files.push((topology(processor, "package_cpus_list"), "0,2-3"));
        }
        let machine = machine(tree(&files).path());
        assert_eq!((machine.processors.as_str(), machine.processors_offline), ("0,2-3", 3));
        assert_eq!((machine.cores, machine.threads_per_core), (Some(3), Some(1)));
        assert!(machine.core_processors.is_empty());
        assert_eq!(machine.packages, Some(1));
    }

    #[test]
    fn who_may_read_others_is_told_by_yama_and_by_the_capability() {
        const YAMA: &str = "proc/sys/kernel/yama/ptrace_scope";
        const STATUS: &str = "proc/self/status";
        for (files, scope, has_capability) in [
            (&[(STATUS, "CapEff:\t0000000000000000\n")][..], Some(0), false),
            (&[(STATUS, "CapEff:\t0000000000080000\n"), (YAMA, "1\n")], Some(1), true),
            (&[(STATUS, "CapEff:\t0000000000040000\n"), (YAMA, "3\n")], Some(3), false),
        ] {
            let machine = machine(tree(files).path());
            assert_eq!(
                (machine.ptrace_scope, machine.has_ptrace_capability),
                (scope, has_capability)
            );
        }
    }

    #[test]
    fn ports_of_fast_networks_are_told_with_kind_rate_and_state() {
        const RDMA: &str = "sys/class/infiniband";
        let files = [
            (format!("{RDMA}/mlx5_0/ports/1/link_layer"), "InfiniBand\n"),
            (format!("{RDMA}/mlx5_0/ports/1/rate"), "100 Gb/sec (4X EDR)\n"),
            (format!("{RDMA}/mlx5_0/ports/1/state"), "4: ACTIVE\n"),
            (format!("{RDMA}/mlx5_1/ports/1/link_layer"), "Ethernet\n"),
            (format!("{RDMA}/mlx5_1/ports/1/state"), "1: DOWN\n"),
            (format!("{RDMA}/mlx5_1/ports/2/link_layer"), "Ethernet\n"),
            ("sys/class/cxi/cxi0/device/properties/speed".into(), "BS_200G\n"),
        ];
        let tree = tree(&files);
        let networks = machine(tree.path()).networks;
        let shown: Vec<(&str, &str, Option<&str>, Option<&str>)> = networks
            .iter()
            .map(|one| (&*one.device, &*one.kind, one.rate.as_deref(), one.state.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("mlx5_0", "InfiniBand", Some("100 Gb/sec (4X EDR)"), Some("ACTIVE")),
                ("mlx5_1:1", "RDMA over Ethernet", None, Some("DOWN")),
                ("mlx5_1:2", "RDMA over Ethernet", None, None),
                ("cxi0", "Slingshot", Some("BS_200G"), None),
            ]
        );
    }

    #[test]
    fn processors_of_other_makers_have_a_name_too() {
        for (text, expected) in [
            ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "Arm implementer 0x41, part 0xd40"),
        ] {
            let machine = machine(tree(&[("proc/cpuinfo", text)]).path());
            assert_eq!(machine.processor.as_deref(), Some(expected));
        }
    }

    #[test]
    fn this_host_has_the_processors_that_a_thread_may_use() {
        let machine = machine(Path::new("/"));
        let online: Ranges = machine.processors.parse().unwrap();
        let file = Path::new("/sys/devices/system/cpu/online");
        assert_eq!(online.is_empty(), !file.exists());
        let allowed = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(online.is_empty() || online.len() >= allowed, "{machine:?}");
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{machine:?}");
    }
}
