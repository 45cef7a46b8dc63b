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

use crate::calls::waiting::summary;
use crate::cluster::Cluster;
use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Profiled, comes_true, each_library, gyan, only_run_directory,
    python_with, quiet, root, run, succeed,
};
use crate::matrix::{self, Column};

const RANKS: u32 = 3;
const TRIES: usize = 3;

/// Runs the program of these tests.
fn ran(mpi: Mpi, arguments: &[&str], settings: &[(&str, &str)]) -> Profiled {
    // For the lines of its calls.
    let program = mpi.compiled("timeline", &["-g"]);
    Profiled::preloaded(mpi, RANKS as usize, &program, arguments, settings)
}

/// Runs another one, with a timeline of all its calls.
fn with_timeline(mpi: Mpi, program: &Path, arguments: &[&str]) -> Profiled {
    let settings = [("GYAN_TIMELINE", "4MiB")];
    Profiled::preloaded(mpi, RANKS as usize, program, arguments, &settings).succeeded()
}

/// What `gyan timeline` says of a run to programs.
pub(crate) fn timeline_json(directory: &Path) -> Value {
    let mut command = gyan();
    command.arg("timeline").arg(directory).args(["--format", "json"]);
    serde_json::from_str(&succeed(&mut command).stdout).unwrap()
}

/// The events of a run's trace in JSON.
fn trace_events(run: &Profiled) -> Vec<Value> {
    let file = run.place().join("trace.json");
    written(&run.directory, &file);
    let trace: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
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
    let outcome = succeed(gyan().arg("timeline").arg(directory).arg("-o").arg(file));
    outcome.stdout
}

/// The slices of calls, by the definitions of Perfetto; none where these cannot be had.
fn perfetto(file: &Path) -> Option<Vec<SliceRead>> {
    let python = python_with("test-perfetto", "perfetto", &["perfetto", "protobuf"])?;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs/read_trace.py");
    let outcome = succeed(Command::new(python).arg(script).arg(file));
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
    let all = slices.iter().map(read);
    Some(all.filter(|slice| !is_mark(&slice.name)).collect())
}

/// Whether a slice marks a wait in a call, under the name of a finding, or the critical path.
fn is_mark(name: &str) -> bool {
    let findings = ["late-senders", "late-receivers", "waiting", "late-root", "early-root"];
    findings.contains(&name) || name == "critical path"
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
    let outside =
        ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Wtime", "MPI_Wtick", ANYWHERE];
    let calls = profile.calls.iter().map(|call| (call.name.as_str(), call.count));
    calls.filter(|(function, count)| !outside.contains(function) && *count > 0).collect()
}

#[test]
fn timeline_has_every_call_and_message_in_each_format() {
    let persistent = MPIS.map(|mpi| (mpi, &["20", "persistent"][..]));
    for (mpi, arguments) in
        each_library().into_iter().map(|mpi| (mpi, &["20"][..])).chain(persistent)
    {
        let run = ran(mpi, arguments, &[("GYAN_TIMELINE", "4MiB")]).succeeded();
        otf2_has_every_call_message_and_collective_operation(mpi, &run);
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
            // What it costs is not what the budget limits.
            let overhead = &profile.overhead;
            let limited = overhead.sampling_s + overhead.wrappers_s + overhead.events_s;
            assert!(overhead.timeline_s > 0.0, "{overhead:?}");
            let running_s = overhead.running_share * profile.job.elapsed_s;
            assert!((running_s - limited).abs() < 1e-9, "{overhead:?}");
        }
        assert_eq!(arrows_are_messages(&run, &slices), messages_of(&run), "{mpi:?} {arguments:?}");
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

fn otf2_has_every_call_message_and_collective_operation(mpi: Mpi, run: &Profiled) {
    let (events, said) = archived(run);
    assert!(said.contains("OTF2") && !said.contains("not certain"), "{said}");
    assert!(!said.contains("communicators"), "{said}");
    let enters = archive_is_sound(&events);
    for (rank, profile) in (0..).zip(run.profiles().iter()) {
        let own = enters.iter().filter(|((of, _), _)| *of == rank);
        let seen: BTreeMap<&str, u64> = own.map(|((_, region), count)| (*region, *count)).collect();
        assert_eq!(seen, counted(profile), "{mpi:?} {rank}");
    }
    let sends = [events_of(&events, "MPI_SEND"), events_of(&events, "MPI_ISEND")].concat();
    assert_eq!(sends.len(), messages_of(run), "{mpi:?}");
    assert!(sends.iter().all(|send| send.number("Length") == 4), "{mpi:?}");
    let barriers: Vec<&EventRead> = events_of(&events, "MPI_COLLECTIVE_END");
    assert_eq!(barriers.len(), 20 * RANKS as usize, "{mpi:?}");
    assert_eq!(events_of(&events, "MPI_COLLECTIVE_BEGIN").len(), barriers.len());
    assert!(barriers.iter().all(|event| event.value("Operation") == "BARRIER"));
}

/// How many messages the program sent.
fn messages_of(run: &Profiled) -> usize {
    (0..RANKS).map(|rank| of_program(run, rank, "sends").len()).sum()
}

/// Also of those that access windows.
#[test]
fn timeline_has_the_calls_of_programs_in_any_language() {
    for mpi in each_library() {
        has_the_calls(mpi, "onesided", &mpi.compiled("onesided", &[]), &[]);
    }
    for (column, binding) in [(Column::MpifH, &["-DMPIF_H"][..]), (Column::UseMpiF08, &[])] {
        for mpi in matrix::with(column) {
            has_the_calls(mpi, column, &mpi.fortran_program("delays.F90", binding), &[]);
        }
    }
    let program = root().join("tests/programs/receives.py").display().to_string();
    for mpi in matrix::two_with_python() {
        has_the_calls(mpi, "mpi4py", Path::new("python-mpi4py"), &[&program, "mprobe"]);
    }
}

/// A line of `otf2-print`: an event of a location, with its time in ns.
#[derive(Debug)]
struct EventRead {
    name: String,
    location: u64,
    time: u64,
    rest: String,
}

/// The ranks that send and receive a message, the communicator, its tag and its length.
type MessageRead<'a> = (u64, u64, &'a str, u64, u64);

impl EventRead {
    /// The locations of a rank are numbered so that the low half is the rank.
    fn rank(&self) -> u32 {
        u32::try_from(self.location & 0xffff_ffff).unwrap()
    }

    /// What follows a word, up to the next comma.
    fn value(&self, word: &str) -> &str {
        let (_, rest) = self.rest.split_once(&format!("{word}: ")).unwrap();
        rest.split(',').next().unwrap()
    }

    /// The text of a reference, without its number.
    fn named(&self, word: &str) -> &str {
        self.value(word).split('"').nth(1).unwrap()
    }

    fn number(&self, word: &str) -> u64 {
        let value = self.value(word);
        value.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn message(&self) -> MessageRead<'_> {
        let own = u64::from(self.rank());
        let (from, to) = if self.name.ends_with("SEND") {
            (own, self.number("Receiver"))
        } else {
            (self.number("Sender"), own)
        };
        (from, to, self.named("Communicator"), self.number("Tag"), self.number("Length"))
    }
}

/// The events of a run's archive, as OTF2's own reader has them, and what the command says.
fn archived(profiled: &Profiled) -> (Vec<EventRead>, String) {
    let packages = ["libotf2-trace-dev", "otf2-tools"];
    assert_eq!(run(Command::new(root().join("scripts/packages")).args(packages)).code, 0);
    let file = profiled.place().join("trace.otf2");
    let said = written(&profiled.directory, &file);
    let outcome = quiet(Command::new("otf2-print").arg(&file));
    let read = |line: &str| {
        let (name, rest) = line.split_once(char::is_whitespace)?;
        let (location, rest) = rest.trim_start().split_once(char::is_whitespace)?;
        let (time, rest) = rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (location, time) = (location.parse().ok()?, time.trim().parse().ok()?);
        Some(EventRead { name: name.to_owned(), location, time, rest: rest.trim().to_owned() })
    };
    (outcome.stdout.lines().filter_map(read).collect(), said)
}

/// Checks what readers of OTF2 take for granted: times rise, regions are inside of each other, every message has two ends, the
/// receive after the send, and every request is completed once. Returns the enters by rank and region.
fn archive_is_sound(events: &[EventRead]) -> BTreeMap<(u32, &str), u64> {
    let mut open: BTreeMap<u64, (u64, Vec<&str>)> = BTreeMap::new();
    let mut enters: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    let mut requests: BTreeSet<(u32, u64, &str)> = BTreeSet::new();
    let mut messages: BTreeMap<MessageRead, [Vec<u64>; 2]> = BTreeMap::new();
    for event in events {
        let (time, regions) = open.entry(event.location).or_default();
        assert!(event.time >= *time, "{event:?}");
        *time = event.time;
        let request = |what| (event.rank(), event.number("Request"), what);
        match event.name.as_str() {
            "ENTER" => {
                let region = event.named("Region");
                regions.push(region);
                *enters.entry((event.rank(), region)).or_default() += 1;
            }
            "LEAVE" => assert_eq!(regions.pop(), Some(event.named("Region")), "{event:?}"),
            "MPI_ISEND" => assert!(requests.insert(request("send")), "{event:?}"),
            "MPI_IRECV_REQUEST" => assert!(requests.insert(request("receive")), "{event:?}"),
            "MPI_ISEND_COMPLETE" => assert!(requests.remove(&request("send")), "{event:?}"),
            "MPI_IRECV" => assert!(requests.remove(&request("receive")), "{event:?}"),
            "NON_BLOCKING_COLLECTIVE_REQUEST" => {
                assert!(regions.last().is_some_and(|region| region.starts_with("MPI_I")));
                assert!(requests.insert(request("operation")), "{event:?}");
            }
            "NON_BLOCKING_COLLECTIVE_COMPLETE" => {
                assert!(regions.last().is_some_and(|region| region.starts_with("MPI_Wait")));
                assert!(requests.remove(&request("operation")), "{event:?}");
            }
            _ => {}
        }
        if ["MPI_SEND", "MPI_ISEND", "MPI_RECV", "MPI_IRECV"].contains(&event.name.as_str()) {
            let side = usize::from(event.name.ends_with("RECV"));
            messages.entry(event.message()).or_default()[side].push(event.time);
        }
    }
    assert!(open.values().all(|(_, regions)| regions.is_empty()));
    assert!(requests.is_empty(), "{requests:?}");
    for (message, [sent, received]) in messages {
        assert_eq!(sent.len(), received.len(), "{message:?}");
        assert!(sent.iter().zip(&received).all(|(sent, received)| sent <= received), "{message:?}");
    }
    enters
}

fn events_of<'a>(events: &'a [EventRead], name: &str) -> Vec<&'a EventRead> {
    events.iter().filter(|event| event.name == name).collect()
}

#[test]
fn timeline_in_otf2_has_nonblocking_operations_from_their_start_to_their_end() {
    const EACH_KIND: usize = 100;
    for mpi in MPIS {
        let run = with_timeline(mpi, &mpi.program("rooted"), &["nonblocking", "reverse"]);
        let (events, _) = archived(&run);
        archive_is_sound(&events);
        let ends = events_of(&events, "NON_BLOCKING_COLLECTIVE_COMPLETE");
        for (operation, root) in [
            ("BCAST", Some("1 ")),
            ("SCATTER", Some("1 ")),
            ("REDUCE", Some("1 ")),
            ("GATHER", Some("1 ")),
            ("SCAN", None),
            ("ALLREDUCE", None),
            ("BARRIER", None),
        ] {
            for rank in 0..RANKS {
                let own = ends.iter().filter(|event| event.rank() == rank);
                let own: Vec<_> = own.filter(|of| of.value("Operation") == operation).collect();
                assert_eq!(own.len(), EACH_KIND, "{mpi:?}: {operation}");
                let is_root = |of: &str| root.is_none_or(|root| of.starts_with(root));
                assert!(own.iter().all(|of| is_root(of.value("Root"))), "{mpi:?}: {own:?}");
            }
        }
        let count = 7 * EACH_KIND * RANKS as usize;
        assert_eq!(
            (events_of(&events, "NON_BLOCKING_COLLECTIVE_REQUEST").len(), ends.len()),
            (count, count)
        );
    }
}

fn otf2_has_a_location_for_each_thread(mpi: Mpi, run: &Profiled) {
    let (events, _) = archived(run);
    let enters = archive_is_sound(&events);
    for rank in 0..RANKS {
        assert_eq!(enters[&(rank, "MPI_Send")], 100, "{mpi:?}");
        let own = events.iter().filter(|event| event.rank() == rank);
        let sends = own.filter(|event| event.name == "MPI_SEND");
        let tags: BTreeSet<(u64, u64)> =
            sends.map(|event| (event.location, event.number("Tag"))).collect();
        assert_eq!(tags.len(), 2, "{mpi:?}: {tags:?}");
    }
    assert_eq!(events_of(&events, "MPI_IRECV").len(), 100 * RANKS as usize, "{mpi:?}");
}

fn otf2_has_no_message_or_operation_without_its_other_side(mpi: Mpi, run: &Profiled) {
    let (events, said) = archived(run);
    assert!(said.contains("overwritten"), "{said}");
    archive_is_sound(&events);
    assert!(!events_of(&events, "MPI_ISEND").is_empty(), "{mpi:?}");
    let mut barriers = [0; RANKS as usize];
    for event in events_of(&events, "MPI_COLLECTIVE_END") {
        barriers[event.rank() as usize] += 1;
    }
    assert!(barriers[0] > 0 && barriers.iter().all(|count| *count == barriers[0]));
}

#[test]
fn timeline_in_otf2_has_phases_around_their_calls() {
    for mpi in MPIS {
        let run = iterated(mpi, &["30", "0"], &[]).succeeded();
        let (events, _) = archived(&run);
        let enters = archive_is_sound(&events);
        let mut regions: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.name == "ENTER" || event.name == "LEAVE") {
            let open = regions.entry(event.location).or_default();
            let region = event.named("Region");
            if event.name == "LEAVE" {
                open.pop();
                continue;
            }
            let outside = match region {
                "MPI_Sendrecv" | "MPI_Allreduce" => vec!["level 7"],
                "MPI_Bcast" | "MPI_Barrier" => vec![],
                _ => open.clone(),
            };
            assert_eq!(*open, outside, "{mpi:?}: {event:?}");
            open.push(region);
        }
        assert!((0..RANKS).all(|rank| enters[&(rank, "level 7")] == 30), "{mpi:?}");
        let operations = events_of(&events, "MPI_COLLECTIVE_END");
        let sums = operations.iter().filter(|event| event.value("Operation") == "ALLREDUCE");
        assert_eq!(sums.clone().count(), 30 * RANKS as usize);
        assert!(sums.clone().all(|event| event.number("Sent") == 8), "{mpi:?}");
        let broadcasts = operations.iter().filter(|event| event.value("Operation") == "BCAST");
        assert_eq!(broadcasts.clone().count(), 30 * RANKS as usize);
        for event in broadcasts {
            assert_eq!(event.number("Root"), u64::from(RANKS - 1), "{mpi:?}");
            let moved = if event.rank() == RANKS - 1 { (4, 0) } else { (0, 4) };
            assert_eq!((event.number("Sent"), event.number("Received")), moved, "{mpi:?}");
        }
    }
}

#[test]
fn timeline_in_otf2_says_what_to_install_and_replaces_archives_only() {
    let profiled = ran(MPICH, &["2"], &[("GYAN_TIMELINE", "64KiB")]);
    let file = profiled.place().join("trace.otf2");
    let export = |file: &Path, more: &[&str], libraries: &Path| {
        let mut command = gyan();
        command.arg("timeline").arg(&profiled.directory).arg("-o").arg(file).args(more);
        run(command.env("LD_LIBRARY_PATH", libraries))
    };
    // The loader takes these for the libraries.
    let broken = profiled.place().join("broken");
    fs::create_dir(&broken).unwrap();
    for name in ["libopen-trace-format2.so.10", "libotf2.so.10"] {
        fs::write(broken.join(name), "").unwrap();
    }
    let outcome = export(&file, &[], &broken);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("package libotf2-trace-dev"), "{}", outcome.stderr);
    assert!(!file.exists() && !file.with_extension("").exists());

    archived(&profiled);
    assert_eq!(export(&file, &[], Path::new("")).code, 2);
    assert_eq!(export(&file, &["--force"], Path::new("")).code, 0);
    // The events of this one would be where the run directory is.
    let other = PathBuf::from(format!("{}.otf2", profiled.directory.display()));
    let outcome = export(&other, &["--force"], Path::new(""));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not the directory of an archive"), "{}", outcome.stderr);
    assert!(profiled.directory.join(timeline_file_name(0)).exists() && !other.exists());
}

/// The timeline of each rank has as many calls of each function as its profile.
fn has_the_calls(mpi: Mpi, what: impl Debug, program: &Path, arguments: &[&str]) {
    let run = with_timeline(mpi, program, arguments);
    for (rank, profile) in (0..).zip(run.profiles().iter()) {
        let (header, events) = parsed(&run.directory, rank);
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for event in events {
            if let TimelineKind::Call(function) = event.kind {
                *seen.entry(&header.functions[usize::from(function)]).or_default() += 1;
            }
        }
        seen.remove(ANYWHERE);
        assert_eq!(seen, counted(profile), "{what:?} {rank}");
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
    let events = trace_events(run);
    let calls = || events.iter().filter(|event| !event["name"].as_str().is_some_and(is_mark));
    let of = |phase: &'static str| calls().filter(move |event| event["ph"] == *phase);
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
fn timeline_of_a_small_ring_has_the_latest_calls_and_no_wrong_arrow_or_side_of_a_message() {
    for mpi in MPIS {
        let run = ran(mpi, &["100"], &[("GYAN_TIMELINE", "8KiB")]).succeeded();
        otf2_has_no_message_or_operation_without_its_other_side(mpi, &run);
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        let mut lost = 0;
        for rank in 0..RANKS {
            let (header, _) = parsed(&run.directory, rank);
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
fn timeline_file_is_no_larger_than_its_limit_and_has_the_latest_calls() {
    let run = ran(OPENMPI, &["100"], &[("GYAN_TIMELINE", "4MiB")]).succeeded();
    for name in ["trace.pftrace", "trace.json"] {
        let file = run.place().join(name);
        let calls = |said: &str| said.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
        let all = calls(&written(&run.directory, &file));
        let limit = fs::metadata(&file).unwrap().len() / 2;
        let limited = run.place().join(format!("limited-{name}"));
        let mut command = gyan();
        command.arg("timeline").arg(&run.directory).arg("-o").arg(&limited);
        let outcome = crate::common::succeed(command.args(["--limit", &limit.to_string()]));
        let bytes = fs::metadata(&limited).unwrap().len();
        assert!(limit / 2 < bytes && bytes <= limit, "{name}: {bytes} {limit}");
        let said = outcome.stdout;
        let left_out = said.lines().find_map(|line| line.split_once(" earlier calls are left out"));
        assert_eq!(calls(&said) + left_out.unwrap().0.parse::<u64>().unwrap(), all, "{said}");
        let mut command = gyan();
        command.arg("timeline").arg(&run.directory).arg("-o").arg(run.place().join("small"));
        let outcome = self::run(command.args(["--limit", "10"]));
        assert!(outcome.stderr.contains("the limit is too small"), "{}", outcome.stderr);
    }
    let Some(slices) = perfetto(&run.place().join("limited-trace.pftrace")) else { return };
    for rank in 0..RANKS {
        let final_call = slices.iter().rev().find(|slice| slice.rank == rank).unwrap();
        assert_eq!(final_call.name, "MPI_Comm_free");
    }
}

#[test]
fn timeline_of_threads_has_the_calls_of_each_in_each_format() {
    for mpi in MPIS {
        let run = ran(mpi, &["50", "threads"], &[("GYAN_TIMELINE", "4MiB")]).succeeded();
        otf2_has_a_location_for_each_thread(mpi, &run);
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
    for mpi in MPIS {
        // A snapshot at each of the few calls.
        let settings = [("GYAN_TIMELINE", "64KiB"), ("GYAN_BUDGET", "100%")];
        let run = ran(mpi, &["10", "killed"], &settings);
        assert_ne!(run.outcome.code, 0, "{mpi:?}");
        let path = run.directory.join(timeline_file_name(1));
        assert!(comes_true(|| path.exists()), "{mpi:?}");
        let (header, events) = parsed(&run.directory, 1);
        assert_eq!((header.rank, header.ended), (1, None));
        assert_eq!(events.len() as u64, header.recorded, "{mpi:?}");
        archive_is_sound(&archived(&run).0);
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
    for mpi in MPIS {
        let settings = [("GYAN_TIMELINE_WINDOW", "400ms@200ms"), ("GYAN_BUDGET", "100%")];
        let run = iterated(mpi, &["800", "1"], &settings).succeeded();
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
    for mpi in MPIS {
        let run = iterated(mpi, &["30", "0"], &[("GYAN_TIMELINE_PHASE", "level 7")]).succeeded();
        let file = run.place().join("trace.pftrace");
        let said = written(&run.directory, &file);
        assert!(said.contains("recorded inside of the phase \"level 7\""), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        for rank in 0..RANKS {
            let own: Vec<&SliceRead> = slices.iter().filter(|slice| slice.rank == rank).collect();
            let names = |thread: &str| -> Vec<&str> {
                let own = own.iter().filter(|slice| slice.thread == thread);
                own.map(|slice| slice.name.as_str()).collect()
            };
            assert_eq!(names("MPI"), ["MPI_Sendrecv", "MPI_Allreduce"].repeat(30));
            assert_eq!(names("phases"), ["level 7"; 30]);
        }
    }
}

/// The hosts of a cluster on one machine have the same clock, which gyan does not know.
#[test]
fn timeline_of_four_hosts_has_one_clock_and_no_arrow_back_in_time() {
    const HOSTS: [&str; 4] = ["node1", "node2", "node3", "node4"];
    let Some(cluster) = Cluster::of(&HOSTS) else { return };
    cluster.does(&["delay", "1ms"]);
    let libfabric = "env MPIR_CVAR_CH4_NETMOD=ofi mpirun -n 4";
    for (name, launcher) in [("openmpi4", "mpirun -n 4"), ("mpich5", libfabric)] {
        let mpi = Mpi::named(name);
        let here = cluster.shared().join(name);
        fs::create_dir(&here).unwrap();
        let gyan_run = format!("{} run --timeline -- {launcher}", gyan().get_program().display());
        let program = mpi.compiled("iterations", &[]).display().to_string();
        let mut words: Vec<&str> = gyan_run.split_whitespace().collect();
        words.extend([program.as_str(), "100", "0"]);
        succeed(cluster.under(name, &words).current_dir(&here));
        let directory = only_run_directory(&here);
        let file = here.join("trace.pftrace");
        let said = written(&directory, &file);
        assert!(said.contains("the clocks of 4 hosts agree within "), "{said}");
        let Some(slices) = perfetto(&file) else { return };
        let sent: BTreeMap<&String, f64> = slices
            .iter()
            .flat_map(|slice| slice.from.iter().map(|arrow| (arrow, slice.begin)))
            .collect();
        assert!(sent.len() >= 400, "{name}: {}", sent.len());
        for slice in &slices {
            for arrow in &slice.to {
                assert!(sent[arrow] <= slice.end, "{name}: {slice:?}");
            }
        }
        let (_, error) = said.split_once("agree within ").unwrap();
        let [number, unit, ..] = error.split_whitespace().collect::<Vec<_>>()[..] else { panic!() };
        let unit_ns =
            [("µs", 1e3), ("ms", 1e6), ("s", 1e9)].iter().find(|of| of.0 == unit).unwrap().1;
        // It has three digits.
        let error_ns = 1.01 * number.parse::<f64>().unwrap() * unit_ns;
        let moved = |rank: u32| {
            let (header, events) = parsed(&directory, rank);
            let (_, begun) = calls_of(&header, &events, "MPI_Sendrecv")[0];
            let of_rank = |slice: &&SliceRead| slice.rank == rank && slice.name == "MPI_Sendrecv";
            slices.iter().find(of_rank).unwrap().begin - begun as f64
        };
        let first = moved(0);
        for rank in 1..4 {
            let off_ns = (moved(rank) - first).abs();
            assert!(off_ns <= error_ns, "{name}: rank {rank} is off by {off_ns} ns, {said}");
        }
    }
}

/// How long each rank waits for another one by the program's own clock, in s: for a message until it is sent, and in the barrier of a
/// round until the last rank comes to it.
fn own_waits(run: &Profiled) -> Vec<f64> {
    type Times = BTreeMap<(u32, String, u32), f64>;
    let mut times: Times = BTreeMap::new();
    for rank in 0..RANKS {
        for line in run.truth(rank) {
            let [what, round, to, ns] = line.try_into().unwrap();
            let whose = if what == "sends" { to.parse().unwrap() } else { rank };
            let ns: f64 = ns.parse().unwrap();
            times.insert((round.parse().unwrap(), what, whose), ns * 1e-9);
        }
    }
    let mut waits = vec![0.0; RANKS as usize];
    for ((round, what, rank), begun) in &times {
        let until = match what.as_str() {
            "receives" => times[&(*round, "sends".to_owned(), *rank)],
            "meets" => {
                let all = (0..RANKS).map(|rank| times[&(*round, "meets".to_owned(), rank)]);
                all.fold(0.0, f64::max)
            }
            _ => continue,
        };
        waits[*rank as usize] += (until - begun).max(0.0);
    }
    waits
}

/// What comes after a text, up to another one, each time.
fn between<'a>(text: &'a str, after: &'a str, before: &'a str) -> Vec<&'a str> {
    text.split(after).skip(1).map(|rest| rest.split(before).next().unwrap()).collect()
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn timeline_on_the_page_waits_as_long_as_the_program_says() {
    for mpi in MPIS {
        // A rank may lose its processor between reading its clock and its call.
        assert!((0..TRIES).any(|_| the_page_agrees_with_the_program(mpi)), "{mpi:?}");
    }
}

/// Whether its times do; all else holds in any run.
fn the_page_agrees_with_the_program(mpi: Mpi) -> bool {
    let run = with_timeline(mpi, &mpi.compiled("late_sender", &["-g"]), &["50", "10"]);
    let outcome = run_page(&run.directory);
    let section = between(&outcome, "<section id=\"timeline\"", "</section>")[0];
    assert!(section.contains("; late_sender.c:"), "{mpi:?}: {section}");
    let truth = own_waits(&run);
    let parts: f64 = between(section, "data-cells=\"", "\"")[0].parse().unwrap();
    // One of each rank: the width of what is hatched, in parts of the window.
    let drawn = between(section, "<g stroke-width", "</g></g>");
    let rows = between(section, "<tr class", "</tr>");
    // Without the headings.
    let cells: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| between(row, "data-v=\"", "\"").iter().map(|v| v.parse().unwrap()).collect())
        .collect();
    assert_eq!((drawn.len(), cells.len()), (RANKS as usize, RANKS as usize), "{mpi:?}");
    let mut agrees = true;
    for (rank, truth) in truth.iter().enumerate() {
        let [_, _, waited, share, ..] = cells[rank][..] else { panic!("{mpi:?}") };
        let hatched = between(drawn[rank], "<g stroke=\"url(#timeline-0-waits)\">", "</g>");
        let widths = hatched.iter().flat_map(|group| between(group, " 0h", "\""));
        let width: f64 = widths.map(|width| width.parse::<f64>().unwrap()).sum();
        let picture = width / parts * waited / share;
        // A rank that waits little has but a few cells.
        let within = |known: f64| (known - truth).abs() < 0.1 * truth + 0.01;
        println!("{mpi:?}: {rank}: {truth} {waited} {picture}");
        agrees &= within(waited) && within(picture);
    }
    let all = |of: usize| cells.iter().map(|row| row[of]).sum::<f64>();
    let known: f64 = truth.iter().sum();
    println!("{mpi:?}: {known} {}", all(2));
    agrees && (all(2) - known).abs() < 0.1 * known
}

/// The page of a run.
fn run_page(directory: &Path) -> String {
    let outcome = succeed(gyan().args(["report", "--format", "html"]).arg(directory));
    outcome.stdout
}

/// The program knows how long its ranks wait by definition. What gyan says of all calls is that, and what it says of the few calls that
/// it compares without a timeline agrees within its error.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn waits_in_a_timeline_are_those_of_the_program_and_those_of_the_sampled_calls() {
    for mpi in MPIS {
        let settings = [("GYAN_TIMELINE", "4MiB")];
        let run = Profiled::run(mpi, 2, &["delayed", "4000"], &settings).succeeded();
        let exact = timeline_json(&run.directory);
        let summary = summary(&run.profiles());
        let messages = summary.message_waiting.as_ref().unwrap();
        let sampled = |function: &str| {
            let of_function = summary.waiting.iter().find(|of| of.function == function).unwrap();
            (of_function.waiting_s, of_function.waiting_error_s)
        };
        let program_s = |word: &str| -> f64 {
            let lines = run.outcome.stdout.lines();
            let own = lines.filter_map(|line| line.split_once(' ')).find(|of| of.0 == word);
            own.unwrap().1.parse().unwrap()
        };
        let exact_s = |state: &str, function: &str| {
            let mut waits = exact["waits"].as_array().unwrap().iter();
            let own = waits.find(|of| of["state"] == state && of["function"] == function);
            own.unwrap()["waiting_s"].as_f64().unwrap()
        };
        // A rank may lose its processor between reading its clock and its call.
        let agree = |what: &str, one_s: f64, other_s: f64, error_s: f64| {
            let off_s = (one_s - other_s).abs();
            assert!(
                off_s < 4.0 * error_s + 0.05 * other_s + 0.02,
                "{mpi:?} {what}: {one_s} {other_s} +- {error_s}"
            );
        };
        let late_sender_s = exact_s("late_sender", "MPI_Recv");
        agree("late senders", late_sender_s, program_s("MPI_Recv"), 0.0);
        let error_s = messages.late_senders_error_s.unwrap();
        agree("sampled late senders", messages.late_senders_s, late_sender_s, error_s);
        let events = trace_events(&run);
        for (finding, function) in [
            ("late-senders", "MPI_Recv"),
            ("waiting", "MPI_Allreduce"),
            ("late-root", "MPI_Bcast"),
            ("early-root", "MPI_Reduce"),
        ] {
            let marked = events.iter().filter(|event| event["name"] == finding);
            let marked_us: f64 = marked.map(|event| event["dur"].as_f64().unwrap()).sum();
            agree(finding, marked_us * 1e-6, program_s(function), 0.0);
        }
        // The path has no gap, and is on one rank at a time.
        let stretches = events.iter().filter(|event| event["name"] == "critical path");
        let us = |of: &Value, key: &str| of[key].as_f64().unwrap();
        let mut stretches: Vec<(f64, f64)> =
            stretches.map(|of| (us(of, "ts"), us(of, "ts") + us(of, "dur"))).collect();
        stretches.sort_by(|one, other| one.0.total_cmp(&other.0));
        let gap_us = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].1).abs();
        assert!(stretches.len() > 1000 && stretches.windows(2).all(|pair| gap_us(pair) < 0.01));
        let window_s = exact["critical_path"]["window_s"].as_f64().unwrap();
        let ends_us = [stretches[0].0, stretches[stretches.len() - 1].1 - window_s * 1e6];
        assert!(ends_us.iter().all(|us| us.abs() < 0.01), "{mpi:?}: {ends_us:?}");
        let meeting_s = exact_s("collective", "MPI_Allreduce");
        agree("collectives", meeting_s, program_s("MPI_Allreduce"), 0.0);
        // Sampled it is by how much longer a rank takes, which is more if ranks lack processors.
        let agrees = |what: &str, (sampled_s, error_s): (f64, Option<f64>), exact_s: f64| {
            // Without an error nothing is said of all calls.
            if let Some(error_s) = error_s {
                agree(what, sampled_s, exact_s, error_s);
            }
        };
        agrees("sampled collectives", sampled("MPI_Allreduce"), program_s("longer"));
        for (state, function) in [("late_root", "MPI_Bcast"), ("early_root", "MPI_Reduce")] {
            let rooted_s = exact_s(state, function);
            agree(function, rooted_s, program_s(function), 0.0);
            agrees("sampled rooted operations", sampled(function), rooted_s);
        }
    }
}

/// The waits in the calls that complete nonblocking operations are those of the program's own clock.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn waits_for_nonblocking_operations_in_a_timeline_are_those_of_the_program() {
    for mpi in MPIS {
        let run = with_timeline(mpi, &mpi.program("rooted"), &["nonblocking"]);
        let found = timeline_json(&run.directory);
        for (state, functions) in [
            ("late_root", ["MPI_Ibcast", "MPI_Iscatter"]),
            ("early_root", ["MPI_Ireduce", "MPI_Igather"]),
            ("collective", ["MPI_Iallreduce", "MPI_Ibarrier"]),
        ] {
            let lines = run.outcome.stdout.lines().filter_map(|line| line.split_once(' '));
            let own = lines.filter(|(function, _)| functions.contains(function));
            let program_s: f64 = own.map(|(_, seconds)| seconds.parse::<f64>().unwrap()).sum();
            let waits = found["waits"].as_array().unwrap().iter().filter(|of| of["state"] == state);
            let completing =
                waits.filter(|of| of["function"].as_str().unwrap().starts_with("MPI_Wait"));
            let found_s: f64 = completing.map(|of| of["waiting_s"].as_f64().unwrap()).sum();
            // A rank may lose its processor between reading its clock and its call.
            let off_s = (found_s - program_s).abs();
            assert!(
                program_s > 0.5 && off_s < 0.05 * program_s + 0.02,
                "{mpi:?} {state}: {found_s} {program_s}"
            );
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
    let events = trace_events(run);
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
#[ignore = "measures: scripts/test runs it alone"]
fn timeline_of_the_slowest_iterations_has_these_and_a_typical_one() {
    for (mpi, how) in [(OPENMPI, ""), (MPICH, ""), (MPICH, "threads")] {
        let run =
            iterated(mpi, &["100", "1", "5", how], &[("GYAN_TIMELINE_SLOWEST", "3")]).succeeded();
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
                let all = ["MPI_Bcast", "MPI_Barrier", "MPI_Sendrecv", "Receives", "MPI_Allreduce"];
                assert_eq!(names, all, "{mpi:?} {how}");
                let (_, sent) = own().nth(2).unwrap();
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
            assert!(if how == "threads" { calls > 16 + 60 } else { calls == 16 }, "{calls}");
        }
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn timeline_of_the_slowest_passes_through_a_phase_has_these() {
    for mpi in MPIS {
        let settings = [("GYAN_TIMELINE_SLOWEST", "3"), ("GYAN_TIMELINE_PHASE", "level 7")];
        let run = iterated(mpi, &["60", "1", "5"], &settings).succeeded();
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
#[ignore = "measures: scripts/test runs it alone"]
fn timeline_of_the_slowest_iterations_of_a_killed_rank_is_left() {
    for mpi in MPIS {
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
        let all = ["Phase", "MPI_Bcast", "MPI_Barrier", "Phase", "MPI_Sendrecv", "Receives"];
        assert_eq!(names, all, "{mpi:?}");
        let (marks, _) = marked(&run, 1);
        assert!(marks.contains("unfinished iteration 99"), "{mpi:?}: {marks:?}");
        // Others may not have written what they know.
        are_the_slowest(&run, 1..2, Between::Calls);
    }
}

#[test]
fn timeline_has_the_variables_that_were_sampled_over_time() {
    let settings = [("GYAN_SERIES", "1ms"), ("GYAN_BUDGET", "none"), ("GYAN_TIMELINE", "4MiB")];
    let run = Profiled::run(OPENMPI, 2, &["course"], &settings).succeeded();
    let file = run.place().join("trace.pftrace");
    written(&run.directory, &file);
    let Some(slices) = perfetto(&file) else { return };
    for profile in run.profiles() {
        let series = profile.series.as_ref().unwrap();
        let is_zero = |values: &[Option<f64>]| values.iter().flatten().all(|value| *value == 0.0);
        let seen = series.columns.iter().filter(|column| !is_zero(&column.max));
        assert!(profile.rank != 0 || seen.clone().count() > 0, "{series:?}");
        for column in seen {
            let object = column.object.as_ref().map(|object| format!(" of {object}"));
            let name = column.name.clone() + &object.unwrap_or_default();
            let own = slices.iter().filter(|of| of.rank == profile.rank && of.name == name);
            let own: Vec<(f64, f64)> =
                own.map(|of| (of.begin, of.arguments["value"].as_f64().unwrap())).collect();
            let begins_s = std::iter::once(&0.0).chain(&series.end_s);
            let known: Vec<(f64, f64)> = begins_s
                .zip(&column.mean)
                .filter_map(|(begin, mean)| Some((*begin, (*mean)?)))
                .collect();
            assert_eq!(own.len(), known.len(), "{name}");
            // What is before the first event is at its begin.
            let [(end, _), (known_end, _)] = [own[own.len() - 1], known[known.len() - 1]];
            for ((ns, value), (begin_s, mean)) in own.iter().zip(&known) {
                assert_eq!(value.to_bits(), mean.to_bits(), "{name}");
                let truth_ns = (end - (known_end - begin_s) * 1e9).max(0.0);
                assert!((ns - truth_ns).abs() < 10.0, "{name}: {ns} {truth_ns}");
            }
        }
    }
}
