//! What do the ranks of each host have in common: do hosts differ more than the ranks on one of them, and
//! which?

#[cfg(feature = "schema")]
use crate::Number;
use crate::data::{Data, Deserialize, Serialize, apply, datum, derive};
use crate::{InMpiSummary, Ranges, Statistic};

/// A difference is reported if chance would cause it with less than this probability.
const CHANCE: f64 = 0.01;

/// The ranks of one host.
#[apply(datum!)]
#[derive(Default)]
pub struct HostSummary {
    /// Its name.
    pub host: String,
    /// Its ranks that are in the summary, as ranges: `0-3,8`.
    pub ranks: String,
    /// The share of the run that they spent in MPI.
    pub in_mpi: Option<HostStatistic>,
    /// The mean length of their queues of unexpected messages, from performance variables.
    pub unexpected_length: Option<HostStatistic>,
    /// The mean length of their queues of posted receives, from performance variables.
    pub posted_length: Option<HostStatistic>,
}

/// A number over the ranks of a host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct HostStatistic {
    /// Number of ranks that have it.
    pub ranks: u64,
    /// The smallest value.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub min: f64,
    /// The mean.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub avg: f64,
    /// The largest value.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub max: f64,
    /// The standard deviation of the population.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub stddev: f64,
}

/// A number that is compared between hosts.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HostMeasure {
    /// The share of the run in MPI.
    InMpi,
    /// The mean length of the queues of unexpected messages.
    UnexpectedLength,
    /// The mean length of the queues of posted receives.
    PostedLength,
}

/// Which hosts or ranks differ in something.
#[derive(Data!, Serialize)]
pub struct HostDifference {
    /// In what.
    pub measure: HostMeasure,
    /// Who.
    pub who: Differing,
}

/// Who differs from the others.
#[derive(Data!, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Differing {
    /// The hosts differ from each other by more than the ranks on a host do.
    Hosts,
    /// One host differs; the others do not.
    OneHost(String),
    /// One rank differs, but not its host.
    OneRank(u32),
}

impl HostMeasure {
    const ALL: [HostMeasure; 3] =
        [HostMeasure::InMpi, HostMeasure::UnexpectedLength, HostMeasure::PostedLength];

    /// The number of a host.
    pub fn of(self, host: &HostSummary) -> Option<HostStatistic> {
        match self {
            HostMeasure::InMpi => host.in_mpi,
            HostMeasure::UnexpectedLength => host.unexpected_length,
            HostMeasure::PostedLength => host.posted_length,
        }
    }

    /// A smaller difference matters to nobody: one percent of the run, half a message.
    fn least(self) -> f64 {
        match self {
            HostMeasure::InMpi => 0.01,
            HostMeasure::UnexpectedLength | HostMeasure::PostedLength => 0.5,
        }
    }
}

impl HostSummary {
    /// Whether `rank` is on this host.
    pub fn has(&self, rank: u32) -> bool {
        self.ranges().contains(rank)
    }

    /// How many ranks of it are in the summary.
    pub fn number(&self) -> u64 {
        self.ranges().len()
    }

    fn ranges(&self) -> Ranges {
        self.ranks.parse().unwrap_or_default()
    }
}

impl HostStatistic {
    pub(crate) fn of(statistic: &Statistic) -> HostStatistic {
        HostStatistic {
            ranks: statistic.ranks - statistic.not_finite,
            min: statistic.min.as_f64(),
            avg: statistic.avg,
            max: statistic.max.as_f64(),
            stddev: statistic.stddev,
        }
    }
}

/// The differences of hosts that are worth reporting.
pub(crate) fn differences(
    hosts: &[HostSummary],
    in_mpi: Option<&InMpiSummary>,
) -> Vec<HostDifference> {
    let differ = |measure: HostMeasure| {
        let of = |host| measure.of(host).map(|of| (host, of));
        let known: Vec<(&HostSummary, HostStatistic)> = hosts.iter().filter_map(of).collect();
        let numbers: Vec<HostStatistic> = known.iter().map(|(_, of)| *of).collect();
        let who = if hosts_differ(&numbers, measure.least()) {
            match one_host(&numbers, measure.least()).and_then(|at| known.get(at)) {
                Some((host, _)) => Differing::OneHost(host.host.clone()),
                None => Differing::Hosts,
            }
        } else if measure == HostMeasure::InMpi && hosts.len() > 1 {
            Differing::OneRank(one_rank(&in_mpi?.share, measure.least())?)
        } else {
            return None;
        };
        Some(HostDifference { measure, who })
    };
    HostMeasure::ALL.into_iter().filter_map(differ).collect()
}

/// Whether hosts differ more than the ranks on a host do: a one-way analysis of variance. The variance between
/// hosts must be larger than that within them, and by chance that would be rare.
fn hosts_differ(hosts: &[HostStatistic], least: f64) -> bool {
    let number = |host: &HostStatistic| host.ranks as f64;
    let ranks: f64 = hosts.iter().map(number).sum();
    let (between, within) = (hosts.len() as f64 - 1.0, ranks - hosts.len() as f64);
    if between < 1.0 || within < 1.0 || range(hosts) < least {
        return false;
    }
    let mean = hosts.iter().map(|host| number(host) * host.avg).sum::<f64>() / ranks;
    let squares = hosts.iter().map(|host| number(host) * (host.avg - mean).powi(2)).sum::<f64>();
    let within_squares = hosts.iter().map(|host| number(host) * host.stddev.powi(2)).sum::<f64>();
    let (variance, within_variance) = (squares / between, within_squares / within);
    let of_a_host =
        (ranks - hosts.iter().map(|host| number(host).powi(2)).sum::<f64>() / ranks) / between;
    variance > (1.0 + of_a_host) * within_variance
        && chance(variance / within_variance, between, within) < CHANCE
}

/// The host without which the others no longer differ: the one furthest from their mean. Of two hosts it is not
/// known which one differs.
fn one_host(hosts: &[HostStatistic], least: f64) -> Option<usize> {
    if hosts.len() < 3 {
        return None;
    }
    let mean = hosts.iter().map(|host| host.avg).sum::<f64>() / hosts.len() as f64;
    let distance = |at: &usize| hosts.get(*at).map_or(0.0, |host| (host.avg - mean).abs());
    let odd = (0..hosts.len()).max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    let others: Vec<HostStatistic> =
        (0..hosts.len()).filter(|at| *at != odd).filter_map(|at| hosts.get(at).copied()).collect();
    (!hosts_differ(&others, least)).then_some(odd)
}

/// The one rank that is too far from the mean of the others, given their deviation: the extreme of a sample,
/// tested against the rest (Grubbs 1950).
fn one_rank(statistic: &Statistic, least: f64) -> Option<u32> {
    let all = HostStatistic::of(statistic);
    let others = all.ranks.checked_sub(1).filter(|others| *others > 1)? as f64;
    let (distance, rank) =
        [(all.max - all.avg, statistic.max_rank), (all.avg - all.min, statistic.min_rank)]
            .into_iter()
            .max_by(|one, other| one.0.total_cmp(&other.0))?;
    // The distance from the mean of the others, and their variance.
    let distance = distance * all.ranks as f64 / others;
    let squares =
        all.ranks as f64 * all.stddev.powi(2) - distance.powi(2) * others / all.ranks as f64;
    let variance = squares.max(0.0) / (others - 1.0);
    let ratio = distance.powi(2) / (variance * (1.0 + 1.0 / others));
    let is_rare = chance(ratio, 1.0, others - 1.0) * (all.ranks as f64) < CHANCE;
    (distance >= least && is_rare).then_some(rank)
}

fn range(hosts: &[HostStatistic]) -> f64 {
    let max = hosts.iter().map(|host| host.avg).fold(f64::NEG_INFINITY, f64::max);
    let min = hosts.iter().map(|host| host.avg).fold(f64::INFINITY, f64::min);
    max - min
}

/// How often a ratio of variances with these degrees of freedom is larger by chance: the upper tail of Fisher's F.
fn chance(ratio: f64, between: f64, within: f64) -> f64 {
    if ratio.is_nan() {
        return 1.0;
    }
    if ratio.is_infinite() {
        return 0.0;
    }
    incomplete_beta(within / 2.0, between / 2.0, within / (within + between * ratio))
}

/// The regularized incomplete beta function, by its continued fraction (Lentz 1976).
// The names are those used in textbooks.
#[allow(clippy::many_single_char_names)]
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // Where the fraction converges quickly.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let gamma = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = libm::exp(gamma + a * libm::log(x) + b * libm::log1p(-x)) / a;
    let not_zero =
        |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let (mut c, mut d) = (1.0, 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..=300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < 1e-12 {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Number, Statistics};

    fn statistic(values: &[f64]) -> Statistic {
        let mut statistics = Statistics::default();
        for (rank, &value) in (0..).zip(values) {
            statistics.add(Number::Double(value), rank);
        }
        statistics.finish().unwrap()
    }

    fn found(hosts: &[&[f64]]) -> Option<Differing> {
        let mut first = 0;
        let host = |(at, values): (usize, &&[f64])| {
            let last = first + values.len() - 1;
            let ranks = format!("{first}-{last}");
            first = last + 1;
            let in_mpi = Some(HostStatistic::of(&statistic(values)));
            HostSummary { host: format!("n{at}"), ranks, in_mpi, ..HostSummary::default() }
        };
        let summaries: Vec<HostSummary> = hosts.iter().enumerate().map(host).collect();
        let share = statistic(&hosts.concat());
        let in_mpi = InMpiSummary { time_s: share.clone(), time_error_s: None, share };
        let found = differences(&summaries, Some(&in_mpi));
        found.into_iter().next().map(|difference| difference.who)
    }

    /// The points exceeded by 5, 1 and 0.1 % of the F distribution, from tables and by integrating its density.
    #[test]
    fn the_tail_is_that_of_tables() {
        for (ratio, between, within, expected) in [
            (161.4476, 1.0, 1.0, 0.05),
            (98.5025, 1.0, 2.0, 0.01),
            (4.9646, 1.0, 10.0, 0.05),
            (5.9525, 3.0, 12.0, 0.01),
            (3.45668, 9.0, 20.0, 0.01),
            (1.87719, 50.0, 60.0, 0.01),
            (3.87439, 10.0, 40.0, 0.001),
        ] {
            let chance = chance(ratio, between, within);
            assert!((chance / expected - 1.0).abs() < 1e-4, "{ratio}: {chance}, not {expected}");
        }
        assert!(chance(f64::INFINITY, 1.0, 1.0).abs() < 1e-12);
        assert!((chance(0.0, 2.0, 3.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_slow_host_is_told_from_one_slow_rank() {
        let usual = [0.58, 0.60, 0.61, 0.59];
        let slow = [0.11, 0.13, 0.12, 0.12];
        let with_one = [0.58, 0.12, 0.61, 0.59];
        assert_eq!(found(&[&usual, &usual, &slow, &usual]), Some(Differing::OneHost("n2".into())));
        assert_eq!(found(&[&usual, &with_one, &usual, &usual]), Some(Differing::OneRank(5)));
        assert_eq!(found(&[&usual, &usual, &usual, &usual]), None);
        // With two hosts it is not known which is the odd one.
        assert_eq!(found(&[&usual, &slow]), Some(Differing::Hosts));
        assert_eq!(
            found(&[&slow, &usual, &[0.3, 0.31, 0.3, 0.32], &usual]),
            Some(Differing::Hosts)
        );
    }

    #[test]
    fn what_chance_can_do_is_not_told() {
        // Ranks on a host differ as much as hosts do.
        assert_eq!(found(&[&[0.2, 0.6], &[0.3, 0.7]]), None);
        // Two hosts with two ranks: far apart, but two ranks are few.
        assert_eq!(found(&[&[0.50, 0.54], &[0.60, 0.64]]), None);
        // One rank per host: the spread of ranks on a host is not known.
        assert_eq!(found(&[&[0.2], &[0.3], &[0.9]]), None);
        // Certainly different, but not by an amount that matters.
        assert_eq!(found(&[&[0.5, 0.5, 0.5], &[0.5001, 0.5001, 0.5001]]), None);
        assert_eq!(found(&[&[0.5, 0.5, 0.5], &[0.6, 0.6, 0.6]]), Some(Differing::Hosts));
        assert_eq!(found(&[&[0.5, 0.6, 0.7]]), None);
    }

    #[test]
    fn the_host_of_a_rank_is_known_by_ranges() {
        let host = HostSummary { ranks: "0-3,8,10-11".into(), ..HostSummary::default() };
        assert_eq!(host.number(), 7);
        let on_it: Vec<u32> = (0..20).filter(|rank| host.has(*rank)).collect();
        assert_eq!(on_it, [0, 1, 2, 3, 8, 10, 11]);
    }
}
