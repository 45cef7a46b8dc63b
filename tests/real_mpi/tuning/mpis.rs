//! `gyan tune` with the libraries of the test bed: what the findings nominate, that it took on every rank and that its
//! witness moved, and that the library accepts the files. No time is asserted.

use std::fs;
use std::path::Path;

use gyan_results::{Figure, Summary, Took, Trial, Tuning};
use tempfile::TempDir;

use super::tuning;
use crate::common::{BED, MPICH_PVARS, Mpi, OPENMPI5, Outcome, command, gyan, run};

const OPENMPI4: Mpi = BED[0];

/// A program of `tests/programs/problems.c` that one setting cures.
struct Case {
    mpi: Mpi,
    problem: &'static str,
    environment: &'static [(&'static str, &'static str)],
    nominated: &'static str,
}

const TCP: &[(&str, &str)] = &[("OMPI_MCA_btl", "tcp,self")];

const CASES: &[Case] = &[
    Case {
        mpi: OPENMPI4,
        problem: "eager-limit",
        environment: TCP,
        nominated: "btl_tcp_eager_limit",
    },
    Case {
        mpi: OPENMPI5,
        problem: "eager-limit",
        environment: TCP,
        nominated: "btl_tcp_eager_limit",
    },
    Case {
        mpi: MPICH_PVARS,
        problem: "eager-limit",
        environment: &[],
        nominated: "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ",
    },
];

impl Case {
    /// `gyan tune` of the program in `here`.
    fn tuned(&self, here: &Path) -> (Outcome, Tuning) {
        let words = [gyan().get_program().display().to_string(), "tune".into(), "-o".into()];
        let mut words = [&words[..], &["tuned".into(), "--".into()]].concat();
        words = self.mpi.mpirun_behind(&words, 2);
        words.retain(|word| self.environment.is_empty() || word != "OMPI_MCA_btl=^ofi");
        words.extend([self.mpi.program("problems").display().to_string(), self.problem.into()]);
        let mut command = command(&words);
        let outcome = run(command.current_dir(here).envs(self.environment.iter().copied()));
        (outcome, tuning(&here.join("tuned")))
    }
}

/// The knob is nominated, takes on every rank, and the time that is at stake nearly goes.
#[test]
fn findings_nominate_the_knob_that_takes_and_moves_its_witness() {
    for case in CASES {
        let here = TempDir::new().unwrap();
        let (outcome, tuning) = case.tuned(here.path());
        let what = format!("{}: {}\n{}", case.mpi.name, outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, 0, "{what}");
        let is_one = |trial: &&Trial| trial.settings[0].name == case.nominated;
        let trial = tuning.trials.iter().find(is_one).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(trial.nominated_by.as_deref(), Some(case.problem), "{what}");
        assert_eq!(trial.took, Took::OnEveryRank, "{what}");
        let witness = trial.witness.as_ref().unwrap();
        assert_eq!(witness.moved, Some(true), "{what}");
        let Some(winner) = tuning.winner.map(|winner| &tuning.trials[winner]) else {
            panic!("{what}");
        };
        assert_accepted(case, here.path(), winner);
    }
}

/// A run with the files has the values, from the environment or from the file.
fn assert_accepted(case: &Case, here: &Path, winner: &Trial) {
    let setting = &winner.settings[0];
    let conf = here.join("tuned/settings.conf");
    let env = fs::read_to_string(here.join("tuned/settings.env")).unwrap();
    let line = env.lines().last().unwrap().strip_prefix("export ").unwrap();
    let mut ways = vec![line.split_once('=').unwrap()];
    let conf_shown = conf.display().to_string();
    if conf.exists() {
        ways.push(("OMPI_MCA_mca_base_param_files", &conf_shown));
    }
    for (number, way) in ways.iter().enumerate() {
        let out = format!("out-{number}");
        let words = [gyan().get_program().display().to_string(), "run".into(), "-o".into()];
        let words = [&words[..], &[out.clone(), "--no-report".into(), "--".into()]].concat();
        let mut words = case.mpi.mpirun_behind(&words, 2);
        words.retain(|word| case.environment.is_empty() || word != "OMPI_MCA_btl=^ofi");
        words.extend([case.mpi.program("problems").display().to_string(), case.problem.into()]);
        let mut command = command(&words);
        command.current_dir(here).envs(case.environment.iter().copied()).env(way.0, way.1);
        assert_eq!(run(&mut command).code, 0, "{way:?}");
        let report = run(gyan().args(["report", "--format", "json", &out]).current_dir(here));
        let summary: Summary = serde_json::from_str(&report.stdout).unwrap();
        let cvar = summary.cvars.iter().find(|cvar| cvar.name == setting.name);
        let value = cvar.and_then(|cvar| cvar.value.clone());
        assert_eq!(value.as_ref(), Some(&setting.value), "{way:?}");
        assert!(Figure::RunTime.of(&summary).is_some());
    }
}
