//! What does each subcommand do? One file or folder per subcommand; code that two of them need is in another
//! room.

pub(crate) mod archive;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod help;
pub(crate) mod now;
pub(crate) mod open;
pub(crate) mod pack;
pub(crate) mod reduce;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod timeline;
pub(crate) mod tune;
pub(crate) mod varlist;
pub(crate) mod watch;
