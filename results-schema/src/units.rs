//! In what a number is, and how well it is known.

use crate::data::{Data, Serialize, derive};

/// The bytes that a size says: `4MiB`, `512K`, `1000000`; units are powers of 1024. None if it says none.
pub fn parse_bytes(size: &str) -> Option<u64> {
    let digits = size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = size.split_at(digits);
    let shift = match unit.trim().trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The unit of a number.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number of things, or whatever unit the library's description gives.
    Count,
    /// Messages.
    Messages,
    /// Receives.
    Receives,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A share of a whole: 1 is all of it.
    Share,
    /// So many a second.
    PerSecond,
}

impl Unit {
    /// As it stands behind a number: `s`, `bytes`, `/s`, or nothing for a number of things or a share.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "/s",
            Unit::Count | Unit::Messages | Unit::Receives | Unit::Share => "",
        }
    }

    /// The unit that the name of a number ends with, as in `elapsed_s`; a number of things for any other.
    pub fn from_name(name: &str) -> Unit {
        match name.rsplit('_').next() {
            Some("s") => Unit::Seconds,
            Some("bytes") => Unit::Bytes,
            Some("share") => Unit::Share,
            Some("hz") => Unit::PerSecond,
            _ => Unit::Count,
        }
    }

    /// The unit of this symbol; a number of things for any that is not known.
    pub fn from_symbol(symbol: &str) -> Unit {
        let all = [Unit::Seconds, Unit::Bytes, Unit::PerSecond];
        all.into_iter().find(|unit| unit.symbol() == symbol).unwrap_or(Unit::Count)
    }
}

/// How well a number is known.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Counted or read: every call or message is included.
    Exact,
    /// From some of the calls, or from readings at some of them.
    Sampled,
    /// Derived from other numbers by a model.
    Estimated,
    /// Too few calls were timed to tell how much more it is.
    LowerBound,
}

impl Fidelity {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Fidelity::Exact => "exact",
            Fidelity::Sampled => "sampled",
            Fidelity::Estimated => "estimated",
            Fidelity::LowerBound => "at least",
        }
    }
}
