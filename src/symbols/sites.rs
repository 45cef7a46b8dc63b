//! The call sites of MPI functions as functions and lines: of the program, or of a library of the program, if
//! that calls MPI. Then where the library was called from is known too, as far as stacks were recorded.

use std::collections::BTreeMap;

use gyan_results::{CodeAddress, LoadedObject, SiteSummary, SitesSummary, Summary};
use serde::Serialize;

use super::stacks::{Code, Way, way};
use super::{StackFrame, Symbols};

/// A place in the program from which a function of MPI is called, directly or through libraries. Numbers are of
/// all ranks together unless stated otherwise.
#[derive(Serialize)]
pub(crate) struct CallSite<'a> {
    pub(crate) function: &'a str,
    /// The function that calls it: the innermost one with a name. None for all places that are not kept apart.
    pub(crate) caller: Option<StackFrame>,
    /// The file that the caller is in, if that is a library.
    pub(crate) object: Option<&'a str>,
    /// The functions that the caller was inlined into, the innermost first.
    pub(crate) inlined_into: Vec<StackFrame>,
    /// The functions between the caller and MPI, the innermost first: bindings, and libraries without names.
    pub(crate) via: Vec<Library>,
    /// For a caller in a library, the functions that led to it, the innermost first, up to the program's.
    pub(crate) from: Vec<Library>,
    pub(crate) calls: f64,
    /// The standard error; none when it is not known.
    pub(crate) calls_error: Option<f64>,
    pub(crate) timed: u64,
    pub(crate) time_s: f64,
    pub(crate) time_error_s: Option<f64>,
    /// The time as a share of that of all ranks.
    pub(crate) share: Option<f64>,
    pub(crate) mean_s: f64,
    /// The longest call that was timed.
    pub(crate) time_max_s: f64,
    pub(crate) bytes: Option<f64>,
    /// The rank that spent the most time there, and how much.
    pub(crate) worst_rank: u32,
    pub(crate) worst_time_s: f64,
    pub(crate) stacks_taken: u64,
    /// How the program got there, the path with the most time first.
    pub(crate) stacks: Vec<Way>,
}

/// A function on the way from the program to MPI, and its file.
#[derive(Clone, Eq, PartialEq, Serialize)]
pub(crate) struct Library {
    pub(crate) frame: StackFrame,
    pub(crate) object: Option<String>,
}

/// All call sites of a run, the one with the most time first.
#[derive(Serialize)]
pub(crate) struct CallSites<'a> {
    pub(crate) sites: Vec<CallSite<'a>>,
    /// What stopped places from getting names.
    pub(crate) remarks: Vec<String>,
}

/// The call sites, when any were noted.
pub(crate) fn call_sites(summary: &Summary) -> Option<CallSites<'_>> {
    let sites = summary.sites.as_ref()?;
    let codes: Vec<Code> =
        sites.addresses.iter().map(|code| Code::named(code, &sites.load_map)).collect();
    let elapsed_s = summary.elapsed_s.as_ref().map(|elapsed| elapsed.sum.as_f64());
    let mut resolver = Resolver { codes, symbols: Symbols::default(), elapsed_s };
    let mut rows: Vec<CallSite> =
        sites.sites.iter().flat_map(|site| resolver.split(site)).collect();
    rows.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    let mut remarks: Vec<String> =
        resolver.symbols.remarks_on(is_program).map(str::to_owned).collect();
    remarks.extend(about_python(sites));
    Some(CallSites { sites: rows, remarks })
}

/// The innermost function at each of these addresses, with its library if it is in one, and what stopped them from getting
/// names.
pub(crate) fn places(
    addresses: &[CodeAddress],
    load_map: &[LoadedObject],
) -> (Vec<Library>, Vec<String>) {
    let mut symbols = Symbols::default();
    let place = |code: &CodeAddress| {
        let code = Code::named(code, load_map);
        let frame = code.frames(&mut symbols).into_iter().next();
        let frame = frame.unwrap_or_else(|| StackFrame::nameless("?"));
        Library { frame, object: library(code).map(str::to_owned) }
    };
    let places = addresses.iter().map(place).collect();
    (places, symbols.remarks_on(is_program).map(str::to_owned).collect())
}

/// Libraries have `.so` in their names, programs have not.
pub(super) fn is_program(path: &str) -> bool {
    !path.rsplit('/').next().unwrap_or_default().contains(".so")
}

/// How to see Python functions, when there are some and none has a name.
fn about_python(sites: &SitesSummary) -> Option<String> {
    let is_python = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.starts_with("python") || file.starts_with("libpython")
    };
    let runs = sites.load_map.iter().any(|object| is_python(&object.path));
    let named = sites.addresses.iter().any(|code| code.name.is_some());
    (runs && !named).then(|| {
        "of this Python no lines are known (those of 3.11 to 3.13 are); run the program with python -X perf \
         (3.12 or later) to see its functions"
            .to_owned()
    })
}

struct Resolver<'a> {
    /// By their place in the summary.
    codes: Vec<Code<'a>>,
    symbols: Symbols,
    elapsed_s: Option<f64>,
}

/// The stacks of a site that come from one place in the program.
#[derive(Default)]
struct StackGroup<'a> {
    /// The frames from MPI up to that place, the innermost first.
    path: Vec<Code<'a>>,
    caller: usize,
    hits: u64,
    calls: u64,
    time_s: f64,
    stacks: Vec<Way>,
}

impl<'a> Resolver<'a> {
    /// A site as it is, or divided by the places in the program that its stacks come from.
    fn split(&mut self, site: &'a SiteSummary) -> Vec<CallSite<'a>> {
        let code = |at: &usize| self.codes.get(*at).copied();
        let call = site.call.as_ref().and_then(code);
        let is_own = call.is_none_or(is_of_program);
        // By the caller and the place in the program, if there is one.
        let mut groups: BTreeMap<Option<[Option<usize>; 2]>, StackGroup> = BTreeMap::new();
        for stack in &site.stacks {
            let frames: Vec<Code> = stack.frames.iter().filter_map(code).collect();
            // A function of Python is called by the interpreter, which may be the program's.
            let named = frames.iter().position(|code| code.name.is_some());
            let outer = named.or_else(|| frames.iter().position(|code| is_of_program(*code)));
            let path = frames.get(..=outer.unwrap_or(frames.len())).unwrap_or(&frames);
            let caller = if is_own { None } else { caller(path, &mut self.symbols) };
            let place = caller.map(|caller| [caller, path.len() - 1]);
            let place = place.map(|place| place.map(|at| stack.frames.get(at).copied()));
            let group = groups.entry(place).or_insert_with(|| match caller {
                Some(caller) => StackGroup { path: path.to_vec(), caller, ..StackGroup::default() },
                None => StackGroup { path: call.into_iter().collect(), ..StackGroup::default() },
            });
            group.hits += stack.hits;
            group.calls += stack.calls;
            group.time_s += stack.time_s;
            group.stacks.push(Way { hits: stack.hits, frames: way(&frames, &mut self.symbols) });
        }
        // Whatever the stacks do not explain belongs to the call itself.
        let (calls, time_s) = (site.calls.sum.as_f64(), site.time_s.sum.as_f64());
        let known_calls: u64 = groups.values().map(|group| group.calls).sum();
        let known_s: f64 = groups.values().map(|group| group.time_s).sum();
        if is_own || calls - known_calls as f64 >= 1.0 || groups.is_empty() {
            let group = groups.entry(None).or_insert_with(|| StackGroup {
                path: call.into_iter().collect(),
                ..StackGroup::default()
            });
            group.time_s += (time_s - known_s).max(0.0);
        }
        let number = groups.len();
        let groups = groups.into_iter();
        let rows = groups.map(|(place, group)| {
            // With only one place, the whole site belongs to it.
            let (of_calls, of_time) = match (number, place) {
                (1, _) => (1.0, 1.0),
                (_, Some(_)) => (part(group.calls as f64, calls), part(group.time_s, time_s)),
                (_, None) => {
                    let rest = group.calls as f64 + (calls - known_calls as f64);
                    (part(rest, calls), part(group.time_s, time_s))
                }
            };
            self.row(site, group, of_calls, of_time)
        });
        rows.collect()
    }

    fn on_the_way(&mut self, path: &[Code]) -> Vec<Library> {
        let libraries = path.iter().flat_map(|code| {
            let object = code.file().map(str::to_owned);
            let frames = code.frames(&mut self.symbols).into_iter();
            frames.map(move |frame| Library { frame, object: object.clone() })
        });
        libraries.collect()
    }

    fn row(
        &mut self,
        site: &'a SiteSummary,
        group: StackGroup<'a>,
        of_calls: f64,
        of_time: f64,
    ) -> CallSite<'a> {
        let StackGroup { path, caller: at, hits: _, calls: _, time_s: _, stacks } = group;
        let place = path.get(at).copied();
        let object = place.and_then(library);
        let mut frames = place.map(|place| place.frames(&mut self.symbols)).into_iter().flatten();
        let caller = frames.next();
        let inlined_into: Vec<StackFrame> = frames.collect();
        let via = self.on_the_way(path.get(..at).unwrap_or_default());
        let from = self.on_the_way(path.get(at + 1..).unwrap_or_default());
        // The stacks that were recorded are a random sample, unless all were.
        let looks = site.stacks_taken;
        let (calls, time_s) = (site.calls.sum.as_f64(), site.time_s.sum.as_f64());
        let is_drawn = (looks as f64) < calls;
        let error = |error: Option<f64>, whole: f64, part: f64| {
            let drawn = if is_drawn { part * (1.0 - part) / (looks as f64).max(1.0) } else { 0.0 };
            error.map(|error| (part * part * error * error + whole * whole * drawn).sqrt())
        };
        let own_calls = calls * of_calls;
        let own_s = time_s * of_time;
        CallSite {
            function: &site.function,
            caller,
            object,
            inlined_into,
            via,
            from,
            calls: own_calls,
            calls_error: error(site.calls_error, calls, of_calls),
            timed: site.timed,
            time_s: own_s,
            time_error_s: error(site.time_error_s, time_s, of_time),
            share: self.elapsed_s.filter(|elapsed| *elapsed > 0.0).map(|elapsed| own_s / elapsed),
            mean_s: if own_calls > 0.0 { own_s / own_calls } else { 0.0 },
            time_max_s: site.time_max_s.max.as_f64(),
            bytes: site.bytes.as_ref().map(|bytes| bytes.sum.as_f64() * of_calls),
            worst_rank: site.time_s.max_rank,
            worst_time_s: site.time_s.max.as_f64() * of_time,
            stacks_taken: looks,
            stacks,
        }
    }
}

/// Which of these frames makes the call, the innermost first: the first one with a name that is not there only
/// to hand calls to MPI. Without any, the first one with a name, or at least outside of MPI.
fn caller(path: &[Code], symbols: &mut Symbols) -> Option<usize> {
    let mut is_named =
        |code: &Code| code.frames(symbols).first().is_some_and(|frame| frame.is_named);
    let outside = path.iter().position(|code| !code.is_between());
    let mut named = path.iter().enumerate().filter(|(_, code)| !code.is_between());
    let named = named.find(|(_, code)| is_named(code)).map(|(at, _)| at);
    let of_binding = || path.iter().position(is_named);
    named.or(outside).or_else(of_binding).or(if path.is_empty() { None } else { Some(0) })
}

/// Code generated at run time counts as the program's own if it has a name.
fn is_of_program(code: Code) -> bool {
    code.object.map_or(code.name.is_some(), |object| is_program(&object.path))
}

/// The file that it is in, unless that is the program's.
fn library(code: Code<'_>) -> Option<&str> {
    if is_of_program(code) { None } else { code.file() }
}

fn part(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}
