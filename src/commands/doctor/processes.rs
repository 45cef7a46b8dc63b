//! Which programs did a command run, according to the notes of libgyan.so in each of them?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{ProcessNote, ProcessStart};

use crate::launch::executable::is_mpi_library;

/// A program into which libgyan.so was loaded.
#[derive(Debug, Default)]
pub(super) struct LoadedProcess {
    pub(super) start: ProcessStart,
    /// The functions of MPI that came through libgyan.so.
    pub(super) called: BTreeSet<String>,
    /// The objects loaded at its end; empty when the program did not end by itself.
    at_end: Vec<String>,
}

/// All programs that left notes in a directory; those of a host in the order in which they started.
pub(super) fn read(directory: &Path) -> Vec<LoadedProcess> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort_by_cached_key(|path| begun(path));
    let texts = paths.iter().map(|path| fs::read(path).unwrap_or_default());
    texts.filter_map(|text| process(&String::from_utf8_lossy(&text))).collect()
}

/// The clock of the host when the program began, which ends the name of its file.
fn begun(path: &Path) -> Option<u64> {
    path.to_str()?.rsplit('-').next()?.parse().ok()
}

/// An incomplete line is left out: the program was killed.
fn process(text: &str) -> Option<LoadedProcess> {
    let mut notes = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let ProcessNote::Loaded(start) = notes.next()? else { return None };
    let mut process = LoadedProcess { start, ..LoadedProcess::default() };
    for note in notes {
        match note {
            ProcessNote::Called(function) => _ = process.called.insert(function),
            ProcessNote::Ended(objects) => process.at_end = objects,
            ProcessNote::Loaded(_) => {}
        }
    }
    Some(process)
}

impl LoadedProcess {
    /// What the program is called.
    pub(super) fn name(&self) -> &str {
        file_name(&self.start.program)
    }

    /// Whether it runs the file `path`, even under another path (containers) or through a link.
    pub(super) fn runs(&self, path: &Path) -> bool {
        let own = [&self.start.program[..], self.start.arguments.first().map_or("", |word| word)];
        fs::canonicalize(path).is_ok_and(|path| path == Path::new(own[0]))
            || path
                .file_name()
                .is_some_and(|name| own.map(file_name).contains(&&*name.to_string_lossy()))
    }

    pub(super) fn mpi(&self) -> Option<&str> {
        let libraries = self.start.objects.iter().chain(&self.at_end).skip(1);
        libraries.map(String::as_str).find(|library| is_mpi_library(library))
    }

    /// The MPI library that is loaded before libgyan.so, which then sees no calls.
    pub(super) fn mpi_in_front(&self) -> Option<&str> {
        let front = self.start.objects.get(1..self.start.gyan?)?;
        front.iter().map(String::as_str).find(|library| is_mpi_library(library))
    }

    /// Whether `GYAN=off` was set for it.
    pub(super) fn is_off(&self) -> bool {
        self.start.settings.iter().any(|setting| {
            let value = setting.strip_prefix("GYAN=").map(str::to_ascii_lowercase);
            value.is_some_and(|value| super::OFF.contains(&value.as_str()))
        })
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(objects: &[&str], gyan: usize, more: &[ProcessNote]) -> LoadedProcess {
        let start = ProcessStart {
            program: "/usr/bin/python3.11".into(),
            arguments: vec!["/usr/bin/python3".into()],
            objects: objects.iter().map(|object| (*object).to_owned()).collect(),
            gyan: Some(gyan),
            ..ProcessStart::default()
        };
        let notes = [&[ProcessNote::Loaded(start)], more].concat();
        let lines: Vec<String> =
            notes.iter().map(|note| serde_json::to_string(note).unwrap()).collect();
        process(&format!("{}\n{{\"called\":\"MPI_Fin", lines.join("\n"))).unwrap()
    }

    #[test]
    fn what_a_process_noted_is_read_as_far_as_it_came() {
        let mpi = "/usr/lib/libmpi.so.40".to_owned();
        let (python, gyan) = ("/usr/bin/python3.11", "/lib/libgyan.so");
        let process = noted(&[python, gyan], 1, &[ProcessNote::Called("MPI_Init".into())]);
        assert_eq!((process.name(), process.mpi()), ("python3.11", None));
        assert!(process.called.contains("MPI_Init") && process.called.len() == 1);
        assert!(process.runs(Path::new("/elsewhere/python3")));
        assert!(!process.runs(Path::new("/usr/bin/perl")));
        let process = noted(&[python, gyan], 1, &[ProcessNote::Ended(vec![python.into(), mpi])]);
        assert_eq!(process.mpi(), Some("/usr/lib/libmpi.so.40"));
        assert_eq!(process.mpi_in_front(), None);
    }

    #[test]
    fn an_mpi_that_is_preloaded_before_gyan_is_known_by_the_order_of_the_objects() {
        let (gyan, mpi) = ("/lib/libgyan.so", "/lib/libmpi.so.40");
        assert_eq!(noted(&["./app", "vdso", mpi, gyan], 3, &[]).mpi_in_front(), Some(mpi));
        assert_eq!(noted(&["./app", "vdso", gyan, mpi], 2, &[]).mpi_in_front(), None);
        // A program that contains gyan.
        assert_eq!(noted(&["./app", "vdso", mpi], 0, &[]).mpi_in_front(), None);
    }

    #[test]
    fn a_file_that_is_empty_tells_nothing() {
        assert!(process("").is_none());
    }
}
