//! What the tests with real MPIs and the bench share; of it the tests of the command use [`processes`] only.

mod mpis;
mod patience;
mod processes;
mod profiles;
mod release;

pub(crate) use mpis::*;
pub(crate) use patience::*;
pub(crate) use processes::*;
pub(crate) use profiles::*;
pub(crate) use release::*;
