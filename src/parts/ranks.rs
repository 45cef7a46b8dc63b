//! Facts from the profiles of the ranks: how long each rank was in MPI, and how variables changed over the run.

use gyan_results::{Fidelity, HostMeasure, HostSummary, RankProfile, Series, Summary, Unit};

use super::hosts;
use super::series::parts;
use crate::document::Value;
use crate::document::page::pictures::{Band, Bands, Bin, Chart, FEW, Picture, Ranks};
use crate::document::value::{Amount, InUnit, line, share};

/// Most bins of ranks or hosts.
const BINS_AT_MOST: usize = 256;
/// How many ranks or hosts that stand out are named on either side.
const NAMES_AT_MOST: usize = 5;
/// A share of the run that makes a rank stand out.
const ODD_AT_LEAST: f64 = 0.01;
/// Parts of the run.
const PARTS: usize = 240;
/// How many variables are drawn over time; others are in the tables.
const BANDS_AT_MOST: usize = 12;

/// The data kept from the profiles while they are read.
#[derive(Default)]
pub(crate) struct OfRanks {
    /// The share of the run in MPI, and whose it is.
    shares: Vec<(f64, u32)>,
    /// As in [`Band`], but with sums instead of means.
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

    /// Adds the data of further ranks.
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

    /// The courses of the variables, those that changed most first.
    pub(crate) fn bands(&self, summary: &Summary) -> Option<Bands> {
        let mean = |(band, counts): &(Band, Vec<u32>)| {
            let parts = band.parts.iter().zip(counts).map(|(part, &count)| {
                part.map(|[min, sum, max]| [min, sum / f64::from(count.max(1)), max])
            });
            Band { parts: parts.collect(), ..band.clone() }
        };
        let mut bands: Vec<Band> = self.sums.iter().map(mean).collect();
        // A variable that is always 0 shows nothing.
        bands.retain(|band| {
            band.parts.iter().flatten().any(|[min, _, max]| min < max || *max != 0.0)
        });
        bands.sort_by(|one, other| (&one.name, &one.object).cmp(&(&other.name, &other.object)));
        bands.truncate(BANDS_AT_MOST);
        (!bands.is_empty()).then_some(Bands { end_s: summary.job.elapsed_s, bands })
    }

    /// The share of the run in MPI of each rank, or of each host when there are no profiles.
    pub(crate) fn who_differs<'a>(&self, summary: &'a Summary) -> Option<Chart<'a>> {
        let of = summary.in_mpi.as_ref()?;
        let are_hosts = self.shares.is_empty();
        let mut members: Vec<Member> = if are_hosts {
            summary.by_host.iter().filter_map(Member::of_host).collect()
        } else {
            self.shares.iter().map(Member::of_rank).collect()
        };
        if members.len() < 2 {
            return None;
        }
        let by_mean = |one: &Member, other: &Member| one.mean.total_cmp(&other.mean);
        members.sort_by(|one, other| by_mean(one, other).then(one.who.cmp(&other.who)));
        let odd = Odd::among(&members);
        let bins: Vec<Bin> = binned(&members).map(|bin| bin_of(summary, bin, &odd)).collect();
        let each = match (are_hosts, bins.len() == members.len()) {
            (false, true) => "",
            (false, false) => "; a column stands for several ranks, its light part for their range",
            (true, _) => {
                "; the light part of a column is the range of the ranks there; a summary does not have each rank"
            }
        };
        let fidelity =
            if of.time_error_s == Some(0.0) { Fidelity::Exact } else { Fidelity::Estimated };
        let known = |amount: Amount| amount.known(fidelity);
        let [min, max] = Unit::Share.extremes(&of.share).map(known);
        let [min, max] = [min, max].map(|amount| crate::parts::report::on_rank(summary, amount));
        let says =
            line!["from ", min, " to ", max, ", ", known(share(of.share.avg)), " on average", each];
        let named =
            |member: &Member<'a>| line![member.who.name(summary), ", ", known(share(member.mean))];
        let middle = members.get(members.len() / 2).filter(|_| members.len() > FEW);
        let mut notes: Vec<Value> =
            middle.map(|member| line!["in the middle: ", named(member)]).into_iter().collect();
        let (below, above): (Vec<_>, Vec<_>) = members
            .iter()
            .filter(|member| odd.has(member))
            .partition(|member| member.mean < odd.low);
        for (odd, what) in [
            (below, "far less than the others: "),
            (above.into_iter().rev().collect(), "far more than the others: "),
        ] {
            if !odd.is_empty() {
                let odd: Vec<Value> = odd.into_iter().map(named).collect();
                notes.push(line![what, separated(odd)]);
            }
        }
        if bins.len() > FEW && members.iter().any(|member| odd.has(member)) {
            notes.push(
                "far: further from the middle half than 1.5 times its width; such columns have a mark above them"
                    .into(),
            );
        }
        let title = if are_hosts {
            "Who differs? Share of the run in MPI, by host, the least first"
        } else {
            "Who differs? Share of the run in MPI, by rank, the least first"
        };
        let ranks =
            Ranks { unit: Unit::Share, bins, mean: of.share.avg, largest: of.share.max.as_f64() };
        Some(Chart::new(title, says, Picture::Ranks(ranks)).noted(notes))
    }
}

/// A rank, or a host with the range of its ranks.
struct Member<'a> {
    who: Who<'a>,
    min: f64,
    mean: f64,
    max: f64,
}

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Who<'a> {
    Rank(u32),
    Host(&'a str),
}

impl<'a> Who<'a> {
    fn name(self, summary: &'a Summary) -> Value<'a> {
        match self {
            Who::Rank(rank) => hosts::rank_and_host(summary, rank),
            Who::Host(host) => host.into(),
        }
    }
}

impl<'a> Member<'a> {
    fn of_rank(&(share, rank): &(f64, u32)) -> Member<'a> {
        Member { who: Who::Rank(rank), min: share, mean: share, max: share }
    }

    fn of_host(host: &'a HostSummary) -> Option<Member<'a>> {
        let of = HostMeasure::InMpi.of(host)?;
        Some(Member { who: Who::Host(&host.host), min: of.min, mean: of.avg, max: of.max })
    }
}

/// The bounds of outliers: further from the quartiles than 1.5 times their distance (Tukey, Exploratory Data
/// Analysis, 1977), and far enough for anyone to care.
struct Odd {
    low: f64,
    high: f64,
}

impl Odd {
    fn among(sorted: &[Member]) -> Odd {
        let quarter = |at: usize| sorted.get(sorted.len() * at / 4).map_or(0.0, |of| of.mean);
        let far = (1.5 * (quarter(3) - quarter(1))).max(ODD_AT_LEAST);
        Odd { low: quarter(1) - far, high: quarter(3) + far }
    }

    fn has(&self, member: &Member) -> bool {
        member.mean < self.low || member.mean > self.high
    }
}

/// The first few, and how many more there are.
fn separated(names: Vec<Value>) -> Value {
    let more = names.len().saturating_sub(NAMES_AT_MOST);
    let mut parts = Vec::new();
    for name in names.into_iter().take(NAMES_AT_MOST) {
        if !parts.is_empty() {
            parts.push("; ".into());
        }
        parts.push(name);
    }
    if more > 0 {
        parts.push(line!["; ", more, " more"]);
    }
    Value::Line(parts)
}

/// A variable on one rank, and the number of readings in each part: 1 or 0.
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

fn bin_of<'a>(summary: &'a Summary, members: &[Member<'a>], odd: &Odd) -> Bin<'a> {
    let number = members.len();
    let who = match members {
        [one] => one.who.name(summary),
        [Member { who: Who::Host(_), .. }, ..] => line![number, " hosts"],
        _ => line![number, " ranks"],
    };
    Bin {
        who,
        min: members.iter().fold(f64::INFINITY, |least, of| least.min(of.min)),
        mean: members.iter().map(|of| of.mean).sum::<f64>() / number.max(1) as f64,
        max: members.iter().fold(0.0, |most: f64, of| most.max(of.max)),
        is_odd: members.iter().any(|member| odd.has(member)),
    }
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
    fn odd_is_what_is_far_from_the_middle_half_and_nobody_where_all_are_alike() {
        let members = |shares: &[f64]| -> Vec<Member> {
            shares.iter().zip(0..).map(|(&share, rank)| Member::of_rank(&(share, rank))).collect()
        };
        let odd = |shares: &[f64]| -> Vec<f64> {
            let members = members(shares);
            let odd = Odd::among(&members);
            members.iter().filter(|member| odd.has(member)).map(|member| member.mean).collect()
        };
        assert_eq!(odd(&[0.1, 0.4, 0.41, 0.42, 0.43, 0.44, 0.45, 0.9]), [0.1, 0.9]);
        assert_eq!(odd(&[0.4, 0.4, 0.4, 0.4, 0.4, 0.409]), [0.0; 0]);
        assert_eq!(odd(&[0.4, 0.4, 0.4, 0.4, 0.4, 0.42]), [0.42]);
        assert_eq!(odd(&[0.1, 0.2, 0.3, 0.4]), [0.0; 0]);
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
