//! How is a program measured? A table: bare, under gyan with different settings, and under another tool. The
//! other modes of a measurement are compared with the first.

use std::fs;
use std::path::{Path, PathBuf};

use object::elf::DT_NEEDED;
use object::read::elf::ElfFile64;

/// What runs with the program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Tool {
    /// Nothing.
    None,
    /// libgyan.so, preloaded.
    Gyan,
    /// `gyan varlist -- <program>`.
    Varlist,
    /// Another preloaded library.
    Other(PathBuf),
}

/// One way to run a program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mode {
    /// Its name in the table.
    pub(super) name: String,
    /// What runs with the program.
    pub(super) tool: Tool,
    /// Additional environment variables.
    pub(super) settings: Vec<(String, String)>,
    /// Additional arguments for the program.
    pub(super) arguments: Vec<String>,
}

impl Mode {
    /// Only the program.
    pub(super) fn bare(name: &str, arguments: &[&str]) -> Mode {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Mode { name: name.into(), tool: Tool::None, settings: Vec::new(), arguments }
    }

    /// The program with gyan.
    pub(super) fn gyan(name: &str, settings: &[(&str, &str)]) -> Mode {
        let settings = settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        Mode { name: name.into(), tool: Tool::Gyan, settings, arguments: Vec::new() }
    }

    /// The program with another tool, whose name is that of its file.
    pub(super) fn peer(library: &Path) -> Mode {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tool = Tool::Other(library.to_owned());
        Mode { name, tool, settings: Vec::new(), arguments: Vec::new() }
    }

    /// Whether it leaves a report of mpiP's.
    pub(super) fn is_mpip(&self) -> bool {
        matches!(self.tool, Tool::Other(_)) && self.name.contains("mpiP")
    }
}

/// The cost of the fast path, the budget and the sampling. A second bare run of the program shows what a
/// difference is worth: if its ratio is not 1, that is due to the machine.
pub(super) fn running() -> Vec<Mode> {
    vec![
        Mode::bare("bare", &[]),
        Mode::bare("bare again", &[]),
        Mode::gyan("gyan", &[]),
        Mode::gyan(UNLIMITED, &[("GYAN_BUDGET", "none")]),
        Mode::gyan("gyan, `GYAN_PVARS=-*`", &[("GYAN_PVARS", "-*")]),
    ]
}

/// The cost of each part that tracks messages: with all of them, without each, and without any.
pub(super) fn parts() -> Vec<Mode> {
    const PARTS: [(&str, &str); 3] =
        [("GYAN_PEERS", "off"), ("GYAN_SITES", "off"), ("GYAN_WAITING", "off")];
    let with = [Mode::gyan("gyan", &[]), Mode::bare("bare", &[]), Mode::gyan("gyan again", &[])];
    let without =
        PARTS.map(|(name, off)| Mode::gyan(&format!("gyan, `{name}={off}`"), &[(name, off)]));
    let none = Mode::gyan("gyan, all three off", &PARTS);
    with.into_iter().chain(without).chain([none]).collect()
}

/// gyan's times at its default budget, and when every call is timed.
pub(super) fn accuracy() -> Vec<Mode> {
    let mode = |name: &str, budget| Mode::gyan(name, &[("GYAN_BUDGET", budget)]);
    vec![mode(BUDGETED, "0.5%"), mode(UNLIMITED, "none")]
}

/// The names of these two.
pub(super) const BUDGETED: &str = "gyan, `GYAN_BUDGET=0.5%`";
pub(super) const UNLIMITED: &str = "gyan, `GYAN_BUDGET=none`";

/// Receives that are watched, and never a hit.
pub(super) fn watching() -> Vec<Mode> {
    let never = ("GYAN_WATCH", "umq>1000000");
    vec![
        Mode::gyan("gyan", &[]),
        Mode::bare("bare", &[]),
        Mode::gyan("gyan, `GYAN_WATCH=umq>1000000`", &[never]),
    ]
}

/// A timeline, in which every call is recorded.
pub(super) fn recording() -> Vec<Mode> {
    vec![
        Mode::gyan("gyan", &[]),
        Mode::bare("bare", &[]),
        Mode::gyan("gyan, `GYAN_TIMELINE=4MiB`", &[("GYAN_TIMELINE", "4MiB")]),
    ]
}

/// PERUSE, with gyan's callbacks and with some that do nothing: `bench_calls` registers those when it
/// has an argument.
pub(super) fn peruse() -> Vec<Mode> {
    vec![
        Mode::bare("bare, empty callbacks of PERUSE", &["peruse"]),
        Mode::bare("bare", &[]),
        Mode::gyan("gyan", &[]),
        Mode::gyan("gyan, `GYAN_EVENTS=peruse`", &[("GYAN_EVENTS", "peruse")]),
    ]
}

/// Start and end: `bench_lifecycle` uses `MPI_T` by itself when it has an argument.
pub(super) fn starting() -> Vec<Mode> {
    vec![
        Mode::bare("bare", &[]),
        Mode::bare("bare again", &[]),
        Mode::bare("bare, using MPI_T", &["mpit"]),
        Mode::gyan("gyan", &[]),
        Mode::gyan("gyan, `GYAN_PVARS=-*`", &[("GYAN_PVARS", "-*")]),
    ]
}

/// A listing compared with an independent program, which asks in gyan's order or in that of the original
/// VARLIST, and reads no values.
pub(super) fn listing() -> Vec<Mode> {
    let gyan = Mode { tool: Tool::Varlist, ..Mode::bare("gyan varlist", &[]) };
    vec![Mode::bare("list init", &["init"]), Mode::bare("list late", &["late"]), gyan]
}

/// Open MPI's monitoring, which is off by default.
pub(super) fn monitoring() -> Vec<Mode> {
    enabling("monitoring")
}

/// Open MPI's SPC counters, which are off by default.
pub(super) fn spc() -> Vec<Mode> {
    enabling("spc")
}

fn enabling(what: &str) -> Vec<Mode> {
    let with = format!("gyan, `GYAN_ENABLE={what}`");
    vec![Mode::gyan("gyan", &[]), Mode::gyan(&with, &[("GYAN_ENABLE", what)])]
}

/// Why `peer` cannot be measured with `program`, if it cannot: a tool that was linked to another MPI
/// would bring that into the program.
pub(super) fn misfit(peer: &Path, program: &Path) -> Option<String> {
    match (needed_mpis(peer), needed_mpis(program)) {
        (Err(why), _) | (_, Err(why)) => Some(why),
        (Ok(of_peer), Ok(of_program)) => {
            let other = of_peer.iter().find(|library| !of_program.contains(library))?;
            Some(format!("it needs {other}, {} does not", program.display()))
        }
    }
}

/// The MPI libraries that a file was linked to; an error if it cannot be preloaded at all, which the loader
/// would ignore.
pub(super) fn needed_mpis(file: &Path) -> Result<Vec<String>, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let cannot = |error| format!("{}: {error}", file.display());
    let elf: ElfFile64 = ElfFile64::parse(&*bytes).map_err(cannot)?;
    let dynamic = elf.elf_dynamic_table().map_err(cannot)?;
    let needed = dynamic.iter().filter(|entry| entry.tag == DT_NEEDED);
    let names = needed.filter_map(|entry| dynamic.string(entry).ok());
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    Ok(names.filter(|name| name.starts_with("libmpi")).collect())
}
