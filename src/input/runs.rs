//! Several runs: to be compared, or to see how they grow.

use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::Summary;

use crate::error::{Error, reason};
use crate::input::source::Source;
use crate::input::{directory, packed, page};

/// What is known of a run, of all ranks together.
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) summary: Summary,
    /// Whether all ranks are in it, to their end. What is missing was said on stderr.
    pub(crate) is_complete: bool,
}

/// The runs at `paths`: each is a run directory, a pack, a page, a summary, or a directory of runs, which has one of these for
/// each (as `gyan run --repeat` leaves them) and gives them in the order of their names.
///
/// # Errors
/// Where there is no run, or it cannot be read.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for path in paths {
        for path in runs_in(path)? {
            let source = Source::open(&path)?;
            let summary = source.summarize()?;
            let is_complete = source.warn_of_gaps(&summary);
            runs.push(Run { path, summary, is_complete });
        }
    }
    Ok(runs)
}

/// The run at `path`, or the runs in it.
fn runs_in(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() || is_run(path) {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| Error::new(path.display(), reason(&error), "name runs");
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let mut runs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    runs.retain(|path| {
        if path.is_dir() { is_run(path) } else { packed::is_named_so(path) || page::is_page(path) }
    });
    // run-2 before run-10.
    runs.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digits = |c: char| c.is_ascii_digit();
        let number: Option<u64> = name
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .split(|c| !digits(c))
            .next()
            .and_then(|digits| digits.parse().ok());
        (name.split(digits).next().unwrap_or_default().to_owned(), number, name)
    });
    if runs.is_empty() {
        let why = "holds neither rank profiles (rank-NNNNNN.json) nor runs";
        return Err(Error::new(
            path.display(),
            why,
            "name run directories, packs, summaries or pages",
        ));
    }
    Ok(runs)
}

fn is_run(directory: &Path) -> bool {
    directory::has_profiles(directory) || directory.join(gyan_results::SUMMARY_FILE).is_file()
}
