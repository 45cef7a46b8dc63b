//! `GYAN_METRICS`: what a keeper writes for Prometheus, as its own readers read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{MPICH, OPENMPI, comes_true, python_with, run};
use crate::survival::live::{AT_ONCE, Waiting};

const RANKS: usize = 3;

/// Both formats: name of the sample, labels and value of each.
const READ: &str = "
import json, sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
text = open(sys.argv[1]).read()
def samples(reader):
    families = reader.text_string_to_metric_families(text)
    return [[sample.name, sample.labels, sample.value] for family in families for sample in family.samples]
families = list(openmetrics.text_string_to_metric_families(text))
print(json.dumps({
    'prometheus': samples(parser), 'openmetrics': samples(openmetrics),
    'families': [[family.name, family.type, family.unit, family.documentation] for family in families]}))";

fn reader() -> Option<PathBuf> {
    python_with("test-metrics", "prometheus_client", &["prometheus_client"])
}

/// The files that `node_exporter` would read.
fn metrics_in(place: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "prom")).collect()
}

fn value_of(samples: &Value, name: &str, state: Option<&str>) -> Option<f64> {
    let is_it = |sample: &&Value| {
        sample[0] == name && state.is_none_or(|state| sample[1]["state"] == state)
    };
    samples.as_array()?.iter().find(is_it)?[2].as_f64()
}

#[test]
fn metrics_of_running_jobs_are_read_by_both_parsers_and_gone_afterwards() {
    let Some(python) = reader() else { return };
    let place = TempDir::new().unwrap();
    let settings = [AT_ONCE, ("GYAN_METRICS", place.path().to_str().unwrap())];
    let mut jobs = [OPENMPI, MPICH].map(|mpi| {
        let program = mpi.compiled("stuck", &["-g"]).display().to_string();
        Waiting::launch(&mpi.mpirun(RANKS), &[program, "healthy".into()], &settings)
    });
    // A file of each job, once all of its ranks are known.
    let read = |path: &PathBuf| -> Option<Value> {
        let outcome = run(Command::new(&python).args(["-c", READ]).arg(path));
        // It may have been renamed into place at this moment, never be half there.
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let read: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let moving = value_of(&read["openmetrics"], "gyan_ranks", Some("moving"))?;
        let calls = value_of(&read["openmetrics"], "gyan_mpi_calls_total", None)?;
        (moving >= RANKS as f64 && calls > 0.0).then_some(read)
    };
    let mut found = Vec::new();
    let all = comes_true(|| {
        found = metrics_in(place.path()).iter().filter_map(read).collect();
        found.len() == jobs.len()
    });
    assert!(all, "{found:#?}");
    for read in &found {
        let samples = read["openmetrics"].as_array().unwrap();
        assert!(samples.len() > 10 && samples.len() <= 30, "{}", samples.len());
        // In another order, and the older format has no type for what ends with `_total`.
        let sorted = |name: &str| {
            let mut all: Vec<String> =
                read[name].as_array().unwrap().iter().map(Value::to_string).collect();
            all.sort();
            all
        };
        assert_eq!(sorted("openmetrics"), sorted("prometheus"));
        for sample in samples {
            let labels = &sample[1];
            assert!(labels["program"].as_str().unwrap().starts_with("stuck"), "{sample}");
            assert!(!labels["job"].as_str().unwrap().is_empty(), "{sample}");
            assert!(!labels["host"].as_str().unwrap().is_empty(), "{sample}");
        }
        for family in read["families"].as_array().unwrap() {
            let name = family[0].as_str().unwrap();
            let is_counter = name != "gyan_ranks" && family[1] == "counter";
            assert!(is_counter || family[1] == "gauge", "{family}");
            assert!(name.ends_with(family[2].as_str().unwrap()), "{family}");
            assert!(!family[3].as_str().unwrap().is_empty(), "{family}");
        }
        let value = |name: &str| value_of(&read["openmetrics"], name, None).unwrap();
        assert!(value("gyan_mpi_seconds_total") >= 0.0);
        assert!(value("gyan_sent_messages_total") > 0.0);
        assert!(value("gyan_rank_seconds_total") > 0.0);
        assert!(value("gyan_job_ranks") >= RANKS as f64);
    }
    for job in &mut jobs {
        job.goes_on();
    }
    let is_empty = || fs::read_dir(place.path()).unwrap().next().is_none();
    assert!(comes_true(is_empty), "{:?}", metrics_in(place.path()));
}

#[test]
fn a_directory_for_metrics_that_is_not_there_is_one_line_and_harms_nothing() {
    let program = OPENMPI.compiled("stuck", &["-g"]).display().to_string();
    let settings = [AT_ONCE, ("GYAN_METRICS", "nowhere")];
    let mut job = Waiting::launch(&OPENMPI.mpirun(RANKS), &[program, "healthy".into()], &settings);
    job.goes_on();
    let said = job.stderr();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("GYAN_METRICS")).collect();
    assert_eq!(lines, ["gyan: GYAN_METRICS=nowhere: is not there; ignored"], "{said}");
    assert!(job.directory().join(gyan_results::rank_file_name(0)).exists());
}
