//! Which calls lead to this one? The distinct stacks of one call site, each with its weight. Written by one
//! thread at a time, while others may read.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::{addresses, scripts};
use crate::sys::cells::{Counter, Gauge};
use crate::sys::{python, unwind};

/// Most different stacks that are kept of a site.
pub(crate) const STACKS: usize = 4;
const FRAMES: usize = 32;
/// Most frames of gyan and of the MPI library, which come before the program's.
const INNER_FRAMES: usize = 16;

/// The stacks of a site, and how often one was recorded.
pub(crate) struct Stacks {
    taken: Counter,
    known: [Stack; STACKS],
    /// The total weight of all recorded stacks, including those that are not kept.
    all: Weight,
}

pub(crate) struct Stack {
    pub(crate) hits: Counter,
    pub(crate) weight: Weight,
    /// 0 until the addresses are written, which then stay.
    len: AtomicUsize,
    addresses: [Counter; FRAMES],
}

/// How many calls a stack stands for, and for how many ticks.
pub(crate) struct Weight {
    pub(crate) calls: Gauge,
    pub(crate) ticks: Gauge,
}

impl Weight {
    const fn new() -> Weight {
        Weight { calls: Gauge::new(0.0), ticks: Gauge::new(0.0) }
    }

    fn add(&self, calls: f64, ticks: f64) {
        self.calls.add(calls);
        self.ticks.add(ticks);
    }
}

impl Stacks {
    pub(crate) fn new() -> Stacks {
        Stacks {
            taken: Counter::new(0),
            known: [const { Stack::new() }; STACKS],
            all: Weight::new(),
        }
    }

    /// How often the stack was recorded.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    pub(crate) fn known(&self) -> impl Iterator<Item = &Stack> {
        self.known.iter().filter(|stack| stack.len() > 0)
    }

    pub(crate) fn replace(&self, by: &impl Fn(usize) -> usize) {
        for word in self.known().flat_map(|stack| stack.addresses.iter().take(stack.len())) {
            word.set(by(usize::try_from(word.get()).unwrap_or(0)) as u64);
        }
    }

    pub(crate) fn all(&self) -> &Weight {
        &self.all
    }

    /// Records the stack, which stands for this many calls and ticks.
    pub(crate) fn look(&self, calls: f64, ticks: f64) {
        let mut all = [0; INNER_FRAMES + FRAMES];
        let len = unwind::callers(&mut all);
        let all = all.get(..len).unwrap_or_default();
        let outer = all.iter().position(|frame| !addresses::is_passed_over(*frame));
        let frames = outer.and_then(|outer| all.get(outer..)).unwrap_or_default();
        // The outermost frame has no caller.
        let frames = frames.strip_suffix(&[0]).unwrap_or(frames);
        let frames = frames.get(..FRAMES).unwrap_or(frames);
        let mut with_line = [0; FRAMES];
        let frames = with_script(frames, &mut with_line);
        self.taken.add(1);
        self.all.add(calls, ticks);
        if frames.is_empty() {
            return;
        }
        let known = self.known.iter().find(|stack| stack.len() == 0 || stack.is(frames));
        if let Some(stack) = known {
            stack.take(frames, calls, ticks);
        }
    }
}

impl Stack {
    const fn new() -> Stack {
        Stack {
            hits: Counter::new(0),
            weight: Weight::new(),
            len: AtomicUsize::new(0),
            addresses: [const { Counter::new(0) }; FRAMES],
        }
    }

    fn len(&self) -> usize {
        // Pairs with the Release in `take`.
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = usize> {
        let words = self.addresses.iter().take(self.len());
        words.map(|word| usize::try_from(word.get()).unwrap_or(0))
    }

    fn is(&self, frames: &[usize]) -> bool {
        self.frames().eq(frames.iter().copied())
    }

    fn take(&self, frames: &[usize], calls: f64, ticks: f64) {
        if self.len() == 0 {
            for (to, from) in self.addresses.iter().zip(frames) {
                to.set(*from as u64);
            }
            self.len.store(frames.len(), Ordering::Release);
        }
        self.hits.add(1);
        self.weight.add(calls, ticks);
    }
}

/// The frames with the line of a script in front of the interpreter that runs it, if there is one.
fn with_script<'a>(frames: &'a [usize], into: &'a mut [usize; FRAMES]) -> &'a [usize] {
    let Some(at) = frames.iter().position(|frame| python::is_interpreter(*frame)) else {
        return frames;
    };
    let Some(line) = scripts::address() else { return frames };
    let (inner, outer) = frames.split_at(at);
    let with_line = inner.iter().copied().chain([line]).chain(outer.iter().copied());
    let len = into.iter_mut().zip(with_line).map(|(to, from)| *to = from).count();
    into.get(..len).unwrap_or(frames)
}

/// The call of the program that leads here, if its entry point does not know it: the first frame that is
/// neither gyan's nor the MPI library's. 0 when there is none.
#[cold]
pub(crate) fn found_on_stack() -> usize {
    let mut frames = [0; INNER_FRAMES];
    let len = unwind::callers(&mut frames);
    let mut frames = frames.iter().take(len);
    frames.find(|frame| !addresses::is_passed_over(**frame)).copied().unwrap_or(0)
}

/// The place of a call of the program that returns to `address`.
#[inline]
pub(crate) fn place_of(address: usize) -> usize {
    if address == 0 || addresses::is_passed_over(address) { found_on_stack() } else { address }
}
