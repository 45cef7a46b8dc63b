//! The numbers that change when a problem is gone.

use gyan_results::{CallSummary, HybridEfficiencies, Measure, Metric, Quantity, Summary, Traffic};

use super::cases::Range;

/// How a number reads.
#[derive(Clone, Copy)]
enum As {
    Count,
    Seconds,
    Ratio,
}
use As::{Count, Ratio, Seconds};

type FunctionNumber = (&'static str, As, fn(&Summary, &str) -> Option<f64>);
type RunNumber = (&'static str, As, fn(&Summary) -> Option<f64>);

/// Numbers of a function, which the name of a witness has at its end: "calls of `MPI_Send`".
const OF_FUNCTIONS: &[FunctionNumber] = &[
    ("calls of", Count, calls),
    ("time in", Seconds, time),
    ("longest", Seconds, longest),
    ("waiting in", Seconds, waiting),
];

/// Numbers of a run. Counts are the same in every run and on every machine; the others are only written down.
const OF_RUNS: &[RunNumber] = &[
    ("wait for a processor, all ranks", Seconds, wait_for_processors),
    ("processors that a rank used", Ratio, |summary| {
        Some(summary.resources.as_ref()?.processors_used.as_ref()?.avg)
    }),
    ("share of MPI", Ratio, |summary| Some(summary.in_mpi.as_ref()?.share.avg)),
    ("threads in MPI", Ratio, |summary| {
        Some(summary.in_mpi.as_ref()?.time_s.sum.as_f64() / summary.wall_in_mpi_s()?)
    }),
    ("load balance", Ratio, |summary| Some(summary.efficiencies.as_ref()?.load_balance)),
    ("communication efficiency", Ratio, |summary| {
        Some(summary.efficiencies.as_ref()?.communication)
    }),
    ("OpenMP efficiency", Ratio, |summary| Some(hybrid(summary)?.openmp)),
    ("load balance of threads", Ratio, |summary| Some(hybrid(summary)?.load_balance)),
    ("MPI efficiency of threads", Ratio, |summary| Some(hybrid(summary)?.mpi)),
    ("longest queue of unexpected messages", Count, |summary| {
        most(summary, Quantity::UnexpectedLength)
    }),
    ("receives that waited", Count, |summary| number(summary, Quantity::LateSenders)),
    ("messages that came before their receive", Count, |summary| {
        number(summary, Quantity::LateReceivers)
    }),
    ("match attempts", Count, |summary| number(summary, Quantity::UnexpectedMatchAttempts)),
    ("messages of collectives", Count, messages_of_collectives),
    ("waiting while the next message was there", Seconds, |summary| {
        Some(summary.message_waiting.as_ref()?.wrong_order_s)
    }),
    ("waiting for late senders", Seconds, |summary| {
        Some(summary.message_waiting.as_ref()?.late_senders_s)
    }),
    ("waiting for late receivers", Seconds, |summary| {
        Some(summary.message_waiting.as_ref()?.late_receivers_s)
    }),
    ("`unexpected_recvq_buffer_size`, largest sample", Count, |summary| {
        sampled(summary, "unexpected_recvq_buffer_size")
    }),
];

fn function_of<'a>(name: &'a str, number: &str) -> Option<&'a str> {
    name.strip_prefix(number)?.strip_prefix(" `")?.strip_suffix('`')
}

pub(super) fn is_known(name: &str) -> bool {
    OF_FUNCTIONS.iter().any(|(number, ..)| function_of(name, number).is_some())
        || OF_RUNS.iter().any(|(number, ..)| *number == name)
}

/// The number of this name in both runs, as the table shows it. Fails where it is counted and not in the ranges.
pub(super) fn compared(
    name: &str,
    counted: Option<[Range; 2]>,
    runs: [&Summary; 2],
    what: &str,
) -> [String; 2] {
    let of_function = OF_FUNCTIONS.iter().find_map(|(number, reads, value)| {
        let function = function_of(name, number)?;
        Some((*reads, runs.map(|run| value(run, function))))
    });
    let of_run = || {
        let (_, reads, value) = OF_RUNS.iter().find(|(number, ..)| *number == name)?;
        Some((*reads, runs.map(value)))
    };
    let (reads, values) = of_function.or_else(of_run).unwrap_or_else(|| panic!("{name}"));
    let values = values.map(|value| value.unwrap_or(0.0));
    for (value, range) in values.into_iter().zip(counted.into_iter().flatten()) {
        assert!(range.contains(value), "{name} of {what}: {values:?}");
    }
    values.map(|value| match reads {
        Count => format!("{value}"),
        Seconds => format!("{value:.3} s"),
        Ratio => format!("{value:.2}"),
    })
}

fn call<'a>(summary: &'a Summary, name: &str) -> Option<&'a CallSummary> {
    summary.calls.iter().find(|call| call.name == name)
}

/// How well the time of the threads of OpenMP was used.
fn hybrid(summary: &Summary) -> Option<HybridEfficiencies> {
    summary.efficiencies.as_ref()?.hybrid
}

/// How often a function was called on all ranks.
fn calls(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.count.sum.as_f64())
}

/// How long all ranks were in a function.
fn time(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.time_s.as_ref()?.sum.as_f64())
}

/// Its longest call.
fn longest(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.time_max_s.as_ref()?.max.as_f64())
}

/// The greatest length of a queue.
fn most(summary: &Summary, quantity: Quantity) -> Option<f64> {
    let rows = summary.queues();
    let of = rows.iter().filter(|row| row.quantity == quantity).filter_map(|row| row.max);
    of.map(|most| most.value).reduce(f64::max)
}

/// How often something happened to messages.
fn number(summary: &Summary, quantity: Quantity) -> Option<f64> {
    let rows = summary.queues();
    let of = rows.iter().filter(|row| row.quantity == quantity);
    of.filter_map(|row| row.number).reduce(|all, one| all + one)
}

/// The messages of collective operations, according to PERUSE.
fn messages_of_collectives(summary: &Summary) -> Option<f64> {
    let rows = summary.messages.iter().flat_map(|of| &of.metrics);
    let mut came = rows
        .filter(|row| (row.metric, row.traffic) == (Metric::TSearchPostedQ, Traffic::Collectives));
    Some(came.next()?.n.sum.as_f64())
}

/// The largest reading of a variable on any rank.
fn sampled(summary: &Summary, name: &str) -> Option<f64> {
    let mut rows = summary.pvars.iter();
    let row = rows.find(|pvar| pvar.name == name && pvar.measure == Measure::SampledMax)?;
    Some(row.statistic.max.as_f64())
}

/// How long ranks were ready to run and had no processor.
fn wait_for_processors(summary: &Summary) -> Option<f64> {
    Some(summary.resources.as_ref()?.processor_wait_s.as_ref()?.sum.as_f64())
}

/// How long they waited for the last rank in a collective function.
fn waiting(summary: &Summary, function: &str) -> Option<f64> {
    Some(summary.waiting.iter().find(|of| of.function == function)?.waiting_s)
}
