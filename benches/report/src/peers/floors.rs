//! What no limiter can be faster than.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
};

use tollgate::Nanos;

use super::Limits;

/// A word on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// A refusal: a load and a compare with the time.
pub(crate) struct Load(Line);

/// An admission: one CAS on one line, tried until it succeeds.
#[derive(Default)]
pub(crate) struct Cas(Line);

/// Two of them, on one line.
#[derive(Default)]
pub(crate) struct TwoCas(Cas);

/// An addition that can not fail.
#[derive(Default)]
pub(crate) struct FetchAdd(Line);

impl Default for Load {
    fn default() -> Self {
        Self(Line(AtomicU64::new(u64::MAX)))
    }
}

impl Limits for Load {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.0.0.load(Ordering::Acquire) <= now.as_nanos()
    }
}

impl Limits for Cas {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let word = &self.0.0;
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let next = seen.wrapping_add(now.as_nanos() | 1);
            match word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(actual) => seen = actual,
            }
            spin_loop();
        }
    }
}

impl Limits for TwoCas {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.0.try_acquire(now) && self.0.try_acquire(now)
    }
}

impl Limits for FetchAdd {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.0.0.fetch_add(now.as_nanos() | 1, Ordering::AcqRel);
        true
    }
}
