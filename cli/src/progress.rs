//! The progress bar: on a terminal only, on standard error, gone when the work is done.

use std::{cell::Cell, fs, path::PathBuf};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::input::Progress;

/// Redraws per second.
const RATE: u8 = 10;

/// Requests between two messages about them.
const STRIDE: u64 = 1 << 16;

/// How far the work has come.
pub(crate) struct Bar {
    bar: ProgressBar,
    requests: Cell<u64>,
}

// === impl Bar ===

impl Bar {
    /// A bar as long as the files, or a bare count if one of them has no length (a pipe).
    pub(crate) fn new(files: &[PathBuf]) -> Self {
        // Draws nothing when standard error is no terminal.
        let target = ProgressDrawTarget::stderr_with_hz(RATE);
        let (bar, style) = match total(files) {
            Some(total) => (
                ProgressBar::with_draw_target(Some(total), target),
                "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            ),
            None => (
                ProgressBar::with_draw_target(None, target),
                "{msg} {spinner} {bytes} {binary_bytes_per_sec}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, requests: Cell::new(0) }
    }

    /// One more request has been replayed.
    pub(crate) fn request(&self) {
        let n = self.requests.get() + 1;
        self.requests.set(n);
        if n.is_multiple_of(STRIDE) {
            self.bar.set_message(format!("replaying, {} requests", HumanCount(n)));
        }
    }
}

impl Progress for Bar {
    fn bytes(&self, n: u64) {
        self.bar.inc(n);
    }

    fn phase(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes of all files together; `None` if one of them has no length.
fn total(files: &[PathBuf]) -> Option<u64> {
    files.iter().try_fold(0u64, |sum, file| {
        let data = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
        Some(sum.saturating_add(data.len()))
    })
}
