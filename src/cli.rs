//! The command line: options, help and examples.

// The comments are the help, where backticks would be read as such.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, Id, Parser, Subcommand,
};

use gyan_results::parse_bytes;

use crate::format::{Asked, CheckFormat, ExportFormat, ListFormat, OneOf, ReportFormat};
use crate::parts::{self, PartOption, Takes};

/// See inside the MPI library that a program runs on.
#[derive(Parser)]
#[command(name = "gyan", version, arg_required_else_help = true, disable_help_subcommand = true,
          after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: SubCommand,
}

/// The memory of a timeline on each rank, unless another size is given.
pub(crate) const TIMELINE_SIZE: &str = "4MiB";

const EXAMPLES: &str = "\
Examples:
  gyan run -- mpirun -n 4 ./app        run under the profiler, then print the report
  mpirun -n 4 gyan run ./app           the same from inside the launcher
  gyan tune -- mpirun -n 4 ./app       which settings of the MPI library make it faster
  gyan report gyan-app-1234            print the report again
  gyan now                             what the ranks of a running job are doing, and why it hangs
  gyan watch                           the same, refreshed, with how fast the ranks go
  gyan open gyan-app-1234              the report as a page, in a browser
  gyan report --format csv DIR         every number, for a spreadsheet
  gyan pack DIR                        one file instead of many
  gyan report --series '*recvq*' DIR   a variable over time, on every rank
  gyan diff before after               what changed from one run to another, and why
  gyan scale n2 n4 n8 n16 n32          how time and variables grow with the number of ranks
  gyan check new --against base        for CI: is the new run worse than the baseline?
  gyan pages history -o public         for CI: a site of all runs, and which commits changed them
  gyan varlist --match eager           the settings for eager messages of the MPI on PATH
  gyan doctor -- mpirun -n 4 ./app     why there is no profile, and what would show more
  gyan archive ingest SPOOL ARCHIVE    what a site keeps of its jobs, as Parquet
  gyan help first-screen               a chapter of the manual; gyan help lists them

Exit codes: 0 done; 1 done, but data is incomplete (doctor: something is in the way;
check: a rule failed); 2 usage or I/O error;
`gyan run` passes on the code of the program (128 + signal); 124: --stall-kill ended it.";

#[derive(Subcommand)]
pub(crate) enum SubCommand {
    /// Run an MPI program under the profiler and print the report
    Run(Box<RunOptions>),
    /// Find the settings of the MPI library that make a program faster, and prove it
    Tune(TuneOptions),
    /// Print the report of a run directory
    Report(ReportOptions),
    /// Say what every rank of a running job is doing, who waits for whom, and why the job hangs
    Now(NowOptions),
    /// Show what the ranks of a running job are doing and how fast they go, until the job has ended
    Watch(WatchOptions),
    /// Write the page of a run into its directory, and show it in a browser; or show a trace in its viewer
    Open(OpenOptions),
    /// Say what a finding or a class of variables means, when it is wrong, and where it comes from
    Explain(ExplainOptions),
    /// Fail when a program got worse: more calls, messages or bytes, new findings, times beyond noise
    Check(CheckOptions),
    /// Say what changed from one run to another: how much longer or shorter, where, why, and how much of it is
    /// noise
    Diff(DiffOptions),
    /// Say how a program scales: how its time and its variables grow with the number of ranks, and what to
    /// expect with more
    Scale(ScaleOptions),
    /// Write a small site of the runs of a project over its commits: when did it get slower, and why?
    Pages(PagesOptions),
    /// Write the latest calls of all ranks, on one clock, for a viewer of traces such as Perfetto
    Timeline(TimelineOptions),
    /// Reduce the profiles of a run directory to summary.json
    Reduce(ReduceOptions),
    /// Put the profiles of a run directory into one compressed file, which reduce and report read too
    Pack(PackOptions),
    /// Write the profiles of a pack into a directory
    Unpack(UnpackOptions),
    /// Write what each rank did for other tools: tables for pandas and the like, call trees, Extra-P
    Export(ExportOptions),
    /// Keep what a site knows of its jobs: put records into an archive, and say what the jobs have in common
    Archive(ArchiveOptions),
    /// List the variables of an MPI library: what they are, what they are set to, how to set them
    Varlist(VarlistOptions),
    /// Find out why there is no profile, what the MPI library exports, and what would show more
    Doctor(DoctorOptions),
    /// Print a chapter of the manual, the page of a finding, or the help of a subcommand
    Help(HelpOptions),
    /// The process of varlist that opens the library
    #[command(hide = true)]
    ListLibrary(ListLibraryOptions),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  gyan completions bash > ~/.local/share/bash-completion/completions/gyan
  gyan completions fish > ~/.config/fish/completions/gyan.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages
    #[command(hide = true)]
    Man {
        /// Where to
        directory: PathBuf,
    },
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan run -- mpirun -n 4 ./app
  gyan run -o profile --pvars 'pml_*' -- srun -n 512 ./app
  gyan run --set btl_vader_eager_limit=8192 -- mpirun -n 4 ./app
  gyan run --enable all -- mpirun -n 4 ./app
  gyan run --series 100ms --budget 1% -- mpirun -n 4 ./app
  gyan run --html app.html -- mpirun -n 4 ./app
  gyan run --watch 'umq>5' --events -- mpirun -n 4 ./app
  gyan run --stall 5m -- mpirun -n 4 ./app       say why it hangs; --stall-kill ends it
  gyan run --repeat 5 --label size=1000 -- mpirun -n 4 ./app 1000
  gyan run --repeat 5 --alternate OMPI_MCA_btl_vader_eager_limit=8192 -- mpirun -n 4 ./app
  mpirun -n 4 gyan run ./app           inside the launcher: no report at the end

The report goes to stderr: stdout belongs to the program.")]
pub(crate) struct RunOptions {
    /// Where the profiles go [default: gyan-<program>-<id>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Remove profiles of an earlier run from the output directory, and replace the page
    #[arg(long)]
    pub(crate) force: bool,
    /// Run it this many times, into one directory of runs, for gyan diff, gyan scale and gyan check
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "html")]
    pub(crate) repeat: Option<u32>,
    /// Alternate between runs without and with this environment variable, --repeat times each
    #[arg(long, value_name = "NAME=VALUE", requires = "repeat")]
    pub(crate) alternate: Vec<String>,
    /// Label this run, such as size=1000
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) label: Vec<String>,
    /// Also label it with the numbers and texts that the program registers with Adiak
    #[arg(long, value_name = "LIBRARY", value_delimiter = ',', value_parser = ["adiak"])]
    pub(crate) labels_from: Vec<String>,
    /// Which performance variables to read: name[:CLASS];... with * and ?; a leading - leaves it out
    #[arg(long, value_name = "LIST")]
    pub(crate) pvars: Option<String>,
    /// Set a control variable of the MPI library (see gyan varlist), as early as it allows
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Turn on monitoring that the MPI library leaves off: all, or names that gyan doctor shows
    #[arg(long, value_name = "NAME,...")]
    pub(crate) enable: Vec<String>,
    /// The share of the run that gyan may take after the start, such as 0.5%; none: time and sample every call
    #[arg(long, value_name = "SHARE")]
    pub(crate) budget: Option<String>,
    /// Also sample these variables while the program runs, with * and ?
    #[arg(long, value_name = "NAME,...")]
    pub(crate) sample: Vec<String>,
    /// Record sampled variables over time, one record per interval, such as 100ms
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) series: Option<String>,
    /// Count receives that are called while a queue is long, by call site: umq>N, or VARIABLE>N
    #[arg(long, value_name = "CONDITION")]
    pub(crate) watch: Option<String>,
    /// Have the MPI library report every message where it can: peruse, mpi_t [default: both]
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true,
          default_missing_value = "all")]
    pub(crate) events: Option<String>,
    /// Record the latest calls of each rank, with their times, in memory of this size, for gyan timeline: every call is
    /// recorded, so this may cost more than --budget [default: 4MiB]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true,
          default_missing_value = TIMELINE_SIZE)]
    pub(crate) timeline: Option<String>,
    /// Record only in a window of time, counted from the end of MPI_Init: 10s@60s records for 10 s, from 60 s on (implies
    /// --timeline)
    #[arg(long, value_name = "TIME")]
    pub(crate) timeline_window: Option<String>,
    /// Record only inside phases with this name, such as exchange, or "level 7" of MPI_Pcontrol (implies --timeline)
    #[arg(long, value_name = "NAME")]
    pub(crate) timeline_phase: Option<String>,
    /// Keep the N slowest iterations and a typical one instead of the latest calls. An iteration lies between two calls of the
    /// collective operation that the program repeats, or is a pass through the phase of --timeline-phase (implies --timeline)
    #[arg(long, value_name = "N", conflicts_with = "timeline_window",
          value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) timeline_slowest: Option<u32>,
    /// Use regions that the program marks for other tools as phases: those of Kokkos, NVTX, Intel's ITT and Caliper, and the
    /// stages of PETSc
    #[arg(long, value_name = "LIBRARY,...", value_delimiter = ',',
          value_parser = ["kokkos", "nvtx", "itt", "petsc", "caliper"])]
    pub(crate) phases: Vec<String>,
    /// Have the ranks reduce their profiles themselves, in MPI_Finalize, to one summary: mpi, auto (with more
    /// than 1024 ranks), off, both (one file per rank as well) [default when gyan run starts the launcher:
    /// auto]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "mpi", value_parser = ["mpi", "auto", "off", "both"])]
    pub(crate) reduce: Option<String>,
    /// When the program makes no progress for this long, such as 60s or 5m, say why on stderr, once: a deadlock, or ranks
    /// that wait for one that is gone or computes, also in MPI_Init; DIR/stall.json has what each rank did
    #[arg(long, value_name = "TIME")]
    pub(crate) stall: Option<String>,
    /// End the program then, with exit code 124 [without --stall: after 60s]
    #[arg(long)]
    pub(crate) stall_kill: bool,
    /// Also write the report as a page to look at
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Do not print the report
    #[arg(long)]
    pub(crate) no_report: bool,
    /// The launcher and the program, with their arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

/// How something is printed, and where a page of it goes.
#[derive(Args)]
pub(crate) struct PageOptions {
    /// How to print it
    #[arg(short, long, default_value = "table", value_parser = OneOf::<ReportFormat>::new())]
    pub(crate) format: Asked<ReportFormat>,
    /// Where the page goes, with --format html [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file of that name
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// With --format html: an element to put into another page, such as a notebook: the first screen of a run, all of a comparison,
    /// or the part of the page whose link has this name, such as peers. It has its own style, and no script
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) fragment: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan tune -- mpirun -n 4 ./app                       what the findings of a first run nominate
  gyan tune --set btl_tcp_eager_limit=65536..1048576*2 -- mpirun -n 4 ./app
  gyan tune --set 'coll_tuned_bcast_algorithm=*' --same-output -- mpirun -n 4 ./app
  gyan tune --set mpi_yield_when_idle=1 --env UCX_TLS=sm,tcp --together -- mpirun -n 4 ./app
  gyan tune --metric 'Loop time of ([0-9.]+)' --budget 1h -- srun -n 64 ./app
  gyan tune --metric time:MPI_Waitall -- mpirun -n 4 ./app
  gyan diff gyan-tune-app/runs/default gyan-tune-app/runs/mpi_yield_when_idle=1

If it is stopped, the same command continues where it was. The output of the program is kept in the
directory, beside each run.")]
#[allow(clippy::struct_excessive_bools)] // options of a command line
pub(crate) struct TuneOptions {
    /// Values of a control variable to try: NAME=V1,V2,...; a range is FROM..TO*2 or FROM..TO+8, * is all that the library
    /// names (see gyan varlist -l), and a comma within a value is written \,
    #[arg(long, value_name = "NAME=V1,V2,...")]
    pub(crate) set: Vec<String>,
    /// The same for an environment variable that is not a control variable: whether it took effect cannot be read back
    #[arg(long, value_name = "NAME=V1,V2,...")]
    pub(crate) env: Vec<String>,
    /// A file with lines as for --set, or auto: what findings nominate [default: auto, unless settings are named]
    #[arg(long, value_name = "FILE|auto")]
    pub(crate) knobs: Option<String>,
    /// Also try all settings that beat the default together
    #[arg(long)]
    pub(crate) together: bool,
    /// How long it may take in all, such as 20m; none
    #[arg(long, value_name = "TIME", default_value = "20m")]
    pub(crate) budget: Option<String>,
    /// What to improve: time (of the run), time:MPI (in MPI), time:FUNCTION, pvar:NAME, or a pattern whose first
    /// group is the number in the output of the program
    #[arg(long, value_name = "WHAT")]
    pub(crate) metric: Option<String>,
    /// A higher value is better
    #[arg(long, requires = "metric")]
    pub(crate) higher: bool,
    /// Reject settings with which the program prints something else
    #[arg(long)]
    pub(crate) same_output: bool,
    /// Reject settings for whose output, on its standard input, this command fails
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Option<String>,
    /// Where everything goes [default: gyan-tune-<program>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Remove the runs of an earlier gyan tune from that directory
    #[arg(long)]
    pub(crate) force: bool,
    /// How to print the result
    #[arg(short, long, default_value = "table", value_parser = OneOf::<ListFormat>::new())]
    pub(crate) format: Asked<ListFormat>,
    /// The launcher and the program, with their arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
#[command(
    override_usage = "gyan report [OPTIONS] <DIR>...",
    after_help = "\
Examples:
  gyan report gyan-app-1234
  gyan report --format html -o app.html gyan-app-1234   a page to look at, and to send by mail
  gyan report --findings gyan-app-1234                what costs time, why, and what to do about it
  gyan report --variables gyan-app-1234               what the MPI library counted
  gyan report --all --vars '*unexpected*' gyan-app-1234
  gyan report --phase gyan-app-1234                   a table of the program's phases
  gyan report --phase 'step/*' gyan-app-1234          the calls and variables of some phases
  gyan report --series '*unexpected*' gyan-app-1234   a variable over time, on every rank
  gyan report --histogram MPI_Recv gyan-app-1234      how long the calls took
  gyan report --sites gyan-app-1234                   which lines of the program call MPI, how long
  gyan report --queues gyan-app-1234                  messages that wait, and who waits for them
  gyan report --sizes gyan-app-1234                   how large messages are
  gyan report --peers gyan-app-1234                   who sends how much to whom
  gyan report --machine gyan-app-1234                 the hosts, and how much of them the ranks used
  gyan report --waiting gyan-app-1234                 collectives: waiting or transfer, and for whom
  gyan report n1/profile n2/profile                   one job with a directory for each host
  gyan report --format json gyan-app-1234 | jq '.calls[] | {name, max: .count.max}'"
)]
pub(crate) struct ReportOptions {
    /// The run directory, a pack of it, or the directory of a tune; several directories with profiles of one job
    #[arg(value_name = "DIR", required_unless_present = "phase")]
    pub(crate) directories: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageOptions,
    /// Everything, including what is zero on every rank and what was not read
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only variables and functions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub(crate) vars: Option<String>,
    #[command(flatten)]
    pub(crate) part: Option<AskedPart>,
}

/// The part of the report that is asked for: an option of [`parts::PARTS`].
#[derive(Clone)]
pub(crate) struct AskedPart {
    pub(crate) option: &'static PartOption,
    /// What it takes.
    pub(crate) glob: Option<String>,
}

impl Args for AskedPart {
    fn group_id() -> Option<Id> {
        Some("part".into())
    }

    fn augment_args(command: Command) -> Command {
        let argument = |option: &PartOption| {
            let argument = Arg::new(option.name).long(option.name).help(option.help);
            let argument = argument.conflicts_with_all(option.conflicts_with);
            match option.takes {
                Takes::Nothing => argument.action(ArgAction::SetTrue),
                Takes::Glob => argument.value_name("GLOB"),
                Takes::MaybeGlob => {
                    argument.value_name("GLOB").num_args(0..=1).default_missing_value("")
                }
            }
        };
        let names = parts::options().map(|option| option.name);
        command
            .group(ArgGroup::new("part").multiple(false).args(names))
            .args(parts::options().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        AskedPart::augment_args(command)
    }
}

impl FromArgMatches for AskedPart {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AskedPart, clap::Error> {
        let is_asked = |option: &&PartOption| match option.takes {
            Takes::Nothing => matches.get_flag(option.name),
            Takes::Glob | Takes::MaybeGlob => matches.contains_id(option.name),
        };
        let option = parts::options()
            .find(is_asked)
            .ok_or_else(|| clap::Error::new(ErrorKind::MissingRequiredArgument))?;
        let takes_one = option.takes != Takes::Nothing;
        let glob = takes_one.then(|| matches.get_one(option.name).cloned()).flatten();
        Ok(AskedPart { option, glob })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = AskedPart::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan open gyan-app-1234          writes gyan-app-1234/report.html, and opens it if it can
  gyan open app.pftrace            shows a trace in Perfetto's viewer, which sends it nowhere")]
pub(crate) struct OpenOptions {
    /// The run directory, a pack of it, a page, or a trace of gyan timeline
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan explain                     the names of all findings and classes
  gyan explain oversubscribed
  gyan explain highwatermark")]
pub(crate) struct ExplainOptions {
    /// The name of a finding or of a class of performance variables [default: list them]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan help                        what can be asked for
  gyan help start                  the first run, from beginning to end
  gyan help first-screen           what each line of the report means
  gyan help late-senders           a finding
  gyan help run                    the options of a subcommand
  gyan help doctor.md              the chapter with the same name as a subcommand")]
pub(crate) struct HelpOptions {
    /// The name of a chapter, of a finding or of a subcommand [default: list them]
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
}

#[derive(Args)]
#[command(
    override_usage = "gyan check [OPTIONS] <RUN>... --against <BASELINE>...",
    after_help = "\
Examples:
  gyan check new --against baseline/summary.json
  gyan check new --against base          directories of 4 runs each (gyan run --repeat 4): also the
                                         time of the run and in MPI; rules that name up to 12 times
                                         take 5 runs each
  gyan check new --against base --format junit -o check.xml      and the verdict as text
  gyan check new --against base --format markdown >> \"$GITHUB_STEP_SUMMARY\"
  gyan check --print-rules > rules.toml                          a file to edit
  gyan check new --against base --rules rules.toml

Runs are directories, packs, summaries or pages. Counts are exact, so one baseline is enough for
them; times need several, because they differ from run to run: 4 baselines and 4 new runs,
5 and 3, or 8 and 2.

Exit codes: 0 passed; 1 a rule failed, or a new run is incomplete; 2 usage or I/O error,
a baseline is incomplete, or times were asked for and there are too few runs to judge them."
)]
pub(crate) struct CheckOptions {
    /// The new run, or several of the same thing
    #[arg(value_name = "RUN", required_unless_present = "print_rules")]
    pub(crate) runs: Vec<PathBuf>,
    /// The run to compare with, or several of the same thing
    #[arg(long, value_name = "BASELINE", num_args = 1.., required_unless_present = "print_rules")]
    pub(crate) against: Vec<PathBuf>,
    /// What fails the check, in TOML; what the file leaves out is as in --print-rules
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Print the default rules, to copy and edit
    #[arg(long, exclusive = true)]
    pub(crate) print_rules: bool,
    /// How to print it
    #[arg(short, long, default_value = "table", value_parser = OneOf::<CheckFormat>::new())]
    pub(crate) format: Asked<CheckFormat>,
    /// Where to write it [default: standard output]; the verdict is then also printed as text
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file of that name
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(
    override_usage = "gyan diff [OPTIONS] <A> <B>\n       gyan diff [OPTIONS] <A>... -- <B>...",
    after_help = "\
Examples:
  gyan diff before after                       one run each
  gyan diff a1 a2 a3 a4 -- b1 b2 b3 b4         several runs of each: tells change from noise
  gyan diff runs-a runs-b                      the same, with the runs in two directories
  gyan diff --all before after                 also small changes, and those within the noise
  gyan diff --format markdown before after     for a pull request
  gyan diff --format html -o diff.html a b     a page: a waterfall of the change, and intervals
  gyan diff --format json a b | jq .answer

Changes are from A to B. It takes 4 runs on each side to judge the time of the run, and 5 to judge
up to 6 parts of it. With fewer runs gyan does not judge.

Exit codes: 0 done, whatever changed; 1 done, but ranks are missing; 2 usage or I/O error."
)]
pub(crate) struct DiffOptions {
    /// The runs before: directories, packs, summaries, pages, or directories of runs
    #[arg(value_name = "A", required = true)]
    pub(crate) a: Vec<PathBuf>,
    /// The runs after
    #[arg(value_name = "B", last = true)]
    pub(crate) b: Vec<PathBuf>,
    /// Everything, including what is small, within an error, or within the noise
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan run --no-report --label commit=$(git rev-parse HEAD) -o history/$(date +%s) -- mpirun ./app
  gyan pages history -o public                 a site in public/: open public/index.html
  git log --reverse --format=%H | gyan pages history -o public --order -
  gyan pages history -o public --last 100      only the latest 100 commits of each program

A change is named when noise does not explain it: of 100 programs that never changed, at most 5 get
one.

Exit codes: 0 done, whatever changed; 1 done, but runs are incomplete or cannot be read; 2 usage or
I/O error.")]
pub(crate) struct PagesOptions {
    /// Directories of runs, packs, summaries or pages
    #[arg(value_name = "HISTORY", required = true)]
    pub(crate) history: Vec<PathBuf>,
    /// The directory of the site: files of the same names are replaced, others stay
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// The label with the commit of a run; a run without it stands for itself
    #[arg(long, value_name = "NAME", default_value = "commit")]
    pub(crate) label: String,
    /// A file with a commit in each line, the oldest first, or - for standard input [default: by the start of
    /// their first runs]
    #[arg(long, value_name = "FILE")]
    pub(crate) order: Option<PathBuf>,
    /// Only this many commits of each program, the latest
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan scale n2 n4 n8 n16 n32              five runs of one program, with 2 to 32 ranks
  gyan scale runs                          all runs in a directory; several of a size are repeats
  gyan scale --weak n2 n4 n8 n16 n32       the work grows with the number of ranks
  gyan scale --target 4096 runs            predictions for 4096 ranks
  gyan scale --vars '*recvq*,MPI_Recv' runs   minimum, average and maximum of some at each size
  gyan scale --by size runs                by a label: gyan run --label size=$N -- ...
  gyan scale --by threads runs             by the threads of OpenMP of all ranks
  gyan scale --by btl_vader_eager_limit a b c   by a control variable of the MPI library
  gyan scale --by arg1 a b c               by the first argument of the program
  gyan scale --format html -o scale.html runs   a page with curves

A law needs five sizes. With fewer, gyan shows the slope on logarithmic scales: 1 means in
proportion, 0 constant, -1 divided among the ranks. Predicted shares are shares of the predicted sum
of the program's own code and all functions.

Exit codes: 0 done; 1 done, but runs or ranks are left out; 2 usage or I/O error.")]
pub(crate) struct ScaleOptions {
    /// Runs: directories, packs, pages, or directories of runs
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// What the size is: threads (of OpenMP, over all ranks), a label of the runs, arg1, arg2, ... of the program, or a
    /// control variable of the MPI library [default: the number of ranks]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// The work grows with the number of ranks: ideally, all runs take equally long
    #[arg(long, conflicts_with = "by")]
    pub(crate) weak: bool,
    /// The size to predict numbers for [default: 4 times the largest]
    #[arg(long, value_name = "SIZE")]
    pub(crate) target: Option<f64>,
    /// The minimum, average and maximum at each size of what matches one of these, with * and ?, and nothing else
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',')]
    pub(crate) vars: Vec<String>,
    /// Every number, including those that are constant or 0
    #[arg(short, long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan run --timeline -- mpirun -n 4 ./app   records the latest calls of each rank
  gyan timeline gyan-app-1234               which of them waited, for whom, and the critical path
  gyan timeline gyan-app-1234 -o app.pftrace   for https://ui.perfetto.dev
  gyan timeline gyan-app-1234 -o app.json   for other viewers: Chrome's trace format
  gyan timeline gyan-app-1234 -o trace.otf2   for Vampir and other tools that read OTF2")]
pub(crate) struct TimelineOptions {
    /// The run directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Where to write a trace: for Perfetto, as JSON if the name ends with .json, or as an OTF2 archive if it ends with .otf2
    /// [default: no trace; prints which calls wait, how long and for whom, and on which ranks the critical path lies]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How the waits and the critical path are shown
    #[arg(long, default_value = "table", value_parser = OneOf::<ListFormat>::new(), conflicts_with = "output")]
    pub(crate) format: Asked<ListFormat>,
    /// Leave out the earliest calls if the file would be larger than this, which is about what viewers can open. An OTF2
    /// archive has no limit
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size_limit)]
    pub(crate) limit: SizeLimit,
    /// Replace a file of that name
    #[arg(long)]
    pub(crate) force: bool,
}

/// The most bytes that a file may have; none for any number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit(pub(crate) Option<u64>);

fn size_limit(text: &str) -> Result<SizeLimit, String> {
    match text {
        "none" => Ok(SizeLimit(None)),
        _ => parse_bytes(text)
            .map(|bytes| SizeLimit(Some(bytes)))
            .ok_or_else(|| "give a size such as 100MiB, or none".to_owned()),
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan reduce gyan-app-1234            writes gyan-app-1234/summary.json
  gyan reduce n1/profile n2/profile    one job with a directory for each host: writes to n1/profile")]
pub(crate) struct ReduceOptions {
    /// The run directory, or a pack of it; several directories with profiles of one job: the summary
    /// goes to the first
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan pack gyan-app-1234                    to gyan-app-1234.gyan.zst; the directory stays
  gyan pack --remove gyan-app-1234           removes the packed files once the pack is complete
  gyan report gyan-app-1234.gyan.zst         as with the directory; gyan reduce too
  zstdcat gyan-app-1234.gyan.zst | jq -c '{rank, host}'   it is JSON Lines")]
pub(crate) struct PackOptions {
    /// The run directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The pack [default: DIR.gyan.zst]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file of that name
    #[arg(long)]
    pub(crate) force: bool,
    /// Remove the packed files once the pack is complete
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan archive ingest /var/spool/gyan /srv/gyan          every ten minutes, from a timer
  gyan archive ingest /var/spool/gyan s3://jobs/gyan     where AWS_ENDPOINT_URL says
  gyan archive ingest --most-of-user 1000 SPOOL ARCHIVE  a user's other records wait

Exit codes: 0 done; 1 done, but records were refused or wait for the next time; 2 usage or I/O
error.")]
pub(crate) struct ArchiveOptions {
    #[command(subcommand)]
    pub(crate) command: ArchiveCommand,
}

#[derive(Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Put the records of a spool into an archive of Parquet files
    Ingest(IngestOptions),
    /// Say where the core hours went, what could be gained, and which programs and hosts became slower
    Report(ArchiveReportOptions),
    /// Print the report of a job from the record that it left
    Job(ArchiveJobOptions),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan archive ingest /var/spool/gyan /srv/gyan          every ten minutes, from a timer
  gyan archive ingest /var/spool/gyan s3://jobs/gyan     where AWS_ENDPOINT_URL says
  duckdb -c \"select program, sum(core_h) from '/srv/gyan/jobs/*/*.parquet' group by all\"

A record leaves the spool once it is in the archive. If an ingester is killed, the next one finishes
its work. Several may run at once: they take turns. Records that no job can have written are
refused.

Exit codes: 0 done; 1 done, but records were refused or wait for the next time; 2 usage or I/O
error.")]
pub(crate) struct IngestOptions {
    /// The directory to which the jobs add their records; gyan runs as its owner, or as root
    #[arg(value_name = "SPOOL")]
    pub(crate) spool: PathBuf,
    /// Where the tables are: a directory, or s3://BUCKET/PREFIX
    #[arg(value_name = "ARCHIVE")]
    pub(crate) archive: String,
    /// Take at most this many records of each user; the others wait for the next time
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) most_of_user: usize,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan archive report /site/archive                       the last 30 days
  gyan archive report --since 2026-01-01 --until 2026-12-31 /site/archive
  gyan archive report --program 'lmp*' --since 90d --weeks /site/archive
  gyan archive report --format json /site/archive         all of it, by a schema
  gyan archive report --format html -o site.html /site/archive

A job counts for the day on which it ended, in UTC. Users are shown only if the archive allows it:
its archive.toml has the line `users = true`.")]
pub(crate) struct ArchiveReportOptions {
    /// Where the tables are: a directory, or s3://BUCKET/PREFIX
    #[arg(value_name = "ARCHIVE")]
    pub(crate) archive: String,
    /// The first day: a date, or how long ago, such as 30d
    #[arg(long, value_name = "DAY", default_value = "30d")]
    pub(crate) since: String,
    /// The last day [default: the latest]
    #[arg(long, value_name = "DAY")]
    pub(crate) until: Option<String>,
    /// Only programs whose names match this, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub(crate) program: Option<String>,
    /// Only clusters whose names match this, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub(crate) cluster: Option<String>,
    /// The core hours of each user, by number
    #[arg(long)]
    pub(crate) users: bool,
    /// The core hours of each week
    #[arg(long)]
    pub(crate) weeks: bool,
    /// Every row
    #[arg(short, long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan archive job 4711 /site/archive                the latest with this number in the batch system
  gyan archive job 4711 --step 0 --cluster big /site/archive
  gyan archive job 3f2a0c5d8e9b4a7162d3c4b5a6978801 /site/archive     by its id in the tables
  gyan archive job 4711 --format html -o job.html /site/archive

A record is a summary of at most 10 kB. The report says what it lacks.")]
pub(crate) struct ArchiveJobOptions {
    /// The id of the job in the archive, or its number in the batch system
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// Where the tables are: a directory, or s3://BUCKET/PREFIX
    #[arg(value_name = "ARCHIVE")]
    pub(crate) archive: String,
    /// The step of the job
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// The cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Also what is 0 on every rank, and every row
    #[arg(short, long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan export gyan-app-1234 --format parquet -o variables.parquet
  gyan export gyan-app-1234.gyan.zst --format parquet --table calls -o calls.parquet
  gyan export gyan-app-1234 --format parquet -o tables/     every table, one file each
  gyan export gyan-app-1234 --format jsonl | jq -c 'select(.delta > 0) | [.rank, .variable, .delta]'
  gyan export gyan-app-1234 --format collapsed | inferno-flamegraph > calls.svg
  gyan export gyan-app-1234 --format caliper -o app.cali    for Hatchet and Thicket
  gyan export n2 n4 n8 n16 n32 --format extrap -o app.jsonl runs of several sizes, for Extra-P")]
#[allow(clippy::struct_excessive_bools)] // options of a command line
pub(crate) struct ExportOptions {
    /// The run directory, or a pack or page of it; several directories with profiles of one job. For extrap,
    /// several runs, as for gyan scale
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    /// Each DIR is a run of its own, or a directory of runs: all in one table, whose first column names the run
    #[arg(long)]
    pub(crate) runs: bool,
    /// How to write it
    #[arg(short, long, required_unless_present = "schema", value_parser = OneOf::<ExportFormat>::new())]
    pub(crate) format: Option<Asked<ExportFormat>>,
    /// Print which tables there are and what their columns are, as JSON: type, unit, how well the numbers are known
    #[arg(long, conflicts_with_all = ["format", "output", "table", "calls"])]
    pub(crate) schema: bool,
    /// Where to write: a file, or a directory for one file per table [default: standard output]
    #[arg(short, long, value_name = "PLACE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file of that name
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Which tables: ranks, calls, times, sizes, peers, sites, openmp, waiting, message_times, variables, series, phases,
    /// phase_calls, timeline; of all ranks together: summary, summary_findings, summary_efficiencies, ...
    /// [default: variables; those of ranks into a directory; for a page: summary, ...]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) table: Vec<String>,
    /// The same as --table calls
    #[arg(long, conflicts_with = "table")]
    pub(crate) calls: bool,
    /// For extrap, what the sizes of the runs are, if not their numbers of ranks: a label, an argument of the program (arg1), a
    /// control variable
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan unpack gyan-app-1234.gyan.zst         to gyan-app-1234
  gyan unpack gyan-app-1234.gyan.zst again   to another directory")]
pub(crate) struct UnpackOptions {
    /// The pack
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where the profiles go [default: the name of the pack without .gyan.zst]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Replace profiles of the same ranks
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan varlist -c -v 9                     all control variables of the MPI on PATH
  gyan varlist -l --match '*eager_limit*'  all that is known of some, and how to set them
  gyan varlist -- ./app                    for the MPI that ./app loads in this environment
  mpirun -n 1 gyan varlist --changed       what differs from the library's defaults in a run
  gyan varlist --json > a.json             a listing to keep; --diff a.json b.json compares two

Verbosity is shown as U/B-1 (user, basic) to D/A-9 (MPI developer, all).")]
#[allow(clippy::struct_excessive_bools)] // options of a command line
pub(crate) struct VarlistOptions {
    /// Only control variables
    #[arg(short = 'c', long)]
    pub(crate) cvars: bool,
    /// Only performance variables
    #[arg(short = 'p', long)]
    pub(crate) pvars: bool,
    /// Only events and their sources (MPI 4.0)
    #[arg(short = 'e', long)]
    pub(crate) events: bool,
    /// Only categories, as a tree with the variables in each
    #[arg(short = 'g', long)]
    pub(crate) categories: bool,
    /// Up to this verbosity level: 1 (user, basic) to 9 (developer, all)
    #[arg(short, long, value_name = "LEVEL", default_value_t = 9,
          value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) verbosity: u8,
    /// All that is known of each variable, with its description and how to set it
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Do not call MPI_Init before listing
    #[arg(short = 'm', long)]
    pub(crate) before_init: bool,
    /// How to print it
    #[arg(short, long, default_value = "table", value_parser = OneOf::<ListFormat>::new())]
    pub(crate) format: Asked<ListFormat>,
    /// As JSON, schema gyan.variables/1: --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Also the names and values of enumerations
    #[arg(long = "enum")]
    pub(crate) enumerations: bool,
    /// Only what matches in name or description: a glob, or a regular expression
    #[arg(long = "match", value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
    /// Only control variables whose value is not the library's default
    #[arg(long)]
    pub(crate) changed: bool,
    /// With --changed: those whose value differs from that in a saved listing
    #[arg(long, value_name = "FILE", requires = "changed")]
    pub(crate) against: Option<PathBuf>,
    /// Only compare two saved listings: what was added, removed or changed from A to B
    #[arg(long, num_args = 2, value_names = ["A", "B"], exclusive = true)]
    pub(crate) diff: Vec<PathBuf>,
    /// The MPI library [default: that of mpicc or mpirun on PATH]
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    pub(crate) mpi: Option<PathBuf>,
    /// A program: start it, and list the MPI that it loads at its MPI_Init
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan doctor                          the MPI on PATH: can gyan see into it, and how far?
  gyan doctor -- mpirun -n 2 ./app     the same for a program, which is ended at its MPI_Init
  gyan doctor --probe -- mpirun -n 1 ./app   which variables kill? writes a file of those to skip
  gyan doctor --json | jq '.checks[] | select(.verdict == \"obstacle\")'
  gyan doctor --site                   on a node of a site that records all jobs

Exit codes: 0 all is well; 1 something is in the way; 2 usage or I/O error.")]
pub(crate) struct DoctorOptions {
    /// How to print it
    #[arg(short, long, default_value = "table", value_parser = OneOf::<ListFormat>::new())]
    pub(crate) format: Asked<ListFormat>,
    /// As JSON, schema gyan.doctor/1: --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Try every performance variable in a process of its own, and write those that kill or hang to a
    /// file for GYAN_QUIRKS [default: gyan-quirks.txt]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "gyan-quirks.txt")]
    pub(crate) probe: Option<PathBuf>,
    /// Check the settings of a site: are they right, can users write into the spool but not list it, does the record of a
    /// run arrive, and are 500 ordinary commands unchanged? [default: /etc/gyan/site.toml]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "/etc/gyan/site.toml")]
    pub(crate) site: Option<PathBuf>,
    /// A program, with its launcher: start it and see whether it gets as far as MPI_Init
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan now                      the newest run below this directory
  gyan now gyan-app-1234        from any host that sees the directory
  gyan now --stacks             also how the ranks on this host got to where they are
  gyan now --threads            the same for all their threads
  gyan now --format json DIR    for a program, schema gyan.now/1

The keepers look at their ranks once a second. A rank that has not moved for 10 s is part of a
deadlock if none of the ranks that it waits for can go on. Nothing is concluded from calls that do
not say whom they wait for.")]
pub(crate) struct NowOptions {
    /// A run directory [default: the newest below the current one whose job is running]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Show the call stacks of the ranks on this host, as one tree. A rank is stopped while its stack is copied;
    /// gyan says for how long
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Show the call stacks of all threads, including those that do not call MPI, and name the library of a thread that a
    /// library keeps for itself. Implies --stacks
    #[arg(long)]
    pub(crate) threads: bool,
    /// How to print it
    #[arg(short, long, default_value = "table", value_parser = OneOf::<ListFormat>::new())]
    pub(crate) format: Asked<ListFormat>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan watch                    the newest run below this directory
  gyan watch --interval 10s DIR a look every 10 s
  gyan watch DIR | tee looks    without a terminal: one look below the other

q, Escape or Ctrl-C quits; the job does not notice. Each rank writes a record of itself from time to
time, at a call, as far as its budget allows. Rates are averages between two of its records. The
time in MPI is an estimate (~) where not every call was timed.

Exit codes: 0 the job has ended, or you quit; 2 usage or I/O error.")]
pub(crate) struct WatchOptions {
    /// A run directory [default: the newest below the current one whose job is running]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The time between two looks, 1 s or more [default: 2s; 10s if standard output is not a terminal]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
}

#[derive(Args)]
pub(crate) struct ListLibraryOptions {
    /// The MPI library
    pub(crate) mpi: PathBuf,
    /// Where the listing goes
    #[arg(long)]
    pub(crate) output: PathBuf,
    /// Do not call MPI_Init before
    #[arg(long)]
    pub(crate) before_init: bool,
}

/// A time of the command line, such as `60s` or `5m`; a number alone is in seconds.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    let number = text.parse().ok().map(Duration::from_secs);
    number.or_else(|| humantime::parse_duration(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap breaks longer lines, wherever that is.
    #[test]
    fn lines_below_the_options_fit() {
        fn look(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(look);
        }
        look(&<Cli as clap::CommandFactory>::command());
    }

    #[test]
    fn a_span_is_a_time_or_seconds() {
        assert_eq!(parse_span("60s"), Some(Duration::from_secs(60)));
        assert_eq!(parse_span("5m"), Some(Duration::from_secs(300)));
        assert_eq!(parse_span("90"), Some(Duration::from_secs(90)));
        assert_eq!(parse_span("mpirun"), None);
    }
}
