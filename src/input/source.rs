//! Where profiles come from, a run directory or a pack, and how to process them all while holding only a few at
//! a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{
    HostSummary, RankProfile, RankReader, Reduction, ReductionInOrder, SUMMARY_FILE, Summary,
    read_summary,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::error::Error;
use crate::input::directory::{self, Directory};
use crate::input::packed::Packed;
use crate::input::page;
use crate::input::runs;
use crate::say;
use crate::words::ranges;

/// Profiles that are compressed together in a pack. More make it smaller; fewer make a single one faster to
/// read, and lose fewer when a byte is damaged. Also the number that one thread reads at once where whole
/// profiles are needed.
pub(crate) const PART: usize = 16;
/// Ranks that one thread reduces before the result is merged. With too few, allocations are not reused often
/// enough; with too many, threads wait for the last one at the end.
const BLOCK: RangeInclusive<u32> = 16..=1024;
/// The least number of blocks for each thread.
const BLOCKS_PER_THREAD: usize = 8;
/// How often the parts that all threads read at once are kept until they are taken.
const PARTS_AHEAD: usize = 2;
/// A reduction that takes longer shows its progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// The profiles of a run.
pub(crate) enum Source {
    Directory(Directory),
    Pack(Packed),
}

/// Ranks that agree in all but their last bits, and their place: files of a directory, or frames of a pack.
struct Block {
    number: u32,
    bits: u32,
    parts: Range<usize>,
}

/// A profile, or why there is none, and its name within the source.
type Read = Result<RankProfile, String>;

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Source, Error> {
        if page::is_page(path) {
            page::read(path).map(|summary| Source::Directory(Directory::of_summary(path, summary)))
        } else if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            read(path).map(|summary| Source::Directory(Directory::of_summary(path, summary)))
        } else if path.is_file() {
            Packed::open(path).map(Source::Pack)
        } else {
            Directory::open(path).map(Source::Directory)
        }
    }

    /// The same for one job whose profiles are in several directories.
    pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Source, Error> {
        match paths {
            [] => Err(Error::new("gyan", "no run directory", "name one")),
            [path] => Source::open(path),
            [first, others @ ..] => {
                if let Some(pack) = paths.iter().find(|path| path.is_file()) {
                    let what = "is a pack, and cannot be read together with others";
                    return Err(Error::new(
                        pack.display(),
                        what,
                        "gyan unpack makes a directory of it",
                    ));
                }
                Directory::open_all(first, others).map(Source::Directory)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Source::Directory(directory) => &directory.path,
            Source::Pack(pack) => &pack.path,
        }
    }

    /// How many profiles there are, the damaged ones included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Source::Directory(directory) => directory.files.len(),
            Source::Pack(pack) => pack.lines(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where `gyan reduce` writes the summary.
    pub(crate) fn summary_file(&self) -> PathBuf {
        match self {
            Source::Directory(of) if of.path.is_dir() => of.path.join(SUMMARY_FILE),
            _ => crate::input::packed::beside(self.path(), SUMMARY_FILE),
        }
    }

    /// How a message names a profile of this source.
    pub(crate) fn place(&self, name: &str) -> String {
        match self {
            Source::Directory(directory) => directory.place(name).display().to_string(),
            Source::Pack(pack) => format!("{}: {name}", pack.path.display()),
        }
    }

    /// Parts of the source that cannot be read or attributed to a rank, and why.
    fn lost(&self) -> Box<dyn Iterator<Item = (&str, &str)> + '_> {
        match self {
            Source::Directory(directory) => Box::new(directory.lost()),
            Source::Pack(pack) => Box::new(pack.lost()),
        }
    }

    fn parts(&self) -> usize {
        match self {
            Source::Directory(directory) => directory.files.len().div_ceil(PART),
            Source::Pack(pack) => pack.frames(),
        }
    }

    /// Each profile of a part, in the order of the ranks.
    fn each_in(&self, part: usize, take: impl FnMut(&str, Read)) {
        self.each_without(part, &[], take);
    }

    /// The same without fields that nobody asks for, as of [`gyan_results::read_rank_without`].
    fn each_without(&self, part: usize, left_out: &[&str], mut take: impl FnMut(&str, Read)) {
        match self {
            Source::Directory(directory) => {
                for &file in directory.files.chunks(PART).nth(part).unwrap_or_default() {
                    take(&directory.name(file), directory.read_without(file, left_out));
                }
            }
            Source::Pack(pack) => {
                pack.each_in(part, |name, text| take(name, text.profile(left_out)));
            }
        }
    }

    /// What `of` makes of each profile of `job`, in the order of the ranks. Unreadable profiles are left out;
    /// [`warn_of_gaps`](Self::warn_of_gaps) has reported them.
    pub(crate) fn of_each<T: Send>(
        &self,
        job: &str,
        of: impl Fn(RankProfile) -> T + Send + Sync,
    ) -> Vec<T> {
        let of_part = |part| {
            let mut made = Vec::new();
            self.each_in(part, |_, profile| {
                made.extend(profile.ok().filter(|profile| profile.job.id == job).map(&of));
            });
            made
        };
        (0..self.parts()).into_par_iter().flat_map_iter(of_part).collect()
    }

    /// What `take` keeps of all profiles of `job` together, in no order. Unreadable profiles are left out.
    pub(crate) fn fold<T: Default + Send>(
        &self,
        job: &str,
        take: impl Fn(&mut T, RankProfile) + Send + Sync,
        merge: impl Fn(&mut T, T) + Send + Sync,
    ) -> T {
        let of_part = |mut kept: T, part| {
            self.each_in(part, |_, profile| {
                if let Some(profile) = profile.ok().filter(|profile| profile.job.id == job) {
                    take(&mut kept, profile);
                }
            });
            kept
        };
        let both = |mut one: T, other: T| {
            merge(&mut one, other);
            one
        };
        (0..self.parts()).into_par_iter().fold(T::default, of_part).reduce(T::default, both)
    }

    /// The profiles of `job` one after the other, for data that is too large to hold for all of them.
    pub(crate) fn one_by_one<'a>(&'a self, job: &'a str) -> impl Iterator<Item = RankProfile> + 'a {
        let profiles: Box<dyn Iterator<Item = RankProfile>> = match self {
            Source::Directory(directory) => {
                let files = directory.files.iter();
                Box::new(files.filter_map(|&file| directory.read(file).ok()))
            }
            Source::Pack(_) => Box::new((0..self.parts()).flat_map(|part| {
                let mut profiles = Vec::new();
                self.each_in(part, |_, profile| profiles.extend(profile.ok()));
                profiles
            })),
        };
        profiles.filter(move |profile| profile.job.id == job)
    }

    /// The summary that the ranks wrote instead of most of their profiles.
    pub(crate) fn reduced_in_mpi(&self) -> Option<&Summary> {
        match self {
            Source::Directory(directory) => directory.reduced_in_mpi.as_deref(),
            Source::Pack(_) => None,
        }
    }

    /// The profiles, reduced, here or by the ranks themselves. When there are none, the summary that remains of
    /// them.
    pub(crate) fn summarize(&self) -> Result<Summary, Error> {
        if let Some(summary) = self.reduced_in_mpi() {
            return Ok(summary.clone());
        }
        if self.is_empty() {
            return match self.lost().next() {
                Some((name, why)) => {
                    Err(Error::new(self.place(name), why, "no other profile is here"))
                }
                None => self.summary_that_was_left(),
            };
        }
        let progress = Progress::new(self.len());
        let mut reduction = self.reduce(&self.blocks(), &progress);
        progress.finish();
        for (name, reason) in self.lost() {
            reduction.leave_out(name, reason);
        }
        let why_none = reduction.left_out().next().map(|left_out| {
            Error::new(self.place(&left_out.file), &left_out.reason, "no other profile is here")
        });
        match (reduction.finish(), why_none) {
            (Some(summary), _) => Ok(summary),
            (None, Some(error)) => Err(error),
            (None, None) => {
                Err(Error::new(self.path().display(), "nothing to reduce", "run again"))
            }
        }
    }

    /// The profiles by aligned blocks of ranks.
    fn blocks(&self) -> Vec<Block> {
        let blocks = rayon::current_num_threads() * BLOCKS_PER_THREAD;
        let size = u32::try_from(self.len() / blocks).unwrap_or(u32::MAX);
        let bits = size.clamp(*BLOCK.start(), *BLOCK.end()).ilog2();
        let mut parts: BTreeMap<u32, Range<usize>> = BTreeMap::new();
        let mut take = |rank: u32, part: usize| {
            let parts = parts.entry(rank >> bits).or_insert(part..part);
            parts.end = part + 1;
        };
        match self {
            Source::Directory(directory) => {
                directory.files.iter().zip(0..).for_each(|(file, at)| take(file.rank, at));
            }
            Source::Pack(pack) => pack.each_rank(take),
        }
        parts.into_iter().map(|(number, parts)| Block { number, bits, parts }).collect()
    }

    /// A binary tree over the ranks: doubles are added up in an order that depends on neither threads nor
    /// missing ranks. A merged reduction is freed, so each level of the tree holds only as many as there are
    /// threads.
    fn reduce(&self, blocks: &[Block], progress: &Progress) -> Reduction {
        match blocks {
            [] => Reduction::default(),
            [block] => self.reduce_block(block, progress),
            [first, .., last] => {
                let level = (first.number ^ last.number).checked_ilog2().unwrap_or_default();
                let is_left = |block: &Block| block.number >> level == first.number >> level;
                let (left, right) = blocks.split_at(blocks.partition_point(is_left));
                let (mut left, right) =
                    rayon::join(|| self.reduce(left, progress), || self.reduce(right, progress));
                left.merge(right);
                left
            }
        }
    }

    fn reduce_block(&self, block: &Block, progress: &Progress) -> Reduction {
        let mut reduction = ReductionInOrder::default();
        let mut reader = RankReader::default();
        let mut take = |name: &str, profile: Result<&mut RankProfile, String>| {
            match profile {
                Ok(profile) => reduction.add(name, profile),
                Err(why) => reduction.leave_out(name, &why),
            }
            progress.step();
        };
        match self {
            Source::Directory(directory) => {
                for &file in directory.files.get(block.parts.clone()).unwrap_or_default() {
                    take(&directory.name(file), directory.read_with(&mut reader, file));
                }
            }
            Source::Pack(pack) => {
                for part in block.parts.clone() {
                    pack.each_in(part, |name, line| {
                        if line.rank >> block.bits == block.number {
                            take(name, line.profile_with(&mut reader));
                        }
                    });
                }
            }
        }
        reduction.finish()
    }

    fn summary_that_was_left(&self) -> Result<Summary, Error> {
        if let Source::Pack(pack) = self
            && pack.is_cut_short()
        {
            let path = pack.path.display();
            let why = "is cut short before the first whole profile";
            return Err(Error::new(path, why, "pack the directory again"));
        }
        let summary = self.summary_file();
        if !summary.exists() {
            let path = self.path().display();
            let is_directory = self.path().is_dir();
            let runs = is_directory.then(|| runs::runs_in(self.path()).ok()).flatten();
            if let Some([first, others @ ..]) = runs.as_deref() {
                let first = first.display();
                let (why, remedy) = match others.len() {
                    0 => ("holds a run".to_owned(), format!("name it: {first}")),
                    others => (
                        format!("holds {} runs", others + 1),
                        format!("name one, such as {first}; gyan diff and gyan scale compare them"),
                    ),
                };
                return Err(Error::new(path, why, remedy));
            }
            let why = "holds no rank profiles (rank-NNNNNN.json)";
            let remedy = "name the run directory of a program that ran under gyan";
            return Err(Error::new(path, why, remedy));
        }
        read(&summary)
    }

    /// Says on stderr what the summary lacks. Returns whether it is complete.
    pub(crate) fn warn_of_gaps(&self, summary: &Summary) -> bool {
        let ranks = &summary.ranks;
        let path = self.path().display();
        let left_out = ranks.left_out.iter();
        let left_out = left_out.map(|file| format!("{}: {}", self.place(&file.file), file.reason));
        say::warn_of(left_out, |more| {
            format!(
                "{path}: {more} more files were left out; gyan reduce lists them in {SUMMARY_FILE}"
            )
        });
        if !ranks.missing.is_empty() {
            say::warn(format!(
                "{path}: {} of {} ranks have no usable profile ({}); they ended before MPI_Finalize, could not write, or \
                 ran without gyan{}",
                ranks.missing.len(),
                ranks.expected,
                ranges(&ranks.missing),
                elsewhere(summary).unwrap_or_default(),
            ));
        }
        self.warn() && ranks.is_complete()
    }

    /// Says on stderr that most ranks have no profile, when they reduced them themselves.
    pub(crate) fn warn_of_few(&self) {
        if let Some(summary) = self.reduced_in_mpi() {
            say::warn(format!(
                "{}: the ranks reduced their profiles themselves: those of {} of {} ranks are here",
                self.path().display(),
                self.len(),
                summary.ranks.reduced
            ));
        }
    }

    /// Says on stderr what is missing besides damaged profiles. Returns whether the source is complete.
    pub(crate) fn warn(&self) -> bool {
        match self {
            Source::Directory(directory) => {
                directory.places().for_each(directory::name_nested);
                directory.warn_of_silence();
                true
            }
            Source::Pack(pack) => pack.warn(),
        }
    }

    /// All profiles with their names, in the order of the ranks, read by this thread. `left_out`: fields that are not read, as of
    /// [`gyan_results::read_rank_without`].
    pub(crate) fn all(&self, left_out: &[&str]) -> Vec<(String, Read)> {
        let mut profiles = Vec::with_capacity(self.len());
        for part in 0..self.parts() {
            let take = |name: &str, profile| profiles.push((name.to_owned(), profile));
            self.each_without(part, left_out, take);
        }
        profiles.extend(self.lost().map(|(name, why)| (name.to_owned(), Err(why.to_owned()))));
        profiles
    }

    /// Each profile with its name, in the order of the ranks, read on all cores while others are taken; stops at an
    /// error. `left_out`: as of [`all`](Self::all).
    pub(crate) fn in_order<E>(
        &self,
        left_out: &[&str],
        mut take: impl FnMut(&str, Read) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = |&part: &usize| {
            let mut profiles = Vec::new();
            let take = |name: &str, profile| profiles.push((name.to_owned(), profile));
            self.each_without(part, left_out, take);
            profiles
        };
        let parts: Vec<usize> = (0..self.parts()).collect();
        let (put, ready) = mpsc::sync_channel(PARTS_AHEAD);
        thread::scope(|scope| {
            scope.spawn(move || {
                for parts in parts.chunks(rayon::current_num_threads()) {
                    let read: Vec<Vec<(String, Read)>> = parts.par_iter().map(read).collect();
                    // Nobody takes any more after an error.
                    if put.send(read).is_err() {
                        return;
                    }
                }
            });
            let profiles = ready.into_iter().flatten().flatten();
            profiles.into_iter().try_for_each(|(name, profile)| take(&name, profile))
        })?;
        for (name, why) in self.lost() {
            take(name, Err(why.to_owned()))?;
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Summary, Error> {
    read_summary(file).map_err(|error| {
        let text = error.to_string();
        let (why, remedy) = text.split_once("; ").unwrap_or((&text, "reduce again"));
        Error::new(file.display(), why, remedy)
    })
}

/// A hint that the missing profiles may be on other hosts: given when they would fill whole hosts with as many
/// ranks as the hosts that are here, placed in blocks or in turns. The names of those hosts are not known here.
fn elsewhere(summary: &Summary) -> Option<String> {
    let (ranks, names) = (&summary.ranks, &summary.hosts);
    let hosts = u32::try_from(names.len()).ok()?;
    let each = ranks.reduced.checked_div(hosts)?;
    let in_all = ranks.expected.checked_div(each)?;
    let is_like_them = |host: &HostSummary| host.number() == u64::from(each);
    if each * in_all != ranks.expected || !summary.by_host.iter().all(is_like_them) {
        return None;
    }
    let missing: BTreeSet<u32> = ranks.missing.iter().copied().collect();
    let are_whole = |host: &dyn Fn(u32) -> u32| {
        let without: BTreeSet<u32> = missing.iter().map(|rank| host(*rank)).collect();
        (0..ranks.expected).all(|rank| missing.contains(&rank) == without.contains(&host(rank)))
    };
    if !are_whole(&|rank| rank / each) && !are_whole(&|rank| rank % in_all) {
        return None;
    }
    let others = in_all - hosts;
    let (s, each_s) = (if others == 1 { "" } else { "s" }, if each == 1 { "" } else { "s" });
    let names: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    let (names, more) = (names.join(", "), if hosts > 3 { ", ..." } else { "" });
    Some(format!(
        "; or they are those of {others} more host{s} like {names}{more} ({each} rank{each_s} each), where \
         GYAN_OUTPUT is a directory of each host: copy them together, or: gyan report DIR1 DIR2"
    ))
}

/// A progress bar for a user who waits longer than a second at a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    wanted: bool,
}

impl Progress {
    pub(crate) fn new(profiles: usize) -> Progress {
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(Some(profiles as u64), hidden);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} profiles, {eta} left")
        {
            bar.set_style(style);
        }
        Progress { bar, begun: Instant::now(), wanted: io::stderr().is_terminal() }
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
        if self.wanted && self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
