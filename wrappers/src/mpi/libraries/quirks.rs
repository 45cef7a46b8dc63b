//! What MPI libraries get wrong, as data: one row per quirk, with its reason. There are no special cases for a
//! library anywhere else.

#![forbid(unsafe_code)]

use gyan_results::Class;
use wildmatch::WildMatch;

use crate::mpi::abi::{self, Implementation, Library, Version};
use crate::mpi::tool::Variable;

/// What to do about a variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Remedy {
    /// Never allocate a handle.
    Skip,
    /// Allocate a handle only in a forked copy, which may die of it.
    Deadly,
    /// Never bind to an intercommunicator.
    NotOnIntercommunicators,
    /// Bind only to `MPI_COMM_WORLD`.
    WorldOnly,
    /// Never stop what was started.
    NeverStop,
    /// Treat as this class; the profile keeps the library's own.
    BehavesAs(Class),
    /// Read once, at the end, because reading changes the value.
    ReadAtEndOnly,
    /// Stop before the reading at the end.
    StopToRead,
    /// Read, with the reason as a note.
    Doubtful,
    /// A control variable: read only before `MPI_Init`.
    ReadBeforeInitOnly,
}

struct Quirk {
    implementation: Implementation,
    /// The first version that has it.
    since: Version,
    /// The first version that does not; none for all so far.
    until: Option<Version>,
    /// Pattern of the name.
    name: &'static str,
    remedy: Remedy,
    reason: &'static str,
}

const ANY: Version = (0, 0, 0);
const GONE_WITH_ITS_COMPONENT: &str = "crashes inside the library when read after MPI_Init";

/// A row for all versions of Open MPI.
const fn open_mpi(name: &'static str, remedy: Remedy, reason: &'static str) -> Quirk {
    let implementation = Implementation::OpenMpi;
    Quirk { implementation, since: ANY, until: None, name, remedy, reason }
}

/// Later rows add to earlier ones; if two say which class a variable behaves as, the first counts.
const QUIRKS: &[Quirk] = &[
    open_mpi(
        "pml_monitoring_flush",
        Remedy::Skip,
        "its handle zeroes all monitoring counters, starting and stopping it writes files",
    ),
    open_mpi(
        "mtl_psm2_*",
        Remedy::Deadly,
        "crashes inside the library when psm2 is not in use, which cannot be told",
    ),
    open_mpi(
        "pml_ob1_*",
        Remedy::NotOnIntercommunicators,
        "reads beyond the end of the remote group",
    ),
    open_mpi("*_monitoring_*", Remedy::WorldOnly, "answers for MPI_COMM_WORLD only"),
    open_mpi(
        "*_monitoring_*",
        Remedy::NeverStop,
        "stopping one handle stops monitoring for the whole process",
    ),
    open_mpi(
        "*_monitoring_*",
        Remedy::BehavesAs(Class::Counter),
        "counts since MPI_Init, whatever its class says",
    ),
    open_mpi(
        "osc_rdma_*_retry_count",
        Remedy::Doubtful,
        "meaningless for a window that is not of the rdma component",
    ),
    Quirk {
        since: (5, 0, 0),
        ..open_mpi("runtime_spc_*MAX_*", Remedy::StopToRead, "reads 0 while it is running")
    },
    open_mpi("runtime_spc_*MAX_*", Remedy::ReadAtEndOnly, "each reading resets it"),
    open_mpi(
        "runtime_spc_*MAX_*",
        Remedy::BehavesAs(Class::HighWatermark),
        "keeps a maximum, although its class is SIZE",
    ),
    open_mpi(
        "runtime_spc_*_IN_QUEUE",
        Remedy::BehavesAs(Class::Level),
        "is a current length, although its class is SIZE",
    ),
    open_mpi(
        "runtime_spc_*",
        Remedy::BehavesAs(Class::Counter),
        "counts events, although its class is SIZE",
    ),
    open_mpi("opal_common_ucx_*", Remedy::ReadBeforeInitOnly, GONE_WITH_ITS_COMPONENT),
    open_mpi("osc_ucx_*", Remedy::ReadBeforeInitOnly, GONE_WITH_ITS_COMPONENT),
    open_mpi("pml_ucx_*", Remedy::ReadBeforeInitOnly, GONE_WITH_ITS_COMPONENT),
    open_mpi("*_ofi_verbose", Remedy::ReadBeforeInitOnly, GONE_WITH_ITS_COMPONENT),
];

/// The quirks of one variable of one library.
#[derive(Clone)]
pub(crate) struct Quirks(Vec<&'static Quirk>);

/// The rows that apply to `variable`.
pub(crate) fn known(library: &Library, variable: &Variable) -> Quirks {
    Quirks(rows(library.implementation, library.version, &variable.name).collect())
}

/// Whether an MPI session keeps the process at the thread level that MPI_T was initialised with. In Open MPI it
/// does, whereas `MPI_Init` sets its own. Open MPI 5.0.11 then dies of `MPI_THREAD_MULTIPLE` in
/// `MPI_Session_finalize` on a host with two networks, with any tool that asks for that level.
pub(crate) fn session_keeps_level(implementation: Implementation) -> bool {
    implementation == Implementation::OpenMpi
}

/// Why control variable `name` must not be read after `MPI_Init`; none when it may be.
pub(crate) fn deadly_after_init(library: &Library, name: &str) -> Option<&'static str> {
    rows(library.implementation, library.version, name)
        .find(|quirk| quirk.remedy == Remedy::ReadBeforeInitOnly)
        .map(|quirk| quirk.reason)
}

fn rows(
    implementation: Implementation,
    version: Version,
    name: &str,
) -> impl Iterator<Item = &'static Quirk> {
    QUIRKS.iter().filter(move |quirk| {
        quirk.implementation == implementation
            && abi::is_between(version, quirk.since, quirk.until)
            && WildMatch::new(quirk.name).matches(name)
    })
}

impl Quirks {
    pub(crate) fn says(&self, remedy: Remedy) -> bool {
        self.0.iter().any(|quirk| quirk.remedy == remedy)
    }

    /// Why the variable must not be touched; none when it may be.
    pub(crate) fn reason_to_skip(&self, in_fork: bool) -> Option<&'static str> {
        let deadly = |quirk: &&&Quirk| match quirk.remedy {
            Remedy::Skip => true,
            Remedy::Deadly => !in_fork,
            _ => false,
        };
        self.0.iter().find(deadly).map(|quirk| quirk.reason)
    }

    /// Whether it can be read while it runs without affecting later readings.
    pub(crate) fn may_be_read_in_between(&self) -> bool {
        !self.says(Remedy::ReadAtEndOnly) && !self.says(Remedy::StopToRead)
    }

    /// The class that a variable of `class` really behaves as; none when that is the same.
    pub(crate) fn behaves_as(&self, class: Class) -> Option<Class> {
        let known = self.0.iter().find_map(|quirk| match quirk.remedy {
            Remedy::BehavesAs(class) => Some(class),
            _ => None,
        });
        // If both classes accumulate, there is nothing to correct.
        known.filter(|known| *known != class && !(known.accumulates() && class.accumulates()))
    }

    /// The class that decides how a variable of `class` is treated.
    pub(crate) fn effective(&self, class: Class) -> Class {
        self.behaves_as(class).unwrap_or(class)
    }

    /// What a reader of the number should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let noted = self
            .0
            .iter()
            .filter(|quirk| matches!(quirk.remedy, Remedy::Doubtful | Remedy::ReadAtEndOnly));
        noted.map(|quirk| quirk.reason.to_owned()).collect()
    }
}

/// Whether gyan releases its reference to `MPI_T` before `MPI_Finalize`.
///
/// Open MPI crashes if that happens after `MPI_Finalize`, and leaves files behind if it never happens. MPICH
/// frees control variables that collectives still use if it happens before; an unknown library is treated like
/// MPICH.
pub(crate) fn drops_mpit(implementation: Implementation) -> bool {
    implementation == Implementation::OpenMpi
}

/// A quirk of the events of a library.
struct EventQuirk {
    implementation: Implementation,
    /// Name of the binary interface; none for all.
    abi: Option<&'static str>,
    /// Pattern of the name; none for all events.
    name: Option<&'static str>,
    reason: &'static str,
}

const LEVELS_OF_THE_STANDARD: &str = "the library uses the callback levels that MPI 5.0 defines as \
    indices of a table that is too short for them";

const EVENT_QUIRKS: &[EventQuirk] = &[
    EventQuirk {
        implementation: Implementation::Mpich,
        abi: Some("standard"),
        name: None,
        reason: LEVELS_OF_THE_STANDARD,
    },
    EventQuirk {
        // Derived from MPICH.
        implementation: Implementation::IntelMpi,
        abi: Some("standard"),
        name: None,
        reason: LEVELS_OF_THE_STANDARD,
    },
    EventQuirk {
        implementation: Implementation::Mpich,
        abi: None,
        // Raised with the data of a request that does not exist.
        name: Some("unexp_message_dequeued"),
        reason: "the library dies when it is asked which message left",
    },
];

/// Why no event may be registered in a library with the binary interface `abi`; none when they may be.
pub(crate) fn reason_to_skip_events(
    implementation: Implementation,
    abi: &str,
) -> Option<&'static str> {
    let is_here = |quirk: &&EventQuirk| {
        quirk.name.is_none()
            && quirk.implementation == implementation
            && quirk.abi.is_none_or(|known| known == abi)
    };
    EVENT_QUIRKS.iter().find(is_here).map(|quirk| quirk.reason)
}

/// Why the data of event `name` must not be read; none when it may be.
pub(crate) fn reason_not_to_read_event(
    implementation: Implementation,
    name: &str,
) -> Option<&'static str> {
    let is_this = |quirk: &&EventQuirk| {
        quirk.name.is_some_and(|pattern| WildMatch::new(pattern).matches(name))
            && quirk.implementation == implementation
    };
    EVENT_QUIRKS.iter().find(is_this).map(|quirk| quirk.reason)
}

/// An environment variable that the library itself changes in `MPI_Init`. `MPI_T` makes it read the environment
/// earlier, and it then keeps that value.
struct EarlyReading {
    implementation: Implementation,
    /// The first version that does not.
    until: Version,
    name: &'static str,
    /// The value that is changed, if this other variable exists.
    from: &'static str,
    along_with: &'static str,
    to: &'static str,
}

const EARLY_READINGS: &[EarlyReading] = &[
    // The environment of a process that started without a launcher. Its spawned children inherit it; they would
    // not find their daemon and would die in MPI_Init.
    EarlyReading {
        implementation: Implementation::OpenMpi,
        until: (5, 0, 0),
        name: "OMPI_MCA_ess",
        from: "singleton",
        along_with: "PMIX_NAMESPACE",
        to: "pmi",
    },
];

/// What to set before `MPI_T` is initialised, as the library would do in `MPI_Init`. `lookup` reads an
/// environment variable.
pub(crate) fn settings_before_mpit(
    implementation: Implementation,
    version: Version,
    lookup: impl Fn(&str) -> Option<String>,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    EARLY_READINGS
        .iter()
        .filter(move |row| row.implementation == implementation && version < row.until)
        .filter(move |row| {
            lookup(row.name).as_deref() == Some(row.from) && lookup(row.along_with).is_some()
        })
        .map(|row| (row.name, row.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(implementation: Implementation, version: Version, name: &str) -> Quirks {
        Quirks(rows(implementation, version, name).collect())
    }

    #[test]
    fn psm2_is_touched_only_in_forked_copies() {
        let known = known(Implementation::OpenMpi, (4, 1, 4), "mtl_psm2_rx_user_bytes");
        assert!(known.reason_to_skip(false).is_some());
        assert_eq!(known.reason_to_skip(true), None);
    }

    #[test]
    fn monitoring_is_never_stopped_and_its_flush_never_touched() {
        let flush = known(Implementation::OpenMpi, (5, 0, 11), "pml_monitoring_flush");
        assert!(flush.reason_to_skip(false).is_some());
        let count = known(Implementation::OpenMpi, (5, 0, 11), "coll_monitoring_messages_count");
        assert!(count.says(Remedy::NeverStop));
        assert_eq!(count.reason_to_skip(false), None);
        assert_eq!(count.behaves_as(Class::Size), Some(Class::Counter));
        assert_eq!(count.behaves_as(Class::Counter), None);
    }

    #[test]
    fn the_counters_of_open_mpi_are_told_from_its_lengths() {
        let behaves =
            |name| known(Implementation::OpenMpi, (4, 1, 4), name).behaves_as(Class::Size);
        assert_eq!(behaves("runtime_spc_OMPI_SPC_RECV"), Some(Class::Counter));
        assert_eq!(behaves("runtime_spc_OMPI_SPC_UNEXPECTED_IN_QUEUE"), Some(Class::Level));
        assert_eq!(
            behaves("runtime_spc_OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE"),
            Some(Class::HighWatermark)
        );
    }

    #[test]
    fn a_row_is_only_for_its_library_and_versions() {
        let name = "runtime_spc_OMPI_SPC_MAX_OOS_IN_QUEUE";
        let stop = |version| known(Implementation::OpenMpi, version, name).says(Remedy::StopToRead);
        assert!(stop((5, 0, 11)) && !stop((4, 1, 4)));
        assert!(known(Implementation::Mpich, (4, 0, 2), name).0.is_empty());
    }

    #[test]
    fn events_are_left_alone_where_registering_or_reading_them_kills() {
        let skipped = |implementation, abi| reason_to_skip_events(implementation, abi).is_some();
        assert!(skipped(Implementation::Mpich, "standard"));
        assert!(skipped(Implementation::IntelMpi, "standard"));
        assert!(!skipped(Implementation::Mpich, "mpich"));
        assert!(!skipped(Implementation::OpenMpi, "standard"));
        let unread =
            |implementation, name| reason_not_to_read_event(implementation, name).is_some();
        assert!(unread(Implementation::Mpich, "unexp_message_dequeued"));
        assert!(!unread(Implementation::Mpich, "unexp_message_enqueued"));
        assert!(!unread(Implementation::Other, "unexp_message_dequeued"));
    }

    #[test]
    fn a_spawned_child_of_a_process_without_launcher_is_no_singleton() {
        let settings = |version, variables: &'static [(&str, &str)]| -> Vec<_> {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            settings_before_mpit(Implementation::OpenMpi, version, lookup).collect()
        };
        let child = &[("OMPI_MCA_ess", "singleton"), ("PMIX_NAMESPACE", "7")];
        assert_eq!(settings((4, 1, 4), child), [("OMPI_MCA_ess", "pmi")]);
        assert!(settings((5, 0, 0), child).is_empty());
        assert!(settings((4, 1, 4), &[("OMPI_MCA_ess", "singleton")]).is_empty());
    }
}
