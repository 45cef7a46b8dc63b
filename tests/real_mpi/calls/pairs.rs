//! How long ranks wait for each other in messages equals what a program finds from its own clock (tests/programs/pairs.c).

use std::fs;
use std::path::Path;

use gyan_results::{MessageDirection, MessageWaitingSummary, PairWaiting};

use super::waiting::summary;
use super::waits::{self, InjectedWait};
use crate::common::{MPICH, MPIS, Mpi, OPENMPI, Profiled, each_library, report, root};
use crate::matrix;

const RANKS: usize = 3;
/// Messages of `pairs.c`, and with its arguments `further` and `both`.
const MESSAGES: u64 = 7 * 50;
const FURTHER: u64 = 7 * 50;
const BOTH: u64 = 4 * 50;

/// Of the program's sums, so much may be different: the two read their clocks one after the other.
const OFF: f64 = 0.05;
const OFF_S: f64 = 0.01;

/// They have MPI 3.1.
const LACK_ISENDRECV: [&str; 2] = ["openmpi4", "openmpi-spc"];

type Truth = (u32, u32, MessageDirection, f64);

/// What the program saw, and what gyan found, which is the same.
fn checked(run: &Profiled, messages: u64, what: &str) -> (Vec<Truth>, MessageWaitingSummary) {
    assert_eq!(run.outcome.code, 0);
    let found = summary(&run.profiles()).message_waiting.unwrap();
    assert_eq!([found.messages, found.paired, found.compared], [messages; 3], "{what}");
    let truth: Vec<(Truth, f64)> = run
        .outcome
        .stdout
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [rank, late_rank, late, seconds, at_most] = words[..] else {
                panic!("{what} {line}")
            };
            let late = match late {
                "send" => MessageDirection::Sent,
                _ => MessageDirection::Received,
            };
            let [seconds, at_most] = [seconds, at_most].map(|word| word.parse::<f64>().unwrap());
            ((rank.parse().unwrap(), late_rank.parse().unwrap(), late, seconds), at_most)
        })
        .collect();
    let (mut total, mut total_at_most) = (0.0, 0.0);
    for &((rank, late_rank, late, seconds), at_most) in &truth {
        let is_it =
            |pair: &&PairWaiting| (pair.rank, pair.late_rank, pair.late) == (rank, late_rank, late);
        let waiting_s = found.pairs.iter().find(is_it).map_or(0.0, |pair| pair.waiting_s);
        let off_s = (seconds - waiting_s).max(waiting_s - at_most.max(seconds));
        assert!(
            off_s <= OFF * seconds + OFF_S,
            "{what} rank {rank} for {late_rank} {late:?}: {waiting_s} instead of {seconds} to {at_most}: {found:?}"
        );
        total += seconds;
        total_at_most += at_most.max(seconds);
    }
    let all_s = found.late_senders_s + found.late_receivers_s;
    let off_s = (total - all_s).max(all_s - total_at_most);
    assert!(off_s <= OFF * total + 4.0 * OFF_S, "{what} {all_s} {total} {total_at_most}");
    assert_eq!((found.late_senders_error_s, found.late_receivers_error_s), (Some(0.0), Some(0.0)));
    (truth.into_iter().map(|(truth, _)| truth).collect(), found)
}

/// The longest waiting is that of the program, for the same rank, and it is known where, whatever else the machine did.
fn is_late(truth: &[Truth], found: &MessageWaitingSummary, [waiting, late]: [u32; 2], what: &str) {
    let mut truth: Vec<&Truth> = truth.iter().collect();
    truth.sort_by(|one, other| other.3.total_cmp(&one.3));
    let (longest, pair) = (truth[0], &found.pairs[0]);
    let is_clear = truth.get(1).is_none_or(|next| longest.3 > (1.0 + 2.0 * OFF) * next.3 + OFF_S);
    let expected = (longest.0, longest.1, longest.2);
    assert!(!is_clear || (pair.rank, pair.late_rank, pair.late) == expected, "{what} {found:?}");
    let is_it = |pair: &&PairWaiting| {
        (pair.rank, pair.late_rank, pair.late) == (waiting, late, MessageDirection::Received)
    };
    let receiver = found.pairs.iter().find(is_it).unwrap_or_else(|| panic!("{what} {found:?}"));
    assert_eq!(receiver.late_call.function, "MPI_Recv", "{what} {found:?}");
    assert!(receiver.waits.call.is_some() && receiver.late_call.call.is_some(), "{what} {found:?}");
}

/// `program`: its arguments.
fn ran(mpi: Mpi, program: &[&str], settings: &[(&str, &str)]) -> Profiled {
    Profiled::preloaded(mpi, RANKS, &mpi.compiled("pairs", &["-g"]), program, settings)
}

fn pairs_are_found(mpi: Mpi) {
    let run = ran(mpi, &[], &[]);
    let what = format!("{mpi:?}");
    let (truth, found) = checked(&run, MESSAGES, &what);
    is_late(&truth, &found, [0, 1], &what);
    let patterns =
        [("late sender", MessageDirection::Sent), ("late receiver", MessageDirection::Received)];
    let rows = patterns.map(|(pattern, late)| injected(mpi, pattern, late, &truth, &found));
    waits::keep("pairs", mpi.name, &rows);
}

/// Of rank 0 for rank 1.
fn injected(
    mpi: Mpi,
    pattern: &str,
    late: MessageDirection,
    truth: &[Truth],
    found: &MessageWaitingSummary,
) -> InjectedWait {
    let injected = truth.iter().find(|of| (of.0, of.1, of.2) == (0, 1, late)).unwrap();
    let pair = found.pairs.iter().find(|pair| pair.rank == 0 && pair.late == late).unwrap();
    InjectedWait {
        pattern: pattern.into(),
        mpi: mpi.name.into(),
        injected_s: injected.3,
        found_s: pair.waiting_s,
        late_rank: pair.late_rank,
        place: pair.waits.function.clone(),
    }
}

/// Messages that are probed or asked for, from any rank or with any tag, and those of persistent operations.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn a_message_is_known_however_it_is_received() {
    for mpi in each_library() {
        let run = ran(mpi, &["further"], &[]);
        let (truth, found) = checked(&run, FURTHER, &format!("{mpi:?}"));
        let pattern = "late sender, further receives";
        let row = injected(mpi, pattern, MessageDirection::Sent, &truth, &found);
        waits::keep("further", mpi.name, &[row]);
    }
}

/// One request stands for a message that is sent and one that is received.
#[test]
fn both_messages_of_one_request_are_compared() {
    for mpi in each_library().into_iter().filter(|mpi| !LACK_ISENDRECV.contains(&mpi.name)) {
        let run = ran(mpi, &["both"], &[]);
        let (truth, found) = checked(&run, BOTH, &format!("{mpi:?}"));
        let longest = truth.iter().map(|of| of.3).fold(0.0, f64::max);
        assert!(longest > 0.0, "{mpi:?} {truth:?} {found:?}");
    }
}

#[test]
fn waiting_in_messages_is_that_of_its_definition() {
    for mpi in each_library() {
        pairs_are_found(mpi);
    }
}

#[test]
fn ranks_are_those_of_the_world_whatever_the_communicator() {
    for mpi in MPIS {
        let run = ran(mpi, &["reverse"], &[]);
        let what = format!("{mpi:?} in reverse order");
        let (truth, found) = checked(&run, MESSAGES, &what);
        is_late(&truth, &found, [2, 1], &what);
    }
}

#[test]
fn the_report_names_both_lines_and_off_is_off() {
    let profiled = ran(OPENMPI, &[], &[]);
    let text = report(&profiled.directory, &["--waiting"]).stdout;
    // Each line that it names calls the function that it names.
    let source = fs::read_to_string(root().join("tests/programs/pairs.c")).unwrap();
    let table = text.split("Waiting in messages").nth(1).unwrap();
    let named: Vec<(&str, &str)> =
        table.split("  ").filter_map(|cell| cell.trim().split_once(" at pairs.c:")).collect();
    assert!(named.len() >= 4, "{text}");
    for (function, line) in named {
        let line: usize = line.parse().unwrap();
        let code = source.lines().nth(line - 1).unwrap();
        assert!(code.contains(&format!("{function}(")), "{function} {line}: {code}\n{text}");
    }
    let off = ran(MPICH, &[], &[("GYAN_WAITING", "off")]);
    assert!(off.profiles().iter().all(|profile| profile.message_times.is_none()));
}

/// MPICH has one request for all sends that have ended when they are started.
#[test]
fn every_message_of_several_at_a_time_is_compared() {
    for mpi in each_library() {
        // Two sends at a time of rank 1, in each of 40 steps.
        let run = Profiled::run(mpi, RANKS, &["halo_exchange", "60", "40"], &[]).succeeded();
        let found = summary(&run.profiles()).message_waiting.unwrap();
        let numbers = [found.messages, found.paired, found.compared];
        assert_eq!(numbers, [160; 3], "{mpi:?} {found:?}");
    }
}

/// It asks for `MPI_THREAD_MULTIPLE`, and one thread sends and receives.
#[test]
fn of_a_program_in_python_the_lines_are_known() {
    let program = root().join("tests/programs/late.py");
    let source = fs::read_to_string(&program).unwrap();
    let place = |comment: &str| {
        let line = source.lines().position(|line| line.ends_with(&format!("# {comment}"))).unwrap();
        format!("late.py:{}", line + 1)
    };
    for mpi in matrix::two_with_python() {
        let arguments = [&*program.display().to_string()];
        let run =
            Profiled::preloaded(mpi, 2, Path::new("python-mpi4py"), &arguments, &[]).succeeded();
        let truth_s: f64 = run.outcome.stdout.trim().parse().unwrap();
        let found = summary(&run.profiles()).message_waiting.unwrap();
        let off_s = (found.late_senders_s - truth_s).abs();
        assert!(off_s <= OFF * truth_s + OFF_S, "{mpi:?} {truth_s} {found:?}");
        // Where there is a function for large counts, mpi4py calls that.
        let text = report(&run.directory, &["--waiting"]).stdout.replace("_c at ", " at ");
        let of_ranks = format!("MPI_Recv at {}  MPI_Send at {}", place("waits"), place("late"));
        assert!(text.contains(&of_ranks), "{mpi:?} {of_ranks}\n{text}");
    }
}
