//! Which setting changes what, by implementation, version and device. A knob is named only where the library of the run
//! has it, as the run itself recorded.

use gyan_results::Advice;

use super::run::{Family, Run};

/// What a knob is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// Up to how many bytes a message within a host is sent without asking.
    EagerWithinHost,
    /// The same between hosts.
    EagerBetweenHosts,
    /// Ranks that wait give up their processor.
    Yield,
    /// How large messages are copied within a host.
    SingleCopy,
    /// Connections are made at the start.
    Preconnect,
    /// A barrier before some collectives bounds how far ranks get ahead.
    Throttle,
}

/// A knob, with the value that helps.
pub(super) struct Knob {
    purpose: Purpose,
    family: Family,
    /// Majors.
    versions: (u64, u64),
    /// The device that reads it, of MPICH and its descendants.
    device: &'static str,
    pub(super) name: &'static str,
    /// None when it depends on the run.
    value: Option<&'static str>,
}

const ANY: (u64, u64) = (0, u64::MAX);

/// The eager limit of MPICH's ch3:nemesis within a host.
pub(super) const NEMESIS_EAGER: &str = "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ";

const fn knob(
    purpose: Purpose,
    family: Family,
    versions: (u64, u64),
    device: &'static str,
    name: &'static str,
    value: Option<&'static str>,
) -> Knob {
    Knob { purpose, family, versions, device, name, value }
}

/// Sources: `gyan varlist -l` of each library, which prints its own descriptions; MPICH 4.0 and 5.0,
/// `src/mpid/ch3/channels/nemesis` for what `ch3` alone reads.
pub(super) const KNOBS: [Knob; 10] = [
    knob(Purpose::EagerWithinHost, Family::OpenMpi, (3, 4), "", "btl_vader_eager_limit", None),
    knob(Purpose::EagerWithinHost, Family::OpenMpi, (5, 9), "", "btl_sm_eager_limit", None),
    knob(Purpose::EagerWithinHost, Family::Mpich, ANY, "ch3", NEMESIS_EAGER, None),
    knob(Purpose::EagerBetweenHosts, Family::OpenMpi, ANY, "", "btl_tcp_eager_limit", None),
    knob(
        Purpose::EagerBetweenHosts,
        Family::Mpich,
        ANY,
        "ch3",
        "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE",
        None,
    ),
    knob(Purpose::Yield, Family::OpenMpi, ANY, "", "mpi_yield_when_idle", Some("1")),
    knob(
        Purpose::SingleCopy,
        Family::OpenMpi,
        (3, 4),
        "",
        "btl_vader_single_copy_mechanism",
        Some("cma"),
    ),
    knob(Purpose::SingleCopy, Family::Mpich, (5, 9), "ch4", "MPIR_CVAR_CH4_CMA_ENABLE", Some("1")),
    knob(Purpose::Preconnect, Family::OpenMpi, ANY, "", "mpi_preconnect_all", Some("1")),
    knob(Purpose::Throttle, Family::OpenMpi, ANY, "", "coll_sync_barrier_before", Some("100")),
];

impl Run<'_> {
    /// The knob of this library for a purpose, with its value in the run.
    pub(super) fn knob_for(&self, purpose: Purpose) -> Option<(&'static Knob, &str)> {
        KNOBS.iter().find_map(|knob| {
            let is_read = knob.purpose == purpose
                && knob.family == self.family
                && (knob.versions.0..=knob.versions.1).contains(&self.version)
                && (knob.device.is_empty() || self.has_device(knob.device));
            is_read.then(|| Some((knob, self.knob(knob.name)?)))?
        })
    }

    /// The knob that forces the algorithm of a collective function, its value in the run, and what that is by default.
    pub(super) fn algorithm(&self, function: &str) -> Option<(String, &str)> {
        let collective = function.strip_prefix("MPI_")?;
        let name = match self.family {
            Family::OpenMpi => format!("coll_tuned_{}_algorithm", collective.to_lowercase()),
            Family::Mpich => {
                format!("MPIR_CVAR_{}_INTRA_ALGORITHM", collective.to_uppercase())
            }
            Family::IntelMpi | Family::Other => return None,
        };
        let value = self.knob(&name)?;
        Some((name, value))
    }
}

impl Knob {
    /// To set it to the value that helps.
    pub(super) fn advice(&self, text: &str) -> Option<Advice> {
        Some(self.advice_of(text, self.value?))
    }

    /// To set it to this value.
    pub(super) fn advice_of(&self, text: &str, value: &str) -> Advice {
        set(text, self.name, value)
    }
}

/// To set a control variable.
pub(super) fn set(text: &str, name: &str, value: &str) -> Advice {
    Advice { text: text.to_owned(), command: Some(format!("gyan run --set {name}={value} -- ...")) }
}

/// What no command does.
pub(super) fn say(text: impl Into<String>) -> Advice {
    Advice { text: text.into(), command: None }
}

/// A command to try.
pub(super) fn command(text: &str, command: impl Into<String>) -> Advice {
    Advice { text: text.to_owned(), command: Some(command.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libgyan_records_each_knob() {
        for knob in &KNOBS {
            assert!(gyan_results::is_knob(knob.name), "{}", knob.name);
        }
    }
}
