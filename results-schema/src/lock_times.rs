//! When ranks asked for locks of windows, had them and gave them back (passive target, MPI 4.1, 12.5.3): with the epochs of all ranks
//! it is known who held the lock that another one waited for.

use crate::data::{Data, Deserialize, Serialize, derive};
use crate::waiting::{NS_PER_UNIT, write_number, written_numbers};

/// The epochs of a rank in which it locked windows.
#[derive(Data!, Serialize, Default)]
pub struct LockTimes {
    /// One for each window with such epochs.
    pub windows: Vec<WindowLocks>,
    /// Epochs that began at this time or later, in ns on the clock of the times, may be in none of them; none if all are.
    pub missing_since_ns: Option<u64>,
}

impl LockTimes {
    /// Most epochs that the profile of one of `size` ranks has. Those of all ranks are in memory together before they are compared.
    pub fn at_most(size: u32) -> usize {
        const OF_ALL_RANKS: usize = 1 << 18;
        (OF_ALL_RANKS / (size as usize).max(1)).clamp(16, 512)
    }
}

/// The epochs of a rank on one window.
#[derive(Data!, Serialize, Default)]
pub struct WindowLocks {
    /// A number of the window that its ranks agree on: 16 hexadecimal digits.
    pub window: String,
    /// For each epoch, in the order in which they ended: 8 times the rank of the target in the window plus 1, or 0 for all of them,
    /// plus 1 for an exclusive lock, 2 if the rank is known to have the lock when the flush has ended, and 4 if there is a flush. Then, in
    /// units of 64 ns, how long after the end of the epoch before `MPI_Win_unlock` ended, how long that took, how long before it
    /// `MPI_Win_lock` began, and how long that took; the same of the flush, from when `MPI_Win_lock` began. Then, in `calls` of
    /// `message_times` and plus 1, which calls of `MPI_Win_lock`, of the flush and of `MPI_Win_unlock` these are, 0 if that is not known.
    /// Each number is written as those of `starts.begun` in `waiting`.
    pub epochs: String,
}

/// A call of `MPI_Win_lock`, `MPI_Win_flush`, `MPI_Win_unlock` or their kin, in ns on the clock of its host.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LockCall {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Which call it is, from 1 in the order of `calls`; 0 if that is not known.
    pub called_in: u32,
}

/// From `MPI_Win_lock` to `MPI_Win_unlock`, or from `MPI_Win_lock_all` to `MPI_Win_unlock_all`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LockEpoch {
    /// The rank of the target in the window; none for all of them.
    pub target: Option<u32>,
    /// Whether no other rank may have the lock at the same time.
    pub is_exclusive: bool,
    /// `MPI_Win_lock` or `MPI_Win_lock_all`.
    pub lock: LockCall,
    /// The first flush after which the rank is known to have the lock, or the longest one if there is none.
    pub flush: Option<LockCall>,
    /// Whether it is that one.
    pub is_held_after_flush: bool,
    /// `MPI_Win_unlock` or `MPI_Win_unlock_all`.
    pub unlock: LockCall,
}

impl WindowLocks {
    /// Encodes epochs as `epochs`. One that ended before the one before it is left out.
    pub fn written(epochs: &[LockEpoch]) -> String {
        let (mut text, mut before) = (String::new(), 0);
        for epoch in epochs {
            let LockEpoch { target, is_exclusive, lock, flush, is_held_after_flush, unlock } =
                epoch;
            let units = |ns: u64| ns / NS_PER_UNIT;
            let took = |call: &LockCall| units(call.ended_ns).saturating_sub(units(call.begun_ns));
            let Some(since) = units(unlock.ended_ns).checked_sub(before) else { continue };
            before = units(unlock.ended_ns);
            let facts = [*is_exclusive, *is_held_after_flush, flush.is_some()].map(u64::from);
            let [exclusive, held, flushed] = facts;
            let target = target.map_or(0, |target| u64::from(target) + 1);
            write_number(&mut text, target << 3 | flushed << 2 | held << 1 | exclusive);
            let begun = units(lock.begun_ns);
            let earlier = units(unlock.begun_ns).saturating_sub(begun);
            for time in [since, took(unlock), earlier, took(lock)] {
                write_number(&mut text, time);
            }
            if let Some(flush) = flush {
                write_number(&mut text, units(flush.begun_ns).saturating_sub(begun));
                write_number(&mut text, took(flush));
            }
            for call in [Some(lock), flush.as_ref(), Some(unlock)].into_iter().flatten() {
                write_number(&mut text, call.called_in.into());
            }
        }
        text
    }

    /// Decodes `epochs`.
    pub fn epochs(&self) -> impl Iterator<Item = LockEpoch> {
        let mut numbers = written_numbers(&self.epochs);
        let mut before: u64 = 0;
        std::iter::from_fn(move || {
            let facts = numbers.next()?;
            let mut time = || numbers.next();
            let [since, unlock_took, earlier, lock_took] = [time()?, time()?, time()?, time()?];
            let ended = before.saturating_add(since);
            let begun = ended.saturating_sub(unlock_took);
            let locked = begun.saturating_sub(earlier);
            let flush = if facts & 4 == 0 { None } else { Some((time()?, time()?)) };
            let mut call = |begun: u64, took: u64| {
                let called_in = u32::try_from(numbers.next()?).ok()?;
                let [begun_ns, ended_ns] = [begun, begun.saturating_add(took)]
                    .map(|units| units.saturating_mul(NS_PER_UNIT));
                Some(LockCall { begun_ns, ended_ns, called_in })
            };
            let lock = call(locked, lock_took)?;
            let flush = match flush {
                Some((after, took)) => Some(call(locked.saturating_add(after), took)?),
                None => None,
            };
            let unlock = call(begun, unlock_took)?;
            before = ended;
            Some(LockEpoch {
                target: u32::try_from(facts >> 3).unwrap_or(0).checked_sub(1),
                is_exclusive: facts & 1 != 0,
                lock,
                flush,
                is_held_after_flush: facts & 2 != 0,
                unlock,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_those_that_were_written_in_units_of_64_ns() {
        let call = |begun: u64, ended: u64, called_in| LockCall {
            begun_ns: 64 * begun,
            ended_ns: 64 * ended,
            called_in,
        };
        let first = LockEpoch {
            target: Some(7),
            is_exclusive: true,
            lock: call(100, 150, 1),
            flush: Some(call(160, 1 << 30, 2)),
            is_held_after_flush: true,
            unlock: call(1 << 31, 1 << 32, 3),
        };
        let second = LockEpoch {
            target: None,
            is_exclusive: false,
            lock: call(5, 6, 9),
            flush: None,
            is_held_after_flush: false,
            unlock: call(1 << 32, 1 << 33, 0),
        };
        let epochs =
            WindowLocks::written(&[first, LockEpoch { lock: second.lock, ..first }, second]);
        let read = WindowLocks { epochs: epochs.clone(), ..WindowLocks::default() };
        let expected = [first, LockEpoch { lock: second.lock, ..first }, second];
        assert_eq!(read.epochs().collect::<Vec<_>>(), expected);
        for length in 0..epochs.len() {
            let cut = WindowLocks { epochs: epochs[..length].to_owned(), ..WindowLocks::default() };
            let cut: Vec<LockEpoch> = cut.epochs().collect();
            assert!(cut.len() < 3 && cut == expected[..cut.len()], "{length}");
        }
    }
}
