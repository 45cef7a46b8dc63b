//! How far the counters of energy of this host have come, in memory that a rank shares with the keeper: the rank reads them only
//! at the end, when they may have gone around several times.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
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

    pub(super) fn write(&self, meter: &EnergyMeter) -> io::Result<()> {
        let bytes: Vec<u8> = meter.reached().flat_map(u64::to_ne_bytes).collect();
        self.0.write_all_at(&bytes, 0)
    }

    /// The meter gets to know what is in the memory.
    pub(crate) fn catch_up(&self, meter: &mut EnergyMeter) -> io::Result<()> {
        let mut words = vec![[0; size_of::<u64>()]; meter.reached().count()];
        self.0.read_exact_at(words.as_flattened_mut(), 0)?;
        meter.catch_up(words.into_iter().map(u64::from_ne_bytes));
        Ok(())
    }
}
