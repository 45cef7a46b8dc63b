//! What an MPI library says of itself in `MPI_Get_library_version`: any text has a maker and a version.

use super::identity::{Implementation, identify};

pub(crate) fn library_version(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (implementation, version) = identify(&text);
    let known = ["Open MPI v", "MPICH Version:", "Intel(R) MPI Library"];
    let is_known = known.iter().any(|maker| text.starts_with(maker));
    assert_eq!(implementation != Implementation::Other, is_known);
    assert!(is_known || version == (0, 0, 0));
    // A version that is written out is read back.
    let (major, minor, patch) = version;
    let written = format!("Open MPI v{major}.{minor}.{patch}, {text}");
    assert_eq!(identify(&written), (Implementation::OpenMpi, version));
}
