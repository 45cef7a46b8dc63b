//! What is a rank doing? The keeper, which runs this same library, reads it from the rank's memory.

use std::collections::BTreeMap;
use std::io;

use gyan_results::{CallPlace, CommunicatorNow, FrameNow, OperationNow, Peer, RankNow};

use crate::calls::gate::{self, GATE, GateSeen};
use crate::calls::ledger;
use crate::calls::now::{NOW, NowSeen, ThreadNowSeen, amount};
use crate::calls::requests::{OperationSeen, StartArguments, StartedSeen};
use crate::calls::traffic::messages_in;
use crate::delivery::keeper::{LookAtRank, Statics};
use crate::mpi::abi::{Abi, Library, datatypes, inquiry};
use crate::mpi::functions::communicators as made;
use crate::mpi::functions::{Function, Row, functions, processes, topologies};
use crate::observe::communicators::{self, SeenCommunicator, SeenCommunicators};
use crate::sys::memory::{ReadProcess, read_from, words_from};
use crate::sys::python;
use crate::sys::{kernel_files, maps};

/// How many requests of a call are looked at.
const REQUESTS_AT_MOST: u64 = 4096;
/// How many different operations that were started before are told.
const EARLIER_AT_MOST: usize = 64;

/// To how many ranks the messages are told.
const PEERS_AT_MOST: usize = 256;

/// Functions that make communicators which not all ranks may be in.
const PARTS: [Function; 15] = [
    made::MPI_Comm_create,
    made::MPI_Comm_create_from_group,
    made::MPI_Comm_create_group,
    made::MPI_Comm_split,
    made::MPI_Comm_split_type,
    made::MPI_Intercomm_create,
    made::MPI_Intercomm_create_from_groups,
    topologies::MPI_Cart_create,
    topologies::MPI_Cart_sub,
    topologies::MPI_Graph_create,
    processes::MPI_Comm_accept,
    processes::MPI_Comm_connect,
    processes::MPI_Comm_join,
    processes::MPI_Comm_spawn,
    processes::MPI_Comm_spawn_multiple,
];

/// For the keeper: where this rank's data are, and what the numbers in them mean.
pub(super) fn statics(library: &Library) -> Option<Statics> {
    let &Abi { any_source, any_tag, proc_null, handle_bytes, .. } = inquiry()?.abi;
    #[allow(clippy::cast_possible_truncation)]
    let request_null = library.handle(library.abi.request_null)? as u32;
    Some(Statics { places: places(), any_source, any_tag, proc_null, request_null, handle_bytes })
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

/// What a thread does, as it is in memory.
#[derive(Clone, Debug, Eq, PartialEq)]
struct ThreadSeen {
    called: Function,
    in_mpi: bool,
    in_fortran: bool,
    now: NowSeen,
    number: u64,
}

/// What a process is, and what its threads that call MPI do.
struct ProcessSeen {
    /// From the statics of this process to its.
    distance: usize,
    is_threaded: bool,
    /// Where the ledgers of its threads are.
    ledgers: Vec<usize>,
    /// None while nothing is known of them.
    threads: Vec<ThreadSeen>,
}

/// For the keeper.
pub(crate) struct Looks;

impl LookAtRank for Looks {
    fn stamp(&self, pid: i32, of: &Statics) -> io::Result<Option<String>> {
        let ProcessSeen { threads, .. } = see(pid, of)?;
        Ok((!threads.is_empty()).then(|| format!("{threads:?} {}", is_stopped(pid))))
    }

    fn tell(&self, pid: i32, of: &Statics) -> io::Result<Option<RankNow>> {
        let seen = see(pid, of)?;
        let ProcessSeen { distance, is_threaded, .. } = seen;
        let memory = ReadProcess(pid);
        let started = StartedSeen::read(memory, distance, is_threaded);
        let process = RankProcess { memory, of, seen: &seen, started };
        let mut told: Vec<RankNow> =
            seen.threads.iter().map(|thread| process.told(thread)).collect();
        let is_stopped = is_stopped(pid);
        for now in &mut told {
            now.stopped = is_stopped;
        }
        // Of several threads it is not known which one initialised MPI.
        if let [alone] = &mut told[..] {
            tell_python(alone, pid, seen.distance);
        }
        if let [first, ..] = &mut told[..] {
            first.sent = process.sent();
            process.tell_earlier(first);
        }
        // Those that are in MPI come first.
        told.sort_by_key(|now| !now.in_mpi);
        let others = told.split_off(told.len().min(1));
        Ok(told.pop().map(|first| RankNow { threads: others, ..first }))
    }
}

fn see(pid: i32, of: &Statics) -> io::Result<ProcessSeen> {
    let distance = distance(of)
        .ok_or_else(|| io::Error::other("it runs another build of libgyan.so than the keeper"))?;
    let [gate, now, ledger, _] = places().map(|place| place.wrapping_add(distance));
    let mut word = [0; 4];
    read_from(pid, gate, &mut word)?;
    let gate = gate::seen(word);
    let is_threaded = gate.is_threaded;
    if is_threaded {
        let ledgers = ledgers(pid, distance)?;
        let threads = see_threads(pid, &ledgers)?;
        return Ok(ProcessSeen { distance, is_threaded, ledgers, threads });
    }
    let mut threads = Vec::new();
    if gate.is_known {
        let called = Function(usize::from(gate.called));
        let GateSeen { in_mpi, in_fortran, .. } = gate;
        let now = NowSeen::from_words(words_from(pid, now)?);
        let number = calls(pid, ledger, called)?;
        threads.push(ThreadSeen { called, in_mpi, in_fortran, now, number });
    }
    Ok(ProcessSeen { distance, is_threaded, ledgers: vec![ledger], threads })
}

/// How often a function was called, by a ledger.
fn calls(pid: i32, ledger: usize, function: Function) -> io::Result<u64> {
    let [number] = words_from(pid, ledger.wrapping_add(ledger::calls_at(function)))?;
    Ok(number as u64)
}

/// Where the ledgers of threads are.
fn ledgers(pid: i32, distance: usize) -> io::Result<Vec<usize>> {
    let listed = (&raw const ledger::LISTED).addr().wrapping_add(distance);
    let ledgers: [usize; ledger::LISTED.len()] = words_from(pid, listed)?;
    Ok(ledgers.into_iter().take_while(|ledger| *ledger != 0).collect())
}

fn see_threads(pid: i32, ledgers: &[usize]) -> io::Result<Vec<ThreadSeen>> {
    let mut threads = Vec::new();
    for ledger in ledgers {
        let all = words_from(pid, ledger.wrapping_add(ledger::NOW_AT))?;
        let Some(seen) = ThreadNowSeen::from_words(all, |at| ReadProcess(pid).read(at)) else {
            continue;
        };
        let ThreadNowSeen { function: called, in_mpi, in_fortran, now } = seen;
        let number = calls(pid, *ledger, called)?;
        threads.push(ThreadSeen { called, in_mpi, in_fortran, now, number });
    }
    Ok(threads)
}

/// Whether a process is stopped, by a signal or a debugger (proc(5)).
fn is_stopped(pid: i32) -> bool {
    let stat = kernel_files::text(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = kernel_files::stat_fields(&stat).and_then(|mut fields| fields.next());
    matches!(state, Some("T" | "t"))
}

/// Says where a program in Python is: the innermost line, not the place in the module of Python that calls MPI for it.
fn tell_python(now: &mut RankNow, pid: i32, distance: usize) {
    let frame = |line: python::Line| FrameNow {
        function: line.function.as_str().to_owned(),
        file: Some(line.file.as_str().to_owned()),
        line: Some(line.number),
        inlined: false,
    };
    now.python = python::lines_of(pid, distance).into_iter().map(frame).collect();
    if let Some(FrameNow { file: Some(file), line, .. }) = now.python.first() {
        now.from = Some(CallPlace { path: file.clone(), offset: 0, line: *line });
    }
}

/// A process whose memory can be read.
struct RankProcess<'a> {
    memory: ReadProcess,
    of: &'a Statics,
    seen: &'a ProcessSeen,
    /// What its threads have started.
    started: Option<StartedSeen>,
}

impl RankProcess<'_> {
    fn told(&self, seen: &ThreadSeen) -> RankNow {
        let row = functions().find(|(function, _)| *function == seen.called).map(|(_, row)| row);
        let row = row.filter(|_| seen.in_mpi || seen.number > 0);
        let call = row.map(|row| CallSeen { process: self, seen, row });
        // The slow way counts a call at its end.
        let number = seen.number + u64::from(seen.in_mpi && seen.now.is_counted_after());
        let known = |name| call.as_ref().and_then(|call| call.peer(name));
        let (operations, unknown_requests) =
            call.as_ref().and_then(CallSeen::operations).unwrap_or_default();
        RankNow {
            in_mpi: seen.in_mpi,
            function: row.map(|row| row.name.to_owned()),
            number,
            source: known("source"),
            dest: known("dest"),
            tag: call.as_ref().and_then(CallSeen::tag),
            root: call.as_ref().and_then(|call| call.integer("root")),
            bytes: call.as_ref().and_then(CallSeen::bytes),
            numbers_agree: self.counts_alike(),
            requests: call.as_ref().and_then(CallSeen::requests),
            operations,
            unknown_requests,
            communicator: call.as_ref().and_then(CallSeen::communicator),
            members: call.as_ref().and_then(CallSeen::members),
            from: call.as_ref().and_then(CallSeen::place),
            ..RankNow::default()
        }
    }

    /// How many messages its threads have sent to each rank.
    fn sent(&self) -> Option<BTreeMap<u32, u64>> {
        let mut sent: BTreeMap<u32, u64> = BTreeMap::new();
        for ledger in &self.seen.ledgers {
            let peers: usize = self.memory.read(ledger.wrapping_add(ledger::MESSAGES_AT))?;
            if peers == 0 {
                continue;
            }
            let messages = messages_in(self.memory, peers)?;
            for (rank, messages) in (0..).zip(messages).filter(|(_, messages)| *messages > 0) {
                *sent.entry(rank).or_default() += messages;
            }
        }
        (sent.len() <= PEERS_AT_MOST).then_some(sent)
    }

    /// Says which messages may still be sent or received without a call that waits for them.
    fn tell_earlier(&self, now: &mut RankNow) {
        let Some(started) = &self.started else {
            now.more_earlier = true;
            return;
        };
        let may_go_on = started.may_go_on(self.memory);
        let operations = may_go_on.into_iter().map(|of| self.operation_of(&of));
        for operation in operations.flatten().filter(|operation| operation.peer.is_some()) {
            if now.earlier.len() == EARLIER_AT_MOST {
                now.more_earlier = true;
                return;
            }
            if !now.operations.contains(&operation) && !now.earlier.contains(&operation) {
                now.earlier.push(operation);
            }
        }
        now.more_earlier = started.is_short && self.restarts();
    }

    /// Whether it has started persistent operations, which stay however many others come after them.
    fn restarts(&self) -> bool {
        let mut starts =
            functions().filter(|(_, row)| ["MPI_Start", "MPI_Startall"].contains(&row.name));
        starts.any(|(function, _)| self.has_called(function))
    }

    fn communicators(&self) -> Option<SeenCommunicators> {
        let at = places()[3].wrapping_add(self.seen.distance);
        SeenCommunicators::read(self.memory, at)
    }

    fn known(&self, handle: usize) -> Option<SeenCommunicator> {
        self.communicators()?.find(self.memory, handle, self.seen.distance)
    }

    fn communicator(&self, handle: Option<usize>) -> CommunicatorNow {
        let Some(handle) = handle else { return CommunicatorNow::Unknown };
        if self.communicators().and_then(|all| all.is_world(handle)) == Some(true) {
            return CommunicatorNow::World;
        }
        match self.known(handle) {
            Some(known) => CommunicatorNow::Other(known.size, known.members),
            None => CommunicatorNow::Unknown,
        }
    }

    /// The handle that C has for a communicator of Fortran; none if that cannot be told.
    fn handle_in_c(&self, number: i32) -> Option<usize> {
        #[allow(clippy::cast_sign_loss)]
        if self.of.handle_bytes == size_of::<u32>() {
            return Some(number as u32 as usize);
        }
        // Open MPI's MPI_COMM_WORLD in Fortran.
        (number == 0).then(|| self.communicators()?.world()).flatten()
    }

    /// Whether any of its threads has called it, or that cannot be read.
    fn has_called(&self, function: Function) -> bool {
        let mut counts =
            self.seen.ledgers.iter().map(|ledger| calls(self.memory.0, *ledger, function));
        counts.any(|count| !count.is_ok_and(|count| count == 0))
    }

    /// Whether calls of a function with the same number are the same call in each rank: only one thread has called MPI, and
    /// it has made no communicator of a part of the ranks. What it calls on `MPI_COMM_SELF` alone is not seen.
    fn counts_alike(&self) -> bool {
        self.seen.ledgers.len() == 1 && !PARTS.iter().any(|function| self.has_called(*function))
    }

    /// Bytes of an element, if this rank has asked for them.
    fn datatype_bytes(&self, handle: usize) -> Option<u64> {
        let at = datatypes::words_at(handle)?.wrapping_add(self.seen.distance);
        datatypes::size_in(words_from(self.memory.0, at).ok()?, handle)
    }

    /// The rank that a number means in a communicator.
    fn peer(&self, number: i32, receives: bool, communicator: Option<usize>) -> Option<Peer> {
        if number == self.of.proc_null {
            return Some(Peer::Nobody);
        }
        if receives && number == self.of.any_source {
            return Some(Peer::Any);
        }
        let rank = u32::try_from(number).ok()?;
        let world = match self.communicator(communicator) {
            CommunicatorNow::World => Some(rank),
            CommunicatorNow::Other(..) => self.known(communicator?)?.rank_in_world(rank),
            CommunicatorNow::Unknown => None,
        };
        Some(world.map_or(Peer::InCommunicator(number), Peer::World))
    }

    fn tag(&self, tag: i32) -> Option<i32> {
        (tag != self.of.any_tag).then_some(tag)
    }

    /// What a request stands for.
    fn operation(&self, started: &StartedSeen, handle: u32) -> Option<OperationNow> {
        self.operation_of(&started.operation(handle)?)
    }

    fn operation_of(&self, operation: &OperationSeen) -> Option<OperationNow> {
        let row = functions().find(|(function, _)| *function == operation.function)?.1;
        let started = StartArguments::new(row.name, row.arguments)?;
        let comm = started.comm.and(if operation.in_fortran {
            self.handle_in_c(as_int(operation.comm))
        } else {
            Some(operation.comm)
        });
        let is =
            |at: Option<usize>, name| at.is_some_and(|at| row.arguments.get(at) == Some(&name));
        let is_message = !is(started.peer, "root");
        let receives = is(started.peer, "source");
        let peer = started.peer.filter(|_| is_message);
        Some(OperationNow {
            function: row.name.to_owned(),
            peer: peer.and_then(|_| self.peer(as_int(operation.peer), receives, comm)),
            tag: started.tag.and_then(|_| self.tag(as_int(operation.tag))),
            communicator: self.communicator(comm),
        })
    }
}

/// An `int` that was passed as a word.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn as_int(word: usize) -> i32 {
    word as u32 as i32
}

/// A call in a rank.
struct CallSeen<'a> {
    process: &'a RankProcess<'a>,
    seen: &'a ThreadSeen,
    row: &'a Row,
}

impl CallSeen<'_> {
    /// The argument of this name, as a word.
    fn word(&self, name: &str) -> Option<usize> {
        let Row { name: function, arguments, .. } = self.row;
        let position = arguments.iter().position(|argument| *argument == name)?;
        let read = |at| self.process.memory.read(at);
        self.seen.now.word(function, arguments, position, read)
    }

    /// An argument that is an `int`, in Fortran at the address that is passed.
    fn integer(&self, name: &str) -> Option<i32> {
        let word = self.word(name)?;
        if !self.seen.in_fortran {
            return Some(as_int(word));
        }
        self.process.memory.read(word)
    }

    /// A number of elements: a word in functions for large counts, in C.
    fn count(&self, at: usize) -> Option<u64> {
        let Row { name, arguments, .. } = self.row;
        let is_large = name.ends_with("_c") && !self.seen.in_fortran;
        let argument = arguments.get(at)?;
        if is_large {
            return Some(self.word(argument)? as u64);
        }
        u64::try_from(self.integer(argument)?).ok()
    }

    /// The handle of the datatype at a position, as C has it.
    fn datatype(&self, at: usize) -> Option<usize> {
        let name = self.row.arguments.get(at)?;
        let is_int = self.process.of.handle_bytes == size_of::<u32>();
        #[allow(clippy::cast_sign_loss)]
        match (is_int, self.seen.in_fortran) {
            (true, _) => Some(self.integer(name)? as u32 as usize),
            (false, false) => self.word(name),
            // Of Open MPI it is a number in a table of the library.
            (false, true) => None,
        }
    }

    fn bytes(&self) -> Option<u64> {
        let [count, datatype] = amount(self.row.name)?;
        let count = self.count(count).filter(|_| self.seen.in_mpi)?;
        count.checked_mul(self.process.datatype_bytes(self.datatype(datatype)?)?)
    }

    fn peer(&self, name: &str) -> Option<Peer> {
        self.process.peer(self.integer(name)?, name == "source", self.handle())
    }

    fn tag(&self) -> Option<i32> {
        let tag = ["tag", "recvtag", "sendtag"].iter().find_map(|name| self.integer(name))?;
        self.process.tag(tag)
    }

    /// How many requests it is about, and where they are.
    fn array(&self) -> Option<(u64, usize)> {
        let arguments = self.row.arguments;
        if let Some(at) = arguments.iter().position(|name| *name == "array_of_requests") {
            let number = self.integer(arguments.get(at.checked_sub(1)?)?)?;
            return Some((u64::try_from(number).ok()?, self.word("array_of_requests")?));
        }
        (self.row.name == "MPI_Wait").then(|| Some((1, self.word("request")?))).flatten()
    }

    fn requests(&self) -> Option<u64> {
        self.array().map(|(number, _)| number)
    }

    /// What the requests stand for, and how many are not known.
    fn operations(&self) -> Option<(Vec<OperationNow>, u64)> {
        // In their own code they are what they were, and their place may be another's.
        let (number, at) = self.array().filter(|_| self.seen.in_mpi)?;
        let process = self.process;
        let in_fortran = self.seen.in_fortran;
        let bytes = if in_fortran { size_of::<u32>() } else { process.of.handle_bytes };
        let looked = number.min(REQUESTS_AT_MOST);
        let started = process.started.as_ref()?;
        let mut array = vec![0; usize::try_from(looked).ok()? * bytes];
        process.memory.read_into(at, &mut array)?;
        // Open MPI's MPI_REQUEST_NULL in Fortran.
        let is_pointer = process.of.handle_bytes > size_of::<u32>();
        let null = if in_fortran && is_pointer { 0 } else { process.of.request_null };
        let mut operations: Vec<OperationNow> = Vec::new();
        let mut unknown = number - looked;
        for handle in array.chunks_exact(bytes) {
            let Some((low, _)) = handle.split_first_chunk() else { continue };
            let handle = u32::from_ne_bytes(*low);
            match process.operation(started, handle).filter(|_| handle != null) {
                _ if handle == null => {}
                Some(operation) if operations.contains(&operation) => {}
                Some(operation) => operations.push(operation),
                None => unknown += 1,
            }
        }
        Some((operations, unknown))
    }

    /// The handle of the communicator, as C has it; none if it cannot be told from Fortran's.
    fn handle(&self) -> Option<usize> {
        if self.seen.in_fortran {
            return self.process.handle_in_c(self.integer("comm")?);
        }
        self.word("comm")
    }

    fn communicator(&self) -> Option<CommunicatorNow> {
        let has_one = self.row.arguments.contains(&"comm");
        has_one.then(|| self.process.communicator(self.handle()))
    }

    /// The ranks of its communicator, if it is not `MPI_COMM_WORLD`.
    fn members(&self) -> Option<String> {
        match self.communicator()? {
            CommunicatorNow::Other(..) => self.process.known(self.handle()?)?.members_in_world(),
            _ => None,
        }
    }

    /// Where the call returns to: the file, by `/proc/PID/maps` (proc(5)), and where in it.
    fn place(&self) -> Option<CallPlace> {
        let address = self.seen.now.returns_to(|at| self.process.memory.read(at))?;
        let maps = kernel_files::bytes(format!("/proc/{}/maps", self.process.memory.0)).ok()?;
        // The call comes before the address that it returns to.
        let call = address.checked_sub(1)?;
        let part = maps::parts(&maps).find(|part| part.range.contains(&call))?;
        let path = String::from_utf8_lossy(part.path?).into_owned();
        let offset = (call - part.range.start + part.offset) as u64;
        Some(CallPlace { path, offset, line: None })
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
            request_null: 0,
            handle_bytes: 8,
        };
        assert_eq!(distance(&of), Some(0));
        let [first, rest @ ..] = &of.places;
        let mut other = Statics { places: of.places, ..of };
        other.places[0] = first ^ 64;
        assert!(!rest.is_empty());
        assert_eq!(distance(&other), None);
        let pid = i32::try_from(std::process::id()).unwrap();
        // MPI is not initialised here.
        assert_eq!(Looks.stamp(pid, &of).unwrap(), None);
        assert_eq!(Looks.tell(pid, &of).unwrap(), None);
    }
}
