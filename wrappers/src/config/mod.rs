//! The settings: the only reader of the environment.
//!
//! [`table`] has a row for each of them.

pub(crate) mod denylist;
#[allow(unsafe_code)]
mod environ;
pub(crate) mod selection;
mod site;
mod table;
mod values;

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub(crate) use table::Config;
use table::TABLE;
pub(crate) use values::{
    EventsFrom, LabelSource, Live, Notices, RecordCvars, Reduce, Regions, SLOWEST_AT_MOST,
    TimelineWindow, WatchFor,
};

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
        let variables: Vec<_> = own().collect();
        site::preset(&variables).unwrap_or_else(|| Config::from_variables(variables.into_iter()))
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
#[allow(unsafe_code)]
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

/// Whether the user names tools for OpenMP, of which a runtime takes the first.
pub(crate) fn names_openmp_tools() -> bool {
    std::env::var_os("OMP_TOOL_LIBRARIES").is_some_and(|libraries| !libraries.is_empty())
}

/// Whether this process has more rights than its user: then it ignores the environment.
#[allow(unsafe_code)]
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
    rank_of_launcher().is_none_or(|rank| rank == "0")
}

/// Whether a launcher started this process as a rank.
pub(crate) fn is_launched() -> bool {
    rank_of_launcher().is_some()
}

fn rank_of_launcher() -> Option<String> {
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"].into_iter().find_map(launcher)
}

/// The names of all environment variables that are text.
pub(crate) fn names() -> Vec<String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
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
    use std::time::Duration;

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
    fn as_many_of_the_slowest_iterations_are_kept_as_a_number_says() {
        let slowest = |text| config(&[("GYAN_TIMELINE_SLOWEST", text)]).timeline_slowest;
        assert_eq!(["1", "50", "off"].map(slowest), [Some(1), Some(50), None]);
        for wrong in ["0", "51", "-1", "3.5", "many"] {
            let config = config(&[("GYAN_TIMELINE_SLOWEST", wrong)]);
            assert_eq!(config.timeline_slowest, None, "{wrong}");
            let warning = format!("GYAN_TIMELINE_SLOWEST={wrong}: is not a number from 1 to 50");
            assert!(config.warnings[0].starts_with(&warning), "{:?}", config.warnings);
        }
    }

    #[test]
    fn a_window_of_the_timeline_is_a_length_and_a_beginning() {
        let window = |text| config(&[("GYAN_TIMELINE_WINDOW", text)]).timeline_window;
        let of = |length, from| {
            let [length, from] = [length, from].map(Duration::from_millis);
            TimelineWindow { from, length }
        };
        assert_eq!(window("10s@60s"), Some(of(10_000, 60_000)));
        assert_eq!(window("500ms @ 1m 30s"), Some(of(500, 90_000)));
        assert_eq!(window("2s@0"), Some(of(2000, 0)));
        assert_eq!(window("off"), None);
        for (wrong, why) in [
            ("10s", "does not say from when on"),
            ("@60s", "before @"),
            ("0s@60s", "before @"),
            ("10@60s", "before @"),
            ("10s@", "after @"),
            ("10s@-1s", "after @"),
        ] {
            let config = config(&[("GYAN_TIMELINE_WINDOW", wrong)]);
            assert_eq!(config.timeline_window, None, "{wrong}");
            assert!(config.warnings[0].contains(why), "{wrong}: {:?}", config.warnings);
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
}
