//! Who sends how much to whom: exact, in every mode and over every kind of communicator.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use gyan_results::{PeerTraffic, Peers, RankProfile, rank_file_name};

use super::sites::four;
use crate::common::{MPIS, Mpi, Profiled, bars, call, each_library, libgyan, lives};
use crate::matrix::{self, Column};

/// What each rank should have sent, by way and rank, and the sizes of what it started.
type Truth = (BTreeMap<(String, u32), (u64, u64)>, Vec<(String, [u64; 3])>);

fn program(mpi: Mpi) -> PathBuf {
    // Its device has no partitioned communication.
    let options: &[&str] = if mpi.name == "mpich-pvars" { &["-DNO_PARTITIONED"] } else { &[] };
    mpi.compiled("traffic", options)
}

fn truth(run: &Profiled, rank: u32) -> Truth {
    let (mut peers, mut sizes) = Truth::default();
    for line in run.truth(rank) {
        let number = |at: usize| line[at].parse::<u64>().unwrap();
        match line[0].as_str() {
            "asked" => {}
            "size" => sizes.push((line[1].clone(), [2, 3, 4].map(number))),
            way => {
                let to = u32::try_from(number(1)).unwrap();
                peers.insert((way.to_owned(), to), (number(2), number(3)));
            }
        }
    }
    (peers, sizes)
}

fn assert_true(run: &Profiled, profile: &RankProfile, mpi: Mpi) {
    let (peers, sizes) = truth(run, profile.rank);
    let what = format!("{mpi:?} rank {}", profile.rank);
    let Some(Peers { messages, accesses }) = &profile.peers else { panic!("{what}: no peers") };
    let row = |way: &str, row: &PeerTraffic| {
        ((way.to_owned(), row.rank.unwrap_or(u32::MAX)), (row.number, row.bytes))
    };
    let messages = messages.iter().map(|of| row("message", of));
    let accesses = accesses.iter().map(|of| row("access", of));
    assert_eq!(messages.chain(accesses).collect::<BTreeMap<_, _>>(), peers, "{what}");
    let mut found: Vec<(String, [u64; 3])> = Vec::new();
    for (name, _) in &sizes {
        if !found.iter().any(|(known, _)| known == name) {
            found.extend(bars(call(profile, name)).into_iter().map(|bar| (name.clone(), bar)));
        }
    }
    let sorted = |mut list: Vec<(String, [u64; 3])>| {
        list.sort();
        list
    };
    assert_eq!(sorted(found), sorted(sizes), "{what}");
}

fn run(mpi: Mpi, arguments: &[&str]) -> Profiled {
    Profiled::preloaded(mpi, 4, &program(mpi), arguments, &[])
}

#[test]
fn messages_and_accesses_are_counted_by_their_peers_in_the_world() {
    for mpi in each_library() {
        // How threads count is gyan's own.
        let ways = if ["openmpi4", "mpich4"].contains(&mpi.name) { 2 } else { 1 };
        for arguments in [&[][..], &["threads"]].into_iter().take(ways) {
            let run = run(mpi, arguments).succeeded();
            for profile in run.profiles() {
                assert_true(&run, &profile, mpi);
            }
        }
    }
}

/// The program asks `MPI_Group_translate_ranks` who its peers are.
#[test]
fn a_peer_is_asked_for_when_it_is_first_met_and_a_duplicate_knows_what_its_parent_does() {
    for mpi in each_library() {
        let program = mpi.compiled("groups", &["-rdynamic"]);
        let version = ["-Wl,-soname,GLIBC_2.34", "-Wl,--default-symver"];
        let questions = mpi.preloadable("translations", &["-O2", version[0], version[1]]);
        let program = [program.to_str().unwrap()];
        let run = Profiled::with_libraries(mpi, 5, &[&libgyan(), &questions], &program, &[]);
        let run = run.succeeded();
        for profile in run.profiles() {
            assert_true(&run, &profile, mpi);
            for asked in run.truth(profile.rank).iter().filter(|line| line[0] == "asked") {
                let (step, ranks) = (asked[1].as_str(), asked[3].as_str());
                let expected = match step {
                    "making" | "dup" | "twice" | "idup" | "grid" | "small" | "graph" | "within"
                    | "again" | "like" | "known" | "after" | "between-dup" | "another"
                    // A window knows what its communicator does.
                    | "window" | "access" => "0",
                    // Messages between two groups are not compared, so whom they come from is not asked. Of the
                    // members four of five were met.
                    "between" | "members" => "1",
                    // To whom it sends, and from whom it receives.
                    "line" | "reordered" | "first" | "second" | "created" | "merged" => "2",
                    _ => panic!("{step}"),
                };
                assert_eq!(ranks, expected, "{mpi:?} rank {} {step}", profile.rank);
            }
        }
    }
}

#[test]
fn peers_are_known_on_duplicates_and_other_communicators_through_fortran() {
    for (column, binding) in
        [(Column::UseMpi, "-DBINDING_MPI"), (Column::UseMpiF08, "-DBINDING_F08")]
    {
        for mpi in matrix::with(column) {
            let program = mpi.fortran_program("groups.F90", &[binding]);
            let run = Profiled::preloaded(mpi, 4, &program, &[], &[]).succeeded();
            for profile in run.profiles() {
                assert_true(&run, &profile, mpi);
            }
        }
    }
}

#[test]
fn peers_of_ranks_that_are_killed_are_known() {
    for mpi in MPIS {
        let run = run(mpi, &["killed"]);
        // What was known last may be older than the last call.
        for profile in lives(&run.directory, 4) {
            let (expected, _) = truth(&run, profile.rank);
            let Some(Peers { messages, accesses }) = &profile.peers else { panic!("{mpi:?}") };
            for (way, rows) in [("message", messages), ("access", accesses)] {
                for row in rows {
                    let (number, bytes) = expected[&(way.to_owned(), row.rank.unwrap())];
                    assert!(row.number <= number && row.bytes <= bytes, "{mpi:?} {way} {row:?}");
                }
            }
            for send in profile.calls.iter().filter(|call| call.name == "MPI_Send") {
                assert_eq!(bars(send).iter().map(|bar| bar[2]).sum::<u64>(), send.bytes.unwrap());
            }
        }
    }
}

/// With everything that is recorded by default, whatever the library.
#[test]
fn the_profile_of_ten_functions_and_four_peers_is_less_than_26_kb() {
    for mpi in four() {
        let run = Profiled::run(mpi, 5, &["typical"], &[]).succeeded();
        for profile in run.profiles() {
            let file = run.directory.join(rank_file_name(profile.rank));
            let bytes = fs::metadata(file).unwrap().len();
            println!("{mpi:?}, rank {}: {bytes} bytes", profile.rank);
            let RankProfile { calls, peers, sites, waiting, machine, resources, .. } = profile;
            let peers = peers.map_or(0, |peers| peers.messages.len());
            assert_eq!((calls.len(), peers), (12, 4), "{mpi:?} {calls:?}");
            assert!(sites.is_some() && waiting.len() == 4, "{mpi:?} {waiting:?}");
            assert!(machine.is_some() || resources.is_some(), "{mpi:?}");
            assert!(bytes < 26_000, "{mpi:?}: {bytes}");
        }
    }
}
