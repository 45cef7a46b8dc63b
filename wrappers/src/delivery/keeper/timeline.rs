//! The memory in which a rank records its latest calls, and the file that becomes of it: written by the keeper, who has the memory
//! too, so that a rank that is killed leaves it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use gyan_results::{
    TimelineHeader, TimelineIteration, TimelineIterations, TimelineLabel, TimelineRing,
    timeline_file_name, write_timeline,
};
use memmap2::MmapOptions;

use super::messages::{PathAsBytes, ToKeeper};
use super::records::{self, Records, memory_file};
use super::{Keeper, TELLING};
use crate::delivery::output::{self, RunPlace};
use crate::sys::ring::{self, RingContent};
use crate::sys::sigmask;

/// For the rank.
pub(crate) struct TimelineMemory {
    file: File,
    /// What the events mean, as far as it is known: none before that was kept.
    header: Option<Records>,
}

impl TimelineMemory {
    /// Has room for events of so many bytes, in so many rings. `begin` gets the memory, which stays, and its size.
    pub(crate) fn begin(
        bytes: usize,
        rings: usize,
        begin: impl FnOnce(*mut u8, usize),
    ) -> io::Result<TimelineMemory> {
        let size = ring::size(bytes, rings);
        // A limit on the size of files applies to memory files, too.
        let file = sigmask::without_signals(|| {
            let file = memory_file("gyan-timeline", size)?;
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size as u64)?;
            io::Result::Ok(file)
        })?;
        // SAFETY: the file has this many bytes and keeps them: it is sealed. Another process reads them when this one has ended or
        // records no more.
        let mut memory = unsafe { MmapOptions::new().populate().map_mut(&file) }?;
        begin(memory.as_mut_ptr(), size);
        // Calls may be recorded as long as the process runs.
        std::mem::forget(memory);
        Ok(TimelineMemory { file, header: None })
    }
}

impl Keeper {
    /// The keeper gets the memory of the timeline.
    pub(super) fn send_timeline(&self) {
        let (Some(socket), Some(timeline)) = (&self.socket, &self.timeline) else { return };
        let until = Instant::now() + TELLING;
        let _ = socket.send(&ToKeeper::Timeline, Some(timeline.file.as_fd()), until);
        if let Some(header) = &timeline.header {
            let _ = socket.send(&ToKeeper::TimelineHeader, Some(header.file()), until);
        }
    }

    /// Keeps what the events mean, in case the process is killed.
    pub(crate) fn keep_timeline(&mut self, header: &TimelineHeader) -> io::Result<()> {
        let text = serde_json::to_vec(header)?;
        let Some(timeline) = &mut self.timeline else { return Ok(()) };
        if timeline.header.as_mut().is_some_and(|header| header.write(&text)) {
            return Ok(());
        }
        timeline.header = Some(sigmask::without_signals(|| Records::begin(&text))?);
        self.send_timeline();
        Ok(())
    }

    /// Writes the timeline: into `directory`, or where profiles go if that is not known.
    pub(crate) fn write_timeline(
        &mut self,
        place: &RunPlace,
        directory: Option<&Path>,
        header: &TimelineHeader,
    ) -> io::Result<()> {
        let Some(timeline) = &self.timeline else { return Ok(()) };
        let memory = timeline.file.try_clone()?;
        let text = serde_json::to_vec(header)?;
        let request = ToKeeper::WriteTimeline {
            place: place.clone(),
            directory: directory.map(|directory| PathAsBytes(directory.to_owned())),
        };
        match self.ask(&request, &text) {
            None => write(&memory, header, place, directory),
            Some(answer) => answer.map(drop),
        }
    }
}

/// Writes what is in the memory of a rank, with a header.
pub(super) fn write(
    memory: &File,
    header: &TimelineHeader,
    place: &RunPlace,
    directory: Option<&Path>,
) -> io::Result<()> {
    let size = usize::try_from(memory.metadata()?.len()).unwrap_or(0);
    let mut bytes = vec![0; size];
    memory.read_exact_at(&mut bytes, 0)?;
    let mut header = header.clone();
    let rings = described(&bytes, &mut header);
    let mut text = Vec::new();
    write_timeline(&mut text, &header, &rings)?;
    let name = timeline_file_name(header.rank);
    match directory {
        Some(directory) => output::write_beside(place, directory, &name, &text),
        None => output::write_live(place, &header.job, &name, &text).map(drop),
    }
}

/// What the file has of the memory, as the header says from now on.
fn described<'a>(memory: &'a [u8], header: &mut TimelineHeader) -> Vec<TimelineRing<'a>> {
    let mut iterations = TimelineIterations::default();
    let mut kept = Vec::new();
    for RingContent { number, label, events } in ring::contents(memory) {
        let ring = TimelineRing { recorded: number, events };
        let TimelineLabel { iteration, ended_before, between } = TimelineLabel::unpacked(label);
        let ended = ended_before + u64::from(iteration.ended_ticks.is_some());
        iterations.ended = iterations.ended.max(ended);
        iterations.between = iterations.between.or(between);
        // Between iterations a ring has neither.
        if iteration.number > 0 || number > 0 {
            let lost = number - ring.left();
            kept.push((TimelineIteration { events: ring.left(), lost, ..iteration }, ring));
        }
    }
    kept.sort_by_key(|(iteration, _)| iteration.begun_ticks);
    let (all, rings): (Vec<TimelineIteration>, Vec<TimelineRing>) = kept.into_iter().unzip();
    header.recorded = rings.iter().map(|ring| ring.recorded).sum();
    if header.selection.as_ref().is_some_and(|selection| selection.slowest.is_some()) {
        header.iterations = Some(TimelineIterations { kept: all, ..iterations });
    }
    rings
}

/// Writes the timeline of a rank whose process has ended without it.
pub(super) fn write_of_killed(memory: &File, header: &File, place: &RunPlace) -> io::Result<()> {
    let text = records::latest(header)?.ok_or(io::ErrorKind::NotFound)?;
    write(memory, &serde_json::from_slice(&text)?, place, None)
}
