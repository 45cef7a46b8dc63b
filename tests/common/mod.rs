//! Code shared by the tests with real MPIs and the bench; the tests of the command use only [`processes`].

mod mpis;
mod patience;
mod processes;
mod profiles;
mod release;
mod reports;

pub(crate) use mpis::*;
pub(crate) use patience::*;
pub(crate) use processes::*;
pub(crate) use profiles::*;
pub(crate) use release::*;
pub(crate) use reports::*;
