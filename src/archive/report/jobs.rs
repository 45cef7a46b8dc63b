//! Which jobs are there? The columns of `jobs` that the report needs, with texts as numbers.

use std::collections::HashMap;

use rayon::prelude::*;
use wildmatch::WildMatch;

use crate::archive::data_set::ArchiveTable;
use crate::archive::report::{Selection, matches};
use crate::archive::scan::{Columns, NOTHING, TableFile, Texts, Wanted, read, table_files};
use crate::archive::store::Store;
use crate::error::Error;

/// A job. Texts are numbers of [`JobNames`].
#[derive(Clone, Copy, Debug)]
pub(super) struct JobFacts {
    /// Which job it is: 0 unless some jobs were asked for.
    pub(super) id: u128,
    /// Days since 1970.
    pub(super) day: i32,
    pub(super) cluster: u32,
    pub(super) program: u32,
    pub(super) user: u32,
    /// The MPI library with its version.
    pub(super) mpi: u32,
    pub(super) system: u32,
    pub(super) finding: u32,
    pub(super) ranks: f64,
    pub(super) ended_well: bool,
    pub(super) elapsed_s: f64,
    pub(super) core_h: f64,
    pub(super) own_core_h: f64,
    pub(super) mpi_core_h: f64,
    pub(super) waiting_core_h: f64,
    pub(super) lost_core_h: f64,
}

/// Texts that recur, each with a number.
#[derive(Debug, Default)]
pub(super) struct JobNames {
    names: Vec<String>,
    codes: HashMap<String, u32>,
}

impl JobNames {
    pub(super) fn name(&self, code: u32) -> &str {
        self.names.get(code as usize).map_or("", String::as_str)
    }

    pub(super) fn code(&mut self, name: &str) -> u32 {
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        let code = u32::try_from(self.names.len()).unwrap_or(NOTHING);
        self.names.push(name.to_owned());
        self.codes.insert(name.to_owned(), code);
        code
    }

    /// For each name of a file its number here.
    fn codes(&mut self, of: &Texts) -> Vec<u32> {
        of.names.iter().map(|name| self.code(name)).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// In the order of their days.
    pub(super) facts: Vec<JobFacts>,
    pub(super) names: JobNames,
}

const TEXTS: [&str; 8] =
    ["cluster", "program", "mpi", "mpi_version", "system", "finding", "ended", "id"];
const NUMBERS: [&str; 8] = [
    "uid",
    "ranks",
    "elapsed_s",
    "core_h",
    "own_core_h",
    "mpi_core_h",
    "waiting_core_h",
    "lost_core_h",
];

impl Jobs {
    pub(super) fn read(store: &dyn Store, selection: &Selection) -> Result<Jobs, Error> {
        let files = table_files(store, ArchiveTable::Jobs, selection.days)?;
        // The last one is the id.
        let texts = TEXTS.len() - usize::from(selection.is_all());
        let wanted: Vec<Wanted> = TEXTS[..texts]
            .iter()
            .map(|name| Wanted::Text(name))
            .chain(NUMBERS.map(Wanted::Number))
            .collect();
        let mut jobs = Jobs::default();
        let columns: Vec<(&TableFile, Columns)> = files
            .par_iter()
            .map(|file| Ok((file, read(store, &file.path, &wanted)?)))
            .collect::<Result<_, Error>>()?;
        for (file, columns) in columns {
            jobs.add(file.day, &columns, selection);
        }
        Ok(jobs)
    }

    fn add(&mut self, day: i32, columns: &Columns, selection: &Selection) {
        let [cluster, program, mpi, version, system, finding, ended, ids @ ..] = &columns.texts[..]
        else {
            return;
        };
        let numbers = &columns.numbers;
        let program_pattern = selection.program.as_deref().map(WildMatch::new);
        let cluster_pattern = selection.cluster.as_deref().map(WildMatch::new);
        let known: [Vec<u32>; 4] =
            [cluster, program, system, finding].map(|of| self.names.codes(of));
        let mut libraries: HashMap<[u32; 2], u32> = HashMap::new();
        let is_asked_for = |row: &usize| {
            matches(program_pattern.as_ref(), program.text(*row))
                && matches(cluster_pattern.as_ref(), cluster.text(*row))
        };
        for row in (0..columns.rows).filter(is_asked_for) {
            let code = |known: &[u32], of: &Texts| {
                known.get(of.codes[row] as usize).copied().unwrap_or(NOTHING)
            };
            let mpi = *libraries.entry([mpi.codes[row], version.codes[row]]).or_insert_with(|| {
                let parts = [mpi.text(row), version.text(row)];
                let parts: Vec<&str> = parts.into_iter().flatten().collect();
                self.names.code(&parts.join(" "))
            });
            let id = ids.first().and_then(|ids| u128::from_str_radix(ids.text(row)?, 16).ok());
            let number = |at: usize| numbers[at][row];
            self.facts.push(JobFacts {
                id: id.unwrap_or(0),
                day,
                cluster: code(&known[0], cluster),
                program: code(&known[1], program),
                system: code(&known[2], system),
                finding: code(&known[3], finding),
                mpi,
                // An integer that fits, as it was written.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                user: number(0) as u32,
                ranks: number(1),
                ended_well: ended.text(row).is_none_or(|ended| ended == "finalize"),
                elapsed_s: number(2),
                core_h: number(3),
                own_core_h: number(4),
                mpi_core_h: number(5),
                waiting_core_h: number(6),
                lost_core_h: number(7),
            });
        }
    }

    pub(super) fn days(&self) -> Option<(i32, i32)> {
        Some((self.facts.first()?.day, self.facts.last()?.day))
    }
}
