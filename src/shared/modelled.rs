//! One bucket for the model checker: its words, and limiters in place of states.

use super::table::{Bucket, Tag, WAYS, Ways};
use crate::{Algorithm, Decision, Nanos};

/// A bucket of keys whose histories are limiters of their own.
pub struct OneBucket<A> {
    bucket: Bucket,
    ways: [A; WAYS],
}

impl<A: Algorithm> OneBucket<A> {
    /// Without keys.
    pub fn new(limiter: impl Fn() -> A) -> Self {
        Self { bucket: Bucket::default(), ways: core::array::from_fn(|_| limiter()) }
    }

    /// Asks the history of a key, which tells whether it admitted: [`Keyed::check_at`](crate::Keyed::check_at) and its
    /// like. `None`: there is no room.
    pub fn admit<R>(&self, key: u64, now: Nanos, ask: impl Fn(&A, Nanos) -> (R, bool)) -> Option<R> {
        self.bucket.admit(Tag::new(key << 16), now, &self.ways, |way, now| ask(&self.ways[way], now)).ok()
    }

    /// Looks at a key: [`Keyed::peek_at`](crate::Keyed::peek_at). `Err`: a key without a place, which would get one, or
    /// would not.
    pub fn peek_at(&self, key: u64, cost: u64, now: Nanos) -> Result<Decision, bool> {
        let look = self.bucket.look(Tag::new(key << 16), now, |way, now| self.ways[way].peek_at(cost, now));
        look.ok_or_else(|| self.bucket.has_room(now, &self.ways).is_ok())
    }

    /// Keys that have a place.
    pub fn taken(&self) -> usize {
        self.bucket.taken()
    }
}

impl<A: Algorithm> Ways for [A; WAYS] {
    fn idle_after(&self, way: usize, now: Nanos) -> Nanos {
        self[way].peek_at(0, now).map_or(Nanos::MAX, |quota| quota.at - now + quota.reset_after)
    }
}
