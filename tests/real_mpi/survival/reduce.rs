//! The reduction inside MPI: it writes what `gyan reduce` makes of the files, and whatever the ranks do, the
//! program ends and nothing is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gyan_results::{SUMMARY_FILE, Summary, read_summary};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{
    MPICH, MPICH_PVARS, MPIS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Outcome, Profiled, bag_of,
    command, each_library, gyan, libgyan, lives, profiles, ranks_that_left, root, run, succeed,
};

const IN_MPI: (&str, &str) = ("GYAN_REDUCE", "mpi");
const BOTH: (&str, &str) = ("GYAN_REDUCE", "both");
const SIGKILL: i32 = 9;
/// For ranks that are late on purpose, on a busy machine.
const SOON: (&str, &str) = ("GYAN_REDUCE_TIMEOUT", "1s");

fn summary(directory: &Path) -> Summary {
    read_summary(&directory.join(SUMMARY_FILE)).unwrap()
}

/// Everything except who reduced.
fn numbers(directory: &Path) -> Value {
    let mut summary = summary(directory);
    summary.reduced_in_mpi = None;
    serde_json::to_value(summary).unwrap()
}

/// The ranks that wrote a profile, which can be read.
fn written(directory: &Path) -> Vec<u32> {
    let ranks = ranks_that_left(directory);
    profiles(directory, ranks.len());
    ranks
}

/// Runs a command line on some ranks, with libgyan.so preloaded.
fn preloaded(mpi: Mpi, ranks: usize, words: &[String], settings: &[(&str, &str)]) -> Profiled {
    let (file, arguments) = words.split_first().unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Profiled::preloaded(mpi, ranks, Path::new(file), &arguments, settings)
}

/// The command line that runs `program` with another environment on one rank.
fn but_on(rank: u32, otherwise: &str, program: &[String]) -> Vec<String> {
    let script = root().join("tests/programs/but_on").display().to_string();
    let mut words = vec![script, rank.to_string(), otherwise.to_owned()];
    words.extend_from_slice(program);
    words
}

fn uneven(mpi: Mpi, how: &[&str]) -> Vec<String> {
    let program = mpi.program("uneven");
    [&[program.to_str().unwrap()], how].concat().into_iter().map(str::to_owned).collect()
}

/// Bit by bit, whatever the number of ranks.
#[test]
fn the_summary_is_the_one_that_the_files_give() {
    for mpi in MPIS {
        for (ranks, program, argument, settings) in [
            (1, "receives", None, &[BOTH][..]),
            (2, "phases", None, &[BOTH, ("GYAN_BUDGET", "none"), ("GYAN_SERIES", "1ms")]),
            (2, "unexpected", Some("-"), &[BOTH, ("GYAN_WATCH", "umq>0")]),
            (7, "receives", None, &[BOTH]),
            (3, "delays", None, &[BOTH]),
            (8, "receives", None, &[BOTH, ("GYAN_BUDGET", "none")]),
        ] {
            let argument: Vec<&str> = argument.into_iter().collect();
            let file = mpi.with_header(program);
            let run = Profiled::preloaded(mpi, ranks, &file, &argument, settings).succeeded();
            assert_eq!(written(&run.directory).len(), ranks);
            check_against_files(&run.directory);
        }
    }
}

/// The summary in the directory, and the one that its profiles give.
pub(crate) fn check_against_files(directory: &Path) {
    let by_ranks = numbers(directory);
    succeed(gyan().arg("reduce").arg(directory));
    let by_gyan = numbers(directory);
    let (Value::Object(by_ranks), Value::Object(by_gyan)) = (by_ranks, by_gyan) else { panic!() };
    assert_eq!(by_ranks.keys().collect::<Vec<_>>(), by_gyan.keys().collect::<Vec<_>>());
    for (key, value) in by_ranks {
        assert_eq!(value, by_gyan[&key], "{}: {key}", directory.display());
    }
}

/// Pairs of ranks in namespaces with their own host names.
#[test]
fn the_hosts_in_the_summary_are_those_that_the_files_give() {
    const NAMED: &str = "hostname n$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)); exec \"$0\"";
    if run(&mut command(&["unshare", "--uts", "true"])).code != 0 {
        eprintln!("skipped: a host name of its own for a process takes root");
        return;
    }
    for mpi in MPIS {
        let program = mpi.program("receives").display().to_string();
        let words = ["unshare", "--uts", "sh", "-c", NAMED, &program].map(str::to_owned);
        let ran = preloaded(mpi, 6, &words, &[BOTH]).succeeded();
        let summary = summary(&ran.directory);
        let hosts: Vec<_> = summary.by_host.iter().map(|of| (&*of.host, &*of.ranks)).collect();
        assert_eq!(hosts, [("n0", "0-1"), ("n1", "2-3"), ("n2", "4-5")], "{mpi:?}");
        assert!(summary.by_host.iter().all(|host| host.in_mpi.is_some()), "{mpi:?}");
        check_against_files(&ran.directory);
    }
}

#[test]
fn ranks_whose_variables_differ_are_merged_by_name() {
    for mpi in [OPENMPI, MPICH_PVARS] {
        let program = [mpi.program("receives").display().to_string()];
        let words = but_on(1, "GYAN_PVARS=-*unexpected*", &program);
        let ran = preloaded(mpi, 5, &words, &[BOTH]).succeeded();
        let profiles = ran.profiles();
        let of = |rank: usize| profiles[rank].pvars.len();
        assert!(of(1) < of(0), "{mpi:?}: rank 1 reads as many variables");
        check_against_files(&ran.directory);
    }
}

/// The command line that runs `program` on hosts with these names, one for each rank; none if host names cannot
/// be changed.
fn on_hosts(names: &[String], program: &[String]) -> Option<Vec<String>> {
    let try_out = run(&mut command(&["unshare", "--uts", "hostname", "n1"]));
    if try_out.code != 0 {
        assert!(std::env::var_os("CI").is_none(), "{}", try_out.stderr);
        eprintln!("skipped: a host cannot be given another name here: {}", try_out.stderr);
        return None;
    }
    let script = root().join("tests/programs/on_host").display().to_string();
    Some([&[script, names.join(",")], program].concat())
}

/// Host names with a common prefix, for ranks on the hosts with these numbers.
fn names(hosts: impl IntoIterator<Item = usize>) -> Vec<String> {
    hosts.into_iter().map(|host| format!("a-node.rack{host}.example")).collect()
}

#[test]
fn the_summary_is_the_same_on_whichever_hosts_the_ranks_are() {
    // Who sends what to whom does not depend on the MPI, and what they send on its variables.
    for (mpi, placements) in [(MPICH, 8), (OPENMPI, 2), (OPENMPI_SPC, 2)] {
        let all: [Vec<usize>; 8] = [
            (0..10).map(|rank| rank / 3).collect(),
            vec![2, 0, 1, 1, 2, 0, 0, 0, 1],
            vec![0; 6],
            (0..7).collect(),
            (0..8).map(|rank| rank / 2).collect(),
            (0..8).map(|rank| rank % 4).collect(),
            (0..10).map(|rank| rank % 3).collect(),
            vec![0, 0, 0, 0, 0, 1, 2, 2, 2],
        ];
        for hosts in all.into_iter().take(placements) {
            let ranks = hosts.len();
            let different: BTreeSet<String> = names(hosts.iter().copied()).into_iter().collect();
            let program = [mpi.with_header("receives").display().to_string()];
            let Some(words) = on_hosts(&names(hosts.iter().copied()), &program) else { return };
            let settings = [BOTH, ("GYAN_BUDGET", "none")];
            let ran = preloaded(mpi, ranks, &words, &settings).succeeded();
            let summary = summary(&ran.directory);
            assert!(summary.reduced_in_mpi.is_some());
            assert!(summary.hosts.iter().eq(&different), "{:?}", summary.hosts);
            assert_eq!(written(&ran.directory).len(), ranks);
            check_against_files(&ran.directory);
        }
    }
}

#[test]
fn a_host_that_comes_too_late_costs_the_summary_and_nothing_else() {
    for mpi in MPIS {
        for (timeout, reduces) in [("1s", false), ("60s", true)] {
            let program = uneven(mpi, &["3-5", "sleep", "3000"]);
            let Some(words) = on_hosts(&names((0..9).map(|rank| rank / 3)), &program) else {
                return;
            };
            let settings = [IN_MPI, ("GYAN_REDUCE_TIMEOUT", timeout)];
            let ran = preloaded(mpi, 9, &words, &settings);
            let outcome = &ran.outcome;
            assert_eq!((outcome.code, said_by_program(outcome)), (0, "sum 36"), "{outcome:?}");
            assert_eq!(ran.directory.join(SUMMARY_FILE).exists(), reduces, "{mpi:?} {timeout}");
            if !reduces {
                assert_eq!(written(&ran.directory).len(), 9, "{mpi:?}: {outcome:?}");
            }
            lives(&ran.directory, 0);
        }
    }
}

#[test]
fn a_summary_stands_for_the_profiles_that_are_not_there() {
    const RANKS: usize = 20;
    for mpi in MPIS {
        let run = Profiled::run(mpi, RANKS, &["receives"], &[IN_MPI]).succeeded();
        let directory = &run.directory;
        let summary = summary(directory);
        let reduced = summary.reduced_in_mpi.as_ref().unwrap();
        assert_eq!((summary.ranks.reduced, summary.ranks.missing.len()), (20, 0), "{mpi:?}");
        let time_s = &summary.in_mpi.as_ref().unwrap().time_s;
        for rank in [0, time_s.min_rank, time_s.max_rank] {
            assert!(reduced.profiles.contains(&rank), "{mpi:?}: {rank} of {reduced:?}");
        }
        assert_eq!(written(directory), reduced.profiles, "{mpi:?}");
        assert!(reduced.profiles.len() <= 5, "{mpi:?}: {reduced:?}");
        lives(directory, 0);

        let report = crate::common::report(directory, &[]);
        assert_eq!((report.code, report.stderr.as_str()), (0, ""), "{mpi:?}");
        assert!(report.stdout.contains("20 ranks"), "{}", report.stdout);
        assert!(report.stdout.contains("reduced by the ranks themselves"), "{}", report.stdout);
        for (verb, says) in [("reduce", "nothing left to reduce"), ("pack", "there are few files")]
        {
            let refused = crate::common::run(gyan().arg(verb).arg(directory));
            assert_eq!(refused.code, 2, "{verb}: {}", refused.stderr);
            assert!(refused.stderr.contains(says), "{}", refused.stderr);
        }
        let export = crate::common::run(gyan().args(["export", "--format", "csv"]).arg(directory));
        assert!(export.stderr.contains("of 20 ranks are here"), "{}", export.stderr);
    }
}

#[test]
fn the_ranks_that_are_extreme_in_a_variable_keep_their_profiles() {
    const NAME: &str = "pml_ob1_unexpected_msgq_length";
    let settings = [IN_MPI, ("GYAN_REDUCE_PROFILES", NAME)];
    let run = Profiled::run(OPENMPI, 8, &["receives"], &settings).succeeded();
    let summary = summary(&run.directory);
    let rows = summary.pvars.iter().filter(|row| row.name == NAME);
    let mut expected: Vec<u32> =
        rows.flat_map(|row| [row.statistic.min_rank, row.statistic.max_rank]).collect();
    expected.push(0);
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(written(&run.directory), expected);
}

#[test]
fn every_mpi_reduces() {
    for mpi in each_library() {
        let run = Profiled::run(mpi, 3, &["receives"], &[BOTH]).succeeded();
        assert!(summary(&run.directory).reduced_in_mpi.is_some(), "{mpi:?}: {:?}", run.outcome);
        check_against_files(&run.directory);
    }
}

#[test]
fn the_callbacks_of_the_programs_attributes_run_as_often_as_without_gyan() {
    for mpi in each_library() {
        let run = Profiled::run(mpi, 3, &["copy_callback"], &[IN_MPI]);
        let outcome = &run.outcome;
        let said = (outcome.code, outcome.stdout_of_ranks());
        assert_eq!(said, (0, bag_of(&"copied\n".repeat(3))), "{mpi:?}: {outcome:?}");
        assert!(summary(&run.directory).reduced_in_mpi.is_some(), "{mpi:?}: {outcome:?}");
    }
}

#[test]
fn a_receive_that_the_program_left_behind_gets_no_data() {
    for mpi in [OPENMPI, OPENMPI5, MPICH] {
        for (which, reduces) in [("any", true), ("some", false)] {
            let file = mpi.program("left_behind");
            let ran = Profiled::preloaded(mpi, 4, &file, &[which], &[IN_MPI, SOON]);
            let outcome = &ran.outcome;
            // UCX, below MPICH, reports them.
            let untouched = outcome.stdout.matches("untouched").count();
            assert_eq!((outcome.code, untouched), (0, 4), "{mpi:?} {which}: {outcome:?}");
            assert_eq!(ran.directory.join(SUMMARY_FILE).exists(), reduces, "{mpi:?}: {outcome:?}");
            assert!(reduces || written(&ran.directory).len() == 4, "{mpi:?}: {outcome:?}");
        }
    }
}

/// UCX, below MPICH, reports on stdout an operation that did not end.
fn said_by_program(outcome: &Outcome) -> &str {
    let mut lines = outcome.stdout.lines().filter(|line| !line.contains("UCX  WARN"));
    let said = lines.next().unwrap();
    assert_eq!(lines.next(), None, "{outcome:?}");
    said
}

#[test]
fn a_rank_that_comes_too_late_costs_the_summary_and_nothing_else() {
    for mpi in MPIS {
        for late in ["0", "3"] {
            let ran = preloaded(mpi, 6, &uneven(mpi, &[late, "sleep", "3000"]), &[IN_MPI, SOON]);
            let outcome = &ran.outcome;
            assert_eq!((outcome.code, said_by_program(outcome)), (0, "sum 15"), "{outcome:?}");
            let profiles = ran.profiles();
            assert!(!ran.directory.join(SUMMARY_FILE).exists(), "{mpi:?}");
            for profile in profiles {
                let why = profile.warnings.iter().find(|text| text.starts_with("GYAN_REDUCE: "));
                assert!(why.unwrap().ends_with("each rank writes a file"), "{why:?}");
            }
            let said = outcome.notices().into_iter().filter(|line| line.contains("GYAN_REDUCE"));
            assert_eq!(said.count(), 1, "{outcome:?}");
        }
    }
}

#[test]
fn a_rank_that_is_a_little_late_is_waited_for() {
    for mpi in MPIS {
        let ran = preloaded(mpi, 4, &uneven(mpi, &["2", "sleep", "700"]), &[IN_MPI]).succeeded();
        assert!(summary(&ran.directory).reduced_in_mpi.unwrap().time_s > 0.3, "{mpi:?}");
        lives(&ran.directory, 0);
    }
}

#[test]
fn where_gyan_is_missing_in_some_ranks_nothing_hangs() {
    for mpi in MPIS {
        for missing in [0, 3] {
            let words = but_on(missing, "LD_PRELOAD=", &uneven(mpi, &["9", "sleep", "0"]));
            let ran = preloaded(mpi, 5, &words, &[IN_MPI, SOON]);
            let outcome = &ran.outcome;
            assert_eq!((outcome.code, said_by_program(outcome)), (0, "sum 10"), "{outcome:?}");
            let expected: Vec<u32> = (0..5).filter(|&rank| rank != missing).collect();
            assert_eq!(written(&ran.directory), expected, "{mpi:?}");
        }
    }
}

#[test]
fn a_job_of_several_programs_writes_files_without_waiting() {
    for mpi in MPIS {
        let program = uneven(mpi, &["9", "sleep", "0"]);
        let with =
            [&["env".to_owned(), format!("LD_PRELOAD={}", libgyan().display())], &program[..]];
        let colon = [":", "-n", "2"].map(str::to_owned);
        let here = TempDir::new().unwrap();
        let line = [&mpi.mpirun(2)[..], &with.concat(), &colon, &program].concat();
        let mut command = command(&line);
        // The timeout of the test would catch a rank that waits.
        command.current_dir(&here).env("GYAN_REDUCE_TIMEOUT", "1h").env(IN_MPI.0, IN_MPI.1);
        let outcome = run(command.env("GYAN_OUTPUT", "profile"));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "sum 6\n"), "{outcome:?}");
        assert_eq!(written(&here.path().join("profile")), [0, 1], "{mpi:?}");
        let said = "programs, and gyan may not be in all of them";
        assert!(outcome.stderr.contains(said), "{mpi:?}: {}", outcome.stderr);
    }
}

/// The launcher kills the other ranks. MPICH's returns the code of the rank that left or of one that it killed,
/// at random, even without gyan.
#[test]
fn a_rank_that_ends_in_another_way_ends_the_job() {
    for mpi in MPIS {
        for (way, code) in [("abort", 4), ("exit", 3)] {
            let words = uneven(mpi, &["2", way, &code.to_string()]);
            let ran = preloaded(mpi, 4, &words, &[IN_MPI, SOON]);
            let outcome = &ran.outcome;
            let races = mpi == MPICH && way == "exit";
            let is_right = outcome.code == code || races && outcome.code == SIGKILL;
            assert!(is_right, "{mpi:?} {way}: {outcome:?}");
            let written = written(&ran.directory);
            let lives = lives(&ran.directory, 4 - written.len());
            let lives = lives.iter().map(|known| known.rank);
            let known: BTreeSet<u32> = written.into_iter().chain(lives).collect();
            assert!(known.iter().eq(&[0, 1, 2, 3]), "{mpi:?} {way}: {known:?} {outcome:?}");
        }
    }
}

#[test]
fn gyan_run_reduces_when_it_is_told_to_or_there_are_many() {
    let words = OPENMPI.launch(8, "receives", &[]);
    for (option, reduces) in
        [(None, false), (Some("--reduce"), true), (Some("--reduce=off"), false)]
    {
        let run = Profiled::by_command(option.as_slice(), 8, &words, &[]).succeeded();
        assert!(run.outcome.stderr.contains("8 ranks on"));
        assert_eq!(run.directory.join(SUMMARY_FILE).exists(), reduces);
        assert_eq!(written(&run.directory).len() < 8, reduces);
    }
}

/// A directory that is used again.
#[test]
fn a_later_run_with_files_is_reported_by_them() {
    let here = TempDir::new().unwrap();
    let run_with = |ranks, reduce: (&str, &str)| {
        let line = MPICH.launch(ranks, "receives", &[]);
        let mut command = command(&line);
        command.current_dir(&here).env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", "profile");
        succeed(command.env(reduce.0, reduce.1));
    };
    let directory = here.path().join("profile");
    let ranks = || {
        let report = crate::common::report(&directory, &["--format", "json"]);
        let summary: Value = serde_json::from_str(&report.stdout).unwrap();
        (summary["ranks"]["expected"].as_u64(), summary["reduced_in_mpi"].is_null())
    };
    run_with(12, IN_MPI);
    assert_eq!(ranks(), (Some(12), false));
    run_with(3, ("GYAN_REDUCE", "off"));
    assert_eq!(ranks(), (Some(3), true));
    run_with(11, IN_MPI);
    assert_eq!(ranks(), (Some(11), false));
    assert!(fs::read_dir(&directory).unwrap().count() > 1);
}

/// The library's variables count the program's messages, not gyan's.
#[test]
fn no_variable_counts_what_the_reduction_takes() {
    let sent = |reduce| {
        let settings = [reduce, ("GYAN_ENABLE", "monitoring")];
        let run = Profiled::run(OPENMPI5, 4, &["uneven", "9", "sleep", "0"], &settings).succeeded();
        let of_rank_1 = run.profiles().into_iter().find(|profile| profile.rank == 1).unwrap();
        let pvars = of_rank_1.pvars.into_iter();
        let mut counted = pvars.filter(|pvar| pvar.name == "pml_monitoring_messages_count");
        counted.next().unwrap().delta.unwrap()
    };
    assert_eq!(sent(BOTH), sent(("GYAN_REDUCE", "off")));
}
