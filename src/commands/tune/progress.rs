//! What runs, and how long will it take? On a terminal one line that is overwritten, otherwise a line for each run.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::say;

pub(super) struct TuneProgress {
    /// None where there is no terminal.
    bar: Option<ProgressBar>,
}

impl TuneProgress {
    pub(super) fn new() -> TuneProgress {
        let bar = io::stderr().is_terminal().then(ProgressBar::new_spinner);
        if let Some(bar) = &bar {
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        TuneProgress { bar }
    }

    /// Run `number` of about `of` starts; each takes about `each`.
    pub(super) fn says(
        &self,
        number: usize,
        of: Option<usize>,
        settings: &str,
        each: Option<Duration>,
    ) {
        let of_all = of.map_or_else(String::new, |of| format!(" of at most {of}"));
        let left = of.zip(each).map_or_else(String::new, |(of, each)| {
            let left = each * u32::try_from((of + 1).saturating_sub(number)).unwrap_or(1);
            let left = humantime::format_duration(Duration::from_secs(left.as_secs() + 1));
            format!(" (about {left} left)")
        });
        let text = format!("run {number}{of_all}: {settings}{left}");
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.reset_elapsed();
            }
            None => say::warn(text),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
