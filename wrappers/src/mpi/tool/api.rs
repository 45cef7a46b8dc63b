//! The functions of `MPI_T` as methods that cannot be called wrongly: raw pointers end here.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, null_mut};

use super::event_info::EventApi;
use crate::mpi::abi::{Abi, Library};
use crate::sys::foreign::foreign;
use crate::sys::guard::{self, About};

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

/// Calls a function of the library, guarded.
///
/// # Safety
/// As for `function` itself with these arguments.
pub(super) unsafe fn ask<Arguments, F: guard::GuardedFunction<Arguments>>(
    abi: &Abi,
    call: &'static str,
    about: About,
    function: F,
    arguments: Arguments,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let error = match unsafe { guard::call(call, about, function, arguments) } {
        Ok(0) => return Ok(()),
        Ok(code) => abi.error(code),
        Err(lost) => lost.to_string(),
    };
    Err(Failure { call, error })
}

/// The same by the name of the function, for an interface that has `abi` and `functions`.
macro_rules! mpi_t {
    ($api:ident.$function:ident, $about:expr; $($argument:expr),*) => {
        $crate::mpi::tool::api::ask(
            $api.abi,
            concat!("MPI_T_", stringify!($function)),
            $about,
            $api.functions.$function,
            ($($argument,)*),
        )
    };
}
pub(super) use mpi_t;

/// The result of a counting function, if it is plausible.
pub(super) fn number(
    call: impl FnOnce(*mut c_int) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let mut number: c_int = 0;
    call(&raw mut number)?;
    Ok(number_of(number))
}

/// The number of things of a kind, when a library claims `number`: more than [`NUMBER_AT_MOST`] are not asked
/// for.
pub(super) fn number_of(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0).min(NUMBER_AT_MOST)
}

pub(crate) struct Api {
    pub(super) abi: &'static Abi,
    events: Option<EventApi>,
    pub(super) functions: VariableFunctions,
}

impl Api {
    /// The interface of `library`; none when it lacks one of the functions.
    pub(super) fn find(library: &Library) -> Option<Api> {
        Some(Api {
            abi: library.abi,
            events: EventApi::find(library),
            functions: VariableFunctions::find(|name| library.function(name))?,
        })
    }
}

foreign! {
    /// As in MPI 4.1, 15.3; handles of `MPI_T` are pointers in every library.
    pub(super) struct VariableFunctions: every [unsafe extern "C"] {
        init_thread(c_int, *mut c_int) = c"PMPI_T_init_thread";
        finalize() = c"PMPI_T_finalize";
        pvar_get_num(*mut c_int) = c"PMPI_T_pvar_get_num";
        pvar_get_info(
            c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_void, *mut Raw,
            *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int
        ) = c"PMPI_T_pvar_get_info";
        pvar_session_create(*mut Raw) = c"PMPI_T_pvar_session_create";
        pvar_session_free(*mut Raw) = c"PMPI_T_pvar_session_free";
        pvar_handle_alloc(
            Raw, c_int, *mut c_void, *mut Raw, *mut c_int
        ) = c"PMPI_T_pvar_handle_alloc";
        pvar_handle_free(Raw, *mut Raw) = c"PMPI_T_pvar_handle_free";
        pvar_start(Raw, Raw) = c"PMPI_T_pvar_start";
        pvar_stop(Raw, Raw) = c"PMPI_T_pvar_stop";
        pvar_read(Raw, Raw, *mut c_void) = c"PMPI_T_pvar_read";
        cvar_get_num(*mut c_int) = c"PMPI_T_cvar_get_num";
        cvar_get_info(
            c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_void, *mut Raw, *mut c_char,
            *mut c_int, *mut c_int, *mut c_int
        ) = c"PMPI_T_cvar_get_info";
        cvar_handle_alloc(c_int, *mut c_void, *mut Raw, *mut c_int) = c"PMPI_T_cvar_handle_alloc";
        cvar_handle_free(*mut Raw) = c"PMPI_T_cvar_handle_free";
        cvar_read(Raw, *mut c_void) = c"PMPI_T_cvar_read";
        cvar_write(Raw, *const c_void) = c"PMPI_T_cvar_write";
        enum_get_info(Raw, *mut c_int, *mut c_char, *mut c_int) = c"PMPI_T_enum_get_info";
        enum_get_item(Raw, c_int, *mut c_int, *mut c_char, *mut c_int) = c"PMPI_T_enum_get_item";
        category_get_num(*mut c_int) = c"PMPI_T_category_get_num";
        category_get_info(
            c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int,
            *mut c_int
        ) = c"PMPI_T_category_get_info";
        category_get_cvars(c_int, c_int, *mut c_int) = c"PMPI_T_category_get_cvars";
        category_get_pvars(c_int, c_int, *mut c_int) = c"PMPI_T_category_get_pvars";
        category_get_categories(c_int, c_int, *mut c_int) = c"PMPI_T_category_get_categories";
    }
}

/// The answer of `MPI_T_pvar_get_info`, in the library's own constants.
#[derive(Default)]
pub(crate) struct PvarInfo {
    pub(crate) name: String,
    pub(crate) verbosity: c_int,
    pub(crate) class: c_int,
    pub(crate) datatype: usize,
    pub(crate) bind: c_int,
    pub(crate) readonly: bool,
    pub(crate) continuous: bool,
    pub(crate) atomic: bool,
}

/// The text that a function writes to the caller's buffer. A text that fills the buffer may have been cut,
/// which the returned length does not reveal, so then the length is queried. A text longer than
/// [`TEXT_AT_MOST`] is cut there.
pub(super) fn sized_text(
    mut call: impl FnMut(*mut c_char, *mut c_int) -> Result<(), Failure>,
) -> Result<String, Failure> {
    const MOSTLY_ENOUGH: usize = 512;
    let mut text = [0_u8; MOSTLY_ENOUGH];
    let mut length = index_of(text.len());
    call(text.as_mut_ptr().cast(), &raw mut length)?;
    if let Some(text) = whole_text(&text) {
        return Ok(text);
    }
    let mut length: c_int = 0;
    call(ptr::null_mut(), &raw mut length)?;
    let mut text = vec![0_u8; usize::try_from(length).unwrap_or(0).min(TEXT_AT_MOST) + 2];
    let mut length = index_of(text.len());
    call(text.as_mut_ptr().cast(), &raw mut length)?;
    Ok(String::from_utf8_lossy(before_nul(&text)).into_owned())
}

/// The text in a buffer; none when it fills all but the last byte.
fn whole_text(buffer: &[u8]) -> Option<String> {
    let text = before_nul(buffer);
    (text.len() + 1 < buffer.len()).then(|| String::from_utf8_lossy(text).into_owned())
}

fn before_nul(buffer: &[u8]) -> &[u8] {
    buffer.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The first `length` bytes of a buffer that is made of words, so that every datatype is aligned.
pub(super) fn bytes_of(words: &[u64], length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(words));
    for word in words {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// An index or length as the `int` that the interface takes.
pub(super) fn index_of(index: usize) -> c_int {
    c_int::try_from(index).unwrap_or(c_int::MAX)
}

/// No variable has more elements than this.
pub(super) const COUNT_AT_MOST: c_int = 1 << 24;
/// No library has more variables, categories, or members of one.
const NUMBER_AT_MOST: usize = 1 << 20;
/// Longer than any name or description.
const TEXT_AT_MOST: usize = 1 << 20;

impl Api {
    /// The functions for events; libraries before MPI 4.0 have none.
    pub(crate) fn events(&self) -> Result<&EventApi, Failure> {
        let lacking = || Failure { call: "MPI_T events", error: "not in this library".into() };
        self.events.as_ref().ok_or_else(lacking)
    }

    pub(super) fn init_thread(&self, level: c_int) -> Result<(), Failure> {
        // Open MPI does not write it in a nested call, so it is initialised.
        let mut provided = level;
        // SAFETY: `provided` can be written.
        unsafe { mpi_t!(self.init_thread, About::Interface; level, &raw mut provided) }
    }

    pub(super) fn finalize(&self) {
        // SAFETY: pairs with the one successful init_thread. Its result changes nothing.
        _ = unsafe { mpi_t!(self.finalize, About::Interface;) };
    }

    /// How many performance variables there are now; the number grows while the program runs.
    pub(crate) fn pvar_get_num(&self) -> Result<usize, Failure> {
        // SAFETY: the pointer is to an int.
        number(|n| unsafe { mpi_t!(self.pvar_get_num, About::Interface; n) })
    }

    /// What the library says about variable `index`, which must be below the current number: beyond it some
    /// libraries crash. Without the description, see [`pvar_description`](Self::pvar_description).
    pub(crate) fn pvar_get_info(&self, index: usize) -> Result<PvarInfo, Failure> {
        let about = About::Pvar(index, None);
        let index = index_of(index);
        let mut info = PvarInfo::default();
        // A word: libraries with int handles write its lower half.
        let mut datatype: u64 = 0;
        let (mut readonly, mut continuous, mut atomic): (c_int, c_int, c_int) = (0, 0, 0);
        info.name = sized_text(|name, length| {
            // SAFETY: every pointer is to a variable of its type, or null if the value is not wanted (MPI 4.1,
            // 15.3.3), and `length` is that of `name`.
            unsafe {
                mpi_t!(self.pvar_get_info, about;
                    index, name, length, &raw mut info.verbosity, &raw mut info.class,
                    (&raw mut datatype).cast(), null_mut(), null_mut(), null_mut(),
                    &raw mut info.bind, &raw mut readonly, &raw mut continuous, &raw mut atomic)
            }
        })?;
        info.datatype = usize::try_from(datatype).unwrap_or(0);
        // Bit masks in MPICH and Intel MPI: anything but 0 is true.
        (info.readonly, info.continuous, info.atomic) =
            (readonly != 0, continuous != 0, atomic != 0);
        Ok(info)
    }

    pub(super) fn pvar_session_create(&self) -> Result<Raw, Failure> {
        let mut session: Raw = ptr::null_mut();
        // SAFETY: `session` can be written.
        unsafe { mpi_t!(self.pvar_session_create, About::Interface; &raw mut session) }?;
        Ok(session)
    }

    /// # Safety
    /// `session` is from `pvar_session_create` and is not used again.
    pub(super) unsafe fn pvar_session_free(&self, mut session: Raw) {
        // SAFETY: the caller's promise.
        _ = unsafe { mpi_t!(self.pvar_session_free, About::Interface; &raw mut session) };
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
        (index, name): (usize, &str),
        object: *mut c_void,
    ) -> Result<(Raw, usize), Failure> {
        let mut handle: Raw = ptr::null_mut();
        // Open MPI does not write the count of a variable that is switched off.
        let mut count: c_int = 1;
        // After an error the handle must not be used, even if it was written. SAFETY: the caller's
        // promise; `handle` and `count` can be written.
        unsafe {
            mpi_t!(self.pvar_handle_alloc, About::Pvar(index, Some(name));
                session, index_of(index), object, &raw mut handle, &raw mut count)
        }?;
        Ok((handle, usize::try_from(count.clamp(0, COUNT_AT_MOST)).unwrap_or(0)))
    }

    /// # Safety
    /// `handle` is from `pvar_handle_alloc` in the same `session` and is not used again.
    pub(super) unsafe fn pvar_handle_free(&self, about: About, session: Raw, mut handle: Raw) {
        // SAFETY: the caller's promise.
        _ = unsafe { mpi_t!(self.pvar_handle_free, about; session, &raw mut handle) };
    }

    /// # Safety
    /// `session` and `handle` are alive, the variable is not continuous and not running.
    pub(super) unsafe fn pvar_start(
        &self,
        about: About,
        session: Raw,
        handle: Raw,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { mpi_t!(self.pvar_start, about; session, handle) }
    }

    /// # Safety
    /// `session` and `handle` are alive, the variable is not continuous and is running.
    pub(super) unsafe fn pvar_stop(
        &self,
        about: About,
        session: Raw,
        handle: Raw,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { mpi_t!(self.pvar_stop, about; session, handle) }
    }

    /// # Safety
    /// `session` and `handle` are alive, and so is the object that the handle is bound to; the
    /// variable runs; `buffer` has room for all of its elements.
    pub(super) unsafe fn pvar_read(
        &self,
        about: About,
        session: Raw,
        handle: Raw,
        buffer: *mut c_void,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { mpi_t!(self.pvar_read, about; session, handle, buffer) }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    /// What happens to `text` when the library says that it has `claimed` bytes, and the largest buffer that
    /// the library was given.
    fn claimed(text: &[u8], claimed: c_int) -> (String, c_int) {
        let mut largest = 0;
        let got = sized_text(|to, length| {
            // SAFETY: `sized_text` passes the address of a length.
            let length = unsafe { &mut *length };
            largest = largest.max(*length);
            if !to.is_null() {
                let room = usize::try_from(*length).unwrap_or(0);
                // SAFETY: `sized_text` passes a buffer of this many bytes, all 0.
                let buffer = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), room) };
                let copied = text.len().min(room - 1);
                buffer[..copied].copy_from_slice(&text[..copied]);
            }
            *length = claimed;
            Ok(())
        });
        (got.unwrap_or_default(), largest)
    }

    #[test]
    fn a_text_gets_the_room_that_it_needs_and_no_more_than_any_has() {
        let bytes = |length: usize| vec![b'x'; length];
        assert_eq!(claimed(b"short", c_int::MAX), ("short".into(), 512));
        let (text, _) = claimed(&bytes(4096), 4097);
        assert_eq!(text.len(), 4096);
        let (text, room) = claimed(&bytes(4096), c_int::MAX);
        assert_eq!((text.len(), room), (4096, index_of(TEXT_AT_MOST + 2)));
        let (text, _) = claimed(&bytes(2 * TEXT_AT_MOST), c_int::MAX);
        assert_eq!(text.len(), TEXT_AT_MOST + 1);
        assert_eq!(claimed(&bytes(4096), -1).0, "x");
    }

    #[test]
    fn a_number_that_no_library_can_mean_is_not_believed() {
        let claimed = |claimed| {
            let write = |number: *mut c_int| {
                // SAFETY: `number` passes the address of an int.
                unsafe { number.write(claimed) };
                Ok(())
            };
            number(write).unwrap_or(0)
        };
        assert_eq!([-1, 0, 7].map(claimed), [0, 0, 7]);
        assert_eq!(claimed(c_int::MAX), NUMBER_AT_MOST);
    }
}
