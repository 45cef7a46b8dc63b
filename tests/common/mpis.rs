//! Which MPIs are installed, how is a program compiled for each, and how is it launched?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::processes::{Outcome, command, root, run, run_within, target};

/// The two MPIs of Debian, by the suffix of their commands: for tests that do not depend on versions.
pub(crate) const MPIS: [Mpi; 2] = [OPENMPI, MPICH];
pub(crate) const OPENMPI: Mpi = Mpi { name: "openmpi", place: Place::Debian };
pub(crate) const MPICH: Mpi = Mpi { name: "mpich", place: Place::Debian };

/// When a rank ends with a code other than 0, Open MPI 4 gives the others two seconds: for jobs of one rank.
pub(crate) const NOBODY_IS_LEFT: (&str, &str) = ("OMPI_MCA_odls_base_sigkill_timeout", "0");

/// Every MPI of the test bed, with the compiler wrappers for each of its binary interfaces.
pub(crate) const BED: [Mpi; 9] = [
    bed("openmpi4", "mpicc"),
    bed("mpich4", "mpicc"),
    OPENMPI5,
    MPICH5,
    bed("mpich5", "mpicc_abi"),
    INTELMPI,
    // Intel MPI runs programs that MPICH's wrapper builds for the standard's interface.
    bed("intelmpi", "mpicc_abi"),
    MPICH_PVARS,
    OPENMPI_SPC,
];

pub(crate) fn all_mpis() -> bool {
    std::env::var_os("ALL_MPIS").is_some()
}

/// Those of them that what holds for every MPI is tested with: each library and each interface once. `scripts/test --all` sets
/// `ALL_MPIS`, and has all.
pub(crate) fn each_library() -> Vec<Mpi> {
    if all_mpis() {
        return BED.to_vec();
    }
    vec![BED[0], BED[1], OPENMPI5, bed("mpich5", "mpicc_abi"), INTELMPI]
}

pub(crate) const OPENMPI5: Mpi = bed("openmpi5", "mpicc");
pub(crate) const MPICH5: Mpi = bed("mpich5", "mpicc");
pub(crate) const INTELMPI: Mpi = bed("intelmpi", "mpigcc");
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
    /// On PATH, with suffixed names.
    Debian,
    /// Where `scripts/testbed` put it.
    Bed { compiler: &'static str },
}

impl Outcome {
    /// The text on stdout as a multiset of characters: launchers interleave the output of ranks.
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
    /// The one of the test bed with this name, with the compiler wrapper for its own binary interface.
    pub(crate) fn named(name: &str) -> Mpi {
        *BED.iter().find(|mpi| mpi.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// `mpirun -n <ranks>`, with any number of ranks on this machine.
    pub(crate) fn mpirun(self, ranks: usize) -> Vec<String> {
        self.mpirun_after(&[], ranks)
    }

    /// The same with the program `tests/programs/<program>.c` and its arguments.
    pub(crate) fn launch(self, ranks: usize, program: &str, arguments: &[&str]) -> Vec<String> {
        self.launch_file(ranks, &self.program(program), arguments)
    }

    /// The same with a program that is compiled already.
    pub(crate) fn launch_file(self, ranks: usize, file: &Path, arguments: &[&str]) -> Vec<String> {
        let program = [&[file.to_str().unwrap()], arguments].concat();
        [self.mpirun(ranks), program.into_iter().map(str::to_owned).collect()].concat()
    }

    /// `<front> mpirun -n <ranks>`, in the environment of this MPI.
    pub(crate) fn mpirun_after(self, front: &[String], ranks: usize) -> Vec<String> {
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
                // Without such a network its component sleeps a second in MPI_Init.
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
        self.cxx_program_with(program, &[])
    }

    /// The same, with more arguments for the compiler.
    pub(crate) fn cxx_program_with(self, program: &str, arguments: &[&str]) -> PathBuf {
        let source = format!("{program}.cpp");
        match self.place {
            Place::Bed { compiler: "mpigcc" } => self.built("mpigxx", &source, arguments),
            Place::Bed { compiler: "mpicc_abi" } => self.built("mpicxx_abi", &source, arguments),
            // It was built without a wrapper for C++.
            _ if self == MPICH_PVARS => {
                self.built("mpicc", &source, &[&["-cc=g++"], arguments].concat())
            }
            _ => self.built("mpicxx", &source, arguments),
        }
    }

    /// The compiled Fortran program `tests/programs/<program>`, with more arguments for the compiler.
    pub(crate) fn fortran_program(self, program: &str, arguments: &[&str]) -> PathBuf {
        let wrapper = if self.name == "intelmpi" { "mpif90" } else { "mpifort" };
        // mpif.h declares no types, so one procedure is called with many.
        self.built(wrapper, program, &[&["-fallow-argument-mismatch"], arguments].concat())
    }

    /// The compiled program `tests/programs/<source>`, in C, C++ or Fortran, with OpenMP: its runtime is LLVM's, which is in
    /// `libraries`. GCC's runtime has another name there, and the same functions.
    pub(crate) fn openmp_program(self, source: &str, libraries: &Path) -> PathBuf {
        match source.rsplit_once('.') {
            Some((program, "c")) => self.compiled(program, &["-g", "-fopenmp"]),
            Some((_, "f90")) => {
                let link = format!("-L{}", libraries.display());
                self.fortran_program(source, &["-g", "-fopenmp", &link])
            }
            _ => self.built("mpicxx", source, &["-g", "-fopenmp"]),
        }
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
        let programs = root().join("tests/programs");
        let source = programs.join(source);
        let mut made_of = format!("{arguments:?} {} {}", modified(&source), age_of(&compiler));
        let own = ["check.h", "peruse_own.h"].map(|header| programs.join(header));
        for header in ["gyan.h", "gyan.f90"].map(|name| include().join(name)).iter().chain(&own) {
            made_of += &modified(header);
        }
        let record = PathBuf::from(format!("{}.made-of", output.display()));
        let turn = turn(&directory);
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if output.exists() && fs::read_to_string(&record).is_ok_and(|text| text == made_of) {
            return output;
        }
        let mut compiler = command(&compiler);
        // A Fortran module comes before the program that uses it, libraries after it.
        let (modules, arguments): (Vec<&str>, Vec<&str>) = arguments
            .iter()
            .partition(|argument| Path::new(argument).extension() == Some("f90".as_ref()));
        if arguments.contains(&"-fopenmp") {
            // Their code runs on LLVM's runtime; GCC's tells tools nothing.
            let clang = [("CC", "clang"), ("CXX", "clang++")];
            for (variable, compiler_of) in clang {
                compiler.env(format!("OMPI_{variable}"), compiler_of);
                compiler.env(format!("MPICH_{variable}"), compiler_of);
            }
        }
        compiler.args(["-O1", "-w", "-o"]).arg(&output);
        compiler.args(modules).arg(&source).args(&arguments);
        let outcome = run(compiler.current_dir(&directory));
        assert_eq!(outcome.code, 0, "{} does not compile:\n{}", source.display(), outcome.stderr);
        // A library outside the project may change at any time.
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
            // mpi-sys relies on MPI_Fint, which is missing from MPI 5.0.
            cargo.env("CFLAGS", "-DMPI_Fint=int");
            cargo.env("BINDGEN_EXTRA_CLANG_ARGS", "-DMPI_ABI -DMPI_Fint=int");
        }
        // The first time it compiles a parser for C headers.
        let outcome = run_within(&mut cargo, Duration::from_secs(600));
        assert_eq!(outcome.code, 0, "the Rust program does not compile:\n{}", outcome.stderr);
        directory.join("debug/receives")
    }
}

/// The modification time of a file, as text.
fn modified(path: &Path) -> String {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap();
    format!("{:?}", time.duration_since(std::time::UNIX_EPOCH).unwrap())
}

/// What a test holds while it compiles into `directory`: others need the same program, or leave a Fortran module there.
fn turn(directory: &Path) -> Arc<Mutex<()>> {
    static TURNS: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    turns.entry(directory.to_owned()).or_default().clone()
}

/// The path and time of a compiler wrapper, and those of Debian's that one in the test bed may lead to.
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

/// Where `gyan.h` and `gyan.f90` are.
pub(crate) fn include() -> PathBuf {
    root().join("wrappers/include")
}

/// The line of `tests/programs/<file>` that ends with this comment.
pub(crate) fn line_of(file: &str, comment: &str) -> usize {
    let text = std::fs::read_to_string(root().join("tests/programs").join(file)).unwrap();
    let comment = format!("/* {comment} */");
    1 + text.lines().position(|line| line.ends_with(&comment)).unwrap()
}
