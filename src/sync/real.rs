//! The words of real builds.

use bytemuck::Pod;

use super::Ordering;

/// An atomic 64-bit word that holds a packed value `T`.
#[repr(transparent)]
pub(crate) struct Word<T: Pod>(atomic::Atomic<T>);

// === impl Word ===

impl<T: Pod> Word<T> {
    /// A word that is not 64 bits, or that the machine would guard by a lock, does not compile.
    const LOCK_FREE: () = assert!(size_of::<T>() == 8 && atomic::Atomic::<T>::is_lock_free());

    pub(crate) const fn new(value: T) -> Self {
        let () = Self::LOCK_FREE;
        Self(atomic::Atomic::new(value))
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> T {
        self.0.load(order)
    }

    #[inline]
    pub(crate) fn store(&self, value: T, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline]
    pub(crate) fn compare_exchange(&self, now: T, next: T, won: Ordering, lost: Ordering) -> Result<T, T> {
        self.0.compare_exchange(now, next, won, lost)
    }

    #[inline]
    pub(crate) fn compare_exchange_weak(
        &self,
        now: T,
        next: T,
        won: Ordering,
        lost: Ordering,
    ) -> Result<T, T> {
        self.0.compare_exchange_weak(now, next, won, lost)
    }
}

impl Word<u64> {
    #[inline]
    pub(crate) fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        self.0.fetch_add(more, order)
    }
}
