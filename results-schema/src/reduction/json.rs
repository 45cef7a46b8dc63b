//! Fields as JSON inside formats that do not name fields: with a file type that omits absent fields, such a
//! format could not tell what follows.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<T: Serialize, S: Serializer>(of: &T, to: S) -> Result<S::Ok, S::Error> {
    serde_json::to_string(of).map_err(S::Error::custom)?.serialize(to)
}

pub(super) fn deserialize<'de, T: DeserializeOwned, D>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    serde_json::from_str(&text).map_err(D::Error::custom)
}
