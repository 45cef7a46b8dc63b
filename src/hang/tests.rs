use gyan_results::{FrameNow, OperationNow, Peer};

use super::*;

pub(super) const NOW_MS: u64 = 1_000_000;

pub(crate) fn call(function: &str) -> RankNow {
    RankNow {
        in_mpi: true,
        function: Some(function.into()),
        number: 1,
        since_ms: NOW_MS - 60_000,
        communicator: Some(CommunicatorNow::World),
        ..RankNow::default()
    }
}

fn receive(source: u32) -> Doing {
    Doing::Still(RankNow { source: Some(Peer::World(source)), tag: Some(7), ..call("MPI_Recv") })
}

fn any() -> Doing {
    Doing::Still(RankNow { source: Some(Peer::Any), ..call("MPI_Recv") })
}

fn barrier() -> Doing {
    Doing::Still(call("MPI_Barrier"))
}

fn own_code() -> Doing {
    Doing::Still(RankNow { in_mpi: false, ..call("MPI_Recv") })
}

fn of(doing: Vec<Doing>) -> JobNow {
    let size = u32::try_from(doing.len()).unwrap();
    let ranks = (0..).zip(doing).map(|(rank, doing)| RankDoing::new(rank, "n1", doing));
    of_ranks(size, ranks.collect())
}

pub(super) fn of_ranks(size: u32, ranks: Vec<RankDoing>) -> JobNow {
    let (job, is_over, looked_ms) = ("1".into(), false, NOW_MS);
    job_now(Seen { job, size, is_over, looked_ms, ranks }, &mut |_| "here.c:1".into())
}

fn cause_of(doing: Vec<Doing>) -> Option<(HangKind, Vec<u32>)> {
    of(doing).cause.map(|cause| (cause.kind, cause.ranks))
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock_and_the_shortest_circle_is_named() {
    let deadlock = |ranks: &[u32]| Some((HangKind::Deadlock, ranks.to_vec()));
    assert_eq!(cause_of(vec![receive(1), receive(0)]), deadlock(&[0, 1]));
    assert_eq!(cause_of(vec![receive(1), receive(2), receive(0)]), deadlock(&[0, 1, 2]));
    // A receive against a barrier.
    assert_eq!(cause_of(vec![barrier(), receive(3), barrier(), barrier()]), deadlock(&[1, 3]));
    // Of ranks that came a moment ago it is not certain; those that have been stuck for long are stuck without them.
    let just =
        |function: &str| Doing::Still(RankNow { since_ms: NOW_MS - 4_000, ..call(function) });
    let (both, circle) = (vec![just("MPI_Barrier"), receive(3)], [barrier(), barrier()]);
    assert_eq!(cause_of([both, circle.to_vec()].concat()), deadlock(&[1, 3]));
    assert_eq!(cause_of(vec![barrier(), receive(3), barrier(), just("MPI_Barrier")]), None);
    // Rank 0 waits for a circle that it is not in.
    assert_eq!(cause_of(vec![receive(1), receive(2), receive(1)]), deadlock(&[1, 2]));
}

#[test]
fn ranks_in_different_collective_operations_are_told_apart() {
    let mismatch = |ranks: &[u32]| Some((HangKind::Mismatch, ranks.to_vec()));
    let reduce = || Doing::Still(call("MPI_Allreduce"));
    assert_eq!(cause_of(vec![barrier(), reduce()]), mismatch(&[0, 1]));
    assert_eq!(cause_of(vec![barrier(), reduce(), barrier()]), mismatch(&[1]));
    // Different roots.
    let root = |root| Doing::Still(RankNow { root: Some(root), ..call("MPI_Bcast") });
    assert_eq!(cause_of(vec![root(0), root(0), root(2)]), mismatch(&[2]));
    // All of them are there, or the root can still come.
    assert_eq!(cause_of(vec![root(0), root(0)]), None);
    assert_eq!(cause_of(vec![Doing::Moves, root(0)]), None);
    // Rank 0 may have left the broadcast that rank 1 is in: it is rank 2 that comes late, and waits for what never comes.
    let late = cause_of(vec![reduce(), root(0), receive(0)]);
    assert_eq!(late, Some((HangKind::Deadlock, vec![0, 2])));
    // Rank 1 waits for one that has ended; but there is more to say once rank 2 has been there for long.
    let just = Doing::Still(RankNow { since_ms: NOW_MS - 4_000, ..call("MPI_Allreduce") });
    assert_eq!(cause_of(vec![Doing::Ended, barrier(), just]), None);
    assert_eq!(cause_of(vec![Doing::Ended, barrier(), reduce()]), mismatch(&[1, 2]));
    // It cannot have left a barrier.
    assert_eq!(cause_of(vec![reduce(), barrier(), receive(0)]), mismatch(&[0, 1]));
    // The root waits for one that can come.
    assert_eq!(cause_of(vec![root(0), root(0), Doing::Moves]), None);
    // On different communicators: a deadlock, where their ranks are known.
    let on = |hash, members: &str| {
        let communicator = Some(CommunicatorNow::Other(2, hash));
        let members = (!members.is_empty()).then(|| members.to_owned());
        Doing::Still(RankNow { communicator, members, ..call("MPI_Barrier") })
    };
    let both = cause_of(vec![on(1, "0-1"), on(2, "1-2"), on(3, "0,2")]);
    assert_eq!(both, Some((HangKind::Deadlock, vec![0, 1, 2])));
    assert_eq!(cause_of(vec![on(1, "0-1"), on(2, ""), on(3, "0,2")]), None);
    let now = of(vec![root(0), root(0), root(2)]);
    assert_eq!(
        now.cause.unwrap().sentence,
        "Different collective operations on MPI_COMM_WORLD: rank 2 is in MPI_Bcast with root 2 \
         (its 1st call of it); ranks 0-1 are in MPI_Bcast with root 0 (their 1st call of it)"
    );
}

#[test]
fn different_amounts_in_one_call_are_told_apart() {
    let amounts = |ranks: &[u32]| Some((HangKind::Amounts, ranks.to_vec()));
    let bytes = |bytes| RankNow {
        bytes: Some(bytes),
        numbers_agree: true,
        root: Some(0),
        ..call("MPI_Bcast")
    };
    let still = |now| Doing::Still(now);
    let (much, little) = (|| still(bytes(800)), || still(bytes(400)));
    assert_eq!(cause_of(vec![little(), little(), much(), little()]), amounts(&[2]));
    assert_eq!(cause_of(vec![little(), much()]), amounts(&[0, 1]));
    assert_eq!(cause_of(vec![much(), much()]), None);
    // Of some it is not known.
    let unknown = || still(RankNow { bytes: None, ..bytes(0) });
    assert_eq!(cause_of(vec![unknown(), much(), unknown()]), None);
    assert_eq!(cause_of(vec![unknown(), much(), little()]), amounts(&[1, 2]));
    // Rank 0 may be in the next one, with another amount.
    let next = still(RankNow { number: 2, ..bytes(400) });
    assert_eq!(cause_of(vec![next, much(), much()]), None);
    // Rank 0 has used communicators that others are not in.
    let elsewhere = still(RankNow { numbers_agree: false, ..bytes(400) });
    assert_eq!(cause_of(vec![elsewhere, much()]), None);
    // They may still go on, and one is not there yet.
    let soon = still(RankNow { since_ms: NOW_MS - 3000, ..bytes(400) });
    assert_eq!(cause_of(vec![soon, much()]), None);
    assert_eq!(cause_of(vec![Doing::Moves, much(), little()]), None);
    // Rank 0 has left it.
    assert_eq!(cause_of(vec![barrier(), much(), little()]), amounts(&[1, 2]));
    let sentence = of(vec![little(), little(), much(), little()]).cause.unwrap().sentence;
    assert_eq!(
        sentence,
        "Different amounts in MPI_Bcast on MPI_COMM_WORLD: rank 2 has 800 B; ranks 0-1, 3 have 400 B"
    );
    let many = (0..6).map(|rank| still(bytes(1000 + rank))).collect();
    assert_eq!(
        of(many).cause.unwrap().sentence,
        "Different amounts in MPI_Bcast on MPI_COMM_WORLD: rank 0 has 1,000 B; rank 1 has 1,001 B; rank 2 has 1,002 B; \
         rank 3 has 1,003 B; 2 more amounts on other ranks"
    );
}

#[test]
fn a_message_that_may_be_on_its_way_is_waited_for() {
    let send = |to, tag| {
        Doing::Still(RankNow { dest: Some(Peer::World(to)), tag: Some(tag), ..call("MPI_Send") })
    };
    // A large message takes long; a receive with tag 7 takes none with tag 8.
    assert_eq!(cause_of(vec![receive(1), send(0, 7)]), None);
    assert_eq!(cause_of(vec![any(), send(0, 9)]), None);
    let deadlock = Some((HangKind::Deadlock, vec![0, 1]));
    assert_eq!(cause_of(vec![receive(1), send(0, 8)]), deadlock);
    assert_eq!(cause_of(vec![send(1, 8), send(0, 8)]), deadlock);
    let exchange = |with| {
        let peer = Some(Peer::World(with));
        Doing::Still(RankNow { source: peer, dest: peer, ..call("MPI_Sendrecv") })
    };
    assert_eq!(cause_of(vec![exchange(1), exchange(0)]), None);
    let waits = |operation: &str| {
        let operation = OperationNow {
            function: operation.into(),
            peer: Some(Peer::World(1)),
            tag: Some(7),
            communicator: CommunicatorNow::World,
        };
        Doing::Still(RankNow {
            operations: vec![operation],
            requests: Some(1),
            ..call("MPI_Waitall")
        })
    };
    assert_eq!(cause_of(vec![waits("MPI_Isend"), receive(0)]), None);
    assert_eq!(cause_of(vec![waits("MPI_Irecv"), receive(0)]), deadlock);
}

#[test]
fn whoever_may_still_get_a_message_is_no_deadlock() {
    // Any of the others may send, and one of them still moves.
    assert_eq!(cause_of(vec![any(), Doing::Moves, receive(0)]), None);
    assert_eq!(cause_of(vec![any(), receive(0)]), Some((HangKind::Deadlock, vec![0, 1])));
    // All are there: it is about to end.
    assert_eq!(cause_of(vec![barrier(), barrier()]), None);
    // Who cannot be seen may go on, as may one whose call does not say for whom it waits.
    assert_eq!(cause_of(vec![receive(1), Doing::NotSeen("no".into())]), None);
    assert_eq!(cause_of(vec![receive(1), Doing::Still(call("MPI_Waitall"))]), None);
    // A rank of which nothing is known.
    let ranks = vec![RankDoing::new(0, "n1", receive(1))];
    assert_eq!(of_ranks(2, ranks).cause, None);
    // They have not waited for long enough.
    let soon = |source| match receive(source) {
        Doing::Still(now) => Doing::Still(RankNow { since_ms: NOW_MS - 3000, ..now }),
        other => other,
    };
    assert_eq!(cause_of(vec![soon(1), soon(0)]), None);
}

#[test]
fn a_rank_in_its_own_code_is_a_straggler_and_one_that_is_gone_comes_first() {
    let straggler = cause_of(vec![barrier(), own_code(), barrier(), receive(1)]);
    assert_eq!(straggler, Some((HangKind::Straggler, vec![1])));
    // It is not the reason for a deadlock elsewhere.
    let both = cause_of(vec![barrier(), own_code(), barrier(), receive(0)]);
    assert_eq!(both, Some((HangKind::Deadlock, vec![0, 3])));
    let gone = cause_of(vec![barrier(), own_code(), Doing::Gone(None), barrier()]);
    assert_eq!(gone, Some((HangKind::Gone, vec![2])));
    // Nobody waits for it, or not for it alone.
    assert_eq!(cause_of(vec![receive(2), Doing::Gone(None), Doing::Moves]), None);
    assert_eq!(cause_of(vec![any(), Doing::Gone(None), Doing::Moves]), None);
    // From one that has called MPI_Finalize, nothing comes either.
    let ended = of(vec![receive(2), barrier(), Doing::Ended]);
    let cause = ended.cause.unwrap();
    assert_eq!((cause.kind, cause.ranks), (HangKind::Finalized, vec![2]));
    assert_eq!(
        cause.sentence,
        "rank 2 has called MPI_Finalize, and ranks 0-1 still wait, directly or through others, for it: \
         rank 0 is in MPI_Recv for a message with tag 7 from rank 2"
    );
    let root = |root| Doing::Still(RankNow { root: Some(root), ..call("MPI_Bcast") });
    let waits_for_root = cause_of(vec![root(1), own_code(), root(1)]);
    assert_eq!(waits_for_root, Some((HangKind::Straggler, vec![1])));
}

#[test]
fn a_rank_is_stuck_if_all_of_its_threads_are() {
    let with = |first: Doing, threads: Vec<Doing>| match first {
        Doing::Still(now) => {
            let threads = threads.into_iter().map(|doing| match doing {
                Doing::Still(now) => now,
                other => panic!("{other:?}"),
            });
            Doing::Still(RankNow { threads: threads.collect(), ..now })
        }
        other => other,
    };
    let deadlock = Some((HangKind::Deadlock, vec![0, 1]));
    assert_eq!(cause_of(vec![with(receive(1), vec![barrier()]), receive(0)]), deadlock);
    assert_eq!(cause_of(vec![with(receive(1), vec![own_code()]), receive(0)]), None);
    // Its other thread sends what rank 1 waits for.
    let send = |dest| {
        let dest = Some(Peer::World(dest));
        Doing::Still(RankNow { dest, tag: Some(7), ..call("MPI_Send") })
    };
    assert_eq!(cause_of(vec![with(receive(1), vec![send(1)]), receive(0)]), None);
    // Or what it itself waits for.
    assert_eq!(cause_of(vec![with(receive(0), vec![send(0)]), receive(0)]), None);
    let now = of(vec![with(receive(1), vec![barrier()]), receive(0)]);
    let first = now.groups.iter().find(|group| group.ranks == [0]).unwrap();
    assert_eq!(
        first.sentence,
        "rank 0 is in MPI_Recv for a message with tag 7 from rank 1 (its 1st call of it); another thread of it is in \
         MPI_Barrier"
    );
}

#[test]
fn what_is_said_reads_well() {
    let now = of(vec![barrier(), receive(3), barrier(), barrier()]);
    let sentences: Vec<&str> = now.groups.iter().map(|group| &*group.sentence).collect();
    assert_eq!(
        sentences,
        [
            "ranks 0, 2-3 are in MPI_Barrier (their 1st call of it)",
            "rank 1 is in MPI_Recv for a message with tag 7 from rank 3 (its 1st call of it)",
        ]
    );
    assert_eq!(now.groups[0].still_s, Some(60.0));
    assert_eq!(
        now.cause.unwrap().sentence,
        "Deadlock: rank 1 waits in MPI_Recv for a message with tag 7 from rank 3; rank 3 waits in \
         MPI_Barrier for rank 1. 4 of 4 ranks cannot go on any more; end the job"
    );
}

#[test]
fn where_a_rank_crashed_is_said_with_what_had_called_that() {
    let frame = |function: &str, line: u32| FrameNow {
        function: function.into(),
        file: (line > 0).then(|| "/src/solver.c".into()),
        line: (line > 0).then_some(line),
        inlined: false,
    };
    let sentence = |signal: &str, frames: &[(&str, u32)]| {
        let mut crashed = RankDoing::new(0, "n1", Doing::Gone(None));
        crashed.ended_by = Some(signal.into());
        crashed.crashed_in = frames.iter().map(|(function, line)| frame(function, *line)).collect();
        let now = of_ranks(2, vec![crashed, RankDoing::new(1, "n1", Doing::Moves)]);
        let group = now.groups.into_iter().find(|group| group.ranks == [0]).unwrap();
        group.sentence.split_once(") in ").unwrap().1.to_owned()
    };
    let main = ("main", 12);
    assert_eq!(
        sentence("SIGSEGV", &[("run", 9), main, ("step(int)", 40), ("update", 88)]),
        "update at solver.c:88, called by step at solver.c:40, called by main at solver.c:12"
    );
    // What has no name says which file it is of; functions between that and the program's are left out.
    assert_eq!(
        sentence("SIGSEGV", &[main, ("puts", 0), ("libc.so.6+0x1234", 0)]),
        "libc.so.6, called by main at solver.c:12"
    );
    // How a program calls abort says nothing more.
    assert_eq!(sentence("SIGABRT", &[main, ("abort", 0), ("raise", 0)]), "main at solver.c:12");
    assert_eq!(sentence("SIGABRT", &[("work", 0), ("raise", 0)]), "raise, called by work");
    let deep = vec![("deeper", 15); 250];
    assert_eq!(
        sentence("SIGSEGV", &deep),
        "deeper at solver.c:15, 250 calls deep at least: its stack is full"
    );
}

/// Ranks 0 and 1 have left what the others still move data for.
#[test]
fn a_transfer_that_takes_long_is_no_mismatch() {
    let late = |seconds: u64, bytes| {
        let since_ms = NOW_MS - seconds * 1000;
        Doing::Still(RankNow { since_ms, bytes, ..call("MPI_Alltoallv") })
    };
    let cause = |seconds, bytes| {
        let late = || late(seconds, bytes);
        cause_of(vec![barrier(), barrier(), late(), late()]).map(|(kind, _)| kind)
    };
    assert_eq!(cause(30, None), None);
    assert_eq!(cause(30, Some(1 << 30)), None);
    assert_eq!(cause(60, None), Some(HangKind::Mismatch));
    assert_eq!(cause(6, Some(8)), Some(HangKind::Mismatch));
    // A rank that died is missed at once.
    let gone = cause_of(vec![late(6, None), late(6, None), Doing::Gone(None)]);
    assert_eq!(gone, Some((HangKind::Gone, vec![2])));
}

#[test]
fn whoever_is_killed_after_the_job_stood_still_did_not_end_by_itself() {
    let ended = |rank, signal: &str, ended_ms| RankDoing {
        ended_by: Some(signal.into()),
        ended_ms: Some(ended_ms),
        ..RankDoing::new(rank, "n1", Doing::Gone(None))
    };
    let last = ended(0, "SIGKILL", NOW_MS + 80_000);
    let died = |of: &RankDoing, stalled_ms| died_before(of, &last, stalled_ms);
    let killed = ended(1, "SIGKILL", NOW_MS);
    assert!(died(&killed, None));
    assert!(!died(&killed, Some(NOW_MS - 1_000)));
    // It had been killed before that.
    assert!(died(&killed, Some(NOW_MS + 1_000)));
    assert!(died(&ended(1, "SIGSEGV", NOW_MS), Some(NOW_MS - 1_000)));
}
