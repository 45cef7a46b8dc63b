//! Which numbers of a performance variable are compared? Those that, given its class, say something about a
//! run.

use gyan_results::{Class, Measure, PvarSummary};

/// The meaning of a number of a variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Telling {
    /// By how much it grew.
    Grown,
    Reached,
    /// How high it was on average.
    Mean,
    /// How high it was at most.
    Largest,
}

/// The meaning of this number; none if it says nothing for a variable of its class.
pub(super) fn telling(pvar: &PvarSummary) -> Option<Telling> {
    match (pvar.effective_class(), pvar.measure) {
        (Class::Timer | Class::Counter | Class::Aggregate, Measure::Delta) => Some(Telling::Grown),
        (Class::HighWatermark | Class::LowWatermark | Class::Generic, Measure::End) => {
            Some(Telling::Reached)
        }
        (Class::Level | Class::Size | Class::Percentage, Measure::SampledMean) => {
            Some(Telling::Mean)
        }
        (Class::Level | Class::Size | Class::Percentage, Measure::SampledMax) => {
            Some(Telling::Largest)
        }
        _ => None,
    }
}

/// ` of OBJECT`, except for `MPI_COMM_WORLD`, to which most are bound.
pub(super) fn of_object(pvar: &PvarSummary) -> String {
    let object = pvar.object.as_deref().filter(|object| *object != "MPI_COMM_WORLD");
    object.map_or_else(String::new, |object| format!(" of {object}"))
}
