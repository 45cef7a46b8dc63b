//! Who wants this run recorded: its user, who sets something, or the site, whose settings are in a file?

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use gyan_results::{SiteError, SiteSettings};

use super::{Config, Live, Notices, RecordCvars, Reduce};

/// The file of a site that names none in the environment.
const FILE: &str = "/etc/gyan/site.toml";
/// The variable that names it.
const NAME: &str = "GYAN_SITE";
/// What modules and tests set for users who have not asked for a profile.
const NO_WISHES: [&str; 5] = [NAME, "GYAN_COMMAND", "GYAN_LIBRARY", "GYAN_PRELOAD", "GYAN_TESTBED"];

/// The settings that the site's file gives a run whose user has set only these variables; none where the run is
/// the user's own. A file that has something wrong in it turns gyan off: nobody has asked for this run.
pub(super) fn preset(variables: &[(String, OsString)]) -> Option<Config> {
    preset_from(variables, Path::new(FILE))
}

fn preset_from(variables: &[(String, OsString)], file: &Path) -> Option<Config> {
    let mut set = variables.iter().filter(|(_, value)| !value.is_empty());
    if set.clone().any(|(name, _)| !NO_WISHES.contains(&name.as_str())) {
        return None;
    }
    let named = set.find(|(name, _)| name == NAME).map(|(_, value)| value);
    if named.is_some_and(|value| value == "off") {
        return None;
    }
    match SiteSettings::read(named.map_or(file, Path::new)) {
        Ok(settings) => Some(Config::for_site(settings)),
        Err(SiteError::Unreadable(error))
            if named.is_none() && error.kind() == ErrorKind::NotFound =>
        {
            None
        }
        Err(_) => Some(Config { on: false, ..Config::default() }),
    }
}

impl Config {
    /// What a record needs and no more, silently.
    fn for_site(settings: SiteSettings) -> Config {
        Config {
            record_command: settings.record_command,
            sites: settings.functions_of_sites,
            crashes: false,
            live: Live::Off,
            reduce: Reduce::Mpi,
            reduce_profiles: Vec::new(),
            cvars_record: RecordCvars::None,
            notices: Notices::None,
            site: Some(settings),
            ..Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(variables: &[(&str, &str)], file: &Path) -> Option<Config> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
        preset_from(&variables.iter().map(owned).collect::<Vec<_>>(), file)
    }

    #[test]
    fn the_site_gets_what_no_user_has_asked_for() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("site.toml");
        assert!(preset(&[], &file).is_none(), "there is no file");
        std::fs::write(&file, "spool = '/s'\ncluster = 'x'\n").unwrap();
        for nothing in [&[][..], &[("GYAN_OUTPUT", "")], &[("GYAN_PRELOAD", "x.so")]] {
            let config = preset(nothing, &file).unwrap();
            assert!(config.on && config.site.is_some(), "{nothing:?}");
            assert_eq!(config.notices, Notices::None);
            assert!(!config.sites && !config.record_command && !config.crashes);
        }
        for wish in [("GYAN_OUTPUT", "x"), ("GYAN", "off"), ("GYAN", "on"), ("GYAN_SITE", "off")] {
            assert!(preset(&[wish], &file).is_none(), "{wish:?}");
        }
    }

    #[test]
    fn a_file_that_is_wrong_turns_gyan_off() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("site.toml");
        let named = [("GYAN_SITE", file.to_str().unwrap())];
        let is_off = || preset(&named, Path::new("")).is_some_and(|config| !config.on);
        assert!(is_off(), "it is not there");
        for wrong in ["", "spool = '/s'\n", "spool = 's'\ncluster = 'x'\n", "?"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(is_off(), "{wrong}");
        }
    }
}
