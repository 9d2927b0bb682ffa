//! The checker underneath: [loom], or with `--cfg tollgate_shuttle` beside the other cfg [shuttle], under which words are
//! sequentially consistent and schedules random.
//!
//! [loom]: https://docs.rs/loom
//! [shuttle]: https://docs.rs/shuttle

#[cfg(not(tollgate_shuttle))]
pub(crate) use loom::{cell, sync, thread};

#[cfg(tollgate_shuttle)]
pub(crate) mod thread {
    pub(crate) use shuttle::thread::{Thread, ThreadId, current, park, spawn, yield_now};
}

#[cfg(tollgate_shuttle)]
pub(crate) mod sync {
    pub use std::sync::Arc;

    pub(crate) mod atomic {
        pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};
    }

    /// What loom's words can do besides.
    pub(crate) trait WithMut<T> {
        fn with_mut<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R;
    }

    macro_rules! with_mut {
        ($($atomic:ident: $value:ty),*) => {$(
            impl WithMut<$value> for atomic::$atomic {
                fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                    f(self.get_mut())
                }
            }
        )*};
    }

    with_mut!(AtomicU64: u64, AtomicU32: u32, AtomicUsize: usize);
}

#[cfg(tollgate_shuttle)]
pub(crate) mod cell {
    /// Not checked for races: that is loom's.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    // SAFETY: contract of `Sync`: all threads of an execution run on one thread of the system, and are switched only at
    // accesses of words.
    unsafe impl<T: Send> Sync for UnsafeCell<T> {}

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner()
        }

        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
