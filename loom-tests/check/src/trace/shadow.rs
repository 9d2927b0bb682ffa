//! What makes loom's search see every race between a load and a write.
//!
//! Loom tries two racing accesses of a word in both orders, but of each word it remembers only the last access. A load
//! hides the load of another thread before it: after `T1 load, T2 load, T2 cas` it takes the cas to race with nothing
//! (the last access is its own thread's), so `T2 cas` before `T1 load` is never tried, bounded or not. Every limiter
//! that reads before it swaps has that shape.
//!
//! So each thread has a shadow of each word. A load first stores to its own thread's shadow, a write first to those of
//! all others whose load since the last write is hidden: the two race there, and no third access hides it. Nobody
//! reads a shadow, and relaxed stores hand on nothing, so the model's memory stays as it was.

use std::{rc::Rc, sync::atomic::Ordering::Relaxed};

use super::Op;
use crate::rt::sync::atomic::AtomicU64;

#[derive(Default)]
pub(crate) struct Shadows {
    words: Vec<Word>,
    threads: usize,
}

/// The shadows of one word. Threads as bits.
struct Word {
    shadows: Rc<[AtomicU64]>,
    /// Who has loaded since the last write.
    loaded: u8,
    /// Who came last: whom loom remembers.
    last: u8,
}

impl Shadows {
    /// For an execution with so many threads beside the main one.
    pub(crate) fn reset(&mut self, threads: usize) {
        self.words.clear();
        self.threads = threads;
    }

    /// Loom's words, to be made outside of any borrow of the observer.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn push(&mut self, shadows: Rc<[AtomicU64]>) {
        self.words.push(Word { shadows, loaded: 0, last: 0 });
    }

    /// What `thread` (from 1) has to touch before an access.
    pub(crate) fn before(&mut self, thread: usize, word: u32, op: Op) -> Option<Touch> {
        let own = 1 << thread.checked_sub(1)?;
        let word = self.words.get_mut(word as usize)?;
        let last = std::mem::replace(&mut word.last, own);
        let touched = if op == Op::Load {
            word.loaded |= own;
            own
        } else {
            std::mem::take(&mut word.loaded) & !(own | last)
        };
        Some(Touch(word.shadows.clone(), touched))
    }
}

/// Shadows to touch, as bits.
pub(crate) struct Touch(Rc<[AtomicU64]>, u8);

impl Touch {
    pub(crate) fn touch(self) {
        let all = self.0.iter().enumerate().filter(|(i, _)| self.1 >> i & 1 == 1);
        all.for_each(|(_, shadow)| shadow.store(0, Relaxed));
    }
}

/// The shadows of a new word.
pub(crate) fn shadows(threads: usize) -> Rc<[AtomicU64]> {
    (0..threads).map(|_| AtomicU64::new(0)).collect()
}
