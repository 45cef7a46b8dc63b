//! `gyan now`: what every rank of a running job is doing, who waits for whom, and why it does not go on.

use std::collections::BTreeSet;
use std::path::{Path, absolute};

use crate::cli::NowOptions;
use crate::error::Error;
use crate::format::ListFormat;
use crate::hang::Starting;
use crate::input::directory::{Directory, newest_running};
use crate::launch::keepers;
use crate::launch::ranks::{self, JobHere};
use crate::output::print;
use crate::print::listing;
use crate::stacks::WhichThreads;
use crate::{DONE, INCOMPLETE, answers, hang, stacks};

pub(crate) fn now(options: &NowOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let path = match &options.directory {
        Some(path) => path.clone(),
        None => match newest_running("gyan now") {
            Ok(path) => path,
            Err(error) => return starting(options, format, None, error),
        },
    };
    keepers::write_now(&path);
    let directory = match Directory::open(&path) {
        Ok(directory) => directory,
        Err(error) => return starting(options, format, Some(&path), error),
    };
    directory.warn_of_silence();
    let Some(mut now) = hang::of_directory(&directory) else {
        let error = Error::new(
            path.display().to_string(),
            "no rank is seen: they have ended, are still in MPI_Init, or run with GYAN_KEEPER=off",
            "see what is known: gyan report DIR",
        );
        return starting(options, format, Some(&path), error);
    };
    if let Some(which) = which_stacks(options) {
        (now.stacks, now.without_stack) = stacks::taken(&directory, &now.ranks, which);
    }
    listing(format, &answers::now(&now, &path), &now)?;
    Ok(code(now.ranks.len(), now.size))
}

fn code(known: usize, size: u32) -> u8 {
    if known == size as usize { DONE } else { INCOMPLETE }
}

/// None without `--stacks`.
fn which_stacks(options: &NowOptions) -> Option<WhichThreads> {
    match (options.threads, options.stacks) {
        (true, _) => Some(WhichThreads::All),
        (false, is_asked) => is_asked.then_some(WhichThreads::Main),
    }
}

/// What the ranks on this host do of jobs that no keeper knows of; `error` if there are none. `directory`: of the job in it only.
fn starting(
    options: &NowOptions,
    format: ListFormat,
    directory: Option<&Path>,
    error: Error,
) -> Result<u8, Error> {
    let wanted = directory.and_then(|path| absolute(path).ok());
    let mut jobs = ranks::jobs();
    jobs.retain(|job| directory.is_none() || job.output == wanted);
    let which = which_stacks(options);
    let looked: Vec<(JobHere, Starting)> = jobs
        .into_iter()
        .map(|job| {
            let starting = hang::starting(&job, which.unwrap_or(WhichThreads::Main));
            (job, starting)
        })
        .collect();
    // Their ranks may have left MPI_Init meanwhile.
    let begun = known_processes();
    let is_begun = |job: &JobHere| job.processes.values().any(|pid| begun.contains(pid));
    let mut code = None;
    for (job, mut starting) in looked.into_iter().filter(|(job, _)| !is_begun(job)) {
        if which.is_none() {
            (starting.now.stacks, starting.now.without_stack) = (Vec::new(), Vec::new());
        }
        if code.is_some() && !matches!(format, ListFormat::Json) {
            print(|out| writeln!(out))?;
        }
        let view = answers::starting(&starting, job.output.as_deref());
        listing(format, &view, &starting.now)?;
        let own = self::code(starting.now.ranks.len(), starting.now.size);
        code = Some(code.map_or(own, |others: u8| others.max(own)));
    }
    code.ok_or(error)
}

/// The processes that keepers on this host know of.
fn known_processes() -> BTreeSet<u32> {
    let mut known = BTreeSet::new();
    for directory in keepers::directories() {
        keepers::write_now(&directory);
        let directory = Directory::open(&directory);
        let processes = directory.map(|of| of.processes()).unwrap_or_default();
        known.extend(processes.into_iter().filter_map(|process| process.pid));
    }
    known
}
