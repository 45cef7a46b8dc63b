//! Where in the program the time in MPI is spent: call sites with what their calls took, in a rank profile
//! and over ranks.

use crate::addresses::LoadedObject;
use crate::data::{Data, Serialize, derive};
use crate::merge::{Later, SumOfErrors, SumOfVariances, reduced};
use crate::statistics::{Statistic, Statistics};

/// The places in the program that call MPI, provided that some of their calls were timed.
///
/// The sites of a function add up to its number of calls, its time and its bytes; how these are divided between
/// the sites is an estimate from the timed calls, and exact when all calls were timed.
#[derive(Data!, Serialize, Default)]
pub struct Sites {
    /// The sites, the one with the most time first.
    pub sites: Vec<Site>,
    /// The addresses that sites and stacks name by their place in this list.
    pub addresses: Vec<CodeAddress>,
    /// The loaded objects that contain the addresses.
    pub load_map: Vec<LoadedObject>,
}

/// The calls of one function from one place.
#[derive(Data!, Serialize, Default)]
pub struct Site {
    /// The function that is called, by its name in C.
    pub function: String,
    /// The address that the call returns to; none for calls from sites beyond those that are kept apart, or
    /// whose place is not known.
    pub call: Option<usize>,
    /// The number of calls, an estimate.
    pub calls: u64,
    /// The standard error of `calls`; 0 when every call was timed, none when the timed calls cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_error: Option<f64>,
    /// How many calls were timed: a lower bound for `calls`.
    pub timed: u64,
    /// Seconds in the calls, an estimate.
    pub time_s: f64,
    /// The standard error of `time_s`; none when the calls that were timed cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_s: Option<f64>,
    /// Seconds of the longest call that was timed.
    pub time_max_s: f64,
    /// Bytes that the calls handed to MPI, an estimate; none where they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// At how many of the timed calls the stack was recorded, as the budget allowed.
    pub stacks_taken: u64,
    /// The stacks that were seen, the one with the most time first; not more than a few.
    pub stacks: Vec<SiteStack>,
}

/// The nested calls that led to a site.
#[derive(Data!, Serialize, Default)]
pub struct SiteStack {
    /// How many of the recorded stacks are this one.
    pub hits: u64,
    /// How many of the site's calls it stands for, an estimate.
    pub calls: u64,
    /// Seconds of the site's time that it stands for, an estimate.
    pub time_s: f64,
    /// The addresses that the calls return to, the innermost first, without those in gyan and in the MPI
    /// library.
    pub frames: Vec<usize>,
}

/// A place in the code.
#[derive(Data!, Serialize, Default, Eq)]
pub struct CodeAddress {
    /// The object, by its place in the load map; none for code that belongs to no file.
    pub object: Option<usize>,
    /// The address as in the symbol table of the object; without an object that in the process, and 0 in a
    /// summary when the code has a name.
    pub address: u64,
    /// For generated code that belongs to no file: the name that its generator gave it in the map that it wrote
    /// for `perf`. For a line of Python: `py::FUNCTION:FILE:LINE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The call sites of all ranks. The same place in the same file is one site, wherever it was loaded.
#[derive(Data!, Serialize)]
pub struct SitesSummary {
    /// The sites, the one with the most time on all ranks first.
    pub sites: Vec<SiteSummary>,
    /// The addresses that sites and stacks name by their place in this list.
    pub addresses: Vec<CodeAddress>,
    /// The objects that contain the addresses.
    pub load_map: Vec<LoadedObject>,
}

reduced! {
    /// The calls of one function from one place, over the ranks that made one there.
    Site => SiteReduction => SiteSummary by (
        /// The function that is called, by its name in C.
        function: String,
        /// The address that the call returns to; none for sites beyond those that are kept apart.
        call: Option<usize>,
    ) {
        /// The number of calls, an estimate.
        calls: Statistic = Statistics,
        /// The standard error of the sum of `calls`; none when a rank cannot tell its own.
        calls_error: Option<f64> = SumOfVariances,
        /// How many calls were timed, on all ranks.
        timed: u64 = u64,
        /// Seconds in the calls, an estimate.
        time_s: Statistic = Statistics,
        /// The standard error of the sum of `time_s`; none when a rank cannot tell its own.
        time_error_s: Option<f64> = SumOfErrors,
        /// Seconds of the longest call that was timed.
        time_max_s: Statistic = Statistics,
        /// Bytes that the calls handed to MPI, an estimate; none where they are not counted.
        bytes: Option<Statistic> = Option<Statistics>,
        /// At how many of the timed calls the stack was recorded, on all ranks.
        stacks_taken: u64 = u64,
        /// The stacks that were seen, the one with the most time first.
        stacks: Vec<SiteStack> = Later,
    } without ()
}
