//! The function by which an OpenMP runtime asks for a tool, and the callbacks by which it tells what it does.
//!
//! The runtime may ask long before `MPI_Init`, or after it. It is told nothing where gyan has nothing to do: without MPI in the
//! process and without a launcher, with gyan off, in a job that a site records, with another tool.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::calls::containment::contain;
use crate::config::{self, Config};
use crate::observe::openmp;
use crate::sys::foreign::foreign;
use crate::sys::ompt::{
    self, Data, OmptEvent, OmptLookup, PARALLEL_LEAGUE, SCOPE_BEGIN, SCOPE_END, StartTool,
    StartToolResult, TASK_INITIAL,
};
use crate::sys::symbols;

/// What the runtime says that it is, until it has taken the callbacks.
static ASKED_BY: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Null where gyan does not want to be told anything.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut StartToolResult {
    /// The next definition may be one that asks for the next, which is this.
    static ASKS: AtomicBool = AtomicBool::new(false);
    if ASKS.swap(true, Ordering::Relaxed) {
        return ptr::null_mut();
    }
    let result = contain("answering an OpenMP runtime", || {
        // The runtime's own definition looks for tools behind it.
        let next = symbols::next(c"ompt_start_tool");
        let next = next.map(|next| foreign!(next, StartTool)(omp_version, runtime_version));
        match next.filter(|tool| !tool.is_null()) {
            Some(tool) => tool,
            None if is_wanted() => {
                ASKED_BY.store(runtime_version.cast_mut(), Ordering::Relaxed);
                let tool_data = Data { value: 0 };
                // The runtime keeps it until it ends.
                Box::into_raw(Box::new(StartToolResult { initialize, finalize, tool_data }))
            }
            None => ptr::null_mut(),
        }
    });
    ASKS.store(false, Ordering::Relaxed);
    result.unwrap_or(ptr::null_mut())
}

/// Whether there is a profile for what a runtime tells.
fn is_wanted() -> bool {
    // Python may load MPI after a library that uses OpenMP.
    let may_have_mpi = config::is_launched() || symbols::next(c"MPI_Init").is_some();
    may_have_mpi && !config::names_openmp_tools() && {
        let config = Config::from_env();
        config.on && config.openmp && config.site.is_none() && !symbols::is_behind_another_gyan()
    }
}

extern "C-unwind" fn initialize(lookup: OmptLookup, _device: c_int, _data: *mut Data) -> c_int {
    let callbacks = [
        OmptEvent::ParallelBegin(parallel_begin),
        OmptEvent::ParallelEnd(parallel_end),
        OmptEvent::ImplicitTask(implicit_task),
        OmptEvent::SyncRegion(sync_region),
        OmptEvent::TaskSchedule(task_schedule),
    ];
    let is_told = contain("preparing for OpenMP", || {
        let Some(set) = ompt::set_callback(lookup) else { return false };
        let told = callbacks.map(|callback| callback.set(set));
        // Without the first four nothing is known of regions; tasks at barriers may be missing.
        let is_told = told.iter().take(4).all(|told| *told);
        if is_told {
            openmp::is_told_by(&ompt::text(ASKED_BY.load(Ordering::Relaxed)));
        }
        is_told
    });
    c_int::from(is_told == Some(true))
}

/// The runtime ends, after MPI: the profile has been written.
extern "C-unwind" fn finalize(_data: *mut Data) {}

extern "C-unwind" fn parallel_begin(
    _task: *mut Data,
    _frame: *const c_void,
    region: *mut Data,
    _threads: c_uint,
    flags: c_int,
    address: *const c_void,
) {
    // What a league of teams does is in regions of their own.
    if flags & PARALLEL_LEAGUE == 0 {
        ompt::set_value(region, openmp::region_begins(address.addr()));
    }
}

extern "C-unwind" fn parallel_end(
    region: *mut Data,
    _task: *mut Data,
    _flags: c_int,
    _address: *const c_void,
) {
    openmp::region_ends(ompt::value(region));
}

extern "C-unwind" fn implicit_task(
    endpoint: c_int,
    region: *mut Data,
    task: *mut Data,
    size: c_uint,
    index: c_uint,
    flags: c_int,
) {
    if flags & TASK_INITIAL != 0 {
        return;
    }
    match endpoint {
        SCOPE_BEGIN => {
            ompt::set_value(task, openmp::part_begins(ompt::value(region), size, index));
        }
        // The region is not known any more.
        SCOPE_END => openmp::part_ends(ompt::value(task)),
        _ => {}
    }
}

extern "C-unwind" fn sync_region(
    kind: c_int,
    endpoint: c_int,
    region: *mut Data,
    _task: *mut Data,
    _address: *const c_void,
) {
    match endpoint {
        SCOPE_BEGIN if ompt::is_barrier(kind) => openmp::barrier_begins(ompt::value(region)),
        SCOPE_END if ompt::is_barrier(kind) => openmp::barrier_ends(ompt::value(region)),
        _ => {}
    }
}

extern "C-unwind" fn task_schedule(_before: *mut Data, _status: c_int, next: *mut Data) {
    // Parts of regions have a number, tasks that the program makes have none.
    openmp::task_continues(ompt::value(next) == 0);
}
