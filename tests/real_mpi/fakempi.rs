//! The MPI library of `tests/fakempi`: built once, with programs for it, and runs of them with a script.
//!
//! It does what no available MPI does: export events, and misbehave.

use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{RankProfile, Variables, rank_file_name};
use tempfile::TempDir;

use crate::common::{Outcome, command, gyan, libgyan, profiles, root, run, succeed, target};

/// The results of a run of a program with this MPI.
pub(crate) struct Faked {
    pub(crate) outcome: Outcome,
    /// The library's log of its use, line by line.
    pub(crate) log: Vec<String>,
    directory: PathBuf,
    _keep: TempDir,
}

impl Faked {
    /// Runs `program` under gyan, the library doing what `script` says.
    pub(crate) fn run(script: &str, program: &[&str], settings: &[(&str, &str)]) -> Faked {
        let libgyan = libgyan().display().to_string();
        Faked::started(script, program, &[settings, &[("LD_PRELOAD", &libgyan)]].concat())
    }

    /// Runs `program` with a limited address space, under gyan if `settings` preload it.
    pub(crate) fn limited(
        bytes: u64,
        script: &str,
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Faked {
        let limit = ["prlimit".to_owned(), format!("--as={bytes}")];
        Faked::behind(&limit, script, program, settings)
    }

    /// The same without gyan.
    pub(crate) fn alone(script: &str, program: &[&str]) -> Faked {
        Faked::started(script, program, &[])
    }

    /// `gyan <words> --mpi` with the library, doing what `script` says.
    pub(crate) fn gyan(script: &str, words: &[&str]) -> Outcome {
        let keep = TempDir::new().unwrap();
        let file = keep.path().join("script");
        fs::write(&file, script).unwrap();
        let mut command = gyan();
        command.args(words).arg("--mpi").arg(library().join("libmpi.so.12"));
        run(command.current_dir(keep.path()).env("FAKEMPI", &file))
    }

    /// `gyan <words> -- sh -c <shell>` in `here`, where the shell finds a program with the library as `$PROGRAM`.
    pub(crate) fn in_shell(
        here: &Path,
        script: &str,
        words: &[&str],
        shell: &str,
        program: &str,
    ) -> Outcome {
        let file = here.join("script");
        fs::write(&file, script).unwrap();
        let mut command = gyan();
        command.args(words).args(["--", "sh", "-c", shell]).current_dir(here);
        run(command.env("FAKEMPI", &file).env("PROGRAM", built(program)))
    }

    /// What `gyan varlist` tells of the library.
    pub(crate) fn listed(script: &str) -> (Outcome, Variables) {
        let outcome = Faked::gyan(script, &["varlist", "--json"]);
        let listing = serde_json::from_str(&outcome.stdout);
        let listing = listing.unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
        (outcome, listing)
    }

    /// `gyan doctor --probe` with `program`, and the file that it wrote.
    pub(crate) fn probed(script: &str, program: &[&str]) -> (Outcome, String) {
        let keep = TempDir::new().unwrap();
        let file = keep.path().join("script");
        fs::write(&file, script).unwrap();
        let mut command = gyan();
        command.args(["doctor", "--probe", "--"]).arg(built(program[0])).args(&program[1..]);
        let outcome = run(command.current_dir(keep.path()).env("FAKEMPI", &file));
        let written = fs::read_to_string(keep.path().join("gyan-quirks.txt")).unwrap_or_default();
        (outcome, written)
    }

    /// Runs `program` under gyan with a setting that names a file of this text.
    pub(crate) fn run_with_file(
        script: &str,
        program: &[&str],
        setting: &str,
        text: &str,
    ) -> Faked {
        let keep = TempDir::new().unwrap();
        let file = keep.path().join("file");
        fs::write(&file, text).unwrap();
        Faked::run(script, program, &[(setting, &file.display().to_string())])
    }

    fn started(script: &str, program: &[&str], settings: &[(&str, &str)]) -> Faked {
        Faked::behind(&[], script, program, settings)
    }

    fn behind(
        front: &[String],
        script: &str,
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Faked {
        let keep = TempDir::new().unwrap();
        let directory = keep.path().join("profile");
        let (file, log) = (keep.path().join("script"), keep.path().join("log"));
        fs::write(&file, script).unwrap();
        let program_file = [built(program[0]).display().to_string()];
        let mut command = command(&[front, &program_file].concat());
        command.args(&program[1..]).current_dir(keep.path());
        command.env("FAKEMPI", &file).env("FAKEMPI_LOG", &log).env("GYAN_OUTPUT", &directory);
        command.envs(settings.iter().copied());
        let outcome = run(&mut command);
        let log = fs::read_to_string(&log).unwrap_or_default();
        Faked { outcome, log: log.lines().map(str::to_owned).collect(), directory, _keep: keep }
    }

    /// The profile of a run that went well: the library was used correctly, and nothing was printed.
    pub(crate) fn profile(&self) -> RankProfile {
        let Outcome { code, stderr, .. } = &self.outcome;
        assert_eq!(*code, 0, "{stderr}");
        assert_eq!(self.misuses(), Vec::<&str>::new());
        profiles(&self.directory, 1).remove(0)
    }

    pub(crate) fn misuses(&self) -> Vec<&str> {
        self.lines("misuse")
    }

    /// Where the profile is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether a profile was written.
    pub(crate) fn has_profile(&self) -> bool {
        self.directory.join(rank_file_name(0)).is_file()
    }

    /// The log entries after this word.
    pub(crate) fn lines(&self, word: &str) -> Vec<&str> {
        let lines = self.log.iter().filter_map(|line| line.strip_prefix(word));
        lines.map(str::trim_start).collect()
    }
}

/// The program `tests/programs/<name>.c`, linked with the library.
fn built(name: &str) -> PathBuf {
    let folder = library();
    let source = root().join("tests/programs").join(format!("{name}.c"));
    let output = folder.join(name);
    compile(
        &[source],
        &output,
        &[format!("-L{0}", folder.display()), "-lmpi".into(), "-Wl,-rpath,$ORIGIN".into()],
    );
    output
}

/// The folder that the library is in.
fn library() -> PathBuf {
    let folder = target().join("test-programs/fakempi");
    fs::create_dir_all(&folder).unwrap();
    let mut sources: Vec<PathBuf> = fs::read_dir(root().join("tests/fakempi"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    compile(
        &sources,
        &folder.join("libmpi.so.12"),
        &[
            "-shared",
            "-fPIC",
            "-pthread",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wl,-soname,libmpi.so.12",
        ]
        .map(str::to_owned),
    );
    let link = folder.join("libmpi.so");
    if !link.exists() {
        std::os::unix::fs::symlink("libmpi.so.12", link).unwrap();
    }
    folder
}

/// Compiles with the `mpi.h` of MPICH, unless that was done with the same sources. Tests may run at the same
/// time, so existing files are replaced atomically.
fn compile(sources: &[PathBuf], output: &Path, arguments: &[String]) {
    let header = root().join("tests/fakempi/fake.h");
    let of = |path: &PathBuf| format!("{}\n", fs::read_to_string(path).unwrap());
    let text: String = sources.iter().chain([&header]).map(of).collect();
    let made_of = format!("{arguments:?}\n{text}");
    let record = PathBuf::from(format!("{}.made-of", output.display()));
    if output.exists() && fs::read_to_string(&record).is_ok_and(|known| known == made_of) {
        return;
    }
    let shown = succeed(&mut command(&["mpicc.mpich", "-show"]));
    let headers = shown.stdout.split_whitespace().filter(|word| word.starts_with("-I"));
    let new = TempDir::new_in(output.parent().unwrap()).unwrap();
    let file = new.path().join("new");
    let mut compiler = command(&["cc", "-std=gnu11", "-O1", "-g", "-o"]);
    compiler.arg(&file).args(headers).args(sources).args(arguments);
    let outcome = run(&mut compiler);
    assert_eq!(outcome.code, 0, "{} does not compile:\n{}", output.display(), outcome.stderr);
    fs::rename(file, output).unwrap();
    fs::write(record, made_of).unwrap();
}

#[test]
fn a_script_that_is_not_understood_says_where() {
    for (script, expected) in [
        ("pvar one LEVEL MPI_INT\nevnt two", "script:2: evnt: is not a declaration; see script.c"),
        ("pvar one LEVEL MPI_SHORT", "script:1: MPI_SHORT: is not a datatype; see script.c"),
        (
            "source s\nevent e t",
            "script:2: t: is not a source that was declared before; see script.c",
        ),
        ("at MPI_Barrier raise e", "script:1: e: is not an event that was declared before"),
        ("source s ticks", "script:1: end of line: is not a number of ticks"),
        ("source s often", "script:1: often: is not understood here"),
    ] {
        let run = Faked::alone(script, &["fake_events", "0", "0"]);
        assert_eq!(run.outcome.code, 70);
        assert!(run.outcome.stderr.contains(expected), "{}", run.outcome.stderr);
    }
}
