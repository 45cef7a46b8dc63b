//! Where in the program are calls made? Checked with programs whose lines are marked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gyan_results::{RankProfile, SiteStack};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{MPIS, Mpi, Profiled, gyan, quiet, report, root, target};
use crate::matrix;

const NO_LIMIT: (&str, &str) = ("GYAN_BUDGET", "none");
const FLAGS: [&str; 3] = ["-O2", "-g", "-fomit-frame-pointer"];

pub(super) fn four() -> [Mpi; 4] {
    ["openmpi4", "openmpi5", "mpich4", "mpich5"].map(Mpi::named)
}

/// The program and its library, compiled with more flags; once, since tests run beside each other.
fn compiled(mpi: Mpi, flags: &[&str]) -> PathBuf {
    static KNOWN: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{}{}", mpi.name, flags.concat());
    known.entry(key).or_insert_with_key(|key| compiled_anew(mpi, flags, key)).clone()
}

fn compiled_anew(mpi: Mpi, flags: &[&str], key: &str) -> PathBuf {
    let library = mpi.compiled("sites", &[&["-shared", "-fPIC", "-DLIBRARY"], flags].concat());
    // Libraries have that in their names.
    let place = target().join("test-programs").join(format!("sites-{key}"));
    fs::create_dir_all(&place).unwrap();
    let named = place.join("libwrapper.so");
    // Not while another test runs with it.
    let new = place.join(format!("{}.new", std::process::id()));
    fs::copy(library, &new).unwrap();
    fs::rename(&new, &named).unwrap();
    mpi.compiled("sites", &[flags, &[named.to_str().unwrap()]].concat())
}

/// The line of the program that has this comment.
fn line(source: &str, comment: &str) -> u64 {
    let text = fs::read_to_string(root().join("tests/programs").join(source)).unwrap();
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(comment));
    let found: Vec<usize> = lines.map(|(at, _)| at).collect();
    let [at] = found.as_slice() else { panic!("{comment}: {found:?}") };
    *at as u64 + 1
}

/// The rows of `gyan report --sites`.
fn rows(directory: &Path) -> Vec<Value> {
    let outcome = quiet(gyan().args(["report", "--sites", "--format", "json"]).arg(directory));
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    report["sites"].as_array().unwrap().clone()
}

/// The stacks of `gyan export`.
fn collapsed(directory: &Path) -> String {
    let outcome = quiet(gyan().args(["export", "--format", "collapsed"]).arg(directory));
    outcome.stdout
}

/// Function, line, function of the program, calls.
fn found(rows: &[Value]) -> Vec<(String, u64, String, u64)> {
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| {
            let caller = &row["caller"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let calls = row["calls"].as_f64().unwrap() as u64;
            let line = caller["line"].as_u64().unwrap_or(0);
            (text(&row["function"]), line, text(&caller["function"]), calls)
        })
        .collect();
    found.sort();
    found
}

/// The sites of a function add up to the function.
fn add_up(profile: &RankProfile, what: &str) {
    let sites = profile.sites.as_ref().unwrap_or_else(|| panic!("{what}: no sites"));
    let mut seen = 0;
    for call in &profile.calls {
        let of_call: Vec<_> =
            sites.sites.iter().filter(|site| site.function == call.name).collect();
        if of_call.is_empty() {
            continue;
        }
        seen += 1;
        let what = format!("{what} {} {of_call:?}", call.name);
        assert_eq!(of_call.iter().map(|site| site.calls).sum::<u64>(), call.count, "{what}");
        let time: f64 = of_call.iter().map(|site| site.time_s).sum();
        let expected = call.time_s.unwrap();
        assert!((time - expected).abs() <= 1e-9 * expected.max(1e-9), "{expected} {what}");
        if let Some(bytes) = call.bytes {
            let of_sites: u64 = of_call.iter().map(|site| site.bytes.unwrap()).sum();
            assert_eq!(of_sites, bytes, "{what}");
        }
        for site in of_call {
            assert!(site.timed <= site.calls, "{what}");
            let of_stacks = |of: fn(&SiteStack) -> u64| site.stacks.iter().map(of).sum::<u64>();
            assert!(of_stacks(|stack| stack.calls) <= site.calls, "{what}");
            assert!(of_stacks(|stack| stack.hits) <= site.stacks_taken, "{what}");
        }
    }
    assert!(seen > 0, "{what}");
}

#[test]
fn every_call_belongs_to_the_line_of_the_program_that_made_it() {
    for mpi in four() {
        let program = compiled(mpi, &FLAGS);
        let run = Profiled::preloaded(mpi, 2, &program, &[], &[NO_LIMIT]).succeeded();
        for profile in run.profiles() {
            add_up(&profile, mpi.name);
            let errors = profile.sites.unwrap().sites.into_iter();
            let mut errors = errors.flat_map(|site| [site.calls_error, site.time_error_s]);
            assert!(errors.all(|error| error == Some(0.0)), "{mpi:?}");
        }
        let rows = rows(&run.directory);
        let at = |comment| line("sites.c", comment);
        let swap = at("inlined: swap");
        let expected = [
            ("MPI_Allreduce", at("library: sum"), "library_sum", 20),
            ("MPI_Allreduce", at("library: sum"), "library_sum", 24),
            ("MPI_Comm_rank", at("site: rank 2"), "main", 2),
            ("MPI_Recv", at("site: receive 4"), "messages", 4),
            ("MPI_Recv", at("site: wait 10"), "messages", 10),
            ("MPI_Send", at("site: send 4"), "messages", 4),
            ("MPI_Send", at("site: late 10"), "messages", 10),
            ("MPI_Sendrecv", swap, "swap", 40),
            ("MPI_Sendrecv", swap, "swap", 60),
        ];
        let expected: Vec<_> = expected
            .map(|(name, line, caller, calls)| (name.to_owned(), line, caller.to_owned(), calls))
            .into();
        assert_eq!(found(&rows), expected, "{mpi:?}");
        for (calls, bytes, into, comment) in
            [(60.0, 6000.0, "near", "into: near"), (40.0, 40000.0, "far", "into: far")]
        {
            let is_row = |row: &&Value| row["function"] == "MPI_Sendrecv" && row["calls"] == calls;
            let row = rows.iter().find(is_row).unwrap();
            let inlined_into = row["inlined_into"].as_array().unwrap();
            let [into_frame] = inlined_into.as_slice() else { panic!("{mpi:?} {row}") };
            assert_eq!(
                (&into_frame["function"], &into_frame["line"]),
                (&into.into(), &at(comment).into())
            );
            assert_eq!(row["bytes"], bytes, "{mpi:?}");
        }
        // Through one function of the library, and through two.
        for (comment, from, calls) in [
            ("through: once 24", &["main"][..], 24.0),
            ("through: twice 20", &["library_twice", "main"], 20.0),
        ] {
            let row = from_line(&rows, at(comment));
            assert_eq!(names(row, "from"), from, "{mpi:?} {row}");
            assert_eq!(row["object"], "libwrapper.so", "{mpi:?} {row}");
            assert_eq!(row["calls"], calls, "{mpi:?} {row}");
        }
        // As a tree, from the outermost function to the one that calls.
        let stacks = collapsed(&run.directory);
        for into in ["near", "far"] {
            let stack = format!(";main;{into};swap (sites.c:{swap});MPI_Sendrecv ");
            assert!(stacks.lines().any(|line| line.contains(&stack)), "{mpi:?} {stacks}");
        }
        // The program slept one second there, and the other call has nothing to wait for.
        let time = |comment| {
            let row = rows.iter().find(|row| row["caller"]["line"] == at(comment));
            row.unwrap()["time_s"].as_f64().unwrap()
        };
        assert!(time("site: wait 10") > time("site: receive 4"), "{mpi:?} {rows:?}");
    }
}

/// The row of a call in a library that this line of the program called.
fn from_line(rows: &[Value], line: u64) -> &Value {
    let last = |row: &Value| row["from"].as_array().unwrap().last().cloned().unwrap_or_default();
    rows.iter().find(|row| last(row)["frame"]["line"] == line).unwrap()
}

fn names<'a>(row: &'a Value, path: &str) -> Vec<&'a str> {
    let path = row[path].as_array().unwrap().iter();
    path.map(|one| one["frame"]["function"].as_str().unwrap()).collect()
}

/// With its symbols, and stripped.
#[test]
fn a_call_in_a_library_is_named_by_what_the_library_offers() {
    let mpi = four()[0];
    for flags in [&["-O2"][..], &["-O2", "-s", "-DSTRIPPED"]] {
        let program = compiled(mpi, flags);
        let run = Profiled::preloaded(mpi, 2, &program, &[], &[NO_LIMIT]).succeeded();
        let rows = rows(&run.directory);
        let is_sum = |row: &&Value| row["function"] == "MPI_Allreduce";
        let sums: Vec<&Value> = rows.iter().filter(is_sum).collect();
        assert!(!sums.is_empty(), "{rows:?}");
        for row in sums {
            assert_eq!(row["caller"]["function"], "library_sum", "{row}");
            assert_eq!(row["object"], "libwrapper.so", "{row}");
        }
        let report = report(&run.directory, &["--sites"]).stdout;
        assert!(report.contains("library_sum in libwrapper.so"), "{report}");
        assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
        assert!(!report.contains("libwrapper.so+0x"), "{report}");
    }
}

#[test]
fn sites_of_calls_of_which_some_are_timed_add_up_to_their_functions() {
    for mpi in MPIS {
        for arguments in [&["pingpong", "1"][..], &["receive", "1"], &["receive", "1", "multiple"]]
        {
            let program = mpi.compiled("bench_calls", &["-g"]);
            let run = Profiled::preloaded(mpi, 2, &program, arguments, &[]).succeeded();
            for profile in run.profiles() {
                add_up(&profile, &format!("{} {arguments:?}", mpi.name));
            }
            let rows = rows(&run.directory);
            let receives: Vec<&Value> =
                rows.iter().filter(|row| row["function"] == "MPI_Recv").collect();
            // From the lines that call it, and nowhere else.
            let lines = if arguments[0] == "receive" { 1 } else { 2 };
            assert_eq!(receives.len(), lines, "{mpi:?} {arguments:?} {receives:?}");
            assert!(receives.iter().all(|row| row["caller"]["function"] == arguments[0]));
        }
    }
}

#[test]
fn calls_in_fortran_belong_to_the_statement() {
    for source in ["fortran_mpif.f", "fortran_use_mpi.f90", "fortran_use_mpi_f08.f90"] {
        for mpi in ["openmpi4", "mpich4"].map(Mpi::named) {
            let program = mpi.fortran_program(source, &["-g"]);
            let run = Profiled::preloaded(mpi, 2, &program, &[], &[NO_LIMIT]).succeeded();
            for profile in run.profiles() {
                add_up(&profile, source);
            }
            let rows = found(&rows(&run.directory));
            let of = |name: &str| -> Vec<_> {
                let rows = rows.iter().filter(|row| row.0 == name);
                rows.map(|(_, line, function, calls)| (*line, function.as_str(), *calls)).collect()
            };
            let what = format!("{mpi:?} {source} {rows:?}");
            let text = fs::read_to_string(root().join("tests/programs").join(source)).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            // The compiler attributes a statement to its last line.
            let is_in = |line: u64, word: &str| {
                let mut at = usize::try_from(line).unwrap() - 1;
                while lines[at].starts_with("     &") || lines[at - 1].ends_with('&') {
                    at -= 1;
                }
                lines[at].to_uppercase().contains(word)
            };
            for (name, calls) in [("MPI_Irecv", 6), ("MPI_Sendrecv", 4), ("MPI_Recv_init", 2)] {
                let sites = of(name);
                let [(line, function, found)] = sites.as_slice() else { panic!("{name} {what}") };
                assert_eq!((*function, *found), ("receives", calls), "{name} {what}");
                assert!(is_in(*line, &name.to_uppercase()), "{name} {what}");
            }
            // Four and the rank in a loop, and one more.
            let mut receives: Vec<u64> = of("MPI_Recv").iter().map(|row| row.2).collect();
            receives.sort_unstable();
            assert_eq!(receives, [2, 9], "{what}");
            assert!(of("MPI_Recv").iter().all(|row| is_in(row.0, "MPI_RECV")), "{what}");
        }
    }
}

/// What the program says of itself, by `sys._getframe`.
#[test]
fn calls_of_python_belong_to_the_line_that_the_program_says() {
    let script = root().join("tests/programs/lines.py");
    for mpi in matrix::two_with_python() {
        let words = ["-u", script.to_str().unwrap()];
        let run = Profiled::preloaded(mpi, 2, Path::new("python-mpi4py"), &words, &[NO_LIMIT])
            .succeeded();
        for profile in run.profiles() {
            add_up(&profile, mpi.name);
        }
        let told: Vec<&str> = run.outcome.stdout.lines().collect();
        assert_eq!(told.len(), 4, "{mpi:?} {told:?}");
        let all = rows(&run.directory);
        let mut found: Vec<String> = all
            .iter()
            .map(|row| (row["function"].as_str().unwrap().trim_end_matches("_c"), &row["caller"]))
            .filter(|(call, _)| told.iter().any(|told| told.starts_with(&format!("{call} "))))
            .map(|(call, caller)| {
                assert_eq!(caller["file"], script.to_str().unwrap(), "{mpi:?} {caller}");
                format!("{call} {} {}", caller["line"], caller["function"].as_str().unwrap())
            })
            .collect();
        found.sort();
        assert_eq!(found, told, "{mpi:?}");
        assert!(report(&run.directory, &["--sites"]).stdout.contains(" (step)"), "{mpi:?}");
        // As a tree it is the program's, without the interpreter.
        let stacks = collapsed(&run.directory);
        let told_step = told.iter().find_map(|told| told.strip_suffix(" step")).unwrap();
        let (call, line) = told_step.split_once(' ').unwrap();
        let stack = format!("python-mpi4py;step (lines.py:{line});{call}");
        assert!(stacks.lines().any(|line| line.starts_with(&stack)), "{mpi:?} {stacks}");
        assert!(!stacks.contains("_PyEval"), "{mpi:?} {stacks}");
    }
}

/// Like Python's.
#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_is_in_no_file_has_the_name_that_its_maker_gave_it() {
    for mpi in MPIS {
        let run =
            Profiled::preloaded(mpi, 2, &compiled(mpi, &FLAGS), &["made"], &[NO_LIMIT]).succeeded();
        let rows = rows(&run.directory);
        // Each process has it at an address of its own.
        let barriers: Vec<&Value> =
            rows.iter().filter(|row| row["function"] == "MPI_Barrier").collect();
        let [row] = barriers.as_slice() else { panic!("{mpi:?} {barriers:?}") };
        let from = &row["from"][0]["frame"];
        let maker = (&from["function"], &from["file"]);
        assert_eq!(maker, (&"compute".into(), &"/somewhere/model.py".into()), "{mpi:?}");
        assert_eq!(row["calls"], 12.0, "{mpi:?}");
        assert_eq!(row["caller"]["function"], "library_barrier", "{mpi:?}");
        assert!(
            report(&run.directory, &["--sites"]).stdout.contains("model.py (compute)"),
            "{mpi:?}"
        );
    }
}

#[test]
fn without_debug_information_functions_are_named_and_one_sentence_says_why() {
    let mpi = four()[0];
    let run = Profiled::preloaded(mpi, 2, &compiled(mpi, &["-O2"]), &[], &[]).succeeded();
    // All of them: which take the most time depends on the machine.
    let report = report(&run.directory, &["--sites", "--all"]).stdout;
    let is_named = |line: &str| line.contains(" messages") && line.contains("+0x");
    assert!(report.lines().any(is_named), "{report}");
    // Where its lines are broken depends on the length of the program's path.
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("compile with -g").count(), 1, "{report}");
}

#[test]
fn sites_can_be_left_out() {
    let mpi = four()[0];
    let run = Profiled::run(mpi, 2, &["halo_exchange", "100", "50"], &[("GYAN_SITES", "off")]);
    assert!(run.profiles().iter().all(|profile| profile.sites.is_none()));
    let outcome = report(&run.directory, &["--sites"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("no call sites are known"), "{}", outcome.stderr);
}

/// What `scripts/quickstart` runs, compiled as it does.
#[test]
fn the_quickstart_shows_the_line_that_waits_for_neighbours() {
    let script = fs::read_to_string(root().join("scripts/quickstart")).unwrap();
    assert!(script.contains("mpicc -O2 -g -w"), "{script}");
    for mpi in four() {
        let program = mpi.compiled("halo_exchange", &["-O2", "-g"]);
        let run = Profiled::preloaded(mpi, 4, &program, &["1200", "300"], &[]).succeeded();
        for profile in run.profiles() {
            add_up(&profile, mpi.name);
            let sites = serde_json::to_string(&profile.sites).unwrap();
            assert!(sites.len() < 6000, "{mpi:?}: {}", sites.len());
        }
        let line = line("halo_exchange.c", "MPI_Waitall(");
        let place = format!("halo_exchange.c:{line} (main)");
        let report = report(&run.directory, &["--sites"]).stdout;
        // Where the table would be too wide, the place has a line of its own.
        let rows = report.lines().skip_while(|line| !line.starts_with("FUNCTION"));
        let first: Vec<&str> = rows.skip(1).take(2).collect();
        assert!(first.concat().contains(&place), "{mpi:?} {report}");
        let whole = crate::common::report(&run.directory, &[]).stdout;
        let place = format!("halo_exchange.c:{line}");
        assert!(whole.contains(&place), "{mpi:?} {whole}");
    }
}

#[test]
fn a_site_in_a_plugin_that_was_unloaded_is_not_taken_for_one_in_the_next() {
    for mpi in MPIS {
        let part = mpi.compiled("plugins", &["-shared", "-fPIC", "-DPART"]);
        let program = mpi.compiled("plugins", &[]);
        let place = TempDir::new().unwrap();
        let plugins: Vec<String> = ["one", "two", "three"]
            .map(|name| place.path().join(format!("lib{name}.so")).display().to_string())
            .into();
        for plugin in &plugins {
            fs::copy(&part, plugin).unwrap();
        }
        for rounds in ["1", "2", "700"] {
            let mut arguments: Vec<&str> = plugins.iter().map(String::as_str).collect();
            arguments.push(rounds);
            let run = Profiled::preloaded(mpi, 1, &program, &arguments, &[NO_LIMIT]).succeeded();
            assert!(run.outcome.stdout.contains("same place"), "{mpi:?}: {:?}", run.outcome);
            let lines = run.outcome.stdout.lines().filter_map(|line| line.split_once(' '));
            let truth: BTreeMap<String, u64> = lines
                .filter_map(|(plugin, calls)| Some((plugin.to_owned(), calls.parse().ok()?)))
                .collect();
            assert_eq!(truth.len(), plugins.len());
            let profile = &run.profiles()[0];
            let sites = profile.sites.as_ref().unwrap();
            let mut found = BTreeMap::new();
            for site in sites.sites.iter().filter(|site| site.function == "MPI_Barrier") {
                let object = site.call.and_then(|at| sites.addresses[at].object).unwrap();
                let path = sites.load_map[object].path.clone();
                assert_eq!(found.insert(path, site.calls), None, "{mpi:?} {rounds}: twice");
            }
            assert_eq!(found, truth, "{mpi:?} {rounds}");
        }
    }
}
