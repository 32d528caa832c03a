//! Progress of long work. Drawn on stderr, and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Output;

/// Time between two steps of a picture.
const TICK: Duration = Duration::from_millis(100);

/// Progress in bytes of a known total.
pub(crate) fn bytes(total: u64, output: &Output) -> ProgressBar {
    if !output.progress {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    // The template is a constant of this program; without it there is a bar of another kind.
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Work whose progress is not known. The picture is removed when this value is dropped.
pub(crate) struct Spinner(ProgressBar);

pub(crate) fn spinner(what: &'static str, output: &Output) -> Spinner {
    if !output.progress {
        return Spinner(ProgressBar::hidden());
    }
    let bar = ProgressBar::new_spinner();
    // The template is a constant of this program; without it there is a bar of another kind.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(TICK);
    Spinner(bar)
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
