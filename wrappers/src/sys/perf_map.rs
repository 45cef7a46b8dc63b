//! What are the names of code that the process generated, and that is in no file? Python with `-X perf`, and
//! just-in-time compilers, write them down for `perf`: `/tmp/perf-PID.map`, a line `START SIZE NAME` for each
//! function, numbers in hexadecimal digits.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;

/// A larger map is not read to its end.
const BYTES_AT_MOST: u64 = 64 << 20;

/// The functions of this process: start, and end and name.
pub(crate) struct Names(BTreeMap<u64, (u64, String)>);

impl Names {
    /// None when there is no such file, or it belongs to somebody else.
    pub(crate) fn read() -> Option<Names> {
        let path = format!("/tmp/perf-{}.map", std::process::id());
        // Not a file that anybody may have put there.
        let about = fs::symlink_metadata(&path).ok()?;
        let own = rustix::process::geteuid().as_raw();
        if !about.is_file() || about.uid() != own {
            return None;
        }
        let lines = BufReader::new(File::open(path).ok()?.take(BYTES_AT_MOST)).split(b'\n');
        let lines = lines.map_while(Result::ok);
        Some(Names(lines.filter_map(|line| function(&String::from_utf8_lossy(&line))).collect()))
    }

    pub(crate) fn name_at(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

fn function(line: &str) -> Option<(u64, (u64, String))> {
    let mut words = line.splitn(3, ' ');
    let mut number = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    Some((start, (start.checked_add(size)?, words.next()?.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_function_that_it_is_in() {
        let lines = ["1000 10 py::first:/a b.py", "0x1010 10 second", "nonsense", "2000 xyz third"];
        let names = Names(lines.iter().filter_map(|line| function(line)).collect());
        assert_eq!(names.name_at(0xfff), None);
        assert_eq!(names.name_at(0x100f), Some("py::first:/a b.py"));
        assert_eq!(names.name_at(0x1010), Some("second"));
        assert_eq!(names.name_at(0x1020), None);
    }
}
