//! The real thing.

pub use std::{
    hint::spin_loop,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence},
    },
    thread::yield_now,
};

/// A cell whose accesses the model checks for data races: [`std::cell::UnsafeCell`] behind closures.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Hands out a pointer to read through.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Hands out a pointer to write through.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

macro_rules! ext {
    ($($atomic:ident: $value:ty),*) => {$(
        impl super::AtomicExt for $atomic {
            type Value = $value;

            #[inline(always)]
            fn named(self, _: &'static str) -> Self {
                self
            }

            #[inline(always)]
            fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                f(self.get_mut())
            }
        }
    )*};
}

impl<T> super::AtomicExt for Mutex<T> {
    type Value = T;

    #[inline(always)]
    fn named(self, _: &'static str) -> Self {
        self
    }

    #[inline(always)]
    fn with_mut<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

ext!(AtomicU64: u64, AtomicU32: u32, AtomicUsize: usize, AtomicBool: bool);
