//! `gyan doctor --probe`: which variables kill or hang? Writes them to a file, for later runs to skip.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use gyan_results::{Check, PvarInfo, Variables, Verdict};

use crate::error::Error;

/// How the listing begins its remark on a variable that ended or hung the process that asked.
const DEADLY: [&str; 3] = ["crashes inside ", "ends inside ", "hangs inside "];

/// Writes the variables of `listing` that must not be touched to `path`, which must be new. Returns what was
/// found.
pub(crate) fn write(listing: &Variables, path: &Path) -> Result<Check, Error> {
    let remedy = "name another file: --probe=FILE";
    let deadly: Vec<&PvarInfo> = listing.pvars.iter().filter(|pvar| is_deadly(pvar)).collect();
    let mut file = File::create_new(path).map_err(|error| Error::io(path, &error, remedy))?;
    file.write_all(text(listing, &deadly).as_bytes())
        .map_err(|error| Error::io(path, &error, remedy))?;
    let tried = listing.pvars.len();
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let full = full.display();
    let (verdict, finding, remedy) = if deadly.is_empty() {
        let finding = format!("none of {tried} performance variables kills or hangs ({full})");
        (Verdict::Ok, finding, None)
    } else {
        let finding = format!("{} of {tried} performance variables kill or hang", deadly.len());
        (Verdict::Note, finding, Some(format!("have runs skip them: GYAN_QUIRKS={full}")))
    };
    Ok(Check { what: "variables".into(), verdict, finding, remedy })
}

fn is_deadly(pvar: &PvarInfo) -> bool {
    let problem = pvar.problem.as_deref().unwrap_or_default();
    DEADLY.iter().any(|start| problem.starts_with(start))
}

/// A line for each variable, with the reason. Variables that only give errors are commented out: a run notes
/// them and goes on.
fn text(listing: &Variables, deadly: &[&PvarInfo]) -> String {
    let mut text = String::new();
    let library = one_line(&listing.mpi.library);
    _ = writeln!(text, "# performance variables that runs skip: GYAN_QUIRKS=<this file>");
    _ = writeln!(text, "# a name, with * and ?, or `index N`; found by gyan doctor --probe in");
    _ = writeln!(text, "# {library}");
    for pvar in deadly {
        let problem = pvar.problem.as_deref().unwrap_or_default();
        _ = writeln!(text, "{}  # {}", pattern(pvar), one_line(problem));
    }
    for pvar in listing.pvars.iter().filter(|pvar| !is_deadly(pvar)) {
        if let Some(problem) = pvar.problem.as_ref().filter(|problem| problem.starts_with("MPI_T_"))
        {
            _ = writeln!(text, "# no harm: {}  # {}", pattern(pvar), one_line(problem));
        }
    }
    text
}

/// How the file names a variable.
fn pattern(pvar: &PvarInfo) -> String {
    let plain = |name: &&String| {
        name.chars().all(|c| c.is_ascii_graphic() && !['#', '*', '?', '\\'].contains(&c))
    };
    match pvar.name.as_ref().filter(plain).filter(|name| !name.is_empty()) {
        Some(name) => name.clone(),
        None => format!("index {}", pvar.index),
    }
}

fn one_line(text: &str) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    printable.split_whitespace().collect::<Vec<_>>().join(" ")
}
