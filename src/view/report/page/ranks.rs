//! What only the profiles of the ranks tell: how long each of them was in MPI, and how variables went over the run.

use gyan_results::{HostMeasure, RankProfile, Series, Summary};

use super::super::super::series::parts;
use super::super::super::value::{Unit, Value, line};
use super::super::hosts;
use super::pictures::{Band, Bands, Bin, Ranks};

/// Bins of ranks, or of hosts.
const BINS_AT_MOST: usize = 256;
/// Parts of the run.
const PARTS: usize = 240;
/// Variables whose course is shown: those of more are in the tables.
const BANDS_AT_MOST: usize = 12;

/// What is kept of the profiles while they are read.
#[derive(Default)]
pub(crate) struct OfRanks {
    /// The share of the run in MPI, and whose it is.
    shares: Vec<(f64, u32)>,
    /// As in [`Band`], with sums instead of means.
    sums: Vec<(Band, Vec<u32>)>,
}

impl OfRanks {
    /// Takes in a profile of a run of `elapsed_s`.
    pub(crate) fn take(&mut self, profile: &RankProfile, elapsed_s: f64) {
        let share = profile.in_mpi.as_ref().map(|of| of.share).filter(|share| share.is_finite());
        self.shares.extend(share.map(|share| (share, profile.rank)));
        if let Some(series) = &profile.series {
            let bands = (0..series.columns.len()).filter_map(|at| band(series, at, elapsed_s));
            for (band, counts) in bands {
                self.add(band, &counts);
            }
        }
    }

    /// Takes in those of further ranks.
    pub(crate) fn merge(&mut self, other: OfRanks) {
        self.shares.extend(other.shares);
        for (band, counts) in other.sums {
            self.add(band, &counts);
        }
    }

    fn add(&mut self, band: Band, counts: &[u32]) {
        let same = |(own, _): &&mut (Band, Vec<u32>)| {
            (&own.name, own.class, &own.object) == (&band.name, band.class, &band.object)
        };
        let Some((own, own_counts)) = self.sums.iter_mut().find(same) else {
            self.sums.push((band, counts.to_vec()));
            return;
        };
        own.ranks += band.ranks;
        for (own, count) in own_counts.iter_mut().zip(counts) {
            *own += count;
        }
        for (own, other) in own.parts.iter_mut().zip(band.parts) {
            *own = match (*own, other) {
                (Some([min, sum, max]), Some([least, more, most])) => {
                    Some([min.min(least), sum + more, max.max(most)])
                }
                (own, other) => own.or(other),
            };
        }
    }

    /// The courses of the variables, those that changed most at first.
    pub(super) fn bands(&self, summary: &Summary) -> Option<Bands> {
        let mean = |(band, counts): &(Band, Vec<u32>)| {
            let parts = band.parts.iter().zip(counts).map(|(part, &count)| {
                part.map(|[min, sum, max]| [min, sum / f64::from(count.max(1)), max])
            });
            Band { parts: parts.collect(), ..band.clone() }
        };
        let mut bands: Vec<Band> = self.sums.iter().map(mean).collect();
        // What is 0 all the time shows nothing.
        bands.retain(|band| {
            band.parts.iter().flatten().any(|[min, _, max]| min < max || *max != 0.0)
        });
        bands.sort_by(|one, other| (&one.name, &one.object).cmp(&(&other.name, &other.object)));
        bands.truncate(BANDS_AT_MOST);
        (!bands.is_empty()).then_some(Bands { end_s: summary.job.elapsed_s, bands })
    }

    /// The share of each rank in MPI, the smallest first; of hosts where no profile is there.
    pub(super) fn in_mpi<'a>(&self, summary: &'a Summary) -> Option<Ranks<'a>> {
        let mut shares = self.shares.clone();
        shares.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let bins: Vec<Bin> = if shares.is_empty() {
            of_hosts(summary)
        } else {
            binned(&shares).map(|bin| of_bin(summary, bin)).collect()
        };
        let of = &summary.in_mpi.as_ref()?.share;
        (bins.len() > 1).then(|| Ranks {
            unit: Unit::Share,
            are_hosts: shares.is_empty(),
            bins,
            mean: of.avg,
            largest: of.max.as_f64(),
        })
    }
}

/// A variable on one rank, and how many readings are in each part: 1 or 0.
fn band(series: &Series, at: usize, elapsed_s: f64) -> Option<(Band, Vec<u32>)> {
    let column = series.columns.get(at)?;
    let mut parts_of: Vec<Option<[f64; 3]>> = vec![None; PARTS];
    let mut readings = vec![0_u32; PARTS];
    let mut begin_s = 0.0;
    for (at, &end_s) in series.end_s.iter().enumerate() {
        let value = |list: &[Option<f64>]| list.get(at).copied().flatten();
        if let (Some(min), Some(mean), Some(max)) =
            (value(&column.min), value(&column.mean), value(&column.max))
        {
            let (first, last) = parts(begin_s, end_s, elapsed_s, PARTS);
            let covered = parts_of.iter_mut().zip(&mut readings);
            for (part, readings) in covered.take(last + 1).skip(first) {
                let [low, sum, high] = part.unwrap_or([min, 0.0, max]);
                *part = Some([low.min(min), sum + mean, high.max(max)]);
                *readings += 1;
            }
        }
        begin_s = end_s;
    }
    // The mean of a rank counts as one, however often it was read in a part.
    for (part, readings) in parts_of.iter_mut().zip(&mut readings) {
        if let Some([_, sum, _]) = part {
            *sum /= f64::from(*readings);
            *readings = 1;
        }
    }
    let is_read = parts_of.iter().any(Option::is_some);
    let band = Band {
        name: column.name.clone(),
        class: column.class.name(),
        object: column.object.clone(),
        ranks: 1,
        parts: parts_of,
    };
    is_read.then_some((band, readings))
}

fn binned<T>(sorted: &[T]) -> impl Iterator<Item = &[T]> {
    let bins = sorted.len().min(BINS_AT_MOST);
    let at = move |bin: usize| bin * sorted.len() / bins.max(1);
    (0..bins).filter_map(move |bin| sorted.get(at(bin)..at(bin + 1)))
}

fn of_bin<'a>(summary: &'a Summary, bin: &[(f64, u32)]) -> Bin<'a> {
    let edge = |of: Option<&(f64, u32)>| of.map_or(0.0, |of| of.0);
    let sum: f64 = bin.iter().map(|of| of.0).sum();
    let who = match bin {
        [(_, rank)] => hosts::rank_and_host(summary, *rank),
        many => line![many.len(), " ranks"],
    };
    Bin { who, min: edge(bin.first()), mean: sum / bin.len().max(1) as f64, max: edge(bin.last()) }
}

fn of_hosts(summary: &Summary) -> Vec<Bin<'_>> {
    let of = |host| HostMeasure::InMpi.of(host).map(|of| (host, of));
    let mut hosts: Vec<_> = summary.by_host.iter().filter_map(of).collect();
    hosts.sort_by(|(_, one), (_, other)| one.avg.total_cmp(&other.avg));
    let bin = |hosts: &[(&'_ gyan_results::HostSummary, gyan_results::HostStatistic)]| {
        let number = hosts.len().max(1) as f64;
        let who: Value = match hosts {
            [(host, _)] => host.host.clone().into(),
            many => line![many.len(), " hosts"],
        };
        Bin {
            who,
            min: hosts.iter().fold(f64::INFINITY, |min, (_, of)| min.min(of.min)),
            mean: hosts.iter().map(|(_, of)| of.avg).sum::<f64>() / number,
            max: hosts.iter().fold(0.0, |max, (_, of)| max.max(of.max)),
        }
    };
    binned(&hosts).map(bin).collect()
}

#[cfg(test)]
mod tests {
    use gyan_results::{Class, SeriesColumn};

    use super::*;

    fn series(end_s: &[f64], values: &[Option<f64>]) -> Series {
        let column = SeriesColumn {
            name: "length".into(),
            class: Class::Level,
            object: None,
            min: values.to_vec(),
            mean: values.to_vec(),
            max: values.to_vec(),
        };
        Series { interval_s: 1.0, end_s: end_s.to_vec(), columns: vec![column] }
    }

    #[test]
    fn the_mean_of_a_part_is_that_over_the_ranks_that_read_it() {
        let mut all = OfRanks::default();
        for values in [[Some(1.0), Some(4.0)], [Some(3.0), None]] {
            let (band, counts) = band(&series(&[1.0, 2.0], &values), 0, 2.0).unwrap();
            all.add(band, &counts);
        }
        let (band, counts) = &all.sums[0];
        assert_eq!(band.ranks, 2);
        assert_eq!((band.parts[0], counts[0]), (Some([1.0, 4.0, 3.0]), 2));
        assert_eq!((band.parts[PARTS - 1], counts[PARTS - 1]), (Some([4.0, 4.0, 4.0]), 1));
    }

    #[test]
    fn many_ranks_are_in_as_many_bins_as_fit_and_none_is_left_out() {
        let many: Vec<u32> = (0..1000).collect();
        let bins: Vec<&[u32]> = binned(&many).collect();
        assert_eq!(bins.len(), BINS_AT_MOST);
        assert_eq!(bins.concat(), many);
        assert_eq!(binned(&many[..3]).count(), 3);
        assert_eq!(binned::<u32>(&[]).count(), 0);
    }
}
