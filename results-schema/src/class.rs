//! What a number of a performance variable is: the class of the variable, its element, the reading.

use std::fmt;

use strum::VariantArray;

use crate::data::{Data, Deserialize, Serialize, derive};

/// A class of performance variables (MPI 4.1, 15.3.7).
#[derive(Data!, Serialize, Copy, Eq, Hash, Ord, PartialOrd)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Class {
    State,
    Level,
    Size,
    Percentage,
    HighWatermark,
    LowWatermark,
    Counter,
    Aggregate,
    Timer,
    Generic,
}

impl Class {
    /// Every class, in the order of the standard.
    pub const ALL: [Class; Class::VARIANTS.len()] = *Class::VARIANTS.first_chunk().unwrap();

    /// The standard's name, without the prefix `MPI_T_PVAR_CLASS_`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether variables of this class only grow, so that the difference of two readings says what happened in
    /// between.
    pub fn accumulates(self) -> bool {
        matches!(self, Class::Counter | Class::Aggregate | Class::Timer)
    }
}

/// Which element of a variable a row is about.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// The one element of a scalar.
    Scalar,
    /// An element of a vector, from 0.
    Index(usize),
    /// The sum over a vector that was too long to keep.
    Sum,
    /// The smallest element of such a vector.
    Min,
    /// The largest element of such a vector.
    Max,
}

impl fmt::Display for Element {
    /// The suffix after the name of the variable: empty for a scalar.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Scalar => Ok(()),
            Element::Index(index) => write!(f, "[{index}]"),
            Element::Sum => f.write_str("[sum]"),
            Element::Min => f.write_str("[min]"),
            Element::Max => f.write_str("[max]"),
        }
    }
}

/// Which reading of a variable it is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// The reading at the end minus the one at the start.
    Delta,
    /// The reading at the start, after `MPI_Init`.
    Start,
    /// The reading at the end, before `MPI_Finalize`.
    End,
    /// The smallest reading while the program ran.
    SampledMin,
    /// The mean reading while the program ran.
    SampledMean,
    /// The largest reading while the program ran.
    SampledMax,
}

impl Measure {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
