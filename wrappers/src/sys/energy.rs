//! How much energy does this host take? Read from the counters of HPE Cray (`/sys/cray/pm_counters`), which see the whole host,
//! or else from those of powercap (Documentation/power/powercap/powercap.rst of the kernel), which see processors and memory.
//!
//! `root` contains `sys`: `/`, or a tree that a test has made.

#![forbid(unsafe_code)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gyan_results::{EnergyKind, PartEnergy};

use super::kernel_files::text;
use super::topology::names;

/// How powercap names the zones of RAPL. The same package under `intel-rapl-mmio` is not counted twice.
const ZONES: &str = "intel-rapl:";
const MICRO: f64 = 1e-6;

/// Adds up the energy of the parts of a host.
pub(crate) struct EnergyMeter {
    counters: Vec<EnergyCounter>,
    /// Why there are none.
    pub(crate) why_none: Option<String>,
}

/// The counter of a part.
struct EnergyCounter {
    file: PathBuf,
    part: String,
    kind: EnergyKind,
    /// What one step of it is, in joules.
    step_j: f64,
    /// After this many steps it begins again at 0; none if it never does.
    range: Option<u64>,
    /// What it said at the beginning.
    begun: u64,
    /// How far it has come: what it said last, and the range for each time that it went around.
    reached: u64,
}

impl EnergyMeter {
    /// Begins to count.
    pub(crate) fn begin(root: &Path) -> EnergyMeter {
        let cray = of_cray(root);
        let counters = if cray.is_empty() { of_powercap(root) } else { Ok(cray) };
        match counters {
            Ok(counters) => EnergyMeter { counters, why_none: None },
            Err(why) => EnergyMeter { counters: Vec::new(), why_none: Some(why) },
        }
    }

    /// Whether it has to be read again and again, lest a counter goes around without being seen.
    pub(crate) fn wraps(&self) -> bool {
        self.counters.iter().any(|counter| counter.range.is_some())
    }

    /// Reads all counters.
    pub(crate) fn read(&mut self) {
        self.counters.iter_mut().for_each(EnergyCounter::read);
    }

    /// How far each counter has come, up to the last reading.
    pub(crate) fn reached(&self) -> impl Iterator<Item = u64> {
        self.counters.iter().map(|counter| counter.reached)
    }

    /// Another meter of this host, which began with what this one has reached, saw the counters come this far.
    pub(crate) fn catch_up(&mut self, reached: impl IntoIterator<Item = u64>) {
        for (counter, reached) in self.counters.iter_mut().zip(reached) {
            counter.reached = counter.reached.max(reached);
        }
    }

    /// What they counted up to the last reading.
    pub(crate) fn energy(&self) -> Vec<PartEnergy> {
        let of = |counter: &EnergyCounter| PartEnergy {
            part: counter.part.clone(),
            kind: counter.kind,
            energy_j: (counter.reached - counter.begun) as f64 * counter.step_j,
        };
        self.counters.iter().map(of).collect()
    }
}

impl EnergyCounter {
    /// None if the counter cannot be read.
    fn begin(
        file: PathBuf,
        part: String,
        kind: EnergyKind,
        step_j: f64,
        range: Option<u64>,
    ) -> Option<EnergyCounter> {
        let begun = first_number(&file)?;
        Some(EnergyCounter { file, part, kind, step_j, range, begun, reached: begun })
    }

    fn read(&mut self) {
        let Some(now) = first_number(&self.file) else { return };
        let last = self.range.map_or(self.reached, |range| self.reached % range.max(1));
        let steps = match (now.checked_sub(last), self.range) {
            (Some(steps), _) => steps,
            // It went once around.
            (None, Some(range)) => range.saturating_sub(last).saturating_add(now),
            // It was set back.
            (None, None) => 0,
        };
        self.reached = self.reached.saturating_add(steps);
    }
}

/// The number that a file begins with: `1234 J 1700000000000000 us`.
fn first_number(file: &Path) -> Option<u64> {
    text(file)?.split_ascii_whitespace().next()?.parse().ok()
}

fn of_cray(root: &Path) -> Vec<EnergyCounter> {
    let place = root.join("sys/cray/pm_counters");
    let parts = [
        ("energy", "host", EnergyKind::Host),
        ("cpu_energy", "processors", EnergyKind::Processor),
        ("memory_energy", "memory", EnergyKind::Memory),
    ];
    let counter = |(file, part, kind): (&str, &str, EnergyKind)| {
        EnergyCounter::begin(place.join(file), part.to_owned(), kind, 1.0, None)
    };
    parts.into_iter().filter_map(counter).collect()
}

/// The zones of RAPL: packages with their memory, and the platform. The other zones in a package are parts of it.
fn of_powercap(root: &Path) -> Result<Vec<EnergyCounter>, String> {
    let class = root.join("sys/class/powercap");
    let zones: Vec<String> =
        names(&class).into_iter().filter(|zone| zone.starts_with(ZONES)).collect();
    let name_of = |zone: &str| text(class.join(zone).join("name")).map(|of| of.trim().to_owned());
    let mut counters = Vec::new();
    for zone in &zones {
        let Some(name) = name_of(zone) else { continue };
        // `intel-rapl:0` is a zone, `intel-rapl:0:1` a part of it.
        let (parent, _) = zone.rsplit_once(':').unwrap_or_default();
        let parent = (parent.len() >= ZONES.len()).then(|| name_of(parent)).flatten();
        let (part, kind) = match (name.as_str(), parent) {
            ("dram", Some(package)) => (format!("{package} dram"), EnergyKind::Memory),
            ("psys", None) => (name, EnergyKind::Platform),
            (_, None) => (name, EnergyKind::Processor),
            (_, Some(_)) => continue,
        };
        let file = class.join(zone).join("energy_uj");
        if let Err(error) = fs::File::open(&file)
            && error.kind() == ErrorKind::PermissionDenied
        {
            let shown = Path::new("/sys/class/powercap").join(zone).join("energy_uj");
            return Err(format!(
                "{} may be read by root only; a site can allow a group to read it (chgrp and chmod when the host starts)",
                shown.display()
            ));
        }
        let range = first_number(&class.join(zone).join("max_energy_range_uj"));
        counters.extend(EnergyCounter::begin(file, part, kind, MICRO, range));
    }
    if counters.is_empty() {
        return Err(
            "this host has no counter that can be read (no zone of RAPL in /sys/class/powercap), like most virtual machines"
                .to_owned(),
        );
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::trees::tree;

    fn write(root: &Path, file: &str, text: &str) {
        fs::write(root.join(file), text).unwrap();
    }

    /// The zones of a host with two packages, as in powercap.rst, and as a client has them, too.
    fn zones() -> tempfile::TempDir {
        let zone = |number: &str, name: &'static str| {
            let place = format!("sys/class/powercap/{number}");
            [
                (format!("{place}/name"), name),
                (format!("{place}/energy_uj"), "1000000\n"),
                (format!("{place}/max_energy_range_uj"), "65532610987\n"),
            ]
        };
        let files = [
            zone("intel-rapl:0", "package-0\n"),
            zone("intel-rapl:0:0", "core\n"),
            zone("intel-rapl:0:1", "dram\n"),
            zone("intel-rapl:1", "package-1\n"),
            zone("intel-rapl:2", "psys\n"),
            zone("intel-rapl-mmio:0", "package-0\n"),
        ];
        tree(files.as_flattened())
    }

    #[test]
    fn packages_and_their_memory_are_counted_once_and_around_the_range() {
        let root = zones();
        let mut meter = EnergyMeter::begin(root.path());
        assert!(meter.wraps() && meter.why_none.is_none());
        let set = |zone: &str, energy: &str| {
            write(root.path(), &format!("sys/class/powercap/intel-rapl:{zone}/energy_uj"), energy);
        };
        set("0", "65000000000\n");
        meter.read();
        // Around, and up to 2 J.
        set("0", "2000000\n");
        set("0:0", "900000000\n");
        set("0:1", "4000000\n");
        set("1", "6000000\n");
        set("2", "11000000\n");
        meter.read();
        let energy: Vec<_> =
            meter.energy().into_iter().map(|of| (of.part, of.kind, of.energy_j)).collect();
        let expected = [
            ("package-0", EnergyKind::Processor, 65_532.610_987 - 1.0 + 2.0),
            ("package-0 dram", EnergyKind::Memory, 3.0),
            ("package-1", EnergyKind::Processor, 5.0),
            ("psys", EnergyKind::Platform, 10.0),
        ];
        assert_eq!(energy.len(), expected.len());
        for ((part, kind, energy_j), expected) in energy.into_iter().zip(expected) {
            assert_eq!((part.as_str(), kind), (expected.0, expected.1));
            assert!((energy_j - expected.2).abs() < 1e-6, "{part}: {energy_j}");
        }
    }

    #[test]
    fn a_cray_counts_its_hosts_itself() {
        let root = zones();
        let place = root.path().join("sys/cray/pm_counters");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("energy"), "81290 J 1700000000000000 us\n").unwrap();
        fs::write(place.join("cpu_energy"), "31290 J 1700000000000000 us\n").unwrap();
        let mut meter = EnergyMeter::begin(root.path());
        fs::write(place.join("energy"), "81790 J 1700000001000000 us\n").unwrap();
        meter.read();
        let energy = meter.energy();
        let expected =
            [("host", EnergyKind::Host, 500.0), ("processors", EnergyKind::Processor, 0.0)];
        let expected = expected.map(|(part, kind, energy_j)| PartEnergy {
            part: part.to_owned(),
            kind,
            energy_j,
        });
        assert_eq!(energy, expected);
        assert!(!meter.wraps());
    }

    #[test]
    fn a_host_without_counters_says_so() {
        let root = tree(&[("proc/uptime", "")]);
        let meter = EnergyMeter::begin(root.path());
        assert!(meter.why_none.unwrap().contains("no zone of RAPL"));
    }
}
