//! The functions of `MPI_T` as methods that cannot be called wrongly: raw pointers end here.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::ptr;

use crate::abi::{Abi, Library};
use crate::next::Address;

/// `MPI_T_pvar_session`, `MPI_T_pvar_handle`, `MPI_T_enum`: pointers in every library.
pub(super) type Raw = *mut c_void;

/// A call of `MPI_T` that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) call: &'static str,
    pub(crate) error: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, self.error)
    }
}

macro_rules! functions {
    ($($field:ident: $type:ident = $name:literal ( $($arg:ty),* );)*) => {
        $(type $type = unsafe extern "C" fn($($arg),*) -> c_int;)*

        /// The functions that the library has.
        pub(crate) struct Api {
            abi: &'static Abi,
            $($field: $type,)*
        }

        impl Api {
            /// The interface of `library`; none when it lacks one of the functions.
            pub(super) fn find(library: &Library) -> Option<Api> {
                Some(Api {
                    abi: library.abi,
                    $($field: {
                        let address = library.function($name)?;
                        // SAFETY: the standard fixes the prototype (MPI 4.1, 15.3); handles of
                        // MPI_T are pointers in every library.
                        unsafe { mem::transmute::<Address, $type>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    t_init_thread: InitThread = c"PMPI_T_init_thread"(c_int, *mut c_int);
    t_finalize: Finalize = c"PMPI_T_finalize"();
    t_pvar_get_num: PvarGetNum = c"PMPI_T_pvar_get_num"(*mut c_int);
    t_pvar_get_info: PvarGetInfo = c"PMPI_T_pvar_get_info"(
        c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_void, *mut Raw,
        *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int
    );
    t_pvar_session_create: PvarSessionCreate = c"PMPI_T_pvar_session_create"(*mut Raw);
    t_pvar_session_free: PvarSessionFree = c"PMPI_T_pvar_session_free"(*mut Raw);
    t_pvar_handle_alloc: PvarHandleAlloc = c"PMPI_T_pvar_handle_alloc"(
        Raw, c_int, *mut c_void, *mut Raw, *mut c_int
    );
    t_pvar_handle_free: PvarHandleFree = c"PMPI_T_pvar_handle_free"(Raw, *mut Raw);
    t_pvar_start: PvarStart = c"PMPI_T_pvar_start"(Raw, Raw);
    t_pvar_stop: PvarStop = c"PMPI_T_pvar_stop"(Raw, Raw);
    t_pvar_read: PvarRead = c"PMPI_T_pvar_read"(Raw, Raw, *mut c_void);
}

/// What `MPI_T_pvar_get_info` says, in the library's own constants.
#[derive(Default)]
pub(super) struct PvarInfo {
    pub(super) name: Vec<u8>,
    pub(super) verbosity: c_int,
    pub(super) class: c_int,
    pub(super) datatype: usize,
    pub(super) bind: c_int,
    pub(super) readonly: bool,
    pub(super) continuous: bool,
    pub(super) atomic: bool,
}

/// More elements than that no variable has.
const COUNT_AT_MOST: c_int = 1 << 24;

impl Api {
    fn check(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        if code == 0 { Ok(()) } else { Err(Failure { call, error: self.abi.error(code) }) }
    }

    pub(super) fn init_thread(&self, level: c_int) -> Result<(), Failure> {
        // Open MPI does not write it in a nested call, so it has a value before.
        let mut provided = level;
        // SAFETY: `provided` can be written.
        let code = unsafe { (self.t_init_thread)(level, &raw mut provided) };
        self.check("MPI_T_init_thread", code)
    }

    pub(super) fn finalize(&self) {
        // SAFETY: pairs with the one successful init_thread. Its result changes nothing.
        unsafe { (self.t_finalize)() };
    }

    /// How many performance variables there are now; the number grows while the program runs.
    pub(crate) fn pvar_get_num(&self) -> Result<usize, Failure> {
        let mut number: c_int = 0;
        // SAFETY: `number` can be written.
        let code = unsafe { (self.t_pvar_get_num)(&raw mut number) };
        self.check("MPI_T_pvar_get_num", code)?;
        Ok(usize::try_from(number).unwrap_or(0))
    }

    /// What the library says about variable `index`, which is below the current number: beyond it
    /// some libraries crash.
    pub(super) fn pvar_get_info(&self, index: usize) -> Result<PvarInfo, Failure> {
        const CALL: &str = "MPI_T_pvar_get_info";
        let no_index = |_| Failure { call: CALL, error: "index too large".into() };
        let index = c_int::try_from(index).map_err(no_index)?;
        let null = ptr::null_mut::<c_int>();
        // The length first: a truncated name cannot be told from a whole one.
        let mut length: c_int = 0;
        // SAFETY: a length of 0 asks for the length alone; every other argument may be null
        // (MPI 4.1, 15.3.3).
        let code = unsafe {
            (self.t_pvar_get_info)(
                index,
                ptr::null_mut(),
                &raw mut length,
                null,
                null,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                null,
                null,
                null,
                null,
                null,
            )
        };
        self.check(CALL, code)?;
        let mut info = PvarInfo::default();
        let mut name = vec![0_u8; usize::try_from(length).unwrap_or(0) + 1];
        let mut length = c_int::try_from(name.len()).map_err(no_index)?;
        // A word: libraries whose handles are ints write the lower half of it.
        let mut datatype: u64 = 0;
        let (mut readonly, mut continuous, mut atomic): (c_int, c_int, c_int) = (0, 0, 0);
        // SAFETY: every pointer is to a variable of its type or null, and `length` is that of
        // `name`.
        let code = unsafe {
            (self.t_pvar_get_info)(
                index,
                name.as_mut_ptr().cast(),
                &raw mut length,
                &raw mut info.verbosity,
                &raw mut info.class,
                (&raw mut datatype).cast(),
                ptr::null_mut(),
                ptr::null_mut(),
                null,
                &raw mut info.bind,
                &raw mut readonly,
                &raw mut continuous,
                &raw mut atomic,
            )
        };
        self.check(CALL, code)?;
        name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
        info.name = name;
        info.datatype = usize::try_from(datatype).unwrap_or(0);
        // Bit masks in MPICH and Intel MPI: anything but 0 is true.
        (info.readonly, info.continuous, info.atomic) =
            (readonly != 0, continuous != 0, atomic != 0);
        Ok(info)
    }

    pub(super) fn pvar_session_create(&self) -> Result<Raw, Failure> {
        let mut session: Raw = ptr::null_mut();
        // SAFETY: `session` can be written.
        let code = unsafe { (self.t_pvar_session_create)(&raw mut session) };
        self.check("MPI_T_pvar_session_create", code)?;
        Ok(session)
    }

    /// # Safety
    /// `session` is from `pvar_session_create` and is not used again.
    pub(super) unsafe fn pvar_session_free(&self, mut session: Raw) {
        // SAFETY: the caller's promise.
        unsafe { (self.t_pvar_session_free)(&raw mut session) };
    }

    /// A handle on variable `index` and its number of elements.
    ///
    /// # Safety
    /// `session` is alive; `index` was valid a moment ago; `object` points to a handle of the
    /// kind that the variable binds to and stays where it is as long as the new handle lives, or
    /// is null for a variable that binds to nothing.
    pub(super) unsafe fn pvar_handle_alloc(
        &self,
        session: Raw,
        index: usize,
        object: *mut c_void,
    ) -> Result<(Raw, usize), Failure> {
        let mut handle: Raw = ptr::null_mut();
        // Open MPI does not write the count of a variable that is switched off.
        let mut count: c_int = 1;
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the caller's promise; `handle` and `count` can be written.
        let code = unsafe {
            (self.t_pvar_handle_alloc)(session, index, object, &raw mut handle, &raw mut count)
        };
        // On an error the handle is not to be looked at, even when it was written.
        self.check("MPI_T_pvar_handle_alloc", code)?;
        Ok((handle, usize::try_from(count.clamp(0, COUNT_AT_MOST)).unwrap_or(0)))
    }

    /// # Safety
    /// `handle` is from `pvar_handle_alloc` in the same `session` and is not used again.
    pub(super) unsafe fn pvar_handle_free(&self, session: Raw, mut handle: Raw) {
        // SAFETY: the caller's promise.
        unsafe { (self.t_pvar_handle_free)(session, &raw mut handle) };
    }

    /// # Safety
    /// `session` and `handle` are alive, the variable is not continuous and not running.
    pub(super) unsafe fn pvar_start(&self, session: Raw, handle: Raw) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.t_pvar_start)(session, handle) };
        self.check("MPI_T_pvar_start", code)
    }

    /// # Safety
    /// `session` and `handle` are alive, the variable is not continuous and is running.
    pub(super) unsafe fn pvar_stop(&self, session: Raw, handle: Raw) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.t_pvar_stop)(session, handle) };
        self.check("MPI_T_pvar_stop", code)
    }

    /// # Safety
    /// `session` and `handle` are alive, and so is the object that the handle is bound to; the
    /// variable runs; `buffer` has room for all of its elements.
    pub(super) unsafe fn pvar_read(
        &self,
        session: Raw,
        handle: Raw,
        buffer: *mut c_void,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.t_pvar_read)(session, handle, buffer) };
        self.check("MPI_T_pvar_read", code)
    }
}
