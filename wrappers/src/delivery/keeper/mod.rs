//! The keeper stands between ranks and file systems: one process per host, which writes what its ranks know and
//! their final profiles.
//!
//! A rank never waits for a file system while the program runs, and for the keeper no longer than
//! `GYAN_WRITE_TIMEOUT`. Without a keeper (`GYAN_KEEPER=off`, or it cannot be started) the rank writes its
//! profile itself, and nothing is known of it before.

#[allow(unsafe_code)]
mod crash;
mod energy;
mod messages;
mod metrics;
#[allow(unsafe_code)]
mod process;
mod ranks;
#[allow(unsafe_code)]
mod records;
mod site;
#[allow(unsafe_code)]
mod spawn;
#[allow(unsafe_code)]
mod status;
#[allow(unsafe_code)]
mod timeline;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gyan_results::{Overhead, RankProfile, Summary, rank_file_name, write_rank};

use crate::delivery::job::Job;
use crate::delivery::output::{self, RunPlace, Written};
use crate::delivery::reduce::MergedProfiles;
use crate::mpi::libraries::crash_handlers;
use crate::sys::sigmask;
use crash::CrashMemory;
pub(crate) use energy::{APART as ENERGY_APART, EnergyMemory};
use messages::{FromKeeper, Hello, PathAsBytes, Socket, ToKeeper};
pub(crate) use messages::{LookAtRank, Statics};
use metrics::MetricsPlace;
pub(crate) use process::main;
use records::Records;
pub(crate) use timeline::TimelineMemory;

/// The time limit for telling the keeper something that it need not answer.
const TELLING: Duration = Duration::from_secs(1);

/// The keeper, for one rank.
pub(crate) struct Keeper {
    /// None without a keeper.
    socket: Option<Socket>,
    /// Whether to use one.
    wanted: bool,
    hello: Hello,
    /// What identifies the keeper to others.
    directory: PathBuf,
    records: Option<Records>,
    /// None while crashes are not noted.
    crash: Option<CrashMemory>,
    /// None while calls are not recorded.
    timeline: Option<TimelineMemory>,
    /// None while no counter of energy can go around.
    energy: Option<EnergyMemory>,
    timeout: Duration,
    /// Alternatives for a profile that cannot be written to its place: the first that works.
    elsewhere: Vec<Elsewhere>,
}

/// A place on this machine.
struct Elsewhere {
    place: RunPlace,
    /// It is on a different device from the run directory.
    is_apart: bool,
}

/// A profile that is not in its place.
pub(crate) struct NotWritten {
    pub(crate) error: io::Error,
    /// The file in which it is instead.
    pub(crate) elsewhere: Option<PathBuf>,
}

impl Keeper {
    /// For a rank that is about to run. `wanted`: whether to use a separate process; `notes_crashes`: whether it is told where
    /// the rank crashes.
    pub(crate) fn begin(
        job: &Job,
        rank: u32,
        statics: Option<Statics>,
        wanted: bool,
        notes_crashes: bool,
        timeline: Option<TimelineMemory>,
        timeout: Duration,
    ) -> Keeper {
        let metrics = job.metrics.as_ref().map(|directory| MetricsPlace {
            directory: PathAsBytes(directory.clone()),
            program: job.program.clone(),
        });
        let (id, live) = (job.id.clone(), job.live.clone());
        let hello = Hello { rank, job: id, live, statics, metrics, record: job.record.clone() };
        let directory = job.place.directory.clone();
        // A spool is not looked at: its file system may hang.
        let elsewhere = job.elsewhere.iter().map(|place| Elsewhere {
            place: place.clone(),
            is_apart: place.is_local() && place.device() != job.place.device(),
        });
        let elsewhere = elsewhere.collect();
        let (socket, records, crash) = (None, None, None);
        let mut keeper = Keeper {
            socket,
            wanted,
            hello,
            directory,
            records,
            crash,
            timeline,
            energy: None,
            timeout,
            elsewhere,
        };
        keeper.reach();
        if notes_crashes && keeper.keeps() {
            // Without it the rest works.
            keeper.crash = CrashMemory::begin(crash_handlers::goes_before).ok();
            keeper.send_crash();
        }
        keeper
    }

    /// The memory of its timeline, for the keeper that comes after it.
    pub(crate) fn take_timeline(&mut self) -> Option<TimelineMemory> {
        self.timeline.take()
    }

    /// Whether what is known is kept while the program runs.
    pub(crate) fn keeps(&self) -> bool {
        let Hello { live, metrics, record, .. } = &self.hello;
        self.socket.is_some() && (live.is_some() || metrics.is_some() || record.is_some())
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.is_closed())
    }

    /// Why there is no keeper, where the user cannot know.
    pub(crate) fn why_none(&self) -> Option<&'static str> {
        (self.wanted && self.socket.is_none() && spawn::takes_orphans()).then_some(
            "no keeper was started, as this process would have become its parent (it is PID 1 of a container, or a \
             subreaper): nothing is known of a run that is killed",
        )
    }

    /// Connects to the keeper, which is started if necessary. Without one the rank continues alone.
    fn reach(&mut self) {
        self.socket = None;
        if !self.wanted {
            return;
        }
        let Ok(socket) = spawn::reach(&self.hello.job, &self.directory) else { return };
        let records = self.records.as_ref().map(Records::file);
        let request = ToKeeper::Hello(Box::new(self.hello.clone()));
        if socket.send(&request, records, Instant::now() + TELLING).is_ok() {
            self.socket = Some(socket);
            self.send_crash();
            self.send_timeline();
            self.send_energy();
        }
    }

    /// The keeper gets the memory in which a crash is noted.
    fn send_crash(&self) {
        if let (Some(socket), Some(crash)) = (&self.socket, &self.crash) {
            let _ = socket.send(&ToKeeper::Crash, Some(crash.file()), Instant::now() + TELLING);
        }
    }

    /// Keeps a profile, replacing the previous one, in case the process is killed.
    pub(crate) fn keep(&mut self, profile: &RankProfile) -> io::Result<()> {
        if !self.keeps() {
            return Ok(());
        }
        let text = serde_json::to_vec(profile)?;
        // A keeper that was killed is replaced: a record that nobody reads protects nothing.
        if self.socket.as_ref().is_some_and(Socket::is_closed) {
            self.reach();
            if self.socket.is_none() {
                return Err(io::Error::other("the keeper is gone, and no other can be started"));
            }
        }
        if self.records.as_mut().is_some_and(|records| records.write(&text)) {
            return Ok(());
        }
        // A limit on the size of files applies to memory files, too.
        let records = sigmask::without_signals(|| Records::begin(&text))?;
        if let Some(socket) = &self.socket {
            socket.send(&ToKeeper::Records, Some(records.file()), Instant::now() + TELLING)?;
        }
        self.records = Some(records);
        Ok(())
    }

    /// Writes the profile. `measure` fills in the overhead after everything else is written; `ends`: nothing
    /// comes after it.
    pub(crate) fn write(
        &mut self,
        place: &RunPlace,
        profile: &mut RankProfile,
        ends: bool,
        measure: impl FnOnce(&mut Overhead),
    ) -> Result<Written, NotWritten> {
        let nowhere = |error| NotWritten { error, elsewhere: None };
        let mut text = Vec::new();
        write_rank(&mut text, profile, measure).map_err(nowhere)?;
        let request = ToKeeper::Profile { place: place.clone(), ends };
        let written = match self.ask(&request, &text) {
            None => output::write(place, &(&*profile).into(), &text),
            Some(answer) => answer,
        };
        written.map_err(|error| {
            let elsewhere = self.write_elsewhere(profile, &text, &error);
            NotWritten { error, elsewhere }
        })
    }

    /// Writes the summary next to the profile in `directory`.
    pub(crate) fn write_summary(
        &mut self,
        place: &RunPlace,
        directory: &Path,
        summary: &Summary,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        gyan_results::write_summary(&mut text, summary)?;
        let request = ToKeeper::Summary {
            place: place.clone(),
            directory: PathAsBytes(directory.to_owned()),
        };
        match self.ask(&request, &text) {
            None => output::write_summary(place, directory, &text),
            Some(answer) => answer.map(drop),
        }
    }

    /// Has the record of the site written, and does not wait for that.
    pub(crate) fn record(&self, profiles: &MergedProfiles) {
        let Some(socket) = &self.socket else { return };
        let Ok(bytes) = postcard::to_allocvec(profiles) else { return };
        let until = Instant::now() + TELLING;
        // A job of which the site gets no record has lost nothing.
        let _ = socket
            .send(&ToKeeper::Record, None, until)
            .and_then(|()| socket.send_text(&bytes, until));
    }

    /// Has the keeper note in `memory` how far the counters of energy come.
    pub(crate) fn note_energy(&mut self, memory: EnergyMemory) {
        self.energy = Some(memory);
        self.send_energy();
    }

    fn send_energy(&self) {
        if let (Some(socket), Some(EnergyMemory(file))) = (&self.socket, &self.energy) {
            let _ = socket.send(&ToKeeper::Energy, Some(file.as_fd()), Instant::now() + TELLING);
        }
    }

    /// The rank no longer needs the keeper: its profile is written, or will not be.
    pub(crate) fn end(&mut self) {
        if let Some(socket) = self.socket.take() {
            let _ = socket.send(&ToKeeper::Done, None, Instant::now() + TELLING);
        }
        self.records = None;
        self.crash = None;
    }

    /// The keeper's answer to a request with a text; none when there is no keeper.
    fn ask(&mut self, request: &ToKeeper, text: &[u8]) -> Option<io::Result<Written>> {
        let until = Instant::now() + self.timeout;
        for _ in 0..2 {
            let socket = self.socket.as_ref()?;
            let asked = socket
                .send(request, None, until)
                .and_then(|()| socket.send_text(text, until))
                .and_then(|()| socket.receive(None, Some(until)));
            match asked {
                Ok(Some((FromKeeper::Written { directory, why }, _))) => {
                    return Some(Ok(Written { directory: directory.0, why }));
                }
                Ok(Some((FromKeeper::Failed { errno, text }, _))) => {
                    let error =
                        errno.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                    return Some(Err(error));
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => return Some(Err(error)),
                // It is gone: killed, or it ended just before this rank came.
                Ok(None) | Err(_) => self.reach(),
            }
        }
        None
    }

    /// Writes a profile to a place on this machine, in the rank itself, avoiding places that might also hang.
    fn write_elsewhere(
        &mut self,
        profile: &RankProfile,
        text: &[u8],
        error: &io::Error,
    ) -> Option<PathBuf> {
        let hangs = error.kind() == ErrorKind::TimedOut;
        let mut places = self.elsewhere.iter().filter(|elsewhere| elsewhere.is_apart || !hangs);
        let written = places.find_map(|to| {
            let written = output::write(&to.place, &profile.into(), text);
            // Removes a directory that was created in vain, unless it is not empty.
            written.inspect_err(|_| drop(fs::remove_dir(&to.place.directory))).ok()
        })?;
        let file = written.directory.join(rank_file_name(profile.rank));
        match &self.socket {
            // The keeper may still write it to its place.
            Some(socket) if hangs => {
                let request = ToKeeper::Elsewhere(PathAsBytes(file.clone()));
                let _ = socket.send(&request, None, Instant::now() + TELLING);
                self.socket = None;
            }
            _ => {}
        }
        fs::exists(&file).is_ok_and(|is_there| is_there).then_some(file)
    }
}
