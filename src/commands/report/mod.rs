//! `gyan report`: the numbers of a run directory or a pack, in one of several forms.

pub(crate) mod page;
mod series;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gyan_results::{Efficiencies, Finding, QueueRow, Summary, Tuning, write_summary};
use serde::Serialize;
use wildmatch::WildMatch;

use crate::cli::{PartOptions, ReportOptions};
use crate::commands::tune;
use crate::error::Error;
use crate::findings::{self, Answers};
use crate::format::{ListFormat, ReportFormat as Format};
use crate::input::source::Source;
use crate::input::{packed, page as from_page};
use crate::launch::keepers;
use crate::parts::machine::rows::Machines;
use crate::parts::queues::rows::Queues;
use crate::parts::{self, Known, Part};
use crate::symbols::sites::{self, CallSites};
use crate::symbols::stacks::{self, Watched};
use crate::{DONE, INCOMPLETE, output, print, render};

pub(crate) fn report(options: &ReportOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let is_page = matches!(format, Format::Html);
    page::check(options, is_page)?;
    let asked = options.part.clone().unwrap_or_default();
    let (directories, phase) = directories_and_phase(options)?;
    if let [directory] = &directories[..]
        && let Some(tuning) = tune::found(directory)?
    {
        return of_tune(directory, &tuning, options, format);
    }
    for directory in &directories {
        keepers::write_now(directory);
    }
    let source = Source::open_all(&directories)?;
    let directory = source.path();
    let mut summary = source.summarize()?;
    let complete = source.warn_of_gaps(&summary);
    if let Some(glob) = &options.vars {
        keep(&mut summary, glob)?;
    }
    let all = options.all;
    if is_page {
        page::write(&source, &summary, options)?;
    } else if asked.environment {
        let (view, data) = (parts::environment(&summary), parts::environment::rows(&summary.cvars));
        print::report(format, &view, data, &summary.cvars)?;
    } else if let Some(name) = &asked.series {
        series::show(&source, &summary, name, format, all)?;
    } else if let Some(name) = &asked.histogram {
        let histograms = parts::histograms(&summary, &WildMatch::new(name));
        if histograms.is_empty() {
            return Err(Error::new(
                format!("--histogram {name}"),
                "no timed call, no sampled variable and no metric of messages matches",
                "gyan report --all shows the names",
            ));
        }
        let (view, data) = (
            parts::histogram(&summary, &histograms),
            parts::histogram::rows::histograms(&histograms),
        );
        print::report(format, &view, data, &histograms)?;
    } else if asked.sizes {
        let sizes = parts::sizes(&summary);
        if sizes.is_empty() {
            return Err(Error::new(
                directory.display(),
                "nothing is known of the sizes of messages",
                "no function that moves data was called, or an older gyan wrote the profiles",
            ));
        }
        let (view, data) =
            (parts::histogram(&summary, &sizes), parts::histogram::rows::histograms(&sizes));
        print::report(format, &view, data, &sizes)?;
    } else if asked.peers {
        if summary.peers.is_empty() {
            return Err(Error::new(
                directory.display(),
                "nothing is known of peers",
                "no message was sent from rank to rank, or GYAN_PEERS was off",
            ));
        }
        let (view, data) = (parts::peers(&summary, all), parts::peers::rows::peers(&summary));
        print::report(format, &view, data, &summary.peers)?;
    } else if let Some(name) = phase {
        keep_phases(directory, &mut summary, name)?;
        let view = parts::phases(&summary, !name.is_empty(), all);
        let data = parts::report::rows::phases(&summary.phases);
        print::report(format, &view, data, &summary.phases)?;
    } else if asked.sites {
        let Some(found) = sites::call_sites(&summary) else {
            return Err(Error::new(
                directory.display(),
                "no call sites are known",
                "run it again with timed calls, and without GYAN_SITES=off",
            ));
        };
        let view = parts::sites(&summary, &found, all);
        print::report(format, &view, parts::sites::rows::sites(&found), &found)?;
    } else if asked.queues {
        queues(directory, &summary, format, all)?;
    } else if asked.machine {
        machine(directory, &summary, format, all)?;
    } else if asked.waiting {
        if summary.waiting.is_empty() {
            return Err(Error::new(
                directory.display(),
                "no collective was compared between ranks",
                "waiting is known of calls such as MPI_Allreduce and MPI_Barrier, in which each rank waits for all \
                 others, on communicators of at least two ranks, and not with GYAN_WAITING=off",
            ));
        }
        let (view, data) =
            (parts::waiting(&summary, all), parts::waiting::rows::waiting(&summary.waiting));
        print::report(format, &view, data, &summary.waiting)?;
    } else {
        whole(directory, summary, options, &asked, format)?;
    }
    Ok(if complete { DONE } else { INCOMPLETE })
}

/// What a tune found, shown again.
fn of_tune(
    directory: &Path,
    tuning: &Tuning,
    options: &ReportOptions,
    format: Format,
) -> Result<u8, Error> {
    let (shown, files) = (directory.display().to_string(), tune::files_in(directory));
    let format = match format {
        Format::Html => {
            let page = crate::answers::tuning_page(tuning, &shown, &files);
            output::write_page(&options.page, |out| render::html(out, &page, ""))?;
            return Ok(tune::code(tuning));
        }
        Format::Table => Some(ListFormat::Table),
        Format::Markdown => Some(ListFormat::Markdown),
        Format::Json => Some(ListFormat::Json),
        Format::Csv => None,
    };
    let Some(format) = format.filter(|_| !page::names_a_part(options)) else {
        return Err(Error::new(
            &shown,
            "is the directory of a tune, which has neither parts nor rows",
            format!("name one of its runs, in {}", tune::runs(directory).display()),
        ));
    };
    print::listing(format, &crate::answers::tuning(tuning, &shown, &files), tuning)?;
    Ok(tune::code(tuning))
}

/// The run as a whole, or a part of its report.
fn whole(
    directory: &Path,
    mut summary: Summary,
    options: &ReportOptions,
    asked: &PartOptions,
    format: Format,
) -> Result<(), Error> {
    let concluded = Concluded::of(&summary, directory, options.vars.is_none());
    let Answers { efficiencies, findings, .. } = &concluded.answers;
    if asked.findings {
        let view = parts::findings(&summary, efficiencies.as_ref(), findings, &concluded.directory);
        let data = parts::findings::rows::findings(findings);
        let whole = Findings { efficiencies, findings };
        print::report(format, &view, data, &whole)?;
    } else if matches!(format, Format::Json) {
        let Answers { efficiencies, findings, .. } = concluded.answers;
        (summary.efficiencies, summary.findings) = (efficiencies, findings);
        output::print(|mut out| write_summary(&mut out, &summary))?;
    } else {
        let part = match asked {
            _ if options.vars.is_some() => Part::Named,
            PartOptions { variables: true, .. } => Part::Variables,
            PartOptions { coverage: true, .. } => Part::Coverage,
            _ if options.all => Part::Whole,
            _ => Part::First,
        };
        let view = parts::report(&summary, concluded.known(), part, options.all);
        print::report(
            format,
            &view,
            parts::report::rows::summary(&summary, &concluded.watched),
            &summary,
        )?;
    }
    Ok(())
}

/// Conclusions from a summary, for every way to show it.
pub(crate) struct Concluded<'a> {
    pub(crate) watched: Vec<Watched<'a>>,
    remarks: Vec<String>,
    pub(crate) called: Option<CallSites<'a>>,
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) answers: Answers,
    directory: String,
}

impl<'a> Concluded<'a> {
    /// `is_whole`: nothing can be concluded from only some of the functions.
    pub(crate) fn of(summary: &'a Summary, directory: &Path, is_whole: bool) -> Concluded<'a> {
        let (watched, remarks) = stacks::watched(summary);
        let called = sites::call_sites(summary);
        let queues = summary.queues();
        let answers = if is_whole {
            findings::find(summary, &queues, &parts::places_in_words(called.as_ref()))
        } else {
            Answers::default()
        };
        let directory = directory.display().to_string();
        Concluded { watched, remarks, called, queues, answers, directory }
    }

    pub(crate) fn known(&self) -> Known<'_> {
        Known {
            watched: &self.watched,
            remarks: &self.remarks,
            called: self.called.as_ref(),
            queues: &self.queues,
            efficiencies: self.answers.efficiencies.as_ref(),
            findings: &self.answers.findings,
            eager: self.answers.eager.map(|eager| (eager.limit_bytes, eager.above)),
            directory: &self.directory,
        }
    }
}

/// What `--findings --format json` prints; the summary also contains both.
#[derive(Serialize)]
struct Findings<'a> {
    efficiencies: &'a Option<Efficiencies>,
    findings: &'a [Finding],
}

/// How a run is printed that has just ended.
pub(crate) fn first_screen(
    out: &mut impl Write,
    summary: &Summary,
    directory: &Path,
) -> io::Result<()> {
    let concluded = Concluded::of(summary, directory, true);
    render::table(out, &parts::report(summary, concluded.known(), Part::First, false))
}

/// The run directories, and the name of the requested phase, which is empty for all phases: in `--phase DIR`
/// the directory stands where a name could.
fn directories_and_phase(options: &ReportOptions) -> Result<(Vec<PathBuf>, Option<&str>), Error> {
    let phase = options.part.as_ref().and_then(|part| part.phase.as_deref());
    match phase {
        _ if !options.directories.is_empty() => Ok((options.directories.clone(), phase)),
        Some(name) if is_run(Path::new(name)) => Ok((vec![name.into()], Some(""))),
        name => Err(Error::new(
            format!("--phase {}", name.unwrap_or_default()),
            "no run directory",
            "name one: gyan report --phase NAME DIR",
        )),
    }
}

fn is_run(path: &Path) -> bool {
    path.is_dir() || packed::is_named_so(path) || from_page::is_page(path)
}

/// What is known of the queues of messages.
fn queues(directory: &Path, summary: &Summary, format: Format, all: bool) -> Result<(), Error> {
    let metrics = summary.queues();
    if metrics.is_empty() && summary.watches.is_empty() && summary.events.is_empty() {
        return Err(Error::new(
            directory.display(),
            "nothing is known of queues",
            "run with: gyan run --watch umq --events",
        ));
    }
    let (watched, remarks) = stacks::watched(summary);
    let queues = Queues {
        metrics: &metrics,
        messages: &summary.messages,
        events: &summary.events,
        watches: &watched,
    };
    let view = parts::queues(summary, &metrics, (&watched, &remarks), all);
    print::report(format, &view, parts::queues::rows::queues(&queues), &queues)
}

/// What the ranks ran on.
fn machine(directory: &Path, summary: &Summary, format: Format, all: bool) -> Result<(), Error> {
    let Some(machines) = Machines::of(summary) else {
        return Err(Error::new(
            directory.display(),
            "nothing is known of what the ranks ran on",
            "run it again with this gyan",
        ));
    };
    let view = parts::machine(summary, all);
    print::report(format, &view, parts::machine::rows::machine(&machines), &machines)
}

/// Keeps what matches; it is an error when nothing does, since that is a spelling mistake.
fn keep(summary: &mut Summary, glob: &str) -> Result<(), Error> {
    let pattern = WildMatch::new(glob);
    summary.pvars.retain(|pvar| pattern.matches(&pvar.name));
    summary.calls.retain(|call| pattern.matches(&call.name));
    summary.samples.retain(|samples| pattern.matches(&samples.name));
    if let Some(sites) = &mut summary.sites {
        sites.sites.retain(|site| pattern.matches(&site.function));
    }
    for phase in &mut summary.phases {
        phase.pvars.retain(|pvar| pattern.matches(&pvar.name));
        phase.calls.retain(|call| pattern.matches(&call.name));
        phase.samples.retain(|samples| pattern.matches(&samples.name));
    }
    summary
        .coverage
        .skipped
        .retain(|skipped| skipped.name.as_deref().is_some_and(|name| pattern.matches(name)));
    let nothing = summary.pvars.is_empty()
        && summary.calls.is_empty()
        && summary.samples.is_empty()
        && summary.coverage.skipped.is_empty();
    if nothing {
        return Err(Error::new(
            format!("--vars {glob}"),
            "no variable or function matches",
            "leave it out to see all of them",
        ));
    }
    Ok(())
}

/// Keeps the phases whose name matches, or all of them.
fn keep_phases(directory: &Path, summary: &mut Summary, glob: &str) -> Result<(), Error> {
    if summary.phases.is_empty() {
        return Err(Error::new(
            directory.display(),
            "the program has no phases",
            "mark them with gyan_phase_begin(\"name\") and gyan_phase_end() of gyan.h, or with \
             MPI_Pcontrol(3), MPI_Pcontrol(4), ...",
        ));
    }
    if glob.is_empty() {
        return Ok(());
    }
    let pattern = WildMatch::new(glob);
    let names: Vec<&str> = summary.phases.iter().map(parts::phase_name).collect();
    if !names.iter().any(|name| pattern.matches(name)) {
        return Err(Error::new(
            format!("--phase {glob}"),
            "no phase matches",
            format!("the run has {}", names.join(", ")),
        ));
    }
    summary.phases.retain(|phase| pattern.matches(parts::phase_name(phase)));
    Ok(())
}
