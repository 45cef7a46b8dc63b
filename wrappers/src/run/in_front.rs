//! Which calls reach another tool before gyan, and does gyan see them?
//!
//! A program gets the first definition of a function: its own, then that of whatever is preloaded or linked
//! first. A tool that comes before gyan and calls the profiling names (`PMPI_Recv`) hides those calls from
//! gyan; one that calls the next definition (`RTLD_NEXT`) passes them on. References to profiling names reveal
//! the first kind at the start. A tool that looks them up with `dlsym` has no such references, so the counts
//! decide at the end.
//!
//! This does not concern the functions that start and end MPI, which gyan also defines under their profiling
//! names, nor an MPI library that comes before gyan, since gyan then never runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::CStr;
use std::sync::Arc;

use gyan_results::{Call, collected};

use crate::mpi::functions::functions;
use crate::sys::elf_objects::{self, ElfObject, OfLoaded};

/// How many functions a sentence names.
const NAMES_AT_MOST: usize = 3;

/// The program or a library, if it comes before gyan and defines functions that gyan wraps.
pub(super) struct Tool {
    /// The library's path; empty for the program itself.
    path: String,
    taken: Vec<Taken>,
}

/// A function that the program calls and that the tool defines.
struct Taken {
    function: &'static str,
    /// The tool refers to its profiling name.
    to_pmpi: bool,
    /// The program also calls it in another language, in which the tool does not define it.
    elsewhere: bool,
}

/// An object that comes before gyan.
struct Front {
    path: String,
    base: usize,
    /// What it defines.
    names: Vec<String>,
    /// The functions whose profiling names it refers to.
    pmpi: HashSet<String>,
}

/// The tools that come before gyan. Usually only the program does, and it defines no such function; then
/// nothing else is examined.
pub(super) fn tools() -> Arc<Vec<Tool>> {
    static TOOLS: OfLoaded<Vec<Tool>> = OfLoaded::new();
    TOOLS.get(found)
}

fn found() -> Vec<Tool> {
    let mut fronts = fronts();
    if fronts.is_empty() {
        return Vec::new();
    }
    let functions: HashMap<String, &'static str> =
        functions().map(|(_, row)| (row.name.to_lowercase(), row.name)).collect();
    let mut own = HashSet::new();
    elf_objects::each(&mut |object| {
        if object.is_own() {
            own.extend(definitions(object));
        }
    });
    let is_wrapped = |name: &String| own.contains(name) && functions.contains_key(&key(name));
    let mut claimed = HashSet::new();
    for front in &mut fronts {
        front.names.retain(|name| is_wrapped(name) && claimed.insert(name.clone()));
    }
    fronts.retain(|front| !front.names.is_empty());
    if fronts.is_empty() {
        return Vec::new();
    }
    let called = references(&mut fronts, &is_wrapped);
    let elsewhere: HashSet<String> =
        called.difference(&claimed).filter(|name| is_wrapped(name)).map(|name| key(name)).collect();
    let tools = fronts.into_iter().map(|front| {
        // Calls within the program itself leave no reference.
        let is_called = |name: &&String| front.path.is_empty() || called.contains(*name);
        let keys: BTreeSet<String> =
            collected(front.names.iter().filter(is_called).map(|name| key(name)));
        let taken = keys.iter().filter_map(|key| {
            let function = *functions.get(key)?;
            let starts_or_ends = own.contains(&format!("P{function}"));
            (!starts_or_ends).then(|| Taken {
                function,
                to_pmpi: front.pmpi.contains(key),
                elsewhere: elsewhere.contains(key),
            })
        });
        Tool { taken: taken.collect(), path: front.path }
    });
    tools.filter(|tool| !tool.taken.is_empty()).collect()
}

/// The objects that come before gyan and define anything with the name of an MPI function.
fn fronts() -> Vec<Front> {
    let mut fronts = Vec::new();
    let mut is_after = false;
    elf_objects::each(&mut |object| {
        is_after |= object.is_own();
        if is_after {
            return;
        }
        let names = definitions(object);
        if !names.is_empty() {
            let path = object.name.to_string_lossy().into_owned();
            fronts.push(Front { path, base: object.base, names, pmpi: HashSet::new() });
        }
    });
    fronts
}

/// The MPI functions that the program and its libraries refer to. Also records what each of `fronts` refers to.
/// The MPI library, its bindings and tools after gyan, which all define functions that gyan wraps, do not count
/// as the program.
fn references(fronts: &mut [Front], is_wrapped: &impl Fn(&String) -> bool) -> HashSet<String> {
    let mut called = HashSet::new();
    elf_objects::each(&mut |object| {
        if object.is_own() {
            return;
        }
        // SAFETY: an object stays loaded during the visit.
        let references = unsafe { object.references() };
        let names = references.iter().filter_map(|reference| of_mpi(reference.name));
        if let Some(front) = fronts.iter_mut().find(|front| front.base == object.base) {
            let profiling = names.filter(|name| name.starts_with(['P', 'p']));
            front.pmpi.extend(profiling.filter_map(|name| Some(key(name.get(1..)?))));
        } else if !definitions(object).iter().any(is_wrapped) {
            called.extend(names.map(str::to_owned));
        }
    });
    called
}

fn definitions(object: &ElfObject) -> Vec<String> {
    // SAFETY: an object stays loaded during the visit.
    let names = unsafe { object.definitions() };
    names.filter_map(of_mpi).map(str::to_owned).collect()
}

/// The name, if it looks like one of MPI's in C or Fortran.
fn of_mpi(name: &CStr) -> Option<&str> {
    const LIKE: [&str; 5] = ["MPI_", "mpi_", "ompi_", "PMPI_", "pmpi_"];
    let is_like = |name: &&str| LIKE.iter().any(|beginning| name.starts_with(beginning));
    name.to_str().ok().filter(is_like)
}

/// The function's name in lower case, whatever the language: `mpi_recv` for `MPI_Recv`,
/// `mpi_recv_`, `MPI_RECV`, `mpi_recv_f08_` and `ompi_recv_f`.
fn key(name: &str) -> String {
    let name = name.to_lowercase();
    let plain = match name.strip_prefix('o').and_then(|name| name.strip_suffix("_f")) {
        Some(inside) => inside,
        None => name.strip_suffix("_f08_").unwrap_or(name.trim_end_matches('_')),
    };
    plain.strip_suffix("_cptr").unwrap_or(plain).to_owned()
}

impl Tool {
    /// What is certain before there are any calls; none when the tool may pass all of them on.
    pub(super) fn at_start(&self) -> Option<String> {
        let names: Vec<&str> =
            self.taken.iter().filter(|taken| taken.to_pmpi).map(|taken| taken.function).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{} and refers to the profiling names (PMPI_*) of {}: calls that it passes on to \
                 these do not reach gyan; {}",
                self.place(),
                listed(&names),
                self.remedy()
            )
        })
    }

    /// What gyan did not see of `calls`; none when the tool passes its calls on.
    pub(super) fn at_end(&self, calls: &[Call]) -> Option<String> {
        let is_seen = |taken: &Taken| {
            let counted = calls.iter().any(|call| call.name == taken.function && call.count > 0);
            counted && !taken.elsewhere
        };
        let hands_on = self.taken.iter().any(is_seen);
        let unseen = self.taken.iter().filter(|taken| !is_seen(taken));
        let unseen = unseen.filter(|taken| taken.to_pmpi || !hands_on);
        let names: Vec<&str> = unseen.map(|taken| taken.function).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{} and defines {}: gyan saw no call of {} through it, so the time in MPI is not \
                 known; {}",
                self.place(),
                listed(&names),
                if names.len() == 1 { "this function" } else { "these functions" },
                self.remedy()
            )
        })
    }

    fn place(&self) -> String {
        match self.path.rsplit('/').next() {
            None | Some("") => "the program itself comes before libgyan.so".to_owned(),
            Some(name) => format!("{name} comes before libgyan.so"),
        }
    }

    fn remedy(&self) -> &'static str {
        if self.path.is_empty() {
            "link the program without the tool that is in it, or with a shared one"
        } else {
            "put libgyan.so first in LD_PRELOAD"
        }
    }
}

fn listed(names: &[&str]) -> String {
    let (shown, more) = names.split_at(names.len().min(NAMES_AT_MOST));
    match (shown, more.len()) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (_, 0) => shown.join(", "),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(path: &str, taken: &[(&'static str, bool, bool)]) -> Tool {
        let taken = taken.iter().map(|&(function, to_pmpi, elsewhere)| Taken {
            function,
            to_pmpi,
            elsewhere,
        });
        Tool { path: path.into(), taken: taken.collect() }
    }

    fn called(counts: &[(&str, u64)]) -> Vec<Call> {
        let call =
            |&(name, count): &(&str, u64)| Call { name: name.into(), count, ..Call::default() };
        counts.iter().map(call).collect()
    }

    #[test]
    fn a_function_has_one_key_in_every_language() {
        for name in
            ["MPI_Recv", "mpi_recv_", "mpi_recv__", "MPI_RECV", "mpi_recv_f08_", "ompi_recv_f"]
        {
            assert_eq!(key(name), "mpi_recv");
        }
        assert_eq!(key("mpi_alloc_mem_cptr_"), "mpi_alloc_mem");
        assert_eq!(key("ompi_file_f"), "mpi_file");
    }

    #[test]
    fn a_tool_that_calls_the_profiling_names_is_told_at_both_ends() {
        let tool = tool("/opt/libtool.so", &[("MPI_Recv", true, false), ("MPI_Send", true, false)]);
        let start = tool.at_start().unwrap();
        assert!(start.starts_with("libtool.so comes before libgyan.so and refers to"), "{start}");
        assert!(start.ends_with("; put libgyan.so first in LD_PRELOAD"), "{start}");
        let end = tool.at_end(&called(&[("MPI_Init", 1)])).unwrap();
        assert!(end.contains("defines MPI_Recv and MPI_Send: gyan saw no call"), "{end}");
        // It passes on calls that it can make in another way.
        let end = tool.at_end(&called(&[("MPI_Recv", 1)])).unwrap();
        assert!(end.contains("defines MPI_Send: gyan saw no call of this function"), "{end}");
    }

    #[test]
    fn a_tool_without_such_references_is_judged_by_what_gyan_counted() {
        let tool = tool("libtool.so", &[("MPI_Recv", false, false), ("MPI_Send", false, false)]);
        assert_eq!(tool.at_start(), None);
        assert_eq!(tool.at_end(&called(&[("MPI_Recv", 1)])), None);
        assert!(tool.at_end(&called(&[("MPI_Recv", 0), ("MPI_Bcast", 1)])).is_some());
    }

    #[test]
    fn what_came_by_another_language_is_no_sign_that_the_tool_hands_it_on() {
        let tool = tool("", &[("MPI_Recv", false, true)]);
        let end = tool.at_end(&called(&[("MPI_Recv", 1)])).unwrap();
        assert!(end.starts_with("the program itself comes before libgyan.so"), "{end}");
        assert!(end.contains("; link the program without"), "{end}");
    }

    #[test]
    fn three_functions_are_named_and_the_others_counted() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }

    /// The unit tests' program defines no function of MPI.
    #[test]
    fn mostly_nothing_comes_before() {
        assert!(tools().is_empty());
    }
}
