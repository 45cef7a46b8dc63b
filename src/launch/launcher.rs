//! What starts the ranks, and how do environment variables get to them and to nothing else?

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::launch::options::{self, Options};

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
    /// A launcher whose options are not known.
    Other,
}

impl Launcher {
    fn options(self) -> Option<&'static Options> {
        match self {
            Launcher::OpenMpi => Some(&options::OPEN_MPI),
            Launcher::Hydra => Some(&options::HYDRA),
            Launcher::Slurm => Some(&options::SLURM),
            Launcher::Flux => Some(&options::FLUX),
            Launcher::Aprun => Some(&options::APRUN),
            Launcher::Pals => Some(&options::PALS),
            Launcher::Jsrun => Some(&options::JSRUN),
            Launcher::Other => None,
        }
    }
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
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let step = env::var_os("SLURM_STEP_ID").is_some();
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID"]
        .into_iter()
        .find_map(number)
        // A batch script has a SLURM_PROCID too, but no step.
        .or_else(|| number("SLURM_PROCID").filter(|_| step))
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

/// The programs that `words` start, each with its arguments; none when the options of the launcher do not tell.
pub(crate) fn programs(launcher: Option<Launcher>, words: &[OsString]) -> Option<Vec<&[OsString]>> {
    let Some(launcher) = launcher else { return Some(vec![words]) };
    let words = words.get(1..)?;
    let words = if launcher == Launcher::Flux { options::after_subcommand(words)? } else { words };
    launcher.options()?.programs(words)
}

/// What the first program that the ranks run is called; none when the options of the launcher do not tell.
pub(crate) fn program_name(launcher: Option<Launcher>, words: &[OsString]) -> Option<String> {
    file_name_of(programs(launcher, words)?.first()?.first()?)
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

    #[test]
    fn the_program_comes_after_the_options_of_its_launcher() {
        for (launcher, line, expected) in [
            (
                Launcher::OpenMpi,
                "mpirun --mca plm_rsh_agent /bin/agent -n 4 ./app -n 3",
                Some("app"),
            ),
            (
                Launcher::OpenMpi,
                "mpirun -mca a b --gmca c d -x A=b -np 2 ./x/app : -n 1 c",
                Some("app"),
            ),
            (
                Launcher::OpenMpi,
                "mpirun --map-by ppr:2:node --bind-to=core --oversubscribe app",
                Some("app"),
            ),
            (Launcher::OpenMpi, "mpirun -n 2 app : --not-known 1 ./other", None),
            (Launcher::OpenMpi, "mpirun --not-known /bin/true ./app", None),
            (Launcher::OpenMpi, "mpirun --app list", None),
            (Launcher::Hydra, "mpiexec -launcher ssh -launcher-exec /bin/agent ./app", Some("app")),
            (Launcher::Hydra, "mpiexec -genv A=b -genv C d -env=E f -n 4 ./app x=y", Some("app")),
            (Launcher::Hydra, "mpiexec --hosts=a,b -ppn 2 -prepend-rank app", Some("app")),
            (Launcher::Hydra, "mpiexec -configfile list", None),
            (Launcher::Slurm, "srun -n2 -N 1 -lu --mpi=pmix --cpu-bind none ./app -n", Some("app")),
            (Launcher::Slurm, "srun --ntasks 2 --overco --label -I5 -K ./app", Some("app")),
            (Launcher::Slurm, "srun --n 2 ./app", None),
            (Launcher::Slurm, "srun -2 ./app", None),
            (Launcher::Slurm, "srun -n 2 --multi-prog list", None),
            (Launcher::Slurm, "srun -n 1 app : -n 2 -- -odd", Some("app")),
            (Launcher::Flux, "flux run -n 4 -o cpu-affinity=off --env=A=b app", Some("app")),
            (Launcher::Flux, "flux mini submit -N2 -n4 app", Some("app")),
            (Launcher::Flux, "flux batch -n 4 script", None),
            (Launcher::Aprun, "aprun -n 4 -cc none -ss ./app", Some("app")),
            (Launcher::Pals, "mpiexec -n 4 -ppn 2 --cpu-bind none -env A=1 ./app", Some("app")),
            (Launcher::Jsrun, "jsrun -n2 -a 2 --bind=packed:7 --smpiargs off ./app", Some("app")),
            (Launcher::Other, "ibrun -n 2 ./app", None),
        ] {
            let name = program_name(Some(launcher), &words(line));
            assert_eq!(name.as_deref(), expected, "{line}");
        }
        assert_eq!(program_name(None, &words("/bin/true -x")).as_deref(), Some("true"));
        assert_eq!(program_name(Some(Launcher::Hydra), &words("mpiexec -n 2")), None);
    }

    /// The options of each installed launcher, taken from its own help, with the number of words that follow
    /// each. Some help texts leave out what the manual says.
    #[test]
    fn the_tables_of_options_are_those_of_the_installed_launchers() {
        let help = |program: &str, arguments: &[&str], configuration: &Path| {
            let program = find_executable(OsStr::new(program))?;
            let mut command = Command::new(program);
            command.args(arguments).env("SLURM_CONF", configuration);
            // Open MPI prints no help for root without these.
            command
                .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
            Some(String::from_utf8_lossy(&command.output().ok()?.stdout).into_owned())
        };
        let here = tempfile::tempdir().unwrap();
        let configuration = here.path().join("slurm.conf");
        let text = "ClusterName=none\nSlurmctldHost=localhost\nAuthType=auth/none\nNodeName=localhost\n\
                    PartitionName=none Nodes=ALL\n";
        std::fs::write(&configuration, text).unwrap();
        for (program, arguments, table, unlike) in [
            (
                "mpirun.openmpi",
                &["--help", "all"][..],
                &options::OPEN_MPI,
                &["h", "help", "dvm", "display-topo", "output-proctable"][..],
            ),
            ("mpiexec.mpich", &["--help"], &options::HYDRA, &[]),
            ("srun", &["--help"], &options::SLURM, &["bcast", "container", "multi-prog"]),
        ] {
            let Some(help) = help(program, arguments, &configuration) else {
                eprintln!("skipped: {program} is not installed");
                continue;
            };
            let options = options_in(&help);
            assert!(options.len() > 40, "{program}: {options:?}");
            for (name, arity) in options {
                let known = table.arity(&name);
                assert!(
                    unlike.contains(&name.as_str())
                        || known.is_some() && arity.is_none_or(|arity| known == Some(arity)),
                    "{program}: {name}: {known:?}, and its help has {arity:?}"
                );
            }
        }
    }

    /// The options that a help lists, one or more at the beginning of a line, and how many words follow, where it says so.
    fn options_in(help: &str) -> Vec<(String, Option<usize>)> {
        let mut found = Vec::new();
        for line in help.lines() {
            let line = line.trim_start().replacen("  --", " --", 1);
            if !line.starts_with('-') {
                continue;
            }
            // The description of an option comes after a gap.
            let synopsis = line.split("  ").next().unwrap_or_default();
            let values = synopsis.matches("<arg").count() + synopsis.matches('{').count();
            let is_optional = synopsis.contains("[=");
            let arity = match synopsis {
                _ if is_optional => Some(0),
                _ if synopsis.contains('=') => Some(1),
                _ if values > 0 => Some(values),
                // Hydra's help leaves out the values of its own options; Open MPI's leaves out none.
                _ if help.contains("{name}") => None,
                _ => Some(0),
            };
            for word in synopsis.split(['|', ' ', ',', '/']).filter(|word| word.starts_with('-')) {
                let name =
                    word.trim_start_matches('-').split(['=', '[', '.']).next().unwrap_or_default();
                if !name.is_empty() {
                    found.push((name.to_owned(), arity));
                }
            }
        }
        found
    }
}
