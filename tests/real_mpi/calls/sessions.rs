//! MPI by sessions: one run from the first start to the last end.

use std::fs;
use std::time::Instant;

use tempfile::TempDir;

use crate::common::{
    BED, Mpi, OPENMPI5, Profiled, bag_of, command, counts, libgyan, profiles, run, succeed,
};

/// Those of the test bed with these names, for each interface.
fn bed(names: &[&str]) -> impl Iterator<Item = Mpi> {
    BED.into_iter().filter(move |mpi| names.contains(&mpi.name))
}

fn check(mpi: Mpi, how: &str, receives: u64, starts: u64) {
    check_ranks(mpi, 2, how, receives, starts);
}

fn check_ranks(mpi: Mpi, ranks: usize, how: &str, receives: u64, starts: u64) {
    let run = Profiled::run(mpi, ranks, &["sessions", how], &[]).succeeded();
    let expected = bag_of(&format!("received {receives}\n").repeat(ranks));
    assert_eq!(run.outcome.stdout_of_ranks(), expected);
    assert_eq!(run.outcome.notices().len(), 1);
    let profiles = run.profiles();
    for (rank, profile) in profiles.iter().enumerate() {
        assert_eq!((profile.rank as usize, profile.size as usize), (rank, ranks));
        let counts = counts(profile);
        assert_eq!(counts["MPI_Recv"], receives);
        assert_eq!(counts["MPI_Session_init"], starts);
        assert_eq!(counts["MPI_Session_finalize"], starts);
        assert_eq!(profile.coverage.exported == 0, profile.pvars.is_empty());
        assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
    }
}

#[test]
fn one_session_and_two_that_overlap_are_one_run() {
    for mpi in bed(&["mpich4", "openmpi5", "mpich5", "intelmpi", "mpich-pvars"]) {
        check(mpi, "once", 6, 1);
        check(mpi, "twice", 12, 2);
    }
}

/// Open MPI 5.0.11 dies there in `MPI_Session_finalize` of an `MPI_T` that was initialised with `MPI_THREAD_MULTIPLE`.
#[test]
fn a_session_ends_well_on_a_host_with_two_networks() {
    const TWO: &str = "ip link set lo up; for n in 1 2; do ip link add gyan$n type bridge; \
                       ip addr add 10.99.$n.1/24 dev gyan$n; ip link set gyan$n up; done; exec \"$@\"";
    let front = ["unshare", "--net", "sh", "-c", TWO, "sh"].map(str::to_owned);
    if run(&mut command(&[&front[..], &["true".into()]].concat())).code != 0 {
        eprintln!("skipped: a network of its own for a process takes root");
        return;
    }
    let here = TempDir::new().unwrap();
    let mut words = OPENMPI5.mpirun_after(&front, 2);
    words.extend([OPENMPI5.program("sessions").display().to_string(), "once".into()]);
    let mut sessions = command(&words);
    succeed(sessions.env("GYAN_OUTPUT", here.path()).env("LD_PRELOAD", libgyan()));
    profiles(here.path(), 2);
}

#[test]
fn the_world_model_inside_a_session_is_part_of_the_run() {
    // Intel MPI refuses MPI_Init beside a session.
    for mpi in bed(&["mpich4", "openmpi5", "mpich5", "mpich-pvars"]) {
        check(mpi, "both", 18, 1);
    }
}

#[test]
fn a_run_goes_on_when_mpi_is_initialised_again() {
    // The others die of it, even without gyan. So does MPICH 5 with two ranks on a busy machine: the first message of a
    // session may meet a receive of the one before.
    for mpi in bed(&["mpich5"]) {
        check_ranks(mpi, 1, "again", 12, 2);
    }
}

/// The keeper writes them; each is renamed when it is complete.
#[test]
fn the_profile_of_a_program_that_opens_one_session_after_the_other_is_not_written_each_time() {
    // As above.
    for mpi in bed(&["mpich5"]) {
        check_ranks(mpi, 1, "often", 126, 21);
        let here = TempDir::new().unwrap();
        let trace = here.path().join("trace");
        let program = mpi.program("sessions");
        let words = [
            mpi.mpirun(1),
            ["strace", "-f", "-e", "trace=/rename", "-o"].map(str::to_owned).to_vec(),
            vec![trace.display().to_string(), "-E".into()],
            vec![format!("LD_PRELOAD={}", libgyan().display())],
            vec![program.display().to_string(), "often".into()],
        ];
        let mut sessions = command(&words.concat());
        let begun = Instant::now();
        let outcome = run(sessions.env("GYAN_OUTPUT", here.path().join("profile")));
        let most = 2 + begun.elapsed().as_secs() / 10;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let trace = fs::read_to_string(trace).unwrap();
        let written = trace.lines().filter(|line| line.contains("rank-000000.json\"")).count();
        assert!((1..=most).contains(&(written as u64)), "{written} times: {trace}");
    }
}
