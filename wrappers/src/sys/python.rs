//! Which line of Python called into this library? Read from the structures of the interpreter, without asking it:
//! a thread that is in MPI does not hold the interpreter's lock, so nothing of it may be called.
//!
//! What the thread itself runs stands still meanwhile. All else may change or vanish while it is read, and a
//! version may differ from the one in the table: so nothing is read but by the kernel, which refuses what is not
//! there, and whatever does not look as expected ends the search without a line. Other versions than those of
//! the table, interpreters inside of an interpreter, and names with other letters than ASCII have none.
//!
//! The keeper reads the same of a rank that stands still.

use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::memory::{self, ReadProcess};
use crate::sys::symbols::LoadedObject;
use crate::sys::{elf_objects, symbols};

/// Offsets of what is read, in bytes, as in `pycore_runtime.h`, `pycore_interp.h`, `pycore_frame.h`
/// and `code.h` of `CPython`. They stay the same within a minor version.
struct Layout {
    minor: u8,
    /// From the runtime to its main interpreter, and from that to its threads.
    main: usize,
    threads: usize,
    /// Of a thread: its `pthread_self`, and the way to its innermost frame.
    thread: usize,
    frame: &'static [usize],
    /// Of a frame.
    code: usize,
    instruction: usize,
    previous: usize,
    owner: usize,
    /// Of the code of a function.
    first_line: usize,
    instructions: usize,
    /// Where the letters of a text begin.
    letters: usize,
}

/// A thread names the one after it here.
const NEXT: usize = 8;
/// Of any object, of the code of a function, of an array of bytes, and of a text.
const KIND: usize = 8;
const FILE: usize = 112;
const FUNCTION: usize = 128;
const LINES: usize = 136;
const LENGTH: usize = 16;
const BYTES: usize = 32;
const STATE: usize = 32;
/// A text of ASCII letters that follow its header.
const IS_PLAIN: u32 = 1 << 5 | 1 << 6;
/// A frame of the interpreter itself.
const OF_INTERPRETER: u8 = 3;

const LAYOUTS: [Layout; 3] = [
    Layout {
        minor: 11,
        main: 48,
        threads: 16,
        thread: 152,
        frame: &[56, 8],
        code: 32,
        instruction: 56,
        previous: 48,
        owner: 69,
        first_line: 72,
        instructions: 184,
        letters: 48,
    },
    Layout {
        minor: 12,
        main: 48,
        threads: 72,
        thread: 136,
        frame: &[56, 0],
        code: 0,
        instruction: 56,
        previous: 8,
        owner: 70,
        first_line: 68,
        instructions: 192,
        letters: 40,
    },
    Layout {
        minor: 13,
        main: 640,
        threads: 7344,
        thread: 152,
        frame: &[72],
        code: 0,
        instruction: 56,
        previous: 8,
        owner: 70,
        first_line: 68,
        instructions: 200,
        letters: 40,
    },
];

const THREADS_AT_MOST: usize = 64;
const FRAMES_AT_MOST: usize = 64;
const TEXT_AT_MOST: usize = 512;
const LINES_AT_MOST: usize = 1 << 16;

/// An interpreter of a known version in this process.
struct Interpreter {
    layout: &'static Layout,
    runtime: usize,
    /// The kind of objects that are code.
    code: usize,
    range: Range<usize>,
    /// Its library is never unloaded: [`prepare`] holds it.
    is_held: bool,
}

static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();

/// For the keeper: of the interpreter its minor version, its runtime and the kind of objects that are code, and the
/// `pthread_self` of the thread that initialised MPI. All are 0 in a program without one.
static FOR_KEEPER: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Looks for an interpreter, once, in the thread that initialises MPI.
pub(crate) fn prepare() {
    let interpreter = INTERPRETER.get_or_init(|| {
        let address = |name| symbols::default(name).map(|found| found.as_ptr() as usize);
        let process = own_process();
        let version: u64 = process.read(address(c"Py_Version")?)?;
        let layout = LAYOUTS.iter().find(|layout| version >> 16 == 0x300 | u64::from(layout.minor));
        let (layout, found) = (layout?, symbols::default(c"_PyRuntime")?);
        let runtime = found.as_ptr() as usize;
        let mut range = 0..0;
        elf_objects::each(&mut |object| {
            if object.range().contains(&runtime) {
                range = object.range();
            }
        });
        // The program itself has no such handle.
        let is_held = LoadedObject::holding(found)
            .is_some_and(|library| library.find(c"_PyRuntime").is_some());
        Some(Interpreter { layout, runtime, code: address(c"PyCode_Type")?, range, is_held })
    });
    if let Some(Interpreter { layout, runtime, code, .. }) = interpreter {
        let all = [usize::from(layout.minor), *runtime, *code, own_thread()];
        for (place, word) in FOR_KEEPER.iter().zip(all) {
            place.store(word, Ordering::Relaxed);
        }
    }
}

fn own_process() -> ReadProcess {
    // SAFETY: getpid(2) has no preconditions.
    ReadProcess(unsafe { libc::getpid() })
}

fn own_thread() -> usize {
    // SAFETY: no requirements.
    let own = unsafe { libc::pthread_self() };
    usize::try_from(own).unwrap_or(0)
}

impl Interpreter {
    /// Whether it surely has not begun, as in a program that is linked with it and runs no script: tells so without the kernel.
    fn is_idle(&self) -> bool {
        let main = self.runtime.wrapping_add(self.layout.main);
        if !self.is_held || !self.range.contains(&main) || !main.is_multiple_of(align_of::<usize>())
        {
            return false;
        }
        // SAFETY: an aligned word of the statics of a library that is never unloaded; whoever writes it writes all of it at once.
        let main = unsafe { &*ptr::with_exposed_provenance::<AtomicUsize>(main) };
        main.load(Ordering::Relaxed) == 0
    }
}

fn interpreter() -> Option<&'static Interpreter> {
    INTERPRETER.get()?.as_ref()
}

/// Whether an address is in the interpreter.
pub(crate) fn is_interpreter(address: usize) -> bool {
    interpreter().is_some_and(|interpreter| interpreter.range.contains(&address))
}

/// A line of a function of Python.
pub(crate) struct Line {
    pub(crate) function: Text,
    pub(crate) file: Text,
    pub(crate) number: u32,
}

/// The innermost line that this thread is at in a file; none in case of any doubt.
pub(crate) fn line() -> Option<Line> {
    let interpreter = interpreter()?;
    if interpreter.is_idle() {
        return None;
    }
    let Interpreter { layout, runtime, code, .. } = interpreter;
    PythonFrames::of_thread(own_process(), layout, *runtime, *code, own_thread())?.next()
}

/// The lines that the thread of another process is at which initialised MPI there, the innermost first; as far as there is no
/// doubt. `distance`: from the statics of this process to those of the other.
pub(crate) fn lines_of(pid: libc::pid_t, distance: usize) -> Vec<Line> {
    let at = (&raw const FOR_KEEPER).addr().wrapping_add(distance);
    let Ok([minor, runtime, code, thread]) = memory::words_from(pid, at) else { return Vec::new() };
    let layout = LAYOUTS.iter().find(|layout| usize::from(layout.minor) == minor);
    let frames = layout.and_then(|layout| {
        PythonFrames::of_thread(ReadProcess(pid), layout, runtime, code, thread)
    });
    frames.into_iter().flatten().collect()
}

/// The frames of a thread, from the innermost on.
struct PythonFrames {
    process: ReadProcess,
    layout: &'static Layout,
    /// The kind of objects that are code.
    code_kind: usize,
    /// 0 behind the last one.
    next: usize,
    left: usize,
}

impl PythonFrames {
    /// `thread`: what `pthread_self` returns in it.
    fn of_thread(
        process: ReadProcess,
        layout: &'static Layout,
        runtime: usize,
        code_kind: usize,
        thread: usize,
    ) -> Option<PythonFrames> {
        let main: usize = process.read(runtime.checked_add(layout.main)?)?;
        let mut state: usize = process.read(main.checked_add(layout.threads)?)?;
        let mut left = THREADS_AT_MOST;
        while process.read::<usize>(state.checked_add(layout.thread)?)? != thread {
            left = left.checked_sub(1)?;
            state = process.read(state.checked_add(NEXT)?)?;
        }
        let mut next = state;
        for offset in layout.frame {
            next = process.read(next.checked_add(*offset)?)?;
        }
        Some(PythonFrames { process, layout, code_kind, next, left: FRAMES_AT_MOST })
    }
}

impl Iterator for PythonFrames {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let PythonFrames { process, layout, code_kind, .. } = *self;
        loop {
            let frame = self.next;
            self.left = self.left.checked_sub(1)?;
            if frame == 0 || !frame.is_multiple_of(align_of::<usize>()) {
                return None;
            }
            self.next = process.read(frame.checked_add(layout.previous)?)?;
            if process.read::<u8>(frame.checked_add(layout.owner)?)? == OF_INTERPRETER {
                continue;
            }
            let code: usize = process.read(frame.checked_add(layout.code)?)?;
            if process.read::<usize>(code.checked_add(KIND)?)? != code_kind {
                return None;
            }
            let file = layout.text(process, code.checked_add(FILE)?)?;
            // Code that the interpreter contains, such as that of `import`, has no file.
            if !file.as_str().starts_with('<') {
                let function = layout.text(process, code.checked_add(FUNCTION)?)?;
                return Some(Line { function, file, number: layout.line(process, frame, code)? });
            }
        }
    }
}

impl Layout {
    fn line(&self, process: ReadProcess, frame: usize, code: usize) -> Option<u32> {
        let instruction: usize = process.read(frame.checked_add(self.instruction)?)?;
        let at = instruction.checked_sub(code.checked_add(self.instructions)?)?;
        let first: i32 = process.read(code.checked_add(self.first_line)?)?;
        let lines: usize = process.read(code.checked_add(LINES)?)?;
        let length: usize = process.read(lines.checked_add(LENGTH)?)?;
        let table = Bytes::new(process, lines.checked_add(BYTES)?, length.min(LINES_AT_MOST));
        line_at(table, first.into(), at)
    }

    fn text(&self, process: ReadProcess, pointer: usize) -> Option<Text> {
        let text: usize = process.read(pointer)?;
        let length: usize = process.read(text.checked_add(LENGTH)?)?;
        let state: u32 = process.read(text.checked_add(STATE)?)?;
        if state & IS_PLAIN != IS_PLAIN || length > TEXT_AT_MOST {
            return None;
        }
        let mut found = Text { letters: [0; TEXT_AT_MOST], length };
        let letters = found.letters.get_mut(..length)?;
        process.read_into(text.checked_add(self.letters)?, letters)?;
        (!letters.is_empty() && letters.iter().all(u8::is_ascii)).then_some(found)
    }
}

/// A text of ASCII letters.
pub(crate) struct Text {
    letters: [u8; TEXT_AT_MOST],
    length: usize,
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        let letters = self.letters.get(..self.length).unwrap_or_default();
        std::str::from_utf8(letters).unwrap_or_default()
    }
}

/// The line of the instruction `at` this offset, from the table of a function that begins in line `first`
/// (`CPython`, `Objects/locations.md`).
fn line_at(table: impl Iterator<Item = u8>, first: i64, at: usize) -> Option<u32> {
    const IS_FIRST: u8 = 0x80;
    const IS_FOLLOWED: u8 = 0x40;
    let mut table = table.peekable();
    let (mut line, mut end) = (first, 0_usize);
    while let Some(entry) = table.next() {
        if entry & IS_FIRST == 0 {
            return None;
        }
        end += (usize::from(entry & 7) + 1) * 2;
        let form = entry >> 3 & 15;
        let has_line = form != 15;
        match form {
            13 | 14 => {
                let (mut number, mut shift) = (0_i64, 0_u32);
                loop {
                    let byte = table.next_if(|byte| byte & IS_FIRST == 0)?;
                    number |= i64::from(byte & 63).checked_shl(shift)?;
                    shift += 6;
                    if byte & IS_FOLLOWED == 0 {
                        break;
                    }
                    if shift > 30 {
                        return None;
                    }
                }
                line += if number & 1 == 0 { number >> 1 } else { -(number >> 1) };
            }
            10..=12 => line += i64::from(form - 10),
            _ => {}
        }
        // Columns.
        while table.next_if(|byte| byte & IS_FIRST == 0).is_some() {}
        if at < end {
            return if has_line { u32::try_from(line).ok().filter(|line| *line > 0) } else { None };
        }
    }
    None
}

/// Bytes in memory, read in pieces; ends early where they cannot be read.
struct Bytes {
    process: ReadProcess,
    next: usize,
    left: usize,
    piece: [u8; 256],
    at: usize,
    length: usize,
}

impl Bytes {
    fn new(process: ReadProcess, next: usize, left: usize) -> Bytes {
        Bytes { process, next, left, piece: [0; 256], at: 0, length: 0 }
    }
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.at == self.length {
            let length = self.left.min(self.piece.len());
            let piece = self.piece.get_mut(..length).filter(|piece| !piece.is_empty())?;
            self.process.read_into(self.next, piece)?;
            self.next = self.next.checked_add(length)?;
            (self.left, self.at, self.length) = (self.left - length, 0, length);
        }
        self.at += 1;
        self.piece.get(self.at - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_gives_nothing() {
        let number = 7_u64;
        let process = own_process();
        assert_eq!(process.read::<u64>(&raw const number as usize), Some(7));
        assert_eq!(process.read::<u64>(8), None);
        assert_eq!(process.read::<u64>(usize::MAX - 3), None);
        assert_eq!(Bytes::new(process, 8, 300).next(), None);
        assert!(line().is_none());
        assert!(lines_of(process.0, 0).is_empty());
    }

    /// What `CPython` 3.11 makes of a function in line 1 whose lines 2 and 3 call something:
    /// `compile("def f():\n  g()\n  h()\n", "", "exec").co_consts[0].co_linetable`; its `co_lines()` says that
    /// line 2 is from 2 to 30, and line 3 from there to 62.
    #[test]
    fn a_line_is_that_of_the_interpreters_own_table() {
        let table = b"\x80\x00\xdd\x02\x03\x81#\x84#\x80#\xdd\x02\x03\x81#\x84#\x80#\x80#\x80#";
        let line = |at| line_at(table.iter().copied(), 1, at);
        assert_eq!([0, 2, 28, 30, 60].map(line), [1, 2, 2, 3, 3].map(Some));
        assert_eq!(line(62), None);
        assert_eq!(line(1 << 20), None);
        for cut in 0..table.len() {
            let _ = line_at(table.iter().copied().take(cut), 1, 30);
        }
        assert_eq!(line_at([1, 2, 3].into_iter(), 1, 0), None);
    }
}
