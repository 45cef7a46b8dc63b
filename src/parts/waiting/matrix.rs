//! Which rank waits for which in messages, as a matrix.

use std::time::Duration;

use gyan_results::{MessageDirection, MessageWaitingSummary, PairWaiting, Summary, Unit};

use crate::document::Value;
use crate::document::page::pictures::{Chart, Matrix, MatrixWords, Picture};
use crate::document::value::{line, share};
use crate::parts::matrix::{MatrixEntry, binned, by_member};

use super::messages::{all_s, of_both_sides};

const WAITED: MatrixWords = MatrixWords {
    rows: "ranks that wait",
    columns: "ranks that are late",
    noun: "rank",
    nothing: "no known waiting",
    sentences: &[
        // Nor is it certain that there was none: not all messages are compared, and not all pairs are kept.
        "ROW| for |COLUMN|: no known waiting",
        "ROW| waited |CELL| for |COLUMN| to send",
        "ROW| waited |CELL| for |COLUMN| to receive",
        "ROW| waited |CELL| for |COLUMN| to send and to receive",
        "ROW| waited |CELL| for |COLUMN| in one-sided synchronisation",
        "ROW| waited |CELL| for |COLUMN| to send and in one-sided synchronisation",
        "ROW| waited |CELL| for |COLUMN| to receive and in one-sided synchronisation",
        "ROW| waited |CELL| for |COLUMN| to send, to receive and in one-sided synchronisation",
    ],
};
/// If a smaller share of the waiting is in the pairs, it is not for rounding.
const ALL_OF_IT: f64 = 0.999;

/// None if no rank waited for another one.
pub(super) fn chart(summary: &Summary) -> Option<Chart<'_>> {
    let (waiting, ranks) = (summary.message_waiting.as_ref()?, summary.ranks.expected as usize);
    let matrix = who_for_whom(waiting, ranks)?;
    let says = line![of_both_sides(waiting), "; ", by_member(ranks, "rank")];
    let mut notes: Vec<Value> = vec![
        "Dark rows are ranks that wait long for others; dark columns are ranks that make others wait"
            .into(),
    ];
    notes.extend(not_shown(waiting));
    let title = "Who waits for whom in messages?";
    Some(Chart::new(title, says, Picture::Matrix(matrix)).noted(notes))
}

fn who_for_whom(waiting: &MessageWaitingSummary, ranks: usize) -> Option<Matrix> {
    let entry = |pair: &PairWaiting| {
        let waited = Duration::try_from_secs_f64(pair.waiting_s).ok()?;
        let kind = match (pair.signal, pair.late) {
            (Some(_), _) => 4,
            (None, MessageDirection::Sent) => 1,
            (None, MessageDirection::Received) => 2,
        };
        Some(MatrixEntry {
            row: pair.rank as usize,
            column: pair.late_rank as usize,
            amount: u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX),
            kind,
        })
    };
    let entries = waiting.pairs.iter().filter_map(entry);
    let matrix = binned((Unit::Seconds, WAITED), ranks, entries, |rank| rank.to_string())?;
    matrix.cells.iter().any(|&cell| cell > 0).then_some(matrix)
}

/// A summary has no more than the pairs with the longest waiting.
fn not_shown(waiting: &MessageWaitingSummary) -> Option<Value<'_>> {
    let pairs = &waiting.pairs;
    let shown_s: f64 = pairs.iter().map(|pair| pair.waiting_s).sum();
    let part = shown_s / all_s(waiting);
    let longest = line!["Only the ", pairs.len(), " pairs of ranks that waited longest are shown"];
    (part < ALL_OF_IT).then(|| line![longest, ", with ", share(part), " of the waiting"])
}

#[cfg(test)]
mod tests {
    use super::*;

    use MessageDirection::{Received, Sent};

    fn waiting(pairs: &[(u32, u32, MessageDirection, f64)]) -> MessageWaitingSummary {
        let pair = |&(rank, late_rank, late, waiting_s)| PairWaiting {
            rank,
            late_rank,
            late,
            waiting_s,
            ..PairWaiting::default()
        };
        MessageWaitingSummary {
            late_senders_s: pairs.iter().map(|pair| pair.3).sum(),
            pairs: pairs.iter().map(pair).collect(),
            ..MessageWaitingSummary::default()
        }
    }

    #[test]
    fn a_row_is_the_rank_that_waits_and_a_column_the_late_one() {
        let waiting = waiting(&[(3, 2, Sent, 2.1), (3, 2, Received, 0.4), (0, 1, Received, 0.5)]);
        let matrix = who_for_whom(&waiting, 4).unwrap();
        assert_eq!((matrix.side, matrix.cells.len(), matrix.names.len()), (4, 16, 4));
        assert_eq!((matrix.cells[3 * 4 + 2], matrix.kinds[3 * 4 + 2]), (2_500_000_000, 3));
        assert_eq!((matrix.cells[1], matrix.kinds[1]), (500_000_000, 2));
        assert_eq!(matrix.cells.iter().filter(|&&cell| cell == 0).count(), 14);
    }

    #[test]
    fn many_ranks_are_in_bins_that_add_up() {
        let waiting = waiting(&[(0, 600, Sent, 1.0), (2, 600, Sent, 0.5), (3, 4, Received, 0.25)]);
        let matrix = who_for_whom(&waiting, 601).unwrap();
        assert_eq!((matrix.side, matrix.cells.len()), (201, 201 * 201));
        assert_eq!((matrix.cells[200], matrix.kinds[200]), (1_500_000_000, 1));
        assert_eq!((matrix.cells[201 + 1], matrix.kinds[201 + 1]), (250_000_000, 2));
        assert_eq!(matrix.cells.iter().sum::<u64>(), 1_750_000_000);
    }

    #[test]
    fn without_waiting_there_is_no_matrix() {
        assert!(who_for_whom(&waiting(&[]), 4).is_none());
        assert!(who_for_whom(&waiting(&[(0, 1, Sent, 0.0)]), 4).is_none());
        assert!(who_for_whom(&waiting(&[(0, 9, Sent, 1.0)]), 4).is_none());
    }

    #[test]
    fn what_the_pairs_lack_is_said() {
        let mut waiting = waiting(&[(0, 1, Sent, 1.0), (1, 0, Received, 0.5)]);
        assert!(not_shown(&waiting).is_none());
        waiting.late_receivers_s = 1.5;
        assert!(not_shown(&waiting).is_some());
    }
}
