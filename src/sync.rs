//! The one door to atomics: typed 64-bit words, orderings, and the spin hint.
//!
//! Nothing else in the crate names an atomic, so a checker that swaps the words behind this door sees every
//! access of every algorithm.

pub(crate) use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use bytemuck::Pod;

mod lock;
pub(crate) use lock::{Guard, Lock};

/// An atomic 64-bit word that holds a packed value `T`.
#[repr(transparent)]
pub(crate) struct Word<T: Pod>(atomic::Atomic<T>);

/// Declares a packed word: a `u64` with a name, whose fields the declaring module decodes.
macro_rules! word {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) u64);

        // SAFETY: contract of `Zeroable`: transparent over `u64`, for which all zeros is a value.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: contract of `Pod`: transparent over `u64`: no padding, no invalid bit pattern.
        unsafe impl bytemuck::Pod for $name {}
    };
}
pub(crate) use word;

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
        let () = Self::LOCK_FREE;
        self.0.store(value, order);
    }

    #[inline]
    pub(crate) fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        let () = Self::LOCK_FREE;
        self.0.compare_exchange(current, new, success, failure)
    }

    #[inline]
    pub(crate) fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        let () = Self::LOCK_FREE;
        self.0.compare_exchange_weak(current, new, success, failure)
    }

    /// The value, by exclusive access: no ordering is needed.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
