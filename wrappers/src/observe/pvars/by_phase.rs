//! What variables did in each phase of the program: their readings in it, and how much the accumulating ones
//! grew.
//!
//! A phase is made of stretches, each from one change of phase to the next. A stretch is read when
//! the variables are read at both of its ends, which the budget may not allow for all of them.

use std::collections::BTreeMap;

use gyan_results::{Number, PhasePvar, Values};

use super::Finished;
use super::readings::Accumulated;
use super::series::Key;

pub(crate) type Phase = usize;

/// The current stretch, and the data of the phases so far.
pub(super) struct VariablePhases {
    pub(super) stretch: Stretch,
    accounts: BTreeMap<(Key, Phase), VariableInPhase>,
    /// Ticks that reading the variables took at the last change.
    pub(super) cost: f64,
    /// The clock at the last change at which they were read.
    pub(super) last: u64,
    /// Elements of a variable that are kept one by one.
    pub(super) elements: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) phase: Phase,
    /// Whether it counts for the whole run: gyan is not switched off.
    pub(super) counts: bool,
    /// Whether the variables were read at its beginning.
    pub(super) read: bool,
}

/// One variable in one phase.
#[derive(Default)]
struct VariableInPhase {
    samples: Accumulated,
    delta: Option<Vec<Number>>,
}

/// What a variable read when the stretch began.
#[derive(Default)]
pub(super) enum Mark {
    /// Its first reading: it appeared in this stretch.
    Start,
    At(Vec<u8>),
    #[default]
    Unknown,
}

impl VariablePhases {
    /// Outside of all phases; each variable has its first reading.
    pub(super) fn new(elements: usize) -> VariablePhases {
        let stretch = Stretch { phase: 0, counts: true, read: true };
        VariablePhases { stretch, accounts: BTreeMap::new(), cost: 0.0, last: 0, elements }
    }

    /// A stretch has ended with these readings of a variable.
    pub(super) fn add_samples(&mut self, key: Key, samples: &Accumulated) {
        self.account(key).samples.add(samples);
    }

    /// A stretch has ended in which a variable grew by this much.
    pub(super) fn add_delta(&mut self, key: Key, delta: Vec<Number>) {
        if delta.iter().any(|number| !number.is_zero()) {
            add(&mut self.account(key).delta, delta);
        }
    }

    /// Whether a variable was sampled, or grew, in any phase that has ended.
    pub(super) fn know(&self, key: Key) -> bool {
        self.accounts.range((key, 0)..=(key, Phase::MAX)).next().is_some()
    }

    /// Nothing is kept of these variables.
    pub(super) fn forget(&mut self, keys: &[Key]) {
        self.accounts.retain(|(key, _), _| !keys.contains(key));
    }

    fn account(&mut self, key: Key) -> &mut VariableInPhase {
        self.accounts.entry((key, self.stretch.phase)).or_default()
    }

    /// The data of the variables that were sampled or changed.
    pub(super) fn pvars(&self, finished: &BTreeMap<Key, Finished>) -> Vec<(Phase, PhasePvar)> {
        let of = |((key, phase), account): (&(Key, Phase), &VariableInPhase)| {
            let Finished { pvar, states } = finished.get(key)?;
            let changed = |delta: &&Vec<Number>| delta.iter().any(|number| !number.is_zero());
            let delta = account.delta.as_ref().filter(changed);
            let samples = account.samples.samples(states);
            if delta.is_none() && samples.is_none() {
                return None;
            }
            let pvar = PhasePvar {
                name: pvar.name.clone(),
                class: pvar.class,
                behaves_as: pvar.behaves_as,
                object: pvar.object.clone(),
                delta: delta.map(|delta| Values::from_elements(delta.clone(), self.elements)),
                samples,
            };
            Some((*phase, pvar))
        };
        self.accounts.iter().filter_map(of).collect()
    }
}

/// Adds numbers one by one.
pub(super) fn add(sum: &mut Option<Vec<Number>>, numbers: Vec<Number>) {
    match sum {
        Some(sum) => {
            for (own, other) in sum.iter_mut().zip(&numbers) {
                *own = own.plus(*other);
            }
        }
        None => *sum = Some(numbers),
    }
}
