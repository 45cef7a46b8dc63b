//! A session, and handles on variables in it, each bound to an object that outlives it.

use std::ffi::c_void;
use std::mem;
use std::ptr;

use gyan_results::Datatype;

use super::api::{Api, Failure, Raw, bytes_of};
use super::variable::Variable;
use super::{published, read_buffer};
use crate::sys::guard::{self, About};

/// A session of performance experiments (MPI 4.1, 15.3.7).
pub(crate) struct Session {
    raw: Raw,
}

/// A handle on a variable.
pub(crate) struct PvarHandle {
    raw: Raw,
    /// Index and name of the variable.
    index: usize,
    name: Box<str>,
    _object: Lent,
    datatype: Datatype,
    pub(crate) count: usize,
    startable: bool,
    running: bool,
}

// SAFETY: MPI_T is initialised for threads, and gyan serialises its calls with one lock; a handle
// is not tied to the thread that allocated it.
unsafe impl Send for Session {}
// SAFETY: as for Session.
unsafe impl Send for PvarHandle {}

impl Session {
    pub(crate) fn create(api: &Api) -> Result<Session, Failure> {
        Ok(Session { raw: api.pvar_session_create()? })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Ends the session. Its handles were freed before, one by one.
    pub(crate) fn free(self, api: &Api) {
        // SAFETY: the session was created and `self` is gone.
        unsafe { api.pvar_session_free(self.raw) };
    }

    /// A handle on `variable` bound to the object with the handle `object`, which is of the kind that
    /// it binds to; none for a variable that binds to nothing.
    pub(crate) fn handle(
        &self,
        api: &Api,
        variable: &Variable,
        object: Option<usize>,
    ) -> Result<PvarHandle, Failure> {
        let mut object = Lent::new(object);
        let of = (variable.index, variable.name.as_str());
        // SAFETY: the session is alive; the variable was enumerated just before; the object goes
        // into the handle, so it stays where it is.
        let (raw, count) = unsafe { api.pvar_handle_alloc(self.raw, of, object.address()) }?;
        Ok(PvarHandle {
            raw,
            index: variable.index,
            name: variable.name.as_str().into(),
            _object: object,
            datatype: variable.datatype,
            count,
            startable: !variable.continuous,
            running: variable.continuous,
        })
    }
}

impl PvarHandle {
    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    pub(super) fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// Starts a variable that does not run by itself.
    pub(crate) fn start(&mut self, api: &Api, session: &Session) -> Result<(), Failure> {
        if !self.startable || self.running {
            return Ok(());
        }
        // SAFETY: both are alive, and the variable is neither continuous nor running.
        unsafe { api.pvar_start(self.about(), session.raw, self.raw) }?;
        self.running = true;
        Ok(())
    }

    /// Stops a variable that was started.
    pub(crate) fn stop(&mut self, api: &Api, session: &Session) -> Result<(), Failure> {
        if !self.startable || !self.running {
            return Ok(());
        }
        // SAFETY: both are alive, and the variable is not continuous and is running.
        unsafe { api.pvar_stop(self.about(), session.raw, self.raw) }?;
        self.running = false;
        Ok(())
    }

    /// The bytes of every element.
    pub(crate) fn read(&self, api: &Api, session: &Session) -> Result<Vec<u8>, Failure> {
        let length = self.count * self.datatype.size();
        self.landed(api, session, |words| bytes_of(words, length))
    }

    /// Reads every element into `words`, which grows the first time and then keeps its size.
    pub(crate) fn read_into(
        &self,
        api: &Api,
        session: &Session,
        words: &mut Vec<u64>,
    ) -> Result<(), Failure> {
        self.landed(api, session, |landed| {
            words.clear();
            words.extend_from_slice(landed);
        })
    }

    fn landed<T>(
        &self,
        api: &Api,
        session: &Session,
        then: impl FnOnce(&[u64]) -> T,
    ) -> Result<T, Failure> {
        // Some libraries write 8 bytes per element whatever they say.
        let words = self.count.max(1);
        let read = |place: *mut u64| {
            // SAFETY: session, handle and object are alive, the variable was started or is
            // continuous, and there is room for more than all elements.
            unsafe { api.pvar_read(self.about(), session.raw, self.raw, place.cast()) }
        };
        read_buffer::land(words, read, then)
    }

    /// Frees the handle, while its object is still alive.
    pub(crate) fn free(self, api: &Api, session: &Session) {
        published::retract(self.raw);
        // SAFETY: the handle was allocated in this session and `self` is gone.
        unsafe { api.pvar_handle_free(self.about(), session.raw, self.raw) };
    }

    fn about(&self) -> About<'_> {
        About::Pvar(self.index, Some(&self.name))
    }
}

/// The handle of an object, or none; the library gets its address. MPICH keeps the address, so it lives in its
/// own box as long as the handle on the variable does, or forever if the library crashed, because it may still
/// look there. A machine word: libraries with int handles read its lower half.
pub(super) struct Lent(Option<Box<usize>>);

impl Lent {
    pub(super) fn new(object: Option<usize>) -> Lent {
        Lent(object.map(Box::new))
    }

    pub(super) fn address(&mut self) -> *mut c_void {
        self.0.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut).cast()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if guard::is_off() {
            mem::forget(self.0.take());
        }
    }
}
