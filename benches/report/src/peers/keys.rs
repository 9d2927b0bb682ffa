//! What a limiter for each key can not do without, step by step.

use std::{
    hash::BuildHasher,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tollgate::Nanos;

/// Keys and states in a row, which is two cache lines.
const ROW: usize = 7;
/// Keys behind a lock.
const SHARE: u64 = 16_000;

/// A key's hash; the cache lines where it would be found, of a table as large as one that holds the keys; and a CAS of its
/// state, or a load and a compare. It finds no key: it is here for its cost.
pub(crate) struct KeysFloor<S> {
    hasher: S,
    rows: Box<[Row]>,
    locks: Box<[Lock]>,
    admits: bool,
}

/// How much of it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Step {
    Hash,
    Rows,
    Locks,
}

/// A lock on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Lock(Mutex<()>);

#[repr(C)]
struct Row {
    tags: u64,
    places: [(u64, AtomicU64); ROW],
}

impl<S: BuildHasher + Default> KeysFloor<S> {
    pub(crate) fn new(keys: u64, step: Step, admits: bool) -> Self {
        let (rows, locks) = (keys.div_ceil(ROW as u64), keys.div_ceil(SHARE));
        let row = |row| Row { tags: row, places: [const { (u64::MAX, AtomicU64::new(u64::MAX)) }; ROW] };
        Self {
            hasher: S::default(),
            rows: (0..if step >= Step::Rows { rows } else { 0 }).map(row).collect(),
            locks: (0..if step >= Step::Locks { locks } else { 0 }).map(|_| Lock::default()).collect(),
            admits,
        }
    }

    #[inline(always)]
    pub(crate) fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        let hash = self.hasher.hash_one(key);
        let _held = of(&self.locks, hash >> 20).map(|lock| lock.0.lock().expect("no holder panics"));
        let Some(row) = of(&self.rows, hash) else { return (hash != key) == self.admits };
        let (held, state) = &row.places[(hash >> 56) as usize % ROW];
        if (*held == key) | (row.tags == hash) {
            return !self.admits; // There is no such key, which only who looks can know.
        }
        let mut seen = state.load(Ordering::Acquire);
        if !self.admits {
            return seen <= now.as_nanos();
        }
        while let Err(actual) =
            state.compare_exchange(seen, seen.wrapping_add(1), Ordering::AcqRel, Ordering::Acquire)
        {
            seen = actual;
        }
        true
    }
}

/// The one that a hash names, if there are any.
#[inline(always)]
fn of<T>(all: &[T], hash: u64) -> Option<&T> {
    all.get(((u64::from(hash as u32) * all.len() as u64) >> u32::BITS) as usize)
}
