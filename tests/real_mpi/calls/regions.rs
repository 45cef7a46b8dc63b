//! Regions that a program has for other tools are its phases, if the user asks for them: with the real libraries, and by the
//! program's own clock.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::RankProfile;

use crate::common::{MPICH, Mpi, OPENMPI, Profiled, gyan, phase, python_with, run, target};

/// How far the two clocks may be apart, for each time that a region begins.
const CLOCKS_APART_US: f64 = 5.0;

/// Regions of a library, and how a program with them is built.
struct Library {
    /// As `--phases` calls it.
    name: &'static str,
    /// Words for the compiler.
    arguments: Vec<String>,
}

/// None, with a word, where the Debian packages are not installed that `file` comes from.
fn is_installed(file: &str, packages: &str) -> bool {
    let is_there = Path::new(file).exists();
    if !is_there {
        assert!(std::env::var_os("CI").is_none(), "no {file}: scripts/packages {packages}");
        eprintln!("skipped: there is no {file}; scripts/packages {packages}");
    }
    is_there
}

fn kokkos() -> Option<Library> {
    let include = "/usr/include/trilinos";
    is_installed(include, "libtrilinos-kokkos-dev").then(|| Library {
        name: "kokkos",
        arguments: vec![format!("-I{include}"), "-ltrilinos_kokkoscore".into()],
    })
}

/// Its headers, which are all there is of it.
fn nvtx() -> Option<Library> {
    let python = python_with("test-nvtx", "nvidia.nvtx", &["nvidia-nvtx-cu12"])?;
    let script = "import nvidia.nvtx; print(*nvidia.nvtx.__path__)";
    let place = run(Command::new(python).args(["-c", script])).stdout;
    let include = format!("-I{}/include", place.trim());
    Some(Library { name: "nvtx", arguments: vec!["-DNVTX".into(), include] })
}

/// Its sources, which programs contain.
fn itt() -> Option<Library> {
    let sources = itt_sources()?.join("c-library");
    let shown = sources.display();
    let arguments = vec![
        "-DITT".into(),
        format!("-I{shown}/include"),
        format!("{shown}/src/ittnotify/ittnotify_static.c"),
    ];
    Some(Library { name: "itt", arguments })
}

/// The package of crates.io that has them; none, with a word, where cargo cannot fetch it.
fn itt_sources() -> Option<PathBuf> {
    let here = target().join("test-itt");
    fs::create_dir_all(here.join("src")).unwrap();
    fs::write(here.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                    [dependencies]\nittapi-sys = \"=0.5.0\"\n[workspace]\n";
    fs::write(here.join("Cargo.toml"), manifest).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    let found = run(cargo.args(["metadata", "--quiet", "--format-version=1"]).current_dir(&here));
    if found.code != 0 {
        assert!(std::env::var_os("CI").is_none(), "no ittapi-sys: {}", found.stderr);
        eprintln!("skipped: cargo cannot fetch ittapi-sys:\n{}", found.stderr);
        return None;
    }
    let metadata: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "ittapi-sys").unwrap();
    Some(Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().into())
}

/// Debian's, which is built for Open MPI.
fn petsc() -> Option<Library> {
    let place = "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/include";
    is_installed(place, "libpetsc-real3.18-dev").then(|| Library {
        name: "petsc",
        arguments: vec![
            "-DPETSC".into(),
            format!("-I{place}"),
            "-I/usr/lib/petscdir/3.18/include".into(),
            "-lpetsc_real".into(),
        ],
    })
}

/// A library with its declarations, for each of these MPIs: no package registry has Caliper itself.
fn caliper(mpi: Mpi) -> Library {
    let library = mpi.cxx_program_with("caliper", &["-shared", "-fPIC"]);
    let folder = library.parent().unwrap().display();
    let arguments =
        vec!["-DCALIPER".into(), library.display().to_string(), format!("-Wl,-rpath,{folder}")];
    Library { name: "caliper", arguments }
}

impl Library {
    fn program(&self, mpi: Mpi) -> PathBuf {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        if ["kokkos", "caliper"].contains(&self.name) {
            mpi.cxx_program_with("regions", &arguments)
        } else {
            mpi.compiled("regions", &arguments)
        }
    }

    /// A run of the program by `gyan run` with these options.
    fn run(&self, mpi: Mpi, options: &[&str], arguments: &[&str]) -> Profiled {
        let words = mpi.launch_file(2, &self.program(mpi), arguments);
        let options = [&["--no-report"], options].concat();
        Profiled::by_command(&options, 2, &words, &[]).succeeded()
    }
}

/// What the program wrote of each phase, by the word for it.
fn expected(run: &Profiled, rank: u32) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut phases: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for words in run.truth(rank) {
        let at = words.iter().position(|word| word.parse::<f64>().is_ok()).unwrap();
        let phase = phases.entry(words[at + 1..].join(" ")).or_default();
        *phase.entry(words[..at].join(" ")).or_default() += words[at].parse::<f64>().unwrap();
    }
    phases
}

fn assert_phases(run: &Profiled, profile: &RankProfile) {
    let expected = expected(run, profile.rank);
    let names: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["", "solve", "solve/exchange"]);
    for phase in &profile.phases {
        let of = &expected[&phase.name];
        let received = phase.calls.iter().find(|call| call.name == "MPI_Recv");
        let received = received.map(|call| call.count as f64);
        assert_eq!(received, of.get("call MPI_Recv").copied(), "{phase:?}");
        if let Some(entries) = of.get("entries") {
            assert_eq!(Some(phase.entries as f64), Some(*entries), "{phase:?}");
            let time = phase.time_s * 1e6;
            let apart = CLOCKS_APART_US * entries;
            assert!(time >= of["least"] - apart, "{of:?} {phase:?}");
            assert!(time <= of["most"] + apart, "{of:?} {phase:?}");
        }
    }
}

/// Without `--phases` nothing is a phase. How a library tells of regions does not depend on the MPI. Returns the run that asked.
fn regions_are_phases(library: Option<&Library>, mpi: Mpi) -> Option<Profiled> {
    let library = library?;
    let asked = library.run(mpi, &["--phases", library.name], &[]);
    asked.profiles().iter().for_each(|profile| assert_phases(&asked, profile));
    let unasked = library.run(mpi, &[], &[]);
    assert_eq!(asked.outcome.stdout_of_ranks(), unasked.outcome.stdout_of_ranks());
    assert!(unasked.profiles().iter().all(|profile| profile.phases.is_empty()));
    Some(asked)
}

#[test]
fn regions_of_kokkos_are_phases() {
    _ = regions_are_phases(kokkos().as_ref(), OPENMPI);
}

#[test]
fn ranges_of_nvtx_are_phases_in_each_way_to_name_them() {
    _ = regions_are_phases(nvtx().as_ref(), MPICH);
}

#[test]
fn tasks_of_itt_are_phases() {
    _ = regions_are_phases(itt().as_ref(), MPICH);
}

#[test]
fn regions_of_caliper_are_phases_in_each_way_to_name_them() {
    let run = regions_are_phases(Some(&caliper(MPICH)), MPICH).unwrap();
    // What the library itself saw on each rank.
    let said = &run.outcome.stdout;
    assert_eq!(said.matches("caliper: 45 regions, 0 wrong, 0 open").count(), 2, "{said}");
}

#[test]
fn what_a_program_registers_with_adiak_labels_its_run_if_the_user_asks() {
    let program = MPICH.compiled("adiak", &["-Wl,--export-dynamic"]);
    let words = MPICH.launch_file(2, &program, &[]);
    let labels = |options: &[&str]| -> Vec<String> {
        let options = [&["--no-report", "--label", "size=1000"], options].concat();
        let run = Profiled::by_command(&options, 2, &words, &[]).succeeded();
        let labels = run.profiles().into_iter().map(|profile| profile.job.labels);
        let labels: Vec<Vec<_>> = labels.collect();
        assert_eq!(labels[0], labels[1]);
        labels[0].iter().map(|label| format!("{}={}", label.name, label.value)).collect()
    };
    assert_eq!(labels(&[]), ["size=1000"]);
    let text = format!("text={}", "x".repeat(200));
    let expected = [
        // What the user says comes before what the program says.
        "size=1000",
        "cells=-5000000000",
        "blocks=18446744073709551615",
        "order=-3",
        "levels=4294967295",
        "cfl=0.25",
        "compiler=gcc@12.2",
        "problem=Sedov; 3D",
        "solver=cg",
        "steps=1099511627776",
        text.as_str(),
    ];
    assert_eq!(labels(&["--labels-from", "adiak"]), expected);
}

#[test]
fn stages_of_petsc_are_phases() {
    _ = regions_are_phases(petsc().as_ref(), OPENMPI);
}

#[test]
fn regions_that_begin_too_often_are_left_out_and_the_profile_says_so() {
    let Some(library) = nvtx() else { return };
    for (budget, is_limited) in [("0.5%", true), ("none", false)] {
        let run = library.run(MPICH, &["--phases", "nvtx", "--budget", budget], &["often"]);
        for profile in run.profiles() {
            let solve = phase(&profile, "solve");
            let said = "regions \"solve\" began too often for the budget";
            let is_said = profile.warnings.iter().any(|warning| warning.starts_with(said));
            assert_eq!(is_said, is_limited, "{:?}", profile.warnings);
            assert_eq!(solve.entries < 100_003, is_limited, "{solve:?}");
            assert!((3..=100_003).contains(&solve.entries), "{solve:?}");
        }
    }
}

#[test]
fn a_tool_that_the_user_has_already_is_not_replaced() {
    let mut command = gyan();
    command.args(["run", "--phases", "itt,nvtx", "--", "true"]);
    let outcome = run(command.env("NVTX_INJECTION64_PATH", "/opt/other/libtool.so"));
    assert_ne!(outcome.code, 0);
    let said = "gyan: --phases nvtx: NVTX_INJECTION64_PATH is /opt/other/libtool.so, another tool; unset \
                NVTX_INJECTION64_PATH, or leave nvtx out\n";
    assert_eq!(outcome.stderr, said);
}
