//! What a run took of its machine, under the same name in every comparison.

use gyan_results::{Statistic, Summary, Unit};

/// The resources that the run knows of: name, unit and the numbers over the ranks.
pub(super) fn resources(
    summary: &Summary,
) -> impl Iterator<Item = (&'static str, Unit, &Statistic)> {
    let of = summary.resources.iter().flat_map(|of| {
        [
            ("peak memory of a process", Unit::Bytes, Some(&of.peak_memory_bytes)),
            ("processor time in the program", Unit::Seconds, Some(&of.user_s)),
            ("processor time in the kernel", Unit::Seconds, Some(&of.system_s)),
            ("waiting for a processor", Unit::Seconds, of.processor_wait_s.as_ref()),
            ("times that a processor was taken away", Unit::Count, Some(&of.involuntary_switches)),
            ("page faults that had to read", Unit::Count, Some(&of.major_faults)),
        ]
    });
    of.filter_map(|(name, unit, statistic)| Some((name, unit, statistic?)))
}
