//! What the user asked for and what ran, as JSON Lines, so that a tune that was stopped continues where it was.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use gyan_results::{Assignment, Took};
use serde::{Deserialize, Serialize};

use crate::error::{Error, reason};
use crate::tuning::Stage;

/// Its file in the directory of a tune.
pub(super) const FILE: &str = "tune.jsonl";
const SCHEMA: &str = "gyan.tune-runs/1";

/// What decides what is tried and how it is measured.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // options of a command line
pub(super) struct Asked {
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

#[derive(Deserialize, Serialize)]
struct Header {
    schema: String,
    #[serde(flatten)]
    asked: Asked,
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
    /// From the start of the launcher to its end.
    pub(super) wall_s: f64,
}

/// The runs of a tune, in a file.
pub(super) struct State {
    path: PathBuf,
    file: File,
    pub(super) records: Vec<Record>,
}

impl State {
    /// The runs that an earlier tune of the same command left in `directory`, or none.
    ///
    /// # Errors
    /// If the directory holds another tune, or something else.
    pub(super) fn open(directory: &Path, asked: &Asked, force: bool) -> Result<State, Error> {
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
        // Written anew, so that no line is appended to one that is cut off.
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&path)
            .map_err(|error| failed(&error))?;
        let header = Header { schema: SCHEMA.into(), asked: asked.clone() };
        let mut again = vec![serde_json::to_string(&header)];
        again.extend(records.iter().map(serde_json::to_string));
        for line in again {
            let line = line.map_err(|error| Error::new(path.display(), error, "report this"))?;
            writeln!(file, "{line}").map_err(|error| failed(&error))?;
        }
        Ok(State { path, file, records })
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
