//! What does `gyan scale` say about made-up runs whose numbers follow known laws, and about runs that do not
//! belong together?

use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{
    Call, Ending, Growth, InMpi, Label, PeerTraffic, Peers, Pvar, RankProfile, ScaleKind, ScaleRow,
    Scaling, Waiting, rank_file_name,
};
use tempfile::TempDir;

use crate::common::{self, Outcome, gyan, root, run};
use crate::golden::is_golden;
use crate::schemas::{schema, validate};

const SIZES: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Ranks on a host.
const NODE: u32 = 16;

/// One rank of `size`, with `p` ranks and `n` their logarithm to the base 2:
/// - the run takes 64/p s outside MPI, and n/2 s in 100 calls of `MPI_Allreduce`;
/// - 20 n calls of `MPI_Isend`, 160 n bytes, to n peers;
/// - 20 (p - 1) calls of `MPI_Recv` on rank 0, none elsewhere;
/// - `posted_recvq_match` counts 1000 p until a node is full, and 1000 * 16 * 16 / p with more.
fn rank(rank: u32, size: u32) -> RankProfile {
    let text = fs::read_to_string(root().join("results-schema/examples/rank.json")).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["machine", "resources", "series", "watch", "sites", "message_times"] {
        value.as_object_mut().unwrap().remove(key);
    }
    for key in ["cvars", "pvars", "phases", "waiting", "messages", "events", "calls"] {
        value[key] = serde_json::Value::Array(Vec::new());
    }
    let mut profile: RankProfile = serde_json::from_value(value).unwrap();
    let n = size.ilog2();
    (profile.rank, profile.size) = (rank, size);
    profile.host = format!("n{}", rank / NODE);
    profile.job.id = format!("job-{size}");
    profile.job.command = vec!["/home/me/bin/solver".into(), size.to_string()];
    let in_mpi = f64::from(n) / 2.0;
    profile.job.elapsed_s = 64.0 / f64::from(size) + in_mpi;
    (profile.overhead.mpit_init_s, profile.overhead.init_s) = (0.0, 0.0);
    let share = in_mpi / profile.job.elapsed_s;
    profile.in_mpi =
        Some(InMpi { time_s: in_mpi, time_error_s: Some(0.0), share, threads: 1, wall_s: None });
    let call = |name: &str, count: u32, time_s: f64| Call {
        name: name.into(),
        count: count.into(),
        timed: count.into(),
        time_s: Some(time_s),
        time_error_s: Some(0.0),
        ..Call::default()
    };
    profile.calls = vec![
        call("MPI_Allreduce", 100, in_mpi),
        Call { bytes: Some(u64::from(160 * n)), ..call("MPI_Isend", 20 * n, 0.0) },
    ];
    if rank == 0 {
        profile.calls.push(call("MPI_Recv", 20 * (size - 1), 0.0));
    }
    let peer = |bit: u32| PeerTraffic { rank: Some(rank ^ (1 << bit)), number: 20, bytes: 160 };
    profile.peers = Some(Peers { messages: (0..n).map(peer).collect(), accesses: Vec::new() });
    let matched = if size <= NODE { 1000 * size } else { 1000 * NODE * NODE / size };
    profile.pvars = vec![counter("posted_recvq_match", matched)];
    profile
}

pub(crate) fn counter(name: &str, value: u32) -> Pvar {
    let value = serde_json::json!({
        "name": name, "class": "COUNTER", "datatype": "MPI_UNSIGNED_LONG", "bind": null, "object": null,
        "verbosity": "USER_BASIC", "continuous": true, "readonly": true, "atomic": false, "count": 1,
        "start": [0], "end": [value], "delta": [value],
    });
    serde_json::from_value(value).unwrap()
}

/// A run in its own directory.
pub(crate) fn made(place: &Path, name: &str, size: u32, change: impl Fn(&mut RankProfile)) {
    let directory = place.join(name);
    fs::create_dir(&directory).unwrap();
    for at in 0..size {
        let mut profile = rank(at, size);
        change(&mut profile);
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(directory.join(rank_file_name(at)), text).unwrap();
    }
}

/// Runs of all sizes.
pub(crate) fn runs() -> TempDir {
    let place = TempDir::new().unwrap();
    for size in SIZES {
        // A program without threads.
        made(place.path(), &format!("run-{size}"), size, |profile| profile.openmp = None);
    }
    place
}

fn scale(place: &Path, arguments: &[&str]) -> Outcome {
    run(gyan().arg("scale").args(arguments).current_dir(place))
}

pub(crate) fn scaling(place: &Path, arguments: &[&str]) -> Scaling {
    let outcome = scale(place, &[arguments, &["--format", "json", "."]].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    validate(&schema("scale.schema.json"), &outcome.stdout, "gyan scale");
    serde_json::from_str(&outcome.stdout).unwrap()
}

pub(crate) fn row<'a>(of: &'a Scaling, kind: &str, name: &str) -> &'a ScaleRow {
    let is_it = |row: &&ScaleRow| {
        row.name == name && serde_json::to_value(row.kind).unwrap().as_str() == Some(kind)
    };
    of.rows.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Exponent and logarithms.
pub(crate) fn law(growth: Growth) -> (f64, i32) {
    match growth {
        Growth::Law { exponent, logarithms, .. } => (exponent, logarithms),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_laws_of_made_up_runs_are_found() {
    let place = runs();
    let of = scaling(place.path(), &[]);
    assert!((of.target - 256.0).abs() < 1e-9 && of.node_boundary == Some(16.0));

    let allreduce = row(&of, "time", "MPI_Allreduce");
    assert_eq!(law(allreduce.average.growth), (0.0, 1));
    assert!((allreduce.average.predicted.unwrap().value - 4.0).abs() < 1e-6);
    assert_eq!(law(row(&of, "own_code", "own code").average.growth), (-1.0, 0));
    let run = row(&of, "run_time", "run time");
    assert_eq!(run.average.growth, Growth::Sum);
    assert!((run.average.predicted.unwrap().value - 4.25).abs() < 1e-6);
    // With 256 ranks, 64 s / 256 are outside MPI, and 4 s inside.
    assert!((allreduce.target_share.unwrap() - 4.0 / 4.25).abs() < 1e-6);
    assert!((allreduce.share.unwrap() - 3.0 / 4.0).abs() < 1e-9);
    assert_eq!(of.rows[0].name, "MPI_Allreduce");

    assert_eq!(law(row(&of, "calls", "MPI_Isend").average.growth), (0.0, 1));
    assert_eq!(law(row(&of, "bytes", "MPI_Isend").average.growth), (0.0, 1));
    assert_eq!(law(row(&of, "peers", "ranks that a rank sends to").average.growth), (0.0, 1));
    let constant = row(&of, "calls", "MPI_Allreduce").average.growth;
    assert!(matches!(constant, Growth::Constant { value } if (value - 100.0).abs() < 1e-9));

    // The paper's second case: one rank has it all.
    let receives = row(&of, "calls", "MPI_Recv");
    assert_eq!(law(receives.maximum.growth), (1.0, 0));
    assert_eq!(law(receives.imbalance.as_ref().unwrap().growth), (1.0, 0));
    // The third: it falls once one node is not enough.
    let matched = row(&of, "variable", "posted_recvq_match").average.growth;
    let Growth::Bend { until, before: Some(before), after: Some(after), rises, stays } = matched
    else {
        panic!("{matched:?}")
    };
    assert!((until - 16.0).abs() < 1e-9 && rises && !stays);
    assert!((before - 1.0).abs() < 1e-9 && (after + 1.0).abs() < 1e-9);
}

#[test]
fn speed_up_and_efficiencies_are_those_of_the_definition() {
    let place = runs();
    let strong = scaling(place.path(), &[]);
    let (first, last) = (&strong.sizes[0], &strong.sizes[5]);
    // 32.5 s with 2 ranks, 4 s with 64.
    assert!((first.speed_up.unwrap() - 1.0).abs() < 1e-9);
    assert!((last.speed_up.unwrap() - 32.5 / 4.0).abs() < 1e-9);
    assert!((last.efficiency.unwrap() - 32.5 / 4.0 / 32.0).abs() < 1e-9);
    let pop = last.pop.unwrap();
    assert!((pop.load_balance - 1.0).abs() < 1e-9 && (pop.communication - 0.25).abs() < 1e-9);
    assert!((pop.computation - 1.0).abs() < 1e-9 && (pop.global - 0.25).abs() < 1e-9);
    let weak = scaling(place.path(), &["--weak"]);
    assert!((weak.sizes[5].efficiency.unwrap() - 32.5 / 4.0).abs() < 1e-9);
    assert!((weak.sizes[5].pop.unwrap().computation - 32.0).abs() < 1e-9);
}

/// Odd ranks come late to every even call, and even ranks to every odd one: each waits half of its time in `MPI_Allreduce`.
#[test]
fn serialisation_and_transfer_are_those_of_the_definition() {
    let place = TempDir::new().unwrap();
    for size in SIZES {
        made(place.path(), &format!("run-{size}"), size, |profile| {
            let each_ns = 5_000_000 * u64::from(size.ilog2());
            let is_late = |call: u32| call % 2 == profile.rank % 2;
            let ns = |call| Some(if is_late(call) { each_ns / 2 } else { 3 * each_ns / 2 });
            profile.waiting = vec![Waiting {
                function: "MPI_Allreduce".into(),
                communicator: "MPI_COMM_WORLD".into(),
                members: format!("{size:016x}"),
                size,
                calls: 100,
                times_ns: Waiting::written((0..100).map(ns)),
                ..Waiting::default()
            }];
        });
    }
    let of = scaling(place.path(), &[]);
    let pop = of.sizes[5].pop.unwrap();
    let waiting = row(&of, "waiting", "waiting in collectives");
    assert_eq!(law(waiting.average.growth), (0.0, 1));
    assert!((waiting.share.unwrap() - 1.5 / 4.0).abs() < 0.005, "{waiting:?}");
    // 1 s of 4 s is own code, and 1.5 s are waiting. Times of calls are written within 0.8 %.
    assert!((pop.serialisation.unwrap() - 1.0 / 2.5).abs() < 0.005, "{pop:?}");
    assert!((pop.transfer.unwrap() - 2.5 / 4.0).abs() < 0.005 && !pop.is_bound, "{pop:?}");
    let text = scale(place.path(), &["."]).stdout;
    assert!(text.contains("SERIAL  TRANSFER"), "{text}");
    assert!(text.contains("\nHow much of it is waiting for other ranks"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let findings = run(gyan().args(["report", "--findings", "run-64"]).current_dir(place.path()));
    let said =
        "parallel efficiency 25.0 % = load balance 100 % x serialisation 39.9 % x transfer 62.7 %";
    assert!(findings.stdout.contains(said), "{}", findings.stdout);
    // What was not compared counts as transfer: then these are bounds.
    let bounded = place.path().join("bounded");
    fs::create_dir(&bounded).unwrap();
    for at in 0..64 {
        let mut profile: RankProfile = serde_json::from_str(
            &fs::read_to_string(place.path().join("run-64").join(rank_file_name(at))).unwrap(),
        )
        .unwrap();
        profile.calls[0].time_s = Some(2.1);
        let other = Call { name: "MPI_Alltoallv".into(), ..profile.calls[0].clone() };
        profile.calls.push(Call { time_s: Some(0.9), ..other });
        profile.calls.sort_by(|one, other| one.name.cmp(&other.name));
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(bounded.join(rank_file_name(at)), text).unwrap();
    }
    let findings = run(gyan().args(["report", "--findings", "bounded"]).current_dir(place.path()));
    for said in ["x serialisation ≤", "x transfer ≥", "30.0 % of the time in MPI is in functions"]
    {
        assert!(findings.stdout.contains(said), "{said}: {}", findings.stdout);
    }
}

#[test]
fn the_screen_begins_with_sentences() {
    let place = runs();
    let outcome = scale(place.path(), &["."]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    is_golden("scale.txt", &outcome.stdout);
    let document = fs::read_to_string(root().join("docs/scaling.md")).unwrap();
    assert!(document.contains(&outcome.stdout), "docs/scaling.md does not show this screen");
    assert!(outcome.stdout.lines().count() <= 40, "more than a screen");
    let says = "posted_recvq_match grows as p until 16, then falls (16 processes a node)";
    assert!(outcome.stdout.contains(says), "{}", outcome.stdout);
    let points = scale(place.path(), &["--vars", "posted*,MPI_Recv", "."]);
    is_golden("scale-vars.txt", &points.stdout);
    is_golden("scale.md", &scale(place.path(), &["--format", "markdown", "."]).stdout);
    is_golden("scale.csv", &scale(place.path(), &["--format", "csv", "."]).stdout);
}

#[test]
fn a_page_has_the_curves() {
    let place = runs();
    let outcome = scale(place.path(), &["--format", "html", "-o", "scale.html", "."]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "scale.html\n"), "{}", outcome.stderr);
    let page = fs::read_to_string(place.path().join("scale.html")).unwrap();
    assert!(page.contains("dashed: one node until 16") && page.contains("<svg class=\"curves\""));
    // It is not a run: the directory still has the same number of runs.
    assert_eq!(scaling(place.path(), &[]).sizes.len(), SIZES.len());
    let again = scale(place.path(), &["--format", "html", "-o", "scale.html", "run-2", "run-4"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
}

#[test]
fn runs_of_one_size_are_repeats() {
    let place = runs();
    for (name, more) in [("again-2", 1.0), ("again-2-late", 4.0)] {
        made(place.path(), name, 2, |profile| profile.job.elapsed_s += more);
    }
    let of = scaling(place.path(), &[]);
    let first = &of.sizes[0];
    assert_eq!(first.runs.len(), 3);
    // The median of 32.5, 33.5 and 36.5 s.
    assert!((first.run_s - 33.5).abs() < 1e-9 && first.run_range_s == Some([32.5, 36.5]));
}

/// The whole by its definition: own code and functions make up the run, whatever run calls what.
#[test]
fn the_parts_of_a_size_add_up_though_its_runs_call_other_functions() {
    let place = runs();
    for size in SIZES {
        for at in 1..=3_u32 {
            made(place.path(), &format!("again-{size}-{at}"), size, |profile| {
                profile.job.id = format!("again-{size}-{at}");
                let [more, in_mpi] =
                    [f64::from(at) / 10.0, profile.in_mpi.as_ref().unwrap().time_s];
                profile.job.elapsed_s += more;
                // Only one of the runs has barriers, in place of reductions.
                if at == 1 {
                    let like = profile.calls[0].clone();
                    profile.calls[0].time_s = Some(in_mpi / 4.0);
                    let time_s = Some(in_mpi * 3.0 / 4.0);
                    profile.calls.push(Call { name: "MPI_Barrier".into(), time_s, ..like });
                }
            });
        }
    }
    let of = scaling(place.path(), &[]);
    let avg = |row: &ScaleRow, size: f64| {
        row.points.iter().find(|point| point.size.total_cmp(&size).is_eq()).map_or(0.0, |at| at.avg)
    };
    for size in &of.sizes {
        let is_part = |row: &&ScaleRow| matches!(row.kind, ScaleKind::OwnCode | ScaleKind::Time);
        let parts: f64 = of.rows.iter().filter(is_part).map(|row| avg(row, size.size)).sum();
        let run = avg(row(&of, "run_time", "run time"), size.size);
        assert!((parts - run).abs() < 1e-9, "{parts} of {run} at {}", size.size);
        // Three of four runs have none.
        assert!(avg(row(&of, "calls", "MPI_Barrier"), size.size) == 0.0);
    }
    let shares: f64 = of.rows.iter().filter_map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn fewer_than_five_sizes_tell_slopes() {
    let place = runs();
    let few: Vec<String> = SIZES[..3].iter().map(|size| format!("run-{size}")).collect();
    let few: Vec<&str> = few.iter().map(String::as_str).collect();
    let outcome = scale(place.path(), &few);
    assert!(outcome.stdout.contains("3 sizes tell slopes only"), "{}", outcome.stdout);
    let json = scale(place.path(), &[&few[..], &["--format", "json"]].concat());
    let of: Scaling = serde_json::from_str(&json.stdout).unwrap();
    let Growth::Slope { slope: Some(slope) } = row(&of, "own_code", "own code").average.growth
    else {
        panic!("no slope")
    };
    assert!((slope + 1.0).abs() < 1e-9);
    assert!(of.rows.iter().all(|row| row.average.predicted.is_none()));
}

#[test]
fn a_size_can_be_an_argument_or_a_setting() {
    let place = TempDir::new().unwrap();
    for (name, cells) in [("a", 100), ("b", 200), ("c", 400)] {
        made(place.path(), name, 4, |profile| {
            profile.job.command[1] = cells.to_string();
            profile
                .job
                .labels
                .push(Label { name: "size".into(), value: (cells / 100).to_string() });
            profile.job.elapsed_s = f64::from(cells);
        });
    }
    let of = scaling(place.path(), &["--by", "arg1"]);
    let sizes: Vec<f64> = of.sizes.iter().map(|size| size.size).collect();
    assert_eq!(sizes, [100.0, 200.0, 400.0]);
    let Growth::Slope { slope: Some(slope) } = row(&of, "run_time", "run time").average.growth
    else {
        panic!("no slope")
    };
    assert!((slope - 1.0).abs() < 1e-9 && of.sizes[0].speed_up.is_none());
    let of = scaling(place.path(), &["--by", "size"]);
    assert_eq!(of.sizes.iter().map(|size| size.size).collect::<Vec<f64>>(), [1.0, 2.0, 4.0]);
}

/// Two ranks whose threads share 8 s of work.
#[test]
fn a_size_can_be_the_number_of_threads() {
    let place = TempDir::new().unwrap();
    for threads in [1_u32, 2, 4] {
        made(place.path(), &format!("threads-{threads}"), 2, |profile| {
            let elapsed_s = 8.0 / f64::from(threads);
            profile.job.elapsed_s = elapsed_s;
            let openmp = profile.openmp.as_mut().unwrap();
            (openmp.threads, openmp.elapsed_s) = (threads.into(), elapsed_s);
        });
    }
    let of = scaling(place.path(), &["--by", "threads"]);
    let sizes: Vec<f64> = of.sizes.iter().map(|size| size.size).collect();
    assert_eq!(sizes, [2.0, 4.0, 8.0]);
    let [.., last] = of.sizes.as_slice() else { panic!() };
    assert!((last.speed_up.unwrap() - 4.0).abs() < 1e-9, "{last:?}");
    assert!((last.efficiency.unwrap() - 1.0).abs() < 1e-9, "{last:?}");
    let printed = scale(place.path(), &["--by", "threads", "."]).stdout;
    assert!(printed.contains("2.00 s with 8 threads, 8.00 s with 2 threads"), "{printed}");
    let without = runs();
    one_line(without.path(), &["--by", "threads", "run-2", "run-4"], 2, &["has no OpenMP runtime"]);
}

/// Expects one line with each of `parts`.
fn one_line(place: &Path, arguments: &[&str], code: i32, parts: &[&str]) {
    let outcome = scale(place, arguments);
    common::one_line(&outcome, code, parts);
    assert!(outcome.stderr.starts_with("gyan: "), "{}", outcome.stderr);
}

#[test]
fn what_does_not_go_together_is_one_line() {
    let place = runs();
    let here = place.path();
    made(here, "again", 2, |profile| profile.job.id = "again".into());
    one_line(here, &["run-2", "again"], 2, &["all 2 runs are of 2 ranks", "--by"]);
    one_line(here, &["run-2"], 2, &["one run is of 2 ranks"]);
    one_line(here, &["--by", "eager", "run-2", "run-4"], 2, &["has no eager", "run-2"]);
    one_line(here, &["run-2", "nowhere"], 2, &["nowhere"]);
    one_line(here, &["--vars", "nothing*", "run-2", "run-4"], 2, &["--vars nothing*"]);
    one_line(here, &["--target=-1", "run-2", "run-4"], 2, &["--target -1", "above 0"]);
    one_line(here, &["-o", "x.txt", "run-2", "run-4"], 2, &["--format html"]);

    made(here, "other", 4, |profile| profile.job.command[0] = "/bin/other".into());
    one_line(here, &["run-2", "run-4", "other"], 1, &["other: is a run of other, not of solver"]);
    made(here, "killed", 8, |profile| {
        if profile.rank == 3 {
            profile.end.how = Ending::Killed;
        }
    });
    one_line(here, &["run-2", "run-4", "killed"], 1, &["killed", "rank 3", "left out"]);
    made(here, "newer", 8, |profile| profile.schema = "gyan.rank/9".into());
    one_line(here, &["run-2", "run-4", "newer"], 2, &["gyan.rank/9"]);
}

#[test]
fn a_missing_rank_is_said() {
    let place = runs();
    let gone: PathBuf = place.path().join("run-8").join(rank_file_name(5));
    fs::remove_file(gone).unwrap();
    one_line(place.path(), &["run-2", "run-4", "run-8"], 1, &["1 of 8 ranks", "(5)"]);
    let outcome = scale(place.path(), &["run-2", "run-4", "run-8"]);
    assert!(outcome.stdout.contains("run-8: 1 of 8 ranks have no profile"), "{}", outcome.stdout);
}
