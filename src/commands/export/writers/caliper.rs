//! Caliper's `.cali`, which Hatchet, Thicket and Caliper's own cali-query read: a record for each rank and node of the tree,
//! and what is known of the run as Adiak's names for it.
//!
//! A line is a node of a tree (an attribute, or a value of one below another) or a record that refers to such nodes. Each rank
//! has a record for each node, also where it was never: Hatchet has no row for what has no record. The rank is a node and not a
//! number of the record: Hatchet would take it for a metric and have the root twice.

use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use gyan_results::{Summary, Tool};

use super::tree::{CallTree, NodeKind};
use crate::words::{printable, short_library};

/// The node of a type, one of those that each reader has from the start.
#[derive(Clone, Copy)]
enum CaliperType {
    Integer = 1,
    Unsigned = 2,
    Text = 3,
    Double = 5,
}

/// The attributes that each reader has from the start.
const NAME: usize = 8;
const PROPERTIES: usize = 10;
/// The first number of a node that is free.
const FREE: usize = 12;

/// Properties of attributes, as Caliper gives them to its own: part of a path of nested regions, of the process, a number of the
/// record itself, of the run.
const NESTED: u32 = 256 + 20;
const OF_PROCESS: u32 = 64 + 12;
const AS_VALUE: u32 = 64 + 20 + 1;
const GLOBAL: u32 = 512 + 64 + 12;

struct CaliperLines<'o> {
    out: &'o mut dyn Write,
    next: usize,
}

impl CaliperLines<'_> {
    /// A node with a value of an attribute. Returns its number.
    fn node(&mut self, attribute: usize, value: &str, parent: Option<usize>) -> io::Result<usize> {
        let id = self.next;
        self.next += 1;
        write!(self.out, "__rec=node,id={id},attr={attribute},data={}", escaped(value))?;
        if let Some(parent) = parent {
            write!(self.out, ",parent={parent}")?;
        }
        writeln!(self.out)?;
        Ok(id)
    }

    /// `more`: what else is said of the attribute, as attributes with their values.
    fn attribute(
        &mut self,
        name: &str,
        of: CaliperType,
        properties: u32,
        more: &[(usize, &str)],
    ) -> io::Result<usize> {
        let mut at = self.node(PROPERTIES, &properties.to_string(), Some(of as usize))?;
        for (attribute, value) in more {
            at = self.node(*attribute, value, Some(at))?;
        }
        self.node(NAME, name, Some(at))
    }
}

pub(super) fn write(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = CaliperLines { out, next: FREE };
    let alias = lines.attribute("attribute.alias", CaliperType::Text, OF_PROCESS, &[])?;
    let unit = lines.attribute("attribute.unit", CaliperType::Text, OF_PROCESS, &[])?;
    let function = lines.attribute("function", CaliperType::Text, NESTED, &[])?;
    let mpi_function = lines.attribute("mpi.function", CaliperType::Text, NESTED, &[])?;
    let rank = lines.attribute("mpi.rank", CaliperType::Integer, OF_PROCESS, &[])?;
    let mut metric = |name: &str, of: CaliperType, more: &[(usize, &str)]| {
        lines.attribute(name, of, AS_VALUE, more).map(|id| id.to_string())
    };
    let metrics = [
        metric("sum#time.duration", CaliperType::Double, &[(alias, "time"), (unit, "sec")])?,
        metric(
            "inclusive#sum#time.duration",
            CaliperType::Double,
            &[(alias, "time (inc)"), (unit, "sec")],
        )?,
        metric("count", CaliperType::Unsigned, &[(alias, "calls")])?,
        metric("bytes", CaliperType::Unsigned, &[(unit, "byte")])?,
    ]
    .join("=");
    let mut nodes: Vec<usize> = Vec::new();
    for node in &tree.nodes {
        let parent = node.parent.and_then(|parent| nodes.get(parent).copied());
        let attribute = if node.kind == NodeKind::Mpi { mpi_function } else { function };
        nodes.push(lines.node(attribute, &node.name, parent)?);
    }
    for (at, of_rank) in tree.ranks.iter().enumerate() {
        let of_rank = lines.node(rank, &of_rank.rank.to_string(), None)?;
        let inclusive_s = tree.inclusive_s(at);
        for ((node, id), inclusive_s) in tree.nodes.iter().zip(&nodes).zip(inclusive_s) {
            let spent = node.spent(at);
            writeln!(
                lines.out,
                "__rec=ctx,ref={id}={of_rank},attr={metrics},data={}={inclusive_s}={}={}",
                spent.time_s, spent.calls, spent.bytes
            )?;
        }
    }
    let mut globals = Vec::new();
    for (name, of, value) in metadata(tree.summary) {
        let attribute = lines.attribute(&name, of, GLOBAL, &[])?;
        globals.push(lines.node(attribute, &value, None)?.to_string());
    }
    writeln!(lines.out, "__rec=globals,ref={}", globals.join("="))
}

/// What is known of the run: the names are Adiak's as far as it has one, those of labels the user's.
fn metadata(summary: &Summary) -> Vec<(String, CaliperType, String)> {
    use CaliperType::{Double, Text, Unsigned};
    let job = &summary.job;
    let mut all = vec![
        ("jobsize", Unsigned, summary.ranks.expected.to_string()),
        ("numhosts", Unsigned, summary.hosts.len().to_string()),
        ("hostlist", Text, format!("[{}]", summary.hosts.join(","))),
        ("mpi_version", Text, summary.mpi.standard.clone()),
        ("mpi_library", Text, short_library(&summary.mpi.library)),
        ("elapsed_s", Double, job.elapsed_s.to_string()),
        ("gyan.version", Text, Tool::gyan().version),
    ];
    if let Some(executable) = job.command.first() {
        all.push(("executable", Text, executable.clone()));
        all.push(("cmdline", Text, job.command.join(" ")));
    }
    let started = humantime::parse_rfc3339(&job.started).ok();
    if let Some(started) = started.and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
        all.push(("launchdate", Unsigned, started.as_secs().to_string()));
    }
    let labels = job.labels.iter().map(|label| (label.name.clone(), Text, label.value.clone()));
    let all = all.into_iter().map(|(name, of, value)| (name.to_owned(), of, value));
    all.chain(labels).collect()
}

/// Without signs that would end the value.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for sign in printable(text).chars() {
        if matches!(sign, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    escaped
}
