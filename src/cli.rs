//! The command line: options, help and examples.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// See inside the MPI library that a program runs on.
#[derive(Parser)]
#[command(name = "gyan", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  gyan run -- mpirun -n 4 ./app        run under the profiler, then print the report
  mpirun -n 4 gyan run ./app           the same from inside the launcher
  gyan report gyan-app-1234            print the report again
  gyan report --format csv DIR         every number, for a spreadsheet

Exit codes: 0 done; 1 done, but data is incomplete; 2 usage or I/O error;
`gyan run` passes on the code of the program (128 + signal).";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run an MPI program under the profiler and print the report
    Run(RunOptions),
    /// Print the report of a run directory
    Report(ReportOptions),
    /// Reduce the profiles of a run directory to summary.json
    Reduce(ReduceOptions),
    /// Print a completion script for a shell
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
  mpirun -n 4 gyan run ./app           inside the launcher: no report at the end

The report goes to stderr: stdout belongs to the program.")]
pub(crate) struct RunOptions {
    /// Where the profiles go [default: gyan-<program>-<id>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Remove profiles of an earlier run from the output directory
    #[arg(long)]
    pub(crate) force: bool,
    /// Which performance variables to read: name[:CLASS];... with * and ?, - leaves out
    #[arg(long, value_name = "LIST")]
    pub(crate) pvars: Option<String>,
    /// Do not print the report
    #[arg(long)]
    pub(crate) no_report: bool,
    /// The launcher and the program, with their arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  gyan report gyan-app-1234
  gyan report --all --vars '*unexpected*' gyan-app-1234
  gyan report --format json gyan-app-1234 | jq '.calls[] | {name, max: .count.max}'")]
pub(crate) struct ReportOptions {
    /// The run directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Everything: also what is zero on every rank, and what was not read
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only variables and functions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub(crate) vars: Option<String>,
}

#[derive(Args)]
pub(crate) struct ReduceOptions {
    /// The run directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// The summary as it is in summary.json
    Json,
    /// One line for each number
    Csv,
    /// Tables for a document
    Markdown,
}
