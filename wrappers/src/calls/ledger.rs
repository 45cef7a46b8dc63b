//! What is known so far: the exact number of calls of each function, what they moved and to whom, and how long
//! the timed ones took.
//!
//! With one thread at a time there are plain additions to one ledger. With `MPI_THREAD_MULTIPLE` every thread
//! has its own ledger, so additions need no lock either; the ledgers are summed at the end. A thread that ends leaves its
//! ledger to the next one that starts. With more than [`LEDGERS_AT_MOST`] threads at a time the last ledger is shared, with
//! locked additions, and calls of those threads are counted but not timed.

use std::collections::BTreeMap;
use std::iter;
#[cfg(target_arch = "x86_64")]
use std::mem::offset_of;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::calls::budget::{Budget, Ways, budget};
use crate::calls::estimate::{COLD_FROM, Times, Timing};
use crate::calls::now::ThreadNow;
use crate::calls::sites::Sites;
use crate::calls::traffic::{BARS, Peers, Sent, Sizes, Way};
use crate::mpi::functions::{Function, LEN, functions, values, waits_for_others as waits};
use crate::sys::alloc;
use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;
use crate::sys::later::Later;
use crate::sys::locks::held;

const LEDGERS_AT_MOST: usize = 256;
/// The time after which all functions are examined, to see how often each is called.
const LOOK_S: f64 = 0.01;
/// The highest call rate of a function is forgotten after about this time.
const MEMORY_S: f64 = 0.05;
/// They are examined earlier if spending exceeds the plan by this factor.
const TOO_MUCH: f64 = 4.0;
/// The part of the budget for timing that all functions share equally, however little their times vary.
const ALIKE: f64 = 1.0 / 4.0;
/// Rounds in which leftovers are shared out again.
const ROUNDS: usize = 8;
/// The row after the last, for calls that are not the program's: measuring gyan.
pub(crate) const NO_FUNCTION: Function = Function(LEN);
const ROWS: usize = LEN + 1;
const WORDS: usize = ROWS.div_ceil(64);

/// The data on one function that each call touches.
struct FunctionCounts {
    calls: Counter,
    /// How many calls come before the next one that is timed.
    left: Counter,
    sizes: Later<Sizes>,
}

impl FunctionCounts {
    const fn new() -> FunctionCounts {
        FunctionCounts { calls: Counter::new(0), left: Counter::new(0), sizes: Later::new() }
    }

    fn is_due(&self) -> bool {
        self.left.get() == 0
    }

    /// Times the call after the first `calls` calls, or the next one if there are more already.
    fn set_due(&self, calls: u64) {
        self.left.set(calls.saturating_sub(self.calls.get()));
    }

    fn sizes(&self) -> Option<&Sizes> {
        if alloc::is_short() {
            return self.sizes.get();
        }
        Some(self.sizes.get_or_make(Sizes::new))
    }

    fn count(&self) {
        self.calls.add(1);
        self.left.set(self.left.get().saturating_sub(1));
    }
}

/// The calls of one thread, or of many when it is shared.
pub(crate) struct Ledger {
    accounts: [FunctionCounts; ROWS],
    timings: [Later<Timing>; ROWS],
    /// The traffic to each peer, in each way.
    peers: [Later<Peers>; Way::ALL.len()],
    /// Where the timed calls come from.
    pub(crate) sites: Later<Sites>,
    /// Calls that did not take the shortest way: with their arguments as words, from C and from Fortran, or with a
    /// scope.
    in_words: [Counter; 2],
    scoped: Counter,
    /// Calls that asked whether something has come, while their requests were looked at.
    asking: Counter,
    /// Pieces of work for objects and requests.
    effects: Counter,
    /// A bit for each function that was called.
    called: [Counter; WORDS],
    random: Counter,
    shared: AtomicBool,
    /// When all functions were last examined, and how much may be spent on calls until the next time.
    looked: Counter,
    enough: Counter,
    /// Whether the last look found that not every call can be timed.
    limited: AtomicBool,
    /// The phase in which calls are being timed.
    phase: Counter,
    gaps: Gaps,
    /// What the thread is doing, if it has this ledger to itself.
    pub(crate) now: ThreadNow,
    /// See [`Ledger::place`].
    place: Counter,
}

/// The program's own code between two calls, while not every call is timed: a gap belongs to the function that was
/// called before it.
struct Gaps {
    timings: [Later<Timing>; ROWS],
    /// The gap that comes next is timed: the function, plus 1, and the spacing at which that was drawn.
    wanted: Counter,
    spacing: Gauge,
    /// When it began, and what the last one took.
    begun: Counter,
    took: Gauge,
    /// The time in which not every call was timed, up to the last look, and what gyan spent in it.
    ticks: Gauge,
    spent: Gauge,
    /// What gyan had spent at the last look.
    spent_before: Counter,
    /// The time of calls while every call was timed.
    certain: Gauge,
}

/// What is known of the time in which not every call was timed, in ticks: sums, so that subtraction gives those of a
/// stretch of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limited {
    pub(crate) ticks: f64,
    /// By gyan, for counting, timing and the rest.
    pub(crate) spent: f64,
    /// The time of calls outside of that time, all of which were timed.
    pub(crate) certain: f64,
    /// Of the program's own code.
    pub(crate) gaps: Times,
}

impl Limited {
    pub(crate) fn plus(self, other: Limited) -> Limited {
        Limited {
            ticks: self.ticks + other.ticks,
            spent: self.spent + other.spent,
            certain: self.certain + other.certain,
            gaps: self.gaps.plus(other.gaps),
        }
    }

    pub(crate) fn minus(self, earlier: Limited) -> Limited {
        Limited {
            ticks: self.ticks - earlier.ticks,
            spent: self.spent - earlier.spent,
            certain: self.certain - earlier.certain,
            gaps: self.gaps.minus(earlier.gaps),
        }
    }
}

impl Gaps {
    const fn new() -> Gaps {
        Gaps {
            timings: [const { Later::new() }; ROWS],
            wanted: Counter::new(0),
            spacing: Gauge::new(0.0),
            begun: Counter::new(0),
            took: Gauge::new(0.0),
            ticks: Gauge::new(0.0),
            spent: Gauge::new(0.0),
            spent_before: Counter::new(0),
            certain: Gauge::new(0.0),
        }
    }

    fn timing(&self, function: Function) -> Option<&Timing> {
        let timing = self.timings.get(function.0)?;
        if alloc::is_short() {
            return timing.get();
        }
        Some(timing.get_or_make(Timing::new))
    }

    fn known(&self, function: Function) -> Option<&Timing> {
        self.timings.get(function.0)?.get()
    }

    fn want(&self, function: Function, spacing: f64) {
        self.wanted.set(function.0 as u64 + 1);
        self.spacing.set(spacing);
    }
}

/// The phase that the program is in, by number.
static PHASE: Counter = Counter::new(0);
/// How many ranks `MPI_COMM_WORLD` has; 0 when peers are not counted.
static PEERS: Counter = Counter::new(0);

impl Ledger {
    const fn new() -> Ledger {
        Ledger {
            accounts: [const { FunctionCounts::new() }; ROWS],
            timings: [const { Later::new() }; ROWS],
            peers: [const { Later::new() }; Way::ALL.len()],
            sites: Later::new(),
            in_words: [const { Counter::new(0) }; 2],
            scoped: Counter::new(0),
            asking: Counter::new(0),
            effects: Counter::new(0),
            called: [const { Counter::new(0) }; WORDS],
            random: Counter::new(0),
            shared: AtomicBool::new(false),
            looked: Counter::new(0),
            enough: Counter::new(0),
            limited: AtomicBool::new(false),
            phase: Counter::new(0),
            gaps: Gaps::new(),
            now: ThreadNow::new(),
            place: Counter::new(0),
        }
    }

    /// Which thread it is of: 0 if only one calls MPI; a later thread may have the number of one that has ended.
    pub(crate) fn place(&self) -> u8 {
        u8::try_from(self.place.get()).unwrap_or(u8::MAX)
    }

    /// The offsets of a function's number of calls, and of the calls left before one is timed, for entry points
    /// that count by themselves.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn places(function: Function) -> (usize, usize) {
        let account = offset_of!(Ledger, accounts) + function.0 * size_of::<FunctionCounts>();
        (account + offset_of!(FunctionCounts, calls), account + offset_of!(FunctionCounts, left))
    }

    /// Whether the next call of a function is due for timing; the first one always is.
    #[inline]
    pub(crate) fn is_due(&self, function: Function) -> bool {
        self.accounts.get(function.0).is_none_or(FunctionCounts::is_due)
    }

    /// Counts a call on the fast path, unless it is due for timing. Returns whether it did.
    #[inline]
    pub(crate) fn count_unless_due(&self, function: Function) -> bool {
        let Some(account) = self.accounts.get(function.0) else { return false };
        let Some(left) = account.left.get().checked_sub(1) else { return false };
        account.left.set(left);
        account.calls.add(1);
        true
    }

    /// Takes a call back that was counted on the fast path: it takes another one.
    #[cold]
    pub(crate) fn take_back(&self, function: Function) {
        let Some(account) = self.accounts.get(function.0) else { return };
        account.left.add(1);
        account.calls.add(1_u64.wrapping_neg());
    }

    /// Counts a successful call and the bytes that it moved, if any, on the fast path.
    #[inline]
    pub(crate) fn moved(&self, function: Function, bytes: u64) {
        let Some(account) = self.accounts.get(function.0) else { return };
        match account.sizes.get() {
            Some(sizes) => sizes.add(bytes, false),
            None => self.moved_slowly(function, bytes),
        }
    }

    #[cold]
    pub(crate) fn moved_slowly(&self, function: Function, bytes: u64) {
        let sizes = self.accounts.get(function.0).and_then(FunctionCounts::sizes);
        if let Some(sizes) = sizes {
            sizes.add(bytes, self.is_shared());
        }
    }

    /// Counts traffic to a peer, on the fast path.
    #[inline]
    pub(crate) fn sent(&self, sent: Sent) {
        match self.peers.get(sent.way() as usize).and_then(Later::get) {
            Some(peers) => peers.add(sent, false),
            None => self.sent_slowly(sent),
        }
    }

    #[cold]
    pub(crate) fn sent_slowly(&self, sent: Sent) {
        let Some(peers) = self.peers.get(sent.way() as usize) else { return };
        let peers = if alloc::is_short() {
            peers.get()
        } else {
            Some(peers.get_or_make(|| Peers::new(usize::try_from(PEERS.get()).unwrap_or(0))))
        };
        if let Some(peers) = peers {
            peers.add(sent, self.is_shared());
        }
    }

    /// Counts a call on a path other than the fast one.
    pub(crate) fn count_slowly(&self, function: Function) {
        let Some(account) = self.accounts.get(function.0) else { return };
        if account.calls.get() == 0 {
            self.note(function);
        }
        if self.is_shared() { account.calls.add_shared(1) } else { account.count() }
    }

    /// The arguments of a call came as words.
    #[inline]
    pub(crate) fn came_in_words(&self, from_fortran: bool) {
        let [c, fortran] = &self.in_words;
        (if from_fortran { fortran } else { c }).add(1);
    }

    /// The requests of a call were looked at on the fast path.
    #[inline]
    pub(crate) fn asked(&self) {
        self.asking.add(1);
    }

    #[inline]
    pub(crate) fn was_in_scope(&self) {
        self.scoped.add(1);
    }

    /// The number of a piece of work for objects and requests.
    #[inline]
    pub(crate) fn next_effect(&self) -> u64 {
        self.effects.next()
    }

    /// The pieces of work so far, and the requests that were looked at, were not the program's.
    pub(crate) fn forget_effects(&self) {
        self.effects.set(0);
        self.asking.set(0);
    }

    /// Takes back messages of no bytes to a rank, which measuring gyan has counted.
    pub(crate) fn not_sent(&self, rank: u32, messages: u64) {
        if let Some(peers) = self.peers.get(Way::Message as usize).and_then(Later::get) {
            peers.take_back(rank, messages);
        }
    }

    fn add_ways(&self, ways: &mut Ways) {
        for function in self.called().filter(|function| *function != NO_FUNCTION) {
            let Some(account) = self.accounts.get(function.0) else { continue };
            let calls = account.calls.get();
            ways.calls += calls;
            ways.timed += self.known_timing(function).map_or(0, Timing::timed);
            let bars = account.sizes.get().into_iter().flat_map(Sizes::bars);
            ways.moving += bars.map(|(calls, _)| calls).sum::<u64>();
            if waits(function) {
                ways.waiting += calls;
            }
            if function.0 >= values::MPI_Wtime.0 {
                ways.by_hand += calls;
            }
        }
        for peers in self.peers.iter().filter_map(Later::get) {
            ways.sending += peers.rows().map(|(_, messages, _)| messages).sum::<u64>();
        }
        let [c, fortran] = &self.in_words;
        ways.in_words += c.get();
        ways.from_fortran += fortran.get();
        ways.scoped += self.scoped.get();
        ways.asking += self.asking.get();
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    fn note(&self, function: Function) {
        if let Some(word) = self.called.get(function.0 / 64) {
            word.or(1 << (function.0 % 64));
        }
    }

    fn called(&self) -> impl Iterator<Item = Function> {
        self.called.iter().enumerate().flat_map(|(at, word)| {
            let mut left = word.get();
            iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(Function(at * 64 + bit as usize))
            })
        })
    }

    pub(crate) fn calls(&self, function: Function) -> u64 {
        self.accounts.get(function.0).map_or(0, |account| account.calls.get())
    }

    /// The times of a function of which a call was timed.
    fn known_timing(&self, function: Function) -> Option<&Timing> {
        self.timings.get(function.0)?.get()
    }

    fn timing(&self, function: Function) -> Option<&Timing> {
        let timing = self.timings.get(function.0)?;
        if alloc::is_short() {
            return timing.get();
        }
        Some(timing.get_or_make(Timing::new))
    }

    /// A number in [0, 1).
    pub(crate) fn random(&self) -> f64 {
        let seed = match self.random.get() {
            0 => clock::now(),
            seed => seed,
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let number = random.f64();
        self.random.set(random.get_seed());
        number
    }

    /// Its random numbers are those of `seed`.
    #[cfg(test)]
    pub(crate) fn begin_at_random(&self, seed: u64) {
        self.random.set(seed);
    }

    /// Whether the next call of a function is timed and follows a warm-up call.
    pub(crate) fn is_warm(&self, function: Function) -> bool {
        self.known_timing(function).is_some_and(Timing::is_warm)
    }

    /// The current call took the ticks from `begun` to `ended`. Chooses the next one to time. Not for a shared
    /// ledger. `in_any_case`: it would have been timed without the budget's choice, and stands for itself only.
    pub(crate) fn timed(
        &self,
        budget: &Budget,
        function: Function,
        begun: u64,
        ended: u64,
        in_any_case: bool,
    ) -> Timed {
        let (Some(account), Some(timing)) = (self.accounts.get(function.0), self.timing(function))
        else {
            self.put_off(function);
            return Timed::NOT;
        };
        if timing.warms_up() {
            budget.spend_on_timing(budget.timed_ticks());
            self.gaps.want(function, timing.spacing());
            return if in_any_case {
                self.timed_besides(budget, function, begun, ended)
            } else {
                Timed::NOT
            };
        }
        let call = account.calls.get() + 1;
        let ticks = ended.saturating_sub(begun) as f64 - budget.between();
        let spacing = timing.spacing();
        let weight = if in_any_case { 1.0 } else { timing.weight() };
        let counted = timing.take_as(weight, call, ticks, clock::ns_per_tick());
        let timed = Timed { number: timing.timed(), looked: false, ticks, weight };
        if budget.is_unlimited() {
            return timed;
        }
        let spent = budget.spend_on_calls(counted, account.sizes.get().is_some());
        let limited = self.limited.load(Ordering::Relaxed);
        if !limited {
            self.gaps.certain.add(ticks);
        }
        let each = limited && budget.pays_for_itself(timing.mean(call));
        account.set_due(timing.next(call, limited, each, self.random()));
        if self.phase.get() != PHASE.get() {
            self.change_phase(function);
        }
        let since = ended.saturating_sub(self.looked.get());
        let looked = spent > self.enough.get() || since as f64 > clock::ticks(LOOK_S);
        if looked {
            self.look(budget, function, ended);
        }
        if self.limited.load(Ordering::Relaxed) {
            // The gap before a timed call that follows a warm-up call, else that after it: each has the chance of
            // the call.
            if spacing <= COLD_FROM {
                self.gaps.want(function, spacing);
            } else if timing.is_warm() {
                self.gaps.want(function, timing.spacing());
            }
        }
        Timed { looked, ..timed }
    }

    /// The current call took the ticks from `begun` to `ended`: the budget did not choose it. Not for a shared ledger.
    pub(crate) fn timed_besides(
        &self,
        budget: &Budget,
        function: Function,
        begun: u64,
        ended: u64,
    ) -> Timed {
        // The first call of a function is always chosen.
        let Some(timing) = self.known_timing(function) else { return Timed::NOT };
        let ticks = ended.saturating_sub(begun) as f64 - budget.between();
        timing.take_certain(ticks, clock::ns_per_tick());
        Timed { number: timing.timed(), looked: false, ticks, weight: 1.0 }
    }

    /// Whether the program's own code after the call that is about to return is timed.
    pub(crate) fn wants_gap(&self) -> bool {
        self.gaps.wanted.get() != 0
    }

    /// The call returns to the program.
    pub(crate) fn gap_begins(&self, now: u64) {
        self.gaps.begun.set(now);
    }

    /// The program calls again.
    pub(crate) fn gap_ended(&self, budget: &Budget, now: u64) {
        let Some(wanted) = self.gaps.wanted.get().checked_sub(1) else { return };
        self.gaps.wanted.set(0);
        let ticks = now.saturating_sub(self.gaps.begun.get()) as f64 - budget.gap();
        self.gaps.took.set(ticks);
        let function = Function(usize::try_from(wanted).unwrap_or(NO_FUNCTION.0));
        if function != NO_FUNCTION
            && let Some(gap) = self.gaps.timing(function)
        {
            gap.take_at(self.gaps.spacing.get(), self.calls(function), ticks);
        }
    }

    /// The next gap is timed, to measure what that gives when the program does nothing.
    pub(crate) fn want_gap_of_nothing(&self) {
        self.gaps.want(NO_FUNCTION, 1.0);
    }

    /// Ticks of the last gap.
    pub(crate) fn gap_took(&self) -> f64 {
        self.gaps.took.get()
    }

    /// The time in which not every call was timed, up to `now`.
    pub(crate) fn limited(&self, budget: &Budget, now: u64) -> Limited {
        let gaps = &self.gaps;
        let limited = self.limited.load(Ordering::Relaxed);
        let (mut ticks, mut spent) = (gaps.ticks.get(), gaps.spent.get());
        if limited {
            ticks += now.saturating_sub(self.looked.get()) as f64;
            spent += budget.all().saturating_sub(gaps.spent_before.get()) as f64;
        }
        let mut times = Times::default();
        for function in self.called() {
            if let Some(gap) = gaps.known(function) {
                times = times.plus(gap.times(if limited { self.calls(function) } else { 0 }, 0.0));
            }
        }
        Limited { ticks, spent, certain: gaps.certain.get(), gaps: times }
    }

    /// Examines all functions, in a call of one: how often they are called and how much their times vary, and
    /// from that the probability with which to time calls of each.
    #[cold]
    fn look(&self, budget: &Budget, within: Function, now: u64) {
        let first = self.looked.get() == 0;
        let ticks = if first { 1.0 } else { now.saturating_sub(self.looked.get()) as f64 };
        self.looked.set(now);
        let memory = clock::ticks(MEMORY_S);
        let mut active = 0.0;
        for (_, calls, timing) in self.timings(within) {
            active += f64::from(u8::from(timing.look(calls, ticks, memory)));
        }
        let allowance = budget.for_calls(now) / budget.threads() as f64;
        let was_limited = self.limited.swap(allowance.is_finite(), Ordering::Relaxed);
        self.look_at_gaps(budget, (was_limited, allowance.is_finite()), ticks);
        if allowance.is_finite() {
            self.allot(budget, within, allowance, active);
            let until = allowance * clock::ticks(LOOK_S) + 16.0 * budget.timed_ticks();
            self.enough.set(budget.calls().saturating_add(clock::whole(TOO_MUCH * until)));
        } else {
            self.enough.set(clock::whole(budget.free(now)));
            if was_limited {
                for (account, calls, timing) in self.timings(within) {
                    account.set_due(timing.free(calls));
                }
            }
        }
    }

    /// `limited`: whether not every call was timed, for `ticks` until now, and whether that is so from now on.
    fn look_at_gaps(&self, budget: &Budget, limited: (bool, bool), ticks: f64) {
        let gaps = &self.gaps;
        let spent = budget.all();
        if limited.0 {
            gaps.ticks.add(ticks);
            gaps.spent.add(spent.saturating_sub(gaps.spent_before.get()) as f64);
        }
        gaps.spent_before.set(spent);
        if limited.0 == limited.1 {
            return;
        }
        for function in self.called() {
            match gaps.timing(function) {
                Some(gap) if limited.0 => gap.settle(self.calls(function)),
                Some(gap) => gap.skip(self.calls(function)),
                None => {}
            }
        }
    }

    /// Timing takes no more than `allowance`, a share of the time. The probabilities are proportional to the
    /// standard deviation of the times of each function, and inversely proportional to the root of the cost of
    /// timing one call, which minimises the variance of the sum (Neyman 1934). A part of the allowance is
    /// shared equally by the `active` functions, because a sample says nothing about what is not in it.
    fn allot(&self, budget: &Budget, within: Function, allowance: f64, active: f64) {
        let cost = |timing: &Timing| {
            // A warm-up call comes before it.
            let calls = if timing.spacing() > COLD_FROM { 2.0 } else { 1.0 };
            calls * budget.timed_ticks()
        };
        let each = |calls, timing: &Timing| budget.pays_for_itself(timing.mean(calls));
        let sampled = || self.timings(within).filter(|(_, calls, timing)| !each(*calls, timing));
        let alike = |timing: &Timing| {
            let (rate, _) = timing.demand();
            allowance * ALIKE / active.max(1.0) / (rate * cost(timing)).max(1e-300)
        };
        let merit = |timing: &Timing| timing.demand().1 / cost(timing).sqrt();
        // The probability of each is min(1, alike + factor * merit). A single factor would be too small because
        // of functions where that is 1, so their leftover goes to the others, for some rounds.
        let mut factor = 0.0;
        for _ in 0..ROUNDS {
            let (mut left, mut demanded) = (allowance, 0.0);
            for (_, _, timing) in sampled() {
                let whole = timing.demand().0 * cost(timing);
                let (alike, merit) = (alike(timing), merit(timing));
                if alike + factor * merit >= 1.0 {
                    left -= whole;
                } else {
                    left -= whole * alike;
                    demanded += whole * merit;
                }
            }
            let next = if demanded > 0.0 { (left / demanded).max(0.0) } else { factor };
            if next <= factor {
                break;
            }
            factor = next;
        }
        for (account, calls, timing) in self.timings(within) {
            let sampled = || (alike(timing) + factor * merit(timing)).min(1.0);
            let probability = if each(calls, timing) { 1.0 } else { sampled() };
            account.set_due(timing.allot(probability, calls, self.random()));
        }
    }

    /// The functions with timed calls, and the numbers of their calls, including the current one.
    fn timings(&self, within: Function) -> impl Iterator<Item = (&FunctionCounts, u64, &Timing)> {
        self.called().filter_map(move |function| {
            let account = self.accounts.get(function.0)?;
            let calls = account.calls.get() + u64::from(function == within);
            Some((account, calls, self.known_timing(function)?))
        })
    }

    /// The program has moved to another phase. `within`: the call in progress, if any.
    pub(crate) fn change_phase(&self, within: Function) {
        let (from, phase) = (self.phase.get(), PHASE.get());
        self.phase.set(phase);
        if from == phase || budget().is_unlimited() || self.is_shared() || alloc::is_short() {
            return;
        }
        let number = |phase| usize::try_from(phase).unwrap_or(0);
        let change = (number(from), number(phase));
        let limited = self.limited.load(Ordering::Relaxed);
        for (account, calls, timing) in self.timings(within) {
            account.set_due(timing.change_phase(change, limited, calls, self.random()));
        }
        for function in self.called().filter(|_| limited) {
            if let Some(gap) = self.gaps.known(function) {
                gap.change_phase(change, limited, self.calls(function), 0.0);
            }
        }
    }

    /// Starts counting from zero again.
    pub(crate) fn forget(&self, function: Function) {
        if let Some(account) = self.accounts.get(function.0) {
            account.calls.set(0);
            account.left.set(0);
        }
    }

    /// From now on never timed, except on request.
    pub(crate) fn put_off(&self, function: Function) {
        if let Some(account) = self.accounts.get(function.0) {
            account.left.set(u64::MAX);
        }
    }
}

pub(crate) struct Timed {
    /// How many calls of the function were timed, including this one; 0 if this one was not timed.
    pub(crate) number: u64,
    /// Whether all functions were examined as well.
    pub(crate) looked: bool,
    pub(crate) ticks: f64,
    /// How many calls it stands for.
    pub(crate) weight: f64,
}

impl Timed {
    const NOT: Timed = Timed { number: 0, looked: false, ticks: 0.0, weight: 0.0 };
}

pub(crate) static ALONE: Ledger = Ledger::new();

/// Where in a ledger the number of calls of a function is.
pub(crate) fn calls_at(function: Function) -> usize {
    std::mem::offset_of!(Ledger, accounts)
        + function.0.min(LEN) * size_of::<FunctionCounts>()
        + std::mem::offset_of!(FunctionCounts, calls)
}

/// Where in a ledger is what its thread is doing.
pub(crate) const NOW_AT: usize = std::mem::offset_of!(Ledger, now);

/// Where in a ledger is the address of its [`Peers`] of messages; 0 before the first one.
pub(crate) const MESSAGES_AT: usize =
    std::mem::offset_of!(Ledger, peers) + Way::Message as usize * size_of::<Later<Peers>>();

/// A ledger that does not belong to the process, for a forked copy in which locks may be held by no living
/// thread.
#[cfg(test)]
pub(crate) fn leaked() -> &'static Ledger {
    Box::leak(Box::new(Ledger::new()))
}

/// Calls that MPI made.
static PASSED: Counter = Counter::new(0);

/// For threads without ledgers of their own: there was no memory, or they need none.
static SPARE: Ledger = Ledger::new();
static LEDGERS: Mutex<Ledgers> = Mutex::new(Ledgers { all: Vec::new(), free: Vec::new() });

/// For the keeper: the addresses of the ledgers of threads, and then 0.
pub(crate) static LISTED: [AtomicUsize; LEDGERS_AT_MOST] =
    [const { AtomicUsize::new(0) }; LEDGERS_AT_MOST];

struct Ledgers {
    all: Vec<&'static Ledger>,
    /// Those of threads that ended.
    free: Vec<&'static Ledger>,
}

impl Ledgers {
    fn in_use(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }
}

/// The ledger while only one thread calls MPI.
#[inline]
pub(crate) fn alone() -> &'static Ledger {
    &ALONE
}

/// Makes the next call, of a function that starts MPI, a timed one.
pub(crate) fn time(function: Function, begun: u64, ended: u64) {
    ALONE.timed(budget(), function, begun, ended, false);
}

/// The program continues in phase number `phase`; each ledger learns that in [`Ledger::change_phase`].
pub(crate) fn enter_phase(phase: usize) {
    PHASE.set(phase as u64);
}

/// From now on messages are counted by peer, in an `MPI_COMM_WORLD` of this many ranks; 0: not at all.
pub(crate) fn count_peers(size: u32) {
    PEERS.set(size.into());
}

#[inline]
pub(crate) fn counts_peers() -> bool {
    PEERS.get() != 0
}

/// Counts a call that starts or ends MPI, even if other threads count too.
pub(crate) fn count(function: Function) {
    ALONE.note(function);
    if let Some(account) = ALONE.accounts.get(function.0) {
        account.calls.add_shared(1);
    }
}

/// Counts a call of a thread that has no ledger, while another one counts in that of the process.
pub(crate) fn count_aside(function: Function) {
    SPARE.shared.store(true, Ordering::Relaxed);
    SPARE.count_slowly(function);
}

/// The ledger of a thread that calls for the first time.
#[cold]
#[inline(never)]
pub(crate) fn new_ledger() -> &'static Ledger {
    let mut ledgers = held(&LEDGERS);
    if let Some(ledger) = ledgers.free.pop() {
        budget().set_threads(ledgers.in_use());
        return ledger;
    }
    match ledgers.all.last() {
        Some(last) if ledgers.all.len() >= LEDGERS_AT_MOST => last,
        _ if alloc::is_short() => {
            SPARE.shared.store(true, Ordering::Relaxed);
            &SPARE
        }
        _ => {
            let ledger: &'static Ledger = Box::leak(Box::new(Ledger::new()));
            if let Some(place) = LISTED.get(ledgers.all.len()) {
                place.store(ptr::from_ref(ledger).addr(), Ordering::Relaxed);
            }
            ledgers.all.push(ledger);
            ledger.place.set(ledgers.all.len() as u64);
            budget().set_threads(ledgers.in_use());
            // The last one is shared from its first use, so that no thread ever adds to it without the lock.
            ledger.shared.store(ledgers.all.len() == LEDGERS_AT_MOST, Ordering::Relaxed);
            ledger
        }
    }
}

/// The thread that had this ledger to itself ends: the next new thread adds to it.
pub(crate) fn give_back(ledger: &'static Ledger) {
    ledger.now.ends();
    let mut ledgers = held(&LEDGERS);
    if !alloc::is_short() {
        ledgers.free.push(ledger);
        budget().set_threads(ledgers.in_use());
    }
}

/// The data on one function over all threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) times: Times,
    /// The longest since the last look, in ticks.
    pub(crate) max: f64,
}

/// The functions that were called, and for each the numbers of its calls and of the timed ones, over all threads.
pub(crate) fn numbers() -> Vec<(Function, u64, u64)> {
    let mut all: Vec<(Function, u64, u64)> = Vec::new();
    each(|ledger| {
        for function in ledger.called().filter(|function| *function != NO_FUNCTION) {
            let calls = ledger.calls(function);
            let timed = ledger.known_timing(function).map_or(0, Timing::timed);
            match all.iter_mut().find(|(known, ..)| *known == function) {
                Some((_, all_calls, all_timed)) => {
                    *all_calls += calls;
                    *all_timed += timed;
                }
                None => all.push((function, calls, timed)),
            }
        }
    });
    all
}

/// The data on a function, over all threads.
pub(crate) fn calls(function: Function) -> Calls {
    let mut all = Calls::default();
    let now = clock::now();
    each(|ledger| {
        let Some(account) = ledger.accounts.get(function.0) else { return };
        let unseen = now.saturating_sub(ledger.looked.get()) as f64;
        let count = account.calls.get();
        let timing = ledger.known_timing(function);
        all.add(&Calls {
            count,
            bytes: account.sizes.get().map_or(0, Sizes::bytes),
            times: timing.map(|timing| timing.times(count, unseen)).unwrap_or_default(),
            max: timing.map_or(0.0, Timing::take_max),
        });
    });
    all
}

impl Calls {
    pub(crate) fn since(&self, earlier: &Calls) -> Calls {
        Calls {
            count: self.count.saturating_sub(earlier.count),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            times: self.times.minus(earlier.times),
            max: self.max,
        }
    }

    pub(crate) fn add(&mut self, other: &Calls) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.times = self.times.plus(other.times);
        self.max = self.max.max(other.max);
    }
}

pub(crate) fn ways() -> Ways {
    let mut ways = Ways { passed: PASSED.get(), ..Ways::default() };
    each(|ledger| ledger.add_ways(&mut ways));
    ways
}

/// MPI made a call. Of several threads that make one at the same time, some may not be seen.
#[inline]
pub(crate) fn passed() {
    PASSED.add(1);
}

pub(crate) fn each(work: impl FnMut(&'static Ledger)) {
    in_all(&held(&LEDGERS), work);
}

/// The same where the program may be a forked copy of itself, in which nobody opens the lock that another thread held.
/// Does nothing while it is locked.
pub(crate) fn each_at_once(work: impl FnMut(&'static Ledger)) {
    if let Ok(ledgers) = LEDGERS.try_lock() {
        in_all(&ledgers, work);
    }
}

fn in_all(ledgers: &Ledgers, work: impl FnMut(&'static Ledger)) {
    [&ALONE, &SPARE].into_iter().chain(ledgers.all.iter().copied()).for_each(work);
}

/// How many calls of a function moved 0, 1, 2 to 3, 4 to 7 and so on bytes, and the bytes in all, over all
/// threads, in [`traffic::BARS`](crate::calls::traffic::BARS) bars.
pub(crate) fn sizes(function: Function) -> Vec<(u64, u64)> {
    let mut sum = vec![(0, 0); BARS];
    each(|ledger| {
        let Some(sizes) = ledger.accounts.get(function.0).and_then(|account| account.sizes.get())
        else {
            return;
        };
        for (sum, bar) in sum.iter_mut().zip(sizes.bars()) {
            *sum = (sum.0 + bar.0, sum.1 + bar.1);
        }
    });
    sum
}

/// Messages and bytes to each peer, by its rank in `MPI_COMM_WORLD`, over all threads. Rank none stands for all
/// others and comes last.
pub(crate) fn peers(way: Way) -> Vec<(Option<u32>, u64, u64)> {
    let mut sum: BTreeMap<(bool, Option<u32>), (u64, u64)> = BTreeMap::new();
    each(|ledger| {
        let Some(peers) = ledger.peers.get(way as usize).and_then(Later::get) else { return };
        for (rank, messages, bytes) in peers.rows() {
            let known = sum.entry((rank.is_none(), rank)).or_default();
            *known = (known.0 + messages, known.1 + bytes);
        }
    });
    sum.into_iter().map(|((_, rank), (messages, bytes))| (rank, messages, bytes)).collect()
}

/// The ticks of all timed calls: of all threads, and those of calls that no other thread can make meanwhile.
pub(crate) fn timed_ticks() -> (f64, f64) {
    let of = |ledger: &Ledger| -> f64 {
        let timed = ledger.called().filter_map(|function| ledger.known_timing(function));
        timed.map(|timing| timing.times(0, 0.0).sum).sum()
    };
    let mut all = 0.0;
    each(|ledger| all += of(ledger));
    (all, of(&ALONE))
}

/// Estimated numbers of calls of a function by the time that they took, over all threads: up to the
/// last bar that is not 0.
pub(crate) fn histogram(function: Function) -> Vec<u64> {
    let mut sum: Vec<f64> = Vec::new();
    each(|ledger| {
        let Some(timing) = ledger.known_timing(function) else { return };
        let bars = timing.histogram(ledger.calls(function));
        sum.resize(bars.len(), 0.0);
        for (sum, bar) in sum.iter_mut().zip(bars) {
            *sum += bar;
        }
    });
    while sum.last().is_some_and(|bar| *bar < 0.5) {
        sum.pop();
    }
    // Not negative, and no more than there were calls.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    sum.into_iter().map(|bar| bar.round() as u64).collect()
}

/// How many threads with ledgers of their own there were at most at a time.
pub(crate) fn threads() -> u64 {
    let ledgers = held(&LEDGERS);
    ledgers.all.len().max(1) as u64
}

/// Whether there were more threads, so that calls of some are not timed.
pub(crate) fn is_shared() -> bool {
    held(&LEDGERS).all.len() >= LEDGERS_AT_MOST
}

/// The table's entry for a function.
pub(crate) fn row(function: Function) -> Option<&'static crate::mpi::functions::Row> {
    functions().nth(function.0).map(|(_, row)| row)
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::point_to_point::{MPI_Isend, MPI_Mrecv};
    use crate::sys::fork::in_a_copy;

    fn calls_of(function: Function) -> Calls {
        super::calls(function)
    }

    /// In a forked copy: the number of threads decides how often calls are timed, which would disturb other
    /// tests.
    #[test]
    fn counts_of_all_threads_are_exact_with_more_threads_than_ledgers() {
        let lines = in_a_copy(|out| {
            std::thread::scope(|scope| {
                for _ in 0..LEDGERS_AT_MOST + 8 {
                    scope.spawn(|| {
                        let ledger = new_ledger();
                        for _ in 0..1000 {
                            ledger.count_slowly(MPI_Isend);
                            ledger.moved_slowly(MPI_Isend, 8);
                        }
                    });
                }
            });
            alone().count_slowly(MPI_Mrecv);
            let (sends, receives) = (calls_of(MPI_Isend), calls_of(MPI_Mrecv));
            writeln!(out, "{} {} {} {}", sends.count, sends.bytes, receives.count, receives.bytes)?;
            writeln!(out, "{}", LEDGERS.lock().unwrap().all.len())
        });
        let count = 1000 * (LEDGERS_AT_MOST as u64 + 8);
        assert_eq!(lines, format!("{count} {} 1 0\n{LEDGERS_AT_MOST}\n", 8 * count));
    }
}
