//! A reduction on its way from rank to rank: its shape, which the ranks of a job nearly always have in
//! common, and its numbers, in the order of the shape, as words.
//!
//! Where the shapes of two reductions are equal, the numbers of one are merged into those of the other place
//! by place. Where they are not, the other reduction is made anew from shape and numbers, and merged by
//! the names of its rows: no number is ever merged by its place into another row.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Reduction;
use crate::Statistics;

/// What somebody sent is no reduction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoReduction;

impl Reduction {
    /// All but the numbers, as bytes: the names and what else makes rows the same.
    ///
    /// # Errors
    ///
    /// None but for want of memory.
    pub fn shape(&self) -> Result<Vec<u8>, NoReduction> {
        postcard::to_allocvec(self).map_err(|_| NoReduction)
    }

    /// All numbers, in the order of the shape.
    #[must_use]
    pub fn to_numbers(&mut self) -> Vec<u64> {
        let mut numbers = Numbers::new(Mode::Write, Vec::new());
        self.numbers(&mut numbers);
        numbers.words
    }

    /// Takes in the numbers of another process, whose shape is that of this one.
    ///
    /// # Errors
    ///
    /// When there are more or fewer; then this one may hold a part of them, and is of no use.
    pub fn merge_by_place(&mut self, numbers: Vec<u64>) -> Result<(), NoReduction> {
        let mut numbers = Numbers::new(Mode::Merge, numbers);
        self.numbers(&mut numbers);
        numbers.finish()
    }

    /// Takes in the shape and the numbers of another process.
    ///
    /// # Errors
    ///
    /// When they are not those of a reduction.
    pub fn merge_by_name(&mut self, shape: &[u8], numbers: Vec<u64>) -> Result<(), NoReduction> {
        let mut other: Reduction = postcard::from_bytes(shape).map_err(|_| NoReduction)?;
        let mut numbers = Numbers::new(Mode::Read, numbers);
        other.numbers(&mut numbers);
        numbers.finish()?;
        self.merge(other);
        Ok(())
    }
}

/// Bytes as words, the last of which is filled up.
pub fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    })
}

/// The bytes of such words, with what the last one was filled up with.
#[must_use]
pub fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A text: its length, and its bytes in words.
fn push_text(words: &mut Vec<u64>, text: &[u8]) {
    words.push(text.len() as u64);
    words.extend(words_of(text));
}

/// The text at a place, and what place is behind it.
fn text_at(words: &[u64], at: usize) -> Option<(Vec<u8>, usize)> {
    let length = usize::try_from(*words.get(at)?).ok()?;
    let begin = at + 1;
    let end = begin.checked_add(length.div_ceil(8))?;
    let mut text = bytes_of(words.get(begin..end)?);
    text.truncate(length);
    Some((text, end))
}

/// What is done with the numbers of a reduction, one after the other in the order of its shape.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Write,
    Read,
    Merge,
}

/// The words of the numbers, and how far they are read.
#[derive(Debug)]
pub(super) struct Numbers {
    mode: Mode,
    words: Vec<u64>,
    at: usize,
    /// False when there were fewer words than numbers, or what cannot be.
    is_sound: bool,
}

impl Numbers {
    fn new(mode: Mode, words: Vec<u64>) -> Numbers {
        Numbers { mode, words, at: 0, is_sound: true }
    }

    /// Whether all of them were what they were taken for.
    fn finish(self) -> Result<(), NoReduction> {
        if self.is_sound && self.at == self.words.len() { Ok(()) } else { Err(NoReduction) }
    }

    fn next<const N: usize>(&mut self) -> [u64; N] {
        let rest = self.words.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        if let Some(words) = rest {
            self.at += N;
            *words
        } else {
            self.is_sound = false;
            [0; N]
        }
    }

    /// A number of one word, and what two ranks' make together.
    pub(super) fn word<W: Word>(&mut self, own: &mut W, together: fn(W, W) -> W) {
        match self.mode {
            Mode::Write => self.words.push(own.to_word()),
            Mode::Read => *own = W::of_word(self.next::<1>()[0]),
            Mode::Merge => *own = together(*own, W::of_word(self.next::<1>()[0])),
        }
    }

    /// A count.
    pub(super) fn count(&mut self, own: &mut u64) {
        self.word(own, u64::saturating_add);
    }

    /// Several words, which are merged as one.
    fn words<const N: usize>(&mut self, own: [u64; N]) -> Option<[u64; N]> {
        if self.mode == Mode::Write {
            self.words.extend(own);
            return None;
        }
        Some(self.next())
    }

    /// The smaller of two pairs.
    pub(super) fn smallest(&mut self, own: &mut (usize, u32)) {
        let Some([place, rank]) = self.words([own.0.to_word(), own.1.to_word()]) else { return };
        let other = (usize::of_word(place), u32::of_word(rank));
        *own = if self.mode == Mode::Merge { other.min(*own) } else { other };
    }

    /// A number that there may be.
    pub(super) fn optional<W: Word + Default>(
        &mut self,
        own: &mut Option<W>,
        together: fn(W, W) -> W,
    ) {
        let words = [u64::from(own.is_some()), own.unwrap_or_default().to_word()];
        let Some([is_some, word]) = self.words(words) else { return };
        let other = (is_some == 1).then(|| W::of_word(word));
        *own = match (*own, other) {
            (Some(one), Some(other)) if self.mode == Mode::Merge => Some(together(one, other)),
            (one, None) if self.mode == Mode::Merge => one,
            (_, other) => other,
        };
    }

    pub(super) fn statistics(&mut self, own: &mut Statistics) {
        match self.mode {
            Mode::Write => self.words.extend(own.to_words()),
            Mode::Read => *own = Statistics::of_words(self.next()),
            Mode::Merge => {
                let other = Statistics::of_words(self.next());
                own.merge(&other);
            }
        }
    }

    /// Statistics that there may be.
    pub(super) fn optional_statistics(&mut self, own: &mut Option<Statistics>) {
        let mut all = own.unwrap_or_default();
        self.statistics(&mut all);
        *own = (all != Statistics::default()).then_some(all);
    }

    /// Counts by class, the last of which is not 0.
    pub(super) fn histogram(&mut self, own: &mut Vec<u64>) {
        if self.mode == Mode::Write {
            self.words.push(own.len() as u64);
            self.words.extend(&*own);
            return;
        }
        let length = usize::of_word(self.next::<1>()[0]);
        let end = self.at.saturating_add(length);
        let Some(other) = self.words.get(self.at..end) else {
            self.is_sound = false;
            return;
        };
        if self.mode == Mode::Read {
            own.clear();
        }
        crate::add_histogram(own, other);
        self.at = end;
    }

    /// What is not a number, or not the same of every rank, as JSON.
    pub(super) fn json<T: Serialize + DeserializeOwned>(
        &mut self,
        own: &mut T,
        merge: impl FnOnce(&mut T, T),
    ) {
        if self.mode == Mode::Write {
            push_text(&mut self.words, &serde_json::to_vec(own).unwrap_or_default());
            return;
        }
        let Some((text, end)) = text_at(&self.words, self.at) else {
            self.is_sound = false;
            return;
        };
        self.at = end;
        match serde_json::from_slice(&text) {
            Ok(other) if self.mode == Mode::Merge => merge(own, other),
            Ok(other) => *own = other,
            Err(_) => self.is_sound = false,
        }
    }
}

/// What has room in a word.
pub(super) trait Word: Copy {
    fn to_word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

impl Word for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn of_word(word: u64) -> u64 {
        word
    }
}

impl Word for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn of_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

impl Word for u32 {
    fn to_word(self) -> u64 {
        self.into()
    }

    fn of_word(word: u64) -> u32 {
        u32::try_from(word).unwrap_or(u32::MAX)
    }
}

impl Word for usize {
    fn to_word(self) -> u64 {
        self as u64
    }

    fn of_word(word: u64) -> usize {
        usize::try_from(word).unwrap_or(usize::MAX)
    }
}

/// Has nothing but numbers: nothing of it is in the shape.
macro_rules! all_numbers {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u8(0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(of: D) -> Result<Self, D::Error> {
                u8::deserialize(of).map(|_| Self::default())
            }
        }
    };
}
pub(super) use all_numbers;

/// Maps as lists of pairs: JSON, which some of it travels as, has no keys but texts.
pub(super) mod pairs {
    use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Of maps to counts the keys: counts are numbers.
pub(super) mod keys {
    use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map.keys())
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Default,
        D: Deserializer<'de>,
    {
        let keys: Vec<K> = Vec::deserialize(deserializer)?;
        Ok(keys.into_iter().map(|key| (key, V::default())).collect())
    }
}
