//! What is known of a rank as a whole: the columns of the table `ranks`, and what it used in the words of a report.

use gyan_results::{Counts, Number, RankProfile, Resources};

use crate::document::data::{columns, word};

columns! { of in RankProfile;
    /// size of MPI_COMM_WORLD
    required(size: Integer) => u64::from(of.size),
    /// process id
    required(pid: Integer) => u64::from(of.pid),
    /// how the rank ended: finalize, abort, exit, running, killed or unknown
    required(end: Text) => word(of.end.how)?,
    /// code that came with the end
    required(code: Integer) => Number::Integer(of.end.code.into()),
    /// when MPI_Init was called: UTC, RFC 3339
    required(started: Text) => &of.job.started,
    /// seconds from MPI_Init to the end
    required(elapsed_s: Double, Exact) => of.job.known_s(),
    /// seconds in MPI functions, of all threads
    column(in_mpi_s: Double, Estimated) => of.in_mpi.as_ref().map(|of| of.time_s),
    /// standard error of in_mpi_s in seconds
    column(in_mpi_error_s: Double, Estimated) => of.in_mpi.as_ref().and_then(|of| of.time_error_s),
    /// in_mpi_s / elapsed_s
    column(in_mpi_share: Double, Estimated) => of.in_mpi.as_ref().map(|of| of.share),
    /// seconds in MPI_T_init_thread of the library, before MPI_Init
    required(mpit_init_s: Double, Exact) => of.overhead.mpit_init_s,
    /// seconds that gyan took at the start
    required(init_s: Double, Exact) => of.overhead.init_s,
    /// seconds that gyan took to read variables and to keep the live file
    required(sampling_s: Double, Exact) => of.overhead.sampling_s,
    /// seconds that gyan took to count and time calls
    required(wrappers_s: Double, Estimated) => of.overhead.wrappers_s,
    /// seconds that gyan took in callbacks
    required(events_s: Double, Estimated) => of.overhead.events_s,
    /// seconds that gyan took to record a timeline
    required(timeline_s: Double, Estimated) => of.overhead.timeline_s,
    /// seconds that gyan took at the end
    required(finalize_s: Double, Exact) => of.overhead.finalize_s,
    /// share of elapsed_s that gyan took, mpit_init_s excluded
    required(overhead_share: Double, Estimated) => of.overhead.share,
    /// share of elapsed_s that gyan took between start and end
    required(overhead_running_share: Double, Estimated) => of.overhead.running_share,
    /// MPI library and its version
    required(library: Text) => &of.mpi.library,
    /// what MPI_Query_thread gave
    required(thread_level: Text) => &of.mpi.thread_level,
    /// logical processors that the rank may run on, such as 0-3,8
    column(processors: Text) =>
        used(of).map(|of| &of.processors).filter(|processors| !processors.is_empty()),
    /// processor time that the control group allows all of its processes; null without a limit
    column(processor_limit: Double) => used(of).and_then(|of| of.cgroup.as_ref()?.processor_limit),
    /// bytes of memory that the control group allows all of its processes; null without a limit
    column(memory_limit_bytes: Integer) =>
        used(of).and_then(|of| of.cgroup.as_ref()?.memory_limit_bytes),
    /// seconds of processor time in the program since MPI_Init, by the kernel
    column(user_s: Double, Exact) => used(of).map(|of| of.user_s),
    /// seconds of processor time in the kernel since MPI_Init, by the kernel
    column(system_s: Double, Exact) => used(of).map(|of| of.system_s),
    /// how often a thread gave up its processor since MPI_Init
    column(voluntary_switches: Integer, Exact) => used(of).map(|of| of.voluntary_switches),
    /// how often a thread lost or yielded its processor since MPI_Init
    column(involuntary_switches: Integer, Exact) => used(of).map(|of| of.involuntary_switches),
    /// seconds for which the first thread was ready to run and had no processor, by the kernel
    column(processor_wait_s: Double, Exact) => used(of).and_then(|of| of.processor_wait_s),
    /// processors that it used on average since MPI_Init, by the kernel
    column(processors_used: Double, Exact) => used(of).and_then(|of| of.processors_used),
    /// threads at the end, with those of libraries
    column(threads: Integer, Exact) => used(of).and_then(|of| Some(of.threads.as_ref()?.number)),
    /// threads that ran, or were ready to, for a tenth of the time since MPI_Init, and were no helpers that waited
    column(busy_threads: Integer, Exact) => used(of).and_then(|of| Some(of.threads.as_ref()?.busy)),
    /// seconds for which a busy thread was ready to run and had no processor, on average
    column(thread_wait_s: Double, Exact) =>
        used(of).and_then(|of| of.threads.as_ref()?.processor_wait_s),
    /// OpenMP runtime that is loaded
    column(openmp: Text) => used(of).and_then(|of| Some(&of.openmp.as_ref()?.runtime)),
    /// OMP_NUM_THREADS at MPI_Init
    column(omp_num_threads: Text) =>
        used(of).and_then(|of| of.openmp.as_ref()?.num_threads.as_ref()),
    /// page faults since MPI_Init that did not read
    column(minor_faults: Integer, Exact) => used(of).map(|of| of.minor_faults),
    /// page faults since MPI_Init that read
    column(major_faults: Integer, Exact) => used(of).map(|of| of.major_faults),
    /// most bytes that were resident since the program began
    column(peak_memory_bytes: Integer, Exact) => used(of).map(|of| of.peak_memory_bytes),
    /// instructions outside MPI, of the thread that initialised it; null where the processor could not be asked
    column(useful_instructions: Integer, Sampled) => useful(of).map(|of| of.instructions),
    /// cycles outside MPI
    column(useful_cycles: Integer, Sampled) => useful(of).map(|of| of.cycles),
    /// cache misses of the last level outside MPI
    column(useful_cache_misses: Integer, Sampled) => useful(of).and_then(|of| of.cache_misses),
    /// cycles a second on a processor
    column(frequency_hz: Double, Exact) => used(of).and_then(|of| of.counters.as_ref()?.frequency_hz()),
}

/// What a rank may use and what it used; none in profiles of an older gyan that did not record it.
fn used(of: &RankProfile) -> Option<&Resources> {
    of.resources.as_ref()
}

/// What the processor counted outside MPI.
fn useful(of: &RankProfile) -> Option<Counts> {
    used(of)?.counters.as_ref()?.useful()
}

/// What ranks used, in words, by the names in a summary.
pub(super) const USED: &[(&str, &str)] = &[
    ("processors", "processors that it may run on"),
    ("user_s", "time in the program"),
    ("system_s", "time in the kernel"),
    ("voluntary_switches", "gave up its processor"),
    ("involuntary_switches", "lost or yielded its processor"),
    ("processor_wait_s", "wanted a processor"),
    ("processors_used", "processors that it used"),
    ("threads", "threads at the end"),
    ("busy_threads", "busy threads"),
    ("thread_wait_s", "a busy thread wanted one"),
    ("minor_faults", "page faults"),
    ("major_faults", "page faults that read"),
    ("peak_memory_bytes", "peak memory"),
    ("memory_limit_bytes", "limit of memory"),
    ("useful_instructions", "instructions outside MPI"),
    ("useful_cycles", "cycles outside MPI"),
    ("useful_ipc", "instructions per cycle outside MPI"),
    ("useful_misses_per_1000", "cache misses per 1000 of these instructions"),
    ("ipc", "instructions per cycle"),
    ("frequency_hz", "cycles a second on a processor"),
    ("counted_share", "part of the time that was counted"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_over_ranks_of_what_they_used_is_in_words() {
        let schema = include_str!("../../results-schema/schemas/summary.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let fields = schema["$defs"]["ResourcesSummary"]["properties"].as_object().unwrap();
        let is_number =
            |field: &serde_json::Value| field.to_string().contains("#/$defs/Statistic\"");
        let numbers = fields.iter().filter(|(_, field)| is_number(field));
        let numbers: Vec<&str> = numbers.map(|(name, _)| name.as_str()).collect();
        let mut words: Vec<&str> = USED.iter().map(|(name, _)| *name).collect();
        words.sort_unstable();
        assert_eq!(words, numbers);
        assert!(numbers.len() > 15, "{numbers:?}");
    }
}
