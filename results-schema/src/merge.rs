//! How does what one rank knows become what a job knows? The kind of a number says how it is taken from a rank, merged with
//! that of others, and what it is in the summary. [`reduced!`] declares such numbers; data that is merged in another way
//! implements [`Merge`] where it is used.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::number::Number;
use crate::ranges::Ranges;
use crate::statistics::{Statistic, Statistics};

pub(crate) trait Merge {
    /// Merges the same of other ranks into this.
    fn absorb(&mut self, other: &Self);
}

/// Derives [`Merge`] of a struct, field by field: `#[derive(MergeFields!)]`.
macro_rules! MergeFields {
    ($(#[$_:meta])* $vis:vis struct $type:ident {
        $($(#[$__:meta])* $field_vis:vis $field:ident: $field_type:ty),+ $(,)?
    }) => {
        impl $crate::merge::Merge for $type {
            #[inline]
            fn absorb(&mut self, other: &$type) {
                $(self.$field.absorb(&other.$field);)+
            }
        }
    };
}
pub(crate) use MergeFields;

impl Merge for Statistics {
    fn absorb(&mut self, other: &Statistics) {
        self.merge(other);
    }
}

/// A count.
impl Merge for u64 {
    fn absorb(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

/// An amount.
impl Merge for f64 {
    fn absorb(&mut self, other: &f64) {
        *self += other;
    }
}

/// A histogram.
impl Merge for Vec<u64> {
    fn absorb(&mut self, other: &Vec<u64>) {
        add_histogram(self, other);
    }
}

/// Adds the bars of one histogram to another's.
pub fn add_histogram(histogram: &mut Vec<u64>, other: &[u64]) {
    if histogram.len() < other.len() {
        histogram.resize(other.len(), 0);
    }
    for (own, other) in histogram.iter_mut().zip(other) {
        *own = own.saturating_add(*other);
    }
}

/// A set of ranks, of different profiles.
impl Merge for Ranges {
    fn absorb(&mut self, other: &Ranges) {
        self.extend(other);
    }
}

impl<T: Merge + Clone> Merge for Option<T> {
    fn absorb(&mut self, other: &Option<T>) {
        match (self, other) {
            (Some(own), Some(other)) => own.absorb(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
    }
}

impl<K: Clone + Ord, V: Merge + Clone> Merge for BTreeMap<K, V> {
    fn absorb(&mut self, other: &BTreeMap<K, V>) {
        for (key, value) in other {
            match self.get_mut(key) {
                Some(own) => own.absorb(value),
                None => {
                    self.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

impl<T: Clone + Ord> Merge for BTreeSet<T> {
    fn absorb(&mut self, other: &BTreeSet<T>) {
        for one in other {
            if !self.contains(one) {
                self.insert(one.clone());
            }
        }
    }
}

/// The value of the lowest rank.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Lowest<T> {
    pub(crate) rank: u32,
    pub(crate) said: T,
}

impl<T: Clone> Merge for Lowest<T> {
    fn absorb(&mut self, other: &Lowest<T>) {
        if other.rank < self.rank {
            self.clone_from(other);
        }
    }
}

/// The ranks that lack a row which others have: how many, and the lowest of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Absent {
    pub(crate) ranks: u64,
    pub(crate) lowest: u32,
}

/// How a number of each rank is merged, and becomes a `Summary`.
pub(crate) trait Kind<Summary>: Merge {
    /// None when no rank has the number.
    fn over_ranks(self, absent: Absent) -> Option<Summary>;
}

/// A kind that is made from an `Own` of one rank.
pub(crate) trait Takes<Own>: Merge {
    fn set(&mut self, own: &Own, rank: u32);
}

/// Over the ranks that have the number.
impl Kind<Statistic> for Statistics {
    #[inline]
    fn over_ranks(self, _: Absent) -> Option<Statistic> {
        Statistics::finish(&self)
    }
}

impl<Own: Copy + Into<Number>> Takes<Own> for Statistics {
    #[inline]
    fn set(&mut self, own: &Own, rank: u32) {
        *self = Statistics::of((*own).into(), rank);
    }
}

/// Over all ranks: one that lacks the row has 0.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Each(Statistics);

impl Merge for Each {
    #[inline]
    fn absorb(&mut self, other: &Each) {
        self.0.merge(&other.0);
    }
}

impl Kind<Statistic> for Each {
    #[inline]
    fn over_ranks(mut self, absent: Absent) -> Option<Statistic> {
        self.0.merge(&Statistics::of_zeros(absent.ranks, absent.lowest));
        self.0.finish()
    }
}

impl<Own: Copy + Into<Number>> Takes<Own> for Each {
    #[inline]
    fn set(&mut self, own: &Own, rank: u32) {
        self.0 = Statistics::of((*own).into(), rank);
    }
}

/// A number that is not known on all ranks, or on none.
impl<K: Kind<S> + Clone, S> Kind<Option<S>> for Option<K> {
    #[inline]
    fn over_ranks(self, absent: Absent) -> Option<Option<S>> {
        Some(self.and_then(|kind| kind.over_ranks(absent)))
    }
}

impl<K: Takes<Own> + Clone + Default, Own> Takes<Option<Own>> for Option<K> {
    #[inline]
    fn set(&mut self, own: &Option<Own>, rank: u32) {
        *self = own.as_ref().map(|own| {
            let mut kind = K::default();
            kind.set(own, rank);
            kind
        });
    }
}

/// A sum of counts.
impl Kind<u64> for u64 {
    fn over_ranks(self, _: Absent) -> Option<u64> {
        Some(self)
    }
}

impl Takes<u64> for u64 {
    fn set(&mut self, own: &u64, _: u32) {
        *self = *own;
    }
}

/// A sum of histograms.
impl Kind<Vec<u64>> for Vec<u64> {
    fn over_ranks(self, _: Absent) -> Option<Vec<u64>> {
        Some(self)
    }
}

impl Takes<Vec<u64>> for Vec<u64> {
    fn set(&mut self, own: &Vec<u64>, _: u32) {
        self.clone_from(own);
    }
}

/// The sum of the standard errors, not of their squares: what ranks wait for each other is outside of the sample of all
/// of them. None when a rank does not know its own.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SumOfErrors(Option<f64>);

impl Merge for SumOfErrors {
    #[inline]
    fn absorb(&mut self, other: &SumOfErrors) {
        self.0.absorb(&other.0);
    }
}

impl Kind<Option<f64>> for SumOfErrors {
    fn over_ranks(self, _: Absent) -> Option<Option<f64>> {
        Some(self.0.filter(|error| error.is_finite()))
    }
}

impl Takes<Option<f64>> for SumOfErrors {
    fn set(&mut self, own: &Option<f64>, _: u32) {
        // NaN stays NaN in every sum.
        self.0 = Some(own.unwrap_or(f64::NAN));
    }
}

/// The outer one is none on a rank that does not count.
impl Takes<Option<Option<f64>>> for SumOfErrors {
    fn set(&mut self, own: &Option<Option<f64>>, _: u32) {
        self.0 = own.map(|error| error.unwrap_or(f64::NAN));
    }
}

/// The standard error of a sum over ranks whose errors are independent. None when a rank does not know its own.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SumOfVariances(SumOfErrors);

impl Merge for SumOfVariances {
    fn absorb(&mut self, other: &SumOfVariances) {
        self.0.absorb(&other.0);
    }
}

impl Kind<Option<f64>> for SumOfVariances {
    fn over_ranks(self, absent: Absent) -> Option<Option<f64>> {
        Some(self.0.over_ranks(absent)?.map(f64::sqrt))
    }
}

impl Takes<Option<f64>> for SumOfVariances {
    fn set(&mut self, own: &Option<f64>, rank: u32) {
        self.0.set(&own.map(|error| error * error), rank);
    }
}

/// The least over the ranks that know the number, or with `false` the most.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct LeastOrMost<const LEAST: bool>(Option<f64>);
pub(crate) type Least = LeastOrMost<true>;
pub(crate) type Most = LeastOrMost<false>;

impl<const LEAST: bool> Merge for LeastOrMost<LEAST> {
    fn absorb(&mut self, other: &LeastOrMost<LEAST>) {
        let of_both = if LEAST { f64::min } else { f64::max };
        self.0 = match (self.0, other.0) {
            (Some(own), Some(other)) => Some(of_both(own, other)),
            (own, other) => own.or(other),
        };
    }
}

impl<const LEAST: bool> Kind<Option<f64>> for LeastOrMost<LEAST> {
    fn over_ranks(self, _: Absent) -> Option<Option<f64>> {
        Some(self.0)
    }
}

impl<const LEAST: bool> Takes<Option<f64>> for LeastOrMost<LEAST> {
    fn set(&mut self, own: &Option<f64>, _: u32) {
        self.0 = *own;
    }
}

impl<T: Clone> Kind<T> for Lowest<T> {
    fn over_ranks(self, _: Absent) -> Option<T> {
        Some(self.said)
    }
}

impl<T: Clone> Takes<T> for Lowest<T> {
    fn set(&mut self, own: &T, rank: u32) {
        *self = Lowest { rank, said: own.clone() };
    }
}

/// The ranks of which something is true.
impl Kind<Vec<u32>> for Ranges {
    fn over_ranks(self, _: Absent) -> Option<Vec<u32>> {
        Some(self.iter().collect())
    }
}

impl Takes<bool> for Ranges {
    fn set(&mut self, own: &bool, rank: u32) {
        *self = if *own { Ranges::of(rank) } else { Ranges::default() };
    }
}

/// What the summary has, but not from the numbers of the ranks: its reduction fills it in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Later;

impl Merge for Later {
    fn absorb(&mut self, _: &Later) {}
}

impl<T: Default> Kind<T> for Later {
    #[inline]
    fn over_ranks(self, _: Absent) -> Option<T> {
        Some(T::default())
    }
}

impl<T> Takes<T> for Later {
    fn set(&mut self, _: &T, _: u32) {}
}

/// A field of a summary, if it is a number over the ranks that is known.
pub(crate) fn known_statistic(field: &dyn Any) -> Option<&Statistic> {
    field.downcast_ref().or_else(|| field.downcast_ref::<Option<Statistic>>()?.as_ref())
}

/// Declares what a job has of a datum that each rank has, and the numbers of some ranks between the two: their structs, `set` from
/// one rank, the merge, `finish`, and `measures` of the summary.
///
/// ```ignore
/// reduced! {
///     /// What the doc comment of the summary is.
///     Call => CallReduction => CallSummary by (
///         /// The key, which the rank has under the same name.
///         name: String,
///     ) {
///         /// A field of both: its type in the summary, and its kind.
///         count: Statistic = Each,
///         /// A field that is made from the rank's in another way.
///         time_error_s: Option<f64> = SumOfErrors => |call| call.time_s.map(|_| call.time_error_s),
///         /// The same, where the rank has no field of this name.
///         + share: Statistic = Statistics => |call| call.share(),
///     } without (threads)
/// }
/// ```
///
/// A field of the rank that is in no line and not in `without` does not compile. An `Option` that is none is left out of the file.
macro_rules! reduced {
    (
        $(#[$about:meta])*
        $Own:ident => $Reduction:ident => $Summary:ident by ($($(#[$key_about:meta])* $key:ident: $Key:ty),* $(,)?)
        { $($lines:tt)* } without ($($unused:ident),*)
    ) => {
        $crate::merge::reduced!(@types [$(#[$about])*] [$Reduction $Summary] [$($(#[$key_about])* $key: $Key,)*] [] $($lines)*);

        impl $crate::merge::Takes<$Own> for $Reduction {
            #[inline]
            fn set(&mut self, own: &$Own, rank: u32) {
                let this = self;
                $crate::merge::reduced!(@set this own rank $Own [$($key)* $($unused)*] $($lines)*);
            }
        }
    };
    (
        @types $about:tt $names:tt $keys:tt [$($done:tt)*]
        $(#[$meta:meta])* $(+)? $field:ident: Option<$ty:ty> = $kind:ty $(=> |$of:ident| $from:expr)? $(, $($rest:tt)*)?
    ) => {
        $crate::merge::reduced!(@types $about $names $keys [
            $($done)* {
                [$(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")]] $field [Option<$ty>] [$kind]
            }
        ] $($($rest)*)?);
    };
    (
        @types $about:tt $names:tt $keys:tt [$($done:tt)*]
        $(#[$meta:meta])* $(+)? $field:ident: $ty:ty = $kind:ty $(=> |$of:ident| $from:expr)? $(, $($rest:tt)*)?
    ) => {
        $crate::merge::reduced!(@types $about $names $keys [
            $($done)* { [$(#[$meta])*] $field [$ty] [$kind] }
        ] $($($rest)*)?);
    };
    (
        @types [$(#[$about:meta])*] [$Reduction:ident $Summary:ident] [$($(#[$key_about:meta])* $key:ident: $Key:ty,)*]
        [$({ [$(#[$meta:meta])*] $field:ident [$ty:ty] [$kind:ty] })*]
    ) => {
        $(#[$about])*
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[derive(Clone, Debug, serde::Deserialize, PartialEq, serde::Serialize)]
        pub struct $Summary {
            $($(#[$key_about])* pub $key: $Key,)*
            $($(#[$meta])* pub $field: $ty,)*
        }

        #[$crate::data::derive($crate::merge::MergeFields!, Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
        pub(crate) struct $Reduction {
            $(pub(crate) $field: $kind,)*
        }

        impl $Summary {
            /// The numbers over the ranks that are known, each by the name of its field and with its unit.
            pub fn measures(&self) -> impl Iterator<Item = (&'static str, $crate::units::Unit, &$crate::statistics::Statistic)> {
                let all = [$((stringify!($field), $crate::merge::known_statistic(&self.$field))),*];
                all.into_iter().filter_map(|(name, of)| Some((name, $crate::units::Unit::from_name(name), of?)))
            }

            /// Those of these names, in the order of the names, each with the words for it.
            pub fn measures_named<'a>(
                &'a self,
                names: &'a [(&'static str, &'static str)],
            ) -> impl Iterator<Item = (&'static str, $crate::units::Unit, &'a $crate::statistics::Statistic)> {
                names.iter().filter_map(|(name, words)| {
                    let (_, unit, of) = self.measures().find(|(own, ..)| own == name)?;
                    Some((*words, unit, of))
                })
            }
        }

        impl $Reduction {
            /// The numbers of all ranks; none when a number is not known that each has.
            #[inline]
            pub(crate) fn finish(self, $($key: $Key,)* absent: $crate::merge::Absent) -> Option<$Summary> {
                Some($Summary { $($key,)* $($field: $crate::merge::Kind::<$ty>::over_ranks(self.$field, absent)?,)* })
            }
        }
    };
    (@set $this:ident $own:ident $rank:ident $Own:ident [$($known:ident)*]) => {
        let $Own { $($known: _),* } = $own;
    };
    (
        @set $this:ident $own:ident $rank:ident $Own:ident [$($known:ident)*]
        $(#[$meta:meta])* + $field:ident: $ty:ty = $kind:ty $(=> |$of:ident| $from:expr)? $(, $($rest:tt)*)?
    ) => {
        $(let $of = $own; $crate::merge::Takes::set(&mut $this.$field, &$from, $rank);)?
        $crate::merge::reduced!(@set $this $own $rank $Own [$($known)*] $($($rest)*)?);
    };
    (
        @set $this:ident $own:ident $rank:ident $Own:ident [$($known:ident)*]
        $(#[$meta:meta])* $field:ident: $ty:ty = $kind:ty => |$of:ident| $from:expr $(, $($rest:tt)*)?
    ) => {
        let $of = $own;
        $crate::merge::Takes::set(&mut $this.$field, &$from, $rank);
        $crate::merge::reduced!(@set $this $own $rank $Own [$($known)* $field] $($($rest)*)?);
    };
    (
        @set $this:ident $own:ident $rank:ident $Own:ident [$($known:ident)*]
        $(#[$meta:meta])* $field:ident: $ty:ty = $kind:ty $(, $($rest:tt)*)?
    ) => {
        $crate::merge::Takes::set(&mut $this.$field, &$own.$field, $rank);
        $crate::merge::reduced!(@set $this $own $rank $Own [$($known)* $field] $($($rest)*)?);
    };
}
pub(crate) use reduced;
