//! How control variables are set from outside, as data: each library reads an environment variable for each of
//! them, and its launcher has an option.

use crate::mpi::abi::Implementation;

struct Rule {
    implementation: Implementation,
    /// The variables that the rule is for.
    name_prefix: &'static str,
    /// The prefix of the name in the environment.
    environment_prefix: &'static str,
    /// The launcher's option, before the name.
    launcher_option: &'static str,
    /// Names that the launcher sets for its own purposes, which say nothing about the run.
    launchers_own: &'static [&'static str],
    /// The control variable that names the files in which others are set, one `name = value` per line.
    files: Option<&'static str>,
}

const RULES: &[Rule] = &[
    Rule {
        implementation: Implementation::OpenMpi,
        name_prefix: "",
        environment_prefix: "OMPI_MCA_",
        launcher_option: "--mca ",
        launchers_own: &["orte_", "ess", "pmix", "shmem_RUNTIME", "initial_wdir", "plm", "state"],
        files: Some("mca_base_param_files"),
    },
    Rule {
        implementation: Implementation::Mpich,
        name_prefix: "MPIR_CVAR_",
        environment_prefix: "",
        launcher_option: "-genv ",
        launchers_own: &["MPIR_CVAR_CH3_INTERFACE_HOSTNAME"],
        files: None,
    },
    Rule {
        implementation: Implementation::IntelMpi,
        name_prefix: "I_MPI_",
        environment_prefix: "",
        launcher_option: "-genv ",
        launchers_own: &[],
        files: None,
    },
    Rule {
        implementation: Implementation::IntelMpi,
        name_prefix: "MPIR_CVAR_",
        environment_prefix: "",
        launcher_option: "-genv ",
        launchers_own: &[],
        files: None,
    },
];

fn rule(implementation: Implementation, name: &str) -> Option<&'static Rule> {
    RULES
        .iter()
        .find(|rule| rule.implementation == implementation && name.starts_with(rule.name_prefix))
}

/// The environment variable that the library reads for control variable `name`.
pub(crate) fn environment(implementation: Implementation, name: &str) -> Option<String> {
    Some(format!("{}{name}", rule(implementation, name)?.environment_prefix))
}

/// The launcher's option that sets it, up to the value.
pub(crate) fn launcher_option(implementation: Implementation, name: &str) -> Option<String> {
    Some(format!("{}{name} VALUE", rule(implementation, name)?.launcher_option))
}

/// Which of the control variables `names` are set by environment variables.
pub(crate) fn set_in(implementation: Implementation, names: &[String]) -> Vec<(String, String)> {
    let set = names.iter().filter_map(|name| {
        let rules = RULES.iter().filter(|rule| rule.implementation == implementation);
        rules.into_iter().find_map(|rule| {
            let cvar = name.strip_prefix(rule.environment_prefix)?;
            let own = rule.launchers_own.iter().any(|own| cvar.starts_with(own));
            (cvar.starts_with(rule.name_prefix) && !own).then(|| (cvar.to_owned(), name.clone()))
        })
    });
    set.collect()
}

/// The control variable that names the files in which others are set.
pub(crate) fn files(implementation: Implementation) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.implementation == implementation)?.files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_its_own_spelling() {
        let name = "btl_vader_eager_limit";
        let openmpi = Implementation::OpenMpi;
        assert_eq!(environment(openmpi, name).unwrap(), "OMPI_MCA_btl_vader_eager_limit");
        assert_eq!(launcher_option(openmpi, name).unwrap(), "--mca btl_vader_eager_limit VALUE");
        let name = "MPIR_CVAR_ERROR_CHECKING";
        assert_eq!(environment(Implementation::Mpich, name).unwrap(), name);
        assert_eq!(environment(Implementation::IntelMpi, "I_MPI_PIN").unwrap(), "I_MPI_PIN");
        assert_eq!(environment(Implementation::Other, name), None);
        assert_eq!(environment(Implementation::Mpich, "something"), None);
    }

    #[test]
    fn what_the_environment_sets_is_found_without_what_the_launcher_needs() {
        let names = ["OMPI_MCA_pml", "OMPI_MCA_orte_launch", "MPIR_CVAR_X", "PATH"];
        let names = names.map(str::to_owned);
        let pair = |cvar: &str, name: &str| (cvar.to_owned(), name.to_owned());
        assert_eq!(set_in(Implementation::OpenMpi, &names), [pair("pml", "OMPI_MCA_pml")]);
        assert_eq!(set_in(Implementation::Mpich, &names), [pair("MPIR_CVAR_X", "MPIR_CVAR_X")]);
    }
}
