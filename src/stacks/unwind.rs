//! Which calls led to a place in the code? From the call frame information (`.eh_frame`) of what is mapped, and the frame
//! pointer where there is none. A stack may hold anything, so nothing in it is believed: depth and memory are bounded.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder as _, UnwinderNative,
};
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef, SegmentFlags, elf,
};

use super::maps::{Mapping, Maps};
use super::stop::{self, Copied};

/// More calls than this are not followed.
const DEPTH_AT_MOST: usize = 256;
/// The kernel's own library in each process, which is in no file.
const VDSO: &str = "[vdso]";
/// It is smaller.
const VDSO_BYTES: usize = 1 << 20;

/// The files that ranks run, each read once.
#[derive(Default)]
pub(super) struct ObjectFiles(BTreeMap<String, Option<Arc<Sections>>>);

/// What is needed of an object.
#[derive(Debug)]
struct Sections {
    /// The address, as in its symbol table, where it begins.
    begin: u64,
    /// Of its code: where it is in the file, and at which address.
    code: Vec<(u64, u64, u64)>,
    eh_frame: Option<UnwindSection>,
    eh_frame_hdr: Option<UnwindSection>,
}

#[derive(Clone, Debug)]
struct UnwindSection {
    address: u64,
    bytes: Arc<[u8]>,
}

impl UnwindSection {
    fn range(&self) -> std::ops::Range<u64> {
        self.address..self.address.saturating_add(self.bytes.len() as u64)
    }
}

impl ObjectFiles {
    /// `pid`: none for a process that has ended.
    pub(super) fn unwinder(&mut self, pid: Option<u32>, maps: &Maps) -> Unwinder {
        let mut unwinder = UnwinderNative::new();
        for mapping in maps.code() {
            let sections = if let Some(known) = self.0.get(&mapping.path) {
                known.clone()
            } else {
                let read = sections_of(pid, mapping).map(Arc::new);
                self.0.entry(mapping.path.clone()).or_insert(read).clone()
            };
            if let Some(module) = sections.and_then(|sections| sections.module(mapping)) {
                unwinder.add_module(module);
            }
        }
        Unwinder(unwinder)
    }
}

fn sections_of(pid: Option<u32>, mapping: &Mapping) -> Option<Sections> {
    if mapping.path == VDSO {
        let length = mapping.range.end.checked_sub(mapping.range.start)?;
        let length = usize::try_from(length).ok()?.min(VDSO_BYTES);
        let bytes = stop::memory(pid?, mapping.range.start, length).ok()?;
        return Sections::parse(bytes.as_slice());
    }
    let file = gyan_results::open_regular(Path::new(&mapping.path)).ok()?;
    Sections::parse(&ReadCache::new(file))
}

impl Sections {
    fn parse<'a>(data: impl ReadRef<'a>) -> Option<Sections> {
        let object = object::File::parse(data).ok()?;
        let section = |name: &str| {
            let section = object.section_by_name(name)?;
            Some(UnwindSection { address: section.address(), bytes: section.data().ok()?.into() })
        };
        let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & elf::PF_X.0 != 0);
        let code = object.segments().filter(|segment| is_code(segment.flags())).map(|segment| {
            let (begin, size) = segment.file_range();
            (begin, size, segment.address())
        });
        Some(Sections {
            begin: object.segments().map(|segment| segment.address()).min()?,
            code: code.collect(),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
        })
    }

    /// The same where it is mapped.
    fn module(&self, mapping: &Mapping) -> Option<Module<Arc<[u8]>>> {
        let length = mapping.range.end.checked_sub(mapping.range.start)?;
        let end = mapping.offset.checked_add(length)?;
        let is_here = |begin: u64, size: u64| {
            begin < end && begin.checked_add(size).is_some_and(|last| last > mapping.offset)
        };
        let (begin, _, address) =
            self.code.iter().find(|(begin, size, _)| is_here(*begin, *size))?;
        // What is at an offset of the file is this far from where the symbol table has it.
        let moved = mapping.range.start.wrapping_sub(mapping.offset).wrapping_add(*begin);
        let moved = moved.wrapping_sub(*address);
        let range = |section: &Option<UnwindSection>| section.as_ref().map(UnwindSection::range);
        let bytes =
            |section: &Option<UnwindSection>| section.as_ref().map(|section| section.bytes.clone());
        let sections = ExplicitModuleSectionInfo {
            base_svma: self.begin,
            eh_frame_svma: range(&self.eh_frame),
            eh_frame: bytes(&self.eh_frame),
            eh_frame_hdr_svma: range(&self.eh_frame_hdr),
            eh_frame_hdr: bytes(&self.eh_frame_hdr),
            ..ExplicitModuleSectionInfo::default()
        };
        let base = moved.wrapping_add(self.begin);
        Some(Module::new(mapping.path.clone(), mapping.range.clone(), base, sections))
    }
}

/// For one process.
pub(super) struct Unwinder(UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>);

/// The way to where a thread is.
#[derive(Debug, Default)]
pub(super) struct Unwound {
    /// Where the thread is, and then where each call was made, up to the outermost.
    pub(super) addresses: Vec<u64>,
    /// Whether there are more calls, or may be.
    pub(super) is_cut: bool,
    pub(super) needs_more: bool,
}

impl Unwinder {
    pub(super) fn unwind(&self, copy: &Copied) -> Unwound {
        let mut cache = CacheNative::<MayAllocateDuringUnwind>::new();
        let needs_more = Cell::new(false);
        let mut read = |address: u64| {
            needs_more.set(needs_more.get() || copy.is_beyond(address));
            copy.word(address).ok_or(())
        };
        let (pc, registers) = (copy.registers.pc, registers(copy));
        let mut frames = self.0.iter_frames(pc, registers, &mut cache, &mut read);
        let mut unwound = Unwound { is_cut: true, ..Unwound::default() };
        while unwound.addresses.len() < DEPTH_AT_MOST {
            match frames.next() {
                Ok(Some(frame)) => unwound.addresses.push(frame.address_for_lookup()),
                Ok(None) => {
                    unwound.is_cut = false;
                    break;
                }
                Err(_) => break,
            }
        }
        unwound.needs_more = needs_more.get();
        unwound
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(copy: &Copied) -> UnwindRegsNative {
    let stop::Registers { pc, sp, fp, .. } = copy.registers;
    UnwindRegsNative::new(pc, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn registers(copy: &Copied) -> UnwindRegsNative {
    let stop::Registers { sp, fp, lr, .. } = copy.registers;
    // User space has addresses of at most 48 bits; the others may authenticate a return address.
    let mask = framehop::aarch64::PtrAuthMask(u64::MAX >> 16);
    UnwindRegsNative::new_with_ptr_auth_mask(mask, lr, sp, fp)
}
