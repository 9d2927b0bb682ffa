//! A naive log, a list of permits, and the calls to hold a limiter against it.

use proptest::{collection::vec, prelude::*};
use tollgate::{Algorithm, Nanos, Reason};

use crate::ns;

/// One call, by where its time lies from that of the call before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    cost: u64,
    ahead: i64,
}

/// Calls that crowd, spread over the window, cross its end by a hair, pause for long, and step back. `wraps` are
/// spans at which a narrow clock would come round.
pub(crate) fn calls(window: u64, limit: u64, wraps: &'static [i64]) -> impl Strategy<Value = Vec<Call>> {
    let window = window as i64;
    let ahead = prop_oneof![
        3 => Just(0),
        3 => 0_i64..4,
        4 => 0..=window / 2,
        3 => window - 3..=window + 3,
        2 => -window..0,
        1 => 0..=70 * window,
        1 => (0..4_i64, prop::sample::select(wraps), -2_i64..=2).prop_map(|(laps, wrap, off)| laps * wrap + off),
    ];
    let cost = prop_oneof![6 => Just(1), 3 => 0..=limit + 1];
    vec((cost, ahead).prop_map(|(cost, ahead)| Call { cost, ahead }), 1..80)
}

/// Makes the calls, each at its time.
pub(crate) fn replay(calls: &[Call], mut each: impl FnMut(u64, u64)) {
    // Begins away from zero, so that steps back have where to go.
    let mut now = 1_000_i64;
    for call in calls {
        now = (now + call.ahead).max(0);
        each(call.cost, now as u64);
    }
}

/// Every permit: the time it was recorded at, and the time from which it is charged no more.
pub(crate) struct Naive {
    pub(crate) newest: u64,
    permits: Vec<(u64, u64)>,
}

impl Naive {
    pub(crate) fn new() -> Self {
        Self { newest: 0, permits: Vec::new() }
    }

    pub(crate) fn record(&mut self, cost: u64, at: u64, leaves: u64) {
        self.newest = at;
        self.permits.extend((0..cost).map(|_| (at, leaves)));
    }

    /// Permits charged at `at`.
    pub(crate) fn charged(&self, at: u64) -> u64 {
        self.permits.iter().filter(|&&(_, leaves)| leaves > at).count() as u64
    }

    /// Permits recorded less than `span` before `at`: those in the true window, if `span` is the window.
    pub(crate) fn younger(&self, span: u64, at: u64) -> u64 {
        self.permits.iter().filter(|&&(time, _)| time + span > at).count() as u64
    }

    /// How long from `at` until at most `keep` are charged.
    pub(crate) fn wait(&self, keep: u64, at: u64) -> Nanos {
        let mut ends: Vec<u64> = self.permits.iter().map(|&(_, leaves)| leaves).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ns(ends.get(keep as usize).map_or(0, |leaves| leaves.saturating_sub(at)))
    }
}

/// A form whose permits leave late, by less than `late`, and never early: every answer equals that of the naive
/// log with the ends that `leaves` gives, and the true window keeps its bounds on both sides.
pub(crate) fn as_the_naive_log(
    limiter: &dyn Algorithm,
    calls: &[Call],
    late: u64,
    leaves: impl Fn(u64) -> u64,
) {
    let rule = limiter.rules()[0];
    let (limit, window) = (rule.limit, rule.window.as_nanos());
    let mut naive = Naive::new();
    replay(calls, |cost, now| {
        let at = naive.newest.max(now);
        let charged = naive.charged(at);
        assert_eq!(limiter.usage_at(0, ns(now)), Some(charged));
        let before = limiter.peek_at(cost, ns(now));
        assert_eq!(before.is_ok(), charged + cost <= limit, "cost {cost} at {at}: {before:?}");

        let answer = limiter.check_at(cost, ns(now));
        let quota = match answer {
            Ok(quota) => {
                if cost > 0 {
                    assert!(naive.younger(window, at) + cost <= limit, "over at {at}");
                    naive.record(cost, at, leaves(at));
                }
                quota
            }
            Err(denied) => {
                // It stored nothing: not even time has moved.
                assert_eq!((limiter.peek_at(cost, ns(now)), Err(denied)), (before, before));
                if cost > limit {
                    assert_eq!(denied.reason, Reason::Never);
                } else {
                    let wait = naive.wait(limit - cost, at);
                    assert_eq!(denied.reason, Reason::Limit { retry_after: wait });
                    assert!(wait > Nanos::ZERO && wait < ns(window + late));
                    assert!(limiter.peek_at(cost, ns(at) + wait - ns(1)).is_err());
                    assert!(limiter.peek_at(cost, ns(at) + wait).is_ok());
                    assert!(naive.younger(window + late - 1, at) + cost > limit, "too late at {at}");
                }
                denied.quota
            }
        };
        let used = naive.charged(at);
        assert_eq!((quota.at, quota.limit, quota.remaining), (ns(at), limit, limit - used));
        assert_eq!(quota.reset_after, naive.wait(0, at));
        assert_eq!(quota.next_after, used.checked_sub(1).map_or(Nanos::ZERO, |keep| naive.wait(keep, at)));
    });
}
