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

/// What an exact log can not do without, and nothing else: the slot of the admission that is a limit old, a CAS that
/// takes its place and one that records the time. It is an exact log for one thread alone: it is here for its cost.
pub(crate) struct Ring {
    window: u64,
    head: Line,
    /// When each admission leaves the window.
    leave: Box<[AtomicU64]>,
}

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

impl Ring {
    pub(crate) fn new(limit: u64, window: Nanos) -> Self {
        let leave = (0..limit).map(|_| AtomicU64::new(0)).collect();
        Self { window: window.as_nanos(), head: Line::default(), leave }
    }
}

impl Limits for Ring {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let (now, head) = (now.as_nanos(), &self.head.0);
        loop {
            let seen = head.load(Ordering::Acquire);
            let Some(slot) = self.leave.get(seen as usize) else { return false };
            let leaves = slot.load(Ordering::Acquire);
            if leaves > now {
                return false;
            }
            let next = if seen + 1 < self.leave.len() as u64 { seen + 1 } else { 0 };
            let is_mine = head.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            let leave = now + self.window;
            if is_mine && slot.compare_exchange(leaves, leave, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return true;
            }
            spin_loop();
        }
    }
}

impl Limits for FetchAdd {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.0.0.fetch_add(now.as_nanos() | 1, Ordering::AcqRel);
        true
    }
}
