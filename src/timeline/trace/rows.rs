//! Each recorded call with what is known of it, for tables.

use std::io;

use gyan_results::{TimelineEvent, TimelineHeader, TimelineKind, TimelinePeer};
use rayon::prelude::*;

use super::RankTrace;
use crate::timeline::{Timelines, at_a_time, parts};

/// A call that a rank recorded.
pub(crate) struct TimelineCall<'a> {
    pub(crate) job: &'a str,
    pub(crate) rank: u32,
    pub(crate) host: &'a str,
    /// The first that called MPI is 0.
    pub(crate) thread: u32,
    pub(crate) function: &'a str,
    /// In ns after the first event of the run.
    pub(crate) begun_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) communicator: Option<&'a str>,
    /// The other rank or the root, in the communicator.
    pub(crate) peer: Option<u32>,
    /// None without one, and for `MPI_ANY_TAG`.
    pub(crate) tag: Option<i32>,
    pub(crate) bytes: u64,
    /// The line that it was called from.
    pub(crate) place: Option<&'a str>,
}

impl Timelines {
    /// Each call that is shown, by rank, in the order in which a rank recorded them.
    pub(crate) fn each_call(
        &self,
        take: &mut dyn FnMut(&TimelineCall) -> io::Result<()>,
    ) -> io::Result<()> {
        for ranks in self.ranks.chunks(at_a_time()) {
            let read: io::Result<Vec<_>> = ranks.par_iter().map(|rank| self.read(*rank)).collect();
            for (header, events) in read? {
                self.calls_of_rank(&header, &events, take)?;
            }
        }
        Ok(())
    }

    fn calls_of_rank(
        &self,
        header: &TimelineHeader,
        events: &[TimelineEvent],
        take: &mut dyn FnMut(&TimelineCall) -> io::Result<()>,
    ) -> io::Result<()> {
        let trace = RankTrace::new(self, header);
        let shown = parts(header, events).into_iter().filter(|part| self.shows(part.iteration));
        for event in shown.flat_map(|part| part.events) {
            let TimelineKind::Call(function) = event.kind else { continue };
            let call = trace.call(function, event);
            take(&TimelineCall {
                job: &header.job,
                rank: header.rank,
                host: &header.host,
                thread: call.thread,
                function: call.name,
                begun_ns: call.begun_ns,
                ended_ns: call.ended_ns,
                communicator: call.communicator.map(|of| of.name),
                peer: match call.peer {
                    TimelinePeer::Rank(rank) => Some(rank),
                    TimelinePeer::None | TimelinePeer::Null | TimelinePeer::Any => None,
                },
                tag: Some(call.tag).filter(|tag| *tag != TimelineEvent::NO_TAG && *tag != -1),
                bytes: call.bytes,
                place: call.place.filter(|place| !place.is_empty()),
            })?;
        }
        Ok(())
    }
}
