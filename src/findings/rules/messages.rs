//! Messages from rank to rank, and the queues that they wait in.

use gyan_results::{Class, Evidence, Measure, Quantity, QueueRow, QueueSource};

use super::partners::compared;
use super::{COLLECTIVES, RECEIVES, Rule, RuleMatch, SENDS, WAITS, percent, rounded};
use crate::findings::Eager;
use crate::findings::account::{Cause, Stake};
use crate::findings::knobs::{Knob, NEMESIS_EAGER, Purpose, command, say};
use crate::findings::run::{RunFacts, Time, estimated, exact, is_true, power_of_two, taken};
use crate::words::{bytes, double, rough, seconds};

pub(super) const RULES: &[Rule] = rules! {
    130 "first-contact": Run, "the longest call", first_contact;
    210 "flooded": Program, "the longest queue of unexpected messages", flooded;
    220 "long-searches": Program, "match attempts for each receive", long_searches;
    230 "eager-limit": Run,
        "the time in sends; bytes in the queue of unexpected messages grow",
        eager_limit;
    270 "unexpected-messages": Program, "the number of unexpected messages", unexpected;
    280 "small-messages": Program, "the number of messages", small_messages;
    370 "memory": Program, "the ratio of the largest to the average", memory;
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
    let late_s = run.summary.message_waiting.as_ref().map_or(0.0, |waiting| waiting.late_senders_s);
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
        Evidence { known: row.fidelity, ..longest },
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

/// The sum over queues of what some of them tell.
fn total(rows: &[&QueueRow], value: fn(&QueueRow) -> Option<f64>) -> f64 {
    rows.iter().filter_map(|row| value(row)).sum()
}

/// Receives that waited for their messages, by what the library tells of them.
pub(super) fn late_senders(run: &RunFacts) -> Vec<RuleMatch> {
    let shown = "gyan report --queues";
    let rows: Vec<&QueueRow> = run.queue(Quantity::LateSenders).collect();
    let Some(first) = rows.first() else { return Vec::new() };
    let functions = [RECEIVES, WAITS].concat();
    let waited_s = total(&rows, |row| row.total);
    let in_calls = run.time(&functions);
    let wait_s = waited_s.min(in_calls.seconds);
    if run.share(wait_s) < 0.05 {
        return Vec::new();
    }
    let worst = run.worst(&functions);
    let place = worst.map(|call| run.with_place(&call.name)).unwrap_or_default();
    let share = percent(run.share(wait_s));
    let title = format!("receivers wait for late senders {share} of the run, most in {place}");
    let wait = estimated("waiting for late senders", waited_s, "s", shown);
    let number = total(&rows, |row| row.number);
    let evidence = vec![
        Evidence { known: first.fidelity, ..wait },
        Evidence { known: first.fidelity, ..estimated("receives that waited", number, "", shown) },
        taken("time in receives and waits", in_calls, "gyan report"),
    ];
    let advice = vec![
        say("send earlier, or give the receivers something to do meanwhile"),
        command("see which calls wait", "gyan report --sites DIR"),
    ];
    let at_stake = Some(run.stake(&functions, Cause::Any, in_calls.at_most(wait_s)));
    let functions = worst.map(|call| call.name.clone()).into_iter().collect();
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

/// Messages that came before their receive. Where it is known how long senders waited for receivers, that says more.
fn unexpected(run: &RunFacts) -> Vec<RuleMatch> {
    let shown = "gyan report --queues";
    let rows: Vec<&QueueRow> = run.queue(Quantity::LateReceivers).collect();
    let Some(first) = rows.first().filter(|_| compared(run.summary).is_none()) else {
        return Vec::new();
    };
    let (number, of) = (total(&rows, |row| row.number), total(&rows, |row| row.of));
    let waits: f64 = run.queue(Quantity::UnexpectedTime).filter_map(|row| row.total).sum();
    if of <= 0.0 || number < 0.3 * of || run.share(waits) < 0.05 {
        return Vec::new();
    }
    let functions: Vec<&str> = [SENDS, RECEIVES, WAITS].concat();
    let time = run.time(&functions);
    let title =
        format!("{} of the messages come before their receive is posted", percent(number / of));
    let evidence = vec![
        Evidence {
            known: first.fidelity,
            ..estimated("messages that came first", number, "", shown)
        },
        estimated("time that they waited", waits, "s", shown),
        taken("time in sends, receives and waits", time, "gyan report"),
    ];
    let advice = vec![say("post receives earlier: MPI_Irecv before the work, MPI_Wait after it")];
    let at_stake = Some(run.stake(&functions, Cause::Any, time.times(number / of)));
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

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
            rough(most / average),
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
