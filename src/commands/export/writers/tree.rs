//! What did each rank do where in the program? A tree of calls from the program to the functions of MPI, with the numbers of
//! each rank, which the formats of other tools are made of.

use std::collections::BTreeMap;
use std::convert::Infallible;

use gyan_results::{Call, RankProfile, Site, Sites, Summary};

use super::program_name;
use crate::comparison::program;
use crate::input::source::Source;
use crate::symbols::StackFrame;
use crate::symbols::file_and_line;
use crate::symbols::paths::{CallPaths, SiteStacks};

pub(super) struct CallTree<'s> {
    pub(super) summary: &'s Summary,
    /// In their order, those that have a profile.
    pub(super) ranks: Vec<TreeRank>,
    /// The program first, each before those that it calls.
    pub(super) nodes: Vec<CallNode>,
}

pub(super) struct TreeRank {
    pub(super) rank: u32,
    pub(super) host: String,
}

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum NodeKind {
    /// The program itself, whose time is that outside of MPI.
    Program,
    /// A function of the program or of its libraries, whose time is that of what it calls.
    Function,
    /// A function of MPI.
    Mpi,
}

pub(super) struct CallNode {
    pub(super) kind: NodeKind,
    /// The function; of one that calls MPI, with its file and line.
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    /// The place of the node that calls it; none for the program.
    pub(super) parent: Option<usize>,
    /// How many nodes are above it.
    pub(super) depth: usize,
    /// By the place of the rank in `ranks`, those that were there; without what it calls.
    pub(super) of_ranks: BTreeMap<usize, Spent>,
}

/// What a rank did at a place.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) time_s: f64,
    pub(super) calls: u64,
    /// Handed to MPI.
    pub(super) bytes: u64,
}

impl CallNode {
    /// Of all ranks together.
    pub(super) fn time_s(&self) -> f64 {
        self.of_ranks.values().map(|spent| spent.time_s).sum()
    }

    /// Of one rank; nothing where it was not there.
    pub(super) fn spent(&self, rank: usize) -> Spent {
        self.of_ranks.get(&rank).copied().unwrap_or_default()
    }
}

/// The tree of the profiles in `source`, and what stopped places from getting names. `summary` is that of `source`, and says which
/// profiles cannot be read.
pub(super) fn read<'s>(source: &Source, summary: &'s Summary) -> (CallTree<'s>, Vec<String>) {
    let mut growing = Growing {
        tree: CallTree { summary, ranks: Vec::new(), nodes: Vec::new() },
        paths: CallPaths::new(summary.sites.as_ref()),
        children: BTreeMap::new(),
    };
    let name = program_name(program(summary));
    let root = growing.child(None, NodeKind::Program, name, (None, None));
    let Ok(()) = source.in_order(&[], |_, profile| {
        if let Ok(profile) = profile {
            growing.add(root, &profile);
        }
        Ok::<(), Infallible>(())
    });
    let remarks = growing.paths.remarks().map(str::to_owned).collect();
    (growing.tree.in_depth_first_order(), remarks)
}

struct Growing<'s> {
    tree: CallTree<'s>,
    paths: CallPaths,
    /// Nodes by the one that calls them, kind and name.
    children: BTreeMap<(Option<usize>, NodeKind, String), usize>,
}

impl Growing<'_> {
    fn add(&mut self, root: usize, profile: &RankProfile) {
        let rank = self.tree.ranks.len();
        self.tree.ranks.push(TreeRank { rank: profile.rank, host: profile.host.clone() });
        for call in &profile.calls {
            self.add_calls(root, rank, call, profile.sites.as_ref());
        }
        // In which no thread was in MPI, without the start of gyan: as in a summary.
        let run_s = profile.job.known_s() - profile.overhead.start_s();
        let in_mpi_s = profile.in_mpi.as_ref().map_or(0.0, |of| of.wall().unwrap_or(of.time_s));
        let spent = Spent { time_s: (run_s - in_mpi_s).max(0.0), calls: 1, bytes: 0 };
        self.tree.nodes[root].of_ranks.insert(rank, spent);
    }

    /// The calls of a function. Those that belong to no site are called by the program, from wherever.
    fn add_calls(&mut self, root: usize, rank: usize, call: &Call, sites: Option<&Sites>) {
        let mut rest = Spent {
            time_s: call.time_s.unwrap_or_default(),
            calls: call.count,
            bytes: call.bytes.unwrap_or_default(),
        };
        if let Some(sites) = sites {
            for site in sites.sites.iter().filter(|site| site.function == call.name) {
                self.add_site(root, rank, site, sites);
                rest.time_s -= site.time_s;
                rest.calls = rest.calls.saturating_sub(site.calls);
                rest.bytes = rest.bytes.saturating_sub(site.bytes.unwrap_or_default());
            }
        }
        if rest.calls > 0 {
            rest.time_s = rest.time_s.max(0.0);
            self.spend(root, &[], &call.name, rank, rest);
        }
    }

    fn add_site(&mut self, root: usize, rank: usize, site: &Site, sites: &Sites) {
        let Sites { addresses, load_map, .. } = sites;
        let paths = self.paths.to(&SiteStacks {
            function: &site.function,
            call: site.call,
            calls: site.calls as f64,
            time_s: site.time_s,
            stacks: &site.stacks,
            addresses,
            load_map,
        });
        let shares: Vec<f64> = paths.iter().map(|path| path.calls_share).collect();
        let calls = shared_out(site.calls, &shares);
        let bytes = shared_out(site.bytes.unwrap_or_default(), &shares);
        for ((path, calls), bytes) in paths.iter().zip(calls).zip(bytes) {
            let spent = Spent { time_s: site.time_s * path.time_share, calls, bytes };
            self.spend(root, &path.frames, &site.function, rank, spent);
        }
    }

    fn spend(&mut self, root: usize, path: &[StackFrame], function: &str, rank: usize, of: Spent) {
        let mut at = root;
        for (depth, frame) in path.iter().enumerate() {
            let is_site = depth + 1 == path.len();
            let name = if is_site { site_name(frame) } else { frame.function.clone() };
            let place = (frame.file.as_deref(), frame.line.filter(|_| is_site));
            at = self.child(Some(at), NodeKind::Function, name, place);
        }
        at = self.child(Some(at), NodeKind::Mpi, function.to_owned(), (None, None));
        let spent = self.tree.nodes[at].of_ranks.entry(rank).or_default();
        spent.time_s += of.time_s;
        spent.calls += of.calls;
        spent.bytes += of.bytes;
    }

    /// The place of the node of that name, which is new if need be.
    fn child(
        &mut self,
        parent: Option<usize>,
        kind: NodeKind,
        name: String,
        (file, line): (Option<&str>, Option<u32>),
    ) -> usize {
        let nodes = &mut self.tree.nodes;
        *self.children.entry((parent, kind, name)).or_insert_with_key(|(parent, kind, name)| {
            let depth = parent.map_or(0, |parent| nodes[parent].depth + 1);
            nodes.push(CallNode {
                kind: *kind,
                name: name.clone(),
                file: file.map(str::to_owned),
                line,
                parent: *parent,
                depth,
                of_ranks: BTreeMap::new(),
            });
            nodes.len() - 1
        })
    }
}

/// `solve (solver.c:42)`, as far as it is known.
fn site_name(frame: &StackFrame) -> String {
    match file_and_line(frame.file.as_deref(), frame.line) {
        Some(place) => format!("{} ({place})", frame.function),
        None => frame.place(),
    }
}

/// A whole number in parts of these shares, which add up to 1: so do the parts to the number.
fn shared_out(whole: u64, shares: &[f64]) -> Vec<u64> {
    let (mut share, mut given) = (0.0, 0);
    let last = shares.len().saturating_sub(1);
    let part = |(at, of): (usize, &f64)| {
        share += of;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and `whole`
        let upto = if at == last { whole } else { (whole as f64 * share).round() as u64 };
        let part = upto.clamp(given, whole) - given;
        given += part;
        part
    };
    shares.iter().enumerate().map(part).collect()
}

impl<'s> CallTree<'s> {
    pub(super) fn program(&self) -> &str {
        self.nodes.first().map_or("", |root| &root.name)
    }

    /// Each node before those that it calls, these together, in the order in which they were met.
    fn in_depth_first_order(self) -> CallTree<'s> {
        let mut called: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                called[parent].push(at);
            }
        }
        let (mut order, mut next) = (Vec::new(), vec![0]);
        while let Some(at) = next.pop() {
            order.push(at);
            next.extend(called[at].iter().rev());
        }
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, at)| places[*at] = place);
        let mut nodes: Vec<(usize, CallNode)> = self.nodes.into_iter().enumerate().collect();
        nodes.sort_by_key(|(at, _)| places[*at]);
        let renamed = |(_, node): (usize, CallNode)| CallNode {
            parent: node.parent.map(|parent| places[parent]),
            ..node
        };
        CallTree { nodes: nodes.into_iter().map(renamed).collect(), ..self }
    }

    /// The node and those above it, the program first.
    pub(super) fn path(&self, node: usize) -> Vec<usize> {
        let parent = |at: &usize| self.nodes[*at].parent;
        let mut path: Vec<usize> = std::iter::successors(Some(node), parent).collect();
        path.reverse();
        path
    }

    /// Seconds of a rank at each node and below.
    pub(super) fn inclusive_s(&self, rank: usize) -> Vec<f64> {
        let mut seconds: Vec<f64> = self.nodes.iter().map(|node| node.spent(rank).time_s).collect();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                seconds[parent] += seconds[at];
            }
        }
        seconds
    }

    /// The functions of MPI, each with its path below the program.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (Vec<usize>, &CallNode)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.kind == NodeKind::Mpi).map(|(at, node)| (self.path(at), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_number_add_up_to_it() {
        assert_eq!(shared_out(10, &[0.25, 0.25, 0.5]), [3, 2, 5]);
        assert_eq!(shared_out(1, &[0.4, 0.3, 0.3]), [0, 1, 0]);
        // Shares are not exact.
        assert_eq!(shared_out(7, &[0.999, 0.002, 0.0]), [7, 0, 0]);
        assert!(shared_out(7, &[]).is_empty());
        let many = vec![1.0 / 3000.0; 3000];
        assert_eq!(
            shared_out(u64::MAX, &many).iter().map(|part| u128::from(*part)).sum::<u128>(),
            u64::MAX.into()
        );
    }
}
