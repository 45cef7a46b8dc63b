//! What the types of the files derive.

pub(crate) use macro_rules_attribute::derive;
pub(crate) use serde::{Deserialize, Serialize};

// `Serialize` is not among them: beside an alias it makes the attributes of serde known.
#[cfg(feature = "schema")]
macro_rules_attribute::derive_alias! {
    #[derive(Data!)] = #[derive(Clone, Debug, serde::Deserialize, PartialEq, schemars::JsonSchema)];
}
#[cfg(not(feature = "schema"))]
macro_rules_attribute::derive_alias! {
    #[derive(Data!)] = #[derive(Clone, Debug, serde::Deserialize, PartialEq)];
}
