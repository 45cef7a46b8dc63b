//! Call sites and stacks of watched receives are shown by function, file and line.

use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{
    Address, Hit, LoadedObject, RankProfile, Stack, Watch, WatchSite, rank_file_name, read_rank,
};
use tempfile::TempDir;

use crate::common::{command, gyan, quiet, root, run, succeed};

fn compile(compiler: &str, options: &[&str], source: &str, output: &Path) {
    let mut compiler = command(&[compiler]);
    compiler.args(options).arg(root().join("tests/programs").join(source)).arg("-o").arg(output);
    let outcome = run(&mut compiler);
    assert_eq!(outcome.code, 0, "{source}: {}", outcome.stderr);
}

/// The program in C, built with `options`.
fn in_c(place: &TempDir, options: &[&str]) -> PathBuf {
    let program = place.path().join("places");
    compile("cc", &[&["-no-pie", "-O2"], options].concat(), "places.c", &program);
    program
}

/// A profile of a program with a call at the place that the program prints.
fn profile(program: &Path, build_id: Option<&str>) -> RankProfile {
    let outcome = succeed(&mut command(&[program]));
    let addresses =
        outcome.stdout.lines().map(|line| u64::from_str_radix(line.trim(), 16).unwrap());
    // A program that is not linked as PIE is at lower addresses than its libraries.
    let address = |address| Address { object: Some(usize::from(address > 0x1000_0000)), address };
    let frames: Vec<Address> = addresses.map(address).collect();
    assert_eq!(frames[0].object, Some(0), "{frames:?}");
    let site = WatchSite {
        function: "MPI_Recv".into(),
        call: frames[0],
        hits: 3,
        sum: 9,
        worst: Hit { value: 4, source: Some(1), tag: Some(7), ..Hit::default() },
        stacks_taken: 3,
        stacks: vec![Stack { hits: 3, frames }],
    };
    let object = |path: &str, build_id: Option<&str>| LoadedObject {
        path: path.to_owned(),
        build_id: build_id.map(str::to_owned),
    };
    let fixture = root().join("tests/fixtures/gyan.rank-1-queues").join(rank_file_name(0));
    let mut profile = read_rank(&fixture).unwrap();
    profile.size = 1;
    profile.watch = Some(Watch {
        variable: "unexpected_recvq_length".into(),
        threshold: 1,
        receives: 5,
        hits: 3,
        max: 4,
        sites: vec![site],
        load_map: vec![
            object(program.to_str().unwrap(), build_id),
            object("/lib/x86_64-linux-gnu/libc.so.6", None),
        ],
        ..Watch::default()
    });
    profile
}

/// What `gyan report` prints of it.
fn report(profile: &RankProfile, options: &[&str]) -> String {
    let directory = TempDir::new().unwrap();
    let text = serde_json::to_string(profile).unwrap();
    fs::write(directory.path().join(rank_file_name(0)), text).unwrap();
    let outcome = quiet(gyan().arg("report").args(options).arg(directory.path()));
    outcome.stdout
}

/// The rows of the stack, in words.
fn stack(report: &str) -> Vec<Vec<&str>> {
    let rows = report.lines().skip_while(|line| !line.starts_with("FUNCTION  ")).skip(1);
    let rows = rows.take_while(|line| !line.is_empty());
    rows.map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_stack_in_c_has_inlined_functions_and_ends_at_main() {
    let place = TempDir::new().unwrap();
    let profile = profile(&in_c(&place, &["-g"]), None);
    let source = root().join("tests/programs/places.c").display().to_string();
    let at = |line: u32| format!("{source}:{line}");
    let queues = report(&profile, &["--queues"]);
    let expected: [&[&str]; 3] =
        [&["receive", "(inlined)", &at(24)], &["exchange", &at(30)], &["main", &at(35)]];
    assert_eq!(stack(&queues), expected, "{queues}");
    assert!(!queues.contains("libc.so"), "{queues}");
    let title = "MPI_Recv at places.c:24 (receive): 3 of 3 stacks that were looked at";
    assert!(queues.contains(title), "{queues}");
    let whole = report(&profile, &[]);
    let row = whole.lines().find(|line| line.starts_with("MPI_Recv ") && line.contains("places"));
    let words: Vec<&str> = row.unwrap().split_whitespace().collect();
    let site = ["MPI_Recv", "3", "3", "4", "(0)", "1", "7", "-", "places.c:24", "(receive)"];
    assert_eq!(words, site, "{whole}");
}

#[test]
fn a_stack_in_fortran_has_the_names_of_the_source() {
    let place = TempDir::new().unwrap();
    let here = place.path().join("here.o");
    compile("cc", &["-c", "-DHERE_ONLY", "-Dhere=here_"], "places.c", &here);
    let program = place.path().join("places");
    let options = ["-no-pie", "-g", here.to_str().unwrap(), "-J", place.path().to_str().unwrap()];
    compile("gfortran", &options, "places.f90", &program);
    let queues = report(&profile(&program, None), &["--queues"]);
    let source = root().join("tests/programs/places.f90").display().to_string();
    let stack = stack(&queues);
    assert_eq!(stack[0], ["halo::exchange", &format!("{source}:8")], "{queues}");
    assert_eq!(stack[1], ["places", &format!("{source}:16")], "{queues}");
    assert!(queues.contains("MPI_Recv at places.f90:8 (halo::exchange)"), "{queues}");
}

#[test]
fn without_debug_information_there_are_functions_and_the_reason() {
    let place = TempDir::new().unwrap();
    let queues = report(&profile(&in_c(&place, &["-g0"]), None), &["--queues"]);
    assert_eq!(stack(&queues)[..2], [["exchange"], ["main"]], "{queues}");
    assert!(queues.contains("has no debug information; compile with -g"), "{queues}");
}

#[test]
fn a_program_that_was_built_anew_gets_no_wrong_names() {
    let place = TempDir::new().unwrap();
    let program = in_c(&place, &["-g", "-Wl,--build-id=0x11ff"]);
    let now = report(&profile(&program, Some("11FF")), &["--queues"]);
    assert!(now.contains("places.c:24 (receive)"), "{now}");
    let then = report(&profile(&program, Some("22ff")), &["--queues"]);
    assert!(!then.contains("receive)"), "{then}");
    assert!(stack(&then)[0][0].starts_with("places+0x"), "{then}");
    assert_eq!(then.matches("was built anew since the run").count(), 1, "{then}");
}
