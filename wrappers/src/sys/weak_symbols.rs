//! Which symbols do the loaded objects refer to, and what do those resolve to?
//!
//! A program can ask by a weak reference whether its MPI has a function. mpi4py does, and uses an alternative
//! if the answer is no. The answer is in a slot that the dynamic loader fills in when it loads the object: with
//! gyan in front it is gyan's entry point, whatever the MPI library has. So at the start the slots that lead to
//! an entry point without a next definition are set to null, as without gyan. References that are not weak are
//! left alone: the loader would never have left those empty.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_void};
use std::ops::Range;

use crate::sys::elf_objects::{self, ElfObject};
use crate::sys::elf_symbols::Reference;
use crate::sys::symbols;

/// Sets weak references to functions that the MPI library lacks to null, in every loaded object.
pub(crate) fn restore() {
    let mut objects = Objects { own: 0..0, work: Work::FindOwn };
    objects.visit();
    objects.work = Work::Collect(HashSet::new());
    objects.visit();
    let Work::Collect(names) = objects.work else { return };
    // Not during the visit, while the loader is locked.
    let lacking: HashSet<CString> =
        names.into_iter().filter(|name| symbols::next(name).is_none()).collect();
    if !lacking.is_empty() {
        objects.work = Work::Clear(lacking);
        objects.visit();
    }
}

/// Whether a loaded object has a strong reference to `name`: without a definition the dynamic loader would have
/// ended the program. A symbol that is only looked up with `dlsym` is not needed.
pub(crate) fn is_needed(name: &CStr) -> bool {
    let mut objects = Objects { own: 0..0, work: Work::FindNeed { name, needed: false } };
    objects.visit();
    matches!(objects.work, Work::FindNeed { needed: true, .. })
}

struct Objects<'a> {
    /// The address range of libgyan.so.
    own: Range<usize>,
    work: Work<'a>,
}

enum Work<'a> {
    FindNeed {
        name: &'a CStr,
        needed: bool,
    },
    FindOwn,
    /// The names that weak references to gyan stand for.
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
    unsafe fn see(&mut self, object: &ElfObject) {
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
            // Those of calls do not matter: nothing examines their slots.
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

impl ElfObject<'_> {
    /// Writes null to a slot, even if the loader made it read-only after filling it in.
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
            // SAFETY: a page of data of this object; its content is only ever read, and it stays readable.
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
        // Every object that GCC links has a weak reference to this symbol, and no C library defines it.
        assert!(!is_needed(c"__gmon_start__"));
        assert!(!is_needed(c"gyan_no_such_symbol"));
    }
}
