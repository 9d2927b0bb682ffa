//! What ours is compared with, each behind the same call: crates, and what people write themselves.

mod buckets;
mod crates;
mod deque;
mod floors;
mod keys;
mod packed;

pub(crate) use self::{
    buckets::{Shared, Summed, Total},
    crates::{BetterBucket, Governor, GovernorKeyed, LeakyBucket, Pingora, Ratelimit},
    deque::Deque,
    floors::{Cas, FetchAdd, Load, Ring, TwoCas},
    keys::{KeysFloor, Step},
    packed::Packed,
};
use tollgate::{Algorithm, Nanos};

/// What admits or refuses one permit at a time that is passed.
pub(crate) trait Limits: Send + Sync + 'static {
    /// Whether it reads a clock of its own, whatever time is passed.
    const OWN_CLOCK: bool = false;

    fn try_acquire(&self, now: Nanos) -> bool;
}

/// A lock as those who write a limiter themselves take one.
pub(crate) trait Mutex<T>: Send + Sync + 'static {
    fn new(value: T) -> Self;
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;
}

impl<A: Algorithm + Send + Sync + 'static> Limits for A {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.try_acquire_at(1, now)
    }
}

impl<T: Send + 'static> Mutex<T> for std::sync::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock().expect("no holder panics"))
    }
}

impl<T: Send + 'static> Mutex<T> for parking_lot::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock())
    }
}
