//! What the ranks ran on: the processors that they are bound to, what they used, and what is recorded of the
//! host.

use std::fs;
use std::path::Path;

use gyan_results::{
    Ending, HostCounters, Machine, NetworkCountKind, Ranges, RankProfile, Resources,
};
use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Profiled, command, each_library, libgyan, lives, profiles,
    reported_summary, run, succeed,
};

/// Binds each rank to one of the processors in the first argument, in turn, and executes the other arguments.
const BOUND: &str = "set -- $@; list=$1; shift; for rank in $OMPI_COMM_WORLD_RANK $PMI_RANK $PMIX_RANK; do \
                     number=$((rank % $(echo $list | tr : '\\n' | wc -l) + 1)); \
                     exec taskset -c $(echo $list | cut -d: -f$number) \"$@\"; done; exit 1";
/// Intel MPI would bind the ranks itself, in `MPI_Init`.
const UNPINNED: (&str, &str) = ("I_MPI_PIN", "off");

/// Two processors that this process may run on, if there are two.
fn two_processors() -> Option<[u32; 2]> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let allowed: Ranges = allowed.parse().unwrap();
    let two: Vec<u32> = allowed.iter().take(2).collect();
    if two.len() < 2 {
        eprintln!("skipped: there is one processor");
    }
    two.try_into().ok()
}

/// A run of a program whose ranks are bound to these sets of processors, in turn.
fn bound(mpi: Mpi, ranks: usize, sets: &[String], settings: &[(&str, &str)]) -> Profiled {
    let program = mpi.program("receives").display().to_string();
    let sets = sets.join(":");
    let arguments = ["-c", BOUND, "sh", sets.as_str(), program.as_str()];
    let settings = [&[UNPINNED][..], settings].concat();
    Profiled::preloaded(mpi, ranks, Path::new("sh"), &arguments, &settings).succeeded()
}

fn resources(profile: &RankProfile) -> &Resources {
    profile.resources.as_ref().unwrap()
}

fn title(directory: &Path) -> String {
    crate::common::report(directory, &[]).stdout.lines().next().unwrap().to_owned()
}

#[test]
fn a_rank_may_run_on_what_it_was_bound_to() {
    let Some([first, second]) = two_processors() else { return };
    let sets = [first.to_string(), second.to_string(), format!("{first},{second}")];
    for mpi in each_library() {
        let profiled = bound(mpi, 3, &sets, &[]);
        for (profile, set) in profiled.profiles().iter().zip(&sets) {
            let expected: Ranges = set.parse().unwrap();
            let resources = resources(profile);
            assert_eq!(resources.processors, expected.to_string(), "{mpi:?} {}", profile.rank);
            let seconds = resources.user_s + resources.system_s;
            assert!(seconds > 0.0, "{mpi:?}: {resources:?}");
            assert!(resources.minor_faults > 0, "{mpi:?}: {resources:?}");
            assert!(resources.peak_memory_bytes >= resources.start_peak_memory_bytes);
            // No MPI fits into less.
            assert!(resources.start_peak_memory_bytes > 1 << 20, "{mpi:?}: {resources:?}");
        }
    }
}

#[test]
fn more_ranks_than_processors_are_told_and_as_many_are_not() {
    let Some([first, second]) = two_processors() else { return };
    let both = [format!("{first},{second}")];
    for mpi in MPIS {
        for (ranks, too_many) in [(2, false), (4, true)] {
            let profiled = bound(mpi, ranks, &both, &[]);
            let placements = reported_summary(&profiled.directory).placements;
            assert_eq!(placements.len(), 1, "{placements:?}");
            let placement = &placements[0];
            assert_eq!((placement.ranks, placement.processors), (ranks as u64, 2));
            assert_eq!(placement.is_oversubscribed, too_many, "{mpi:?}: {placement:?}");
            let title = title(&profiled.directory);
            assert_eq!(title.contains("4 ranks on 2 "), too_many, "{title}");
            assert_eq!(title.ends_with(": oversubscribed"), too_many, "{title}");
        }
    }
}

#[test]
fn ranks_on_one_core_are_told_while_another_has_none() {
    let Some([first, second]) = two_processors() else { return };
    let profiled = bound(OPENMPI, 2, &[first.to_string()], &[]);
    let summary = reported_summary(&profiled.directory);
    let machine = &summary.machines[0].machine;
    let share_a_core = machine.core_processors.iter().any(|core| {
        let core: Ranges = core.parse().unwrap();
        core.contains(first) && core.contains(second)
    });
    let placement = &summary.placements[0];
    assert!(placement.is_oversubscribed, "{placement:?}");
    // A host with one core has no free one.
    let is_alone = share_a_core && machine.cores == Some(1);
    assert_eq!(placement.crowded.is_none(), is_alone, "{placement:?}");
    if let Some(crowded) = &placement.crowded {
        assert!((crowded.ranks_per_core - 2.0).abs() < 1e-6, "{crowded:?}");
    }
}

#[test]
fn the_host_is_in_the_profile_of_its_first_rank_unless_the_user_does_not_want_it() {
    for mpi in MPIS {
        let machines = |settings: &[(&str, &str)]| -> Vec<Option<Machine>> {
            let profiles = Profiled::run(mpi, 2, &["receives"], settings).profiles();
            assert!(profiles.iter().all(|profile| profile.resources.is_some()), "{mpi:?}");
            profiles.into_iter().map(|profile| profile.machine).collect()
        };
        assert_eq!(machines(&[("GYAN_MACHINE", "off")]), [None, None], "{mpi:?}");
        let [Some(machine), None] = &machines(&[])[..] else { panic!("{mpi:?}: not of one rank") };
        let processors: Ranges = machine.processors.parse().unwrap();
        let cores = machine.cores.unwrap();
        assert!(cores >= 1 && cores <= processors.len(), "{machine:?}");
        assert!(machine.memory_bytes.unwrap() > 1 << 20, "{machine:?}");
        let transports: Vec<&str> = machine.transports.iter().map(|of| of.name.as_str()).collect();
        // What Debian builds: Open MPI's components are files, MPICH is over UCX.
        let expected = if mpi == OPENMPI { "mca_pml_ob1" } else { "ucp" };
        assert!(transports.contains(&expected), "{mpi:?}: {transports:?}");
    }
}

#[test]
fn a_killed_rank_leaves_what_it_used() {
    let settings = [("GYAN_BUDGET", "100%")];
    let profiled = Profiled::run(OPENMPI, 2, &["endings", "all", "9"], &settings);
    for profile in lives(&profiled.directory, 2) {
        assert_ne!(profile.end.how, Ending::Finalize);
        let resources = resources(&profile);
        assert!(!resources.processors.is_empty(), "{resources:?}");
        assert!(resources.peak_memory_bytes > 1 << 20, "{resources:?}");
        assert_eq!(profile.machine.is_some(), profile.rank == 0);
    }
}

/// The counters of the host, which only its first rank has.
fn counters(ranks: &[RankProfile]) -> &HostCounters {
    let mut all = ranks.iter().filter_map(|rank| rank.host_counters.as_ref());
    let counters = all.next().unwrap();
    assert!(all.next().is_none(), "only the first rank of a host has them");
    counters
}

/// The name of a counter and its number, as `nstat` of iproute2 prints them.
fn of_nstat(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// In a network of its own nothing else sends. Its queue is so short that the segments of one message do not fit. What
/// `mpirun` sends before `MPI_Init` and after `MPI_Finalize` is little.
#[test]
fn segments_that_a_lossy_network_makes_tcp_send_again_are_those_that_nstat_counts() {
    const LOSSY: &str = "ip link set lo up mtu 1500 && \
                         tc qdisc add dev lo root tbf rate 200mbit burst 4k limit 5k || exit 1; \
                         \"$@\"; code=$?; nstat -asz TcpRetransSegs TcpOutSegs >&2; exit $code";
    let front = ["unshare", "--net", "sh", "-c", LOSSY, "sh"].map(str::to_owned);
    let try_out = run(&mut command(&[&front[..], &["true".into()]].concat()));
    if try_out.code != 0 {
        eprintln!("skipped: a lossy network for a process takes root and tc: {}", try_out.stderr);
        return;
    }
    let here = TempDir::new().unwrap();
    let mut words = OPENMPI.mpirun_after(&front, 2);
    let program = OPENMPI.program("halo_exchange").display().to_string();
    words.extend([program, "1200".into(), "120".into()]);
    let mut sending = command(&words);
    sending.env("GYAN_OUTPUT", here.path()).env("LD_PRELOAD", libgyan());
    sending.env("OMPI_MCA_btl", "tcp,self").env("OMPI_MCA_btl_tcp_if_include", "lo");
    let outcome = succeed(&mut sending);
    let ranks = profiles(here.path(), 2);
    let counters = counters(&ranks);
    for (name, kind) in [
        ("TcpRetransSegs", NetworkCountKind::Retries),
        ("TcpOutSegs", NetworkCountKind::SentPackets),
    ] {
        let (found, all) = (counters.count("TCP", kind), of_nstat(&outcome.stderr, name));
        assert!(found > 0 && found <= all && found * 10 >= all * 8, "{name}: {found} of {all}");
    }
}

#[test]
fn only_the_first_rank_of_a_host_says_what_that_counted_and_none_where_it_is_not_wanted() {
    let program = MPICH.program("receives");
    let run = |settings: &[(&str, &str)]| {
        let run = Profiled::preloaded(MPICH, 2, &program, &[], settings);
        profiles(&run.directory, 2)
    };
    for settings in [&[][..], &[("GYAN_KEEPER", "off")]] {
        let ranks = run(settings);
        let counters = counters(&ranks);
        assert!(counters.counted_s > 0.0);
        // Either there are joules, or it is said why not.
        assert_ne!(counters.energy.is_empty(), counters.no_energy.is_none());
    }
    let ranks = run(&[("GYAN_MACHINE", "off")]);
    assert!(ranks.iter().all(|rank| rank.host_counters.is_none()));
}

/// What the ranks said that they used, by their own clocks.
fn said(profiled: &Profiled) -> Vec<f64> {
    let lines = profiled.outcome.stdout.lines().filter_map(|line| line.strip_prefix("used"));
    lines.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

/// The program with known threads, with these arguments.
fn threaded(mpi: Mpi, ranks: usize, program: &Path, arguments: &[&str]) -> Profiled {
    // The launchers would bind ranks to a core.
    let settings =
        [("OMPI_MCA_hwloc_base_binding_policy", "none"), ("OMP_NUM_THREADS", "2"), UNPINNED];
    Profiled::preloaded(mpi, ranks, program, arguments, &settings).succeeded()
}

#[test]
fn the_processors_that_ranks_use_are_those_of_their_own_clocks() {
    for (mpi, arguments) in [(OPENMPI, &[][..]), (MPICH, &["-fopenmp"])] {
        let program = mpi.compiled("processors", arguments);
        for (ranks, threads) in [(1, 1_u32), (1, 2), (2, 2)] {
            let profiled = threaded(mpi, ranks, &program, &[&threads.to_string(), "2"]);
            let said = said(&profiled);
            let expected = said.iter().sum::<f64>() / said.len() as f64;
            let summary = reported_summary(&profiled.directory);
            let used = summary.resources.as_ref().unwrap();
            let found = used.processors_used.as_ref().unwrap().avg;
            // The end of MPI is in what gyan counts, but not in what the program does.
            assert!((found - expected).abs() < 0.1 + 0.1 * expected, "{found} {expected}");
            let busy = used.busy_threads.as_ref().unwrap();
            assert_eq!((said.len(), busy.avg), (ranks, f64::from(threads)));
            let openmp = used.openmp.as_ref().map(|of| of.runtime.as_str());
            let is_known = matches!(openmp, Some("libgomp" | "libomp"));
            assert!(arguments.is_empty() || is_known, "{openmp:?}");
            let placement = &summary.placements[0];
            let demand = ranks as u64 * u64::from(threads);
            assert_eq!(placement.demand(), demand);
            assert_eq!(placement.is_oversubscribed, demand > placement.processors);
        }
    }
}

#[test]
fn openmp_threads_of_fortran_are_counted() {
    for mpi in MPIS {
        let program = mpi.fortran_program("processors.f90", &["-fopenmp"]);
        let profiled = threaded(mpi, 1, &program, &[]);
        let used = resources(&profiled.profiles()[0]).clone();
        let (found, expected) = (used.processors_used.unwrap(), said(&profiled)[0]);
        assert!((found - expected).abs() < 0.1 + 0.1 * expected, "{found} {expected}");
        assert_eq!(used.threads.unwrap().busy, 2, "{mpi:?}");
        assert_eq!(used.openmp.unwrap().num_threads.as_deref(), Some("2"), "{mpi:?}");
    }
}

#[test]
fn threads_on_one_core_are_told_while_another_has_none() {
    let Some([first, _]) = two_processors() else { return };
    for mpi in MPIS {
        let program = mpi.program("processors");
        let profiled = threaded(mpi, 1, &program, &["2", "1", &first.to_string()]);
        let summary = reported_summary(&profiled.directory);
        // A host with one core has no free one.
        if summary.machines[0].machine.cores == Some(1) {
            continue;
        }
        let crowded = summary.placements[0].crowded.as_ref().unwrap();
        assert_eq!(crowded.threads_per_core, Some(2.0), "{mpi:?}: {crowded:?}");
        let findings = crate::common::report(&profiled.directory, &["--findings"]).stdout;
        assert!(findings.contains("up to 2 busy threads are bound to one core"), "{findings}");
    }
}
