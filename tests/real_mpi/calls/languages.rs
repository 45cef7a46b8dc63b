//! Whatever language calls MPI, each receive is counted once, and what the program sees is the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{PeerTraffic, Peers, RankProfile};
use tempfile::TempDir;

use crate::common::{MPIS, Mpi, Profiled, bars, call, command, counts, each_library, libgyan, run};
use crate::matrix::{self, Column};

/// The MPIs with Fortran.
fn with_fortran() -> impl Iterator<Item = Mpi> {
    matrix::with(Column::MpifH)
}

/// What the wheel of mpi4py runs on.
fn with_python() -> impl Iterator<Item = Mpi> {
    matrix::with(Column::Mpi4py)
}

/// Runs a program under gyan: it succeeds and prints the same as without.
fn profiled(mpi: Mpi, ranks: usize, program: &[&str]) -> Profiled {
    with_libraries(mpi, ranks, &[&libgyan()], program)
}

/// The same with these libraries preloaded into the ranks.
fn with_libraries(mpi: Mpi, ranks: usize, libraries: &[&Path], program: &[&str]) -> Profiled {
    let settings = [("GYAN_NOTICES", "warnings"), ("OMPI_MCA_pml", "ob1")];
    let run = Profiled::with_libraries(mpi, ranks, libraries, program, &settings);
    run.succeeded().ends_as_without()
}

/// What the other tool counted on each rank.
fn by_tool(run: &Profiled) -> Vec<BTreeMap<String, u64>> {
    let number = |count: &str| count.parse::<u64>().unwrap();
    let counted = |rank| {
        let text = fs::read_to_string(run.place().join(format!("tool.{rank}"))).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, count)| (name.to_owned(), number(count))).collect()
    };
    (0..3).map(counted).collect()
}

/// The calls that receive, each under the name without `_c`.
fn receives(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut receives = BTreeMap::new();
    for (name, count) in counts {
        if name.to_lowercase().contains("recv") {
            *receives.entry(name.trim_end_matches("_c").to_owned()).or_default() += count;
        }
    }
    receives
}

fn assert_receives(profile: &RankProfile, expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> =
        expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let counts = counts(profile);
    assert_eq!(receives(counts.clone()), expected, "rank {}", profile.rank);
    let count = |name| counts.get(name).copied().unwrap_or_default();
    assert_eq!(count("MPI_Init") + count("MPI_Init_thread"), 1, "rank {}", profile.rank);
    assert_eq!(count("MPI_Finalize"), 1, "rank {}", profile.rank);
}

/// What the programs in C++ and Fortran receive.
fn assert_usual_receives(profile: &RankProfile) {
    let expected = [
        ("MPI_Recv", 5 + u64::from(profile.rank)),
        ("MPI_Irecv", 3),
        ("MPI_Sendrecv", 2),
        ("MPI_Recv_init", 1),
    ];
    assert_receives(profile, &expected);
}

fn word(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn receives_in_cxx_are_counted_once_and_exceptions_fly_through() {
    for mpi in each_library() {
        let program = word(&mpi.cxx_program("receives"));
        for mut profile in profiled(mpi, 3, &[&program]).profiles() {
            // The call that does not return counts, too.
            let thrown = profile.calls.iter().position(|call| call.name == "MPI_Sendrecv_replace");
            assert_eq!(profile.calls.remove(thrown.unwrap()).count, 1, "{mpi:?}");
            assert_usual_receives(&profile);
        }
        matrix::passed(mpi, Column::Cxx);
    }
}

#[test]
fn receives_through_every_fortran_binding_are_counted_once() {
    for (column, source) in [
        (Column::MpifH, "fortran_mpif.f"),
        (Column::UseMpi, "fortran_use_mpi.f90"),
        (Column::UseMpiF08, "fortran_use_mpi_f08.f90"),
    ] {
        for mpi in matrix::with(column) {
            let program = word(&mpi.fortran_program(source, &[]));
            for profile in profiled(mpi, 3, &[&program]).profiles() {
                assert_usual_receives(&profile);
            }
            matrix::passed(mpi, column);
        }
    }
}

#[test]
fn names_with_two_underscores_are_counted_once() {
    for mpi in ["openmpi4", "mpich4"].map(Mpi::named) {
        let program = word(&mpi.fortran_program("fortran_mpif.f", &["-fsecond-underscore"]));
        for profile in profiled(mpi, 3, &[&program]).profiles() {
            assert_usual_receives(&profile);
        }
    }
}

#[test]
fn each_spelling_that_the_mpi_has_is_counted_once() {
    for mpi in with_fortran() {
        let library = match mpi.name {
            name if name.starts_with("openmpi") => "-lmpi_mpifh",
            "mpich4" => "-lmpichfort",
            _ => "-lmpifort",
        };
        let program = word(&mpi.compiled("spellings", &["-Wl,--no-as-needed", library]));
        for kind in ["_", "__", "UPPER", "f"] {
            let run = profiled(mpi, 1, &[&program, kind]);
            let said = &run.outcome.stdout;
            // The last is Open MPI's own.
            let there = kind != "f" || mpi.name.starts_with("openmpi");
            assert_eq!(said != "absent\n", there);
            if !there {
                continue;
            }
            let lines = said.lines().filter_map(|line| line.split_once(' '));
            let called: Vec<(String, u64)> =
                lines.map(|(name, count)| (c_name(name), count.trim().parse().unwrap())).collect();
            // Seven receives of MPI 3, two more where the MPI has them; the start and the end.
            let all = called.iter().map(|(name, count)| (name.as_str(), *count));
            let expected: Vec<(&str, u64)> =
                all.filter(|(name, _)| name.to_lowercase().contains("recv")).collect();
            assert!(called.len() >= 9 && expected.len() >= 7, "{called:?}");
            assert_receives(&run.profiles()[0], &expected);
        }
    }
}

/// `MPI_Recv_init` for `mpi_recv_init`.
fn c_name(fortran: &str) -> String {
    let (prefix, rest) = fortran.split_once('_').unwrap();
    let (first, others) = rest.split_at(1);
    format!("{}_{}{others}", prefix.to_uppercase(), first.to_uppercase())
}

#[test]
fn strings_ierr_and_special_addresses_are_as_without_gyan_in_fortran() {
    for (column, binding) in [
        (Column::MpifH, "-DBINDING_MPIF"),
        (Column::UseMpi, "-DBINDING_MPI"),
        (Column::UseMpiF08, "-DBINDING_F08"),
    ] {
        for mpi in matrix::with(column) {
            let program = word(&mpi.fortran_program("fortran_specials.F90", &[binding]));
            for profile in profiled(mpi, 2, &[&program]).profiles() {
                let expected = [("MPI_Recv", 4), ("MPI_Irecv", 2)];
                assert_receives(&profile, &expected);
            }
        }
    }
}

#[test]
fn strings_errors_and_special_addresses_are_as_without_gyan_in_c() {
    // The constant for MPI_ERRORS_RETURN in Intel MPI's library for the standard's interface differs from
    // MPICH's header.
    let other_constants = |mpi: &Mpi| mpi.name == "intelmpi" && *mpi != Mpi::named("intelmpi");
    for mpi in each_library().into_iter().filter(|mpi| !other_constants(mpi)) {
        let program = word(&mpi.program("specials"));
        for profile in profiled(mpi, 2, &[&program]).profiles() {
            assert_receives(&profile, &[("MPI_Recv", 4), ("MPI_Irecv", 2)]);
        }
    }
}

#[test]
fn receives_in_rust_are_counted_once() {
    for mpi in matrix::with(Column::Rust) {
        let program = word(&mpi.rust_program());
        for profile in profiled(mpi, 3, &[&program]).profiles() {
            let expected = [
                ("MPI_Recv", 5 + u64::from(profile.rank)),
                ("MPI_Irecv", 3),
                ("MPI_Mrecv", 2),
                ("MPI_Imrecv", 1),
                ("MPI_Sendrecv", 2),
                ("MPI_Sendrecv_replace", 1),
            ];
            assert_receives(&profile, &expected);
        }
        matrix::passed(mpi, Column::Rust);
    }
}

/// What `receives.py` receives; `matched` when mpi4py receives pickled objects with `MPI_Mrecv`.
fn python_receives(rank: u32, matched: bool) -> Vec<(&'static str, u64)> {
    let mut expected = vec![
        ("MPI_Recv", 4 + u64::from(rank) + if matched { 0 } else { 6 }),
        ("MPI_Irecv", 3),
        ("MPI_Imrecv", 1),
        ("MPI_Sendrecv", 2),
        ("MPI_Sendrecv_replace", 1),
        ("MPI_Recv_init", 1),
    ];
    if matched {
        expected.push(("MPI_Mrecv", 6));
    }
    expected
}

#[test]
fn receives_in_python_are_counted_once() {
    let program = word(&crate::common::root().join("tests/programs/receives.py"));
    for mpi in with_python() {
        // Which way it goes is mpi4py's own.
        let ways = [("mprobe", true), ("no-mprobe", false)];
        for (way, matched) in ways.into_iter().take(if mpi.name == "openmpi4" { 2 } else { 1 }) {
            for profile in profiled(mpi, 3, &["python-mpi4py", &program, way]).profiles() {
                // 6 are pickled, 10 of 4 bytes.
                let right = (profile.rank + 1) % 3;
                let peers = profile.peers.as_ref().map(|peers| peers.messages.as_slice());
                let Some([PeerTraffic { rank: Some(to), number: 16, bytes }]) = peers else {
                    panic!("{mpi:?} {peers:?}");
                };
                assert!(*to == right && *bytes > 40, "{mpi:?} {peers:?}");
                let of = |name: &str| profile.calls.iter().find(|call| call.name.starts_with(name));
                assert_eq!(of("MPI_Sendrecv").map(bars), Some(vec![[3, 2, 8]]), "{mpi:?}");
                let expected = python_receives(profile.rank, matched);
                assert_receives(&profile, &expected);
            }
        }
        matrix::passed(mpi, Column::Mpi4py);
    }
}

#[test]
fn a_tool_after_gyan_counts_the_same_receives_of_python() {
    let program = word(&crate::common::root().join("tests/programs/receives.py"));
    for mpi in matrix::two_with_python() {
        let tool = mpi.preloadable("tool", &[]);
        let program = ["python-mpi4py", &program];
        let run = with_libraries(mpi, 3, &[&libgyan(), &tool], &program);
        for (profile, by_tool) in run.profiles().iter().zip(by_tool(&run)) {
            assert_eq!(receives(counts(profile)), receives(by_tool.clone()));
            assert_eq!(receives(by_tool)["MPI_Mrecv"], 6);
        }
    }
}

/// mpi4py looks for `MPI_Get_version` among the preloaded libraries, and takes the library that defines it for
/// the MPI: it would then load the module for a different MPI.
#[test]
fn mpi4py_finds_the_same_mpi() {
    for mpi in with_python().filter(|mpi| mpi.name != "mpich4") {
        let here = TempDir::new().unwrap();
        let text = "from mpi4py import MPI; print(MPI.__file__, MPI.Get_library_version())";
        let mut words = mpi.alone(Path::new("env"));
        words.extend(["-u", "MPI4PY_MPIABI", "python-mpi4py", "-c", text].map(str::to_owned));
        let bare = run(command(&words).current_dir(&here));
        let with = run(command(&words)
            .current_dir(&here)
            .env("LD_PRELOAD", libgyan())
            .env("GYAN_NOTICES", "warnings"));
        assert_eq!((bare.code, with.code), (0, 0), "{mpi:?} {} {}", bare.stderr, with.stderr);
        assert_eq!(with.stdout, bare.stdout, "{mpi:?}");
    }
}

/// Which tool is in front, and how it forwards, decides which of them see a call.
#[test]
fn another_tool_and_gyan_see_the_same_calls() {
    for mpi in MPIS {
        let program = word(&mpi.program("receives"));
        let (gyan, calling_pmpi) = (libgyan(), mpi.preloadable("tool", &[]));
        let calling_next = mpi.preloadable("tool", &["-DFORWARD_NEXT"]);
        for (libraries, gyan_sees) in [
            ([&gyan, &calling_pmpi], true),
            ([&gyan, &calling_next], true),
            ([&calling_next, &gyan], true),
            // MPI's own definition of the called name comes after gyan's.
            ([&calling_pmpi, &gyan], false),
        ] {
            let run = with_libraries(mpi, 3, &libraries.map(PathBuf::as_path), &[&program]);
            for (profile, by_tool) in run.profiles().iter().zip(by_tool(&run)) {
                assert_eq!(by_tool["MPI_Recv"], 4 + u64::from(profile.rank));
                assert_eq!(by_tool["MPI_Send"], 4);
                let counts = counts(profile);
                for (name, count) in by_tool.iter().filter(|(name, _)| name.contains("ecv")) {
                    let seen = counts.get(name).copied().unwrap_or_default();
                    assert_eq!(seen, if gyan_sees { *count } else { 0 }, "{name}");
                }
                assert_eq!(counts["MPI_Init"], 1);
            }
        }
    }
}

#[test]
fn weak_references_to_what_the_mpi_lacks_stay_null() {
    for mpi in each_library() {
        let program = word(&mpi.program("weak"));
        profiled(mpi, 1, &[&program]);
        // gyan's entry points exist even when it is off.
        Profiled::run(mpi, 1, &["weak"], &[("GYAN", "off")]).succeeded();
    }
}

#[test]
fn bytes_and_objects_are_seen_through_fortran() {
    for (column, binding) in
        [(Column::UseMpi, "-DBINDING_MPI"), (Column::UseMpiF08, "-DBINDING_F08")]
    {
        for mpi in matrix::with(column) {
            let program = word(&mpi.fortran_program("fortran_bytes.F90", &[binding]));
            for profile in profiled(mpi, 2, &[&program]).profiles() {
                let what = format!("{mpi:?} {binding}, rank {}", profile.rank);
                for (name, count, bytes) in [
                    ("MPI_Send", 2, Some(64)),
                    ("MPI_Recv", 1, None),
                    ("MPI_Allreduce", 2, Some(32)),
                    ("MPI_Allgather", 1, Some(12)),
                    ("MPI_Alltoallv", 1, Some(16)),
                    ("MPI_Alltoallw", 1, Some(24)),
                    ("MPI_Put", 1, Some(8)),
                    ("MPI_Comm_dup", 1, None),
                    ("MPI_Comm_idup", 1, None),
                    ("MPI_Win_create", 1, None),
                    ("MPI_Wait", 1, None),
                    ("MPI_Win_free", 1, None),
                ] {
                    let call = call(&profile, name);
                    assert_eq!((call.count, call.bytes), (count, bytes), "{what} {name}");
                    if name == "MPI_Send" {
                        assert_eq!(bars(call), [[0, 1, 0], [7, 1, 64]], "{what}");
                    }
                }
                let to = |bytes| PeerTraffic { rank: Some(1 - profile.rank), number: 1, bytes };
                let expected = Peers { messages: vec![to(64)], accesses: vec![to(8)] };
                assert_eq!(profile.peers.as_ref(), Some(&expected), "{what}");
                if mpi.name.starts_with("openmpi") {
                    let name = "pml_ob1_unexpected_msgq_length";
                    let of_name = profile.pvars.iter().filter(|pvar| pvar.name == name);
                    let objects: Vec<&str> =
                        of_name.map(|pvar| pvar.object.as_deref().unwrap()).collect();
                    let expected = ["MPI_COMM_WORLD", "copy", "communicator of 2 ranks #2"];
                    assert_eq!(objects, expected, "{what}");
                }
            }
        }
    }
}

/// A good part of mpi4py's own tests: which pass, which are skipped and why.
#[test]
fn the_tests_of_mpi4py_end_as_without_gyan() {
    // The others take minutes, fail without gyan, or print process ids.
    let modules =
        "test_(address|cco_pr|comm|environ|errorcode|info|p2p|pack$|request|session|status)";
    let start = "import runpy, sys; tests = sys.prefix + '/test'; sys.path.insert(0, tests); \
                 runpy.run_path(tests + '/main.py', run_name='__main__')";
    let results = |mpi: Mpi, preload: &str| -> Vec<String> {
        let here = TempDir::new().unwrap();
        let preload = format!("LD_PRELOAD={preload}");
        let mut words = mpi.mpirun(1);
        words.extend(["env", &preload, "python-mpi4py", "-B", "-c", start].map(str::to_owned));
        words.extend(["-v", "-i", modules].map(str::to_owned));
        let outcome = run(command(&words).current_dir(&here));
        assert_eq!(outcome.code, 0, "{mpi:?} {preload} {}", outcome.stderr);
        let lines = outcome.stderr.lines().filter(|line| line.contains(" ... "));
        lines.map(str::to_owned).collect()
    };
    // They have the most functions.
    for mpi in ["openmpi5", "mpich5"].map(Mpi::named) {
        let bare = results(mpi, "");
        assert!(bare.iter().filter(|line| line.ends_with(" ... ok")).count() > 300, "{mpi:?}");
        let with = results(mpi, &word(&libgyan()));
        assert_eq!(with.len(), bare.len(), "{mpi:?}");
        let differing = with.iter().zip(&bare).find(|(with, bare)| with != bare);
        assert_eq!(differing, None, "{mpi:?}");
    }
}
