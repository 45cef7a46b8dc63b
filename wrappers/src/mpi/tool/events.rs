//! Events of `MPI_T` made safe: sources, event types, and registrations whose callbacks notify a listener
//! (MPI 4.1, 15.3.8). Raw pointers end here.
//!
//! A listener lives as long as the process: a library may call back while a registration is being freed,
//! and from any thread, so nothing that a callback touches is ever freed.

use std::ffi::{c_int, c_void};
use std::ptr;

use gyan_results::Datatype;

use super::api::{Failure, Raw, ask, index_of};
use super::event_info::{EventApi, EventInfo};
use super::handle::Lent;
use crate::mpi::abi::{Abi, Bind, CALLBACK_SAFETIES, Library};
use crate::sys::foreign::foreign;
use crate::sys::guard::{self, About};

/// Receives the instances of an event. Called by the library from any thread and any context: it must not
/// allocate, wait or panic, and may call only the MPI functions that [`Instance`] offers.
pub(crate) trait Listener: Sync + 'static {
    fn happened(&self, instance: &Instance);
    /// This many instances were lost since the last one.
    fn lost(&self, number: u64);
    /// The library will never call back again for the registration.
    fn is_free(&self);
}

/// An instance of an event, during its callback.
pub(crate) struct Instance<'a> {
    raw: Raw,
    events: &'a EventFunctions,
}

/// An element of the data that comes with an event, which is an integer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Element {
    pub(crate) index: c_int,
    pub(crate) datatype: Datatype,
}

/// The library's description of an event type.
#[derive(Clone, Debug)]
pub(crate) struct EventType {
    pub(crate) index: usize,
    pub(crate) name: String,
    /// None for a constant that the interface does not define.
    pub(crate) bind: Option<Bind>,
    /// The datatype of each element; none for one that `MPI_T` does not allow.
    pub(crate) elements: Vec<Option<Datatype>>,
}

/// The registration of a listener for an event.
pub(crate) struct Registration {
    raw: Raw,
    _object: Lent,
    /// Index of the event type.
    index: usize,
    /// The levels for which the library accepted the callback.
    levels: [bool; CALLBACK_SAFETIES.len()],
}

// SAFETY: MPI_T is initialised for threads, and gyan serialises its calls with one lock; a registration
// is not tied to the thread that made it.
unsafe impl Send for Registration {}

/// `MPI_T_event_cb_function`; the level is a C enum, which is an int.
type EventCallback = unsafe extern "C-unwind" fn(Raw, Raw, c_int, *mut c_void);
/// `MPI_T_event_dropped_cb_function`.
type DroppedCallback = unsafe extern "C" fn(i64, Raw, c_int, c_int, *mut c_void);
/// `MPI_T_event_free_cb_function`.
type FreeCallback = unsafe extern "C" fn(Raw, c_int, *mut c_void);

/// The functions of MPI 4.0 for registrations, and those that describe events and sources.
pub(crate) struct EventFunctions {
    abi: &'static Abi,
    info_null: usize,
    pub(crate) told: EventApi,
    functions: RegistrationFunctions,
}

impl EventFunctions {
    /// Those of `library`; none when it lacks one.
    pub(crate) fn find(library: &Library) -> Option<EventFunctions> {
        Some(EventFunctions {
            abi: library.abi,
            info_null: library.handle(library.abi.info_null)?,
            told: EventApi::find(library)?,
            functions: RegistrationFunctions::find(|name| library.function(name))?,
        })
    }
}

foreign! {
    /// As in MPI 4.1, 15.3.8; handles of `MPI_T` are pointers in every library, and an `MPI_Info` travels as a word.
    struct RegistrationFunctions: every [unsafe extern "C"] {
        handle_alloc(c_int, *mut c_void, usize, *mut Raw) = c"PMPI_T_event_handle_alloc";
        handle_free(Raw, *mut c_void, *const c_void) = c"PMPI_T_event_handle_free";
        register_callback(
            Raw, c_int, usize, *mut c_void, *const c_void
        ) = c"PMPI_T_event_register_callback";
        set_dropped_handler(Raw, *const c_void) = c"PMPI_T_event_set_dropped_handler";
        event_read(Raw, c_int, *mut c_void) = c"PMPI_T_event_read";
        event_get_timestamp(Raw, *mut i64) = c"PMPI_T_event_get_timestamp";
        event_get_source(Raw, *mut c_int) = c"PMPI_T_event_get_source";
        source_get_timestamp(c_int, *mut i64) = c"PMPI_T_source_get_timestamp";
    }
}

/// The functions, in a static for callbacks, which get only their listener.
static FUNCTIONS: std::sync::OnceLock<EventFunctions> = std::sync::OnceLock::new();

impl EventFunctions {
    /// Those of `library`, for the rest of the process's life; none when it lacks one.
    pub(crate) fn once(library: &Library) -> Option<&'static EventFunctions> {
        if let Some(known) = FUNCTIONS.get() {
            return Some(known);
        }
        let found = EventFunctions::find(library)?;
        Some(FUNCTIONS.get_or_init(|| found))
    }

    /// Event type `index`, which is below the current number.
    pub(crate) fn event_type(&self, library: &Library, index: usize) -> Result<EventType, Failure> {
        const ELEMENTS_AT_MOST: usize = 1024;
        let EventInfo { name, bind, elements, .. } = self.told.event(index)?;
        let elements = self.told.datatypes(library, index, elements.min(ELEMENTS_AT_MOST))?;
        Ok(EventType { index, name, bind: self.abi.bind(bind), elements })
    }

    /// The time of source `index`, which is below the current number; none when it does not tell.
    pub(crate) fn source_time(&self, index: usize) -> Option<i64> {
        let mut time: i64 = 0;
        let (call, about) = ("MPI_T_source_get_timestamp", About::Source(index));
        let arguments = (index_of(index), &raw mut time);
        // SAFETY: `time` can be written.
        let asked =
            unsafe { ask(self.abi, call, about, self.functions.source_get_timestamp, arguments) };
        asked.ok().map(|()| time)
    }

    /// Registers `listener` for event type `index`, which is below the current number: for the object with the
    /// handle `object`, which is of the kind that it binds to; none for an event that binds to nothing.
    pub(crate) fn register<L: Listener>(
        &self,
        index: usize,
        object: Option<usize>,
        listener: &'static L,
    ) -> Result<Registration, Failure> {
        let mut object = Lent::new(object);
        let mut raw: Raw = ptr::null_mut();
        let (call, about) = ("MPI_T_event_handle_alloc", About::Event(index));
        let arguments = (index_of(index), object.address(), self.info_null, &raw mut raw);
        // SAFETY: the event type was enumerated just before; the object goes into the registration, so it
        // stays where it is; `raw` can be written.
        unsafe { ask(self.abi, call, about, self.functions.handle_alloc, arguments) }?;
        let user_data = ptr::from_ref(listener).cast_mut().cast::<c_void>();
        let mut registration = Registration { raw, _object: object, index, levels: [false; 4] };
        let mut refused = None;
        // The callback is safe at the highest level, so at all levels, and is registered for each: MPICH calls
        // that of the lowest sufficient level for the instance, the development version of Open MPI that of the
        // highest level that the instance needs. Each calls exactly one.
        for (taken, level) in registration.levels.iter_mut().zip(self.abi.callback_safeties) {
            let call = "MPI_T_event_register_callback";
            let callback = happened::<L> as EventCallback as *const c_void;
            let arguments = (raw, level, self.info_null, user_data, callback);
            // SAFETY: the registration is alive, the listener lives forever, and the callback casts it to its
            // real type.
            match unsafe { ask(self.abi, call, about, self.functions.register_callback, arguments) }
            {
                Ok(()) => *taken = true,
                Err(failure) => refused = Some(failure),
            }
        }
        if let Some(failure) = refused
            && registration.levels == [false; 4]
        {
            self.free(registration, listener);
            return Err(failure);
        }
        // Without it lost instances are not known; the others are still counted.
        let call = "MPI_T_event_set_dropped_handler";
        let arguments = (raw, dropped::<L> as DroppedCallback as *const c_void);
        // SAFETY: the registration is alive.
        _ = unsafe { ask(self.abi, call, about, self.functions.set_dropped_handler, arguments) };
        Ok(registration)
    }

    /// Ends a registration, while its object is still alive. The listener is notified when no more calls can
    /// come.
    pub(crate) fn free<L: Listener>(&self, registration: Registration, listener: &'static L) {
        let Registration { raw, index, _object, .. } = registration;
        let user_data = ptr::from_ref(listener).cast_mut().cast::<c_void>();
        let (call, about) = ("MPI_T_event_handle_free", About::Event(index));
        let arguments = (raw, user_data, is_free::<L> as FreeCallback as *const c_void);
        // SAFETY: the registration is alive and used for the last time; the listener lives forever.
        _ = unsafe { ask(self.abi, call, about, self.functions.handle_free, arguments) };
    }
}

impl Registration {
    /// The names of the levels that the library refused to take a callback for.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &'static str> {
        let levels = self.levels.into_iter().zip(CALLBACK_SAFETIES);
        levels.filter(|(taken, _)| !taken).map(|(_, name)| name)
    }
}

impl Instance<'_> {
    /// When it occurred, on the clock of its source.
    pub(crate) fn time(&self) -> Option<i64> {
        let mut time: i64 = 0;
        // SAFETY: the instance is alive during its callback; `time` can be written. The standard lets every
        // callback call this and the next two.
        let code = unsafe { (self.events.functions.event_get_timestamp)(self.raw, &raw mut time) };
        (code == 0).then_some(time)
    }

    /// The index of its source.
    pub(crate) fn source(&self) -> Option<usize> {
        let mut source: c_int = -1;
        // SAFETY: as for the time.
        let code = unsafe { (self.events.functions.event_get_source)(self.raw, &raw mut source) };
        if code == 0 { usize::try_from(source).ok() } else { None }
    }

    /// The value of an element of integer type, if it fits.
    pub(crate) fn read(&self, element: Element) -> Option<i64> {
        // Larger than any datatype: the library decides the type of an element.
        let mut bytes = [0_u8; 32];
        // SAFETY: the instance is alive, and there is room for every datatype.
        let code = unsafe {
            (self.events.functions.event_read)(self.raw, element.index, bytes.as_mut_ptr().cast())
        };
        if code != 0 {
            return None;
        }
        let whole = i64::from_ne_bytes(*bytes.first_chunk()?);
        let half = *bytes.first_chunk()?;
        match element.datatype {
            Datatype::Int | Datatype::Int32 => Some(i32::from_ne_bytes(half).into()),
            Datatype::Unsigned | Datatype::Uint32 => Some(u32::from_ne_bytes(half).into()),
            Datatype::Long
            | Datatype::LongLong
            | Datatype::Count
            | Datatype::Int64
            | Datatype::UnsignedLong
            | Datatype::UnsignedLongLong
            | Datatype::Uint64 => Some(whole),
            Datatype::Char | Datatype::CBool | Datatype::Double => None,
        }
    }
}

/// # Safety
/// Called by the library, with an instance that lives as long as the call, and the listener of the
/// registration.
unsafe extern "C-unwind" fn happened<L: Listener>(
    instance: Raw,
    _registration: Raw,
    _level: c_int,
    user_data: *mut c_void,
) {
    // SAFETY: the pointer is to a listener, which lives forever.
    let listener = unsafe { user_data.cast::<L>().as_ref() };
    if let (Some(listener), Some(events)) = (listener, FUNCTIONS.get()) {
        guard::uncovered(|| listener.happened(&Instance { raw: instance, events }));
    }
}

/// # Safety
/// Called by the library, with the same user data as the callback of the registration.
unsafe extern "C" fn dropped<L: Listener>(
    number: i64,
    _registration: Raw,
    _source: c_int,
    _level: c_int,
    user_data: *mut c_void,
) {
    // SAFETY: as for `happened`.
    if let Some(listener) = unsafe { user_data.cast::<L>().as_ref() } {
        guard::uncovered(|| listener.lost(u64::try_from(number).unwrap_or(0)));
    }
}

/// # Safety
/// Called by the library, with the listener of the registration that was freed.
unsafe extern "C" fn is_free<L: Listener>(
    _registration: Raw,
    _level: c_int,
    user_data: *mut c_void,
) {
    // SAFETY: as for `happened`.
    if let Some(listener) = unsafe { user_data.cast::<L>().as_ref() } {
        guard::uncovered(|| listener.is_free());
    }
}
