//! The ring that most people draw first: head and count packed into one word, times in a ring beside it.
//!
//! Taken literally, it is wrong between threads: an admission moves the count before it writes its time, so that a rival
//! may judge by the time that lay there before. It is measured for what it costs.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Nanos;

use super::Limits;

/// `head << 32 | count`, and the times.
pub(crate) struct Packed {
    window: Nanos,
    state: AtomicU64,
    times: Box<[AtomicU64]>,
}

impl Packed {
    pub(crate) fn new(limit: u64, window: Nanos) -> Self {
        let times = (0..limit).map(|_| AtomicU64::new(0)).collect();
        Self { window, state: AtomicU64::new(0), times }
    }
}

impl Limits for Packed {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let limit = self.times.len() as u64;
        let now = now.as_nanos();
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            let (mut head, mut count) = (seen >> 32, seen & u64::from(u32::MAX));
            while count > 0
                && self.times[head as usize].load(Ordering::Relaxed) + self.window.as_nanos() <= now
            {
                head = if head + 1 == limit { 0 } else { head + 1 };
                count -= 1;
            }
            if count == limit {
                return false;
            }
            let next = head << 32 | (count + 1);
            match self.state.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let tail = head + count;
                    let tail = if tail >= limit { tail - limit } else { tail };
                    self.times[tail as usize].store(now, Ordering::Relaxed);
                    return true;
                }
                Err(actual) => seen = actual,
            }
        }
    }
}
