//! What a performance variable is, in the standard's own words instead of a library's numbers.

#![forbid(unsafe_code)]

use std::fmt;

use gyan_results::{Class, Datatype};

use super::api::Api;
use crate::mpi::abi::{Bind, Library};

/// A performance variable that exists in the library.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) datatype: Datatype,
    pub(crate) bind: Bind,
    pub(crate) verbosity: &'static str,
    pub(crate) readonly: bool,
    pub(crate) continuous: bool,
    pub(crate) atomic: bool,
}

/// A performance variable that is not read.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    /// Where the library gives one.
    pub(crate) name: Option<String>,
    pub(crate) why: Why,
}

#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// `MPI_Init` closed its component; what the library says of it now.
    Closed(String),
    Other(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Closed(error) => write!(f, "its component was closed in MPI_Init ({error})"),
            Why::Other(reason) => f.write_str(reason),
        }
    }
}

impl Variable {
    /// Variable `index` of the library, or why it cannot be read.
    pub(super) fn get(api: &Api, library: &Library, index: usize) -> Result<Variable, String> {
        let info = api.pvar_get_info(index).map_err(|failure| failure.to_string())?;
        let name = info.name;
        let abi = library.abi;
        Ok(Variable {
            index,
            class: abi.class(info.class).ok_or_else(|| format!("unknown class {}", info.class))?,
            datatype: library
                .datatype(info.datatype)
                .ok_or_else(|| format!("{name} has a datatype that MPI_T does not allow"))?,
            bind: abi.bind(info.bind).ok_or_else(|| {
                format!("{name} binds to an unknown kind of object ({})", info.bind)
            })?,
            verbosity: abi.verbosity(info.verbosity).unwrap_or("UNKNOWN"),
            readonly: info.readonly,
            continuous: info.continuous,
            atomic: info.atomic,
            name,
        })
    }
}
