//! What is measured? A table: programs with their arguments, the modes, the MPIs, and which numbers go into the
//! report.

use gyan_results::Overhead;

use super::modes::{self, Mode};
use super::mpis::NAMES;

/// A program that is run in some modes.
pub(super) struct Measurement {
    /// Its name on the command line.
    pub(super) part: &'static str,
    pub(super) program: Program,
    /// Number of ranks; 0 for none, without a launcher.
    pub(super) ranks: usize,
    pub(super) arguments: &'static [&'static str],
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) modes: fn() -> Vec<Mode>,
    /// Whether it measures another tool as well.
    pub(super) peers: bool,
    pub(super) mpis: Mpis,
    /// None if the times of functions are compared.
    pub(super) figures: &'static [Figure],
}

/// Where the program comes from.
pub(super) enum Program {
    /// `tests/programs/<name>.c`.
    Test(&'static str),
    /// An installed program with its input: the file that it reads, and its content.
    Installed { name: &'static str, input: (&'static str, fn() -> String) },
}

/// The MPIs that it is measured with.
pub(super) enum Mpis {
    /// These, and any other that the command line names.
    Usually(&'static [&'static str]),
    /// Only these: it does not run with others, or shows nothing there.
    Only(&'static [&'static str]),
}

/// One number of each run.
pub(super) struct Figure {
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) source: Source,
    pub(super) better: Better,
}

/// Where a number comes from.
pub(super) enum Source {
    /// The numbers on stdout, from 0.
    Printed(usize),
    /// The number on stderr.
    Noted,
    /// Seconds from the start of the launcher to its end.
    Elapsed,
    /// gyan's own account, the largest of all ranks; bare runs have none.
    Account(fn(&Overhead) -> f64),
}

/// Which of two numbers is the better one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Better {
    Lower,
    Higher,
}

const FOUR: Mpis = Mpis::Usually(&["openmpi4", "mpich4", "mpich-pvars", "openmpi-spc"]);
const EACH: Mpis = Mpis::Usually(&NAMES);
const DEBIANS: Mpis = Mpis::Usually(&["openmpi4", "mpich4"]);

const fn lower(what: &'static str, unit: &'static str, source: Source) -> Figure {
    Figure { what, unit, source, better: Better::Lower }
}

/// `bench_calls`; longer than a second, so that the budget applies.
const fn calls(
    part: &'static str,
    ranks: usize,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        part,
        program: Program::Test("bench_calls"),
        ranks,
        arguments,
        environment: &[],
        modes: modes::running,
        peers: true,
        mpis: FOUR,
        figures,
    }
}

/// The same with and without the parts that track messages.
const fn parts(measurement: Measurement) -> Measurement {
    Measurement { modes: modes::parts, mpis: DEBIANS, ..measurement }
}

/// All of them, in the order of the table.
pub(super) const ALL: [Measurement; 33] = [
    calls("receive", 1, &["receive", "1.2"], &[RECEIVE]),
    calls(
        "receive-multiple",
        1,
        &["receive", "1.2", "multiple"],
        &[lower(
            "`MPI_Recv` from `MPI_PROC_NULL`, at `MPI_THREAD_MULTIPLE`",
            "ns",
            Source::Printed(1),
        )],
    ),
    calls(
        "iprobe",
        1,
        &["iprobe", "1.2"],
        &[lower("`MPI_Iprobe` that finds nothing, a call", "ns", Source::Printed(1))],
    ),
    calls("barrier", 1, &["barrier", "1.2"], &[BARRIER]),
    calls(
        "pingpong",
        2,
        &["pingpong", "1.2"],
        &[
            lower("8-byte ping-pong, a round trip", "ns", Source::Printed(0)),
            lower("8-byte ping-pong, best tenth of a run", "ns", Source::Printed(1)),
        ],
    ),
    calls("rate", 2, &["rate", "1.2"], &[RATE]),
    parts(calls("parts-receive", 1, &["receive", "1.2"], &[RECEIVE])),
    parts(calls("parts-barrier", 1, &["barrier", "1.2"], &[BARRIER])),
    parts(calls("parts-pingpong", 2, &["pingpong", "1.2"], &[PINGPONG])),
    parts(calls("parts-rate", 2, &["rate", "1.2"], &[RATE])),
    halo("parts-halo", &["1200", "1000"], modes::parts, HALO),
    timeline(calls("timeline", 1, &["receive", "1.2"], &[RECEIVE])),
    timeline(calls("timeline-rate", 2, &["rate", "1.2"], &[RATE])),
    timeline(halo("timeline-halo", &["1200", "1000"], modes::recording, HALO)),
    watch("watch", 1, &["receive", "1.2"], &[RECEIVE]),
    watch("watch-pingpong", 2, &["pingpong", "1.2"], &[PINGPONG]),
    peruse("peruse", &["pingpong", "1.2"], &[PINGPONG]),
    peruse("peruse-rate", &["rate", "1.2"], &[RATE]),
    halo("halo", &["1200", "1000"], modes::running, HALO),
    hpcc("hpcc", hpcc_input, modes::running, HPCC),
    churn("churn", &["comm", "1.2"], &[COMM]),
    Measurement {
        // Open MPI 5's component for UCX writes a line of error for each window.
        environment: &[("OMPI_MCA_osc", "^ucx")],
        ..churn("churn-win", &["win", "1.2"], &[WIN])
    },
    accuracy("accuracy-pingpong", 2, &["pingpong", "10"]),
    accuracy("accuracy-rate", 2, &["rate", "10"]),
    halo("accuracy-halo", &["1200", "4000"], modes::accuracy, &[]),
    hpcc("accuracy-hpcc", hpcc_longer_input, modes::accuracy, &[]),
    Measurement { program: Program::Test("replay"), ..accuracy("accuracy-replay", 1, &["10"]) },
    Measurement {
        part: "lifecycle",
        program: Program::Test("bench_lifecycle"),
        ranks: 2,
        arguments: &[],
        environment: &[],
        modes: modes::starting,
        peers: true,
        mpis: EACH,
        figures: &[
            LIFECYCLE,
            lower("the same, `mpirun` as a whole", "s", Source::Elapsed),
            lower("resident memory after `MPI_Init`", "KiB", Source::Printed(1)),
            lower("resident memory after `MPI_Finalize`", "KiB", Source::Printed(2)),
            lower(
                "`MPI_T_init_thread` inside the library",
                "ms",
                Source::Account(|overhead| overhead.mpit_init_s * 1e3),
            ),
            lower(
                "gyan's own start, `MPI_T_init_thread` excluded",
                "ms",
                Source::Account(|overhead| overhead.init_s * 1e3),
            ),
            lower("gyan's own end", "ms", Source::Account(|overhead| overhead.finalize_s * 1e3)),
        ],
    },
    Measurement {
        part: "varlist",
        program: Program::Test("list"),
        ranks: 0,
        arguments: &[],
        environment: &[],
        modes: modes::listing,
        peers: false,
        mpis: DEBIANS,
        figures: &[lower("a listing of all variables", "s", Source::Elapsed)],
    },
    enabling("enabling", "bench_calls", &["pingpong", "1.2"], &[PINGPONG]),
    enabling("enabling-start", "bench_lifecycle", &[], &[LIFECYCLE]),
    Measurement {
        modes: modes::spc,
        mpis: Mpis::Only(&["openmpi-spc"]),
        ..enabling("enabling-spc", "bench_calls", &["pingpong", "1.2"], &[PINGPONG])
    },
    Measurement {
        modes: modes::spc,
        mpis: Mpis::Only(&["openmpi-spc"]),
        ..enabling("enabling-spc-start", "bench_lifecycle", &[], &[LIFECYCLE])
    },
];

const RECEIVE: Figure = lower("`MPI_Recv` from `MPI_PROC_NULL`, a call", "ns", Source::Printed(1));
const BARRIER: Figure = lower("`MPI_Barrier` of one rank, a call", "ns", Source::Printed(1));
const RATE: Figure = Figure {
    what: "8-byte messages, 64 receives outstanding",
    unit: "M/s",
    source: Source::Printed(0),
    better: Better::Higher,
};
const PINGPONG: Figure = lower("8-byte ping-pong, a round trip", "ns", Source::Printed(0));
const COMM: Figure = lower("`MPI_Comm_dup` and `MPI_Comm_free`, a pair", "ns", Source::Printed(0));
const WIN: Figure =
    lower("`MPI_Win_allocate` and `MPI_Win_free`, a pair", "ns", Source::Printed(0));
const HALO: &[Figure] = &[
    lower("halo exchange, its steps", "s", Source::Noted),
    lower("halo exchange, `mpirun` as a whole", "s", Source::Elapsed),
];
const HPCC: &[Figure] = &[lower("hpcc, `mpirun` as a whole", "s", Source::Elapsed)];
const LIFECYCLE: Figure = lower("`MPI_Init` and `MPI_Finalize`", "ms", Source::Printed(0));

const fn halo(
    part: &'static str,
    arguments: &'static [&'static str],
    modes: fn() -> Vec<Mode>,
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        program: Program::Test("halo_exchange"),
        environment: &[("HALO_TIME", "1")],
        modes,
        ..calls(part, 2, arguments, figures)
    }
}

const fn hpcc(
    part: &'static str,
    input: fn() -> String,
    modes: fn() -> Vec<Mode>,
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        program: Program::Installed { name: "hpcc", input: ("hpccinf.txt", input) },
        modes,
        // Debian's hpcc is built for Open MPI; the other one has the same interface.
        mpis: Mpis::Only(&["openmpi4", "openmpi-spc"]),
        ..calls(part, 2, &[], figures)
    }
}

/// The cost of creating and freeing communicators or windows, on one rank: several would wait for each other.
const fn churn(
    part: &'static str,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
) -> Measurement {
    Measurement { mpis: EACH, ..calls(part, 1, arguments, figures) }
}

/// The accuracy of the times: long enough for the estimates to be as good as they can be.
const fn accuracy(
    part: &'static str,
    ranks: usize,
    arguments: &'static [&'static str],
) -> Measurement {
    Measurement { modes: modes::accuracy, ..calls(part, ranks, arguments, &[]) }
}

/// The cost of recording every call.
const fn timeline(measurement: Measurement) -> Measurement {
    Measurement { modes: modes::recording, peers: false, ..measurement }
}

/// The cost of watching receives, with the MPIs that have the variable for it.
const fn watch(
    part: &'static str,
    ranks: usize,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        modes: modes::watching,
        peers: false,
        mpis: Mpis::Only(&["openmpi4", "openmpi5", "mpich-pvars", "openmpi-spc"]),
        ..calls(part, ranks, arguments, figures)
    }
}

/// The cost of callbacks at every message.
const fn peruse(
    part: &'static str,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        modes: modes::peruse,
        peers: false,
        mpis: Mpis::Only(&["openmpi-spc"]),
        ..calls(part, 2, arguments, figures)
    }
}

/// The cost of monitoring that the library leaves off, when gyan turns it on.
const fn enabling(
    part: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
) -> Measurement {
    Measurement {
        part,
        program: Program::Test(program),
        ranks: 2,
        arguments,
        environment: &[],
        modes: modes::monitoring,
        peers: false,
        mpis: Mpis::Only(&["openmpi4", "openmpi5"]),
        figures,
    }
}

/// The input of the tests with larger matrices: more than a second, so that the budget applies.
fn hpcc_input() -> String {
    include_str!("../../tests/fixtures/hpccinf.txt")
        .replace("200         Ns", "1500        Ns")
        .replace("32           NBs", "100          NBs")
}

/// The same for about ten seconds.
fn hpcc_longer_input() -> String {
    hpcc_input().replace("1500        Ns", "3200        Ns")
}

impl Measurement {
    /// Whether it compares the times of functions.
    pub(super) fn is_of_accuracy(&self) -> bool {
        self.figures.is_empty()
    }

    /// Whether it is made with this MPI.
    pub(super) fn runs_with(&self, mpi: &str, named: bool) -> bool {
        match &self.mpis {
            Mpis::Usually(mpis) => named || mpis.contains(&mpi),
            Mpis::Only(mpis) => mpis.contains(&mpi),
        }
    }
}
