//! What is mapped where in a process? `/proc/PID/maps`, proc(5).

use std::fs;
use std::io;
use std::ops::Range;

/// A part of a process's memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    pub(super) is_code: bool,
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Also `[vdso]` and the like; empty for memory without a name.
    pub(super) path: String,
}

#[derive(Default)]
pub(super) struct Maps(Vec<Mapping>);

impl Maps {
    pub(super) fn read(pid: u32) -> io::Result<Maps> {
        fs::read_to_string(format!("/proc/{pid}/maps")).map(|text| Maps::parse(&text))
    }

    pub(super) fn of_parts(parts: Vec<Mapping>) -> Maps {
        Maps(parts)
    }

    pub(super) fn parse(text: &str) -> Maps {
        Maps(text.lines().filter_map(mapping).collect())
    }

    pub(super) fn has_code(&self, address: u64) -> bool {
        self.code().any(|code| code.range.contains(&address))
    }

    pub(super) fn code(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter().filter(|mapping| mapping.is_code)
    }

    pub(super) fn at(&self, address: u64) -> Option<&Mapping> {
        self.0.iter().find(|mapping| mapping.range.contains(&address))
    }

    pub(super) fn end_of(&self, address: u64) -> Option<u64> {
        self.at(address).map(|mapping| mapping.range.end)
    }
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(begin)?..number(end)?;
    let is_code = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let path = line.find(['/', '[']).and_then(|at| line.get(at..)).unwrap_or_default();
    Some(Mapping { range, is_code, offset, path: path.to_owned() })
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_mapped() {
        let maps = Maps::parse(
            "55d0-55d4 r-xp 00001000 08:02 173521      /usr/bin/a b\n\
             7ffd-7fff rw-p 00000000 00:00 0           [stack]\n\
             8000-9000 rwxp 00000000 00:00 0 \n\
             nonsense\n",
        );
        assert_eq!(maps.at(0x55d1).unwrap().path, "/usr/bin/a b");
        assert_eq!((maps.at(0x55d1).unwrap().offset, maps.end_of(0x7ffe)), (0x1000, Some(0x7fff)));
        assert_eq!(
            maps.code().map(|code| code.path.as_str()).collect::<Vec<_>>(),
            ["/usr/bin/a b", ""]
        );
        assert_eq!(maps.end_of(0x7fff), None);
    }
}
