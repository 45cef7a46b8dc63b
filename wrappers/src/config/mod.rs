//! The settings: the only reader of the environment.
//!
//! [`TABLE`] is the parser and, by a test, the table in docs/settings.md.

pub(crate) mod denylist;
mod environ;
pub(crate) mod selection;

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::selection::Wanted;

/// What the user asked for.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // settings that are on or off
pub(crate) struct Config {
    pub(crate) on: bool,
    pub(crate) output: Option<PathBuf>,
    /// The permissions of the run directory, before the umask.
    pub(crate) mode: u32,
    pub(crate) job_id: Option<String>,
    pub(crate) record_command: bool,
    pub(crate) wanted: Wanted,
    /// Where the live file is.
    pub(crate) live: Live,
    /// Whether a separate process on each host writes files.
    pub(crate) keeper: bool,
    /// How long a rank waits until its profile is written.
    pub(crate) write_timeout: Duration,
    /// What gyan may cost, as a share of the run; none for no limit.
    pub(crate) budget: Option<f64>,
    pub(crate) reduce: Reduce,
    /// How long a rank waits for the others in the reduction.
    pub(crate) reduce_timeout: Duration,
    /// The measures whose extreme ranks write their profiles besides the reduction.
    pub(crate) reduce_profiles: Vec<String>,
    /// The interval of the series, if one is wanted.
    pub(crate) series: Option<Duration>,
    /// The most memory that a series takes.
    pub(crate) series_bytes: usize,
    /// The variable that is compared at receives, and the threshold.
    pub(crate) watch: Option<WatchFor>,
    /// Whether timed calls record where they come from.
    pub(crate) sites: bool,
    /// Whether synchronising collectives are divided into waiting and transfer.
    pub(crate) waiting: bool,
    pub(crate) events: EventsFrom,
    pub(crate) elements: usize,
    pub(crate) objects: usize,
    /// Whether messages are counted by peer.
    pub(crate) peers: bool,
    /// Whether the profile describes the host.
    pub(crate) machine: bool,
    pub(crate) notices: Notices,
    /// Names and values of control variables to set.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) cvars: Vec<(String, String)>,
    pub(crate) cvars_record: RecordCvars,
    /// Names of monitoring to turn on; `all` is one of them.
    pub(crate) enable: Vec<String>,
    pub(crate) list: Option<PathBuf>,
    pub(crate) list_before_init: bool,
    /// A listing tries everything that a run does with a variable.
    pub(crate) list_tries: bool,
    /// Settings that could not be understood; each names the variable.
    pub(crate) warnings: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            on: true,
            output: None,
            mode: 0o700,
            job_id: None,
            record_command: true,
            wanted: Wanted::default(),
            live: Live::InOutput,
            keeper: true,
            write_timeout: Duration::from_secs(20),
            budget: Some(0.005),
            reduce: Reduce::Off,
            reduce_timeout: Duration::from_secs(30),
            reduce_profiles: vec!["time".into(), "umq".into()],
            series: None,
            series_bytes: 1 << 20,
            watch: None,
            sites: true,
            waiting: true,
            events: EventsFrom::default(),
            elements: 64,
            objects: 64,
            peers: true,
            machine: true,
            notices: Notices::All,
            labels: Vec::new(),
            cvars: Vec::new(),
            cvars_record: RecordCvars::Changed,
            enable: Vec::new(),
            list: None,
            list_before_init: false,
            list_tries: false,
            warnings: Vec::new(),
        }
    }
}

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

/// What may be said on stderr.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Notices {
    All,
    Warnings,
    None,
}

/// Receives are watched at which a variable is above a threshold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WatchFor {
    /// As the user names it.
    pub(crate) variable: String,
    pub(crate) threshold: u64,
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

/// One environment variable.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// Shown in docs/settings.md.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) default: &'static str,
    /// Shown in docs/settings.md.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) meaning: &'static str,
    /// Adopts the value, or says what is wrong with it.
    set: fn(&mut Config, &str) -> Result<(), String>,
}

/// Every variable that gyan reads.
pub(crate) const TABLE: &[Setting] = &[
    Setting {
        name: "GYAN",
        default: "on",
        meaning: "`off`: libgyan.so does nothing at all",
        set: |config, value| {
            config.on = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_OUTPUT",
        default: "`gyan-<program>-<job id>`",
        meaning: "the run directory",
        set: |config, value| {
            config.output = Some(value.into());
            Ok(())
        },
    },
    Setting {
        name: "GYAN_MODE",
        default: "0700",
        meaning: "the permissions of a run directory that gyan makes, as for `chmod`; the umask \
            still applies",
        set: |config, value| {
            config.mode = mode(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_RECORD_COMMAND",
        default: "on",
        meaning: "`off`: the command line is not recorded; the program's name still is, in the \
            name of the run directory",
        set: |config, value| {
            config.record_command = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_LIVE",
        default: "the run directory",
        meaning: "where a process that is killed leaves what was known so far: a directory, in which the run \
                  gets one of its own, such as `/dev/shm`; `off`: nowhere",
        set: |config, value| {
            config.live = match value {
                "off" => Live::Off,
                _ => Live::In(value.into()),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_KEEPER",
        default: "on",
        meaning: "`off`: no separate process on each host writes the files; ranks write them and \
            wait for the file system as long as it takes, and a rank that is killed leaves \
            nothing",
        set: |config, value| {
            config.keeper = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_WRITE_TIMEOUT",
        default: "20s",
        meaning: "how long a rank waits at its end until its profile is written; then it goes on, and leaves the \
                  profile in `TMPDIR`, `/tmp` or `/dev/shm`, and says so",
        set: |config, value| {
            config.write_timeout = interval(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_PVARS",
        default: "all",
        meaning: "which performance variables to read: `name[:CLASS];...` with `*` and `?`; a \
                  leading `-` leaves a name out",
        set: |config, value| {
            config.wanted.pvars.extend("GYAN_PVARS", value, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "GYAN_QUIRKS",
        default: "",
        meaning: "a file of performance variables that are never touched, as `gyan doctor --probe` \
                  writes it: a name with `*` and `?`, or `index N`, on each line",
        set: |config, value| {
            let text = std::fs::read(value).map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&text);
            config.wanted.exclusions.extend(value, &text, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "MPIT_VAR_TO_TRACE",
        default: "",
        meaning: "the name that the original GYAN gave to `GYAN_PVARS`",
        set: |config, value| {
            config.wanted.pvars.extend("MPIT_VAR_TO_TRACE", value, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "GYAN_SAMPLE",
        default: "by class",
        meaning: "which variables to sample while the program runs, beside those of the classes LEVEL, \
                  SIZE, STATE, PERCENTAGE and of watermarks: `name,...` with `*` and `?`; a leading \
                  `-` leaves a name out; `none`",
        set: |config, value| {
            let value = if value == "none" { "-*" } else { value };
            config.wanted.sampled.extend("GYAN_SAMPLE", value, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "GYAN_BUDGET",
        default: "0.5%",
        meaning: "what gyan may cost between start and end, as a share of the run; `none`: every call is timed \
                  and sampled",
        set: |config, value| {
            config.budget = match value {
                "none" => None,
                _ => Some(share(value)?),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_REDUCE",
        default: "`off`; `auto` when `gyan run` starts the launcher",
        meaning: "`mpi`: the ranks reduce their profiles inside MPI, in `MPI_Finalize`, and rank 0 \
                  writes one summary instead of one file per rank; gyan must be in all ranks; \
                  `auto`: with more than 1024 ranks; `both`: the files too",
        set: |config, value| {
            config.reduce = match value {
                "off" => Reduce::Off,
                "mpi" => Reduce::Mpi,
                "auto" => Reduce::Auto,
                "both" => Reduce::Both,
                _ => return Err("is none of off, mpi, auto, both".into()),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_REDUCE_TIMEOUT",
        default: "30s",
        meaning: "how long a rank waits for others in that reduction before all ranks write their \
            files",
        set: |config, value| {
            config.reduce_timeout = interval(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_REDUCE_PROFILES",
        default: "time,umq",
        meaning: "beside rank 0, the ranks that are extreme in these write their profiles too: `time` in MPI, \
                  with the rank in the middle, `umq` for the longest queue of unexpected messages, or \
                  names of performance variables with `*` and `?`",
        set: |config, value| {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            config.reduce_profiles = names.map(str::to_owned).collect();
            Ok(())
        },
    },
    Setting {
        name: "GYAN_SERIES",
        default: "off",
        meaning: "keep a record of each sampled variable for every interval: `100ms`, `2s`",
        set: |config, value| {
            config.series = match value {
                "off" => None,
                _ => Some(interval(value)?),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_SERIES_BYTES",
        default: "1048576",
        meaning: "how much memory the records take on each rank; the oldest are merged to keep to it",
        set: |config, value| {
            config.series_bytes =
                value.parse().map_err(|_| "is not a number of bytes".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_WATCH",
        default: "off",
        meaning: "count the receives at which a variable is above a threshold, by the place in the program: \
                  `VARIABLE>N`; `umq` is the length of the queue of unexpected messages, whatever this \
                  MPI calls it",
        set: |config, value| {
            config.watch = match value {
                "off" => None,
                _ => Some(watch_for(value)?),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_SITES",
        default: "on",
        meaning: "record where in the program the timed calls come from: `on` or `off`",
        set: |config, value| {
            config.sites = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_WAITING",
        default: "on",
        meaning: "`off`: the time of barriers and other collectives that no rank leaves before all \
            have entered is not divided into waiting and transfer",
        set: |config, value| {
            config.waiting = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_EVENTS",
        default: "off",
        meaning: "have the MPI library call gyan at each message, where it can: `peruse`, `mpi_t` \
            (events of MPI 4) or `all`; the budget does not cover it",
        set: |config, value| {
            config.events = events_from(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_ELEMENTS",
        default: "64",
        meaning: "a variable with more elements is kept as sum, minimum and maximum",
        set: |config, value| {
            config.elements =
                value.parse().map_err(|_| "is not a number of elements".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_OBJECTS",
        default: "64",
        meaning: "how many communicators, windows and files are followed at a time, and how many \
            are kept after they are freed",
        set: |config, value| {
            config.objects = value.parse().map_err(|_| "is not a number of objects".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_PEERS",
        default: "on",
        meaning: "`off`: messages are not counted by the rank that they go to",
        set: |config, value| {
            config.peers = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_MACHINE",
        default: "on",
        meaning: "`off`: nothing about the hosts is recorded: processors, memory, networks, and \
                  what the MPI library has loaded for them",
        set: |config, value| {
            config.machine = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_NOTICES",
        default: "all",
        meaning: "`warnings`: without the line at the end that names the run directory; `none`: \
                  nothing on stderr at all",
        set: |config, value| {
            config.notices = match value {
                "all" => Notices::All,
                "warnings" => Notices::Warnings,
                "none" => Notices::None,
                _ => return Err("is none of all, warnings, none".into()),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_JOB_ID",
        default: "the launcher's",
        meaning: "the id of the run, where the launcher gives none that all ranks share",
        set: |config, value| {
            config.job_id = Some(value.into());
            Ok(())
        },
    },
    Setting {
        name: "GYAN_LABELS",
        default: "",
        meaning: "labels that tell this run from others, such as the size of its problem: \
            `name=value;...`",
        set: |config, value| {
            config.labels = pairs("GYAN_LABELS", value, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "GYAN_CVARS",
        default: "",
        meaning: "control variables to set, as early as the library allows: `name=value;...`",
        set: |config, value| {
            config.cvars = pairs("GYAN_CVARS", value, &mut config.warnings);
            Ok(())
        },
    },
    Setting {
        name: "GYAN_CVARS_RECORD",
        default: "changed",
        meaning: "which control variables rank 0 records: `changed` (what the environment, a \
                  parameter file or gyan has set), `all` or `none`",
        set: |config, value| {
            config.cvars_record = match value {
                "all" => RecordCvars::All,
                "changed" => RecordCvars::Changed,
                "none" => RecordCvars::None,
                _ => return Err("is none of all, changed, none".into()),
            };
            Ok(())
        },
    },
    Setting {
        name: "GYAN_ENABLE",
        default: "",
        meaning: "monitoring to turn on that the MPI library leaves off: `all`, or names that \
            `gyan doctor` shows: `name,...`",
        set: |config, value| {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            config.enable.extend(names.map(str::to_owned));
            Ok(())
        },
    },
    Setting {
        name: "GYAN_LIST",
        default: "",
        meaning: "set by `gyan varlist`: list the variables into this file instead of running the \
                  program",
        set: |config, value| {
            config.list = Some(value.into());
            Ok(())
        },
    },
    Setting {
        name: "GYAN_LIST_BEFORE",
        default: "off",
        meaning: "set by `gyan varlist -m`: list before `MPI_Init`",
        set: |config, value| {
            config.list_before_init = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_LIST_TRIES",
        default: "off",
        meaning: "set by `gyan doctor --probe`: a listing also starts, reads and stops what does not \
                  run by itself",
        set: |config, value| {
            config.list_tries = switch(value)?;
            Ok(())
        },
    },
    Setting {
        name: "GYAN_DOCTOR",
        default: "",
        meaning: "set by `gyan doctor`: a directory in which each process that loads libgyan.so notes what it \
                  is",
        set: |_, _| Ok(()),
    },
    Setting {
        name: "GYAN_TESTBED",
        default: "in the user's cache",
        meaning: "where `scripts/testbed` keeps the MPIs for the tests",
        set: |_, _| Ok(()),
    },
    Setting {
        name: "GYAN_LIBRARY",
        default: "beside `gyan`",
        meaning: "the libgyan.so that `gyan run` loads",
        set: |_, _| Ok(()),
    },
    Setting {
        name: "GYAN_PRELOAD",
        default: "unset",
        meaning: "set by the module file to libgyan.so, for `LD_PRELOAD=$GYAN_PRELOAD srun ./app`",
        set: |_, _| Ok(()),
    },
];

/// A share: `0.5%`, `0.005`.
fn share(value: &str) -> Result<f64, String> {
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
fn mode(value: &str) -> Result<u32, String> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(value, 8).ok().filter(|_| digits);
    mode.filter(|mode| mode & !0o777 == 0 && mode & 0o700 == 0o700)
        .ok_or_else(|| "is not an octal number from 0700 to 0777".to_owned())
}

/// A time that is not nothing: `100ms`.
fn interval(value: &str) -> Result<Duration, String> {
    humantime::parse_duration(value)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| "is not an interval such as 100ms".to_owned())
}

/// `umq`, `umq>5`.
fn watch_for(value: &str) -> Result<WatchFor, String> {
    let (variable, threshold) = value.split_once('>').unwrap_or((value, "0"));
    let threshold =
        threshold.trim().parse().map_err(|_| "has no whole number after >".to_owned())?;
    let variable = variable.trim().to_owned();
    if variable.is_empty() {
        return Err("names no variable before >".into());
    }
    Ok(WatchFor { variable, threshold })
}

fn events_from(value: &str) -> Result<EventsFrom, String> {
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

fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "yes" | "true" => Ok(true),
        "off" | "0" | "no" | "false" => Ok(false),
        _ => Err("is neither on nor off".into()),
    }
}

impl Config {
    /// Adds each warning that is not yet in the list.
    pub(crate) fn warn_once(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// The settings of this process.
    pub(crate) fn from_env() -> Config {
        if is_privileged() {
            return Config { on: false, ..Config::default() };
        }
        Config::from_variables(own())
    }

    /// The settings among `variables`.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, OsString)>) -> Config {
        let mut config = Config::default();
        for (name, value) in variables {
            let Some(setting) = TABLE.iter().find(|setting| setting.name == name) else {
                config
                    .warnings
                    .push(format!("{name}: is not a setting of gyan; see docs/settings.md"));
                continue;
            };
            let value = value.to_string_lossy();
            // An empty value is how scripts unset a variable.
            if value.is_empty() {
                continue;
            }
            if let Err(what) = (setting.set)(&mut config, &value) {
                config.warnings.push(format!("{name}={value}: {what}; ignored"));
            }
        }
        config
    }
}

/// The directory of `gyan doctor`, if that started this process. Runs in every process that loads libgyan.so:
/// without the variable nothing is allocated, and only `getenv` is called.
pub(crate) fn doctor() -> Option<PathBuf> {
    // SAFETY: getenv(3), before the program's own code can change the environment.
    let value = unsafe { libc::getenv(c"GYAN_DOCTOR".as_ptr()) };
    if value.is_null() || is_privileged() {
        return None;
    }
    // SAFETY: a string that ends with 0.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then(|| OsStr::from_bytes(value.to_bytes()).into())
}

/// The settings of this process in the form `NAME=value`.
pub(crate) fn written() -> Vec<String> {
    own().map(|(name, value)| format!("{name}={}", value.to_string_lossy())).collect()
}

/// Whether this process has more rights than its user: then it ignores the environment.
fn is_privileged() -> bool {
    // SAFETY: getauxval reads a vector that the kernel set up.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The variables of the environment that are gyan's.
fn own() -> impl Iterator<Item = (String, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let ours = name == "GYAN"
            || name.starts_with("GYAN_")
            || TABLE.iter().any(|setting| setting.name == name);
        ours.then_some((name, value))
    })
}

/// Whether this process may be rank 0, according to the launcher.
pub(crate) fn may_be_first_rank() -> bool {
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
        .into_iter()
        .find_map(launcher)
        .is_none_or(|rank| rank == "0")
}

/// The names of all environment variables that are text.
pub(crate) fn names() -> Vec<String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// The pairs of `name=value;...`, and a warning for each item that is not a pair.
fn pairs(setting: &str, value: &str, warnings: &mut Vec<String>) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for item in value.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split_once('=') {
            Some((name, value)) => pairs.push((name.trim().to_owned(), value.trim().to_owned())),
            None => warnings.push(format!("{setting}: {item}: no value; ignored")),
        }
    }
    pairs
}

/// Sets a variable for the MPI library, which reads it at its start: the user asked for that with `GYAN_CVARS`
/// or `GYAN_ENABLE`, or the library would do so itself.
pub(crate) fn set_for_library(name: &str, value: &str) {
    environ::set(name, value);
}

/// A variable that a launcher set, if it exists and is text.
pub(crate) fn launcher(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        Config::from_variables(owned)
    }

    #[test]
    fn a_setting_that_cannot_be_understood_is_a_warning_and_the_default_stays() {
        let config = config(&[("GYAN_ELEMENTS", "many"), ("GYAN", "perhaps"), ("GYAN_PVAR", "x")]);
        assert_eq!(config.elements, 64);
        assert!(config.on);
        assert_eq!(config.warnings.len(), 3);
        for (warning, name) in config.warnings.iter().zip(["GYAN_ELEMENTS", "GYAN", "GYAN_PVAR"]) {
            assert!(warning.starts_with(name), "{warning}");
        }
    }

    #[test]
    fn a_budget_is_a_share_or_none() {
        let budget = |text| config(&[("GYAN_BUDGET", text)]).budget;
        assert_eq!(budget("1%"), Some(0.01));
        assert_eq!(budget("0.02"), Some(0.02));
        assert_eq!(budget("none"), None);
        for wrong in ["-1%", "200%", "much", "%", "NaN"] {
            let config = config(&[("GYAN_BUDGET", wrong)]);
            assert_eq!(config.budget, Some(0.005), "{wrong}");
            assert!(config.warnings[0].starts_with("GYAN_BUDGET="), "{wrong}");
        }
    }

    #[test]
    fn a_watch_is_a_variable_and_a_whole_number() {
        let watch = |text| config(&[("GYAN_WATCH", text)]).watch;
        let of = |variable: &str, threshold| WatchFor { variable: variable.into(), threshold };
        assert_eq!(watch("umq>5"), Some(of("umq", 5)));
        assert_eq!(watch("umq"), Some(of("umq", 0)));
        assert_eq!(watch("a_b > 12"), Some(of("a_b", 12)));
        assert_eq!(watch("off"), None);
        for wrong in ["umq>", "umq>-1", "umq>x", ">5"] {
            let config = config(&[("GYAN_WATCH", wrong)]);
            assert_eq!(config.watch, None, "{wrong}");
            assert_eq!(config.warnings.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn events_are_off_unless_asked_for() {
        let events = |text| config(&[("GYAN_EVENTS", text)]).events;
        assert_eq!(config(&[]).events, EventsFrom::default());
        assert_eq!(events("peruse"), EventsFrom { peruse: true, mpi_t: false });
        assert_eq!(events("peruse,mpi_t"), events("all"));
        assert_eq!(config(&[("GYAN_EVENTS", "some")]).warnings.len(), 1);
    }

    #[test]
    fn a_mode_is_octal_and_lets_gyan_in() {
        let mode = |text| config(&[("GYAN_MODE", text)]).mode;
        assert_eq!(mode("0750"), 0o750);
        assert_eq!(mode("755"), 0o755);
        for wrong in ["0", "0070", "rwx", "+700", "0780", "2750", "99999999999"] {
            let config = config(&[("GYAN_MODE", wrong)]);
            assert_eq!(config.mode, 0o700, "{wrong}");
            assert_eq!(config.warnings.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn an_interval_has_a_unit() {
        let series = |text| config(&[("GYAN_SERIES", text)]).series;
        assert_eq!(series("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(series("off"), None);
        for wrong in ["100", "0s", "soon"] {
            assert_eq!(config(&[("GYAN_SERIES", wrong)]).warnings.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn an_empty_setting_is_none() {
        assert!(config(&[("GYAN_OUTPUT", ""), ("GYAN", "")]).output.is_none());
    }

    #[test]
    fn the_table_in_the_manual_is_this_table() {
        let manual = include_str!("../../../docs/settings.md");
        for Setting { name, default, meaning, .. } in TABLE {
            let row = format!("| `{name}` | {default} | {meaning} |");
            assert!(manual.contains(&row), "docs/settings.md lacks the row\n{row}");
        }
    }
}
