//! Messages from rank to rank, and the queues that they wait in.

use gyan_results::{
    Actor, Class, Evidence, Fidelity, Knowledge, Measure, Quantity, QueueRow, QueueSource,
};

use super::{COLLECTIVES, RECEIVES, Rule, RuleMatch, SENDS, WAITS, percent, rounded};
use crate::findings::Eager;
use crate::findings::account::{Cause, Stake};
use crate::findings::knobs::{Knob, NEMESIS_EAGER, Purpose, command, say};
use crate::findings::run::{RunFacts, Time, estimated, exact, is_true, power_of_two, taken};
use crate::words::{bytes, double, seconds};

pub(super) const EAGER_LIMIT: Rule = Rule {
    id: "eager-limit",
    name: "Messages just above the eager limit",
    acts: Actor::Run,
    needs: "sizes of messages, the times of sends and waits, and the eager limit of the library",
    when: "over 30 % of the messages are between the eager limit and eight times that, and sends, with waits that are not \
           for late senders, take over 5 % of the run. Within a host not for Open MPI 3 and 4 with single copies, where MPI_Send of over 256 bytes waits for \
           the receiver whatever the limit is, nor for Intel MPI, where it does not wait at all",
    means: "Up to the eager limit a message is sent without asking. A larger one asks first, and its data is sent when \
            the receiver has answered; until then the sender waits, in MPI_Send or in MPI_Wait. At stake, at most, is the \
            time of sends, and of waits that are not for late senders, by the part of such messages.",
    wrong_when: "the sender has something else to do meanwhile, or waits for the receiver a little later in any case.",
    witness: "the time in sends; bytes in the queue of unexpected messages grow",
    source: "Open MPI, btl_*_eager_limit (which includes a header); MPICH, MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE and \
             MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ",
    todo: "Raise the eager limit just above these messages: the finding prints the command with a value. The queue \
           of unexpected messages takes more memory then, so do not raise it further than needed. Or send less at \
           once.",
    look: eager_limit,
};

/// The largest message that is sent without asking, if one knob decides that for all messages of the run.
fn limit_of(run: &RunFacts) -> Option<(&'static Knob, f64)> {
    let is_within = run.is_on_one_host() && !is_tcp_alone(run);
    let purpose = if is_within { Purpose::EagerWithinHost } else { Purpose::EagerBetweenHosts };
    let (knob, value) = run.knob_for(purpose)?;
    let limit = match (knob.name, value) {
        // Measured choice: 60,000 bytes do not wait, 70,000 do.
        (NEMESIS_EAGER, "-1") => 65536.0,
        _ => value.parse::<f64>().ok().filter(|limit| *limit > 0.0)?,
    };
    Some((knob, limit))
}

/// Whether Open MPI was told to use TCP within a host too.
fn is_tcp_alone(run: &RunFacts) -> bool {
    let components = run.knob("btl").filter(|value| !value.starts_with('^')).unwrap_or_default();
    let has = |name: &str| components.split(',').any(|component| component == name);
    has("tcp") && !has("vader") && !has("sm")
}

/// The eager limit in bytes, and which part of the messages is above it.
pub(in crate::findings) fn eager(run: &RunFacts) -> Option<Eager> {
    let (_, limit) = limit_of(run)?;
    let (sizes, all) = (run.sizes(SENDS), run.messages()?);
    let above: f64 = sizes.iter().filter(|bar| bar.0 >= limit).map(|(_, number, _)| number).sum();
    // Messages in the bar that contains the limit are unknown.
    let is_clear = sizes.iter().all(|bar| bar.1 == 0.0 || bar.0 >= limit || 2.0 * bar.0 <= limit);
    is_clear.then(|| Eager { limit_bytes: limit, above: (above / all).min(1.0) })
}

/// The time in functions that only send, and what of the waits and of `MPI_Sendrecv` is not waiting for late senders.
fn time_of_sends(run: &RunFacts) -> Time {
    let (both, only): (Vec<&str>, Vec<&str>) =
        SENDS.iter().partition(|name| RECEIVES.contains(name));
    let late_s: f64 = run.queue(Quantity::LateSenders).filter_map(|row| row.total).sum();
    let waits = run.time(&[WAITS, &both].concat());
    run.time(&only).plus(waits.at_most(waits.seconds - late_s))
}

fn eager_limit(run: &RunFacts) -> Vec<RuleMatch> {
    let Some((knob, limit)) = limit_of(run) else { return Vec::new() };
    // With single copies vader's MPI_Send of over 256 bytes waits for the receiver whatever the limit is.
    let copies = run.knob("btl_vader_single_copy_mechanism");
    if knob.name == "btl_vader_eager_limit" && copies != Some("none") {
        return Vec::new();
    }
    let sizes = run.sizes(SENDS);
    let number = |bars: &dyn Fn(f64) -> bool| -> f64 {
        sizes.iter().filter(|bar| bars(bar.0)).map(|(_, number, _)| number).sum()
    };
    let Some(all) = run.messages() else { return Vec::new() };
    // A message of exactly the limit is above it with its header.
    let above = number(&|from| from >= limit && from < 8.0 * limit);
    let time = time_of_sends(run);
    if above < 0.3 * all || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let largest = sizes.iter().filter(|bar| bar.0 >= limit && bar.0 < 8.0 * limit && bar.1 > 0.0);
    let wanted = largest.map(|bar| 2.0 * bar.0).fold(limit, f64::max) + 1024.0;
    let title = format!(
        "{} of the messages ask before they send: they are just above the eager limit of {}",
        percent(above / all),
        bytes(limit)
    );
    let advice = vec![
        knob.advice_of("send them without asking", &format!("{wanted:.0}")),
        say("or send less at once; the queue of unexpected messages takes more memory then"),
    ];
    let evidence = vec![
        exact(
            "messages from the eager limit to eight times that",
            above,
            "",
            "gyan report --sizes",
        ),
        exact("messages", all, "", "gyan report --sizes"),
        exact(knob.name, limit, "bytes", "gyan varlist"),
        taken("time in sends, and in waits that are not for late senders", time, "gyan report"),
    ];
    let stake = time.times(above / all);
    let at_stake = Some(run.stake(&[SENDS, WAITS].concat(), Cause::Any, stake));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

/// In bytes. Below this size every library sends without asking.
const EAGER_EVERYWHERE: f64 = 1024.0;

fn known(row: &QueueRow) -> Knowledge {
    match row.fidelity {
        Fidelity::Exact => Knowledge::Exact,
        Fidelity::Sampled => Knowledge::Sampled,
        Fidelity::Estimated => Knowledge::Estimated,
    }
}

pub(super) const FLOODED: Rule = Rule {
    id: "flooded",
    name: "A rank is flooded with messages",
    acts: Actor::Program,
    needs: "the length of the queue of unexpected messages: from PERUSE, events, or a variable of the library",
    when: "the queue of unexpected messages is over 1,000 long on some rank",
    means: "Messages come faster than the rank posts receives for them. Each is copied to a buffer of the library, and \
            each receive searches through them. At stake, at most, is the time of receives and waits on all ranks.",
    wrong_when: "the flood is intended, as at the start of a phase, and the search is short \
                 because receives are posted in the order of the messages.",
    witness: "the longest queue of unexpected messages",
    source: "Keller and Graham 2010; GYAN, Figure 3",
    todo: "Receive messages in the order in which they come (MPI_ANY_TAG), or post receives before they come. Or slow the senders down: have them wait for an answer now and \
           then, with MPI_Ssend for one message in a hundred, for instance. If collectives send the messages, Open \
           MPI can put a barrier before each hundredth: coll_sync_barrier_before=100.",
    look: flooded,
};

fn flooded(run: &RunFacts) -> Vec<RuleMatch> {
    let rows = run.queue(Quantity::UnexpectedLength);
    let most = rows.filter_map(|row| Some((row, row.max?)));
    let Some((row, most)) = most.max_by(|(_, one), (_, other)| one.value.total_cmp(&other.value))
    else {
        return Vec::new();
    };
    if most.value <= 1000.0 {
        return Vec::new();
    }
    let time = run.time(&[RECEIVES, WAITS].concat());
    let length = double(most.value);
    let title =
        format!("rank {} is flooded: {length} messages wait there for a receive", most.rank);
    let mut advice = vec![say(
        "receive messages in the order in which they come (MPI_ANY_TAG), post receives before they come, or have \
         senders wait for an answer now and then (MPI_Ssend)",
    )];
    if let Some((knob, "0")) = run.knob_for(Purpose::Throttle)
        && run.count(COLLECTIVES) > 0.0
    {
        advice.extend(knob.advice("if collectives send them: a barrier before each hundredth"));
    }
    let longest =
        exact("longest queue of unexpected messages", most.value, "", "gyan report --queues");
    let evidence = vec![
        Evidence { known: known(row), ..longest },
        taken("time in receives and waits", time, "gyan report"),
    ];
    let at_stake = Some(run.stake(&[RECEIVES, WAITS].concat(), Cause::Any, time));
    vec![RuleMatch {
        title,
        at_stake,
        evidence,
        advice,
        ranks: vec![most.rank],
        ..RuleMatch::default()
    }]
}

pub(super) const LATE_SENDERS: Rule = Rule {
    id: "late-senders",
    name: "Receivers wait for late senders",
    acts: Actor::Program,
    needs: "how long receives waited for their message: from PERUSE or events, or else the times of receives and waits",
    when: "receivers waited for over 5 % of the run, as far as ranks were in receives and waits meanwhile",
    means: "A receive was posted, or waited for, before its message was sent. At stake is the waiting, at most the time of receives and \
            waits: a receive that is posted early waits, but the rank does not.",
    wrong_when: "it is estimated from the times of calls, and a wait is for a send; where that can be, the finding says late \
                 senders or transfer.",
    witness: "the waiting of receives, or the load balance",
    source: "PERUSE 2.0; Wolf and Mohr 2003 (late sender)",
    todo: "Send earlier, or give the receivers something to do meanwhile: MPI_Irecv before the work, MPI_Wait after \
           it. gyan report --sites shows which calls wait.",
    look: |run| late(run, Quantity::LateSenders),
};

pub(super) const LATE_RECEIVERS: Rule = Rule {
    id: "late-receivers",
    name: "Messages wait for late receivers",
    acts: Actor::Program,
    needs: "how long messages waited for their receive: from PERUSE or events",
    when: "over 30 % of the messages came before their receive, and waited for over 5 % of the run in all",
    means: "A message that comes before its receive is kept in a buffer and copied once more. A \
            sender above the eager limit waits for the receive. At stake, at most, is the time of \
            sends, receives and waits, times the share of such messages.",
    wrong_when: "messages are small and the receiver works meanwhile: then nobody waits.",
    witness: "the number of unexpected messages",
    source: "PERUSE 2.0; Wolf and Mohr 2003 (late receiver)",
    todo: "Post receives earlier: MPI_Irecv before the work, MPI_Wait after it.",
    look: |run| late(run, Quantity::LateReceivers),
};

fn late(run: &RunFacts, quantity: Quantity) -> Vec<RuleMatch> {
    let shown = "gyan report --queues";
    let is_senders = quantity == Quantity::LateSenders;
    let rows: Vec<&QueueRow> = run.queue(quantity).collect();
    let total = |value: fn(&QueueRow) -> Option<f64>| -> f64 {
        rows.iter().filter_map(|row| value(row)).sum()
    };
    let (number, of) = (total(|row| row.number), total(|row| row.of));
    let functions: Vec<&str> = [SENDS, RECEIVES, WAITS].concat();
    let worst = run.worst(&[RECEIVES, WAITS].concat());
    let Some(first) = rows.first() else { return Vec::new() };
    if is_senders {
        let waited_s = total(|row| row.total);
        let in_calls = run.time(&[RECEIVES, WAITS].concat());
        let wait_s = waited_s.min(in_calls.seconds);
        if run.share(wait_s) < 0.05 {
            return Vec::new();
        }
        let place = worst.map(|call| run.with_place(&call.name)).unwrap_or_default();
        // From times alone a wait for a message is not told from one for a send that is received late.
        let for_requests_s = run.time(WAITS).seconds;
        let is_known = rows.iter().all(|row| row.source != QueueSource::Calls)
            || for_requests_s < 0.1 * in_calls.seconds
            || run.sizes(SENDS).iter().all(|bar| bar.1 == 0.0 || bar.0 < EAGER_EVERYWHERE);
        let share = percent(run.share(wait_s));
        let title = if is_known {
            format!("receivers wait for late senders {share} of the run, most in {place}")
        } else {
            format!(
                "receives and waits take long, {share} of the run, most in {place}: late senders or transfer"
            )
        };
        let wait = estimated("waiting for late senders", waited_s, "s", shown);
        let evidence = vec![
            Evidence { known: known(first), ..wait },
            Evidence {
                known: known(first),
                ..estimated("receives that waited", number, "", shown)
            },
            taken("time in receives and waits", in_calls, "gyan report"),
        ];
        let advice = vec![
            say("send earlier, or give the receivers something to do meanwhile"),
            command("see which calls wait", "gyan report --sites DIR"),
        ];
        let functions = worst.map(|call| call.name.clone()).into_iter().collect();
        let wait = in_calls.at_most(wait_s);
        let at_stake = Some(run.stake(&[RECEIVES, WAITS].concat(), Cause::Any, wait));
        return vec![RuleMatch {
            title,
            at_stake,
            evidence,
            advice,
            functions,
            ..RuleMatch::default()
        }];
    }
    let waits: f64 = run.queue(Quantity::UnexpectedTime).filter_map(|row| row.total).sum();
    if of <= 0.0 || number < 0.3 * of || run.share(waits) < 0.05 {
        return Vec::new();
    }
    let time = run.time(&functions);
    let title =
        format!("{} of the messages come before their receive is posted", percent(number / of));
    let evidence = vec![
        Evidence {
            known: known(first),
            ..estimated("messages that came first", number, "", shown)
        },
        estimated("time that they waited", waits, "s", shown),
        taken("time in sends, receives and waits", time, "gyan report"),
    ];
    let advice = vec![say("post receives earlier: MPI_Irecv before the work, MPI_Wait after it")];
    let at_stake = Some(run.stake(&functions, Cause::Any, time.times(number / of)));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

pub(super) const LONG_SEARCHES: Rule = Rule {
    id: "long-searches",
    name: "Receives search long queues",
    acts: Actor::Program,
    needs: "the number of match attempts, from a variable of the library (PERUSE counts searches, not what they look at)",
    when: "over 10 entries are looked at for each receive or probe, and there are at least 100 of these",
    means: "Most libraries look through lists of receives and messages from their beginning. At stake is the time of the \
            searches among unexpected messages where the library tells it and they are most of all, or else, at most, that \
            of receives and waits.",
    wrong_when: "entries are looked at in hardware, or by a hash.",
    witness: "match attempts for each receive",
    source: "MPI 4.1, 15.3 (the example of a receive-queue tool); Ferreira et al. 2018",
    todo: "Receive in the order in which messages come, post fewer receives at a time, or give each kind of message \
           a communicator of its own. With UCX on a network that can match messages itself, try \
           UCX_RC_MLX5_TM_ENABLE=y.",
    look: long_searches,
};

fn long_searches(run: &RunFacts) -> Vec<RuleMatch> {
    let attempts = |quantity| -> f64 {
        let rows = run.queue(quantity).filter(|row| row.source == QueueSource::Pvar);
        rows.filter_map(|row| row.number).sum()
    };
    let unexpected = attempts(Quantity::UnexpectedMatchAttempts);
    let total = unexpected + attempts(Quantity::PostedMatchAttempts);
    let receives = run.count(RECEIVES) + run.count(&["MPI_Iprobe", "MPI_Improbe"]);
    if receives < 100.0 || total <= 10.0 * receives {
        return Vec::new();
    }
    let searches = run.queue(Quantity::UnexpectedSearchTime);
    let in_them: f64 = searches.filter_map(|row| row.total).sum();
    let (time, of) = if in_them > 0.0 && unexpected > 0.5 * total {
        (Time::exact(in_them), "time of the searches")
    } else {
        (run.time(&[RECEIVES, WAITS].concat()), "time in receives and waits")
    };
    let each = double((total / receives).round());
    let title =
        format!("each receive looks at {each} entries of a queue before it finds its message");
    let evidence = vec![
        exact("match attempts", total, "", "gyan report --queues"),
        exact("receives and probes", receives, "", "gyan report"),
        taken(of, time, "gyan report --queues"),
    ];
    let mut advice = vec![say(
        "receive in the order in which messages come, post fewer receives at a time, or use communicators of their own",
    )];
    if run.has_transport("mca_pml_ucx") && run.has_transport("uct_ib_mlx5") {
        advice
            .push(command("or have the network match", "UCX_RC_MLX5_TM_ENABLE=y gyan run -- ..."));
    }
    let at_stake = Some(run.stake(&[RECEIVES, WAITS].concat(), Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

pub(super) const SMALL_MESSAGES: Rule = Rule {
    id: "small-messages",
    name: "Very many very small messages",
    acts: Actor::Program,
    needs: "the number and the bytes of messages, and the times of sends, receives and waits",
    when: "messages are below 512 bytes on average, a rank sends over 100,000 a second, and sends, receives and waits take \
           over 5 % of the run",
    means: "Each message costs a fixed time, whatever its size. At stake, at most, is the time of sends, receives and waits.",
    wrong_when: "each message depends on the answer to the one before.",
    witness: "the number of messages",
    source: "Hockney's model of communication: a start-up time and a time for each byte",
    todo: "Collect what goes to the same rank into one message. A derived datatype does that without a copy of your \
           own.",
    look: small_messages,
};

fn small_messages(run: &RunFacts) -> Vec<RuleMatch> {
    let sizes = run.sizes(SENDS);
    let Some(number) = run.messages() else { return Vec::new() };
    let moved: f64 = sizes.iter().map(|(.., bytes)| bytes).sum();
    let rate = run.each_second(number);
    let time = run.time(&[SENDS, RECEIVES, WAITS].concat());
    if moved / number >= 512.0 || rate <= 1e5 || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "{} messages a second from each rank, of {} on average",
        rounded(rate),
        bytes(moved / number)
    );
    let evidence = vec![
        exact("messages", number, "", "gyan report --sizes"),
        exact("bytes", moved, "bytes", "gyan report --sizes"),
        taken("time in sends, receives and waits", time, "gyan report"),
    ];
    let advice = vec![say(
        "collect what goes to the same rank into one message; a datatype does it without a copy of your own",
    )];
    let at_stake = Some(run.stake(&[SENDS, RECEIVES, WAITS].concat(), Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

pub(super) const FIRST_CONTACT: Rule = Rule {
    id: "first-contact",
    name: "One send of each rank takes very long",
    acts: Actor::Run,
    needs: "the longest call of each rank and the distribution of the times of calls",
    when: "the longest call of a sending function, averaged over the ranks, is over 20 times as long as 99 % of the calls, and \
           over 50 ms: the operating system may take a processor away for some milliseconds. At least 200 calls were timed",
    means: "Many libraries connect to a peer at the first message to it. At stake is what the longest call of each rank takes \
            more than its others.",
    wrong_when: "the longest call waited for something else, such as a receiver that had not come yet. Which call was the \
                 longest is not known.",
    witness: "the longest call",
    source: "Open MPI, mpi_preconnect_all; MPI 4.1, 11.2",
    todo: "If it is the first message to a peer, connect at the start: Open MPI does so with mpi_preconnect_all=1. \
           Or send the first message to each peer while there is other work to do.",
    look: first_contact,
};

fn first_contact(run: &RunFacts) -> Vec<RuleMatch> {
    let of = |call: &gyan_results::CallSummary| {
        let longest = call.time_max_s.as_ref()?;
        let longest_s = longest.avg;
        let timed: u64 = call.time_histogram.iter().sum();
        if timed < 200 {
            return None;
        }
        let mut below = 0;
        let bar = call.time_histogram.iter().position(|calls| {
            below += calls;
            below as f64 >= 0.99 * timed as f64
        })?;
        // The upper end of the bar, in seconds.
        let most_s = power_of_two(bar) * 1e-9;
        if longest_s < (20.0 * most_s).max(0.05) {
            return None;
        }
        let title = format!(
            "the longest {} of a rank takes {} on average, 99 % of the calls below {}",
            call.name,
            seconds(longest_s),
            seconds(most_s)
        );
        let mut advice = Vec::new();
        if let Some((knob, value)) = run.knob_for(Purpose::Preconnect)
            && !is_true(value)
        {
            advice.extend(knob.advice("if it is the first one to a peer: connect at the start"));
        }
        advice.push(say("see whether the first message to each peer can be sent while there is other work to do"));
        let evidence = vec![
            estimated("longest call, average over the ranks", longest_s, "s", "gyan report --all"),
            estimated("99 % of the calls are below", most_s, "s", "gyan report --histogram"),
        ];
        let time = Time::exact(longest.ranks as f64 * (longest_s - most_s));
        let at_stake = Some(Stake::calls([call.name.as_str()], Cause::Any, time));
        let functions = vec![call.name.clone()];
        Some(RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() })
    };
    run.called(SENDS).filter_map(of).collect()
}

pub(super) const MEMORY: Rule = Rule {
    id: "memory",
    name: "The MPI library holds much more memory on one rank",
    acts: Actor::Program,
    needs: "a high-water mark of memory among the variables of the library, or one that was sampled",
    when: "the largest value over the ranks is over three times the average, which takes four ranks at least, and over 1 MiB",
    means: "Buffers for unexpected messages and for connections grow with what others send to a rank. No time is at stake, \
            but memory.",
    wrong_when: "the rank has another part to play, as the root of gathers has.",
    witness: "the ratio of the largest to the average",
    source: "Islam et al., \"Exploring the capabilities of the new MPI_T interface\" (GYAN), case study II",
    todo: "See who sends to that rank with gyan report --peers, and post its receives earlier.",
    look: memory,
};

fn memory(run: &RunFacts) -> Vec<RuleMatch> {
    let is_memory = |pvar: &&gyan_results::PvarSummary| {
        let name = pvar.name.to_lowercase();
        let is_most = match pvar.effective_class() {
            Class::HighWatermark => pvar.measure == Measure::End,
            Class::Level => pvar.measure == Measure::SampledMax,
            _ => false,
        };
        is_most && ["mem", "buf", "bytes"].iter().any(|part| name.contains(part))
    };
    let of = |pvar: &gyan_results::PvarSummary| {
        let (most, average) = (pvar.statistic.max.as_f64(), pvar.statistic.avg);
        if most <= 3.0 * average || most < f64::from(1 << 20) {
            return None;
        }
        let rank = pvar.statistic.max_rank;
        let title = format!(
            "MPI holds {} on rank {rank}, {} times the average ({})",
            bytes(most),
            double((10.0 * most / average).round() / 10.0),
            pvar.name
        );
        let shown = "gyan report --variables";
        let evidence = vec![
            exact(&format!("{} on rank {rank}", pvar.name), most, "bytes", shown),
            exact("average over the ranks", average, "bytes", shown),
        ];
        let advice = vec![say(
            "see who sends to that rank (gyan report --peers), and post its receives earlier",
        )];
        Some(RuleMatch {
            title,
            at_stake: None,
            evidence,
            advice,
            ranks: vec![rank],
            ..RuleMatch::default()
        })
    };
    let found = run.summary.pvars.iter().filter(is_memory).filter_map(of);
    found.take(1).collect()
}
