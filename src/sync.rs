//! The one door to atomics: typed 64-bit words and orderings.
//!
//! Nothing else in the crate names an atomic. Real words in real builds; under `--cfg tollgate_loom` the words of a
//! model checker, which then sees every access of every algorithm.

#[cfg(all(tollgate_loom, any(not(feature = "loom"), feature = "std")))]
compile_error!("--cfg tollgate_loom needs --no-default-features --features loom; run ci/loom.sh");

#[cfg(any(feature = "shared", tollgate_loom))]
pub(crate) use core::sync::atomic::Ordering::AcqRel;
pub(crate) use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

mod contention;
pub use contention::contention_retries;
pub(crate) use contention::{Retries, lost};
mod lock;
pub(crate) use lock::{Guard, Lock};

#[cfg(tollgate_loom)]
mod modelled;
#[cfg(tollgate_loom)]
pub(crate) use modelled::Word;
#[cfg(not(tollgate_loom))]
mod real;
#[cfg(not(tollgate_loom))]
pub(crate) use real::Word;

/// How many low bits of a time a packed head may keep: few under the model, so that they wrap at once.
pub(crate) const SPAN_BITS_MAX: u32 = if cfg!(tollgate_loom) { 5 } else { 62 };

/// How many bits tell a change of the limits from another: few under the model, so that they wrap at once.
pub(crate) const GENERATION_BITS: u32 = if cfg!(tollgate_loom) { 0 } else { 12 };

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

/// Declares a constructor that is `const`, but not under the model, whose words are not.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[cfg(not(tollgate_loom))]
        $(#[$meta])*
        $vis const fn $name($($arg: $ty),*) -> $ret $body

        #[cfg(tollgate_loom)]
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
}
pub(crate) use const_fn;

// === impl Word ===

impl<T: bytemuck::Pod> Default for Word<T> {
    /// All zeros.
    fn default() -> Self {
        Self::new(T::zeroed())
    }
}
