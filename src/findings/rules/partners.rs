//! Who waits for whom in messages: known where both ranks timed enough of them, else taken from queues (`messages`).

use gyan_results::{Evidence, Fidelity, MessageDirection, Quantity};

use super::{RECEIVES, RuleMatch, SENDS, WAITS, messages, percent};
use crate::findings::account::Cause;
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, Time, exact, taken};
use crate::words::seconds;

/// Messages are judged by those that were compared if they are so many of all.
const COMPARED: f64 = 0.6;

/// Less of the run is no finding.
const LEAST_SHARE: f64 = 0.05;

/// Of the waiting for a rank: the call in which it is stands for all.
const NEARLY_ALL: f64 = 0.9;

/// A pair of ranks stands for all with this part of the waiting, if it is also twice that of any other.
const MOST: f64 = 0.5;

pub(super) fn late_senders(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, MessageDirection::Sent).unwrap_or_else(|| messages::late(run, Quantity::LateSenders))
}

pub(super) fn late_receivers(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, MessageDirection::Received)
        .unwrap_or_else(|| messages::late(run, Quantity::LateReceivers))
}

/// None where too few messages were compared. `late`: what the late rank does with them.
fn late(run: &RunFacts, late: MessageDirection) -> Option<Vec<RuleMatch>> {
    let waiting = run.summary.message_waiting.as_ref()?;
    let (all, paired) = (waiting.messages as f64, waiting.paired as f64);
    if all <= 0.0 || paired < COMPARED * all {
        return None;
    }
    let (waiting_s, error, whom, verb, own, remedy) = match late {
        MessageDirection::Sent => (
            waiting.late_senders_s,
            waiting.late_senders_error_s,
            "late senders",
            "send",
            RECEIVES,
            "send earlier, or give the receivers something to do meanwhile",
        ),
        MessageDirection::Received => (
            waiting.late_receivers_s,
            waiting.late_receivers_error_s,
            "late receivers",
            "receive",
            SENDS,
            "post the receive earlier (MPI_Irecv before the work), or send without waiting (MPI_Isend, and MPI_Wait after \
             the work)",
        ),
    };
    let functions = [own, WAITS].concat();
    let in_calls = run.time(&functions);
    let wait = Time { seconds: waiting_s, error }.at_most(in_calls.seconds);
    let mut pairs = waiting.pairs.iter().filter(|pair| pair.late == late);
    let (first, next) = (pairs.next(), pairs.next());
    let Some(pair) = first.filter(|_| run.share(wait.seconds) >= LEAST_SHARE) else {
        return Some(Vec::new());
    };
    let (rank, late_rank, longest) = (pair.rank, pair.late_rank, seconds(pair.waiting_s));
    let [place, late_place] = [&pair.waits, &pair.late_call].map(|call| run.with_place_of(call));
    let next_s = next.map_or(0.0, |next| next.waiting_s);
    let most = if pair.share_there >= NEARLY_ALL { "in" } else { "most in" };
    let title = if pair.waiting_s >= f64::max(MOST * waiting_s, 2.0 * next_s) {
        let share = percent(run.share(pair.waiting_s));
        format!(
            "rank {rank} waits {longest} for rank {late_rank} to {verb}: {share} of the run, {most} {place} for {late_place}"
        )
    } else {
        let share = percent(run.share(wait.seconds));
        format!(
            "ranks wait for {whom} {share} of the run, most ({longest}) rank {rank} for rank {late_rank}, {most} {place} for \
             {late_place}"
        )
    };
    let shown = "gyan report --waiting";
    let is_exact = error == Some(0.0);
    let evidence = vec![
        Evidence {
            known: if is_exact { Fidelity::Exact } else { Fidelity::Estimated },
            error: error.filter(|_| !is_exact),
            ..exact(&format!("waiting for {whom}"), waiting_s, "s", shown)
        },
        exact("messages that were compared", paired, "", shown),
        exact("messages", all, "", shown),
        taken("time in functions that wait for them", in_calls, "gyan report"),
    ];
    let mut ranks = vec![late_rank, rank];
    ranks.sort_unstable();
    Some(vec![RuleMatch {
        title,
        at_stake: Some(run.stake(&functions, Cause::Any, wait)),
        evidence,
        advice: vec![say(remedy), command("see who waits for whom", "gyan report --waiting DIR")],
        functions: vec![pair.waits.function.clone()],
        ranks,
    }])
}
