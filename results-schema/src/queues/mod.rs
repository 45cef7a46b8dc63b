//! What is known of the queues of messages, under the same names whatever the source: PERUSE, events of
//! `MPI_T`, performance variables and the watch, or, where there is nothing better, the times of calls.

mod calls;
mod told;
mod variables;

use serde::Serialize;

use crate::{MessageSource, Statistic, Summary, Traffic};

/// What is asked of the queues, in the order in which it is shown.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Messages that came before their receive was posted, at a time.
    UnexpectedLength,
    /// Bytes of the buffers that those are kept in.
    UnexpectedBytes,
    /// Receives that were posted before their message came, at a time.
    PostedLength,
    /// Seconds that a message waited for its receive.
    UnexpectedTime,
    /// How often an arriving message was looked for among the posted receives.
    PostedMatchAttempts,
    /// How often a receive was looked for among the unexpected messages.
    UnexpectedMatchAttempts,
    /// Seconds that this took of the posted receives.
    PostedSearchTime,
    /// Seconds that this took of the unexpected messages.
    UnexpectedSearchTime,
    /// Messages that came before their receive.
    LateReceivers,
    /// Receives that came before their message.
    LateSenders,
}

impl Quantity {
    /// Every quantity, in the order in which it is shown.
    pub const ALL: [Quantity; 10] = [
        Quantity::UnexpectedLength,
        Quantity::UnexpectedBytes,
        Quantity::PostedLength,
        Quantity::UnexpectedTime,
        Quantity::PostedMatchAttempts,
        Quantity::UnexpectedMatchAttempts,
        Quantity::PostedSearchTime,
        Quantity::UnexpectedSearchTime,
        Quantity::LateReceivers,
        Quantity::LateSenders,
    ];

    /// What totals, means and maxima of it are in.
    #[must_use]
    pub fn unit(self) -> QueueUnit {
        match self {
            Quantity::UnexpectedLength => QueueUnit::Messages,
            Quantity::PostedLength => QueueUnit::Receives,
            Quantity::UnexpectedBytes => QueueUnit::Bytes,
            _ => QueueUnit::Seconds,
        }
    }
}

/// What a number of a queue is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueUnit {
    /// Messages.
    Messages,
    /// Receives.
    Receives,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

/// Where a number comes from: the best source that the run had for it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSource {
    /// PERUSE 2.0.
    Peruse,
    /// Events of `MPI_T`.
    MpiTEvents,
    /// A performance variable that was compared at every receive (`GYAN_WATCH`).
    Watch,
    /// A performance variable.
    Pvar,
    /// The times of calls.
    Calls,
}

impl From<MessageSource> for QueueSource {
    fn from(source: MessageSource) -> QueueSource {
        match source {
            MessageSource::Peruse => QueueSource::Peruse,
            MessageSource::MpiTEvents => QueueSource::MpiTEvents,
        }
    }
}

/// How far a number can be relied on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Every message, or every receive, is in it.
    Exact,
    /// Of readings at calls.
    Sampled,
    /// Derived from something else.
    Estimated,
}

/// A number on the rank where it is largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnRank {
    /// The number.
    pub value: f64,
    /// The lowest rank that has it.
    pub rank: u32,
}

impl OnRank {
    pub(crate) fn max_of(statistic: &Statistic) -> OnRank {
        OnRank { value: statistic.max.as_f64(), rank: statistic.max_rank }
    }
}

/// One quantity from one source. What the source does not tell is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// What it is.
    pub quantity: Quantity,
    /// What `total`, `mean`, `max` and, of a time, `most` are in.
    pub unit: QueueUnit,
    /// Whose messages; none for those of the program and of collective operations together.
    pub traffic: Option<Traffic>,
    /// The communicator that a variable is bound to.
    pub object: Option<String>,
    /// How many messages, receives, searches or readings it is of, on all ranks.
    pub number: Option<f64>,
    /// Of how many those are a part.
    pub of: Option<f64>,
    /// Their sum over all ranks.
    pub total: Option<f64>,
    /// The total of the rank that has the most; without a total the number.
    pub most: Option<OnRank>,
    /// The mean of one.
    pub mean: Option<f64>,
    /// The largest one.
    pub max: Option<OnRank>,
    /// Where it comes from.
    pub source: QueueSource,
    /// The source's own name for it: metric, variable or functions.
    pub name: String,
    /// How far it can be relied on.
    pub fidelity: Fidelity,
    /// What a reader should know of this number.
    pub remark: Option<&'static str>,
}

impl QueueRow {
    fn new(quantity: Quantity, source: QueueSource, name: &str, fidelity: Fidelity) -> QueueRow {
        QueueRow {
            quantity,
            unit: quantity.unit(),
            traffic: None,
            object: None,
            number: None,
            of: None,
            total: None,
            most: None,
            mean: None,
            max: None,
            source,
            name: name.to_owned(),
            fidelity,
            remark: None,
        }
    }
}

impl Summary {
    /// What the run tells of its queues: for each quantity the rows of the best source that has it.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueRow> {
        let mut told: Vec<Vec<QueueRow>> = self.messages.iter().map(told::rows).collect();
        // PERUSE before events: a source is less than one that comes after it.
        told.sort_by_key(|rows| rows.first().map(|row| row.source));
        let sources = told.into_iter().chain([variables::rows(self), calls::rows(self)]);
        let sources: Vec<Vec<QueueRow>> = sources.collect();
        let best = |quantity: Quantity| {
            let of_one = sources.iter().map(move |rows| {
                rows.iter().filter(move |row| row.quantity == quantity).cloned().collect()
            });
            of_one.into_iter().find(|rows: &Vec<QueueRow>| !rows.is_empty()).unwrap_or_default()
        };
        Quantity::ALL.into_iter().flat_map(best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallSummary, Class, Datatype, Element, Measure, Number, PvarSummary, Statistics};

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

    /// A variable as it is on two ranks.
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

    /// A run of which nothing is known but these variables.
    fn with(pvars: Vec<PvarSummary>) -> Summary {
        let (messages, watches, calls) = (Vec::new(), Vec::new(), Vec::new());
        Summary { pvars, calls, watches, messages, ..example() }
    }

    fn find(rows: &[QueueRow], quantity: Quantity) -> Vec<&QueueRow> {
        rows.iter().filter(|row| row.quantity == quantity).collect()
    }

    #[test]
    fn what_peruse_tells_goes_before_variables_and_times() {
        let summary = example();
        let rows = summary.queues();
        let length = find(&rows, Quantity::UnexpectedLength);
        assert_eq!(length.len(), 1);
        assert_eq!((length[0].source, length[0].fidelity), (QueueSource::Peruse, Fidelity::Exact));
        assert_eq!(length[0].name, "N_UNEX_Q_LEN");
        assert_eq!((length[0].number, length[0].mean), (Some(1600.0), Some(6.5)));
        assert_eq!(length[0].max, Some(OnRank { value: 23.0, rank: 0 }));
        let time = find(&rows, Quantity::UnexpectedTime);
        assert_eq!((time[0].total, time[0].unit), (Some(0.48), QueueUnit::Seconds));
        let late = find(&rows, Quantity::LateReceivers);
        // The example does not tell how many receives were posted before their message.
        assert_eq!((late[0].number, late[0].of), (Some(1600.0), None));
        // It measured no time of posted receives, so that of calls is the best there is.
        assert_eq!(find(&rows, Quantity::LateSenders)[0].source, QueueSource::Calls);
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
        // Of the vector the sum over the elements.
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

    /// Calls of a function, 2^n ns being the upper edge of bar n.
    fn timed(name: &str, bars: &[(usize, u64)], time_s: f64) -> CallSummary {
        let mut time_histogram = vec![0; 40];
        for (bar, calls) in bars {
            time_histogram[*bar] = *calls;
        }
        let count = time_histogram.iter().sum::<u64>();
        let mut call = example().calls.remove(0);
        call.name = name.into();
        call.count = statistic(&[Number::Integer(count.into())]);
        call.time_s = Some(statistic(&[Number::Double(time_s)]));
        call.time_max_s = Some(statistic(&[Number::Double(0.25)]));
        call.time_histogram = time_histogram;
        call
    }

    #[test]
    fn a_receive_that_takes_much_longer_than_the_fastest_waited() {
        // 500 of less than 512 ns, 300 of up to 8 times as much, 200 of over a millisecond.
        let mut summary = with(Vec::new());
        summary.calls = vec![timed("MPI_Recv", &[(9, 500), (12, 300), (21, 200)], 0.4)];
        let rows = summary.queues();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].quantity, rows[0].number), (Quantity::LateReceivers, Some(800.0)));
        let late = &rows[1];
        assert_eq!((late.quantity, late.number), (Quantity::LateSenders, Some(200.0)));
        assert_eq!((late.of, late.fidelity), (Some(1000.0), Fidelity::Estimated));
        // Nearly all of the time is theirs.
        assert!((0.39..0.4).contains(&late.total.unwrap()), "{late:?}");
        assert_eq!(late.max, Some(OnRank { value: 0.25, rank: 0 }));
    }

    #[test]
    fn calls_below_a_microsecond_and_few_of_another_kind_do_not_count_as_waiting() {
        let mut summary = with(Vec::new());
        // Receives from MPI_PROC_NULL, and others that take a hundred times as long.
        summary.calls = vec![timed("MPI_Recv", &[(2, 5), (10, 995)], 0.001)];
        assert_eq!(summary.queues()[1].number, Some(0.0));
        summary.calls = vec![timed("MPI_Recv", &[(2, 500), (10, 500)], 0.001)];
        assert_eq!(summary.queues()[1].number, Some(0.0));
        assert_eq!(summary.queues()[1].max, None);
    }

    #[test]
    fn waits_are_told_from_receives() {
        let mut summary = with(Vec::new());
        summary.calls = vec![
            timed("MPI_Waitall", &[(10, 50), (20, 50)], 0.05),
            timed("MPI_Wait", &[(10, 50)], 0.00005),
            timed("MPI_Send", &[(20, 50)], 0.05),
        ];
        let rows = summary.queues();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].name, "MPI_Waitall, MPI_Wait");
        assert_eq!((rows[0].number, rows[0].of), (Some(50.0), Some(150.0)));
    }
}
