//! `gyan archive`: what a site keeps of its jobs.

mod ingest;

use crate::cli::ArchiveCommand;
use crate::error::Error;

pub(crate) fn archive(command: &ArchiveCommand) -> Result<u8, Error> {
    match command {
        ArchiveCommand::Ingest(options) => ingest::ingest(options),
    }
}
