//! Collapsed stacks, for flame graphs: a line has the functions of a path, the outermost first, and microseconds of all
//! ranks.

use std::io::{self, Write};

use super::tree::CallTree;
use crate::words::printable;

pub(super) fn write(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    for (path, node) in tree.stacks() {
        let microseconds = (node.time_s() * 1e6).round();
        if microseconds >= 1.0 {
            let names: Vec<String> = path.iter().map(|at| name(&tree.nodes[*at].name)).collect();
            writeln!(out, "{} {microseconds}", names.join(";"))?;
        }
    }
    Ok(())
}

/// Without what would end the name.
fn name(name: &str) -> String {
    printable(name).replace(';', ":")
}
