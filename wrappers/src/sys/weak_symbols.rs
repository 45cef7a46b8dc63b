//! Which symbols do the loaded objects refer to, and what do they see?
//!
//! A program can ask by a weak reference whether its MPI has a function. mpi4py does, and takes
//! another way where the answer is no. The answer is in a slot that the
//! dynamic loader fills in when it loads the object: with gyan in front it is gyan's entry point,
//! whatever the MPI library has. So at the start the slots that lead to an entry point with nothing
//! behind it are set to null, as without gyan. References that are not weak are left alone: the
//! loader would not have left those empty.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Range;

use crate::sys::elf_objects::{self, Object};
use crate::sys::peek::element;
use crate::sys::symbols;

/// Sets the weak references to what the MPI library lacks to null, in every object that is loaded.
pub(crate) fn restore() {
    let mut objects = Objects { own: 0..0, work: Work::FindOwn };
    objects.visit();
    objects.work = Work::Collect(HashSet::new());
    objects.visit();
    let Work::Collect(names) = objects.work else { return };
    // Not during a visit, in which the loader is locked.
    let lacking: HashSet<CString> =
        names.into_iter().filter(|name| symbols::next(name).is_none()).collect();
    if !lacking.is_empty() {
        objects.work = Work::Clear(lacking);
        objects.visit();
    }
}

/// Whether a loaded object refers to `name` and does not say that it can do without: the dynamic
/// loader would have ended the program. A symbol that is only ever looked up by `dlsym` is not
/// needed.
pub(crate) fn is_needed(name: &CStr) -> bool {
    let mut objects = Objects { own: 0..0, work: Work::FindNeed { name, needed: false } };
    objects.visit();
    matches!(objects.work, Work::FindNeed { needed: true, .. })
}

struct Objects<'a> {
    /// The addresses of libgyan.so.
    own: Range<usize>,
    work: Work<'a>,
}

enum Work<'a> {
    FindNeed {
        name: &'a CStr,
        needed: bool,
    },
    FindOwn,
    /// The names of what weak references to gyan are for.
    Collect(HashSet<CString>),
    Clear(HashSet<CString>),
}

impl Objects<'_> {
    fn visit(&mut self) {
        // SAFETY: an object stays loaded while it is shown.
        elf_objects::each(&mut |object| unsafe { self.see(object) });
    }

    /// # Safety
    ///
    /// `object` is loaded, and stays so meanwhile.
    unsafe fn see(&mut self, object: &Object) {
        let is_own = object.is_own();
        if let Work::FindOwn = self.work {
            if is_own {
                self.own = object.range();
            }
            return;
        }
        if is_own {
            return;
        }
        // SAFETY: the caller's.
        for Reference { name, weak, slot } in unsafe { object.references() } {
            if let Work::FindNeed { name: wanted, needed } = &mut self.work {
                *needed |= !weak && name == *wanted;
                continue;
            }
            // Those of calls are of no interest: what their slots hold is looked at by nobody.
            let Some(slot) = slot.filter(|_| weak) else { continue };
            // SAFETY: a slot that the loader filled in.
            if !self.own.contains(&unsafe { slot.read() }) {
                continue;
            }
            match &mut self.work {
                Work::Collect(names) => _ = names.insert(name.to_owned()),
                // SAFETY: the slot is one of this object.
                Work::Clear(lacking) if lacking.contains(name) => unsafe { object.clear(slot) },
                Work::FindNeed { .. } | Work::FindOwn | Work::Clear(_) => {}
            }
        }
    }
}

/// A reference to a symbol that the object does not define.
struct Reference<'a> {
    name: &'a CStr,
    weak: bool,
    /// Where its address is, for one that is not of a call.
    slot: Option<*mut usize>,
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

const PLT_RELOCATION_BYTES: u64 = 2;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELOCATIONS: u64 = 7;
const RELOCATION_BYTES: u64 = 8;
const PLT_RELOCATIONS: u64 = 23;
const WEAK: u8 = 2;
const UNDEFINED: u16 = 0;

/// The relocations that are the address of a symbol.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u64; 2] = [1, 6];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u64; 2] = [257, 1025];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ADDRESSES: [u64; 0] = [];

impl Object<'_> {
    /// Every reference to a symbol that the object does not define.
    ///
    /// # Safety
    ///
    /// The object is loaded, and stays so meanwhile.
    unsafe fn references(&self) -> Vec<Reference<'_>> {
        let mut found = Vec::new();
        let Some(dynamic) = self.segments(libc::PT_DYNAMIC).next() else { return found };
        let (mut strings, mut symbols) = (0, 0);
        let (mut addresses, mut calls) = ((0, 0), (0, 0));
        for index in 0.. {
            // SAFETY: the caller's; the section ends with an entry whose tag is 0.
            let Entry { tag, value } = unsafe { element(dynamic.start, index) };
            let value = usize::try_from(value).unwrap_or(0);
            // The loader turns the addresses in the file to those in memory, but not in all
            // objects (the kernel's has none that can be written to).
            let address = if value < self.base { self.base.wrapping_add(value) } else { value };
            match tag {
                0 => break,
                STRINGS => strings = address,
                SYMBOLS => symbols = address,
                RELOCATIONS => addresses.0 = address,
                RELOCATION_BYTES => addresses.1 = value,
                PLT_RELOCATIONS => calls.0 = address,
                PLT_RELOCATION_BYTES => calls.1 = value,
                _ => {}
            }
        }
        if strings == 0 || symbols == 0 {
            return found;
        }
        for (table, bytes) in [addresses, calls] {
            let count = if table == 0 { 0 } else { bytes / size_of::<Relocation>() };
            for index in 0..count {
                // SAFETY: the table has so many relocations.
                let relocation: Relocation = unsafe { element(table, index) };
                let number = usize::try_from(relocation.info >> 32).unwrap_or(0);
                // SAFETY: a relocation names a symbol of the object by its number.
                let symbol: libc::Elf64_Sym = unsafe { element(symbols, number) };
                if symbol.st_shndx != UNDEFINED {
                    continue;
                }
                let name = strings.wrapping_add(symbol.st_name as usize) as *const c_char;
                let at = self.base.wrapping_add(usize::try_from(relocation.offset).unwrap_or(0));
                let is_address = ADDRESSES.contains(&(relocation.info & 0xffff_ffff));
                found.push(Reference {
                    // SAFETY: a symbol's name is a C string in the table of strings.
                    name: unsafe { CStr::from_ptr(name) },
                    weak: symbol.st_info >> 4 == WEAK,
                    slot: (is_address && relocation.addend == 0).then_some(at as *mut usize),
                });
            }
        }
        found
    }

    /// Writes null to a slot, also where the loader made it read-only after it had filled it in.
    ///
    /// # Safety
    ///
    /// The slot is one of this object, which is loaded.
    unsafe fn clear(&self, slot: *mut usize) {
        // SAFETY: sysconf may be called anywhere.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let start = slot as usize / page * page;
        // The loader protects whole pages only (RELRO).
        let protected = self.segments(libc::PT_GNU_RELRO).any(|segment| {
            (segment.start / page * page..segment.end / page * page).contains(&start)
        });
        let protect = |how| {
            // SAFETY: a page of data of this object; what is on it is only ever read, and it stays
            // readable.
            let result = unsafe { libc::mprotect(start as *mut c_void, page, how) };
            result == 0
        };
        if protected && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return;
        }
        // SAFETY: the slot is writable now. The program reads it whole or not at all.
        unsafe { slot.write_volatile(0) };
        if protected {
            protect(libc::PROT_READ);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_object_calls_is_needed() {
        // The C library, of the dynamic loader.
        assert!(is_needed(c"__tls_get_addr"));
        // Every object that GCC links asks for this one by a weak reference, and no C library has
        // it.
        assert!(!is_needed(c"__gmon_start__"));
        assert!(!is_needed(c"gyan_no_such_symbol"));
    }
}
