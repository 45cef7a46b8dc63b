//! Made-up runs whose differences are known.

use std::sync::LazyLock;

use gyan_results::{
    Actor, CallSummary, ChangeVerdict, MessageWaitingSummary, Number, NumberDifference,
    NumberGroup, OpenMpRuntime, PairWaiting, PartKind, Statistic, Statistics,
};

use super::*;

fn example() -> Summary {
    static EXAMPLE: LazyLock<Summary> = LazyLock::new(|| {
        let text = include_str!("../../../results-schema/examples/summary.json");
        serde_json::from_str(text).unwrap()
    });
    EXAMPLE.clone()
}

/// The same on each of four ranks.
fn alike(value: Number) -> Statistic {
    let mut of = Statistics::default();
    (0..4).for_each(|rank| of.add(value, rank));
    of.finish().unwrap()
}

fn seconds(value: f64) -> Statistic {
    alike(Number::Double(value))
}

/// A function that each rank calls `number` times, for the given seconds in all.
fn call(name: &str, number: i128, time_s: f64) -> CallSummary {
    let mut call = example().calls.remove(0);
    call.name = name.to_owned();
    call.count = alike(Number::Integer(number));
    call.time_s = Some(seconds(time_s));
    call.time_error_s = Some(0.0);
    call
}

/// A run of four ranks that take so long, with these calls and nothing else that could differ.
fn run(elapsed_s: f64, calls: Vec<CallSummary>) -> Summary {
    let mut run = example();
    run.elapsed_s = Some(seconds(elapsed_s));
    run.calls = calls;
    run.phases.clear();
    run
}

fn compared(a: &[Summary], b: &[Summary]) -> Difference {
    fn side(runs: &[Summary]) -> Vec<ComparedRun<'_>> {
        let of = |summary| ComparedRun {
            name: "run".into(),
            summary,
            findings: Vec::new(),
            is_complete: true,
        };
        runs.iter().map(of).collect()
    }
    difference(&side(a), &side(b))
}

fn of_one(a: Summary, b: Summary) -> Difference {
    compared(&[a], &[b])
}

fn part<'d>(of: &'d Difference, name: &str) -> &'d gyan_results::PartDifference {
    of.parts.iter().find(|part| part.name == name).unwrap()
}

#[track_caller]
fn close(value: f64, expected: f64) {
    let is_close = (value - expected).abs() <= 1e-12 * expected.abs().max(1.0);
    assert!(is_close, "{value} for {expected}");
}

#[test]
fn a_run_with_itself_shows_nothing() {
    let of = of_one(example(), example());
    assert!(of.setup.is_empty() && of.numbers.is_empty() && of.remarks.is_empty(), "{of:?}");
    assert_eq!(of.run_time.unwrap().verdict, ChangeVerdict::Same);
    assert!(of.parts.iter().all(|part| part.time.verdict == ChangeVerdict::Same));
    assert!(!of.phases.is_empty());
    assert!(of.phases.iter().all(|phase| phase.time.verdict == ChangeVerdict::Same));
}

#[test]
fn a_change_of_time_is_one_of_calls_and_one_of_each_call() {
    let a = run(10.0, vec![call("MPI_Send", 100, 2.0), call("MPI_Recv", 50, 1.0)]);
    let b = run(9.5, vec![call("MPI_Send", 200, 1.0), call("MPI_Recv", 50, 1.5)]);
    let of = of_one(a, b);
    let sends = part(&of, "MPI_Send").split.unwrap();
    // 20 ms and 5 ms each: 100 more of 12.5 ms, and 150 that are 15 ms shorter.
    close(sends.by_number_s, 1.25);
    close(sends.by_each_s, -2.25);
    let receives = part(&of, "MPI_Recv").split.unwrap();
    close(receives.by_number_s, 0.0);
    close(receives.by_each_s, 0.5);
    let outside = of.parts.last().unwrap();
    assert_eq!(outside.kind, PartKind::Outside);
    close(outside.time.change, 0.0);
    close(of.run_time.unwrap().change, -0.5);
}

#[test]
fn rows_add_up_to_the_whole_and_are_the_same_backwards() {
    let one = run(3.7, vec![call("MPI_Send", 7, 0.3), call("MPI_Wait", 1001, 1.1 / 3.0)]);
    let two = run(2.9, vec![call("MPI_Wait", 3, 0.07), call("MPI_Bcast", 11, 0.9)]);
    let three = run(3.1, vec![call("MPI_Wait", 999, 0.5)]);
    let sides = [vec![one.clone(), three.clone()], vec![two, example()]];
    let [forwards, backwards] = [compared(&sides[0], &sides[1]), compared(&sides[1], &sides[0])];
    let change = forwards.run_time.as_ref().unwrap().change;
    let sum: f64 = forwards.parts.iter().map(|part| part.time.change).sum();
    assert!((sum - change).abs() <= 1e-12 * change.abs(), "{sum} for {change}");
    for part in &forwards.parts {
        let back = backwards.parts.iter().find(|of| of.name == part.name).unwrap();
        close(back.time.change, -part.time.change);
        if let Some(split) = part.split {
            close(split.by_number_s + split.by_each_s, part.time.change);
            close(back.split.unwrap().by_number_s, -split.by_number_s);
        }
    }
}

#[test]
fn phases_and_what_is_in_them_add_up() {
    let mut other = example();
    for phase in &mut other.phases {
        phase.time_s = seconds(phase.time_s.avg * 1.5 + 0.1);
        for call in &mut phase.calls {
            call.time_s = call.time_s.as_ref().map(|time| seconds(time.avg * 0.75));
        }
    }
    let of = of_one(example(), other);
    assert_eq!(of.phases.len(), example().phases.len());
    for phase in &of.phases {
        let sum: f64 = phase.parts.iter().map(|part| part.time.change).sum();
        close(sum, phase.time.change);
        close(phase.split.by_number_s + phase.split.by_each_s, phase.time.change);
        assert!(phase.time.change > 0.0);
    }
}

#[test]
fn a_function_of_one_side_is_a_change_of_its_calls() {
    let of = of_one(
        run(2.0, vec![call("MPI_Send", 4, 0.5)]),
        run(2.0, vec![call("MPI_Isend", 4, 0.25)]),
    );
    let (gone, new) = (part(&of, "MPI_Send"), part(&of, "MPI_Isend"));
    assert!(gone.time.b.is_none() && new.time.a.is_none());
    close(gone.split.unwrap().by_number_s, -0.5);
    close(new.split.unwrap().by_number_s, 0.25);
    close(new.split.unwrap().by_each_s, 0.0);
    assert_eq!(new.time.verdict, ChangeVerdict::Changed);
}

#[test]
fn what_one_run_did_not_time_counts_as_outside_in_all() {
    let mut old = call("MPI_Send", 4, 0.5);
    old.time_s = None;
    let of = of_one(run(2.0, vec![old]), run(3.0, vec![call("MPI_Send", 4, 0.5)]));
    assert_eq!(of.parts.len(), 1);
    close(of.parts[0].time.change, 1.0);
    let mut older = run(2.0, Vec::new());
    older.elapsed_s = None;
    let of = of_one(older, run(2.0, Vec::new()));
    assert!(of.run_time.is_none() && of.parts.is_empty());
    assert!(of.remarks[0].contains("did not time calls"), "{:?}", of.remarks);
}

#[test]
fn a_change_within_the_error_of_an_estimate_is_none() {
    let estimated = |time_s: f64, error_s: f64| {
        let mut call = call("MPI_Send", 1000, time_s);
        call.time_error_s = Some(error_s * 4.0);
        run(5.0, vec![call])
    };
    let verdict = |a, b| part(&of_one(a, b), "MPI_Send").time.verdict;
    assert_eq!(verdict(estimated(1.0, 0.1), estimated(1.2, 0.1)), ChangeVerdict::WithinError);
    assert_eq!(verdict(estimated(1.0, 0.1), estimated(1.4, 0.1)), ChangeVerdict::Unproven);
}

/// Runs that take so long, all of it outside MPI.
fn runs(elapsed_s: &[f64]) -> Vec<Summary> {
    elapsed_s.iter().map(|of| run(*of, Vec::new())).collect()
}

#[test]
fn a_lower_bound_is_no_ground_of_a_comparison() {
    let timed = |time_s: f64, error_s: Option<f64>| {
        let mut call = call("MPI_Send", 1000, time_s);
        call.time_error_s = error_s;
        run(5.0 + 2.0 * time_s, vec![call])
    };
    let side = |from: f64, error_s| -> Vec<Summary> {
        (0..5).map(|at| timed(from + f64::from(at) / 100.0, error_s)).collect()
    };
    for (a, b) in [(Some(0.0), None), (None, Some(0.0)), (None, None)] {
        let of = compared(&side(0.5, a), &side(1.5, b));
        assert_eq!(part(&of, "MPI_Send").time.verdict, ChangeVerdict::LowerBound);
        // Nor is what is left of the run.
        assert_eq!(of.parts.last().unwrap().time.verdict, ChangeVerdict::LowerBound);
        assert_eq!(of.run_time.unwrap().verdict, ChangeVerdict::Changed);
    }
    let of = compared(&side(0.5, Some(0.0)), &side(1.5, Some(0.0)));
    assert_eq!(part(&of, "MPI_Send").time.verdict, ChangeVerdict::Changed);
}

/// 200 comparisons of a program with itself, and of one in which a part takes 30 % longer: runs of four functions and own code,
/// each with a log-normal noise of its own.
#[test]
fn of_five_runs_each_a_longer_part_is_found_and_nothing_else() {
    let mut random = fastrand::Rng::with_seed(32);
    let mut noise = || {
        let (one, other) = (1.0 - random.f64(), random.f64());
        let normal = (-2.0 * libm::log(one)).sqrt() * libm::cos(std::f64::consts::TAU * other);
        libm::exp(0.02 * normal)
    };
    let names = ["MPI_Send", "MPI_Recv", "MPI_Wait", "MPI_Bcast"];
    let mut like = run(0.0, Vec::new());
    (like.pvars, like.cvars, like.peers) = Default::default();
    let mut side = |longer: f64| -> Vec<Summary> {
        let mut of = || {
            let calls: Vec<CallSummary> = names
                .iter()
                .map(|name| {
                    call(name, 100, noise() * if *name == "MPI_Wait" { longer } else { 1.0 })
                })
                .collect();
            let in_mpi: f64 = calls.iter().filter_map(|call| Some(call.time_s.as_ref()?.avg)).sum();
            Summary { calls, elapsed_s: Some(seconds(in_mpi + 4.0 * noise())), ..like.clone() }
        };
        (0..5).map(|_| of()).collect()
    };
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..200 {
        let is_changed =
            |part: &&gyan_results::PartDifference| part.time.verdict == ChangeVerdict::Changed;
        let same = compared(&side(1.0), &side(1.0));
        wrong += usize::from(same.parts.iter().any(|part| is_changed(&part)));
        let longer = compared(&side(1.0), &side(1.3));
        let names: Vec<&str> =
            longer.parts.iter().filter(is_changed).map(|part| part.name.as_str()).collect();
        found += usize::from(names.contains(&"MPI_Wait"));
        wrong += usize::from(names.len() > 1);
    }
    assert_eq!(found, 200);
    // 5 % of 400, and three standard deviations.
    assert!(wrong <= 33, "{wrong} of 400");
}

#[test]
fn four_runs_a_side_are_needed_to_judge_the_run() {
    let a = [2.0, 2.1, 2.2, 2.3, 2.4];
    let b = [1.0, 1.1, 1.2, 1.3, 1.4];
    for (number, expected) in [
        (1, ChangeVerdict::Unproven),
        (3, ChangeVerdict::Unproven),
        (4, ChangeVerdict::Changed),
        (5, ChangeVerdict::Changed),
    ] {
        let run = compared(&runs(&a[..number]), &runs(&b[..number])).run_time.unwrap();
        assert_eq!(run.verdict, expected, "{number}");
        assert_eq!(run.p.is_some(), number >= 4, "{number}");
        assert_eq!(run.runs_needed, (number < 4).then_some(4), "{number}");
        assert_eq!(run.shift.is_some(), number > 1, "{number}");
    }
    let run = compared(&runs(&a), &runs(&b)).run_time.unwrap();
    close(run.shift.unwrap().estimate, -1.0);
    // In between each other.
    let run =
        compared(&runs(&[1.0, 1.2, 1.4, 1.6]), &runs(&[1.1, 1.3, 1.5, 1.7])).run_time.unwrap();
    assert_eq!(run.verdict, ChangeVerdict::WithinNoise);
}

fn number<'d>(of: &'d Difference, group: NumberGroup, name: &str) -> Option<&'d NumberDifference> {
    of.numbers.iter().find(|number| number.group == group && number.name == name)
}

#[test]
fn counts_need_no_test_but_where_they_vary() {
    let sends =
        |number| run(1.0, vec![call("MPI_Send", number, 0.1), call("MPI_Test", number, 0.1)]);
    let of = of_one(sends(4), sends(5));
    let of_send = number(&of, NumberGroup::Calls, "MPI_Send").unwrap();
    assert_eq!(of_send.number.verdict, ChangeVerdict::Changed);
    close(of_send.number.change, 1.0);
    // How often a program asks is not exact.
    let of_test = number(&of, NumberGroup::Calls, "MPI_Test").unwrap();
    assert_eq!(of_test.number.verdict, ChangeVerdict::Unproven);
    let many = |numbers: [_; 2]| numbers.into_iter().map(sends).collect::<Vec<_>>();
    let of = compared(&many([4, 6]), &many([5, 5]));
    let of_send = number(&of, NumberGroup::Calls, "MPI_Send").unwrap();
    assert_eq!(of_send.number.verdict, ChangeVerdict::Unproven);
    assert!(!of_send.number.may_be_real(), "the sides overlap");
    // A function that only one side calls.
    let of = of_one(sends(4), run(1.0, Vec::new()));
    assert!(number(&of, NumberGroup::Calls, "MPI_Send").unwrap().number.b.is_none());
}

#[test]
fn memory_peers_and_variables_are_compared() {
    let mut other = example();
    other.peers[0].number *= 2;
    for pvar in other.pvars.iter_mut().filter(|pvar| pvar.name == "pml_ob1_unexpected_msgq_length")
    {
        pvar.statistic = alike(Number::Integer(9));
    }
    if let Some(resources) = &mut other.resources {
        resources.peak_memory_bytes = alike(Number::Integer(1 << 40));
    }
    let of = of_one(example(), other);
    let messages = number(&of, NumberGroup::Peers, "messages of a rank").unwrap();
    close(messages.number.relative(), 0.5);
    assert!(
        number(&of, NumberGroup::Variables, "pml_ob1_unexpected_msgq_length, largest").is_some()
    );
    // The sum over the elements, once, though these are there too.
    let mean = number(&of, NumberGroup::Variables, "pml_ob1_unexpected_msgq_length, mean").unwrap();
    close(mean.number.b.as_ref().unwrap().mean, 9.0);
    assert!(number(&of, NumberGroup::Resources, "peak memory of a process").is_some());
    assert!(number(&of, NumberGroup::Calls, "MPI_Allreduce").is_none());
}

#[test]
fn pairs_of_ranks_that_wait_longer_are_named() {
    let waiting = |pairs: &[(u32, u32, f64)]| {
        let pair = |&(rank, late_rank, waiting_s)| PairWaiting {
            rank,
            late_rank,
            waiting_s,
            waiting_error_s: Some(0.0),
            ..PairWaiting::default()
        };
        let pairs = pairs.iter().map(pair).collect();
        let waiting = MessageWaitingSummary { pairs, ..MessageWaitingSummary::default() };
        Summary { message_waiting: Some(waiting), ..example() }
    };
    let of = of_one(waiting(&[(0, 1, 0.5)]), waiting(&[(3, 1, 2.0), (0, 1, 0.5)]));
    let longer = number(&of, NumberGroup::WaitingPairs, "rank 3 for rank 1 to send").unwrap();
    close(longer.number.change, 2.0);
    let others = of.numbers.iter().filter(|of| of.group == NumberGroup::WaitingPairs);
    assert_eq!(others.count(), 1);
    // Where waiting was not measured, nothing is known.
    let of = of_one(Summary { message_waiting: None, ..example() }, waiting(&[(3, 1, 2.0)]));
    assert!(of.numbers.iter().all(|of| of.group != NumberGroup::WaitingPairs));
}

#[test]
fn different_numbers_of_ranks_are_compared_by_the_average_rank() {
    let mut large = run(1.0, vec![call("MPI_Send", 4, 0.1)]);
    large.ranks.expected = 8;
    large.ranks.reduced = 8;
    let twice = |statistic: &mut Statistic| {
        statistic.ranks = 8;
        statistic.sum = statistic.sum.plus(statistic.sum);
    };
    twice(&mut large.calls[0].count);
    large.calls[0].time_s.as_mut().map(twice).unwrap();
    large.elapsed_s.as_mut().map(twice).unwrap();
    let of = of_one(run(1.0, vec![call("MPI_Send", 4, 0.1)]), large);
    close(part(&of, "MPI_Send").time.change, 0.0);
    assert!(number(&of, NumberGroup::Calls, "MPI_Send").is_none());
    assert!(of.remarks.iter().any(|remark| remark.contains("average rank")), "{:?}", of.remarks);
    assert!(of.setup.iter().any(|fact| fact.what == "ranks"));
    assert!(of.numbers.iter().all(|number| !number.name.contains("from rank")), "{:?}", of.numbers);
}

#[test]
fn settings_are_compared_with_their_origin() {
    let mut other = example();
    other.cvars[0].value = Some("8192".into());
    other.cvars.pop();
    other.hosts.push("n2".into());
    other.mpi.library = "Open MPI v5.0.1".into();
    other.job.command = vec!["./other".into()];
    let openmp =
        OpenMpRuntime { settings: vec!["OMP_SCHEDULE=guided,64".into()], ..Default::default() };
    other.resources.as_mut().unwrap().openmp = Some(openmp);
    let of = of_one(example(), other);
    let values = |what: &str| {
        let fact = of.setup.iter().find(|of| of.what == what).unwrap();
        (fact.a.join("|"), fact.b.join("|"))
    };
    let (a, b) = values("setting btl_vader_eager_limit");
    assert_eq!((a.as_str(), b.as_str()), ("2048 (GYAN_CVARS)", "8192 (GYAN_CVARS)"));
    assert_eq!(values("setting btl").1, "default");
    assert_eq!(values("setting OMP_SCHEDULE"), ("default".into(), "guided,64".into()));
    assert_eq!(values("hosts of one side only"), (String::new(), "n2".into()));
    assert_eq!(values("MPI library").1, "Open MPI v5.0.1");
    assert!(of.remarks.iter().any(|remark| remark.contains("programs differ")), "{:?}", of.remarks);
}

#[test]
fn findings_come_and_go() {
    let finding = |id: &str, share: f64| Finding {
        id: id.into(),
        title: format!("{id} was found"),
        at_stake_s: Some(share),
        at_stake_share: Some(share),
        acts: Actor::Run,
        evidence: Vec::new(),
        advice: Vec::new(),
        witness: String::new(),
        functions: Vec::new(),
        ranks: Vec::new(),
        also_true: Vec::new(),
        under_load: false,
    };
    let summary = example();
    let with = |findings: Vec<Finding>| ComparedRun {
        name: "run".into(),
        summary: &summary,
        findings,
        is_complete: true,
    };
    let a = [
        with(vec![finding("gone", 0.1), finding("stays", 0.5)]),
        with(vec![finding("stays", 0.3)]),
    ];
    let b = [with(vec![finding("new", 0.2), finding("stays", 0.5)])];
    let found = difference(&a, &b).findings;
    let seen: Vec<(&str, usize, usize)> =
        found.iter().map(|of| (of.id.as_str(), of.a_runs, of.b_runs)).collect();
    assert_eq!(seen, [("new", 0, 1), ("gone", 1, 0), ("stays", 2, 1)]);
    close(found[2].a_share.unwrap(), 0.4);
}
