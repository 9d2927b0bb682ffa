//! The door: atomics, spin hint, lock and cells that are modelled under `--cfg tollgate_loom` and the real ones otherwise.
//!
//! Build your limiter on these names, directly or through a `sync` module of your own:
//! ```
//! use tollgate_check::sync::{AtomicExt, AtomicU64, Ordering};
//!
//! struct Counter {
//!     taken: AtomicU64,
//! }
//!
//! impl Counter {
//!     fn new() -> Counter {
//!         Counter { taken: AtomicU64::new(0).named("taken") }
//!     }
//!
//!     fn take(&self) -> u64 {
//!         self.taken.fetch_add(1, Ordering::Relaxed)
//!     }
//! }
//! ```
//! Every access is traced with the line it stands on. A wrapper of your own around an atomic marks its methods
//! `#[track_caller]`, so that the line is the algorithm's and not the wrapper's.
//!
//! Without the cfg these *are* the atomics of `std`, at no cost. Under it `new` is not `const`, a word can only be made
//! inside a check, and there are these methods: `new`, `load`, `store`, `swap`, `compare_exchange`,
//! `compare_exchange_weak`, `fetch_and`, `fetch_or`, `fetch_xor`; for the integers also `fetch_add`, `fetch_sub`,
//! `fetch_max`, `fetch_min`, `fetch_update`, `into_inner`. For `get_mut` take [`AtomicExt::with_mut`], for `try_update`
//! take `fetch_update`. There are no other widths, no signed integers and no pointers: a pointer is an index here. The
//! one lock is [`Mutex`], with `new`, `lock` and `into_inner`.

#[cfg(not(tollgate_loom))]
mod real;
#[cfg(not(tollgate_loom))]
pub use real::{
    Arc, AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, UnsafeCell, fence, spin_loop,
    yield_now,
};

#[cfg(tollgate_loom)]
mod modelled;
#[cfg(tollgate_loom)]
mod mutex;
#[cfg(tollgate_loom)]
pub use modelled::{
    Arc, AtomicBool, AtomicU32, AtomicU64, AtomicUsize, UnsafeCell, fence, spin_loop, yield_now,
};

#[cfg(tollgate_loom)]
pub use mutex::{Mutex, MutexGuard};

pub use std::sync::atomic::Ordering;

/// What the modelled atomics and those of `std` can both do, and `std` spells differently.
pub trait AtomicExt: Sized {
    /// The value held.
    type Value;

    /// Gives the word a name for the interleaving; several words of one name are told apart by number. No cost and
    /// no effect without the model.
    #[must_use]
    fn named(self, name: &'static str) -> Self;

    /// The value, by exclusive access.
    fn with_mut<R>(&mut self, f: impl FnOnce(&mut Self::Value) -> R) -> R;
}
