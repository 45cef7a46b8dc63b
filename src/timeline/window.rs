//! Which window of a run matters most, and what do the ranks do in it? The one in which ranks wait longest, all together, of a length
//! in which a rank makes a few hundred calls: that many can be seen at once.
//!
//! Each file is read three times: to know when calls began that others wait for, to find the window, and to see what is in it.
//! Only as many ranks as there are processors are in memory at a time; of the others, when their messages began.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use gyan_results::TimelineKind;
use rayon::prelude::*;

use super::messages::RankMessages;
use super::trace::RankTrace;
use super::waits::{Begins, CallWait, TimedEvents, WaitState};
use super::{Timelines, at_a_time, lost};

/// How many calls of an average rank the window has.
const CALLS: u64 = 200;
/// A run of no more calls is shown whole.
const CALLS_IF_WHOLE: u64 = 400;
/// The window begins at a multiple of this part of its length.
const STEPS: u64 = 8;
/// Most steps of a run, which bounds the memory of each rank.
const STEPS_AT_MOST: u64 = 4096;

/// How much is shown at most.
#[derive(Clone, Copy)]
pub(crate) struct WindowLimits {
    pub(crate) ranks: usize,
    /// Equal parts of the window, of all rows together.
    pub(crate) cells: usize,
    /// Equal parts of the window, of one row.
    pub(crate) cells_of_rank: usize,
    pub(crate) messages: usize,
}

/// A window of a run, in ns after its first event.
pub(crate) struct TimelineWindow {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// When the last event of the run ended.
    pub(crate) run_ns: u64,
    /// The number of the iteration that it is.
    pub(crate) iteration: Option<u64>,
    /// Into how many equal parts each row divides the window.
    pub(crate) cells: usize,
    /// Those that wait longest in it, by rank.
    pub(crate) rows: Vec<WindowRow>,
    /// The messages that were waited for longest, the longest wait first.
    pub(crate) messages: Vec<WaitedMessage>,
    /// How many more there are between the rows.
    pub(crate) more_messages: usize,
    /// How long all ranks wait together, in the run and in the window.
    pub(crate) waited_in_run_ns: u64,
    pub(crate) waited_ns: u64,
}

/// What a rank does in the window.
pub(crate) struct WindowRow {
    pub(crate) rank: u32,
    /// From when until when it is known what the rank did.
    pub(crate) known_ns: (u64, u64),
    /// In calls, those of several threads added up.
    pub(crate) in_mpi_ns: u64,
    pub(crate) waited_ns: u64,
    /// By rank in `MPI_COMM_WORLD`, how long it waits for that one.
    pub(crate) waited_for_ns: BTreeMap<u32, u64>,
    /// In their order. Between them the rank runs its own code.
    pub(crate) spans: Vec<WindowSpan>,
}

/// A call, a part of one, or several calls that are too short to be told apart.
pub(crate) struct WindowSpan {
    pub(crate) cells: Range<usize>,
    /// Whether it is mostly waiting.
    pub(crate) waits: bool,
    /// How many calls begin in it; 0 if it goes on with an earlier one.
    pub(crate) calls: u64,
    pub(crate) in_mpi_ns: u64,
    pub(crate) waited_ns: u64,
    /// The one with the most time in it.
    pub(crate) longest: WindowCall,
    /// Whether it is a part of that call alone, which is long enough to be told apart.
    pub(crate) is_single: bool,
}

#[derive(Clone)]
pub(crate) struct WindowCall {
    pub(crate) function: String,
    /// The line that called it; empty if that is not known.
    pub(crate) place: String,
    pub(crate) begun_ns: u64,
    pub(crate) took_ns: u64,
    pub(crate) wait: Option<CallWait>,
}

/// A message that its receiver waited for.
#[derive(Clone, Copy)]
pub(crate) struct WaitedMessage {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) sent_ns: u64,
    /// When the call ended that received it.
    pub(crate) received_ns: u64,
    pub(crate) waited_ns: u64,
}

/// The window, divided into the cells of a row.
#[derive(Clone, Copy)]
struct WindowGrid {
    from_ns: u64,
    to_ns: u64,
    cells: usize,
}

#[derive(Clone, Copy, Default)]
struct WindowCell {
    calls: u64,
    in_mpi_ns: u64,
    waited_ns: u64,
    /// The time in it of the call with the most time, and which one that is.
    longest: Option<(u64, usize)>,
}

/// How long two spans of time have in common.
fn overlap((from, to): (u64, u64), (other_from, other_to): (u64, u64)) -> u64 {
    to.min(other_to).saturating_sub(from.max(other_from))
}

impl WindowGrid {
    fn length_ns(self) -> u64 {
        (self.to_ns - self.from_ns).max(1)
    }

    fn begin_ns(self, cell: usize) -> u64 {
        let part = u128::from(self.length_ns()) * cell as u128 / self.cells.max(1) as u128;
        self.from_ns + u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// The cells that a span of time touches: at least one, if it is in the window.
    fn touched(self, (from, to): (u64, u64)) -> Range<usize> {
        if to < self.from_ns || from >= self.to_ns {
            return 0..0;
        }
        let cell = |ns: u64| {
            let since = u128::from(ns.clamp(self.from_ns, self.to_ns) - self.from_ns);
            since * self.cells as u128 / u128::from(self.length_ns())
        };
        let first = usize::try_from(cell(from)).unwrap_or(0).min(self.cells.saturating_sub(1));
        let last = usize::try_from(cell(to.saturating_sub(1))).unwrap_or(0);
        first..last.max(first).min(self.cells.saturating_sub(1)) + 1
    }

    /// Is a call long enough to be told apart?
    fn shows(self, call: &WindowCall) -> bool {
        call.took_ns.saturating_mul(self.cells as u64) > self.length_ns()
    }

    fn spans(self, calls: &[WindowCall]) -> Vec<WindowSpan> {
        let mut parts = vec![WindowCell::default(); self.cells];
        for (number, call) in calls.iter().enumerate() {
            let whole = (call.begun_ns, call.begun_ns + call.took_ns);
            let touched = self.touched(whole);
            for at in touched.clone() {
                let span = (self.begin_ns(at), self.begin_ns(at + 1));
                let Some(cell) = parts.get_mut(at) else { continue };
                let own_ns = overlap(whole, span);
                cell.in_mpi_ns += own_ns;
                cell.calls += u64::from(at == touched.start && call.begun_ns >= self.from_ns);
                if let Some(wait) = call.wait {
                    cell.waited_ns += overlap((wait.from_ns, wait.until_ns), span);
                }
                if cell.longest.is_none_or(|(most, _)| own_ns > most) {
                    cell.longest = Some((own_ns, number));
                }
            }
        }
        let mut spans: Vec<WindowSpan> = Vec::new();
        // Which call the last span is of, if it is of one alone.
        let mut last: Option<Option<usize>> = None;
        for (at, cell) in parts.iter().enumerate() {
            let Some((call, number)) =
                cell.longest.and_then(|(_, number)| Some((calls.get(number)?, number)))
            else {
                last = None;
                continue;
            };
            let single = self.shows(call).then_some(number);
            let waits = cell.waited_ns * 2 > cell.in_mpi_ns;
            let before = spans.last_mut();
            let before = before.filter(|before| last == Some(single) && before.waits == waits);
            last = Some(single);
            if let Some(before) = before {
                before.cells.end = at + 1;
                before.calls += cell.calls;
                before.in_mpi_ns += cell.in_mpi_ns;
                before.waited_ns += cell.waited_ns;
                if call.took_ns > before.longest.took_ns {
                    before.longest = call.clone();
                }
            } else {
                spans.push(WindowSpan {
                    cells: at..at + 1,
                    waits,
                    calls: cell.calls,
                    in_mpi_ns: cell.in_mpi_ns,
                    waited_ns: cell.waited_ns,
                    longest: call.clone(),
                    is_single: single.is_some(),
                });
            }
        }
        spans
    }
}

/// What the first reading says of a run.
#[derive(Default)]
pub(super) struct RunSeen {
    pub(super) begins: Begins,
    pub(super) run_ns: u64,
    pub(super) calls: u64,
    /// By number, when the first rank began an iteration that was kept, and when the last one ended it, in ns.
    iterations: BTreeMap<u64, (u64, u64)>,
}

impl Timelines {
    /// Looks at each of these ranks, in their order.
    pub(in crate::timeline) fn each<T: Send>(
        &self,
        ranks: &[u32],
        look: impl Fn(&TimedEvents) -> T + Sync,
        mut take: impl FnMut(T),
    ) -> io::Result<()> {
        for ranks in ranks.chunks(at_a_time()) {
            let seen = ranks.par_iter().map(|rank| {
                let (header, events) = self.read(*rank)?;
                let messages = RankMessages::of(&header, &events);
                let clock = self.rank_clock(&header);
                let ns = |ticks| clock.ns(ticks);
                Ok(look(&TimedEvents {
                    header: &header,
                    events: &events,
                    messages: &messages,
                    ns: &ns,
                }))
            });
            let seen: Vec<io::Result<T>> = seen.collect();
            for one in seen {
                take(one?);
            }
        }
        Ok(())
    }

    /// What is worth a look: the slowest iteration and a typical one, if these were kept, or the window in which the ranks wait longest.
    pub(crate) fn windows(&self, limits: WindowLimits) -> io::Result<Vec<TimelineWindow>> {
        let seen = self.seen()?;
        let iterations = self.iterations.as_ref();
        let shown: Vec<u64> = iterations.map_or_else(Vec::new, |run| {
            run.slowest.first().into_iter().chain(&run.typical).map(|(number, _)| *number).collect()
        });
        if shown.is_empty() {
            return Ok(vec![self.worst(&seen, limits)?]);
        }
        let window = |number| {
            let span = seen.iterations.get(&number).copied()?;
            Some(self.iteration(number, span, &seen, limits))
        };
        shown.into_iter().filter_map(window).collect()
    }

    /// An iteration, from when the first rank begins it until the last one ends it.
    fn iteration(
        &self,
        number: u64,
        (from_ns, to_ns): (u64, u64),
        seen: &RunSeen,
        limits: WindowLimits,
    ) -> io::Result<TimelineWindow> {
        let look = |rank: &TimedEvents| {
            let waits = rank.waits(&self.arrows, &self.communicators, &seen.begins).into_iter();
            let of_window =
                waits.map(|wait| overlap((wait.from_ns, wait.until_ns), (from_ns, to_ns)));
            (of_window.sum(), rank.header.rank)
        };
        let mut waited = Vec::new();
        self.each(&self.ranks, look, |of_rank| waited.push(of_rank))?;
        let all_ns = waited.iter().map(|(ns, _)| ns).sum();
        let window = self.seen_in((from_ns, to_ns), waited, all_ns, seen, limits)?;
        Ok(TimelineWindow { iteration: Some(number), ..window })
    }

    /// The window in which the ranks wait longest.
    fn worst(&self, seen: &RunSeen, limits: WindowLimits) -> io::Result<TimelineWindow> {
        let mean = seen.calls / (self.ranks.len() as u64).max(1);
        let run_ns = seen.run_ns.max(1);
        let length = if mean <= CALLS_IF_WHOLE {
            run_ns
        } else {
            u64::try_from(u128::from(run_ns) * u128::from(CALLS) / u128::from(mean)).unwrap_or(1)
        };
        let steps = (run_ns / (length / STEPS).max(1)).clamp(1, STEPS_AT_MOST);
        let step_ns = run_ns.div_ceil(steps);
        let waited = self.waited(&seen.begins, step_ns, steps)?;
        let span = length.div_ceil(step_ns).max(1);
        let first = worst_steps(&waited, span);
        let window = (first * step_ns, ((first + span) * step_ns).min(run_ns));
        let range = as_range(first, span);
        let in_window = |steps: &[u64]| steps.get(range.clone()).unwrap_or(steps).iter().sum();
        let ranks = waited.iter().map(|(rank, steps)| (in_window(steps), *rank)).collect();
        let all_ns = waited.iter().flat_map(|(_, steps)| steps).sum();
        self.seen_in(window, ranks, all_ns, seen, limits)
    }

    /// What ranks do in a window. `waited`: how long each of them waits in it.
    fn seen_in(
        &self,
        (from_ns, to_ns): (u64, u64),
        mut waited: Vec<(u64, u32)>,
        waited_in_run_ns: u64,
        seen: &RunSeen,
        limits: WindowLimits,
    ) -> io::Result<TimelineWindow> {
        let waited_ns = waited.iter().map(|(waited, _)| waited).sum();
        waited.sort_by_key(|(waited, rank)| (std::cmp::Reverse(*waited), *rank));
        let chosen = waited.into_iter().take(limits.ranks).map(|(_, rank)| rank);
        let chosen: BTreeSet<u32> = chosen.collect();
        let cells = (limits.cells / chosen.len().max(1)).clamp(1, limits.cells_of_rank);
        let grid = WindowGrid { from_ns, to_ns, cells };
        let mut rows = Vec::new();
        let mut messages = Vec::new();
        let chosen_ranks: Vec<u32> = chosen.iter().copied().collect();
        self.each(
            &chosen_ranks,
            |rank| self.row(rank, &seen.begins, grid),
            |(row, waited_for)| {
                rows.push(row);
                messages.extend(waited_for);
            },
        )?;
        messages.retain(|message: &WaitedMessage| chosen.contains(&message.from));
        messages.sort_by_key(|message| (std::cmp::Reverse(message.waited_ns), message.sent_ns));
        let more_messages = messages.len().saturating_sub(limits.messages);
        messages.truncate(limits.messages);
        Ok(TimelineWindow {
            from_ns,
            to_ns,
            run_ns: seen.run_ns.max(1),
            iteration: None,
            cells,
            rows,
            messages,
            more_messages,
            waited_in_run_ns,
            waited_ns,
        })
    }

    /// When calls began that others may wait for, how long the run was, and how many calls there were.
    pub(super) fn seen(&self) -> io::Result<RunSeen> {
        let mut all = RunSeen::default();
        let look = |rank: &TimedEvents| {
            let calls =
                rank.events.iter().filter(|event| matches!(event.kind, TimelineKind::Call(_)));
            let ends = calls.clone().map(|event| rank.span_ns(event).1);
            let begins = rank.begins(&self.arrows, &self.communicators);
            let kept = rank.header.iterations.iter().flat_map(|iterations| &iterations.kept);
            let spans = kept.filter_map(|of| {
                Some((of.number, (rank.ns)(of.begun_ticks), (rank.ns)(of.ended_ticks?)))
            });
            let spans: Vec<(u64, u64, u64)> = spans.collect();
            (begins, ends.max().unwrap_or(0), calls.count() as u64, spans)
        };
        self.each(&self.ranks, look, |(begins, end, calls, spans)| {
            for (number, begun, ended) in spans {
                let span = all.iterations.entry(number).or_insert((begun, ended));
                *span = (span.0.min(begun), span.1.max(ended));
            }
            all.begins.add(begins);
            all.run_ns = all.run_ns.max(end);
            all.calls += calls;
        })?;
        Ok(all)
    }

    /// How long each rank waits in each step of the run.
    fn waited(
        &self,
        begins: &Begins,
        step_ns: u64,
        steps: u64,
    ) -> io::Result<Vec<(u32, Vec<u64>)>> {
        let look = |rank: &TimedEvents| {
            let mut waited = vec![0; usize::try_from(steps).unwrap_or(1)];
            for wait in rank.waits(&self.arrows, &self.communicators, begins) {
                for step in wait.from_ns / step_ns..=wait.until_ns / step_ns {
                    let span = (step * step_ns, (step + 1) * step_ns);
                    let own = usize::try_from(step).ok().and_then(|step| waited.get_mut(step));
                    if let Some(own) = own {
                        *own += overlap((wait.from_ns, wait.until_ns), span);
                    }
                }
            }
            (rank.header.rank, waited)
        };
        let mut all = Vec::new();
        self.each(&self.ranks, look, |of| all.push(of))?;
        Ok(all)
    }

    /// A rank in the window, and the messages that it waits for longer than can be seen.
    fn row(
        &self,
        rank: &TimedEvents,
        begins: &Begins,
        grid: WindowGrid,
    ) -> (WindowRow, Vec<WaitedMessage>) {
        let window = (grid.from_ns, grid.to_ns);
        let waits = rank.waits(&self.arrows, &self.communicators, begins);
        let mut waits = waits.into_iter().map(|wait| (wait.at, wait)).collect::<BTreeMap<_, _>>();
        let places = RankTrace::new(self, rank.header).places;
        let (mut calls, mut messages) = (Vec::new(), Vec::new());
        let (mut in_mpi_ns, mut waited_ns) = (0, 0);
        let mut waited_for_ns: BTreeMap<u32, u64> = BTreeMap::new();
        let first = rank.events.iter().map(|event| (rank.ns)(event.begun)).min();
        let is_whole = lost(rank.header, rank.events) == 0;
        let mut known_ns = (first.filter(|_| !is_whole).unwrap_or(0), 0);
        for (at, event) in rank.events.iter().enumerate() {
            let Some(function) = rank.function(event) else { continue };
            let (begun_ns, ended_ns) = rank.span_ns(event);
            known_ns.1 = known_ns.1.max(ended_ns);
            if ended_ns < window.0 || begun_ns >= window.1 {
                continue;
            }
            let wait = waits.remove(&at);
            in_mpi_ns += overlap((begun_ns, ended_ns), window);
            if let Some(wait) = wait {
                let waited = overlap((wait.from_ns, wait.until_ns), window);
                waited_ns += waited;
                *waited_for_ns.entry(wait.late.rank).or_default() += waited;
                let is_seen = waited.saturating_mul(grid.cells as u64) > grid.length_ns();
                let sent_ns = wait.late.begun_ns;
                let is_in = (window.0..=window.1).contains(&sent_ns) && sent_ns <= ended_ns;
                if wait.state == WaitState::LateSender && is_seen && is_in {
                    let (from, to) = (wait.late.rank, rank.header.rank);
                    let received_ns = ended_ns;
                    let message =
                        WaitedMessage { from, to, sent_ns, received_ns, waited_ns: waited };
                    messages.push(message);
                }
            }
            calls.push(WindowCall {
                function: function.to_owned(),
                place: places.get(&event.site).copied().unwrap_or_default().to_owned(),
                begun_ns,
                took_ns: ended_ns - begun_ns,
                wait,
            });
        }
        let spans = grid.spans(&calls);
        let rank = rank.header.rank;
        (WindowRow { rank, known_ns, in_mpi_ns, waited_ns, waited_for_ns, spans }, messages)
    }
}

fn as_range(first: u64, span: u64) -> Range<usize> {
    let place = |step: u64| usize::try_from(step).unwrap_or(usize::MAX);
    place(first)..place(first + span)
}

/// Where the `span` steps begin in which all ranks together wait longest; in the middle if nobody waits.
fn worst_steps(waited: &[(u32, Vec<u64>)], span: u64) -> u64 {
    let steps = waited.iter().map(|(_, steps)| steps.len()).max().unwrap_or(0);
    let mut sums = vec![0_u64; steps];
    for (_, own) in waited {
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    let last = (steps as u64).saturating_sub(span);
    let sum = |first: u64| -> u64 { sums.get(as_range(first, span)).unwrap_or(&sums).iter().sum() };
    if sums.iter().all(|sum| *sum == 0) {
        return last / 2;
    }
    (0..=last).max_by_key(|first| (sum(*first), std::cmp::Reverse(*first))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gyan_results::timeline_file_name;

    use super::*;
    use crate::timeline::fixture::{file, header};
    use crate::timeline::waits::LateCall;

    fn call(begun_ns: u64, ended_ns: u64, waits_until_ns: Option<u64>) -> WindowCall {
        let wait = waits_until_ns.map(|until_ns| CallWait {
            at: 0,
            state: WaitState::Collective,
            from_ns: begun_ns,
            until_ns,
            late: LateCall { rank: 1, begun_ns: until_ns },
        });
        let (function, place) = (String::from("MPI_Barrier"), String::new());
        WindowCall { function, place, begun_ns, took_ns: ended_ns - begun_ns, wait }
    }

    /// Cells, whether they wait, and how many calls.
    fn spans(calls: &[WindowCall]) -> Vec<(Range<usize>, bool, u64)> {
        let grid = WindowGrid { from_ns: 1000, to_ns: 2000, cells: 10 };
        let spans = grid.spans(calls).into_iter();
        spans.map(|span| (span.cells, span.waits, span.calls)).collect()
    }

    #[test]
    fn a_call_is_divided_where_its_wait_ends() {
        let found = spans(&[call(1200, 1600, Some(1500))]);
        assert_eq!(found, [(2..5, true, 1), (5..6, false, 0)]);
    }

    #[test]
    fn a_call_that_is_cut_by_the_window_is_drawn_to_its_edges() {
        assert_eq!(spans(&[call(0, 5000, None)]), [(0..10, false, 0)]);
        assert_eq!(spans(&[call(0, 900, None), call(2000, 2100, None)]), []);
    }

    #[test]
    fn calls_too_short_to_be_seen_are_drawn_together_and_a_single_one_is_seen() {
        let mut calls: Vec<_> =
            (0..30).map(|at| call(1000 + 10 * at, 1005 + 10 * at, None)).collect();
        calls.push(call(1750, 1751, None));
        assert_eq!(spans(&calls), [(0..3, false, 30), (7..8, false, 1)]);
    }

    #[test]
    fn two_long_calls_in_a_row_are_two() {
        let found = spans(&[call(1000, 1300, None), call(1300, 1600, None)]);
        assert_eq!(found, [(0..3, false, 1), (3..6, false, 1)]);
    }

    #[test]
    fn the_window_is_where_all_ranks_together_wait_longest() {
        let waited = [(0, vec![0, 5, 0, 0, 3, 3]), (1, vec![0, 0, 0, 0, 0, 3])];
        assert_eq!(worst_steps(&waited, 1), 5);
        assert_eq!(worst_steps(&waited, 2), 4);
        // All of it, and none of it.
        assert_eq!(worst_steps(&waited, 6), 0);
        assert_eq!(worst_steps(&[(0, vec![0; 5])], 1), 2);
    }

    #[test]
    fn the_ranks_that_wait_longest_are_shown_around_the_longest_wait_of_the_run() {
        let place = tempfile::tempdir().unwrap();
        // A thousand barriers without waiting, but for one, for which rank 1 is late.
        for (rank, late) in [(0, 0), (1, 9000), (2, 3000)] {
            let begun = |at: u64| 1_000_000 + at * 10_000 + if at == 700 { late } else { 0 };
            let barrier = |at| (begun(at), 1_000_000 + at * 10_000 + 9500);
            let barriers: Vec<_> =
                (0..1000).map(|at| crate::timeline::fixture::call(0, barrier(at))).collect();
            let path = place.path().join(timeline_file_name(rank));
            std::fs::write(path, file(header(rank, 3, &["MPI_Barrier"]), 0, &barriers)).unwrap();
        }
        let run = Timelines::open(place.path(), &mut Vec::new()).unwrap();
        let limits = WindowLimits { ranks: 2, cells: 2000, cells_of_rank: 5000, messages: 9 };
        let window = run.windows(limits).unwrap().remove(0);
        // The clock counts from the first barrier.
        assert!(window.from_ns <= 7_000_000 && window.to_ns >= 7_009_500, "{}", window.from_ns);
        assert!((1_990_000..2_300_000).contains(&(window.to_ns - window.from_ns)));
        assert_eq!(
            (window.cells, window.waited_ns, window.waited_in_run_ns),
            (1000, 15_000, 15_000)
        );
        let waited = window.rows.iter().map(|row| (row.rank, row.waited_ns));
        assert_eq!(waited.collect::<Vec<_>>(), [(0, 9000), (2, 6000)]);
        let waits: Vec<_> = window.rows[0].spans.iter().filter(|span| span.waits).collect();
        let [wait] = waits[..] else { panic!("{}", waits.len()) };
        let late = wait.longest.wait.unwrap().late;
        assert_eq!(late, LateCall { rank: 1, begun_ns: 7_009_000 });
    }
}
