//! The numbers of a run that are not part of its time, under the same key in each run.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    CallSummary, Element, NumberDifference, NumberGroup, NumberKind, PairWaiting, PvarSummary,
    QueueRow, QueueSource, Summary, Traffic, TrafficKind, WaitingSummary, only_starts,
};

use super::change::{OfRun, change, judge, side};
use crate::comparison::resources::resources;
use crate::comparison::variables::{Telling, of_object, telling};
use crate::findings::rules::POLLS;

/// Larger jobs have too many pairs of ranks to read and compare.
const PAIRS_UP_TO_RANKS: u32 = 64;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct NumberKey {
    group: NumberGroup,
    name: String,
    /// For a size class, its lower bound.
    from_bytes: Option<u64>,
    /// The source of a queue number: numbers from other sources are not comparable.
    source: Option<QueueSource>,
}

impl NumberKey {
    fn new(group: NumberGroup, name: impl Into<String>) -> NumberKey {
        NumberKey { group, name: name.into(), from_bytes: None, source: None }
    }
}

#[derive(Clone, Copy)]
struct Number {
    unit: &'static str,
    kind: NumberKind,
    value: OfRun,
}

type Numbers = BTreeMap<NumberKey, Number>;

struct Gathered {
    ranks: f64,
    numbers: Numbers,
}

impl Gathered {
    fn put(&mut self, key: NumberKey, unit: &'static str, kind: NumberKind, value: f64) {
        self.numbers.insert(key, Number { unit, kind, value: OfRun::exact(value) });
    }

    fn calls(&mut self, calls: &[CallSummary]) {
        use NumberGroup::{Bytes, Calls, Sizes};
        for call in calls.iter().filter(|call| !call.count.is_zero()) {
            // How often a program polls depends on how long it has to wait.
            let polls = POLLS.contains(&call.name.strip_suffix("_c").unwrap_or(&call.name));
            let kind = if polls { NumberKind::Measurement } else { NumberKind::Count };
            let key = |group| NumberKey::new(group, &call.name);
            self.put(key(Calls), "", kind, call.count.sum.as_f64() / self.ranks);
            if let Some(bytes) = call.bytes.as_ref().filter(|bytes| !bytes.is_zero()) {
                self.put(key(Bytes), "bytes", kind, bytes.sum.as_f64() / self.ranks);
            }
            for (bar, &number) in call.size_histogram.iter().enumerate().filter(|(_, of)| **of > 0)
            {
                let from = bar.checked_sub(1).map_or(0, |exponent| 1_u64 << exponent.min(63));
                let key = NumberKey { from_bytes: Some(from), ..key(Sizes) };
                self.put(key, "", kind, number as f64 / self.ranks);
            }
        }
    }

    /// `pairs`: between the same ranks in each run.
    fn peers(&mut self, summary: &Summary, pairs: bool) {
        for of in &summary.peers {
            let what = match of.kind {
                TrafficKind::Messages => "messages",
                TrafficKind::Accesses => "accesses to memory",
            };
            let mut put = |name: String, unit, number: u64, ranks: f64| {
                let key = NumberKey::new(NumberGroup::Peers, name);
                self.put(key, unit, NumberKind::Count, number as f64 / ranks);
            };
            let ranks = f64::from(summary.ranks.reduced.max(1));
            put(format!("{what} of a rank"), "", of.number, ranks);
            put(format!("bytes in {what} of a rank"), "bytes", of.bytes, ranks);
            // A job that is too large for a matrix has only the heaviest pairs, and in another run those may be
            // others.
            for (from, to, number, bytes) in of.pairs().filter(|_| pairs && !of.matrix.is_empty()) {
                let to = to.map_or_else(|| "others".to_owned(), |to| to.to_string());
                put(format!("{what} from rank {from} to {to}"), "", number, 1.0);
                put(format!("bytes in {what} from rank {from} to {to}"), "bytes", bytes, 1.0);
            }
        }
    }

    fn waiting(&mut self, summary: &Summary) {
        let of_function = |of: &WaitingSummary| {
            let place = if only_starts(&of.function) { "for" } else { "in" };
            (format!("{place} {}", of.function), of.waiting_s, of.waiting_error_s)
        };
        let of_messages = summary.message_waiting.iter().flat_map(|of| {
            let signals = of.signals_s.map(|signals_s| {
                ("in one-sided synchronisation".to_owned(), signals_s, of.signals_error_s)
            });
            let messages = [
                ("for late senders".to_owned(), of.late_senders_s, of.late_senders_error_s),
                ("for late receivers".to_owned(), of.late_receivers_s, of.late_receivers_error_s),
            ];
            messages.into_iter().chain(signals)
        });
        for (what, waiting_s, error) in summary.waiting.iter().map(of_function).chain(of_messages) {
            let error = error.map(|error| error / self.ranks);
            let value = OfRun { value: waiting_s / self.ranks, error };
            let key = NumberKey::new(NumberGroup::Waiting, format!("waiting {what}"));
            self.numbers.insert(key, Number { unit: "s", kind: NumberKind::Estimate, value });
        }
    }

    /// `pairs`: those of which one waits in some run. In a run that does not list one of them, it does not wait.
    fn waiting_pairs(&mut self, summary: &Summary, pairs: &BTreeSet<WaitingPair>) {
        let Some(waiting) = &summary.message_waiting else { return };
        let listed: BTreeMap<WaitingPair, &PairWaiting> =
            waiting.pairs.iter().map(|pair| (key_of(pair), pair)).collect();
        for pair @ (rank, late_rank, to_do) in pairs {
            let value = listed.get(pair).map_or(OfRun::exact(0.0), |pair| OfRun {
                value: pair.waiting_s,
                error: pair.waiting_error_s,
            });
            let name = format!("rank {rank} for rank {late_rank} to {to_do}");
            let key = NumberKey::new(NumberGroup::WaitingPairs, name);
            self.numbers.insert(key, Number { unit: "s", kind: NumberKind::Estimate, value });
        }
    }

    /// Queue numbers from variables are already listed under the variables' names.
    fn queues(&mut self, rows: &[QueueRow]) {
        for row in rows.iter().filter(|row| row.source != QueueSource::Pvar) {
            let traffic = match row.traffic {
                Some(Traffic::Collectives) => ", collectives",
                _ => "",
            };
            let unit = row.unit.symbol();
            let of_a_rank = |number: f64| number / self.ranks;
            let numbers = [
                ("mean", unit, row.mean),
                ("largest", unit, row.max.map(|max| max.value)),
                ("number of a rank", "", row.number.map(of_a_rank)),
            ];
            for (which, unit, value) in numbers {
                let Some(value) = value else { continue };
                let name = format!("{}{traffic}: {which}", row.quantity.words());
                let source = Some(row.source);
                let key = NumberKey { source, ..NumberKey::new(NumberGroup::Queues, name) };
                self.put(key, unit, NumberKind::Measurement, value);
            }
        }
    }

    /// How much a variable grew, what it reached, or how high it was; for a vector, the sum or the largest
    /// element.
    fn variables(&mut self, pvars: &[PvarSummary]) {
        let part = |of: &'_ PvarSummary| (of.name.clone(), of.object.clone(), of.measure);
        let sums = pvars.iter().filter(|pvar| pvar.element == Element::Sum);
        let sums: BTreeSet<_> = sums.map(part).collect();
        for pvar in pvars {
            let Some(telling) = telling(pvar) else { continue };
            let (measure, is_sum) = match telling {
                Telling::Grown => ("", true),
                Telling::Reached => ("", false),
                Telling::Mean => (", mean", true),
                Telling::Largest => (", largest", false),
            };
            if matches!(pvar.element, Element::Min | Element::Max)
                || (pvar.element == Element::Sum && !is_sum)
                || (pvar.element != Element::Sum && is_sum && sums.contains(&part(pvar)))
            {
                continue;
            }
            let name = format!("{}{measure}{}", pvar.name, of_object(pvar));
            let unit = pvar.unit().symbol();
            let statistic = &pvar.statistic;
            let one = if is_sum { statistic.avg } else { statistic.max.as_f64() };
            let key = NumberKey::new(NumberGroup::Variables, name);
            // What the library counts depends on when messages arrive.
            let kind = NumberKind::Measurement;
            let number =
                self.numbers.entry(key).or_insert(Number { unit, kind, value: OfRun::exact(0.0) });
            let before = number.value.value;
            number.value.value = if is_sum { before + one } else { before.max(one) };
        }
    }

    fn resources(&mut self, summary: &Summary) {
        for (name, unit, statistic) in resources(summary) {
            let key = NumberKey::new(NumberGroup::Resources, name);
            self.put(key, unit.symbol(), NumberKind::Measurement, statistic.avg);
        }
        if let Some(energy_j) = summary.energy_j() {
            let key = NumberKey::new(NumberGroup::Resources, "energy of the hosts");
            self.put(key, "J", NumberKind::Measurement, energy_j);
        }
    }
}

/// Who waits for whom, and to do what.
type WaitingPair = (u32, u32, &'static str);

fn key_of(pair: &PairWaiting) -> WaitingPair {
    (pair.rank, pair.late_rank, pair.to_do())
}

/// `waiting`: the pairs of which one waits in some run; none if no pairs are compared.
fn gathered(summary: &Summary, waiting: Option<&BTreeSet<WaitingPair>>) -> Numbers {
    let ranks = f64::from(summary.ranks.reduced.max(1));
    let mut of = Gathered { ranks, numbers: Numbers::new() };
    of.calls(&summary.calls);
    of.peers(summary, waiting.is_some());
    of.waiting(summary);
    if let Some(pairs) = waiting {
        of.waiting_pairs(summary, pairs);
    }
    of.queues(&summary.queues());
    of.variables(&summary.pvars);
    of.resources(summary);
    of.numbers
}

/// Whether a missing number means 0, given that the run has others of the group.
fn is_counted(group: NumberGroup) -> bool {
    use NumberGroup::{Bytes, Calls, Peers, Sizes};
    matches!(group, Calls | Bytes | Sizes | Peers)
}

/// The numbers that both sides know, and the names of variables that only one does.
pub(super) fn numbers(
    a: &[&Summary],
    b: &[&Summary],
) -> (Vec<NumberDifference>, [BTreeSet<String>; 2]) {
    let ranks: BTreeSet<u32> = a.iter().chain(b).map(|run| run.ranks.expected).collect();
    let pairs = ranks.len() == 1 && ranks.iter().all(|ranks| *ranks <= PAIRS_UP_TO_RANKS);
    let waiting = a.iter().chain(b).flat_map(|run| &run.message_waiting);
    let waiting: BTreeSet<WaitingPair> = waiting.flat_map(|of| &of.pairs).map(key_of).collect();
    let waiting = pairs.then_some(&waiting);
    let [a, b] =
        [a, b].map(|side| side.iter().map(|run| gathered(run, waiting)).collect::<Vec<Numbers>>());
    let known: BTreeMap<&NumberKey, Number> =
        a.iter().chain(&b).flatten().map(|(key, number)| (key, *number)).collect();
    let has_group = |run: &Numbers, group| run.keys().any(|key| key.group == group);
    let mut only: [BTreeSet<String>; 2] = Default::default();
    let mut found: Vec<NumberDifference> = Vec::new();
    for (key, Number { unit, kind, .. }) in known {
        let of = |side: &[Numbers]| {
            let values: Vec<_> = side.iter().map(|run| run.get(key).map(|of| of.value)).collect();
            // A run without any number of the kind does not tell that this one is 0.
            let has_it =
                |run: &Numbers| key.group == NumberGroup::Calls || has_group(run, key.group);
            let is_known = is_counted(key.group) && side.iter().all(has_it);
            (is_known || values.iter().all(Option::is_some)).then_some(values)
        };
        let (Some(a), Some(b)) = (of(&a), of(&b)) else {
            if key.group == NumberGroup::Variables {
                let has = |side: &[Numbers]| side.iter().any(|run| run.contains_key(key));
                for (only, is_in) in only.iter_mut().zip([has(&a) && !has(&b), has(&b) && !has(&a)])
                {
                    if is_in {
                        only.insert(key.name.clone());
                    }
                }
            }
            continue;
        };
        let NumberKey { group, name, from_bytes, .. } = key.clone();
        let number = change(side(&a), side(&b));
        found.push(NumberDifference {
            group,
            name,
            from_bytes,
            unit: unit.to_owned(),
            kind,
            number,
        });
    }
    let groups: BTreeSet<NumberGroup> = found.iter().map(|of| of.group).collect();
    for group in groups {
        let family = found.iter_mut().filter(|of| of.group == group);
        judge(family.map(|of| (&mut of.number, of.kind == NumberKind::Count)));
    }
    found.retain(|of| of.number.verdict != gyan_results::ChangeVerdict::Same);
    let size = |of: &NumberDifference| of.number.relative().abs();
    found.sort_by(|one, other| one.group.cmp(&other.group).then(size(other).total_cmp(&size(one))));
    (found, only)
}
