//! Which functions does a loaded object define, and to which symbols of others does it refer?
//!
//! Answered from the object's own tables (ELF-64), not with `dlsym`: that mistakes the stub in a program that
//! is not position-independent for a definition, and asks the loader once for every name.

use std::ffi::{CStr, c_char};

use crate::sys::elf_objects::ElfObject;
use crate::sys::peek::element;

/// A reference to a symbol that the object does not define.
pub(crate) struct Reference<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) weak: bool,
    /// Where its address is stored, unless it is for a call.
    pub(crate) slot: Option<*mut usize>,
}

/// An entry of a dynamic section.
#[derive(Clone, Copy)]
#[repr(C)]
struct SymbolEntry {
    tag: u64,
    value: u64,
}

/// A relocation with an addend.
#[derive(Clone, Copy)]
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// The addresses of an object's tables; 0 for missing ones.
#[derive(Default)]
struct Tables {
    strings: usize,
    symbols: usize,
    hash: usize,
    gnu_hash: usize,
    /// Address and size of the relocations for addresses, and of those for calls.
    relocations: [(usize, usize); 2],
}

const PLT_RELOCATION_BYTES: u64 = 2;
const HASH: u64 = 4;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELOCATIONS: u64 = 7;
const RELOCATION_BYTES: u64 = 8;
const PLT_RELOCATIONS: u64 = 23;
const GNU_HASH: u64 = 0x6fff_fef5;
const WEAK: u8 = 2;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;
const UNDEFINED: u16 = 0;

/// The relocation types for the address of a symbol.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u64; 2] = [1, 6];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u64; 2] = [257, 1025];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ADDRESSES: [u64; 0] = [];

impl ElfObject<'_> {
    /// Every reference to a symbol that the object does not define.
    ///
    /// # Safety
    ///
    /// The object is loaded, and stays loaded meanwhile.
    pub(crate) unsafe fn references(&self) -> Vec<Reference<'_>> {
        let mut found = Vec::new();
        // SAFETY: the caller's.
        let Some(tables) = (unsafe { self.tables() }) else { return found };
        for (table, bytes) in tables.relocations {
            let count = if table == 0 { 0 } else { bytes / size_of::<Relocation>() };
            for index in 0..count {
                // SAFETY: the table has this many relocations.
                let relocation: Relocation = unsafe { element(table, index) };
                let number = usize::try_from(relocation.info >> 32).unwrap_or(0);
                // Most have no symbol: they are for where the object itself is.
                if number == 0 {
                    continue;
                }
                // SAFETY: a relocation names a symbol of the object by its number.
                let symbol: libc::Elf64_Sym = unsafe { element(tables.symbols, number) };
                if symbol.st_shndx != UNDEFINED {
                    continue;
                }
                let at = self.base.wrapping_add(usize::try_from(relocation.offset).unwrap_or(0));
                let is_address = ADDRESSES.contains(&(relocation.info & 0xffff_ffff));
                found.push(Reference {
                    // SAFETY: the symbol is one of this object.
                    name: unsafe { tables.name(&symbol) },
                    weak: symbol.st_info >> 4 == WEAK,
                    slot: (is_address && relocation.addend == 0).then_some(at as *mut usize),
                });
            }
        }
        found
    }

    /// The names of the functions that the object defines for others.
    ///
    /// # Safety
    ///
    /// The object is loaded, and stays loaded meanwhile.
    pub(crate) unsafe fn definitions(&self) -> impl Iterator<Item = &CStr> {
        // SAFETY: the caller's.
        let tables = unsafe { self.tables() }.unwrap_or_default();
        // SAFETY: the caller's.
        let (first, end) = unsafe { tables.defined() };
        (first..end).filter_map(move |number| {
            // SAFETY: the table has symbols up to the end given by the hash table.
            let symbol: libc::Elf64_Sym = unsafe { element(tables.symbols, number) };
            let is_function = matches!(symbol.st_info & 0xf, FUNCTION | INDIRECT_FUNCTION);
            // SAFETY: the symbol is one of this object.
            (is_function && symbol.st_shndx != UNDEFINED).then(|| unsafe { tables.name(&symbol) })
        })
    }

    /// # Safety
    ///
    /// The object is loaded, and stays loaded meanwhile.
    unsafe fn tables(&self) -> Option<Tables> {
        let dynamic = self.segments(libc::PT_DYNAMIC).next()?;
        let mut tables = Tables::default();
        let [addresses, calls] = &mut tables.relocations;
        for index in 0.. {
            // SAFETY: the caller's; the section ends with an entry whose tag is 0.
            let SymbolEntry { tag, value } = unsafe { element(dynamic.start, index) };
            let value = usize::try_from(value).unwrap_or(0);
            // The loader relocates the addresses in this table to memory addresses, but not in all objects (the
            // kernel's is read-only).
            let address = if value < self.base { self.base.wrapping_add(value) } else { value };
            match tag {
                0 => break,
                HASH => tables.hash = address,
                GNU_HASH => tables.gnu_hash = address,
                STRINGS => tables.strings = address,
                SYMBOLS => tables.symbols = address,
                RELOCATIONS => addresses.0 = address,
                RELOCATION_BYTES => addresses.1 = value,
                PLT_RELOCATIONS => calls.0 = address,
                PLT_RELOCATION_BYTES => calls.1 = value,
                _ => {}
            }
        }
        (tables.strings != 0 && tables.symbols != 0).then_some(tables)
    }
}

impl Tables {
    /// # Safety
    ///
    /// The symbol is of the object with these tables, which stays loaded for `'a`.
    unsafe fn name<'a>(&self, symbol: &libc::Elf64_Sym) -> &'a CStr {
        let name = self.strings.wrapping_add(symbol.st_name as usize) as *const c_char;
        // SAFETY: a symbol's name is a C string in the table of strings.
        unsafe { CStr::from_ptr(name) }
    }

    /// The first symbol that may be defined, and the end of all. No table says how many symbols there are, but
    /// the hash table leads to the last.
    ///
    /// # Safety
    ///
    /// The object with these tables is loaded.
    unsafe fn defined(&self) -> (usize, usize) {
        if self.gnu_hash == 0 {
            let end = match self.hash {
                0 => 0,
                // SAFETY: the table begins with the numbers of buckets and of symbols.
                hash => unsafe { element::<u32>(hash, 1) },
            };
            return (0, end as usize);
        }
        // SAFETY: the table begins with four words: the number of buckets, the first symbol in it,
        // the number of 8-byte words of its filter, and a shift.
        let [buckets, first, filter] =
            [0, 1, 2].map(|word| unsafe { element::<u32>(self.gnu_hash, word) } as usize);
        let bucket = 4 + 2 * filter;
        // SAFETY: the buckets follow the filter.
        let starts = (0..buckets).map(|at| unsafe { element::<u32>(self.gnu_hash, bucket + at) });
        let Some(mut last) = starts.max().map(|start| start as usize).filter(|at| *at >= first)
        else {
            return (0, 0);
        };
        // After the buckets there is a word for each symbol; that of the last in a bucket is odd.
        let word = |symbol| bucket + buckets + symbol - first;
        // SAFETY: the bucket that begins last ends with the last symbol.
        while unsafe { element::<u32>(self.gnu_hash, word(last)) } & 1 == 0 {
            last += 1;
        }
        (first, last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::elf_objects;

    #[test]
    fn the_c_library_defines_its_functions_and_refers_to_those_of_the_loader() {
        let mut seen = 0;
        elf_objects::each(&mut |object| {
            if !object.name.to_bytes().ends_with(b"/libc.so.6") {
                return;
            }
            seen += 1;
            // SAFETY: an object stays loaded during the visit.
            let defined: Vec<&CStr> = unsafe { object.definitions() }.collect();
            // SAFETY: the same.
            let referred = unsafe { object.references() };
            for name in [c"getpid", c"memcpy", c"fopen"] {
                assert!(defined.contains(&name), "{name:?}");
            }
            assert!(!defined.contains(&c"environ") && !defined.contains(&c"__tls_get_addr"));
            assert!(referred.iter().any(|reference| reference.name == c"__tls_get_addr"));
        });
        assert_eq!(seen, 1);
    }
}
