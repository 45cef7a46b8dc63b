//! `gyan timeline`: the latest calls of all ranks on one clock, for a viewer.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gyan_results::TimelineSelection;

use crate::cli::{SizeLimit, TimelineOptions};
use crate::error::Error;
use crate::output::{may_write, put, temporary_beside, temporary_directory_beside};
use crate::print::listing;
use crate::timeline::{ClockAlignment, Timelines, WrittenEvents, recorded};
use crate::words::seconds;
use crate::{DONE, INCOMPLETE, answers, output, parts, say};

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

    fn viewer(self, file: &Path) -> String {
        match self {
            TraceFormat::Perfetto | TraceFormat::Chrome => format!("gyan open {}", file.display()),
            TraceFormat::Otf2 => "Vampir, or another reader of OTF2".to_owned(),
        }
    }
}

pub(crate) fn timeline(options: &TimelineOptions) -> Result<u8, Error> {
    match &options.output {
        Some(file) => write_trace(options, file),
        None => show_waits(options),
    }
}

/// Which calls wait, how long and for whom.
fn show_waits(options: &TimelineOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let mut bad = Vec::new();
    let run = Timelines::open(&options.directory, &mut bad)?;
    let failed = |error: io::Error| Error::io(&options.directory, &error, "try again");
    let waits = run.waits().map_err(failed)?;
    warn_of(&run, &bad);
    listing(format, &answers::timeline_waits(&waits), &waits)?;
    Ok(if bad.is_empty() { DONE } else { INCOMPLETE })
}

fn write_trace(options: &TimelineOptions, file: &Path) -> Result<u8, Error> {
    let format = TraceFormat::from_name(file);
    let archive = ArchiveParts::new(file);
    match format {
        TraceFormat::Otf2 => archive.may_write(options.force)?,
        TraceFormat::Perfetto | TraceFormat::Chrome => may_write(file, options.force)?,
    }
    let mut bad = Vec::new();
    let mut run = Timelines::open(&options.directory, &mut bad)?;
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
        let is_json = matches!(format, TraceFormat::Chrome);
        let SizeLimit(limit) = options.limit;
        let written = run.write(temporary.as_file_mut(), is_json, limit).map_err(failed)?;
        put(temporary, file, options.force).map_err(failed)?;
        written
    };
    warn_of(&run, &bad);
    say_what_is_in_it(&run, file, format, written)?;
    if unknown_communicators > 0 {
        output::say(format_args!(
            "communicators whose messages and collective operations are left out, as not all of their ranks are known: \
             {unknown_communicators}"
        ))?;
    }
    Ok(if bad.is_empty() { DONE } else { INCOMPLETE })
}

/// `bad`: timelines that could not be read.
fn warn_of(run: &Timelines, bad: &[String]) {
    say::warn_of(bad.iter(), |more| format!("{more} more timelines not read"));
    match run.alignment() {
        ClockAlignment::Unknown => say::warn(
            "the clocks of the hosts cannot be compared, as neither messages nor collective operations in which each rank waits \
             for all others are known between all of them: times of different hosts do not belong together",
        ),
        ClockAlignment::Drifting => say::warn(
            "the clocks of the hosts do not run equally fast, so some messages arrive before they are sent; a shorter \
             --timeline-window helps",
        ),
        ClockAlignment::OneHost | ClockAlignment::Within { .. } => {}
    }
}

fn say_what_is_in_it(
    run: &Timelines,
    file: &Path,
    format: TraceFormat,
    written: WrittenEvents,
) -> Result<(), Error> {
    let WrittenEvents { calls, left_out, lost, received, arrows, has_marks } = written;
    output::say(format_args!(
        "the {}{calls} calls of {} ranks in {}; to look at it: {}",
        if run.iterations.is_some() { "" } else { "latest " },
        run.ranks.len(),
        file.display(),
        format.viewer(file)
    ))?;
    if let ClockAlignment::Within { hosts, error_ns } = run.alignment() {
        let error = seconds(error_ns as f64 / 1e9);
        output::say(format_args!("the clocks of {hosts} hosts agree within {error}"))?;
    }
    if let Some(selection) = &run.selection {
        output::say(match &run.iterations {
            Some(iterations) => parts::iterations_kept(iterations, selection),
            None => recorded(selection),
        })?;
    }
    if left_out > 0 {
        output::say(format_args!(
            "{left_out} earlier calls are left out, as the file would be larger than --limit"
        ))?;
    }
    if lost > 0 {
        output::say(format_args!(
            "{lost} earlier events were overwritten; gyan run --timeline=SIZE keeps more"
        ))?;
    }
    if !has_marks && !matches!(format, TraceFormat::Otf2) {
        output::say(
            "waits and the critical path are not marked, as the timelines have more than 2 GiB together",
        )?;
    }
    if arrows < received {
        let selection = run.selection.as_ref();
        let why = if selection.is_none_or(TimelineSelection::begins_with_the_run) {
            format!("; of the other {} it is not certain where they were sent", received - arrows)
        } else if run.iterations.is_some() {
            ", as others may have been under way when an iteration began".to_owned()
        } else {
            ", as others may have been under way when recording began; a window from 0 s on has arrows"
                .to_owned()
        };
        output::say(format_args!("{arrows} of {received} messages received have an arrow{why}"))?;
    }
    Ok(())
}

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
