//! What between the launcher and the program keeps the environment or files from it? Slurm's options and
//! containers.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use crate::launch::executable;
use crate::launch::launcher::Launcher;

/// What was found, and what to do.
pub(super) type Problem = (String, String);

/// The option that tells srun which variables the ranks get.
const EXPORT: &str = "--export";

/// Whether srun keeps the environment from the ranks.
pub(super) fn slurm(launcher: Option<Launcher>, words: &[OsString]) -> Option<Problem> {
    launcher.filter(|launcher| *launcher == Launcher::Slurm)?;
    let program = executable::target(launcher, words).map_or(words.len(), |(at, _)| at);
    let words: Vec<_> = words.iter().take(program).map(|word| word.to_string_lossy()).collect();
    let mut options = words.iter().enumerate().rev();
    let option = options.find_map(|(at, word)| match word.strip_prefix(EXPORT)? {
        "" => words.get(at + 1).map(ToString::to_string),
        value => value.strip_prefix('=').map(str::to_owned),
    });
    let Some(value) = option else { return slurm_settings() };
    keeps(&format!("srun {EXPORT}={value}"), &value)
}

/// The same by environment variables. According to srun(1) the option overrides both, and the first overrides
/// the second.
pub(super) fn slurm_settings() -> Option<Problem> {
    let names = [
        ("SRUN_EXPORT_ENV", ""),
        ("SLURM_EXPORT_ENV", " (sbatch --export sets it for a job)"),
        ("SBATCH_EXPORT", " (for the steps of jobs)"),
    ];
    names.iter().find_map(|(name, by)| {
        let value = env::var(name).ok()?;
        keeps(&format!("{name}={value}{by}"), &value)
    })
}

fn keeps(what: &str, value: &str) -> Option<Problem> {
    if value.split(',').any(|name| name.eq_ignore_ascii_case("ALL")) {
        return None;
    }
    let remedy = format!("use srun {EXPORT}=ALL, or put gyan after srun: srun ... gyan run ./app");
    Some((format!("{what} keeps LD_PRELOAD from the ranks"), remedy))
}

/// A command that starts programs in a container.
pub(super) struct Container {
    /// The word of the command line.
    pub(super) name: String,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// Apptainer's user guide, "Bind Paths and Mounts", "Environment and Metadata".
    Apptainer,
    /// podman-run(1).
    Podman,
    /// ch-run(1), which leaves the environment as it is.
    Charliecloud,
    /// `enroot start`, which passes on nothing of the environment.
    Enroot,
    /// Enroot under srun.
    Pyxis,
    Other,
}

pub(super) fn container(launcher: Option<Launcher>, words: &[OsString]) -> Option<Container> {
    let by_name = |word: &OsString| {
        let name = Path::new(word).file_name()?.to_str()?.to_owned();
        let how = match &name[..] {
            "apptainer" | "singularity" => How::Apptainer,
            "podman" | "docker" => How::Podman,
            "ch-run" => How::Charliecloud,
            "enroot" => How::Enroot,
            "shifter" | "sarus" => How::Other,
            _ => return None,
        };
        Some(Container { name, how })
    };
    let is_pyxis = |word: &OsString| word.to_string_lossy().starts_with("--container-image");
    let pyxis = || {
        (launcher == Some(Launcher::Slurm) && words.iter().any(is_pyxis))
            .then(|| Container { name: "srun --container-image".into(), how: How::Pyxis })
    };
    words.iter().find_map(by_name).or_else(pyxis)
}

impl Container {
    /// The options that bring libgyan.so into the container.
    pub(super) fn remedy(&self, library: &Path) -> String {
        let directory = library.parent().unwrap_or(library).display();
        let (name, library) = (&self.name, library.display());
        // The variables that this command sets.
        let each =
            |option: &str| format!("{option} NAME for each GYAN_* (here GYAN_LIST, GYAN_DOCTOR)");
        let options = match self.how {
            How::Apptainer => format!("{name} exec --bind {directory} --env LD_PRELOAD={library}"),
            How::Podman => format!(
                "{name} run -v {directory}:{directory} -e LD_PRELOAD={library}, and {}",
                each("-e")
            ),
            How::Charliecloud => format!("{name} --bind {directory}"),
            How::Enroot => format!(
                "{name} start --mount {directory}:{directory} --env LD_PRELOAD={library}, and {}",
                each("--env")
            ),
            How::Pyxis => format!("srun --container-mounts={directory}:{directory}"),
            How::Other => format!("have {name} mount {directory} and set LD_PRELOAD={library}"),
        };
        format!("{options}; mount the directory of the profiles as well")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_srun_exports_is_read_from_its_own_options() {
        let finding = |line: &str| Some(slurm(Some(Launcher::Slurm), &words(line))?.0);
        for line in [
            "srun -n 2 ./app",
            "srun --export=ALL ./app",
            "srun --export=PATH,ALL ./app",
            "srun --export ALL,X=1 ./app",
            "srun --export=NONE --export=ALL ./app",
            "srun /bin/true --export=NONE",
        ] {
            assert_eq!(finding(line), None, "{line}");
        }
        for (line, what) in [
            ("srun --export=NONE ./app", "srun --export=NONE keeps"),
            ("srun -n 2 --export PATH,HOME ./app", "srun --export=PATH,HOME keeps"),
            ("srun --export=ALL --export=NIL ./app", "srun --export=NIL keeps"),
        ] {
            assert!(finding(line).is_some_and(|found| found.starts_with(what)), "{line}");
        }
        assert!(slurm(Some(Launcher::OpenMpi), &words("mpirun --export=NONE ./app")).is_none());
    }

    #[test]
    fn each_container_brings_the_library_along_in_its_own_way() {
        let library = Path::new("/opt/gyan/lib/libgyan.so");
        let remedy = |line: &str| {
            container(Some(Launcher::Slurm), &words(line)).map(|found| found.remedy(library))
        };
        for (line, part) in [
            (
                "srun apptainer exec image ./app",
                "apptainer exec --bind /opt/gyan/lib --env LD_PRELOAD=",
            ),
            ("srun /usr/bin/podman run image ./app", "-v /opt/gyan/lib:/opt/gyan/lib"),
            ("ch-run image -- ./app", "ch-run --bind /opt/gyan/lib;"),
            ("srun --container-image=x ./app", "--container-mounts=/opt/gyan/lib:/opt/gyan/lib"),
        ] {
            assert!(remedy(line).is_some_and(|text| text.contains(part)), "{:?}", remedy(line));
        }
        assert_eq!(remedy("srun ./podman.sh"), None);
    }
}
