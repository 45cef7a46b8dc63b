//! The stacks of many ranks as one tree from the root, with the ranks at each branch, as STAT draws it (Arnold and others,
//! "Stack trace analysis for large scale debugging", IPDPS 2007).

use std::collections::BTreeSet;

use gyan_results::{FrameNow, StackNow};

use crate::symbols::short_function;
use crate::words::ranges;

/// How many lines of a function are named.
const LINES_AT_MOST: usize = 3;

#[derive(Debug, Eq, PartialEq)]
pub(crate) struct TreeRow {
    /// The function and its lines, to the right of its caller.
    pub(crate) function: String,
    /// The ranks that are in it; none where they are those of the caller.
    pub(crate) ranks: Option<String>,
    /// How many of their threads; none where they are as many as in the caller.
    pub(crate) threads: Option<u64>,
}

#[derive(Default)]
struct Branch<'a> {
    frame: Option<&'a FrameNow>,
    lines: BTreeSet<u32>,
    ranks: BTreeSet<u32>,
    threads: u64,
    children: Vec<Branch<'a>>,
}

/// Functions are the same whatever line they are at.
pub(crate) fn tree(stacks: &[StackNow]) -> Vec<TreeRow> {
    let mut root = Branch::default();
    for stack in stacks {
        root.grow(stack.is_cut, &stack.frames, stack);
    }
    root.sort();
    let mut rows = Vec::new();
    for child in &root.children {
        child.write(0, None, &mut rows);
    }
    rows
}

impl<'a> Branch<'a> {
    fn grow(&mut self, is_cut: bool, frames: &'a [FrameNow], stack: &StackNow) {
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
        child.ranks.extend(&stack.ranks);
        child.threads += stack.threads;
        child.grow(false, rest, stack);
    }

    /// The branch with the lowest rank comes first; of several the one that was there first.
    fn sort(&mut self) {
        self.children.sort_by_key(|child| child.ranks.first().copied());
        self.children.iter_mut().for_each(Branch::sort);
    }

    fn write(&self, depth: usize, caller: Option<&Branch>, rows: &mut Vec<TreeRow>) {
        let ranks = caller.is_none_or(|caller| caller.ranks != self.ranks);
        let threads = caller.is_none_or(|caller| caller.threads != self.threads);
        rows.push(TreeRow {
            function: format!("{}{}", "  ".repeat(depth), self.text()),
            ranks: ranks.then(|| ranges(&Vec::from_iter(self.ranks.clone()))),
            threads: threads.then_some(self.threads),
        });
        for child in &self.children {
            child.write(depth + 1, Some(self), rows);
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
