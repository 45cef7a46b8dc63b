//! The recorded values of performance variables are their real ones.

use std::collections::BTreeMap;

use gyan_results::{Class, Number};

use crate::common::{MPICH_PVARS, Mpi, OPENMPI, OPENMPI_SPC, Profiled, elements, pvar};

/// Turns counting of messages on in Debian's Open MPI, so that there is something to read.
pub(crate) const MONITORING: (&str, &str) = ("OMPI_MCA_pml_monitoring_enable", "1");

/// A number in the format of the independent program: `%.17g` is exact for a double.
fn parsed(text: &str, like: Number) -> Number {
    match like {
        Number::Integer(_) => Number::Integer(text.parse().unwrap()),
        Number::Double(_) => Number::Double(text.parse().unwrap()),
    }
}

/// Runs a program that reads every variable itself, and compares. Returns how many variables changed.
fn compare_with_independent_program(mpi: Mpi, settings: &[(&str, &str)], at_least: usize) -> usize {
    compare(mpi, &Profiled::run(mpi, 3, &["pvars"], settings), at_least)
}

/// Compares the results of a run of `pvars`. Returns how many variables changed.
pub(crate) fn compare(mpi: Mpi, run: &Profiled, at_least: usize) -> usize {
    assert_eq!(run.outcome.code, 0, "{mpi:?} {}", run.outcome.stderr);
    let (mut changed, mut compared) = (0, 0);
    for profile in run.profiles() {
        // (name, class) -> elements as (start, end).
        let mut expected: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
        for line in run.truth(profile.rank) {
            let [name, class, _element, start, end] = &line[..] else { panic!("{line:?}") };
            let elements = expected.entry((name.clone(), class.clone())).or_default();
            elements.push((start.clone(), end.clone()));
        }
        for ((name, class), readings) in expected {
            // Read once: each reading changes it for the next reader.
            if name.contains("_MAX_") {
                continue;
            }
            let pvar = profile
                .pvars
                .iter()
                .find(|pvar| pvar.name == name && pvar.class.name() == class)
                .unwrap_or_else(|| panic!("{mpi:?}: no {name}:{class}"));
            assert_eq!(pvar.count, readings.len(), "{name}");
            let what = format!("{mpi:?} {name}:{class}, rank {}", profile.rank);
            let (starts, ends) = (elements(pvar.start.as_ref()), elements(pvar.end.as_ref()));
            for ((start, end), (own_start, own_end)) in starts.iter().zip(ends).zip(&readings) {
                // The program reads its first after gyan and its last before it, with no
                // communication in between.
                assert_eq!(*start, parsed(own_start, *start), "start of {what}");
                assert_eq!(*end, parsed(own_end, *end), "end of {what}");
            }
            if pvar.effective_class().accumulates() {
                let deltas = elements(pvar.delta.as_ref()).iter();
                for (delta, (start, end)) in deltas.zip(&readings) {
                    let (start, end) = (parsed(start, *delta), parsed(end, *delta));
                    assert_eq!(*delta, pvar.datatype.difference(start, end), "{what}");
                    changed += usize::from(!delta.is_zero());
                }
            } else {
                assert_eq!(pvar.delta, None, "{what}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 3 * at_least, "{mpi:?}: only {compared} compared");
    changed
}

#[test]
fn start_end_and_difference_are_those_that_an_independent_program_reads() {
    assert!(compare_with_independent_program(OPENMPI, &[MONITORING], 12) >= 6);
    // Counters, levels, watermarks, and timers that are doubles.
    assert!(compare_with_independent_program(MPICH_PVARS, &[], 10) >= 3);
    // Counters of the class SIZE.
    let spc = [("OMPI_MCA_mpi_spc_attach", "all")];
    assert!(compare_with_independent_program(OPENMPI_SPC, &spc, 80) >= 9);
}

#[test]
fn variables_that_appear_while_the_program_runs_are_read_at_the_end() {
    let run = Profiled::run(MPICH_PVARS, 2, &["appearing"], &[]).succeeded();
    for profile in run.profiles() {
        let [before, after] = &run.truth(profile.rank)[0][..] else { panic!("two numbers") };
        let (before, after): (usize, usize) = (before.parse().unwrap(), after.parse().unwrap());
        assert!(after > before, "{before} {after}");
        assert_eq!(profile.coverage.exported, after);
        let appeared = profile.pvars.iter().filter(|pvar| pvar.start.is_none()).count();
        let listed = profile.coverage.skipped.iter().filter(|skipped| skipped.index >= before);
        assert_eq!(appeared + listed.count(), after - before);
        assert!(appeared > 0);
    }
}

#[test]
fn every_exported_variable_is_read_or_its_omission_explained() {
    for settings in [&[][..], &[MONITORING]] {
        let run = Profiled::run(OPENMPI, 2, &["receives"], settings);
        for profile in run.profiles() {
            let coverage = &profile.coverage;
            assert_eq!(coverage.sampled, profile.pvars.len());
            assert_eq!(coverage.exported, coverage.sampled + coverage.skipped.len());
            assert!(coverage.exported >= 33);
            for skipped in &coverage.skipped {
                assert!(skipped.name.is_some() && !skipped.reason.is_empty(), "{skipped:?}");
            }
            let queue = pvar(&profile, "pml_ob1_unexpected_msgq_length");
            assert_eq!(queue.object.as_deref(), Some("MPI_COMM_WORLD"));
            assert_eq!((queue.count, queue.class), (2, Class::Size));
            if settings.is_empty() {
                continue;
            }
            // A wrong class is corrected in behaviour and kept in the record.
            let messages = pvar(&profile, "coll_monitoring_messages_count");
            assert_eq!((messages.class, messages.behaves_as), (Class::Size, Some(Class::Counter)));
            assert!(messages.delta.is_some());
            // Harmful: it writes files when it is touched.
            let mut skipped = coverage.skipped.iter().filter_map(|of| of.name.as_deref());
            assert!(skipped.any(|name| name == "pml_monitoring_flush"));
            assert!(profile.pvars.iter().all(|pvar| pvar.name != "pml_monitoring_flush"));
        }
    }
}

#[test]
fn a_vector_beyond_the_limit_is_kept_as_its_digest() {
    let run = Profiled::run(OPENMPI, 3, &["receives"], &[MONITORING, ("GYAN_ELEMENTS", "2")]);
    let profiles = run.profiles();
    let messages = pvar(&profiles[1], "coll_monitoring_messages_count");
    match messages.delta.as_ref() {
        Some(gyan_results::Values::Digest(digest)) => {
            assert_eq!(digest.count, 3);
            assert!(digest.sum.compare(digest.max).is_ge());
        }
        other => panic!("{other:?}"),
    }
}
