//! Which jobs does a site record, and where do their records go? The file `site.toml`.
//!
//! libgyan.so reads it in `MPI_Init`, and says nothing about what is wrong with it. `gyan doctor --site` does.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use wildmatch::WildMatch;

use crate::regular::read_regular;

/// A name of a machine is no longer.
const CLUSTER_AT_MOST: usize = 64;

/// The settings of a site, for the jobs of all its users.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SiteSettings {
    /// The directory that the records go to. It has to be there.
    pub spool: PathBuf,
    /// The name of the machine, in each record.
    pub cluster: String,
    /// Of so many jobs one is recorded.
    #[serde(default = "every_job")]
    pub one_in: NonZeroU32,
    /// A run that is shorter, from `MPI_Init` to `MPI_Finalize`, leaves no record.
    #[serde(default = "a_minute", deserialize_with = "interval")]
    pub at_least: Duration,
    /// The file names of programs that are not recorded, with `*` and `?`.
    #[serde(default)]
    pub leave_out_programs: Vec<String>,
    /// The numbers of users whose jobs are not recorded.
    #[serde(default)]
    pub leave_out_users: Vec<u32>,
    /// Whether the record names the functions of the program that call MPI.
    #[serde(default)]
    pub functions_of_sites: bool,
    /// Whether the record has the command line.
    #[serde(default)]
    pub record_command: bool,
}

fn every_job() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn a_minute() -> Duration {
    Duration::from_secs(60)
}

fn interval<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text).map_err(serde::de::Error::custom)
}

/// What is wrong with a file of settings.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It is no TOML, has a key that gyan does not know, or lacks one that it needs.
    #[error("{}", .0.to_string().trim_end())]
    NotUnderstood(#[from] toml::de::Error),
    /// A setting has a value that it cannot have.
    #[error("{setting}: {what}")]
    Wrong {
        /// The name of the setting.
        setting: &'static str,
        /// What is wrong with its value.
        what: &'static str,
    },
}

impl SiteSettings {
    /// Reads a file of settings.
    ///
    /// # Errors
    /// When it cannot be read, or has something in it that cannot be meant.
    pub fn read(path: &Path) -> Result<SiteSettings, SiteError> {
        let bytes = read_regular(path)?;
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        SiteSettings::parse(&text)
    }

    /// The settings in a text.
    ///
    /// # Errors
    /// When it has something in it that cannot be meant.
    pub fn parse(text: &str) -> Result<SiteSettings, SiteError> {
        toml::from_str::<SiteSettings>(text)?.checked()
    }

    fn checked(self) -> Result<SiteSettings, SiteError> {
        let wrong = |setting, what| Err(SiteError::Wrong { setting, what });
        if !self.spool.is_absolute() {
            return wrong("spool", "is not an absolute path");
        }
        let length = self.cluster.chars().count();
        if length == 0 || length > CLUSTER_AT_MOST || self.cluster.contains(char::is_control) {
            return wrong("cluster", "is not a name of 1 to 64 characters");
        }
        Ok(self)
    }

    /// What is wrong with a text, for each setting on its own, so that a file can be put right in one go. None for a
    /// text that [`SiteSettings::parse`] takes.
    pub fn mistakes(text: &str) -> Vec<String> {
        let Ok(table) = toml::from_str::<toml::Table>(text) else {
            return SiteSettings::parse(text).err().iter().map(ToString::to_string).collect();
        };
        let alone = |(name, value): (&String, &toml::Value)| {
            let mut table = toml::Table::new();
            table.insert("spool".into(), "/".into());
            table.insert("cluster".into(), "x".into());
            table.insert(name.clone(), value.clone());
            let settings = table.try_into::<SiteSettings>().map_err(SiteError::from);
            match settings.and_then(SiteSettings::checked).err()? {
                SiteError::NotUnderstood(error) => Some(format!("{name}: {}", error.message())),
                error => Some(error.to_string()),
            }
        };
        let mut mistakes: Vec<String> = table.iter().filter_map(alone).collect();
        for needed in ["spool", "cluster"].into_iter().filter(|name| !table.contains_key(*name)) {
            mistakes.push(format!("{needed}: is missing"));
        }
        mistakes
    }

    /// Whether runs of this program by this user are never recorded. `program`: the file name of the executable.
    pub fn leaves_out(&self, program: &str, user: u32) -> bool {
        let is_meant = |pattern: &String| WildMatch::new(pattern).matches(program);
        self.leave_out_users.contains(&user) || self.leave_out_programs.iter().any(is_meant)
    }

    /// Whether the job with this id is one of those that are recorded. All processes of the job get the same answer.
    pub fn chooses(&self, job: &str) -> bool {
        let hash = u64::from(crc32fast::hash(job.as_bytes()));
        // An equal part of all hashes for each of the jobs.
        (hash * u64::from(self.one_in.get())) >> 32 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "spool = '/var/spool/gyan'\ncluster = 'x'\n";

    fn with(line: &str) -> Result<SiteSettings, SiteError> {
        SiteSettings::parse(&format!("{LEAST}{line}\n"))
    }

    #[test]
    fn a_file_with_the_two_settings_that_have_no_default_will_do() {
        let settings = SiteSettings::parse(LEAST).unwrap();
        assert_eq!(settings.spool, Path::new("/var/spool/gyan"));
        assert_eq!((settings.one_in.get(), settings.at_least.as_secs()), (1, 60));
        assert!(!settings.functions_of_sites && !settings.record_command);
        assert!(settings.chooses("1") && !settings.leaves_out("app", 0));
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (line, what) in [
            ("spol = 1", "unknown field `spol`"),
            ("one_in = 0", "nonzero"),
            ("at_least = '60'", "unit"),
            ("leave_out_users = ['root']", "expected u32"),
            ("leave_out_programs = 'a'", "sequence"),
            ("= 1", "key"),
        ] {
            let error = with(line).unwrap_err().to_string();
            assert!(error.contains(what), "{line}: {error}");
        }
        for (text, what) in [
            ("spool = 'here'\ncluster = 'x'", "spool: is not an absolute path"),
            ("spool = '/s'\ncluster = ''", "cluster: is not a name"),
            ("spool = '/s'\ncluster = \"a\\nb\"", "cluster: is not a name"),
            ("cluster = 'x'", "missing field `spool`"),
        ] {
            let error = SiteSettings::parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(SiteSettings::read(Path::new("/dev/null")).is_err());
        assert!(SiteSettings::read(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn each_mistake_is_named_and_a_good_file_has_none() {
        let text =
            "spol = '/s'\none_in = 0\nat_least = '1m'\nleave_out_users = 'me'\nspool = 's'\n";
        let mistakes = SiteSettings::mistakes(text);
        let names: Vec<&str> = mistakes.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(
            names,
            ["leave_out_users", "one_in", "spol", "spool", "cluster"],
            "{mistakes:?}"
        );
        assert!(mistakes[2].contains("unknown field `spol`"), "{mistakes:?}");
        assert_eq!(SiteSettings::mistakes(LEAST), Vec::<String>::new());
        assert!(SiteSettings::mistakes("spool = \n")[0].contains("line 1"));
    }

    #[test]
    fn programs_and_users_are_left_out() {
        let settings =
            with("leave_out_programs = ['xhpl', 'osu_*']\nleave_out_users = [7]").unwrap();
        assert!(settings.leaves_out("xhpl", 1) && settings.leaves_out("osu_bw", 1));
        assert!(settings.leaves_out("app", 7) && !settings.leaves_out("app", 1));
        assert!(!settings.leaves_out("xhpl2", 1));
    }

    #[test]
    fn one_job_in_n_is_chosen() {
        let jobs = 100_000;
        for one_in in [2, 10, 100] {
            let settings = with(&format!("one_in = {one_in}")).unwrap();
            let chosen = (0..jobs).filter(|job| settings.chooses(&job.to_string())).count() as f64;
            let expected = f64::from(jobs) / f64::from(one_in);
            // Five standard deviations.
            let off = (chosen - expected).abs();
            assert!(off < 5.0 * expected.sqrt(), "one in {one_in}: {chosen}");
        }
    }
}
