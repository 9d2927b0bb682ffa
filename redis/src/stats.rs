//! What happened so far, and how the server is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tollgate::Nanos;

use crate::{By, Failure};

/// Counters, each exact, together not of one moment.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    admitted: [AtomicU64; By::ALL.len()],
    refused: [AtomicU64; By::ALL.len()],
    failed: [AtomicU64; Failure::ALL.len()],
    calls: AtomicU64,
    unavailable: AtomicU64,
}

/// What happened since the limiter was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls sent to the server: round trips, but for the second one after a forgotten script.
    pub calls: u64,
    /// Checks that ended in [`Unavailable`](crate::Unavailable).
    pub unavailable: u64,
    admitted: [u64; By::ALL.len()],
    refused: [u64; By::ALL.len()],
    failed: [u64; Failure::ALL.len()],
}

/// How the server is, as far as this limiter knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether calls are let through. While they are not, one is tried every pause.
    pub asking: bool,
    /// Until the next trial; zero while calls are let through.
    pub retry_after: Nanos,
}

// === impl Counters ===

impl Counters {
    pub(crate) fn decided(&self, by: By, admitted: bool) {
        add(if admitted { &self.admitted } else { &self.refused }, by as usize);
    }

    pub(crate) fn failed(&self, failure: Failure) {
        add(&self.failed, failure as usize);
    }

    pub(crate) fn called(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn unavailable(&self) {
        self.unavailable.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            calls: read(&self.calls),
            unavailable: read(&self.unavailable),
            admitted: self.admitted.each_ref().map(read),
            refused: self.refused.each_ref().map(read),
            failed: self.failed.each_ref().map(read),
        }
    }
}

/// Both enums are numbered from 0 without gaps, as the tests of this file see to.
fn add(counters: &[AtomicU64], index: usize) {
    counters[index].fetch_add(1, Relaxed);
}

// === impl Stats ===

impl Stats {
    /// Checks admitted by `by`.
    pub fn admitted(&self, by: By) -> u64 {
        self.admitted[by as usize]
    }

    /// Checks refused by `by`.
    pub fn refused(&self, by: By) -> u64 {
        self.refused[by as usize]
    }

    /// Checks that could not be put to the server, or were not answered, because of `failure`.
    pub fn failed(&self, failure: Failure) -> u64 {
        self.failed[failure as usize]
    }

    /// Checks that were decided without the server because it could not be asked.
    pub fn degraded(&self) -> u64 {
        self.failed.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_without_gaps() {
        assert!(By::ALL.iter().enumerate().all(|(i, by)| *by as usize == i));
        assert!(Failure::ALL.iter().enumerate().all(|(i, failure)| *failure as usize == i));
    }
}
