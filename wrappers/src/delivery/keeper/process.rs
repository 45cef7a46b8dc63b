//! The keeper: a process that waits for file systems so that no rank has to.
//!
//! A thread for each rank receives its messages and writes its profile. Another thread writes the live file of
//! the host: now and then, when a rank has ended without a profile, and when the keeper is told to end (Slurm
//! sends SIGTERM before it kills). The keeper ends when no rank is left and everything is written. If a file
//! system hangs, so do threads of the keeper, but the ranks continue.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{
    LiveEntry, LiveFile, Whose, collected, is_live_file_name, live_file_name, sort_by, write_live,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SocketFlags;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, geteuid};

use super::energy::{self, EnergyMemory};
use super::messages::{FromKeeper, LookAtRank, PathAsBytes, Socket, ToKeeper, is_ready};
use super::metrics::{self, MetricsFiles, RankMetrics};
use super::ranks::{Rank, RankStage, now_ms};
use super::records;
use super::site;
use super::spawn::peer_of;
use super::status::status_of;
use super::timeline;
use crate::delivery::job;
use crate::delivery::output::{self, RunPlace, Written};
use crate::delivery::reduce::MergedProfiles;
use crate::sys::cgroups;
use crate::sys::file_system;
use crate::sys::locks::held;
use crate::sys::sigmask;

pub(crate) const NAME: &str = "gyan-keeper";
/// A keeper that no rank contacts ends after this time.
const ALONE: Duration = Duration::from_secs(60);
/// Limits of the live file: how often it is written to a local disk and to one served by others, and how many
/// bytes per second.
const LOCALLY: (Duration, f64) = (Duration::from_secs(1), 2e6);
const REMOTELY: (Duration, f64) = (Duration::from_secs(10), 20e3);
/// The older a run is, the less is lost with what came last: a part of its age between two live files, up to a limit.
const PARTS_OF_AGE: u32 = 100;
const APART_AT_MOST: Duration = Duration::from_secs(60);
/// The time limit for sending an answer that nobody may be waiting for.
const ANSWERS: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// How long the keeper stays for a rank of which it has everything.
const AFTER_DONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// The time limit for removing metrics at the end.
const REMOVING: Duration = Duration::from_secs(5);
/// Between two looks at what ranks do.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// A file with nothing new is written again after this time: it says that the ranks were still there.
const AGAIN: Duration = Duration::from_secs(60);
/// Of a thread.
const STACK: usize = 512 << 10;

/// `stack`: the number of words, then the address of each (System V ABI, 3.4.1). `look`: how to see what ranks are doing.
pub(crate) fn main(stack: *const usize, look: &'static dyn LookAtRank) -> ! {
    // SAFETY: the loader left the words of the command line there.
    let count = unsafe { stack.read() };
    let words = (1..count).map(|at| {
        // SAFETY: there are this many.
        let place = unsafe { stack.add(1 + at) };
        // SAFETY: as above, the address of a string.
        let word = unsafe { place.cast::<*const c_char>().read() };
        // SAFETY: it ends with 0, and stays.
        unsafe { CStr::from_ptr(word) }
    });
    let words: Vec<&CStr> = words.collect();
    let listening = match words[..] {
        [number, _] => number.to_str().ok().and_then(|number| number.parse::<RawFd>().ok()),
        _ => None,
    };
    let Some(listening) = listening.filter(|number| *number > 2) else {
        let text = concat!(
            "libgyan.so of gyan ",
            env!("CARGO_PKG_VERSION"),
            ", a profiler for MPI programs: LD_PRELOAD=libgyan.so mpirun ...\n"
        );
        let _ = rustix::io::write(rustix::stdio::stdout(), text.as_bytes());
        end(0);
    };
    leave_the_rank(listening);
    // SAFETY: the rank that started this process left it open for it.
    let listening = unsafe { OwnedFd::from_raw_fd(listening) };
    serve_all(&listening, look);
    end(0)
}

/// Ends the process at once: none of a C program's exit code may run.
fn end(code: c_int) -> ! {
    // SAFETY: _exit(2).
    unsafe { libc::_exit(code) }
}

/// Keeps nothing of the rank's except the socket.
fn leave_the_rank(listening: RawFd) {
    let name = c"gyan-keeper";
    // SAFETY: prctl(2) with a string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    close_all_but(listening);
    // Anyone who waits for the end of the program's output must not wait for the keeper.
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for number in 0..=2 {
            // SAFETY: dup2(2) of an open descriptor.
            unsafe { libc::dup2(nothing.as_raw_fd(), number) };
        }
    }
    let _ = rustix::process::chdir("/");
    // The rank may be bound to a processor; writing files is not part of the program. SAFETY: a set
    // is plain bytes.
    let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: all bits of a set that lives.
    unsafe { ptr::from_mut(&mut all).write_bytes(0xff, 1) };
    // SAFETY: sched_setaffinity(2) of this process; processors that it may not use are left out.
    unsafe { libc::sched_setaffinity(0, size_of_val(&all), &raw const all) };
    // When it wakes, a rank that runs keeps its processor (sched(7)). It has no real-time priority, either, which a job may have.
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: sched_setscheduler(2) of this process.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    for resource in [Resource::Nofile, Resource::Fsize, Resource::As] {
        let limit = rustix::process::getrlimit(resource);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let _ = rustix::process::setrlimit(resource, raised);
    }
}

/// Closes what is neither a standard stream nor `kept`.
fn close_all_but(kept: RawFd) {
    let close_range = |first: RawFd, last: RawFd| {
        // SAFETY: close_range(2); nothing in this process has any of them: they are the rank's.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    };
    if close_range(3, kept - 1) && close_range(kept + 1, RawFd::MAX) {
        return;
    }
    // The kernel is older than 5.9, or does not allow it.
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|&number| number > 2 && number != kept) {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}

/// Everything that the threads share.
struct KeeperProcess {
    host: String,
    state: Mutex<KeeperState>,
    changed: Condvar,
    /// Locked while a live file is written, which may take forever.
    files: Mutex<BTreeMap<RunPlace, LiveFileHere>>,
    /// Locked while metrics are written, which may take forever, too.
    metrics: Mutex<MetricsFiles>,
    /// For the thread that writes them: only if somebody wants them.
    begins_metrics: Once,
    /// Of the first rank of the host, if it counts energy by counters that go around.
    energy: Mutex<Option<EnergyMemory>>,
    /// For the thread that reads these.
    begins_energy: Once,
}

#[derive(Default)]
struct KeeperState {
    ranks: Vec<Arc<Rank>>,
    /// Ranks that may still send messages, or whose profiles are being written.
    connections: usize,
    /// Whether there ever was a rank.
    begun: bool,
    /// Whether to write the live files at once.
    news: bool,
    /// How many processes the system has killed for lack of memory, by the file that counts them, as far as it is known which.
    memory_kills: BTreeMap<PathBuf, u64>,
}

impl KeeperState {
    fn add(&mut self, rank: &Arc<Rank>) {
        let file = &rank.memory_kills;
        if !self.memory_kills.contains_key(file) {
            let kills = cgroups::memory_kills(file).unwrap_or(u64::MAX);
            self.memory_kills.insert(file.clone(), kills);
        }
        self.ranks.push(Arc::clone(rank));
    }

    /// Whether the system has killed one process more than is known, which then is the one that has just ended.
    fn is_memory_kill(&mut self, file: &Path) -> bool {
        let now = cgroups::memory_kills(file).unwrap_or(0);
        let Some(known) = self.memory_kills.get_mut(file).filter(|known| **known < now) else {
            return false;
        };
        *known += 1;
        true
    }

    /// Where live files are, and of which job.
    fn places(&self) -> BTreeMap<RunPlace, String> {
        let hellos = self.ranks.iter().map(|rank| &rank.hello);
        collected(hellos.filter_map(|hello| Some((hello.live.clone()?, hello.job.clone()))))
    }
}

/// The live file of this host in one place.
struct LiveFileHere {
    name: String,
    /// Its directory, once it exists.
    path: Option<PathBuf>,
    /// Files that earlier jobs left in that directory.
    earlier: Vec<PathBuf>,
    /// What was written last, as its length and checksum: a program that is idle for hours has nothing new.
    written: Option<(usize, u32)>,
    length: u64,
    /// When that was.
    at: Instant,
}

/// Accepts ranks, until there are none left.
fn serve_all(listening: &OwnedFd, look: &'static dyn LookAtRank) {
    let keeper = Arc::new(KeeperProcess {
        host: job::host(),
        state: Mutex::default(),
        changed: Condvar::new(),
        files: Mutex::default(),
        metrics: Mutex::default(),
        begins_metrics: Once::new(),
        energy: Mutex::default(),
        begins_energy: Once::new(),
    });
    let began = Instant::now();
    let (writer, listener) = (Arc::clone(&keeper), rustix::io::dup(listening));
    let Ok(listener) = listener else { return };
    let wrote = start(move || writer.write_now_and_then(&listener, began));
    let told = Arc::clone(&keeper);
    if !wrote || !start(move || told.listen_to_signals()) {
        return;
    }
    let looks = Arc::clone(&keeper);
    // Without it the rest works.
    _ = start(move || looks.look_now_and_then(look));
    loop {
        let ends = &mut [PollFd::new(listening, PollFlags::IN)];
        let _ = rustix::event::poll(ends, None);
        let Ok(socket) = rustix::net::accept_with(listening, SocketFlags::CLOEXEC) else {
            // No descriptor is free: waiting ranks are accepted later.
            thread::sleep(BETWEEN_TRIES);
            continue;
        };
        let other = peer_of(&socket);
        let Some(other) = other.ok().filter(|other| other.uid == geteuid().as_raw()) else {
            continue;
        };
        let mut state = held(&keeper.state);
        (state.begun, state.connections) = (true, state.connections + 1);
        drop(state);
        let served = Arc::clone(&keeper);
        if !start(move || served.serve(&Socket(socket), Pid::from_raw(other.pid))) {
            keeper.lets_go();
        }
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().stack_size(STACK).spawn(work).is_ok()
}

impl KeeperProcess {
    /// Serves one rank until its end.
    /// `pid`: none for a process that is not visible from here, in a namespace of its own.
    fn serve(self: &Arc<Self>, socket: &Socket, pid: Option<Pid>) {
        // A forked copy of the rank has its socket, too: only the end of the process counts.
        let process =
            pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        let other = process.as_ref().map(AsFd::as_fd);
        if let Ok(Some((ToKeeper::Hello(hello), file))) = socket.receive::<ToKeeper>(other, None) {
            let rank = Arc::new(Rank::new(*hello, pid, file));
            held(&self.state).add(&rank);
            if rank.hello.metrics.is_some() {
                let writer = Arc::clone(self);
                // Without it the rest works.
                self.begins_metrics
                    .call_once(|| _ = start(move || writer.write_metrics_now_and_then()));
            }
            self.changed.notify_all();
            while let Ok(Some((request, file))) = socket.receive::<ToKeeper>(other, None) {
                if self.answer(socket, other, &rank, request, file).is_none() {
                    break;
                }
            }
            if *held(&rank.stage) == RankStage::Here {
                let ended_ms = now_ms();
                let status =
                    process.as_ref().zip(pid).and_then(|(process, pid)| status_of(process, pid));
                self.note_end(&rank, ended_ms, status);
            } else if let Some(process) = &process {
                // It is ending MPI, and may want the processor that the end of the keeper takes.
                let ends = &mut [PollFd::new(process, PollFlags::IN)];
                _ = rustix::event::poll(ends, Some(&AFTER_DONE));
            }
        }
        self.lets_go();
    }

    /// The process of a rank has ended without a profile. `status`: how, as wait(2) has it, if that is known.
    fn note_end(&self, rank: &Rank, ended_ms: u64, status: Option<c_int>) {
        rank.note_crash();
        _ = rank.write_timeline();
        let may_be = status.is_none_or(|status| libc::WTERMSIG(status) == libc::SIGKILL);
        let out_of_memory = may_be && held(&self.state).is_memory_kill(&rank.memory_kills);
        rank.out_of_memory.store(out_of_memory, Ordering::Relaxed);
        *held(&rank.stage) = RankStage::Gone(ended_ms, status);
    }

    /// A rank is no longer served.
    fn lets_go(&self) {
        let mut state = held(&self.state);
        state.connections = state.connections.saturating_sub(1);
        state.news = true;
        self.changed.notify_all();
    }

    /// Does what a rank asks for; none when it can no longer ask for anything.
    fn answer(
        self: &Arc<Self>,
        socket: &Socket,
        other: Option<std::os::fd::BorrowedFd>,
        rank: &Rank,
        request: ToKeeper,
        file: Option<File>,
    ) -> Option<()> {
        let mut profile = None;
        let answer = match request {
            ToKeeper::Hello(_) => return None,
            ToKeeper::Records => {
                *held(&rank.records) = file;
                return Some(());
            }
            ToKeeper::Crash => {
                *held(&rank.crash) = file;
                return Some(());
            }
            ToKeeper::Timeline => {
                *held(&rank.timeline) = file;
                return Some(());
            }
            ToKeeper::TimelineHeader => {
                *held(&rank.timeline_header) = file;
                return Some(());
            }
            ToKeeper::WriteTimeline { place, directory } => {
                let text = socket.receive_text(other, None).ok()??;
                let directory = directory.map(|directory| directory.0);
                answer_of(write_timeline(rank, &text, &place, directory))
            }
            ToKeeper::Record => {
                let bytes = socket.receive_text(other, None).ok()??;
                let profiles = postcard::from_bytes::<MergedProfiles>(&bytes).ok();
                let summary = profiles.and_then(MergedProfiles::into_summary);
                // Nobody is left who could be told what fails.
                if let (Some(summary), Some(record)) = (summary, &rank.hello.record) {
                    let _ = record.clone().write(summary);
                }
                return Some(());
            }
            ToKeeper::Energy => {
                *held(&self.energy) = file.map(EnergyMemory);
                self.begin_energy();
                return Some(());
            }
            ToKeeper::Done => {
                self.is_done(rank);
                self.metrics_without(rank);
                return Some(());
            }
            ToKeeper::Elsewhere(file) => {
                // It has been written to its place by now.
                if *held(&rank.stage) == RankStage::Done {
                    let _ = fs::remove_file(&file.0);
                    let _ = file.0.parent().map(fs::remove_dir);
                }
                return Some(());
            }
            ToKeeper::Profile { place, ends } => {
                let text = socket.receive_text(other, None).ok()??;
                let written = write_profile(&place, &text);
                if written.is_ok() {
                    self.forget_earlier(&place, &rank.hello.job);
                    if ends {
                        self.is_done(rank);
                    }
                    profile = Some(text);
                }
                answer_of(written)
            }
            ToKeeper::Summary { place, directory } => {
                let text = socket.receive_text(other, None).ok()??;
                let directory = directory.0;
                let written = output::write_summary(&place, &directory, &text);
                answer_of(written.map(|()| Written { directory, why: None }))
            }
        };
        // A rank that no longer waits may still say where it left its profile.
        let _ = socket.send(&answer, None, Instant::now() + ANSWERS);
        if let Some(text) = profile.filter(|_| rank.hello.metrics.is_some()) {
            rank.figures_of(&text);
            self.metrics_without(rank);
        }
        Some(())
    }

    /// Begins to note how far the counters of energy come.
    fn begin_energy(self: &Arc<Self>) {
        self.begins_energy.call_once(|| {
            let keeper = Arc::clone(self);
            // Without it only a long run counts too little.
            _ = start(move || {
                loop {
                    if let Some(memory) = &*held(&keeper.energy) {
                        _ = memory.note(Path::new("/"));
                    }
                    thread::sleep(energy::APART);
                }
            });
        });
    }

    /// Once a rank needs none: nothing of the last one stays behind.
    fn metrics_without(&self, rank: &Rank) {
        let is_wanted = |rank: &Arc<Rank>| {
            rank.hello.metrics.is_some() && *held(&rank.stage) == RankStage::Here
        };
        if rank.hello.metrics.is_some() && !held(&self.state).ranks.iter().any(is_wanted) {
            held(&self.metrics).remove();
        }
    }

    fn write_metrics_now_and_then(&self) {
        let mut apart = metrics::FIRST;
        loop {
            thread::sleep(apart);
            apart = metrics::APART;
            let mut files = held(&self.metrics);
            let ranks = held(&self.state).ranks.clone();
            let ranks: Vec<RankMetrics> = ranks.iter().filter_map(|rank| rank.metrics()).collect();
            files.write(&self.host, &ranks);
        }
    }

    /// Removes them, unless that takes too long, and ends.
    fn end_with_metrics(&self) -> ! {
        let until = Instant::now() + REMOVING;
        while Instant::now() < until {
            if let Ok(mut files) = self.metrics.try_lock() {
                files.remove();
                // None is written any more.
                end(0);
            }
            thread::sleep(BETWEEN_TRIES);
        }
        end(0)
    }

    /// The live file has nothing about a rank with a profile. After the last one it is removed, before that
    /// rank is told that everything is written.
    fn is_done(&self, rank: &Rank) {
        *held(&rank.stage) = RankStage::Done;
        *held(&rank.records) = None;
        if let Some(place) = &rank.hello.live
            && self.ranks_in(place).is_empty()
        {
            self.write_live(place, false);
        }
    }

    /// The ranks without a profile whose live file is in a place.
    fn ranks_in(&self, place: &RunPlace) -> Vec<Arc<Rank>> {
        let state = held(&self.state);
        let here = state.ranks.iter().filter(|rank| rank.hello.live.as_ref() == Some(place));
        here.filter(|rank| *held(&rank.stage) != RankStage::Done).map(Arc::clone).collect()
    }

    /// Writes the live file in a place, or removes it when it would be empty. `is_news`: also if it has nothing new but
    /// that the ranks are still there. Returns its length.
    fn write_live(&self, place: &RunPlace, is_news: bool) -> usize {
        let mut files = held(&self.files);
        let ranks = self.ranks_in(place);
        let Some(job) = ranks.first().map(|rank| rank.hello.job.clone()) else {
            if let Some(live) = files.get_mut(place) {
                live.remove();
            }
            return 0;
        };
        let live = self.live_in(&mut files, place, &job);
        let texts = ranks.iter().filter_map(|rank| {
            let records = held(&rank.records);
            let text = records::latest(records.as_ref()?).ok()??;
            let (gone, seen_ms, status) = match *held(&rank.stage) {
                RankStage::Gone(ended_ms, status) => (true, Some(ended_ms), status),
                _ => (false, None, None),
            };
            let now = held(&rank.seen).told(gone);
            Some(LiveEntry {
                rank: rank.hello.rank,
                gone,
                seen_ms,
                status,
                now,
                crash: rank.crashed.get().cloned(),
                out_of_memory: rank.out_of_memory.load(Ordering::Relaxed),
                text,
            })
        });
        let mut ranks: Vec<LiveEntry> = texts.collect();
        sort_by(&mut ranks, |one, other| one.rank.cmp(&other.rank));
        let mut text = Vec::new();
        if write_live(&mut text, &job, &self.host, &ranks).is_err() || ranks.is_empty() {
            return text.len();
        }
        let about = Some((text.len(), crc32fast::hash(&text)));
        // Somebody may have cut or removed it.
        let is_there = live
            .path
            .as_ref()
            .is_some_and(|path| path.metadata().is_ok_and(|file| file.len() == live.length));
        if live.written == about && is_there && !is_news && live.at.elapsed() < AGAIN {
            return text.len();
        }
        for rank in ranks.iter_mut().filter(|rank| !rank.gone) {
            rank.seen_ms = Some(now_ms());
        }
        text.clear();
        if write_live(&mut text, &job, &self.host, &ranks).is_ok()
            && let Ok(directory) = output::write_live(place, &job, &live.name, &text)
        {
            (live.written, live.length, live.at) = (about, text.len() as u64, Instant::now());
            live.path = Some(directory.join(&live.name));
            live.forget_earlier();
        }
        text.len()
    }

    /// Files that earlier jobs left are removed once a profile of this job is there.
    fn forget_earlier(&self, place: &RunPlace, job: &str) {
        self.live_in(&mut held(&self.files), place, job).forget_earlier();
    }

    /// The live file in a place, for the ranks of a job. The first time, lists what earlier jobs left there.
    fn live_in<'a>(
        &self,
        files: &'a mut BTreeMap<RunPlace, LiveFileHere>,
        place: &RunPlace,
        job: &str,
    ) -> &'a mut LiveFileHere {
        files.entry(place.clone()).or_insert_with(|| LiveFileHere::in_(place, job, &self.host))
    }

    /// Writes the live files, until nothing more needs writing.
    fn write_now_and_then(&self, listening: &OwnedFd, began: Instant) {
        let mut due = began + LOCALLY.0;
        loop {
            let mut state = held(&self.state);
            let mut places = BTreeMap::new();
            while !state.news && Instant::now() < due {
                if places != state.places() {
                    places = state.places();
                    drop(state);
                    for (place, job) in &places {
                        // While the directory has few files.
                        self.live_in(&mut held(&self.files), place, job);
                        due = due.max(began + rate_in(place).0);
                    }
                    state = held(&self.state);
                    continue;
                }
                let left = due.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(state, left);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let is_news = mem::take(&mut state.news);
            let places = state.places();
            drop(state);
            let mut apart = LOCALLY.0.max((began.elapsed() / PARTS_OF_AGE).min(APART_AT_MOST));
            for place in places.keys() {
                let (least, rate) = rate_in(place);
                let bytes = self.write_live(place, is_news);
                apart = apart.max(least).max(Duration::from_secs_f64(bytes as f64 / rate));
            }
            due = Instant::now() + apart;
            let state = held(&self.state);
            let is_over =
                state.connections == 0 && !state.news && !is_ready(listening, PollFlags::IN);
            if is_over && (state.begun || began.elapsed() > ALONE) {
                let ranks = state.ranks.clone();
                drop(state);
                if let Some((record, summary)) = site::left_by(&ranks) {
                    let _ = record.write(summary);
                }
                self.end_with_metrics();
            }
        }
    }

    /// Looks at what the ranks do, and has it written when one has not moved for a while, or moves again.
    fn look_now_and_then(&self, look: &dyn LookAtRank) {
        let mut due = Instant::now();
        let mut changed: BTreeSet<RunPlace> = BTreeSet::new();
        loop {
            thread::sleep(BETWEEN_LOOKS);
            let ranks = held(&self.state).ranks.clone();
            let here = ranks.iter().filter(|rank| *held(&rank.stage) == RankStage::Here);
            let news = here.filter(|rank| rank.look(look));
            changed.extend(news.filter_map(|rank| rank.hello.live.clone()));
            let apart = changed.iter().map(|place| rate_in(place).0).max();
            if let Some(apart) = apart.filter(|_| due <= Instant::now()) {
                changed.clear();
                due = Instant::now() + apart;
                held(&self.state).news = true;
                self.changed.notify_all();
            }
        }
    }

    /// Any signal that would end the process means that time is short.
    fn listen_to_signals(&self) {
        let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];
        let Some(signals) = sigmask::set_of(&signals) else { return };
        loop {
            let mut signal: c_int = 0;
            // SAFETY: sigwait(3) for signals that all threads have blocked since the process began.
            unsafe { libc::sigwait(&raw const signals, &raw mut signal) };
            held(&self.state).news = true;
            self.changed.notify_all();
        }
    }
}

impl LiveFileHere {
    /// In a place, for the ranks of a job on a host.
    fn in_(place: &RunPlace, job: &str, host: &str) -> LiveFileHere {
        let entries = fs::read_dir(&place.directory).into_iter().flatten().flatten();
        let lives =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(is_live_file_name));
        let is_earlier = |path: &PathBuf| LiveFile::open(path).is_ok_and(|live| live.job != job);
        let earlier = lives.map(|entry| entry.path()).filter(is_earlier).collect();
        // What tells it from those of other hosts with the same name.
        let number = u32::try_from(output::random() >> 32).unwrap_or_default();
        let name = live_file_name(host, number);
        LiveFileHere { name, path: None, earlier, written: None, length: 0, at: Instant::now() }
    }

    fn forget_earlier(&mut self) {
        for path in self.earlier.drain(..) {
            let _ = fs::remove_file(path);
        }
    }

    fn remove(&mut self) {
        self.written = None;
        let Some(path) = self.path.take() else { return };
        let _ = fs::remove_file(&path);
        // With `GYAN_LIVE` it is a directory that contains nothing else.
        let _ = path.parent().map(fs::remove_dir);
    }
}

/// How often a live file is written in a place, and how many bytes per second.
fn rate_in(place: &RunPlace) -> (Duration, f64) {
    if file_system::is_local(&place.directory) { LOCALLY } else { REMOTELY }
}

fn write_profile(place: &RunPlace, text: &[u8]) -> io::Result<Written> {
    let profile = Whose::parse(text).map_err(io::Error::other)?;
    output::write(place, &profile, text)
}

fn write_timeline(
    rank: &Rank,
    header: &[u8],
    place: &RunPlace,
    directory: Option<PathBuf>,
) -> io::Result<Written> {
    let memory = held(&rank.timeline).take().ok_or(io::ErrorKind::NotFound)?;
    let header = serde_json::from_slice(header)?;
    timeline::write(&memory, &header, place, directory.as_deref())?;
    Ok(Written { directory: directory.unwrap_or_default(), why: None })
}

fn answer_of(written: io::Result<Written>) -> FromKeeper {
    match written {
        Ok(Written { directory, why }) => {
            FromKeeper::Written { directory: PathAsBytes(directory), why }
        }
        Err(error) => FromKeeper::Failed { errno: error.raw_os_error(), text: error.to_string() },
    }
}
