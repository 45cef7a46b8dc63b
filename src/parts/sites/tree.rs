//! The call tree from the outermost function of the program to MPI: who called whom, and how long it took.

use crate::document::page::pictures::Node;
use crate::symbols::sites::{CallSite, CallSites};

/// A smaller share of the time in MPI is not drawn.
const NODE_AT_LEAST: f64 = 0.002;
/// The greatest depth that is drawn.
const DEPTH_AT_MOST: usize = 24;

/// The chains of callers as a tree, the outermost first. The time of a site is divided between the paths to it
/// by how often each was seen.
pub(crate) fn tree(found: &CallSites) -> Vec<Node> {
    let mut root = Node::default();
    for site in &found.sites {
        let hits: u64 = site.stacks.iter().map(|way| way.hits).sum();
        if hits == 0 {
            root.grow(&callers(site), site.time_s, site.function);
        }
        for way in &site.stacks {
            let time_s = site.time_s * way.hits as f64 / hits as f64;
            let frames: Vec<String> =
                way.frames.iter().rev().map(|frame| frame.function.clone()).collect();
            root.grow(&frames, time_s, site.function);
        }
    }
    let least = NODE_AT_LEAST * root.time_s;
    root.prune(least);
    root.children
}

/// The known callers when there is no stack, the outermost first.
fn callers(site: &CallSite) -> Vec<String> {
    let inlined = site.inlined_into.iter().rev().chain(&site.caller);
    let callers: Vec<String> = inlined.map(|frame| frame.function.clone()).collect();
    if callers.is_empty() { vec!["elsewhere".to_owned()] } else { callers }
}

impl Node {
    fn grow(&mut self, frames: &[String], time_s: f64, function: &str) {
        self.time_s += time_s;
        let (name, is_mpi) = match frames.first() {
            Some(name) => (name.as_str(), false),
            None => (function, true),
        };
        let known =
            self.children.iter().position(|child| child.name == name && child.is_mpi == is_mpi);
        let at = known.unwrap_or_else(|| {
            self.children.push(Node { name: name.to_owned(), is_mpi, ..Node::default() });
            self.children.len() - 1
        });
        let Some(child) = self.children.get_mut(at) else { return };
        match frames {
            [] => child.time_s += time_s,
            [_, rest @ ..] => {
                // If the chain is too deep, the innermost callers are kept.
                let skipped = rest.len().saturating_sub(DEPTH_AT_MOST);
                child.grow(rest.get(skipped..).unwrap_or_default(), time_s, function);
            }
        }
    }

    fn prune(&mut self, least: f64) {
        self.children.retain(|child| child.time_s > 0.0 && child.time_s >= least);
        self.children.sort_by(|one, other| {
            other.time_s.total_cmp(&one.time_s).then_with(|| one.name.cmp(&other.name))
        });
        self.children.iter_mut().for_each(|child| child.prune(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(nodes: &[Node]) -> String {
        let name = |node: &Node| match names(&node.children) {
            below if below.is_empty() => format!("{} {}", node.name, node.time_s),
            below => format!("{} {} ({below})", node.name, node.time_s),
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    fn grown(ways: &[(&[&str], f64)]) -> Node {
        let mut root = Node::default();
        for (frames, time_s) in ways {
            let frames: Vec<String> = frames.iter().map(|frame| (*frame).to_owned()).collect();
            root.grow(&frames, *time_s, "MPI_Recv");
        }
        root
    }

    #[test]
    fn a_box_has_the_time_of_all_that_is_below_it_the_longest_first() {
        let mut root = grown(&[(&["main", "a"], 1.0), (&["main", "b"], 2.0), (&["main"], 4.0)]);
        root.prune(0.0);
        let below = "MPI_Recv 4, b 2 (MPI_Recv 2), a 1 (MPI_Recv 1)";
        assert_eq!(names(&root.children), format!("main 7 ({below})"));
    }

    #[test]
    fn what_is_too_small_to_be_seen_goes_with_all_below_it() {
        let mut root = grown(&[(&["main", "a"], 1.0), (&["main", "b"], 0.001)]);
        root.prune(0.002);
        assert_eq!(names(&root.children), "main 1.001 (a 1 (MPI_Recv 1))");
    }

    #[test]
    fn a_recursion_without_end_keeps_its_ends() {
        let deep: Vec<String> = (0..1000).map(|at| at.to_string()).collect();
        let mut root = Node::default();
        root.grow(&deep, 1.0, "MPI_Recv");
        let (mut node, mut seen) = (&root, Vec::new());
        while let Some(child) = node.children.first() {
            seen.push(child.name.as_str());
            node = child;
        }
        assert_eq!((seen[0], seen[seen.len() - 2]), ("0", "999"));
        assert_eq!(seen.last(), Some(&"MPI_Recv"));
        assert!(seen.len() <= DEPTH_AT_MOST + 2, "{}", seen.len());
    }
}
