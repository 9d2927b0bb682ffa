//! The words of a model: the checker's atomics, with a cast. Each access is traced by the line it stands on.

use core::marker::PhantomData;

use bytemuck::{Pod, cast};
use crossbeam_utils::Backoff;
use tollgate_check::sync::{AtomicU64, UnsafeCell, spin_loop};

use super::Ordering;

/// An atomic 64-bit word that holds a packed value `T`.
#[repr(transparent)]
pub(crate) struct Word<T: Pod>(AtomicU64, PhantomData<fn(T) -> T>);

/// What a lock guards, as far as the checker is concerned: two threads that touch it without order between them race.
pub(super) struct Held(UnsafeCell<()>);

/// Waits for another thread: the model lets it run.
#[track_caller]
pub(super) fn wait(_: &Backoff) {
    spin_loop();
}

// === impl Held ===

impl Held {
    pub(super) fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    #[track_caller]
    pub(super) fn touch(&self) {
        self.0.with_mut(|_| ());
    }
}

// === impl Word ===

impl<T: Pod> Word<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(AtomicU64::new(cast(value)), PhantomData)
    }

    #[track_caller]
    pub(crate) fn load(&self, order: Ordering) -> T {
        cast(self.0.load(order))
    }

    #[track_caller]
    pub(crate) fn store(&self, value: T, order: Ordering) {
        self.0.store(cast(value), order);
    }

    #[track_caller]
    pub(crate) fn compare_exchange(&self, now: T, next: T, won: Ordering, lost: Ordering) -> Result<T, T> {
        self.0.compare_exchange(cast(now), cast(next), won, lost).map(cast).map_err(cast)
    }

    #[track_caller]
    pub(crate) fn compare_exchange_weak(
        &self,
        now: T,
        next: T,
        won: Ordering,
        lost: Ordering,
    ) -> Result<T, T> {
        self.0.compare_exchange_weak(cast(now), cast(next), won, lost).map(cast).map_err(cast)
    }
}

impl Word<u64> {
    #[track_caller]
    pub(crate) fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        self.0.fetch_add(more, order)
    }
}
