//! Files that the kernel writes as they are read (proc(5), sysfs(5), cgroups(7)).
//!
//! They have no size, by which the standard library's functions would choose how much to read at once: those begin with 32
//! bytes, and read the stat of a process in six parts.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::SplitAsciiWhitespace;

/// Most of them are shorter; the kernel gives out no more than a page of some at a time.
const AT_ONCE: usize = 4096;

pub(crate) fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(AT_ONCE);
    // A file as such would be asked for its size.
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// None if it cannot be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(path).ok()?).into_owned())
}

/// The fields of the stat of a process or a thread (proc(5)) from the third on: behind the name, which may contain anything.
pub(crate) fn stat_fields(stat: &str) -> Option<SplitAsciiWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_size_is_read_whole() {
        let maps = text("/proc/self/maps").unwrap();
        assert!(maps.len() > AT_ONCE && maps.contains("[stack]"));
        assert_eq!(text("/proc/self/no such file"), None);
    }
}
