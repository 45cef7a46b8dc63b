//! What is shown of a stack, and stacks of a program that is known: the compiler's names are the truth.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gyan_results::{FrameNow, RankNow, StackNow};
use tempfile::TempDir;

use super::program::{OwnedFrame, library_of, shown};
use super::{StackReader, Taken, ThreadKind, WhichThreads, threads, tree};
use crate::symbols::StackFrame;
use crate::symbols::stacks::Owner;

const PROGRAM: &str = r#"#include <stdio.h>
#include <unistd.h>
static volatile int deep;
__attribute__((noinline)) void asleep(int seconds) {
    puts("asleep");
    fflush(stdout), sleep(seconds);
    deep++;
}
__attribute__((noinline)) void solve(int seconds) {
    volatile char large[LARGE];
    large[0] = 1;
    asleep(seconds + large[0]);
    deep++;
}
int main(void) {
    solve(300);
    return deep;
}
"#;

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other thread is in `work` before the main one is asleep.
const THREADS: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int deep;
static int ready[2];
__attribute__((noinline)) void work(void) {
    write(ready[1], "", 1), pause();
    deep++;
}
static void *worker(void *unused) {
    work();
    deep++;
    return unused;
}
int main(void) {
    pthread_t other;
    char byte;
    pipe(ready);
    pthread_create(&other, NULL, worker, NULL);
    read(ready[0], &byte, 1);
    puts("asleep");
    fflush(stdout), sleep(300);
    return deep;
}
"#;

/// Starts the program, and returns when it is about to sleep.
fn started(place: &Path, text: &str, options: &[&str]) -> Running {
    let (source, program) = (place.join("program.c"), place.join("program"));
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(options).arg(&source).arg("-o").arg(&program);
    assert!(compiler.status().unwrap().success());
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "asleep\n");
    Running(child)
}

/// The stacks of a process, none of which is cut; none where ptrace is forbidden.
fn stacks_of(running: &Running) -> Option<Vec<Taken>> {
    let id = running.0.id();
    let stacks = StackReader::default().stacks(id, None, WhichThreads::All);
    let stacks = match stacks.into_iter().collect::<Result<Vec<Taken>, String>>() {
        Ok(stacks) => stacks,
        Err(why) if why.contains("forbid") => {
            eprintln!("skipped: {why}");
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    for thread in threads(id) {
        let state = fs::read_to_string(format!("/proc/{id}/task/{thread}/status")).unwrap();
        assert!(state.contains("TracerPid:\t0\n"), "{state}");
    }
    assert!(stacks.iter().all(|taken| !taken.is_cut), "{:?}", functions_of(&stacks));
    Some(stacks)
}

fn functions_of(stacks: &[Taken]) -> Vec<Vec<(String, Option<u32>)>> {
    let of = |taken: &Taken| {
        let frames = taken.frames.iter();
        frames.map(|frame| (frame.function.clone(), frame.line)).collect()
    };
    stacks.iter().map(of).collect()
}

/// The functions of the program on its stack, with their lines; none where ptrace is forbidden.
fn functions(options: &[&str]) -> Option<Vec<(String, Option<u32>)>> {
    let place = TempDir::new().unwrap();
    let running = started(place.path(), PROGRAM, options);
    let mut functions = functions_of(&stacks_of(&running)?);
    assert_eq!(functions.len(), 1);
    functions.pop().map(|functions| functions.into_iter().take(3).collect())
}

#[test]
fn each_thread_begins_at_its_own_function() {
    for options in [&["-g", "-O0"][..], &["-g", "-O2", "-static"]] {
        let place = TempDir::new().unwrap();
        let running = started(place.path(), THREADS, &[options, &["-pthread"]].concat());
        let Some(stacks) = stacks_of(&running) else { return };
        let kinds: Vec<ThreadKind> = stacks.iter().map(|taken| taken.kind).collect();
        assert_eq!(kinds, [ThreadKind::Main, ThreadKind::OfProgram]);
        let functions = functions_of(&stacks);
        assert_eq!(functions[0][0], ("main".to_owned(), Some(22)), "{functions:?}");
        let worker = [("worker", 11), ("work", 7)].map(|(name, line)| (name.into(), Some(line)));
        assert_eq!(functions[1][..2], worker, "{functions:?}");
    }
}

#[test]
fn a_thread_without_the_program_is_its_librarys() {
    let progress = || {
        vec![
            owned(Owner::Beginning, "libc.so.6", "libc.so.6+0x10"),
            OwnedFrame {
                is_in_program: false,
                ..owned(Owner::Program, "libopen-pal.so.40", "progress_engine")
            },
            owned(Owner::Beginning, "libc.so.6", "epoll_wait"),
        ]
    };
    assert_eq!(library_of(&progress()).as_deref(), Some("libopen-pal.so.40"));
    let mut calling = progress();
    calling.push(owned(Owner::Program, "app", "callback"));
    assert_eq!(library_of(&calling), None);
    let timer = [owned(Owner::Beginning, "libc.so.6", "timer_helper")];
    assert_eq!(library_of(&timer).as_deref(), Some("libc.so.6"));
}

fn lines(expected: [(&str, u32); 3]) -> Vec<(String, Option<u32>)> {
    expected.map(|(function, line)| (function.to_owned(), Some(line))).to_vec()
}

#[test]
fn a_sleeping_program_is_where_its_source_says() {
    let truth = lines([("main", 16), ("solve", 12), ("asleep", 6)]);
    for options in [&["-g", "-O0"][..], &["-g", "-O2", "-fomit-frame-pointer", "-no-pie"]] {
        let options = [options, &["-DLARGE=16"]].concat();
        let Some(found) = functions(&options) else { return };
        assert_eq!(found, truth, "{options:?}");
    }
}

/// Fortran keeps arrays there.
#[test]
fn a_stack_larger_than_the_first_copy_is_copied_again() {
    let Some(found) = functions(&["-g", "-O1", "-DLARGE=3000000"]) else { return };
    assert_eq!(found, lines([("main", 16), ("solve", 12), ("asleep", 6)]));
}

#[test]
fn a_process_that_has_ended_has_a_reason() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let mut stacks = StackReader::default().stacks(child.id(), None, WhichThreads::All);
    let why = stacks.pop().and_then(Result::err);
    assert_eq!((why.as_deref(), stacks.len()), (Some("it has just ended"), 0));
}

fn owned(owner: Owner, name: &str, function: &str) -> OwnedFrame {
    let frame = StackFrame::nameless(function);
    OwnedFrame { owner, name: name.into(), is_in_program: owner == Owner::Program, frame }
}

fn names(frames: Vec<OwnedFrame>) -> Vec<String> {
    shown(frames).frames.into_iter().map(|frame| frame.function).collect()
}

#[test]
fn of_mpi_and_gyan_only_the_called_function_is_shown() {
    let stack = vec![
        owned(Owner::Beginning, "libc.so.6", "__libc_start_main"),
        owned(Owner::Program, "app", "main"),
        owned(Owner::Gyan, "libgyan.so", "MPI_Allreduce"),
        owned(Owner::Binding, "libmpi_mpifh.so", "ompi_allreduce_f"),
        owned(Owner::Mpi, "libmpi.so", "PMPI_Allreduce"),
        owned(Owner::Mpi, "libmpi.so", "ompi_coll_base"),
        owned(Owner::Program, "app", "my_sum"),
    ];
    assert_eq!(names(stack), ["main", "MPI_Allreduce", "my_sum"]);
    // What gyan does before and after the call is part of it.
    for name in ["MPI_Init", "PMPI_Init", "mpi_init_", "pmpi_init_f08_", "MPI_INIT"] {
        let in_gyan = vec![
            owned(Owner::Program, "app", "main"),
            owned(Owner::Gyan, "libgyan.so", name),
            owned(Owner::Gyan, "libgyan.so", "gyan::run::start"),
            owned(Owner::Mpi, "libmpi.so", "MPI_T_init_thread"),
        ];
        assert_eq!(names(in_gyan), ["main", "MPI_Init"], "{name}");
    }
    let nameless = vec![
        owned(Owner::Program, "app", "main"),
        owned(Owner::Mpi, "libmpi.so", "libmpi.so+0x12"),
        owned(Owner::Mpi, "libmpi.so", "libmpi.so+0x34"),
    ];
    assert_eq!(names(nameless), ["main", "libmpi.so+0x12"]);
}

#[test]
fn an_interpreter_is_one_row() {
    let stack = || {
        vec![
            owned(Owner::Python, "python3", "python3+0x10"),
            owned(Owner::Beginning, "libc.so.6", "__libc_start_main"),
            owned(Owner::Python, "libpython3.so", "_PyEval"),
            owned(Owner::Mpi, "libmpi.so", "MPI_Recv"),
        ]
    };
    assert_eq!(names(stack()), ["python3", "MPI_Recv"]);
    let frame = |function: &str| FrameNow {
        function: function.into(),
        file: Some("/src/solver.py".into()),
        line: Some(7),
        inlined: false,
    };
    let python = vec![frame("receive"), frame("<module>")];
    let mut now = RankNow { python, ..crate::hang::a_call("MPI_Recv") };
    let with_python = |now: &RankNow| {
        let mut shown = shown(stack());
        shown.put_python(now);
        shown.frames.into_iter().map(|frame| frame.function).collect::<Vec<_>>()
    };
    assert_eq!(with_python(&now), ["<module>", "receive", "MPI_Recv"]);
    // It has moved since.
    now.function = Some("MPI_Send".into());
    assert_eq!(with_python(&now), ["python3", "MPI_Recv"]);
}

fn stack(ranks: &[u32], frames: &[(&str, u32)]) -> StackNow {
    let frame = |&(function, line): &(&str, u32)| FrameNow {
        function: function.into(),
        file: (line > 0).then(|| "/src/app.c".into()),
        line: (line > 0).then_some(line),
        inlined: false,
    };
    let frames = frames.iter().map(frame).collect();
    let threads = ranks.len() as u64;
    StackNow { ranks: ranks.into(), threads, frames, is_cut: false, stopped_us: 9 }
}

fn rows(stacks: &[StackNow]) -> Vec<(String, Option<String>)> {
    tree(stacks).into_iter().map(|row| (row.function, row.ranks)).collect()
}

#[test]
fn stacks_are_one_from_the_root_to_where_they_part() {
    let stacks = [
        stack(&[3], &[("main", 121), ("io", 40)]),
        stack(&[0, 1, 2], &[("main", 120), ("solve", 80), ("MPI_Barrier", 0)]),
    ];
    let row = |function: &str, ranks: Option<&str>| (function.into(), ranks.map(str::to_owned));
    let expected = [
        row("main (app.c:120, 121)", Some("0-3")),
        row("  solve (app.c:80)", Some("0-2")),
        row("    MPI_Barrier", None),
        row("  io (app.c:40)", Some("3")),
    ];
    assert_eq!(rows(&stacks), expected);
    let cut = StackNow { is_cut: true, ..stack(&[7], &[("solve", 80)]) };
    assert_eq!(
        rows(&[cut]),
        [row("(what called it could not be read)", Some("7")), row("  solve (app.c:80)", None)]
    );
}

#[test]
fn threads_are_counted_at_each_branch() {
    let workers = |threads, frames: &[(&str, u32)]| StackNow { threads, ..stack(&[0, 1], frames) };
    let stacks = [
        stack(&[0, 1], &[("main", 9)]),
        workers(6, &[("worker", 20), ("solve", 80)]),
        workers(2, &[("worker", 20)]),
    ];
    let threads: Vec<_> = tree(&stacks).into_iter().map(|row| row.threads).collect();
    assert_eq!(threads, [Some(2), Some(8), Some(6)]);
}
