//! Where is libgyan.so, and what must `LD_PRELOAD` be?

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The name of the library.
pub(super) const NAME: &str = "libgyan.so";

/// libgyan.so: where the user says, next to this command, or where `scripts/install` and packages put it.
pub(crate) fn library() -> Result<PathBuf, Error> {
    if let Some(path) = env::var_os("GYAN_LIBRARY").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return fs::canonicalize(&path)
            .map_err(|error| Error::io(&path, &error, "set GYAN_LIBRARY to a libgyan.so"));
    }
    let command = env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|error| Error::new("gyan", error, "set GYAN_LIBRARY to libgyan.so"))?;
    let beside = command.parent().unwrap_or(Path::new("/"));
    let multiarch = format!("../lib/{}-linux-gnu", env::consts::ARCH);
    let candidates = ["", "../lib", &multiarch, "../lib64"].map(|to| beside.join(to).join(NAME));
    candidates.iter().find_map(|path| fs::canonicalize(path).ok()).ok_or_else(|| {
        Error::new(candidates[0].display(), "no libgyan.so here", "set GYAN_LIBRARY")
    })
}

/// libgyan.so in front of anything that is already preloaded.
pub(crate) fn preload(library: &Path) -> OsString {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    preload
}
