//! What is found of simulated programs, of which the waiting is known by its definition.

use super::*;
use crate::STREAM_TIMES_AT_MOST;

/// One message of a simulated program.
#[derive(Clone, Copy)]
struct Sent {
    sender: usize,
    receiver: usize,
    tag: i32,
    /// On its sender, and on its receiver, at the true time.
    times: [MessageTime; 2],
}

/// A program of some ranks, each on a host with a clock of its own, or all on one.
struct SimulatedMessages {
    ranks: usize,
    clocks: Vec<u64>,
    sent: Vec<Sent>,
    /// By rank and late rank, the seconds of waiting for a send, and for a receive.
    truth: BTreeMap<(u32, u32), [f64; 2]>,
}

fn time(times: [u64; 3], begun_in: u32, waits_in: u32) -> MessageTime {
    let [begun_ns, waits_ns, ended_ns] = times;
    MessageTime { begun_ns, waits_ns, ended_ns, begun_in, waits_in }
}

fn rank_of(rank: usize) -> u32 {
    u32::try_from(rank).unwrap()
}

impl SimulatedMessages {
    fn new(ranks: usize, clocks: Vec<u64>) -> SimulatedMessages {
        SimulatedMessages { ranks, clocks, sent: Vec::new(), truth: BTreeMap::new() }
    }

    fn waits(&mut self, rank: usize, late: usize, late_receiver: usize, ns: u64) {
        let of = self.truth.entry((rank_of(rank), rank_of(late))).or_default();
        of[late_receiver] += ns as f64 * 1e-9;
    }

    /// Rings of blocking calls: each rank sends to the next one, which receives from it. `is_eager`: no send waits.
    fn rings(&mut self, rounds: usize, is_eager: bool, random: &mut fastrand::Rng) {
        let mut now = vec![1_000_000_u64; self.ranks];
        for round in 0..rounds {
            let (sender, receiver) = (round % self.ranks, (round + 1) % self.ranks);
            for now in &mut now {
                *now += 1000 * random.u64(1..200);
            }
            let (begun, posted) = (now[sender], now[receiver]);
            let transfer = 64 * random.u64(10..40);
            let came = begun.max(if is_eager { 0 } else { posted }) + transfer;
            let left = if is_eager { begun + transfer } else { came };
            let ended = came.max(posted) + transfer;
            if begun > posted {
                self.waits(receiver, sender, 0, begun - posted);
            } else if !is_eager && posted > begun {
                self.waits(sender, receiver, 1, posted - begun);
            }
            // The calls: 1 sends, 2 receives, 3 waits for both.
            let sent = time([begun, begun, left], 1, 1);
            let got = time([posted, posted, ended], 2, 2);
            self.sent.push(Sent { sender, receiver, tag: 7, times: [sent, got] });
            (now[sender], now[receiver]) = (left, ended);
        }
    }

    /// Each rank exchanges messages with the ranks at both sides, and waits for all four with one call.
    fn halos(&mut self, rounds: usize, random: &mut fastrand::Rng) {
        let ranks = self.ranks;
        let mut now = vec![1_000_000_u64; ranks];
        for _ in 0..rounds {
            // No two ranks begin at once.
            let unit = 64 * ranks as u64;
            let later =
                |(rank, now): (u64, &u64)| (now / unit + random.u64(20..4000)) * unit + 64 * rank;
            let begun: Vec<u64> = (0..).zip(&now).map(later).collect();
            let waits: Vec<u64> =
                begun.iter().map(|begun| begun + 64 * random.u64(1..4000)).collect();
            let neighbours = |rank: usize| [(rank + 1) % ranks, (rank + ranks - 1) % ranks];
            let ended: Vec<u64> = (0..ranks)
                .map(|rank| {
                    let latest = neighbours(rank).map(|other| begun[other]).into_iter().max();
                    waits[rank].max(latest.unwrap()) + 64 * random.u64(10..40)
                })
                .collect();
            for rank in 0..ranks {
                let last = neighbours(rank).into_iter().max_by_key(|other| begun[*other]).unwrap();
                if begun[last] > waits[rank] {
                    // The message of that one was sent, and the receive of this rank's was posted, at once.
                    self.waits(rank, last, 0, begun[last] - waits[rank]);
                }
                for (tag, other) in (0..).zip(neighbours(rank)) {
                    let times = [(rank, 1), (other, 2)]
                        .map(|(of, call)| time([begun[of], waits[of], ended[of]], call, 3));
                    self.sent.push(Sent { sender: rank, receiver: other, tag, times });
                }
            }
            now = ended;
        }
    }

    /// What a rank writes. `level`: of its streams, at least.
    fn of_rank(&self, rank: usize, level: u32) -> MessageTimes {
        let mut streams: BTreeMap<(MessageDirection, u32, i32), Vec<Option<MessageTime>>> =
            BTreeMap::new();
        let zero = self.clocks[rank];
        let shifted = |time: MessageTime| MessageTime {
            begun_ns: time.begun_ns + zero,
            waits_ns: time.waits_ns + zero,
            ended_ns: time.ended_ns + zero,
            ..time
        };
        for Sent { sender, receiver, tag, times: [sent, received] } in &self.sent {
            if *sender == rank {
                let key = (MessageDirection::Sent, rank_of(*receiver), *tag);
                streams.entry(key).or_default().push(Some(shifted(*sent)));
            }
            if *receiver == rank {
                let key = (MessageDirection::Received, rank_of(*sender), *tag);
                streams.entry(key).or_default().push(Some(shifted(*received)));
            }
        }
        let stream = |((direction, peer, tag), mut times): (_, Vec<_>)| {
            let messages = times.len() as u64;
            let mut own = 0;
            while own < level || times.len() > STREAM_TIMES_AT_MOST {
                Waiting::thin(&mut times, own);
                own += 1;
            }
            MessageStream {
                direction,
                peer,
                tag,
                communicator: "0000000000000001".into(),
                messages,
                is_partial: false,
                level: own,
                times: MessageStream::written(times),
            }
        };
        let call = |function: &str| MessagePlace { function: function.into(), call: None };
        MessageTimes {
            clock: format!("{zero}"),
            calls: ["MPI_Send", "MPI_Recv", "MPI_Waitall"].map(call).into(),
            streams: streams.into_iter().map(stream).collect(),
            ..MessageTimes::default()
        }
    }

    fn found(&self, order: &[usize], levels: &[u32]) -> MessageWaitingSummary {
        let mut pairs = Pairs::default();
        for rank in order {
            let mut of = Pairs::default();
            of.set(Some(&self.of_rank(*rank, levels[*rank])), rank_of(*rank));
            pairs.absorb(&of);
        }
        pairs.finish(&Clocks::default(), 0, &mut WaitsOfRanks::default()).unwrap()
    }

    /// The waiting of a rank for another one.
    fn truth_of(&self, pair: &PairWaiting) -> f64 {
        let of = self.truth.get(&(pair.rank, pair.late_rank)).copied().unwrap_or_default();
        of[usize::from(pair.late == MessageDirection::Received)]
    }

    fn total(&self, late_receiver: usize) -> f64 {
        self.truth.values().map(|of| of[late_receiver]).sum()
    }
}

fn is_near(one: f64, other: f64) -> bool {
    // Each time is rounded to 64 ns.
    (one - other).abs() <= 1e-3 * other.abs() + 1e-5
}

#[test]
fn waiting_of_blocking_calls_is_that_of_its_definition() {
    let mut random = fastrand::Rng::with_seed(36);
    for is_eager in [false, true] {
        let mut program = SimulatedMessages::new(4, vec![0; 4]);
        program.rings(600, is_eager, &mut random);
        let found = program.found(&[0, 1, 2, 3], &[0; 4]);
        assert_eq!(program.found(&[3, 1, 0, 2], &[0; 4]), found);
        assert_eq!((found.messages, found.paired, found.compared), (600, 600, 600));
        assert!(is_near(found.late_senders_s, program.total(0)), "{found:?}");
        // A send that has just ended when its receive is posted counts, as clocks differ: it is short.
        let just_ended_s = if is_eager { 1e-4 } else { 0.0 };
        let off_s = found.late_receivers_s - program.total(1);
        assert!(
            off_s.abs() <= 1e-3 * found.late_receivers_s + 1e-5
                || (0.0..just_ended_s).contains(&off_s),
            "{found:?}"
        );
        assert_eq!(
            (found.late_senders_error_s, found.late_receivers_error_s),
            (Some(0.0), Some(0.0))
        );
        assert!(program.total(0) > 1e-3 && (program.total(1) > 1e-3) != is_eager);
        let waited_in = |function: &str| {
            let of = found.functions.iter().find(|of| of.function == function);
            of.map_or(0.0, |of| of.waiting_s)
        };
        assert!(is_near(waited_in("MPI_Recv"), found.late_senders_s), "{found:?}");
        assert!(is_near(waited_in("MPI_Send"), found.late_receivers_s), "{found:?}");
        for pair in &found.pairs {
            let off_s = pair.waiting_s - program.truth_of(pair);
            let is_true = off_s.abs() <= 1e-3 * pair.waiting_s + 1e-5;
            assert!(is_true || (0.0..just_ended_s).contains(&off_s), "{pair:?}");
            let is_sender_late = pair.late == MessageDirection::Sent;
            let calls = [&*pair.waits.function, &*pair.late_call.function];
            let expected =
                if is_sender_late { ["MPI_Recv", "MPI_Send"] } else { ["MPI_Send", "MPI_Recv"] };
            assert_eq!((calls, pair.share_there > 0.999), (expected, true), "{pair:?}");
        }
    }
}

#[test]
fn of_the_messages_that_one_call_waits_for_the_last_one_counts() {
    let mut random = fastrand::Rng::with_seed(37);
    let mut program = SimulatedMessages::new(5, vec![9; 5]);
    program.halos(200, &mut random);
    let found = program.found(&[0, 1, 2, 3, 4], &[0; 5]);
    // A rank that waits for one that begins a send and a receive at once waits for the send.
    assert!(is_near(found.late_senders_s, program.total(0)), "{found:?}");
    assert!(found.late_receivers_s < 1e-12, "{found:?}");
    assert!(found.pairs.iter().all(|pair| pair.waits.function == "MPI_Waitall"), "{found:?}");
    let mut by_pair: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for pair in &found.pairs {
        *by_pair.entry((pair.rank, pair.late_rank)).or_default() += pair.waiting_s;
    }
    for (pair, truth) in &program.truth {
        assert!(is_near(by_pair[pair], truth[0]), "{pair:?}");
    }
}

/// Rank 0 receives from rank 1, which is late, and then from rank 2, whose message is there already, or not.
#[test]
fn messages_that_are_there_while_a_rank_waits_for_another_one_are_received_in_the_wrong_order() {
    let mut random = fastrand::Rng::with_seed(41);
    let mut program = SimulatedMessages::new(3, vec![5; 3]);
    let (mut now, mut truth_s) = (1_000_000_u64, 0.0);
    for _ in 0..200 {
        let at = now;
        let [first, late, other] = [0, 0, 0].map(|_| at + 64 * random.u64(0..10_000));
        let received = first.max(late) + 640;
        let then = received + 64 * random.u64(1..100);
        let ended = then.max(other) + 640;
        program.sent.extend([
            Sent {
                sender: 1,
                receiver: 0,
                tag: 7,
                times: [time([late, late, late + 64], 1, 1), time([first, first, received], 2, 2)],
            },
            Sent {
                sender: 2,
                receiver: 0,
                tag: 7,
                times: [time([other, other, other + 64], 1, 1), time([then, then, ended], 2, 2)],
            },
        ]);
        // By definition: it waits, and could have received the other one.
        truth_s += late.saturating_sub(first.max(other)) as f64 * 1e-9;
        now = ended;
    }
    let found = program.found(&[2, 0, 1], &[0; 3]);
    assert!(is_near(found.wrong_order_s, truth_s), "{} {truth_s} {found:?}", found.wrong_order_s);
    assert!(truth_s > 1e-3 && found.wrong_order_s < found.late_senders_s);
    let of_pairs: f64 = found.pairs.iter().map(|pair| pair.wrong_order_s).sum();
    assert!(is_near(of_pairs, truth_s));
}

#[test]
fn where_not_every_message_was_timed_the_truth_is_within_the_error() {
    let mut random = fastrand::Rng::with_seed(38);
    let mut outside = 0;
    for run in 0..60 {
        let mut program = SimulatedMessages::new(3, vec![0; 3]);
        program.rings(9000, false, &mut random);
        let found = program.found(&[0, 1, 2], &[run % 5, 2, 3]);
        assert_eq!(found.paired, found.messages);
        assert!(found.compared < found.messages / 4);
        let (error_s, truth_s) = (found.late_senders_error_s.unwrap(), program.total(0));
        assert!(error_s > 0.0 && error_s < 0.2 * truth_s, "{error_s} {truth_s}");
        outside += usize::from((found.late_senders_s - truth_s).abs() > 2.0 * error_s);
    }
    // One in 20 is expected, 10 are improbable beyond one in a thousand.
    assert!(outside < 10, "{outside}");
}

#[test]
fn messages_that_ranks_number_differently_are_not_compared() {
    let mut random = fastrand::Rng::with_seed(39);
    let mut program = SimulatedMessages::new(2, vec![0; 2]);
    program.rings(300, false, &mut random);
    // Of one the receive named no sender.
    let mut receiver = program.of_rank(1, 0);
    let stream = receiver.streams.iter_mut().find(|of| of.direction == MessageDirection::Received);
    stream.unwrap().messages -= 1;
    let mut pairs = Pairs::default();
    pairs.set(Some(&program.of_rank(0, 0)), 0);
    let mut other = Pairs::default();
    other.set(Some(&receiver), 1);
    pairs.absorb(&other);
    let found = pairs.finish(&Clocks::default(), 0, &mut WaitsOfRanks::default()).unwrap();
    assert_eq!((found.messages, found.paired), (300, 150));
    assert!(found.pairs.iter().all(|pair| pair.messages == 150));
    // Clocks that nothing compares.
    program.clocks = vec![0, 1 << 40];
    let found = program.found(&[0, 1], &[0; 2]);
    assert_eq!((found.messages, found.paired, found.pairs.len()), (300, 0, 0));
    assert_eq!(Pairs::default().finish(&Clocks::default(), 0, &mut WaitsOfRanks::default()), None);
}

#[test]
fn those_before_a_rank_could_number_no_more_are_compared() {
    let mut random = fastrand::Rng::with_seed(41);
    let mut program = SimulatedMessages::new(2, vec![0; 2]);
    program.rings(300, false, &mut random);
    let of_sender = program.of_rank(0, 0);
    let mut receiver = program.of_rank(1, 0);
    let stream = receiver.streams.iter_mut().find(|of| of.direction == MessageDirection::Received);
    let stream = stream.unwrap();
    let times: Vec<Option<MessageTime>> = stream.messages_timed().take(60).collect();
    stream.times = MessageStream::written(times);
    (stream.messages, stream.is_partial) = (60, true);
    let mut pairs = Pairs::default();
    pairs.set(Some(&of_sender), 0);
    let mut other = Pairs::default();
    other.set(Some(&receiver), 1);
    pairs.absorb(&other);
    let found = pairs.finish(&Clocks::default(), 0, &mut WaitsOfRanks::default()).unwrap();
    assert_eq!((found.messages, found.paired, found.compared), (300, 210, 210));
}

#[test]
fn messages_that_come_before_they_are_sent_are_numbered_wrongly() {
    let mut random = fastrand::Rng::with_seed(40);
    let mut program = SimulatedMessages::new(2, vec![0; 2]);
    program.rings(200, false, &mut random);
    // The receiver takes each for the one before it.
    let of_sender = program.of_rank(0, 0);
    let received: Vec<usize> =
        (0..program.sent.len()).filter(|at| program.sent[*at].receiver == 1).collect();
    for pair in received.windows(2).rev() {
        program.sent[pair[1]].times[1] = program.sent[pair[0]].times[1];
    }
    let mut pairs = Pairs::default();
    pairs.set(Some(&of_sender), 0);
    let mut other = Pairs::default();
    other.set(Some(&program.of_rank(1, 0)), 1);
    pairs.absorb(&other);
    let found = pairs.finish(&Clocks::default(), 0, &mut WaitsOfRanks::default()).unwrap();
    assert_eq!((found.messages, found.paired), (200, 100));
}

#[test]
fn signals_of_one_sided_synchronisation_count_apart_and_nobody_waits_for_whom_it_signals() {
    let mut program = SimulatedMessages::new(2, vec![0; 2]);
    let ms = |at: u64| at * 1_000_000;
    for round in 0..20 {
        let begun = ms(round * 100);
        // Rank 1 posts late, and then waits for rank 0 to complete; rank 0 waits in either of its two calls.
        let posted = begun + ms(20);
        let in_start = round % 2 == 0;
        let started = if in_start { posted + ms(1) } else { begun + ms(2) };
        let post = time([posted, posted, posted + ms(1)], 1, 1);
        let (start, complete) = ([begun, begun, started], [started, started, posted + ms(9)]);
        let waited = [posted + ms(5), posted + ms(5), posted + ms(10)];
        for (sender, tag, sent, received) in [
            (1, Signal::POST_IN_START, post, time(start, 2, 2)),
            (1, Signal::POST_IN_COMPLETE, post, time(complete, 3, 3)),
            (0, Signal::COMPLETE, time(complete, 3, 3), time(waited, 1, 1)),
        ] {
            let receiver = 1 - sender;
            program.sent.push(Sent { sender, receiver, tag, times: [sent, received] });
        }
        // And a message for which rank 0 waits 3 ms.
        let sent = time([begun + ms(53), begun + ms(53), begun + ms(54)], 1, 1);
        let got = time([begun + ms(50), begun + ms(50), begun + ms(55)], 2, 2);
        program.sent.push(Sent { sender: 1, receiver: 0, tag: 7, times: [sent, got] });
    }
    let found = program.found(&[0, 1], &[0; 2]);
    assert_eq!((found.messages, found.paired, found.compared), (20, 20, 20));
    assert!(is_near(found.late_senders_s, 20.0 * 0.003), "{found:?}");
    assert!(found.late_receivers_s + found.wrong_order_s < 1e-12, "{found:?}");
    assert!(is_near(found.signals_s.unwrap(), 10.0 * (0.020 + 0.018)), "{found:?}");
    assert_eq!(found.signals_error_s, Some(0.0));
    let rows =
        found.pairs.iter().map(|pair| (pair.rank, pair.late_rank, pair.signal, pair.messages));
    assert_eq!(rows.collect::<Vec<_>>(), [(0, 1, Some(Signal::Post), 20), (0, 1, None, 20)]);
    // In the first of its two calls.
    assert_eq!(found.pairs[0].waits.function, "MPI_Recv", "{found:?}");
}
