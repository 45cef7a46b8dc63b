//! Where in the program does a call come from? As addresses while it runs; as files and addresses in them at
//! the end.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::OnceLock;

use gyan_results::{Address, LoadedObject};

use crate::sys::{elf_objects, python};

/// Prefixes of the names of libraries that forward calls of the program to MPI's C functions: bindings of other
/// languages.
const OF_MPI: &[&str] = &["libmpi", "libompi"];

/// Ranges of code that is not the program's.
static PASSED_OVER: OnceLock<Vec<Range<usize>>> = OnceLock::new();
/// Where the program's own file is.
static PROGRAM: OnceLock<Range<usize>> = OnceLock::new();

/// Finds where gyan and the MPI library are; they never move.
pub(crate) fn prepare() {
    python::prepare();
    PASSED_OVER.get_or_init(|| {
        let mut ranges = Vec::new();
        elf_objects::each(&mut |object| {
            let path = object.name.to_string_lossy();
            let file = path.rsplit('/').next().unwrap_or_default();
            if object.is_own() || OF_MPI.iter().any(|name| file.starts_with(name)) {
                ranges.push(object.range());
            }
        });
        ranges
    });
}

/// Whether an address is in gyan or in the MPI library.
pub(crate) fn is_passed_over(address: usize) -> bool {
    let ranges = PASSED_OVER.get().map(Vec::as_slice).unwrap_or_default();
    ranges.iter().any(|range| range.contains(&address))
}

/// Whether an address is in the program's own file.
pub(crate) fn is_of_program(address: usize) -> bool {
    let find = || {
        let mut program = 0..0;
        // The loader names it first, without a name.
        elf_objects::each(&mut |object| {
            if program.is_empty() && object.name.is_empty() {
                program = object.range();
            }
        });
        program
    };
    PROGRAM.get_or_init(find).contains(&address)
}

/// The objects that are loaded, and where.
pub(crate) struct Map {
    objects: Vec<(Range<usize>, usize, LoadedObject)>,
    /// The objects that addresses were asked for.
    used: Vec<LoadedObject>,
}

impl Map {
    pub(crate) fn now() -> Map {
        let mut objects = Vec::new();
        elf_objects::each(&mut |object| {
            let build_id = object.build_id();
            let path = object.name.to_string_lossy().into_owned();
            objects.push((object.range(), object.base, LoadedObject { path, build_id }));
        });
        // The loader does not name the program's file.
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        for (_, _, object) in &mut objects {
            if object.path.is_empty() {
                object.path = program.to_string_lossy().into_owned();
            }
        }
        Map { objects, used: Vec::new() }
    }

    pub(crate) fn address(&mut self, address: usize) -> Address {
        let mut objects = self.objects.iter();
        let Some((_, base, object)) = objects.find(|(range, ..)| range.contains(&address)) else {
            return Address { object: None, address: address as u64 };
        };
        let known = self.used.iter().position(|used| used == object);
        let at = known.unwrap_or_else(|| {
            self.used.push(object.clone());
            self.used.len() - 1
        });
        Address { object: Some(at), address: address.wrapping_sub(*base) as u64 }
    }

    pub(crate) fn used(self) -> Vec<LoadedObject> {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_the_file_that_it_comes_from() {
        let mut map = Map::now();
        let here = an_address_is_found_in_the_file_that_it_comes_from as *const () as usize;
        let address = map.address(here);
        assert_eq!(address.object, Some(0));
        assert_eq!(map.address(1).object, None);
        let used = map.used();
        assert_eq!(used.len(), 1);
        assert_eq!(used[0].path, std::env::current_exe().unwrap().to_string_lossy());
        assert!(used[0].build_id.as_ref().is_none_or(|id| id.len() >= 16), "{used:?}");
    }
}
