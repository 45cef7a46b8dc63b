//! Reading the files, with a check of their version. A reader accepts every older version and refuses newer
//! ones.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::alike::Alike;
use crate::regular::read_regular;
use crate::without::Without;
use crate::{
    End, Job, RANK_SCHEMA, RankProfile, SUMMARY_SCHEMA, Summary, TUNE_SCHEMA, Tuning,
    VARIABLES_SCHEMA, Variables,
};

/// Why a file cannot be used; the message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file ends in the middle.
    #[error(
        "is truncated (ends at line {line}, column {column}); the disk may have been full, \
         run the program again"
    )]
    Truncated {
        /// Line of the end, from 1.
        line: usize,
        /// Column of the end, from 1.
        column: usize,
    },
    /// The file is not what it should be.
    #[error("is damaged: {0}; run the program again")]
    Damaged(String),
    /// The file was written by a later version of gyan.
    #[error("has schema {found}, this gyan reads up to {known}; update gyan")]
    Newer {
        /// The schema of the file.
        found: String,
        /// The newest one that can be read.
        known: &'static str,
    },
    /// The file is JSON, but something else.
    #[error("has {found} instead of schema {known}; it is not a file of this kind, remove it")]
    Other {
        /// The schema of the file, in words.
        found: String,
        /// The one that was expected.
        known: &'static str,
    },
}

/// Larger than any job: the summary lists the missing ranks, and a damaged size must not fill the memory with
/// them.
const RANKS_AT_MOST: u32 = 1 << 26;
/// Text of a file that is shown in a message.
const SHOWN_AT_MOST: usize = 200;

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    schema: String,
}

/// Reads the profile of one rank.
///
/// # Errors
/// When the file cannot be read, is not a rank profile, is damaged, or is newer than this version.
pub fn read_rank(path: &Path) -> Result<RankProfile, ReadError> {
    parse_rank(&read_regular(path)?)
}

/// The same for the content of the file.
///
/// # Errors
/// As for [`read_rank`].
pub fn parse_rank(bytes: &[u8]) -> Result<RankProfile, ReadError> {
    parse_rank_with(&mut Alike::default(), bytes)
}

/// As [`read_rank`], but the fields with these names, each a list or optional, are empty: that takes far less time.
///
/// # Errors
/// As for [`read_rank`]; what is left out is not checked.
pub fn read_rank_without(path: &Path, left_out: &[&str]) -> Result<RankProfile, ReadError> {
    parse_rank_without(&read_regular(path)?, left_out)
}

/// The same for the content of the file.
///
/// # Errors
/// As for [`read_rank_without`].
pub fn parse_rank_without(bytes: &[u8], left_out: &[&str]) -> Result<RankProfile, ReadError> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let profile = parse_by(bytes, RANK_SCHEMA, || {
        let profile = RankProfile::deserialize(Without { inner: &mut text, left_out })?;
        text.end().map(|()| profile)
    })?;
    checked(&mut Alike::default(), profile)
}

pub(crate) fn parse_rank_with(alike: &mut Alike, bytes: &[u8]) -> Result<RankProfile, ReadError> {
    checked(alike, parse(bytes, RANK_SCHEMA)?)
}

fn checked(alike: &mut Alike, mut profile: RankProfile) -> Result<RankProfile, ReadError> {
    let damaged = || ReadError::Damaged("names of variables are not listed as gyan does".into());
    alike.unfold(&mut profile.pvars).ok_or_else(damaged)?;
    check_rank(profile.rank, profile.size)?;
    Ok(profile)
}

/// The part of a rank's profile that says whose it is: reading only that takes far less code.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Whose {
    /// The job that the rank belongs to.
    pub job: Job,
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Size of `MPI_COMM_WORLD`.
    pub size: u32,
    /// Host name of the node.
    pub host: String,
    /// Process id on that node.
    pub pid: u32,
    /// How its run ended.
    pub end: End,
}

impl Whose {
    /// Reads it from the profile of one rank.
    ///
    /// # Errors
    /// When the file cannot be read, is not a rank profile, or is newer than this version.
    pub fn read(path: &Path) -> Result<Whose, ReadError> {
        Whose::parse(&read_regular(path)?)
    }

    /// The same for the content of the file.
    ///
    /// # Errors
    /// As for [`Whose::read`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Whose, ReadError> {
        let whose: Whose = parse(bytes, RANK_SCHEMA)?;
        check_rank(whose.rank, whose.size)?;
        Ok(whose)
    }
}

/// Reads a part of a rank's profile: the fields that `T` has.
///
/// # Errors
/// When the file cannot be read, is not a rank profile, or is newer than this version.
pub fn read_rank_part<T: DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    parse(&read_regular(path)?, RANK_SCHEMA)
}

impl From<&RankProfile> for Whose {
    fn from(profile: &RankProfile) -> Whose {
        Whose {
            job: profile.job.clone(),
            rank: profile.rank,
            size: profile.size,
            host: profile.host.clone(),
            pid: profile.pid,
            end: profile.end.clone(),
        }
    }
}

pub(crate) fn check_rank(rank: u32, size: u32) -> Result<(), ReadError> {
    if rank >= size || size > RANKS_AT_MOST {
        return Err(ReadError::Damaged(format!("rank {rank} of {size} cannot be")));
    }
    Ok(())
}

/// Reads a summary.
///
/// # Errors
/// When the file cannot be read, is not a summary, is damaged, or is newer than this version.
pub fn read_summary(path: &Path) -> Result<Summary, ReadError> {
    parse_summary(&read_regular(path)?)
}

/// The same for the content of the file.
///
/// # Errors
/// As for [`read_summary`].
pub fn parse_summary(bytes: &[u8]) -> Result<Summary, ReadError> {
    parse(bytes, SUMMARY_SCHEMA)
}

/// Reads a listing of variables.
///
/// # Errors
/// When the file cannot be read, is not a listing, is damaged, or is newer than this version.
pub fn read_variables(path: &Path) -> Result<Variables, ReadError> {
    parse(&read_regular(path)?, VARIABLES_SCHEMA)
}

/// Reads what a tune found.
///
/// # Errors
/// When the file cannot be read, is not the result of a tune, is damaged, or is newer than this version.
pub fn read_tuning(path: &Path) -> Result<Tuning, ReadError> {
    parse(&read_regular(path)?, TUNE_SCHEMA)
}

pub(crate) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    known: &'static str,
) -> Result<T, ReadError> {
    parse_by(bytes, known, || serde_json::from_slice(bytes))
}

fn parse_by<T>(
    bytes: &[u8],
    known: &'static str,
    read: impl FnOnce() -> serde_json::Result<T>,
) -> Result<T, ReadError> {
    // Parses only the header first: the rest of a newer file may well not parse. That scans the whole file,
    // unless it begins as gyan writes it.
    if !begins_with_schema(bytes, known) {
        let header: Header = serde_json::from_slice(bytes).map_err(|error| damage(&error))?;
        check_schema(&header.schema, known)?;
    }
    read().map_err(|error| damage(&error))
}

fn begins_with_schema(bytes: &[u8], known: &str) -> bool {
    let rest = bytes.strip_prefix(b"{\"schema\":\"");
    rest.and_then(|rest| rest.strip_prefix(known.as_bytes()))
        .is_some_and(|rest| rest.starts_with(b"\""))
}

pub(crate) fn check_schema(found: &str, known: &'static str) -> Result<(), ReadError> {
    if found == known {
        return Ok(());
    }
    let version = |schema: &str| -> Option<(String, u32)> {
        let (name, version) = schema.rsplit_once('/')?;
        Some((name.to_owned(), version.parse().ok()?))
    };
    match (version(found), version(known)) {
        (Some((name, found_version)), Some((known_name, known_version)))
            if name == known_name && found_version > known_version =>
        {
            Err(ReadError::Newer { found: shown(found), known })
        }
        _ if found.is_empty() => Err(ReadError::Other { found: "no schema".into(), known }),
        _ => Err(ReadError::Other { found: format!("schema {}", shown(found)), known }),
    }
}

fn damage(error: &serde_json::Error) -> ReadError {
    if error.is_eof() {
        ReadError::Truncated { line: error.line(), column: error.column() }
    } else {
        ReadError::Damaged(shown(&error.to_string()))
    }
}

/// Text from a file, as part of one line.
fn shown(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN_AT_MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(SHOWN_AT_MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ReadError {
        parse::<RankProfile>(text.as_bytes(), RANK_SCHEMA).unwrap_err()
    }

    #[test]
    fn a_profile_is_read_without_some_of_its_fields_and_what_is_wrong_with_it_is_said() {
        let text = include_bytes!("../examples/rank.json");
        let whole = parse_rank(text).unwrap();
        assert_eq!(parse_rank_without(text, &[]).unwrap(), whole);
        let part = parse_rank_without(text, &["pvars", "peers"]).unwrap();
        assert!(!whole.pvars.is_empty() && whole.peers.is_some());
        assert_eq!(part, RankProfile { pvars: Vec::new(), peers: None, ..whole });
        let truncated = parse_rank_without(&text[..text.len() / 2], &["pvars"]);
        assert!(matches!(truncated, Err(ReadError::Truncated { .. })), "{truncated:?}");
        let more = [&text[..], b"{"].concat();
        assert!(matches!(parse_rank_without(&more, &["pvars"]), Err(ReadError::Damaged(_))));
    }

    #[test]
    fn a_newer_schema_is_refused_by_name() {
        let error = read(r#"{"schema":"gyan.rank/2","ranks":[]}"#);
        assert!(matches!(&error, ReadError::Newer { found, .. } if found == "gyan.rank/2"));
        assert!(error.to_string().ends_with("update gyan"));
    }

    #[test]
    fn another_kind_of_json_is_no_profile() {
        assert!(matches!(read(r#"{"schema":"gyan.summary/1"}"#), ReadError::Other { .. }));
        assert!(matches!(read("{}"), ReadError::Other { .. }));
        assert!(matches!(read("[]"), ReadError::Other { .. }));
        assert!(matches!(read("7"), ReadError::Damaged(_)));
    }

    #[test]
    fn a_truncated_file_is_told_from_a_damaged_one() {
        assert!(matches!(read(r#"{"schema":"gyan.ra"#), ReadError::Truncated { line: 1, .. }));
        assert!(matches!(read(""), ReadError::Truncated { .. }));
        assert!(matches!(read(r#"{"schema":"gyan.rank/1","size":x}"#), ReadError::Damaged(_)));
    }
}
