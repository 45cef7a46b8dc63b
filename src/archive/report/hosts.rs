//! Which hosts are late more often than by chance? The time outside MPI of a host among the hosts of the same job.
//!
//! On equal hosts, every order of these times is equally likely, whatever the program does: so the rank of a host in each of its
//! jobs is a test that assumes nothing of programs. The first host of a job is left out, as it often has more to do. A host may
//! have become slow on any day: the clearest one is taken, and p is that of all days together.

use std::collections::{HashMap, HashSet};

use gyan_results::{RECORD_HOSTS, SlowHost};
use rayon::prelude::*;

use crate::archive::data_set::ArchiveTable;
use crate::archive::days::name_of_day;
use crate::archive::report::{FALSE_SHARE, LEAST_CHANGE, score_variance};
use crate::archive::scan::{Columns, TableFile, Wanted, read, table_files};
use crate::archive::store::Store;
use crate::error::Error;
use crate::statistics::{benjamini_hochberg, middle, upper_tail};

/// With fewer jobs nothing is said of a host.
const JOBS_AT_LEAST: usize = 20;
/// A host that was slow within so many days of its first job was so from the beginning.
const BEGINNING: i32 = 7;

#[derive(Clone, Copy, Debug)]
struct HostPlace {
    day: i32,
    /// From -0.5 for the earliest host of a job to 0.5 for the latest: 0 on average for equal hosts.
    score: f32,
    /// What its square is on average.
    variance: f32,
    /// Its time as a multiple of the median of the others; NaN where the record has only hosts that differ most.
    ratio: f32,
}

type HostPlaces = HashMap<String, Vec<HostPlace>>;

/// How many hosts were judged, and those that are slow. `selected`: the jobs that count; none for all.
pub(super) fn slow(
    store: &dyn Store,
    days: [i32; 2],
    selected: Option<&HashSet<u128>>,
) -> Result<(usize, Vec<SlowHost>), Error> {
    let wanted = [Wanted::Text("id"), Wanted::Text("host"), Wanted::Number("own_relative")];
    let of_file = |file: &TableFile| -> Result<Vec<(String, Vec<HostPlace>)>, Error> {
        Ok(places(file.day, &read(store, &file.path, &wanted)?, selected))
    };
    let files = table_files(store, ArchiveTable::Hosts, days)?;
    let of_files: Vec<_> = files.par_iter().map(of_file).collect::<Result<_, _>>()?;
    let mut hosts = HostPlaces::new();
    for (host, mut places) in of_files.into_iter().flatten() {
        hosts.entry(host).or_default().append(&mut places);
    }
    hosts.retain(|_, places| places.len() >= JOBS_AT_LEAST);
    let mut judged: Vec<(String, Vec<HostPlace>)> = hosts.into_iter().collect();
    judged.sort_by(|(one, _), (other, _)| one.cmp(other));
    let clearest: Vec<(usize, f64)> = judged.par_iter().map(|(_, of)| clearest_day(of)).collect();
    let p: Vec<f64> = clearest.iter().map(|(_, p)| *p).collect();
    let slow = judged.iter().zip(&clearest).zip(benjamini_hochberg(&p));
    let slow = slow.filter(|(_, p)| *p < FALSE_SHARE);
    let mut slow: Vec<SlowHost> =
        slow.filter_map(|(((host, places), (at, _)), p)| slow_host(host, places, *at, p)).collect();
    slow.sort_by(|one, other| other.ratio.total_cmp(&one.ratio));
    Ok((judged.len(), slow))
}

/// The places of each host in the jobs of a file.
fn places(
    day: i32,
    columns: &Columns,
    selected: Option<&HashSet<u128>>,
) -> Vec<(String, Vec<HostPlace>)> {
    let ([ids, hosts], [relative]) = (&columns.texts[..], &columns.numbers[..]) else {
        return Vec::new();
    };
    let mut of_hosts: Vec<Vec<HostPlace>> = vec![Vec::new(); hosts.names.len()];
    let (mut sorted, mut begin) = (Vec::new(), 0);
    for of_job in ids.codes.chunk_by(|one, other| one == other) {
        let rows = begin..begin + of_job.len();
        begin = rows.end;
        let is_selected = selected.is_none_or(|selected| {
            let id = ids.text(rows.start).and_then(|id| u128::from_str_radix(id, 16).ok());
            id.is_some_and(|id| selected.contains(&id))
        });
        if rows.len() < 3 || !is_selected {
            continue;
        }
        let is_whole = rows.len() < RECORD_HOSTS;
        sorted.clear();
        sorted.extend(rows.skip(1).filter(|row| !relative[*row].is_nan()));
        sorted.sort_by(|one, other| relative[*one].total_cmp(&relative[*other]));
        let number = sorted.len() as f64;
        if number < 2.0 {
            continue;
        }
        let values: Vec<f64> = sorted.iter().map(|row| relative[*row]).collect();
        let variance = score_variance(number);
        let mut at = 0;
        for equal in values.chunk_by(|one, other| one.total_cmp(other).is_eq()) {
            let score = (at as f64 + equal.len() as f64 / 2.0) / number - 0.5;
            for _ in equal {
                let others = if is_whole { median_without(&values, at) } else { f64::NAN };
                let Some(of_host) = of_hosts.get_mut(hosts.codes[sorted[at]] as usize) else {
                    continue;
                };
                // Seven digits are more than are shown.
                #[allow(clippy::cast_possible_truncation)]
                of_host.push(HostPlace {
                    day,
                    score: score as f32,
                    variance: variance as f32,
                    ratio: (values[at] / others) as f32,
                });
                at += 1;
            }
        }
    }
    hosts.names.iter().cloned().zip(of_hosts).filter(|(_, of)| !of.is_empty()).collect()
}

fn median_without(sorted: &[f64], without: usize) -> f64 {
    let at = |place: usize| sorted[if place < without { place } else { place + 1 }];
    let number = sorted.len() - 1;
    if number % 2 == 1 { at(number / 2) } else { f64::midpoint(at(number / 2 - 1), at(number / 2)) }
}

/// The first place of the day since which the scores are clearest above 0, and the probability of scores as clear as that since any
/// day, for a host like the others. The places are in the order of their days.
fn clearest_day(places: &[HostPlace]) -> (usize, f64) {
    let (mut score, mut variance, mut best, mut days) = (0.0, 0.0, (0, 0.0_f64), 0);
    for at in (0..places.len()).rev() {
        score += f64::from(places[at].score);
        variance += f64::from(places[at].variance);
        let begins = at == 0 || places[at - 1].day < places[at].day;
        if begins && places.len() - at >= JOBS_AT_LEAST {
            days += 1;
            let z = score / variance.sqrt();
            if z > best.1 {
                best = (at, z);
            }
        }
    }
    (best.0, (upper_tail(best.1) * f64::from(days)).min(1.0))
}

/// None when the host is too little slower than the others to matter.
fn slow_host(host: &str, places: &[HostPlace], since: usize, p: f64) -> Option<SlowHost> {
    let slow = &places[since..];
    let mut ratios: Vec<f64> =
        slow.iter().map(|of| f64::from(of.ratio)).filter(|of| !of.is_nan()).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = middle(&ratios)?;
    // The numbers at a standard deviation of the place of the median to both sides: whatever the distribution.
    let number = ratios.len() as f64;
    // Between 0 and the number of jobs.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let place = |at: f64| (at.max(0.0) as usize).min(ratios.len() - 1);
    let [low, high] =
        [-1.0, 1.0].map(|side| ratios[place(f64::midpoint(number, side * number.sqrt()))]);
    let error = (high - low) / 2.0;
    let first = places.first()?.day;
    (ratio - 1.0 >= LEAST_CHANGE && ratio - 1.0 > 2.0 * error).then(|| SlowHost {
        host: host.to_owned(),
        since: name_of_day(slow[0].day),
        is_from_the_beginning: slow[0].day - first < BEGINNING,
        ratio,
        error,
        p,
        jobs: slow.len() as u64,
        jobs_late: slow.iter().filter(|of| of.score > 0.0).count() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::scan::Texts;

    #[test]
    fn a_median_leaves_out_one() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        let is = |sorted: &[f64], at, median: f64| {
            let found = median_without(sorted, at);
            assert!((found - median).abs() < 1e-12, "{found} instead of {median}");
        };
        for (at, median) in [4.0, 4.0, 2.0, 2.0].into_iter().enumerate() {
            is(&sorted, at, median);
        }
        is(&[1.0, 3.0, 5.0], 1, 3.0);
    }

    /// Hosts whose times in each job are by chance, with one that is slower from a day on.
    fn made_up(slow: f64, since: i32) -> Vec<(String, Vec<HostPlace>)> {
        let mut dice = fastrand::Rng::with_seed(7);
        let mut all = HostPlaces::new();
        for day in 0..60 {
            let mut columns = Columns {
                rows: 0,
                texts: vec![Texts::default(), Texts::default()],
                numbers: vec![Vec::new()],
            };
            columns.texts[1].names = (0..50).map(|host| format!("n{host}")).collect();
            for job in 0..20 {
                let first = dice.u32(0..40);
                for host in first..first + 10 {
                    let is_slow = host == 17 && day >= since;
                    // A long tail, and more work for the first host.
                    let scatter = 0.01 * dice.f64().powi(3) + if host == first { 0.1 } else { 0.0 };
                    columns.texts[0].codes.push(job);
                    columns.texts[1].codes.push(host);
                    columns.numbers[0]
                        .push((1.0 + scatter) * if is_slow { 1.0 + slow } else { 1.0 });
                }
            }
            for (host, mut of) in places(day, &columns, None) {
                all.entry(host).or_default().append(&mut of);
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    #[test]
    fn a_slow_host_is_named_with_its_day() {
        let hosts = made_up(0.02, 33);
        for (host, places) in &hosts {
            let (at, p) = clearest_day(places);
            assert_eq!(p < 1e-6, host == "n17", "{host}: {p}");
            if host == "n17" {
                let slow = slow_host(host, places, at, p).unwrap();
                assert!((slow.ratio - 1.02).abs() < 0.002, "{slow:?}");
                assert!(["1970-02-03", "1970-02-04"].contains(&slow.since.as_str()), "{slow:?}");
            }
        }
    }

    #[test]
    fn equal_hosts_are_slow_as_seldom_as_p_says() {
        let hosts = made_up(0.0, 0);
        let small = hosts.iter().filter(|(_, places)| clearest_day(places).1 < 0.01).count();
        assert!(small <= 2, "{small} of {}", hosts.len());
    }
}
