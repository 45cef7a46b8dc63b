//! What the tests share: the MPIs, compiled programs, runs under a timeout, and their profiles.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gyan_results::{Call, Number, Pvar, RankProfile, Values, read_profile};
use tempfile::TempDir;
use wait_timeout::ChildExt;

/// No run of a test takes longer, even on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The two MPIs of Debian, by the suffix of their commands: for what does not depend on versions.
pub(crate) const MPIS: [Mpi; 2] = [OPENMPI, MPICH];
pub(crate) const OPENMPI: Mpi = Mpi { name: "openmpi", place: Place::Debian };
pub(crate) const MPICH: Mpi = Mpi { name: "mpich", place: Place::Debian };

/// Open MPI 4 gives the ranks that are left two seconds when one ends with another code than 0: for
/// jobs of one rank.
pub(crate) const NOBODY_IS_LEFT: (&str, &str) = ("OMPI_MCA_odls_base_sigkill_timeout", "0");

/// Every MPI of the test bed, with the compiler wrappers for each of its binary interfaces.
pub(crate) const BED: [Mpi; 9] = [
    bed("openmpi4", "mpicc"),
    bed("mpich4", "mpicc"),
    OPENMPI5,
    bed("mpich5", "mpicc"),
    bed("mpich5", "mpicc_abi"),
    bed("intelmpi", "mpigcc"),
    // Intel MPI runs what MPICH's wrapper builds for the standard's interface.
    bed("intelmpi", "mpicc_abi"),
    MPICH_PVARS,
    OPENMPI_SPC,
];
pub(crate) const OPENMPI5: Mpi = bed("openmpi5", "mpicc");
pub(crate) const MPICH_PVARS: Mpi = bed("mpich-pvars", "mpicc");
pub(crate) const OPENMPI_SPC: Mpi = bed("openmpi-spc", "mpicc");

const fn bed(name: &'static str, compiler: &'static str) -> Mpi {
    Mpi { name, place: Place::Bed { compiler } }
}

/// An MPI, and how a program is built for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Mpi {
    pub(crate) name: &'static str,
    place: Place,
}

/// Where its commands are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// On PATH, under names with a suffix.
    Debian,
    /// Where `scripts/testbed` put it.
    Bed { compiler: &'static str },
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code, or 128 and the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// What went to stdout, as a bag of characters: launchers mix the output of ranks.
    pub(crate) fn stdout_of_ranks(&self) -> Vec<char> {
        bag_of(&self.stdout)
    }

    /// The lines on stderr that are gyan's.
    pub(crate) fn notices(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("gyan: ")).collect()
    }
}

pub(crate) fn bag_of(text: &str) -> Vec<char> {
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters
}

impl Mpi {
    /// `mpirun -n <ranks>`, with as many ranks as wanted on this machine.
    pub(crate) fn mpirun(self, ranks: usize) -> Vec<String> {
        self.mpirun_behind(&[], ranks)
    }

    /// `<front> mpirun -n <ranks>`, in the environment of this MPI.
    pub(crate) fn mpirun_behind(self, front: &[String], ranks: usize) -> Vec<String> {
        self.launched(front, "mpirun", ranks)
    }

    /// `mpiexec -n <ranks>`, the name that the standard gives a launcher.
    pub(crate) fn mpiexec(self, ranks: usize) -> Vec<String> {
        self.launched(&[], "mpiexec", ranks)
    }

    fn launched(self, front: &[String], launcher: &str, ranks: usize) -> Vec<String> {
        let mut words = match self.place {
            Place::Debian => [front, &[format!("{launcher}.{}", self.name)]].concat(),
            Place::Bed { .. } => {
                // Where there is no such network its component sleeps a second in MPI_Init.
                let no_ofi = ["env", "OMPI_MCA_btl=^ofi"].map(str::to_owned);
                let quick = if self == OPENMPI5 { &no_ofi[..] } else { &[] };
                [&in_bed(self.name), quick, front, &[launcher.into()]].concat()
            }
        };
        if self == OPENMPI {
            words.push("--oversubscribe".into());
        }
        words.extend(["-n".into(), ranks.to_string()]);
        words
    }

    /// `program` in the environment of this MPI, without a launcher.
    pub(crate) fn alone(self, program: &Path) -> Vec<String> {
        let mut words = match self.place {
            Place::Debian => Vec::new(),
            Place::Bed { .. } => in_bed(self.name),
        };
        words.push(program.display().to_string());
        words
    }

    /// The compiled program `tests/programs/<program>.c`.
    pub(crate) fn program(self, program: &str) -> PathBuf {
        self.compiled(program, &[])
    }

    /// The same, with more arguments for the compiler, which make it another program.
    pub(crate) fn compiled(self, program: &str, arguments: &[&str]) -> PathBuf {
        let wrapper = match self.place {
            Place::Debian => "mpicc",
            Place::Bed { compiler } => compiler,
        };
        self.built(
            wrapper,
            &format!("{program}.c"),
            &[&["-pthread", "-ldl", "-lm"], arguments].concat(),
        )
    }

    /// The compiled program `tests/programs/<program>.c`, which includes `gyan.h`.
    pub(crate) fn with_header(self, program: &str) -> PathBuf {
        self.compiled(program, &[&format!("-I{}", include().display())])
    }

    /// The compiled C++ program `tests/programs/<program>.cpp`.
    pub(crate) fn cxx_program(self, program: &str) -> PathBuf {
        let source = format!("{program}.cpp");
        match self.place {
            Place::Bed { compiler: "mpigcc" } => self.built("mpigxx", &source, &[]),
            Place::Bed { compiler: "mpicc_abi" } => self.built("mpicxx_abi", &source, &[]),
            // It was built without a wrapper for C++.
            _ if self == MPICH_PVARS => self.built("mpicc", &source, &["-cc=g++"]),
            _ => self.built("mpicxx", &source, &[]),
        }
    }

    /// The compiled Fortran program `tests/programs/<program>`, with more arguments for the compiler.
    pub(crate) fn fortran_program(self, program: &str, arguments: &[&str]) -> PathBuf {
        let wrapper = if self.name == "intelmpi" { "mpif90" } else { "mpifort" };
        // As mpif.h declares no types, one procedure is called with many.
        self.built(wrapper, program, &[&["-fallow-argument-mismatch"], arguments].concat())
    }

    /// The library `tests/programs/<source>.c`, to be preloaded.
    pub(crate) fn preloadable(self, source: &str, arguments: &[&str]) -> PathBuf {
        self.compiled(source, &[&["-shared", "-fPIC"], arguments].concat())
    }

    /// The words that put a command into the environment of this MPI, none for Debian's, and the
    /// compiler wrapper there.
    pub(crate) fn environment(self) -> (Vec<String>, String) {
        match self.place {
            Place::Debian => (Vec::new(), format!("mpicc.{}", self.name)),
            Place::Bed { compiler } => (in_bed(self.name), compiler.to_owned()),
        }
    }

    fn built(self, wrapper: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let (folder, compiler) = match self.place {
            Place::Debian => (self.name.to_owned(), vec![format!("{wrapper}.{}", self.name)]),
            Place::Bed { .. } => {
                // The wrappers for the standard's interface are MPICH's.
                let home = if wrapper.ends_with("_abi") { "mpich5" } else { self.name };
                (format!("{home}-{wrapper}"), [in_bed(home), vec![wrapper.into()]].concat())
            }
        };
        let directory = target().join("test-programs").join(folder);
        fs::create_dir_all(&directory).unwrap();
        // Other arguments, another program.
        let kind: String = arguments
            .iter()
            .map(|argument| if argument.starts_with("-L") { "-linked" } else { argument })
            .filter(|argument| {
                ["-linked", "-D", "-f"].iter().any(|kind| argument.starts_with(kind))
            })
            .collect();
        let output =
            directory.join(format!("{}{kind}", source.strip_suffix(".c").unwrap_or(source)));
        let source = root().join("tests/programs").join(source);
        let mut made_of = format!("{arguments:?} {} {}", modified(&source), age_of(&compiler));
        for header in ["gyan.h", "gyan.f90"] {
            made_of += &modified(&include().join(header));
        }
        made_of += &modified(&root().join("tests/programs/peruse_own.h"));
        let record = PathBuf::from(format!("{}.made-of", output.display()));
        if output.exists() && fs::read_to_string(&record).is_ok_and(|text| text == made_of) {
            return output;
        }
        let mut compiler = command(&compiler);
        // A Fortran module comes before the program that uses it, libraries behind.
        let (modules, arguments): (Vec<&str>, Vec<&str>) = arguments
            .iter()
            .partition(|argument| Path::new(argument).extension() == Some("f90".as_ref()));
        compiler.args(["-O1", "-w", "-o"]).arg(&output);
        compiler.args(modules).arg(&source).args(&arguments);
        let outcome = run(compiler.current_dir(&directory));
        assert_eq!(outcome.code, 0, "{} does not compile:\n{}", source.display(), outcome.stderr);
        // What a library outside holds may change at any time.
        if !arguments.iter().any(|argument| argument.starts_with("-L")) {
            fs::write(record, made_of).unwrap();
        }
        output
    }

    /// The Rust package `tests/programs/rust`, built once for each binary interface: its libraries
    /// have the same name in every MPI that has the interface.
    pub(crate) fn rust_program(self) -> PathBuf {
        let (home, wrapper) = match self.place {
            _ if self.name.starts_with("openmpi") => ("openmpi4", "mpicc"),
            Place::Bed { compiler: "mpicc_abi" } => ("mpich5", "mpicc_abi"),
            _ => ("mpich5", "mpicc"),
        };
        let directory = target().join("test-programs").join(format!("rust-{home}-{wrapper}"));
        let mut cargo = command(&[in_bed(home), vec![env!("CARGO").to_owned()]].concat());
        cargo.args(["build", "--quiet", "--locked", "--target-dir"]).arg(&directory);
        cargo.current_dir(root().join("tests/programs/rust")).env("MPICC", wrapper);
        if wrapper == "mpicc_abi" {
            // mpi-sys relies on MPI_Fint, which MPI 5.0 leaves out.
            cargo.env("CFLAGS", "-DMPI_Fint=int");
            cargo.env("BINDGEN_EXTRA_CLANG_ARGS", "-DMPI_ABI -DMPI_Fint=int");
        }
        // The first time it compiles a parser of C headers.
        let outcome = run_within(&mut cargo, Duration::from_secs(600));
        assert_eq!(outcome.code, 0, "the Rust program does not compile:\n{}", outcome.stderr);
        directory.join("debug/receives")
    }
}

/// When a file was written, as a text.
fn modified(path: &Path) -> String {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap();
    format!("{:?}", time.duration_since(std::time::UNIX_EPOCH).unwrap())
}

/// Where a compiler wrapper is and of when, with those of Debian that one in the test bed may lead to.
fn age_of(compiler: &[String]) -> String {
    static KNOWN: Mutex<BTreeMap<Vec<String>, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || {
        let (wrapper, front) = compiler.split_last().unwrap();
        let script = "for file; do file=$(command -v $file) && stat -Lc '%n %Y' $file; done; true";
        let mut words: Vec<String> = [front, &["sh".into(), "-c".into(), script.into()]].concat();
        words.push("sh".into());
        words.extend(["", ".openmpi", ".mpich"].map(|suffix| format!("{wrapper}{suffix}")));
        run(&mut command(&words)).stdout
    };
    known.entry(compiler.to_vec()).or_insert_with(ask).clone()
}

/// The words that put a command into the environment of an MPI of the test bed.
fn in_bed(name: &str) -> Vec<String> {
    let testbed = root().join("scripts/testbed").display().to_string();
    vec![testbed, "run".into(), name.into(), "--".into()]
}

/// The project's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where `gyan.h` and `gyan.f90` are.
pub(crate) fn include() -> PathBuf {
    root().join("wrappers/include")
}

pub(crate) fn target() -> PathBuf {
    // .../target/<profile>/deps/<this test>
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// What users get: built in release mode, and never older than the sources.
fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--quiet"]).current_dir(root());
        cargo.arg("--target-dir").arg(target());
        let status = cargo.status().unwrap();
        assert!(status.success(), "the release build failed");
        target().join("release")
    });
    folder.join(name)
}

pub(crate) fn gyan() -> Command {
    Command::new(built("gyan"))
}

pub(crate) fn libgyan() -> PathBuf {
    built("libgyan.so")
}

/// A command line as a command that knows no setting of gyan but what the test gives it.
pub(crate) fn command<S: AsRef<OsStr>>(words: &[S]) -> Command {
    let (program, arguments) = words.split_first().unwrap();
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Runs to the end, or fails the test when that takes too long.
pub(crate) fn run(command: &mut Command) -> Outcome {
    run_within(command, TIMEOUT)
}

fn run_within(command: &mut Command, timeout: Duration) -> Outcome {
    let directory = TempDir::new().unwrap();
    let (stdout, stderr) = (directory.path().join("stdout"), directory.path().join("stderr"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let explicit = command.get_envs().any(|(set, _)| set == OsStr::new(&name));
        if name.starts_with("GYAN") && name != "GYAN_TESTBED" && !explicit {
            command.env_remove(&name);
        }
    }
    let root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    let mut child = command
        .envs(root.map(|name| (name, "1")))
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let Some(status) = child.wait_timeout(timeout).unwrap() else {
        let group = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        panic!("{command:?} did not end\n{}", fs::read_to_string(&stderr).unwrap_or_default());
    };
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Outcome {
        code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap()),
        stdout: text(&stdout),
        stderr: text(&stderr),
    }
}

/// A run of an MPI program with libgyan.so preloaded, and where it left its profiles.
pub(crate) struct Profiled {
    pub(crate) outcome: Outcome,
    pub(crate) directory: PathBuf,
    keep: TempDir,
}

impl Profiled {
    /// Runs `program` on `ranks` ranks with `settings` in the environment.
    pub(crate) fn run(
        mpi: Mpi,
        ranks: usize,
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        Profiled::preloaded(mpi, ranks, &mpi.program(program[0]), &program[1..], settings)
    }

    /// The same for a program that is compiled already.
    pub(crate) fn preloaded(
        mpi: Mpi,
        ranks: usize,
        file: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let preload = [("LD_PRELOAD", libgyan().display().to_string())];
        let settings: Vec<(&str, &str)> = preload
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(settings.iter().copied())
            .collect();
        Profiled::run_file(mpi, ranks, file, arguments, &settings)
    }

    /// The same for one that has gyan by itself or by the settings.
    pub(crate) fn run_file(
        mpi: Mpi,
        ranks: usize,
        file: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let keep = TempDir::new().unwrap();
        let directory = keep.path().join("profile");
        let mut words = mpi.mpirun(ranks);
        words.push(file.display().to_string());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let mut command = command(&words);
        command.current_dir(keep.path());
        command.env("GYAN_OUTPUT", &directory);
        command.envs(settings.iter().copied());
        Profiled { outcome: run(&mut command), directory, keep }
    }

    /// Where the program ran.
    pub(crate) fn place(&self) -> &Path {
        self.keep.path()
    }

    /// What the program itself wrote down on `rank`, in words.
    pub(crate) fn truth(&self, rank: u32) -> Vec<Vec<String>> {
        truth(self.keep.path(), rank)
    }

    /// The profiles of all ranks, by rank.
    pub(crate) fn profiles(&self) -> Vec<RankProfile> {
        profiles(&self.directory)
    }
}

/// What a program that ran in `directory` wrote down on `rank`, in words.
pub(crate) fn truth(directory: &Path, rank: u32) -> Vec<Vec<String>> {
    let path = directory.join(format!("truth.{rank}"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// The profiles in a run directory, by rank.
pub(crate) fn profiles(directory: &Path) -> Vec<RankProfile> {
    files_of_ranks(directory, "json")
}

/// What the live files in a run directory know, by rank.
pub(crate) fn lives(directory: &Path) -> Vec<RankProfile> {
    files_of_ranks(directory, "live")
}

fn files_of_ranks(directory: &Path, extension: &str) -> Vec<RankProfile> {
    let mut profiles: Vec<RankProfile> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name() != Some(OsStr::new("summary.json")))
        // Further runs of the same job.
        .filter(|path| !path.is_dir())
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .map(|path| {
            read_profile(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect();
    profiles.sort_by_key(|profile| profile.rank);
    profiles
}

/// The run directories in `here`; names that lead to another of them do not count.
pub(crate) fn run_directories(here: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(here).unwrap().map(|entry| entry.unwrap());
    let mut directories: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    directories
}

/// The one of them.
pub(crate) fn only_run_directory(here: &Path) -> PathBuf {
    let directories = run_directories(here);
    let [directory] = &directories[..] else { panic!("not one run directory: {directories:?}") };
    directory.clone()
}

/// The counts of a profile by function.
pub(crate) fn counts(profile: &RankProfile) -> BTreeMap<&str, u64> {
    profile.calls.iter().map(|call| (call.name.as_str(), call.count)).collect()
}

/// What is known of the calls of one function.
pub(crate) fn call<'a>(profile: &'a RankProfile, name: &str) -> &'a Call {
    let found = profile.calls.iter().find(|call| call.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no call of {name}", profile.rank))
}

/// The same for receives, start and end alone.
pub(crate) fn receives(profile: &RankProfile) -> BTreeMap<&str, u64> {
    let mut counts = counts(profile);
    counts.retain(|name, _| {
        name.to_lowercase().contains("recv")
            || name.starts_with("MPI_Init")
            || *name == "MPI_Finalize"
    });
    counts.remove("MPI_Initialized");
    counts
}

pub(crate) fn pvar<'a>(profile: &'a RankProfile, name: &str) -> &'a Pvar {
    let found = profile.pvars.iter().find(|pvar| pvar.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no {name}", profile.rank))
}

pub(crate) fn elements(values: Option<&Values>) -> &[Number] {
    match values {
        Some(Values::Elements(elements)) => elements,
        other => panic!("no elements: {other:?}"),
    }
}
