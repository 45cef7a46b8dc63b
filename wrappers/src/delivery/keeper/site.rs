//! What does the site get of a job whose ranks did not tell it together? A record of what those of this host left, made
//! by the keeper that has rank 0. The other ranks are missing in it.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use gyan_results::{
    Ending, RankProfile, Reduction, Summary, end_of_process, parse_rank, rank_file_name,
};

use super::ranks::{Rank, RankStage};
use super::records;
use crate::delivery::record::SiteRecord;
use crate::sys::locks::held;

/// Where the record goes, and the job as far as it is known; none where there is nothing to record.
pub(super) fn left_by(ranks: &[Arc<Rank>]) -> Option<(SiteRecord, Summary)> {
    let first = ranks.iter().find(|rank| rank.hello.rank == 0)?;
    let record = first.hello.record.clone()?;
    // Without it the ranks have told, or nobody wants to know.
    profile_left_by(first)?;
    let mut reduction = Reduction::default();
    for profile in ranks.iter().filter_map(|rank| profile_left_by(rank)) {
        reduction.add(&rank_file_name(profile.rank), &profile);
    }
    Some((record, reduction.finish()?))
}

/// What a rank knew last, if it has ended and nobody else has that.
fn profile_left_by(rank: &Rank) -> Option<RankProfile> {
    let RankStage::Gone(ended_ms, status) = *held(&rank.stage) else { return None };
    let text = records::latest(held(&rank.records).as_ref()?).ok()??;
    let mut profile = parse_rank(&text).ok()?;
    if profile.end.how == Ending::Running {
        let out_of_memory = rank.out_of_memory.load(std::sync::atomic::Ordering::Relaxed);
        profile.end = end_of_process(Ending::Killed, status, out_of_memory);
        let ended = UNIX_EPOCH + Duration::from_millis(ended_ms);
        let started = humantime::parse_rfc3339(&profile.job.started).ok()?;
        let lasted_s = ended.duration_since(started).unwrap_or_default().as_secs_f64();
        let known_s = profile.job.elapsed_s;
        if lasted_s > known_s {
            profile.job.elapsed_s = lasted_s;
            profile.job.known_until_s = Some(known_s);
        }
    }
    Some(profile)
}
