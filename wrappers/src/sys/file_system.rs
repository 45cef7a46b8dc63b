//! Is a directory on a local disk, or on one that other machines serve?

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The types of local file systems (statfs(2)): ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs, ramfs, overlayfs.
/// Unknown types may be served by another machine.
const LOCAL: [i64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
];

/// Whether `path`, or its nearest existing parent, is on this machine.
pub(crate) fn is_local(path: &Path) -> bool {
    let system = path.ancestors().find_map(|path| rustix::fs::statfs(path).ok());
    system.is_some_and(|system| LOCAL.contains(&system.f_type))
}

/// The device of `path`, or of its nearest existing parent.
pub(crate) fn device(path: &Path) -> Option<u64> {
    path.ancestors().find_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_is_local_and_what_the_kernel_makes_up_is_not_known() {
        assert!(is_local(Path::new("/dev/shm/no/such/directory")));
        assert!(!is_local(Path::new("/proc/self")));
        assert_ne!(device(Path::new("/dev/shm/no/such")), device(Path::new("/proc")));
    }
}
