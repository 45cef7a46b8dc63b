//! Threads whose truth is known: each has intervals of its own on one clock, of which the truth is added up. What a profile
//! has is counted apart from that, region by region.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{call, close, found, one, rank, reduced, with};
use crate::findings::efficiencies;

#[derive(Clone, Copy, Eq, PartialEq)]
enum Doing {
    Work,
    InMpi,
    Nothing,
}

/// What a thread does in an interval, and whether in a region.
type Interval = (f64, f64, Doing, bool);

/// A rank with its threads; thread 0 is the first one.
struct Team {
    threads: Vec<Vec<Interval>>,
    now: f64,
    openmp: Value,
}

impl Team {
    fn new(threads: usize) -> Team {
        let openmp = json!({
            "runtime": "LLVM OMP", "threads": threads, "elapsed_s": 0.0, "serial_s": 0.0, "serial_in_mpi_s": 0.0,
            "regions": [],
        });
        Team { threads: vec![Vec::new(); threads], now: 0.0, openmp }
    }

    fn alone(&mut self, seconds: f64, doing: Doing) {
        let end = self.now + seconds;
        self.threads[0].push((self.now, end, doing, false));
        self.now = end;
        let field = if doing == Doing::InMpi { "serial_in_mpi_s" } else { "serial_s" };
        self.openmp[field] = json!(self.openmp[field].as_f64().unwrap() + seconds);
    }

    /// A region with one entry, in which each thread works so long; it takes `more` to start and end it.
    fn region(&mut self, work: &[f64], in_mpi_s: f64, more: f64) {
        let busy = |thread: usize| work[thread] + if thread == 0 { in_mpi_s } else { 0.0 };
        let longest = (0..work.len()).map(busy).fold(0.0, f64::max);
        for (thread, intervals) in self.threads.iter_mut().enumerate() {
            let (begin, mut at) = (self.now, self.now + more / 2.0);
            intervals.push((begin, at, Doing::Nothing, true));
            for (seconds, doing) in [
                (work[thread], Doing::Work),
                (busy(thread) - work[thread], Doing::InMpi),
                (longest - busy(thread) + more / 2.0, Doing::Nothing),
            ] {
                intervals.push((at, at + seconds, doing, true));
                at += seconds;
            }
        }
        self.now += longest + more;
        let all: f64 = work.iter().sum();
        let capacity = (longest + more) * work.len() as f64;
        self.openmp["regions"].as_array_mut().unwrap().push(json!({
            "place": null, "entries": 1, "timed": 1, "threads": work.len(), "time_s": longest + more, "time_error_s": 0.0,
            "work_s": all, "most_work_s": work.iter().copied().fold(0.0, f64::max),
            "barrier_s": capacity - all - in_mpi_s, "in_mpi_s": in_mpi_s,
        }));
    }

    /// Regions of the same place are one row.
    fn profile(mut self, number: u32, size: u32, whole_s: f64) -> Value {
        let regions = self.openmp["regions"].as_array().unwrap().clone();
        if let Some((first, rest)) = regions.split_first() {
            let mut all = first.clone();
            for region in rest {
                for field in ["entries", "timed"] {
                    all[field] =
                        json!(all[field].as_u64().unwrap() + region[field].as_u64().unwrap());
                }
                for field in ["time_s", "work_s", "most_work_s", "barrier_s", "in_mpi_s"] {
                    all[field] =
                        json!(all[field].as_f64().unwrap() + region[field].as_f64().unwrap());
                }
            }
            self.openmp["regions"] = json!([all]);
        }
        self.openmp["elapsed_s"] = json!(self.now);
        let in_mpi_s: f64 =
            self.threads[0].iter().filter(|of| of.2 == Doing::InMpi).map(length).sum();
        let wait_s = whole_s - self.now + in_mpi_s;
        let profile = rank(number, size, whole_s, &[call("MPI_Allreduce", 10, wait_s)]);
        with(profile, "openmp", self.openmp)
    }
}

fn length(of: &Interval) -> f64 {
    of.1 - of.0
}

/// Seconds in which a thread works, is in MPI, is idle while the first one works or is in MPI outside of regions, and is idle in regions.
fn truth(team: &Team) -> [f64; 5] {
    let mut truth = [0.0; 5];
    let outside = team.threads[0].iter().filter(|of| !of.3);
    for intervals in &team.threads {
        for of in intervals {
            match of.2 {
                Doing::Work => truth[0] += length(of),
                Doing::InMpi => truth[1] += length(of),
                Doing::Nothing => truth[4] += length(of),
            }
        }
    }
    for thread in &team.threads[1..] {
        for first in outside.clone() {
            let busy: f64 =
                thread.iter().map(|of| (of.1.min(first.1) - of.0.max(first.0)).max(0.0)).sum();
            truth[if first.2 == Doing::Work { 2 } else { 3 }] += length(first) - busy;
        }
    }
    truth
}

#[test]
fn the_efficiencies_of_threads_are_those_of_their_intervals() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let threads = random.usize(2..9);
        let mut teams: Vec<Team> = (0..random.u32(1..4)).map(|_| Team::new(threads)).collect();
        let mut uneven = 0.0;
        for team in &mut teams {
            for _ in 0..random.usize(1..12) {
                team.alone(random.f64(), Doing::Work);
                team.alone(random.f64(), Doing::InMpi);
                let work: Vec<f64> = (0..threads).map(|_| 3.0 * random.f64()).collect();
                let most = work.iter().copied().fold(0.0, f64::max);
                uneven += work.iter().map(|own| most - own).sum::<f64>();
                team.region(&work, 0.0, random.f64());
            }
        }
        let whole_s = teams.iter().map(|team| team.now).fold(0.0, f64::max);
        let capacity = whole_s * (threads * teams.len()) as f64;
        let [useful, _, serial, _, idle] = teams
            .iter()
            .map(truth)
            .fold([0.0; 5], |all, of| std::array::from_fn(|at| all[at] + of[at]));
        let size = u32::try_from(teams.len()).unwrap();
        let profiles = (0..).zip(teams).map(|(at, team)| team.profile(at, size, whole_s));
        let of = efficiencies(&reduced(&profiles.collect::<Vec<_>>())).unwrap().hybrid.unwrap();
        let left = useful + serial + idle;
        for (known, expected) in [
            (of.parallel, useful / capacity),
            (of.mpi, left / capacity),
            (of.openmp, useful / left),
            (of.mpi * of.openmp, of.parallel),
            (of.serialisation * of.load_balance * of.scheduling, of.openmp),
            (of.lost()[0], serial / capacity),
            (of.lost()[1], uneven / capacity),
            (of.lost()[2], (idle - uneven) / capacity),
            (of.lost()[3], 1.0 - left / capacity),
        ] {
            assert!((known - expected).abs() < 1e-9, "{seed}: {known} for {expected}: {of:?}");
        }
    }
}

/// Two ranks whose threads each work so long in a region, after so much serial work and so much in MPI.
fn two(serial_s: f64, in_mpi_s: f64, work: &[f64], more: f64) -> Vec<Value> {
    let team = || {
        let mut team = Team::new(work.len());
        team.alone(serial_s, Doing::Work);
        team.alone(in_mpi_s, Doing::InMpi);
        team.region(work, 0.0, more);
        team
    };
    let whole_s = team().now;
    (0..2).map(|at| team().profile(at, 2, whole_s)).collect()
}

#[test]
fn serial_code_is_at_stake_as_far_as_threads_could_share_it() {
    // Each rank is serial for 4 of 10 s: four threads would take 1 s.
    let findings = found(&two(4.0, 0.0, &[6.0; 4], 0.0));
    close(one(&findings, "serial-code").at_stake_s, 2.0 * 3.0);
    assert!(findings.iter().all(|of| of.id != "openmp-imbalance"));
    let healthy = found(&two(0.05, 0.0, &[6.0; 4], 0.0));
    assert!(healthy.iter().all(|of| of.id != "serial-code"), "{healthy:#?}");
}

#[test]
fn a_region_with_uneven_threads_is_found() {
    // 8, 4, 4 and 4 s: evenly it would take 5 s.
    let findings = found(&two(0.0, 1.0, &[8.0, 4.0, 4.0, 4.0], 0.0));
    let finding = one(&findings, "openmp-imbalance");
    close(finding.at_stake_s, 2.0 * 3.0);
    close(Some(finding.evidence[1].value), 12.0 / 32.0);
    let healthy = found(&two(0.0, 1.0, &[5.0; 4], 0.0));
    assert!(healthy.iter().all(|of| of.id != "openmp-imbalance"), "{healthy:#?}");
}

/// The same with so many entries of the region on each rank.
fn entered(mut ranks: Vec<Value>, entries: u32) -> Vec<Value> {
    for rank in &mut ranks {
        rank["openmp"]["regions"][0]["entries"] = json!(entries);
    }
    ranks
}

#[test]
fn a_region_that_is_mostly_its_own_start_and_end_is_found() {
    let has = |ranks: &[Value]| found(ranks).iter().any(|of| of.id == "short-regions");
    // Of 10 s, 3 s are spent in 100,001 starts and ends, of which gyan may have taken 0.1 s.
    let short = |more_s: f64| two(0.0, 0.0, &[10.0 - more_s; 4], more_s);
    let findings = found(&entered(short(3.0), 100_001));
    let finding = one(&findings, "short-regions");
    close(finding.at_stake_s, 2.0 * 2.9);
    close(Some(finding.evidence[1].value), 100e-6);
    close(Some(finding.evidence[2].value), 29e-6);
    assert!(finding.title.contains("29.0 µs of its 100 µs: 29 %"), "{}", finding.title);
    // Each takes so long that threads may sleep in between.
    assert_eq!(finding.advice[0].command.as_deref(), Some("OMP_WAIT_POLICY=active"));
    let awake = found(&entered(short(2.21), 200_000));
    assert_eq!(one(&awake, "short-regions").advice.len(), finding.advice.len() - 1);
    // Of 100 us it is no short one, nor where less than a fifth goes to start and end.
    assert!(!has(&entered(short(3.0), 100_000)));
    assert!(has(&entered(short(2.21), 200_000)) && !has(&entered(short(2.19), 200_000)));
    // Time in MPI is not that of the region.
    let mut in_mpi = entered(short(3.0), 200_000);
    for rank in &mut in_mpi {
        rank["openmp"]["regions"][0]["in_mpi_s"] = json!(0.81);
    }
    assert!(!has(&in_mpi));
}

#[test]
fn threads_that_are_idle_while_one_is_in_mpi_are_found() {
    let of = |work_s: f64, in_mpi_s: f64| found(&two(0.0, in_mpi_s, &[work_s; 4], 0.0));
    // Of 4 s in MPI, 6 s of work for each of 4 threads: three could work meanwhile, so that 7 s would do.
    let findings = of(6.0, 4.0);
    let finding = one(&findings, "threads-wait-for-mpi");
    close(finding.at_stake_s, 2.0 * 3.0);
    close(Some(finding.evidence[2].value), 2.0 * 12.0);
    assert_eq!(finding.functions, ["MPI_Allreduce"]);
    assert!(
        finding.title.ends_with("MPI_Allreduce: 30 % of the threads' time"),
        "{}",
        finding.title
    );
    // There is no more to gain than there is work.
    let finding_of_little = of(2.0, 8.0);
    close(one(&finding_of_little, "threads-wait-for-mpi").at_stake_s, 2.0 * 2.0);
    // Three of four threads are idle for 5 % of the time.
    let has =
        |findings: &[super::Finding]| findings.iter().any(|of| of.id == "threads-wait-for-mpi");
    assert!(has(&of(9.33, 0.67)) && !has(&of(9.34, 0.66)));
    // Of the 4 s, MPI takes 3.4 s to start.
    let mut slow_start = two(0.0, 4.0, &[6.0; 4], 0.0);
    for rank in &mut slow_start {
        rank["calls"] = json!([call("MPI_Allreduce", 10, 0.6), call("MPI_Init", 1, 3.4)]);
    }
    assert!(!has(&found(&slow_start)));
}

#[test]
fn what_is_not_known_of_every_rank_or_region_is_not_said() {
    let hybrid = |ranks: &[Value]| efficiencies(&reduced(ranks)).unwrap().hybrid;
    let mut ranks = two(1.0, 1.0, &[5.0; 4], 0.0);
    assert!(hybrid(&ranks).is_some());
    let mut vague = ranks.clone();
    vague[1]["openmp"]["regions"][0]["time_error_s"] = Value::Null;
    assert!(hybrid(&vague).is_none());
    vague[1]["openmp"]["regions"][0]["time_error_s"] = json!(0.07);
    close(hybrid(&vague).unwrap().parallel_error, 0.07 * 4.0 / 56.0);
    ranks[1].as_object_mut().unwrap().remove("openmp");
    assert!(hybrid(&ranks).is_none());
    // No region was parallel.
    assert!(hybrid(&two(1.0, 1.0, &[5.0], 0.0)).is_none());
}
