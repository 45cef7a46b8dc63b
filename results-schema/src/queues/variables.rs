//! The queues according to performance variables of the libraries. A table says which variable means what.

use super::{OnRank, Quantity, QueueRow, QueueSource};
use crate::{
    Class, Element, Fidelity, Measure, Number, Pvar, PvarSummary, RankProfile, Statistic, Summary,
    WatchSummary, sort_by,
};

/// A variable about a queue.
#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    quantity: Quantity,
    tells: Tells,
    remark: Option<&'static str>,
}

/// The meaning of its readings.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Tells {
    /// How much there is now.
    Level,
    /// The most that there has ever been.
    Highest,
    /// How often something happened.
    Number,
    /// How long it took in seconds; a counter of the same name says how often.
    Seconds,
    /// The same in microseconds.
    Microseconds,
}

const fn known(name: &'static str, quantity: Quantity, tells: Tells) -> Known {
    Known { name, quantity, tells, remark: None }
}

const fn with(remark: &'static str, known: Known) -> Known {
    Known { remark: Some(remark), ..known }
}

const COMPARED: &str = "match attempts: MPICH counts each entry of the queue that is compared";

/// Among variables with the same meaning, the first that is not zero is taken.
const KNOWN: [Known; 14] = [
    // MPI 4.1, 15.3.7: the name in the standard's example.
    known("MPI_T_UMQ_LENGTH", Quantity::UnexpectedLength, Tells::Level),
    // MPICH, built with --enable-mpit-pvars=recvq.
    known("unexpected_recvq_length", Quantity::UnexpectedLength, Tells::Level),
    known("unexpected_recvq_buffer_size", Quantity::UnexpectedBytes, Tells::Level),
    known("posted_recvq_length", Quantity::PostedLength, Tells::Level),
    with(
        COMPARED,
        known("posted_recvq_match_attempts", Quantity::PostedMatchAttempts, Tells::Number),
    ),
    with(
        COMPARED,
        known("unexpected_recvq_match_attempts", Quantity::UnexpectedMatchAttempts, Tells::Number),
    ),
    with(
        "time searching, posted queue: of the searches that found nothing",
        known("time_failed_matching_postedq", Quantity::PostedSearchTime, Tells::Seconds),
    ),
    known("time_matching_unexpectedq", Quantity::UnexpectedSearchTime, Tells::Seconds),
    // Open MPI: one element for each peer.
    known("pml_ob1_unexpected_msgq_length", Quantity::UnexpectedLength, Tells::Level),
    known("pml_ob1_posted_recvq_length", Quantity::PostedLength, Tells::Level),
    // Open MPI, built with --enable-spc.
    known("runtime_spc_OMPI_SPC_UNEXPECTED_IN_QUEUE", Quantity::UnexpectedLength, Tells::Level),
    known(
        "runtime_spc_OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE",
        Quantity::UnexpectedLength,
        Tells::Highest,
    ),
    known("runtime_spc_OMPI_SPC_UNEXPECTED", Quantity::LateReceivers, Tells::Number),
    known("runtime_spc_OMPI_SPC_MATCH_TIME", Quantity::PostedSearchTime, Tells::Microseconds),
];

#[inline]
pub(super) fn rows(summary: &Summary) -> Vec<QueueRow> {
    let watched = summary.watches.iter().filter_map(of_watch);
    let tell = |known: &&Known| is_counting(summary, known.name);
    let variables = Quantity::ALL.into_iter().flat_map(|quantity| {
        let candidates = KNOWN.iter().filter(|known| known.quantity == quantity).filter(tell);
        let highest = candidates.clone().filter(|known| known.tells == Tells::Highest);
        let highest = highest.flat_map(|known| of_pvar(summary, known));
        let others = candidates.filter(|known| known.tells != Tells::Highest);
        let others: Vec<Vec<QueueRow>> = others.map(|known| of_pvar(summary, known)).collect();
        let first = |saw: fn(&QueueRow) -> bool| others.iter().find(|rows| rows.iter().any(saw));
        let first = first(saw_anything).or_else(|| first(|_| true));
        highest.chain(first.cloned().unwrap_or_default()).collect::<Vec<_>>()
    });
    watched.chain(variables).collect()
}

/// The mean length of a queue on a rank, over all communicators together, from the first sampled variable that
/// tells it.
pub(crate) fn sampled_length(profile: &RankProfile, quantity: Quantity) -> Option<f64> {
    let tells = |known: &&Known| known.quantity == quantity && known.tells == Tells::Level;
    let mean = |pvar: &Pvar| {
        let samples = pvar.samples.as_ref().filter(|samples| samples.n > 0)?;
        let sum = samples.sum.map(|sum| sum.mean);
        sum.or_else(|| samples.mean.first().copied()).map(Number::as_f64)
    };
    let of = |known: &Known| {
        let same = profile.pvars.iter().filter(|pvar| pvar.name == known.name);
        same.filter_map(mean).reduce(|sum, mean| sum + mean)
    };
    KNOWN.iter().filter(tells).find_map(of)
}

/// Open MPI's software performance counters read 0 unless `mpi_spc_attach` names them.
fn is_counting(summary: &Summary, name: &str) -> bool {
    const SPC: &str = "runtime_spc_";
    let moved = |pvar: &PvarSummary| pvar.name.starts_with(SPC) && !pvar.statistic.is_zero();
    !name.starts_with(SPC) || summary.pvars.iter().any(moved)
}

fn saw_anything(row: &QueueRow) -> bool {
    let largest = row.max.or(row.most);
    largest.is_some_and(|largest| largest.value > 0.0)
}

/// The rows of a variable, one for each communicator that it is bound to, the longest queue first.
#[inline]
fn of_pvar(summary: &Summary, known: &Known) -> Vec<QueueRow> {
    let same = summary.pvars.iter().filter(|pvar| pvar.name == known.name);
    let mut objects: Vec<Option<&str>> = same.map(|pvar| pvar.object.as_deref()).collect();
    objects.dedup();
    let bound = objects.into_iter().map(|object| Bound { summary, known, object });
    let mut rows: Vec<QueueRow> = bound.filter_map(Bound::row).collect();
    let largest = |row: &QueueRow| row.max.map_or(0.0, |max| max.value);
    sort_by(&mut rows, |one, other| largest(other).total_cmp(&largest(one)));
    rows
}

/// A variable that is bound to one object, or to none.
#[derive(Clone, Copy)]
struct Bound<'a> {
    summary: &'a Summary,
    known: &'a Known,
    object: Option<&'a str>,
}

impl<'a> Bound<'a> {
    /// Over all elements of a variable of this class.
    fn find(self, measure: Measure, of: fn(Class) -> bool) -> Option<&'a Statistic> {
        let rows = self.summary.pvars.iter().filter(|pvar| {
            pvar.name == self.known.name
                && pvar.object.as_deref() == self.object
                && pvar.measure == measure
                && of(pvar.effective_class())
        });
        // A vector with one element has no sum.
        rows.min_by_key(|pvar| pvar.element != Element::Sum).map(|pvar| &pvar.statistic)
    }

    fn new_row(self, fidelity: Fidelity) -> QueueRow {
        QueueRow {
            object: self.object.map(str::to_owned),
            remark: self.known.remark,
            ..QueueRow::new(self.known.quantity, QueueSource::Pvar, self.known.name, fidelity)
        }
    }

    fn row(self) -> Option<QueueRow> {
        match self.known.tells {
            Tells::Level => {
                let mut samples = self.summary.samples.iter();
                let samples = samples.find(|samples| {
                    samples.name == self.known.name && samples.object.as_deref() == self.object
                });
                Some(QueueRow {
                    number: samples.map(|samples| samples.n as f64),
                    mean: Some(self.find(Measure::SampledMean, |_| true)?.avg),
                    max: Some(OnRank::max_of(self.find(Measure::SampledMax, |_| true)?)),
                    ..self.new_row(Fidelity::Sampled)
                })
            }
            Tells::Highest => {
                let max = Some(OnRank::max_of(self.find(Measure::End, |_| true)?));
                Some(QueueRow { max, ..self.new_row(Fidelity::Exact) })
            }
            Tells::Number => {
                let number = self.find(Measure::Delta, Class::accumulates)?;
                Some(QueueRow {
                    number: Some(number.sum.as_f64()),
                    most: Some(OnRank::max_of(number)),
                    ..self.new_row(Fidelity::Exact)
                })
            }
            Tells::Seconds => {
                let time = self.find(Measure::Delta, |class| class == Class::Timer)?;
                let number = self.find(Measure::Delta, |class| class == Class::Counter);
                Some(self.time_row(time, 1.0, number))
            }
            Tells::Microseconds => {
                let time = self.find(Measure::Delta, Class::accumulates)?;
                Some(self.time_row(time, 1e-6, None))
            }
        }
    }

    fn time_row(self, time: &Statistic, unit_s: f64, number: Option<&Statistic>) -> QueueRow {
        let total = time.sum.as_f64() * unit_s;
        let most = OnRank::max_of(time);
        let number = number.map(|number| number.sum.as_f64());
        QueueRow {
            number,
            total: Some(total),
            most: Some(OnRank { value: most.value * unit_s, ..most }),
            mean: number.filter(|number| *number > 0.0).map(|number| total / number),
            ..self.new_row(Fidelity::Exact)
        }
    }
}

/// The variable at every receive that was watched.
fn of_watch(watch: &WatchSummary) -> Option<QueueRow> {
    let known = KNOWN.iter().find(|known| known.name == watch.variable);
    let quantity = known.filter(|known| known.tells == Tells::Level)?.quantity;
    Some(QueueRow {
        number: Some(watch.receives.sum.as_f64()),
        max: Some(OnRank::max_of(&watch.max)),
        ..QueueRow::new(quantity, QueueSource::Watch, &watch.variable, Fidelity::Exact)
    })
}
