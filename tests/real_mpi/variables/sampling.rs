//! While the program runs, variables whose value in between matters are read at its calls.

use gyan_results::{Class, Number, Pvar, RankProfile, Samples, SeriesColumn};

use crate::common::{
    MPICH_PVARS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Profiled, call, each_library, elements, pvar,
};

const NO_LIMIT: (&str, &str) = ("GYAN_BUDGET", "none");
const UNEXPECTED: usize = 23;
const POSTED: usize = 11;

/// A variable that is the length of a queue, and which queue.
struct Length {
    mpi: Mpi,
    variable: &'static str,
    /// `unexpected` or `posted`.
    queue: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

const fn queue(mpi: Mpi, variable: &'static str, queue: &'static str) -> Length {
    Length { mpi, variable, queue, settings: &[] }
}

const OB1_UNEXPECTED: &str = "pml_ob1_unexpected_msgq_length";
const OB1_POSTED: &str = "pml_ob1_posted_recvq_length";

const QUEUES: [Length; 9] = [
    queue(MPICH_PVARS, "unexpected_recvq_length", "unexpected"),
    queue(MPICH_PVARS, "posted_recvq_length", "posted"),
    queue(OPENMPI, OB1_UNEXPECTED, "unexpected"),
    queue(OPENMPI, OB1_POSTED, "posted"),
    queue(OPENMPI5, OB1_UNEXPECTED, "unexpected"),
    queue(OPENMPI5, OB1_POSTED, "posted"),
    queue(OPENMPI_SPC, OB1_UNEXPECTED, "unexpected"),
    queue(OPENMPI_SPC, OB1_POSTED, "posted"),
    Length {
        mpi: OPENMPI_SPC,
        variable: "runtime_spc_OMPI_SPC_UNEXPECTED_IN_QUEUE",
        queue: "unexpected",
        settings: &[("GYAN_ENABLE", "spc")],
    },
];

/// The one of `MPI_COMM_WORLD`, if there is one for each communicator.
fn of_the_world<'a>(profile: &'a RankProfile, name: &str) -> &'a Pvar {
    let found = profile.pvars.iter().find(|pvar| {
        pvar.name == name && pvar.object.as_deref().is_none_or(|object| object == "MPI_COMM_WORLD")
    });
    found.unwrap_or_else(|| panic!("rank {} has no {name}", profile.rank))
}

fn samples(pvar: &Pvar) -> &Samples {
    pvar.samples.as_ref().unwrap_or_else(|| panic!("{} was not sampled", pvar.name))
}

/// What the program read by itself, without gyan.
fn known(run: &Profiled, queue: &str, variable: &str) -> String {
    let truth = run.truth(0);
    let line = truth.iter().find(|line| line[0] == queue && line[1] == variable);
    line.unwrap_or_else(|| panic!("the program did not read {variable}"))[2].clone()
}

fn run_queues(queue: &Length, variables: &[&str], settings: &[(&str, &str)]) -> Profiled {
    let (unexpected, posted) = (UNEXPECTED.to_string(), POSTED.to_string());
    let program = [&["queues", &unexpected, &posted], variables].concat();
    let settings = [queue.settings, settings].concat();
    Profiled::run(queue.mpi, 2, &program, &settings).succeeded()
}

#[test]
fn a_program_that_knows_nothing_of_gyan_reads_the_same_lengths() {
    for queue in &QUEUES {
        let settings = [("GYAN", "off"), ("OMPI_MCA_mpi_spc_attach", "all")];
        let run = run_queues(queue, &[queue.variable], &settings);
        let expected = if queue.queue == "unexpected" { UNEXPECTED } else { POSTED };
        let read = known(&run, queue.queue, queue.variable);
        assert_eq!(read, expected.to_string(), "{:?} {}", queue.mpi, queue.variable);
    }
}

#[test]
fn the_largest_sample_of_a_queue_is_how_long_it_was() {
    // A budget is the same for each library.
    let limited = QUEUES.iter().map(|queue| (queue, &[][..]));
    for (queue, settings) in limited.chain(QUEUES[..3].iter().map(|queue| (queue, &[NO_LIMIT][..])))
    {
        let run = run_queues(queue, &[], settings);
        let profile = &run.profiles()[0];
        let length = of_the_world(profile, queue.variable);
        let samples = samples(length);
        let expected = if queue.queue == "unexpected" { UNEXPECTED } else { POSTED };
        // For a vector, the element of rank 1, which is the last.
        assert_eq!(*samples.max.last().unwrap(), Number::Integer(expected as i128));
        assert_eq!(samples.max.len(), length.count);
        assert_eq!(*samples.min.last().unwrap(), Number::Integer(0));
        let mean = samples.mean.last().unwrap().as_f64();
        assert!(mean > 0.0 && mean < expected as f64, "{mean}");
        assert_eq!(samples.histogram.iter().sum::<u64>(), samples.n);
        // 23 is in [16, 32), 11 in [8, 16); the first bar is for values below 1.
        assert_eq!(samples.histogram.len(), 1 + expected.ilog2() as usize + 1);
        if length.count > 1 {
            assert_eq!(samples.sum.unwrap().max, Number::Integer(expected as i128));
        }
    }
}

#[test]
fn what_is_sampled_is_what_changes_in_between() {
    for mpi in each_library() {
        let run = Profiled::run(mpi, 2, &["halo_exchange", "60", "200"], &[NO_LIMIT]);
        for profile in run.profiles() {
            for pvar in &profile.pvars {
                let what = format!("{mpi:?} {} {:?}", pvar.name, pvar.samples);
                let Some(samples) = &pvar.samples else { continue };
                assert!(!pvar.effective_class().accumulates(), "{what}");
                assert_ne!(pvar.effective_class(), Class::Generic, "{what}");
                assert!(samples.n > 0, "{what}");
                if pvar.class == Class::State {
                    let shares: f64 = samples.states.iter().map(|state| state.share).sum();
                    assert!((shares - 1.0).abs() < 1e-6, "{what}");
                }
            }
        }
    }
}

#[test]
fn names_add_variables_and_none_leaves_all_out() {
    let names_of = |profile: &RankProfile| -> Vec<String> {
        let sampled = profile.pvars.iter().filter(|pvar| pvar.samples.is_some());
        sampled.map(|pvar| pvar.name.clone()).collect()
    };
    for (queue, pattern, counter) in [
        (&QUEUES[0], "*_match_attempts", "unexpected_recvq_match_attempts"),
        (&QUEUES[8], "runtime_spc_OMPI_SPC_IPROBE", "runtime_spc_OMPI_SPC_IPROBE"),
    ] {
        let what = format!("{:?}", queue.mpi);
        let profiles = run_queues(queue, &[], &[("GYAN_SAMPLE", "none")]).profiles();
        assert!(profiles.iter().all(|profile| names_of(profile).is_empty()), "{what}");
        let usual = names_of(&run_queues(queue, &[], &[]).profiles()[0]);
        assert!(!usual.contains(&counter.to_owned()), "{what} {usual:?}");
        let more = &run_queues(queue, &[], &[("GYAN_SAMPLE", pattern), NO_LIMIT]).profiles()[0];
        let names = names_of(more);
        assert!(names.contains(&counter.to_owned()), "{what} {names:?}");
        assert!(usual.iter().all(|name| names.contains(name)), "{what} {names:?}");
        // A counter grows, so its largest sample is no more than what it read at the end.
        let counter = pvar(more, counter);
        let end = elements(counter.end.as_ref())[0].as_f64();
        let samples = samples(counter);
        assert!(samples.max[0].as_f64() <= end && samples.min[0].as_f64() < end, "{what}");
    }
}

fn column<'a>(profile: &'a RankProfile, name: &str) -> &'a SeriesColumn {
    let columns = &profile.series.as_ref().expect("there is a series").columns;
    columns.iter().find(|column| column.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The series of a run is consistent, whatever was asked for.
fn assert_series(profile: &RankProfile) {
    let series = profile.series.as_ref().expect("there is a series");
    let ends = &series.end_s;
    assert!(!ends.is_empty() && !series.columns.is_empty());
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{ends:?}");
    assert!(ends[0] > 0.0, "{ends:?}");
    for column in &series.columns {
        let lengths = [column.min.len(), column.mean.len(), column.max.len()];
        assert_eq!(lengths, [ends.len(); 3]);
        for ((min, mean), max) in column.min.iter().zip(&column.mean).zip(&column.max) {
            match (min, mean, max) {
                (None, None, None) => {}
                (Some(min), Some(mean), Some(max)) => {
                    let slack = 1e-9 * max.abs();
                    assert!(min - slack <= *mean && *mean <= max + slack);
                }
                other => panic!("{}: {other:?}", column.name),
            }
        }
    }
}

#[test]
fn a_series_covers_the_whole_run_in_as_few_bytes_as_allowed() {
    for (mpi, name) in [(MPICH_PVARS, "unexpected_recvq_length"), (OPENMPI, OB1_UNEXPECTED)] {
        for (bytes, budget) in [("4096", "none"), ("4096", "0.5%"), ("1048576", "none")] {
            let settings =
                [("GYAN_SERIES", "1ms"), ("GYAN_SERIES_BYTES", bytes), ("GYAN_BUDGET", budget)];
            let run = Profiled::run(mpi, 2, &["course"], &settings).succeeded();
            let profile = &run.profiles()[0];
            assert_series(profile);
            let series = profile.series.as_ref().unwrap();
            // The clock is calibrated better at the end than at the start.
            assert!((series.interval_s - 0.001).abs() < 1e-7, "{}", series.interval_s);
            let (ends, elapsed) = (&series.end_s, profile.job.elapsed_s);
            // At least two times 300 ms of it are probing.
            let last = *ends.last().unwrap();
            assert!(last > elapsed - 0.4 && last < elapsed + 0.1, "{last} of {elapsed}");
            // On a busy machine MPI_Init may take longer than everything else.
            let init = call(profile, "MPI_Init").time_s.unwrap();
            let init = init + profile.overhead.mpit_init_s + profile.overhead.init_s;
            let first = (ends[0] - init) / (elapsed - init);
            assert!(first < 0.5, "{} of {elapsed}, {init}", ends[0]);
            let (values, fit) = (ends.len() * series.columns.len(), 4096 / 8);
            // Or more than fit into the other memory.
            assert_eq!(values <= fit, bytes == "4096", "{values} {fit}");
            let column = column(profile, name);
            let largest = column.max.iter().flatten().copied().fold(0.0, f64::max);
            assert!((largest - 5.0).abs() < 1e-9, "{largest}");
            // Full early, empty late.
            let full = column.max.iter().rposition(|max| max.is_some_and(|max| max > 0.0));
            let full = ends[full.unwrap()];
            assert!(full < elapsed - 0.4, "full at {full} of {elapsed}");
            assert_eq!(column.mean.iter().flatten().next_back(), Some(&0.0));
        }
    }
}

#[test]
fn the_series_of_a_counter_only_grows() {
    let settings = [
        ("GYAN_SERIES", "1ms"),
        ("GYAN_SERIES_BYTES", "4096"),
        ("GYAN_ENABLE", "spc"),
        ("GYAN_SAMPLE", "runtime_spc_OMPI_SPC_IPROBE"),
    ];
    for budget in ["none", "0.5%"] {
        let settings = [&settings[..], &[("GYAN_BUDGET", budget)]].concat();
        let run = Profiled::run(OPENMPI_SPC, 2, &["course"], &settings);
        let profile = &run.profiles()[0];
        assert_series(profile);
        let column = column(profile, "runtime_spc_OMPI_SPC_IPROBE");
        let records = column.min.iter().zip(&column.max);
        let bounds: Vec<f64> = records.flat_map(|(min, max)| [*min, *max]).flatten().collect();
        // An interval as short as this has no reading in most cases, within a budget.
        let least = if budget == "none" { 16 } else { 2 };
        assert!(bounds.len() >= least, "{budget}: {bounds:?}");
        assert!(bounds.windows(2).all(|pair| pair[0] <= pair[1]), "{budget}: {bounds:?}");
        assert!(bounds[0] < bounds[bounds.len() - 1], "{budget}");
    }
}
