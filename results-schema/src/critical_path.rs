//! Which ranks is the critical path of a run on?

use crate::data::{Data, Serialize, derive};
use crate::{CodeAddress, LoadedObject, MessagePlace};

/// The critical path of a run: where the work was that the run had to wait for.
///
/// It is found by going back in time from the rank that ended last: as far as the latest wait of this rank, from there on along the
/// rank that was waited for, from when that came, and so on (D. Böhme and others, "Scalable critical-path based performance analysis",
/// IPDPS 2012). Where not every call was timed, those that were stand for the others near them.
#[derive(Data!, Serialize, Default)]
pub struct CriticalPath {
    /// The part of the run for which it is known: from the first call that is compared to the last one.
    pub known_share: f64,
    /// By rank, the longest first; at most 16.
    pub ranks: Vec<PathOfRank>,
    /// The places in the code that `ranks` name by their index.
    pub addresses: Vec<CodeAddress>,
    /// The files that `addresses` name by their index.
    pub load_map: Vec<LoadedObject>,
}

/// What of the critical path is on a rank.
#[derive(Data!, Serialize, Default)]
pub struct PathOfRank {
    /// The rank.
    pub rank: u32,
    /// The part of the run in which the critical path is on it.
    pub share: f64,
    /// Its standard error; at least 0.01.
    pub share_error: f64,
    /// The least that it may be: twice the error less than `share`, and at least 0.
    pub lower: f64,
    /// The most that it may be: twice the error more than `share`, and all of the run for which the path is not known; at most 1.
    pub upper: f64,
    /// The call that most of this leads up to: that which ends the computation, or sends what another rank waits for.
    pub leads_to: MessagePlace,
    /// The part of the run that leads up to that call.
    pub leads_to_share: f64,
}
