//! What is mapped where in a process? The lines of `/proc/PID/maps`, proc(5).

#![forbid(unsafe_code)]

use std::ops::Range;

/// A part of the memory of a process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MappedPart<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) is_code: bool,
    /// Where in the file it begins.
    pub(crate) offset: usize,
    /// The path of the file; none for other memory.
    pub(crate) path: Option<&'a [u8]>,
}

/// What the lines of `maps` say; takes no memory.
pub(crate) fn parts(maps: &[u8]) -> impl Iterator<Item = MappedPart<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(part)
}

fn part(line: &[u8]) -> Option<MappedPart<'_>> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let mut ends = fields.next()?.split(|byte| *byte == b'-').map(number);
    let range = ends.next()??..ends.next()??;
    let is_code = fields.next()?.contains(&b'x');
    let offset = number(fields.next()?)?;
    let path = line.iter().position(|byte| *byte == b'/').and_then(|at| line.get(at..));
    Some(MappedPart { range, is_code, offset, path })
}

fn number(text: &[u8]) -> Option<usize> {
    text.iter().try_fold(0_usize, |number, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        number.checked_mul(16)?.checked_add(digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_mapped() {
        let maps = b"55d0-55d4 r-xp 00001000 08:02 173521      /usr/bin/a b\n\
            7ffd-7fff rw-p 00000000 00:00 0           [stack]\n\
            nonsense\n\
            fffffffffffffffff-1 rw-p 0 00:00 0\n";
        let parts: Vec<MappedPart> = parts(maps).collect();
        let program = MappedPart {
            range: 0x55d0..0x55d4,
            is_code: true,
            offset: 0x1000,
            path: Some(b"/usr/bin/a b"),
        };
        let stack = MappedPart { range: 0x7ffd..0x7fff, is_code: false, offset: 0, path: None };
        assert_eq!(parts, [program, stack]);
    }
}
