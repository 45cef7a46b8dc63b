//! The control variables that decide how messages and collectives travel, and so what a finding can say of them.

use crate::data::{Data, Serialize, derive};

/// Their names; `*` is anything.
pub const KNOBS: &[&str] = &[
    // Open MPI.
    "btl",
    "btl_*_eager_limit",
    "btl_vader_single_copy_mechanism",
    "coll_han_priority",
    "coll_sync_barrier_before",
    "coll_sync_priority",
    "coll_tuned_*_algorithm",
    "coll_tuned_priority",
    "coll_tuned_use_dynamic_rules",
    "mpi_preconnect_all",
    "mpi_preconnect_mpi",
    "mpi_yield_when_idle",
    "mtl_*_priority",
    "pml",
    "pml_*_priority",
    "smsc",
    // MPICH and what is made of it.
    "MPIR_CVAR_*_INTRA_ALGORITHM",
    "MPIR_CVAR_ASYNC_PROGRESS",
    "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE",
    "MPIR_CVAR_CH4_CMA_ENABLE",
    "MPIR_CVAR_CH4_NUM_VCIS",
    "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE",
    "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE",
    "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ",
    "MPIR_CVAR_POLLS_BEFORE_YIELD",
    // Intel MPI.
    "MPIR_CVAR_IMPI_THREAD_YIELD",
    "MPIR_CVAR_IMPI_WAIT_MODE",
    "MPIR_CVAR_INTEL_SHM_CMA",
    "MPIR_CVAR_INTEL_SHM_EAGER_THRESHOLD",
];

/// Whether a control variable is one of them.
pub fn is_knob(name: &str) -> bool {
    KNOBS.iter().any(|knob| match knob.split_once('*') {
        None => *knob == name,
        Some((start, end)) => {
            let rest = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            rest.is_some_and(|rest| !rest.is_empty())
        }
    })
}

/// A variable that the library has, and its value in the run, whether or not anything has set it.
#[derive(Data!, Serialize, Eq)]
pub struct Knob {
    /// Its name.
    pub name: String,
    /// Its value, by name for an enumeration.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_known_by_its_name() {
        for name in ["btl", "btl_vader_eager_limit", "MPIR_CVAR_BCAST_INTRA_ALGORITHM"] {
            assert!(is_knob(name), "{name}");
        }
        for name in [
            "btl_base_verbose",
            "btl__eager_limits",
            "MPIR_CVAR_BCAST_INTER_ALGORITHM",
            "pml_base_verbose",
        ] {
            assert!(!is_knob(name), "{name}");
        }
    }
}
