//! What does the site get of a job, and how does that come into its spool? A file that is complete or absent, and that
//! no user but its own can change. The spool is never made, and nothing in it is read.

use std::io;
use std::path::PathBuf;

use gyan_results::{JobRecord, RECORD_SCHEMA, RECORD_SUFFIX, Summary};
use serde::{Deserialize, Serialize};

use crate::delivery::job::file_name_of;
use crate::delivery::output;

/// The most bytes of a job's id in that name.
const ID_AT_MOST: usize = 64;

/// Whose record it is, and where it goes.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct SiteRecord {
    #[serde(with = "crate::delivery::path_bytes")]
    pub(crate) spool: PathBuf,
    pub(crate) cluster: String,
    /// The id in the batch system; the launcher's where there is none.
    pub(crate) job: String,
    pub(crate) step: Option<String>,
    pub(crate) user: u32,
    pub(crate) program: String,
}

impl SiteRecord {
    /// Writes the record of a job with this summary. May take as long as the file system of the spool does.
    pub(crate) fn write(self, summary: Summary) -> io::Result<()> {
        let (name, spool) = (self.file_name(), self.spool.clone());
        let SiteRecord { cluster, job, step, user, program, .. } = self;
        let (schema, left_out) = (RECORD_SCHEMA.to_owned(), Vec::new());
        let record = JobRecord { schema, cluster, job, step, user, program, left_out, summary };
        output::write_record(&spool, &name, &record.into_bytes().map_err(io::Error::other)?)
    }

    /// `<user>-<job>-<step>-<random>.gyan-record`; without the step where there is none.
    fn file_name(&self) -> String {
        let short = |id: &str| file_name_of(&id.chars().take(ID_AT_MOST).collect::<String>());
        let id = std::iter::once(&self.job).chain(&self.step).map(|id| short(id));
        let id: Vec<String> = id.collect();
        format!("{}-{}-{:016x}.{RECORD_SUFFIX}", self.user, id.join("-"), output::random())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use gyan_results::RECORD_BYTES;

    use super::*;

    fn record(spool: PathBuf, step: Option<&str>) -> SiteRecord {
        let text = |text: &str| text.to_owned();
        let (cluster, job, program) = (text("tests"), text("12[3]/x"), text("app"));
        SiteRecord { spool, cluster, job, step: step.map(text), user: 7, program }
    }

    #[test]
    fn a_record_is_named_after_its_user_and_job_and_is_for_the_group() {
        let spool = tempfile::tempdir().unwrap();
        let example = include_str!("../../../results-schema/examples/summary.json");
        let summary: Summary = serde_json::from_str(example).unwrap();
        for (step, begins) in [(Some("0"), "7-12-3--x-0-"), (None, "7-12-3--x-")] {
            record(spool.path().into(), step).write(summary.clone()).unwrap();
            let entries = fs::read_dir(spool.path()).unwrap().map(Result::unwrap);
            let [entry] = &entries.collect::<Vec<_>>()[..] else { panic!("not one file") };
            let name = entry.file_name().into_string().unwrap();
            assert!(name.starts_with(begins) && name.ends_with(".gyan-record"), "{name}");
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o640);
            let bytes = fs::read(entry.path()).unwrap();
            assert!(bytes.len() <= RECORD_BYTES);
            let read = JobRecord::from_bytes(&bytes).unwrap();
            assert_eq!((read.user, &*read.job, read.step.as_deref()), (7, "12[3]/x", step));
            fs::remove_file(entry.path()).unwrap();
        }
    }

    #[test]
    fn no_spool_is_made() {
        let here = tempfile::tempdir().unwrap();
        let example = include_str!("../../../results-schema/examples/summary.json");
        let summary = serde_json::from_str(example).unwrap();
        let spool = here.path().join("spool");
        assert!(record(spool.clone(), None).write(summary).is_err());
        assert!(!spool.exists());
    }
}
