//! Several runs, for whatever compares them: directories, packs, summaries in pages, and directories of those.

use std::path::{Path, PathBuf};

use gyan_results::Summary;

use crate::error::{Error, reason};
use crate::input::source::Source;

/// One run.
pub(crate) struct Run {
    /// As it was named.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) summary: Summary,
}

/// The runs at these places, in their order; a directory that has runs and no profiles stands for them, by their names.
pub(crate) fn open(places: &[PathBuf]) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for place in places {
        let inner = if place.is_dir() { inner(place)? } else { Vec::new() };
        let each = if inner.is_empty() { vec![place.clone()] } else { inner };
        for path in each {
            let summary = Source::open(&path)?.summarize()?;
            runs.push(Run { name: path.display().to_string(), path, summary });
        }
    }
    Ok(runs)
}

/// The run directories and packs in a directory that is none itself.
fn inner(place: &Path) -> Result<Vec<PathBuf>, Error> {
    let source = Source::open(place)?;
    if !source.is_empty() || source.reduced_in_mpi().is_some() || source.summary_file().exists() {
        return Ok(Vec::new());
    }
    let failed = |error| Error::new(place.display(), reason(&error), "name the runs one by one");
    let mut inner = Vec::new();
    for entry in place.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_run = if path.is_dir() {
            Source::open(&path)
                .is_ok_and(|source| !source.is_empty() || source.summary_file().exists())
        } else {
            crate::input::packed::is_named_so(&path)
        };
        if is_run {
            inner.push(path);
        }
    }
    inner.sort();
    Ok(inner)
}
