//! Which MPI library do `mpicc` and `mpirun` on PATH belong to?

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::launch::launcher::{self, Launcher};

/// Names of the library, in search order.
const OPEN_MPI: [&str; 2] = ["libmpi.so", "libmpi.so.40"];
const MPICH: [&str; 4] = ["libmpich.so", "libmpich.so.12", "libmpi.so.12", "libmpi.so"];

/// An MPI command on PATH, and the library that it leads to.
pub(crate) struct Lead {
    pub(crate) command: PathBuf,
    pub(crate) library: Option<PathBuf>,
}

/// What `mpicc` on PATH leads to.
pub(crate) fn compiler() -> Option<Lead> {
    let command = launcher::find_executable(OsStr::new("mpicc"))?;
    Some(Lead { command, library: of_compiler() })
}

/// What `mpirun` on PATH leads to.
pub(crate) fn launcher() -> Option<Lead> {
    let command = launcher::find_executable(OsStr::new("mpirun"))?;
    Some(Lead { command, library: of_launcher() })
}

/// The MPI libraries in the directories of `LD_LIBRARY_PATH`, one a directory.
pub(crate) fn on_library_path() -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let names: Vec<&str> = OPEN_MPI.into_iter().chain(MPICH).chain(["libmpi_abi.so"]).collect();
    std::env::split_paths(&path)
        .filter(|directory| !directory.as_os_str().is_empty())
        .filter_map(|directory| first_file(&[directory], &names))
        .collect()
}

/// The library of the compiler wrapper on PATH, or else that of the launcher.
pub(crate) fn on_path() -> Result<PathBuf, Error> {
    of_compiler().or_else(of_launcher).ok_or_else(|| {
        Error::new(
            "no MPI library",
            "neither mpicc nor mpirun on PATH leads to one",
            "name it with --mpi PATH/libmpi.so, or a program that uses it after --",
        )
    })
}

/// What `mpicc -show` links with. The wrappers of all vendors have this option.
fn of_compiler() -> Option<PathBuf> {
    let mpicc = launcher::find_executable(OsStr::new("mpicc"))?;
    let output = Command::new(mpicc).arg("-show").stderr(Stdio::null()).output().ok()?;
    library_of_link_line(&String::from_utf8_lossy(&output.stdout))
}

/// The library that a link line names, searched in the directories that it names, then in the system's.
fn library_of_link_line(line: &str) -> Option<PathBuf> {
    // Intel's wrappers quote directories.
    let line = line.replace('"', "");
    let words: Vec<&str> = line.split_whitespace().collect();
    let directories: Vec<PathBuf> = words
        .iter()
        .filter_map(|word| word.strip_prefix("-L"))
        .map(PathBuf::from)
        .chain(system_directories())
        .collect();
    let names = words.iter().filter_map(|word| word.strip_prefix("-l"));
    let names = names.filter(|name| matches!(*name, "mpi" | "mpich" | "mpi_abi"));
    let files: Vec<String> = names.map(|name| format!("lib{name}.so")).collect();
    first_file(&directories, &files)
}

/// The library beside the launcher: in the `lib` of its prefix, or the system's.
fn of_launcher() -> Option<PathBuf> {
    let mpirun = fs::canonicalize(launcher::find_executable(OsStr::new("mpirun"))?).ok()?;
    let prefix = mpirun.parent()?.parent()?;
    let directories: Vec<PathBuf> = ["lib", "lib64"]
        .map(|name| prefix.join(name))
        .into_iter()
        .chain(system_directories())
        .collect();
    match launcher::launcher(OsStr::new("mpirun"))? {
        Launcher::OpenMpi => first_file(&directories, &OPEN_MPI),
        Launcher::Hydra => first_file(&directories, &MPICH),
        _ => None,
    }
}

fn first_file(directories: &[PathBuf], names: &[impl AsRef<Path>]) -> Option<PathBuf> {
    let candidates =
        directories.iter().flat_map(|directory| names.iter().map(|name| directory.join(name)));
    candidates.into_iter().find(|path| path.is_file()).map(behind_linker_script)
}

/// The library itself when `path` is a linker script, as in MPIs that come without symbolic links:
/// `INPUT(libmpi.so.40)`.
fn behind_linker_script(path: PathBuf) -> PathBuf {
    const LONGEST_SCRIPT: u64 = 4096;
    if path.metadata().map_or(0, |file| file.len()) > LONGEST_SCRIPT {
        return path;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let named = text.split_once("INPUT(").and_then(|(_, rest)| rest.split([')', ' ', ',']).next());
    match (named, path.parent()) {
        (Some(name), Some(directory)) if !name.is_empty() => directory.join(name),
        _ => path,
    }
}

/// The directories that the dynamic loader searches by default, including Debian's for this architecture.
fn system_directories() -> impl Iterator<Item = PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let openmpi = format!("{multiarch}/openmpi/lib");
    [multiarch, openmpi, "/usr/lib64".into(), "/usr/lib".into(), "/usr/local/lib".into()]
        .into_iter()
        .map(|directory| Path::new(&directory).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_link_line_is_looked_for_where_the_line_says() {
        let directory = std::env::temp_dir().join(format!("gyan-link-line-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let library = directory.join("libmpich.so");
        fs::write(&library, "").unwrap();
        let line =
            format!("gcc -O2 -I/usr/include -L{} -Wl,-z,now -lmpich -lm", directory.display());
        assert_eq!(library_of_link_line(&line), Some(library));
        assert_eq!(library_of_link_line("gcc -lm"), None);
        let quoted = format!("gcc -L\"{}\" -lmpich", directory.display());
        assert_eq!(library_of_link_line(&quoted), library_of_link_line(&line));
        fs::write(directory.join("libmpi.so"), "INPUT(libmpi.so.40)\n").unwrap();
        let script = format!("cc -L{} -lmpi", directory.display());
        assert_eq!(library_of_link_line(&script), Some(directory.join("libmpi.so.40")));
        fs::remove_dir_all(&directory).unwrap();
    }
}
