//! What is shown of a stack, and stacks of a program that is known: the compiler's names are the truth.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gyan_results::{FrameNow, RankNow, StackNow};
use tempfile::TempDir;

use super::program::{OwnedFrame, shown};
use super::{StackReader, tree};
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

/// Starts the program, and returns when it is about to sleep.
fn started(place: &Path, options: &[&str]) -> Running {
    let (source, program) = (place.join("program.c"), place.join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(options).arg(&source).arg("-o").arg(&program);
    assert!(compiler.status().unwrap().success());
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "asleep\n");
    Running(child)
}

/// The functions of the program on its stack, with their lines; none where ptrace is forbidden.
fn functions(options: &[&str]) -> Option<Vec<(String, Option<u32>)>> {
    let place = TempDir::new().unwrap();
    let running = started(place.path(), options);
    let taken = match StackReader::default().stack(running.0.id(), None) {
        Ok(taken) => taken,
        Err(why) if why.contains("forbid") => {
            eprintln!("skipped: {why}");
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    assert!(!taken.is_cut, "{:?}", taken.frames);
    let state = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
    assert!(state.contains("TracerPid:\t0\n"), "{state}");
    let of_program = taken.frames.into_iter().take(3);
    Some(of_program.map(|frame| (frame.function, frame.line)).collect())
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
    let why = StackReader::default().stack(child.id(), None).err().unwrap();
    assert_eq!(why, "it has just ended");
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
    StackNow { ranks: ranks.into(), frames, is_cut: false, stopped_us: 9 }
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
