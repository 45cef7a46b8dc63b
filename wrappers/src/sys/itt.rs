//! The C interface by which Intel's ITT API hands its functions to a tool (`ittnotify_config.h`), as far as gyan uses it.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};

/// What the part of ITT inside of the program knows (`__itt_global`), up to the last field that gyan reads.
#[repr(C)]
pub(crate) struct IttGlobal {
    magic: [u8; 8],
    version: [c_ulong; 3],
    api_initialized: c_long,
    mutex_initialized: c_long,
    atomic_counter: c_long,
    mutex: libc::pthread_mutex_t,
    library: *mut c_void,
    error_handler: *mut c_void,
    path: *mut *const c_char,
    functions: *const IttFunction,
}

/// A function that a tool may give (`__itt_api_info`).
#[repr(C)]
struct IttFunction {
    name: *const c_char,
    pointer: *mut *const c_void,
    at_first: *const c_void,
    without_tool: *const c_void,
    group: c_int,
}

/// The id of a task (`__itt_id`).
#[repr(C)]
pub(crate) struct TaskId([u64; 3]);

/// A name (`__itt_string_handle`), as far as gyan reads it.
#[repr(C)]
pub(crate) struct TaskName {
    text: *const c_char,
}

/// A function that gyan gives to ITT.
pub(crate) enum IttCallback {
    TaskBegin(extern "C-unwind" fn(*const c_void, TaskId, TaskId, *const TaskName)),
    TaskEnd(extern "C-unwind" fn(*const c_void)),
}

impl IttCallback {
    fn named(&self) -> (&CStr, *const c_void) {
        match *self {
            IttCallback::TaskBegin(callback) => (c"__itt_task_begin", callback as *const c_void),
            IttCallback::TaskEnd(callback) => (c"__itt_task_end", callback as *const c_void),
        }
    }
}

/// The groups of functions that the program wants to be told of (`__itt_group_id`).
pub(crate) type IttGroups = c_uint;

/// Has ITT call these from now on. Other functions stay as they are, which return at once; ITT itself makes domains and names.
pub(crate) fn set_callbacks(global: *const IttGlobal, callbacks: &[IttCallback]) {
    // SAFETY: null or what ITT hands to a tool, which has these fields in each version that asks for one.
    let Some(global) = (unsafe { global.as_ref() }) else { return };
    let mut next = global.functions;
    // SAFETY: the list ends with one without a name.
    while let Some(function) = unsafe { next.as_ref() }.filter(|function| !function.name.is_null())
    {
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(function.name) };
        let given = callbacks.iter().map(IttCallback::named).find(|(named, _)| *named == name);
        // SAFETY: null or a function pointer of ITT, which it does not call before this function returns.
        if let (Some((_, callback)), Some(pointer)) = (given, unsafe { function.pointer.as_mut() })
        {
            *pointer = callback;
        }
        // SAFETY: it was not the last.
        next = unsafe { next.add(1) };
    }
}

/// The name of a task; none when it has none.
pub(crate) fn name<'a>(name: *const TaskName) -> Option<&'a CStr> {
    // SAFETY: null or a name that ITT made and keeps.
    let text = unsafe { name.as_ref() }?.text;
    // SAFETY: ITT says that it is a C string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
