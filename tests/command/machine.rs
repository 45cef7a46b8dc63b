//! What does a report say about the machine: hosts that are alike, ranks that share processors, and what the
//! ranks used?

use std::fs;

use gyan_results::{
    Cgroup, Counters, Counts, CountsInMpi, EnergyKind, HostCounters, Machine, Network,
    NetworkCount, NetworkCountKind, PartEnergy, PlacementSummary, RankProfile, Resources,
    Transport, rank_file_name, read_rank,
};
use tempfile::TempDir;

use crate::common::{report, reported_summary, root};
use crate::golden::is_golden;

const RUNNING: &str = "tests/fixtures/gyan.rank-1-running";
/// Ranks on a host.
const RANKS: u32 = 4;

/// A run on `hosts` hosts, `change`d on each rank: by the host, and the rank on it.
fn job(hosts: u32, change: impl Fn(u32, u32, &mut RankProfile)) -> TempDir {
    let here = TempDir::new().unwrap();
    for rank in 0..RANKS * hosts {
        let (host, local) = (rank / RANKS, rank % RANKS);
        let mut profile = profile_of(local);
        (profile.rank, profile.size) = (rank, RANKS * hosts);
        profile.host = format!("n{host}");
        profile.machine = (local == 0).then(machine);
        profile.resources = Some(resources("0-7", rank));
        change(host, local, &mut profile);
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(here.path().join(rank_file_name(rank)), text).unwrap();
    }
    here
}

fn profile_of(rank: u32) -> RankProfile {
    read_rank(&root().join(RUNNING).join(rank_file_name(rank))).unwrap()
}

/// Four cores with two threads each.
fn machine() -> Machine {
    Machine {
        system: Some("Linux 6.1.0-18-amd64".into()),
        processor: Some("AMD EPYC 7543 32-Core Processor".into()),
        processors: "0-7".into(),
        cores: Some(4),
        threads_per_core: Some(2),
        core_processors: ["0,4", "1,5", "2,6", "3,7"].map(str::to_owned).into(),
        packages: Some(1),
        numa_nodes: Some(2),
        memory_bytes: Some(32 << 30),
        ptrace_scope: Some(1),
        networks: vec![Network {
            device: "mlx5_0".into(),
            kind: "InfiniBand".into(),
            rate: Some("100 Gb/sec (4X EDR)".into()),
            state: Some("ACTIVE".into()),
        }],
        transports: vec![Transport { name: "ucp".into(), what: "UCX".into() }],
        ..Machine::default()
    }
}

fn resources(processors: &str, rank: u32) -> Resources {
    Resources {
        processors: processors.into(),
        user_s: 10.0 + f64::from(rank),
        system_s: 0.25,
        voluntary_switches: 100 * u64::from(rank),
        involuntary_switches: 7,
        minor_faults: 4000,
        peak_memory_bytes: (24 << 20) + (u64::from(rank) << 18),
        processor_wait_s: Some(0.25),
        start_peak_memory_bytes: 5 << 20,
        counters: Some(counters(u64::from(rank))),
        ..Resources::default()
    }
}

/// A fifth of the instructions is in MPI.
fn counters(rank: u64) -> Counters {
    let total = Counts {
        instructions: 50_000_000_000,
        cycles: 25_000_000_000 + (rank << 28),
        cache_misses: Some(250_000_000),
    };
    let in_mpi = Some(CountsInMpi { counts: total.scaled(0.2), read_share: 0.5 });
    Counters { total, in_mpi, processor_s: 10.0, counted_share: 1.0 }
}

/// A host with a package, and a network on which a packet was lost now and then.
fn host_counters() -> HostCounters {
    let part = |part: &str, kind, energy_j| PartEnergy { part: part.to_owned(), kind, energy_j };
    let count = |interface: &str, counter: &str, kind, value| NetworkCount {
        interface: interface.to_owned(),
        counter: counter.to_owned(),
        kind,
        value,
    };
    HostCounters {
        counted_s: 10.0,
        energy: vec![
            part("package-0", EnergyKind::Processor, 2500.0),
            part("package-0 dram", EnergyKind::Memory, 500.0),
            part("psys", EnergyKind::Platform, 4000.0),
        ],
        no_energy: None,
        network: vec![
            count("mlx5_0", "port_xmit_data", NetworkCountKind::SentBytes, 3 << 30),
            count("TCP", "OutSegs", NetworkCountKind::SentPackets, 1000),
            count("TCP", "RetransSegs", NetworkCountKind::Retries, 12),
        ],
    }
}

#[test]
fn the_energy_and_the_network_of_a_host_are_told_as_in_the_golden_reports() {
    let job = job(2, |_, local, profile| {
        profile.host_counters = (local == 0).then(host_counters);
    });
    for (name, options) in [
        ("host-counters.txt", &["--machine"][..]),
        ("host-counters-all.txt", &["--machine", "--all"]),
        ("host-counters.csv", &["--machine", "--format", "csv"]),
        ("host-counters.json", &["--machine", "--format", "json"]),
    ] {
        let outcome = report(job.path(), options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        is_golden(name, &outcome.stdout);
    }
    let first = report(job.path(), &[]).stdout;
    let line = "energy: 6 kJ, about 22.2 % of it while ranks were in MPI (--machine)";
    assert!(first.contains(line), "{first}");
    // Without the platform, in which the others are: 3 kJ on each host.
    let summary = reported_summary(job.path());
    assert_eq!(summary.energy_j(), Some(6000.0));
    let share = |of: u32| {
        let of = profile_of(of).in_mpi.unwrap().share;
        of / f64::from(RANKS)
    };
    let in_mpi: f64 = (0..RANKS).map(share).sum();
    assert!((summary.energy_in_mpi_j().unwrap() - 6000.0 * in_mpi).abs() < 1e-6);
}

#[test]
fn the_energy_of_a_run_is_known_only_with_that_of_each_host() {
    let none = |host: u32| {
        let no_energy = Some("/sys/class/powercap/x may be read by root only".to_owned());
        let one = HostCounters { energy: Vec::new(), no_energy, ..host_counters() };
        if host == 0 { host_counters() } else { one }
    };
    let job = job(2, |host, local, profile| {
        profile.host_counters = (local == 0).then(|| none(host));
    });
    assert_eq!(reported_summary(job.path()).energy_j(), None);
    let told = report(job.path(), &["--machine"]).stdout;
    assert!(
        told.contains("not known of n1: /sys/class/powercap/x may be read by root only"),
        "{told}"
    );
    assert!(!report(job.path(), &[]).stdout.contains("energy"));
}

/// On n2 ranks share two processors, on n3 all of them are bound to one core.
fn badly_placed(host: u32, _local: u32, profile: &mut RankProfile) {
    let processors = ["0-7", "0-7", "1-2", "3,7"][host as usize];
    profile.resources.as_mut().unwrap().processors = processors.into();
}

#[test]
fn the_machine_is_told_as_in_the_golden_reports() {
    let job = job(4, badly_placed);
    for (name, options) in [
        ("machine.txt", &["--machine"][..]),
        ("machine-all.txt", &["--machine", "--all"]),
        ("machine.md", &["--machine", "--format", "markdown"]),
        ("machine.csv", &["--machine", "--format", "csv"]),
        ("machine.json", &["--machine", "--format", "json"]),
        ("machine-report.txt", &["--vars", "MPI_Waitall"]),
        ("machine-report.csv", &["--vars", "MPI_Waitall", "--format", "csv"]),
    ] {
        let outcome = report(job.path(), options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        is_golden(name, &outcome.stdout);
    }
}

#[test]
fn hosts_that_are_alike_are_one_row() {
    let summary = reported_summary(job(4, badly_placed).path());
    assert_eq!(summary.machines.len(), 1);
    assert_eq!(summary.machines[0].hosts, ["n0", "n1", "n2", "n3"]);
    let rows: Vec<String> = summary
        .placements
        .iter()
        .map(|of| {
            let PlacementSummary { ranks, processors, cores, is_oversubscribed, .. } = of;
            let (hosts, crowded) = (of.hosts.join(","), of.crowded.is_some());
            format!("{hosts}: {ranks} on {processors}, {cores:?}, {is_oversubscribed}, {crowded}")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "n0,n1: 4 on 8, Some(4), false, false",
            "n2: 4 on 2, Some(2), true, true",
            "n3: 4 on 2, Some(1), true, true",
        ]
    );
    let crowded = summary.placements[2].crowded.as_ref().unwrap();
    assert_eq!((crowded.processors.as_str(), crowded.free_cores), ("3,7", 3));
    assert!((crowded.ranks_per_core - 4.0).abs() < 1e-9);
    let used = summary.resources.unwrap();
    assert_eq!((used.user_s.max_rank, used.user_s.min_rank), (15, 0));
    assert_eq!((used.processors.min_rank, used.processors.ranks), (8, 16));
}

#[test]
fn the_title_says_when_ranks_have_to_share() {
    let title = |hosts, change: &dyn Fn(u32, u32, &mut RankProfile)| {
        let outcome = report(job(hosts, change).path(), &[]);
        outcome.stdout.lines().next().unwrap().to_owned()
    };
    let bind = |processors: &'static str| {
        move |_: u32, _: u32, profile: &mut RankProfile| {
            profile.resources.as_mut().unwrap().processors = processors.into();
        }
    };
    let one = |processors| title(1, &bind(processors));
    assert!(one("0-1").ends_with("; 4 ranks on 2 cores: oversubscribed"), "{}", one("0-1"));
    assert!(one("2").ends_with("; 4 ranks on 1 core: oversubscribed"), "{}", one("2"));
    let threads = one("0,4,5");
    assert!(
        threads.ends_with("; 4 ranks on 3 processors (threads of 2 cores): oversubscribed"),
        "{threads}"
    );
    assert!(!one("0-3").contains("oversubscribed") && !one("0-7").contains("oversubscribed"));
    // Without the cores of the host, as with GYAN_MACHINE=off.
    let unknown = title(1, &|host, local, profile| {
        bind("0-1")(host, local, profile);
        profile.machine = None;
    });
    assert!(unknown.ends_with("; 4 ranks on 2 processors: oversubscribed"), "{unknown}");
    let limited = title(1, &|_, _, profile| {
        let cgroup =
            Cgroup { path: Some("/job".into()), processor_limit: Some(2.5), ..Cgroup::default() };
        profile.resources.as_mut().unwrap().cgroup = Some(cgroup);
    });
    let expected = "; 4 ranks on 2.50 of 8 processors (limit of the control group): oversubscribed";
    assert!(limited.ends_with(expected), "{limited}");
    // Of several hosts, the worst one.
    let several = title(4, &|host, local, profile| {
        badly_placed(host, local, profile);
        if host == 3 {
            profile.resources.as_mut().unwrap().processors = "3".into();
        }
    });
    assert!(several.ends_with("; n3: 4 ranks on 1 core: oversubscribed"), "{several}");
}

#[test]
fn ranks_that_are_bound_to_the_same_core_are_told_while_others_are_free() {
    let cores = |cores: [&'static str; 4]| {
        let job = job(1, |_, local, profile| {
            profile.resources.as_mut().unwrap().processors = cores[local as usize].into();
        });
        report(job.path(), &[]).stdout
    };
    let two = cores(["0", "0,4", "1", "2"]);
    let text = two.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "ranks are bound to the same cores (processors 0,4): up to 2 ranks on one, while 1 core has \
                    none; bind each rank to cores of its own, or bind none";
    assert!(text.contains(expected), "{two}");
    assert!(!text.contains("oversubscribed"), "{two}");
    for good in [["0", "1", "2", "3"], ["0-7"; 4], ["0,4", "1,5", "2,6", "3,7"]] {
        assert!(!cores(good).contains("bound to the same"), "{good:?}");
    }
}

#[test]
fn where_nothing_is_known_of_the_machine_one_line_says_so() {
    let old = report(RUNNING, &["--machine"]);
    assert_eq!((old.code, old.stdout.as_str()), (2, ""));
    assert_eq!(old.stderr.lines().count(), 1, "{}", old.stderr);
    assert!(old.stderr.contains("nothing is known of what the ranks ran on"), "{}", old.stderr);
}
