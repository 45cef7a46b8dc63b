//! The timeline: are its calls those of the program, and its arrows the messages? A program that numbers its messages knows, and
//! Perfetto's own definitions read the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::{
    RankProfile, TimelineEvent, TimelineHeader, TimelineIteration, TimelineKind, parse_timeline,
    timeline_file_name,
};
use serde_json::Value;

use crate::common::{
    BED, MPICH, Mpi, OPENMPI, Profiled, comes_true, counts, gyan, python_with, root, run,
};
use crate::matrix::{self, Column};

const EACH: [Mpi; 2] = [OPENMPI, MPICH];
const RANKS: u32 = 3;

/// Runs the program of these tests.
fn ran(mpi: Mpi, arguments: &[&str], settings: &[(&str, &str)]) -> Profiled {
    // For the lines of its calls.
    let program = mpi.compiled("timeline", &["-g"]);
    Profiled::preloaded(mpi, RANKS as usize, &program, arguments, settings)
}

/// A slice of a trace.
#[derive(Clone, Debug)]
struct SliceRead {
    rank: u32,
    thread: String,
    name: String,
    begin: f64,
    end: f64,
    arguments: Value,
    from: Vec<String>,
    to: Vec<String>,
}

/// Writes the trace of a run, and returns what the command says.
fn written(directory: &Path, file: &Path) -> String {
    let outcome = run(gyan().arg("timeline").arg(directory).arg("-o").arg(file));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout
}

/// The slices of calls, by the definitions of Perfetto; none where these cannot be had.
fn perfetto(file: &Path) -> Option<Vec<SliceRead>> {
    let python = python_with("test-perfetto", "perfetto", &["perfetto", "protobuf"])?;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs/read_trace.py");
    let outcome = run(Command::new(python).arg(script).arg(file));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let slices: Vec<Value> = serde_json::from_str(&outcome.stdout).unwrap();
    let numbers = |of: &Value| of.as_array().unwrap().iter().map(Value::to_string).collect();
    let read = |of: &Value| SliceRead {
        rank: of["track"][1].as_str().unwrap().strip_prefix("rank ").unwrap().parse().unwrap(),
        thread: of["track"][2].as_str().unwrap().to_owned(),
        name: of["name"].as_str().unwrap().to_owned(),
        begin: of["begin"].as_f64().unwrap(),
        end: of["end"].as_f64().unwrap(),
        arguments: of["arguments"].clone(),
        from: numbers(&of["from"]),
        to: numbers(&of["to"]),
    };
    Some(slices.iter().map(read).collect())
}

fn header(directory: &Path, rank: u32) -> TimelineHeader {
    parsed(directory, rank).0
}

fn parsed(directory: &Path, rank: u32) -> (TimelineHeader, Vec<TimelineEvent>) {
    let path = directory.join(timeline_file_name(rank));
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse_timeline(&bytes).unwrap()
}

/// The numbers of the messages that each call of a rank sent, and of those that came with each, the last call first.
fn of_program(run: &Profiled, rank: u32, word: &str) -> Vec<BTreeSet<String>> {
    let lines = run.truth(rank).into_iter().rev();
    lines.filter(|line| line[0] == word).map(|line| line[1..].iter().cloned().collect()).collect()
}

/// The slices of a rank whose calls do that, the last one first.
fn of_trace<'a>(slices: &'a [SliceRead], rank: u32, names: &[&str]) -> Vec<&'a SliceRead> {
    let own = slices.iter().rev().filter(|slice| slice.rank == rank);
    own.filter(|slice| names.contains(&slice.name.as_str())).collect()
}

const SENDS: [&str; 4] = ["MPI_Isend", "MPI_Send", "MPI_Sendrecv", "MPI_Startall"];
const ENDS: [&str; 4] = ["MPI_Waitall", "MPI_Wait", "MPI_Recv", "MPI_Sendrecv"];

/// Checks that each arrow begins in the call that sent the message, and ends in that with which it came. Returns how many there are.
fn arrows_are_messages(run: &Profiled, slices: &[SliceRead]) -> usize {
    let mut numbers: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for rank in 0..RANKS {
        let sends = of_trace(slices, rank, &SENDS);
        for (slice, sent) in sends.iter().zip(of_program(run, rank, "sends")) {
            for arrow in &slice.from {
                assert!(numbers.insert(arrow, sent.clone()).is_none(), "{arrow} begins twice");
            }
        }
    }
    let mut arrows = 0;
    for rank in 0..RANKS {
        let ends = of_trace(slices, rank, &ENDS);
        for (slice, came) in ends.iter().zip(of_program(run, rank, "ends")) {
            let known: Vec<&String> =
                slice.to.iter().flat_map(|arrow| &numbers[arrow.as_str()]).collect();
            assert!(known.iter().all(|number| came.contains(*number)), "{slice:?}: {came:?}");
            assert_eq!(known.iter().collect::<BTreeSet<_>>().len(), known.len());
            arrows += known.len();
        }
    }
    arrows
}

/// Programs call it before `MPI_Init` as well, which is in no timeline.
const ANYWHERE: &str = "MPI_Initialized";

/// The calls of a profile that are in a timeline: what starts and ends MPI is outside.
fn counted(profile: &RankProfile) -> BTreeMap<&str, u64> {
    let mut counted = counts(profile);
    let outside =
        ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Wtime", "MPI_Wtick", ANYWHERE];
    counted.retain(|function, count| !outside.contains(function) && *count > 0);
    counted
}

#[test]
fn timeline_has_every_call_and_an_arrow_for_every_message() {
    for (mpi, arguments) in
        BED.iter().flat_map(|mpi| [(*mpi, &["20"][..]), (*mpi, &["20", "persistent"])])
    {
        let run = ran(mpi, arguments, &[("GYAN_TIMELINE", "4MiB")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        assert!(!said.contains("overwritten") && !said.contains("not certain"), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        for (rank, profile) in (0..).zip(run.profiles().iter()) {
            let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
            for slice in slices.iter().filter(|slice| slice.rank == rank) {
                *seen.entry(&slice.name).or_default() += 1;
            }
            assert_eq!(seen, counted(profile), "{mpi:?} {rank}");
            calls_follow_each_other(&slices, rank);
        }
        let messages: usize = (0..RANKS).map(|rank| of_program(&run, rank, "sends").len()).sum();
        assert_eq!(arrows_are_messages(&run, &slices), messages, "{mpi:?} {arguments:?}");
        let [send, ..] = of_trace(&slices, 1, &["MPI_Send"])[..] else { panic!() };
        assert_eq!(send.arguments["peer"], 0);
        assert_eq!(send.arguments["tag"], 5);
        assert_eq!(send.arguments["bytes"], 4);
        assert_eq!(send.arguments["communicator"], "MPI_COMM_WORLD");
        let place = send.arguments["called at"].as_str().unwrap();
        assert!(place.starts_with("timeline.c:"), "{send:?}");
        same_in_json(&run, &slices);
    }
}

/// Also of those that access windows.
#[test]
fn timeline_has_the_calls_of_programs_in_any_language() {
    for mpi in BED {
        has_the_calls(mpi, "onesided", &mpi.compiled("onesided", &[]), &[]);
    }
    for (column, binding) in [(Column::MpifH, &["-DMPIF_H"][..]), (Column::UseMpiF08, &[])] {
        for mpi in matrix::with(column) {
            has_the_calls(mpi, column, &mpi.fortran_program("delays.F90", binding), &[]);
        }
    }
    let program = root().join("tests/programs/receives.py").display().to_string();
    for mpi in matrix::with(Column::Mpi4py) {
        has_the_calls(mpi, "mpi4py", Path::new("python-mpi4py"), &[&program, "mprobe"]);
    }
}

/// The timeline of each rank has as many calls of each function as its profile.
fn has_the_calls(mpi: Mpi, what: impl Debug, program: &Path, arguments: &[&str]) {
    let settings = [("GYAN_TIMELINE", "4MiB")];
    let run = Profiled::preloaded(mpi, RANKS as usize, program, arguments, &settings);
    assert_eq!(run.outcome.code, 0, "{mpi:?} {what:?}: {}", run.outcome.stderr);
    for (rank, profile) in (0..).zip(run.profiles().iter()) {
        let path = run.directory.join(timeline_file_name(rank));
        let (header, events) = parse_timeline(&fs::read(path).unwrap()).unwrap();
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for event in events {
            if let TimelineKind::Call(function) = event.kind {
                *seen.entry(&header.functions[usize::from(function)]).or_default() += 1;
            }
        }
        seen.remove(ANYWHERE);
        assert_eq!(seen, counted(profile), "{mpi:?} {what:?} {rank}");
    }
}

fn calls_follow_each_other(slices: &[SliceRead], rank: u32) {
    let mut before: BTreeMap<&str, f64> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.rank == rank) {
        let since = before.insert(&slice.thread, slice.end).unwrap_or(0.0);
        assert!(since <= slice.begin && slice.begin <= slice.end, "{slice:?}");
    }
}

/// The trace in JSON has the same slices and as many arrows.
fn same_in_json(run: &Profiled, slices: &[SliceRead]) {
    let file = run.place().join("trace.json");
    written(&run.directory, &file);
    let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == *phase);
    assert_eq!(of("X").count(), slices.len());
    for (event, slice) in of("X").zip(slices) {
        assert_eq!(
            (&event["name"], &event["args"]),
            (&Value::from(slice.name.as_str()), &slice.arguments)
        );
        let begin = event["ts"].as_f64().unwrap() * 1e3;
        assert!((begin - slice.begin).abs() < 1.0, "{event} {slice:?}");
    }
    let arrows = |phase: &'static str| {
        of(phase).map(|event| event["id"].to_string()).collect::<BTreeSet<_>>()
    };
    let received: usize = slices.iter().map(|slice| slice.to.len()).sum();
    assert_eq!((arrows("s").len(), arrows("f").len()), (received, received));
    assert_eq!(arrows("s"), arrows("f"));
}

#[test]
fn timeline_of_a_small_ring_has_the_latest_calls_and_no_wrong_arrow() {
    for mpi in EACH {
        let run = ran(mpi, &["100"], &[("GYAN_TIMELINE", "8KiB")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        let mut lost = 0;
        for rank in 0..RANKS {
            let header = header(&run.directory, rank);
            assert!(header.recorded > 256);
            lost += header.recorded - 256;
        }
        assert!(said.contains(&format!("{lost} earlier events were overwritten")), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        for rank in 0..RANKS {
            let final_call = slices.iter().rev().find(|slice| slice.rank == rank).unwrap();
            assert_eq!(final_call.name, "MPI_Comm_free", "{mpi:?}");
        }
        // Tags 1, 2 and 3 are counted from the end; receives from any rank may have no arrow.
        assert!(arrows_are_messages(&run, &slices) > 0, "{mpi:?}");
    }
}

#[test]
fn timeline_of_threads_has_the_calls_of_each() {
    for mpi in EACH {
        let run = ran(mpi, &["50", "threads"], &[("GYAN_TIMELINE", "4MiB")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let file = run.place().join("trace.pftrace");
        written(&run.directory, &file);
        let Some(slices) = perfetto(&file) else { return };
        for rank in 0..RANKS {
            calls_follow_each_other(&slices, rank);
            let own =
                || slices.iter().filter(|slice| slice.rank == rank && slice.name == "MPI_Send");
            let tags: BTreeMap<String, BTreeSet<&str>> =
                own().fold(BTreeMap::new(), |mut tags, slice| {
                    tags.entry(slice.arguments["tag"].to_string())
                        .or_default()
                        .insert(&slice.thread);
                    tags
                });
            let threads: Vec<_> =
                tags.into_iter().map(|(tag, threads)| (tag, threads.len())).collect();
            assert_eq!(threads, [("10".to_owned(), 1), ("11".to_owned(), 1)], "{mpi:?}");
            assert_eq!(own().count(), 100);
        }
        // The n-th message of a tag is the n-th one received, which the program checks.
        let mut order: BTreeMap<&String, (i64, usize)> = BTreeMap::new();
        let mut sent: BTreeMap<(u32, i64), usize> = BTreeMap::new();
        for slice in slices.iter().filter(|slice| slice.name == "MPI_Send") {
            let tag = slice.arguments["tag"].as_i64().unwrap();
            let number = sent.entry((slice.rank, tag)).or_default();
            let [arrow] = &slice.from[..] else { panic!("{slice:?}") };
            order.insert(arrow, (tag, *number));
            *number += 1;
        }
        let mut came: BTreeMap<(u32, i64), usize> = BTreeMap::new();
        for slice in slices.iter().filter(|slice| slice.name == "MPI_Wait") {
            let [arrow] = &slice.to[..] else { panic!("{slice:?}") };
            let (tag, number) = order[arrow];
            let next = came.entry((slice.rank, tag)).or_default();
            assert_eq!(*next, number);
            *next += 1;
        }
        assert!(came.values().all(|number| *number == 50) && came.len() == 2 * RANKS as usize);
    }
}

#[test]
fn timeline_of_a_killed_rank_is_left() {
    for mpi in EACH {
        let run = ran(
            mpi,
            &["10", "killed"],
            // A snapshot at each of the few calls.
            &[("GYAN_TIMELINE", "64KiB"), ("GYAN_BUDGET", "100%")],
        );
        assert_ne!(run.outcome.code, 0, "{mpi:?}");
        let path = run.directory.join(timeline_file_name(1));
        assert!(comes_true(|| path.exists()), "{mpi:?}");
        let (header, events) = parse_timeline(&fs::read(&path).unwrap()).unwrap();
        assert_eq!((header.rank, header.ended), (1, None));
        assert_eq!(events.len() as u64, header.recorded, "{mpi:?}");
        let file = run.place().join("trace.pftrace");
        written(&run.directory, &file);
        let Some(slices) = perfetto(&file) else { return };
        let sends = of_trace(&slices, 1, &SENDS).len();
        assert_eq!(sends, of_program(&run, 1, "sends").len(), "{mpi:?}");
    }
}

/// Runs the program that has iterations, with a timeline.
fn iterated(mpi: Mpi, arguments: &[&str], settings: &[(&str, &str)]) -> Profiled {
    let program = mpi.compiled("iterations", &["-pthread"]);
    let settings = [&[("GYAN_TIMELINE", "4MiB")], settings].concat();
    Profiled::preloaded(mpi, RANKS as usize, &program, arguments, &settings)
}

/// When `MPI_Init` began and ended by the program's own clock, in ns.
fn own_init(run: &Profiled, rank: u32) -> [u64; 2] {
    let line = run.truth(rank).swap_remove(0);
    [&line[1], &line[2]].map(|time| time.parse().unwrap())
}

/// The calls of a function, each with its tag and when it began, in ns.
fn calls_of(header: &TimelineHeader, events: &[TimelineEvent], name: &str) -> Vec<(usize, u64)> {
    let function = header.functions.iter().position(|function| function == name).unwrap();
    let kind = TimelineKind::Call(u16::try_from(function).unwrap());
    let own = events.iter().filter(|event| event.kind == kind);
    own.map(|event| (usize::try_from(event.tag).unwrap(), header.clock.ns(event.begun))).collect()
}

#[test]
fn timeline_of_a_window_has_its_calls_and_no_others() {
    for mpi in EACH {
        let settings = [("GYAN_TIMELINE_WINDOW", "400ms@200ms"), ("GYAN_BUDGET", "100%")];
        let run = iterated(mpi, &["800", "1"], &settings);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        for rank in 0..RANKS {
            let (header, events) = parsed(&run.directory, rank);
            let calls = calls_of(&header, &events, "MPI_Sendrecv");
            let [(first, begun), ..] = calls[..] else { panic!("{mpi:?}: no call") };
            let (last, last_begun) = *calls.last().unwrap();
            // Every call in it, as the tags are the iterations.
            let tags: Vec<usize> = calls.iter().map(|(tag, _)| *tag).collect();
            assert_eq!(tags, (first..=last).collect::<Vec<_>>(), "{mpi:?}");
            // gyan's MPI_Init ended within that of the program. The clocks are compared to the microsecond.
            let [before, after] = own_init(&run, rank);
            assert!(begun + 1000 >= before + 200_000_000, "{mpi:?}: {begun} {before}");
            assert!(last_begun <= after + 600_000_000 + 1000, "{mpi:?}: {last_begun} {after}");
            assert!(last < 799, "{mpi:?}: the window did not close");
        }
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        assert!(said.contains("recorded for 0.4 s from 0.2 s after MPI_Init on"), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        assert!(slices.iter().all(|slice| slice.from.is_empty() && slice.to.is_empty()));
    }
}

#[test]
fn timeline_of_a_phase_has_its_calls_and_no_others() {
    for mpi in EACH {
        let run = iterated(mpi, &["30", "0"], &[("GYAN_TIMELINE_PHASE", "level 7")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        assert!(said.contains("recorded inside of the phase \"level 7\""), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        for rank in 0..RANKS {
            let own: Vec<&SliceRead> = slices.iter().filter(|slice| slice.rank == rank).collect();
            let calls: Vec<&str> = own
                .iter()
                .filter(|slice| slice.thread == "MPI")
                .map(|slice| slice.name.as_str())
                .collect();
            let each = ["MPI_Sendrecv", "MPI_Allreduce"];
            assert_eq!(calls, each.repeat(30), "{mpi:?}");
            let phases = own.iter().filter(|slice| slice.thread == "phases");
            let names: Vec<&str> = phases.clone().map(|slice| slice.name.as_str()).collect();
            assert_eq!(names, ["level 7"; 30], "{mpi:?}");
        }
    }
}

/// The iterations that a rank kept, each with its events.
fn iterations(
    directory: &Path,
    rank: u32,
) -> Vec<(TimelineIteration, Vec<(String, TimelineEvent)>)> {
    let (header, events) = parsed(directory, rank);
    let mut events = events.into_iter();
    let name = |kind| match kind {
        TimelineKind::Call(function) => header.functions[usize::from(function)].clone(),
        other => format!("{other:?}"),
    };
    let own = |iteration: &TimelineIteration| {
        let own = events.by_ref().take(usize::try_from(iteration.events).unwrap());
        (*iteration, own.map(|event| (name(event.kind), event)).collect())
    };
    header.iterations.as_ref().unwrap().kept.iter().map(own).collect()
}

/// How long each iteration took by the program's own clock, in ns, by the number that gyan has for it.
fn own_durations(run: &Profiled, rank: u32, what: Between) -> BTreeMap<u64, u64> {
    let lines = run.truth(rank).into_iter().filter(|line| line[0] == "took");
    let number = |text: &String| text.parse::<u64>().unwrap();
    // The program counts from 0, as does the number of calls before an iteration.
    let of = |line: Vec<String>| match what {
        Between::Calls => (number(&line[1]), number(&line[2])),
        Between::PhaseChanges => (number(&line[1]) + 1, number(&line[3])),
    };
    lines.map(of).collect()
}

/// What an iteration lies between.
#[derive(Clone, Copy)]
enum Between {
    Calls,
    PhaseChanges,
}

/// The names of the slices that mark iterations of a rank, and how many calls it has.
fn marked(run: &Profiled, rank: u32) -> (BTreeSet<String>, usize) {
    let file = run.place().join("marked.json");
    written(&run.directory, &file);
    let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let own = events.iter().filter(|event| event["ph"] == "X" && event["pid"] == rank);
    let names: Vec<&str> = own.map(|event| event["name"].as_str().unwrap()).collect();
    let marks = names.iter().filter(|name| name.contains("iteration"));
    let calls = names.iter().filter(|name| name.starts_with("MPI_")).count();
    (marks.map(|name| (*name).to_owned()).collect(), calls)
}

/// A process may lose its processor between gyan's reading of the clock and its own.
const LATE_NS: u64 = 25_000_000;

/// The shortest and the longest duration of each iteration over some ranks: all of them end it together, but one may be late to look
/// at its clock.
fn own_bounds(run: &Profiled, ranks: Range<u32>, what: Between) -> BTreeMap<u64, [u64; 2]> {
    let mut bounds = BTreeMap::new();
    for (number, ns) in ranks.flat_map(|rank| own_durations(run, rank, what)) {
        let [least, most] = bounds.entry(number).or_insert([ns, ns]);
        (*least, *most) = (ns.min(*least), ns.max(*most));
    }
    bounds
}

/// The three slowest iterations that are shown, and the typical one, are those by the clock of the program, on ranks that came to
/// their end.
fn are_the_slowest(run: &Profiled, ranks: Range<u32>, what: Between) {
    let truth = own_bounds(run, ranks.clone(), what);
    let mut least: Vec<u64> = truth.values().skip(3).map(|[least, _]| *least).collect();
    least.sort_unstable();
    let third = least[least.len() - 3];
    for rank in ranks {
        let (marks, _) = marked(run, rank);
        let number = |name: &String, kind| name.strip_prefix(kind)?.parse::<u64>().ok();
        let slow: Vec<u64> =
            marks.iter().filter_map(|name| number(name, "slow iteration ")).collect();
        assert_eq!(slow.len(), 3, "{marks:?}");
        assert!(slow.iter().all(|slow| truth[slow][1] + LATE_NS >= third), "{slow:?} {truth:?}");
        let typical = marks.iter().find_map(|name| number(name, "typical iteration ")).unwrap();
        let kept = iterations(&run.directory, rank).into_iter().map(|(iteration, _)| iteration);
        let drawn: Vec<u64> = kept.filter(|kept| kept.is_drawn).map(|kept| kept.number).collect();
        let middle = |side: usize| {
            let mut bounds: Vec<u64> = drawn.iter().map(|number| truth[number][side]).collect();
            bounds.sort_unstable();
            assert_eq!(bounds.len(), 5);
            bounds[2]
        };
        let [least, most] = truth[&typical];
        let is_middle = least <= middle(1) + LATE_NS && most + LATE_NS >= middle(0);
        assert!(is_middle, "{typical} {drawn:?} {truth:?}");
    }
}

#[test]
fn timeline_of_the_slowest_iterations_has_these_and_a_typical_one() {
    for (mpi, how) in [(OPENMPI, ""), (MPICH, ""), (MPICH, "threads")] {
        let run = iterated(mpi, &["100", "1", "5", how], &[("GYAN_TIMELINE_SLOWEST", "3")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let said = written(&run.directory, &run.place().join("trace.pftrace"));
        let what =
            "the 3 slowest of 97 iterations between calls of MPI_Allreduce on MPI_COMM_WORLD (";
        assert!(said.contains(what) && said.contains(") beside a typical one ("), "{said}");
        are_the_slowest(&run, 0..RANKS, Between::Calls);
        let truth = own_bounds(&run, 0..RANKS, Between::Calls);
        for rank in 0..RANKS {
            let (header, _) = parsed(&run.directory, rank);
            for (iteration, events) in iterations(&run.directory, rank) {
                let Some(ended) = iteration.ended_ticks else { continue };
                assert_eq!(iteration.lost, 0);
                let own = || events.iter().filter(|(_, event)| event.communicator == 1);
                let names: Vec<&str> = own().map(|(name, _)| name.as_str()).collect();
                let all = ["MPI_Barrier", "MPI_Sendrecv", "Receives", "MPI_Allreduce"];
                assert_eq!(names, all, "{mpi:?} {how}");
                let (_, sent) = own().nth(1).unwrap();
                assert_eq!(sent.tag.cast_unsigned(), u32::try_from(iteration.number).unwrap());
                // The other thread of the program calls meanwhile.
                let others = events
                    .iter()
                    .any(|(name, event)| name == "MPI_Sendrecv" && event.communicator != 1);
                assert!(!others || how == "threads", "{events:?}");
                let clock = &header.clock;
                let took = clock.ns(ended) - clock.ns(iteration.begun_ticks);
                let [least, most] = truth[&iteration.number];
                let is_it = took + LATE_NS >= least && took <= most + LATE_NS;
                assert!(is_it, "{iteration:?}: {took} {truth:?}");
                // Each call ended in it. Another thread may record one a little later.
                let calls = events.iter().filter(|(name, _)| name.starts_with("MPI_"));
                for (name, event) in calls {
                    let late = if event.communicator == 1 { 0 } else { LATE_NS };
                    let end = clock.ns(event.begun + event.took);
                    let [from, until] = [iteration.begun_ticks, ended].map(|at| clock.ns(at));
                    assert!(end + late >= from && end <= until + late, "{name} {event:?}");
                }
            }
            let (marks, calls) = marked(&run, rank);
            assert_eq!(marks.len(), 4);
            assert!(if how == "threads" { calls > 12 + 60 } else { calls == 12 }, "{calls}");
        }
    }
}

#[test]
fn timeline_of_the_slowest_passes_through_a_phase_has_these() {
    for mpi in EACH {
        let settings = [("GYAN_TIMELINE_SLOWEST", "3"), ("GYAN_TIMELINE_PHASE", "level 7")];
        let run = iterated(mpi, &["60", "1", "5"], &settings);
        assert_eq!(run.outcome.code, 0, "{mpi:?}: {}", run.outcome.stderr);
        let said = written(&run.directory, &run.place().join("trace.pftrace"));
        let what = "the 3 slowest of 60 passes through the phase \"level 7\" (";
        assert!(said.contains(what) && said.contains(") beside a typical one ("), "{said}");
        are_the_slowest(&run, 0..RANKS, Between::PhaseChanges);
        for rank in 0..RANKS {
            for (iteration, events) in iterations(&run.directory, rank) {
                let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
                let all = ["Phase", "MPI_Sendrecv", "Receives", "MPI_Allreduce", "Phase"];
                assert_eq!(names, all, "{mpi:?}");
                assert_eq!(u64::from(events[1].1.tag.cast_unsigned()), iteration.number - 1);
            }
        }
    }
}

#[test]
fn timeline_of_the_slowest_iterations_of_a_killed_rank_is_left() {
    for mpi in EACH {
        let settings = [("GYAN_TIMELINE_SLOWEST", "3"), ("GYAN_BUDGET", "100%")];
        let run = iterated(mpi, &["100", "1", "3", "killed"], &settings);
        assert_ne!(run.outcome.code, 0, "{mpi:?}");
        let all = (0..RANKS).map(|rank| run.directory.join(timeline_file_name(rank)));
        let all: Vec<PathBuf> = all.collect();
        assert!(comes_true(|| all.iter().all(|path| path.exists())), "{mpi:?}");
        let kept = iterations(&run.directory, 1);
        let (last, events) = kept.last().unwrap();
        assert_eq!((last.number, last.ended_ticks), (99, None), "{mpi:?}");
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        let all = ["Phase", "MPI_Barrier", "Phase", "MPI_Sendrecv", "Receives"];
        assert_eq!(names, all, "{mpi:?}");
        let (marks, _) = marked(&run, 1);
        assert!(marks.contains("unfinished iteration 99"), "{mpi:?}: {marks:?}");
        // Others may not have written what they know.
        are_the_slowest(&run, 1..2, Between::Calls);
    }
}
