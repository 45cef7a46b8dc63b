//! The table of benches/results/measurements.md: how many of gyan's instructions a call takes on the fast path. Unlike
//! times, counts are the same on every machine with the same compiler.

use std::fmt::Write;
use std::fs;

use object::{Object, ObjectSection};

use super::{compare, parts};
use crate::common::{OPENMPI, Profiled, libgyan};

const DOCUMENT: &str = "benches/results/measurements.md";
const WHAT: &str = "the table of instructions";

/// In the order of `tests/programs/instructions.c`, with what gyan does besides counting the call.
const FUNCTIONS: [(&str, &str); 17] = [
    ("MPI_Test of a timed message", "looks at the request before and after the call"),
    ("MPI_Recv", "receives; an argument on the stack"),
    ("MPI_Irecv", "receives; an argument on the stack"),
    ("MPI_Test", "completes"),
    ("MPI_Testall", "completes"),
    ("MPI_Testany", "completes"),
    ("MPI_Iprobe", "receives"),
    ("MPI_Wait", "completes"),
    ("MPI_Waitall", "completes"),
    ("MPI_Barrier", "ranks wait"),
    ("MPI_Comm_rank", "nothing"),
    ("MPI_Send", "moves bytes: `message`"),
    ("MPI_Isend", "moves bytes: `message`; an argument on the stack"),
    ("MPI_Sendrecv", "receives; moves bytes: `message`; six arguments on the stack"),
    ("MPI_Bcast", "moves bytes: `broadcast`"),
    ("MPI_Allreduce", "ranks wait; moves bytes: `elements`"),
    ("MPI_Alltoall", "ranks wait; moves bytes: `to_all`; an argument on the stack"),
];

/// The instructions per call of each function.
fn counted(arguments: &[&str]) -> Vec<u64> {
    let libgyan = libgyan().display().to_string();
    let program = OPENMPI.compiled("instructions", &[]);
    // Hardly any call is timed.
    let settings = [("LD_PRELOAD", libgyan.as_str()), ("GYAN_BUDGET", "0.0001%")];
    let run = Profiled::run_file(OPENMPI, 1, &program, arguments, &settings).succeeded();
    let lines: Vec<(&str, u64)> = run
        .outcome
        .stdout
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, count)| (name, count.parse().expect("most calls take the same path")))
        .collect();
    assert!(lines.iter().map(|(name, _)| name).eq(FUNCTIONS.iter().map(|(name, _)| name)));
    lines.into_iter().map(|(_, count)| count).collect()
}

/// The compiler of libgyan.so, according to its own record.
fn compiler() -> String {
    let data = fs::read(libgyan()).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let comment = file.section_by_name(".comment").unwrap().data().unwrap();
    let comment = String::from_utf8_lossy(comment);
    let rustc = comment.split('\0').find_map(|line| line.strip_prefix("rustc version "));
    format!("rustc {}", rustc.unwrap().split(' ').next().unwrap())
}

/// The last two cells of each row that names a function.
fn counts_in(table: &str) -> Vec<(String, [u64; 2])> {
    let rows = table.lines().filter(|line| line.starts_with("| `MPI_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].to_owned(), [cells[3], cells[4]].map(|count| count.parse().unwrap()))
    })
    .collect()
}

#[test]
#[ignore = "scripts/test runs it after all others"]
fn performance_shows_how_many_instructions_a_call_takes() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the fast path in assembly is that for x86-64");
        return;
    }
    let compiler = compiler();
    let mut table = format!("\nWith {compiler}:\n\n");
    writeln!(table, "| function | beside counting the call | instructions | with threads |")
        .unwrap();
    writeln!(table, "| :-- | :-- | --: | --: |").unwrap();
    for ((name, what), (alone, threads)) in
        FUNCTIONS.iter().zip(counted(&[]).into_iter().zip(counted(&["multiple"])))
    {
        writeln!(table, "| `{name}` | {what} | {alone} | {threads} |").unwrap();
    }
    table.push('\n');
    let [_, known, _] = parts(DOCUMENT, WHAT);
    let is_blessed = std::env::var_os("BLESS").is_some();
    if is_blessed || known.contains(&format!("With {compiler}:")) {
        return compare(DOCUMENT, WHAT, &table);
    }
    // Another compiler may need fewer.
    for ((name, now), (known_name, before)) in counts_in(&table).iter().zip(counts_in(&known)) {
        assert_eq!(*name, known_name, "{DOCUMENT} is out of date; BLESS=1 scripts/test writes it");
        assert!(now.iter().zip(before).all(|(now, before)| *now <= before), "{name}: {now:?}");
    }
}
