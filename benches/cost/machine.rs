//! On which machine was that, and when? What a reader needs to decide whether the figures are comparable with
//! others.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use serde::Serialize;

use super::common::root;

/// The machine, as the system describes it; unknown parts are left out.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    /// Model of the processor.
    pub(super) processor: String,
    /// Number of processors that the bench may use.
    pub(super) cores: usize,
    /// Whether it is a virtual machine: others may be on the same processor, unseen.
    pub(super) is_virtual: bool,
    /// Memory in GiB.
    pub(super) memory_gib: f64,
    /// Name and version of the distribution.
    pub(super) system: String,
    /// Version of the kernel.
    pub(super) kernel: String,
    /// The kernel's clock source.
    pub(super) clock: String,
    /// Mean number of runnable processes in the minute before: not 0 on a shared machine.
    pub(super) load_before: f64,
}

/// This machine, now.
pub(super) fn machine() -> Machine {
    let cpuinfo = text("/proc/cpuinfo");
    let field = |text: &str, name: &str, separator: char| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(separator)?.1.trim().trim_matches('"').to_owned())
    };
    let kib = field(&text("/proc/meminfo"), "MemTotal", ':').unwrap_or_default();
    Machine {
        processor: field(&cpuinfo, "model name", ':')
            .unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        is_virtual: field(&cpuinfo, "flags", ':').is_some_and(|flags| flags.contains("hypervisor")),
        memory_gib: first(&kib) / f64::from(1 << 20),
        system: field(&text("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_default(),
        kernel: text("/proc/sys/kernel/osrelease").trim().into(),
        clock: text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .trim()
            .into(),
        load_before: first(&text("/proc/loadavg")),
    }
}

/// A file of the system, empty if it does not exist.
fn text(path: &str) -> String {
    fs::read_to_string(Path::new(path)).unwrap_or_default()
}

/// The number that a text begins with, otherwise 0.
fn first(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// Today, UTC.
pub(super) fn date() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// gyan's version and the commit that it was built from.
pub(super) fn version() -> String {
    let git = ["describe", "--always", "--dirty", "--abbrev=10"];
    let commit = Command::new("git").args(git).current_dir(root()).output();
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match commit.unwrap_or_default() {
        commit if commit.is_empty() => env!("CARGO_PKG_VERSION").into(),
        commit => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
    }
}
