//! The last `cap` values pushed, newest first: what the logs under a lock keep.
//!
//! # Invariants
//! | id | always                                                          | kept by              |
//! |----|-----------------------------------------------------------------|----------------------|
//! | I1 | `slots.len() == cap`, or nothing was overwritten and `next == slots.len()` | `Ring::push` |
//! | I2 | memory is reserved once: a push never allocates                  | `reserve`            |

use alloc::vec::Vec;

use crate::ConfigError;

/// The last `cap` values pushed, of which the newest `live` are remembered.
pub(crate) struct Ring<T> {
    /// Grows to `cap` and is then overwritten, so that memory never pushed to is never touched.
    slots: Vec<T>,
    cap: usize,
    /// Where the next value goes.
    next: usize,
    live: usize,
}

// === impl Ring ===

impl<T: Copy> Ring<T> {
    /// An empty ring for the last `cap` values.
    ///
    /// # Errors
    /// [`ConfigError::Memory`] if there is not that much.
    pub(crate) fn new(cap: u64) -> Result<Self, ConfigError> {
        let slots = reserve(cap)?;
        // What was reserved was countable.
        Ok(Self { slots, cap: cap as usize, next: 0, live: 0 })
    }

    /// Pushes `times` copies of `value`; those that would only be overwritten by the rest are left out.
    pub(crate) fn push(&mut self, value: T, times: u64) {
        let times = usize::try_from(times).map_or(self.cap, |times| times.min(self.cap));
        for _ in 0..times {
            match self.slots.get_mut(self.next) {
                Some(slot) => *slot = value,
                None => self.slots.push(value),
            }
            self.next = if self.next + 1 == self.cap { 0 } else { self.next + 1 };
        }
        self.live = self.cap.min(self.live + times);
    }

    /// The `n`-th newest value (the newest is the first); `None` if so many are not remembered.
    pub(crate) fn newest(&self, n: u64) -> Option<T> {
        let n = usize::try_from(n).ok().filter(|&n| n != 0 && n <= self.live)?;
        let place = if n <= self.next { self.next - n } else { self.next + self.cap - n };
        self.slots.get(place).copied()
    }

    /// The oldest value remembered.
    pub(crate) fn oldest(&self) -> Option<T> {
        self.newest(self.live as u64)
    }

    /// How many of the newest values are `young`; no value younger than a young one may fail the test.
    pub(crate) fn count(&self, young: impl Fn(T) -> bool) -> u64 {
        let (mut all_young, mut some_old) = (0, self.live as u64 + 1);
        while all_young + 1 < some_old {
            let middle = all_young + (some_old - all_young) / 2;
            if self.newest(middle).is_some_and(&young) {
                all_young = middle;
            } else {
                some_old = middle;
            }
        }
        all_young
    }

    /// Forgets all but the newest `keep` values.
    pub(crate) fn truncate(&mut self, keep: u64) {
        self.live = usize::try_from(keep).map_or(self.live, |keep| keep.min(self.live));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        (self.next, self.live) = (0, 0);
    }

    /// Bytes reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.cap * size_of::<T>()
    }
}

/// An empty list with room for `cap` values.
///
/// # Errors
/// [`ConfigError::Memory`] if there is not that much.
pub(crate) fn reserve<T>(cap: u64) -> Result<Vec<T>, ConfigError> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    let mut list = Vec::new();
    match list.try_reserve_exact(cap) {
        Ok(()) => Ok(list),
        Err(_) => Err(ConfigError::Memory { bytes: cap.saturating_mul(size_of::<T>()) }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn contents(ring: &Ring<u64>) -> Vec<u64> {
        (1..).map_while(|n| ring.newest(n)).collect()
    }

    #[test]
    fn keeps_the_newest_over_many_laps() {
        let mut ring = Ring::new(3).unwrap();
        let mut all = Vec::new();
        for (lap, times) in [1, 1, 1, 2, 3, 7, 1, 0, 2].into_iter().cycle().take(90).enumerate() {
            ring.push(lap as u64, times);
            all.extend(core::iter::repeat_n(lap as u64, times as usize));
            let newest: Vec<u64> = all.iter().rev().take(3).copied().collect();
            assert_eq!(contents(&ring), newest);
            assert_eq!(ring.oldest(), newest.last().copied());
            assert_eq!(
                ring.count(|lap| lap + 1 > newest[0]),
                newest.iter().filter(|&&v| v == newest[0]).count() as u64
            );
        }
    }

    #[test]
    fn what_was_forgotten_does_not_come_back() {
        let mut ring = Ring::new(4).unwrap();
        (0..6).for_each(|value| ring.push(value, 1));
        ring.truncate(1);
        assert_eq!(contents(&ring), [5]);
        ring.push(6, 2);
        assert_eq!(contents(&ring), [6, 6, 5]);
        ring.clear();
        assert_eq!(contents(&ring), []);
        ring.push(9, 1);
        assert_eq!(contents(&ring), [9]);
    }

    #[test]
    fn an_empty_ring_takes_and_gives_nothing() {
        let mut ring = Ring::new(0).unwrap();
        ring.push(1, 5);
        assert_eq!((ring.oldest(), ring.count(|_: u64| true)), (None, 0));
    }
}
