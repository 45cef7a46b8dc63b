//! What the times of calls tell about queues, on any MPI: a rank that waits in a receive waits for its message.
//! It is an estimate: a short call means that the message was already there.

use super::{Fidelity, OnRank, Quantity, QueueRow, QueueSource};
use crate::{CallSummary, Summary};

/// Calls that end when a message has arrived; those of `MPI_Sendrecv` may also wait for the receiver.
const RECEIVES: [&str; 8] = [
    "MPI_Recv",
    "MPI_Recv_c",
    "MPI_Sendrecv",
    "MPI_Sendrecv_c",
    "MPI_Sendrecv_replace",
    "MPI_Sendrecv_replace_c",
    "MPI_Probe",
    "MPI_Mprobe",
];
/// Calls that end when requests are complete, of sends or of receives.
const WAITS: [&str; 4] = ["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];

const HOW: &str = "estimated late senders: calls that took over 8 times as long as the fastest hundredth, \
                   and over 1.02 µs, which long transfers and waits for sends do too; late receivers: \
                   the others, which found their message there or at once";

/// The fastest calls are taken at the quantile of one in this many: even faster ones may be of another kind,
/// such as receives from `MPI_PROC_NULL`.
const FASTEST: u64 = 100;
/// A call that waits takes this many times as long as the fastest calls, as a power of two.
const LONGER: usize = 3;
/// It takes at least 1,024 ns, as a power of two.
const LEAST: usize = 10;

pub(super) fn rows(summary: &Summary) -> Vec<QueueRow> {
    let receives = Waited::in_calls(summary, &RECEIVES);
    let waits = Waited::in_calls(summary, &WAITS);
    let late_receivers = receives.as_ref().map(|waited| QueueRow {
        number: Some(waited.of - waited.number),
        of: Some(waited.of),
        ..waited.row(Quantity::LateReceivers)
    });
    let late_senders = receives.into_iter().chain(waits).map(|waited| QueueRow {
        number: Some(waited.number),
        of: Some(waited.of),
        total: Some(waited.time_s),
        mean: (waited.number > 0.0).then(|| waited.time_s / waited.number),
        max: waited.longest,
        ..waited.row(Quantity::LateSenders)
    });
    late_receivers.into_iter().chain(late_senders).collect()
}

/// Calls that took long.
struct Waited {
    functions: String,
    number: f64,
    of: f64,
    time_s: f64,
    longest: Option<OnRank>,
}

impl Waited {
    fn row(&self, quantity: Quantity) -> QueueRow {
        QueueRow {
            remark: Some(HOW),
            ..QueueRow::new(quantity, QueueSource::Calls, &self.functions, Fidelity::Estimated)
        }
    }

    /// None when none of the functions was timed.
    fn in_calls(summary: &Summary, functions: &[&str]) -> Option<Waited> {
        let calls = summary.calls.iter().filter(|call| functions.contains(&call.name.as_str()));
        calls.filter_map(Waited::in_call).reduce(|mut all, one| {
            all.functions = format!("{}, {}", all.functions, one.functions);
            all.number += one.number;
            all.of += one.of;
            all.time_s += one.time_s;
            let longest = [all.longest, one.longest].into_iter().flatten();
            all.longest = longest.max_by(|one, other| one.value.total_cmp(&other.value));
            all
        })
    }

    fn in_call(call: &CallSummary) -> Option<Waited> {
        let (time, histogram) = (call.time_s.as_ref()?, &call.time_histogram);
        let counted: u64 = histogram.iter().sum();
        let fastest = fastest(histogram, counted)?;
        let limit = (fastest + LONGER).max(LEAST);
        // The middle of a bar stands for the calls in it; the sum is scaled to the known time.
        let weight = |from: usize| -> f64 {
            let bars = (0_i32..).zip(histogram).skip(from);
            bars.map(|(bar, &calls)| calls as f64 * 2_f64.powi(bar)).sum()
        };
        let long: u64 = histogram.iter().skip(limit + 1).sum();
        let count = call.count.sum.as_f64();
        let number = (count * long as f64 / counted as f64).round();
        let time_s = time.sum.as_f64() * weight(limit + 1) / weight(0);
        let longest = call.time_max_s.as_ref().filter(|_| long > 0).map(OnRank::max_of);
        Some(Waited {
            functions: call.name.clone(),
            number,
            of: count,
            // The middle of a bar may be beyond the longest call.
            time_s: longest.map_or(0.0, |longest| time_s.min(number * longest.value)),
            longest,
        })
    }
}

/// The bar of the fastest calls: those in bar `n` took less than 2^n ns.
fn fastest(histogram: &[u64], counted: u64) -> Option<usize> {
    let mut below = 0;
    histogram.iter().position(|&calls| {
        below += calls;
        calls > 0 && below > counted / FASTEST
    })
}
