//! What a run took of its machine, under the same name in every comparison.

use gyan_results::{Statistic, Summary, Unit};

/// The numbers that are compared, by their names in a summary, in words.
const COMPARED: &[(&str, &str)] = &[
    ("peak_memory_bytes", "peak memory of a process"),
    ("user_s", "processor time in the program"),
    ("system_s", "processor time in the kernel"),
    ("processor_wait_s", "waiting for a processor"),
    ("processors_used", "processors used"),
    ("involuntary_switches", "times that a processor was taken away"),
    ("major_faults", "page faults that had to read"),
];

/// The resources that the run knows of: name, unit and the numbers over the ranks.
pub(super) fn resources(
    summary: &Summary,
) -> impl Iterator<Item = (&'static str, Unit, &Statistic)> {
    summary.resources.iter().flat_map(|of| of.measures_named(COMPARED))
}
