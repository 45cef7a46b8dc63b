//! The only writer to stderr: one line for something that the user must know now.
//!
//! A thousand ranks that all say the same are worse than silence, so only the first rank of each node speaks;
//! anything that concerns only one rank is in its profile, or in `gyan report`, which names the ranks without
//! one.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::sigmask;

static SILENT: AtomicBool = AtomicBool::new(false);

/// Keeps this process quiet from now on.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes `gyan: <text>` to stderr, in one system call so that lines of different ranks do not mix.
pub(crate) fn say(text: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let line: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let line = format!("gyan: {line}\n");
    sigmask::without_signals(|| {
        // Not std's stderr: its lock may be gone when the process ends. Nor the C library's `write`, which is a
        // cancellation point. If nobody reads stderr, that is no reason to fail.
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    });
}
