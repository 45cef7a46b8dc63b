//! `gyan timeline`: the latest calls of all ranks on one clock, for a viewer.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use gyan_results::TimelineSelection;

use crate::cli::TimelineOptions;
use crate::error::Error;
use crate::output::{may_write, put, temporary_beside};
use crate::timeline::{ClockAlignment, Timelines, WrittenEvents};
use crate::words::seconds;
use crate::{DONE, INCOMPLETE, output, say};

pub(crate) fn timeline(options: &TimelineOptions) -> Result<u8, Error> {
    let file = &options.output;
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    may_write(file, options.force)?;
    let mut bad = Vec::new();
    let run = Timelines::open(&options.directory, &mut bad)?;
    let failed = |error: io::Error| Error::io(file, &error, "name another file with -o");
    let mut temporary = temporary_beside(file).map_err(failed)?;
    let mut out = BufWriter::new(temporary.as_file_mut());
    let written = run.write(&mut out, is_json).map_err(failed)?;
    out.flush().map_err(failed)?;
    drop(out);
    put(temporary, file, options.force).map_err(failed)?;
    say::warn_of(bad.iter(), |more| format!("{more} more timelines not read"));
    let alignment = run.alignment();
    match alignment {
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
    let WrittenEvents { calls, lost, received, arrows } = written;
    output::say(format_args!(
        "the latest {calls} calls of {} ranks in {}; to look at it: gyan open {}",
        run.ranks.len(),
        file.display(),
        file.display(),
    ))?;
    if let ClockAlignment::Within { hosts, error_ns } = alignment {
        let error = seconds(error_ns as f64 / 1e9);
        output::say(format_args!("the clocks of {hosts} hosts agree within {error}"))?;
    }
    if let Some(selection) = &run.selection {
        output::say(recorded(selection))?;
    }
    if lost > 0 {
        output::say(format_args!(
            "{lost} earlier events were overwritten; gyan run --timeline=SIZE keeps more"
        ))?;
    }
    if arrows < received {
        let selection = run.selection.as_ref();
        let why = if selection.is_none_or(TimelineSelection::begins_with_the_run) {
            format!("; of the other {} it is not certain where they were sent", received - arrows)
        } else {
            ", as others may have been under way when recording began; a window from 0 s on has arrows"
                .to_owned()
        };
        output::say(format_args!("{arrows} of {received} messages received have an arrow{why}"))?;
    }
    Ok(if bad.is_empty() { DONE } else { INCOMPLETE })
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
