//! What is known of the queues of messages, under the same names whatever the source: PERUSE, events of
//! `MPI_T`, performance variables and the watch.

#[cfg(test)]
mod tests;
mod told;
mod variables;

use serde::Serialize;
use strum::VariantArray;

pub(crate) use variables::sampled_length;

use crate::{Fidelity, MessageSource, Statistic, Summary, Traffic, Unit, sort_by};

/// The quantities of queues, in display order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(VariantArray)]
pub enum Quantity {
    /// Number of messages at a time that came before their receive was posted.
    UnexpectedLength,
    /// Bytes of the buffers that hold those.
    UnexpectedBytes,
    /// Number of receives at a time that were posted before their message came.
    PostedLength,
    /// Seconds that a message waited for its receive.
    UnexpectedTime,
    /// How often the posted receives were searched for an arriving message.
    PostedMatchAttempts,
    /// How often the unexpected messages were searched for a receive.
    UnexpectedMatchAttempts,
    /// Seconds of searching the posted receives.
    PostedSearchTime,
    /// Seconds of searching the unexpected messages.
    UnexpectedSearchTime,
    /// Messages that came before their receive.
    LateReceivers,
    /// Receives that came before their message.
    LateSenders,
}

impl Quantity {
    /// Every quantity, in display order.
    pub const ALL: [Quantity; Quantity::VARIANTS.len()] =
        *Quantity::VARIANTS.first_chunk().unwrap();

    /// Its name in tables.
    pub fn words(self) -> &'static str {
        match self {
            Quantity::UnexpectedLength => "unexpected queue, messages",
            Quantity::UnexpectedBytes => "unexpected queue, bytes",
            Quantity::PostedLength => "posted queue, receives",
            Quantity::UnexpectedTime => "time in unexpected queue",
            Quantity::PostedMatchAttempts => "match attempts, posted queue",
            Quantity::UnexpectedMatchAttempts => "match attempts, unexpected queue",
            Quantity::PostedSearchTime => "time searching, posted queue",
            Quantity::UnexpectedSearchTime => "time searching, unexpected queue",
            Quantity::LateReceivers => "late receivers",
            Quantity::LateSenders => "late senders",
        }
    }

    /// The unit of its totals, means and maxima.
    pub fn unit(self) -> Unit {
        match self {
            Quantity::UnexpectedLength => Unit::Messages,
            Quantity::PostedLength => Unit::Receives,
            Quantity::UnexpectedBytes => Unit::Bytes,
            _ => Unit::Seconds,
        }
    }
}

/// Where a number comes from: the best source that the run had for it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSource {
    /// PERUSE 2.0.
    Peruse,
    /// Events of `MPI_T`.
    MpiTEvents,
    /// A performance variable that was compared at every receive (`GYAN_WATCH`).
    Watch,
    /// A performance variable.
    Pvar,
}

impl From<MessageSource> for QueueSource {
    fn from(source: MessageSource) -> QueueSource {
        match source {
            MessageSource::Peruse => QueueSource::Peruse,
            MessageSource::MpiTEvents => QueueSource::MpiTEvents,
        }
    }
}

/// A number on the rank where it is largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnRank {
    /// The number.
    pub value: f64,
    /// The lowest rank that has it.
    pub rank: u32,
}

impl OnRank {
    pub(crate) fn max_of(statistic: &Statistic) -> OnRank {
        OnRank { value: statistic.max.as_f64(), rank: statistic.max_rank }
    }
}

/// One quantity from one source. Values that the source does not tell are none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// The quantity.
    pub quantity: Quantity,
    /// The unit of `total`, `mean`, `max` and, for a time, `most`.
    pub unit: Unit,
    /// Whose messages; none for those of the program and of collective operations together.
    pub traffic: Option<Traffic>,
    /// The communicator that a variable is bound to.
    pub object: Option<String>,
    /// How many messages, receives, searches or readings it covers, on all ranks.
    pub number: Option<f64>,
    /// Out of how many.
    pub of: Option<f64>,
    /// Their sum over all ranks.
    pub total: Option<f64>,
    /// The total of the rank that has the most; without a total the number.
    pub most: Option<OnRank>,
    /// The mean of a single one.
    pub mean: Option<f64>,
    /// The largest single one.
    pub max: Option<OnRank>,
    /// Where it comes from.
    pub source: QueueSource,
    /// The source's own name for it: metric, variable or functions.
    pub name: String,
    /// How reliable it is.
    pub fidelity: Fidelity,
    /// What a reader should know of this number.
    pub remark: Option<&'static str>,
}

impl QueueRow {
    fn new(quantity: Quantity, source: QueueSource, name: &str, fidelity: Fidelity) -> QueueRow {
        QueueRow {
            quantity,
            unit: quantity.unit(),
            traffic: None,
            object: None,
            number: None,
            of: None,
            total: None,
            most: None,
            mean: None,
            max: None,
            source,
            name: name.to_owned(),
            fidelity,
            remark: None,
        }
    }
}

impl Summary {
    /// What the run tells about its queues: for each quantity, the rows of the best source that has it.
    pub fn queues(&self) -> Vec<QueueRow> {
        let missing = &self.coverage.events;
        let told = self.messages.iter().map(|messages| told::rows(messages, missing));
        let mut told: Vec<Vec<QueueRow>> = told.collect();
        // PERUSE before events: the order of sources is that of the enum.
        let source = |rows: &Vec<QueueRow>| rows.first().map(|row| row.source);
        sort_by(&mut told, |one, other| source(one).cmp(&source(other)));
        let sources = told.into_iter().chain([variables::rows(self)]);
        let sources: Vec<Vec<QueueRow>> = sources.collect();
        let best = |quantity: Quantity| {
            let of_one = sources.iter().map(move |rows| {
                rows.iter().filter(move |row| row.quantity == quantity).cloned().collect()
            });
            of_one.into_iter().find(|rows: &Vec<QueueRow>| !rows.is_empty()).unwrap_or_default()
        };
        Quantity::ALL.into_iter().flat_map(best).collect()
    }
}
