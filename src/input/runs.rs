//! Several runs, to compare them or to see how they grow.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::Summary;

use crate::error::{Error, reason};
use crate::input::source::Source;
use crate::input::{directory, packed, page};

/// Runs are searched for in directories of directories (`gyan run --alternate`), but no deeper.
const DEPTH: usize = 2;

/// What is known of a run, of all ranks together.
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) summary: Summary,
    /// Whether it has all ranks, up to their end. Missing ones were reported on stderr.
    pub(crate) is_complete: bool,
}

/// The runs at `paths`: each is a run directory, a pack, a page, a summary, or a directory of runs, which holds
/// one of these for each run (as `gyan run --repeat` leaves them) and yields them in the order of their names.
///
/// # Errors
/// When there is no run, or it cannot be read.
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

/// The run at `path`, or the runs in it and in the directories in it.
pub(super) fn runs_in(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut runs = Vec::new();
    collect(path, DEPTH, &mut runs)
        .map_err(|error| Error::new(path.display(), reason(&error), "name runs"))?;
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

fn collect(path: &Path, depth: usize, runs: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_run = |path: &Path| {
        directory::has_profiles(path) || path.join(gyan_results::SUMMARY_FILE).is_file()
    };
    if !path.is_dir() || is_run(path) {
        runs.push(path.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || packed::is_named_so(&path) || page::is_of_run(&path) {
            inside.push(path);
        }
    }
    inside.sort_by_cached_key(|path| natural(path));
    inside.iter().try_for_each(|path| collect(path, depth - 1, runs))
}

/// The key that sorts run-2 before run-10: the text before the first number, the number, the whole name.
fn natural(path: &Path) -> (String, Option<u64>, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let begin = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (before, rest) = name.split_at(begin);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (before.to_owned(), rest[..end].parse().ok(), name)
}

#[cfg(test)]
mod tests {
    use gyan_results::{SUMMARY_FILE, read_rank, write_summary};

    use super::*;

    /// Of two ranks.
    fn run(directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("results-schema/examples/rank.json");
        let mut profile = read_rank(&example).unwrap();
        profile.size = 2;
        for rank in 0..2 {
            profile.rank = rank;
            let file = directory.join(gyan_results::rank_file_name(rank));
            fs::write(file, serde_json::to_string(&profile).unwrap()).unwrap();
        }
    }

    fn names(runs: &[Run], directory: &Path) -> Vec<String> {
        let name = |run: &Run| run.path.strip_prefix(directory).unwrap().display().to_string();
        runs.iter().map(name).collect()
    }

    #[test]
    fn a_directory_of_runs_gives_them_in_the_order_of_their_numbers() {
        let place = tempfile::tempdir().unwrap();
        // Groups of runs, as gyan run --alternate leaves them, beside runs.
        for name in ["run-10", "run-2", "run-1", "set=8/run-1", "nothing"] {
            let inner = place.path().join(name);
            if name == "nothing" { fs::create_dir(inner).unwrap() } else { run(&inner) }
        }
        fs::write(place.path().join("notes.txt"), "no run").unwrap();
        let runs = open(&[place.path().to_owned()]).unwrap();
        assert_eq!(names(&runs, place.path()), ["run-1", "run-2", "run-10", "set=8/run-1"]);
        assert!(runs.iter().all(|run| run.summary.ranks.reduced == 2));
    }

    #[test]
    fn a_run_is_the_same_as_directory_summary_and_page() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("run");
        run(&directory);
        let of_directory = open(std::slice::from_ref(&directory)).unwrap().remove(0);
        let (file, html) = (place.path().join("kept.json"), place.path().join("kept.html"));
        write_summary(&mut fs::File::create(&file).unwrap(), &of_directory.summary).unwrap();
        let (element, _) = page::element(&of_directory.summary).unwrap();
        fs::write(&html, format!("<!DOCTYPE html>{element}")).unwrap();
        let runs = open(&[file, html, directory.clone()]).unwrap();
        assert_eq!(names(&runs, place.path()), ["kept.json", "kept.html", "run"]);
        assert!(runs.iter().all(|run| run.summary == of_directory.summary));
        // A directory of which only the summary is left.
        for rank in 0..2 {
            fs::remove_file(directory.join(gyan_results::rank_file_name(rank))).unwrap();
        }
        fs::rename(place.path().join("kept.json"), directory.join(SUMMARY_FILE)).unwrap();
        assert_eq!(open(&[directory]).unwrap()[0].summary, of_directory.summary);
    }

    #[test]
    fn a_run_that_lacks_ranks_is_opened_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        run(place.path());
        let runs = open(&[place.path().to_owned()]).unwrap();
        assert!(runs[0].is_complete);
        fs::write(place.path().join("rank-000001.json"), "{").unwrap();
        let runs = open(&[place.path().to_owned()]).unwrap();
        assert_eq!((runs[0].summary.ranks.reduced, runs[0].is_complete), (1, false));
    }

    #[test]
    fn what_is_no_run_is_refused_in_one_line() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("empty");
        fs::create_dir(&inner).unwrap();
        let (text, other) = (place.path().join("a.json"), place.path().join("rank.json"));
        fs::write(&text, "{\"schema\":\"gyan.summary/9\"}").unwrap();
        fs::write(&other, "{\"schema\":\"gyan.rank/1\"}").unwrap();
        for (path, why) in [
            (&inner, "holds neither rank profiles"),
            (&place.path().join("gone"), "no such file"),
            (&text, "has schema gyan.summary/9, this gyan reads up to gyan.summary/1; update gyan"),
            (&other, "has schema gyan.rank/1 instead of schema gyan.summary/1"),
        ] {
            let error = open(std::slice::from_ref(path)).err().unwrap().to_string();
            let whole = format!("{}: {why}", path.display());
            assert!(error.starts_with(&whole), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
