//! A clock that stands still until it is told to move.
//!
//! # Memory order
//! | id | site        | order            | pairs with | because                                               |
//! |----|-------------|------------------|------------|-------------------------------------------------------|
//! | O1 | load        | Acquire          | O2         | whoever reads a time sees what was done before it came |
//! | O2 | store, CAS  | Release          | O1         | publishes it                                          |
//! | O3 | first load and failed CAS of `advance` | Relaxed | none | only the number added to, which O2 checks  |

use crate::{
    Clock, Nanos,
    sync::{Acquire, Relaxed, Release, Word, const_fn},
};

/// A clock for tests and simulations: it shows what it was last set to.
///
/// Any number of threads may read and move it at once.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Manual, Nanos};
///
/// let clock = Manual::new();
/// assert_eq!(clock.now(), Nanos::ZERO);
///
/// clock.advance(Duration::from_millis(1_500));
/// assert_eq!(clock.now(), Nanos::from_millis(1_500));
///
/// clock.set(Nanos::from_secs(1)); // back: a step that a limiter has to bear
/// assert_eq!(clock.now(), Nanos::from_secs(1));
/// ```
pub struct Manual(Word<u64>);

// === impl Manual ===

impl Manual {
    const_fn! {
        /// A clock that shows zero.
        pub fn new() -> Self {
            Self::at(Nanos::ZERO)
        }
    }

    const_fn! {
        /// A clock that shows `now`.
        pub fn at(now: Nanos) -> Self {
            Self(Word::new(now.as_nanos()))
        }
    }

    /// Shows `now` from here on, be it later or earlier than before.
    pub fn set(&self, now: Nanos) {
        self.0.store(now.as_nanos(), Release); // O2
    }

    /// Moves the time on by `span`, a [`Duration`](core::time::Duration) or [`Nanos`], up to 2^64 - 1 ns. Of calls
    /// at once none is lost.
    pub fn advance(&self, span: impl Into<Nanos>) {
        let span = span.into();
        let mut now = self.0.load(Relaxed); // O3
        // Lock-free: a round is lost only to a caller that moved the time.
        loop {
            let next = Nanos::from_nanos(now) + span;
            match self.0.compare_exchange_weak(now, next.as_nanos(), Release, Relaxed) {
                // O2, O3
                Ok(_) => return,
                Err(actual) => now = actual,
            }
        }
    }
}

impl Clock for Manual {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Acquire)) // O1
    }
}

impl Default for Manual {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Manual {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Manual").field(&self.now()).finish()
    }
}
