//! The library that writes OTF2 archives, which is opened at run time, as nothing else needs it: its functions that an archive of
//! gyan takes, with the types that they have in its version 3 (`otf2/OTF2_*.h`).

#![allow(unsafe_code)]

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::Error;

/// Debian gives it a name of its own.
const NAMES: [&str; 2] = ["libopen-trace-format2.so.10", "libotf2.so.10"];

type Handle = *mut c_void;
type Text = *const c_char;
type ErrorCallback =
    extern "C" fn(Handle, Text, u64, Text, c_int, Text, arguments: *mut c_void) -> c_int;

/// The functions as a struct: a line gives a field, the symbol and the type.
macro_rules! library_functions {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*) -> $returns:ty;)*) => {
        struct OtfFunctions {
            $($name: unsafe extern "C" fn($($type),*) -> $returns,)*
        }

        impl OtfFunctions {
            fn load(library: &Library) -> Result<OtfFunctions, libloading::Error> {
                Ok(OtfFunctions {
                    // SAFETY: in version 3 of the library, of which this is a name, these symbols have these types.
                    $($name: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }?,)*
                })
            }

            // Only the types of this file call them, each with a handle that the library gave it and that is not closed, and with
            // texts that end with 0.
            $(
                #[allow(clippy::too_many_arguments)]
                fn $name(&self, $($argument: $type),*) -> $returns {
                    // SAFETY: see above.
                    unsafe { (self.$name)($($argument),*) }
                }
            )*
        }
    };
}

library_functions! {
    register_callback = "OTF2_Error_RegisterCallback"(callback: ErrorCallback, data: Handle) -> Handle;
    describe = "OTF2_Error_GetDescription"(code: c_int) -> Text;
    open = "OTF2_Archive_Open"(directory: Text, name: Text, mode: u8, events: u64, definitions: u64, substrate: u8, compression: u8) -> Handle;
    set_flush = "OTF2_Archive_SetFlushCallbacks"(archive: Handle, callbacks: *const FlushCallbacks, data: Handle) -> c_int;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks"(archive: Handle) -> c_int;
    set_creator = "OTF2_Archive_SetCreator"(archive: Handle, creator: Text) -> c_int;
    open_events = "OTF2_Archive_OpenEvtFiles"(archive: Handle) -> c_int;
    close_events = "OTF2_Archive_CloseEvtFiles"(archive: Handle) -> c_int;
    event_writer = "OTF2_Archive_GetEvtWriter"(archive: Handle, location: u64) -> Handle;
    close_event_writer = "OTF2_Archive_CloseEvtWriter"(archive: Handle, writer: Handle) -> c_int;
    open_definitions = "OTF2_Archive_OpenDefFiles"(archive: Handle) -> c_int;
    close_definitions = "OTF2_Archive_CloseDefFiles"(archive: Handle) -> c_int;
    location_definitions = "OTF2_Archive_GetDefWriter"(archive: Handle, location: u64) -> Handle;
    close_location_definitions = "OTF2_Archive_CloseDefWriter"(archive: Handle, writer: Handle) -> c_int;
    definition_writer = "OTF2_Archive_GetGlobalDefWriter"(archive: Handle) -> Handle;
    close_definition_writer = "OTF2_Archive_CloseGlobalDefWriter"(archive: Handle, writer: Handle) -> c_int;
    close = "OTF2_Archive_Close"(archive: Handle) -> c_int;
    new_attributes = "OTF2_AttributeList_New"() -> Handle;
    add_text = "OTF2_AttributeList_AddStringRef"(attributes: Handle, attribute: u32, text: u32) -> c_int;
    enter = "OTF2_EvtWriter_Enter"(writer: Handle, attributes: Handle, time: u64, region: u32) -> c_int;
    leave = "OTF2_EvtWriter_Leave"(writer: Handle, attributes: Handle, time: u64, region: u32) -> c_int;
    send = "OTF2_EvtWriter_MpiSend"(writer: Handle, attributes: Handle, time: u64, receiver: u32, communicator: u32, tag: u32, bytes: u64) -> c_int;
    isend = "OTF2_EvtWriter_MpiIsend"(writer: Handle, attributes: Handle, time: u64, receiver: u32, communicator: u32, tag: u32, bytes: u64, request: u64) -> c_int;
    isend_complete = "OTF2_EvtWriter_MpiIsendComplete"(writer: Handle, attributes: Handle, time: u64, request: u64) -> c_int;
    irecv_request = "OTF2_EvtWriter_MpiIrecvRequest"(writer: Handle, attributes: Handle, time: u64, request: u64) -> c_int;
    recv = "OTF2_EvtWriter_MpiRecv"(writer: Handle, attributes: Handle, time: u64, sender: u32, communicator: u32, tag: u32, bytes: u64) -> c_int;
    irecv = "OTF2_EvtWriter_MpiIrecv"(writer: Handle, attributes: Handle, time: u64, sender: u32, communicator: u32, tag: u32, bytes: u64, request: u64) -> c_int;
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin"(writer: Handle, attributes: Handle, time: u64) -> c_int;
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd"(writer: Handle, attributes: Handle, time: u64, operation: u8, communicator: u32, root: u32, sent: u64, received: u64) -> c_int;
    collective_request = "OTF2_EvtWriter_NonBlockingCollectiveRequest"(writer: Handle, attributes: Handle, time: u64, request: u64) -> c_int;
    collective_complete = "OTF2_EvtWriter_NonBlockingCollectiveComplete"(writer: Handle, attributes: Handle, time: u64, operation: u8, communicator: u32, root: u32, sent: u64, received: u64, request: u64) -> c_int;
    clock = "OTF2_GlobalDefWriter_WriteClockProperties"(writer: Handle, resolution: u64, offset: u64, length: u64, realtime: u64) -> c_int;
    paradigm = "OTF2_GlobalDefWriter_WriteParadigm"(writer: Handle, paradigm: u8, name: u32, class: u8) -> c_int;
    text = "OTF2_GlobalDefWriter_WriteString"(writer: Handle, number: u32, text: Text) -> c_int;
    attribute = "OTF2_GlobalDefWriter_WriteAttribute"(writer: Handle, number: u32, name: u32, description: u32, kind: u8) -> c_int;
    node = "OTF2_GlobalDefWriter_WriteSystemTreeNode"(writer: Handle, number: u32, name: u32, class: u32, parent: u32) -> c_int;
    node_domain = "OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain"(writer: Handle, node: u32, domain: u8) -> c_int;
    location_group = "OTF2_GlobalDefWriter_WriteLocationGroup"(writer: Handle, number: u32, name: u32, kind: u8, node: u32, creator: u32) -> c_int;
    location = "OTF2_GlobalDefWriter_WriteLocation"(writer: Handle, number: u64, name: u32, kind: u8, events: u64, group: u32) -> c_int;
    region = "OTF2_GlobalDefWriter_WriteRegion"(writer: Handle, number: u32, name: u32, canonical_name: u32, description: u32, role: u8, paradigm: u8, flags: u32, file: u32, begin: u32, end: u32) -> c_int;
    group = "OTF2_GlobalDefWriter_WriteGroup"(writer: Handle, number: u32, name: u32, kind: u8, paradigm: u8, flags: u32, count: u32, members: *const u64) -> c_int;
    communicator = "OTF2_GlobalDefWriter_WriteComm"(writer: Handle, number: u32, name: u32, group: u32, parent: u32, flags: u32) -> c_int;
}

/// `OTF2_FlushCallbacks`.
#[repr(C)]
struct FlushCallbacks {
    before: extern "C" fn(Handle, u8, u64, Handle, bool) -> u8,
    /// None: no event says that a buffer was written.
    after: Option<extern "C" fn(Handle, u8, u64) -> u64>,
}

static FLUSH_CALLBACKS: FlushCallbacks = FlushCallbacks { before: flush, after: None };

/// Full buffers are written.
extern "C" fn flush(_: Handle, _file: u8, _location: u64, _: Handle, _is_final: bool) -> u8 {
    const FLUSH: u8 = 1;
    FLUSH
}

/// The library prints nothing: what went wrong is said once, by the command.
extern "C" fn stay_quiet(
    _: Handle,
    _file: Text,
    _line: u64,
    _function: Text,
    code: c_int,
    _format: Text,
    _arguments: *mut c_void,
) -> c_int {
    code
}

/// What has no reference: `OTF2_UNDEFINED_*`, `OTF2_COLLECTIVE_ROOT_NONE`.
pub(super) const UNDEFINED: u32 = u32::MAX;
const UNDEFINED_TIME: u64 = u64::MAX;

#[derive(Clone, Copy)]
pub(super) enum Paradigm {
    User = 1,
    Mpi = 4,
}

/// `OTF2_GroupType`.
#[derive(Clone, Copy)]
pub(super) enum GroupKind {
    Locations = 4,
    /// Ranks, by their places among these.
    Ranks = 5,
}

/// `OTF2_SystemTreeDomain`.
#[derive(Clone, Copy)]
pub(super) enum TreeDomain {
    Machine = 0,
    SharedMemory = 1,
}

/// A definition of the whole archive. Numbers refer to definitions of the kind that the field names; names are texts. Times of
/// the clock are in ns, from 0 to below `length`. An attribute is one of events, whose value is a text.
pub(super) enum Definition {
    Clock { length: u64 },
    Paradigm { paradigm: Paradigm, name: u32 },
    Text { number: u32, text: String },
    Attribute { number: u32, name: u32, description: u32 },
    Node { number: u32, name: u32, class: u32, parent: u32, domain: TreeDomain },
    Process { number: u32, name: u32, node: u32 },
    Thread { number: u64, name: u32, events: u64, process: u32 },
    Region { number: u32, name: u32, role: u8, paradigm: Paradigm, none: u32 },
    Group { number: u32, name: u32, kind: GroupKind, members: Vec<u64> },
    Communicator { number: u32, name: u32, group: u32 },
}

/// An event of a location. `peer` and `root` are ranks in the communicator; `called_at` is the text of the attribute, if there is one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ArchiveEvent {
    Enter { region: u32, called_at: Option<u32> },
    Leave { region: u32 },
    Send { message: ArchiveMessage, request: Option<u64> },
    SendCompleted { request: u64 },
    Posted { request: u64 },
    Received { message: ArchiveMessage, request: Option<u64> },
    CollectiveBegin,
    CollectiveEnd(ArchiveOperation),
    CollectiveRequested { request: u64 },
    CollectiveCompleted { operation: ArchiveOperation, request: u64 },
}

/// A collective operation: its number, and what it sent and received in bytes, 0 where that is not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ArchiveOperation {
    pub(super) operation: u8,
    pub(super) communicator: u32,
    pub(super) root: u32,
    pub(super) sent: u64,
    pub(super) received: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ArchiveMessage {
    pub(super) peer: u32,
    pub(super) communicator: u32,
    pub(super) tag: u32,
    pub(super) bytes: u64,
}

/// An archive that is being written.
pub(super) struct ArchiveFile {
    functions: OtfFunctions,
    archive: Handle,
    /// Of the next event; the library empties it when that is written.
    attributes: Handle,
    /// The functions are its.
    _library: Library,
}

/// The number of the only attribute.
pub(super) const CALLED_AT: u32 = 0;

fn open_library() -> Result<(Library, OtfFunctions), Error> {
    let open = |name| {
        // SAFETY: the initialisers of the library do nothing but to set its own variables.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }?;
        let functions = OtfFunctions::load(&library)?;
        Ok((library, functions))
    };
    let [debian, other] = NAMES;
    let failed = match open(debian) {
        Ok(opened) => return Ok(opened),
        Err(failed) => failed,
    };
    if let Ok(opened) = open(other) {
        return Ok(opened);
    }
    let failed: libloading::Error = failed;
    let text = failed.source().map_or_else(|| failed.to_string(), ToString::to_string);
    let text = text.strip_prefix(debian).map_or(&*text, |text| text.trim_start_matches(": "));
    let remedy = "OTF2 needs Debian's package libotf2-trace-dev, or version 3 of the library with LD_LIBRARY_PATH";
    Err(Error::new(debian, text, remedy))
}

fn c_text(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::other("a name holds a byte 0"))
}

impl ArchiveFile {
    /// Begins the archive `name` (`name.otf2`, `name.def`, `name/`) in a directory.
    pub(super) fn create(directory: &Path, name: &[u8]) -> Result<ArchiveFile, Error> {
        const WRITE: u8 = 0;
        const POSIX: u8 = 1;
        const NO_COMPRESSION: u8 = 1;
        const EVENTS: u64 = 1 << 20;
        const DEFINITIONS: u64 = 4 << 20;
        let (library, functions) = open_library()?;
        functions.register_callback(stay_quiet, null_mut());
        let create = || {
            let (path, name) = (c_text(directory.as_os_str().as_bytes())?, c_text(name)?);
            let (path, name) = (path.as_ptr(), name.as_ptr());
            let archive =
                functions.open(path, name, WRITE, EVENTS, DEFINITIONS, POSIX, NO_COMPRESSION);
            if archive.is_null() {
                return Err(io::Error::other("OTF2 cannot begin an archive"));
            }
            let creator = c_text(format!("gyan {}", env!("CARGO_PKG_VERSION")).as_bytes())?;
            functions.checked(functions.set_flush(
                archive,
                &raw const FLUSH_CALLBACKS,
                null_mut(),
            ))?;
            functions.checked(functions.set_serial(archive))?;
            functions.checked(functions.set_creator(archive, creator.as_ptr()))?;
            functions.checked(functions.open_events(archive))?;
            Ok((archive, functions.new_attributes()))
        };
        let (archive, attributes) =
            create().map_err(|error| Error::io(directory, &error, "name another file with -o"))?;
        Ok(ArchiveFile { functions, archive, attributes, _library: library })
    }

    /// Writes the events of a location, whose times rise. Returns how many there are.
    pub(super) fn write_location(
        &mut self,
        location: u64,
        events: impl Iterator<Item = (u64, ArchiveEvent)>,
    ) -> io::Result<u64> {
        let writer = self.functions.event_writer(self.archive, location);
        if writer.is_null() {
            return Err(io::Error::other("OTF2 cannot begin the events of a thread"));
        }
        let mut written = 0;
        for (time, event) in events {
            self.functions.checked(self.write_event(writer, time, &event))?;
            written += 1;
        }
        self.functions.checked(self.functions.close_event_writer(self.archive, writer))?;
        Ok(written)
    }

    fn write_event(&self, writer: Handle, time: u64, event: &ArchiveEvent) -> c_int {
        type MessageFn = fn(&OtfFunctions, Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
        type RequestFn = fn(&OtfFunctions, Handle, Handle, u64, u32, u32, u32, u64, u64) -> c_int;
        let Self { functions, attributes, .. } = self;
        let message_event = |write: MessageFn, message: &ArchiveMessage| {
            let ArchiveMessage { peer, communicator, tag, bytes } = *message;
            write(functions, writer, null_mut(), time, peer, communicator, tag, bytes)
        };
        let requested_event = |write: RequestFn, message: &ArchiveMessage, request| {
            let ArchiveMessage { peer, communicator, tag, bytes } = *message;
            write(functions, writer, null_mut(), time, peer, communicator, tag, bytes, request)
        };
        match *event {
            ArchiveEvent::Enter { region, called_at } => {
                if let Some(text) = called_at {
                    functions.add_text(*attributes, CALLED_AT, text);
                }
                functions.enter(writer, *attributes, time, region)
            }
            ArchiveEvent::Leave { region } => functions.leave(writer, null_mut(), time, region),
            ArchiveEvent::Send { message, request: None } => {
                message_event(OtfFunctions::send, &message)
            }
            ArchiveEvent::Send { message, request: Some(request) } => {
                requested_event(OtfFunctions::isend, &message, request)
            }
            ArchiveEvent::SendCompleted { request } => {
                functions.isend_complete(writer, null_mut(), time, request)
            }
            ArchiveEvent::Posted { request } => {
                functions.irecv_request(writer, null_mut(), time, request)
            }
            ArchiveEvent::Received { message, request: None } => {
                message_event(OtfFunctions::recv, &message)
            }
            ArchiveEvent::Received { message, request: Some(request) } => {
                requested_event(OtfFunctions::irecv, &message, request)
            }
            ArchiveEvent::CollectiveBegin => functions.collective_begin(writer, null_mut(), time),
            ArchiveEvent::CollectiveEnd(of) => {
                let ArchiveOperation { operation, communicator, root, sent, received } = of;
                functions.collective_end(
                    writer,
                    null_mut(),
                    time,
                    operation,
                    communicator,
                    root,
                    sent,
                    received,
                )
            }
            ArchiveEvent::CollectiveRequested { request } => {
                functions.collective_request(writer, null_mut(), time, request)
            }
            ArchiveEvent::CollectiveCompleted { operation: of, request } => {
                let ArchiveOperation { operation, communicator, root, sent, received } = of;
                functions.collective_complete(
                    writer,
                    null_mut(),
                    time,
                    operation,
                    communicator,
                    root,
                    sent,
                    received,
                    request,
                )
            }
        }
    }

    /// Says that no location has definitions of its own: readers would miss them.
    fn leave_location_definitions(&self, definitions: &[Definition]) -> io::Result<()> {
        let Self { functions, archive, .. } = self;
        functions.checked(functions.open_definitions(*archive))?;
        for definition in definitions {
            let Definition::Thread { number, .. } = definition else { continue };
            let writer = functions.location_definitions(*archive, *number);
            if writer.is_null() {
                return Err(io::Error::other("OTF2 cannot begin the definitions of a thread"));
            }
            functions.checked(functions.close_location_definitions(*archive, writer))?;
        }
        functions.checked(functions.close_definitions(*archive))
    }

    /// Writes the definitions, and ends the archive. Every location has been written.
    pub(super) fn finish(self, definitions: &[Definition]) -> io::Result<()> {
        let Self { functions, archive, .. } = &self;
        functions.checked(functions.close_events(*archive))?;
        self.leave_location_definitions(definitions)?;
        let writer = functions.definition_writer(*archive);
        if writer.is_null() {
            return Err(io::Error::other("OTF2 cannot begin the definitions"));
        }
        for definition in definitions {
            functions.define(writer, definition)?;
        }
        functions.checked(functions.close_definition_writer(*archive, writer))?;
        functions.checked(functions.close(*archive))
    }
}

impl OtfFunctions {
    fn checked(&self, code: c_int) -> io::Result<()> {
        if code == 0 {
            return Ok(());
        }
        let text = self.describe(code);
        if text.is_null() {
            return Err(io::Error::other(format!("error {code} of OTF2")));
        }
        // SAFETY: a text of the library, which is never freed.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(io::Error::other(format!("OTF2: {text}")))
    }

    fn define(&self, writer: Handle, definition: &Definition) -> io::Result<()> {
        const PROCESS: u8 = 1;
        const PROCESSES: u8 = 0;
        const THREAD: u8 = 1;
        const TEXT: u8 = 11;
        const NONE: u32 = 0;
        const NANOSECONDS: u64 = 1_000_000_000;
        let code = match *definition {
            Definition::Clock { length } => {
                self.clock(writer, NANOSECONDS, 0, length, UNDEFINED_TIME)
            }
            Definition::Paradigm { paradigm, name } => {
                self.paradigm(writer, paradigm as u8, name, PROCESSES)
            }
            Definition::Text { number, ref text } => {
                // What a program names may hold anything.
                let text = c_text(text.replace('\0', " ").as_bytes())?;
                self.text(writer, number, text.as_ptr())
            }
            Definition::Attribute { number, name, description } => {
                self.attribute(writer, number, name, description, TEXT)
            }
            Definition::Node { number, name, class, parent, domain } => {
                self.checked(self.node(writer, number, name, class, parent))?;
                self.node_domain(writer, number, domain as u8)
            }
            Definition::Process { number, name, node } => {
                self.location_group(writer, number, name, PROCESS, node, UNDEFINED)
            }
            Definition::Thread { number, name, events, process } => {
                self.location(writer, number, name, THREAD, events, process)
            }
            Definition::Region { number, name, role, paradigm, none } => {
                let paradigm = paradigm as u8;
                self.region(writer, number, name, name, none, role, paradigm, NONE, none, 0, 0)
            }
            Definition::Group { number, name, kind, ref members } => {
                let (kind, mpi) = (kind as u8, Paradigm::Mpi as u8);
                let count = u32::try_from(members.len()).map_err(io::Error::other)?;
                let members = if count == 0 { null() } else { members.as_ptr() };
                self.group(writer, number, name, kind, mpi, NONE, count, members)
            }
            Definition::Communicator { number, name, group } => {
                self.communicator(writer, number, name, group, UNDEFINED, NONE)
            }
        };
        self.checked(code)
    }
}
