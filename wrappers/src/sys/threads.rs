//! Which threads does this process have, how busy are they, and where may they run?
//!
//! The kernel says it of each of them in `/proc/self/task`, so that nothing has to be done in the threads
//! themselves. Those that have ended are not there any more.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use gyan_results::{Loads, Ranges, Threads};

use super::kernel_files::{stat_fields, text};
use super::topology::names;

/// A thread that ran, or was ready to run, for less of the time is a helper, such as those of MPI libraries.
const BUSY: f64 = 0.1;
/// So is one that ran for less of the time in which nothing kept it waiting: on a full host helpers wait for long, too.
const RUNS: f64 = 0.05;
/// So many are looked at, those that were started first; all of them are counted.
const MOST: usize = 512;
/// `USER_HZ`, in which proc(5) counts; Linux shows 100 to every program.
const TICKS_EACH_SECOND: f64 = 100.0;

/// What a thread has had since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ThreadTime {
    ran_s: f64,
    /// While it was ready to run and had no processor; none when the kernel does not count it.
    pub(super) wanted_s: Option<f64>,
}

/// The threads of the process at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadTimes {
    number: u64,
    of: BTreeMap<u32, ThreadTime>,
}

impl ThreadTimes {
    pub(super) fn now(root: &Path) -> ThreadTimes {
        let tasks = root.join("proc/self/task");
        let mut threads: Vec<u32> =
            names(&tasks).iter().filter_map(|name| name.parse().ok()).collect();
        threads.sort_unstable();
        let number = threads.len() as u64;
        let read = threads.into_iter().take(MOST);
        let of = read.filter_map(|id| Some((id, time(&tasks.join(id.to_string()))?)));
        ThreadTimes { number, of: of.collect() }
    }

    /// What the threads did since `start`, so many seconds ago. `affinity`: the processors that one of them may run
    /// on. None when the kernel shows no threads.
    pub(super) fn since(
        &self,
        start: &ThreadTimes,
        elapsed_s: f64,
        affinity: impl Fn(u32) -> Ranges,
    ) -> Option<Threads> {
        if self.of.is_empty() {
            return None;
        }
        let mut loads = Loads::default();
        let (mut busy, mut wanted_s) = (0, Some(0.0));
        for (id, now) in &self.of {
            let before = start.of.get(id).copied().unwrap_or_default();
            let wanted = now.wanted_s.map(|now| now - before.wanted_s.unwrap_or_default());
            let ran_s = now.ran_s - before.ran_s;
            let free_s = (elapsed_s - wanted.unwrap_or_default()).max(0.0);
            let awake_s = ran_s + wanted.unwrap_or_default();
            if awake_s < BUSY * elapsed_s || ran_s < RUNS * free_s {
                continue;
            }
            busy += 1;
            wanted_s = wanted_s.zip(wanted).map(|(sum, wanted)| sum + wanted);
            loads.add(&affinity(*id));
        }
        let processor_wait_s = wanted_s.filter(|_| busy > 0).map(|sum| sum / busy as f64);
        Some(Threads { number: self.number, busy, processor_wait_s, loads: loads.rows() })
    }
}

/// What the kernel's scheduler counts (proc(5), `schedstat`: nanoseconds on a processor and waiting for one). `task`: the
/// directory of a thread, or that of a process for its first thread.
pub(super) fn scheduled(task: &Path) -> Option<ThreadTime> {
    let text = text(task.join("schedstat"))?;
    let mut numbers = text.split_whitespace().map_while(|number| number.parse::<u64>().ok());
    let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
    Some(ThreadTime { ran_s: seconds(numbers.next()?), wanted_s: Some(seconds(numbers.next()?)) })
}

/// None when the thread has ended since it was listed.
fn time(task: &Path) -> Option<ThreadTime> {
    // A kernel that counts for nobody shows zeros.
    scheduled(task).filter(|of| of.ran_s > 0.0).or_else(|| {
        let text = text(task.join("stat"))?;
        // User and system time are the 14th and 15th field.
        let mut ticks = stat_fields(&text)?.skip(11).map_while(|ticks| ticks.parse::<u64>().ok());
        let ticks = ticks.next()? + ticks.next()?;
        Some(ThreadTime { ran_s: ticks as f64 / TICKS_EACH_SECOND, wanted_s: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::trees::tree;

    /// What threads did in ten seconds, of these files at the end and those at the start.
    fn done(now: &[(&str, &str)], before: &[(&str, &str)]) -> Option<Threads> {
        let at = |files: &[(&str, &str)]| ThreadTimes::now(tree(files).path());
        at(now).since(&at(before), 10.0, |id| format!("{}", id % 4).parse().unwrap())
    }

    #[test]
    fn a_thread_is_busy_if_it_ran_or_wanted_to_for_a_tenth_of_the_time() {
        let before = [("proc/self/task/4/schedstat", "50000000000 2000000000 9\n")];
        let now = [
            // 8 s and 1 s since then, 9 s and 0 s, nothing, 0.5 s and 0.6 s; 0.3 s and 3 s are of a helper that waited.
            ("proc/self/task/4/schedstat", "58000000000 3000000000 19\n"),
            ("proc/self/task/5/schedstat", "9000000000 0 3\n"),
            ("proc/self/task/6/schedstat", "40000000 0 3\n"),
            ("proc/self/task/12/schedstat", "500000000 600000000 3\n"),
            ("proc/self/task/14/schedstat", "300000000 3000000000 3\n"),
            ("proc/self/task/13/stat", ""),
        ];
        let threads = done(&now, &before).unwrap();
        assert_eq!((threads.number, threads.busy), (6, 3));
        let wait_s = threads.processor_wait_s.unwrap();
        assert!((wait_s - 1.6 / 3.0).abs() < 1e-9, "{wait_s}");
        let loads: Vec<_> =
            threads.loads.iter().map(|of| (of.processors.as_str(), of.threads)).collect();
        assert_eq!(loads, [("1", 1.0), ("0", 2.0)]);
        // The first thread's time before MPI_Init does not make it busy.
        assert_eq!(done(&before, &before).unwrap().busy, 0);
    }

    #[test]
    fn a_kernel_that_does_not_count_waiting_still_counts_ticks() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 300 200 0 0 20 0 2 0\n";
        let now = [
            ("proc/self/task/7/stat", stat),
            ("proc/self/task/7/schedstat", "0 0 0\n"),
            ("proc/self/task/8/schedstat", "5000000000 0 0\n"),
        ];
        let threads = done(&now, &[]).unwrap();
        assert_eq!((threads.busy, threads.processor_wait_s), (2, None));
    }

    #[test]
    fn where_no_threads_are_shown_nothing_is_told() {
        assert_eq!(done(&[], &[]), None);
        assert_eq!(done(&[("proc/self/task/x/stat", "nonsense")], &[]), None);
    }

    #[test]
    fn of_thousands_of_threads_all_are_counted_and_some_are_read() {
        let files: Vec<(String, &str)> = (1000..3000)
            .map(|id| (format!("proc/self/task/{id}/schedstat"), "9000000000 0 1\n"))
            .collect();
        let threads = ThreadTimes::now(tree(&files).path())
            .since(&ThreadTimes::default(), 10.0, |_| "0-3".parse().unwrap())
            .unwrap();
        assert_eq!((threads.number, threads.busy), (2000, MOST as u64));
    }
}
