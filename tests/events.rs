//! Events of `MPI_T`, with the MPI library of `tests/fakempi`: no MPI of the test bed exports any, which
//! [`the_mpis_of_the_test_bed_have_no_events`] shows.

use gyan_results::{EventCount, MessageMetric, MessageSource, Metric, RankProfile, Traffic};

use crate::common::{BED, Mpi, Profiled};
use crate::fakempi::Faked;

const ON: [(&str, &str); 1] = [("GYAN_EVENTS", "mpi_t")];

/// What MPICH has when it is configured with events, as far as its elements can be read.
const QUEUE: &str = "
    source RECVQ
    event unexp_message_enqueued RECVQ elements MPI_INT@0 MPI_INT@4 is enqueued
    event unexp_message_dequeued RECVQ elements MPI_INT@0 MPI_INT@4 is dequeued
";

fn event<'a>(profile: &'a RankProfile, name: &str, object: Option<&str>) -> &'a EventCount {
    let found = profile
        .events
        .iter()
        .find(|event| event.name == name && event.object.as_deref() == object);
    found.unwrap_or_else(|| panic!("no {name} of {object:?}: {:#?}", profile.events))
}

fn metric(profile: &RankProfile, metric: Metric) -> &MessageMetric {
    let [messages] = profile.messages.as_slice() else { panic!("{:#?}", profile.messages) };
    assert_eq!((messages.source, messages.lost), (MessageSource::MpiTEvents, 0));
    let found = messages.metrics.iter().find(|row| row.metric == metric);
    let found = found.unwrap_or_else(|| panic!("no {metric:?}: {messages:#?}"));
    assert_eq!(found.traffic, Traffic::Program);
    found
}

fn is_near(one: Option<f64>, other: f64) -> bool {
    one.is_some_and(|one| (one - other).abs() < 1e-9)
}

#[test]
fn every_instance_is_counted_from_any_context() {
    let script = "
        source here
        event plain here
        event with_data here elements MPI_INT@0 MPI_DOUBLE@8
        event never here
        at MPI_Barrier raise plain times 3
        at MPI_Barrier call 2 raise with_data elements 1 7 level THREAD_SAFE in thread
        at MPI_Barrier call 3 raise with_data level ASYNC_SIGNAL_SAFE in signal
    ";
    let run = Faked::run(script, &["fake_events", "5", "0"], &ON);
    let profile = run.profile();
    assert_eq!(event(&profile, "plain", None).n, 15);
    assert_eq!(event(&profile, "with_data", None).n, 2);
    let never = event(&profile, "never", None);
    assert_eq!((never.n, never.first_s, never.gap_max_s), (0, None, None));
    assert!(profile.events.iter().all(|event| event.event_source == "here" && event.dropped == 0));
    assert_eq!(profile.coverage.events, Vec::<String>::new());
    assert!(profile.messages.is_empty());
    assert_eq!(run.outcome.notices().len(), 1, "{}", run.outcome.stderr);
    // Everything is given back.
    assert_eq!(run.lines("freed").len(), 3);
    assert!(profile.overhead.events_s > 0.0);
}
