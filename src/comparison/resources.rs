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
    ("useful_instructions", "instructions outside MPI"),
    ("useful_ipc", "instructions per cycle outside MPI"),
    ("useful_misses_per_1000", "cache misses per 1000 instructions outside MPI"),
    ("frequency_hz", "cycles a second on a processor"),
];

/// The same of the threads of OpenMP.
const OF_THREADS: &[(&str, &str)] = &[
    ("useful_s", "useful time of the threads"),
    ("lost_to_serial_s", "threads idle in serial code"),
    ("lost_to_imbalance_s", "threads idle for imbalance"),
    ("lost_to_mpi_s", "time of the threads lost to MPI"),
];

/// The resources that the run knows of: name, unit and the numbers over the ranks.
pub(super) fn resources(
    summary: &Summary,
) -> impl Iterator<Item = (&'static str, Unit, &Statistic)> {
    let of_threads = summary.openmp.iter().filter(|of| of.threads.max.as_f64() > 1.0);
    let of_threads = of_threads.flat_map(|of| of.measures_named(OF_THREADS));
    summary.resources.iter().flat_map(|of| of.measures_named(COMPARED)).chain(of_threads)
}
