//! What is found of simulated programs, of which it is known who had the lock and who waited for it.

use super::*;
use crate::WindowLocks;

const CLOCK: &str = "clock";
const US: u64 = 1024;

/// The call in which a library acquires the lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LockedIn {
    Lock,
    Flush,
    Unlock,
}

/// A rank in its epoch.
#[derive(Clone, Copy)]
struct LockUser {
    rank: u32,
    /// It flushes after it has acquired the lock.
    flushes: bool,
    lock: u64,
    /// When it begins the call that acquires it.
    wants: u64,
}

fn call(begun_ns: u64, ended_ns: u64, called_in: u32) -> LockCall {
    LockCall { begun_ns, ended_ns, called_in }
}

/// The epochs of ranks with an exclusive lock on one target, the waiting by rank and late rank in ns, and how far that may be known
/// differently, as nobody sees when a lock is given back within `MPI_Win_unlock`.
#[derive(Default)]
struct Program {
    epochs: BTreeMap<u32, Vec<LockEpoch>>,
    truth: BTreeMap<(u32, u32), u64>,
    unknown_ns: BTreeMap<(u32, u32), u64>,
}

impl Program {
    /// The lock goes to the rank that has wanted it longest.
    fn new(ranks: u32, rounds: usize, locked_in: LockedIn, random: &mut fastrand::Rng) -> Program {
        let mut program = Program::default();
        let next = |rank, now: u64, random: &mut fastrand::Rng| {
            let lock = now + US * random.u64(1..6000);
            let wants = match locked_in {
                LockedIn::Lock => lock,
                _ => lock + US * random.u64(1..2000),
            };
            LockUser { rank, flushes: random.bool(), lock, wants }
        };
        let mut waiting: Vec<LockUser> = (0..ranks).map(|rank| next(rank, 0, random)).collect();
        let mut held: Vec<(u32, u64, u64)> = Vec::new();
        let mut free_from = 0;
        for _ in 0..rounds * ranks as usize {
            waiting.sort_by_key(|of| of.wants);
            let of = waiting.remove(0);
            let LockUser { rank, lock, wants, flushes } = of;
            let acquired = wants.max(free_from + US);
            let unlock = match locked_in {
                LockedIn::Unlock => wants,
                _ => acquired + US * random.u64(1..8000),
            };
            // Where nobody flushes, data move then.
            let moves = if locked_in == LockedIn::Unlock { 8000 } else { 20 };
            let given_back = unlock.max(acquired) + US * random.u64(1..moves);
            // Sometimes the system lets others run first. But if all is done in MPI_Win_unlock, only its end says who was first.
            let late = match locked_in {
                LockedIn::Unlock => 2,
                _ if random.u8(..) < 40 => 3000,
                _ => 20,
            };
            let ended = given_back + US * random.u64(1..late);
            let own = held.iter().filter(|(_, _, to)| *to > wants);
            for (other, from, to) in own {
                let ns = to - wants.max(*from);
                *program.truth.entry((rank, *other)).or_default() += ns;
            }
            held.push((rank, acquired, given_back));
            free_from = given_back;
            let end_of_call = acquired + US;
            let lock_call = match locked_in {
                LockedIn::Lock => call(lock, end_of_call, 1),
                _ => call(lock, lock + US / 2, 1),
            };
            let flush = match locked_in {
                LockedIn::Flush => Some(call(wants, end_of_call, 2)),
                LockedIn::Lock if flushes => Some(call(end_of_call, end_of_call, 2)),
                _ => None,
            };
            let epoch = LockEpoch {
                target: Some(3),
                is_exclusive: true,
                lock: lock_call,
                flush,
                is_held_after_flush: flush.is_some(),
                unlock: call(unlock.max(flush.map_or(0, |flush| flush.ended_ns)), ended, 3),
            };
            program.epochs.entry(rank).or_default().push(epoch);
            waiting.push(next(rank, ended, random));
        }
        let spans = program.epochs.iter().flat_map(|(rank, of)| of.iter().map(|of| (*rank, *of)));
        let spans: Vec<(u32, LockEpoch)> = spans.collect();
        for (late_rank, of) in &spans {
            let (_, _, given_back) = held
                .iter()
                .find(|(rank, _, to)| {
                    rank == late_rank && (of.unlock.begun_ns..of.unlock.ended_ns).contains(to)
                })
                .unwrap();
            let from = of.unlock.begun_ns.max(given_back - 20 * US);
            for rank in 0..ranks {
                *program.unknown_ns.entry((rank, *late_rank)).or_default() +=
                    of.unlock.ended_ns - from + 2 * US;
            }
        }
        program
    }

    fn locks(&self, until: Option<u64>) -> Locks {
        let mut locks = Locks::default();
        for (rank, epochs) in &self.epochs {
            let windows =
                vec![WindowLocks { window: "w".into(), epochs: WindowLocks::written(epochs) }];
            locks.absorb(&Locks::of_rank(
                &LockTimes { windows, missing_since_ns: until },
                CLOCK,
                *rank,
            ));
        }
        locks
    }
}

fn found(locks: Locks, size: u32) -> (LocksCompared, BTreeMap<(u32, u32), u64>) {
    let compared = locks.finish(&Clocks::default(), size);
    let mut pairs = BTreeMap::new();
    for of in &compared.waits {
        *pairs.entry((of.rank, of.late_rank)).or_default() += of.ns;
    }
    (compared, pairs)
}

#[test]
fn ranks_wait_for_whoever_has_the_lock_wherever_the_library_acquires_it() {
    for locked_in in [LockedIn::Lock, LockedIn::Flush, LockedIn::Unlock] {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let program = Program::new(4, 40, locked_in, &mut random);
            let (compared, pairs) = found(program.locks(None), 4);
            assert_eq!(compared.epochs, 160);
            let truth_ns: u64 = program.truth.values().sum();
            assert!(truth_ns > 100_000 * US, "{truth_ns}");
            let found_ns: u64 = pairs.values().sum();
            let off = found_ns.abs_diff(truth_ns) as f64 / truth_ns as f64;
            assert!(off < 0.1, "{locked_in:?} {seed} {found_ns} {truth_ns}");
            let is_wrong = |(pair, truth_ns): (&(u32, u32), &u64)| {
                let (ns, unknown) =
                    (pairs.get(pair).copied().unwrap_or(0), program.unknown_ns[pair]);
                (ns.abs_diff(*truth_ns) > unknown).then_some((*pair, ns, *truth_ns, unknown))
            };
            let wrong: Vec<_> = program.truth.iter().filter_map(is_wrong).collect();
            assert!(wrong.is_empty(), "{locked_in:?} {seed} {wrong:?}");
        }
    }
}

/// The ranks of a program each of which has one epoch: with this target, whether it is exclusive, and the times in us of `MPI_Win_lock`
/// and of `MPI_Win_unlock`.
fn single(epochs: &[(Option<u32>, bool, [u64; 4])]) -> Program {
    let mut program = Program::default();
    for (rank, (target, is_exclusive, times)) in (0..).zip(epochs) {
        let [lock, locked, unlock, unlocked] = times.map(|time| time * US);
        let epoch = LockEpoch {
            target: *target,
            is_exclusive: *is_exclusive,
            lock: call(lock, locked, 1),
            flush: None,
            is_held_after_flush: false,
            unlock: call(unlock, unlocked, 3),
        };
        program.epochs.insert(rank, vec![epoch]);
    }
    program
}

#[test]
fn shared_locks_wait_for_exclusive_ones_only() {
    let of = |first: (Option<u32>, bool), second: (Option<u32>, bool)| {
        let epochs =
            [(first.0, first.1, [10, 11, 90, 100]), (second.0, second.1, [20, 101, 110, 111])];
        let (compared, pairs) = found(single(&epochs).locks(None), 2);
        assert_eq!(compared.epochs, 2);
        pairs.into_iter().collect::<Vec<_>>()
    };
    let waits = vec![((1, 0), 80 * US)];
    assert_eq!(of((Some(1), true), (Some(1), true)), waits);
    assert_eq!(of((Some(1), false), (Some(1), true)), waits);
    assert_eq!(of((Some(1), true), (Some(1), false)), waits);
    assert_eq!(of((Some(1), false), (Some(1), false)), []);
    // On another target, and on all of them.
    assert_eq!(of((Some(1), true), (Some(2), true)), []);
    assert_eq!(of((None, false), (Some(2), true)), waits);
    assert_eq!(of((Some(1), true), (None, false)), waits);
    assert_eq!(of((None, false), (None, false)), []);
}

#[test]
fn a_queue_waits_for_each_that_comes_before_in_turn() {
    let epochs = [
        (Some(0), true, [0, 1, 50, 60]),
        (Some(0), true, [10, 61, 80, 90]),
        (Some(0), true, [20, 91, 95, 99]),
    ];
    let (compared, pairs) = found(single(&epochs).locks(None), 3);
    let expected = [((1, 0), 50 * US), ((2, 0), 40 * US), ((2, 1), 30 * US)];
    assert_eq!(pairs.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(compared.waits[0].calls, (1, 3));
    // The holder returns later than the one that got the lock after it.
    let late = [(Some(0), true, [0, 1, 50, 100]), (Some(0), true, [10, 61, 80, 90])];
    let (_, pairs) = found(single(&late).locks(None), 2);
    assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [((1, 0), 40 * US)]);
}

#[test]
fn epochs_that_do_not_meet_wait_for_nobody() {
    let epochs = [(Some(0), true, [0, 1, 50, 60]), (Some(0), true, [60, 61, 80, 90])];
    let (compared, pairs) = found(single(&epochs).locks(None), 2);
    assert_eq!((compared.epochs, pairs.len()), (2, 0));
    assert_eq!(compared.calls_ns, (1 + 10 + 1 + 10) * US);
}

#[test]
fn only_what_all_ranks_know_is_compared() {
    let epochs = [(Some(0), true, [0, 1, 50, 60]), (Some(0), true, [10, 61, 80, 90])];
    let program = single(&epochs);
    // A third rank says nothing: it may have had the lock.
    assert_eq!(found(program.locks(None), 3).0.epochs, 0);
    // Epochs are missing that began before one ended.
    let (compared, pairs) = found(program.locks(Some(70 * US)), 2);
    assert_eq!((compared.epochs, pairs.len()), (1, 0));
}
