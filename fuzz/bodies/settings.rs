//! Environment variables, `NAME=VALUE` in each line: whatever they hold, libgyan.so gets settings that it can work with,
//! and a warning names each one that it did not understand.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use gyan_results::Class;

use super::config::Config;

pub(crate) fn settings(bytes: &[u8]) {
    let variables = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut parts = line.splitn(2, |byte| *byte == b'=');
        let name = String::from_utf8(parts.next()?.to_vec()).ok()?;
        Some((name, OsString::from_vec(parts.next()?.to_vec())))
    });
    let variables: Vec<_> = variables.collect();
    let mut config = Config::from_variables(variables.iter().cloned());
    for warning in &config.warnings {
        assert!(variables.iter().any(|(name, _)| warning.starts_with(name.as_str())));
    }
    assert!(config.budget.is_none_or(|budget| (0.0..=1.0).contains(&budget)));
    assert!(config.series.is_none_or(|interval| !interval.is_zero()));
    assert!(config.watch.is_none_or(|watch| !watch.variable.is_empty()));
    for class in Class::ALL {
        let name = "pml_ob1_unexpected_msgq_length";
        config.wanted.pvars.selects(name, class);
        config.wanted.sampled.selects_or(name, class, false);
    }
    assert!(config.wanted.unmatched().all(|warning| warning.contains(": ")));
}
