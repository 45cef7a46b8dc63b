//! What the types of the files derive.

pub(crate) use macro_rules_attribute::{apply, derive};
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

/// Makes a type one of the files like `#[derive(Data!, Serialize)]`, but a field that is an `Option` needs no attribute: it is
/// left out of the file when it is none.
macro_rules! datum {
    ($(#[$about:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $crate::data::datum! { @field [$(#[$about])* $vis struct $name] [] $($fields)* }
    };
    (@field [$($head:tt)*] [$($done:tt)*]) => {
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[derive(Clone, Debug, serde::Deserialize, PartialEq, serde::Serialize)]
        $($head)* { $($done)* }
    };
    (@field $head:tt [$($done:tt)*] $(#[$about:meta])* $vis:vis $field:ident: Option<$type:ty>, $($rest:tt)*) => {
        $crate::data::datum! { @field $head [
            $($done)* $(#[$about])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $vis $field: Option<$type>,
        ] $($rest)* }
    };
    (@field $head:tt [$($done:tt)*] $(#[$about:meta])* $vis:vis $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::data::datum! { @field $head [$($done)* $(#[$about])* $vis $field: $type,] $($rest)* }
    };
}
pub(crate) use datum;
