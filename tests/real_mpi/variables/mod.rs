//! What is known of performance and control variables: read, sampled, enabled, listed.

pub(crate) mod doctor;
mod enabling;
mod environment;
mod many;
mod objects;
pub(crate) mod readings;
mod sampling;
mod schemas;
mod selection;
mod varlist;
