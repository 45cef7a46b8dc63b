//! What do the counters of the processor say about own code?

use gyan_results::Statistic;

use super::{Rule, RuleMatch, percent};
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, estimated, exact};

pub(super) const RULES: &[Rule] = rules! {
    380 "memory-bound": Program,
        "the instructions per cycle outside MPI (gyan report --machine)",
        memory_bound;
    390 "different-clocks": System,
        "the cycles a second of each rank (gyan report --machine)",
        different_clocks;
};

const SHOWN: &str = "gyan report --machine";

/// Cycles that a load from memory takes: 240 on a Haswell, 96 ns at 2.5 GHz (Molka et al., ICPP 2015, table II). Later servers have a
/// latency of about the same.
const CYCLES_OF_A_MISS: f64 = 200.0;

/// Below this, a core is poorly used: Intel's profiler marks more than one cycle per instruction.
const FEW_INSTRUCTIONS_PER_CYCLE: f64 = 1.0;

/// A core that is this much faster than another makes a difference. Boost clocks differ by a few percent from core to core.
const FASTER: f64 = 1.1;

fn memory_bound(run: &RunFacts) -> Vec<RuleMatch> {
    let (Some(used), Some(useful)) = (&run.summary.resources, &run.summary.useful_s) else {
        return Vec::new();
    };
    let (Some(ipc), Some(misses)) = (&used.useful_ipc, &used.useful_misses_per_1000) else {
        return Vec::new();
    };
    let own_share = run.share(useful.sum.as_f64());
    let (ipc, misses) = (ipc.avg, misses.avg);
    let waits = ipc * misses / 1000.0 * CYCLES_OF_A_MISS;
    if own_share < 0.5 || ipc >= FEW_INSTRUCTIONS_PER_CYCLE || waits < 0.5 {
        return Vec::new();
    }
    let title = format!(
        "own code, {} of the run, does {ipc:.2} instructions per cycle and probably waits for memory",
        percent(own_share)
    );
    let evidence = vec![
        estimated("instructions per cycle outside MPI", ipc, "", SHOWN),
        estimated("cache misses per 1000 instructions outside MPI", misses, "", SHOWN),
    ];
    let advice = vec![
        say("bring data closer together, use it while it is in the cache, or use smaller types"),
        say("see whether fewer ranks on a host run at the same speed: they share its memory"),
        command("find the lines that wait", "perf record -e cache-misses ./app"),
    ];
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}

fn different_clocks(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(used) = &run.summary.resources else { return Vec::new() };
    let Some(clocks) = &used.frequency_hz else { return Vec::new() };
    // Cycles in the kernel are not counted, so that ranks that spend time there seem to be slow.
    let is_in_kernel = used.system_s.max.as_f64() > 0.05 * used.user_s.min.as_f64();
    let Statistic { min, min_rank, max, max_rank, .. } = clocks;
    let (min, max) = (min.as_f64(), max.as_f64());
    if is_in_kernel || min <= 0.0 || max < FASTER * min {
        return Vec::new();
    }
    let title = format!(
        "the processor of rank {min_rank} runs at {:.1} GHz, that of rank {max_rank} at {:.1} GHz",
        min * 1e-9,
        max * 1e-9
    );
    let evidence = vec![
        exact(&format!("cycles a second, rank {min_rank}"), min, "/s", SHOWN),
        exact(&format!("cycles a second, rank {max_rank}"), max, "/s", SHOWN),
    ];
    let advice = vec![say(
        "see whether its host is hot, has a limit of power, or sets its clock in another way, and whether the core is of a slower kind",
    )];
    vec![RuleMatch { title, evidence, advice, ranks: vec![*min_rank], ..RuleMatch::default() }]
}
