//! What do users get? The command and libgyan.so, as a release build makes them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::processes::{root, run_within, target};

/// Optimising all of it at once takes minutes even on an idle machine.
const BUILD: Duration = Duration::from_secs(1800);

/// What users get: built in release mode, and never older than the sources.
fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--quiet"]).current_dir(root());
        cargo.arg("--target-dir").arg(target());
        let outcome = run_within(&mut cargo, BUILD);
        assert_eq!(outcome.code, 0, "the release build failed:\n{}", outcome.stderr);
        target().join("release")
    });
    folder.join(name)
}

pub(crate) fn gyan() -> Command {
    Command::new(built("gyan"))
}

pub(crate) fn libgyan() -> PathBuf {
    built("libgyan.so")
}
