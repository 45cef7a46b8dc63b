//! How far the counters of energy of this host have come, in memory that a rank shares with the keeper: the rank reads them only
//! at the end, when they may have gone around several times.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::records::memory_file;
use crate::sys::energy::EnergyMeter;
use crate::sys::sigmask;

/// Between two readings of counters that go around: the smallest range in use, of 65 kJ, lasts this long at 2 kW.
pub(crate) const APART: Duration = Duration::from_secs(30);

/// A number for each counter. One process writes at a time: the rank before the keeper has it, then the keeper.
#[derive(Debug)]
pub(crate) struct EnergyMemory(pub(super) File);

impl EnergyMemory {
    /// With what this meter has reached.
    pub(crate) fn begin(meter: &EnergyMeter) -> io::Result<EnergyMemory> {
        let size = meter.reached().count() * size_of::<u64>();
        // A limit on the size of files applies to memory files, too.
        let file = sigmask::without_signals(|| memory_file("gyan-energy", size))?;
        let memory = EnergyMemory(file);
        memory.write(meter)?;
        Ok(memory)
    }

    pub(crate) fn try_clone(&self) -> io::Result<EnergyMemory> {
        self.0.try_clone().map(EnergyMemory)
    }

    fn write(&self, meter: &EnergyMeter) -> io::Result<()> {
        let bytes: Vec<u8> = meter.reached().flat_map(u64::to_ne_bytes).collect();
        self.0.write_all_at(&bytes, 0)
    }

    /// For the keeper: notes how far the counters have come by now.
    pub(super) fn note(&self, root: &Path) -> io::Result<()> {
        let mut meter = EnergyMeter::begin(root);
        self.catch_up(&mut meter)?;
        meter.read();
        self.write(&meter)
    }

    /// The meter gets to know what is in the memory. Fails where it has other counters.
    pub(crate) fn catch_up(&self, meter: &mut EnergyMeter) -> io::Result<()> {
        let mut words = vec![[0; size_of::<u64>()]; meter.reached().count()];
        let bytes = words.as_flattened_mut();
        if self.0.metadata()?.len() != bytes.len() as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.0.read_exact_at(bytes, 0)?;
        meter.catch_up(words.into_iter().map(u64::from_ne_bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::trees::tree;

    const ZONE: &str = "sys/class/powercap/intel-rapl:0";
    const RANGE: f64 = 65_532.610_987;

    #[test]
    fn a_rank_counts_the_rounds_that_the_keeper_saw() {
        let file = |name: &str| format!("{ZONE}/{name}");
        let root = tree(&[
            (file("name"), "package-0\n"),
            (file("energy_uj"), "1000000\n"),
            (file("max_energy_range_uj"), "65532610987\n"),
        ]);
        let set = |energy: &str| fs::write(root.path().join(file("energy_uj")), energy).unwrap();
        let energy_j = |begun_j: f64, rounds: f64, last_j: f64, meter: &mut EnergyMeter| {
            meter.read();
            let found = meter.energy()[0].energy_j;
            assert!((found - (rounds * RANGE + last_j - begun_j)).abs() < 1e-6, "{found}");
        };
        let mut meter = EnergyMeter::begin(root.path());
        let memory = EnergyMemory::begin(&meter).unwrap();
        // The first round ends before the keeper begins, the last one after its last reading.
        for energy in ["500000\n", "65000000000\n", "2000000\n", "64000000000\n"] {
            set(energy);
            memory.note(root.path()).unwrap();
        }
        set("7000000\n");
        memory.catch_up(&mut meter).unwrap();
        energy_j(1.0, 3.0, 7.0, &mut meter);
        // Another run on the same host, which begins later.
        let mut meter = EnergyMeter::begin(root.path());
        let memory = EnergyMemory::begin(&meter).unwrap();
        set("3000000\n");
        memory.note(root.path()).unwrap();
        memory.catch_up(&mut meter).unwrap();
        energy_j(7.0, 1.0, 3.0, &mut meter);
        fs::remove_dir_all(root.path().join(ZONE)).unwrap();
        assert!(memory.note(root.path()).is_err(), "it has no counter any more");
    }
}
