//! What a tune leaves for later runs: the settings that are worth keeping, in the form that the library itself reads.

use gyan_results::{Assignment, Cvar, Tuning, Variables};

use crate::output;
use crate::words::short_library;

/// A variable of the environment, or a line of a parameter file.
pub(super) struct Files {
    /// Open MPI's: `name = value`.
    pub(super) parameters: Option<String>,
    /// For a shell.
    pub(super) environment: String,
}

/// What Open MPI calls its parameter file in the environment.
const PARAMETER_FILES: &str = "OMPI_MCA_mca_base_param_files";
const OPEN_MPI: &str = "OMPI_MCA_";

/// The files with these settings; none if the library reads one of them from no environment variable.
pub(super) fn files(
    tuning: &Tuning,
    settings: &[Assignment],
    listing: Option<&Variables>,
) -> Option<Files> {
    let variable = |setting: &Assignment| {
        if setting.is_environment {
            return Some(setting.name.clone());
        }
        let is_one = |cvar: &&Cvar| cvar.name.as_ref() == Some(&setting.name);
        listing?.cvars.iter().find(is_one)?.environment.clone()
    };
    let variables: Option<Vec<(String, &Assignment)>> =
        settings.iter().map(|setting| Some((variable(setting)?, setting))).collect();
    let variables = variables?;
    let head = format!(
        "# Chosen by gyan tune for {} with {}.\n",
        one_line(&tuning.command.join(" ")),
        short_library(&tuning.library)
    );
    let mut environment = format!("{head}# Before a run: . ./settings.env\n");
    for (name, setting) in &variables {
        environment.extend(["export ", name, "=", &output::shell_word(&setting.value), "\n"]);
    }
    let is_parameter = |(name, setting): &(String, &Assignment)| {
        !setting.is_environment && name.starts_with(OPEN_MPI)
    };
    let parameters = variables.iter().all(is_parameter).then(|| {
        let mut text = format!(
            "{head}# For all runs: append it to ~/.openmpi/mca-params.conf.\n# For one: {PARAMETER_FILES}=settings.conf\n"
        );
        for (_, setting) in &variables {
            text.extend([&setting.name, " = ", &setting.value, "\n"]);
        }
        text
    });
    Some(Files { parameters, environment })
}

fn one_line(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str, is_environment: bool) -> Assignment {
        Assignment { name: name.into(), value: value.into(), is_environment }
    }

    fn tuning() -> Tuning {
        let text = include_str!("../../../results-schema/examples/tune.json");
        serde_json::from_str(text).unwrap()
    }

    fn listing(name: &str, environment: &str) -> Variables {
        let text = include_str!("../../../results-schema/examples/variables.json");
        let mut listing: Variables = serde_json::from_str(text).unwrap();
        let cvar = Cvar {
            name: Some(name.into()),
            environment: Some(environment.into()),
            ..listing.cvars[0].clone()
        };
        listing.cvars = vec![cvar];
        listing
    }

    #[test]
    fn open_mpi_gets_a_parameter_file_and_every_library_an_environment() {
        let listing = listing("btl", "OMPI_MCA_btl");
        let settings = [setting("btl", "tcp,self", false)];
        let made = files(&tuning(), &settings, Some(&listing)).unwrap();
        assert!(made.parameters.unwrap().ends_with("\nbtl = tcp,self\n"));
        assert!(made.environment.ends_with("\nexport OMPI_MCA_btl=tcp,self\n"));
        let settings = [setting("btl", "self", false), setting("UCX_X", "a b'c", true)];
        let made = files(&tuning(), &settings, Some(&listing)).unwrap();
        assert!(made.parameters.is_none());
        assert!(made.environment.ends_with("\nexport UCX_X='a b'\\''c'\n"));
    }

    #[test]
    fn what_the_library_reads_from_no_environment_has_no_file() {
        assert!(files(&tuning(), &[setting("btl", "self", false)], None).is_none());
    }
}
