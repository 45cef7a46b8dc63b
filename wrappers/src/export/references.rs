//! Does a loaded object need a symbol? What the dynamic loader would have ended the program for.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;

use crate::memory::element;

/// Whether a loaded object refers to `name` and does not say that it can do without (a weak
/// reference). A symbol that is only ever looked up by `dlsym` is not needed.
pub(super) fn is_needed(name: &CStr) -> bool {
    let mut search = Search { name, needed: false };
    // SAFETY: `look` gets back the pointer to `search`, which outlives the iteration.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.needed
}

struct Search<'a> {
    name: &'a CStr,
    needed: bool,
}

unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the caller passed a pointer to its Search and uses it for nothing else meanwhile.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: dl_iterate_phdr passes a valid `info`.
    let info = unsafe { &*info };
    // SAFETY: the program headers of a loaded object.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = usize::try_from(info.dlpi_addr).unwrap_or(0);
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
    if let Some(dynamic) = dynamic {
        let at = base.wrapping_add(usize::try_from(dynamic.p_vaddr).unwrap_or(0));
        // SAFETY: the dynamic section of a loaded object.
        search.needed |= unsafe { needs(base, at as *const Entry, search.name) };
    }
    c_int::from(search.needed)
}

/// An entry of a dynamic section (ELF-64).
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    tag: u64,
    value: u64,
}

/// A relocation with an addend (ELF-64).
#[derive(Clone, Copy)]
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// A symbol (ELF-64).
#[derive(Clone, Copy)]
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

const PLT_RELOCATION_BYTES: u64 = 2;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELOCATIONS: u64 = 7;
const RELOCATION_BYTES: u64 = 8;
const PLT_RELOCATIONS: u64 = 23;
const WEAK: u8 = 2;
const UNDEFINED: u16 = 0;

/// Whether a relocation of the object is for a symbol `name` that it does not define and that is
/// not weak.
///
/// # Safety
///
/// `entry` is the first entry of the dynamic section of an object that is loaded at `base`.
unsafe fn needs(base: usize, mut entry: *const Entry, name: &CStr) -> bool {
    let (mut strings, mut symbols) = (0, 0);
    let mut tables = [(0, 0); 2];
    let [relocations, plt] = &mut tables;
    loop {
        // SAFETY: the caller's; the section ends with an entry whose tag is 0.
        let Entry { tag, value } = unsafe { entry.read() };
        let value = usize::try_from(value).unwrap_or(0);
        // The loader has turned most of the addresses from those in the file to those in memory.
        let address = if value < base { base.wrapping_add(value) } else { value };
        match tag {
            0 => break,
            STRINGS => strings = address,
            SYMBOLS => symbols = address,
            RELOCATIONS => relocations.0 = address,
            RELOCATION_BYTES => relocations.1 = value,
            PLT_RELOCATIONS => plt.0 = address,
            PLT_RELOCATION_BYTES => plt.1 = value,
            _ => {}
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
    if strings == 0 || symbols == 0 {
        return false;
    }
    for (table, bytes) in tables {
        let count = if table == 0 { 0 } else { bytes / size_of::<Relocation>() };
        for index in 0..count {
            // SAFETY: the table has so many relocations.
            let relocation = unsafe { element::<Relocation>(table, index) };
            let number = usize::try_from(relocation.info >> 32).unwrap_or(0);
            // SAFETY: a relocation names a symbol of the object by its number.
            let symbol = unsafe { element::<Symbol>(symbols, number) };
            if symbol.section != UNDEFINED || symbol.info >> 4 == WEAK {
                continue;
            }
            let at = strings.wrapping_add(symbol.name as usize) as *const c_char;
            // SAFETY: a symbol's name is a C string in the table of strings.
            if unsafe { CStr::from_ptr(at) } == name {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_program_calls_is_needed() {
        assert!(is_needed(c"dl_iterate_phdr"));
        assert!(!is_needed(c"gyan_no_such_symbol"));
    }
}
