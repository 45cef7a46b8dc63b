//! `gyan now`: what every rank of a running job is doing, who waits for whom, and why it does not go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gyan_results::is_live_file_name;

use crate::cli::NowOptions;
use crate::error::Error;
use crate::input::directory::Directory;
use crate::launch::keepers;
use crate::{DONE, INCOMPLETE, answers, hang, print, stacks};

pub(crate) fn now(options: &NowOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let path = match &options.directory {
        Some(path) => path.clone(),
        None => newest()?,
    };
    keepers::write_now(&path);
    let directory = Directory::open(&path)?;
    directory.warn_of_silence();
    let Some(mut now) = hang::of_directory(&directory) else {
        let remedy = "see what is known: gyan report DIR";
        return Err(Error::new(
            path.display().to_string(),
            "no rank is seen: they have ended, are still in MPI_Init, or run with GYAN_KEEPER=off",
            remedy,
        ));
    };
    if options.stacks {
        (now.stacks, now.without_stack) = stacks::taken(&directory, &now.ranks);
    }
    print::listing(format, &answers::now(&now, &path), &now)?;
    Ok(if now.ranks.len() as u64 == u64::from(now.size) { DONE } else { INCOMPLETE })
}

/// The run directory below the current one whose live file was written last.
fn newest() -> Result<PathBuf, Error> {
    let entries = fs::read_dir(".").into_iter().flatten().flatten();
    let runs = entries.filter_map(|entry| Some((written(&entry.path())?, entry.path())));
    let newest = runs.max_by_key(|(written, _)| *written).map(|(_, path)| path);
    newest.ok_or_else(|| {
        let remedy = "name its directory: gyan now DIR";
        Error::new("no run", "there is no directory of a running job below this one", remedy)
    })
}

fn written(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let lives = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_live_file_name));
    lives.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}
