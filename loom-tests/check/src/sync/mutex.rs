//! A lock under the model. Who does not get it is not run again until it is given back, so that waiting costs no
//! interleavings, as it would with [`spin_loop`](super::spin_loop).

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    panic::Location,
    sync::{LockResult, atomic::Ordering},
};

use super::{AtomicExt, AtomicU32};
use crate::trace::{self, Op};

/// A modelled [`std::sync::Mutex`], which is never poisoned.
#[derive(Debug)]
pub struct Mutex<T> {
    held: AtomicU32,
    value: UnsafeCell<T>,
}

/// Holds the lock while it lives.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    site: &'static Location<'static>,
}

// SAFETY: contract of `Sync`: `value` is reached through the guard, of which `held` admits one, or by `&mut`.
unsafe impl<T: Send> Sync for Mutex<T> {}

// === impl Mutex ===

impl<T> Mutex<T> {
    /// A lock that nobody holds.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self { held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody holds the lock, and takes it.
    ///
    /// # Errors
    /// Never.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let site = Location::caller();
        while !self.held.step(site, Op::Lock, (0, 1), Ordering::Acquire) {
            trace::park(self.held.number());
        }
        Ok(MutexGuard { mutex: self, site })
    }

    /// The value, for good.
    ///
    /// # Errors
    /// Never.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }
}

impl<T> AtomicExt for Mutex<T> {
    type Value = T;

    fn named(mut self, name: &'static str) -> Self {
        self.held = self.held.named(name);
        self
    }

    fn with_mut<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.value.get_mut())
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

// === impl MutexGuard ===

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: contract of `UnsafeCell`: the lock is held, so every other reference is a shared one through this guard.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: contract of `UnsafeCell`: the lock is held, and this guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // A thread that is unwound does not give it back: it is frozen, or this execution is over.
        if !std::thread::panicking() {
            self.mutex.held.step(self.site, Op::Unlock, (1, 0), Ordering::Release);
            trace::unpark(self.mutex.held.number());
        }
    }
}
