//! Events of `MPI_T`, with the MPI library of `tests/fakempi`: no MPI of the test bed exports any, which
//! [`the_mpis_of_the_test_bed_have_no_events`] shows.

use gyan_results::{
    EventCount, MessageMetric, MessageSource, Metric, Number, RankProfile, Traffic,
};

use crate::common::{Profiled, each_library, elements, pvar};
use crate::fakempi::Faked;

const ON: [(&str, &str); 1] = [("GYAN_EVENTS", "mpi_t")];

/// Events like those of MPICH when configured with them, with elements that can be read.
const QUEUE: &str = "
    source RECVQ
    event unexp_message_enqueued RECVQ elements MPI_INT@0 MPI_INT@4 is enqueued
    event unexp_message_dequeued RECVQ elements MPI_INT@0 MPI_INT@4 is dequeued
";

fn event<'a>(profile: &'a RankProfile, name: &str, object: Option<&str>) -> &'a EventCount {
    let found =
        profile.events.iter().find(|event| event.name == name && event.object.as_deref() == object);
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
    // Everything is freed.
    assert_eq!(run.lines("freed").len(), 3);
    assert!(profile.overhead.events_s > 0.0);
}

#[test]
fn instances_that_were_dropped_are_reported() {
    let script = "
        source here
        event plain here
        at MPI_Barrier raise plain
        at MPI_Barrier call 2 drop plain 4
    ";
    let profile = Faked::run(script, &["fake_events", "3", "0"], &ON).profile();
    let plain = event(&profile, "plain", None);
    assert_eq!((plain.n, plain.dropped), (3, 4));
}

#[test]
fn a_level_that_the_library_does_not_reach_is_named_and_its_instances_are_dropped() {
    let script = "
        source here
        event limited here highest MPI_RESTRICTED
        at MPI_Barrier raise limited level NONE
        at MPI_Barrier call 2 raise limited times 2 level THREAD_SAFE
    ";
    let run = Faked::run(script, &["fake_events", "5", "0"], &ON);
    let profile = run.profile();
    let limited = event(&profile, "limited", None);
    assert_eq!((limited.n, limited.dropped), (5, 2));
    let [sentence] = profile.coverage.events.as_slice() else { panic!("{:?}", profile.coverage) };
    assert!(
        sentence.starts_with("event limited:")
            && sentence.contains("THREAD_SAFE, ASYNC_SIGNAL_SAFE"),
        "{sentence}"
    );
    assert_eq!(run.lines("callback"), ["limited NONE", "limited MPI_RESTRICTED"]);
}

#[test]
fn libraries_choose_a_callback_in_two_ways_and_each_instance_is_counted_once() {
    for rule in ["at-least", "at-most"] {
        let script = format!(
            "
            callbacks {rule}
            source here
            event plain here
            at MPI_Barrier raise plain level NONE
            at MPI_Barrier raise plain level MPI_RESTRICTED
            at MPI_Barrier raise plain level THREAD_SAFE
            at MPI_Barrier raise plain level ASYNC_SIGNAL_SAFE
            "
        );
        let profile = Faked::run(&script, &["fake_events", "5", "0"], &ON).profile();
        let plain = event(&profile, "plain", None);
        assert_eq!((plain.n, plain.dropped), (20, 0), "{rule}");
    }
}

#[test]
fn an_event_that_cannot_be_registered_is_named_with_the_reason() {
    let script = "
        source here
        event full here refuses handle
        event of_windows here bind MPI_WIN
        event plain here
        at MPI_Barrier raise plain
    ";
    let profile = Faked::run(script, &["fake_events", "2", "0"], &ON).profile();
    assert_eq!(event(&profile, "plain", None).n, 2);
    assert_eq!(profile.events.len(), 1);
    assert_eq!(
        profile.coverage.events,
        [
            "event full: MPI_T_event_handle_alloc: MPI_T_ERR_OUT_OF_HANDLES",
            "event of_windows: binds to MPI_WIN: only those of communicators and of no object are \
             counted"
        ]
    );
}

#[test]
fn an_event_that_binds_to_communicators_is_counted_for_each() {
    let script = "
        source here
        event of_comm here bind MPI_COMM elements MPI_INT@0
        at MPI_Barrier raise of_comm
    ";
    let run = Faked::run(script, &["fake_events", "5", "0", "0"], &ON);
    let profile = run.profile();
    assert_eq!(event(&profile, "of_comm", Some("MPI_COMM_WORLD")).n, 5);
    assert_eq!(event(&profile, "of_comm", Some("twin")).n, 2);
    assert_eq!(profile.events.len(), 2);
    assert_eq!(run.lines("registration"), ["of_comm 0x44000000", "of_comm 0x84000000"]);
    assert_eq!(run.lines("freed").len(), 2);
}

#[test]
fn times_are_those_of_the_sources_clock() {
    let script = "
        source slow ticks 1000 step 1
        event one slow
        at MPI_Barrier call 1 raise one time 501
        at MPI_Barrier call 2 raise one time 2001
        at MPI_Barrier call 3 raise one time 3001
        source round ticks 1000 max 9999 step 9990
        event two round
        at MPI_Barrier call 1 raise two time 9995
        at MPI_Barrier call 2 raise two time 14
        source silent no-timestamp
        event three silent
        at MPI_Barrier raise three time 7
    ";
    let profile = Faked::run(script, &["fake_events", "3", "0"], &ON).profile();
    let elapsed_s = profile.job.elapsed_s;
    let one = event(&profile, "one", None);
    assert!(is_near(one.gap_max_s, 1.5), "{one:?}");
    assert!(is_near(one.last_s, one.first_s.unwrap() + 2.5), "{one:?}");
    // The source was asked when it said 1.
    let asked_s = one.first_s.unwrap() - 0.5;
    assert!(asked_s > 0.0 && asked_s < elapsed_s, "{one:?}");
    let two = event(&profile, "two", None);
    assert!(is_near(two.gap_max_s, 0.019), "{two:?}");
    assert_eq!((one.event_source.as_str(), two.event_source.as_str()), ("slow", "round"));
    let three = event(&profile, "three", None);
    let (first_s, last_s) = (three.first_s.unwrap(), three.last_s.unwrap());
    assert!(0.0 < first_s && first_s < last_s && last_s < elapsed_s, "{three:?}");
}

#[test]
fn the_events_of_the_unexpected_queue_give_its_metrics() {
    let k = 7;
    let profile = Faked::run(QUEUE, &["fake_events", "0", "7"], &ON).profile();
    assert_eq!(event(&profile, "unexp_message_enqueued", None).n, k);
    assert_eq!(event(&profile, "unexp_message_dequeued", None).n, k);
    let length = metric(&profile, Metric::NUnexQLen);
    assert_eq!((length.n, length.max, length.sum), (k, 7.0, 28.0));
    let time = metric(&profile, Metric::TInUnexQ);
    assert_eq!(time.n, k);
    assert!(0.0 < time.max && time.max <= time.sum && time.sum < 7.0 * profile.job.elapsed_s);
    let messages = &profile.messages[0];
    let [peer] = messages.peers.as_slice() else { panic!("{messages:#?}") };
    assert_eq!((peer.peer, peer.unexpected, peer.unexpected_max), (Some(0), k, 7));
    assert!((peer.unexpected_mean - 4.0).abs() < 1e-12);
    assert!((peer.unexpected_time_s - time.sum).abs() < 1e-12);
    assert_eq!(messages.without_peer, 0);
    assert_eq!(profile.coverage.events, Vec::<String>::new());
}

#[test]
fn a_peer_is_the_process_that_its_communicator_means() {
    let arguments = ["fake_events", "0", "4", "3"];
    let unexpected = |profile: &RankProfile| {
        let messages = &profile.messages[0];
        (messages.peers[0].unexpected, messages.without_peer)
    };
    let bound = QUEUE.replace("elements", "bind MPI_COMM elements");
    for script in [QUEUE, &bound] {
        // The same processes in another communicator count as the same.
        let profile = Faked::run(script, &arguments, &ON).profile();
        assert_eq!(unexpected(&profile), (7, 0));
        // Others are not.
        let profile = Faked::run(&format!("strangers\n{script}"), &arguments, &ON).profile();
        assert_eq!(unexpected(&profile), (4, 3));
        let (length, time) =
            (metric(&profile, Metric::NUnexQLen), metric(&profile, Metric::TInUnexQ));
        assert_eq!((length.n, length.max, time.n), (7, 4.0, 7));
    }
    let profile = Faked::run(&bound, &arguments, &ON).profile();
    assert_eq!(event(&profile, "unexp_message_enqueued", Some("twin")).n, 3);
}

#[test]
fn mpichs_event_that_kills_when_it_is_read_is_not_read() {
    let script = "
        library MPICH Version: 4.0.2
        source RECVQ
        event unexp_message_enqueued RECVQ elements MPI_INT@0 MPI_INT@4 is enqueued
        event unexp_message_dequeued RECVQ elements MPI_INT@0 MPI_INT@4 is dequeued without-data
    ";
    let profile = Faked::run(script, &["fake_events", "0", "6"], &ON).profile();
    let length = metric(&profile, Metric::NUnexQLen);
    assert_eq!((length.n, length.max), (6, 6.0));
    assert_eq!(metric(&profile, Metric::TInUnexQ).n, 6);
    let messages = &profile.messages[0];
    assert_eq!((messages.peers.len(), messages.without_peer), (0, 6));
    let [sentence] = profile.coverage.events.as_slice() else { panic!("{:?}", profile.coverage) };
    assert!(sentence.contains("unexp_message_dequeued"), "{sentence}");
    // It does kill: it is read in a library that is not known for that.
    let unknown = script.replace("library MPICH Version: 4.0.2", "");
    let dead = Faked::run(&unknown, &["fake_events", "0", "6"], &ON);
    assert_eq!(dead.outcome.code, 128 + 11, "{}", dead.outcome.stderr);
}

#[test]
fn nothing_is_registered_unless_it_is_asked_for() {
    let script = format!("{QUEUE}\nat MPI_Barrier raise unexp_message_enqueued");
    for off in [&[][..], &[("GYAN_EVENTS", "off")]] {
        let run = Faked::run(&script, &["fake_events", "3", "2"], off);
        let profile = run.profile();
        assert_eq!(run.lines("registration"), Vec::<&str>::new());
        assert!(profile.events.is_empty() && profile.messages.is_empty());
        assert!(profile.overhead.events_s.abs() < f64::EPSILON);
    }
    assert_eq!(Faked::run(&script, &["fake_events", "3", "2"], &ON).lines("registration").len(), 2);
}

#[test]
fn the_program_does_the_same() {
    let arguments = ["fake_events", "3", "20", "5"];
    let alone = Faked::alone(QUEUE, &arguments);
    let run = Faked::run(QUEUE, &arguments, &[("GYAN_EVENTS", "all")]);
    assert_eq!(run.outcome.code, alone.outcome.code);
    assert_eq!(run.outcome.stdout, alone.outcome.stdout);
    assert_eq!(alone.outcome.stdout, "received 435\n");
    assert_eq!(run.misuses(), Vec::<&str>::new());
}

#[test]
fn variables_of_the_script_are_read() {
    // So that the library can serve other tests.
    let script = "
        pvar length LEVEL MPI_UNSIGNED continuous readonly shows unexpected
        pvar number COUNTER MPI_UNSIGNED_LONG_LONG bind MPI_COMM count 2 value 5 6
        at MPI_Barrier call 2 set number 15 7
    ";
    let profile =
        Faked::run(script, &["fake_events", "2", "3"], &[("GYAN_BUDGET", "none")]).profile();
    let number = pvar(&profile, "number");
    assert_eq!(number.object.as_deref(), Some("MPI_COMM_WORLD"));
    assert_eq!(elements(number.end.as_ref()), [Number::Integer(15), Number::Integer(7)]);
    let length = pvar(&profile, "length").samples.as_ref().unwrap();
    assert_eq!(length.max, [Number::Integer(3)]);
}

#[test]
fn the_mpis_of_the_test_bed_have_no_events() {
    for mpi in each_library() {
        let run = Profiled::run(mpi, 1, &["exit_code", "0"], &ON);
        let name = mpi.name;
        assert_eq!(run.outcome.code, 0, "{name}: {}", run.outcome.stderr);
        let notices = run.outcome.notices();
        assert_eq!(notices.len(), 2, "{name}: {}", run.outcome.stderr);
        assert!(notices[0].contains("no events of MPI_T"), "{name}: {notices:?}");
        for profile in run.profiles() {
            assert!(profile.events.is_empty() && profile.messages.is_empty(), "{name}");
            let [sentence] = profile.coverage.events.as_slice() else { panic!("{name}") };
            assert!(sentence.contains("no events of MPI_T"), "{name}: {sentence}");
        }
    }
}
