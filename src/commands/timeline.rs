//! `gyan timeline`: the latest calls of all ranks on one clock, for a viewer.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use gyan_results::TimelineSelection;

use crate::cli::TimelineOptions;
use crate::error::Error;
use crate::output::{may_write, put, temporary_beside};
use crate::timeline::{RunIterations, Timelines, WrittenEvents};
use crate::{DONE, INCOMPLETE, output, say, words};

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
        "the {}{calls} calls of {} ranks in {}; open it in {}",
        if run.iterations.is_some() { "" } else { "latest " },
        run.ranks.len(),
        file.display(),
        if is_json {
            "a viewer of Chrome's traces"
        } else {
            "https://ui.perfetto.dev, which keeps it in the browser"
        }
    ))?;
    if let Some(selection) = &run.selection {
        output::say(match &run.iterations {
            Some(iterations) => kept(iterations, selection),
            None => recorded(selection),
        })?;
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

/// Which iterations the trace has.
fn kept(run: &RunIterations, selection: &TimelineSelection) -> String {
    let what = match (&run.between, &selection.phase) {
        (Some((function, communicator)), _) => {
            format!("iterations between calls of {function} on {communicator}")
        }
        (None, Some(phase)) => format!("passes through the phase {phase:?}"),
        (None, None) => {
            return "no iteration was seen, as no collective operation of all ranks was called 4 times: these are \
                    the latest calls"
                .into();
        }
    };
    if run.differ {
        return "the ranks do not agree on which operation begins an iteration, so each has those that were slowest on it; \
                gyan run --timeline-phase says what an iteration is"
            .into();
    }
    let ended = words::integer(run.ended.into());
    let took = |(_, ns): &(u64, u64)| words::seconds(*ns as f64 / 1e9);
    let slowest: Vec<String> = run.slowest.iter().map(took).collect();
    let mut text = match &slowest[..] {
        [] => format!("none of {ended} {what} was among the slowest of all ranks"),
        [one] => format!("the slowest of {ended} {what} ({one})"),
        [all @ .., last] => {
            format!(
                "the {} slowest of {ended} {what} ({} and {last})",
                slowest.len(),
                all.join(", ")
            )
        }
    };
    if let Some(typical) = &run.typical {
        let _ = write!(text, " beside a typical one ({})", took(typical));
    }
    if run.was_killed {
        text.push_str(" and what the ranks did last");
    }
    text
}
