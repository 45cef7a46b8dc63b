//! What the times of calls tell about queues, on any MPI: a rank that waits in a receive waits for its message.
//! It is an estimate: a short call means that the message was already there.

use super::{OnRank, Quantity, QueueRow, QueueSource};
use crate::{CallSummary, Fidelity, Summary};

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

/// Functions whose requests are completed by the arrival of a message.
const RECEIVE_REQUESTS: [&str; 5] =
    ["MPI_Irecv", "MPI_Imrecv", "MPI_Recv_init", "MPI_Isendrecv", "MPI_Isendrecv_replace"];

const HOW: &str = "estimated late senders: calls that took longer than 100 µs and the largest message at 100 MB/s, \
                   which is more than any network takes, or, where all messages are of about the same size, over 8 \
                   times as long as the fastest hundredth; waits of a rank that waits for sends too may be for these; \
                   late receivers: the other receives, which found their message there or at once";

/// The fastest calls are taken at the quantile of one in this many: even faster ones may be of another kind,
/// such as receives from `MPI_PROC_NULL`.
const FASTEST: u64 = 100;
/// A call that waits takes this many times as long as the fastest calls, as a power of two.
const LONGER: usize = 3;
/// It takes at least 1,024 ns, as a power of two.
const LEAST: usize = 10;
/// What no network needs for a message, in ns: so long, and so much more for each byte.
const SLOW_NS: f64 = 100_000.0;
const SLOW_NS_A_BYTE: f64 = 10.0;
/// The bars of message sizes over which messages are of about the same size.
const ALIKE: usize = 2;

pub(super) fn rows(summary: &Summary) -> Vec<QueueRow> {
    let sizes = Sizes::new(summary);
    let receives = Waited::in_calls(summary, &RECEIVES, sizes.largest, &sizes);
    let count = |names: &[&str]| -> f64 {
        let calls = summary.calls.iter().filter(|call| names.contains(&plain(&call.name)));
        calls.map(|call| call.count.sum.as_f64()).sum()
    };
    // Without a request of a receive, ranks wait for their sends.
    let has_requests = count(&RECEIVE_REQUESTS) > 0.0;
    // One wait may be for many messages.
    let at_once = f64::max(sizes.largest, sizes.bytes / count(&WAITS).max(1.0));
    let waits = Waited::in_calls(summary, &WAITS, at_once, &sizes).filter(|_| has_requests);
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

/// The name of a function without the mark of its large-count form.
fn plain(name: &str) -> &str {
    name.strip_suffix("_c").unwrap_or(name)
}

/// What is known of the sizes of messages.
struct Sizes {
    /// Of all messages, in bytes.
    bytes: f64,
    /// The upper end of the bar of the largest ones.
    largest: f64,
    are_alike: bool,
}

impl Sizes {
    fn new(summary: &Summary) -> Sizes {
        let sends = summary.calls.iter().filter(|call| call.name.to_lowercase().contains("send"));
        let mut bars = sends.clone().flat_map(|call| {
            let bars = call.size_histogram.iter().enumerate();
            bars.filter(|(_, number)| **number > 0).map(|(bar, _)| bar)
        });
        let first = bars.next().unwrap_or(0);
        let (least, most) =
            bars.fold((first, first), |(least, most), bar| (least.min(bar), most.max(bar)));
        let bytes = sends.flat_map(|call| &call.size_histogram_bytes).map(|bytes| *bytes as f64);
        Sizes {
            bytes: bytes.sum(),
            largest: i32::try_from(most).map_or(f64::INFINITY, |most| 2_f64.powi(most)),
            are_alike: most < least + ALIKE,
        }
    }
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
    fn in_calls(
        summary: &Summary,
        functions: &[&str],
        bytes: f64,
        sizes: &Sizes,
    ) -> Option<Waited> {
        let calls = summary.calls.iter().filter(|call| functions.contains(&call.name.as_str()));
        // The bar in which calls begin that take longer than any network does.
        let slow = (0..63).find(|bar| 2_f64.powi(*bar) >= SLOW_NS + SLOW_NS_A_BYTE * bytes);
        let slow = slow.and_then(|bar| usize::try_from(bar).ok()).unwrap_or(63);
        let waited = |call| Waited::in_call(call, slow, sizes.are_alike);
        calls.filter_map(waited).reduce(|mut all, one| {
            all.functions = format!("{}, {}", all.functions, one.functions);
            all.number += one.number;
            all.of += one.of;
            all.time_s += one.time_s;
            let longest = [all.longest, one.longest].into_iter().flatten();
            all.longest = longest.max_by(|one, other| one.value.total_cmp(&other.value));
            all
        })
    }

    fn in_call(call: &CallSummary, slow: usize, are_alike: bool) -> Option<Waited> {
        let (time, histogram) = (call.time_s.as_ref()?, &call.time_histogram);
        let counted: u64 = histogram.iter().sum();
        let fastest = fastest(histogram, counted)?;
        let limit = if are_alike { (fastest + LONGER).max(LEAST).min(slow) } else { slow };
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
