//! What stands between a rank and file systems: one process a host, the keeper, which writes what its ranks know
//! and what they made of it in the end.
//!
//! A rank itself waits for no file system while the program runs, and for the keeper no longer than
//! `GYAN_WRITE_TIMEOUT`. Where there is no keeper (`GYAN_KEEPER=off`, or it cannot be started) the rank writes its
//! profile itself, and nothing is known of it before.

mod messages;
mod process;
mod records;
mod spawn;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gyan_results::{Overhead, RankProfile, Summary, rank_file_name, write_rank};

use crate::profile::job::Job;
use crate::profile::output::{self, Place, Written};
use crate::sys::sigmask;
use messages::{Answer, Bytes, Hello, Request, Socket};
use records::Records;

/// How long it may take to tell the keeper something that it need not answer.
const TELLING: Duration = Duration::from_secs(1);

/// The keeper, for one rank.
pub(crate) struct Keeper {
    /// None without a keeper.
    socket: Option<Socket>,
    /// Whether there is to be one.
    wanted: bool,
    hello: Hello,
    /// What tells others which keeper it is.
    directory: PathBuf,
    records: Option<Records>,
    timeout: Duration,
    /// Where a profile goes that cannot be written where it is to be: the first that can.
    elsewhere: Vec<Elsewhere>,
}

/// A place on this machine.
struct Elsewhere {
    place: Place,
    /// It is on another device than the run directory.
    is_apart: bool,
}

/// A profile that is not where it was to be.
pub(crate) struct NotWritten {
    pub(crate) error: io::Error,
    /// The file in which it is instead.
    pub(crate) elsewhere: Option<PathBuf>,
}

impl Keeper {
    /// For a rank that is about to run. `wanted`: whether there is to be a process of its own.
    pub(crate) fn begin(job: &Job, rank: u32, wanted: bool, timeout: Duration) -> Keeper {
        let hello = Hello { rank, job: job.id.clone(), live: job.live.clone() };
        let directory = job.place.directory.clone();
        let device = job.place.device();
        let elsewhere = job.elsewhere.iter().map(|place| Elsewhere {
            place: place.clone(),
            is_apart: place.is_local() && place.device() != device,
        });
        let elsewhere = elsewhere.collect();
        let mut keeper =
            Keeper { socket: None, wanted, hello, directory, records: None, timeout, elsewhere };
        keeper.reach();
        keeper
    }

    /// Whether what is known is kept while the program runs.
    pub(crate) fn keeps(&self) -> bool {
        self.socket.is_some() && self.hello.live.is_some()
    }

    /// Connects to the keeper, which is started if need be. Without one the rank goes on alone.
    fn reach(&mut self) {
        self.socket = None;
        if !self.wanted {
            return;
        }
        let Ok(socket) = spawn::reach(&self.hello.job, &self.directory) else { return };
        let records = self.records.as_ref().map(Records::file);
        let request = Request::Hello(self.hello.clone());
        if socket.send(&request, records, Instant::now() + TELLING).is_ok() {
            self.socket = Some(socket);
        }
    }

    /// Keeps a profile, in the place of the one before, in case the process is killed.
    pub(crate) fn keep(&mut self, profile: &RankProfile) -> io::Result<()> {
        if !self.keeps() {
            return Ok(());
        }
        let text = serde_json::to_vec(profile)?;
        if self.records.as_mut().is_some_and(|records| records.write(&text)) {
            return Ok(());
        }
        // A limit of the size of files is one for memory files, too.
        let records = sigmask::without_signals(|| Records::begin(&text))?;
        if let Some(socket) = &self.socket {
            socket.send(&Request::Records, Some(records.file()), Instant::now() + TELLING)?;
        }
        self.records = Some(records);
        Ok(())
    }

    /// Writes the profile. `measure` fills in the overhead after the writing of all else; `ends`: nothing comes
    /// after it.
    pub(crate) fn write(
        &mut self,
        place: &Place,
        profile: &mut RankProfile,
        ends: bool,
        measure: impl FnOnce(&mut Overhead),
    ) -> Result<Written, NotWritten> {
        let nowhere = |error| NotWritten { error, elsewhere: None };
        let mut text = Vec::new();
        write_rank(&mut text, profile, measure).map_err(nowhere)?;
        let request = Request::Profile { place: place.clone(), ends };
        let written = match self.ask(&request, &text) {
            None => output::write(place, &(&*profile).into(), &text),
            Some(answer) => answer,
        };
        written.map_err(|error| {
            let elsewhere = self.write_elsewhere(profile, &text, &error);
            NotWritten { error, elsewhere }
        })
    }

    /// Writes the summary beside the profile that is in `directory`.
    pub(crate) fn write_summary(
        &mut self,
        place: &Place,
        directory: &Path,
        summary: &Summary,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        gyan_results::write_summary(&mut text, summary)?;
        let request =
            Request::Summary { place: place.clone(), directory: Bytes(directory.to_owned()) };
        match self.ask(&request, &text) {
            None => output::write_summary(place, directory, &text),
            Some(answer) => answer.map(drop),
        }
    }

    /// The rank needs no keeper any more: its profile is written, or is not to be.
    pub(crate) fn end(&mut self) {
        if let Some(socket) = self.socket.take() {
            let _ = socket.send(&Request::Done, None, Instant::now() + TELLING);
        }
        self.records = None;
    }

    /// What the keeper says to a request with a text; none when there is no keeper.
    fn ask(&mut self, request: &Request, text: &[u8]) -> Option<io::Result<Written>> {
        let until = Instant::now() + self.timeout;
        for _ in 0..2 {
            let socket = self.socket.as_ref()?;
            let asked = socket
                .send(request, None, until)
                .and_then(|()| socket.send_text(text, until))
                .and_then(|()| socket.receive(None, Some(until)));
            match asked {
                Ok(Some((Answer::Written { directory, why }, _))) => {
                    return Some(Ok(Written { directory: directory.0, why }));
                }
                Ok(Some((Answer::Failed { errno, text }, _))) => {
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

    /// Writes a profile where this machine has room for it, in the rank itself; not where that might hang, too.
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
            // What was made for nothing, unless something is in it.
            written.inspect_err(|_| drop(fs::remove_dir(&to.place.directory))).ok()
        })?;
        let file = written.directory.join(rank_file_name(profile.rank));
        match &self.socket {
            // The keeper may still write it where it is to be.
            Some(socket) if hangs => {
                let request = Request::Elsewhere(Bytes(file.clone()));
                let _ = socket.send(&request, None, Instant::now() + TELLING);
                self.socket = None;
            }
            _ => {}
        }
        fs::exists(&file).is_ok_and(|is_there| is_there).then_some(file)
    }
}
