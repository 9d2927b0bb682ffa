//! What an instance keeps by key: a bounded map in parts, each under its own lock.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tollgate::Nanos;

/// A value that may be forgotten once nothing depends on it.
pub(crate) trait Idle {
    /// Whether a new value would answer every question as this one does, from `now` on.
    fn is_idle(&self, now: Nanos) -> bool;
}

/// At most so many values by key. A full part forgets idle values to make room; a value in use is never forgotten, and a
/// key for which there is no room is told so.
#[derive(Debug)]
pub(crate) struct Keyed<V> {
    parts: Box<[Mutex<Part<V>>]>,
    hasher: RandomState,
    room: usize,
}

#[derive(Debug)]
struct Part<V> {
    values: HashMap<Box<[u8]>, V>,
    /// Not to be searched for idle values before this: a flood of new keys must not search it at each.
    search_at: Nanos,
}

const PARTS: usize = 16;
/// The least time between two searches of a part.
const SEARCH_EVERY: Nanos = Nanos::from_millis(10);

// === impl Keyed ===

impl<V: Idle> Keyed<V> {
    /// Room for `keys` values, rounded up to a multiple of the number of parts.
    pub(crate) fn new(keys: usize) -> Self {
        let part = || Mutex::new(Part { values: HashMap::new(), search_at: Nanos::ZERO });
        let parts = (0..PARTS).map(|_| part()).collect();
        Self { parts, hasher: RandomState::new(), room: keys.div_ceil(PARTS) }
    }

    /// Does `act` on the value of `key`, made by `new` if there is none; `None` if there is no room for it.
    pub(crate) fn with<R>(
        &self,
        key: &[u8],
        now: Nanos,
        new: impl FnOnce() -> V,
        act: impl FnOnce(&mut V) -> R,
    ) -> Option<R> {
        let mut part = self.part(key);
        if let Some(value) = part.values.get_mut(key) {
            return Some(act(value));
        }
        if part.values.len() >= self.room {
            part.search(now);
            if part.values.len() >= self.room {
                return None;
            }
        }
        Some(act(part.values.entry(key.into()).or_insert_with(new)))
    }

    /// Does `act` on the value of `key` if there is one.
    pub(crate) fn with_known<R>(&self, key: &[u8], act: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.part(key).values.get_mut(key).map(act)
    }

    /// Does `act` on every value, a part at a time.
    pub(crate) fn for_each(&self, mut act: impl FnMut(&mut V)) {
        for part in &self.parts {
            lock(part).values.values_mut().for_each(&mut act);
        }
    }

    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part<V>> {
        lock(&self.parts[self.hasher.hash_one(key) as usize % PARTS])
    }
}

/// Values are whole between any two statements of ours, so a lock whose holder panicked is as good as another.
fn lock<V>(part: &Mutex<Part<V>>) -> MutexGuard<'_, Part<V>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Part ===

impl<V: Idle> Part<V> {
    #[cold]
    fn search(&mut self, now: Nanos) {
        if now >= self.search_at {
            self.search_at = now + SEARCH_EVERY;
            self.values.retain(|_, value| !value.is_idle(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Until(Nanos);

    impl Idle for Until {
        fn is_idle(&self, now: Nanos) -> bool {
            now >= self.0
        }
    }

    #[test]
    fn forgets_what_is_idle_and_nothing_else() {
        let keyed = Keyed::new(PARTS);
        let insert = |key: u32, at: u64, until: u64| {
            let until = Nanos::from_millis(until);
            keyed.with(&key.to_be_bytes(), Nanos::from_millis(at), || Until(until), |value| value.0).is_some()
        };
        let first = (0..1_000).filter(|&key| insert(key, 0, 100)).count();
        assert_eq!(first, PARTS, "each part has room for one");
        assert_eq!(
            (0..1_000).filter(|&key| insert(key, 50, 100)).count(),
            PARTS,
            "in use: only they are known"
        );
        assert_eq!((1_000..2_000).filter(|&key| insert(key, 100, 200)).count(), PARTS, "idle ones made room");
        assert!(keyed.with_known(&0u32.to_be_bytes(), |_| ()).is_none());
    }
}
