//! Receives that are called while a queue is long are counted where the program calls them.
//!
//! The programs know how many messages wait at each receive, and write it down with the line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gyan_results::{MessageMetric, Metric, RankProfile, Traffic, Watch, WatchSite};
use serde_json::Value;

use crate::common::{
    MPICH_PVARS, MPIS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Profiled, each_library, gyan,
    only_warning,
};
use crate::matrix::{Column, with};

const NO_LIMIT: (&str, &str) = ("GYAN_BUDGET", "none");
const OB1: (&str, &str) = ("OMPI_MCA_pml", "ob1");
const OB1_QUEUE: &str = "pml_ob1_unexpected_msgq_length";
const SPC_QUEUE: &str = "runtime_spc_OMPI_SPC_UNEXPECTED_IN_QUEUE";

/// A variable that is the length of the queue of unexpected messages.
struct Queue {
    mpi: Mpi,
    variable: &'static str,
    /// The settings that make the library count.
    settings: &'static [(&'static str, &'static str)],
    /// Whether it is the one that `umq` means.
    is_usual: bool,
    /// Whether it is that of one communicator.
    of_communicator: bool,
}

const QUEUES: [Queue; 5] = [
    usual(OPENMPI, OB1_QUEUE, true),
    usual(OPENMPI5, OB1_QUEUE, true),
    usual(OPENMPI_SPC, OB1_QUEUE, true),
    usual(MPICH_PVARS, "unexpected_recvq_length", false),
    Queue {
        mpi: OPENMPI_SPC,
        variable: SPC_QUEUE,
        settings: &[OB1, ("OMPI_MCA_mpi_spc_attach", "all")],
        is_usual: false,
        of_communicator: false,
    },
];

const fn usual(mpi: Mpi, variable: &'static str, of_communicator: bool) -> Queue {
    Queue { mpi, variable, settings: &[OB1], is_usual: true, of_communicator }
}

/// With the lines of its calls.
fn compiled(mpi: Mpi, program: &str) -> PathBuf {
    mpi.compiled(program, &["-g"])
}

/// A call of a receive, as the program writes it down.
struct Call {
    site: String,
    function: String,
    line: u32,
    tag: i32,
    communicator: String,
    waiting: u64,
    read: String,
}

fn calls(run: &Profiled) -> Vec<Call> {
    let lines = run.truth(0).into_iter();
    let call = |line: Vec<String>| {
        let [site, function, line, tag, communicator, waiting, read] =
            <[String; 7]>::try_from(line)
                .unwrap_or_else(|line| panic!("a line of the program: {line:?}"));
        Call {
            site,
            function,
            line: line.parse().unwrap(),
            tag: tag.parse().unwrap(),
            communicator,
            waiting: waiting.parse().unwrap(),
            read,
        }
    };
    lines.map(call).collect()
}

/// The expected data of a site.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Found {
    function: String,
    hits: u64,
    sum: u64,
    largest: u64,
    tag: Option<i32>,
    source: Option<i32>,
}

/// The calls above the threshold, by line.
fn expected(calls: &[Call], threshold: u64) -> Vec<Found> {
    let mut lines: BTreeMap<u32, Found> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.waiting > threshold) {
        // Any source and tag, and a Fortran status, which is not read; a matched receive names neither. Where the program
        // ignores the status, gyan has one of its own.
        let of_any = call.site == "receive_any of Fortran";
        let unknown = of_any || ["MPI_Mrecv", "MPI_Imrecv"].contains(&call.function.as_str());
        let found = lines.entry(call.line).or_insert_with(|| Found {
            function: call.function.clone(),
            hits: 0,
            sum: 0,
            largest: 0,
            tag: (!unknown).then_some(call.tag),
            source: (!unknown).then_some(1),
        });
        found.hits += 1;
        found.sum += call.waiting;
        found.largest = found.largest.max(call.waiting);
    }
    let mut found: Vec<Found> = lines.into_values().collect();
    found.sort();
    found
}

fn found(watch: &Watch) -> Vec<Found> {
    let of = |site: &WatchSite| Found {
        function: site.function.clone(),
        hits: site.hits,
        sum: site.sum,
        largest: site.worst.value,
        tag: site.worst.tag,
        source: site.worst.source,
    };
    let mut found: Vec<Found> = watch.sites.iter().map(of).collect();
    found.sort();
    found
}

fn watch(profile: &RankProfile) -> &Watch {
    let what = &profile.coverage.events;
    profile.watch.as_ref().unwrap_or_else(|| panic!("nothing was watched: {what:?}"))
}

fn watched(queue: &Queue, file: &Path, what: &str, settings: &[(&str, &str)]) -> Profiled {
    let settings = [queue.settings, &[("GYAN_WATCH", what)], settings].concat();
    Profiled::preloaded(queue.mpi, 2, file, &[], &settings).succeeded()
}

#[test]
fn as_many_wait_as_the_program_says_when_it_reads_the_variable_itself() {
    for queue in &QUEUES {
        let file = compiled(queue.mpi, "unexpected");
        let run =
            Profiled::run_file(queue.mpi, 2, &file, &[queue.variable], queue.settings).succeeded();
        let calls = calls(&run);
        assert!(calls.len() > 60, "{}", calls.len());
        for call in calls {
            assert_eq!(call.read, call.waiting.to_string(), "line {}", call.line);
        }
    }
}

/// Checks the hits of a run against what the program says, and that every receive was compared.
fn assert_hits(run: &Profiled, profile: &RankProfile, threshold: u64) {
    let (watch, calls) = (watch(profile), calls(run));
    assert_eq!(watch.threshold, threshold);
    assert_eq!(found(watch), expected(&calls, threshold));
    assert_eq!((watch.receives, watch.not_compared), (calls.len() as u64, 0));
    let hits = calls.iter().filter(|call| call.waiting > threshold).count() as u64;
    assert_eq!((watch.hits, watch.hits_elsewhere, watch.max), (hits, 0, 13));
    assert!(watch.sites.iter().all(|site| site.stacks_taken <= site.hits), "{:?}", watch.sites);
}

#[test]
fn receives_are_hits_above_the_threshold_and_only_there_however_few_stacks_the_budget_allows() {
    // The longest is 13.
    for (queue, threshold) in
        QUEUES.iter().map(|queue| (queue, 0)).chain([4, 12, 13, 1000].map(|of| (&QUEUES[0], of)))
    {
        let name = if queue.is_usual { "umq" } else { queue.variable };
        let settings = [("GYAN_BUDGET", "0.0001%")];
        let file = compiled(queue.mpi, "unexpected");
        let run = watched(queue, &file, &format!("{name}>{threshold}"), &settings);
        let profile = &run.profiles()[0];
        assert_eq!(watch(profile).variable, queue.variable);
        assert_hits(&run, profile, threshold);
    }
}

/// With the stack of each hit.
#[test]
fn the_worst_hit_says_which_message_and_the_report_the_line_of_each_call_and_the_way_to_it() {
    for queue in &QUEUES {
        let file = compiled(queue.mpi, "unexpected");
        let run = watched(queue, &file, &format!("{}>1", queue.variable), &[NO_LIMIT]);
        let (profiles, calls) = (run.profiles(), calls(&run));
        assert_hits(&run, &profiles[0], 1);
        let watch = watch(&profiles[0]);
        for site in &watch.sites {
            worst_hit_is_a_call(queue, site, &calls);
            has_the_programs_frames(watch, site, &file);
        }
        let all = watch.sites.iter().find(|site| site.worst.value == 13).unwrap();
        assert_eq!(all.worst.communicator.as_deref(), Some("MPI_COMM_WORLD"));
        // From 13 down to 2, and via the detour from 10.
        assert_eq!(all.stacks.iter().map(|stack| stack.hits).collect::<Vec<_>>(), [12, 9]);
        let sites = assert_lines(&run, "unexpected.c", 1);
        let all = sites.iter().find(|site| site["caller"]["function"] == "receive_all").unwrap();
        let ways = all["stacks"].as_array().unwrap().iter().map(|way| {
            let frames = way["frames"].as_array().unwrap();
            frames.iter().map(|frame| frame["function"].as_str().unwrap()).collect::<Vec<_>>()
        });
        let known =
            [&["receive_all", "work", "main"][..], &["receive_all", "work", "detour", "main"]];
        assert_eq!(ways.collect::<Vec<_>>(), known);
    }
}

fn worst_hit_is_a_call(queue: &Queue, site: &WatchSite, calls: &[Call]) {
    let worst = &site.worst;
    let of_call = |call: &&Call| call.function == site.function && call.waiting == worst.value;
    let candidates: Vec<&Call> = calls.iter().filter(of_call).collect();
    assert!(!candidates.is_empty(), "{site:?}");
    if let Some(communicator) = &worst.communicator {
        assert!(candidates.iter().any(|call| call.communicator == *communicator), "{site:?}");
    }
    // A variable of a communicator has an element for each rank, and all messages come from one; a matched receive does not say
    // which communicator.
    let has_one = queue.of_communicator && worst.communicator.is_some();
    assert_eq!(worst.longest_from, has_one.then_some(1), "{site:?}");
    let is_matched = ["MPI_Mrecv", "MPI_Imrecv"].contains(&site.function.as_str());
    assert_eq!(worst.communicator.is_none(), is_matched, "{site:?}");
}

fn has_the_programs_frames(watch: &Watch, site: &WatchSite, file: &Path) {
    assert_eq!(site.stacks_taken, site.hits, "{site:?}");
    assert_eq!(site.stacks.iter().map(|stack| stack.hits).sum::<u64>(), site.hits, "{site:?}");
    for stack in &site.stacks {
        assert_eq!(stack.frames.first(), Some(&site.call), "{site:?}");
        let object = |index: Option<usize>| &watch.load_map[index.unwrap()].path;
        // The call's function, work() and main().
        assert!(
            stack.frames[..3].iter().all(|of| Path::new(object(of.object)) == file),
            "{site:?}"
        );
        let is_ours = |of: Option<usize>| of.is_some() && object(of).contains("libgyan");
        assert!(!stack.frames.iter().any(|frame| is_ours(frame.object)), "{site:?}");
    }
}

/// The sites of the only watch, as `gyan report` tells them to programs.
fn reported(run: &Profiled) -> Vec<Value> {
    let report = ["report", "--queues", "--format", "json"];
    let outcome = crate::common::succeed(gyan().args(report).arg(&run.directory));
    let queues: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let [watch] = queues["watches"].as_array().unwrap().as_slice() else { panic!("{queues}") };
    watch["sites"].as_array().unwrap().clone()
}

fn is_in(frame: &Value, file: &str, line: u32, function: &str) -> bool {
    let path = frame["file"].as_str().unwrap_or_default();
    Path::new(path).file_name().is_some_and(|name| name == file)
        && frame["line"] == line
        && frame["function"] == function
}

/// The report has exactly the lines of the program with hits, each with all of them.
fn assert_lines(run: &Profiled, file: &str, threshold: u64) -> Vec<Value> {
    let mut lines: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for call in calls(run).into_iter().filter(|call| call.waiting > threshold) {
        *lines.entry((call.line, call.site)).or_default() += 1;
    }
    let sites = reported(run);
    assert_eq!(sites.len(), lines.len());
    for ((line, function), hits) in lines {
        let of_line = |site: &&Value| is_in(&site["caller"], file, line, &function);
        let [site] = sites.iter().filter(of_line).collect::<Vec<_>>()[..] else {
            panic!("no {file}:{line} in {function}: {sites:#?}")
        };
        assert_eq!((&site["hits"]["sum"], &site["worst_rank"]), (&hits.into(), &0.into()));
    }
    sites
}

#[test]
fn a_call_in_an_inlined_function_is_in_that_function() {
    let queue = &QUEUES[0];
    let file = queue.mpi.compiled("unexpected", &["-g", "-O2", "-DINLINED"]);
    let run = watched(queue, &file, "umq>2", &[NO_LIMIT]);
    let sites = assert_lines(&run, "unexpected.c", 2);
    let all = sites.iter().find(|site| site["caller"]["function"] == "receive_all").unwrap();
    let frames = all["stacks"][0]["frames"].as_array().unwrap();
    assert_eq!(frames[0]["inlined"], true, "{frames:#?}");
    assert_eq!((&frames[1]["function"], &frames[1]["inlined"]), (&"work".into(), &false.into()));
}

#[test]
fn receives_of_fortran_are_watched_in_each_binding() {
    for (column, binding) in [
        (Column::MpifH, "-DBINDING_MPIF"),
        (Column::UseMpi, "-DBINDING_MPI"),
        (Column::UseMpiF08, "-DBINDING_F08"),
    ] {
        let can = |queue: &&Queue| with(column).any(|mpi| mpi.name.starts_with(queue.mpi.name));
        for queue in QUEUES.iter().filter(can) {
            let file = queue.mpi.fortran_program("unexpected.F90", &["-g", binding]);
            let run = watched(queue, &file, &format!("{}>1", queue.variable), &[]);
            let profile = &run.profiles()[0];
            let mut calls = calls(&run);
            for call in calls.iter_mut().filter(|call| call.site == "receive_any") {
                call.site += " of Fortran";
            }
            assert_eq!(calls.len(), 11 + 6 + 8 + 3);
            assert_eq!(found(watch(profile)), expected(&calls, 1));
            assert_eq!(watch(profile).max, 12);
            assert_lines(&run, "unexpected.F90", 1);
        }
    }
}

#[test]
fn receives_of_several_threads_are_counted_each() {
    for queue in &QUEUES {
        let file = compiled(queue.mpi, "unexpected_threads");
        let run = watched(queue, &file, &format!("{}>15", queue.variable), &[]);
        let profile = &run.profiles()[0];
        let watch = watch(profile);
        let least: u64 = [10_u64, 20, 30, 40].map(|k| k.saturating_sub(15)).iter().sum();
        assert_eq!((watch.receives, watch.not_compared), (100, 0));
        assert_eq!(watch.sites.len(), 1, "{:?}", watch.sites);
        assert_eq!(watch.sites[0].hits, watch.hits);
        if queue.of_communicator {
            assert_eq!((watch.hits, watch.max), (least, 40));
        } else {
            // Messages that wait for the other threads count here, too.
            assert!(watch.hits >= least && watch.hits <= 100, "{}", watch.hits);
            assert!(watch.max >= 40 && watch.max <= 100, "{}", watch.max);
        }
    }
}

#[test]
fn an_mpi_without_such_a_variable_says_so_and_the_program_goes_on() {
    let has = |mpi: &Mpi| QUEUES.iter().any(|queue| queue.mpi.name == mpi.name);
    let without = each_library().into_iter().filter(|mpi| !has(mpi) && mpi.name != "openmpi4");
    for (mpi, wanted) in
        without.map(|mpi| (mpi, "umq>3")).chain(MPIS.map(|mpi| (mpi, "no_such_variable>3")))
    {
        let file = compiled(mpi, "unexpected");
        let settings = [("GYAN_WATCH", wanted)];
        let run = Profiled::preloaded(mpi, 2, &file, &[], &settings).succeeded();
        let variable = wanted.split('>').next().unwrap();
        for profile in run.profiles() {
            assert!(profile.watch.is_none());
            assert!(only_warning(&profile, "GYAN_WATCH").contains(variable));
        }
        let told = run.outcome.notices().into_iter().filter(|line| line.contains("GYAN_WATCH"));
        assert_eq!(told.count(), 1);
        assert!(calls(&run).len() > 60);
    }
}

/// `gyan run` passes both on, and one run can have both.
#[test]
fn one_run_is_watched_and_listens_to_events() {
    let file = compiled(OPENMPI_SPC, "unexpected");
    let words = OPENMPI_SPC.launch_file(2, &file, &[]);
    let run = Profiled::by_command(&["--watch", "umq>2", "--events"], 2, &words, &[OB1]);
    let run = run.succeeded();
    assert!(run.outcome.stderr.contains("unexpected.c:"));
    let profile = &run.profiles()[0];
    assert_eq!((watch(profile).threshold, watch(profile).max), (2, 13));
    let [messages] = profile.messages.as_slice() else { panic!("{:?}", profile.messages) };
    let mut metrics = messages.metrics.iter();
    let is_longest =
        |row: &&MessageMetric| (row.metric, row.traffic) == (Metric::NUnexQLen, Traffic::Program);
    // Each message of the program waits, and each is received once.
    assert_eq!(metrics.find(is_longest).unwrap().n, run.truth(0).len() as u64);
}
