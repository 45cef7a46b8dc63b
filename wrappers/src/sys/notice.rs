//! The only writer to stderr: one line for what the user has to know now.
//!
//! A thousand ranks that all say the same are worse than silence, so only the first rank of each
//! node speaks; what concerns one rank alone stands in its profile, or in `gyan report`, which
//! names the ranks without one.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::sigmask;

static SILENT: AtomicBool = AtomicBool::new(false);

/// Keeps this process quiet from now on.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes `gyan: <text>` to stderr, in one system call so that lines of ranks do not mix.
pub(crate) fn say(text: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let line: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let line = format!("gyan: {line}\n");
    sigmask::without_signals(|| {
        // Not std's stderr: its lock may be gone when the process ends. Nor the C library's `write`, at
        // which a thread can be cancelled. That nobody reads stderr is no reason to fail.
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    });
}
