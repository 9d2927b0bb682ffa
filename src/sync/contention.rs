//! What a call does that lost to another: it waits a little, longer each time, and tries again. With `std` each thread
//! counts how often it did, for whoever wants to know what contention costs; that costs an addition where a cache line
//! has just been lost, and nothing elsewhere.

use crossbeam_utils::Backoff;

/// The tries of one call.
pub(crate) struct Retries(Backoff);

// === impl Retries ===

impl Retries {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(Backoff::new())
    }

    /// Another caller was first: waits, to try again.
    #[inline]
    pub(crate) fn again(&self) {
        lost();
        self.0.spin();
    }
}

/// Another caller was first.
#[inline]
pub(crate) fn lost() {
    #[cfg(feature = "std")]
    LOST.set(LOST.get().wrapping_add(1));
}

/// How often the calling thread has lost to another caller so far, in whatever limiter, and tried again: what contention costs. The
/// difference of two readings is that of the calls between them. It wraps, and is always 0 without `std`.
///
/// A [`Counted`](crate::Counted) limiter adds it up over all threads.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Log, Nanos, contention_retries};
///
/// let log = Log::builder(2, Duration::from_secs(1)).build()?;
/// let before = contention_retries();
/// log.try_acquire_at(1, Nanos::ZERO);
/// assert_eq!(contention_retries().wrapping_sub(before), 0); // Nobody else called.
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[inline]
pub fn contention_retries() -> u64 {
    #[cfg(feature = "std")]
    return LOST.get();
    #[cfg(not(feature = "std"))]
    0
}

#[cfg(feature = "std")]
std::thread_local! {
    static LOST: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}
