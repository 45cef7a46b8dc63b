//! Several runs, to compare them or to see how they grow.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::Summary;

use crate::error::{Error, reason};
use crate::input::source::Source;
use crate::input::{directory, packed, page};
use crate::say;

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
/// A run that is named twice, as by a glob that names a directory and a run in it, counts once.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    let mut places = BTreeSet::new();
    let mut again = Vec::new();
    for path in paths {
        for path in runs_in(path)? {
            if fs::canonicalize(&path).is_ok_and(|place| !places.insert(place)) {
                again.push(format!("{}: is named twice, and counts once", path.display()));
                continue;
            }
            let source = Source::open(&path)?;
            let summary = source.summarize()?;
            if let Some(same) = runs.iter().find(|run| is_same(&run.summary, &summary)) {
                let same = same.path.display();
                again.push(format!(
                    "{}: is the same run as {same}, and counts once",
                    path.display()
                ));
                continue;
            }
            let is_complete = source.warn_of_gaps(&summary);
            runs.push(Run { path, summary, is_complete });
        }
    }
    say::warn_of(again, |more| format!("{more} more runs are named twice"));
    Ok(runs)
}

/// Whether it is one run, perhaps in another form: a directory and its pack, a summary, a page, or a copy.
fn is_same(one: &Summary, other: &Summary) -> bool {
    let key = |of: &Summary| (of.job.id.clone(), of.job.started.clone(), of.hosts.clone());
    key(one) == key(other) && one == other
}

/// The run at `path`, or the runs in it and in the directories in it.
pub(crate) fn runs_in(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut runs = Vec::new();
    let mut left_out = Vec::new();
    let failed = |error: io::Error| Error::new(path.display(), reason(&error), "name runs");
    collect(path, DEPTH, &entries, &mut runs, &mut left_out).map_err(failed)?;
    say::warn_of(left_out, |more| format!("{more} more directories are left out"));
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

/// What is in a directory.
fn entries(path: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
}

/// A directory inside that cannot be read is left out: it need not be a run at all.
fn collect(
    path: &Path,
    depth: usize,
    entries: &dyn Fn(&Path) -> io::Result<Vec<PathBuf>>,
    runs: &mut Vec<PathBuf>,
    left_out: &mut Vec<String>,
) -> io::Result<()> {
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
    let may_be_run =
        |path: &PathBuf| path.is_dir() || packed::is_named_so(path) || page::is_of_run(path);
    let mut inside: Vec<PathBuf> = entries(path)?.into_iter().filter(may_be_run).collect();
    inside.sort_by_cached_key(|path| natural(path));
    for path in inside {
        if let Err(error) = collect(&path, depth - 1, entries, runs, left_out) {
            left_out.push(format!("{}: {}; left out", path.display(), reason(&error)));
        }
    }
    Ok(())
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
        // Each is a run of its own.
        profile.job.id = directory.display().to_string();
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
        for form in [&file, &html, &directory] {
            assert_eq!(open(std::slice::from_ref(form)).unwrap()[0].summary, of_directory.summary);
        }
        // So it is one run, whatever it is called.
        let runs = open(&[file, html, directory.clone()]).unwrap();
        assert_eq!(names(&runs, place.path()), ["kept.json"]);
        // A directory of which only the summary is left.
        for rank in 0..2 {
            fs::remove_file(directory.join(gyan_results::rank_file_name(rank))).unwrap();
        }
        fs::rename(place.path().join("kept.json"), directory.join(SUMMARY_FILE)).unwrap();
        assert_eq!(open(&[directory]).unwrap()[0].summary, of_directory.summary);
    }

    #[test]
    fn a_run_that_is_named_several_times_counts_once() {
        let place = tempfile::tempdir().unwrap();
        let all = place.path().join("all");
        (1..=3).for_each(|at| run(&all.join(format!("run-{at}"))));
        let (one, copy) = (all.join("run-1"), place.path().join("copy"));
        std::os::unix::fs::symlink(&one, place.path().join("link")).unwrap();
        fs::create_dir(&copy).unwrap();
        for rank in 0..2 {
            let name = gyan_results::rank_file_name(rank);
            fs::copy(one.join(&name), copy.join(&name)).unwrap();
        }
        let runs = open(&[all.clone(), one.clone(), one, place.path().join("link"), copy]).unwrap();
        assert_eq!(names(&runs, &all), ["run-1", "run-2", "run-3"]);
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_left_out_and_named() {
        let place = tempfile::tempdir().unwrap();
        let all = place.path();
        for name in ["run-1", "run-2"] {
            run(&all.join(name));
        }
        fs::create_dir(all.join("perm")).unwrap();
        // Root may read everything, so the refusal is made up.
        let refusing = |path: &Path| {
            if path.ends_with("perm") {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            entries(path)
        };
        let (mut runs, mut left_out) = (Vec::new(), Vec::new());
        collect(all, DEPTH, &refusing, &mut runs, &mut left_out).unwrap();
        assert_eq!(runs, [all.join("run-1"), all.join("run-2")]);
        let line = format!("{}: permission denied; left out", all.join("perm").display());
        assert_eq!(left_out, [line]);
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
