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
    /// What is done to the requests.
    doing: &'static str,
    requests: Cell<u64>,
    /// Whether the bar counts requests, not bytes.
    steps: bool,
}

// === impl Bar ===

impl Bar {
    /// A bar as long as the files, or a bare count if one of them has no length (a pipe).
    pub(crate) fn new(doing: &'static str, files: &[PathBuf]) -> Self {
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
        Self::styled(bar, style, doing, false)
    }

    /// A bar of so many steps.
    pub(crate) fn steps(doing: &'static str, total: u64) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(RATE);
        let bar = ProgressBar::with_draw_target(Some(total), target);
        bar.set_message(doing);
        Self::styled(bar, "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}", doing, true)
    }

    /// A bar of so many tasks.
    pub(crate) fn tasks(total: u64) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(RATE);
        let bar = ProgressBar::with_draw_target(Some(total), target);
        Self::styled(bar, "{msg} {wide_bar} {pos}/{len} {elapsed}", "", true)
    }

    /// A bare count.
    pub(crate) fn counting(doing: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(RATE));
        Self::styled(bar, "{msg} {spinner}", doing, false)
    }

    fn styled(bar: ProgressBar, style: &str, doing: &'static str, steps: bool) -> Self {
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, doing, requests: Cell::new(0), steps }
    }

    /// The next of the tasks begins.
    pub(crate) fn task(&self, doing: String) {
        self.bar.inc(1);
        self.bar.set_message(doing);
    }

    /// One more request has been dealt with.
    pub(crate) fn request(&self) {
        let n = self.requests.get() + 1;
        self.requests.set(n);
        if n.is_multiple_of(STRIDE) {
            if self.steps {
                self.bar.set_position(n);
            } else {
                self.bar.set_message(format!("{}, {} requests", self.doing, HumanCount(n)));
            }
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
