//! What is a rank doing? The keeper, which runs this same library, reads it from the rank's memory.

use std::fs;
use std::io;

use gyan_results::{CallPlace, CommunicatorNow, Peer, RankNow};

use crate::calls::gate::{self, GATE, GateSeen};
use crate::calls::ledger;
use crate::calls::now::{NOW, NowSeen};
use crate::delivery::keeper::{LookAtRank, Statics};
use crate::mpi::abi::{Abi, inquiry};
use crate::mpi::functions::{Function, Row, functions};
use crate::observe::communicators;
use crate::sys::memory::{read_from, words_from};

/// For the keeper: where this rank's data are, and what the numbers in them mean.
pub(super) fn statics() -> Option<Statics> {
    let &Abi { any_source, any_tag, proc_null, handle_bytes, .. } = inquiry()?.abi;
    Some(Statics { places: places(), any_source, any_tag, proc_null, handle_bytes })
}

/// Where the statics of this process are that are read.
fn places() -> [usize; 4] {
    [
        (&raw const GATE).addr(),
        (&raw const NOW).addr(),
        (&raw const ledger::ALONE).addr(),
        communicators::statics(),
    ]
}

/// How far the statics of a rank are from those of this process; none if it runs another library.
fn distance(of: &Statics) -> Option<usize> {
    let mut distances =
        of.places.iter().zip(places()).map(|(there, here)| there.wrapping_sub(here));
    let first = distances.next()?;
    distances.all(|distance| distance == first).then_some(first)
}

/// What a rank does, as it is in its memory.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Seen {
    gate: GateSeen,
    now: NowSeen,
    number: u64,
}

/// For the keeper.
pub(crate) struct Looks;

impl LookAtRank for Looks {
    fn stamp(&self, pid: i32, of: &Statics) -> io::Result<Option<String>> {
        let (_, seen) = see(pid, of)?;
        Ok(seen.gate.is_known.then(|| format!("{seen:?}")))
    }

    fn tell(&self, pid: i32, of: &Statics) -> io::Result<Option<RankNow>> {
        let (distance, seen) = see(pid, of)?;
        Ok(seen.gate.is_known.then(|| told(pid, of, distance, &seen)))
    }
}

/// Also the distance between the statics of that process and those of this one.
fn see(pid: i32, of: &Statics) -> io::Result<(usize, Seen)> {
    let distance = distance(of)
        .ok_or_else(|| io::Error::other("it runs another build of libgyan.so than the keeper"))?;
    let [gate, now, ledger, _] = places().map(|place| place.wrapping_add(distance));
    let mut word = [0; 4];
    read_from(pid, gate, &mut word)?;
    let gate = gate::seen(word);
    if gate.is_threaded {
        return Err(io::Error::other("several of its threads may call MPI"));
    }
    let now = NowSeen::from_words(words_from(pid, now)?);
    let function = Function(usize::from(gate.called));
    let [number] = words_from(pid, ledger.wrapping_add(ledger::calls_at(function)))?;
    Ok((distance, Seen { gate, now, number: number as u64 }))
}

fn told(pid: i32, of: &Statics, distance: usize, seen: &Seen) -> RankNow {
    let row = functions().nth(usize::from(seen.gate.called)).map(|(_, row)| row);
    let row = row.filter(|_| seen.gate.in_mpi || seen.number > 0);
    let call = row.map(|row| CallSeen { pid, of, distance, seen, row });
    // Within the call, of which the slow way counts the end.
    let number = seen.number + u64::from(seen.gate.in_mpi && seen.now.is_counted_after());
    let source = call.as_ref().and_then(|call| call.peer("source"));
    let dest = call.as_ref().and_then(|call| call.peer("dest"));
    RankNow {
        in_mpi: seen.gate.in_mpi,
        function: row.map(|row| row.name.to_owned()),
        number,
        since_ms: 0,
        source,
        dest,
        tag: call.as_ref().and_then(CallSeen::tag),
        root: call.as_ref().and_then(|call| call.integer("root")),
        requests: call.as_ref().and_then(CallSeen::requests),
        communicator: call.as_ref().and_then(CallSeen::communicator),
        from: call.as_ref().and_then(CallSeen::place),
    }
}

/// A call in a rank.
struct CallSeen<'a> {
    pid: i32,
    of: &'a Statics,
    distance: usize,
    seen: &'a Seen,
    row: &'a Row,
}

impl CallSeen<'_> {
    /// The argument of this name, as a word.
    fn word(&self, name: &str) -> Option<usize> {
        let position = self.row.arguments.iter().position(|argument| *argument == name)?;
        self.seen.now.word(self.row.arguments, position, |at| {
            words_from(self.pid, at).ok().map(|[word]| word)
        })
    }

    /// An argument that is an `int`, in Fortran at the address that is passed.
    fn integer(&self, name: &str) -> Option<i32> {
        let word = self.word(name)?;
        if !self.seen.gate.in_fortran {
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            return Some(word as u32 as i32);
        }
        let mut bytes = [0; 4];
        read_from(self.pid, word, &mut bytes).ok()?;
        Some(i32::from_ne_bytes(bytes))
    }

    fn peer(&self, name: &str) -> Option<Peer> {
        let rank = self.integer(name)?;
        if rank == self.of.proc_null {
            return Some(Peer::Nobody);
        }
        if name == "source" && rank == self.of.any_source {
            return Some(Peer::Any);
        }
        let number = u32::try_from(rank).ok()?;
        let world = match self.communicator()? {
            CommunicatorNow::World => Some(number),
            CommunicatorNow::Other(..) => self.known_communicator()?.rank_in_world(number),
            CommunicatorNow::Unknown => None,
        };
        Some(world.map_or(Peer::InCommunicator(rank), Peer::World))
    }

    fn tag(&self) -> Option<i32> {
        let tag = ["tag", "recvtag", "sendtag"].iter().find_map(|name| self.integer(name))?;
        (tag != self.of.any_tag).then_some(tag)
    }

    fn requests(&self) -> Option<u64> {
        let arguments = self.row.arguments;
        if let Some(at) = arguments.iter().position(|name| *name == "array_of_requests") {
            let number = self.integer(arguments.get(at.checked_sub(1)?)?)?;
            return u64::try_from(number).ok();
        }
        (self.row.name == "MPI_Wait").then_some(1)
    }

    /// The handle of the communicator, as C has it; none if it cannot be told from Fortran's.
    fn handle(&self) -> Option<usize> {
        if !self.seen.gate.in_fortran {
            return self.word("comm");
        }
        let number = self.integer("comm")?;
        #[allow(clippy::cast_sign_loss)]
        if self.of.handle_bytes == size_of::<u32>() {
            return Some(number as u32 as usize);
        }
        // Open MPI's MPI_COMM_WORLD in Fortran.
        (number == 0).then(|| self.communicators()?.world()).flatten()
    }

    fn communicators(&self) -> Option<communicators::SeenCommunicators> {
        let at = places()[3].wrapping_add(self.distance);
        communicators::SeenCommunicators::read(at, |at, into| read_from(self.pid, at, into).ok())
    }

    fn known_communicator(&self) -> Option<communicators::SeenCommunicator> {
        self.communicators()?
            .find(self.handle()?, self.distance, |at, into| read_from(self.pid, at, into).ok())
    }

    fn communicator(&self) -> Option<CommunicatorNow> {
        if !self.row.arguments.contains(&"comm") {
            return None;
        }
        let Some(handle) = self.handle() else { return Some(CommunicatorNow::Unknown) };
        if self.communicators().and_then(|all| all.is_world(handle)) == Some(true) {
            return Some(CommunicatorNow::World);
        }
        Some(match self.known_communicator() {
            Some(known) => CommunicatorNow::Other(known.size, known.members),
            None => CommunicatorNow::Unknown,
        })
    }

    /// Where the call returns to: the file, by `/proc/PID/maps` (proc(5)), and where in it.
    fn place(&self) -> Option<CallPlace> {
        let address =
            self.seen.now.returns_to(|at| words_from(self.pid, at).ok().map(|[word]| word))?;
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).ok()?;
        maps.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (from, to) = fields.next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            let (from, to) = (number(from)?, number(to)?);
            let offset = number(fields.nth(1)?)?;
            let path = line.get(line.find('/')?..)?;
            // The call comes before the address that it returns to.
            let call = address.checked_sub(1)?;
            (from..to)
                .contains(&call)
                .then(|| CallPlace { path: path.to_owned(), offset: (call - from + offset) as u64 })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_sees_its_own_call() {
        let of = Statics {
            places: places(),
            any_source: -1,
            any_tag: -1,
            proc_null: -2,
            handle_bytes: 8,
        };
        assert_eq!(distance(&of), Some(0));
        let other = Statics { places: of.places.map(|place| place ^ 64), ..of };
        assert_eq!(distance(&other), None);
        let pid = i32::try_from(std::process::id()).unwrap();
        // MPI is not initialised here.
        assert_eq!(Looks.stamp(pid, &of).unwrap(), None);
        assert_eq!(Looks.tell(pid, &of).unwrap(), None);
    }
}
