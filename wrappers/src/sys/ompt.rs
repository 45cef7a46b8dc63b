//! The C interface by which an OpenMP runtime tells a tool what it does: OMPT (OpenMP 5.0, chapter 4), as far as gyan uses it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// What a tool keeps for a thread, a region or a task (4.4.4.4, `ompt_data_t`): a union of a number and a pointer.
#[repr(C)]
pub(crate) struct Data {
    pub(crate) value: u64,
}

/// What a tool hands to the runtime (4.2.1, `ompt_start_tool_result_t`).
#[repr(C)]
pub(crate) struct StartToolResult {
    pub(crate) initialize: Initialize,
    pub(crate) finalize: Finalize,
    pub(crate) tool_data: Data,
}

/// Not 0 when the tool wants to be called (4.5.1.1).
pub(crate) type Initialize = extern "C-unwind" fn(Lookup, c_int, *mut Data) -> c_int;
/// (4.5.1.2)
pub(crate) type Finalize = extern "C-unwind" fn(*mut Data);
/// Finds a function of the runtime (4.6.1).
pub(crate) type Lookup = extern "C-unwind" fn(*const c_char) -> *mut c_void;
/// `ompt_start_tool` (4.2.1).
pub(crate) type StartTool = extern "C-unwind" fn(c_uint, *const c_char) -> *mut StartToolResult;
/// `ompt_set_callback` (4.6.2.1): the event, and a callback.
pub(crate) type SetCallback = extern "C-unwind" fn(c_int, *const c_void) -> c_int;

/// (4.5.2.3)
pub(crate) type ParallelBegin =
    extern "C-unwind" fn(*mut Data, *const c_void, *mut Data, c_uint, c_int, *const c_void);
/// (4.5.2.4)
pub(crate) type ParallelEnd = extern "C-unwind" fn(*mut Data, *mut Data, c_int, *const c_void);
/// (4.5.2.11)
pub(crate) type ImplicitTask =
    extern "C-unwind" fn(c_int, *mut Data, *mut Data, c_uint, c_uint, c_int);
/// (4.5.2.13)
pub(crate) type SyncRegion =
    extern "C-unwind" fn(c_int, c_int, *mut Data, *mut Data, *const c_void);
/// (4.5.2.10)
pub(crate) type TaskSchedule = extern "C-unwind" fn(*mut Data, c_int, *mut Data);

/// The events, by their numbers (4.4.2, `ompt_callbacks_t`), each with its callback.
pub(crate) enum Callback {
    ParallelBegin(ParallelBegin),
    ParallelEnd(ParallelEnd),
    TaskSchedule(TaskSchedule),
    ImplicitTask(ImplicitTask),
    SyncRegion(SyncRegion),
}

impl Callback {
    fn numbered(&self) -> (c_int, *const c_void) {
        match *self {
            Callback::ParallelBegin(callback) => (3, callback as *const c_void),
            Callback::ParallelEnd(callback) => (4, callback as *const c_void),
            Callback::TaskSchedule(callback) => (6, callback as *const c_void),
            Callback::ImplicitTask(callback) => (7, callback as *const c_void),
            Callback::SyncRegion(callback) => (23, callback as *const c_void),
        }
    }

    /// Has the runtime call it from now on; false when it never will.
    pub(crate) fn set(&self, set: SetCallback) -> bool {
        let (event, callback) = self.numbered();
        // `ompt_set_error`, `ompt_set_never` and `ompt_set_impossible` are 0 to 2 (4.4.4.2).
        set(event, callback) > 2
    }
}

/// Beginning and end (4.4.4.11, `ompt_scope_endpoint_t`).
pub(crate) const SCOPE_BEGIN: c_int = 1;
pub(crate) const SCOPE_END: c_int = 2;
/// The flag of a task that is no part of a parallel region (4.4.4.18, `ompt_task_flag_t`).
pub(crate) const TASK_INITIAL: c_int = 1;
/// The flag of a region that is a team, not a league of them (4.4.4.22, `ompt_parallel_flag_t`).
pub(crate) const PARALLEL_TEAM: c_int = 2;

/// Whether a kind of synchronisation (4.4.4.13, `ompt_sync_region_t`; OpenMP 5.1 adds 8 to 10) is a barrier.
pub(crate) fn is_barrier(kind: c_int) -> bool {
    matches!(kind, 1..=4 | 8..=10)
}

/// Finds a function of the runtime.
pub(crate) fn set_callback(lookup: Lookup) -> Option<SetCallback> {
    let found = std::ptr::NonNull::new(lookup(c"ompt_set_callback".as_ptr()))?;
    Some(crate::sys::foreign::foreign!(found, SetCallback))
}

/// The number that a tool keeps; 0 where there is none.
pub(crate) fn value(data: *const Data) -> u64 {
    // SAFETY: null, or memory of the runtime that is for the tool alone while this callback runs (4.4.4.4).
    unsafe { data.as_ref() }.map_or(0, |data| data.value)
}

/// Keeps a number.
pub(crate) fn set_value(data: *mut Data, value: u64) {
    // SAFETY: as in `value`.
    if let Some(data) = unsafe { data.as_mut() } {
        data.value = value;
    }
}

/// The text of a runtime's own version.
pub(crate) fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a C string of the runtime (4.2.1).
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}
