//! Where in the program does a call come from? As addresses while it runs; as files and addresses in them at
//! the end.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use gyan_results::{Address, LoadedObject};

use crate::sys::elf_objects::OfLoaded;
use crate::sys::locks::held;
use crate::sys::{elf_objects, python};

/// Prefixes of the names of libraries that forward calls of the program to MPI's C functions: bindings of other
/// languages.
const OF_MPI: &[&str] = &["libmpi", "libompi"];

/// Ranges of code that is not the program's.
static PASSED_OVER: OnceLock<Vec<Range<usize>>> = OnceLock::new();
/// Where the program's own file is.
static PROGRAM: OnceLock<Range<usize>> = OnceLock::new();

/// The objects that the program unloaded after calls had come from some object.
static GONE: Mutex<Vec<LoadedObject>> = Mutex::new(Vec::new());
const GONE_AT_MOST: usize = 1 << 10;
/// What stands for an address in one of them has this bit, the object's number from [`GONE_NUMBER`] on, and the
/// address in its file. No program has an address there.
const IS_GONE: usize = 1 << 62;
const GONE_NUMBER: u32 = 48;

fn gone() -> MutexGuard<'static, Vec<LoadedObject>> {
    // Each change is one call of `push`.
    held(&GONE)
}

pub(crate) fn none_is_gone() -> bool {
    gone().is_empty()
}

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

/// The object that the program has unloaded and the address in its file, for which an address stands.
fn of_gone(address: usize) -> Option<(LoadedObject, usize)> {
    let rest = address.checked_sub(IS_GONE).filter(|rest| *rest < IS_GONE)?;
    let object = gone().get(rest >> GONE_NUMBER)?.clone();
    Some((object, rest & ((1 << GONE_NUMBER) - 1)))
}

/// Where an object is, its base, and what it is.
type MappedObject = (Range<usize>, usize, LoadedObject);

/// The objects that are loaded, and where.
pub(crate) struct Map {
    objects: Arc<Vec<MappedObject>>,
    /// Whether the program has unloaded any.
    some_are_gone: bool,
    /// The objects that addresses were asked for.
    used: Vec<LoadedObject>,
}

impl Map {
    pub(crate) fn now() -> Map {
        static OBJECTS: OfLoaded<Vec<MappedObject>> = OfLoaded::new();
        let objects = OBJECTS.get(|| {
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
            objects
        });
        Map { objects, some_are_gone: !none_is_gone(), used: Vec::new() }
    }

    /// The object at an address, and its base.
    fn object_at(&self, address: usize) -> Option<&MappedObject> {
        self.objects.iter().find(|(range, ..)| range.contains(&address))
    }

    /// Leaves the objects that the program has unloaded since, and remembers those.
    pub(crate) fn only_gone(mut self) -> Map {
        let now = Map::now();
        let was_unloaded = |object: &&MappedObject| !now.objects.contains(object);
        self.objects = Arc::new(self.objects.iter().filter(was_unloaded).cloned().collect());
        let mut gone = gone();
        for (.., object) in self.objects.iter() {
            if gone.len() < GONE_AT_MOST && !gone.contains(object) {
                gone.push(object.clone());
            }
        }
        self.some_are_gone = !gone.is_empty();
        drop(gone);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// What stands for an address in an object that the program has unloaded at least once: the same wherever it
    /// was. Any other address stands for itself.
    pub(crate) fn lasting(&self, address: usize) -> usize {
        if !self.some_are_gone {
            return address;
        }
        let lasting = self.object_at(address).and_then(|(_, base, object)| {
            let number = gone().iter().position(|gone| gone == object)?;
            let address = address.checked_sub(*base).filter(|at| at >> GONE_NUMBER == 0)?;
            Some(IS_GONE | number << GONE_NUMBER | address)
        });
        lasting.unwrap_or(address)
    }

    /// The address for which this one stands, if the object is loaded.
    pub(crate) fn present(&self, lasting: usize) -> usize {
        let present = of_gone(lasting).and_then(|(object, address)| {
            let (_, base, _) = self.objects.iter().find(|(.., loaded)| *loaded == object)?;
            Some(base.wrapping_add(address))
        });
        present.unwrap_or(lasting)
    }

    pub(crate) fn address(&mut self, address: usize) -> Address {
        let at_hand = self.object_at(address);
        let known = at_hand.map(|(_, base, object)| (object.clone(), address.wrapping_sub(*base)));
        let Some((object, address)) = known.or_else(|| of_gone(address)) else {
            return Address { object: None, address: address as u64 };
        };
        let known = self.used.iter().position(|used| *used == object);
        let at = known.unwrap_or_else(|| {
            self.used.push(object);
            self.used.len() - 1
        });
        Address { object: Some(at), address: address as u64 }
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
