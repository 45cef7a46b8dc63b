//! The values of settings: their types, and how they are read. What cannot be understood is answered with the end of
//! a sentence that begins with the setting and the value.

use std::path::PathBuf;
use std::time::Duration;

use gyan_results::parse_bytes;
use rustix::fs::Access;
use rustix::io::Errno;

/// Where to keep what is known so far, in case the process is killed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Live {
    Off,
    /// In the run directory.
    InOutput,
    /// In a directory for the run inside this one.
    In(PathBuf),
}

/// Whether the ranks reduce their profiles themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reduce {
    /// One file a rank.
    Off,
    Mpi,
    /// When there are many ranks.
    Auto,
    /// And one file per rank as well.
    Both,
}

impl Choice for Reduce {
    const ALL: &[(&str, Reduce)] = &[
        ("off", Reduce::Off),
        ("mpi", Reduce::Mpi),
        ("auto", Reduce::Auto),
        ("both", Reduce::Both),
    ];
}

/// What may be said on stderr.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Notices {
    All,
    Warnings,
    None,
}

impl Choice for Notices {
    const ALL: &[(&str, Notices)] =
        &[("all", Notices::All), ("warnings", Notices::Warnings), ("none", Notices::None)];
}

/// Receives are watched at which a variable is above a threshold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WatchFor {
    /// As the user names it.
    pub(crate) variable: String,
    pub(crate) threshold: u64,
}

/// How many of the slowest iterations a timeline can have.
pub(crate) const SLOWEST_AT_MOST: usize = 50;

/// When the timeline records, from the end of `MPI_Init` on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TimelineWindow {
    pub(crate) from: Duration,
    pub(crate) length: Duration,
}

/// The interfaces that call gyan back at each message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct EventsFrom {
    pub(crate) peruse: bool,
    pub(crate) mpi_t: bool,
}

/// Which control variables are recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RecordCvars {
    All,
    Changed,
    None,
}

impl Choice for RecordCvars {
    const ALL: &[(&str, RecordCvars)] = &[
        ("all", RecordCvars::All),
        ("changed", RecordCvars::Changed),
        ("none", RecordCvars::None),
    ];
}

/// Whose regions are phases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Regions {
    Kokkos,
    Nvtx,
    Itt,
    Petsc,
    Caliper,
}

impl Choice for Regions {
    const ALL: &[(&str, Regions)] = &[
        ("kokkos", Regions::Kokkos),
        ("nvtx", Regions::Nvtx),
        ("itt", Regions::Itt),
        ("petsc", Regions::Petsc),
        ("caliper", Regions::Caliper),
    ];
}

/// What else than the settings gives a run labels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LabelSource {
    Adiak,
}

impl Choice for LabelSource {
    const ALL: &[(&str, LabelSource)] = &[("adiak", LabelSource::Adiak)];
}

/// A setting that is one of a few words.
pub(super) trait Choice: Copy + 'static {
    const ALL: &[(&str, Self)];
}

/// One of the words of a [`Choice`].
pub(super) fn choice<C: Choice>(value: &str) -> Result<C, String> {
    let chosen = C::ALL.iter().find(|(word, _)| *word == value);
    chosen.map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<&str> = C::ALL.iter().map(|(word, _)| *word).collect();
        format!("is none of {}", words.join(", "))
    })
}

/// Several of the words of a [`Choice`]: `word,word`.
pub(super) fn choices<C: Choice>(value: &str) -> Result<Vec<C>, String> {
    names(value).iter().map(|word| choice(word)).collect()
}

/// What `read` makes of the value, and nothing for the word that turns it off.
pub(super) fn unless<T>(
    off: &str,
    value: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if value == off { Ok(None) } else { read(value).map(Some) }
}

/// One that is there, and in which files can be made; absolute, as programs change theirs.
pub(super) fn directory(value: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(value).map_err(|error| error.to_string())?;
    let may_write = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::access(&path, may_write) {
        Ok(()) if path.is_dir() => Ok(path),
        Ok(()) => Err("is no directory".into()),
        Err(Errno::NOENT) => Err("is not there".into()),
        Err(error) => {
            let text = std::io::Error::from(error).to_string();
            let why = text.split(" (os error").next().unwrap_or_default().to_lowercase();
            Err(format!("no file can be made in it: {why}"))
        }
    }
}

pub(super) fn number(value: &str, of: &str) -> Result<usize, String> {
    value.parse().map_err(|_| format!("is not a number of {of}"))
}

/// `name,name`.
pub(super) fn names(value: &str) -> Vec<String> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// A directory, or `off`.
pub(super) fn live(value: &str) -> Live {
    if value == "off" { Live::Off } else { Live::In(value.into()) }
}

/// A number of bytes: `4MiB`, `512K`, `1000000`.
pub(super) fn size(value: &str) -> Result<usize, String> {
    const LEAST: u64 = 4096;
    parse_bytes(value)
        .filter(|bytes| (LEAST..=1 << 40).contains(bytes))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| "is not a size of at least 4KiB such as 4MiB".to_owned())
}

/// A share: `0.5%`, `0.005`.
pub(super) fn share(value: &str) -> Result<f64, String> {
    let (number, unit) = match value.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (value, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number * unit);
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "is neither a share such as 0.5% nor none".to_owned())
}

/// Permissions such as `750`, with which gyan itself can write.
pub(super) fn mode(value: &str) -> Result<u32, String> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(value, 8).ok().filter(|_| digits);
    mode.filter(|mode| mode & !0o777 == 0 && mode & 0o700 == 0o700)
        .ok_or_else(|| "is not an octal number from 0700 to 0777".to_owned())
}

/// A time that is not nothing: `100ms`.
pub(super) fn interval(value: &str) -> Result<Duration, String> {
    humantime::parse_duration(value)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| "is not an interval such as 100ms".to_owned())
}

/// `10s@60s`: for 10 s, from 60 s on.
pub(super) fn timeline_window(value: &str) -> Result<TimelineWindow, String> {
    let Some((length, from)) = value.split_once('@') else {
        return Err("does not say from when on: 10s@60s is for 10 s, from 60 s on".into());
    };
    let length = interval(length.trim())
        .map_err(|_| "has no time such as 10s before @, for which calls are recorded".to_owned())?;
    // Without a unit, 0 is clear.
    let from = humantime::parse_duration(if from.trim() == "0" { "0s" } else { from.trim() })
        .map_err(|_| "has no time such as 60s after @, when that begins".to_owned())?;
    Ok(TimelineWindow { from, length })
}

/// How many iterations of the slowest ones.
pub(super) fn timeline_slowest(value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| (1..=SLOWEST_AT_MOST).contains(number));
    number.ok_or_else(|| format!("is not a number from 1 to {SLOWEST_AT_MOST}"))
}

/// `umq`, `umq>5`.
pub(super) fn watch_for(value: &str) -> Result<WatchFor, String> {
    let (variable, threshold) = value.split_once('>').unwrap_or((value, "0"));
    let threshold =
        threshold.trim().parse().map_err(|_| "has no whole number after >".to_owned())?;
    let variable = variable.trim().to_owned();
    if variable.is_empty() {
        return Err("names no variable before >".into());
    }
    Ok(WatchFor { variable, threshold })
}

pub(super) fn events_from(value: &str) -> Result<EventsFrom, String> {
    let mut from = EventsFrom::default();
    for name in value.split(',').map(str::trim) {
        match name {
            "off" => {}
            "peruse" => from.peruse = true,
            "mpi_t" => from.mpi_t = true,
            "all" => from = EventsFrom { peruse: true, mpi_t: true },
            _ => return Err("is none of off, peruse, mpi_t, all".into()),
        }
    }
    Ok(from)
}

pub(super) fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "yes" | "true" => Ok(true),
        "off" | "0" | "no" | "false" => Ok(false),
        _ => Err("is neither on nor off".into()),
    }
}

/// The pairs of `name=value;...`, and a warning for each item that is not a pair.
pub(super) fn pairs(
    setting: &str,
    value: &str,
    warnings: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for item in value.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split_once('=') {
            Some((name, value)) => pairs.push((name.trim().to_owned(), value.trim().to_owned())),
            None => warnings.push(format!("{setting}: {item}: no value; ignored")),
        }
    }
    pairs
}
