//! Profiles in the order of their ranks, reduced by a binary tree over the ranks: rank 0 with rank 1, pairs
//! with pairs, and so on. Doubles are added up in that order whatever is missing, on any number of threads, and
//! also in MPI, where rank r merges r + 1, then r + 2, r + 4 ... of a binomial tree.
//!
//! A merged reduction is reused for the profiles that follow: it already has their rows.

use std::collections::BTreeSet;

use super::{JobReduction, Reduction};
use crate::{LeftOut, RankProfile};

/// Reduces profiles that come in the order of their ranks. In another order only the rounding of doubles
/// differs.
#[derive(Debug, Default)]
pub struct ReductionInOrder {
    /// By job: parts of the tree that wait for their sibling, from low ranks to high.
    jobs: Vec<(String, Vec<JobReduction>)>,
    left_out: BTreeSet<LeftOut>,
    spare: Vec<JobReduction>,
}

impl ReductionInOrder {
    /// Adds the profile that `file` held.
    pub fn add(&mut self, file: &str, profile: &RankProfile) {
        let rank = profile.rank;
        let at = self.jobs.iter().position(|(id, _)| *id == profile.job.id).unwrap_or_else(|| {
            self.jobs.push((profile.job.id.clone(), Vec::new()));
            self.jobs.len() - 1
        });
        let Some((_, parts)) = self.jobs.get_mut(at) else { return };
        // The next rank is further away from the last two than they are from each other.
        while let [.., one, last] = parts.as_slice()
            && distance(one.general.lowest_rank, last.general.lowest_rank)
                < distance(last.general.lowest_rank, rank)
        {
            self.spare.extend(merge_last(parts, &mut self.left_out));
        }
        parts.push(match self.spare.pop() {
            Some(mut spare) => {
                spare.set(file, profile);
                spare
            }
            None => JobReduction::of(file, profile),
        });
    }

    /// Records that `file` could not be used.
    pub fn leave_out(&mut self, file: &str, reason: &str) {
        self.left_out.insert(LeftOut { file: file.into(), reason: reason.into() });
    }

    /// The reduction of everything added.
    pub fn finish(mut self) -> Reduction {
        let mut jobs = Vec::new();
        for (id, mut parts) in self.jobs {
            while parts.len() > 1 {
                merge_last(&mut parts, &mut self.left_out);
            }
            jobs.extend(parts.pop().map(|job| (id, job)));
        }
        Reduction { jobs: jobs.into_iter().collect(), left_out: self.left_out }
    }
}

/// The level of the lowest tree node above both ranks.
fn distance(one: u32, other: u32) -> u32 {
    u32::BITS - (one ^ other).leading_zeros()
}

/// Merges the last part into the one before. Returns its memory for reuse.
fn merge_last(
    parts: &mut Vec<JobReduction>,
    left_out: &mut BTreeSet<LeftOut>,
) -> Option<JobReduction> {
    let last = parts.pop()?;
    parts.last_mut()?.merge_others(&last, left_out);
    Some(last)
}
