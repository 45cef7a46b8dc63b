//! The C interface by which NVTX hands its functions to a tool (NVTX 3, `nvtxTypes.h` and `nvToolsExt.h`), as far as gyan uses it.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

/// Finds a table of NVTX by its number.
pub(crate) type GetExportTable = extern "C-unwind" fn(u32) -> *const NvtxTable;

/// What a range returns when the tool does not count how deep it is (`NVTX_NO_PUSH_POP_TRACKING`).
pub(crate) const UNCOUNTED: c_int = -2;

/// The number of the table of callbacks (`NVTX_ETID_CALLBACKS`).
const CALLBACKS: u32 = 1;
/// The functions without and with a domain (`NVTX_CB_MODULE_CORE`, `NVTX_CB_MODULE_CORE2`).
const CORE: c_int = 1;
const CORE2: c_int = 5;

/// How a range is named (`nvtxMessageType_t`).
const NARROW: i32 = 1;
const WIDE: i32 = 2;
const REGISTERED: i32 = 3;

/// The places of the functions of a module: each has the address of a function pointer of the program.
type NvtxPlaces = *mut *mut *const c_void;

/// The table of callbacks (`NvtxExportTableCallbacks`).
#[repr(C)]
pub(crate) struct NvtxTable {
    struct_size: usize,
    module: extern "C-unwind" fn(c_int, *mut NvtxPlaces, *mut c_uint) -> c_int,
}

/// What a range is (`nvtxEventAttributes_v2`).
#[repr(C)]
pub(crate) struct RangeAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// A function that gyan gives to NVTX.
pub(crate) enum NvtxCallback {
    PushAttributes(extern "C-unwind" fn(*const RangeAttributes) -> c_int),
    Push(extern "C-unwind" fn(*const c_char) -> c_int),
    PushWide(extern "C-unwind" fn(*const libc::wchar_t) -> c_int),
    Pop(extern "C-unwind" fn() -> c_int),
    PushInDomain(extern "C-unwind" fn(*const c_void, *const RangeAttributes) -> c_int),
    PopInDomain(extern "C-unwind" fn(*const c_void) -> c_int),
    Register(extern "C-unwind" fn(*const c_void, *const c_char) -> *const c_char),
    RegisterWide(extern "C-unwind" fn(*const c_void, *const libc::wchar_t) -> *const c_char),
}

impl NvtxCallback {
    /// Its module, its number there (`NvtxCallbackIdCore`, `NvtxCallbackIdCore2`), and the function.
    fn numbered(&self) -> (c_int, usize, *const c_void) {
        match *self {
            NvtxCallback::PushAttributes(callback) => (CORE, 8, callback as *const c_void),
            NvtxCallback::Push(callback) => (CORE, 9, callback as *const c_void),
            NvtxCallback::PushWide(callback) => (CORE, 10, callback as *const c_void),
            NvtxCallback::Pop(callback) => (CORE, 11, callback as *const c_void),
            NvtxCallback::PushInDomain(callback) => (CORE2, 4, callback as *const c_void),
            NvtxCallback::PopInDomain(callback) => (CORE2, 5, callback as *const c_void),
            NvtxCallback::Register(callback) => (CORE2, 10, callback as *const c_void),
            NvtxCallback::RegisterWide(callback) => (CORE2, 11, callback as *const c_void),
        }
    }
}

/// Has NVTX call these from now on; false when it has no place for one of them.
pub(crate) fn set_callbacks(get_table: GetExportTable, callbacks: &[NvtxCallback]) -> bool {
    let table = get_table(CALLBACKS);
    // SAFETY: null or a table of NVTX, which stays and begins with its size.
    let Some(table) = (unsafe { table.as_ref() }) else { return false };
    table.struct_size >= size_of::<NvtxTable>()
        && callbacks.iter().all(|callback| {
            let (module, number, callback) = callback.numbered();
            let (mut places, mut size) = (ptr::null_mut(), 0);
            let is_there = (table.module)(module, &raw mut places, &raw mut size) != 0;
            if !is_there || places.is_null() || number >= size as usize {
                return false;
            }
            // SAFETY: NVTX has `size` places.
            let place = unsafe { places.add(number) };
            // SAFETY: one of these places.
            let place = unsafe { *place };
            // SAFETY: null or the address of one of its function pointers. It calls none of these before this function returns.
            unsafe { place.as_mut() }.map(|place| *place = callback).is_some()
        })
}

/// The name of a range; none when it has none.
pub(crate) fn name<'a>(attributes: *const RangeAttributes) -> Option<Cow<'a, CStr>> {
    // SAFETY: null or what the program describes the range by.
    let attributes = unsafe { attributes.as_ref() }?;
    let is_whole = usize::from(attributes.size) >= size_of::<RangeAttributes>();
    match attributes.message_type {
        _ if !is_whole || attributes.message.is_null() => None,
        // A registered name is the string that `NvtxCallback::Register` returned for it.
        // SAFETY: NVTX says that it is a C string.
        NARROW | REGISTERED => Some(unsafe { CStr::from_ptr(attributes.message.cast()) }.into()),
        WIDE => Some(narrowed(attributes.message.cast()).into()),
        _ => None,
    }
}

/// A wide string of the program in UTF-8; empty for null.
pub(crate) fn narrowed(wide: *const libc::wchar_t) -> CString {
    let letter = |at: usize| {
        // SAFETY: a wide string of the program, of which every letter up to here was not the last.
        let place = (!wide.is_null()).then(|| unsafe { wide.add(at) });
        // SAFETY: as above.
        let letter = place.map_or(0, |place| unsafe { *place });
        (letter != 0).then(|| u32::try_from(letter).ok().and_then(char::from_u32).unwrap_or('?'))
    };
    let text: String = (0..).map_while(letter).collect();
    // There is no zero in it.
    CString::new(text).unwrap_or_default()
}
