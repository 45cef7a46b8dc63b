//! Who sends to whom, in no more rows than one can see.

use gyan_results::TrafficSummary;

use super::super::super::page::pictures::Matrix;
use super::super::super::value::Unit;

/// Rows and columns of a matrix.
pub(super) const SIDE_AT_MOST: usize = 256;

/// By rank, or by bins of as many ranks each.
pub(super) fn by_rank(traffic: &TrafficSummary, unit: Unit, ranks: usize) -> Option<Matrix> {
    let each = ranks.div_ceil(SIDE_AT_MOST).max(1);
    let side = ranks.div_ceil(each);
    let mut cells = vec![0_u64; side * side];
    for (from, to, number, bytes) in traffic.pairs() {
        let Some(to) = to else { continue };
        let at = from as usize / each * side + to as usize / each;
        if let Some(cell) = cells.get_mut(at) {
            *cell = cell.saturating_add(if unit == Unit::Bytes { bytes } else { number });
        }
    }
    let name = |bin: usize| match (bin * each, ((bin + 1) * each).min(ranks) - 1) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    (side > 1).then(|| Matrix { unit, side, cells, names: (0..side).map(name).collect() })
}

/// From host to host, or none where there are too many.
pub(super) fn by_host(traffic: &TrafficSummary, unit: Unit) -> Option<Matrix> {
    let both = traffic.by_host.iter().flat_map(|of| [Some(&of.from), of.to.as_ref()]);
    let mut hosts: Vec<&String> = both.flatten().collect();
    hosts.sort_unstable();
    hosts.dedup();
    let side = hosts.len();
    if !(2..=SIDE_AT_MOST).contains(&side) {
        return None;
    }
    let mut cells = vec![0_u64; side * side];
    for of in &traffic.by_host {
        let place = |host: &String| hosts.binary_search(&host).ok();
        if let (Some(from), Some(to)) = (place(&of.from), of.to.as_ref().and_then(place))
            && let Some(cell) = cells.get_mut(from * side + to)
        {
            *cell = cell.saturating_add(if unit == Unit::Bytes { of.bytes } else { of.number });
        }
    }
    Some(Matrix { unit, side, cells, names: hosts.into_iter().cloned().collect() })
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
