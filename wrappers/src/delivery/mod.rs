//! How do the data leave the process?
//!
//! Does not collect anything: it is given a profile.

pub(crate) mod diagnosis;
pub(crate) mod job;
pub(crate) mod keeper;
pub(crate) mod output;
pub(crate) mod record;
pub(crate) mod reduce;

/// A path among other data, whatever its bytes are.
mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<PathBuf, D::Error> {
        Vec::deserialize(from).map(|bytes| OsString::from_vec(bytes).into())
    }
}
