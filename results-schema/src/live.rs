//! The live file of a host (`host-n1-3f9a0c1e.live`): what is known of those of its ranks that have not written
//! a profile yet. It is rewritten as a whole and renamed, while the program runs and after a rank has ended.
//!
//! The first line is an index as JSON: its job and host, and for each rank how many bytes of text it has, their
//! checksum (CRC-32) and whether its process has ended. The texts follow in the same order, one per line:
//! profiles of ranks.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::crash::CrashSeen;
use crate::job::{End, Ending};
use crate::now::RankNow;
use crate::read::{ReadError, parse, parse_rank};
use crate::regular::open_regular;
use crate::{LIVE_SCHEMA, RankProfile, Whose};

/// No index is longer than this: a host has fewer ranks.
const INDEX_BYTES: u64 = 64 << 20;

/// What a live file says of one rank.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LiveRank {
    /// In `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its process has ended, and nothing more will be known of it.
    pub gone: bool,
    /// When it was last seen, or had just ended, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<u64>,
    /// How its process ended, as wait(2) has it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// What it is doing; none if it moves, or nothing is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<RankNow>,
    /// Why nothing can be known of what it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_seen: Option<String>,
    /// Where it crashed, if it did and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<CrashSeen>,
    /// The system killed it for lack of memory.
    #[serde(default)]
    pub out_of_memory: bool,
    bytes: u64,
    crc32: u32,
}

#[derive(Deserialize, Serialize)]
struct Index {
    schema: String,
    job: String,
    host: String,
    ranks: Vec<LiveRank>,
}

/// A live file.
#[derive(Debug)]
pub struct LiveFile {
    path: PathBuf,
    /// The job's id.
    pub job: String,
    /// The host whose ranks these are.
    pub host: String,
    /// Each with the offset of its text.
    ranks: Vec<(u64, LiveRank)>,
    /// Which file was read; none for what was in memory.
    identity: Option<Identity>,
}

/// What tells a file from the one that replaced it: its device, its number there, and when it was changed.
type Identity = (u64, u64, i64, i64);

fn identity(file: &File) -> Option<Identity> {
    let file = file.metadata().ok()?;
    Some((file.dev(), file.ino(), file.ctime(), file.ctime_nsec()))
}

/// The name of a live file. Hosts may have the same name: `number` tells their files apart.
pub fn live_file_name(host: &str, number: u32) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let host: String = host.chars().map(safe).collect();
    format!("host-{host}-{number:08x}.live")
}

/// Whether a file name is that of a live file.
pub fn is_live_file_name(name: &str) -> bool {
    let name = name.strip_prefix("host-").and_then(|name| name.strip_suffix(".live"));
    let number = name.and_then(|name| name.rsplit_once('-')).map(|(_, number)| number);
    number.is_some_and(|number| {
        number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// How a process ended that did not say it itself. `status`: as wait(2) has it, if that is known; `out_of_memory`: the
/// system killed it for lack of memory; `otherwise`: where nothing is known.
pub fn end_of_process(otherwise: Ending, status: Option<i32>, out_of_memory: bool) -> End {
    const KILL: i32 = 9;
    let status = status.map(ExitStatus::from_raw);
    let signal = status.and_then(|status| status.signal());
    let killed = out_of_memory.then_some(KILL);
    let otherwise = End { how: otherwise, code: signal.or(killed).unwrap_or(0) };
    // By `_exit`.
    let by_exit = |code| End { how: Ending::Exit, code };
    status.and_then(|status| status.code()).map_or(otherwise, by_exit)
}

/// What is written of a rank.
#[derive(Debug)]
pub struct LiveEntry {
    /// In `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its process has ended.
    pub gone: bool,
    /// When it was last seen, or had just ended, in milliseconds since 1970.
    pub seen_ms: Option<u64>,
    /// How its process ended, as wait(2) has it.
    pub status: Option<i32>,
    /// What it is doing, or why that is not known.
    pub now: Result<Option<RankNow>, String>,
    /// Where it crashed.
    pub crash: Option<CrashSeen>,
    /// The system killed it for lack of memory.
    pub out_of_memory: bool,
    /// Its profile as JSON, without an end of line.
    pub text: Vec<u8>,
}

impl LiveEntry {
    /// A rank whose doings were not looked at.
    pub fn not_seen(rank: u32, gone: bool, text: &[u8]) -> LiveEntry {
        let (seen_ms, status, now, crash) = (None, None, Ok(None), None);
        let (out_of_memory, text) = (false, text.to_vec());
        LiveEntry { rank, gone, seen_ms, status, now, crash, out_of_memory, text }
    }
}

/// Writes a live file.
///
/// # Errors
/// What `out` gives.
pub fn write_live(
    out: &mut impl Write,
    job: &str,
    host: &str,
    ranks: &[LiveEntry],
) -> io::Result<()> {
    let described = ranks.iter().map(|entry| LiveRank {
        rank: entry.rank,
        gone: entry.gone,
        seen_ms: entry.seen_ms,
        status: entry.status,
        now: entry.now.clone().unwrap_or_default(),
        not_seen: entry.now.as_ref().err().cloned(),
        crash: entry.crash.clone(),
        out_of_memory: entry.out_of_memory,
        bytes: entry.text.len() as u64,
        crc32: crc32fast::hash(&entry.text),
    });
    let index = Index {
        schema: LIVE_SCHEMA.to_owned(),
        job: job.to_owned(),
        host: host.to_owned(),
        ranks: described.collect(),
    };
    serde_json::to_writer(&mut *out, &index)?;
    for LiveEntry { text, .. } in ranks {
        out.write_all(b"\n")?;
        out.write_all(text)?;
    }
    out.write_all(b"\n")
}

impl LiveFile {
    /// Reads the index of a live file.
    ///
    /// # Errors
    /// When the file cannot be read, is not a live file, is damaged, or is newer than this version.
    #[inline]
    pub fn open(path: &Path) -> Result<LiveFile, ReadError> {
        Self::of(path, &open_regular(path)?)
    }

    #[inline]
    fn of(path: &Path, file: &File) -> Result<LiveFile, ReadError> {
        let mut line = Vec::new();
        BufReader::new(file.take(INDEX_BYTES)).read_until(b'\n', &mut line)?;
        let indexed = Self::indexed(path, &line)?;
        Ok(LiveFile { identity: identity(file), ..indexed })
    }

    /// `line`: the first one.
    #[inline]
    fn indexed(path: &Path, line: &[u8]) -> Result<LiveFile, ReadError> {
        let damaged = || ReadError::Damaged("its first line is not what was written".into());
        let index: Index = parse(line, LIVE_SCHEMA).map_err(|error| match error {
            ReadError::Newer { .. } | ReadError::Other { .. } => error,
            _ => damaged(),
        })?;
        let mut at = line.len() as u64;
        let mut ranks = Vec::with_capacity(index.ranks.len());
        for rank in index.ranks {
            let next = at.checked_add(rank.bytes).and_then(|at| at.checked_add(1));
            ranks.push((at, rank));
            at = next.ok_or_else(damaged)?;
        }
        let path = path.to_owned();
        Ok(LiveFile { path, job: index.job, host: index.host, ranks, identity: None })
    }

    /// The ranks that are in it.
    pub fn ranks(&self) -> impl Iterator<Item = &LiveRank> {
        self.ranks.iter().map(|(_, rank)| rank)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The profile of a rank so far, and the file's entry for it; none when the rank is no longer in it.
    ///
    /// # Errors
    /// When the file cannot be read, or this part of it is damaged.
    pub fn read(&self, rank: u32) -> Result<Option<(LiveRank, RankProfile)>, ReadError> {
        self.read_as(rank, parse_rank)
    }

    /// The same without the figures of the profile, which takes far less time.
    ///
    /// # Errors
    /// As for [`LiveFile::read`].
    pub fn read_whose(&self, rank: u32) -> Result<Option<(LiveRank, Whose)>, ReadError> {
        self.read_as(rank, Whose::parse)
    }

    fn read_as<T: HasRank>(
        &self,
        rank: u32,
        parse: impl FnOnce(&[u8]) -> Result<T, ReadError>,
    ) -> Result<Option<(LiveRank, T)>, ReadError> {
        let file = open_regular(&self.path)?;
        // It may have been replaced since its index was read; a file that is open stays as it is.
        let newer;
        let now = if self.identity.is_some() && identity(&file) == self.identity {
            self
        } else {
            newer = Self::of(&self.path, &file)?;
            &newer
        };
        let Some((at, of)) = now.ranks.iter().find(|(_, of)| of.rank == rank) else {
            return Ok(None);
        };
        let mut text = Vec::new();
        let mut rest = &file;
        rest.seek(SeekFrom::Start(*at))?;
        rest.take(of.bytes).read_to_end(&mut text)?;
        let read = of.parsed(&text, parse)?;
        Ok(Some((of.clone(), read)))
    }
}

/// What is in a text about a rank.
trait HasRank {
    fn rank(&self) -> u32;
}

impl HasRank for RankProfile {
    fn rank(&self) -> u32 {
        self.rank
    }
}

impl HasRank for Whose {
    fn rank(&self) -> u32 {
        self.rank
    }
}

impl LiveRank {
    /// When it was last seen, or had just ended; none if the keeper does not say.
    pub fn seen(&self) -> Option<SystemTime> {
        self.seen_ms.map(|seen_ms| UNIX_EPOCH + Duration::from_millis(seen_ms))
    }

    /// What is in this text, if it is the text that was written.
    fn parsed<T: HasRank>(
        &self,
        text: &[u8],
        parse: impl FnOnce(&[u8]) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let is_whole = text.len() as u64 == self.bytes && crc32fast::hash(text) == self.crc32;
        let read = is_whole.then(|| parse(text)).transpose()?;
        read.filter(|read| read.rank() == self.rank).ok_or_else(|| {
            let what = format!("what it holds of rank {} is not what was written", self.rank);
            ReadError::Damaged(what)
        })
    }
}

/// A live file's entry for a rank, and its profile or what is wrong with that.
pub type LiveText = (LiveRank, Result<RankProfile, ReadError>);

/// Everything that a live file holds, with what is wrong with it.
///
/// # Errors
/// When it is not a live file, its index is damaged, or it is newer than this version.
pub fn parse_live(bytes: &[u8]) -> Result<Vec<LiveText>, ReadError> {
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let file = LiveFile::indexed(Path::new(""), bytes.get(..end).unwrap_or_default())?;
    let text = |at: u64, of: &LiveRank| {
        let at = usize::try_from(at).ok()?;
        bytes.get(at..at.checked_add(usize::try_from(of.bytes).ok()?)?)
    };
    let of_each = file
        .ranks
        .iter()
        .map(|(at, of)| (of.clone(), of.parsed(text(*at, of).unwrap_or_default(), parse_rank)));
    Ok(of_each.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn profile(rank: u32, elapsed_s: f64) -> RankProfile {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rank.json");
        let mut profile = parse_rank(&fs::read(example).unwrap()).unwrap();
        (profile.rank, profile.size, profile.job.elapsed_s) = (rank, 8, elapsed_s);
        profile
    }

    /// Ranks 3 and 5, of which the second is gone.
    fn file() -> Vec<u8> {
        let texts = [3, 5].map(|rank| serde_json::to_vec(&profile(rank, f64::from(rank))).unwrap());
        let mut out = Vec::new();
        let ranks =
            [LiveEntry::not_seen(3, false, &texts[0]), LiveEntry::not_seen(5, true, &texts[1])];
        write_live(&mut out, "12.0", "n1", &ranks).unwrap();
        out
    }

    #[test]
    fn each_rank_is_what_was_written() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join(live_file_name("n1", 7));
        fs::write(&path, file()).unwrap();
        let file = LiveFile::open(&path).unwrap();
        assert_eq!((file.job.as_str(), file.host.as_str()), ("12.0", "n1"));
        assert_eq!(
            file.ranks().map(|of| (of.rank, of.gone)).collect::<Vec<_>>(),
            [(3, false), (5, true)]
        );
        for rank in [3, 5] {
            let (of, read) = file.read(rank).unwrap().unwrap();
            assert_eq!((of.gone, read), (rank == 5, profile(rank, f64::from(rank))));
        }
        assert!(file.read(4).unwrap().is_none());
    }

    #[test]
    fn a_file_that_is_replaced_is_read_as_it_is_then() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join(live_file_name("n1", 7));
        fs::write(&path, file()).unwrap();
        let old = LiveFile::open(&path).unwrap();
        let text = serde_json::to_vec(&profile(3, 9.5)).unwrap();
        let mut out = Vec::new();
        write_live(&mut out, "12.0", "n1", &[LiveEntry::not_seen(3, true, &text)]).unwrap();
        fs::write(&path, out).unwrap();
        assert_eq!(old.read(3).unwrap().unwrap().1, profile(3, 9.5));
        assert!(old.read(5).unwrap().is_none());
    }

    #[test]
    fn no_changed_byte_gives_a_number_that_was_not_written() {
        let whole = file();
        let written = [profile(3, 3.0), profile(5, 5.0)];
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] ^= 0x10;
            match parse_live(&file) {
                Ok(read) => {
                    for (_, read) in read {
                        match read {
                            Ok(read) => assert!(written.contains(&read), "{at}"),
                            Err(error) => assert!(error.to_string().contains("; "), "{error}"),
                        }
                    }
                }
                Err(error) => assert!(error.to_string().contains("; "), "{error}"),
            }
        }
    }

    #[test]
    fn what_a_cut_leaves_is_read_and_the_rest_is_an_error() {
        let whole = file();
        let index = whole.iter().position(|&byte| byte == b'\n').unwrap();
        for length in (0..whole.len() - 1).step_by(31) {
            match parse_live(&whole[..length]) {
                Ok(read) => {
                    assert!(length >= index, "{length}");
                    assert!(read[1].1.is_err(), "{length}");
                }
                Err(_) => assert!(length < index, "{length}"),
            }
        }
        let error = parse_live(&whole[..index + 9]).unwrap().remove(0).1.unwrap_err();
        let what =
            "is damaged: what it holds of rank 3 is not what was written; run the program again";
        assert_eq!(error.to_string(), what);
    }

    #[test]
    fn other_versions_and_other_files_are_refused_by_name() {
        let newer = String::from_utf8(file()).unwrap().replace("gyan.live/1", "gyan.live/2");
        assert_eq!(
            parse_live(newer.as_bytes()).unwrap_err().to_string(),
            "has schema gyan.live/2, this gyan reads up to gyan.live/1; update gyan"
        );
        let other = parse_live(b"{\"schema\":\"gyan.rank/1\"}").unwrap_err();
        assert!(other.to_string().contains("instead of"));
        assert!(parse_live(&[0; 4096]).unwrap_err().to_string().contains("first line"));
    }

    #[test]
    fn names_are_safe_and_those_of_hosts() {
        let name = live_file_name("n1.cluster/x y", 0x3f9a_0c1e);
        assert_eq!(name, "host-n1.cluster-x-y-3f9a0c1e.live");
        assert!(is_live_file_name(&name));
        for other in
            ["rank-000003.live", "host-n1.live", "host-n1-3f9a0c1e.json", "host-a-3f9a0c1.live"]
        {
            assert!(!is_live_file_name(other), "{other}");
        }
    }
}
