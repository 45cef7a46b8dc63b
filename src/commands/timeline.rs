//! `gyan timeline`: the latest calls of all ranks on one clock, for a viewer.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gyan_results::TimelineSelection;

use crate::cli::TimelineOptions;
use crate::error::Error;
use crate::output::{may_write, put, temporary_beside, temporary_directory_beside};
use crate::timeline::{Timelines, WrittenEvents};
use crate::{DONE, INCOMPLETE, output, say};

/// What the end of the file's name asks for.
#[derive(Clone, Copy)]
enum TraceFormat {
    Perfetto,
    Chrome,
    Otf2,
}

impl TraceFormat {
    fn from_name(file: &Path) -> TraceFormat {
        match file.extension().and_then(OsStr::to_str) {
            Some("json") => TraceFormat::Chrome,
            Some("otf2") => TraceFormat::Otf2,
            _ => TraceFormat::Perfetto,
        }
    }

    fn viewer(self) -> &'static str {
        match self {
            TraceFormat::Perfetto => "https://ui.perfetto.dev, which keeps it in the browser",
            TraceFormat::Chrome => "a viewer of Chrome's traces",
            TraceFormat::Otf2 => "Vampir or another reader of OTF2",
        }
    }
}

pub(crate) fn timeline(options: &TimelineOptions) -> Result<u8, Error> {
    let file = &options.output;
    let format = TraceFormat::from_name(file);
    let archive = ArchiveParts::new(file);
    match format {
        TraceFormat::Otf2 => archive.may_write(options.force)?,
        TraceFormat::Perfetto | TraceFormat::Chrome => may_write(file, options.force)?,
    }
    let mut bad = Vec::new();
    let run = Timelines::open(&options.directory, &mut bad)?;
    let failed = |error: io::Error| Error::io(file, &error, "name another file with -o");
    let mut unknown_communicators = 0;
    let written = if let TraceFormat::Otf2 = format {
        let temporary = temporary_directory_beside(file).map_err(failed)?;
        let written = run.write_archive(temporary.path(), archive.name())?;
        archive.put(temporary.path(), options.force).map_err(failed)?;
        unknown_communicators = written.unknown_communicators;
        written.events
    } else {
        let mut temporary = temporary_beside(file).map_err(failed)?;
        let mut out = BufWriter::new(temporary.as_file_mut());
        let is_json = matches!(format, TraceFormat::Chrome);
        let written = run.write(&mut out, is_json).map_err(failed)?;
        out.flush().map_err(failed)?;
        drop(out);
        put(temporary, file, options.force).map_err(failed)?;
        written
    };
    say::warn_of(bad.iter(), |more| format!("{more} more timelines not read"));
    if !run.has_one_clock() {
        say::warn(
            "the clocks of the hosts cannot be compared, as no collective operation of all ranks is known in which each \
             waits for all others: times of different hosts do not belong together",
        );
    }
    say_what_is_in_it(&run, file, format, written)?;
    if unknown_communicators > 0 {
        output::say(format_args!(
            "communicators whose messages and collective operations are left out, as not all of their ranks are known: \
             {unknown_communicators}"
        ))?;
    }
    Ok(if bad.is_empty() { DONE } else { INCOMPLETE })
}

fn say_what_is_in_it(
    run: &Timelines,
    file: &Path,
    format: TraceFormat,
    written: WrittenEvents,
) -> Result<(), Error> {
    let WrittenEvents { calls, lost, received, arrows } = written;
    output::say(format_args!(
        "the latest {calls} calls of {} ranks in {}; open it in {}",
        run.ranks.len(),
        file.display(),
        format.viewer()
    ))?;
    if let Some(selection) = &run.selection {
        output::say(recorded(selection))?;
    }
    if lost > 0 {
        output::say(format_args!(
            "{lost} earlier events were overwritten; gyan run --timeline=SIZE keeps more"
        ))?;
    }
    let without = received - arrows;
    if without > 0 {
        output::say(format_args!(
            "{arrows} of {received} messages received have an arrow; of the other {without} it is not certain where they were sent"
        ))?;
    }
    Ok(())
}

/// The parts of an OTF2 archive.
struct ArchiveParts<'a> {
    /// What the user names.
    anchor: &'a Path,
    definitions: PathBuf,
    /// A directory.
    events: PathBuf,
}

impl ArchiveParts<'_> {
    fn new(file: &Path) -> ArchiveParts<'_> {
        let (definitions, events) = (file.with_extension("def"), file.with_extension(""));
        ArchiveParts { anchor: file, definitions, events }
    }

    fn name(&self) -> &OsStr {
        self.events.file_name().unwrap_or_default()
    }

    /// Refuses what is there, before any work is done. What is not the directory of an archive is never replaced.
    fn may_write(&self, force: bool) -> Result<(), Error> {
        may_write(self.anchor, force)?;
        may_write(&self.definitions, force)?;
        if force && !self.events.is_symlink() && self.has_events_only() {
            return Ok(());
        }
        if self.events.symlink_metadata().is_err() {
            return Ok(());
        }
        let why = "already exists, where the events of the archive would be";
        let remedy = if force {
            "name another file, as that is not the directory of an archive"
        } else {
            "name another file, or --force to replace an archive"
        };
        Err(Error::new(self.events.display(), why, remedy))
    }

    fn has_events_only(&self) -> bool {
        let is_event_file =
            |path: PathBuf| path.extension().is_some_and(|end| end == "evt" || end == "def");
        fs::read_dir(&self.events).is_ok_and(|mut all| {
            all.all(|entry| entry.is_ok_and(|entry| is_event_file(entry.path())))
        })
    }

    /// Moves the archive from a directory into place, its anchor last, for its user only, as other traces are.
    fn put(&self, from: &Path, force: bool) -> io::Result<()> {
        if force {
            for file in [self.anchor, &self.definitions] {
                match fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            if self.has_events_only() {
                fs::remove_dir_all(&self.events)?;
            }
        }
        for (part, mode) in
            [(&*self.events, 0o700), (&self.definitions, 0o600), (self.anchor, 0o600)]
        {
            let place = from.join(part.file_name().unwrap_or_default());
            fs::set_permissions(&place, Permissions::from_mode(mode))?;
            fs::rename(place, part)?;
        }
        Ok(())
    }
}

/// Which part of the run was recorded.
fn recorded(selection: &TimelineSelection) -> String {
    let mut text = String::from("recorded");
    if let Some([from, length]) = selection.window_s {
        let _ = write!(text, " for {length} s from {from} s after MPI_Init on");
    }
    if let Some(phase) = &selection.phase {
        let _ = write!(text, " inside of the phase {phase:?}");
    }
    text
}
