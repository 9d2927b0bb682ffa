//! The textbook log: a queue of times under a lock, cleaned up in every call.

use std::{collections::VecDeque, marker::PhantomData};

use tollgate::Nanos;

use super::{Limits, Mutex};

/// A log under the lock `M`.
pub(crate) struct Deque<M> {
    limit: usize,
    window: Nanos,
    times: M,
    of: PhantomData<VecDeque<Nanos>>,
}

impl<M: Mutex<VecDeque<Nanos>>> Deque<M> {
    pub(crate) fn new(limit: u64, window: Nanos) -> Self {
        Self { limit: limit as usize, window, times: M::new(VecDeque::new()), of: PhantomData }
    }
}

impl<M: Mutex<VecDeque<Nanos>>> Limits for Deque<M> {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.times.with(|times| {
            while times.front().is_some_and(|&oldest| oldest + self.window <= now) {
                times.pop_front();
            }
            let admits = times.len() < self.limit;
            if admits {
                times.push_back(now);
            }
            admits
        })
    }
}
