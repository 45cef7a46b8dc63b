//! gyan's knowledge of each MPI matches its `mpi.h`, and libgyan can be built for one MPI only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Profiled, command, counts, each_library, in_pairs, libgyan,
    receives, root, run, run_within, succeed, target,
};
use crate::variables::readings::{MONITORING, compare};

/// No build for one MPI takes longer, including a parser for C headers, on a busy machine.
const BUILD: Duration = Duration::from_secs(1800);

/// The MPI whose build the others copy: crates that do not depend on the MPI, above all bindgen, are compiled
/// once.
const FIRST: &str = "openmpi4";

/// What a test holds while it builds: two of them use the same directories.
static TURN: Mutex<()> = Mutex::new(());

/// The target directory for one MPI: mpi-sys does not notice when a different one is asked for.
fn target_of(name: &str) -> PathBuf {
    let all = target().join("native");
    let (own, first) = (all.join(name), all.join(FIRST));
    if !own.join("complete").exists() {
        let _ = fs::remove_dir_all(&own);
        fs::create_dir_all(&all).unwrap();
        if first.join("complete").exists() {
            succeed(Command::new("cp").arg("-a").arg(first).arg(&own));
            let _ = fs::remove_file(own.join("complete"));
            let mut clean = Command::new(env!("CARGO"));
            clean.args(["clean", "--quiet", "-p", "mpi-sys", "-p", "gyan-wrappers"]);
            succeed(clean.arg("--target-dir").arg(&own).current_dir(root()));
        }
    }
    own
}

/// `cargo <arguments>` on crate `gyan-wrappers` for one MPI, not optimised: optimising takes minutes and
/// changes nothing that these tests check.
fn cargo(mpi: Mpi, name: &str, compiler: &str, arguments: &[&str]) -> Command {
    let (mut words, _) = mpi.environment();
    words.push(env!("CARGO").into());
    let mut cargo = command(&words);
    cargo.args(arguments).args(["--quiet", "-p", "gyan-wrappers"]).current_dir(root());
    cargo.arg("--target-dir").arg(target_of(name)).env("MPICC", compiler);
    // Half the space and less time: each is built once.
    cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "none");
    // Set for each, or mpi-sys is rebuilt after one that needs them.
    cargo.env("BINDGEN_EXTRA_CLANG_ARGS", "").env("CFLAGS", "");
    cargo
}

fn build(mut cargo: Command, name: &str) {
    let outcome = run_within(&mut cargo, BUILD);
    assert_eq!(outcome.code, 0, "{name}: the build failed:\n{}", outcome.stderr);
    fs::write(target().join("native").join(name).join("complete"), "").unwrap();
}

/// An `mpi.h` of the test bed, as an MPI with its compiler wrapper, and the flags that mpi-sys needs
/// for it and bindgen does not get from the wrapper.
type Header = (Mpi, String, &'static str, &'static str);

fn headers() -> Vec<Header> {
    let mut headers = Vec::new();
    for mpi in each_library() {
        let (_, compiler) = mpi.environment();
        headers.push(match (mpi.name, compiler.as_str()) {
            // mpi-sys relies on MPI_Fint, which MPI 5.0 leaves out.
            ("mpich5", "mpicc_abi") => {
                (mpi, compiler, "-DMPI_ABI -DMPI_Fint=int", "-DMPI_Fint=int")
            }
            // Intel MPI brings the header but no wrapper for it.
            ("intelmpi", "mpicc_abi") => (mpi, "mpigcc".into(), "-DMPI_ABI", "-DMPI_ABI"),
            _ => (mpi, compiler, "", ""),
        });
    }
    headers
}

#[test]
#[ignore = "fills the machine: scripts/test runs it alone"]
fn the_tables_are_what_mpi_h_of_every_mpi_says() {
    let headers = headers();
    let (first, others) = headers.split_first().unwrap();
    assert_eq!(first.0.name, FIRST);
    compare_tables(first);
    in_pairs(others, compare_tables);
}

/// Builds and runs the unit tests that compare gyan's table with one `mpi.h`.
fn compare_tables((mpi, compiler, for_bindgen, for_compiler): &Header) {
    let abi = if for_bindgen.is_empty() { "" } else { "-abi" };
    let name = format!("{}{abi}", mpi.name);
    let cargo = |arguments: &[&str]| {
        let mut cargo = cargo(*mpi, &name, compiler, arguments);
        cargo.env("BINDGEN_EXTRA_CLANG_ARGS", for_bindgen).env("CFLAGS", for_compiler);
        cargo
    };
    let arguments = ["test", "--lib", "--features", "native"];
    build(cargo(&[&arguments[..], &["--no-run"]].concat()), &name);
    let mut test = cargo(&arguments);
    test.args(["--", "--nocapture", "--test-threads=1", "abi::native"]);
    if compiler == "mpigcc" && !abi.is_empty() {
        // Linked with the library for the other interface, as there is no wrapper.
        test.args(["--skip", "the_library_is_recognised"]);
    }
    let outcome = run(&mut test);
    assert_eq!(outcome.code, 0, "{name}: {}\n{}", outcome.stdout, outcome.stderr);
    let compared = outcome.stdout.lines().find_map(|line| {
        let (number, table) = line.split_once(" constants compared with the table ")?;
        Some((number.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?, table))
    });
    let (number, table) = compared.unwrap_or_else(|| panic!("{name}: {}", outcome.stdout));
    assert!(number >= 85, "{name}: only {number} compared");
    let expected = match mpi.name {
        _ if !abi.is_empty() => "standard",
        openmpi if openmpi.starts_with("openmpi") => "openmpi",
        _ => "mpich",
    };
    assert_eq!(table, expected, "{name}");
}

/// The build for one MPI of Debian. With both features in one folder they would be rebuilt alternately, because
/// cargo has one place for the libraries.
fn folder_of(mpi: Mpi, feature: &str) -> String {
    // As the test bed calls them: what was built for the tables serves here.
    let own = if feature == "native" { "" } else { "-static" };
    format!("{}4{own}", mpi.name)
}

/// The folder with libgyan.so and libgyan.a for one MPI of Debian.
fn libraries(mpi: Mpi, feature: &str) -> PathBuf {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let name = folder_of(mpi, feature);
    let (_, compiler) = mpi.environment();
    build(cargo(mpi, &name, &compiler, &["build", "--features", feature]), &name);
    target().join("native").join(name).join("debug")
}

/// Compiles `tests/programs/<program>.c` followed by `arguments`.
fn linked(mpi: Mpi, folder: &Path, program: &str, arguments: &[&str]) -> PathBuf {
    let (_, compiler) = mpi.environment();
    let output = folder.join(program);
    let programs = root().join("tests/programs");
    let mut compiler = Command::new(compiler);
    compiler.args(["-O1", "-w", "-pthread", "-o"]).arg(&output);
    compiler.arg(programs.join(program).with_extension("c")).args(arguments);
    let outcome = run(compiler.current_dir(programs));
    assert_eq!(outcome.code, 0, "{program} does not link:\n{}", outcome.stderr);
    output
}

/// Runs three programs that get gyan from `settings` or have it built in.
fn counts_and_readings(mpi: Mpi, program: &dyn Fn(&str) -> PathBuf, settings: &[(&str, &str)]) {
    let run = Profiled::run_file(mpi, 4, &program("receives"), &[], settings).succeeded();
    for profile in &run.profiles() {
        assert_eq!(profile.mpi.abi, "native");
        assert_eq!(receives(profile), run.true_counts(profile.rank));
    }
    let run = Profiled::run_file(mpi, 2, &program("threads"), &[], settings).succeeded();
    for profile in &run.profiles() {
        assert_eq!(profile.mpi.thread_level, "MPI_THREAD_MULTIPLE");
        assert_eq!(counts(profile)["MPI_Recv"], 188_010);
    }
    if mpi == OPENMPI {
        let settings = [settings, &[MONITORING]].concat();
        let run = Profiled::run_file(mpi, 3, &program("pvars"), &[], &settings);
        assert!(compare(mpi, &run, 12) >= 6);
    }
}

#[test]
fn a_library_built_for_one_mpi_counts_and_reads_whichever_way_it_gets_into_the_program() {
    for mpi in MPIS {
        let folder = libraries(mpi, "native");
        let library = folder.join("libgyan.so").display().to_string();
        let preloaded = [("LD_PRELOAD", library.as_str())];
        counts_and_readings(mpi, &|program| mpi.program(program), &preloaded);

        let programs = TempDir::new().unwrap();
        let place = folder.display().to_string();
        let flags = [&format!("-L{place}") as &str, "-Wl,--no-as-needed", "-l:libgyan.so"];
        let shared = |program: &str| linked(mpi, programs.path(), program, &flags);
        counts_and_readings(mpi, &shared, &[("LD_LIBRARY_PATH", &place)]);

        let archive = folder.join("libgyan.a").display().to_string();
        let contained = |program: &str| linked(mpi, programs.path(), program, &[&archive, "-ldl"]);
        counts_and_readings(mpi, &contained, &[]);
    }
}

/// Of Debian's, MPICH has a static library.
#[test]
fn a_program_that_contains_its_mpi_is_profiled() {
    // Of the whole workspace, with which they share nearly all that is built.
    let (_, compiler) = MPICH.environment();
    let mut tests = Command::new(env!("CARGO"));
    tests.args(["test", "--quiet", "--workspace", "--lib", "--features", "gyan-wrappers/static"]);
    tests.arg("symbols::linked").arg("--target-dir").arg(target());
    let outcome = run_within(tests.current_dir(root()).env("MPICC", compiler), BUILD);
    assert_eq!(outcome.code, 0, "{}\n{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains(" 1 passed"), "{}", outcome.stdout);

    let archive = libraries(MPICH, "static").join("libgyan.a").display().to_string();
    let mpi = ["-Wl,-Bstatic", "-lmpich", "-Wl,-Bdynamic", "-lhwloc", "-lucp", "-lucs", "-lm"];
    let ucx = ["-Wl,--whole-archive", "-lucp", "-luct", "-lucs", "-lucm", "-Wl,--no-whole-archive"];
    let wholly = ["-static", "no_udev.c", &archive, "-lmpich"];
    let wholly = [&wholly[..], &ucx, &["-lhwloc", "-lnuma", "-lrt", "-lm"]].concat();
    let mpi = [&[&archive as &str], &mpi[..]].concat();
    // Debian's UCX in a static program hangs over TCP with four ranks, also without gyan.
    let shared_memory = ("UCX_TLS", "self,posix");
    for (how, flags, settings) in [("MPI", mpi, &[][..]), ("all", wholly, &[shared_memory])] {
        let programs = TempDir::new().unwrap();
        let program = |program: &str| linked(MPICH, programs.path(), program, &flags);
        counts_and_readings(MPICH, &program, settings);

        let headers = run(Command::new("objdump").arg("-p").arg(program("pvars")));
        assert!(!headers.stdout.contains("libmpi"), "{how}");
        assert_eq!(headers.stdout.contains("NEEDED"), how == "MPI", "{}", headers.stdout);
        // It has no performance variables; the control variables come through MPI_T too.
        let settings = [settings, &[("GYAN_CVARS_RECORD", "all")]].concat();
        let run =
            Profiled::run_file(MPICH, 2, &program("exit_code"), &["0"], &settings).succeeded();
        let profile = &run.profiles()[0];
        assert!(profile.cvars.len() > 300, "{how}: {}", profile.cvars.len());
        assert!(profile.cvars.iter().any(|cvar| cvar.name == "MPIR_CVAR_BCAST_SHORT_MSG_SIZE"));
    }
}

#[test]
fn a_library_built_for_another_mpi_stays_off_and_says_so() {
    for (mpi, other) in [(MPICH, OPENMPI), (OPENMPI, MPICH)] {
        let library = libraries(other, "native").join("libgyan.so").display().to_string();
        let settings = [("LD_PRELOAD", library.as_str())];
        let with = Profiled::run_file(mpi, 2, &mpi.program("receives"), &[], &settings);
        let with = with.succeeded().ends_as_without();
        let [line] = with.outcome.notices()[..] else { panic!("not one line") };
        assert!(line.contains("interface that this libgyan was built for; gyan is off"), "{line}");
    }
}

#[test]
fn an_mpi_that_no_table_knows_is_left_alone_with_one_line_that_helps() {
    let here = TempDir::new().unwrap();
    let source = root().join("tests/programs/unknown_mpi.c");
    let library = here.path().join("libunknown.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-DLIBRARY", "-shared", "-fPIC", "-Wl,-soname,libunknown.so", "-o"]);
    assert_eq!(run(compiler.arg(&library).arg(&source)).code, 0);
    let program = here.path().join("program");
    let mut compiler = Command::new("cc");
    assert_eq!(run(compiler.arg("-o").arg(&program).arg(&source).arg(&library)).code, 0);

    let with = |settings: &[(&str, &str)]| {
        let mut program = Command::new(&program);
        program.current_dir(&here).env("LD_LIBRARY_PATH", here.path());
        run(program.envs(settings.iter().copied()))
    };
    let bare = with(&[]);
    assert_eq!((bare.code, bare.stdout.as_str()), (5, "rank 0 of the unknown MPI received 42\n"));
    let gyan = libgyan().display().to_string();
    let preloaded = with(&[("LD_PRELOAD", &gyan)]);
    assert_eq!((preloaded.code, &preloaded.stdout), (bare.code, &bare.stdout));
    let [line] = preloaded.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{preloaded:?}") };
    let path = library.display();
    assert_eq!(
        line,
        format!(
            "gyan: {path} has another binary interface than Open MPI, MPICH and MPI 5; gyan is \
             off; to build a libgyan.so for this MPI, in gyan's sources: MPICC=mpicc cargo build \
             --release -p gyan-wrappers --features native"
        )
    );
    // The other ranks of a node keep quiet, if the launcher tells which they are.
    let second = with(&[("LD_PRELOAD", &gyan), ("MPI_LOCALRANKID", "1")]);
    assert_eq!((second.code, second.stderr.as_str()), (bare.code, ""));
    let left: Vec<_> = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
