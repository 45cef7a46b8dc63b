//! OTF2, the format of Score-P, which Vampir and Scalasca read: an archive of three parts, `name.otf2`, `name.def` and the directory
//! `name` with the events of each thread.
//!
//! Message events are only those of messages that have an arrow, and collective operations only those that all ranks of the
//! communicator have: readers look for the other side of each, and take what is missing for an error.

mod functions;
mod knowledge;
mod library;
mod recorded;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use self::functions::{CODE, role};
use self::knowledge::JobKnowledge;
use self::library::{
    ArchiveFile, CALLED_AT, Definition, GroupKind, Paradigm, TreeDomain, UNDEFINED,
};
use self::recorded::{RankRecord, RecordedLocation};
use super::WrittenEvents;
use crate::error::Error;
use crate::timeline::Timelines;

/// What events refer to.
struct ArchiveReferences {
    knowledge: JobKnowledge,
    texts: ArchiveTexts,
    functions: HashMap<String, u32>,
    phases: HashMap<String, u32>,
}

#[derive(Default)]
struct ArchiveTexts {
    numbers: HashMap<String, u32>,
    all: Vec<String>,
}

impl ArchiveTexts {
    fn add(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(UNDEFINED);
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}

impl ArchiveReferences {
    fn new(run: &Timelines, knowledge: JobKnowledge) -> ArchiveReferences {
        let mut texts = ArchiveTexts::default();
        run.places.values().for_each(|place| _ = texts.add(place));
        let mut numbers = 0..;
        let functions = knowledge.functions.iter().cloned().zip(&mut numbers).collect();
        let phases = knowledge.phases.iter().cloned().zip(&mut numbers).collect();
        ArchiveReferences { knowledge, texts, functions, phases }
    }
}

struct WrittenLocation {
    name: String,
    events: u64,
}

/// A rank whose locations were written.
struct WrittenRank {
    rank: u32,
    host: String,
    locations: Vec<WrittenLocation>,
}

impl WrittenRank {
    /// The number of a location; that of the first one, which stands for the rank, is the rank.
    fn location(rank: u32, place: u64) -> u64 {
        place << 32 | u64::from(rank)
    }
}

/// What an archive holds.
pub(crate) struct WrittenArchive {
    pub(crate) events: WrittenEvents,
    /// How many communicators are not in it, as not all of their ranks are known.
    pub(crate) unknown_communicators: usize,
}

impl Timelines {
    /// Writes the archive `name` into a directory.
    pub(crate) fn write_archive(
        &self,
        directory: &Path,
        name: &OsStr,
    ) -> Result<WrittenArchive, Error> {
        let mut file = ArchiveFile::create(directory, name.as_bytes())?;
        self.fill_archive(&mut file)
            .and_then(|(written, definitions)| {
                file.finish(&definitions)?;
                Ok(written)
            })
            .map_err(|error| Error::io(directory, &error, "name another file with -o"))
    }

    fn fill_archive(
        &self,
        file: &mut ArchiveFile,
    ) -> io::Result<(WrittenArchive, Vec<Definition>)> {
        let knowledge = JobKnowledge::gather(self)?;
        let references = ArchiveReferences::new(self, knowledge);
        let mut ranks = Vec::new();
        let mut length = 0;
        let put = |record: RankRecord| {
            let (rank, host) = (record.rank, record.host.clone());
            let mut locations = Vec::new();
            for (place, RecordedLocation { name, events }) in (0..).zip(record.into_locations()) {
                length = events.last().map_or(0, |(ns, _)| ns + 1).max(length);
                let number = WrittenRank::location(rank, place);
                let events = file.write_location(number, events.into_iter())?;
                locations.push(WrittenLocation { name, events });
            }
            ranks.push(WrittenRank { rank, host, locations });
            Ok(())
        };
        let events = self.each_rank(None, |rank| RankRecord::new(&references, rank), put)?;
        let unknown_communicators = references.knowledge.incomplete;
        let definitions = references.definitions(&ranks, &self.hosts, length);
        Ok((WrittenArchive { events, unknown_communicators }, definitions))
    }
}

impl ArchiveReferences {
    /// All definitions, each behind those that it refers to. `length`: that of the run in ns.
    fn definitions(self, ranks: &[WrittenRank], hosts: &[String], length: u64) -> Vec<Definition> {
        let ArchiveReferences { knowledge, mut texts, functions, phases } = self;
        let none = texts.add("");
        let mpi = texts.add("MPI");
        let mut all = vec![
            Definition::Clock { length },
            Definition::Paradigm { paradigm: Paradigm::Mpi, name: mpi },
            Definition::Attribute {
                number: CALLED_AT,
                name: texts.add("called at"),
                description: texts.add("The file and line that called the function"),
            },
        ];
        locations(&mut all, &mut texts, ranks, hosts);
        // Functions before phases, in the order of their numbers.
        for name in &knowledge.functions {
            let (number, role, name) = (functions[name], role(name), texts.add(name));
            all.push(Definition::Region { number, name, role, paradigm: Paradigm::Mpi, none });
        }
        for name in &knowledge.phases {
            let (number, role, name) = (phases[name], CODE, texts.add(name));
            all.push(Definition::Region { number, name, role, paradigm: Paradigm::User, none });
        }
        communicators(&mut all, &mut texts, ranks, &knowledge);
        let named = (0..).zip(texts.all).map(|(number, text)| Definition::Text { number, text });
        named.chain(all).collect()
    }
}

/// Hosts, ranks and their threads.
fn locations(
    all: &mut Vec<Definition>,
    texts: &mut ArchiveTexts,
    ranks: &[WrittenRank],
    hosts: &[String],
) {
    const MACHINE: u32 = 0;
    all.push(Definition::Node {
        number: MACHINE,
        name: texts.add("machine"),
        class: texts.add("machine"),
        parent: UNDEFINED,
        domain: TreeDomain::Machine,
    });
    for (number, host) in (MACHINE + 1..).zip(hosts) {
        let (name, class) = (texts.add(host), texts.add("node"));
        let domain = TreeDomain::SharedMemory;
        all.push(Definition::Node { number, name, class, parent: MACHINE, domain });
    }
    for WrittenRank { rank, host, locations } in ranks {
        let node = (MACHINE + 1..).zip(hosts).find(|(_, known)| *known == host);
        let node = node.map_or(MACHINE, |(node, _)| node);
        let name = texts.add(&format!("rank {rank}"));
        all.push(Definition::Process { number: *rank, name, node });
        for (place, location) in (0..).zip(locations) {
            all.push(Definition::Thread {
                number: WrittenRank::location(*rank, place),
                name: texts.add(&location.name),
                events: location.events,
                process: *rank,
            });
        }
    }
}

/// The locations that are ranks, and the communicators of these.
fn communicators(
    all: &mut Vec<Definition>,
    texts: &mut ArchiveTexts,
    ranks: &[WrittenRank],
    knowledge: &JobKnowledge,
) {
    let name = texts.add("");
    let members = ranks.iter().map(|of| WrittenRank::location(of.rank, 0)).collect();
    all.push(Definition::Group { number: 0, name, kind: GroupKind::Locations, members });
    let places: HashMap<u32, u64> = ranks.iter().map(|of| of.rank).zip(0..).collect();
    let mut groups: HashMap<&[u32], u32> = HashMap::new();
    for communicator in knowledge.communicators.values() {
        let next = u32::try_from(groups.len() + 1).unwrap_or(UNDEFINED);
        let group = *groups.entry(&communicator.ranks).or_insert_with(|| {
            let members = communicator.ranks.iter().filter_map(|rank| places.get(rank).copied());
            let (kind, members) = (GroupKind::Ranks, members.collect());
            all.push(Definition::Group { number: next, name, kind, members });
            next
        });
        let name = texts.add(&communicator.name);
        all.push(Definition::Communicator { number: communicator.reference, name, group });
    }
}
