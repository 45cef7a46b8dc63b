//! The parts of a report.

pub(crate) mod cost;
pub(crate) mod environment;
pub(crate) mod findings;
pub(crate) mod functions;
pub(crate) mod headings;
pub(crate) mod histogram;
pub(crate) mod hosts;
pub(crate) mod machine;
pub(crate) mod page;
pub(crate) mod peers;
pub(crate) mod phases;
pub(crate) mod queues;
pub(crate) mod ranks;
pub(crate) mod report;
pub(crate) mod series;
pub(crate) mod sites;
pub(crate) mod tables;
pub(crate) mod variables;
pub(crate) mod waiting;
pub(crate) mod watch;

pub(crate) use environment::environment;
pub(crate) use findings::findings;
#[cfg(test)]
pub(crate) use findings::{actor, in_short};
pub(crate) use headings::{phase_name, short_library};
pub(crate) use histogram::{histogram, histograms, sizes};
pub(crate) use machine::machine;
pub(crate) use page::{More, OfRanks, page_of_run};
pub(crate) use peers::peers;
pub(crate) use phases::phases;
pub(crate) use queues::queues;
pub(crate) use report::{Known, Part, explained, report};
pub(crate) use series::{Course, series};
pub(crate) use sites::{places_in_words, sites};
pub(crate) use tables::{CALLS, TABLES, Table, VARIABLES};
pub(crate) use waiting::waiting;
