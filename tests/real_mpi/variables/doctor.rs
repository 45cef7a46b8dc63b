//! `gyan doctor`: what it says is true.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::{Diagnosis, Variables, Verdict};
use tempfile::TempDir;

use crate::common::{
    BED, INTELMPI, MPICH, MPICH_PVARS, MPICH5, MPIS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Outcome,
    command, gyan, root, run, succeed,
};

/// `gyan doctor --json`, in the environment of an MPI of the test bed.
fn of_path(mpi: Mpi) -> Diagnosis {
    let mut words = mpi.alone(Path::new(gyan().get_program()));
    words.extend(["doctor".into(), "--json".into()]);
    let here = TempDir::new().unwrap();
    let outcome = run(command(&words).current_dir(&here));
    assert_eq!(outcome.code, 0, "{mpi:?} {}{}", outcome.stdout, outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// `gyan doctor --json -- <words>` with `settings`; the code, and what was found.
pub(crate) fn of_program(words: &[String], settings: &[(&str, &str)]) -> (i32, Diagnosis) {
    let here = TempDir::new().unwrap();
    let mut command = gyan();
    command.args(["doctor", "--json", "--"]).args(words).current_dir(&here);
    let found = diagnosed(command.envs(settings.iter().copied()));
    let left = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name());
    // What programs of the tests themselves write down.
    let left: Vec<_> = left.filter(|of| !of.as_encoded_bytes().starts_with(b"truth.")).collect();
    assert!(left.is_empty(), "{left:?}");
    found
}

/// The exit code of a command that prints a diagnosis, and this.
pub(crate) fn diagnosed(command: &mut Command) -> (i32, Diagnosis) {
    let outcome = run(command);
    let diagnosis = serde_json::from_str(&outcome.stdout);
    (outcome.code, diagnosis.unwrap_or_else(|error| panic!("{error} {outcome:?}")))
}

/// The one thing in the way, as "<what>: <finding>; <remedy>".
pub(crate) fn only_one((code, diagnosis): &(i32, Diagnosis)) -> String {
    let [only] = diagnosis.obstacles().collect::<Vec<_>>()[..] else {
        panic!("{:?}", diagnosis.checks)
    };
    assert_eq!(*code, 1);
    format!("{}: {}; {}", only.what, only.finding, only.remedy.as_ref().unwrap())
}

pub(crate) fn obstacle(words: &[String], settings: &[(&str, &str)]) -> String {
    only_one(&of_program(words, settings))
}

pub(crate) fn launched(mpi: Mpi, before: &[&str], program: &Path) -> Vec<String> {
    let program = [before, &[program.to_str().unwrap()]].concat();
    mpi.launch_file(2, Path::new(program[0]), &program[1..])
}

pub(crate) fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn every_mpi_is_found_and_its_monitoring_told() {
    for (mpi, library, states) in [
        (BED[0], "Open MPI v4", &[("monitoring", true, false), ("spc", false, false)][..]),
        (OPENMPI5, "Open MPI v5", &[("monitoring", true, false), ("spc", false, false)]),
        (OPENMPI_SPC, "Open MPI v4", &[("monitoring", false, false), ("spc", true, false)]),
        (BED[1], "MPICH Version: 4", &[]),
        (MPICH5, "MPICH Version: 5", &[]),
        (INTELMPI, "Intel(R) MPI Library", &[]),
        (MPICH_PVARS, "MPICH Version: 4", &[]),
    ] {
        let diagnosis = of_path(mpi);
        let found = diagnosis.mpi.as_ref().unwrap();
        let name = found.library.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(name.starts_with(library), "{name}");
        let peruse = diagnosis.checks.iter().any(|check| check.finding.contains("by PERUSE"));
        assert_eq!(peruse, mpi == OPENMPI_SPC, "{name}");
        let told: Vec<_> = diagnosis
            .switches
            .iter()
            .map(|switch| (switch.name.as_str(), switch.available, switch.on))
            .collect();
        assert_eq!(told, states, "{mpi:?}");
        let rebuild = diagnosis.advice.iter().any(|text| text.contains("--enable-mpit-pvars"));
        let exports = diagnosis.exports.unwrap();
        assert_eq!(rebuild, library.starts_with("MPICH") && exports.pvars == 0, "{mpi:?}");
    }
}

#[test]
fn the_numbers_are_those_of_a_listing() {
    for mpi in MPIS {
        let words = launched(mpi, &[], &mpi.program("exit_code"));
        let (code, diagnosis) = of_program(&words, &[]);
        assert_eq!(code, 0, "{:?}", diagnosis.checks);
        let exports = diagnosis.exports.unwrap();
        let outcome = run(gyan().args(["varlist", "--json", "--"]).args(&words));
        let listing: Variables = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(diagnosis.mpi.unwrap().library_path, listing.mpi.library_path);
        assert_eq!(exports.cvars, listing.cvars.len());
        assert_eq!(exports.pvars, listing.pvars.len());
        assert_eq!(exports.categories, listing.categories.len());
        assert_eq!(diagnosis.switches, listing.switches);
    }
}

#[test]
fn what_is_on_is_told() {
    let words = launched(OPENMPI, &[], &OPENMPI.program("exit_code"));
    let (_, diagnosis) = of_program(&words, &[("OMPI_MCA_pml_monitoring_enable", "1")]);
    assert!(diagnosis.switches.iter().any(|switch| switch.name == "monitoring" && switch.on));
}

#[test]
fn a_program_without_mpi() {
    let text = obstacle(&launched(OPENMPI, &[], Path::new("/bin/true")), &[]);
    says(&text, &["start: true loads no shared MPI library", "no MPI program"]);
    let text = obstacle(&["/bin/sh".into(), "-c".into(), "exit 3".into()], &[]);
    says(&text, &["sh starts no MPI program under libgyan.so: it got to"]);
}

/// A program that the C compiler makes of `tests/programs/<source>`.
fn compiled(here: &TempDir, source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let output = here.path().join(name);
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&output).arg(root().join("tests/programs").join(source));
    succeed(compiler.args(arguments).current_dir(here));
    output
}

#[test]
fn a_static_program() {
    let here = TempDir::new().unwrap();
    let library = "libstrange.a";
    let object = compiled(&here, "strange_mpi.c", "strange.o", &["-c"]);
    succeed(Command::new("ar").args(["rcs", library]).arg(object).current_dir(&here));
    let arguments = ["-DPROGRAM", "-static", library];
    let program = compiled(&here, "strange_mpi.c", "static", &arguments);
    for words in [vec![program.display().to_string()], launched(OPENMPI, &[], &program)] {
        let text = obstacle(&words, &[]);
        says(&text, &["program: ", "static is statically linked", "without -static"]);
    }
}

#[test]
fn an_mpi_that_is_not_known() {
    let here = TempDir::new().unwrap();
    compiled(&here, "strange_mpi.c", "libmpi_strange.so", &["-shared", "-fPIC"]);
    let arguments = ["-DPROGRAM", "-L.", "-lmpi_strange", "-Wl,-rpath,$ORIGIN"];
    let program = compiled(&here, "strange_mpi.c", "program", &arguments);
    let text = obstacle(&[program.display().to_string()], &[]);
    let remedy = "; to build a libgyan.so for this MPI";
    says(&text, &["libmpi_strange.so has another binary interface than", remedy]);
}

#[test]
fn a_program_with_other_rights_than_its_users() {
    let here = TempDir::new().unwrap();
    let program = here.path().join("setuid");
    fs::copy(OPENMPI.program("exit_code"), &program).unwrap();
    if chown(&program, Some(65534), None).is_err() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let text = obstacle(&launched(OPENMPI, &[], &program), &[]);
    says(&text, &["program: ", "the dynamic loader ignores LD_PRELOAD"]);
}

#[test]
fn a_launcher_that_does_not_pass_the_environment_on() {
    for mpi in MPIS {
        let words = launched(mpi, &["env", "-i"], &mpi.program("exit_code"));
        let text = obstacle(&words, &[]);
        says(&text, &["exit_code was started without LD_PRELOAD: it got to env and no further"]);
        let words = launched(mpi, &["sh", "-c", "exec env -i \"$0\""], &mpi.program("exit_code"));
        let parts =
            ["exit_code was started without LD_PRELOAD: it got to ", "sh, env and no further"];
        // The name of the shell is the system's.
        let text = obstacle(&words, &[]).replace("bash", "sh").replace("dash", "sh");
        says(&text, &parts);
        let words = launched(mpi, &["env", "LD_PRELOAD="], &mpi.program("exit_code"));
        says(&obstacle(&words, &[]), &["exit_code was started with another LD_PRELOAD"]);
    }
}

#[test]
fn a_script_that_drops_the_environment() {
    let here = TempDir::new().unwrap();
    let script = here.path().join("job");
    let program = MPICH.program("exit_code");
    fs::write(&script, format!("#!/bin/sh\nunset LD_PRELOAD\n{}\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for words in [launched(MPICH, &[], &script), vec![script.display().to_string()]] {
        let parts = ["job starts no MPI program", "it got to", "passes LD_PRELOAD"];
        says(&obstacle(&words, &[]), &parts);
    }
}

#[test]
fn a_command_that_fails_by_itself() {
    let mut words = launched(OPENMPI, &[], &OPENMPI.program("exit_code"));
    words.insert(1, "--no-such-option".into());
    let text = obstacle(&words, &[]);
    says(&text, &["ended with code", "its first words", "make it run without gyan first"]);
}

#[test]
fn gyan_turned_off() {
    let program = MPICH.program("exit_code");
    let text = obstacle(&launched(MPICH, &[], &program), &[("GYAN", "off")]);
    says(&text, &["settings: GYAN=off turns libgyan.so off; unset GYAN"]);
    // Out of sight, between the launcher and the program.
    let text = obstacle(&launched(MPICH, &["env", "GYAN=off"], &program), &[]);
    says(&text, &["without MPI_Init under libgyan.so: GYAN=off is set for it", "unset GYAN there"]);
}

#[test]
fn an_output_directory_that_cannot_be_written() {
    for output in ["/proc/profile", "/dev/null/profile"] {
        let words = launched(MPICH, &[], &MPICH.program("exit_code"));
        let text = obstacle(&words, &[("GYAN_OUTPUT", output)]);
        says(&text, &[&format!("output: {output} cannot be written"), "set GYAN_OUTPUT"]);
    }
}

#[test]
fn the_launcher_of_another_mpi() {
    let mut words = MPICH.mpirun(2);
    words.push(OPENMPI.program("exit_code").display().to_string());
    let text = obstacle(&words, &[]);
    says(&text, &["launcher: is that of MPICH or Intel MPI", "Open MPI v"]);
}

#[test]
fn no_library_of_gyan_is_an_obstacle_and_no_program_wrong_usage() {
    let here = TempDir::new().unwrap();
    let doctor = |settings: &[(&str, &str)], words: &[&str]| -> Outcome {
        let mut command = gyan();
        command.arg("doctor").args(words).current_dir(&here);
        run(command.envs(settings.iter().copied()))
    };
    let outcome = doctor(&[("GYAN_LIBRARY", "/nonexistent")], &[]);
    assert_eq!(outcome.code, 1);
    says(&outcome.stdout, &["/nonexistent: no such file", "do: set GYAN_LIBRARY"]);
    let outcome = doctor(&[], &["--", "no-such-program"]);
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
}

#[test]
fn it_fits_a_screen() {
    let mut command = gyan();
    command.args(["doctor", "--"]).args(launched(OPENMPI, &[], &OPENMPI.program("exit_code")));
    let here = TempDir::new().unwrap();
    let outcome = succeed(command.current_dir(&here));
    assert_eq!(outcome.stdout.lines().next(), Some("Nothing is in the way of gyan"));
    says(&outcome.stdout, &["monitoring  off ", "turn it on: gyan run --enable monitoring"]);
    assert!(outcome.stdout.lines().count() < 50, "{}", outcome.stdout);
    let paths = outcome.stdout.lines().filter(|line| !line.contains('/'));
    assert!(paths.clone().all(|line| line.chars().count() <= 120), "{}", outcome.stdout);
    assert!(outcome.stderr.is_empty(), "{}", outcome.stderr);
}

#[test]
fn verdicts_of_a_sound_environment_are_all_well() {
    let diagnosis = of_path(OPENMPI5);
    assert!(diagnosis.checks.len() >= 4);
    assert!(diagnosis.checks.iter().all(|check| check.verdict == Verdict::Ok), "{diagnosis:?}");
}
