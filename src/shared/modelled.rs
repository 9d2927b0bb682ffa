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

    /// Takes permits of a key: [`Keyed::check_at`](crate::Keyed::check_at). `None`: there is no room.
    pub fn check_at(&self, key: u64, cost: u64, now: Nanos) -> Option<Decision> {
        let ask = |way: usize, now| {
            let decision = self.ways[way].check_at(cost, now);
            (decision, decision.is_ok())
        };
        self.bucket.admit(Tag::new(key << 16), now, &self.ways, ask).ok()
    }
}

impl<A: Algorithm> Ways for [A; WAYS] {
    fn idle_after(&self, way: usize, now: Nanos) -> Nanos {
        self[way].peek_at(0, now).map_or(Nanos::MAX, |quota| quota.at - now + quota.reset_after)
    }
}
