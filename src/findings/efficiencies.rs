//! How well the time of the ranks was used: the efficiencies of POP, computed only from a summary.
//!
//! What communication costs is split by what ranks waited for each other in MPI: on a network that moves data at once they would
//! have done that, too. That is POP's definition with waits that were measured. Waits that moving data elsewhere causes are in
//! them, and no simulation takes them out. Instructions and clock frequency are not counted.

use gyan_results::{CallSummary, CommunicationSplit, Efficiencies, PhaseEfficiencies, Summary};

use super::hybrid::hybrid;
use super::kinds::{FunctionKind, kind_of};
use super::rules::{RECEIVES, SENDS, WAITS, compared};

/// With less of the time in MPI in messages, it does not matter how long ranks wait for them.
const FEW_MESSAGES: f64 = 0.05;
/// With more of the time in MPI in functions whose waiting is not known, nothing is said.
const UNKNOWN_AT_MOST: f64 = 0.4;
/// With more of the run in such functions, what is said is a bound.
const WITHIN: f64 = 0.01;

/// None when too little is known of the time in MPI, or there is a single rank without threads: a balance needs two.
pub(crate) fn efficiencies(summary: &Summary) -> Option<Efficiencies> {
    let (run, useful) = (summary.run_s.as_ref()?, summary.useful_s.as_ref()?);
    // A lower bound of the time in MPI says nothing of what is left.
    let error_s = summary.in_mpi.as_ref()?.time_error_s?;
    let (run_s, most_s) = (run.max.as_f64(), useful.max.as_f64());
    let hybrid = hybrid(summary);
    if run.ranks < 2 && hybrid.is_none() || run_s <= 0.0 || most_s <= 0.0 {
        return None;
    }
    let phases = summary.phases.iter().filter_map(|phase| {
        let (time, useful) = (&phase.time_s, phase.useful_s.as_ref()?);
        let is_known = time.avg > 0.0 && useful.max.as_f64() > 0.0;
        is_known.then(|| PhaseEfficiencies {
            phase: phase.name.clone(),
            load_balance: part(useful.avg / useful.max.as_f64()),
            parallel: part(useful.avg / time.avg),
        })
    });
    Some(Efficiencies {
        load_balance: part(useful.avg / most_s),
        communication: part(most_s / run_s),
        split: split(summary, error_s),
        parallel: part(useful.avg / run_s),
        parallel_error: Some(error_s / (run.ranks as f64 * run_s)).filter(|error| *error > 0.0),
        busiest_rank: useful.max_rank,
        phases: phases.collect(),
        hybrid,
    })
}

/// What communication costs, by the time that the run would take on an ideal network. None when too little is known of waiting.
/// `error_s`: of the time in MPI.
fn split(summary: &Summary, error_s: f64) -> Option<CommunicationSplit> {
    let (run, useful) = (summary.run_s.as_ref()?, summary.useful_s.as_ref()?);
    let (ideal, in_mpi) = (summary.ideal_s.as_ref()?, summary.in_mpi.as_ref()?);
    let in_mpi_s = in_mpi.time_s.sum.as_f64();
    // Times in functions are those of all threads, and waiting is that of a rank.
    if summary.has_thread_seconds() || in_mpi_s <= 0.0 {
        return None;
    }
    let messages = messages_known(summary);
    let of_messages = summary
        .calls
        .iter()
        .filter(|call| matches!(kind_of(&call.name), FunctionKind::Messages | FunctionKind::Polls));
    let in_messages_s: f64 = of_messages.map(taken_s).sum();
    if messages == 0.0 && in_messages_s >= FEW_MESSAGES * in_mpi_s {
        return None;
    }
    let has_other_requests = summary.calls.iter().any(|call| starts_other_requests(&call.name));
    let unknown_s: f64 = summary
        .calls
        .iter()
        .map(|call| {
            let is_wait = WAITS.contains(&call.name.as_str());
            let messages = if is_wait && has_other_requests { 0.0 } else { messages };
            unknown_s(call, summary, messages)
        })
        .sum();
    let unknown_share = part(unknown_s / in_mpi_s);
    if unknown_share > UNKNOWN_AT_MOST {
        return None;
    }
    let (run_s, most_s) = (run.max.as_f64(), useful.max.as_f64());
    let ideal_s = ideal.max.as_f64().clamp(most_s, run_s.max(most_s));
    let of_a_rank_s = error_s / run.ranks as f64;
    let error = of_a_rank_s.hypot(summary.ideal_error_s.unwrap_or(0.0)) / run_s;
    let is_whole = summary.ranks.missing.is_empty();
    Some(CommunicationSplit {
        serialisation: part(most_s / ideal_s),
        transfer: part(ideal_s / run_s),
        transfer_error: Some(error).filter(|error| *error > 0.0),
        is_bound: !is_whole || unknown_s > WITHIN * run.sum.as_f64(),
        unknown_share,
    })
}

fn taken_s(call: &CallSummary) -> f64 {
    call.time_s.as_ref().map_or(0.0, |time| time.sum.as_f64())
}

/// Of which part of the messages it is known how long ranks waited for each other; 0 where it is too small to stand for all.
fn messages_known(summary: &Summary) -> f64 {
    compared(summary).map_or(0.0, |of| of.paired as f64 / of.messages as f64)
}

/// Seconds in a function of which it is not known how long ranks waited in it. `messages`: of which part of them it is known.
fn unknown_s(call: &CallSummary, summary: &Summary, messages: f64) -> f64 {
    let all_s = taken_s(call);
    let name = call.name.strip_suffix("_c").unwrap_or(&call.name);
    match kind_of(name) {
        FunctionKind::Local => 0.0,
        FunctionKind::Messages if [SENDS, RECEIVES, WAITS].concat().contains(&name) => {
            all_s * part(1.0 - messages)
        }
        FunctionKind::Rooted | FunctionKind::Collective | FunctionKind::Epochs => {
            let row = summary.waiting_in(&call.name);
            (all_s - row.map_or(0.0, |of| of.time_s)).max(0.0)
        }
        _ => all_s,
    }
}

/// Whether `MPI_Wait` may wait for something else than a message because of this function.
fn starts_other_requests(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "MPI_Iall",
        "MPI_Ibarrier",
        "MPI_Ibcast",
        "MPI_Iexscan",
        "MPI_Igather",
        "MPI_Ineighbor",
        "MPI_Ireduce",
        "MPI_Iscan",
        "MPI_Iscatter",
        "MPI_Comm_idup",
        "MPI_File_i",
        "MPI_Raccumulate",
        "MPI_Rget",
        "MPI_Rput",
    ];
    OTHERS.iter().any(|other| name.starts_with(other))
}

fn part(part: f64) -> f64 {
    part.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use gyan_results::read_summary;
    use gyan_results::{Number, Statistic, Statistics, WaitingSummary};

    use super::*;

    fn statistic(values: &[f64]) -> Statistic {
        let mut statistics = Statistics::default();
        for (rank, value) in (0..).zip(values) {
            statistics.add(Number::Double(*value), rank);
        }
        statistics.finish().unwrap()
    }

    /// Of a run whose ranks take these times, of which they work so long.
    fn of_ranks(run: &[f64], useful: &[f64]) -> Option<Efficiencies> {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/summary.json");
        let mut summary = read_summary(example.as_ref()).unwrap();
        (summary.run_s, summary.useful_s) = (Some(statistic(run)), Some(statistic(useful)));
        summary.in_mpi.as_mut().unwrap().time_error_s = Some(0.0);
        efficiencies(&summary)
    }

    #[test]
    fn they_are_those_of_pop() {
        // In thousandths.
        let known = |run: &[f64], useful: &[f64]| {
            let of = of_ranks(run, useful).unwrap();
            [of.load_balance, of.communication, of.parallel].map(|of| format!("{:.0}", 1000.0 * of))
        };
        // One of four ranks works all the time, the others half of it.
        assert_eq!(known(&[10.0; 4], &[5.0, 5.0, 10.0, 5.0]), ["625", "1000", "625"]);
        // All of them work half of it.
        assert_eq!(known(&[10.0; 4], &[5.0; 4]), ["1000", "500", "500"]);
        // One ends early, and waits for the other after MPI_Finalize.
        assert_eq!(known(&[1.0, 3.0], &[1.0, 3.0]), ["667", "1000", "667"]);
        assert!(of_ranks(&[10.0], &[5.0]).is_none());
    }

    /// Of two ranks that take 10 s. `ideal`: by rank, seconds outside MPI or waiting for others; `functions`: seconds in each on
    /// both together, and of which of them it is known that ranks wait.
    fn of_split(
        useful: [f64; 2],
        ideal: [f64; 2],
        functions: &[(&str, f64, f64)],
    ) -> Option<CommunicationSplit> {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/summary.json");
        let mut summary = read_summary(example.as_ref()).unwrap();
        summary.run_s = Some(statistic(&[10.0; 2]));
        (summary.useful_s, summary.ideal_s) = (Some(statistic(&useful)), Some(statistic(&ideal)));
        let one = summary.calls[0].clone();
        let call = |(name, seconds, _): &(&str, f64, f64)| CallSummary {
            name: (*name).into(),
            time_s: Some(statistic(&[*seconds / 2.0; 2])),
            ..one.clone()
        };
        summary.calls = functions.iter().map(call).collect();
        let compared = functions.iter().filter(|(.., known_s)| *known_s > 0.0);
        let row = |(name, _, known_s): &(&str, f64, f64)| WaitingSummary {
            function: (*name).into(),
            time_s: *known_s,
            ..WaitingSummary::default()
        };
        summary.waiting = compared.map(row).collect();
        summary.message_waiting = None;
        summary.ranks.missing.clear();
        let in_mpi = summary.in_mpi.as_mut().unwrap();
        in_mpi.time_s = statistic(&useful.map(|useful| 10.0 - useful));
        in_mpi.time_error_s = Some(0.0);
        let found = efficiencies(&summary)?;
        let split = found.split?;
        let product = split.serialisation * split.transfer;
        assert!((product - found.communication).abs() < 1e-12, "{found:?}");
        Some(split)
    }

    #[test]
    fn communication_is_serialisation_times_transfer() {
        // Rank 0 works 6 s, waits 3 s and moves data for 1 s; rank 1 works 4 s, waits 2 s and moves data for 4 s.
        let of = |functions: &[(&str, f64, f64)]| of_split([6.0, 4.0], [9.0, 6.0], functions);
        let known = of(&[("MPI_Allreduce", 10.0, 10.0), ("MPI_Comm_rank", 0.0, 0.0)]).unwrap();
        let CommunicationSplit { serialisation, transfer, transfer_error, is_bound, .. } = known;
        assert!((serialisation - 6.0 / 9.0).abs() < 1e-12 && (transfer - 0.9).abs() < 1e-12);
        assert_eq!((is_bound, transfer_error, known.unknown_share), (false, None, 0.0));
        // Nobody waits; and nobody moves data.
        let none = of_split([6.0, 4.0], [6.0, 4.0], &[("MPI_Allreduce", 10.0, 10.0)]).unwrap();
        assert_eq!((none.serialisation, none.transfer), (1.0, 0.6));
        let all = of_split([6.0, 4.0], [10.0, 9.0], &[("MPI_Allreduce", 10.0, 10.0)]).unwrap();
        assert_eq!((all.serialisation, all.transfer), (0.6, 1.0));
    }

    #[test]
    fn functions_whose_waiting_is_not_known_make_bounds_or_nothing() {
        let of = |functions: &[(&str, f64, f64)]| of_split([6.0, 4.0], [9.0, 6.0], functions);
        let bound = of(&[("MPI_Allreduce", 7.0, 7.0), ("MPI_Alltoallv", 3.0, 0.0)]).unwrap();
        assert!(bound.is_bound && (bound.unknown_share - 0.3).abs() < 1e-12);
        // A part of the calls was not compared.
        assert!(of(&[("MPI_Allreduce", 10.0, 9.0)]).unwrap().is_bound);
        assert!(!of(&[("MPI_Allreduce", 10.0, 9.9)]).unwrap().is_bound);
        assert!(of(&[("MPI_Allreduce", 5.0, 5.0), ("MPI_Alltoallv", 5.0, 0.0)]).is_none());
        // Messages that were not compared.
        assert!(of(&[("MPI_Allreduce", 9.0, 9.0), ("MPI_Recv", 1.0, 0.0)]).is_none());
        assert!(of(&[("MPI_Allreduce", 9.6, 9.6), ("MPI_Recv", 0.4, 0.0)]).unwrap().is_bound);
    }
}
