//! What the user asked for and what ran, as JSON Lines, so that a tune that was stopped continues where it was.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gyan_results::{Assignment, Summary, Took};
use serde::{Deserialize, Serialize};

use crate::error::{Error, reason};
use crate::launch::launcher;
use crate::output;
use crate::tuning::Stage;

pub(super) const FILE: &str = "tune.jsonl";
const SCHEMA: &str = "gyan.tune-runs/2";

/// What decides what is tried and how it is measured.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // options of a command line
pub(super) struct TuneRequest {
    pub(super) command: Vec<String>,
    /// As by `--set`.
    pub(super) set: Vec<String>,
    /// As by `--env`.
    pub(super) env: Vec<String>,
    /// Whether findings nominate settings.
    pub(super) auto: bool,
    pub(super) together: bool,
    pub(super) metric: String,
    pub(super) higher: bool,
    pub(super) same_output: bool,
    pub(super) check: Option<String>,
}

/// What a run was made with. Runs that were made with something else are not compared: `module load` is enough.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct MadeWith {
    /// As the MPI library names itself, with its version; empty for a run that left no profile.
    library: String,
    library_path: String,
    /// Sorted.
    hosts: Vec<String>,
    /// The file of the program or launcher, and the variables that choose an MPI library or set it.
    environment: BTreeMap<String, String>,
}

/// How the names of such variables begin.
const VARIABLES: [&str; 14] = [
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OMP_",
    "OMPI_",
    "PRTE_MCA_",
    "PMIX_MCA_",
    "MPICH_",
    "MPIR_CVAR_",
    "I_MPI_",
    "MV2_",
    "UCX_",
    "FI_",
    "PSM2_",
    "PSM3_",
];

impl MadeWith {
    /// What the next run is made with, as far as that is known before it.
    pub(super) fn here(program: &OsStr) -> MadeWith {
        let is_one = |name: &str| VARIABLES.iter().any(|start| name.starts_with(start));
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        let variables = env::vars_os().map(|(name, value)| (text(&name), text(&value)));
        let mut environment: BTreeMap<String, String> =
            variables.filter(|(name, _)| is_one(name)).collect();
        if let Some(file) = launcher::find_executable(program) {
            let file = fs::canonicalize(&file).unwrap_or(file);
            environment.insert("the program".into(), text(file.as_os_str()));
        }
        MadeWith { environment, ..MadeWith::default() }
    }

    /// The same, of a run that was made.
    pub(super) fn of_run(&self, summary: &Summary) -> MadeWith {
        MadeWith {
            library: summary.mpi.library.clone(),
            library_path: summary.mpi.library_path.clone(),
            hosts: summary.hosts.clone(),
            environment: self.environment.clone(),
        }
    }

    /// In what this differs from `before`: what, its value then, and its value now. None where one of them is not known.
    pub(super) fn difference(&self, before: &MadeWith) -> Option<String> {
        let said = |what: &str, before: &str, now: &str| {
            let shown =
                |value: &str| if value.is_empty() { "not set".into() } else { value.to_owned() };
            Some(format!("{what} was {}, and is {}", shown(before), shown(now)))
        };
        let names = before.environment.keys().chain(self.environment.keys());
        let value = |of: &MadeWith, name| of.environment.get(name).cloned().unwrap_or_default();
        for name in names {
            let (before, now) = (value(before, name), value(self, name));
            if before != now {
                return said(name, &before, &now);
            }
        }
        if self.library.is_empty() || before.library.is_empty() {
            None
        } else if before.library != self.library {
            said("the MPI library", &before.library, &self.library)
        } else if before.library_path != self.library_path {
            said("the file of the MPI library", &before.library_path, &self.library_path)
        } else if before.hosts != self.hosts {
            said("the hosts", &before.hosts.join(","), &self.hosts.join(","))
        } else {
            None
        }
    }
}

#[derive(Deserialize, Serialize)]
struct Header {
    schema: String,
    #[serde(flatten)]
    asked: TuneRequest,
}

/// A run that ended, or reached its time limit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Record {
    /// None for the default.
    pub(super) settings: Vec<Assignment>,
    pub(super) stage: Stage,
    /// Below the directory of the tune.
    pub(super) directory: PathBuf,
    pub(super) value: Option<f64>,
    /// Why it has none.
    pub(super) failure: Option<String>,
    pub(super) took: Took,
    pub(super) made_with: MadeWith,
    /// From the start of the launcher to its end.
    pub(super) wall_s: f64,
}

/// The runs of a tune, in a file.
pub(super) struct TuneState {
    path: PathBuf,
    file: File,
    pub(super) records: Vec<Record>,
}

impl TuneState {
    /// The runs that an earlier tune of the same command left in `directory`, or none.
    ///
    /// # Errors
    /// If the directory holds another tune, or something else.
    pub(super) fn open(
        directory: &Path,
        asked: &TuneRequest,
        force: bool,
    ) -> Result<TuneState, Error> {
        let path = directory.join(FILE);
        let failed = |error: &std::io::Error| Error::io(&path, error, "name another with -o");
        if force && path.exists() {
            fs::remove_file(&path).map_err(|error| failed(&error))?;
            let _ = fs::remove_dir_all(directory.join(super::RUNS));
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(&error)),
        };
        let mut lines = text.lines();
        if let Some(first) = lines.next() {
            let header: Option<Header> = serde_json::from_str(first).ok();
            if !header.is_some_and(|header| header.schema == SCHEMA && header.asked == *asked) {
                let why = "holds runs of another tune";
                let remedy = "name another directory with -o, or --force to remove them";
                return Err(Error::new(directory.display(), why, remedy));
            }
        } else if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let why = "is not empty, and holds no tune";
            return Err(Error::new(directory.display(), why, "name another directory with -o"));
        }
        // The run of a last line that is cut off is repeated.
        let records: Vec<Record> =
            lines.map_while(|line| serde_json::from_str(line).ok()).collect();
        fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        let header = Header { schema: SCHEMA.into(), asked: asked.clone() };
        write_anew(&path, &header, &records).map_err(|error| failed(&error))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| failed(&error))?;
        Ok(TuneState { path, file, records })
    }

    /// Refuses to go on with runs that were made with something else.
    pub(super) fn must_be_made_with(&self, made_with: &MadeWith) -> Result<(), Error> {
        let mut before = self.records.iter().map(|record| &record.made_with);
        match before.find_map(|before| made_with.difference(before)) {
            None => Ok(()),
            Some(how) => {
                let directory = self.path.parent().unwrap_or(&self.path).display();
                let why = format!("holds runs that cannot be compared with new ones: {how}");
                let remedy = "name another directory with -o, or --force to remove them";
                Err(Error::new(directory, why, remedy))
            }
        }
    }

    /// Adds a run, which is in the file when this returns.
    pub(super) fn add(&mut self, record: Record) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(self.path.display(), error, "make room, and start it again: it goes on")
        };
        let line = serde_json::to_string(&record).map_err(|error| failed(&error))?;
        writeln!(self.file, "{line}").map_err(|error| failed(&reason(&error)))?;
        self.records.push(record);
        Ok(())
    }
}

/// Replaces the file at once, so that no line is appended to one that is cut off, and a full disk loses nothing.
fn write_anew(path: &Path, header: &Header, records: &[Record]) -> io::Result<()> {
    let mut temporary = output::temporary_beside(path)?;
    writeln!(temporary, "{}", serde_json::to_string(header)?)?;
    for record in records {
        writeln!(temporary, "{}", serde_json::to_string(record)?)?;
    }
    temporary.as_file().sync_all()?;
    output::put(temporary, path, true)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn made_with(library: &str, hosts: &[&str], variables: &[(&str, &str)]) -> MadeWith {
        let text = |of: &&str| (*of).to_owned();
        MadeWith {
            library: library.into(),
            library_path: format!("/{library}/libmpi.so"),
            hosts: hosts.iter().map(text).collect(),
            environment: variables.iter().map(|(name, value)| (text(name), text(value))).collect(),
        }
    }

    fn record(made_with: MadeWith) -> Record {
        Record {
            settings: Vec::new(),
            stage: Stage::Race(0),
            directory: "runs/default/run-1".into(),
            value: Some(1.0),
            failure: None,
            took: Took::OnEveryRank,
            made_with,
            wall_s: 1.0,
        }
    }

    #[test]
    fn runs_of_another_library_host_or_environment_are_not_taken_over() {
        let place = tempfile::tempdir().unwrap();
        let asked = TuneRequest::default();
        let before = made_with("Open MPI 4", &["n1"], &[("UCX_TLS", "sm")]);
        TuneState::open(place.path(), &asked, false).unwrap().add(record(before.clone())).unwrap();
        let state = TuneState::open(place.path(), &asked, false).unwrap();
        for (now, how) in [
            (before.clone(), None),
            // Before a run its library and hosts are not known.
            (made_with("", &[], &[("UCX_TLS", "sm")]), None),
            (
                made_with("Open MPI 5", &["n1"], &[("UCX_TLS", "sm")]),
                Some("Open MPI 4, and is Open MPI 5"),
            ),
            (
                made_with("Open MPI 4", &["n2"], &[("UCX_TLS", "sm")]),
                Some("the hosts was n1, and is n2"),
            ),
            (made_with("", &[], &[]), Some("UCX_TLS was sm, and is not set")),
            (
                made_with("", &[], &[("UCX_TLS", "sm"), ("OMPI_MCA_btl", "tcp")]),
                Some("OMPI_MCA_btl was not set"),
            ),
        ] {
            let refused = state.must_be_made_with(&now).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), how.is_some(), "{refused:?}");
            assert!(refused.unwrap_or_default().contains(how.unwrap_or_default()), "{now:?}");
        }
    }

    #[test]
    fn the_file_is_replaced_and_never_emptied() {
        let place = tempfile::tempdir().unwrap();
        let asked = TuneRequest::default();
        TuneState::open(place.path(), &asked, false)
            .unwrap()
            .add(record(MadeWith::default()))
            .unwrap();
        let path = place.path().join(FILE);
        // A run that was being written when the machine stopped.
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"settings\":[],\"sta")).unwrap();
        let mut before = File::open(&path).unwrap();
        let state = TuneState::open(place.path(), &asked, false).unwrap();
        assert_eq!(state.records.len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        let mut text = String::new();
        before.read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&whole), "what was there was not touched");
    }
}
