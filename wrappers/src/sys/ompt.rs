//! The C interface by which an OpenMP runtime tells a tool what it does: OMPT (OpenMP 5.0, chapter 4), as far as gyan uses it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use crate::sys::foreign::foreign;

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
pub(crate) type Initialize = extern "C-unwind" fn(OmptLookup, c_int, *mut Data) -> c_int;
/// (4.5.1.2)
pub(crate) type Finalize = extern "C-unwind" fn(*mut Data);
/// Finds a function of the runtime (4.6.1).
pub(crate) type OmptLookup = extern "C-unwind" fn(*const c_char) -> *mut c_void;
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
pub(crate) enum OmptEvent {
    ParallelBegin(ParallelBegin),
    ParallelEnd(ParallelEnd),
    TaskSchedule(TaskSchedule),
    ImplicitTask(ImplicitTask),
    SyncRegion(SyncRegion),
}

impl OmptEvent {
    fn numbered(&self) -> (c_int, *const c_void) {
        match *self {
            OmptEvent::ParallelBegin(callback) => (3, callback as *const c_void),
            OmptEvent::ParallelEnd(callback) => (4, callback as *const c_void),
            OmptEvent::TaskSchedule(callback) => (6, callback as *const c_void),
            OmptEvent::ImplicitTask(callback) => (7, callback as *const c_void),
            OmptEvent::SyncRegion(callback) => (23, callback as *const c_void),
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
/// The flag of a region that is a league of teams (4.4.4.22, `ompt_parallel_flag_t`).
pub(crate) const PARALLEL_LEAGUE: c_int = 0x4000_0000;

/// Whether a kind of synchronisation (4.4.4.13, `ompt_sync_region_t`; OpenMP 5.1 adds 8 to 10) is a barrier.
pub(crate) fn is_barrier(kind: c_int) -> bool {
    matches!(kind, 1..=4 | 8..=10)
}

/// Finds a function of the runtime.
pub(crate) fn set_callback(lookup: OmptLookup) -> Option<SetCallback> {
    let found = NonNull::new(lookup(c"ompt_set_callback".as_ptr()))?;
    Some(foreign!(found, SetCallback))
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write;
    use std::mem::offset_of;
    use std::process::{Command, Stdio};

    use super::*;

    extern "C-unwind" fn parallel_begin(
        _: *mut Data,
        _: *const c_void,
        _: *mut Data,
        _: c_uint,
        _: c_int,
        _: *const c_void,
    ) {
    }
    extern "C-unwind" fn parallel_end(_: *mut Data, _: *mut Data, _: c_int, _: *const c_void) {}
    extern "C-unwind" fn task_schedule(_: *mut Data, _: c_int, _: *mut Data) {}
    extern "C-unwind" fn implicit_task(
        _: c_int,
        _: *mut Data,
        _: *mut Data,
        _: c_uint,
        _: c_uint,
        _: c_int,
    ) {
    }
    extern "C-unwind" fn sync_region(
        _: c_int,
        _: c_int,
        _: *mut Data,
        _: *mut Data,
        _: *const c_void,
    ) {
    }

    /// What the header of the runtime says of each: an expression in C, and its value.
    fn facts() -> Vec<(&'static str, usize)> {
        let number = |callback: OmptEvent| usize::try_from(callback.numbered().0).unwrap();
        let flag = |flag: c_int| usize::try_from(flag).unwrap();
        let mut facts = vec![
            ("ompt_callback_parallel_begin", number(OmptEvent::ParallelBegin(parallel_begin))),
            ("ompt_callback_parallel_end", number(OmptEvent::ParallelEnd(parallel_end))),
            ("ompt_callback_task_schedule", number(OmptEvent::TaskSchedule(task_schedule))),
            ("ompt_callback_implicit_task", number(OmptEvent::ImplicitTask(implicit_task))),
            ("ompt_callback_sync_region", number(OmptEvent::SyncRegion(sync_region))),
            ("ompt_scope_begin", flag(SCOPE_BEGIN)),
            ("ompt_scope_end", flag(SCOPE_END)),
            ("ompt_task_initial", flag(TASK_INITIAL)),
            ("ompt_parallel_league", flag(PARALLEL_LEAGUE)),
            ("ompt_set_impossible", 2),
            ("sizeof(ompt_data_t)", size_of::<Data>()),
            ("sizeof(ompt_start_tool_result_t)", size_of::<StartToolResult>()),
            ("offsetof(ompt_start_tool_result_t, finalize)", offset_of!(StartToolResult, finalize)),
            (
                "offsetof(ompt_start_tool_result_t, tool_data)",
                offset_of!(StartToolResult, tool_data),
            ),
        ];
        let kinds = [
            "ompt_sync_region_barrier",
            "ompt_sync_region_barrier_implicit",
            "ompt_sync_region_barrier_explicit",
            "ompt_sync_region_barrier_implementation",
            "ompt_sync_region_barrier_implicit_workshare",
            "ompt_sync_region_barrier_implicit_parallel",
            "ompt_sync_region_barrier_teams",
        ];
        let barriers = (1..=10).filter(|kind| is_barrier(*kind));
        facts.extend(kinds.into_iter().zip(barriers.map(flag)));
        facts
    }

    /// The prototypes of the callbacks, as this file has them.
    const PROTOTYPES: &str = "
        typedef unsigned u; typedef ompt_data_t *d; typedef const void *p;
        static void begins(d task, const ompt_frame_t *frame, d region, u threads, int flags, p address) {}
        static void ends(d region, d task, int flags, p address) {}
        static void part(ompt_scope_endpoint_t endpoint, d region, d task, u size, u index, int flags) {}
        static void barrier(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, d region, d task, p address) {}
        static void schedules(d before, ompt_task_status_t status, d next) {}
        static ompt_callback_parallel_begin_t begins_as = begins;
        static ompt_callback_parallel_end_t ends_as = ends;
        static ompt_callback_implicit_task_t part_as = part;
        static ompt_callback_sync_region_t barrier_as = barrier;
        static ompt_callback_task_schedule_t schedules_as = schedules;
        _Static_assert(sizeof(ompt_sync_region_t) == sizeof(int), \"\");\n";

    #[test]
    fn the_interface_is_that_of_the_header_of_the_runtime() {
        let is_there =
            "#if !__has_include(<omp-tools.h>)\n#error there is no omp-tools.h\n#endif\n";
        let compiles = |text: &str| {
            let mut clang = Command::new("clang");
            clang.args(["-x", "c", "-std=c11", "-w", "-Werror=incompatible-pointer-types"]);
            let clang = clang.args(["-fsyntax-only", "-"]).stdin(Stdio::piped()).spawn();
            let Ok(mut clang) = clang else { return false };
            clang.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            clang.wait().unwrap().success()
        };
        if !compiles(is_there) {
            eprintln!("skipped: there is no omp-tools.h; scripts/packages clang libomp-dev");
            return;
        }
        let mut text = String::from("#include <stddef.h>\n#include <omp-tools.h>\n");
        text += PROTOTYPES;
        for (expression, value) in facts() {
            writeln!(text, "_Static_assert({expression} == {value}, \"\");").unwrap();
        }
        assert!(compiles(&text), "{text}");
    }
}
