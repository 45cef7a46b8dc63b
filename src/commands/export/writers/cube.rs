//! Cube 4 (`.cubex`), for Cube's viewer, Scalasca's tools and pycubexr: an uncompressed tar archive. `anchor.xml` has the metrics,
//! the tree and the system; each metric has a file with the nodes that have values, and one with these.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use gyan_results::Tool;
use maud::{Markup, PreEscaped, html};
use tar::{Builder, Header};

use super::tree::{CallNode, CallTree, NodeKind, Spent};
use crate::words::printable;

/// What is measured at each node, without what it calls. Its place is its number.
struct CubeMetric {
    unique_name: &'static str,
    name: &'static str,
    unit: &'static str,
    data_type: &'static str,
    about: &'static str,
    bytes: fn(&Spent) -> [u8; 8],
}

const METRICS: [CubeMetric; 3] = [
    CubeMetric {
        unique_name: "time",
        name: "Time",
        unit: "sec",
        data_type: "DOUBLE",
        about: "Seconds, an estimate where not each call was timed; of the program those outside of MPI",
        bytes: |spent| spent.time_s.to_le_bytes(),
    },
    CubeMetric {
        unique_name: "visits",
        name: "Visits",
        unit: "occ",
        data_type: "UINT64",
        about: "Calls of functions of MPI; other functions are not counted",
        bytes: |spent| spent.calls.to_le_bytes(),
    },
    CubeMetric {
        unique_name: "bytes",
        name: "Bytes",
        unit: "bytes",
        data_type: "UINT64",
        about: "Bytes handed to MPI",
        bytes: |spent| spent.bytes.to_le_bytes(),
    },
];

pub(super) fn write(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let hosts = hosts(tree);
    // The order of the locations, which is that of the values.
    let ranks: Vec<usize> = hosts.values().flatten().copied().collect();
    let mut archive = Builder::new(out);
    append(&mut archive, "anchor.xml", anchor(tree, &hosts).into_string().as_bytes())?;
    for (number, metric) in METRICS.iter().enumerate() {
        append(&mut archive, &format!("{number}.index"), &index(tree.nodes.len())?)?;
        let mut data = b"CUBEX.DATA".to_vec();
        let values = tree.nodes.iter().flat_map(|node| ranks.iter().map(|rank| node.spent(*rank)));
        values.for_each(|spent| data.extend((metric.bytes)(&spent)));
        append(&mut archive, &format!("{number}.data"), &data)?;
    }
    archive.into_inner()?.flush()
}

fn append(archive: &mut Builder<&mut dyn Write>, name: &str, data: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, data)
}

/// Which nodes have values: all, in the order of the tree.
fn index(nodes: usize) -> io::Result<Vec<u8>> {
    const VERSION: u16 = 0;
    /// The numbers of the nodes follow.
    const SPARSE: u8 = 1;
    let nodes = u32::try_from(nodes).map_err(io::Error::other)?;
    let mut index = b"CUBEX.INDEX".to_vec();
    // By this a reader sees the order of the bytes.
    index.extend(1_u32.to_le_bytes());
    index.extend(VERSION.to_le_bytes());
    index.push(SPARSE);
    index.extend(nodes.to_le_bytes());
    (0..nodes).for_each(|node| index.extend(node.to_le_bytes()));
    Ok(index)
}

/// The places of the ranks by host.
fn hosts<'t>(tree: &'t CallTree) -> BTreeMap<&'t str, Vec<usize>> {
    let mut hosts: BTreeMap<&'t str, Vec<usize>> = BTreeMap::new();
    for (at, rank) in tree.ranks.iter().enumerate() {
        hosts.entry(&rank.host).or_default().push(at);
    }
    hosts
}

fn anchor(tree: &CallTree, hosts: &BTreeMap<&str, Vec<usize>>) -> Markup {
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        cube version="4.4" {
            "\n"
            (attribute("Creator", &format!("gyan {}", Tool::gyan().version)))
            (attribute("Job", &tree.summary.job.id))
            (attribute("MPI", &tree.summary.mpi.library))
            doc { mirrors {} }
            "\n"
            metrics title="Metric tree" {
                "\n"
                @for (number, metric) in METRICS.iter().enumerate() { (metric_element(number, metric)) "\n" }
            }
            "\n"
            (program(tree))
            "\n"
            (system(tree, hosts))
            "\n"
        }
        "\n"
    }
}

/// In the form that Cube writes and its parser knows.
fn attribute(key: &str, value: &str) -> Markup {
    html! {
        (PreEscaped("<attr key=\"")) (key) (PreEscaped("\" value=\"")) (printable(value)) (PreEscaped("\"/>\n"))
    }
}

fn metric_element(number: usize, metric: &CubeMetric) -> Markup {
    html! {
        metric id=(number) type="EXCLUSIVE" {
            disp_name { (metric.name) }
            uniq_name { (metric.unique_name) }
            dtype { (metric.data_type) }
            uom { (metric.unit) }
            val {}
            url {}
            descr { (metric.about) }
        }
    }
}

/// What is called, and the tree of calls of it.
fn program(tree: &CallTree) -> Markup {
    let key = |node: &CallNode| (node.kind, node.name.clone());
    let keys: BTreeSet<_> = tree.nodes.iter().map(key).collect();
    let regions: BTreeMap<_, usize> = keys.into_iter().zip(0..).collect();
    let mut first: BTreeMap<usize, &CallNode> = BTreeMap::new();
    for node in &tree.nodes {
        first.entry(regions[&key(node)]).or_insert(node);
    }
    let mut calls = Vec::new();
    let mut depth = 0;
    for (number, node) in tree.nodes.iter().enumerate() {
        // Those that were begun and do not call this one are at their end.
        let ends = "</cnode>".repeat(depth - node.depth);
        calls.push(format!("{ends}\n<cnode id=\"{number}\" calleeId=\"{}\">", regions[&key(node)]));
        depth = node.depth + 1;
    }
    calls.push("</cnode>".repeat(depth));
    html! {
        program title="Call tree" {
            @for (number, node) in first { "\n" (region(number, node)) }
            (PreEscaped(calls.concat()))
        }
    }
}

fn region(number: usize, node: &CallNode) -> Markup {
    let line = node.line.map_or_else(|| "-1".to_owned(), |line| line.to_string());
    let paradigm = if node.kind == NodeKind::Mpi { "mpi" } else { "user" };
    let name = printable(&node.name);
    html! {
        region id=(number) mod=(printable(node.file.as_deref().unwrap_or_default())) begin=(line) end="-1" {
            name { (name) }
            mangled_name { (name) }
            paradigm { (paradigm) }
            role { "function" }
            url {}
            descr {}
        }
    }
}

/// The machine with its hosts, their processes, and a thread of each, which stands for all.
fn system(tree: &CallTree, hosts: &BTreeMap<&str, Vec<usize>>) -> Markup {
    let mut locations = 0..;
    html! {
        system title="System tree" {
            systemtreenode Id="0" {
                name { "machine" }
                class { "machine" }
                @for (number, (host, ranks)) in hosts.iter().enumerate() {
                    "\n"
                    systemtreenode Id=(number + 1) {
                        name { (printable(host)) }
                        class { "node" }
                        @for rank in ranks {
                            "\n"
                            (process(locations.next().unwrap_or(0), tree.ranks[*rank].rank))
                        }
                    }
                }
            }
            topologies {}
        }
    }
}

fn process(location: usize, rank: u32) -> Markup {
    html! {
        locationgroup Id=(location) {
            name { "MPI rank " (rank) }
            rank { (rank) }
            type { "process" }
            location Id=(location) {
                name { "all threads" }
                rank { "0" }
                type { "thread" }
            }
        }
    }
}
