//! Which objects are loaded, and where?

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::{ptr, slice};

use crate::sys::peek::element;

/// A loaded program or library.
pub(crate) struct ElfObject<'a> {
    /// Its file; empty for the program.
    pub(crate) name: &'a CStr,
    /// The offset of addresses in memory from those in the file.
    pub(crate) base: usize,
    headers: &'a [libc::Elf64_Phdr],
}

impl ElfObject<'_> {
    /// Where the segments of a kind are in memory.
    pub(crate) fn segments(&self, kind: u32) -> impl Iterator<Item = Range<usize>> {
        self.headers.iter().filter(move |header| header.p_type == kind).map(|header| {
            let start = self.base.wrapping_add(usize::try_from(header.p_vaddr).unwrap_or(0));
            start..start.saturating_add(usize::try_from(header.p_memsz).unwrap_or(0))
        })
    }

    /// From the first address of it to the last.
    pub(crate) fn range(&self) -> Range<usize> {
        let whole = self
            .segments(libc::PT_LOAD)
            .reduce(|whole, segment| whole.start.min(segment.start)..whole.end.max(segment.end));
        whole.unwrap_or(0..0)
    }

    /// Its build id in hexadecimal digits, when it has one (ELF note `NT_GNU_BUILD_ID`).
    pub(crate) fn build_id(&self) -> Option<String> {
        const GNU_BUILD_ID: u32 = 3;
        const HEADER: usize = 3;
        let segments = self.segments(libc::PT_NOTE);
        let mut notes = segments.flat_map(|segment| {
            let mut at = segment.start;
            std::iter::from_fn(move || {
                if at.saturating_add(HEADER * size_of::<u32>()) > segment.end {
                    return None;
                }
                // SAFETY: a note begins with three words: the lengths of name and content, and the kind.
                let [name, content, kind] =
                    [0, 1, 2].map(|word| unsafe { element::<u32>(at, word) });
                let name_at = at + HEADER * size_of::<u32>();
                let content_at = name_at.checked_add((name as usize).next_multiple_of(4))?;
                at = content_at.checked_add((content as usize).next_multiple_of(4))?;
                let is_inside = content_at.checked_add(content as usize)? <= segment.end;
                is_inside.then_some((
                    kind,
                    name,
                    name_at,
                    content_at..content_at + content as usize,
                ))
            })
        });
        let (.., content) = notes.find(|(kind, name, name_at, _)| {
            // SAFETY: the name is inside the segment, and has this many bytes.
            let is_gnu = || unsafe { element::<[u8; 4]>(*name_at, 0) } == *b"GNU\0";
            *kind == GNU_BUILD_ID && *name == 4 && is_gnu()
        })?;
        // SAFETY: the content is inside the segment.
        let bytes = content.map(|at| unsafe { element::<u8>(at, 0) });
        let digit = |half: u8| char::from_digit(half.into(), 16);
        Some(bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect())
    }

    /// Whether it is libgyan.so, or the program that contains gyan.
    pub(crate) fn is_own(&self) -> bool {
        self.holds(visit_object as *const () as usize)
    }

    /// Whether something of it is at that address.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.segments(libc::PT_LOAD).any(|segment| segment.contains(&address))
    }
}

type Visit<'a> = &'a mut dyn FnMut(&ElfObject);

/// Visits every loaded object. The loader is locked meanwhile, so `visit` must not call it.
pub(crate) fn each(mut visit: Visit) {
    // SAFETY: `visit_object` gets back the pointer to `visit`, which outlives the iteration.
    unsafe { libc::dl_iterate_phdr(Some(visit_object), ptr::from_mut(&mut visit).cast()) };
}

/// How many objects were loaded so far, and how many unloaded.
type Changes = (u64, u64);

fn changes() -> Option<Changes> {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        size: usize,
        changes: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller passed a pointer to its variable, and does not use it meanwhile.
        let changes = unsafe { &mut *changes.cast::<Option<Changes>>() };
        if size >= size_of::<libc::dl_phdr_info>() {
            // SAFETY: dl_iterate_phdr passes a valid `info` of that size.
            let info = unsafe { &*info };
            *changes = Some((info.dlpi_adds, info.dlpi_subs));
        }
        1
    }
    let mut changes = None;
    // SAFETY: `first` gets back the pointer to `changes`, which outlives the iteration.
    unsafe { libc::dl_iterate_phdr(Some(first), ptr::from_mut(&mut changes).cast()) };
    changes
}

/// What follows from the objects that are loaded: found again only when one was loaded or unloaded since.
pub(crate) struct OfLoaded<T>(Mutex<Option<(Changes, Arc<T>)>>);

impl<T> OfLoaded<T> {
    pub(crate) const fn new() -> OfLoaded<T> {
        OfLoaded(Mutex::new(None))
    }

    pub(crate) fn get(&self, find: impl FnOnce() -> T) -> Arc<T> {
        // Another thread finds it, or did when this process was copied.
        let Ok(mut known) = self.0.try_lock() else { return Arc::new(find()) };
        // An object that comes while it is found changes them once more.
        let changes = changes();
        if let Some((then, found)) = &*known
            && Some(*then) == changes
        {
            return Arc::clone(found);
        }
        let found = Arc::new(find());
        *known = changes.map(|changes| (changes, Arc::clone(&found)));
        found
    }
}

unsafe extern "C" fn visit_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    visit: *mut c_void,
) -> c_int {
    // SAFETY: the caller passed a pointer to its closure and does not use it otherwise meanwhile.
    let visit = unsafe { &mut *visit.cast::<Visit>() };
    // SAFETY: dl_iterate_phdr passes a valid `info`.
    let info = unsafe { &*info };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the name of a loaded object, a C string.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    visit(&ElfObject {
        name,
        base: usize::try_from(info.dlpi_addr).unwrap_or(0),
        // SAFETY: the program headers of a loaded object, which the loader keeps loaded meanwhile.
        headers: unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) },
    });
    0
}
/// The name of a library, without `lib` and `.so`, from the path of its file.
pub(crate) fn library(file: &str) -> Option<&str> {
    let (_, name) = file.rsplit_once('/').unwrap_or(("", file));
    let (name, _) = name.split_once(".so")?;
    let name = name.strip_prefix("lib").unwrap_or(name);
    // Python wheels add a hash to the names of their libraries: `libucp-5e6b4b2a.so.0`.
    let is_hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(match name.rsplit_once('-') {
        Some((name, hash)) if is_hash(hash) => name,
        _ => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_loaded_objects_is_found_again_when_one_was_loaded_or_unloaded() {
        static NUMBER: OfLoaded<usize> = OfLoaded::new();
        let number = || {
            let mut number = 0;
            each(&mut |_| number += 1);
            number
        };
        // Other tests may load a library in between.
        assert!((0..1000).any(|_| Arc::ptr_eq(&NUMBER.get(number), &NUMBER.get(number))));
        let before = NUMBER.get(number);
        // SAFETY: a library of the C library, which has no initialiser.
        let library = unsafe { libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null());
        let with_it = NUMBER.get(number);
        assert!(!Arc::ptr_eq(&with_it, &before));
        // SAFETY: opened above, and used by nobody.
        unsafe { libc::dlclose(library) };
        assert!(!Arc::ptr_eq(&NUMBER.get(number), &with_it));
        // While it is asked for by another, each finds it anew.
        let held = NUMBER.0.lock().unwrap();
        assert!(!Arc::ptr_eq(&NUMBER.get(number), &NUMBER.get(number)));
        drop(held);
    }
}
