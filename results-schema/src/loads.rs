//! How many ranks or threads are there for each processor?

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::ThreadLoad;
use crate::merge::Merge;
use crate::ranges::Ranges;

/// One rank or thread on one processor.
const ONE: u64 = 1 << 32;

/// The demand for processors: the first and last of a range, and the load on each of them, in units of
/// 1/`ONE`. Who may run on several processors is a fraction of a load on each. Ranges are in order
/// and do not overlap; processors without demand are left out.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Loads(Vec<(u32, u32, u64)>);

impl Loads {
    pub(crate) fn of(processors: &Ranges) -> Loads {
        let Some(load) = ONE.checked_div(processors.len()) else { return Loads::default() };
        Loads(processors.pairs().map(|(first, last)| (first, last, load)).collect())
    }

    pub(crate) fn processors(&self) -> Ranges {
        let mut all = Ranges::default();
        self.0.iter().for_each(|(first, last, _)| all.extend(&Ranges::between(*first, *last)));
        all
    }

    /// Adds a thread that may run on these processors.
    pub fn add(&mut self, processors: &Ranges) {
        self.absorb(&Loads::of(processors));
    }

    /// Processors with equal loads in one row, the least load first.
    pub fn rows(&self) -> Vec<ThreadLoad> {
        let mut alike: BTreeMap<u64, Ranges> = BTreeMap::new();
        for (first, last, load) in &self.0 {
            alike.entry(*load).or_default().extend(&Ranges::between(*first, *last));
        }
        let row = |(load, processors): (u64, Ranges)| ThreadLoad {
            processors: processors.to_string(),
            threads: (load as f64 / ONE as f64 * 1e6).round() / 1e6,
        };
        alike.into_iter().map(row).collect()
    }

    /// What the rows say.
    pub(crate) fn from_rows(rows: &[ThreadLoad]) -> Loads {
        let mut all = Loads::default();
        for ThreadLoad { processors, threads } in rows {
            // No rank has more threads than fit; a double beyond the range of integers is the nearest of them.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let load = (threads.max(0.0) * ONE as f64).round() as u64;
            let processors: Ranges = processors.parse().unwrap_or_default();
            all.absorb(&Loads(
                processors.pairs().map(|(first, last)| (first, last, load)).collect(),
            ));
        }
        all
    }

    /// Those of these cores, or of all processors if there are none, with a load above one, and the highest load of
    /// all. Rounding may take a little off a load.
    pub(crate) fn crowded(&self, cores: &[Ranges]) -> (Ranges, f64) {
        let mut crowded = Ranges::default();
        let mut most = 0;
        let mut look_at = |core: &Ranges, load: u128| {
            if load > u128::from(ONE + ONE / 100) {
                crowded.extend(core);
            }
            most = most.max(load);
        };
        if cores.is_empty() {
            for (first, last, load) in &self.0 {
                look_at(&Ranges::between(*first, *last), (*load).into());
            }
        }
        for core in cores {
            look_at(core, self.on(core));
        }
        (crowded, (most as f64 / ONE as f64 * 1000.0).round() / 1000.0)
    }

    /// The load of all of these together.
    pub(crate) fn on(&self, processors: &Ranges) -> u128 {
        let on_both = |(first, last): (u32, u32)| {
            self.0.iter().map(move |(from, to, load)| {
                let (first, last) = (first.max(*from), last.min(*to));
                let number = (u64::from(last) + 1).saturating_sub(first.into());
                u128::from(number) * u128::from(*load)
            })
        };
        processors.pairs().flat_map(on_both).sum()
    }
}

impl Merge for Loads {
    fn absorb(&mut self, other: &Loads) {
        if self.0.is_empty() {
            return self.clone_from(other);
        }
        // The change of the load at a processor.
        let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
        for &(first, last, load) in self.0.iter().chain(&other.0) {
            *changes.entry(first.into()).or_default() += i128::from(load);
            *changes.entry(u64::from(last) + 1).or_default() -= i128::from(load);
        }
        self.0.clear();
        let (mut from, mut load) = (0, 0_i128);
        for (at, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
            if let (Ok(first), Ok(last)) =
                (u32::try_from(from), u32::try_from(at - u64::from(at > 0)))
                && load > 0
            {
                self.0.push((first, last, u64::try_from(load).unwrap_or(u64::MAX)));
            }
            (from, load) = (at, load + change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_with_equal_loads_are_one_row_and_are_read_back() {
        let mut loads = Loads::default();
        for processors in ["0", "0", "1", "2-4", "2-4", "6", ""] {
            loads.add(&processors.parse().unwrap());
        }
        let rows = loads.rows();
        let shown: Vec<(&str, f64)> =
            rows.iter().map(|row| (row.processors.as_str(), row.threads)).collect();
        assert_eq!(shown, [("2-4", 0.666_667), ("1,6", 1.0), ("0", 2.0)]);
        assert_eq!(Loads::from_rows(&rows).rows(), rows);
        assert_eq!(loads.crowded(&[]), (Ranges::of(0), 2.0));
    }

    #[test]
    fn loads_add_up_in_any_order_and_alike_neighbours_are_one_range() {
        let ranks = ["0-3", "2-5", "9", "0-1", "4294967290-4294967295", "3"];
        let of = |order: &[usize]| {
            let mut all = Loads::default();
            for at in order {
                let processors: Ranges = ranks[*at].parse().unwrap();
                all.absorb(&Loads::of(&processors));
            }
            all
        };
        let expected = of(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(expected, of(&[5, 3, 1, 0, 2, 4]));
        assert_eq!(expected.processors().to_string(), "0-5,9,4294967290-4294967295");
        let mut bound = Loads::default();
        for processor in 0..4 {
            bound.absorb(&Loads::of(&Ranges::of(processor)));
        }
        assert_eq!(bound, Loads(vec![(0, 3, ONE)]));
    }
}
