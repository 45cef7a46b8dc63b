//! `gyan archive ingest`: puts the records of a spool into an archive.

use std::fmt::Write as _;

use crate::archive::ingest::{self, Ingested};
use crate::archive::spool::Spool;
use crate::archive::store;
use crate::cli::IngestOptions;
use crate::document::plural;
use crate::error::{Error, reason};
use crate::words::integer;
use crate::{DONE, INCOMPLETE, output, say};

pub(super) fn ingest(options: &IngestOptions) -> Result<u8, Error> {
    let spool = Spool::open(&options.spool)?;
    let store = store::open(&options.archive)?;
    let done = ingest::ingest(&spool, store.as_ref(), options.most_of_user).map_err(|error| {
        let remedy =
            "what was taken from the spool is safe, and the next ingest goes on from there";
        let what = format!("{} to {}", options.spool.display(), options.archive);
        Error::new(what, reason(&error), remedy)
    })?;
    let refused = done.refused.iter().map(|((user, refusal), number)| {
        format!("user {user}: {number} record{} refused: {}", plural(*number), refusal.sentence())
    });
    let refused: Vec<String> = refused.collect();
    say::warn_of(&refused, |more| format!("{more} more; see {}/refused", options.spool.display()));
    output::say(summary(&done))?;
    Ok(if done.refused.is_empty() && done.left == 0 { DONE } else { INCOMPLETE })
}

fn summary(done: &Ingested) -> String {
    let number = |number: usize| integer(number as i128);
    let refused: u64 = done.refused.values().sum();
    let mut line = format!("{} job{} added", number(done.jobs), plural(done.jobs as u64));
    // Writing to a string cannot fail.
    if done.known > 0 {
        let _ = write!(line, ", {} known already", number(done.known));
    }
    if refused > 0 {
        let _ = write!(line, ", {} refused", integer(refused.into()));
    }
    if done.left > 0 {
        let _ = write!(line, ", {} left for the next time", number(done.left));
    }
    if done.compacted > 0 {
        let _ = write!(line, "; {} small files became fewer", number(done.compacted));
    }
    line
}
