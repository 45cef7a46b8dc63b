//! Which functions of the program are on a stack? Without those that start `main`, and of MPI only the function that the program
//! called.

use std::path::Path;

use gyan_results::{FrameNow, RankNow};

use super::maps::{Mapping, Maps};
use crate::symbols::stacks::Owner;
use crate::symbols::{StackFrame, Symbols};

/// What runs in a process.
pub(super) struct Program<'a> {
    pub(super) maps: &'a Maps,
    pub(super) symbols: &'a mut Symbols,
    /// The path of its file.
    pub(super) executable: &'a str,
}

/// The functions of the C library that start a thread.
const THREAD_STARTS: [&str; 5] = ["start_thread", "clone", "clone3", "__clone", "__clone3"];

/// The functions on a stack, the outermost first.
struct Owned {
    frames: Vec<OwnedFrame>,
    /// Whether `main`, or what starts a thread, was among them.
    has_beginning: bool,
}

/// A function on the stack, and whose it is.
pub(super) struct OwnedFrame {
    pub(super) owner: Owner,
    /// Of its file.
    pub(super) name: String,
    /// Whether it is in the same file as `main`.
    pub(super) is_in_program: bool,
    pub(super) frame: StackFrame,
}

impl OwnedFrame {
    /// Whether it may be the program's: most libraries come without the lines of their sources.
    fn may_be_of_program(&self) -> bool {
        let has_line = self.owner == Owner::Program && self.frame.file.is_some();
        self.is_in_program || self.owner == Owner::Python || has_line
    }
}

impl Program<'_> {
    /// The functions at these addresses, of which the innermost comes first; the outermost comes first in what is returned. And
    /// whether `main` is among them. `now`: what the rank does; its functions of Python stand for those of the interpreter.
    pub(super) fn frames(
        &mut self,
        addresses: &[u64],
        now: Option<&RankNow>,
    ) -> (Vec<FrameNow>, bool) {
        let Owned { frames, has_beginning } = self.owned(addresses);
        let mut shown = shown(frames);
        if let Some(now) = now {
            shown.put_python(now);
        }
        (shown.frames, has_beginning)
    }

    /// The same of a thread that did not begin in `main`. Of one that a library keeps for itself it is only that library.
    pub(super) fn frames_of_thread(&mut self, addresses: &[u64]) -> ThreadStack {
        let Owned { frames, has_beginning } = self.owned(addresses);
        match library_of(&frames) {
            Some(library) => ThreadStack {
                frames: vec![of_name(library)],
                has_beginning: true,
                is_of_library: true,
            },
            None => {
                ThreadStack { frames: shown(frames).frames, has_beginning, is_of_library: false }
            }
        }
    }

    fn owned(&mut self, addresses: &[u64]) -> Owned {
        let mut frames = Vec::new();
        let mut main = None;
        let mut has_beginning = false;
        for address in addresses.iter().rev() {
            let Some(mapping) = self.maps.at(*address) else {
                frames.push(of_nothing(*address));
                continue;
            };
            for frame in names(self.symbols, mapping, *address).into_iter().rev() {
                let starts_thread = THREAD_STARTS.contains(&frame.function.as_str());
                if main.is_none() && (frame.function == "main" || starts_thread) {
                    has_beginning = true;
                    frames.clear();
                }
                if starts_thread {
                    continue;
                }
                if frame.function == "main" && main.is_none() {
                    main = Some(mapping.path.as_str());
                }
                frames.push(OwnedFrame {
                    owner: Owner::of_file(&mapping.path),
                    name: file_name(&mapping.path),
                    is_in_program: main.unwrap_or(self.executable) == mapping.path,
                    frame,
                });
            }
        }
        Owned { frames, has_beginning }
    }
}

/// The stack of a thread that did not begin in `main`.
pub(super) struct ThreadStack {
    pub(super) frames: Vec<FrameNow>,
    pub(super) has_beginning: bool,
    pub(super) is_of_library: bool,
}

/// The name of the library that keeps a thread for itself; none if the program is on its stack.
pub(super) fn library_of(frames: &[OwnedFrame]) -> Option<String> {
    if frames.iter().any(OwnedFrame::may_be_of_program) {
        return None;
    }
    let mut named = frames.iter().filter(|frame| !frame.name.is_empty());
    let first = named.clone().find(|frame| frame.owner != Owner::Beginning);
    first.or_else(|| named.next()).map(|frame| frame.name.clone())
}

/// The innermost first.
fn names(symbols: &mut Symbols, mapping: &Mapping, address: u64) -> Vec<StackFrame> {
    if !mapping.path.starts_with('/') {
        return vec![StackFrame::nameless(&mapping.path)];
    }
    symbols.frames_at(&mapping.path, address - mapping.range.start + mapping.offset)
}

/// Code that is in no file.
fn of_nothing(address: u64) -> OwnedFrame {
    let frame = StackFrame::nameless(&format!("{address:#x}"));
    OwnedFrame { owner: Owner::Program, name: String::new(), is_in_program: false, frame }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy().into())
}

/// What is shown of a stack, from the outermost function on.
pub(super) struct ShownStack {
    pub(super) frames: Vec<FrameNow>,
    /// The first that stands for an interpreter of Python.
    interpreter: Option<usize>,
}

impl ShownStack {
    /// Not if the rank has moved since `now` was seen.
    pub(super) fn put_python(&mut self, now: &RankNow) {
        let last = self.frames.last().map(|frame| &frame.function);
        let is_there = !now.in_mpi || last == now.function.as_ref();
        if let Some(at) = self.interpreter.filter(|_| is_there && !now.python.is_empty()) {
            self.frames.splice(at..=at, now.python.iter().rev().cloned());
        }
    }
}

pub(super) fn shown(frames: Vec<OwnedFrame>) -> ShownStack {
    let mut shown: Vec<FrameNow> = Vec::new();
    let mut interpreter = None;
    let mut was_python = false;
    let mut in_mpi = false;
    // A function of the MPI library, if the one that was called has no name there.
    let mut in_library = None;
    let begun = frames.iter().position(|frame| frame.owner != Owner::Beginning).unwrap_or(0);
    for OwnedFrame { owner, name, is_in_program, frame } in frames.into_iter().skip(begun) {
        // A function of the program that MPI calls.
        if in_mpi && !is_in_program {
            continue;
        }
        let called = match owner {
            Owner::Gyan => entry(&frame.function),
            _ => mpi_function(&frame.function),
        };
        match (owner, called) {
            (_, Some(function)) if !is_in_program => {
                in_mpi = true;
                shown.push(of_name(function));
            }
            (Owner::Gyan, _) => {}
            (Owner::Mpi | Owner::Binding, _) => {
                in_library = in_library.or(Some(of_name(frame.function)));
            }
            (Owner::Python, _) => {
                if !was_python {
                    interpreter = interpreter.or(Some(shown.len()));
                    shown.push(of_name(name));
                }
                was_python = true;
            }
            // What starts `main` lies between the interpreter and its library.
            (Owner::Beginning, _) if was_python => {}
            _ => {
                was_python = false;
                shown.push(FrameNow {
                    function: frame.function,
                    file: frame.file,
                    line: frame.line,
                    inlined: frame.inlined,
                });
            }
        }
    }
    shown.extend(in_library.filter(|_| !in_mpi));
    ShownStack { frames: shown, interpreter }
}

fn of_name(function: String) -> FrameNow {
    FrameNow { function, file: None, line: None, inlined: false }
}

/// The name in C of a function of MPI that a library has under this name.
fn mpi_function(name: &str) -> Option<String> {
    let rest = name.strip_prefix("PMPI_").or_else(|| name.strip_prefix("MPI_"))?;
    let is_name = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| format!("MPI_{rest}"))
}

/// The name in C of the function of MPI that an entry point of libgyan.so stands for, in C or in Fortran.
fn entry(name: &str) -> Option<String> {
    let of_c = mpi_function(name).filter(|name| name.contains(char::is_lowercase));
    let of_fortran = || {
        let lower = name.to_ascii_lowercase();
        let plain = lower.trim_end_matches('_').trim_end_matches("_f08");
        let rest = plain.strip_prefix("pmpi_").or_else(|| plain.strip_prefix("mpi_"))?;
        let (first, others) = rest.split_at_checked(1)?;
        mpi_function(&format!("MPI_{}{others}", first.to_ascii_uppercase()))
    };
    of_c.or_else(of_fortran)
}
