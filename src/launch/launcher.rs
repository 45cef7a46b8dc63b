//! What starts the ranks, and how do environment variables get to them and to nothing else?

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// A program that starts ranks. All but the first two pass their own environment on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Launcher {
    /// mpirun of Open MPI: `-x NAME=VALUE`, for each of the programs that `:` separates.
    OpenMpi,
    /// mpiexec of MPICH and of Intel MPI: `-genv NAME VALUE`, once for all.
    Hydra,
    Slurm,
    Flux,
    Aprun,
    /// mpiexec of Cray's PALS.
    Pals,
    Jsrun,
    /// Any other launcher.
    Other,
}

/// Which launcher `program` is; none when it is not a known one.
pub(crate) fn launcher(program: &OsStr) -> Option<Launcher> {
    let name = Path::new(program).file_name()?.to_str()?;
    // A suffix after a dot tells the launchers of several MPIs apart.
    match name.split('.').next()? {
        "mpirun" | "mpiexec" | "orterun" | "prterun" => {}
        "srun" => return Some(Launcher::Slurm),
        "flux" => return Some(Launcher::Flux),
        "aprun" => return Some(Launcher::Aprun),
        "jsrun" => return Some(Launcher::Jsrun),
        "ibrun" => return Some(Launcher::Other),
        _ => return None,
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
    } else if text.starts_with("mpiexec version") {
        Launcher::Pals
    } else {
        Launcher::Other
    }
}

/// The rank of this process, when a launcher started it as one.
pub(crate) fn rank() -> Option<u32> {
    rank_in(&|name| env::var(name).ok())
}

/// The rank of a process with these environment variables.
pub(super) fn rank_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let number = |name: &str| variable(name)?.parse().ok();
    let step = variable("SLURM_STEP_ID").is_some();
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID"]
        .into_iter()
        .find_map(number)
        // A batch script has a SLURM_PROCID too, but no step.
        .or_else(|| number("SLURM_PROCID").filter(|_| step))
}

/// How many ranks there are in `MPI_COMM_WORLD` of such a process.
pub(super) fn size_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"]
        .into_iter()
        .find_map(|name| variable(name)?.parse().ok())
}

pub(super) fn is_on_one_host(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let local = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"].into_iter().find_map(variable);
    match local {
        Some(local) => local.parse().ok() == size_in(variable),
        None => variable("SLURM_STEP_NUM_NODES").is_some_and(|hosts| hosts == "1"),
    }
}

/// Whether a process with this name starts ranks: a launcher, or one of its daemons.
pub(super) fn starts_ranks(name: &str) -> bool {
    const BEGIN: [&str; 8] =
        ["mpirun", "mpiexec", "orterun", "orted", "prte", "srun", "slurmstepd", "hydra_"];
    BEGIN.iter().any(|begin| name.starts_with(begin))
}

/// The program that `words` begin with, which can be found; `command` is what needs it.
pub(crate) fn program<'w>(command: &str, words: &'w [OsString]) -> Result<&'w OsString, Error> {
    let Some(program) = words.first() else {
        return Err(Error::new(command, "no program", "name it after --"));
    };
    if find_executable(program).is_none() {
        return Err(Error::new(program.display(), "no such program", "check its name and PATH"));
    }
    Ok(program)
}

/// What runs `words` with `variables` in the environment of the ranks.
///
/// # Errors
/// Where there is no word.
pub(crate) fn command(
    launcher: Option<Launcher>,
    words: &[OsString],
    variables: &[(String, OsString)],
) -> Result<Command, Error> {
    let (line, own) = command_line(launcher, words, variables);
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new("gyan", "no program", "name it after --"));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(own);
    Ok(command)
}

/// The command line that runs `words` with `variables` in the environment of the ranks, and the
/// variables that go into the environment of the command itself.
fn command_line(
    launcher: Option<Launcher>,
    words: &[OsString],
    variables: &[(String, OsString)],
) -> (Vec<OsString>, Vec<(String, OsString)>) {
    let Some((program, arguments)) = words.split_first() else {
        return (Vec::new(), Vec::new());
    };
    let mut line = vec![program.clone()];
    match launcher {
        Some(Launcher::Hydra) => {
            for (name, value) in variables {
                line.extend(["-genv".into(), name.into(), value.clone()]);
            }
            line.extend_from_slice(arguments);
        }
        Some(Launcher::OpenMpi) => {
            let options = variables.iter().flat_map(|(name, value)| {
                let mut setting = OsString::from(name);
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
        _ => {
            line.extend_from_slice(arguments);
            return (line, variables.to_vec());
        }
    }
    (line, Vec::new())
}

/// The last part of a path, in characters that do no harm in a file name.
pub(crate) fn file_name_of(path: &OsStr) -> Option<String> {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    Some(Path::new(path).file_name()?.to_string_lossy().chars().map(safe).collect())
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
        assert_eq!(by_version("mpiexec version 1.2.12\n"), Launcher::Pals);
        assert_eq!(by_version(""), Launcher::Other);
    }

    #[test]
    fn a_program_that_is_no_launcher_is_none() {
        assert_eq!(launcher(OsStr::new("./mpirunner")), None);
        assert_eq!(launcher(OsStr::new("/usr/bin/srun")), Some(Launcher::Slurm));
    }

    #[test]
    fn a_rank_is_known_by_what_its_launcher_sets() {
        let known = |variables: &str| {
            let variable = |name: &str| {
                let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                pairs.find(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
            };
            let variable: &dyn Fn(&str) -> Option<String> = &variable;
            (rank_in(variable), size_in(variable), is_on_one_host(variable))
        };
        let open_mpi = "PMIX_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4";
        assert_eq!(known(open_mpi), (Some(2), Some(4), true));
        let hydra = "PMI_RANK=2 PMI_SIZE=8 MPI_LOCALNRANKS=4";
        assert_eq!(known(hydra), (Some(2), Some(8), false));
        let slurm = "SLURM_PROCID=0 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1";
        assert_eq!(known(slurm), (Some(0), Some(2), true));
        assert_eq!(known("SLURM_PROCID=0 SLURM_NTASKS=2"), (None, None, false));
        assert!(starts_ranks("hydra_pmi_proxy") && !starts_ranks("prepare"));
    }

    #[test]
    fn only_the_ranks_get_the_variables() {
        let variables = [("LD_PRELOAD".to_owned(), OsString::from("/lib/libgyan.so"))];
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
}
