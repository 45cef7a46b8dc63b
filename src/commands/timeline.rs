//! `gyan timeline`: the latest calls of all ranks on one clock, for a viewer.

use std::io::{self, BufWriter, Write};

use crate::cli::TimelineOptions;
use crate::error::Error;
use crate::output::{may_write, put, temporary_beside};
use crate::timeline::{Timelines, WrittenEvents, recorded};
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
    if !run.has_one_clock() {
        say::warn(
            "the clocks of the hosts cannot be compared, as no collective operation of all ranks is known in which each \
             waits for all others: times of different hosts do not belong together",
        );
    }
    let WrittenEvents { calls, lost, received, arrows } = written;
    output::say(format_args!(
        "the latest {calls} calls of {} ranks in {}; open it in {}",
        run.ranks.len(),
        file.display(),
        if is_json {
            "a viewer of Chrome's traces"
        } else {
            "https://ui.perfetto.dev, which keeps it in the browser"
        }
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
    Ok(if bad.is_empty() { DONE } else { INCOMPLETE })
}
