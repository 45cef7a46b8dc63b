//! The application and everything around it are as without gyan.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{MPIS, NOBODY_IS_LEFT, OPENMPI, Profiled, command, libgyan, run};

#[test]
fn programs_that_are_no_mpi_programs_never_notice() {
    let directory = TempDir::new().unwrap();
    for words in [
        &["true"][..],
        &["false"],
        &["ls", "/"],
        &["ls", "/nonexistent"],
        &["bash", "-c", "echo $((1 + 1)); exit 5"],
        &["python3", "-c", "import sys; print('x'); sys.exit(3)"],
        &["gdb", "--version"],
        &["mpirun.openmpi", "--version"],
        &["mpirun.openmpi", "-n", "2", "bash", "-c", "echo no MPI here; exit 4"],
        &["mpirun.mpich", "--version"],
        &["mpirun.mpich", "-n", "2", "echo", "no MPI here"],
    ] {
        let bare = run(command(words).current_dir(&directory));
        let with = run(command(words).current_dir(&directory).env("LD_PRELOAD", libgyan()));
        assert_eq!(with.code, bare.code, "{words:?}");
        assert_eq!(with.stdout, bare.stdout, "{words:?}");
        // Open MPI's message about the exit code names process ids.
        if !words.contains(&"-n") {
            assert_eq!(with.stderr, bare.stderr, "{words:?}");
        }
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "something was written");
}

/// The system calls of a program under a preloaded library, by name, starting when the C library is loaded:
/// earlier ones load the library itself.
fn system_calls(directory: &TempDir, library: &Path, settings: &[&str]) -> Vec<String> {
    let trace = directory.path().join("trace");
    let mut strace = command(&["strace", "-qq", "-o"]);
    strace.arg(&trace).arg("-E").arg(format!("LD_PRELOAD={}", library.display()));
    for setting in settings {
        strace.args(["-E", setting]);
    }
    let outcome = run(strace.arg("true").env_remove("LD_LIBRARY_PATH"));
    assert_eq!(outcome.code, 0, "{}; scripts/packages strace", outcome.stderr);
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains(&library.display().to_string()), "{trace}");
    let calls = trace.lines().skip_while(|line| !line.contains("/libc.so.6"));
    calls.map(|line| line.split('(').next().unwrap().to_owned()).collect()
}

/// libgyan.so has a constructor, which is for `gyan doctor` only.
#[test]
fn a_program_makes_no_system_call_more_than_with_an_empty_library() {
    let directory = TempDir::new().unwrap();
    let empty = directory.path().join("libempty.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,-z,relro", "-x", "c", "/dev/null", "-o"]).arg(&empty);
    compiler.arg("-Wl,--no-as-needed").args(needed().iter().map(|name| format!("-l:{name}")));
    assert_eq!(run(&mut compiler).code, 0);
    let bare = system_calls(&directory, &empty, &[]);
    assert!(bare.len() > 10, "{bare:?}");
    for settings in [
        &[][..],
        &["GYAN_OUTPUT=x", "GYAN_DOCTOR_NOT=x"],
        &["GYAN_DOCTOR="],
        &["GYAN_SITE=/etc/hosts"],
    ] {
        assert_eq!(system_calls(&directory, &libgyan(), settings), bare, "{settings:?}");
    }
    // The same with the one setting: what an additional call would look like.
    let doctor = format!("GYAN_DOCTOR={}", directory.path().display());
    let noted = system_calls(&directory, &libgyan(), &[&doctor]);
    assert!(noted.len() > bare.len() && noted.iter().any(|call| call == "write"), "{noted:?}");
}

#[test]
fn output_and_exit_code_of_mpi_programs_are_the_same() {
    for mpi in MPIS {
        for (ranks, program) in [
            (1, &["exit_code", "0"][..]),
            (1, &["exit_code", "3"]),
            (4, &["receives"]),
            (3, &["halo_exchange", "60", "500"]),
            // They look for functions, and get some that work.
            (2, &["probing"]),
            (2, &["larger"]),
        ] {
            let settings = [("GYAN_NOTICES", "warnings"), NOBODY_IS_LEFT];
            let run = Profiled::run(mpi, ranks, program, &settings);
            let bare = run.without();
            assert_eq!(run.outcome.code, bare.code);
            assert_eq!(run.outcome.stdout_of_ranks(), bare.stdout_of_ranks());
            assert!(bare.code != 0 || run.outcome.stderr == bare.stderr, "{}", bare.stderr);
            assert_eq!(bare.code != 0, program.last() == Some(&"3"), "{bare:?}");
        }
    }
}

#[test]
fn without_a_setting_one_line_says_where_the_profiles_are() {
    for mpi in MPIS {
        let directory = TempDir::new().unwrap();
        let words = mpi.launch(3, "exit_code", &[]);
        let with = run(command(&words).current_dir(&directory).env("LD_PRELOAD", libgyan()));
        let [line] = with.notices()[..] else { panic!("{mpi:?}: {}", with.stderr) };
        assert!(line.starts_with("gyan: profiles of 3 ranks in gyan-exit_code-"), "{line}");
        let name = line.rsplit(' ').next().unwrap();
        assert_eq!(fs::read_dir(directory.path().join(name)).unwrap().count(), 3);
    }
}

/// The libraries that libgyan.so asks the loader for.
fn needed() -> Vec<String> {
    let dynamic = run(Command::new("objdump").arg("-p").arg(libgyan())).stdout;
    let needed = dynamic.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    needed.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn the_library_needs_nothing_but_the_c_library() {
    let needed = needed();
    assert!(needed.contains(&"libc.so.6".to_owned()), "{needed:?}");
    // Its own loader, and the separate libraries of glibc before 2.34.
    let c_library = ["libc.so.6", "libdl.so.2", "libpthread.so.0"];
    for name in needed {
        assert!(c_library.contains(&&*name) || name.starts_with("ld-linux"), "{name}");
    }
    let undefined = run(Command::new("nm").args(["-D", "--undefined-only"]).arg(libgyan()));
    assert!(!undefined.stdout.contains("MPI_"), "{}", undefined.stdout);
    assert!(undefined.stdout.contains("dlvsym"));
}

/// Functions called at `exit` must still be loaded then, even in a program that unloads the library that loaded
/// gyan.
#[test]
fn the_library_is_never_unloaded() {
    let dynamic = run(Command::new("readelf").arg("-dW").arg(libgyan())).stdout;
    let flags = dynamic.lines().find(|line| line.contains("(FLAGS_1)"));
    assert!(flags.is_some_and(|flags| flags.contains("NODELETE")), "{dynamic}");
}

/// Open MPI 4.1 lacks `MPI_Isendrecv_replace`. The program is linked with a library that has it, and runs with
/// one that has not: the loader's message and the exit code are the same.
#[test]
fn a_function_that_the_mpi_lacks_ends_the_program_as_the_loader_does() {
    let directory = TempDir::new().unwrap();
    let library = |source: &str, folder: &str| {
        let folder = directory.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("part.c");
        fs::write(&file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.join("libpart.so")).arg(file);
        assert_eq!(run(&mut compiler).code, 0);
        folder.display().to_string()
    };
    let with_it = library("int MPI_Isendrecv_replace(void) { return 0; }", "with");
    let without_it = library("int nothing;", "without");
    let link = [&format!("-L{with_it}"), "-lpart", "-Wl,-z,lazy"];
    let program = OPENMPI.compiled("newer", &link);
    let words = [program.display().to_string()];
    let bare = run(command(&words).current_dir(&directory).env("LD_LIBRARY_PATH", &without_it));
    let with = run(command(&words)
        .current_dir(&directory)
        .env("LD_LIBRARY_PATH", &without_it)
        .env("LD_PRELOAD", libgyan()));
    assert_eq!(bare.code, 127, "{bare:?}");
    assert!(bare.stderr.contains("undefined symbol: MPI_Isendrecv_replace"), "{}", bare.stderr);
    assert_eq!(with.code, bare.code);
    assert_eq!((with.stdout, with.stderr), (bare.stdout, bare.stderr));
}
