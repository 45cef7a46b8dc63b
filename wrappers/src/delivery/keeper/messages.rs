//! The messages between a rank and the keeper of its host, over a local socket that preserves message
//! boundaries (`SOCK_SEQPACKET`). Waits are always bounded.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use gyan_results::RankNow;

use super::metrics::MetricsPlace;
use crate::delivery::output::RunPlace;
use crate::delivery::record::SiteRecord;

/// No message is longer; longer texts take several messages.
const MESSAGE: usize = 32 << 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// What a rank says.
#[derive(Deserialize, Serialize)]
pub(super) enum ToKeeper {
    /// Who it is: the first message.
    Hello(Box<Hello>),
    /// Its records come with it, replacing earlier ones.
    Records,
    /// The memory in which it notes a crash comes with it.
    Crash,
    /// The memory of its timeline comes with it.
    Timeline,
    /// Records of the header of its timeline come with it, replacing earlier ones.
    TimelineHeader,
    /// Write the timeline with the header whose text follows: into this directory, or else where profiles go. There is an answer.
    WriteTimeline { place: RunPlace, directory: Option<PathAsBytes> },
    /// Write the profile whose text follows; `ends`: it is the last one. There is an answer.
    Profile { place: RunPlace, ends: bool },
    /// Write the summary whose text follows beside a profile. There is an answer.
    Summary { place: RunPlace, directory: PathAsBytes },
    /// Write the record that the site gets of the job, whose merged profiles follow. There is no answer.
    Record,
    /// Note from now on how far the counters of energy come, in the memory that comes with it, replacing an earlier one.
    Energy,
    /// No profile will come: the ranks reduced them themselves.
    Done,
    /// The rank no longer waits, and has written its profile to this file, which can be removed once the
    /// profile is in its place.
    Elsewhere(PathAsBytes),
}

/// Who a rank is.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Hello {
    pub(super) rank: u32,
    pub(super) job: String,
    /// Where the live file of the host is; none for nowhere.
    pub(super) live: Option<RunPlace>,
    /// How to see what it is doing; none if that cannot be known.
    pub(super) statics: Option<Statics>,
    /// Where its metrics go; none for nowhere.
    pub(super) metrics: Option<MetricsPlace>,
    /// Where the record of the site goes; none for the run of a user.
    pub(super) record: Option<SiteRecord>,
}

/// Where in a rank's memory the data are that say what it is doing, and what numbers mean in its MPI.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Statics {
    pub(crate) places: [usize; 4],
    pub(crate) any_source: i32,
    pub(crate) any_tag: i32,
    pub(crate) proc_null: i32,
    /// The low half of the handle.
    pub(crate) request_null: u32,
    pub(crate) handle_bytes: usize,
}

/// How the keeper sees what the process `pid` of a rank is doing.
pub(crate) trait LookAtRank: Sync {
    /// Two looks at a rank that has not moved give the same; none while gyan is not counting there.
    fn stamp(&self, pid: i32, of: &Statics) -> io::Result<Option<String>>;

    /// The same in words.
    fn tell(&self, pid: i32, of: &Statics) -> io::Result<Option<RankNow>>;
}

#[derive(Deserialize, Serialize)]
pub(super) enum FromKeeper {
    /// It is in this directory; and a remark, if any.
    Written { directory: PathAsBytes, why: Option<String> },
    /// It cannot be written: the system's error number, if any, and the error in words.
    Failed { errno: Option<i32>, text: String },
}

/// A path, whatever its bytes are.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct PathAsBytes(#[serde(with = "crate::delivery::path_bytes")] pub(super) PathBuf);

/// One end of the socket.
pub(super) struct Socket(pub(super) OwnedFd);

impl Socket {
    /// Whether the other end is closed, or its process gone.
    pub(super) fn is_closed(&self) -> bool {
        is_ready(&self.0, PollFlags::empty())
    }

    /// Sends something, with a file if there is one.
    pub(super) fn send(
        &self,
        message: &impl Serialize,
        file: Option<BorrowedFd>,
        until: Instant,
    ) -> io::Result<()> {
        let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
        self.send_bytes(&bytes, file, until)
    }

    /// Sends a text, in several messages: the first byte of each says whether it is the last.
    pub(super) fn send_text(&self, text: &[u8], until: Instant) -> io::Result<()> {
        let parts = text.len().div_ceil(MESSAGE - 1).max(1);
        for part in 0..parts {
            let from = part * (MESSAGE - 1);
            let to = text.len().min(from + MESSAGE - 1);
            let mut bytes = vec![u8::from(part + 1 == parts)];
            bytes.extend_from_slice(text.get(from..to).unwrap_or_default());
            self.send_bytes(&bytes, None, until)?;
        }
        Ok(())
    }

    fn send_bytes(&self, bytes: &[u8], file: Option<BorrowedFd>, until: Instant) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let files: Vec<BorrowedFd> = file.into_iter().collect();
        loop {
            let mut with = SendAncillaryBuffer::new(&mut space);
            if !files.is_empty() {
                with.push(SendAncillaryMessage::ScmRights(&files));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut with, flags) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::OUT, None, Some(until))?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives something, and a file if one came with it; none when the other end is closed, or the process of
    /// `other` has ended and nothing is left to read.
    pub(super) fn receive<T: DeserializeOwned>(
        &self,
        other: Option<BorrowedFd>,
        until: Option<Instant>,
    ) -> io::Result<Option<(T, Option<File>)>> {
        let Some((bytes, file)) = self.receive_bytes(other, until)? else { return Ok(None) };
        let message = postcard::from_bytes(&bytes);
        message.map(|message| Some((message, file))).map_err(|_| ErrorKind::InvalidData.into())
    }

    pub(super) fn receive_text(
        &self,
        other: Option<BorrowedFd>,
        until: Option<Instant>,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        loop {
            let Some((bytes, _)) = self.receive_bytes(other, until)? else { return Ok(None) };
            let Some((&is_last, part)) = bytes.split_first() else { return Ok(None) };
            text.extend_from_slice(part);
            if is_last != 0 {
                return Ok(Some(text));
            }
        }
    }

    fn receive_bytes(
        &self,
        other: Option<BorrowedFd>,
        until: Option<Instant>,
    ) -> io::Result<Option<(Vec<u8>, Option<File>)>> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut bytes = vec![0; MESSAGE];
        let mut is_over = false;
        loop {
            let mut with = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.0, parts, &mut with, flags) {
                Ok(message) if message.bytes == 0 => return Ok(None),
                Ok(message) => {
                    let length = message.bytes;
                    let file = with.drain().find_map(|message| match message {
                        RecvAncillaryMessage::ScmRights(mut files) => files.next().map(File::from),
                        _ => None,
                    });
                    bytes.truncate(length);
                    return Ok(Some((bytes, file)));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if is_over => return Ok(None),
                Err(rustix::io::Errno::AGAIN) => {
                    self.wait(PollFlags::IN, other, until)?;
                    // Data that it sent before it ended must still be read.
                    is_over = other.is_some_and(|other| is_ready(other, PollFlags::IN));
                }
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until an operation is possible, or `other` can be read.
    fn wait(
        &self,
        what: PollFlags,
        other: Option<BorrowedFd>,
        until: Option<Instant>,
    ) -> io::Result<()> {
        let mut ends = vec![PollFd::new(&self.0, what)];
        ends.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match rustix::event::poll(&mut ends, left.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                // The program's limit of open files is below the number of descriptors to wait for.
                Err(rustix::io::Errno::INVAL) => {
                    thread::sleep(BETWEEN_TRIES);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether that can be done at once.
pub(super) fn is_ready(file: impl AsFd, what: PollFlags) -> bool {
    let mut ends = [PollFd::new(&file, what)];
    rustix::event::poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        .is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (Socket, Socket) {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        (Socket(one), Socket(other))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn texts_of_all_lengths_come_whole() {
        let (one, other) = pair();
        for length in [0, 1, MESSAGE - 2, MESSAGE - 1, MESSAGE, 3 * MESSAGE, 5 << 20] {
            let text: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let sent = text.clone();
            thread::scope(|scope| {
                scope.spawn(|| one.send_text(&sent, soon()).unwrap());
                assert_eq!(other.receive_text(None, None).unwrap().unwrap(), text);
            });
        }
    }

    #[test]
    fn a_file_comes_with_its_message() {
        let (one, other) = pair();
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"known").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        one.send(&ToKeeper::Records, Some(file.as_fd()), soon()).unwrap();
        let (request, file) = other.receive::<ToKeeper>(None, None).unwrap().unwrap();
        assert!(matches!(request, ToKeeper::Records));
        let mut text = String::new();
        file.unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "known");
    }

    #[test]
    fn who_does_not_read_is_not_waited_for_for_ever_and_who_closed_is_seen() {
        let (one, other) = pair();
        let until = Instant::now() + Duration::from_millis(20);
        let error = one.send_text(&vec![0; 64 << 20], until).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let until = Some(Instant::now() + Duration::from_millis(20));
        let error = one.receive::<ToKeeper>(None, until).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(!one.is_closed());
        drop(other);
        assert!(one.is_closed());
        assert!(one.send_text(b"x", soon()).is_err());
        assert!(one.receive::<ToKeeper>(None, None).unwrap().is_none());
    }
}
