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

/// How often the calling thread lost so far.
#[inline]
pub(crate) fn lost_so_far() -> u64 {
    #[cfg(feature = "std")]
    return LOST.get();
    #[cfg(not(feature = "std"))]
    0
}

#[cfg(feature = "std")]
std::thread_local! {
    static LOST: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}
