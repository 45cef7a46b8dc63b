//! Control variables of a run: set when the user asks, and recorded.

use std::collections::BTreeMap;

use gyan_results::{CvarSetting, RankProfile};

use crate::common::{MPICH, MPIS, Mpi, OPENMPI, Profiled, only_warning, report};

/// A run by `gyan run` with these options.
fn gyan_run(mpi: Mpi, options: &[&str]) -> Profiled {
    Profiled::by_command(options, 2, &mpi.launch(2, "exit_code", &[]), &[]).succeeded()
}

fn cvars(profile: &RankProfile) -> BTreeMap<&str, &CvarSetting> {
    profile.cvars.iter().map(|cvar| (cvar.name.as_str(), cvar)).collect()
}

/// Case study I of the paper: eager limits are changed, the change is verified, and it is in the
/// record of the run together with its run time.
#[test]
fn an_eager_limit_is_changed_verified_and_recorded() {
    for (mpi, changes) in [
        (OPENMPI, &[("btl_vader_eager_limit", "2048"), ("btl_self_eager_limit", "256")][..]),
        (MPICH, &[("MPIR_CVAR_BCAST_SHORT_MSG_SIZE", "1024")]),
    ] {
        let before = gyan_run(mpi, &[]).profiles();
        let settings: Vec<String> =
            changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let options: Vec<&str> =
            settings.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
        let run = gyan_run(mpi, &options);
        assert!(run.outcome.notices().is_empty());
        let after = run.profiles();
        for (name, value) in changes {
            assert!(!cvars(&before[0]).contains_key(name), "{name}");
            let recorded = cvars(&after[0])[name];
            assert_eq!(recorded.value.as_deref(), Some(*value), "{name}");
            assert_eq!(recorded.requested.as_deref(), Some(*value), "{name}");
            assert_eq!(recorded.set_by.as_deref(), Some("GYAN_CVARS"));
        }
        assert!(after[0].job.elapsed_s > 0.0);
        // The other ranks record only what gyan was asked to set, which they read back too.
        let mut asked: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
        asked.sort_unstable();
        let recorded = cvars(&after[1]);
        assert_eq!(recorded.keys().copied().collect::<Vec<_>>(), asked, "{mpi:?}");
        for (name, value) in changes {
            assert_eq!(recorded[name].value.as_deref(), Some(*value), "{name}");
        }
        let report = report(&run.directory, &["--environment"]);
        for (name, value) in changes {
            let line = report.stdout.lines().find(|line| line.starts_with(name)).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words, [name, value, value, "GYAN_CVARS"]);
        }
    }
}

#[test]
fn what_makes_no_sense_is_one_warning_and_no_change() {
    for (mpi, name, constant) in [
        (OPENMPI, "btl_vader_eager_limit", Some("pml_ob1_major_version")),
        (MPICH, "MPIR_CVAR_BCAST_MIN_PROCS", None),
    ] {
        let bad_type = format!("{name}=many");
        let constant = constant.map(|name| format!("{name}=7"));
        let mut options = vec!["--set", &bad_type, "--set", "no_such_variable=1"];
        options.extend(constant.iter().flat_map(|constant| ["--set", constant]));
        let run = gyan_run(mpi, &options);
        let profiles = run.profiles();
        let mut expected = vec![
            format!("gyan: GYAN_CVARS: {name}=many: is not a value of its type; no change"),
            "gyan: GYAN_CVARS: no_such_variable=1: this MPI library has no such control variable; \
             no change"
                .to_owned(),
        ];
        expected.extend(constant.iter().map(|constant| {
            format!("gyan: GYAN_CVARS: {constant}: is a constant of the library; no change")
        }));
        assert_eq!(run.outcome.notices(), expected);
        let of_setting = |warning: &&String| warning.starts_with("GYAN_CVARS");
        let noted = profiles[0].warnings.iter().filter(of_setting).count();
        assert_eq!(noted, expected.len(), "{:?}", profiles[0].warnings);
        assert!(profiles[0].cvars.iter().all(|cvar| cvar.requested.is_none()));
    }
}

#[test]
fn what_the_environment_sets_is_recorded_with_its_origin() {
    for (mpi, variable, value) in [
        (OPENMPI, "OMPI_MCA_btl_vader_eager_limit", "3000"),
        (MPICH, "MPIR_CVAR_BCAST_MIN_PROCS", "3"),
    ] {
        let run = Profiled::run(mpi, 2, &["exit_code"], &[(variable, value)]);
        let profiles = run.profiles();
        let name = variable.trim_start_matches("OMPI_MCA_");
        let recorded = cvars(&profiles[0])[name];
        assert_eq!(recorded.value.as_deref(), Some(value), "{mpi:?}");
        assert_eq!(recorded.set_by, Some(format!("environment {variable}")));
        assert_eq!(recorded.requested, None);
    }
}

#[test]
fn all_or_nothing_is_recorded_when_asked() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 1, &["exit_code"], &[("GYAN_CVARS_RECORD", "all")]);
        let profile = &run.profiles()[0];
        assert!(profile.cvars.len() >= 344, "{mpi:?}: {}", profile.cvars.len());
        assert!(profile.cvars.iter().filter(|cvar| cvar.value.is_none()).count() == 0);
        let run = Profiled::run(mpi, 1, &["exit_code"], &[("GYAN_CVARS_RECORD", "none")]);
        assert!(run.profiles()[0].cvars.is_empty());
    }
}

/// If the start was missed, the library has already read its environment: variables are written through `MPI_T`
/// if their scope allows, those that would crash are not read, and refusals are reported.
#[test]
fn a_late_start_writes_through_the_interface() {
    let set = ("GYAN_CVARS", "MPIR_CVAR_BCAST_MIN_PROCS=5");
    let run = Profiled::run(MPICH, 1, &["late"], &[set]).succeeded();
    let profiles = run.profiles();
    let recorded = cvars(&profiles[0])["MPIR_CVAR_BCAST_MIN_PROCS"];
    assert_eq!(recorded.value.as_deref(), Some("5"));

    let settings = [("GYAN_CVARS", "btl_self_eager_limit=256"), ("GYAN_CVARS_RECORD", "all")];
    let run = Profiled::run(OPENMPI, 1, &["late"], &settings).succeeded();
    let profiles = run.profiles();
    only_warning(&profiles[0], "btl_self_eager_limit=256");
}
