//! Is the house in order? What the sources of the three crates import, and what they call their types.

mod imports;
mod names;

use std::fs;
use std::path::Path;

/// The project's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The sources in a folder of the project, each with its path below that as a path of modules.
fn sources(folder: &str) -> Vec<(String, String)> {
    let top = root().join(folder);
    let mut folders = vec![top.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.strip_prefix(&top).unwrap().with_extension("");
                let module = module.to_str().unwrap().replace('/', "::");
                let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
                sources.push((module, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort();
    sources
}
