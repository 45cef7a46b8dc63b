//! Every setting, a row each: `settings!` makes of the rows what the user asked for ([`Config`]), the parser
//! ([`TABLE`]) and, by a test, docs/settings.md.

use std::path::PathBuf;
use std::time::Duration;

use gyan_results::SiteSettings;

use super::selection::Wanted;
use super::values::{
    EventsFrom, LabelSource, Live, Notices, RecordCvars, Reduce, Regions, TimelineWindow, WatchFor,
    choice, choices, directory, events_from, interval, live, mode, names, number, pairs, share,
    size, switch, timeline_slowest, timeline_window, unless, watch_for,
};

/// One environment variable.
pub(super) struct Setting {
    pub(super) name: &'static str,
    #[cfg(test)]
    default: &'static str,
    #[cfg(test)]
    meaning: &'static [&'static str],
    /// Adopts the value, or says what is wrong with it.
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// The settings. A row is
///
/// ```text
/// /// how long a rank waits at its end          what the manual says
/// GYAN_WRITE_TIMEOUT ("20s")                    the variable; its default, as the manual says it
///     write_timeout: Duration                   where the value is in `Config`
///     = Duration::from_secs(20), interval;      its default; what reads it, or says what is wrong with it
/// ```
///
/// A row that fills another field, or warns of a part of its value, has `=>` and a function of the whole `Config`
/// instead of a reader. A row without either is for other programs than libgyan.so.
macro_rules! settings {
    ($(
        $(#[doc = $meaning:literal])+
        $name:ident ($default:literal) $($field:ident : $type:ty = $initial:expr)? $(, $read:expr)?
            $(=> $set:expr)?;
    )+) => {
        /// What the user asked for.
        #[derive(Debug)]
        #[allow(clippy::struct_excessive_bools)] // settings that are on or off
        pub(crate) struct Config {
            $($( pub(crate) $field: $type, )?)+
            /// Which variables to read and to sample.
            pub(crate) wanted: Wanted,
            /// The site's settings, if it is the site that wants this run recorded and not its user.
            pub(crate) site: Option<SiteSettings>,
            /// Settings that could not be understood; each names the variable.
            pub(crate) warnings: Vec<String>,
        }

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $($( $field: $initial, )?)+
                    wanted: Wanted::default(),
                    site: None,
                    warnings: Vec::new(),
                }
            }
        }

        /// Every variable that gyan reads.
        pub(super) const TABLE: &[Setting] = &[$(
            Setting {
                name: stringify!($name),
                #[cfg(test)]
                default: $default,
                #[cfg(test)]
                meaning: &[$($meaning),+],
                set: setter!($($field)?; $($read)?; $($set)?),
            }
        ),+];
    };
}

/// What a row does with a value.
macro_rules! setter {
    (; ;) => {
        |_, _| Ok(())
    };
    ($field:ident; $read:expr;) => {
        |config, value| {
            let read: fn(&str) -> Result<_, String> = $read;
            config.$field = read(value)?;
            Ok(())
        }
    };
    ($($field:ident)?; ; $set:expr) => {
        $set
    };
}

settings! {
    /// `off`: libgyan.so does nothing at all
    GYAN ("on") on: bool = true, switch;

    /// the file by which a [site](for-sites.md) has all jobs recorded; any other setting makes a run its user's own, of which the
    /// site gets no record, and so does `off`
    GYAN_SITE ("/etc/gyan/site.toml, if it is there");

    /// the run directory
    GYAN_OUTPUT ("`gyan-<program>-<job id>`")
        output: Option<PathBuf> = None, |value| Ok(Some(value.into()));

    /// the permissions of a run directory that gyan makes, as for `chmod`; the umask still applies
    GYAN_MODE ("0700") mode: u32 = 0o700, mode;

    /// `off`: the command line is not recorded; the program's name still is, in the name of the run directory
    GYAN_RECORD_COMMAND ("on") record_command: bool = true, switch;

    /// `off`: no separate process on each host writes the files; ranks write them and wait for the file system as
    /// long as it takes, and a rank that is killed leaves nothing
    GYAN_KEEPER ("on") keeper: bool = true, switch;

    /// `off`: a crash is said without the function and line: no handlers are installed for it
    GYAN_CRASHES ("on") crashes: bool = true, switch;

    /// how long a rank waits at its end until its profile is written; then it goes on, and leaves the profile in
    /// `TMPDIR`, `/tmp` or `/dev/shm`, and says so
    GYAN_WRITE_TIMEOUT ("20s") write_timeout: Duration = Duration::from_secs(20), interval;

    /// where a process that is killed leaves what was known so far: a directory, in which the run gets one of its
    /// own, such as `/dev/shm`; `off`: nowhere
    GYAN_LIVE ("the run directory") live: Live = Live::InOutput, |value| Ok(live(value));

    /// a directory in which the keeper of each host writes metrics of its ranks while they run, for
    /// [Prometheus](metrics.md): that of node_exporter's textfile collector
    GYAN_METRICS ("off") metrics: Option<PathBuf> = None, |value| unless("off", value, directory);

    /// which performance variables to read: `name[:CLASS];...` with `*` and `?`; a leading `-` leaves a name out
    GYAN_PVARS ("all") => |config, value| {
        config.wanted.pvars.extend("GYAN_PVARS", value, &mut config.warnings);
        Ok(())
    };

    /// a file of performance variables that are never touched, as `gyan doctor --probe` writes it: a name with `*`
    /// and `?`, or `index N`, on each line
    GYAN_QUIRKS ("") => |config, value| {
        let text = std::fs::read(value).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text);
        config.wanted.exclusions.extend(value, &text, &mut config.warnings);
        Ok(())
    };

    /// the name that the original GYAN gave to `GYAN_PVARS`
    MPIT_VAR_TO_TRACE ("") => |config, value| {
        config.wanted.pvars.extend("MPIT_VAR_TO_TRACE", value, &mut config.warnings);
        Ok(())
    };

    /// which variables to sample while the program runs, beside those of the classes LEVEL, SIZE, STATE, PERCENTAGE
    /// and of watermarks: `name,...` with `*` and `?`; a leading `-` leaves a name out; `none`
    GYAN_SAMPLE ("by class") => |config, value| {
        let value = if value == "none" { "-*" } else { value };
        config.wanted.sampled.extend("GYAN_SAMPLE", value, &mut config.warnings);
        Ok(())
    };

    /// what gyan may cost between start and end, as a share of the run; `none`: every call is timed and sampled
    GYAN_BUDGET ("0.5%") budget: Option<f64> = Some(0.005), |value| unless("none", value, share);

    /// `mpi`: the ranks reduce their profiles inside MPI, in `MPI_Finalize`, and rank 0 writes one summary instead of
    /// one file per rank; gyan must be in all ranks; `auto`: with more than 1024 ranks; `both`: the files too
    GYAN_REDUCE ("`off`; `auto` when `gyan run` starts the launcher")
        reduce: Reduce = Reduce::Off, choice;

    /// how long a rank waits for others in that reduction before all ranks write their files
    GYAN_REDUCE_TIMEOUT ("30s") reduce_timeout: Duration = Duration::from_secs(30), interval;

    /// beside rank 0, the ranks that are extreme in these write their profiles too: `time` in MPI, with the rank in
    /// the middle, `umq` for the longest queue of unexpected messages, or names of performance variables with `*` and
    /// `?`
    GYAN_REDUCE_PROFILES ("time,umq")
        reduce_profiles: Vec<String> = vec!["time".into(), "umq".into()],
        |value| Ok(names(value));

    /// keep a record of each sampled variable for every interval: `100ms`, `2s`
    GYAN_SERIES ("off") series: Option<Duration> = None, |value| unless("off", value, interval);

    /// how much memory the records take on each rank; the oldest are merged to keep to it
    GYAN_SERIES_BYTES ("1048576") series_bytes: usize = 1 << 20, |value| number(value, "bytes");

    /// count the receives at which a variable is above a threshold, by the place in the program: `VARIABLE>N`; `umq`
    /// is the length of the queue of unexpected messages, whatever this MPI calls it
    GYAN_WATCH ("off") watch: Option<WatchFor> = None, |value| unless("off", value, watch_for);

    /// record where in the program the timed calls come from: `on` or `off`
    GYAN_SITES ("on") sites: bool = true, switch;

    /// `off`: an OpenMP runtime is not asked what its threads do
    GYAN_OPENMP ("on") openmp: bool = true, switch;

    /// whose regions are [phases](phases.md#regions-that-your-program-has-already): `kokkos`, `nvtx`, `itt`, `petsc`, `caliper`; `gyan run --phases`
    /// also sets the variables by which the first three find libgyan.so
    GYAN_PHASES ("") phases: Vec<Regions> = Vec::new(), choices;

    /// `off`: the time of collectives is not divided into waiting and transfer, and messages are not compared between their two
    /// ranks to know how long which of them waits for the other
    GYAN_WAITING ("on") waiting: bool = true, switch;

    /// record the latest calls of each rank, with their times, in memory of this size, such as `4MiB`: for
    /// [`gyan timeline`](timeline.md); the budget does not cover it
    GYAN_TIMELINE ("off") timeline: Option<usize> = None, |value| unless("off", value, size);

    /// with `GYAN_TIMELINE`: record only in a window of time that counts from the end of `MPI_Init`: `10s@60s` is for 10 s,
    /// from 60 s on
    GYAN_TIMELINE_WINDOW ("off")
        timeline_window: Option<TimelineWindow> = None, |value| unless("off", value, timeline_window);

    /// with `GYAN_TIMELINE`: record only inside of [phases](phases.md) with this name, such as `exchange`, or
    /// `step/exchange` inside of `step` only
    GYAN_TIMELINE_PHASE ("") timeline_phase: Option<String> = None, |value| Ok(Some(value.into()));

    /// with `GYAN_TIMELINE`: keep so many of the [slowest iterations](timeline.md) and a typical one in place of the latest
    /// calls; with `GYAN_TIMELINE_PHASE` an iteration is a pass through that phase
    GYAN_TIMELINE_SLOWEST ("off")
        timeline_slowest: Option<usize> = None, |value| unless("off", value, timeline_slowest);

    /// have the MPI library call gyan at each message, where it can: `peruse`, `mpi_t` (events of MPI 4) or `all`;
    /// the budget does not cover it
    GYAN_EVENTS ("off") events: EventsFrom = EventsFrom::default(), events_from;

    /// a variable with more elements is kept as sum, minimum and maximum
    GYAN_ELEMENTS ("64") elements: usize = 64, |value| number(value, "elements");

    /// how many communicators, windows and files are followed at a time, and how many are kept after they are freed
    GYAN_OBJECTS ("64") objects: usize = 64, |value| number(value, "objects");

    /// `off`: messages are not counted by the rank that they go to
    GYAN_PEERS ("on") peers: bool = true, switch;

    /// `off`: nothing about the hosts is recorded: processors, memory, networks, energy, and what the MPI library has loaded
    /// for them
    GYAN_MACHINE ("on") machine: bool = true, switch;

    /// `off`: the processor is not asked how many instructions, cycles and cache misses it counts
    GYAN_COUNTERS ("on") counters: bool = true, switch;

    /// `warnings`: without the line at the end that names the run directory; `none`: nothing on stderr at all
    GYAN_NOTICES ("all") notices: Notices = Notices::All, choice;

    /// the id of the run, where the launcher gives none that all ranks share
    GYAN_JOB_ID ("the launcher's") job_id: Option<String> = None, |value| Ok(Some(value.into()));

    /// labels that tell this run from others, such as the size of its problem: `name=value;...`
    GYAN_LABELS ("") labels: Vec<(String, String)> = Vec::new() => |config, value| {
        config.labels = pairs("GYAN_LABELS", value, &mut config.warnings);
        Ok(())
    };

    /// what else gives the run labels: `adiak`: numbers and texts that the program registers with Adiak as `adiak_general`, if that is a
    /// shared library; read in `MPI_Finalize`
    GYAN_LABELS_FROM ("") labels_from: Vec<LabelSource> = Vec::new(), choices;

    /// control variables to set, as early as the library allows: `name=value;...`
    GYAN_CVARS ("") cvars: Vec<(String, String)> = Vec::new() => |config, value| {
        config.cvars = pairs("GYAN_CVARS", value, &mut config.warnings);
        Ok(())
    };

    /// which control variables rank 0 records: `changed` (what the environment, a parameter file or gyan has set),
    /// `all` or `none`
    GYAN_CVARS_RECORD ("changed") cvars_record: RecordCvars = RecordCvars::Changed, choice;

    /// monitoring to turn on that the MPI library leaves off: `all`, or names that `gyan doctor` shows: `name,...`
    GYAN_ENABLE ("") enable: Vec<String> = Vec::new(), |value| Ok(names(value));

    /// set by `gyan varlist`: list the variables into this file instead of running the program
    GYAN_LIST ("") list: Option<PathBuf> = None, |value| Ok(Some(value.into()));

    /// set by `gyan varlist -m`: list before `MPI_Init`
    GYAN_LIST_BEFORE ("off") list_before_init: bool = false, switch;

    /// set by `gyan doctor --probe`: a listing also starts, reads and stops what does not run by itself
    GYAN_LIST_TRIES ("off") list_tries: bool = false, switch;

    /// set by `gyan doctor`: a directory in which each process that loads libgyan.so notes what it is
    GYAN_DOCTOR ("");

    /// where `scripts/testbed` keeps the MPIs for the tests
    GYAN_TESTBED ("in the user's cache");

    /// the libgyan.so that `gyan run` loads
    GYAN_LIBRARY ("beside `gyan`");

    /// the command that `import gyan` in Python asks
    GYAN_COMMAND ("that of the package");

    /// set by the module file to libgyan.so, for `LD_PRELOAD=$GYAN_PRELOAD srun ./app`
    GYAN_PRELOAD ("unset");
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// `BLESS=1` writes it.
    #[test]
    fn the_manual_has_the_settings_of_this_table() {
        let mut text = String::from(
            "# Settings\n\nThe command line sets these for you; with `LD_PRELOAD` set them yourself.\n\n\
             | variable | default | meaning |\n| :-- | :-- | :-- |\n",
        );
        for Setting { name, default, meaning, .. } in TABLE {
            let meaning: Vec<&str> = meaning.iter().map(|line| line.trim()).collect();
            writeln!(text, "| `{name}` | {default} | {} |", meaning.join(" ")).unwrap();
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(text, written, "docs/settings.md is not the table's; BLESS=1 writes it");
    }
}
