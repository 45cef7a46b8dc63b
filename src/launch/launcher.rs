//! What starts the ranks, and how an environment variable gets to them and to nothing else.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that starts ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Launcher {
    /// mpirun of Open MPI: `-x NAME=VALUE`, for each of the programs that `:` separates.
    OpenMpi,
    /// mpiexec of MPICH and of Intel MPI: `-genv NAME VALUE`, once for all.
    Hydra,
    /// Passes its own environment on: srun, and anything else.
    Inheriting,
}

/// Names under which launchers go; a suffix after a dot tells them apart.
const LAUNCHERS: [&str; 9] =
    ["mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun", "jsrun", "flux", "ibrun"];

/// The launcher that `program` is; none when it is none that is known.
pub(crate) fn launcher(program: &OsStr) -> Option<Launcher> {
    let name = Path::new(program).file_name()?.to_str()?;
    let base = name.split('.').next()?;
    if !LAUNCHERS.contains(&base) {
        return None;
    }
    if !matches!(base, "mpirun" | "mpiexec" | "orterun" | "prterun") {
        return Some(Launcher::Inheriting);
    }
    let output =
        Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    Some(by_version(&text.unwrap_or_default()))
}

fn by_version(text: &str) -> Launcher {
    if ["Open MPI", "OpenRTE", "PRRTE", "prterun"].iter().any(|name| text.contains(name)) {
        Launcher::OpenMpi
    } else if ["HYDRA", "Intel(R) MPI"].iter().any(|name| text.contains(name)) {
        Launcher::Hydra
    } else {
        Launcher::Inheriting
    }
}

/// The rank of this process, when a launcher started it as one.
pub(crate) fn rank() -> Option<u32> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let step = env::var_os("SLURM_STEP_ID").is_some();
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID"]
        .into_iter()
        .find_map(number)
        // A batch script has a SLURM_PROCID too, but no step.
        .or_else(|| number("SLURM_PROCID").filter(|_| step))
}

/// The command line that runs `words` with `variables` in the environment of the ranks, and the
/// variables that go into the environment of the command itself.
pub(crate) fn command_line(
    launcher: Option<Launcher>,
    words: &[OsString],
    variables: &[(&'static str, OsString)],
) -> (Vec<OsString>, Vec<(&'static str, OsString)>) {
    let Some((program, arguments)) = words.split_first() else {
        return (Vec::new(), Vec::new());
    };
    let mut line = vec![program.clone()];
    match launcher {
        None | Some(Launcher::Inheriting) => {
            line.extend_from_slice(arguments);
            return (line, variables.to_vec());
        }
        Some(Launcher::Hydra) => {
            for (name, value) in variables {
                line.extend(["-genv".into(), (*name).into(), value.clone()]);
            }
            line.extend_from_slice(arguments);
        }
        Some(Launcher::OpenMpi) => {
            let options = variables.iter().flat_map(|(name, value)| {
                let mut setting = OsString::from(*name);
                setting.push("=");
                setting.push(value);
                ["-x".into(), setting]
            });
            let options: Vec<OsString> = options.collect();
            line.extend_from_slice(&options);
            for argument in arguments {
                line.push(argument.clone());
                if argument == ":" {
                    line.extend_from_slice(&options);
                }
            }
        }
    }
    (line, Vec::new())
}

/// What the program that the ranks run is called, as far as can be told from the command line:
/// the first word after the launcher that names an executable file.
pub(crate) fn program_name(launcher: Option<Launcher>, words: &[OsString]) -> String {
    let candidates = match launcher {
        None => words,
        Some(_) => words.get(1..).unwrap_or_default(),
    };
    let program = candidates
        .iter()
        .filter(|word| !word.as_encoded_bytes().starts_with(b"-"))
        .find(|word| find_executable(word).is_some());
    let name = program.and_then(|word| Path::new(word).file_name()).unwrap_or(OsStr::new("run"));
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.to_string_lossy().chars().map(safe).collect()
}

/// The file that `word` would run.
pub(crate) fn find_executable(word: &OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let path = PathBuf::from(word);
    if path.components().count() > 1 {
        return Some(path).filter(executable);
    }
    let search = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&search).map(|directory| directory.join(word)).find(executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn launchers_are_told_apart_by_what_they_say() {
        assert_eq!(by_version("mpirun.openmpi (OpenRTE) 4.1.4\n"), Launcher::OpenMpi);
        assert_eq!(by_version("mpirun (Open MPI) 5.0.11\n"), Launcher::OpenMpi);
        assert_eq!(by_version("HYDRA build details:\n"), Launcher::Hydra);
        assert_eq!(by_version("Intel(R) MPI Library for Linux* OS"), Launcher::Hydra);
        assert_eq!(by_version(""), Launcher::Inheriting);
    }

    #[test]
    fn a_program_that_is_no_launcher_is_none() {
        assert_eq!(launcher(OsStr::new("./mpirunner")), None);
        assert_eq!(launcher(OsStr::new("/usr/bin/srun")), Some(Launcher::Inheriting));
    }

    #[test]
    fn only_the_ranks_get_the_variables() {
        let variables = [("LD_PRELOAD", OsString::from("/lib/libgyan.so"))];
        let (line, own) =
            command_line(Some(Launcher::OpenMpi), &words("mpirun -n 1 a : -n 2 b"), &variables);
        let expected = "mpirun -x LD_PRELOAD=/lib/libgyan.so -n 1 a : \
                        -x LD_PRELOAD=/lib/libgyan.so -n 2 b";
        assert_eq!((line, own.len()), (words(expected), 0));
        let (line, own) = command_line(Some(Launcher::Hydra), &words("mpiexec -n 1 a"), &variables);
        let expected = "mpiexec -genv LD_PRELOAD /lib/libgyan.so -n 1 a";
        assert_eq!((line, own.len()), (words(expected), 0));
        let (line, own) = command_line(None, &words("./a -x"), &variables);
        assert_eq!((line, own.len()), (words("./a -x"), 1));
    }

    #[test]
    fn the_program_is_the_first_executable_after_the_launcher() {
        let name = |text| program_name(Some(Launcher::Inheriting), &words(text));
        assert_eq!(name("srun -n 2 /bin/true 3"), "true");
        assert_eq!(name("srun --mpi=pmix -n 4 sh -c x"), "sh");
        assert_eq!(name("srun -n 4 ./no-such-program"), "run");
        assert_eq!(program_name(None, &words("/bin/true")), "true");
    }
}
