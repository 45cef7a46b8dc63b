//! The proof of each rule, as `tests/programs/problems.c` and `problems_openmp.c` have it beside the problem: comments that begin
//! with `[[case]]`, and are TOML. A rule about queues needs a library that reports them: MPICH with its variables, or
//! Open MPI with PERUSE; one about a setting needs the library that has it. All cases use real MPIs.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Deserializer};

use crate::common::{BED, Mpi, root};

const PROGRAMS: [&str; 2] = ["problems_openmp", "problems"];

/// How a program is started.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// The first one of this name in the test bed.
    #[serde(deserialize_with = "mpi")]
    pub(super) mpi: Mpi,
    #[serde(default = "two")]
    pub(super) ranks: usize,
    /// The number of ranks where that depends on the machine.
    pub(super) ranks_per_processor: Option<usize>,
    /// On one processor.
    #[serde(default)]
    pub(super) is_bound: bool,
    /// Next to twice as many busy processes as there are processors.
    #[serde(default)]
    pub(super) is_beside_others: bool,
    /// The launcher does not see that there are too few processors.
    #[serde(default)]
    pub(super) has_slots: bool,
    /// As by `gyan run --set`.
    #[serde(default)]
    pub(super) set: Vec<String>,
    /// Each as NAME=VALUE.
    #[serde(default)]
    pub(super) environment: Vec<String>,
}

/// From the first number to the second one; a number stands for itself.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum Range {
    Is(f64),
    Within(f64, f64),
}

/// The run to compare with, which does not have the finding.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Twin {
    /// Where it is started differently.
    pub(super) start: Option<Start>,
    /// Values for the placeholders of the command that the finding advises.
    #[serde(default)]
    pub(super) meaning: BTreeMap<String, String>,
    /// It may have the finding: the advice makes the problem smaller, or is only worth a try.
    #[serde(default)]
    pub(super) may_stay: bool,
    /// The number that changes, as `witnesses.rs` has it; none if only the finding does.
    pub(super) witness: Option<String>,
    /// Its values before and after, where they are the same in every run and on every machine.
    pub(super) counted: Option<[Range; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) rule: String,
    #[serde(skip)]
    pub(super) program: &'static str,
    pub(super) start: Start,
    #[serde(default)]
    pub(super) functions: Vec<String>,
    #[serde(default)]
    pub(super) ranks: Vec<u32>,
    /// The numbers that it rests on.
    #[serde(default)]
    pub(super) evidence: BTreeMap<String, Range>,
    /// The program without the problem.
    pub(super) healthy: Option<Twin>,
    /// The same program, started differently.
    pub(super) started: Option<Twin>,
    /// With the first command that the finding advises.
    pub(super) advised: Option<Twin>,
}

impl Range {
    pub(super) fn contains(self, value: f64) -> bool {
        let (least, most) = match self {
            Range::Is(value) => (value, value),
            Range::Within(least, most) => (least, most),
        };
        (least..=most).contains(&value)
    }
}

impl Case {
    pub(super) fn twins(&self) -> impl Iterator<Item = &Twin> {
        [&self.healthy, &self.started, &self.advised].into_iter().flatten()
    }
}

fn two() -> usize {
    2
}

fn mpi<'de, D: Deserializer<'de>>(text: D) -> Result<Mpi, D::Error> {
    let name = String::deserialize(text)?;
    let mpi = BED.into_iter().find(|mpi| mpi.name == name);
    mpi.ok_or_else(|| serde::de::Error::custom(format!("no {name} in the test bed")))
}

/// The text of the comments of a program that are cases.
fn notes(program: &str) -> String {
    let notes = program.split("/* [[case]]\n").skip(1);
    let notes = notes.map(|rest| rest.split("*/").next().unwrap_or_default());
    let lines = notes.flat_map(|note| ["[[case]]"].into_iter().chain(note.lines()));
    let lines = lines.map(|line| line.strip_prefix(" *").unwrap_or(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// All of them, in the order of the programs.
pub(super) fn cases() -> Vec<Case> {
    #[derive(Deserialize)]
    struct Cases {
        case: Vec<Case>,
    }
    let of = |program| {
        let file = format!("tests/programs/{program}.c");
        let notes = notes(&fs::read_to_string(root().join(&file)).unwrap());
        let cases: Result<Cases, _> = toml::from_str(&notes);
        let cases = cases.unwrap_or_else(|error| panic!("the cases of {file}: {error}"));
        cases.case.into_iter().map(move |case| Case { program, ..case })
    };
    PROGRAMS.into_iter().flat_map(of).collect()
}
