//! The call sites of watched receives as functions and lines, and how the program got there.

use gyan_results::{
    Address, CodeAddress, Hit, LoadedObject, Statistic, Summary, WatchSiteSummary, WatchSummary,
};
use serde::Serialize;

use crate::symbols::{StackFrame, Symbols};

/// Watched receives with their call sites.
#[derive(Serialize)]
pub(crate) struct Watched<'a> {
    pub(crate) variable: &'a str,
    pub(crate) threshold: u64,
    pub(crate) receives: &'a Statistic,
    pub(crate) not_compared: u64,
    pub(crate) hits: &'a Statistic,
    pub(crate) max: &'a Statistic,
    pub(crate) hits_elsewhere: u64,
    pub(crate) sites: Vec<Site<'a>>,
}

/// A place in the program that calls a receive.
#[derive(Serialize)]
pub(crate) struct Site<'a> {
    pub(crate) function: &'a str,
    /// The function that calls it.
    pub(crate) caller: StackFrame,
    pub(crate) hits: &'a Statistic,
    /// The sum of the values at the hits.
    pub(crate) sum: u64,
    pub(crate) worst: &'a Hit,
    pub(crate) worst_rank: u32,
    pub(crate) stacks_taken: u64,
    /// How the program got there, the most frequent path first.
    pub(crate) stacks: Vec<Way>,
}

/// A call stack: the innermost function of the program first, `main` last.
#[derive(Serialize)]
pub(crate) struct Way {
    /// How many of the recorded stacks are this one.
    pub(crate) hits: u64,
    pub(crate) frames: Vec<StackFrame>,
}

/// Every watch of a run, and what stopped addresses from getting names.
pub(crate) fn watched(summary: &Summary) -> (Vec<Watched<'_>>, Vec<String>) {
    let mut symbols = Symbols::default();
    let watched = summary.watches.iter().map(|watch| {
        let sites = watch.sites.iter().map(|site| resolve(watch, site, &mut symbols)).collect();
        Watched {
            variable: &watch.variable,
            threshold: watch.threshold,
            receives: &watch.receives,
            not_compared: watch.not_compared,
            hits: &watch.hits,
            max: &watch.max,
            hits_elsewhere: watch.hits_elsewhere,
            sites,
        }
    });
    let watched = watched.collect();
    (watched, symbols.remarks().map(str::to_owned).collect())
}

fn resolve<'a>(
    watch: &'a WatchSummary,
    site: &'a WatchSiteSummary,
    symbols: &mut Symbols,
) -> Site<'a> {
    let code = |address: &Address| Code::at(address, &watch.load_map);
    let stacks = site.stacks.iter().map(|stack| {
        let frames: Vec<Code> = stack.frames.iter().map(code).collect();
        Way { hits: stack.hits, frames: way(&frames, symbols) }
    });
    let stacks: Vec<Way> = stacks.collect();
    // Bindings of the MPI library, of Fortran or C++, may call the receive for the program.
    let call = code(&site.call);
    let known = stacks.first().filter(|_| call.is_below_program());
    let caller = known.and_then(|way| way.frames.first().cloned());
    let of_call = || call.frames(symbols).into_iter().next();
    Site {
        function: &site.function,
        caller: caller.or_else(of_call).unwrap_or_else(|| StackFrame::nameless("?")),
        hits: &site.hits,
        sum: site.sum,
        worst: &site.worst,
        worst_rank: site.worst_rank,
        stacks_taken: site.stacks_taken,
        stacks,
    }
}

#[derive(Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) object: Option<&'a LoadedObject>,
    address: u64,
    /// For code that is in no file.
    pub(super) name: Option<&'a str>,
}

impl<'a> Code<'a> {
    fn at(address: &Address, load_map: &'a [LoadedObject]) -> Code<'a> {
        let object = address.object.and_then(|object| load_map.get(object));
        Code { object, address: address.address, name: None }
    }

    pub(super) fn named(code: &'a CodeAddress, load_map: &'a [LoadedObject]) -> Code<'a> {
        let object = code.object.and_then(|object| load_map.get(object));
        Code { object, address: code.address, name: code.name.as_deref() }
    }

    /// At least one.
    pub(super) fn frames(self, symbols: &mut Symbols) -> Vec<StackFrame> {
        match (self.object, self.name) {
            (Some(object), _) => {
                symbols.frames(&object.path, object.build_id.as_deref(), self.address)
            }
            (None, Some(name)) => vec![StackFrame::of_code(name)],
            (None, None) => vec![StackFrame::nameless(&format!("{:#x}", self.address))],
        }
    }

    /// The name of the file that it is in, without folders.
    pub(super) fn file(self) -> Option<&'a str> {
        self.object.map(|object| object.path.rsplit('/').next().unwrap_or_default())
    }

    fn owner(self) -> Owner {
        self.object.map_or(Owner::Program, |object| Owner::of_file(&object.path))
    }

    /// Whether it is in gyan or in an MPI library.
    fn is_below_program(self) -> bool {
        matches!(self.owner(), Owner::Gyan | Owner::Mpi)
    }

    /// Whether it only hands the program's calls to MPI: a binding of another language, or an interpreter.
    pub(super) fn is_between(self) -> bool {
        matches!(self.owner(), Owner::Gyan | Owner::Mpi | Owner::Binding | Owner::Python)
    }

    /// Whether it is in the code that starts `main` and threads.
    fn is_above_program(self) -> bool {
        self.owner() == Owner::Beginning
    }
}

/// Whose code a file holds, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    Gyan,
    /// An MPI library, whose name begins with `libmpi`.
    Mpi,
    /// What hands calls in other languages to it.
    Binding,
    /// The interpreter.
    Python,
    /// What starts `main` and threads.
    Beginning,
    Program,
}

/// How the names of files begin.
const OWNERS: [(Owner, &[&str]); 5] = [
    (Owner::Gyan, &["libgyan"]),
    (Owner::Mpi, &["libmpi"]),
    (Owner::Binding, &["libompi", "libpmpi", "libfmpich"]),
    (Owner::Python, &["python", "libpython"]),
    (Owner::Beginning, &["libc.so", "libc-", "libpthread", "ld-linux"]),
];

impl Owner {
    pub(crate) fn of_file(path: &str) -> Owner {
        let name = path.rsplit('/').next().unwrap_or_default();
        let begins = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
        let named = OWNERS.iter().find(|(_, names)| begins(names)).map(|(owner, _)| *owner);
        let binding = path.contains("/mpi4py/").then_some(Owner::Binding);
        named.or(binding).unwrap_or(Owner::Program)
    }
}

/// A stack without the frames below and above the program. The code that starts `main` belongs to the C
/// library, which is not even asked for names.
pub(super) fn way(stack: &[Code], symbols: &mut Symbols) -> Vec<StackFrame> {
    let below = stack.iter().take_while(|code| code.is_below_program()).count();
    // A stack with nothing else is better than none.
    let below = if below == stack.len() { 0 } else { below };
    let above = stack.iter().rev().take_while(|code| code.is_above_program()).count();
    let length = stack.len().saturating_sub(below + above);
    let mut frames = Vec::new();
    for code in stack.iter().skip(below).take(length) {
        frames.extend(code.frames(symbols));
        if frames.last().is_some_and(|frame| frame.function == "main") {
            break;
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use gyan_results::{LoadedObject, Number, Stack, Statistics};

    use super::*;

    fn address(object: usize, address: u64) -> Address {
        Address { object: Some(object), address }
    }

    /// A receive called at the innermost of `frames`, in objects whose files do not exist.
    fn watch(frames: Vec<Address>) -> WatchSummary {
        let statistic = Statistics::of(Number::Integer(1), 0).finish().unwrap();
        let object = |name: &str| LoadedObject { path: format!("/gone/{name}"), build_id: None };
        let site = WatchSiteSummary {
            function: "MPI_Recv".into(),
            call: frames[0],
            hits: statistic.clone(),
            sum: 1,
            worst: Hit::default(),
            worst_rank: 0,
            stacks_taken: 1,
            stacks: vec![Stack { hits: 1, frames }],
        };
        WatchSummary {
            variable: "unexpected_recvq_length".into(),
            threshold: 0,
            receives: statistic.clone(),
            not_compared: 0,
            hits: statistic.clone(),
            max: statistic,
            sites: vec![site],
            hits_elsewhere: 0,
            load_map: ["app", "libmpi_mpifh.so.40", "libc.so.6"].map(object).to_vec(),
        }
    }

    fn names(frames: Vec<Address>) -> (String, Vec<String>) {
        let watch = watch(frames);
        let site = resolve(&watch, &watch.sites[0], &mut Symbols::default());
        let frames = site.stacks[0].frames.iter().map(|frame| frame.function.clone()).collect();
        (site.caller.function, frames)
    }

    #[test]
    fn the_program_is_at_the_top_and_the_c_library_not_at_the_end() {
        let stack = vec![address(1, 1), address(0, 2), address(2, 3), address(0, 4), address(2, 5)];
        // A function that the C library calls back belongs to the program.
        let expected = ["app+0x2", "libc.so.6+0x3", "app+0x4"].map(str::to_owned).to_vec();
        assert_eq!(names(stack), ("app+0x2".to_owned(), expected));
    }

    #[test]
    fn a_stack_of_libraries_only_is_shown_as_it_is() {
        let expected = vec!["libmpi_mpifh.so.40+0x1".to_owned()];
        assert_eq!(names(vec![address(1, 1)]), (expected[0].clone(), expected));
        let outside = vec![Address { object: None, address: 7 }];
        assert_eq!(names(outside), ("0x7".to_owned(), vec!["0x7".to_owned()]));
    }
}
