//! What the parts of a report are made of: a summary, and what follows from it. That is found out when a part asks.

use std::cell::OnceCell;
use std::path::Path;

use gyan_results::{JobNow, MessagePlace, QueueRow, Summary};

use super::OfRanks;
use super::sites::{library_in_words, places_in_words};
use crate::error::Error;
use crate::findings::{self, Answers, CallPlaces};
use crate::hang;
use crate::input::source::Source;
use crate::symbols::sites::{self, CallSites, Library};
use crate::symbols::stacks::{self, Watched};

/// A run, and how much of it is asked for.
pub(crate) struct ReportInput<'a> {
    pub(crate) summary: &'a Summary,
    /// The name under which the user knows the run.
    pub(crate) directory: String,
    /// Where the profiles of the ranks are, if they are there.
    pub(crate) source: Option<&'a Source>,
    /// Also what is 0 on every rank, and every row.
    pub(crate) all: bool,
    /// What the option of a part takes.
    pub(crate) glob: Option<&'a str>,
    /// Only some variables and functions are in the summary, from which nothing can be concluded.
    pub(crate) is_selection: bool,
    watched: OnceCell<(Vec<Watched<'a>>, Vec<String>)>,
    called: OnceCell<Option<CallSites<'a>>>,
    message_places: OnceCell<(Vec<String>, Vec<String>)>,
    path_places: OnceCell<Vec<String>>,
    regions: OnceCell<(Vec<Library>, Vec<String>)>,
    queues: OnceCell<Vec<QueueRow>>,
    answers: OnceCell<Answers>,
    ranks: OnceCell<OfRanks>,
    now: OnceCell<Option<JobNow>>,
}

impl<'a> ReportInput<'a> {
    pub(crate) fn new(summary: &'a Summary, directory: &Path) -> ReportInput<'a> {
        ReportInput {
            summary,
            directory: directory.display().to_string(),
            source: None,
            all: false,
            glob: None,
            is_selection: false,
            watched: OnceCell::new(),
            called: OnceCell::new(),
            message_places: OnceCell::new(),
            path_places: OnceCell::new(),
            regions: OnceCell::new(),
            queues: OnceCell::new(),
            answers: OnceCell::new(),
            ranks: OnceCell::new(),
            now: OnceCell::new(),
        }
    }

    pub(crate) fn with_source(self, source: &'a Source) -> ReportInput<'a> {
        ReportInput { source: Some(source), ..self }
    }

    /// With what is known of the ranks, in place of their profiles.
    pub(crate) fn with_ranks(self, ranks: OfRanks) -> ReportInput<'a> {
        ReportInput { ranks: OnceCell::from(ranks), ..self }
    }

    /// What the ranks are doing, or did last; none if all have ended well.
    pub(crate) fn now(&self) -> Option<&JobNow> {
        let look = || match self.source {
            Some(Source::Directory(directory)) => hang::of_directory(directory),
            _ => None,
        };
        self.now.get_or_init(look).as_ref()
    }

    /// The receives that were watched, and what stopped their addresses from getting names.
    pub(crate) fn watched(&self) -> (&[Watched<'a>], &[String]) {
        let (watched, remarks) = self.watched.get_or_init(|| stacks::watched(self.summary));
        (watched, remarks)
    }

    pub(crate) fn called(&self) -> Option<&CallSites<'a>> {
        self.called.get_or_init(|| sites::call_sites(self.summary)).as_ref()
    }

    /// Where messages are sent, received and waited for, by the index that `message_waiting` has for it; and what stopped
    /// places from getting names.
    pub(crate) fn message_places(&self) -> &(Vec<String>, Vec<String>) {
        self.message_places.get_or_init(|| {
            let Some(waiting) = &self.summary.message_waiting else { return Default::default() };
            let (places, remarks) = sites::places(&waiting.addresses, &waiting.load_map);
            (places.into_iter().map(library_in_words).collect(), remarks)
        })
    }

    /// `halo.c:31`, if it is known where that is.
    pub(crate) fn message_place(&self, call: &MessagePlace) -> Option<&str> {
        let place = self.message_places().0.get(call.call?)?;
        (!place.is_empty()).then_some(place)
    }

    /// The same for a call that the critical path leads up to.
    pub(crate) fn path_place(&self, call: &MessagePlace) -> Option<&str> {
        let places = self.path_places.get_or_init(|| {
            let Some(path) = &self.summary.critical_path else { return Vec::new() };
            let (places, _) = sites::places(&path.addresses, &path.load_map);
            places.into_iter().map(library_in_words).collect()
        });
        places.get(call.call?).map(String::as_str).filter(|place| !place.is_empty())
    }

    /// Where parallel regions are started, by the index that `openmp` has for it; and what stopped places from getting names.
    pub(crate) fn regions(&self) -> &(Vec<Library>, Vec<String>) {
        self.regions.get_or_init(|| {
            let Some(openmp) = &self.summary.openmp else { return Default::default() };
            sites::places(&openmp.addresses, &openmp.load_map)
        })
    }

    pub(crate) fn queues(&self) -> &[QueueRow] {
        self.queues.get_or_init(|| self.summary.queues())
    }

    pub(crate) fn answers(&self) -> &Answers {
        self.answers.get_or_init(|| {
            if self.is_selection {
                return Answers::default();
            }
            let places = CallPlaces {
                functions: places_in_words(self.called()),
                messages: self.message_places().0.clone(),
                regions: self.regions().0.iter().cloned().map(library_in_words).collect(),
            };
            findings::find(self.summary, self.queues(), &places)
        })
    }

    /// The eager limit in bytes and the share of messages above it, if known.
    pub(crate) fn eager(&self) -> Option<(f64, f64)> {
        self.answers().eager.map(|eager| (eager.limit_bytes, eager.above))
    }

    /// From the profiles of the ranks; empty where there are none.
    pub(crate) fn ranks(&self) -> &OfRanks {
        self.ranks.get_or_init(|| {
            let Some(source) = self.source else { return OfRanks::default() };
            let job = &self.summary.job;
            let take = |of: &mut OfRanks, profile| of.take(&profile, job.elapsed_s);
            source.fold(&job.id, take, OfRanks::merge)
        })
    }

    /// Why the run has nothing of what is asked for.
    pub(crate) fn lacks(&self, why: &str, remedy: &str) -> Error {
        Error::new(&self.directory, why, remedy)
    }
}
