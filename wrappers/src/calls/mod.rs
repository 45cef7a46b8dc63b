//! Whose call is this, and what is counted, timed and spent on it?
//!
//! Does not know what the program's arguments mean, and reads no variable.

pub(crate) mod addresses;
pub(crate) mod balance;
pub(crate) mod budget;
pub(crate) mod containment;
pub(crate) mod estimate;
pub(crate) mod gate;
pub(crate) mod ledger;
pub(crate) mod longjmp;
pub(crate) mod now;
pub(crate) mod requests;
pub(crate) mod scripts;
pub(crate) mod sites;
pub(crate) mod stacks;
#[allow(unsafe_code)]
pub(crate) mod thread;
pub(crate) mod together;
pub(crate) mod traffic;
