//! What would give more than this library gives as it is built and started: one row for each
//! sentence.

#![forbid(unsafe_code)]

use crate::abi::Implementation;

/// What was found in the library.
pub(crate) struct Found<'a> {
    pub(crate) implementation: Implementation,
    /// Number of performance variables.
    pub(crate) exported: usize,
    /// The names of those that could be read or at least named.
    pub(crate) names: &'a [&'a str],
}

impl Found<'_> {
    fn has(&self, part: &str) -> bool {
        self.names.iter().any(|name| name.contains(part))
    }
}

struct Row {
    implementation: Implementation,
    applies: fn(&Found) -> bool,
    text: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        implementation: Implementation::Mpich,
        applies: |found| found.exported == 0,
        text: "this MPICH exports no performance variables; one built with configure's \
               --enable-mpit-pvars=all does",
    },
    Row {
        implementation: Implementation::OpenMpi,
        applies: |found| !found.has("runtime_spc_"),
        text: "an Open MPI built with configure's --enable-spc exports over 100 counters \
               (runtime_spc_*); they count when run with --mca mpi_spc_attach all",
    },
    Row {
        implementation: Implementation::OpenMpi,
        applies: |found| !found.has("coll_monitoring_"),
        text: "message counts and sizes per peer: run with --mca pml_monitoring_enable 1",
    },
    Row {
        implementation: Implementation::Other,
        applies: |found| found.exported == 0,
        text: "this MPI library exports no performance variables; the counts of calls are all \
               that can be seen of it",
    },
    Row {
        implementation: Implementation::IntelMpi,
        applies: |found| found.exported == 0,
        text: "this MPI library exports no performance variables; the counts of calls are all \
               that can be seen of it",
    },
];

/// The sentences that apply.
pub(crate) fn advice(found: &Found) -> Vec<String> {
    ROWS.iter()
        .filter(|row| row.implementation == found.implementation && (row.applies)(found))
        .map(|row| row.text.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_variables_gets_the_rebuild_option_named() {
        let found = Found { implementation: Implementation::Mpich, exported: 0, names: &[] };
        assert!(advice(&found)[0].contains("--enable-mpit-pvars=all"));
    }

    #[test]
    fn what_is_there_is_not_advised() {
        let names = ["runtime_spc_OMPI_SPC_SEND", "coll_monitoring_messages_count"];
        let implementation = Implementation::OpenMpi;
        assert!(advice(&Found { implementation, exported: 2, names: &names }).is_empty());
        assert_eq!(advice(&Found { implementation, exported: 2, names: &[] }).len(), 2);
    }
}
