//! What would show more than this library does as built and started: one row per sentence, and one for each row
//! of [`monitoring`].

use crate::mpi::abi::Implementation;
use crate::mpi::libraries::monitoring::{self, MonitoringRow as Monitoring, MonitoringState};

struct AdviceRow {
    implementation: Implementation,
    text: &'static str,
}

const NOTHING: &str = "this MPI library exports no performance variables; gyan can only count its \
    calls";

/// For libraries that export no performance variables.
const ROWS: &[AdviceRow] = &[
    AdviceRow {
        implementation: Implementation::Mpich,
        text: "this MPICH exports no performance variables; one built with configure's \
               --enable-mpit-pvars=all does",
    },
    AdviceRow { implementation: Implementation::Other, text: NOTHING },
    AdviceRow { implementation: Implementation::IntelMpi, text: NOTHING },
];

/// The sentences that apply if the library exports `exported` performance variables.
pub(crate) fn advice(
    implementation: Implementation,
    exported: usize,
    monitoring: &[(&Monitoring, MonitoringState)],
) -> Vec<String> {
    let rows = ROWS.iter().filter(|row| row.implementation == implementation && exported == 0);
    rows.map(|row| row.text.to_owned())
        .chain(monitoring.iter().filter_map(|(row, state)| monitoring::advice(row, *state)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_variables_gets_the_rebuild_option_named() {
        let sentences = advice(Implementation::Mpich, 0, &[]);
        assert!(sentences[0].contains("--enable-mpit-pvars=all"));
        assert!(advice(Implementation::Mpich, 10, &[]).is_empty());
    }

    #[test]
    fn what_is_on_is_not_advised_and_what_is_missing_is_advised_with_the_rebuild() {
        let states = monitoring::states(Implementation::OpenMpi, (4, 1, 4), &[], &[]);
        let sentences = advice(Implementation::OpenMpi, 0, &states);
        assert_eq!(sentences.len(), 2);
        assert!(sentences[1].contains("--enable-spc") && sentences[1].contains("--enable spc"));
        let on: Vec<_> = states.iter().map(|(row, _)| (*row, MonitoringState::On)).collect();
        assert!(advice(Implementation::OpenMpi, 5, &on).is_empty());
    }
}
