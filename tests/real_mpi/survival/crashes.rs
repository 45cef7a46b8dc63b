//! Programs that crash: `gyan now` says in which function and line, and they end as without gyan.

use crate::common::{
    BED, MPICH, Mpi, OPENMPI, OPENMPI5, Profiled, comes_true, command, gyan, line_of, run,
};

/// A case of `tests/programs/crash.c`: the signal, and the functions, the innermost first, each with the comment at its line; empty
/// where that depends on the compiler.
struct Crash {
    what: &'static str,
    signal: &'static str,
    functions: &'static [(&'static str, &'static str)],
}

const CASES: &[Crash] = &[
    Crash { what: "segv", signal: "SIGSEGV", functions: &[("wrong", "segv"), ("main", "main")] },
    Crash { what: "abort", signal: "SIGABRT", functions: &[("wrong", "abort"), ("main", "main")] },
    Crash { what: "fpe", signal: "SIGFPE", functions: &[("wrong", "fpe"), ("main", "main")] },
    Crash { what: "call", signal: "SIGSEGV", functions: &[("wrong", "call"), ("main", "main")] },
    Crash { what: "in-libc", signal: "SIGSEGV", functions: &[("wrong", "in-libc")] },
    Crash { what: "overflow", signal: "SIGSEGV", functions: &[("deeper", "")] },
    Crash {
        what: "thread",
        signal: "SIGSEGV",
        functions: &[("wrong", "segv"), ("in_thread", "in_thread")],
    },
];

fn crashes(mpi: Mpi, cases: &[Crash]) {
    let program = mpi.compiled("crash", &["-g"]);
    for Crash { what, signal, functions } in cases {
        let with = Profiled::preloaded(mpi, 2, &program, &[what], &[]);
        let words = [mpi.mpirun(2), vec![program.display().to_string(), (*what).to_owned()]];
        let without = run(&mut command(&words.concat()));
        assert_eq!(with.outcome.code, without.code, "{mpi:?} {what}: {}", with.outcome.stderr);
        let at = |(function, comment): &(&str, &str)| {
            let line = (!comment.is_empty()).then(|| line_of("crash.c", comment).to_string());
            format!("{function} at crash.c:{}", line.unwrap_or_default())
        };
        let functions: Vec<String> = functions.iter().map(at).collect();
        let expected = functions.join(", called by ");
        let mut said = String::new();
        let is_said = comes_true(|| {
            let now = run(gyan().arg("now").arg(&with.directory)).stdout;
            said = now.split_whitespace().collect::<Vec<&str>>().join(" ");
            said.contains(&format!("rank 1 ended by {signal} (")) && said.contains(&expected)
        });
        assert!(is_said, "{mpi:?} {what}: {expected}\n{said}");
    }
}

#[test]
fn where_a_rank_crashed_is_said_with_open_mpi_4() {
    crashes(OPENMPI, CASES);
}

#[test]
fn where_a_rank_crashed_is_said_with_mpich_4() {
    crashes(MPICH, CASES);
}

#[test]
fn where_a_rank_crashed_is_said_with_the_other_mpis() {
    for mpi in [OPENMPI5, BED[3], BED[5]] {
        crashes(mpi, &CASES[..2]);
    }
}

/// A program's own handler is called as without gyan, and nothing is noted before it.
#[test]
fn a_handler_of_the_program_stays_alone() {
    for mpi in [OPENMPI, MPICH] {
        let program = mpi.compiled("crash", &["-g"]);
        let run = Profiled::preloaded(mpi, 2, &program, &["handler"], &[]);
        // By `_exit` in the handler.
        assert_eq!(run.outcome.code, 40 + 11, "{mpi:?}: {}", run.outcome.stderr);
    }
}

/// The process ends as without gyan. Whether the system tells the signal depends on its age, and on who waits for the process.
#[test]
fn without_the_handlers_a_crash_is_said_without_its_place() {
    let program = OPENMPI.compiled("crash", &["-g"]);
    let off = [("GYAN_CRASHES", "off")];
    let crashed = Profiled::preloaded(OPENMPI, 2, &program, &["abort"], &off);
    let mut said = String::new();
    let is_said = comes_true(|| {
        said = run(gyan().arg("now").arg(&crashed.directory)).stdout;
        said.contains("rank 1 ended")
    });
    let place = format!("crash.c:{}", line_of("crash.c", "abort"));
    assert!(is_said && !said.contains(&place), "{said}");
}
