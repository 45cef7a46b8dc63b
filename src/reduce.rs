//! `gyan reduce`: the profiles of a run directory to its `summary.json`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use gyan_results::{SUMMARY_FILE, write_summary};

use crate::cli::ReduceOptions;
use crate::error::Error;
use crate::{DONE, INCOMPLETE, directory};

pub(crate) fn reduce(options: &ReduceOptions) -> Result<u8, Error> {
    let directory = &options.directory;
    if !directory::has_profiles(directory) && directory.join(SUMMARY_FILE).exists() {
        return Err(Error::new(
            directory.display(),
            format!("holds {SUMMARY_FILE} and no rank profiles"),
            "there is nothing left to reduce",
        ));
    }
    let summary = directory::summarize(directory)?;
    let complete = directory::warn_of_gaps(directory, &summary);
    let path = directory.join(SUMMARY_FILE);
    // Under a temporary name first: a reader never sees half of it.
    let temporary = directory.join(format!(".{SUMMARY_FILE}.{}", std::process::id()));
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
    anstream::println!(
        "{} of {} ranks reduced to {}",
        summary.ranks.reduced,
        summary.ranks.expected,
        path.display()
    );
    Ok(if complete { DONE } else { INCOMPLETE })
}
