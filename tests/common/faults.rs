//! Records the faults injected into runs of programs, and whether they were survived: `target/faults/<group>-<process>.json`,
//! from which the last step of `scripts/test` makes the tables of docs/reliability.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::common::target;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Fault {
    #[serde(rename = "fault")]
    pub(crate) name: String,
    pub(crate) survived: bool,
    /// What surviving means here.
    pub(crate) what: String,
}

/// An injected fault. If the test fails before it says otherwise, it was not survived.
pub(crate) struct Injected {
    group: &'static str,
    at: usize,
}

static FAULTS: Mutex<BTreeMap<&str, Vec<Fault>>> = Mutex::new(BTreeMap::new());

/// Injects a fault, for each MPI. `what` must then be the case.
pub(crate) fn inject(group: &'static str, fault: &str, what: &str) -> Injected {
    let fault = Fault { name: fault.into(), survived: false, what: what.into() };
    let mut at = 0;
    change(group, |faults| {
        at = faults.len();
        faults.push(fault);
    });
    Injected { group, at }
}

impl Injected {
    pub(crate) fn survived(self) {
        change(self.group, |faults| faults[self.at].survived = true);
    }
}

fn change(group: &'static str, change: impl FnOnce(&mut Vec<Fault>)) {
    let mut all = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    let faults = all.entry(group).or_default();
    change(faults);
    fs::create_dir_all(directory()).unwrap();
    let text = serde_json::to_string_pretty(faults).unwrap();
    fs::write(directory().join(format!("{group}-{}.json", std::process::id())), text).unwrap();
}

/// Where the files of all groups are.
pub(crate) fn directory() -> PathBuf {
    target().join("faults")
}
