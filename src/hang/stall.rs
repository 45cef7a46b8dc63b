//! Has a job stood still for so long that the user wants to know?

use std::time::Duration;

use gyan_results::{Doing, HangKind, JobNow, RankDoing};

use super::waits::WaitGraph;
use crate::input::directory::Directory;
use crate::words::ranges;

/// That a job does not go on.
pub(crate) struct Stall {
    /// For how long the ranks that wait have not moved.
    pub(crate) still_s: f64,
    pub(crate) sentence: String,
}

/// Why it cannot be told whether a job goes on of which ranks have left `MPI_Init`; none if they are seen.
pub(crate) fn unseen(directory: &Directory) -> Option<String> {
    let ranks = directory.doing(&mut |_| Vec::new(), None).ranks;
    let number = ranks.len();
    if ranks.iter().all(|rank| rank.doing == Doing::Ended) {
        let all =
            if number == 1 { "its rank has".into() } else { format!("its {number} ranks have") };
        return Some(format!("{all} called MPI_Finalize, and it has not ended"));
    }
    let why = |rank: &RankDoing| match &rank.doing {
        Doing::NotSeen(why) => Some(why.clone()),
        _ => None,
    };
    let blind: Vec<u32> =
        ranks.iter().filter(|rank| why(rank).is_some()).map(|rank| rank.rank).collect();
    let first = ranks.iter().find_map(why)?;
    Some(format!("rank {} cannot be seen: {first}", ranges(&blind)))
}

/// What every rank did then, in the run directory, as `JobNow`.
pub(crate) const STALL_FILE: &str = "stall.json";

/// None while the job goes on, or has not stood still for `span`. `awake_ms`: what was still then counts from then, in
/// milliseconds since 1970.
pub(crate) fn stall(now: &JobNow, span: Duration, awake_ms: u64) -> Option<Stall> {
    if now.is_over {
        return None;
    }
    let since = |rank: &RankDoing| match &rank.doing {
        Doing::Still(now) => Some((now.in_mpi, now.since_ms.max(awake_ms))),
        _ => None,
    };
    let latest = if let Some(cause) = &now.cause {
        let graph = WaitGraph::new(now.size, &now.ranks);
        let mut ranks = cause.ranks.clone();
        // Those of a deadlock are proven to wait, whoever comes later.
        if !matches!(cause.kind, HangKind::Deadlock | HangKind::Mismatch) {
            ranks.extend(graph.waiting_for(|rank| cause.ranks.contains(&rank)));
        }
        let doing = ranks.iter().filter_map(|rank| graph.doing(*rank));
        doing.filter_map(since).map(|(_, since)| since).max()?
    } else {
        let here = now.ranks.iter().filter(|rank| rank.doing != Doing::Ended);
        let all = here.map(|rank| since(rank).filter(|(in_mpi, _)| *in_mpi));
        all.collect::<Option<Vec<_>>>()?.into_iter().map(|(_, since)| since).max()?
    };
    let still_ms = now.looked_ms.saturating_sub(latest);
    if u128::from(still_ms) < span.as_millis() {
        return None;
    }
    let sentence = now.cause.as_ref().map_or_else(
        || {
            let groups: Vec<&str> =
                now.groups.iter().take(2).map(|group| &*group.sentence).collect();
            format!(
                "all ranks are in MPI, and what they wait for is not clear: {}",
                groups.join("; ")
            )
        },
        |cause| cause.sentence.clone(),
    );
    Some(Stall { still_s: still_ms as f64 * 1e-3, sentence })
}
