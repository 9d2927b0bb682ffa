//! What is right: the oracles.

mod counter;
mod exact;
mod gcra;

use std::sync::Arc;

use crate::{
    history::Order,
    search::{Judge, Oracle},
};
pub use counter::Coverage;

/// What a limiter promises: the oracle that its answers are held to.
#[derive(Clone)]
pub struct Spec {
    pub(crate) judge: Arc<dyn Judge>,
    pub(crate) order: Order,
}

impl Spec {
    /// A sequential limiter of your own.
    pub fn oracle(oracle: impl Oracle) -> Spec {
        Spec { judge: Arc::new(oracle), order: Order::default() }
    }

    /// The exact sliding window: at most `limit` permits in any `(t - window, t]`, for each `(limit, window)`, all
    /// taken together. A time older than the newest recorded one is judged at the newest recorded one. A refusal
    /// records nothing. A cost above the least limit is answered *never*, cost 0 is admitted and changes nothing.
    pub fn exact(rules: &[(u64, u64)]) -> Spec {
        Spec::oracle(exact::Exact { rules: rules.to_vec() })
    }

    /// A sliding-window counter with `buckets` buckets to the shortest window, edges at multiples of the width
    /// from 0. A call is judged in its own bucket or the newest recorded one, or in any later one up to the newest
    /// that a call begun before it returned has carried.
    ///
    /// # Panics
    /// Without rules, without buckets, or if a window is not a multiple of the width.
    pub fn counter(rules: &[(u64, u64)], buckets: u64, coverage: Coverage) -> Spec {
        Spec::oracle(counter::Counter::new(rules, buckets, coverage))
    }

    /// The generic cell rate algorithm, which is the token bucket and the leaky bucket as a meter: a bucket of
    /// `burst` permits that drains `limit` permits per `window`, exactly. It keeps no newest time.
    pub fn gcra(limit: u64, window: u64, burst: u64) -> Spec {
        Spec::oracle(gcra::Gcra { limit, window, burst })
    }

    /// Which calls count as one before the other; the default is [`Order::HappensBefore`].
    pub fn order(mut self, order: Order) -> Spec {
        self.order = order;
        self
    }
}
