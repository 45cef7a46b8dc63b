//! What is each site's share of the known totals of its function? For the profile: each site gets what was
//! timed there, and a share of the rest according to the weights of its timed calls, so that sites add up to
//! their function.

use std::collections::BTreeMap;

use gyan_results::{
    Call, CodeAddress, LoadedObject, Site as SiteOfProfile, SiteStack, Sites as SitesOfProfile,
    sort_by,
};

use super::{ELSEWHERE, SITES_AT_MOST, Site, Sums};
use crate::calls::addresses::Map;
use crate::calls::ledger::{self, NO_FUNCTION};
use crate::calls::{scripts, stacks};
use crate::mpi::functions::Function;
use crate::sys::cells::Counter;
use crate::sys::clock;
use crate::sys::perf_map::Names;

/// The variance is known when it is made up of this many calls of about the same length.
const ENOUGH: f64 = 5.0;

/// A site over all threads.
#[derive(Clone, Debug, Default)]
struct Sum {
    timed: u64,
    ticks: f64,
    others: f64,
    other_ticks: f64,
    others_variance: f64,
    variance: f64,
    covariance: f64,
    squares: f64,
    bytes: u64,
    other_bytes: f64,
    max: f64,
    stacks_taken: u64,
    /// Stacks by their frames, with hits, calls and ticks.
    stacks: BTreeMap<Vec<usize>, (u64, f64, f64)>,
    /// Calls and ticks of all recorded stacks.
    looks: (f64, f64),
}

impl Sum {
    fn add_site(&mut self, site: &Site, map: &Map) {
        let Sums {
            timed,
            ticks,
            others,
            other_ticks,
            others_variance,
            variance,
            covariance,
            squares,
            bytes,
            other_bytes,
        } = &site.sum;
        let mut sum = Sum {
            timed: timed.get(),
            ticks: ticks.get(),
            others: others.get(),
            other_ticks: other_ticks.get(),
            others_variance: others_variance.get(),
            variance: variance.get(),
            covariance: covariance.get(),
            squares: squares.get(),
            bytes: bytes.get(),
            other_bytes: other_bytes.get(),
            max: site.max.get(),
            ..Sum::default()
        };
        if let Some(stacks) = site.stacks.get() {
            sum.stacks_taken = stacks.taken();
            sum.looks = (stacks.all().calls.get(), stacks.all().ticks.get());
            for stack in stacks.known() {
                let weight = (stack.hits.get(), stack.weight.calls.get(), stack.weight.ticks.get());
                let frames = stack.frames().map(|frame| map.lasting(frame)).collect();
                let stacks = BTreeMap::from([(frames, weight)]);
                sum.add(Sum { stacks, ..Sum::default() });
            }
        }
        self.add(sum);
    }

    fn add(&mut self, other: Sum) {
        self.timed += other.timed;
        self.ticks += other.ticks;
        self.others += other.others;
        self.other_ticks += other.other_ticks;
        self.others_variance += other.others_variance;
        self.variance += other.variance;
        self.covariance += other.covariance;
        self.squares += other.squares;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.other_bytes += other.other_bytes;
        self.max = self.max.max(other.max);
        self.stacks_taken += other.stacks_taken;
        self.looks.0 += other.looks.0;
        self.looks.1 += other.looks.1;
        for (frames, (hits, calls, ticks)) in other.stacks {
            let known = self.stacks.entry(frames).or_default();
            known.0 += hits;
            known.1 += calls;
            known.2 += ticks;
        }
    }
}

/// All sites of all threads, by function and address.
fn sums(map: &Map) -> BTreeMap<(usize, usize), Sum> {
    let mut sums: BTreeMap<(usize, usize), Sum> = BTreeMap::new();
    ledger::each(|ledger| {
        for site in ledger.sites.get().iter().flat_map(|sites| sites.known()) {
            let number = |word: &Counter| usize::try_from(word.get()).unwrap_or(0);
            let key = (number(&site.function), map.lasting(number(&site.address)));
            if key.0 != NO_FUNCTION.0 && site.sum.timed.get() > 0 {
                sums.entry(key).or_default().add_site(site, map);
            }
        }
    });
    // Threads may have different ones.
    let mut by_time: Vec<_> =
        sums.iter().map(|(key, sum)| (sum.ticks + sum.other_ticks, *key)).collect();
    sort_by(&mut by_time, |one, other| other.0.total_cmp(&one.0));
    for (_, key) in by_time.iter().filter(|(_, key)| key.1 != ELSEWHERE).skip(SITES_AT_MOST) {
        if let Some(sum) = sums.remove(key) {
            let elsewhere = sums.entry((key.0, ELSEWHERE)).or_default();
            elsewhere.add(Sum { stacks: BTreeMap::new(), ..sum });
        }
    }
    sums
}

/// The sites in the form of the profile; `calls` are its entries for the functions. `ends`: at the end, since
/// looking up names of code that is in no file would take too long while the program runs.
pub(crate) fn described(calls: &[Call], ends: bool) -> Option<SitesOfProfile> {
    let map = Map::now();
    let sums = sums(&map);
    let mut places = Places::new(map);
    let mut sites: Vec<SiteOfProfile> = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<(usize, &Sum)>> = BTreeMap::new();
    for ((function, address), sum) in &sums {
        let name = ledger::row(Function(*function)).map_or("", |row| row.name);
        by_name.entry(name).or_default().push((*address, sum));
    }
    for call in calls {
        if let Some(sums) = by_name.get(call.name.as_str()) {
            sites.extend(of_call(call, sums, &mut places));
        }
    }
    sort_by(&mut sites, |one, other| other.time_s.total_cmp(&one.time_s));
    let Places { map, mut addresses, .. } = places;
    let is_nameless = |code: &CodeAddress| code.object.is_none() && code.name.is_none();
    let is_made = addresses.iter().any(is_nameless);
    if let Some(names) = (ends && is_made).then(Names::read).flatten() {
        for code in addresses.iter_mut().filter(|code| is_nameless(code)) {
            code.name = names.name_at(code.address).map(str::to_owned);
        }
    }
    (!sites.is_empty()).then(|| SitesOfProfile { sites, addresses, load_map: map.used() })
}

/// The addresses of a profile, each once.
pub(crate) struct Places {
    map: Map,
    known: BTreeMap<usize, usize>,
    addresses: Vec<CodeAddress>,
}

impl Places {
    pub(crate) fn new(map: Map) -> Places {
        Places { map, known: BTreeMap::new(), addresses: Vec::new() }
    }

    /// The addresses, and the objects that they are in.
    pub(crate) fn into_used(self) -> (Vec<CodeAddress>, Vec<LoadedObject>) {
        (self.addresses, self.map.used())
    }

    /// Its index among the addresses.
    pub(crate) fn at(&mut self, address: usize) -> usize {
        *self.known.entry(address).or_insert_with(|| {
            let found = self.map.address(address);
            let name = scripts::name(address);
            let code = CodeAddress { object: found.object, address: found.address, name };
            self.addresses.push(code);
            self.addresses.len() - 1
        })
    }
}

/// The sites of one function, whose entry in the profile is `call`.
fn of_call(call: &Call, sums: &[(usize, &Sum)], places: &mut Places) -> Vec<SiteOfProfile> {
    let Some(time_s) = call.time_s else { return Vec::new() };
    let certain: Vec<(f64, f64)> =
        sums.iter().map(|(_, sum)| (sum.timed as f64, sum.others)).collect();
    let calls = whole(&shared(call.count as f64, &certain));
    let seconds: Vec<(f64, f64)> = sums
        .iter()
        .map(|(_, sum)| (clock::seconds(sum.ticks), clock::seconds(sum.other_ticks)))
        .collect();
    let seconds = shared(time_s, &seconds);
    let bytes = call.bytes.map(|bytes| {
        let moved = sums.iter().map(|(_, sum)| (sum.bytes as f64, sum.other_bytes));
        whole(&shared(bytes as f64, &moved.collect::<Vec<_>>()))
    });
    let mut all = Sum::default();
    for (_, sum) in sums {
        all.add(Sum { stacks: BTreeMap::new(), ..(*sum).clone() });
    }
    let is_exact = all.timed >= call.count;
    let mean = clock::ticks(time_s) / call.count.max(1) as f64;
    let rows = sums.iter().zip(calls).zip(seconds).enumerate();
    rows.map(|(at, (((address, sum), calls), time_s))| {
        let (calls_error, time_error_s) = if is_exact {
            (Some(0.0), Some(0.0))
        } else {
            (sum.calls_error(&all), sum.time_error_s(&all, mean, call.time_error_s))
        };
        SiteOfProfile {
            function: call.name.clone(),
            call: (*address != ELSEWHERE).then(|| places.at(*address)),
            calls,
            calls_error,
            timed: sum.timed,
            time_s,
            time_error_s,
            time_max_s: clock::seconds(sum.max),
            bytes: bytes.as_ref().and_then(|bytes| bytes.get(at)).copied(),
            stacks_taken: sum.stacks_taken,
            stacks: sum.stacks(calls, time_s, places),
        }
    })
    .collect()
}

impl Sum {
    /// The standard error of the number of calls, given the known number in `all` sites: that of a share, from
    /// what each call adds to the difference from it (Cochran 1977, 6.3).
    fn calls_error(&self, all: &Sum) -> Option<f64> {
        let share = part(self.others, all.others);
        let elsewhere = all.others_variance - self.others_variance;
        let other = 1.0 - share;
        let variance = self.others_variance * other * other + elsewhere.max(0.0) * share * share;
        (all.timed as f64 >= ENOUGH).then(|| variance.sqrt())
    }

    /// The standard error of the time, given the function's error `of_function` and the average of `mean` ticks
    /// per call. The function's error is estimated from the differences of its calls from their mean. For a
    /// site with a share of the function, each call therefore contributes its time if it belongs to the site,
    /// minus that share of the mean.
    fn time_error_s(&self, all: &Sum, mean: f64, of_function: Option<f64>) -> Option<f64> {
        let share = part(self.other_ticks, all.other_ticks);
        let expected = share * mean;
        let own = self.variance - 2.0 * expected * self.covariance;
        let variance = (own + expected * expected * all.others_variance).max(0.0);
        let effective = self.variance * self.variance / self.squares;
        let of_function = share * of_function?;
        // With one site there is nothing to share. This also excludes an `effective` that is NaN.
        if share >= 1.0 {
            return Some(of_function);
        }
        (effective >= ENOUGH)
            .then(|| clock::seconds(variance.sqrt() * (1.0 + 1.5 / effective)).max(of_function))
    }

    /// The stacks, those with the most time first, each with its share of the calls and the time.
    fn stacks(&self, calls: u64, time_s: f64, places: &mut Places) -> Vec<SiteStack> {
        let mut stacks: Vec<_> = self.stacks.iter().collect();
        sort_by(&mut stacks, |(_, one), (_, other)| other.2.total_cmp(&one.2));
        stacks.truncate(stacks::STACKS);
        let of_calls = stacks.iter().map(|(_, of)| calls as f64 * part(of.1, self.looks.0));
        let of_calls = whole(&of_calls.collect::<Vec<_>>());
        let stacks = stacks.into_iter().zip(of_calls);
        let stacks = stacks.map(|((frames, (hits, _, ticks)), calls)| SiteStack {
            hits: *hits,
            calls,
            time_s: time_s * part(*ticks, self.looks.1),
            frames: frames.iter().map(|frame| places.at(*frame)).collect(),
        });
        stacks.collect()
    }
}

fn part(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

/// Divides `total` between sites: each has a certain amount, and a part of the rest in proportion to an
/// estimate.
fn shared(total: f64, sites: &[(f64, f64)]) -> Vec<f64> {
    let certain: f64 = sites.iter().map(|(certain, _)| certain).sum();
    let rest: f64 = sites.iter().map(|(_, rest)| rest).sum();
    let of_site = |(own, estimate): &(f64, f64)| {
        if total >= certain && rest > 0.0 {
            own + (total - certain) * estimate / rest
        } else if certain > 0.0 {
            total * own / certain
        } else {
            total / sites.len() as f64
        }
    };
    sites.iter().map(of_site).collect()
}

/// Rounds to whole numbers with the same sum; none is rounded to below its integer part.
fn whole(numbers: &[f64]) -> Vec<u64> {
    let (mut sum, mut before) = (0.0, 0);
    let next = |number: &f64| {
        sum += number;
        let now = clock::whole(f64::round(sum));
        now - std::mem::replace(&mut before, now)
    };
    numbers.iter().map(next).collect()
}

#[cfg(test)]
impl super::Sites {
    /// The sites of a function whose entry in the profile is `call`, by address.
    pub(crate) fn described(&self, call: &Call) -> Vec<SiteOfProfile> {
        let mut sums: BTreeMap<usize, Sum> = BTreeMap::new();
        let map = Map::now();
        for site in self.known() {
            let address = usize::try_from(site.address.get()).unwrap();
            sums.entry(address).or_default().add_site(site, &map);
        }
        let sums: Vec<(usize, &Sum)> = sums.iter().map(|(address, sum)| (*address, sum)).collect();
        let mut places = Places { map: Map::now(), known: BTreeMap::new(), addresses: Vec::new() };
        of_call(call, &sums, &mut places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::sites::Sites;
    use crate::mpi::functions::point_to_point::MPI_Recv;

    #[test]
    fn what_is_shared_adds_up_and_nobody_gets_less_than_is_sure() {
        let sites = [(3.0, 0.4), (0.0, 7.1), (5.0, 0.0)];
        let parts = shared(20.0, &sites);
        assert!((parts.iter().sum::<f64>() - 20.0).abs() < 1e-12, "{parts:?}");
        assert!(parts.iter().zip(sites).all(|(part, (sure, _))| *part >= sure), "{parts:?}");
        let numbers = whole(&parts);
        assert_eq!(numbers.iter().sum::<u64>(), 20);
        assert!(numbers.iter().zip(sites).all(|(part, (sure, _))| *part as f64 >= sure));
        // Less than the certain amounts, because what was timed while gyan was switched off does not count.
        let parts = shared(4.0, &sites);
        assert!((parts.iter().sum::<f64>() - 4.0).abs() < 1e-12, "{parts:?}");
        // Only calls that took no time were timed.
        assert_eq!(shared(6.0, &[(0.0, 0.0), (0.0, 0.0)]), [3.0, 3.0]);
        assert_eq!(shared(1.0, &[]), [0.0; 0]);
    }

    #[test]
    fn with_every_call_timed_a_site_has_what_it_had() {
        let sites = Sites::leaked();
        for _ in 0..3 {
            sites.take((MPI_Recv, 5), clock::ticks(1e-6), 1.0);
        }
        sites.take((MPI_Recv, 6), clock::ticks(7e-6), 1.0);
        let call = Call { count: 4, timed: 4, time_s: Some(10e-6), ..Call::default() };
        let found = sites.described(&call);
        let known: Vec<_> = found.iter().map(|site| (site.calls, site.calls_error)).collect();
        assert_eq!(known, [(3, Some(0.0)), (1, Some(0.0))]);
        assert!((found[0].time_s - 3e-6).abs() < 1e-12, "{found:?}");
    }
}
