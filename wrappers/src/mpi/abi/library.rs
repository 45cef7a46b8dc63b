//! The MPI library in this process: where it is, what it is, and the few of its functions that
//! gyan calls outside of `MPI_T`.

use std::ffi::{CStr, c_char, c_int, c_void};

use gyan_results::{Datatype, Mpi};

use super::identity::{Implementation, Version, identify};
use super::{Abi, Constant, of_library};
use crate::sys::foreign::foreign;
use crate::sys::peek::word;
use crate::sys::symbols::{self, Address, LoadedObject, Next};

#[derive(Clone)]
pub(crate) struct Library {
    pub(crate) abi: &'static Abi,
    object: LoadedObject,
    /// The first line of `MPI_Get_library_version`.
    description: String,
    device: Option<String>,
    pub(crate) implementation: Implementation,
    pub(crate) version: Version,
    standard: (c_int, c_int),
    /// The handles of the datatypes that a variable of `MPI_T` can have.
    datatypes: Vec<(Datatype, usize)>,
}

impl Library {
    /// The MPI library in this process. An error names the unknown object.
    pub(crate) fn find() -> Result<Library, String> {
        let init = symbols::next(c"PMPI_Init").or_else(|| symbols::next(c"MPI_Init"));
        let object = init.and_then(LoadedObject::holding).ok_or("no object defines MPI_Init")?;
        let find = |name: &CStr| object.find(name);
        let abi = of_library(&find, &object.path.to_string_lossy())?;
        let mut library = Library {
            abi,
            description: String::new(),
            device: None,
            implementation: Implementation::Other,
            version: (0, 0, 0),
            standard: (0, 0),
            datatypes: Vec::new(),
            object,
        };
        let datatypes = abi.datatypes.iter();
        library.datatypes = datatypes
            .filter_map(|(datatype, constant)| Some((*datatype, library.handle(*constant)?)))
            .collect();
        library.standard = library.get_version().ok_or("MPI_Get_version failed")?;
        let version = library.get_library_version().unwrap_or_default();
        version.lines().next().unwrap_or_default().trim().clone_into(&mut library.description);
        library.device = version.lines().find_map(device);
        (library.implementation, library.version) = identify(&library.description);
        Ok(library)
    }

    pub(crate) fn path(&self) -> String {
        self.object.path.to_string_lossy().into_owned()
    }

    /// In the form of a profile or a listing.
    pub(crate) fn described(&self, thread_level: &str) -> Mpi {
        Mpi {
            abi: self.abi.name.into(),
            standard: format!("{}.{}", self.standard.0, self.standard.1),
            library: self.description.clone(),
            device: self.device.clone(),
            library_path: self.path(),
            thread_level: thread_level.into(),
        }
    }

    /// The function with profiling name `pmpi`. Some libraries lack some of these; then the name without the
    /// leading `P` in the library itself, so that no tool sees gyan's own calls.
    pub(crate) fn function(&self, pmpi: &'static CStr) -> Option<Address> {
        self.object.find(pmpi).or_else(|| {
            let name = pmpi.to_bytes_with_nul().strip_prefix(b"P")?;
            self.object.find(CStr::from_bytes_with_nul(name).ok()?)
        })
    }

    /// The value of a predefined handle.
    pub(crate) fn handle(&self, constant: Constant) -> Option<usize> {
        match constant {
            Constant::Value(value) => Some(value),
            // The executable's copy first: that is the initialised one.
            Constant::Symbol(name) => symbols::default(name)
                .or_else(|| self.object.find(name))
                .map(|address| address.as_ptr() as usize),
        }
    }

    /// The datatype that a handle stands for, if a variable of `MPI_T` can have it.
    pub(crate) fn datatype(&self, handle: usize) -> Option<Datatype> {
        self.datatypes.iter().find(|(_, known)| *known == handle).map(|(datatype, _)| *datatype)
    }

    /// The handle of a datatype that a variable of `MPI_T` can have.
    pub(crate) fn datatype_handle(&self, datatype: Datatype) -> Option<usize> {
        self.datatypes.iter().find(|(known, _)| *known == datatype).map(|(_, handle)| *handle)
    }

    /// `MPI_Initialized`: also false for a library without that function.
    pub(crate) fn is_initialized(&self) -> bool {
        self.integer(c"PMPI_Initialized").is_some_and(|flag| flag != 0)
    }

    /// `MPI_Query_thread`, between initialisation and the end.
    pub(crate) fn query_thread(&self) -> Option<c_int> {
        self.integer(c"PMPI_Query_thread")
    }

    /// Rank in and size of the process set `mpi://WORLD`, for a session without `MPI_COMM_WORLD`. `session` is
    /// the address of its handle.
    pub(crate) fn world_of_session(&self, session: *mut c_void) -> Option<(u32, u32)> {
        // SAFETY: MPI_Session_init has written a handle of this many bytes there.
        let session = unsafe { word(session as usize, self.abi.handle_bytes, 0) };
        let mut group: usize = 0;
        let functions = GroupFunctions::find(|name| self.function(name))?;
        if (functions.from_session)(session, c"mpi://WORLD".as_ptr(), &raw mut group) != 0 {
            return None;
        }
        let place = self.rank_and_size(group, c"PMPI_Group_rank", c"PMPI_Group_size");
        (functions.free)(&raw mut group);
        place
    }

    /// Rank in and size of `MPI_COMM_WORLD`, between initialisation and the end.
    pub(crate) fn world(&self) -> Option<(u32, u32)> {
        let world = self.handle(self.abi.comm_world)?;
        self.rank_and_size(world, c"PMPI_Comm_rank", c"PMPI_Comm_size")
    }

    fn rank_and_size(
        &self,
        handle: usize,
        rank: &'static CStr,
        size: &'static CStr,
    ) -> Option<(u32, u32)> {
        let of_handle = |name| {
            // MPI_Comm_rank, MPI_Group_rank and the corresponding size functions have this prototype (MPI 4.1, 7.3.1
            // and 7.4.1).
            let function =
                foreign!(self.function(name)?, extern "C" fn(usize, *mut c_int) -> c_int);
            let mut value: c_int = -1;
            let succeeded = function(handle, &raw mut value) == 0;
            if succeeded { u32::try_from(value).ok() } else { None }
        };
        Some((of_handle(rank)?, of_handle(size)?))
    }

    /// Whether `MPI_Comm_spawn` started this process, between initialisation and the end.
    pub(crate) fn is_spawned(&self) -> bool {
        let null = self.handle(self.abi.comm_null);
        let (Some(function), Some(null)) = (self.function(c"PMPI_Comm_get_parent"), null) else {
            return false;
        };
        // MPI 4.1, 11.8.2; a word has room for the handle of every interface.
        let function = foreign!(function, extern "C" fn(*mut usize) -> c_int);
        // The bytes beyond a narrower handle are 0, as in the table.
        let mut parent: usize = 0;
        function(&raw mut parent) == 0 && parent != null
    }

    /// The result of a function with one `int*` argument.
    fn integer(&self, name: &'static CStr) -> Option<c_int> {
        // MPI_Initialized and MPI_Query_thread have this prototype (MPI 4.1, 11.2).
        let function = foreign!(self.function(name)?, extern "C" fn(*mut c_int) -> c_int);
        let mut value: c_int = 0;
        (function(&raw mut value) == 0).then_some(value)
    }

    fn get_version(&self) -> Option<(c_int, c_int)> {
        let function = self.function(c"PMPI_Get_version")?;
        // MPI 4.1, 9.1.1; callable before MPI_Init.
        let function = foreign!(function, extern "C" fn(*mut c_int, *mut c_int) -> c_int);
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        (function(&raw mut major, &raw mut minor) == 0).then_some((major, minor))
    }

    fn get_library_version(&self) -> Option<String> {
        let function = self.function(c"PMPI_Get_library_version")?;
        // MPI 4.1, 9.1.1; callable before MPI_Init.
        let function = foreign!(function, extern "C" fn(*mut c_char, *mut c_int) -> c_int);
        let mut text: Vec<u8> = vec![0; self.abi.library_version_bytes + 1];
        let mut length: c_int = 0;
        if function(text.as_mut_ptr().cast(), &raw mut length) != 0 {
            return None;
        }
        Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned())
    }
}

foreign! {
    /// As in MPI 4.1, 7.3.2 and 7.3.3.
    struct GroupFunctions: every [extern "C"] {
        from_session(usize, *const c_char, *mut usize) = c"PMPI_Group_from_session_pset";
        free(*mut usize) = c"PMPI_Group_free";
    }
}

/// The device that MPICH and its descendants were built with, from a line of their version text.
fn device(line: &str) -> Option<String> {
    let (label, device) = line.split_once(':')?;
    label.trim_end().ends_with("Device").then(|| device.trim().to_owned())
}

/// `MPI_Initialized`, whatever the library: false for a process without one.
pub(crate) fn is_initialized() -> bool {
    static NEXT: Next = Next::new();
    let Some(function) = NEXT.get(c"PMPI_Initialized") else { return false };
    // MPI 4.1, 11.2.1; callable at any time.
    let function = foreign!(function, extern "C" fn(*mut c_int) -> c_int);
    let mut flag: c_int = 0;
    function(&raw mut flag) == 0 && flag != 0
}
