//! The stacks of many ranks as one tree from the root, with the ranks at each branch, as STAT draws it (Arnold and others,
//! "Stack trace analysis for large scale debugging", IPDPS 2007).

use std::collections::BTreeSet;

use gyan_results::{FrameNow, StackNow};

use crate::symbols::short_function;
use crate::words::ranges;

/// How many lines of a function are named.
const LINES_AT_MOST: usize = 3;

/// A row of the tree.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct TreeRow {
    /// The function and its lines, to the right of its caller.
    pub(crate) function: String,
    /// The ranks that are in it; none where they are those of the caller.
    pub(crate) ranks: Option<String>,
}

#[derive(Default)]
struct Branch<'a> {
    frame: Option<&'a FrameNow>,
    lines: BTreeSet<u32>,
    ranks: BTreeSet<u32>,
    children: Vec<Branch<'a>>,
}

/// Functions are the same whatever line they are at.
pub(crate) fn tree(stacks: &[StackNow]) -> Vec<TreeRow> {
    let mut root = Branch::default();
    for stack in stacks {
        root.grow(stack.is_cut, &stack.frames, &stack.ranks);
    }
    root.sort();
    let mut rows = Vec::new();
    for child in &root.children {
        child.write(0, None, &mut rows);
    }
    rows
}

impl<'a> Branch<'a> {
    fn grow(&mut self, is_cut: bool, frames: &'a [FrameNow], ranks: &[u32]) {
        // Without a frame: what is above is not known.
        let (frame, rest) = match frames.split_first() {
            _ if is_cut => (None, frames),
            Some((frame, rest)) => (Some(frame), rest),
            None => return,
        };
        let name = |frame: Option<&'a FrameNow>| {
            frame.map(|frame| (&frame.function, &frame.file, frame.inlined))
        };
        let known = self.children.iter().position(|child| name(child.frame) == name(frame));
        let at = known.unwrap_or_else(|| {
            self.children.push(Branch { frame, ..Branch::default() });
            self.children.len() - 1
        });
        let Some(child) = self.children.get_mut(at) else { return };
        child.lines.extend(frame.and_then(|frame| frame.line));
        child.ranks.extend(ranks);
        child.grow(false, rest, ranks);
    }

    /// The branch with the lowest rank comes first.
    fn sort(&mut self) {
        self.children.sort_by(|one, other| one.ranks.cmp(&other.ranks));
        self.children.iter_mut().for_each(Branch::sort);
    }

    fn write(&self, depth: usize, caller: Option<&BTreeSet<u32>>, rows: &mut Vec<TreeRow>) {
        let ranks =
            (caller != Some(&self.ranks)).then(|| ranges(&Vec::from_iter(self.ranks.clone())));
        rows.push(TreeRow { function: format!("{}{}", "  ".repeat(depth), self.text()), ranks });
        for child in &self.children {
            child.write(depth + 1, Some(&self.ranks), rows);
        }
    }

    fn text(&self) -> String {
        let Some(frame) = self.frame else { return "(what called it could not be read)".into() };
        let mut text = short_function(&frame.function);
        if let Some(file) = &frame.file {
            let file = file.rsplit('/').next().unwrap_or(file);
            let mut lines: Vec<String> =
                self.lines.iter().take(LINES_AT_MOST).map(u32::to_string).collect();
            if self.lines.len() > LINES_AT_MOST {
                lines.push("...".into());
            }
            let colon = if lines.is_empty() { "" } else { ":" };
            text = format!("{text} ({file}{colon}{})", lines.join(", "));
        }
        if frame.inlined {
            text += " inlined";
        }
        text
    }
}
