//! `gyan reduce`: the profiles of a run directory, or of a pack, to its `summary.json`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use gyan_results::{SUMMARY_FILE, write_summary};

use crate::cli::ReduceOptions;
use crate::error::Error;
use crate::input::page::is_page;
use crate::input::source::Source;
use crate::{DONE, INCOMPLETE, output};

pub(crate) fn reduce(options: &ReduceOptions) -> Result<u8, Error> {
    let source = Source::open_all(&options.directories)?;
    if is_page(source.path()) {
        let remedy = "there is nothing left to reduce; gyan report shows it";
        return Err(Error::new(source.path().display(), "is a page, and holds a summary", remedy));
    }
    let path = source.summary_file();
    if source.is_empty() && path.exists() {
        return Err(Error::new(
            source.path().display(),
            format!("holds {SUMMARY_FILE} and no rank profiles"),
            "there is nothing left to reduce",
        ));
    }
    if let Some(summary) = source.reduced_in_mpi() {
        let path = source.path().display();
        let ranks = summary.ranks.reduced;
        let what =
            format!("the {ranks} ranks reduced their profiles themselves, to {SUMMARY_FILE}");
        return Err(Error::new(
            path,
            what,
            "there is nothing left to reduce; gyan report shows it",
        ));
    }
    let summary = source.summarize()?;
    let complete = source.warn_of_gaps(&summary);
    // Under a temporary name first: a reader never sees half of it.
    let temporary = path.with_file_name(format!(".{SUMMARY_FILE}.{}", std::process::id()));
    let written = File::create_new(&temporary).map(BufWriter::new).and_then(|mut file| {
        write_summary(&mut file, &summary)?;
        file.flush()?;
        fs::rename(&temporary, &path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(Error::io(
            &path,
            &error,
            "make room, or copy the directory to where you may write",
        ));
    }
    output::say(format_args!(
        "{} of {} ranks reduced to {}",
        summary.ranks.reduced,
        summary.ranks.expected,
        path.display()
    ))?;
    Ok(if complete { DONE } else { INCOMPLETE })
}
