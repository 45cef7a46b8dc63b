use super::*;
use crate::{Class, Datatype, Element, Measure, Number, PvarSummary, Statistics};

fn example() -> Summary {
    serde_json::from_str(include_str!("../../examples/summary.json")).unwrap()
}

fn statistic(values: &[Number]) -> Statistic {
    let mut statistics = Statistics::default();
    for (rank, value) in (0..).zip(values) {
        statistics.add(*value, rank);
    }
    statistics.finish().unwrap()
}

/// A variable with its values on two ranks.
fn pvar(name: &str, class: Class, measure: Measure, values: [f64; 2]) -> PvarSummary {
    PvarSummary {
        name: name.into(),
        class,
        behaves_as: None,
        object: None,
        element: Element::Scalar,
        measure,
        datatype: Datatype::Double,
        statistic: statistic(&values.map(Number::Double)),
        notes: Vec::new(),
    }
}

/// A run of which only these variables are known.
fn with(pvars: Vec<PvarSummary>) -> Summary {
    let (messages, watches, calls) = (Vec::new(), Vec::new(), Vec::new());
    Summary { pvars, calls, watches, messages, ..example() }
}

fn find(rows: &[QueueRow], quantity: Quantity) -> Vec<&QueueRow> {
    rows.iter().filter(|row| row.quantity == quantity).collect()
}

#[test]
fn what_peruse_tells_goes_before_variables() {
    let summary = example();
    let rows = summary.queues();
    let length = find(&rows, Quantity::UnexpectedLength);
    assert_eq!(length.len(), 1);
    assert_eq!((length[0].source, length[0].fidelity), (QueueSource::Peruse, Fidelity::Exact));
    assert_eq!(length[0].name, "N_UNEX_Q_LEN");
    assert_eq!((length[0].number, length[0].mean), (Some(1600.0), Some(6.5)));
    assert_eq!(length[0].max, Some(OnRank { value: 23.0, rank: 0 }));
    let time = find(&rows, Quantity::UnexpectedTime);
    assert_eq!((time[0].total, time[0].unit), (Some(0.48), Unit::Seconds));
    let late = find(&rows, Quantity::LateReceivers);
    // The example does not tell how many receives were posted before their message.
    assert_eq!((late[0].number, late[0].of), (Some(1600.0), None));
    // It measured no time of posted receives.
    assert!(find(&rows, Quantity::LateSenders).is_empty());
}

#[test]
fn without_callbacks_the_watch_and_the_variable_tell_the_length() {
    let rows = Summary { messages: Vec::new(), ..example() }.queues();
    let length = find(&rows, Quantity::UnexpectedLength);
    let sources: Vec<_> = length.iter().map(|row| (row.source, row.fidelity)).collect();
    let pvar = (QueueSource::Pvar, Fidelity::Sampled);
    assert_eq!(sources, [(QueueSource::Watch, Fidelity::Exact), pvar]);
    assert_eq!(length[0].number, Some(16000.0));
    assert_eq!(length[0].max, Some(OnRank { value: 23.0, rank: 0 }));
    // For the vector, the sum over the elements.
    assert_eq!(length[1].number, Some(32.0));
    assert_eq!(length[1].object.as_deref(), Some("MPI_COMM_WORLD"));
}

#[test]
fn events_tell_what_peruse_does_not() {
    let mut summary = example();
    let mut events = summary.messages[0].clone();
    events.source = MessageSource::MpiTEvents;
    let posted = events.metrics[1].clone();
    summary.messages[0].metrics.retain(|row| row.metric != posted.metric);
    summary.messages.insert(0, events);
    let rows = summary.queues();
    let source = |quantity| find(&rows, quantity)[0].source;
    assert_eq!(source(Quantity::UnexpectedLength), QueueSource::Peruse);
    assert_eq!(source(Quantity::PostedLength), QueueSource::MpiTEvents);
}

#[test]
fn mpich_tells_numbers_and_times_of_searches() {
    let timer = "time_matching_unexpectedq";
    let summary = with(vec![
        pvar("unexpected_recvq_match_attempts", Class::Counter, Measure::Delta, [30.0, 50.0]),
        pvar(timer, Class::Timer, Measure::Delta, [0.5, 1.5]),
        pvar(timer, Class::Counter, Measure::Delta, [4.0, 4.0]),
    ]);
    let rows = summary.queues();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].quantity, Quantity::UnexpectedMatchAttempts);
    assert_eq!(rows[0].number, Some(80.0));
    assert_eq!(rows[0].most, Some(OnRank { value: 50.0, rank: 1 }));
    assert_eq!(rows[1].quantity, Quantity::UnexpectedSearchTime);
    let time = (rows[1].number, rows[1].total, rows[1].mean);
    assert_eq!(time, (Some(8.0), Some(2.0), Some(0.25)));
    assert_eq!(rows[1].fidelity, Fidelity::Exact);
}

#[test]
fn counters_that_are_switched_off_tell_nothing() {
    let spc = |name: &str, values| {
        let name = format!("runtime_spc_OMPI_SPC_{name}");
        let counter = Some(Class::Counter);
        let pvar = pvar(&name, Class::Size, Measure::Delta, values);
        PvarSummary { behaves_as: counter, ..pvar }
    };
    let off = with(vec![spc("UNEXPECTED", [0.0, 0.0]), spc("RECV", [0.0, 0.0])]);
    assert_eq!(off.queues(), []);
    let on = with(vec![
        spc("UNEXPECTED", [0.0, 0.0]),
        spc("RECV", [7.0, 0.0]),
        spc("MATCH_TIME", [3.0, 5.0]),
    ]);
    let rows = on.queues();
    assert_eq!(find(&rows, Quantity::LateReceivers)[0].number, Some(0.0));
    let time = find(&rows, Quantity::PostedSearchTime)[0].total.unwrap();
    assert!((time - 8e-6).abs() < 1e-12, "{time}");
}

#[test]
fn of_two_variables_the_one_that_saw_anything_is_taken() {
    let level = |name, max| {
        let of = |measure, value| pvar(name, Class::Level, measure, [0.0, value]);
        [of(Measure::SampledMean, max / 2.0), of(Measure::SampledMax, max)]
    };
    let ob1 = "pml_ob1_unexpected_msgq_length";
    let mpich = "unexpected_recvq_length";
    let name = |one, other| {
        let rows = with([level(mpich, one), level(ob1, other)].concat()).queues();
        assert_eq!(rows.len(), 1);
        rows[0].name.clone()
    };
    assert_eq!(name(0.0, 3.0), ob1);
    assert_eq!(name(1.0, 3.0), mpich);
    assert_eq!(name(0.0, 0.0), mpich);
}

#[test]
fn what_peruse_would_have_told_did_not_happen() {
    let mut summary = example();
    let late = |summary: &Summary, quantity| {
        let rows = summary.queues();
        let row = find(&rows, quantity)[0];
        (row.source, row.number, row.of)
    };
    // Nothing was measured of posted receives, and no message can have been missed.
    summary.coverage.events.clear();
    let peruse = QueueSource::Peruse;
    let (receivers, senders) = (Quantity::LateReceivers, Quantity::LateSenders);
    assert_eq!(late(&summary, senders), (peruse, Some(0.0), Some(1600.0)));
    assert_eq!(late(&summary, receivers), (peruse, Some(1600.0), Some(1600.0)));
    summary.messages[0].metrics.clear();
    assert_eq!(late(&summary, receivers), (peruse, Some(0.0), Some(0.0)));
    assert_eq!(summary.queues()[0].number, Some(0.0));
    // A library without some events may have missed messages; events are taken as they are.
    summary.coverage.events.push("PERUSE: this MPI has no PERUSE_COMM_MSG_INSERT_IN_UNEX_Q".into());
    assert!(find(&summary.queues(), senders).is_empty());
    summary.coverage.events.clear();
    summary.messages[0].source = MessageSource::MpiTEvents;
    assert!(find(&summary.queues(), senders).is_empty());
}
