//! Who sends how much to whom, as a matrix.

use gyan_results::{TrafficSummary, Unit};

use crate::document::page::pictures::{Matrix, MatrixWords};
use crate::parts::matrix::{MatrixEntry, binned};

const SENT: MatrixWords = MatrixWords {
    rows: "senders",
    columns: "receivers",
    noun: "",
    nothing: "nothing",
    sentences: &["ROW| to |COLUMN|: |CELL"],
};

/// By rank, or by bins of equally many ranks.
pub(crate) fn by_rank(traffic: &TrafficSummary, unit: Unit, ranks: usize) -> Option<Matrix> {
    let pairs = traffic.pairs().filter_map(|(from, to, number, bytes)| {
        let amount = if unit == Unit::Bytes { bytes } else { number };
        Some(MatrixEntry { row: from as usize, column: to? as usize, amount, kind: 0 })
    });
    binned((unit, SENT), ranks, pairs, |rank| rank.to_string())
}

/// From host to host, or by bins of equally many hosts.
pub(crate) fn by_host(traffic: &TrafficSummary, unit: Unit) -> Option<Matrix> {
    let hosts = hosts(traffic);
    let place = |host: &String| hosts.binary_search(&host).ok();
    let pairs = traffic.by_host.iter().filter_map(|of| {
        let amount = if unit == Unit::Bytes { of.bytes } else { of.number };
        let (row, column) = (place(&of.from)?, place(of.to.as_ref()?)?);
        Some(MatrixEntry { row, column, amount, kind: 0 })
    });
    binned((unit, SENT), hosts.len(), pairs, |host| {
        hosts.get(host).map_or("", |host| host).to_owned()
    })
}

/// Those that sent or received anything, sorted.
pub(crate) fn hosts(traffic: &TrafficSummary) -> Vec<&String> {
    let both = traffic.by_host.iter().flat_map(|of| [Some(&of.from), of.to.as_ref()]);
    let mut hosts: Vec<&String> = both.flatten().collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use gyan_results::{MatrixRow, TrafficKind};

    use super::*;

    #[test]
    fn bins_add_up_to_what_was_sent_and_the_last_one_can_be_smaller() {
        let row =
            |rank: u32| MatrixRow { rank, to: vec![(Some((rank + 1) % 600), 2, 10), (None, 1, 1)] };
        let traffic = TrafficSummary {
            kind: TrafficKind::Messages,
            number: 1800,
            bytes: 6600,
            ranks: Vec::new(),
            matrix: (0..600).map(row).collect(),
            heaviest: Vec::new(),
            by_distance: Vec::new(),
            by_host: Vec::new(),
        };
        let matrix = by_rank(&traffic, Unit::Bytes, 600).unwrap();
        assert_eq!((matrix.side, matrix.cells.len()), (200, 40_000));
        assert_eq!(matrix.cells.iter().sum::<u64>(), 6000);
        assert_eq!((matrix.cells[0], matrix.cells[1]), (20, 10));
        assert_eq!((matrix.names[0].as_str(), matrix.names[199].as_str()), ("0-2", "597-599"));
        let matrix = by_rank(&traffic, Unit::Count, 601).unwrap();
        assert_eq!((matrix.side, matrix.names[200].as_str()), (201, "600"));
    }
}
