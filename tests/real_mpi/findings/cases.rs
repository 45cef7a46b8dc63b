//! The proof of each rule. A rule about queues needs a library that reports them: MPICH with its variables, or
//! Open MPI with PERUSE; one about a setting needs the library that has it. All cases use real MPIs.

use gyan_results::{Quantity, Summary};

use super::Then::{Gone, MayStay};
use super::Twin::{Advised, Healthy, Started};
use super::witnesses::Is::{Counted, Ratio, Seconds};
use super::witnesses::{self as of, Is, NONE, Witness};
use super::{Case, Ranks, Start, Then, Twin, start};
use crate::common::{BED, MPICH_PVARS, Mpi, OPENMPI_SPC, OPENMPI5};

const OPENMPI4: Mpi = BED[0];
const MPICH4: Mpi = BED[1];
const INTELMPI: Mpi = BED[5];

/// Messages one by one.
const PERUSE: Start = Start {
    environment: &[("GYAN_EVENTS", "peruse"), ("OMPI_MCA_pml", "ob1")],
    ..start(OPENMPI_SPC)
};
/// The same where the ranks do not compare messages.
const PERUSE_ALONE: Start = Start {
    environment: &[("GYAN_EVENTS", "peruse"), ("OMPI_MCA_pml", "ob1"), ("GYAN_WAITING", "off")],
    ..start(OPENMPI_SPC)
};
const CROWD: Start = Start { ranks: Ranks::PerProcessor(2), has_slots: true, ..start(OPENMPI4) };
const COPIED: Start = Start { set: &["btl_vader_single_copy_mechanism=none"], ..start(OPENMPI4) };
const TCP: Start = Start { set: &["btl=tcp,self"], ..start(OPENMPI4) };
/// Every call is timed: on a busy machine, the time of very short calls is a lower bound otherwise.
const TIMED: Start = Start { environment: &[("GYAN_BUDGET", "none")], ..start(OPENMPI4) };
const POLLS: &[&str] = &["MPIR_CVAR_POLLS_BEFORE_YIELD=7"];
const FOUR: Start =
    Start { ranks: Ranks::Are(4), environment: &[("GYAN_BUDGET", "none")], ..start(MPICH_PVARS) };

const OPENMP: Start = Start { is_openmp: true, ..start(MPICH4) };
/// Threads sleep between regions: they take no processor from the ranks, and take long to start.
const PASSIVE: Start = Start { environment: &[("OMP_WAIT_POLICY", "passive")], ..OPENMP };

const WAIT: Witness =
    Witness { name: "wait for a processor, all ranks", of: of::wait_for_processors, is: Seconds };
const USED: Witness = Witness {
    name: "processors that a rank used",
    of: |summary| Some(summary.resources.as_ref()?.processors_used.as_ref()?.avg),
    is: Ratio,
};
const EXCHANGING: Witness = seconds("time in `MPI_Sendrecv`", |of| of::time(of, "MPI_Sendrecv"));
const SENDING: Witness = seconds("time in `MPI_Send`", |of| of::time(of, "MPI_Send"));
const STARTING: Witness = seconds("time in `MPI_Init`", |of| of::time(of, "MPI_Init"));
const IN_MPI: Witness = Witness { name: "share of MPI", of: of::share_of_mpi, is: Ratio };

const fn seconds(name: &'static str, of: fn(&Summary) -> Option<f64>) -> Witness {
    Witness { name, of, is: Seconds }
}

/// In the program without the problem, the finding is gone and the number is another.
const fn healthy(
    name: &'static str,
    is: Is,
    of: fn(&Summary) -> Option<f64>,
) -> (Twin, Then, Witness) {
    (Healthy, Gone, Witness { name, of, is })
}

/// In a ring of two, which this library chooses, each sends twice; with recursive doubling, once; 100 times.
const fn messages_of_collectives(before: f64, after: f64) -> Witness {
    Witness {
        name: "messages of collectives",
        of: of::messages_of_collectives,
        is: Counted([before; 2], [after; 2]),
    }
}

pub(super) const CASES: &[Case] = &[
    Case {
        evidence: &[("times that ranks lost or yielded their processor", 1.0, f64::INFINITY)],
        twins: &[
            (Started(Start { ranks: Ranks::PerProcessor(1), ..CROWD }), Gone, WAIT),
            (Advised(&[]), MayStay, WAIT),
        ],
        ..Case::of("oversubscribed", CROWD)
    },
    Case {
        evidence: &[("ranks on the fullest core", 2.0, 2.0), ("ranks on a host", 2.0, 2.0)],
        twins: &[(Started(start(MPICH4)), Gone, WAIT)],
        ..Case::of("bound-together", Start { is_bound: true, ..start(MPICH4) })
    },
    Case {
        twins: &[(Healthy, Gone, NONE)],
        ..Case::of("other-load", Start { is_beside_others: true, ..start(MPICH4) })
    },
    Case {
        evidence: &[("processors that a rank used, on average", 0.3, 1.1)],
        twins: &[(Healthy, Gone, USED)],
        ..Case::of("idle-processors", Start { ranks: Ranks::Are(1), ..start(MPICH4) })
    },
    Case {
        // 2,000 messages of 1 MiB from each of two ranks.
        evidence: &[("bytes in messages of 64 KiB and more", 4_194_304_000.0, 4_194_304_000.0)],
        twins: &[(Healthy, Gone, NONE), (Advised(&[]), Gone, EXCHANGING)],
        ..Case::of("copied-twice", COPIED)
    },
    Case {
        functions: &["MPI_Init"],
        evidence: &[("time in MPI_Init", 2.0, f64::INFINITY)],
        twins: &[
            (Started(start(MPICH4)), Gone, STARTING),
            // On a busy machine it still takes half a second.
            (Advised(&[]), MayStay, STARTING),
        ],
        ..Case::of("slow-start", start(OPENMPI5))
    },
    Case {
        functions: &["MPI_Allreduce"],
        ranks: &[1],
        evidence: &[("load balance", 0.4, 0.75)],
        twins: &[healthy("load balance", Ratio, |summary| {
            Some(summary.efficiencies.as_ref()?.load_balance)
        })],
        ..Case::of("imbalance", start(MPICH4))
    },
    Case {
        // 40 steps of at least 20 ms; they take longer on a busy machine.
        evidence: &[
            ("threads of a rank", 4.0, 4.0),
            ("time outside of parallel regions and of MPI", 1.6, f64::INFINITY),
        ],
        twins: &[healthy("OpenMP efficiency", Ratio, |summary| Some(of::hybrid(summary)?.openmp))],
        ..Case::of("serial-code", OPENMP)
    },
    Case {
        // Of 4 x 40 ms, 90 ms.
        evidence: &[("of its threads' time", 0.45, 0.6), ("entries on all ranks", 80.0, 80.0)],
        twins: &[healthy("load balance of threads", Ratio, |summary| {
            Some(of::hybrid(summary)?.load_balance)
        })],
        ..Case::of("openmp-imbalance", OPENMP)
    },
    Case {
        evidence: &[
            ("entries on all ranks", 20_000.0, 20_000.0),
            ("time of an entry", 5e-6, 100e-6),
        ],
        twins: &[healthy("OpenMP efficiency", Ratio, |summary| Some(of::hybrid(summary)?.openmp))],
        ..Case::of("short-regions", Start { ranks: Ranks::Are(1), ..PASSIVE })
    },
    Case {
        functions: &["MPI_Allreduce"],
        evidence: &[("threads of a rank", 4.0, 4.0)],
        twins: &[healthy("MPI efficiency of threads", Ratio, |summary| {
            Some(of::hybrid(summary)?.mpi)
        })],
        ..Case::of("threads-wait-for-mpi", PASSIVE)
    },
    Case {
        functions: &["MPI_Alltoallv"],
        evidence: &[("communication efficiency", 0.2, 0.6)],
        twins: &[healthy("communication efficiency", Ratio, |summary| {
            Some(summary.efficiencies.as_ref()?.communication)
        })],
        ..Case::of("communication", start(MPICH4))
    },
    Case {
        functions: &["MPI_Allreduce"],
        ranks: &[1],
        evidence: &[("calls that were compared", 40.0, 40.0)],
        twins: &[healthy("waiting in `MPI_Allreduce`", Seconds, |of| {
            of::waiting(of, "MPI_Allreduce")
        })],
        ..Case::of("waiting", start(MPICH4))
    },
    Case {
        functions: &["MPI_Bcast"],
        ranks: &[1],
        evidence: &[("calls that were compared", 40.0, 40.0)],
        twins: &[healthy("waiting in `MPI_Bcast`", Seconds, |of| of::waiting(of, "MPI_Bcast"))],
        ..Case::of("late-root", start(MPICH4))
    },
    Case {
        functions: &["MPI_Reduce"],
        ranks: &[1],
        evidence: &[("calls that were compared", 40.0, 40.0)],
        twins: &[healthy("waiting in `MPI_Reduce`", Seconds, |of| of::waiting(of, "MPI_Reduce"))],
        ..Case::of("early-root", start(OPENMPI5))
    },
    Case {
        functions: &["MPI_Allreduce"],
        twins: &[
            (Healthy, Gone, NONE),
            // Each of four ranks sends 4 messages by Rabenseifner's algorithm, which this library chooses, and 2 by
            // recursive doubling; 100 times.
            (Advised(&[("N", "3")]), MayStay, messages_of_collectives(1600.0, 800.0)),
        ],
        ..Case::of("algorithm", Start { ranks: Ranks::Are(4), ..PERUSE })
    },
    Case {
        functions: &["MPI_Barrier"],
        evidence: &[("calls on all ranks", 80.0, 80.0)],
        twins: &[healthy("calls of `MPI_Barrier`", Counted([80.0; 2], [0.0; 2]), |summary| {
            of::calls(summary, "MPI_Barrier")
        })],
        ..Case::of("barrier", start(MPICH4))
    },
    Case {
        evidence: &[
            ("messages from the eager limit to eight times that", 40.0, 40.0),
            ("messages", 40.0, 40.0),
            ("btl_tcp_eager_limit", 65536.0, 65536.0),
        ],
        twins: &[(Healthy, Gone, SENDING), (Advised(&[]), Gone, SENDING)],
        ..Case::of("eager-limit", TCP)
    },
    Case {
        evidence: &[
            ("messages from the eager limit to eight times that", 40.0, 40.0),
            ("MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ", 65536.0, 65536.0),
        ],
        twins: &[(Advised(&[]), Gone, SENDING)],
        ..Case::of("eager-limit", start(MPICH_PVARS))
    },
    Case {
        ranks: &[0],
        // The last one may be among them.
        evidence: &[("longest queue of unexpected messages", 2000.0, 2001.0)],
        twins: &[healthy(
            "longest queue of unexpected messages",
            Counted([2000.0, 2001.0], [0.0, 2.0]),
            |summary| of::most(summary, Quantity::UnexpectedLength),
        )],
        ..Case::of("flooded", PERUSE)
    },
    Case {
        functions: &["MPI_Recv"],
        ranks: &[0],
        // 40 ms of one rank and 20 ms of the other, in each of 39 steps.
        evidence: &[("waiting while the next message was there", 1.1, 1.8)],
        twins: &[healthy("waiting while the next message was there", Seconds, |summary| {
            summary.message_waiting.as_ref().map(|of| of.wrong_order_s)
        })],
        ..Case::of("wrong-order", start(OPENMPI5))
    },
    Case {
        functions: &["MPI_Recv"],
        ranks: &[0, 1],
        // 40 ms in each of 40 steps.
        evidence: &[("waiting for late senders", 1.5, 2.4)],
        twins: &[healthy("waiting for late senders", Seconds, |summary| {
            summary.message_waiting.as_ref().map(|of| of.late_senders_s)
        })],
        ..Case::of("late-senders", start(MPICH4))
    },
    Case {
        functions: &["MPI_Recv"],
        // Two more in the last exchange.
        evidence: &[("receives that waited", 38.0, 42.0)],
        twins: &[healthy("receives that waited", Counted([38.0, 42.0], [0.0, 2.0]), |summary| {
            of::number(summary, Quantity::LateSenders)
        })],
        ..Case::of("late-senders", PERUSE_ALONE)
    },
    Case {
        functions: &["MPI_Ssend"],
        ranks: &[0, 1],
        // 30 ms in each of 40 steps.
        evidence: &[("waiting for late receivers", 1.1, 1.8)],
        twins: &[healthy("waiting for late receivers", Seconds, |summary| {
            summary.message_waiting.as_ref().map(|of| of.late_receivers_s)
        })],
        ..Case::of("late-receivers", start(MPICH4))
    },
    Case {
        evidence: &[("messages that came first", 36.0, 40.0)],
        twins: &[healthy(
            "messages that came before their receive",
            Counted([36.0, 40.0], [0.0; 2]),
            |summary| of::number(summary, Quantity::LateReceivers),
        )],
        ..Case::of("unexpected-messages", PERUSE_ALONE)
    },
    Case {
        // The sum of 1 to 900 in each of 100 rounds on each of two ranks.
        evidence: &[("match attempts", 81_090_000.0, 81_090_000.0)],
        twins: &[healthy(
            "match attempts",
            Counted([81_090_000.0; 2], [180_000.0; 2]),
            |summary| of::number(summary, Quantity::UnexpectedMatchAttempts),
        )],
        ..Case::of("long-searches", start(MPICH_PVARS))
    },
    Case {
        evidence: &[("messages", 800_000.0, 800_000.0), ("bytes", 6_400_000.0, 6_400_000.0)],
        twins: &[healthy(
            "calls of `MPI_Sendrecv`",
            Counted([800_000.0; 2], [800.0; 2]),
            |summary| of::calls(summary, "MPI_Sendrecv"),
        )],
        ..Case::of("small-messages", start(MPICH4))
    },
    Case {
        functions: &["MPI_Send"],
        twins: &[(
            Advised(&[]),
            Gone,
            Witness {
                name: "longest `MPI_Send`",
                of: |summary| of::longest(summary, "MPI_Send"),
                is: Seconds,
            },
        )],
        ..Case::of("first-contact", TCP)
    },
    Case {
        ranks: &[0],
        // 1,000 messages of 4,000 bytes from each of three ranks.
        evidence: &[("unexpected_recvq_buffer_size on rank 0", 11_900_000.0, 12_100_000.0)],
        twins: &[healthy(
            "`unexpected_recvq_buffer_size`, largest sample",
            Counted([11_900_000.0, 12_100_000.0], [0.0, 4_100_000.0]),
            |summary| of::sampled(summary, "unexpected_recvq_buffer_size"),
        )],
        ..Case::of("memory", FOUR)
    },
    Case {
        functions: &["MPI_Iprobe"],
        evidence: &[
            ("calls that ask", 10_000_000.0, 10_000_000.0),
            ("requests and messages", 2.0, 2.0),
        ],
        twins: &[healthy(
            "calls of `MPI_Iprobe`",
            Counted([10_000_000.0; 2], [0.0; 2]),
            |summary| of::calls(summary, "MPI_Iprobe"),
        )],
        ..Case::of("polling", Start { mpi: MPICH4, ..TIMED })
    },
    Case {
        functions: &["MPI_Comm_rank"],
        // Each rank asks for its rank and the size once more.
        evidence: &[("calls", 40_000_004.0, 40_000_004.0)],
        twins: &[healthy(
            "calls of `MPI_Comm_rank`",
            Counted([40_000_002.0; 2], [2.0; 2]),
            |summary| of::calls(summary, "MPI_Comm_rank"),
        )],
        ..Case::of("asks-for-rank", Start { mpi: MPICH4, ..TIMED })
    },
    Case {
        functions: &["MPI_Comm_dup"],
        ranks: &[0],
        evidence: &[
            ("communicators made on all ranks", 300.0, 300.0),
            ("communicators freed", 0.0, 0.0),
        ],
        twins: &[healthy("calls of `MPI_Comm_free`", Counted([0.0; 2], [300.0; 2]), |summary| {
            of::calls(summary, "MPI_Comm_free")
        })],
        ..Case::of("leak", start(MPICH4))
    },
    Case {
        functions: &["MPI_File_write_at"],
        evidence: &[
            ("independent reads and writes", 400_000.0, 400_000.0),
            ("collective ones", 0.0, 0.0),
            ("bytes of the independent ones", 25_600_000.0, 25_600_000.0),
        ],
        twins: &[healthy(
            "calls of `MPI_File_write_at`",
            Counted([400_000.0; 2], [0.0; 2]),
            |summary| of::calls(summary, "MPI_File_write_at"),
        )],
        ..Case::of("independent-io", start(OPENMPI4))
    },
    Case {
        functions: &["MPI_Comm_dup"],
        evidence: &[("calls of MPI_Comm_dup", 20_000.0, 20_000.0)],
        twins: &[healthy("calls of `MPI_Comm_dup`", Counted([20_000.0; 2], [2.0; 2]), |summary| {
            of::calls(summary, "MPI_Comm_dup")
        })],
        ..Case::of("made-again", TIMED)
    },
    Case {
        functions: &["MPI_Bcast"],
        evidence: &[
            ("collectives", 2_000_000.0, 2_000_000.0),
            ("bytes", 16_000_000.0, 16_000_000.0),
        ],
        twins: &[healthy(
            "calls of `MPI_Bcast`",
            Counted([2_000_000.0; 2], [20_000.0; 2]),
            |summary| of::calls(summary, "MPI_Bcast"),
        )],
        ..Case::of("tiny-collectives", Start { mpi: MPICH4, ..TIMED })
    },
    Case {
        functions: &["MPI_Put"],
        evidence: &[
            ("accesses", 16_000_000.0, 16_000_000.0),
            ("bytes", 128_000_000.0, 128_000_000.0),
        ],
        twins: &[healthy(
            "calls of `MPI_Put`",
            Counted([16_000_000.0; 2], [16_000.0; 2]),
            |summary| of::calls(summary, "MPI_Put"),
        )],
        ..Case::of("tiny-accesses", TIMED)
    },
    Case {
        evidence: &[("calls of MPI_Win_lock", 80.0, 80.0)],
        twins: &[healthy("time in `MPI_Win_lock`", Seconds, |summary| {
            of::time(summary, "MPI_Win_lock")
        })],
        functions: &["MPI_Win_lock"],
        ..Case::of("long-locks", start(OPENMPI4))
    },
    Case {
        evidence: &[
            ("packets sent again", 50.0, f64::INFINITY),
            ("packets sent", 2000.0, f64::INFINITY),
        ],
        twins: &[(Healthy, Gone, EXCHANGING)],
        ..Case::of("network-retries", TCP)
    },
    Case {
        functions: &["MPI_Bcast"],
        ranks: &[1],
        evidence: &[("longest call", 0.6, 1.5), ("calls of MPI_Bcast", 200.0, 200.0)],
        twins: &[healthy("longest `MPI_Bcast`", Seconds, |summary| {
            of::longest(summary, "MPI_Bcast")
        })],
        ..Case::of("outlier", start(OPENMPI4))
    },
    Case {
        functions: &["MPI_Wait"],
        evidence: &[("bytes in nonblocking sends of 64 KiB and more", 41_943_040.0, 41_943_040.0)],
        twins: &[healthy("time in `MPI_Wait`", Seconds, |summary| of::time(summary, "MPI_Wait"))],
        ..Case::of("no-overlap", start(OPENMPI4))
    },
    Case {
        functions: &["MPI_Irecv", "MPI_Isend", "MPI_Testall"],
        // More calls that ask where a message was not there yet.
        evidence: &[
            ("threads in MPI, on average while one is", 1.05, 2.0),
            ("such calls", 180_000.0, f64::INFINITY),
        ],
        twins: &[healthy("threads in MPI", Ratio, |summary| {
            Some(summary.in_mpi.as_ref()?.time_s.sum.as_f64() / summary.wall_in_mpi_s()?)
        })],
        ..Case::of("thread-contention", Start { ranks: Ranks::Are(1), mpi: MPICH4, ..TIMED })
    },
    Case {
        twins: &[(Advised(&[]), Gone, messages_of_collectives(400.0, 200.0))],
        ..Case::of(
            "without-dynamic-rules",
            Start { set: &["coll_tuned_allreduce_algorithm=3"], ..PERUSE },
        )
    },
    Case {
        evidence: &[("MPIR_CVAR_IMPI_WAIT_MODE", -1.0, -1.0)],
        twins: &[(Started(start(INTELMPI)), Gone, NONE)],
        ..Case::of(
            "setting-ignored",
            Start { set: &["MPIR_CVAR_IMPI_WAIT_MODE=1"], ..start(INTELMPI) },
        )
    },
    Case {
        evidence: &[("MPIR_CVAR_POLLS_BEFORE_YIELD", 7.0, 7.0)],
        twins: &[(Started(Start { set: POLLS, ..start(MPICH_PVARS) }), Gone, NONE)],
        ..Case::of("inert-setting", Start { set: POLLS, ..start(MPICH4) })
    },
    Case {
        // Its twin waits in barriers.
        twins: &[(Healthy, Gone, IN_MPI)],
        ..Case::of("nothing-in-mpi", start(MPICH4))
    },
    Case {
        evidence: &[("time after MPI_Init, average rank", 0.0, 0.5)],
        twins: &[(Healthy, Gone, NONE)],
        ..Case::of("too-short", start(MPICH4))
    },
    Case {
        ranks: &[0, 1],
        evidence: &[("ranks that did not end by MPI_Finalize", 2.0, 2.0)],
        twins: &[(Healthy, Gone, NONE)],
        ..Case::of("incomplete", start(MPICH4))
    },
    Case {
        ranks: &[0, 1],
        twins: &[(
            Started(Start { environment: &[("GYAN_BUDGET", "none")], ..start(MPICH4) }),
            Gone,
            NONE,
        )],
        ..Case::of(
            "over-budget",
            Start { environment: &[("GYAN_BUDGET", "0.01%")], ..start(MPICH4) },
        )
    },
    Case {
        evidence: &[("variables of the library", 0.0, 0.0)],
        twins: &[(Started(start(MPICH_PVARS)), Gone, NONE)],
        ..Case::of("no-variables", start(MPICH4))
    },
];
