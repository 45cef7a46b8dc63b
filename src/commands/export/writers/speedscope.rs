//! JSON for speedscope: the stacks of all ranks together as a sampled profile, then those of each rank. A stack is a sample
//! that weighs as many seconds as it took.

use std::io::{self, Write};

use gyan_results::Tool;
use serde::{Serialize, Serializer};

use super::tree::{CallNode, CallTree, TreeRank};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpeedscopeFile<'t> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'t str,
    exporter: String,
    active_profile_index: usize,
    shared: SharedFrames<'t>,
    profiles: SampledProfiles<'t>,
}

#[derive(Serialize)]
struct SharedFrames<'t> {
    frames: Vec<SharedFrame<'t>>,
}

#[derive(Serialize)]
struct SharedFrame<'t> {
    name: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Each is made when it is written: there may be many ranks.
struct SampledProfiles<'t> {
    tree: &'t CallTree<'t>,
    stacks: Vec<(Vec<usize>, &'t CallNode)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<'p> {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    samples: Vec<&'p [usize]>,
    weights: Vec<f64>,
}

impl SampledProfiles<'_> {
    fn profile(&self, name: String, rank: Option<usize>) -> SampledProfile<'_> {
        let seconds = self.stacks.iter().map(|(path, node)| {
            let time_s = rank.map_or_else(|| node.time_s(), |rank| node.spent(rank).time_s);
            (path.as_slice(), time_s)
        });
        let (samples, weights): (Vec<_>, Vec<f64>) =
            seconds.filter(|(_, time_s)| *time_s > 0.0).unzip();
        SampledProfile {
            r#type: "sampled",
            name,
            unit: "seconds",
            start_value: 0.0,
            end_value: weights.iter().sum(),
            samples,
            weights,
        }
    }
}

impl Serialize for SampledProfiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ranks = self.tree.ranks.iter().enumerate();
        let of_ranks = ranks.map(|(at, TreeRank { rank, host })| {
            self.profile(format!("rank {rank} on {host}"), Some(at))
        });
        let whole = std::iter::once_with(|| self.profile("all ranks".to_owned(), None));
        serializer.collect_seq(whole.chain(of_ranks))
    }
}

pub(super) fn write(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let frames = tree.nodes.iter();
    let frames = frames.map(|node| SharedFrame {
        name: &node.name,
        file: node.file.as_deref(),
        line: node.line,
    });
    let file = SpeedscopeFile {
        schema: SCHEMA,
        name: tree.program(),
        exporter: format!("gyan {}", Tool::gyan().version),
        active_profile_index: 0,
        shared: SharedFrames { frames: frames.collect() },
        profiles: SampledProfiles { tree, stacks: tree.stacks().collect() },
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}
