//! Where in the code something happened: addresses, and the objects that they are in.

use crate::data::{Data, Serialize, derive};

/// The return addresses of nested calls, the innermost first, without gyan's.
#[derive(Data!, Serialize, Default, Eq, Ord, PartialOrd)]
pub struct Stack {
    /// How many of the recorded stacks are this one.
    pub hits: u64,
    /// The addresses.
    pub frames: Vec<Address>,
}

/// A place in the code.
#[derive(Data!, Serialize, Copy, Default, Eq, Hash, Ord, PartialOrd)]
pub struct Address {
    /// The object, by its place in the load map; none for code that belongs to no file.
    pub object: Option<usize>,
    /// The address as in the symbol table of the object; without an object that in the process.
    pub address: u64,
}

/// A program or library that was loaded.
#[derive(Data!, Serialize, Default, Eq, Hash, Ord, PartialOrd)]
pub struct LoadedObject {
    /// Its file.
    pub path: String,
    /// Its build id in hexadecimal digits, which identifies the build; none when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}
