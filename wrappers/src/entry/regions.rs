//! The functions by which programs name their regions to other tools: those of Kokkos, NVTX, ITT, `PETSc` and Caliper.
//!
//! Kokkos, NVTX and ITT load the library that a variable of the environment names, and find these in it. `PETSc` and Caliper have
//! no such variable: their functions are wrapped. Regions are phases where the user asks for them.

use std::cell::Cell;
#[cfg(not(feature = "static"))]
use std::collections::BTreeMap;
#[cfg(not(feature = "static"))]
use std::ffi::CString;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::config::{Config, Regions};
use crate::entry::phases;
use crate::observe::regions::{RegionBegins, RegionCounts};
use crate::run;
use crate::sys::clock;
#[cfg(not(feature = "static"))]
use crate::sys::foreign::foreign;
use crate::sys::itt::{self, IttCallback, IttGlobal, IttGroups, TaskId, TaskName};
use crate::sys::nvtx::{self, GetExportTable, NvtxCallback, RangeAttributes};
#[cfg(not(feature = "static"))]
use crate::sys::symbols::{self, Next, c_name};
use crate::sys::tls::thread_cells;

/// No such function in this process (`PETSc`: `PETSC_ERR_SUP`).
#[cfg(not(feature = "static"))]
const PETSC_UNSUPPORTED: c_int = 56;

thread_cells! {
    "gyan_regions"
    /// How deep a thread is in regions.
    struct Depth {
        /// In those that are phases.
        counted: Cell<u32>,
        /// In those that another thread's phase kept from being one.
        passed_over: Cell<u32>,
    }
}

/// Whether a thread is in a region that is a phase.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether the user wants these regions as phases.
fn is_asked_for(regions: Regions) -> bool {
    static ASKED: LazyLock<Vec<Regions>> = LazyLock::new(|| {
        let config = contain("reading the settings", Config::from_env);
        config.filter(|config| config.on).map_or_else(Vec::new, |config| config.phases)
    });
    ASKED.contains(&regions)
}

/// Which of them are left out.
static COUNTS: Mutex<RegionCounts> = Mutex::new(RegionCounts::new());

/// A region of this thread begins. Phases belong to the process: while one thread is in a region, those of others are passed
/// over, as their ends would end that one.
fn begin(name: &CStr) {
    let depth = here();
    let is_passed_over = depth.passed_over.get() > 0;
    if is_passed_over || (depth.counted.get() == 0 && IS_TAKEN.swap(true, Ordering::Relaxed)) {
        depth.passed_over.set(depth.passed_over.get() + 1);
        return;
    }
    if contain("beginning a region", || is_phase(name)) == Some(true) {
        depth.counted.set(depth.counted.get() + 1);
    } else {
        depth.passed_over.set(1);
        if depth.counted.get() == 0 {
            IS_TAKEN.store(false, Ordering::Relaxed);
        }
    }
}

/// Begins the phase, unless there are too many of this name.
fn is_phase(name: &CStr) -> bool {
    let is_affordable = |spent| budget().allows_phases(clock::now(), spent);
    // The counts are not held any longer.
    let begins = counts().begins(name, is_affordable);
    match begins {
        RegionBegins::AsPhase => {
            let ticks = phases::begin(name);
            counts().took(ticks);
            true
        }
        RegionBegins::LeftOut => false,
        RegionBegins::TooOften => {
            let name = name.to_string_lossy();
            run::warn(&format!(
                "regions {name:?} began too often for the budget: later ones count for the phase around them; \
                 --budget none keeps them apart"
            ));
            false
        }
    }
}

fn counts() -> MutexGuard<'static, RegionCounts> {
    COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region of this thread that began last ends.
fn end() {
    let depth = here();
    if let Some(passed_over) = depth.passed_over.get().checked_sub(1) {
        depth.passed_over.set(passed_over);
    } else if let Some(counted) = depth.counted.get().checked_sub(1) {
        depth.counted.set(counted);
        let ticks = phases::end();
        counts().took(ticks);
        if counted == 0 {
            IS_TAKEN.store(false, Ordering::Relaxed);
        }
    }
}

/// `kokkosp_push_profile_region` of Kokkos Tools.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn kokkosp_push_profile_region(name: *const c_char) {
    if is_asked_for(Regions::Kokkos) {
        begin(text(name));
    }
}

/// `kokkosp_pop_profile_region` of Kokkos Tools.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn kokkosp_pop_profile_region() {
    if is_asked_for(Regions::Kokkos) {
        end();
    }
}

/// `kokkosp_request_tool_settings` of Kokkos Tools, whose first setting is whether kernels are to be waited for: they are not.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn kokkosp_request_tool_settings(_actions: c_uint, settings: *mut bool) {
    // SAFETY: null or the settings of Kokkos, which begin with this one.
    if let Some(waits) = unsafe { settings.as_mut() } {
        *waits = false;
    }
}

/// NVTX asks for a tool. 0 where the user wants none of it.
#[cfg_attr(not(test), unsafe(export_name = "InitializeInjectionNvtx2"))]
extern "C-unwind" fn nvtx_injection(get_table: GetExportTable) -> c_int {
    let callbacks = [
        NvtxCallback::Push(nvtx_push),
        NvtxCallback::PushWide(nvtx_push_wide),
        NvtxCallback::PushAttributes(nvtx_push_attributes),
        NvtxCallback::Pop(nvtx_pop),
        NvtxCallback::PushInDomain(nvtx_push_in_domain),
        NvtxCallback::PopInDomain(nvtx_pop_in_domain),
        NvtxCallback::Register(nvtx_register),
        NvtxCallback::RegisterWide(nvtx_register_wide),
    ];
    let is_set = is_asked_for(Regions::Nvtx) && nvtx::set_callbacks(get_table, &callbacks);
    c_int::from(is_set)
}

extern "C-unwind" fn nvtx_push(name: *const c_char) -> c_int {
    begin(text(name));
    nvtx::UNCOUNTED
}

extern "C-unwind" fn nvtx_push_wide(name: *const libc::wchar_t) -> c_int {
    begin(&nvtx::narrowed(name));
    nvtx::UNCOUNTED
}

extern "C-unwind" fn nvtx_push_attributes(attributes: *const RangeAttributes) -> c_int {
    begin(nvtx::name(attributes).as_deref().unwrap_or(phases::UNNAMED));
    nvtx::UNCOUNTED
}

extern "C-unwind" fn nvtx_pop() -> c_int {
    end();
    nvtx::UNCOUNTED
}

extern "C-unwind" fn nvtx_push_in_domain(
    _domain: *const c_void,
    attributes: *const RangeAttributes,
) -> c_int {
    nvtx_push_attributes(attributes)
}

extern "C-unwind" fn nvtx_pop_in_domain(_domain: *const c_void) -> c_int {
    nvtx_pop()
}

/// A name that the program will use by what this returns, until the process ends.
extern "C-unwind" fn nvtx_register(_domain: *const c_void, name: *const c_char) -> *const c_char {
    text(name).to_owned().into_raw()
}

extern "C-unwind" fn nvtx_register_wide(
    _domain: *const c_void,
    name: *const libc::wchar_t,
) -> *const c_char {
    nvtx::narrowed(name).into_raw()
}

/// ITT asks for a tool.
#[cfg_attr(not(test), unsafe(export_name = "__itt_api_init"))]
extern "C-unwind" fn itt_api_init(global: *const IttGlobal, _groups: IttGroups) {
    if is_asked_for(Regions::Itt) {
        let callbacks =
            [IttCallback::TaskBegin(itt_task_begin), IttCallback::TaskEnd(itt_task_end)];
        itt::set_callbacks(global, &callbacks);
    }
}

extern "C-unwind" fn itt_task_begin(
    _domain: *const c_void,
    _task: TaskId,
    _parent: TaskId,
    name: *const TaskName,
) {
    begin(itt::name(name).unwrap_or(phases::UNNAMED));
}

extern "C-unwind" fn itt_task_end(_domain: *const c_void) {
    end();
}

/// The stages that the program registered, by `PETSc`'s number.
#[cfg(not(feature = "static"))]
static STAGES: Mutex<BTreeMap<c_int, CString>> = Mutex::new(BTreeMap::new());

/// `PetscLogStageRegister`: a stage has its name only here.
#[cfg(not(feature = "static"))]
#[cfg_attr(not(test), unsafe(export_name = "PetscLogStageRegister"))]
extern "C-unwind" fn petsc_stage_register(name: *const c_char, stage: *mut c_int) -> c_int {
    let Some(next) = symbols::next(c"PetscLogStageRegister") else { return PETSC_UNSUPPORTED };
    let register = foreign!(next, extern "C-unwind" fn(*const c_char, *mut c_int) -> c_int);
    let code = register(name, stage);
    // SAFETY: PETSc has written the number where it has not failed.
    let stage = unsafe { stage.as_ref() }.filter(|_| code == 0);
    if let Some(stage) = stage.filter(|_| is_asked_for(Regions::Petsc)) {
        contain("noting a stage", || stages().insert(*stage, text(name).to_owned()));
    }
    code
}

/// `PetscLogStagePush`.
#[cfg(not(feature = "static"))]
#[cfg_attr(not(test), unsafe(export_name = "PetscLogStagePush"))]
extern "C-unwind" fn petsc_stage_push(stage: c_int) -> c_int {
    let Some(next) = symbols::next(c"PetscLogStagePush") else { return PETSC_UNSUPPORTED };
    let code = foreign!(next, extern "C-unwind" fn(c_int) -> c_int)(stage);
    // The stage that PETSc itself begins with is the whole program.
    let is_whole = stage == 0 && here().counted.get() == 0;
    if code == 0 && !is_whole && is_asked_for(Regions::Petsc) {
        let name = contain("looking up a stage", || stages().get(&stage).cloned()).flatten();
        begin(name.as_deref().unwrap_or(phases::UNNAMED));
    }
    code
}

/// `PetscLogStagePop`.
#[cfg(not(feature = "static"))]
#[cfg_attr(not(test), unsafe(export_name = "PetscLogStagePop"))]
extern "C-unwind" fn petsc_stage_pop() -> c_int {
    let Some(next) = symbols::next(c"PetscLogStagePop") else { return PETSC_UNSUPPORTED };
    let code = foreign!(next, extern "C-unwind" fn() -> c_int)();
    if code == 0 && is_asked_for(Regions::Petsc) {
        end();
    }
    code
}

/// Functions of Caliper that begin or end a region (its `cali.h` and `Annotation.h`), under the names that C++ gives to those of classes.
/// What Caliper itself takes is not part of the region.
#[cfg(not(feature = "static"))]
macro_rules! caliper {
    ($($function:ident = $symbol:literal ($($argument:ident: $type:ty),+) $does:ident $(($name:ident))?;)+) => {$(
        #[doc = concat!("`", $symbol, "`.")]
        #[cfg_attr(not(test), unsafe(export_name = $symbol))]
        extern "C-unwind" fn $function($($argument: $type),+) {
            static NEXT: Next = Next::new();
            let Some(next) = NEXT.get(c_name(concat!($symbol, "\0"))) else { return };
            let call = || foreign!(next, extern "C-unwind" fn($($type),+))($($argument),+);
            if is_asked_for(Regions::Caliper) {
                caliper!(@$does call $($name)?);
            } else {
                call();
            }
        }
    )+};
    (@begins $call:ident $name:ident) => {
        $call();
        begin(text($name));
    };
    (@ends $call:ident) => {
        end();
        $call();
    };
}

#[cfg(not(feature = "static"))]
caliper! {
    caliper_begin_region = "cali_begin_region" (name: *const c_char) begins(name);
    caliper_end_region = "cali_end_region" (name: *const c_char) ends;
    caliper_begin_phase = "cali_begin_phase" (name: *const c_char) begins(name);
    caliper_end_phase = "cali_end_phase" (name: *const c_char) ends;
    caliper_begin_comm_region = "cali_begin_comm_region" (name: *const c_char) begins(name);
    caliper_end_comm_region = "cali_end_comm_region" (name: *const c_char) ends;
    caliper_function_begins = "_ZN4cali8FunctionC1EPKc" (this: *mut c_void, name: *const c_char) begins(name);
    caliper_function_ends = "_ZN4cali8FunctionD1Ev" (this: *mut c_void) ends;
    caliper_scope_begins = "_ZN4cali15ScopeAnnotationC1EPKc" (this: *mut c_void, name: *const c_char) begins(name);
    caliper_scope_ends = "_ZN4cali15ScopeAnnotationD1Ev" (this: *mut c_void) ends;
}

#[cfg(not(feature = "static"))]
fn stages() -> MutexGuard<'static, BTreeMap<c_int, CString>> {
    STAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that the program gives to a region.
fn text<'a>(name: *const c_char) -> &'a CStr {
    // SAFETY: each of these interfaces says that it is a C string.
    if name.is_null() { phases::UNNAMED } else { unsafe { CStr::from_ptr(name) } }
}
