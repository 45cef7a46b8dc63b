//! By which paths did a rank get to its calls of MPI? From the outermost function that is known to the one that calls.

use std::collections::BTreeMap;

use gyan_results::{CodeAddress, LoadedObject, SiteStack, SitesSummary};

use super::sites::is_program;
use super::stacks::{Code, way};
use super::{StackFrame, Symbols};

/// A path to a call site, and which part of what was called there it stands for.
#[derive(Clone)]
pub(crate) struct CallPath {
    /// The outermost function first; none where nothing is known.
    pub(crate) frames: Vec<StackFrame>,
    /// Of the calls, from 0 to 1.
    pub(crate) calls_share: f64,
    /// Of the time, from 0 to 1.
    pub(crate) time_share: f64,
}

/// What is known of the calls of a function from one place, on one rank or on all.
pub(crate) struct SiteStacks<'s> {
    pub(crate) function: &'s str,
    pub(crate) call: Option<usize>,
    pub(crate) calls: f64,
    pub(crate) time_s: f64,
    pub(crate) stacks: &'s [SiteStack],
    pub(crate) addresses: &'s [CodeAddress],
    pub(crate) load_map: &'s [LoadedObject],
}

pub(crate) struct CallPaths {
    symbols: Symbols,
    /// Of the job, by function and place: for the ranks on which no stack was recorded there.
    of_job: BTreeMap<[String; 2], Vec<CallPath>>,
    /// The functions of stacks that were looked up before.
    known: BTreeMap<String, Vec<StackFrame>>,
}

impl CallPaths {
    pub(crate) fn new(sites: Option<&SitesSummary>) -> CallPaths {
        let mut paths = CallPaths {
            symbols: Symbols::default(),
            of_job: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        let Some(SitesSummary { sites, addresses, load_map }) = sites else { return paths };
        for site in sites.iter().filter(|site| !site.stacks.is_empty()) {
            let site = SiteStacks {
                function: &site.function,
                call: site.call,
                calls: site.calls.sum.as_f64(),
                time_s: site.time_s.sum.as_f64(),
                stacks: &site.stacks,
                addresses,
                load_map,
            };
            let of_site = paths.shares(&site);
            paths.of_job.insert(key(&site), of_site);
        }
        paths
    }

    /// The paths to a site of a rank, whose shares add up to 1. At least one.
    pub(crate) fn to(&mut self, site: &SiteStacks) -> Vec<CallPath> {
        if !site.stacks.is_empty() {
            return self.shares(site);
        }
        let of_job = self.of_job.get(&key(site)).cloned();
        of_job.unwrap_or_else(|| vec![self.direct(site, [1.0, 1.0])])
    }

    /// What stopped places from getting names.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &str> {
        self.symbols.remarks_on(is_program)
    }

    /// By the stacks that were recorded. What they do not stand for has the place alone.
    fn shares(&mut self, site: &SiteStacks) -> Vec<CallPath> {
        let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let mut paths: Vec<CallPath> = Vec::new();
        for stack in site.stacks {
            let frames = self.frames(site, &stack.frames);
            let calls_share = part(stack.calls as f64, site.calls);
            let time_share = part(stack.time_s, site.time_s);
            paths.push(CallPath { frames, calls_share, time_share });
        }
        let sum = |of: fn(&CallPath) -> f64| paths.iter().map(of).sum::<f64>();
        let (calls, time) = (sum(|path| path.calls_share), sum(|path| path.time_share));
        // The calls of each stack are rounded.
        let rest = (site.calls * (1.0 - calls)).max(0.0);
        if rest > paths.len() as f64 || time < 0.999 && site.time_s > 0.0 {
            paths.push(self.direct(site, [(1.0 - calls).max(0.0), (1.0 - time).max(0.0)]));
        }
        let sum = |of: fn(&CallPath) -> f64| paths.iter().map(of).sum::<f64>();
        let (calls, time) = (sum(|path| path.calls_share), sum(|path| path.time_share));
        let even = 1.0 / paths.len() as f64;
        for path in &mut paths {
            path.calls_share = if calls > 0.0 { path.calls_share / calls } else { even };
            path.time_share = if time > 0.0 { path.time_share / time } else { even };
        }
        paths
    }

    /// The path of which no more is known than the place of the call.
    fn direct(&mut self, site: &SiteStacks, [calls_share, time_share]: [f64; 2]) -> CallPath {
        let frames = site.call.map(|call| self.frames(site, &[call])).unwrap_or_default();
        CallPath { frames, calls_share, time_share }
    }

    /// Of a stack, whose innermost address is first.
    fn frames(&mut self, site: &SiteStacks, stack: &[usize]) -> Vec<StackFrame> {
        let name: String = stack.iter().map(|at| place(site, *at)).collect();
        if let Some(frames) = self.known.get(&name) {
            return frames.clone();
        }
        let codes = stack.iter().filter_map(|at| site.addresses.get(*at));
        let mut codes: Vec<Code> = codes.map(|code| Code::named(code, site.load_map)).collect();
        // Who sees functions of Python wants none of the interpreter that runs them, nor of the binding.
        if codes.iter().any(|code| code.name.is_some()) {
            codes.retain(|code| code.name.is_some() || !code.is_between());
        }
        let mut frames = way(&codes, &mut self.symbols);
        frames.reverse();
        self.known.insert(name, frames.clone());
        frames
    }
}

/// The same for a site on every rank, and for that of the job.
fn key(site: &SiteStacks) -> [String; 2] {
    let place = site.call.map(|call| place(site, call)).unwrap_or_default();
    [site.function.to_owned(), place]
}

/// An address in words that are the same on every rank.
fn place(site: &SiteStacks, at: usize) -> String {
    let Some(code) = site.addresses.get(at) else { return String::new() };
    if let Some(name) = &code.name {
        return format!("{name}\n");
    }
    let object = code.object.and_then(|object| site.load_map.get(object));
    let [path, id] = object.map_or(["", ""], |object| {
        [object.path.as_str(), object.build_id.as_deref().unwrap_or_default()]
    });
    format!("{path} {id} {:#x}\n", code.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of code in no file, which needs no symbols: the second function calls the first, as does the third.
    fn names() -> Vec<CodeAddress> {
        let code = |name: &str| CodeAddress { name: Some(name.into()), ..CodeAddress::default() };
        ["inner", "left", "right"].map(code).into()
    }

    fn stack(outer: usize, calls: u64, time_s: f64) -> SiteStack {
        SiteStack { hits: 1, calls, time_s, frames: vec![0, outer] }
    }

    fn site<'s>(stacks: &'s [SiteStack], addresses: &'s [CodeAddress]) -> SiteStacks<'s> {
        let load_map = &[];
        SiteStacks {
            function: "MPI_Send",
            call: Some(0),
            calls: 10.0,
            time_s: 4.0,
            stacks,
            addresses,
            load_map,
        }
    }

    fn found(paths: &[CallPath]) -> Vec<(String, f64, f64)> {
        let names = |path: &CallPath| {
            let names = path.frames.iter().map(|frame| frame.function.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        paths.iter().map(|path| (names(path), path.calls_share, path.time_share)).collect()
    }

    #[test]
    fn what_stacks_do_not_stand_for_has_the_place_alone() {
        let addresses = names();
        let stacks = [stack(1, 5, 1.0), stack(2, 2, 2.0)];
        let paths = CallPaths::new(None).to(&site(&stacks, &addresses));
        let expected = [("left inner", 0.5, 0.25), ("right inner", 0.2, 0.5), ("inner", 0.3, 0.25)];
        for (found, expected) in found(&paths).iter().zip(expected) {
            assert_eq!(found.0, expected.0);
            assert!((found.1 - expected.1).abs() < 1e-12 && (found.2 - expected.2).abs() < 1e-12);
        }
        // All but what is lost by rounding.
        let stacks = [stack(1, 5, 1.0), stack(2, 4, 3.0)];
        let paths = CallPaths::new(None).to(&site(&stacks, &addresses));
        assert_eq!(paths.len(), 2);
        assert!((paths.iter().map(|path| path.calls_share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_rank_without_stacks_has_the_paths_of_others() {
        let addresses = names();
        let stacks = [stack(1, 5, 3.0), stack(2, 5, 1.0)];
        let mut paths = CallPaths::new(None);
        let of_job = paths.shares(&site(&stacks, &addresses));
        paths.of_job.insert(key(&site(&stacks, &addresses)), of_job);
        let expected =
            [("left inner".to_owned(), 0.5, 0.75), ("right inner".to_owned(), 0.5, 0.25)];
        assert_eq!(found(&paths.to(&site(&[], &addresses))), expected);
        // Another place is not known.
        let other = SiteStacks { call: Some(1), ..site(&[], &addresses) };
        assert_eq!(found(&paths.to(&other)), [("left".to_owned(), 1.0, 1.0)]);
    }
}
