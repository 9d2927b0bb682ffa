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

    /// A sliding-window counter with `buckets` buckets to the shortest window, edges at multiples of the width from 0;
    /// one bucket with [`Coverage::Textbook`] is the fixed window. A call is judged in its own bucket or the newest
    /// recorded one, or in any later one up to the newest that a call begun before it returned has carried.
    ///
    /// # Panics
    /// Without rules, without buckets, or if a window is not a multiple of the width.
    pub fn counter(rules: &[(u64, u64)], buckets: u64, coverage: Coverage) -> Spec {
        Spec::oracle(counter::Counter::new(rules, buckets, coverage))
    }

    /// The generic cell rate algorithm, which is the token bucket and the leaky bucket as a meter: a bucket of
    /// `burst` permits that drains `limit` permits per `window`, exactly (nothing is rounded). A cost above `burst` is
    /// answered *never*.
    ///
    /// It keeps no newest time, so a call that is late is judged at its own time: it finds the bucket fuller than the
    /// newer calls left it, by what has not yet drained. If that is more than full, retry-after may count from the call's
    /// own time or from when the bucket was just full: with 2 per 10 and burst 2, after an admission at 110, a call at
    /// 100 may be told 10, or 5 (from 105).
    ///
    /// A token bucket that stores the time of its last refill judges late calls at that time instead, and so admits some
    /// that are refused here. Its oracle, for 5 ticks a token and a burst of 2:
    /// ```
    /// use tollgate_check::{Call, Oracle, Question, Spec, Verdict};
    ///
    /// struct TokenBucket;
    ///
    /// impl Oracle for TokenBucket {
    ///     type State = (u64, u64); // Last refill; credit in ticks.
    ///
    ///     fn name(&self) -> String {
    ///         "token bucket: one each 5 ticks, burst 2".into()
    ///     }
    ///
    ///     fn start(&self) -> (u64, u64) {
    ///         (0, 10)
    ///     }
    ///
    ///     fn outcomes(&self, state: &(u64, u64), asked: &Question<'_>) -> Option<Vec<(Verdict, (u64, u64))>> {
    ///         let (last, credit) = *state;
    ///         let Call::Acquire { cost, .. } = *asked.call else { return None };
    ///         if cost > 2 {
    ///             return Some(vec![(Verdict::Never, (last, credit))]);
    ///         }
    ///         let at = asked.now.max(last);
    ///         let credit_now = (credit + at - last).min(10);
    ///         Some(vec![match credit_now.checked_sub(cost * 5) {
    ///             Some(rest) => (Verdict::Admitted, (at, rest)),
    ///             None => (Verdict::Refused { retry_after: Some(cost * 5 - credit_now) }, (last, credit)),
    ///         }])
    ///     }
    /// }
    /// let spec = Spec::oracle(TokenBucket);
    /// ```
    pub fn gcra(limit: u64, window: u64, burst: u64) -> Spec {
        Spec::oracle(gcra::Gcra { limit, window, burst })
    }

    /// Which calls count as one before the other; the default is [`Order::HappensBefore`].
    pub fn order(mut self, order: Order) -> Spec {
        self.order = order;
        self
    }
}
