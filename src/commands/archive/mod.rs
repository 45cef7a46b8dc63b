//! `gyan archive`: what a site keeps of its jobs.

mod ingest;
mod job;
mod report;

use crate::cli::ArchiveCommand;
use crate::error::Error;

pub(crate) fn archive(command: &ArchiveCommand) -> Result<u8, Error> {
    match command {
        ArchiveCommand::Ingest(options) => ingest::ingest(options),
        ArchiveCommand::Job(options) => job::job(options),
        ArchiveCommand::Report(options) => report::report(options),
    }
}
