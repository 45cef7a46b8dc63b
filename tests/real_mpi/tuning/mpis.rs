//! `gyan tune` with the libraries of the test bed: what the findings nominate, that it took on every rank and that its
//! witness moved, and that the library accepts the files. No time is asserted.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gyan_results::{Figure, Gain, Summary, Took, Trial, Tuning, Witnessed};
use tempfile::TempDir;

use super::tuning;
use crate::common::{
    BED, MPICH_PVARS, MPICH5, Mpi, OPENMPI5, Outcome, command, gyan, reported_summary, run_within,
};
use crate::tables::compare;

/// For a whole tune on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

const OPENMPI4: Mpi = BED[0];
const MPICH4: Mpi = BED[1];

/// A program of `tests/programs/problems.c` that one setting cures.
struct Case {
    mpi: Mpi,
    ranks: usize,
    problem: &'static str,
    environment: Environment,
    nominated: &'static str,
}

type Environment = &'static [(&'static str, &'static str)];

const fn case(
    mpi: Mpi,
    ranks: usize,
    problem: &'static str,
    environment: Environment,
    nominated: &'static str,
) -> Case {
    Case { mpi, ranks, problem, environment, nominated }
}

const TCP: Environment = &[("OMPI_MCA_btl", "tcp,self")];

/// Algorithms for `MPI_Allreduce` that are bad for long messages between two ranks.
const RECURSIVE_DOUBLING: Environment = &[
    ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
    ("OMPI_MCA_coll_tuned_allreduce_algorithm", "3"),
];
const SMP: Environment = &[("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "smp")];

const CASES: &[Case] = &[
    case(OPENMPI4, 2, "eager-limit", TCP, "btl_tcp_eager_limit"),
    case(OPENMPI5, 2, "eager-limit", TCP, "btl_tcp_eager_limit"),
    case(MPICH_PVARS, 2, "eager-limit", &[], "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ"),
];

/// What a busy machine can hide, or what has no knob: for the table only.
const MORE: &[Case] = &[
    case(OPENMPI4, 4, "oversubscribed", &[], "mpi_yield_when_idle"),
    case(OPENMPI5, 4, "oversubscribed", &[], "mpi_yield_when_idle"),
    case(MPICH5, 4, "oversubscribed", &[], "MPIR_CVAR_CH4_PROGRESS_THROTTLE"),
    case(OPENMPI4, 2, "algorithm", RECURSIVE_DOUBLING, "coll_tuned_allreduce_algorithm"),
    case(OPENMPI5, 2, "algorithm", RECURSIVE_DOUBLING, "coll_tuned_allreduce_algorithm"),
    case(MPICH4, 2, "algorithm", SMP, "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"),
    case(MPICH5, 2, "algorithm", SMP, "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"),
];

impl Case {
    /// `gyan <words> -- mpirun -n <ranks> problems <problem>` in `here`.
    fn run(&self, here: &Path, words: &[&str], environment: &[(&str, &str)]) -> Outcome {
        // The test bed has an environment of its own, so this is set in it.
        let set = self.environment.iter().chain(environment);
        let mut front = vec!["env".to_owned()];
        front.extend(set.map(|(name, value)| format!("{name}={value}")));
        front.push(gyan().get_program().display().to_string());
        front.extend(words.iter().chain(&["--"]).map(|word| (*word).to_owned()));
        let mut words = self.mpi.mpirun_after(&front, self.ranks);
        if self.ranks > 2 && self.mpi.name.starts_with("openmpi") {
            words.extend(["--host".into(), format!("localhost:{}", self.ranks)]);
        }
        words.extend([self.mpi.program("problems").display().to_string(), self.problem.into()]);
        run_within(command(&words).current_dir(here), PATIENCE)
    }

    /// One run in this environment.
    fn summary(&self, here: &Path, out: &str, environment: &[(&str, &str)]) -> Summary {
        let outcome = self.run(here, &["run", "-o", out, "--no-report"], environment);
        assert_eq!(outcome.code, 0, "{environment:?}: {}", outcome.stderr);
        reported_summary(here.join(out))
    }

    /// `gyan tune` of the program in `here`.
    fn tuned(&self, here: &Path) -> (Outcome, Tuning) {
        let outcome = self.run(here, &["tune", "-o", "tuned"], &[]);
        (outcome, tuning(&here.join("tuned")))
    }
}

/// The knob is nominated, takes on every rank, and the time that is at stake nearly goes.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
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

/// What a line of `settings.env` sets.
fn exported(here: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(here.join("tuned/settings.env")).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    lines.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())).collect()
}

/// A run with the files has the values, from the environment or from the file.
fn assert_accepted(case: &Case, here: &Path, winner: &Trial) {
    let conf = here.join("tuned/settings.conf").display().to_string();
    let exported = exported(here);
    let mut ways: Vec<Vec<(&str, &str)>> =
        vec![exported.iter().map(|(name, value)| (&name[..], &value[..])).collect()];
    if case.mpi.name.starts_with("openmpi") {
        ways.push(vec![("OMPI_MCA_mca_base_param_files", &conf)]);
    }
    for (number, way) in ways.iter().enumerate() {
        let summary = case.summary(here, &format!("out-{number}"), way);
        for setting in &winner.settings {
            let cvar = summary.cvars.iter().find(|cvar| cvar.name == setting.name);
            let value = cvar.and_then(|cvar| cvar.value.as_ref());
            assert_eq!(value, Some(&setting.value), "{way:?}");
        }
    }
}

/// A row of the table in docs/tuning.md.
fn row(case: &Case) -> String {
    let here = TempDir::new().unwrap();
    let (outcome, tuning) = case.tuned(here.path());
    assert_eq!(outcome.code, 0, "{}: {}", case.mpi.name, outcome.stderr);
    let is_one = |trial: &&Trial| trial.settings.iter().any(|of| of.name == case.nominated);
    let winner = tuning.winner.map(|winner| &tuning.trials[winner]);
    let gain = |trial: &&Trial| trial.gain.map_or(f64::MIN, |gain| gain.share);
    let best = || {
        let tried = tuning.trials.iter().filter(is_one);
        tried.max_by(|one, other| gain(one).total_cmp(&gain(other)))
    };
    let shown = winner.or_else(best);
    let set: Vec<String> =
        case.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    let start = format!(
        "| {} | `{}-n {} problems {}` |",
        case.mpi.name,
        set.concat(),
        case.ranks,
        case.problem
    );
    let Some(trial) = shown else {
        return format!("{start} nothing | | | | | |\n");
    };
    let settings: Vec<String> =
        trial.settings.iter().map(|of| format!("`{}={}`", of.name, of.value)).collect();
    let witness = trial.witness.as_ref().map_or(String::new(), |witness| {
        let moved = if witness.moved == Some(true) { "" } else { ", not moved" };
        let Witnessed { name, default, with, unit, .. } = witness;
        let digits = if unit.is_empty() { 0 } else { 3 };
        let unit = format!(" {unit}");
        format!("{name}: {default:.digits$} to {with:.digits$}{}{moved}", unit.trim_end())
    });
    let percent = |gain: Gain| {
        let [share, low, high] = [gain.share, gain.low, gain.high].map(|of| 100.0 * of);
        format!("{share:.0} % ({low:.0} % to {high:.0} %)")
    };
    let gain = trial.gain.map_or(String::new(), percent);
    let took = if trial.took == Took::OnEveryRank { "yes" } else { "no" };
    let repeated = winner.map_or("not better".to_owned(), |_| repeated(case, here.path()));
    format!("{start} {} | {took} | {witness} | {gain} | {repeated} |\n", settings.join(" "))
}

/// The median run times without and with the file, in turn.
fn repeated(case: &Case, here: &Path) -> String {
    const PAIRS: usize = 5;
    let exported = exported(here);
    let with: Vec<(&str, &str)> =
        exported.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS {
        for (side, environment) in [&[][..], &with].into_iter().enumerate() {
            let summary = case.summary(here, &format!("repeated-{pair}-{side}"), environment);
            times[side].push(Figure::RunTime.of(&summary).unwrap());
        }
    }
    let [before, after] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[PAIRS / 2]
    });
    format!("{before:.2} s to {after:.2} s")
}

#[test]
#[ignore = "measures times, for docs/tuning.md: BLESS=1 on a quiet machine"]
fn the_case_study() {
    let mut text = String::from(
        "\n| MPI | program | setting | took | witness | gain | with the file |\n\
         | :-- | :-- | :-- | :-- | :-- | --: | --: |\n",
    );
    let before = fs::read_to_string("/proc/loadavg").unwrap();
    text.extend(CASES.iter().chain(MORE).map(row));
    let load = before.split(' ').next().unwrap().to_owned();
    text.extend(["\nThe load of the machine at the start was ", &load, ".\n\n"]);
    assert!(std::env::var_os("BLESS").is_some(), "its figures change: only BLESS=1 makes sense");
    compare("docs/tuning.md", "the case study", &text);
}
