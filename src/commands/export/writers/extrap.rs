//! JSON Lines for Extra-P: a line for each number of each run, with the size of the run as its parameter. The numbers are those
//! that `gyan scale` looks at.

use std::io::{self, Write};

use gyan_results::ScaleKind;
use serde::Serialize;

use crate::comparison::scaling::{MeasuredSize, ScaleKey};

/// With fewer sizes Extra-P makes no models.
pub(super) const SIZES_AT_LEAST: usize = 5;

#[derive(Serialize)]
struct Measurement<'m> {
    params: serde_json::Map<String, serde_json::Value>,
    callpath: &'m str,
    metric: &'m str,
    value: f64,
}

/// `parameter`: what the sizes are.
pub(super) fn write(
    program: &str,
    parameter: &str,
    sizes: &[MeasuredSize],
    out: &mut dyn Write,
) -> io::Result<()> {
    for MeasuredSize { size, numbers } in sizes {
        for (key, of_runs) in numbers {
            let (callpath, metric) = place(program, key);
            let largest = format!("{metric} (maximum)");
            for spread in of_runs {
                for (metric, value) in [(metric, spread.avg), (&*largest, spread.max)] {
                    let params = [(parameter.to_owned(), (*size).into())].into_iter().collect();
                    let line = Measurement { params, callpath: &callpath, metric, value };
                    serde_json::to_writer(&mut *out, &line)?;
                    writeln!(out)?;
                }
            }
        }
    }
    Ok(())
}

/// Where in Extra-P's tree of calls a number is, and as which metric. The time of the program and of MPI is that of all below.
fn place<'k>(program: &str, ScaleKey { kind, name }: &'k ScaleKey) -> (String, &'k str) {
    let function = || format!("{program}->MPI->{name}");
    match kind {
        ScaleKind::RunTime => (program.to_owned(), "time"),
        ScaleKind::OwnCode => (format!("{program}->own code"), "time"),
        ScaleKind::InMpi => (format!("{program}->MPI"), "time"),
        ScaleKind::Time => (function(), "time"),
        ScaleKind::Calls => (function(), "calls"),
        ScaleKind::Bytes => (function(), "bytes"),
        ScaleKind::Variable
        | ScaleKind::Queue
        | ScaleKind::Resource
        | ScaleKind::Peers
        | ScaleKind::Waiting => (program.to_owned(), name),
    }
}
