//! What `MPI_T` tells about control variables, enumerations and categories, and the values of control
//! variables.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use gyan_results::{Datatype, Item};

use super::api::{
    Api, COUNT_AT_MOST, Failure, Raw, ask, bytes_of, index_of, mpi_t, number, number_of, sized_text,
};
use super::handle::Lent;
use crate::sys::guard::About;

/// The answer of `MPI_T_cvar_get_info`, in the library's own constants.
#[derive(Default)]
pub(crate) struct CvarInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) verbosity: c_int,
    pub(crate) datatype: usize,
    pub(crate) enumeration: Option<Enumeration>,
    pub(crate) bind: c_int,
    pub(crate) scope: c_int,
}

/// An enumeration of the library, by its handle.
#[derive(Clone, Copy)]
pub(crate) struct Enumeration(Raw);

/// A category: its name and description, and the indices of its members.
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) cvars: Vec<usize>,
    pub(crate) pvars: Vec<usize>,
    pub(crate) categories: Vec<usize>,
}

/// A handle on a control variable.
pub(crate) struct CvarHandle {
    raw: Raw,
    index: usize,
    _object: Lent,
    pub(crate) count: usize,
}

impl Api {
    /// How many control variables there are now.
    pub(crate) fn cvar_get_num(&self) -> Result<usize, Failure> {
        // SAFETY: the pointer is to an int.
        number(|n| unsafe { mpi_t!(self.cvar_get_num, About::Interface; n) })
    }

    /// How many categories there are now.
    pub(crate) fn category_get_num(&self) -> Result<usize, Failure> {
        // SAFETY: the pointer is to an int.
        number(|n| unsafe { mpi_t!(self.category_get_num, About::Interface; n) })
    }

    /// Only the name of control variable `index`, which is below the current number.
    pub(crate) fn cvar_name(&self, index: usize) -> Result<String, Failure> {
        let about = About::Cvar(index, None);
        sized_text(|name, length| {
            // SAFETY: `length` is that of `name`; every other argument may be null.
            unsafe {
                mpi_t!(self.cvar_get_info, about;
                    index_of(index), name, length, null_mut(), null_mut(), null_mut(), null_mut(),
                    null_mut(), null_mut(), null_mut())
            }
        })
    }

    /// What the library says about control variable `index`, which is below the current number.
    pub(crate) fn cvar_get_info(&self, index: usize) -> Result<CvarInfo, Failure> {
        let mut info = CvarInfo { name: self.cvar_name(index)?, ..CvarInfo::default() };
        // A word: libraries with int handles write its lower half.
        let mut datatype: u64 = 0;
        let name = info.name.clone();
        let about = About::Cvar(index, Some(&name));
        let mut enumeration: Raw = null_mut();
        info.description = sized_text(|description, length| {
            // SAFETY: every pointer is to a variable of its type or null, and `length` is that of
            // `description`.
            unsafe {
                mpi_t!(self.cvar_get_info, about;
                    index_of(index), null_mut(), null_mut(), &raw mut info.verbosity,
                    (&raw mut datatype).cast(), &raw mut enumeration, description, length,
                    &raw mut info.bind, &raw mut info.scope)
            }
        })?;
        info.datatype = usize::try_from(datatype).unwrap_or(0);
        // MPI_T_ENUM_NULL is null in every interface.
        info.enumeration = (!enumeration.is_null()).then_some(Enumeration(enumeration));
        Ok(info)
    }

    /// The description and the enumeration of performance variable `index`, which is below the
    /// current number.
    pub(crate) fn pvar_description(
        &self,
        index: usize,
    ) -> Result<(String, Option<Enumeration>), Failure> {
        let about = About::Pvar(index, None);
        let mut enumeration: Raw = null_mut();
        let description = sized_text(|description, length| {
            // SAFETY: every pointer is to a variable of its type or null, and `length` is that of
            // `description`.
            unsafe {
                mpi_t!(self.pvar_get_info, about;
                    index_of(index), null_mut(), null_mut(), null_mut(), null_mut(), null_mut(),
                    &raw mut enumeration, description, length, null_mut(), null_mut(), null_mut(),
                    null_mut())
            }
        })?;
        Ok((description, (!enumeration.is_null()).then_some(Enumeration(enumeration))))
    }

    /// The items of an enumeration: value and name of each.
    pub(crate) fn enum_items(&self, of: Enumeration) -> Result<Vec<Item>, Failure> {
        let items = number(|n| {
            // SAFETY: the enumeration is one that the library gave; the name is not wanted.
            unsafe { mpi_t!(self.enum_get_info, About::Interface; of.0, n, null_mut(), null_mut()) }
        })?;
        let item = |index| {
            let mut value: c_int = 0;
            let name = sized_text(|name, length| {
                // SAFETY: the index is below the number of items, `length` is that of `name`.
                unsafe {
                    mpi_t!(self.enum_get_item, About::Interface;
                        of.0, index_of(index), &raw mut value, name, length)
                }
            })?;
            Ok(Item { value, name })
        };
        (0..items).map(item).collect()
    }

    /// A handle on control variable `index`, which was enumerated just before, bound to the communicator
    /// `object` if it binds to one.
    pub(crate) fn cvar_handle(
        &self,
        index: usize,
        object: Option<usize>,
    ) -> Result<CvarHandle, Failure> {
        let mut object = Lent::new(object);
        let mut raw: Raw = null_mut();
        let mut count: c_int = 1;
        let about = About::Cvar(index, None);
        // SAFETY: the object goes into the handle, so it stays where it is; `raw` and `count` can
        // be written.
        unsafe {
            mpi_t!(self.cvar_handle_alloc, about;
                index_of(index), object.address(), &raw mut raw, &raw mut count)
        }?;
        let count = usize::try_from(count.clamp(0, COUNT_AT_MOST)).unwrap_or(0);
        Ok(CvarHandle { raw, index, _object: object, count })
    }

    /// The bytes of every element; for a text, those before its first NUL, which may be more than its number of
    /// elements.
    pub(crate) fn cvar_read(
        &self,
        handle: &CvarHandle,
        datatype: Datatype,
    ) -> Result<Vec<u8>, Failure> {
        // Open MPI copies texts without checking their length, so the buffer is far larger than any text seen.
        const BYTES_OF_TEXT: usize = 64 * 1024;
        const WORDS_TO_SPARE: usize = 8;
        let is_text = datatype == Datatype::Char;
        let spare = if is_text { BYTES_OF_TEXT / 8 } else { WORDS_TO_SPARE };
        let mut words = vec![0_u64; handle.count.max(1) + spare];
        let about = About::Cvar(handle.index, None);
        // SAFETY: the handle is alive, and the buffer is larger than all elements.
        unsafe { mpi_t!(self.cvar_read, about; handle.raw, words.as_mut_ptr().cast()) }?;
        if is_text {
            let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
            return Ok(bytes.take_while(|&byte| byte != 0).collect());
        }
        Ok(bytes_of(&words, handle.count * datatype.size()))
    }

    /// Writes every element.
    pub(crate) fn cvar_write(&self, handle: &CvarHandle, bytes: &[u8]) -> Result<(), Failure> {
        // Aligned, and large enough for this many elements of any datatype.
        let mut words = vec![0_u64; bytes.len() / 8 + handle.count.max(1) + 1];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            for (to, from) in whole.iter_mut().zip(bytes) {
                *to = *from;
            }
            *word = u64::from_ne_bytes(whole);
        }
        let about = About::Cvar(handle.index, None);
        // SAFETY: the handle is alive, and the buffer holds all elements.
        unsafe { mpi_t!(self.cvar_write, about; handle.raw, words.as_ptr().cast::<c_void>()) }
    }

    pub(crate) fn cvar_free(&self, mut handle: CvarHandle) {
        // SAFETY: the handle was allocated and is gone.
        _ = unsafe {
            mpi_t!(self.cvar_handle_free, About::Cvar(handle.index, None); &raw mut handle.raw)
        };
    }

    /// Category `index`, which is below the current number.
    pub(crate) fn category(&self, index: usize) -> Result<Category, Failure> {
        let about = About::Category(index);
        let index = index_of(index);
        let (mut cvars, mut pvars, mut categories): (c_int, c_int, c_int) = (0, 0, 0);
        let name = sized_text(|name, length| {
            // SAFETY: `length` is that of `name`; every other argument may be null.
            unsafe {
                mpi_t!(self.category_get_info, about;
                    index, name, length, null_mut(), null_mut(), null_mut(), null_mut(),
                    null_mut())
            }
        })?;
        let description = sized_text(|description, length| {
            // SAFETY: every pointer is to an int or null, and `length` is that of `description`.
            unsafe {
                mpi_t!(self.category_get_info, about;
                    index, null_mut(), null_mut(), description, length, &raw mut cvars,
                    &raw mut pvars, &raw mut categories)
            }
        })?;
        let members = |call: &'static str,
                       get: unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
                       number: c_int| {
            // Entries that the library does not write are not indices.
            let mut indices: Vec<c_int> = vec![-1; number_of(number)];
            let arguments = (index, index_of(indices.len()), indices.as_mut_ptr());
            // SAFETY: there is room for as many indices as are asked for.
            unsafe { ask(self.abi, call, about, get, arguments) }?;
            Ok(indices.into_iter().filter_map(|index| usize::try_from(index).ok()).collect())
        };
        Ok(Category {
            name,
            description,
            cvars: members("MPI_T_category_get_cvars", self.functions.category_get_cvars, cvars)?,
            pvars: members("MPI_T_category_get_pvars", self.functions.category_get_pvars, pvars)?,
            categories: members(
                "MPI_T_category_get_categories",
                self.functions.category_get_categories,
                categories,
            )?,
        })
    }
}
