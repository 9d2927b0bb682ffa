//! Counts handed to the recorder of the `metrics` crate.

use metrics::{SharedString, counter};

use super::{Counted, Statistics};

/// Names of the rules.
const RULES: [&str; crate::RULES_MAX] = ["0", "1", "2", "3", "4", "5", "6", "7"];

// === impl Counted ===

impl<A> Counted<A> {
    /// Hands the counts so far to the recorder of the `metrics` crate, under a name for this limiter. To be called by whoever
    /// scrapes, or from time to time.
    ///
    /// | metric | labels besides `limiter` |
    /// |---|---|
    /// | `tollgate_admitted_total`, `tollgate_permits_total` | |
    /// | `tollgate_refused_total` | `reason`: `limit`, `max_cost`, `time`, `full`; with `limit` also `rule`, its place (of [`AnyLayers`](super::AnyLayers) the layer), once it has refused |
    /// | `tollgate_contention_retries_total`, `tollgate_clock_regressions_total` | |
    pub fn export(&self, limiter: impl Into<SharedString>) {
        let (limiter, seen) = (limiter.into(), self.statistics());
        let Statistics { admitted, permits, contention_retries, clock_regressions, .. } = seen;
        let label = || limiter.clone();
        counter!("tollgate_admitted_total", "limiter" => label()).absolute(admitted);
        counter!("tollgate_permits_total", "limiter" => label()).absolute(permits);
        counter!("tollgate_contention_retries_total", "limiter" => label()).absolute(contention_retries);
        counter!("tollgate_clock_regressions_total", "limiter" => label()).absolute(clock_regressions);
        for (rule, refused) in RULES.into_iter().zip(seen.refused_by).filter(|&(_, refused)| refused > 0) {
            counter!("tollgate_refused_total", "limiter" => label(), "reason" => "limit", "rule" => rule)
                .absolute(refused);
        }
        let reasons = [("max_cost", seen.max_cost), ("time", seen.out_of_range), ("full", seen.full)];
        for (reason, refused) in reasons {
            counter!("tollgate_refused_total", "limiter" => label(), "reason" => reason).absolute(refused);
        }
    }
}

// === impl Keyed ===

#[cfg(feature = "keyed")]
impl<K, S> crate::Keyed<K, S>
where
    K: ?Sized + core::hash::Hash + Eq + std::borrow::ToOwned,
    S: core::hash::BuildHasher,
{
    /// Hands `tollgate_keys` and `tollgate_evictions_total` to the recorder of the `metrics` crate, under a name for this
    /// limiter.
    pub fn export(&self, limiter: impl Into<SharedString>) {
        let limiter = limiter.into();
        metrics::gauge!("tollgate_keys", "limiter" => limiter.clone()).set(self.len() as f64);
        counter!("tollgate_evictions_total", "limiter" => limiter).absolute(self.evicted());
    }
}
