//! `gyan archive`: what a site keeps of its jobs.

mod report;

use crate::cli::ArchiveCommand;
use crate::error::Error;

pub(crate) fn archive(command: &ArchiveCommand) -> Result<u8, Error> {
    match command {
        ArchiveCommand::Report(options) => report::report(options),
    }
}
