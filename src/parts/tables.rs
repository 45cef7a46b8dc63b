//! The tables of `gyan export`: what each rank did, one row each, not rounded. All tables have the same keys,
//! so they can be joined: `job` and `rank` are the first columns, `host` is the last.
//!
//! A table is an element of [`TABLES`]: its name, what a row is, its columns, and the function that makes the rows of a
//! profile. docs/tables.md is made of these.

use std::collections::BTreeMap;
use std::io;

use gyan_results::{
    Call, Element, End, Number, Overhead, PeerTraffic, Peers, Phase, Pvar, RankProfile, Readings,
    Resources, Sites, Waiting,
};

use super::headings::name_of_phase;
use super::histogram::bars;
use super::series::each_interval;
use crate::document::data::{classes, element, word};
use crate::document::value::cells;
use crate::document::{Column, Kind, TakeRow, Value, column, required};

/// A table of what ranks did.
pub(crate) struct RankTable {
    pub(crate) name: &'static str,
    /// What there is a row for.
    pub(crate) about: &'static str,
    /// The columns other than the keys.
    columns: &'static [Column],
    /// The rows of a profile, without the keys.
    rows: fn(&RankProfile, &mut TakeRow) -> io::Result<()>,
}

/// The one that is exported when none is named.
pub(crate) const VARIABLES: &str = "variables";
pub(crate) const CALLS: &str = "calls";

const JOB: Column = required("job", Kind::Text).about("id of the job, by the launcher");
const RANK: Column = required("rank", Kind::Integer).about("rank in MPI_COMM_WORLD");
const HOST: Column = required("host", Kind::Text).about("host of the rank");

const FUNCTION: Column = required("function", Kind::Text).about("name in C");
const COUNT: Column = required("count", Kind::Integer).about("calls by the program; exact");
const BYTES: Column = column("bytes", Kind::Integer)
    .about("bytes handed to MPI; exact; null where they are not counted, as for receives");
const TIME: Column = column("time_s", Kind::Double)
    .about("seconds in all calls: an estimate, unless time_error_s is 0; null when none was timed");
const TIME_ERROR: Column = column("time_error_s", Kind::Double)
    .about("standard error of time_s in seconds; null when it is not known, and time_s the least that it can be");
const TIMED: Column = required("timed", Kind::Integer).about("calls that were timed; exact");
const TIME_MAX: Column =
    column("time_max_s", Kind::Double).about("seconds of the longest call that was timed");
const VARIABLE: Column = required("variable", Kind::Text).about("name of the performance variable");
const CLASS: Column = required("class", Kind::Text).about("class, as the library says");
const BEHAVES_AS: Column = required("behaves_as", Kind::Text)
    .about("class that it behaves as; differs where the library is known to be wrong");
const OBJECT: Column =
    column("object", Kind::Text).about("object that it is bound to; null without one");
const PHASE: Column = required("phase", Kind::Text)
    .about("name of the phase of the program; (outside) for what is in no phase");

/// Every table, in the order of the manual.
pub(crate) const TABLES: &[RankTable] = &[
    RankTable {
        name: "ranks",
        about: "rank",
        columns: &[
            required("size", Kind::Integer).about("size of MPI_COMM_WORLD"),
            required("pid", Kind::Integer).about("process id"),
            required("end", Kind::Text)
                .about("how the rank ended: finalize, abort, exit, running, killed or unknown"),
            required("code", Kind::Integer).about("code that came with the end"),
            required("started", Kind::Text).about("when MPI_Init was called: UTC, RFC 3339"),
            required("elapsed_s", Kind::Double).about("seconds from MPI_Init to the end; exact"),
            column("in_mpi_s", Kind::Double)
                .about("seconds in MPI functions, of all threads: an estimate"),
            column("in_mpi_error_s", Kind::Double).about("standard error of in_mpi_s in seconds"),
            column("in_mpi_share", Kind::Double).about("in_mpi_s / elapsed_s"),
            required("mpit_init_s", Kind::Double)
                .about("seconds in MPI_T_init_thread of the library, before MPI_Init"),
            required("init_s", Kind::Double).about("seconds that gyan took at the start; measured"),
            required("sampling_s", Kind::Double)
                .about("seconds that gyan took to read variables and to keep the live file; measured"),
            required("wrappers_s", Kind::Double)
                .about("seconds that gyan took to count and time calls: an estimate"),
            required("events_s", Kind::Double)
                .about("seconds that gyan took in callbacks: an estimate"),
            required("finalize_s", Kind::Double).about("seconds that gyan took at the end; measured"),
            required("overhead_share", Kind::Double)
                .about("share of elapsed_s that gyan took, mpit_init_s excluded"),
            required("overhead_running_share", Kind::Double)
                .about("share of elapsed_s that gyan took between start and end"),
            required("library", Kind::Text).about("MPI library and its version"),
            required("thread_level", Kind::Text).about("what MPI_Query_thread gave"),
            column("processors", Kind::Text)
                .about("logical processors that the rank may run on, such as 0-3,8"),
            column("processor_limit", Kind::Double)
                .about("processor time that the control group allows all of its processes; null \
                    without a limit"),
            column("memory_limit_bytes", Kind::Integer)
                .about("bytes of memory that the control group allows all of its processes; null \
                    without a limit"),
            column("user_s", Kind::Double)
                .about("seconds of processor time in the program since MPI_Init, by the kernel"),
            column("system_s", Kind::Double)
                .about("seconds of processor time in the kernel since MPI_Init, by the kernel"),
            column("voluntary_switches", Kind::Integer)
                .about("how often a thread gave up its processor since MPI_Init; exact"),
            column("involuntary_switches", Kind::Integer)
                .about("how often a thread lost or yielded its processor since MPI_Init; exact"),
            column("processor_wait_s", Kind::Double)
                .about("seconds for which the first thread was ready to run and had no processor, by the kernel"),
            column("minor_faults", Kind::Integer)
                .about("page faults since MPI_Init that did not read; exact"),
            column("major_faults", Kind::Integer).about("page faults since MPI_Init that read; exact"),
            column("peak_memory_bytes", Kind::Integer)
                .about("most bytes that were resident since the program began; exact"),
        ],
        rows: ranks,
    },
    RankTable {
        name: CALLS,
        about: "rank and function that it called",
        columns: &[FUNCTION, COUNT, BYTES, TIME, TIME_ERROR, TIMED, TIME_MAX],
        rows: |profile, take| profile.calls.iter().try_for_each(|one| take(&call(one))),
    },
    RankTable {
        name: "times",
        about: "rank, function and bar of the histogram of how long its calls took",
        columns: &[
            FUNCTION,
            required("from_s", Kind::Double).about("seconds that the calls took at least"),
            required("below_s", Kind::Double).about("seconds that none of them took; twice from_s"),
            required("count", Kind::Integer).about("calls: an estimate like the time"),
        ],
        rows: times,
    },
    RankTable {
        name: "sizes",
        about: "rank, function and bar of the histogram of how many bytes its calls moved",
        columns: &[
            FUNCTION,
            required("from_bytes", Kind::Integer).about("bytes that the calls moved at least"),
            required("below_bytes", Kind::Integer).about("bytes that none of them moved"),
            required("count", Kind::Integer).about("calls that succeeded; exact"),
            required("bytes", Kind::Integer).about("bytes that they moved; exact"),
        ],
        rows: sizes,
    },
    RankTable {
        name: "peers",
        about: "rank, peer and way in which data gets there",
        columns: &[
            required("kind", Kind::Text).about("messages, or accesses to memory (one-sided)"),
            column("peer", Kind::Integer).about("its rank in MPI_COMM_WORLD; null for all others"),
            required("number", Kind::Integer).about("messages or accesses; exact"),
            required("bytes", Kind::Integer).about("their bytes; exact"),
        ],
        rows: peers,
    },
    RankTable {
        name: "sites",
        about: "rank, function and place in the program that called it",
        columns: &[
            FUNCTION,
            column("object", Kind::Text)
                .about("file of the place; null for code in no file and for places that are not known"),
            column("address", Kind::Integer).about(
                "where the call returns to, as in the symbol table of the object; null when that is not known",
            ),
            column("name", Kind::Text).about("name of code that is in no file, where its maker tells"),
            required("count", Kind::Integer).about("calls: an estimate, unless count_error is 0"),
            column("count_error", Kind::Double)
                .about("standard error of count; null when it is not known"),
            TIMED,
            required("time_s", Kind::Double)
                .about("seconds in the calls: an estimate, unless time_error_s is 0"),
            TIME_ERROR,
            required("time_max_s", Kind::Double).about("seconds of the longest call that was timed"),
            column("bytes", Kind::Integer)
                .about("bytes handed to MPI: an estimate like the time; null where they are not counted"),
        ],
        rows: sites,
    },
    RankTable {
        name: "waiting",
        about: "rank and call of a synchronising collective that was timed on every rank of its communicator",
        columns: &[
            FUNCTION,
            required("communicator", Kind::Text).about("its name in MPI, or its size in words"),
            required("members", Kind::Text)
                .about("hash of its ranks in MPI_COMM_WORLD: the same on all of them"),
            required("ordinal", Kind::Integer)
                .about("which of the communicators with these members, from 0"),
            required("call", Kind::Integer)
                .about("number of the call on the communicator, from 0: the same on all of its ranks"),
            required("time_ns", Kind::Integer).about("how long it took in ns; within 0.8 %"),
        ],
        rows: waiting,
    },
    RankTable {
        name: VARIABLES,
        about: "rank, performance variable, object and element",
        columns: &[
            VARIABLE,
            CLASS,
            BEHAVES_AS,
            OBJECT,
            required("element", Kind::Text).about(
                "scalar, the index in a vector, or sum, min or max of one that was too long to keep",
            ),
            column("start", Kind::Number).about("reading after MPI_Init, in the library's unit; exact"),
            column("end", Kind::Number).about("reading before MPI_Finalize; exact"),
            column("delta", Kind::Number).about("end - start of what only grows; exact"),
            column("samples", Kind::Integer).about("readings in between; exact"),
            column("sampled_min", Kind::Number).about("smallest of them"),
            column("sampled_mean", Kind::Double).about("mean of them"),
            column("sampled_max", Kind::Number).about("largest of them"),
        ],
        rows: variables,
    },
    RankTable {
        name: "series",
        about: "rank, sampled variable and interval in which it was read (GYAN_SERIES)",
        columns: &[
            VARIABLE,
            CLASS,
            BEHAVES_AS,
            OBJECT,
            required("end_s", Kind::Double).about("seconds from MPI_Init to the end of the interval"),
            required("min", Kind::Double).about("smallest reading, of a vector the sum over its elements"),
            required("mean", Kind::Double).about("mean of the readings"),
            required("max", Kind::Double).about("largest reading"),
        ],
        rows: |profile, take| each_interval(profile, |_| true, &mut |interval| take(&interval)),
    },
    RankTable {
        name: "phases",
        about: "rank and phase of the program",
        columns: &[
            PHASE,
            required("entries", Kind::Integer).about("how often it began; exact"),
            required("time_s", Kind::Double).about("seconds in it, phases inside it excluded; exact"),
            required("stretches", Kind::Integer).about("stretches of time in it; exact"),
            required("stretches_read", Kind::Integer)
                .about("stretches of which variables were read; exact"),
        ],
        rows: phases,
    },
    RankTable {
        name: "phase_calls",
        about: "rank, phase of the program and function that was called in it",
        columns: &[PHASE, FUNCTION, COUNT, BYTES, TIME, TIME_ERROR, TIMED, TIME_MAX],
        rows: phase_calls,
    },
];

impl RankTable {
    /// With the keys.
    pub(crate) fn columns(&self) -> Vec<Column> {
        [&[JOB, RANK], self.columns, &[HOST]].concat()
    }

    /// The rows of a profile, with the keys.
    pub(crate) fn rows(&self, profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
        (self.rows)(profile, &mut |own| {
            let mut row = Vec::with_capacity(own.len() + 3);
            row.extend(cells![&profile.job.id, Value::Rank(profile.rank)]);
            row.extend_from_slice(own);
            row.push((&profile.host).into());
            take(&row)
        })
    }
}

fn ranks(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    let RankProfile { job, size, pid, mpi, end: End { how, code }, in_mpi, overhead, .. } = profile;
    let in_mpi = in_mpi.as_ref();
    let Overhead {
        mpit_init_s,
        init_s,
        sampling_s,
        wrappers_s,
        events_s,
        finalize_s,
        share,
        running_share,
        budget: _,
    } = *overhead;
    let mut row = Vec::from(cells![
        u64::from(*size),
        u64::from(*pid),
        word(how)?,
        Value::from(Number::Integer((*code).into())),
        &job.started,
        job.elapsed_s,
        in_mpi.map(|in_mpi| in_mpi.time_s),
        in_mpi.and_then(|in_mpi| in_mpi.time_error_s),
        in_mpi.map(|in_mpi| in_mpi.share),
        mpit_init_s,
        init_s,
        sampling_s,
        wrappers_s,
        events_s,
        finalize_s,
        share,
        running_share,
        &mpi.library,
        &mpi.thread_level,
    ]);
    row.extend(used(profile.resources.as_ref()));
    take(&row)
}

/// What a rank may use and what it used; empty in profiles of an older gyan that did not record it.
fn used(resources: Option<&Resources>) -> [Value<'_>; 11] {
    let Some(resources) = resources else { return [const { Value::Nothing }; 11] };
    let Resources {
        processors,
        cgroup,
        user_s,
        system_s,
        voluntary_switches,
        involuntary_switches,
        processor_wait_s,
        minor_faults,
        major_faults,
        peak_memory_bytes,
        start_peak_memory_bytes: _,
    } = resources;
    let cgroup = cgroup.as_ref();
    cells![
        Some(processors).filter(|processors| !processors.is_empty()),
        cgroup.and_then(|cgroup| cgroup.processor_limit),
        cgroup.and_then(|cgroup| cgroup.memory_limit_bytes),
        *user_s,
        *system_s,
        *voluntary_switches,
        *involuntary_switches,
        *processor_wait_s,
        *minor_faults,
        *major_faults,
        *peak_memory_bytes,
    ]
}

fn call(call: &Call) -> [Value<'_>; 7] {
    let Call {
        name,
        count,
        bytes,
        timed,
        time_s,
        time_error_s,
        time_max_s,
        time_histogram: _,
        size_histogram: _,
        size_histogram_bytes: _,
    } = call;
    cells![name, *count, *bytes, *time_s, *time_error_s, *timed, *time_max_s]
}

fn times(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.calls.iter().try_for_each(|call| {
        bars(&call.time_histogram, 1e-9)
            .iter()
            .try_for_each(|bar| take(&cells![&call.name, bar.from, bar.below, bar.count]))
    })
}

fn sizes(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.calls.iter().try_for_each(|call| {
        let bars = (0..).zip(&call.size_histogram).zip(&call.size_histogram_bytes);
        let mut bars = bars.filter(|((_, count), _)| **count > 0);
        bars.try_for_each(|((bar, count), bytes)| {
            let below = 1_u64 << bar;
            let from = if bar == 0 { 0 } else { below / 2 };
            take(&cells![&call.name, from, below, *count, *bytes])
        })
    })
}

fn peers(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    let Some(Peers { messages, accesses }) = &profile.peers else { return Ok(()) };
    for (kind, rows) in [("messages", messages), ("accesses", accesses)] {
        for &PeerTraffic { rank, number, bytes } in rows {
            take(&cells![kind, rank.map(Value::Rank), number, bytes])?;
        }
    }
    Ok(())
}

fn sites(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    let Some(Sites { sites, addresses, load_map }) = &profile.sites else { return Ok(()) };
    sites.iter().try_for_each(|site| {
        let code = site.call.and_then(|at| addresses.get(at));
        let object = code.and_then(|code| load_map.get(code.object?));
        take(&cells![
            &site.function,
            object.map(|object| &object.path),
            code.map(|code| code.address),
            code.and_then(|code| code.name.as_ref()),
            site.calls,
            site.calls_error,
            site.timed,
            site.time_s,
            site.time_error_s,
            site.time_max_s,
            site.bytes,
        ])
    })
}

fn waiting(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.waiting.iter().try_for_each(|of| {
        let Waiting { function, communicator, members, ordinal, level, .. } = of;
        let known = (0..).zip(of.durations()).filter_map(|(block, ns)| Some((block, ns?)));
        known.into_iter().try_for_each(|(block, ns)| {
            let call = Waiting::timed_call(*level, block);
            take(&cells![function, communicator, members, u64::from(*ordinal), call, ns])
        })
    })
}

fn phases(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.phases.iter().try_for_each(|phase| {
        let &Phase { entries, time_s, stretches, stretches_read, .. } = phase;
        take(&cells![name_of_phase(&phase.name), entries, time_s, stretches, stretches_read])
    })
}

fn phase_calls(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.phases.iter().try_for_each(|phase| {
        phase.calls.iter().try_for_each(|one| {
            let [name] = cells![name_of_phase(&phase.name)];
            let mut row = vec![name];
            row.extend(call(one));
            take(&row)
        })
    })
}
fn variables(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    for pvar in &profile.pvars {
        let samples = pvar.samples.as_ref().map(|samples| samples.n);
        for (of, readings) in elements(pvar) {
            let Readings { delta, start, end, sampled_min, sampled_mean, sampled_max } = readings;
            let [class, behaves_as] = classes(pvar.class, pvar.behaves_as);
            take(&cells![
                &pvar.name,
                class,
                behaves_as,
                pvar.object.as_ref(),
                element(of),
                start,
                end,
                delta,
                samples,
                sampled_min,
                sampled_mean,
                sampled_max,
            ])?;
        }
    }
    Ok(())
}

/// The numbers of each element; a variable without any number still gets one row.
fn elements(pvar: &Pvar) -> BTreeMap<Element, Readings> {
    let mut elements = pvar.elements();
    if elements.is_empty() {
        elements.insert(Element::Scalar, Readings::default());
    }
    elements
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/rank.json");
        let profile = gyan_results::read_rank(path.as_ref()).unwrap();
        for table in TABLES {
            let (columns, mut rows) = (table.columns(), 0);
            let take = &mut |row: &[Value]| {
                rows += 1;
                assert_eq!(row.len(), columns.len(), "{}", table.name);
                for (cell, column) in row.iter().zip(&columns) {
                    let fits = match cell {
                        Value::Nothing => !column.required,
                        Value::Text(_) => column.kind == Kind::Text,
                        Value::Rank(_) => column.kind == Kind::Integer,
                        Value::Amount(amount) => match amount.number {
                            Number::Integer(_) => column.kind != Kind::Text,
                            Number::Double(_) => {
                                matches!(column.kind, Kind::Double | Kind::Number)
                            }
                        },
                        _ => false,
                    };
                    assert!(fits, "{}: {}: {cell:?}", table.name, column.name);
                }
                Ok(())
            };
            table.rows(&profile, take).unwrap();
            assert!(rows > 0, "the example has no {}", table.name);
        }
    }

    #[test]
    fn the_help_names_every_table() {
        let export = crate::cli::Cli::command();
        let export = export.find_subcommand("export").unwrap();
        let option = export.get_arguments().find(|option| option.get_id() == "table").unwrap();
        let help = option.get_help().unwrap().to_string();
        let (names, _) = help.split_once(" [").unwrap();
        let (_, names) = names.split_once(": ").unwrap();
        let expected: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(names.split(", ").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_are_told_apart_and_every_column_is_described() {
        for (at, table) in TABLES.iter().enumerate() {
            assert!(TABLES[..at].iter().all(|other| other.name != table.name), "{}", table.name);
            let columns = table.columns();
            for (at, Column { name, about, .. }) in columns.iter().enumerate() {
                assert!(!about.is_empty(), "{}: {name}", table.name);
                assert!(columns[..at].iter().all(|other| other.name != *name), "{name}");
            }
        }
    }

    /// What stands before the tables in docs/tables.md is written by hand. `BLESS=1` writes the tables.
    #[test]
    fn the_tables_in_the_docs_are_these() {
        const MARK: &str = "<!-- the tables: BLESS=1 cargo test --lib writes them -->\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tables.md");
        let written = fs::read_to_string(&path).unwrap();
        let (head, _) = written.split_once(MARK).unwrap();
        let mut text = format!("{head}{MARK}");
        for table in TABLES {
            let about = table.about;
            writeln!(text, "\n## {}\n\nA row for each {about}.\n", table.name).unwrap();
            text.push_str("| column | type | what it is |\n| :-- | :-- | :-- |\n");
            for Column { name, kind, required, about } in table.columns() {
                let kind = match kind {
                    Kind::Text | Kind::Place | Kind::Prose => "text",
                    Kind::Integer => "integer",
                    Kind::Double => "double",
                    Kind::Number => "number",
                };
                let null = if required { "" } else { " or null" };
                writeln!(text, "| `{name}` | {kind}{null} | {about} |").unwrap();
            }
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, text, "docs/tables.md is not of these tables; run with BLESS=1");
    }
}
