//! How what ranks do reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gyan_results::{
    CallPlace, CommunicatorNow, Doing, FrameNow, OperationNow, Peer, RankDoing, RankNow,
};

use crate::input::killed;

use super::{SaidRanks, of_doing};
use crate::symbols::{file_and_line, short_function};
use crate::words::{integer, ranges};

/// What sentences need to know.
pub(super) struct Sentences<'a> {
    pub(super) looked_ms: u64,
    pub(super) size: u32,
    /// The job has ended, so that nobody can do anything about it.
    pub(super) is_over: bool,
    pub(super) places: &'a BTreeMap<CallPlace, String>,
}

impl Sentences<'_> {
    pub(super) fn of_group(&self, group: &[&RankDoing]) -> String {
        let ranks: Vec<u32> = group.iter().map(|rank| rank.rank).collect();
        let who = self.who(&ranks);
        let one = ranks.len() == 1;
        let (verb, own) = (self.are(one), if one { "its" } else { "their" });
        let Some(first) = group.first() else { return who };
        match &first.doing {
            Doing::Moves => {
                let call = self.verb(one, ["calls", "call", "called"]);
                format!("{who} {call} MPI now and then")
            }
            Doing::NotSeen(why) => format!("{who} cannot be seen: {why}"),
            Doing::Gone(last) => {
                let last = last.as_ref().filter(|_| one).map(|now| self.last_seen(now));
                let last = if first.crashed_in.is_empty() {
                    last.unwrap_or_default()
                } else {
                    crashed_in(first)
                };
                let own = if one { "its process" } else { "their processes" };
                let how = first.ended_by.as_ref().map_or_else(
                    || format!("ended without MPI_Finalize: {own} died"),
                    |signal| {
                        format!("ended by {}", killed::signal_in_words(signal, first.ended_from))
                    },
                );
                format!("{who} {how}{last}")
            }
            Doing::Ended => format!("{who} {} called MPI_Finalize", self.have(one)),
            Doing::Still(now) if now.stopped => format!("{who} {verb} {}", self.stopped(now)),
            Doing::Still(now) if now.in_mpi => {
                let nows = || group.iter().filter_map(|rank| of_doing(&rank.doing));
                let peers =
                    nows().all(|other| (other.source, other.dest) == (now.source, now.dest));
                let tags = nows().all(|other| other.tag == now.tag);
                let requests = nows().all(|other| other.operations == now.operations);
                let roots = nows().all(|other| other.root == now.root);
                let numbers = nows().all(|other| other.number == now.number);
                let mut text = format!("{who} {verb} in {}", name(now));
                text += &self.place(now);
                if peers && requests && roots {
                    text += &message(now, tags);
                }
                if numbers && now.number > 0 {
                    let _ = write!(text, " ({own} {} call of it)", ordinal(now.number));
                }
                text += &self.threads(now, one);
                text
            }
            Doing::Still(now) => {
                let last = if now.function.is_some() { self.last_of(now) } else { String::new() };
                format!("{who} {verb} in {own} own code{last}")
            }
        }
    }

    fn threads(&self, now: &RankNow, one: bool) -> String {
        const AT_MOST: usize = 2;
        match now.threads.len() {
            0 => String::new(),
            more if one && more <= AT_MOST => {
                let mut text = String::new();
                for now in &now.threads {
                    let what = if now.in_mpi {
                        format!("in {}{}{}", name(now), self.place(now), message(now, true))
                    } else {
                        format!("in its own code{}", self.last_of(now))
                    };
                    let _ = write!(text, "; another thread of it is {what}");
                }
                text
            }
            more => format!(", with one of {} threads that call MPI", more + 1),
        }
    }

    /// For how long all of them have done it.
    pub(super) fn still_s(&self, group: &[&RankDoing]) -> Option<f64> {
        let since = group.iter().map(|rank| match &rank.doing {
            Doing::Still(now) => Some(now.since_ms),
            _ => None,
        });
        let latest = since.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        Some(self.looked_ms.saturating_sub(latest) as f64 * 1e-3)
    }

    /// `first`: the first of them.
    pub(super) fn gone(&self, gone: &[u32], first: Option<&RankDoing>, waiting: &[u32]) -> String {
        let (one, wait) = (gone.len() == 1, self.waits(waiting.len() == 1));
        let ended = |of: &RankDoing| {
            let signal = killed::signal_in_words(of.ended_by.as_ref()?, of.ended_from);
            Some(format!("ended by {signal}{}", crashed_in(of)))
        };
        let what = first.filter(|_| one).and_then(ended);
        let what = what.unwrap_or_else(|| format!("{} gone", self.are(one)));
        format!(
            "{} {what}, and {} {wait} for that, directly or through others",
            self.who(gone),
            self.who(waiting)
        )
    }

    /// `first`: one that waits, and what it does.
    pub(super) fn finalized(
        &self,
        ended: &[u32],
        waiting: &[u32],
        first: Option<(u32, &RankNow)>,
    ) -> String {
        let one = waiting.len() == 1;
        let first = first.map(|(rank, now)| {
            let who = if one { "it".to_owned() } else { format!("rank {rank}") };
            let is = self.are(true);
            format!(": {who} {is} in {}{}{}", name(now), self.place(now), message(now, true))
        });
        let others = if one { "" } else { ", directly or through others," };
        format!(
            "{} {} called MPI_Finalize, and {} still {}{others} for {}{}",
            self.who(ended),
            self.have(ended.len() == 1),
            self.who(waiting),
            self.waits(one),
            if ended.len() == 1 { "it" } else { "them" },
            first.unwrap_or_default()
        )
    }

    /// `groups`: ranks in the same operation on one communicator.
    pub(super) fn mismatch(&self, groups: &[SaidRanks]) -> String {
        let group = |(ranks, now): &SaidRanks| {
            let root = now.root.map(|root| format!(" with root {root}")).unwrap_or_default();
            let verb = self.are(ranks.len() == 1);
            let own = if ranks.len() == 1 { "its" } else { "their" };
            let number = format!("{own} {} call of it", ordinal(now.number));
            format!(
                "{} {verb} in {}{root}{} ({number})",
                self.who(ranks),
                name(now),
                self.place(now)
            )
        };
        let all: Vec<String> = groups.iter().map(group).collect();
        format!("Different collective operations on {}: {}", communicator(groups), all.join("; "))
    }

    /// `groups`: ranks with the same amount in one operation.
    pub(super) fn amounts(&self, groups: &[SaidRanks]) -> String {
        const AT_MOST: usize = 4;
        let group = |(ranks, now): &SaidRanks| {
            let bytes = integer(now.bytes.unwrap_or(0).into());
            let have = self.have(ranks.len() == 1);
            format!("{} {have} {bytes} B{}", self.who(ranks), self.place(now))
        };
        let mut all: Vec<String> = groups.iter().take(AT_MOST).map(group).collect();
        let more = groups.len().saturating_sub(AT_MOST);
        if more > 0 {
            all.push(format!("{} more amounts on other ranks", integer(more as i128)));
        }
        let function = groups.first().map_or("", |(_, now)| name(now));
        format!("Different amounts in {function} on {}: {}", communicator(groups), all.join("; "))
    }

    /// `steps`: each rank waits for the next, and the last for the first. `all`: how many ranks cannot go on.
    pub(super) fn deadlock(&self, steps: &[(u32, &RankNow)], all: usize) -> String {
        let step = |(at, (rank, now)): (usize, &(u32, &RankNow))| {
            let place = self.place(now);
            let next = steps.get((at + 1) % steps.len()).copied();
            let (function, other) = (name(now), next.map_or(0, |(rank, _)| rank));
            let what = if now.source == Some(Peer::World(other)) {
                let tag = now.tag.map(|tag| format!(" with tag {tag}")).unwrap_or_default();
                let sent = next.map(|(_, next)| self.sent(next, *rank)).unwrap_or_default();
                format!("for a message{tag} from rank {other}{sent}")
            } else if now.requests.is_some() {
                format!("for a request that needs rank {other}")
            } else {
                format!("for rank {other}")
            };
            format!("rank {rank} {} in {function}{place} {what}", self.waits(true))
        };
        let steps: Vec<String> = steps.iter().enumerate().map(step).collect();
        format!(
            "Deadlock: {}. {} of {} ranks {}",
            steps.join("; "),
            integer(all as i128),
            integer(self.size.into()),
            if self.is_over {
                "could not go on any more"
            } else {
                "cannot go on any more; end the job"
            }
        )
    }

    /// How many messages a rank has sent to another one that waits for it.
    fn sent(&self, now: &RankNow, to: u32) -> String {
        let Some(sent) = &now.sent else { return String::new() };
        let have = self.have(true);
        match sent.get(&to) {
            None => format!(", which {have} never sent it a message"),
            Some(1) => format!(", which {have} sent it 1 message"),
            Some(number) => {
                format!(", which {have} sent it {} messages", integer((*number).into()))
            }
        }
    }

    pub(super) fn straggler(
        &self,
        ranks: &[u32],
        first: Option<&RankNow>,
        waiting: usize,
    ) -> String {
        let one = ranks.len() == 1;
        let (verb, own) = (self.are(one), if one { "its" } else { "their" });
        let last = first.filter(|_| one).map(|now| self.last_of(now)).unwrap_or_default();
        let wait = self.waits(waiting == 1);
        let them = if one { "it" } else { "them" };
        let how = match first.filter(|now| now.stopped) {
            Some(now) => format!("{verb} {}", self.stopped(now)),
            None => format!("{verb} in {own} own code{last}"),
        };
        format!(
            "{} {how}; {} rank{} {wait} for {them}, directly or through others",
            self.who(ranks),
            integer(waiting as i128),
            if waiting == 1 { "" } else { "s" }
        )
    }

    fn stopped(&self, now: &RankNow) -> String {
        let place = if now.in_mpi {
            format!(" in {}{}", name(now), self.place(now))
        } else {
            String::new()
        };
        format!("stopped{place}, by a signal or a debugger")
    }

    fn last_of(&self, now: &RankNow) -> String {
        now.function
            .as_ref()
            .map(|_| format!(", last in {}{}", name(now), self.place(now)))
            .unwrap_or_default()
    }

    /// What the keeper saw of a rank before its process ended.
    fn last_seen(&self, now: &RankNow) -> String {
        if now.in_mpi {
            return format!(", last seen in {}{}", name(now), self.place(now));
        }
        format!(", last seen in its own code{}", self.last_of(now).replace(", last in", ", after"))
    }

    /// `forms`: now of one, now of several, and then.
    fn verb(&self, one: bool, forms: [&'static str; 3]) -> &'static str {
        let [singular, plural, past] = forms;
        match (self.is_over, one) {
            (true, _) => past,
            (false, true) => singular,
            (false, false) => plural,
        }
    }

    pub(super) fn are(&self, one: bool) -> &'static str {
        self.verb(one, ["is", "are", if one { "was" } else { "were" }])
    }

    pub(super) fn have(&self, one: bool) -> &'static str {
        self.verb(one, ["has", "have", "had"])
    }

    fn waits(&self, one: bool) -> &'static str {
        self.verb(one, ["waits", "wait", "waited"])
    }

    pub(super) fn who(&self, ranks: &[u32]) -> String {
        match ranks {
            [one] => format!("rank {one}"),
            all if all.len() == self.size as usize => {
                format!("all {} ranks", integer(self.size.into()))
            }
            some => {
                let list = ranges(some);
                if list.len() > 30 {
                    format!(
                        "{} of {} ranks",
                        integer(some.len() as i128),
                        integer(self.size.into())
                    )
                } else {
                    format!("ranks {list}")
                }
            }
        }
    }

    fn place(&self, now: &RankNow) -> String {
        let place = now.from.as_ref().and_then(|from| self.places.get(from));
        place.map(|place| format!(" at {place}")).unwrap_or_default()
    }
}

/// A function on a stack, and its line if that is known.
pub(super) fn named(frame: &FrameNow) -> String {
    match file_and_line(frame.file.as_deref(), frame.line) {
        Some(place) => format!("{} at {place}", short_function(&frame.function)),
        // Where in a file without names it was tells a reader nothing.
        None => short_function(frame.function.split("+0x").next().unwrap_or_default()),
    }
}

/// In which function a rank crashed, and what had called that.
fn crashed_in(of: &RankDoing) -> String {
    const CALLERS_AT_MOST: usize = 2;
    // More calls are not followed.
    const DEPTH_OF_A_FULL_STACK: usize = 200;
    let has_place = |frame: &&FrameNow| frame.line.is_some();
    // What the program called to end itself says no more than the signal.
    let is_abort = of.ended_by.as_deref() == Some("SIGABRT");
    let own = of.crashed_in.iter().rposition(|frame| has_place(&frame));
    let last = own.filter(|_| is_abort).unwrap_or(of.crashed_in.len().saturating_sub(1));
    let mut frames = of.crashed_in.iter().take(last + 1).rev();
    // Of what is in between nothing is known but names.
    let inner = frames.next();
    let callers = frames.skip_while(|frame| own.is_some() && !has_place(frame));
    let Some(inner) = inner else { return String::new() };
    let depth = of.crashed_in.len();
    if depth >= DEPTH_OF_A_FULL_STACK {
        return format!(" in {}, {depth} calls deep at least: its stack is full", named(inner));
    }
    let mut functions: Vec<String> = std::iter::once(inner).chain(callers).map(named).collect();
    // Of a file without names, or of a function that calls itself, one is enough.
    functions.dedup();
    functions.truncate(1 + CALLERS_AT_MOST);
    format!(" in {}", functions.join(", called by "))
}

fn communicator(groups: &[SaidRanks]) -> &'static str {
    let is_world = |now: &RankNow| now.communicator == Some(CommunicatorNow::World);
    if groups.iter().all(|(_, now)| is_world(now)) { "MPI_COMM_WORLD" } else { "one communicator" }
}

/// With whom the call exchanges a message, or on which communicator it is.
fn message(now: &RankNow, tags: bool) -> String {
    let tag = now.tag.filter(|_| tags).map(|tag| format!(" with tag {tag}"));
    let mut text = String::new();
    if let Some(source) = now.source {
        let _ =
            write!(text, " for a message{} from {}", tag.clone().unwrap_or_default(), peer(source));
    }
    if let Some(dest) = now.dest {
        let tag = tag.filter(|_| now.source.is_none()).unwrap_or_default();
        let _ =
            write!(text, "{} to {}{tag}", if now.source.is_some() { "," } else { "" }, peer(dest));
    }
    if let Some(root) = now.root {
        let _ = write!(text, " with root {root}");
    }
    if let Some(requests) = now.requests {
        let plural = if requests == 1 { "" } else { "s" };
        let _ = write!(text, " for {} request{plural}", integer(requests.into()));
        text += &operations(now);
    }
    if let Some(CommunicatorNow::Other(size, _)) = now.communicator {
        let _ = write!(text, " on a communicator of {} ranks", integer(size.into()));
    }
    text
}

fn peer(peer: Peer) -> String {
    match peer {
        Peer::World(rank) => format!("rank {rank}"),
        Peer::InCommunicator(rank) => format!("rank {rank} of its communicator"),
        Peer::Any => "any rank".into(),
        Peer::Nobody => "no rank".into(),
    }
}

/// What the requests of a call stand for.
fn operations(now: &RankNow) -> String {
    const AT_MOST: usize = 3;
    let of = |operation: &OperationNow| {
        let tag = operation.tag.map(|tag| format!(" with tag {tag}")).unwrap_or_default();
        match operation.peer {
            Some(other) if operation.function.contains("recv") => {
                format!("a message{tag} from {}", peer(other))
            }
            Some(other) => format!("a message{tag} to {}", peer(other)),
            None => operation.function.clone(),
        }
    };
    let mut parts: Vec<String> = now.operations.iter().take(AT_MOST).map(of).collect();
    let more = now.operations.len().saturating_sub(AT_MOST);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if now.unknown_requests > 0 {
        parts.push(format!("{} whose operation is not known", now.unknown_requests));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn name(now: &RankNow) -> &str {
    now.function.as_deref().unwrap_or("a call of MPI")
}

fn ordinal(number: u64) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{}{suffix}", integer(number.into()))
}
