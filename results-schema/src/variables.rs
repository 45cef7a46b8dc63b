//! Every variable, category and event of an MPI library: schema `gyan.variables/1`.

use crate::data::{Data, Serialize, derive};
use crate::{Class, Datatype, Mpi, Number, Tool, Values};

/// What an MPI library tells about itself through `MPI_T`.
#[derive(Data!, Serialize)]
pub struct Variables {
    /// [`VARIABLES_SCHEMA`](crate::VARIABLES_SCHEMA).
    pub schema: String,
    /// What wrote this listing.
    pub tool: Tool,
    /// Host name of the node.
    pub host: String,
    /// The MPI library.
    pub mpi: Mpi,
    /// When it was asked.
    pub listed: Moment,
    /// The control variables, by index.
    pub cvars: Vec<Cvar>,
    /// The performance variables, by index.
    pub pvars: Vec<PvarInfo>,
    /// The categories, by index.
    pub categories: Vec<Category>,
    /// Whether the library has the event interface of MPI 4.0.
    pub has_events: bool,
    /// The types of events, by index.
    pub events: Vec<Event>,
    /// The sources of events, by index.
    pub sources: Vec<Source>,
    /// Monitoring that the library leaves off by default; empty when it was asked before `MPI_Init`, when not
    /// all of it is reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switch>,
    /// What hides calls of this program from gyan, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_front: Vec<String>,
    /// What would give more, a sentence each, besides the switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

/// Monitoring that a library leaves off by default, and what turns it on.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Switch {
    /// Its name in `GYAN_ENABLE` and `gyan run --enable`.
    pub name: String,
    /// Whether this library was built with it.
    pub available: bool,
    /// Whether it is on already.
    pub on: bool,
    /// What it gives.
    pub gives: String,
    /// What it costs.
    pub costs: String,
    /// What a library needs to have it.
    pub needs: String,
    /// The control variable that turns it on.
    pub cvar: String,
    /// Its value.
    pub value: String,
}

/// When the library was asked: variables appear and values settle in `MPI_Init`.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before `MPI_Init`.
    BeforeInit,
    /// After `MPI_Init`.
    AfterInit,
}

/// A control variable (MPI 4.1, 15.3.6).
#[derive(Data!, Serialize, Default)]
pub struct Cvar {
    /// Its index.
    pub index: usize,
    /// Its name; none when the library does not give it.
    pub name: Option<String>,
    /// The verbosity level, without the prefix `MPI_T_VERBOSITY_`.
    pub verbosity: Option<String>,
    /// The datatype of an element; none for one that `MPI_T` does not allow.
    pub datatype: Option<Datatype>,
    /// The names of its values, for an enumeration.
    pub enumeration: Option<Vec<Item>>,
    /// The kind of object that it binds to; none for no object.
    pub bind: Option<String>,
    /// The scope, without the prefix `MPI_T_SCOPE_`.
    pub scope: Option<String>,
    /// The library's description.
    pub description: String,
    /// Number of elements.
    pub count: Option<usize>,
    /// Its value, for `MPI_COMM_WORLD` if it binds to communicators; none when it was not read.
    pub value: Option<Values>,
    /// The environment variable that this library reads at its start.
    pub environment: Option<String>,
    /// The option of this library's launcher that sets it.
    pub launcher_option: Option<String>,
    /// Whether this is from before `MPI_Init`, because the library no longer reports it afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_init: bool,
    /// Why there is no value, or why it is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A name of a value.
#[derive(Data!, Serialize, Eq)]
pub struct Item {
    /// The value.
    pub value: i32,
    /// Its name.
    pub name: String,
}

/// A performance variable (MPI 4.1, 15.3.7).
#[derive(Data!, Serialize, Default)]
pub struct PvarInfo {
    /// Its index.
    pub index: usize,
    /// Its name; none when the library does not give it.
    pub name: Option<String>,
    /// The verbosity level, without the prefix `MPI_T_VERBOSITY_`.
    pub verbosity: Option<String>,
    /// Its class.
    pub class: Option<Class>,
    /// The datatype of an element.
    pub datatype: Option<Datatype>,
    /// The names of its values, for an enumeration.
    pub enumeration: Option<Vec<Item>>,
    /// The kind of object that it binds to; none for no object.
    pub bind: Option<String>,
    /// Whether it cannot be written.
    pub readonly: Option<bool>,
    /// Whether it runs all the time.
    pub continuous: Option<bool>,
    /// Whether it can be read and reset in one step.
    pub atomic: Option<bool>,
    /// The library's description.
    pub description: String,
    /// Number of elements; none when no handle could be allocated.
    pub count: Option<usize>,
    /// Its value, for `MPI_COMM_WORLD` if it binds to communicators; none when it was not read.
    pub value: Option<Values>,
    /// Whether this is from before `MPI_Init`, because the library no longer reports it afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_init: bool,
    /// Why there is no value, or why it is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A category (MPI 4.1, 15.3.9).
#[derive(Data!, Serialize, Default, Eq)]
pub struct Category {
    /// Its index.
    pub index: usize,
    /// Its name; none when the library does not give it.
    pub name: Option<String>,
    /// The library's description.
    pub description: String,
    /// Indices of its control variables.
    pub cvars: Vec<usize>,
    /// Indices of its performance variables.
    pub pvars: Vec<usize>,
    /// Indices of the categories in it.
    pub categories: Vec<usize>,
    /// Why this is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A type of events (MPI 4.1, 15.3.8).
#[derive(Data!, Serialize, Default, Eq)]
pub struct Event {
    /// Its index.
    pub index: usize,
    /// Its name; none when the library does not give it.
    pub name: Option<String>,
    /// The verbosity level, without the prefix `MPI_T_VERBOSITY_`.
    pub verbosity: Option<String>,
    /// The kind of object that it binds to; none for no object.
    pub bind: Option<String>,
    /// Number of elements of an instance.
    pub elements: usize,
    /// The library's description.
    pub description: String,
    /// Why this is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A source of events (MPI 4.1, 15.3.8).
#[derive(Data!, Serialize, Default, Eq)]
pub struct Source {
    /// Its index.
    pub index: usize,
    /// Its name; none when the library does not give it.
    pub name: Option<String>,
    /// Whether its events come in chronological order.
    pub ordered: bool,
    /// The resolution of its clock.
    pub ticks_per_second: i64,
    /// The library's description.
    pub description: String,
    /// Why this is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The text of a value: names if there is an enumeration, elements separated by commas.
pub fn value_text(value: &Values, enumeration: Option<&[Item]>) -> String {
    let name = |number: &Number| {
        let item = enumeration
            .into_iter()
            .flatten()
            .find(|item| *number == Number::Integer(item.value.into()));
        item.map_or_else(|| number.to_string(), |item| item.name.clone())
    };
    match value {
        Values::Text(text) => text.clone(),
        Values::Elements(elements) => elements.iter().map(name).collect::<Vec<_>>().join(","),
        Values::Digest(digest) => format!("{} elements, sum {}", digest.count, digest.sum),
    }
}

/// How MPICH ends what it says of an algorithm. MPICH 4.0 leaves out the ends of lines, so that the next name follows at once.
const ENDS: [&str; 9] = [
    "algorithm",
    "Tree",
    "Ring",
    "Allgather",
    "allgatherv",
    "collectives",
    "primitives",
    "phase",
    "receives",
];

/// The names that a description gives the values of a variable, a line each: `name - what it does`. MPICH tells its
/// algorithms in no other way.
pub fn described_items(description: &str) -> Vec<Item> {
    let mut parts: Vec<&str> = description.split(" - ").collect();
    parts.pop();
    let name_of = |part: &str| {
        let part = part.trim_end();
        let start = part.rfind([' ', '\n', ')']).map_or(0, |at| at + 1);
        let word = part.get(start..).unwrap_or_default();
        let after = |end: &&str| word.strip_prefix(*end).filter(|rest| !rest.is_empty());
        let name = ENDS.iter().find_map(after).unwrap_or(word);
        // "algorithms" before "sched_auto".
        let name = if name.starts_with("ssched_") { &name[1..] } else { name };
        let is_sign =
            |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
        (!name.is_empty() && name.chars().all(is_sign)).then(|| name.to_owned())
    };
    let names: Option<Vec<String>> = parts.into_iter().map(name_of).collect();
    // One that cannot be made out would give those after it wrong numbers.
    let names = names.unwrap_or_default();
    (0..).zip(names).map(|(value, name)| Item { value, name }).collect()
}

impl Cvar {
    /// The names of its values: of its enumeration, or as MPICH describes its algorithms.
    pub fn items(&self) -> Vec<Item> {
        match (&self.enumeration, &self.name) {
            (Some(items), _) => items.clone(),
            (None, Some(name)) if is_described(name) => described_items(&self.description),
            _ => Vec::new(),
        }
    }

    /// Its value as text; none when it was not read.
    pub fn value_text(&self) -> Option<String> {
        Some(value_text(self.value.as_ref()?, self.enumeration.as_deref()))
    }
}

impl PvarInfo {
    /// Its value as text; none when it was not read.
    pub fn value_text(&self) -> Option<String> {
        Some(value_text(self.value.as_ref()?, self.enumeration.as_deref()))
    }
}

/// Whether only the description of a variable names its values. Of those with `POSIX` the first name cannot be told from
/// the words before it.
pub fn is_described(name: &str) -> bool {
    let is_algorithm = name.starts_with("MPIR_CVAR_") && name.ends_with("_INTRA_ALGORITHM");
    is_algorithm && !name.contains("_POSIX_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_of_mpich_are_known_by_their_description() {
        let names = |text: &str| -> Vec<String> {
            described_items(text).into_iter().map(|item| item.name).collect()
        };
        // MPICH 5.0 and 4.0.
        let text = "Variable to select scan algorithm\nauto - Internal algorithm selection (can be overridden with \
                    X)\nnb                 - Force nonblocking algorithm\nsmp                - Force smp algorithm";
        assert_eq!(names(text), ["auto", "nb", "smp"]);
        assert_eq!(names(&text.replace('\n', "")), ["auto", "nb", "smp"]);
        let bcast = "Variable to select bcast algorithmauto - Internal algorithm selection (can be overridden with \
                     X)binomial      - Force Binomial Treenb    - Force nonblocking algorithmsmp  - Force smp \
                     algorithmscatter_recursive_doubling_allgather    - Force Scatter Recursive-Doubling \
                     Allgatherscatter_ring_allgather                  - Force Scatter Ring";
        let scatters = ["scatter_recursive_doubling_allgather", "scatter_ring_allgather"];
        assert_eq!(names(bcast), [&["auto", "binomial", "nb", "smp"][..], &scatters].concat());
        let barrier = "Variable to select ibarrier algorithmauto - Internal algorithm selection (can be overridden with \
                       X)sched_auto - Internal algorithm selection for sched-based \
                       algorithmssched_recursive_doubling - Force recursive doubling algorithm";
        assert_eq!(names(barrier), ["auto", "sched_auto", "sched_recursive_doubling"]);
        assert!(names("How many").is_empty());
        assert!(
            names("auto - of its own Kindnb - blocking").is_empty(),
            "unknown ends are no names"
        );
        assert!(is_described("MPIR_CVAR_SCAN_INTRA_ALGORITHM") && !is_described("MPIR_CVAR_X"));
    }

    #[test]
    fn values_of_enumerations_are_shown_by_name() {
        let items =
            [Item { value: 0, name: "false".into() }, Item { value: 1, name: "true".into() }];
        let values = |values: &[i128]| {
            Values::Elements(values.iter().copied().map(Number::Integer).collect())
        };
        assert_eq!(value_text(&values(&[1]), Some(&items)), "true");
        assert_eq!(value_text(&values(&[0, 7]), Some(&items)), "false,7");
        assert_eq!(value_text(&values(&[4096]), None), "4096");
        assert_eq!(value_text(&Values::Text("poll".into()), Some(&items)), "poll");
    }
}
