//! Clocks: the only place that reads time.
//!
//! An algorithm takes the time as an argument; a [`Limiter`](crate::Limiter) reads it from one of these.
//!
//! | clock       | shows                               | steps back                | a reading costs                 |
//! |-------------|-------------------------------------|---------------------------|---------------------------------|
//! | `Precise`   | the processor's counter, scaled     | never                     | one counter read                |
//! | `Coarse`    | a time that a thread keeps fresh    | never                     | two loads                       |
//! | `Manual`    | what a test has set                 | when the test says so     | one load                        |
//! | `System`    | a clock of the system's, for processes | never               | a call of the vDSO              |
//! | `Rebased`   | a clock of the caller's             | never, whatever that does | that clock, two loads, one CAS  |

#[cfg(feature = "std")]
mod coarse;
mod manual;
#[cfg(feature = "std")]
mod precise;
mod rebased;
#[cfg(feature = "shared")]
mod system;

use alloc::{boxed::Box, sync::Arc};

use crate::Nanos;

#[cfg(feature = "std")]
pub use coarse::{Coarse, CoarseError, CoarseGuard};
pub use manual::Manual;
#[cfg(feature = "std")]
pub use precise::Precise;
pub use rebased::Rebased;
#[cfg(feature = "shared")]
pub use system::System;

/// A source of time: nanoseconds since a zero of its own.
///
/// A limiter tolerates a clock that stands still, jumps ahead or steps back, and never admits more for it than the
/// algorithm states; [`Rebased`] keeps a step back from locking callers out. A time above [`Nanos::MAX`] is
/// refused by every limiter. [`Limiter`](crate::Limiter) is `Sync` if its clock is.
///
/// # Examples
/// ```
/// use tollgate::{Clock, Nanos};
///
/// /// The time of an event loop, read once per turn.
/// struct Turn(std::cell::Cell<u64>);
///
/// impl Clock for Turn {
///     fn now(&self) -> Nanos {
///         Nanos::from_millis(self.0.get())
///     }
/// }
///
/// assert_eq!(Turn(7.into()).now(), Nanos::from_millis(7));
/// ```
pub trait Clock {
    /// The time now.
    fn now(&self) -> Nanos;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Box<C> {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}
