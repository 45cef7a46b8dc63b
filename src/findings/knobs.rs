//! Which setting changes what, by implementation, version and device. A knob is named only where the library of the run
//! has it, as the run itself recorded.

use gyan_results::{Advice, Figure};

use super::rules::{RECEIVES, SENDS, WAITS};
use super::run::{Family, RunFacts};

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
    /// What reads it: the device, of MPICH and its descendants; the component, of Open MPI.
    reader: &'static str,
    pub(super) name: &'static str,
    /// None when it depends on the run.
    pub(super) value: Option<&'static str>,
}

const ANY: (u64, u64) = (0, u64::MAX);

/// The component of Open MPI that sends messages through those called btl. UCX and libfabric (`pml_ucx`, `pml_cm`) read none of
/// their settings.
pub(super) const OB1: &str = "pml_ob1";

/// The eager limit of MPICH's ch3:nemesis within a host.
pub(super) const NEMESIS_EAGER: &str = "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ";

/// Makes [`KNOBS`] of a row each: `purpose, family, versions, reader, name, value;`.
macro_rules! knobs {
    ($(
        $purpose:ident, $family:ident, $versions:expr, $reader:expr, $name:expr, $value:expr;
    )+) => {
        &[$(Knob {
            purpose: Purpose::$purpose,
            family: Family::$family,
            versions: $versions,
            reader: $reader,
            name: $name,
            value: $value,
        }),+]
    };
}

/// Sources: `gyan varlist -l` of each library, which prints its own descriptions; MPICH 4.0 and 5.0,
/// `src/mpid/ch3/channels/nemesis` for what `ch3` alone reads.
pub(super) const KNOBS: &[Knob] = knobs! {
    EagerWithinHost, OpenMpi, (3, 4), OB1, "btl_vader_eager_limit", None;
    EagerWithinHost, OpenMpi, (5, 9), OB1, "btl_sm_eager_limit", None;
    EagerWithinHost, Mpich, ANY, "ch3:nemesis", NEMESIS_EAGER, None;
    EagerBetweenHosts, OpenMpi, ANY, OB1, "btl_tcp_eager_limit", None;
    EagerBetweenHosts, Mpich, ANY, "ch3", "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", None;
    Yield, OpenMpi, ANY, "", "mpi_yield_when_idle", Some("1");
    Yield, Mpich, (5, 9), "ch4", "MPIR_CVAR_CH4_PROGRESS_THROTTLE", Some("1");
    SingleCopy, OpenMpi, (3, 4), OB1, "btl_vader_single_copy_mechanism", Some("cma");
    SingleCopy, Mpich, (5, 9), "ch4", "MPIR_CVAR_CH4_CMA_ENABLE", Some("1");
    Preconnect, OpenMpi, ANY, OB1, "mpi_preconnect_all", Some("1");
    Throttle, OpenMpi, ANY, "", "coll_sync_barrier_before", Some("100");
};

/// The components of point-to-point messages of Open MPI.
pub(super) const COMPONENTS: &str = "btl";
/// What has Open MPI look at the algorithms that a user names.
pub(super) const DYNAMIC_RULES: &str = "coll_tuned_use_dynamic_rules";

/// Which finding has a knob tried that serves a purpose, how a value for it is found, and what moves when it does anything.
pub(super) struct Nominee {
    pub(super) finding: &'static str,
    pub(super) purposes: &'static [Purpose],
    pub(super) witness: fn() -> Figure,
}

/// Those that are in `KNOBS`; algorithms and components are nominated by what the run itself names.
pub(super) const NOMINEES: [Nominee; 5] = [
    Nominee {
        finding: "oversubscribed",
        purposes: &[Purpose::Yield],
        witness: || Figure::ProcessorLost,
    },
    Nominee {
        finding: "eager-limit",
        purposes: &[Purpose::EagerWithinHost, Purpose::EagerBetweenHosts],
        witness: || times(&[SENDS, WAITS]),
    },
    Nominee {
        finding: "flooded",
        purposes: &[Purpose::Throttle],
        witness: || Figure::LongestUnexpectedQueue,
    },
    Nominee {
        finding: "copied-twice",
        purposes: &[Purpose::SingleCopy],
        witness: || times(&[SENDS, RECEIVES, WAITS]),
    },
    Nominee {
        finding: "first-contact",
        purposes: &[Purpose::Preconnect],
        witness: || times(&[SENDS, RECEIVES, WAITS]),
    },
];

fn times(functions: &[&[&str]]) -> Figure {
    Figure::TimeIn(functions.concat().into_iter().map(str::to_owned).collect())
}

/// What moves when a control variable does anything, by its name; the time in MPI where nothing better is known.
pub(crate) fn witness_of(name: &str) -> Figure {
    let starts = "MPI_Init MPI_Init_thread".split(' ').map(str::to_owned);
    let purpose = KNOBS.iter().find(|knob| knob.name == name).map(|knob| knob.purpose);
    let nominee = purpose
        .and_then(|purpose| NOMINEES.iter().find(|nominee| nominee.purposes.contains(&purpose)));
    match nominee {
        Some(nominee) => (nominee.witness)(),
        None if name == COMPONENTS => Figure::TimeIn(starts.collect()),
        None => function_of(name).map_or(Figure::TimeInMpi, |of| Figure::TimeIn(vec![of])),
    }
}

/// The collective function whose algorithm a control variable forces.
fn function_of(name: &str) -> Option<String> {
    let own = |start: &str, end: &str| name.strip_prefix(start)?.strip_suffix(end);
    let collective =
        own("coll_tuned_", "_algorithm").or_else(|| own("MPIR_CVAR_", "_INTRA_ALGORITHM"))?;
    let lower = collective.to_lowercase();
    let (first, rest) = lower.split_at_checked(1)?;
    Some(format!("MPI_{}{rest}", first.to_uppercase()))
}

/// What can go wrong with a control variable.
struct Hazard {
    /// How its name begins.
    start: &'static str,
    how: &'static str,
    /// It can break a program, so it is tried only when it is named.
    is_unsafe: bool,
}

const SUMS: &str =
    "an algorithm can add up sums in another order, so that their last digits change";
const ARGUMENTS: &str = "wrong arguments are no longer found, and crash or hang instead";

const HAZARDS: [Hazard; 10] = [
    Hazard {
        start: "mpi_leave_pinned",
        how: "a program that frees memory past the library's hooks can send old data (Open MPI FAQ)",
        is_unsafe: true,
    },
    Hazard { start: "mpi_param_check", how: ARGUMENTS, is_unsafe: true },
    Hazard { start: "MPIR_CVAR_ERROR_CHECKING", how: ARGUMENTS, is_unsafe: true },
    Hazard { start: "coll_tuned_reduce", how: SUMS, is_unsafe: false },
    Hazard { start: "coll_tuned_allreduce", how: SUMS, is_unsafe: false },
    Hazard { start: "coll_tuned_scan", how: SUMS, is_unsafe: false },
    Hazard { start: "coll_tuned_exscan", how: SUMS, is_unsafe: false },
    Hazard { start: "MPIR_CVAR_REDUCE_", how: SUMS, is_unsafe: false },
    Hazard { start: "MPIR_CVAR_ALLREDUCE_", how: SUMS, is_unsafe: false },
    Hazard { start: "MPIR_CVAR_SCAN_", how: SUMS, is_unsafe: false },
];

fn hazard(name: &str) -> Option<&'static Hazard> {
    HAZARDS.iter().find(|hazard| name.starts_with(hazard.start))
}

/// What can go wrong with a control variable, where that is known.
pub(crate) fn hazard_of(name: &str) -> Option<&'static str> {
    Some(hazard(name)?.how)
}

/// Whether it can break a program.
pub(super) fn is_unsafe(name: &str) -> bool {
    hazard(name).is_some_and(|hazard| hazard.is_unsafe)
}

impl RunFacts<'_> {
    /// The knob of this library for a purpose, with its value in the run.
    pub(super) fn knob_for(&self, purpose: Purpose) -> Option<(&'static Knob, &str)> {
        KNOBS.iter().find_map(|knob| {
            let is_read = knob.purpose == purpose
                && knob.family == self.family
                && (knob.versions.0..=knob.versions.1).contains(&self.version)
                && (knob.reader.is_empty() || self.has_reader(knob.reader));
            is_read.then(|| Some((knob, self.knob(knob.name)?)))?
        })
    }

    /// Whether a device or a component is in use.
    fn has_reader(&self, reader: &str) -> bool {
        if reader == OB1 { self.sends_by_ob1() } else { self.has_device(reader) }
    }

    /// Whether messages go through ob1: of a component that is not in use Open MPI has no variables after `MPI_Init`.
    pub(super) fn sends_by_ob1(&self) -> bool {
        let knobs = self.summary.knobs.iter().map(|knob| knob.name.as_str());
        let mut sending = knobs.filter(|name| {
            (name.starts_with("pml_") || name.starts_with("mtl_")) && name.ends_with("_priority")
        });
        let own = format!("{OB1}_priority");
        if sending.clone().next().is_some() {
            return sending.any(|name| name == own);
        }
        // Earlier versions of gyan did not record that.
        let is_asked_for_another = self.knob("pml").is_some_and(|value| {
            let names: Vec<&str> = value.split(',').collect();
            !value.is_empty() && !value.starts_with('^') && !names.contains(&"ob1")
        });
        let has_another = self.has_transport("mca_pml_ucx") || self.has_transport("mca_pml_cm");
        let ob1 = format!("{OB1}_");
        self.summary.pvars.iter().any(|pvar| pvar.name.starts_with(&ob1))
            || !is_asked_for_another && !has_another
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
    fn no_knob_that_findings_nominate_can_break_a_program() {
        assert!(KNOBS.iter().all(|knob| !is_unsafe(knob.name)));
        assert!(is_unsafe("mpi_leave_pinned_pipeline") && !is_unsafe("btl_tcp_eager_limit"));
    }

    #[test]
    fn a_witness_is_that_of_the_purpose_or_of_the_function() {
        assert_eq!(witness_of("mpi_yield_when_idle"), Figure::ProcessorLost);
        let allreduce = Figure::TimeIn(vec!["MPI_Allreduce".into()]);
        assert_eq!(witness_of("coll_tuned_allreduce_algorithm"), allreduce);
        assert_eq!(witness_of("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"), allreduce);
        assert_eq!(witness_of("anything"), Figure::TimeInMpi);
    }

    #[test]
    fn libgyan_records_each_knob() {
        for knob in KNOBS {
            assert!(gyan_results::is_knob(knob.name), "{}", knob.name);
        }
    }
}
