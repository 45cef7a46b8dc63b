use super::*;
use crate::{
    Call, Class, Counts, Datatype, Element, End, InMpi, Measure, Phase, PhaseCounters, PhasePvar,
    Pvar, RANK_SCHEMA, Samples, StateShare, Values,
};

pub(super) fn profile(job: &str, rank: u32, size: u32) -> RankProfile {
    RankProfile {
        schema: RANK_SCHEMA.into(),
        tool: Tool::gyan(),
        job: Job {
            id: job.into(),
            command: vec!["./app".into()],
            started: format!("2026-01-31T10:00:0{}Z", job.len()),
            elapsed_s: 1.0 + f64::from(rank),
            ..Job::default()
        },
        rank,
        size,
        host: "n1".into(),
        pid: 100 + rank,
        mpi: Mpi {
            abi: "openmpi".into(),
            standard: "3.1".into(),
            library: "Open MPI v4.1.4".into(),
            library_path: "/usr/lib/libmpi.so.40".into(),
            thread_level: "MPI_THREAD_SINGLE".into(),
            ..Mpi::default()
        },
        end: End { how: Ending::Finalize, code: 0 },
        pvars: vec![Pvar {
            name: "messages".into(),
            class: Class::Counter,
            behaves_as: None,
            datatype: Datatype::UnsignedLong,
            bind: None,
            object: None,
            verbosity: "USER_BASIC".into(),
            continuous: true,
            readonly: true,
            atomic: false,
            count: 1,
            start: Some(Values::Elements(vec![Number::Integer(5)])),
            end: Some(Values::Elements(vec![Number::Integer(5 + i128::from(rank))])),
            delta: Some(Values::Elements(vec![Number::Integer(rank.into())])),
            samples: None,
            notes: Vec::new(),
            also: String::new(),
        }],
        calls: vec![Call { name: "MPI_Recv".into(), count: 10, ..Call::default() }],
        ..RankProfile::default()
    }
}

fn reduce(profiles: Vec<RankProfile>) -> Summary {
    let mut reduction = Reduction::default();
    for profile in profiles {
        reduction.add(&format!("rank-{}", profile.rank), &profile);
    }
    reduction.finish().unwrap()
}

#[test]
fn a_counter_is_reduced_by_its_difference() {
    let summary = reduce((0..4).map(|rank| profile("a", rank, 4)).collect());
    assert_eq!(summary.pvars.len(), 1);
    let row = &summary.pvars[0];
    assert_eq!((row.measure, row.element), (Measure::Delta, Element::Scalar));
    assert_eq!(row.statistic.min, Number::Integer(0));
    assert_eq!((row.statistic.max, row.statistic.max_rank), (Number::Integer(3), 3));
    assert_eq!(row.statistic.sum, Number::Integer(6));
    assert!(summary.ranks.is_complete());
    assert!((summary.job.elapsed_s - 4.0).abs() < 1e-12);
}

#[test]
fn a_function_that_a_rank_never_called_counts_as_zero_there() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let profiles = order.map(|rank| {
            let mut profile = profile("a", rank, 4);
            if rank != 2 {
                profile.calls.push(Call {
                    name: "MPI_Irecv".into(),
                    count: 4,
                    bytes: Some(32),
                    ..Call::default()
                });
            }
            if rank == 3 {
                profile.calls.push(Call { name: "MPI_Mrecv".into(), count: 1, ..Call::default() });
            }
            profile
        });
        let summary = reduce(profiles.into());
        let count =
            |name: &str| summary.calls.iter().find(|call| call.name == name).unwrap().count.clone();
        let irecv = count("MPI_Irecv");
        assert_eq!((irecv.ranks, irecv.min, irecv.min_rank), (4, Number::Integer(0), 2));
        let mrecv = count("MPI_Mrecv");
        assert_eq!((mrecv.ranks, mrecv.min, mrecv.min_rank), (4, Number::Integer(0), 0));
        assert_eq!((mrecv.max, mrecv.max_rank), (Number::Integer(1), 3));
    }
}

#[test]
fn merged_parts_equal_the_whole() {
    let profiles = || {
        (0..7).map(|rank| {
            let mut profile = profile("a", rank, 8);
            profile.calls = vec![call("MPI_Recv", 4, 2.0, 0.5)];
            let name = if rank % 2 == 0 { "even" } else { "odd" };
            let calls = if rank == 3 { vec![call("MPI_Send", 2, 1.0, 0.0)] } else { Vec::new() };
            profile.phases = vec![phase("step", calls), phase(name, Vec::new())];
            profile
        })
    };
    let whole = reduce(profiles().collect());
    for cut in 1..6 {
        let mut parts = [Reduction::default(), Reduction::default()];
        for profile in profiles() {
            let part = usize::from(profile.rank >= cut);
            parts[part].add(&format!("rank-{}", profile.rank), &profile);
        }
        let [first, mut second] = parts;
        second.merge(first);
        assert_eq!(second.finish().unwrap(), whole);
    }
    assert_eq!(whole.ranks.missing, [7]);
}

#[test]
fn of_two_jobs_the_latest_is_reduced_and_the_other_left_out() {
    let summary = reduce(vec![profile("newer", 0, 1), profile("old", 1, 2)]);
    assert_eq!(summary.job.id, "newer");
    assert_eq!(summary.ranks.left_out.len(), 1);
    assert_eq!(summary.ranks.left_out[0].file, "rank-1");
    assert!(summary.ranks.left_out[0].reason.contains("job old"));
}

#[test]
fn a_second_profile_of_a_rank_is_left_out() {
    let mut reduction = Reduction::default();
    reduction.add("rank-000000.json", &profile("a", 0, 1));
    reduction.add("copy.json", &profile("a", 0, 1));
    let summary = reduction.finish().unwrap();
    assert_eq!(summary.ranks.reduced, 1);
    assert_eq!(summary.ranks.left_out[0].file, "copy.json");
}

fn call(name: &str, count: u64, time_s: f64, time_error_s: f64) -> Call {
    Call {
        name: name.into(),
        count,
        timed: count / 2,
        time_s: Some(time_s),
        time_error_s: Some(time_error_s),
        time_max_s: Some(time_s / 4.0),
        time_histogram: vec![0, count],
        ..Call::default()
    }
}

fn phase(name: &str, calls: Vec<Call>) -> Phase {
    Phase {
        name: name.into(),
        entries: 2,
        time_s: 0.5,
        calls,
        stretches: 4,
        stretches_read: 3,
        pvars: Vec::new(),
        counters: Some(PhaseCounters {
            time_s: 0.25,
            counts: Some(Counts { instructions: 3000, cycles: 2000, cache_misses: Some(6) }),
            energy_j: Some(10.0),
        }),
    }
}

fn names(summary: &Summary) -> Vec<&str> {
    summary.phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-12
}

#[test]
fn standard_errors_of_ranks_add_up() {
    let profiles = [3.0, 4.0].into_iter().zip(0..).map(|(error, rank)| {
        let mut profile = profile("a", rank, 2);
        profile.calls = vec![call("MPI_Recv", 10, 8.0, error)];
        profile.in_mpi = Some(InMpi {
            time_s: 8.0,
            time_error_s: Some(error),
            share: 0.5,
            threads: 1,
            wall_s: None,
        });
        profile
    });
    let summary = reduce(profiles.collect());
    let call = &summary.calls[0];
    assert!(close(call.time_error_s.unwrap(), 7.0));
    assert_eq!(call.time_s.as_ref().unwrap().sum, Number::Double(16.0));
    assert_eq!((call.timed, call.time_histogram.as_slice()), (10, &[0, 20][..]));
    let in_mpi = summary.in_mpi.unwrap();
    assert!(close(in_mpi.time_error_s.unwrap(), 7.0) && close(in_mpi.share.avg, 0.5));
}

#[test]
fn a_rank_without_times_gives_none_and_a_rank_without_the_function_gives_zero() {
    let mut profiles: Vec<RankProfile> = (0..3).map(|rank| profile("a", rank, 3)).collect();
    profiles[0].calls = vec![call("MPI_Recv", 10, 8.0, 1.0)];
    profiles[2].calls = Vec::new();
    let summary = reduce(profiles);
    let time = summary.calls[0].time_s.as_ref().unwrap();
    assert_eq!((time.ranks, time.min.as_f64(), time.min_rank), (2, 0.0, 2));
    let longest = summary.calls[0].time_max_s.as_ref().unwrap();
    assert_eq!((longest.ranks, longest.min_rank), (1, 0));
    assert_eq!(summary.in_mpi, None);
    assert_eq!(summary.overhead.wrappers_s, None);
}

#[test]
fn a_time_without_an_error_leaves_the_sum_without_one() {
    let mut profiles: Vec<RankProfile> = (0..2).map(|rank| profile("a", rank, 2)).collect();
    for profile in &mut profiles {
        profile.calls = vec![call("MPI_Recv", 10, 8.0, 1.0)];
    }
    profiles[1].calls[0].time_error_s = None;
    let summary = reduce(profiles);
    assert_eq!(summary.calls[0].time_error_s, None);
    assert!(summary.calls[0].time_s.is_some());
}

#[test]
fn phases_keep_the_order_in_which_they_first_came() {
    let order = [["a", "b", "c"], ["a", "x", "c"]];
    for ranks in [[0, 1], [1, 0]] {
        let profiles = ranks.map(|rank: u32| {
            let mut profile = profile("a", rank, 2);
            let names = order[rank as usize];
            profile.phases = names.map(|name| phase(name, Vec::new())).into();
            profile
        });
        assert_eq!(names(&reduce(profiles.into())), ["a", "b", "x", "c"]);
    }
}

#[test]
fn a_rank_that_was_never_in_a_phase_counts_as_zero_there() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let profiles = order.map(|rank| {
            let mut profile = profile("a", rank, 3);
            if rank == 2 {
                profile.phases = vec![phase("step", vec![call("MPI_Recv", 4, 1.0, 0.0)])];
            }
            profile
        });
        let summary = reduce(profiles.into());
        let step = &summary.phases[0];
        assert_eq!((step.entries.ranks, step.entries.min_rank), (3, 0));
        assert!(close(step.time_s.sum.as_f64(), 0.5));
        let receives = &step.calls[0];
        assert_eq!((receives.count.ranks, receives.count.min_rank), (3, 0));
        assert_eq!((receives.count.max_rank, receives.time_s.as_ref().unwrap().ranks), (2, 3));
        assert_eq!((step.stretches, step.stretches_read), (4, 3));
        // What was counted is only of ranks that counted it; half of the time was.
        let [counted_s, ipc, misses, energy_j] =
            [&step.counted_s, &step.ipc, &step.misses_per_1000, &step.energy_j]
                .map(|of| of.as_ref().unwrap());
        assert_eq!((ipc.ranks, counted_s.ranks), (1, 1));
        assert!(close(counted_s.avg, 0.25) && close(ipc.avg, 1.5) && close(misses.avg, 2.0));
        assert!(close(energy_j.sum.as_f64(), 20.0));
    }
}

#[test]
fn a_variable_that_a_phase_does_not_name_grew_by_zero_where_it_was_read() {
    let grown = |by: i128| PhasePvar {
        name: "messages".into(),
        class: Class::Counter,
        behaves_as: None,
        object: None,
        delta: Some(Values::Elements(vec![Number::Integer(by)])),
        samples: None,
    };
    let profiles = (0..3).map(|rank| {
        let mut profile = profile("a", rank, 3);
        let mut step = phase("step", Vec::new());
        match rank {
            0 => step.pvars = vec![grown(6)],
            1 => {}
            _ => step.stretches_read = 0,
        }
        profile.phases = vec![step, phase("idle", Vec::new())];
        profile
    });
    let summary = reduce(profiles.collect());
    let row = &summary.phases[0].pvars[0];
    assert_eq!((row.statistic.ranks, row.statistic.min_rank), (2, 1));
    assert!(close(row.statistic.avg, 3.0));
    assert_eq!(summary.phases[1].pvars, [], "0 on every rank");
}

#[test]
fn samples_add_up_and_a_state_that_a_rank_never_had_counts_as_zero() {
    let profiles = (0..2).map(|rank| {
        let mut profile = profile("a", rank, 2);
        let share = |state: &str, share| StateShare { state: state.into(), share };
        profile.pvars[0].class = Class::State;
        profile.pvars[0].samples = Some(Samples {
            n: 4,
            histogram: vec![3, 1],
            states: match rank {
                0 => vec![share("idle", 1.0)],
                _ => vec![share("busy", 0.75), share("idle", 0.25)],
            },
            ..Samples::default()
        });
        profile
    });
    let summary = reduce(profiles.collect());
    let samples = &summary.samples[0];
    assert_eq!((samples.n, samples.ranks, samples.histogram.as_slice()), (8, 2, &[6, 2][..]));
    let [idle, busy] = &samples.states[..] else { panic!("{:?}", samples.states) };
    assert_eq!((idle.state.as_str(), busy.state.as_str()), ("idle", "busy"));
    assert!(close(idle.share.avg, 0.625));
    assert_eq!((busy.share.min.as_f64(), busy.share.min_rank), (0.0, 0));
}

#[test]
fn ranks_over_their_budget_are_named() {
    let profiles = (0..3).map(|rank| {
        let mut profile = profile("a", rank, 3);
        profile.clock = Some(Clock { source: "tsc".into(), read_s: 1e-8, slow: false });
        profile.overhead.budget = Some(0.005);
        profile.overhead.running_share = 0.004 * f64::from(rank);
        profile
    });
    let overhead = reduce(profiles.collect()).overhead;
    assert_eq!((overhead.budget, &overhead.over_budget[..]), (Some(0.005), &[2][..]));
    assert_eq!(overhead.running_share.unwrap().max_rank, 2);
}

#[test]
fn the_slowest_clock_speaks_for_the_run() {
    let profiles = (0..2).map(|rank| {
        let mut profile = profile("a", rank, 2);
        let read_s = f64::from(rank + 1) * 1e-8;
        profile.clock = Some(Clock { source: "tsc".into(), read_s, slow: rank == 1 });
        profile
    });
    assert!(reduce(profiles.collect()).clock.unwrap().slow);
}

fn watched(rank: u32, object: usize, hits: u64, value: u64) -> RankProfile {
    let call = crate::Address { object: Some(object), address: 0x1234 };
    let mut load_map: Vec<crate::LoadedObject> = ["./app", "/lib/libm.so"]
        .map(|path| crate::LoadedObject { path: path.into(), build_id: None })
        .into();
    load_map.rotate_left(object);
    let site = crate::WatchSite {
        function: "MPI_Recv".into(),
        call,
        hits,
        sum: hits * value,
        worst: crate::Hit { value, source: Some(1), ..crate::Hit::default() },
        stacks_taken: 1,
        stacks: vec![crate::Stack { hits: 1, frames: vec![call, call] }],
    };
    let watch = crate::Watch {
        variable: "unexpected_recvq_length".into(),
        threshold: 5,
        receives: 100,
        hits,
        max: value,
        sites: vec![site],
        load_map,
        ..crate::Watch::default()
    };
    RankProfile { watch: Some(watch), ..profile("a", rank, 4) }
}

#[test]
fn a_call_site_is_the_same_wherever_its_file_stands_in_the_load_map() {
    let summary = reduce(vec![
        watched(0, 0, 3, 9),
        watched(1, 1, 4, 9),
        profile("a", 2, 4),
        watched(3, 0, 1, 7),
    ]);
    let [watch] = summary.watches.as_slice() else { panic!("{:?}", summary.watches) };
    let [site] = watch.sites.as_slice() else { panic!("{:?}", watch.sites) };
    // The first rank's file is that of the others: the map is rotated with the index.
    assert_eq!(watch.load_map.len(), 1);
    assert_eq!(site.call.object, Some(0));
    assert_eq!((site.hits.sum, site.hits.ranks), (Number::Integer(8), 3));
    assert_eq!((site.worst.value, site.worst_rank), (9, 0));
    assert_eq!(site.stacks.len(), 1);
    assert_eq!(site.stacks[0].hits, 3);
    assert_eq!((watch.hits.max, watch.hits.max_rank), (Number::Integer(4), 1));
}

fn with_messages(rank: u32, peers: u32) -> RankProfile {
    let queues = |peer: u32| crate::PeerQueues {
        peer: Some(peer),
        unexpected: u64::from((peer * 7 + rank * 13) % 31),
        unexpected_max: 1,
        unexpected_mean: 1.0,
        unexpected_time_s: 0.5,
        unexpected_time_max_s: 0.25,
        posted: 0,
        posted_max: 0,
        posted_mean: 0.0,
    };
    let metric = crate::MessageMetric {
        metric: crate::Metric::TInUnexQ,
        traffic: crate::Traffic::Program,
        n: u64::from(rank) + 1,
        sum: f64::from(rank) + 1.0,
        max: f64::from(rank),
        histogram: vec![0, u64::from(rank) + 1],
    };
    let messages = crate::Messages {
        source: crate::MessageSource::Peruse,
        metrics: if rank == 2 { Vec::new() } else { vec![metric] },
        peers: (0..peers).map(queues).collect(),
        without_peer: 1,
        lost: 0,
    };
    RankProfile { messages: vec![messages], ..profile("a", rank, 4) }
}

#[test]
fn messages_are_reduced_whatever_the_order_and_the_worst_pairs_are_kept() {
    let forth = reduce((0..4).map(|rank| with_messages(rank, 40)).collect());
    let back = reduce((0..4).rev().map(|rank| with_messages(rank, 40)).collect());
    // Except for the rounding of deviations.
    assert_eq!(forth.messages[0].pairs, back.messages[0].pairs);
    assert_eq!(forth.messages[0].metrics[0].n.min_rank, back.messages[0].metrics[0].n.min_rank);
    let [messages] = forth.messages.as_slice() else { panic!("{:?}", forth.messages) };
    assert_eq!((messages.ranks, messages.pairs_seen, messages.pairs.len()), (4, 160, 64));
    assert_eq!(messages.pairs[0].queues.unexpected, 30);
    let [metric] = messages.metrics.as_slice() else { panic!("{:?}", messages.metrics) };
    // Rank 2 measured nothing.
    assert_eq!((metric.n.sum, metric.n.min_rank), (Number::Integer(1 + 2 + 4), 2));
    assert_eq!((metric.max.max, metric.max.max_rank), (Number::Double(3.0), 3));
    assert!((metric.mean - 1.0).abs() < 1e-12);
    assert_eq!(metric.histogram, [0, 7]);
}

#[test]
fn events_that_a_rank_did_not_have_count_as_none() {
    let event = |n: u64| crate::EventCount {
        name: "enqueued".into(),
        event_source: "RECVQ".into(),
        object: None,
        n,
        dropped: 1,
        first_s: Some(n as f64),
        last_s: None,
        gap_max_s: Some(n as f64),
    };
    let with = |rank, events| RankProfile { events, ..profile("a", rank, 3) };
    let other = crate::EventCount { name: "other".into(), ..event(9) };
    let summary = reduce(vec![with(0, vec![event(3)]), with(1, vec![other]), profile("a", 2, 3)]);
    let row = summary.events.iter().find(|row| row.name == "enqueued").unwrap();
    // For the two ranks that count events.
    assert_eq!((row.n.ranks, row.n.min_rank, row.n.sum), (2, 1, Number::Integer(3)));
    assert_eq!((row.first_s, row.last_s, row.dropped), (Some(3.0), None, 1));
}

#[test]
fn objects_that_are_left_out_are_one_row_however_many_on_each_rank() {
    let left_out = |rank: u32| ObjectsLeftOut {
        what: "window of 2 ranks".into(),
        number: 7 + u64::from(rank),
        reason: "not read: they came too fast".into(),
    };
    let profiles = (0..3).map(|rank| {
        let mut profile = profile("a", rank, 3);
        profile.coverage.objects = if rank == 1 { Vec::new() } else { vec![left_out(rank)] };
        profile
    });
    let summary = reduce(profiles.collect());
    let [row] = &summary.coverage.objects[..] else { panic!("{:?}", summary.coverage) };
    assert_eq!((row.number.min, row.number.max), (Number::Integer(7), Number::Integer(9)));
    assert_eq!((row.what.as_str(), row.number.ranks), ("window of 2 ranks", 2));
}
