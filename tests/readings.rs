//! What is read of the performance variables is what they hold.

use std::collections::BTreeMap;

use gyan_results::{Class, Number};

use crate::common::{MPICH, OPENMPI, Profiled, elements, pvar};

/// Turns counting of messages on in Debian's Open MPI, so that there is something to read.
const MONITORING: (&str, &str) = ("OMPI_MCA_pml_monitoring_enable", "1");

#[test]
fn start_end_and_difference_are_those_that_an_independent_program_reads() {
    let run = Profiled::run(OPENMPI, 3, &["pvars"], &[MONITORING]);
    assert_eq!(run.outcome.code, 0, "{}", run.outcome.stderr);
    let profiles = run.profiles();
    // (rank, name) -> elements as (start, end).
    let mut expected: BTreeMap<(u32, String), Vec<(i128, i128)>> = BTreeMap::new();
    for rank in 0..3 {
        for line in run.truth(rank) {
            let [name, _class, _element, start, end] = &line[..] else { panic!("{line:?}") };
            let elements = expected.entry((rank, name.clone())).or_default();
            elements.push((start.parse().unwrap(), end.parse().unwrap()));
        }
    }
    assert!(expected.len() >= 3 * 12, "{expected:?}");
    let mut changed = 0;
    for ((rank, name), readings) in expected {
        let pvar = pvar(&profiles[rank as usize], &name);
        let integers = |numbers: &[Number]| -> Vec<i128> {
            let integer = |number: &Number| match number {
                Number::Integer(integer) => *integer,
                Number::Double(double) => panic!("{name} is {double}, no integer"),
            };
            numbers.iter().map(integer).collect()
        };
        assert_eq!(pvar.count, readings.len(), "{name}");
        // The program reads its first after gyan and its last before it, with collectives of
        // gyan nowhere, so they are equal.
        let (start, end): (Vec<i128>, Vec<i128>) = readings.into_iter().unzip();
        assert_eq!(integers(elements(pvar.start.as_ref())), start, "start of {name}, rank {rank}");
        assert_eq!(integers(elements(pvar.end.as_ref())), end, "end of {name}, rank {rank}");
        if pvar.effective_class().accumulates() {
            let differences: Vec<i128> = start.iter().zip(&end).map(|(s, e)| e - s).collect();
            assert_eq!(integers(elements(pvar.delta.as_ref())), differences, "{name}");
            changed += usize::from(differences.iter().any(|&difference| difference > 0));
        } else {
            assert_eq!(pvar.delta, None, "{name} is a {:?}", pvar.class);
        }
    }
    assert!(changed >= 6, "only {changed} variables changed");
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
            assert_eq!(queue.count, 2);
            assert_eq!(queue.class, Class::Size);
        }
    }
}

#[test]
fn a_wrong_class_is_corrected_in_behaviour_and_kept_in_the_record() {
    let run = Profiled::run(OPENMPI, 2, &["receives"], &[MONITORING]);
    let profiles = run.profiles();
    let messages = pvar(&profiles[0], "coll_monitoring_messages_count");
    assert_eq!((messages.class, messages.behaves_as), (Class::Size, Some(Class::Counter)));
    assert!(messages.delta.is_some());
    // Deadly: it writes files when it is touched.
    let flush =
        |skipped: &&gyan_results::Skipped| skipped.name.as_deref() == Some("pml_monitoring_flush");
    assert!(profiles[0].coverage.skipped.iter().any(|skipped| flush(&skipped)));
    assert!(profiles[0].pvars.iter().all(|pvar| pvar.name != "pml_monitoring_flush"));
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

#[test]
fn a_library_without_variables_gets_counts_and_the_advice_to_rebuild() {
    let run = Profiled::run(MPICH, 2, &["receives"], &[]);
    for profile in run.profiles() {
        assert_eq!((profile.coverage.exported, profile.pvars.len()), (0, 0));
        assert!(profile.coverage.advice[0].contains("--enable-mpit-pvars=all"));
        assert!(!profile.calls.is_empty());
    }
}
