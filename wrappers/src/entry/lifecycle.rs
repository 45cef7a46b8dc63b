//! Start and end of the run: `MPI_Init`, `MPI_Init_thread`, `MPI_Finalize`, `MPI_Session_init`,
//! `MPI_Session_finalize`.
//!
//! The profiling names are covered too, because Open MPI's Fortran bindings and MPICH's `mpi_f08` call only
//! those. Start and end are changes of one state, so it does not matter how many names one call passes through.
//! MPI is in use from the first initialisation until neither the world model nor a session uses it (MPI 4.1,
//! 11.1). When it is initialised again after that, the run continues.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::{Mutex, MutexGuard, Once};

use crate::calls::containment::contain;
use crate::calls::gate;
use crate::calls::ledger;
use crate::entry::costs::costs;
use crate::entry::lacking;
use crate::mpi::abi;
use crate::mpi::functions::{Function, Handle, Int, Pointer, by_hand};
use crate::run::{self, Beginning, Kept, Run, Start};
use crate::sys::alloc;
use crate::sys::at_exit;
use crate::sys::clock;
use crate::sys::locks::held;
use crate::sys::symbols::{Address, Next};

/// The users of MPI. The lock is held during a start or an end.
static USERS: Mutex<Users> = Mutex::new(Users { world: World::Unborn, sessions: 0, kept: None });

thread_local! {
    /// This thread is inside a call that starts or ends MPI: the same call under another name is nested in it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Users {
    world: World,
    sessions: usize,
    /// State kept for the next start, after an end or a failed start.
    kept: Option<Kept>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum World {
    Unborn,
    Alive,
    Gone,
}

macro_rules! entry_points {
    ($($name:ident = $text:literal ($($arg:ident: $type:ident),*) $around:ident($function:ident, $how:expr);)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case)]
            extern "C-unwind" fn $name($($arg: $type),*) -> Int {
                static NEXT: Next = Next::new();
                let forward = || {
                    let Some(next) = NEXT.get($text) else { return lacking($text) };
                    // SAFETY: the prototype that the standard gives this function (MPI 4.1, 11.2
                    // and 11.3).
                    let next = unsafe {
                        mem::transmute::<Address, extern "C-unwind" fn($($type),*) -> Int>(next)
                    };
                    next($($arg),*)
                };
                $around(by_hand::$function, $how, forward)
            }
        )*
    };
}

entry_points! {
    MPI_Init = c"MPI_Init"(argc: Pointer, argv: Pointer) begins(MPI_Init, Start::World);
    MPI_Init_thread = c"MPI_Init_thread"(argc: Pointer, argv: Pointer, required: Int, provided: Pointer) begins(MPI_Init_thread, Start::World);
    MPI_Finalize = c"MPI_Finalize"() ends(MPI_Finalize, true);
    MPI_Session_init = c"MPI_Session_init"(info: Handle, errhandler: Handle, session: Pointer) begins(MPI_Session_init, Start::Session(session));
    MPI_Session_finalize = c"MPI_Session_finalize"(session: Pointer) ends(MPI_Session_finalize, false);
}

// A program that contains its MPI has these only once, and they are the library's.
#[cfg(not(feature = "static"))]
entry_points! {
    PMPI_Init = c"PMPI_Init"(argc: Pointer, argv: Pointer) begins(MPI_Init, Start::World);
    PMPI_Init_thread = c"PMPI_Init_thread"(argc: Pointer, argv: Pointer, required: Int, provided: Pointer) begins(MPI_Init_thread, Start::World);
    PMPI_Finalize = c"PMPI_Finalize"() ends(MPI_Finalize, true);
    PMPI_Session_init = c"PMPI_Session_init"(info: Handle, errhandler: Handle, session: Pointer) begins(MPI_Session_init, Start::Session(session));
    PMPI_Session_finalize = c"PMPI_Session_finalize"(session: Pointer) ends(MPI_Session_finalize, false);
}

/// While this lives, this thread is inside a call that starts or ends MPI.
struct InsideLifecycle;

impl InsideLifecycle {
    /// None when it already is: the call is the outer one under another name, or one that MPI makes.
    fn enter() -> Option<InsideLifecycle> {
        (!INSIDE.replace(true)).then_some(InsideLifecycle)
    }
}

impl Drop for InsideLifecycle {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

fn users() -> MutexGuard<'static, Users> {
    // After a panic gyan is off, and this state is never read again.
    held(&USERS)
}

/// Around a real initialisation: `MPI_T` before the first, handles after it.
fn begins(function: Function, start: Start, forward: impl FnOnce() -> c_int) -> c_int {
    if gate::is_off() {
        return gate::uncounted(forward);
    }
    let Some(_inside) = InsideLifecycle::enter() else { return gate::uncounted(forward) };
    let mut users = users();
    let in_use = users.world == World::Alive || users.sessions > 0;
    if matches!(start, Start::World) && users.world != World::Unborn {
        // It is the program's error, and the library reports it.
        return gate::uncounted(forward);
    }
    if in_use {
        let begun = clock::now();
        let result = gate::uncounted(forward);
        if result == 0 {
            ledger::time(function, begun, clock::now());
            ledger::count(function);
            users.took_up(start);
            if matches!(start, Start::World) {
                contain("taking in MPI_COMM_WORLD", || run::with_run(Run::world_comes));
            }
        }
        return result;
    }
    let kept = users.kept.take();
    let (mpit, run) = kept.map_or((None, None), |kept| (kept.mpit, kept.run));
    let by_session = matches!(start, Start::Session(_));
    let beginning = contain("starting", || Beginning::new(false, by_session, mpit, run.as_ref()));
    let is_short = alloc::is_short();
    if is_short {
        run::say_memory_is_short();
    }
    let Some(mut beginning) = beginning.flatten().filter(|_| !is_short) else {
        gate::stay_off();
        drop(users);
        return gate::uncounted(forward);
    };
    if let Some(path) = &beginning.config.list {
        beginning.give_way_to_listing(path, forward);
    }
    let begun = clock::now();
    let result = gate::uncounted(forward);
    if result == 0 {
        let ended = clock::now();
        users.took_up(start);
        contain("starting", || {
            beginning.start(start, run, costs);
            // Done now that the length of a tick is known.
            ledger::time(function, begun, ended);
        });
        ledger::count(function);
    } else {
        // MPI is unchanged; the program may try again, or do something else.
        let mpit = mem::replace(&mut beginning.mpit, Ok(None)).ok().flatten();
        users.kept = Some(Kept { mpit, run });
    }
    result
}

impl Users {
    fn took_up(&mut self, start: Start) {
        match start {
            Start::World => self.world = World::Alive,
            Start::Session(_) => self.sessions += 1,
        }
    }
}

/// Around a real end: the run ends before the last of them.
fn ends(function: Function, world: bool, forward: impl FnOnce() -> c_int) -> c_int {
    if gate::is_off() {
        return gate::uncounted(forward);
    }
    let Some(_inside) = InsideLifecycle::enter() else { return gate::uncounted(forward) };
    let mut users = users();
    if !(if world { users.world == World::Alive } else { users.sessions > 0 }) {
        // It is the program's error, and the library reports it.
        return gate::uncounted(forward);
    }
    gate::settle();
    ledger::count(function);
    if world {
        users.world = World::Gone;
    } else {
        users.sessions -= 1;
    }
    if users.world == World::Alive || users.sessions > 0 {
        if world {
            contain("letting MPI_COMM_WORLD go", || run::with_run(Run::world_goes));
        }
    } else {
        users.kept = contain("ending", || run::end_run(world)).flatten();
        if users.kept.as_ref().is_some_and(Kept::is_unwritten) {
            WATCH_EXIT.call_once(|| at_exit::call(exits));
        }
    }
    drop(users);
    gate::uncounted(forward)
}

/// Has [`exits`] called once.
static WATCH_EXIT: Once = Once::new();

/// The program ends, after the last of its sessions.
extern "C-unwind" fn exits(_code: c_int, _argument: *mut c_void) {
    contain("ending after the last session", || {
        // Not held by this thread: there is an end that was completed. Another may be starting MPI forever.
        if let Ok(mut users) = USERS.try_lock()
            && let Some(kept) = &mut users.kept
        {
            kept.write();
        }
    });
}

/// At the first call seen in this process: MPI may have been started in a way that gyan does not see.
pub(crate) fn start_late() {
    if gate::is_off() || INSIDE.get() {
        return;
    }
    // Does not wait for the lock: another thread is starting, and before that start nothing was missed.
    let Ok(mut users) = USERS.try_lock() else { return };
    if users.world != World::Unborn || users.sessions > 0 || !abi::is_initialized() {
        return;
    }
    let started = contain("starting late", || {
        let beginning = Beginning::new(true, false, None, None)?;
        beginning.start(Start::World, None, costs);
        Some(())
    });
    if started.flatten().is_none() {
        gate::stay_off();
    }
    users.world = World::Alive;
}
