//! Who waits for whom in messages: known where both ranks timed enough of them, else taken from queues (`messages`). Where
//! those tell nothing either, only the time in receives and waits is known.

use gyan_results::{
    Evidence, Fidelity, MessageDirection, MessageWaitingSummary, Quantity, Summary, only_starts,
};

use super::{RECEIVES, Rule, RuleMatch, SENDS, WAITS, messages, percent};
use crate::findings::account::Cause;
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, Time, exact, taken};
use crate::words::{how_much_in, seconds};

pub(super) const RULES: &[Rule] = rules! {
    240 "wrong-order": Program, "the waiting while a message is there", wrong_order;
    250 "late-senders": Program, "the waiting of receives, or the load balance", late_senders;
    260 "late-receivers": Program, "the waiting of sends", late_receivers;
};

/// Messages are judged by those that were compared if they are so many of all.
const COMPARED: f64 = 0.6;

/// What shows it.
const SHOWN: &str = "gyan report --waiting";

/// Less of the run is no finding.
const LEAST_SHARE: f64 = 0.05;

/// Receives and waits of which nothing is known but their time are worth a word from this part of the run on.
const LEAST_UNEXPLAINED: f64 = 0.1;

/// A pair of ranks stands for all with this part of the waiting, if it is also twice that of any other.
const MOST: f64 = 0.5;

fn late_senders(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, MessageDirection::Sent).unwrap_or_else(|| {
        let is_told = run.queue(Quantity::LateSenders).next().is_some();
        if is_told { messages::late_senders(run) } else { unexplained(run) }
    })
}

fn late_receivers(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, MessageDirection::Received).unwrap_or_default()
}

/// How long ranks waited for each other, where enough messages were compared.
pub(in crate::findings) fn compared(summary: &Summary) -> Option<&MessageWaitingSummary> {
    let waiting = summary.message_waiting.as_ref()?;
    let (all, paired) = (waiting.messages as f64, waiting.paired as f64);
    (all > 0.0 && paired >= COMPARED * all).then_some(waiting)
}

/// How many messages that was.
fn messages_compared(waiting: &MessageWaitingSummary) -> [Evidence; 2] {
    let exact = |what: &str, number: u64| exact(what, number as f64, "", SHOWN);
    [exact("messages that were compared", waiting.paired), exact("messages", waiting.messages)]
}

/// Seconds of waiting, with their error.
fn waited(what: &str, seconds: f64, error: Option<f64>) -> Evidence {
    let is_exact = error == Some(0.0);
    Evidence {
        known: if is_exact { Fidelity::Exact } else { Fidelity::Estimated },
        error: error.filter(|_| !is_exact),
        ..exact(what, seconds, "s", SHOWN)
    }
}

/// A rank waits for a message while the one that it receives next is there.
fn wrong_order(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(waiting) = compared(run.summary) else { return Vec::new() };
    let error = waiting.late_senders_error_s;
    let functions = [RECEIVES, WAITS].concat();
    let in_calls = run.time(&functions);
    let wait = Time { seconds: waiting.wrong_order_s, error }.at_most(in_calls.seconds);
    let most =
        waiting.pairs.iter().max_by(|one, other| one.wrong_order_s.total_cmp(&other.wrong_order_s));
    let Some(pair) = most.filter(|_| run.share(wait.seconds) >= LEAST_SHARE) else {
        return Vec::new();
    };
    let (rank, late_rank) = (pair.rank, pair.late_rank);
    let share = percent(run.share(wait.seconds));
    let place = run.with_place_of(&pair.waits);
    let title = format!(
        "messages are received in the wrong order: for {share} of the run, ranks wait for one while the one that they \
         receive next is there, mostly rank {rank} for rank {late_rank} in {place}"
    );
    let what = "waiting while the next message was there";
    let mut evidence = vec![waited(what, waiting.wrong_order_s, error)];
    evidence.extend(messages_compared(waiting));
    let advice = vec![
        say(
            "post the receives before, and take messages as they come (MPI_Waitany, MPI_Waitsome), or receive them in the other \
             order",
        ),
        command("see who waits for whom", "gyan report --waiting DIR"),
    ];
    vec![RuleMatch {
        title,
        at_stake: Some(run.stake(&functions, Cause::Any, wait)),
        evidence,
        advice,
        functions: vec![pair.waits.function.clone()],
        ranks: vec![rank],
    }]
}

/// None where too few messages were compared. `late`: what the late rank does with them.
fn late(run: &RunFacts, late: MessageDirection) -> Option<Vec<RuleMatch>> {
    let waiting = compared(run.summary)?;
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
    let of_messages = waiting.pairs.iter().filter(|pair| pair.signal.is_none());
    let mut pairs = of_messages.filter(|pair| pair.late == late);
    let (first, next) = (pairs.next(), pairs.next());
    let Some(pair) = first.filter(|_| run.share(wait.seconds) >= LEAST_SHARE) else {
        return Some(Vec::new());
    };
    let (rank, late_rank, longest) = (pair.rank, pair.late_rank, seconds(pair.waiting_s));
    let [place, late_place] = [&pair.waits, &pair.late_call].map(|call| run.with_place_of(call));
    let next_s = next.map_or(0.0, |next| next.waiting_s);
    let there = how_much_in(pair.share_there);
    let title = if pair.waiting_s >= f64::max(MOST * waiting_s, 2.0 * next_s) {
        let share = percent(run.share(pair.waiting_s));
        format!(
            "rank {rank} waits {longest} for rank {late_rank} to {verb}: {share} of the run, {there} {place} for {late_place}"
        )
    } else {
        let share = percent(run.share(wait.seconds));
        format!(
            "ranks wait for {whom} {share} of the run; longest: rank {rank} waits {longest} for rank {late_rank}, {there} \
             {place} for {late_place}"
        )
    };
    let mut evidence = vec![waited(&format!("waiting for {whom}"), waiting_s, error)];
    evidence.extend(messages_compared(waiting));
    evidence.push(taken("time in functions that wait for them", in_calls, "gyan report"));
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

/// Receives and waits take long, and nothing tells whether for late senders or for their transfer.
fn unexplained(run: &RunFacts) -> Vec<RuleMatch> {
    let functions = [RECEIVES, WAITS].concat();
    // How much of it is for nonblocking collectives is known.
    let of_collectives = run.waiting().iter().filter(|of| only_starts(&of.function));
    let known_s: f64 = of_collectives.map(|of| of.time_s).sum();
    let all = run.time(&functions);
    let in_calls = all.at_most(all.seconds - known_s);
    let Some(worst) =
        run.worst(&functions).filter(|_| run.share(in_calls.seconds) >= LEAST_UNEXPLAINED)
    else {
        return Vec::new();
    };
    let (share, place) = (percent(run.share(in_calls.seconds)), run.with_place(&worst.name));
    let title = format!(
        "receives and waits take {share} of the run, most in {place}: late senders or transfer"
    );
    let mut evidence = vec![taken("time in receives and waits", in_calls, "gyan report")];
    let mut advice = vec![command("see which calls wait", "gyan report --sites DIR")];
    if let Some(waiting) = &run.summary.message_waiting {
        evidence.extend(messages_compared(waiting));
        advice.push(say(
            "where the program knows the sender, receive from its rank and not from MPI_ANY_SOURCE: then gyan compares the \
             messages between their ranks",
        ));
    }
    let at_stake = Some(run.stake(&functions, Cause::Any, in_calls));
    let functions = vec![worst.name.clone()];
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}
