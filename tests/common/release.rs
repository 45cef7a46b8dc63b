//! What do users get? The command and libgyan.so, as a release build makes them.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::processes::{root, run_within, target};

/// Optimising everything at once takes minutes even on an idle machine.
const BUILD: Duration = Duration::from_secs(1800);

/// What users get: the result of `scripts/release` if `RELEASE_BUILD` names its directory, as in
/// `scripts/test`; otherwise a release build that is never older than the sources.
pub(crate) fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        if let Some(folder) = env::var_os("RELEASE_BUILD") {
            return folder.into();
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--quiet"]).current_dir(root());
        cargo.arg("--target-dir").arg(target());
        let outcome = run_within(&mut cargo, BUILD);
        assert_eq!(outcome.code, 0, "the release build failed:\n{}", outcome.stderr);
        target().join("release")
    });
    folder.clone()
}

pub(crate) fn gyan() -> Command {
    Command::new(built().join("gyan"))
}

pub(crate) fn libgyan() -> PathBuf {
    built().join("libgyan.so")
}
