//! Receives that were watched: on one rank and over ranks.

use crate::addresses::{Address, LoadedObject, Stack};
use crate::data::{Data, Serialize, derive};
use crate::merge::{Later, reduced};
use crate::statistics::{Statistic, Statistics};

/// Receives that were called while a variable was above a threshold (after the example tool in MPI 4.1,
/// 15.3.7).
#[derive(Data!, Serialize, Default, Eq)]
pub struct Watch {
    /// The variable that was compared, by the library's name.
    pub variable: String,
    /// A value above this is a hit. For a vector, the sum over the elements counts.
    pub threshold: u64,
    /// Receives at which it was compared.
    pub receives: u64,
    /// Receives at which it could not be compared: on communicators for which there is no handle.
    pub not_compared: u64,
    /// Receives at which it was above the threshold.
    pub hits: u64,
    /// The largest value at a receive, above the threshold or not.
    pub max: u64,
    /// Where the hits were, the most frequent first.
    pub sites: Vec<WatchSite>,
    /// Hits that are in none of the sites, because there were too many.
    pub hits_elsewhere: u64,
    /// The loaded objects that contain the addresses.
    pub load_map: Vec<LoadedObject>,
}

/// One place in the program that calls a receive.
#[derive(Data!, Serialize, Eq)]
pub struct WatchSite {
    /// The function that is called, by its name in C.
    pub function: String,
    /// Where the call returns to.
    pub call: Address,
    /// Exact number of hits.
    pub hits: u64,
    /// The sum of the values at the hits.
    pub sum: u64,
    /// The hit with the largest value.
    pub worst: Hit,
    /// At how many hits the stack was recorded, as the budget allowed.
    pub stacks_taken: u64,
    /// The stacks that were seen, the most frequent first; not more than a few.
    pub stacks: Vec<Stack>,
}

/// A receive that was called while the variable was above the threshold.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Hit {
    /// The value.
    pub value: u64,
    /// The rank in the communicator that was received from; none when that is not known, as for
    /// `MPI_ANY_SOURCE` without a status and for `MPI_Mrecv`.
    pub source: Option<i32>,
    /// The tag; none in the same cases.
    pub tag: Option<i32>,
    /// The name of the communicator; none when the call does not say.
    pub communicator: Option<String>,
    /// For a variable with an element for each rank of the communicator: the rank with the largest.
    pub longest_from: Option<u32>,
}

reduced! {
    /// The receives that were watched on the ranks that compared one variable with one threshold.
    Watch => WatchReduction => WatchSummary by (
        /// The variable, by the library's name.
        variable: String,
        /// A value above this is a hit.
        threshold: u64,
    ) {
        /// Receives at which it was compared.
        receives: Statistic = Statistics,
        /// Receives at which it could not be compared, on all ranks.
        not_compared: u64 = u64,
        /// Receives at which it was above the threshold.
        hits: Statistic = Statistics,
        /// The largest value at a receive.
        max: Statistic = Statistics,
        /// Where the hits were, the most hits on all ranks first.
        sites: Vec<WatchSiteSummary> = Later,
        /// Hits on all ranks that are in none of the sites.
        hits_elsewhere: u64 = u64,
        /// The objects that contain the addresses.
        load_map: Vec<LoadedObject> = Later,
    } without ()
}

reduced! {
    /// One place in the program that calls a receive.
    WatchSite => WatchSiteReduction => WatchSiteSummary by (
        /// The function that is called, by its name in C.
        function: String,
        /// Where the call returns to.
        call: Address,
    ) {
        /// The number of hits, over the ranks that have one.
        hits: Statistic = Statistics,
        /// The sum of the values at the hits of all ranks.
        sum: u64 = u64,
        /// The hit with the largest value.
        worst: Hit = Later,
        /// The rank that had it.
        + worst_rank: u32 = Later,
        /// At how many hits the stack was recorded, on all ranks.
        stacks_taken: u64 = u64,
        /// The stacks that were seen, the most frequent first.
        stacks: Vec<Stack> = Later,
    } without ()
}
