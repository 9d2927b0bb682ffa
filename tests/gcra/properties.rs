//! Every answer against a token bucket in exact arithmetic.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Nanos, Reason};

use crate::{at, gcra};

/// A token bucket as the textbook has it: a level and the time it was true at, in whole parts of a token that
/// are small enough for every sum to be exact.
#[derive(Clone, Copy)]
struct Tokens {
    /// Parts that come in per nanosecond.
    rate: i128,
    /// Parts of one token.
    token: i128,
    burst: i128,
    level: i128,
    last: i128,
}

impl Tokens {
    /// `rate` tokens per `token` nanoseconds.
    fn new(rate: u128, token: u128, burst: u64) -> Self {
        let (rate, token, burst) = (rate as i128, token as i128, i128::from(burst));
        Self { rate, token, burst, level: burst * token, last: 0 }
    }

    /// Exactly the rate asked for.
    fn exact(limit: u64, per: u64, burst: u64) -> Self {
        Self::new(limit.into(), per.into(), burst)
    }

    /// The interval rounded up to the next third of a nanosecond, unless a half holds it.
    fn stated(limit: u64, per: u64, burst: u64) -> Self {
        let (limit, per) = (u128::from(limit), u128::from(per));
        let ticks = if (2 * per).is_multiple_of(limit) { 2 } else { 3 };
        Self::new(ticks, (per * ticks).div_ceil(limit), burst)
    }

    fn level_at(&self, now: u64) -> i128 {
        (self.level + (i128::from(now) - self.last) * self.rate).min(self.burst * self.token)
    }

    /// Whole tokens at hand.
    fn remaining(&self, now: u64) -> u64 {
        self.level_at(now).max(0).div_euclid(self.token) as u64
    }

    fn take(&mut self, cost: u64, now: u64) -> bool {
        let (level, cost) = (self.level_at(now), i128::from(cost) * self.token);
        if level < cost {
            return false;
        }
        // An older call takes from the level, and leaves the time; cost 0 changes nothing.
        if cost > 0 && i128::from(now) > self.last {
            (self.level, self.last) = (level, now.into());
        }
        self.level -= cost;
        true
    }
}

/// Whole nanoseconds until `pass`, found by halving; none within `most`.
pub(crate) fn first(most: u64, pass: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, most);
    if !pass(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if pass(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

#[derive(Debug, Clone, Copy)]
enum Go {
    Stay,
    Ahead(u64),
    Back(u64),
    /// To the moment at which the last refused call would pass, or a nanosecond off it.
    Edge(i64),
}

fn steps() -> impl Strategy<Value = Vec<(Go, u64)>> {
    let go = prop_oneof![
        3 => Just(Go::Stay),
        3 => (0..5_000_u64).prop_map(Go::Ahead),
        1 => (0..5_000_u64).prop_map(Go::Back),
        3 => (-1..2_i64).prop_map(Go::Edge),
    ];
    prop::collection::vec((go, 0..12_u64), 1..120)
}

fn agrees(limit: u64, per: u64, burst: u64, start: u64, steps: &[(Go, u64)]) -> Result<(), TestCaseError> {
    let bucket = gcra(limit, Duration::from_nanos(per), burst);
    let mut tokens = Tokens::stated(limit, per, burst);
    let drain = u64::try_from(tokens.burst * tokens.token / tokens.rate + 1).unwrap();
    let (mut now, mut edge, mut newest) = (start, start, 0);
    for &(go, cost) in steps {
        now = match go {
            Go::Stay => now,
            Go::Ahead(span) => now + span,
            Go::Back(span) => now.saturating_sub(span),
            Go::Edge(off) => edge.saturating_add_signed(off),
        };
        let peeked = bucket.peek_at(cost, at(now));
        let decision = bucket.check_at(cost, at(now));
        let before = tokens;
        let admitted = tokens.take(cost, now);
        prop_assert_eq!(decision.is_ok(), admitted || cost == 0, "cost {} at {}", cost, now);
        let quota = match decision {
            Ok(quota) => {
                newest = if cost > 0 { newest.max(now) } else { newest };
                quota
            }
            Err(denied) => {
                prop_assert_eq!(peeked, decision);
                prop_assert_eq!(denied.reason == Reason::Never, cost > burst);
                if let Some(retry) = denied.retry_after() {
                    let retry = retry.as_nanos();
                    let judged = denied.quota.at.as_nanos();
                    prop_assert!(0 < retry && retry <= drain);
                    let pass = |wait| Tokens::take(&mut { before }, cost, judged + wait);
                    prop_assert_eq!(first(drain, pass), Some(retry));
                    edge = judged + retry;
                }
                denied.quota
            }
        };
        // Its own time, or a later one at which, too, nothing was left; but none that nobody has brought.
        let judged = quota.at.as_nanos();
        prop_assert!(judged == now || now < judged && judged <= newest && quota.remaining == 0);
        prop_assert_eq!(quota.remaining, tokens.remaining(now), "remaining at {}", now);
        prop_assert_eq!(bucket.usage_at(0, at(now)), Some(burst - quota.remaining));
        let full = |wait| tokens.level_at(judged + wait) == tokens.burst * tokens.token;
        prop_assert_eq!(first(drain, full), Some(quota.reset_after.as_nanos()));
        let grown = first(drain, |wait| tokens.remaining(judged + wait) > quota.remaining);
        prop_assert_eq!(grown.unwrap_or(0), quota.next_after.as_nanos());
    }
    Ok(())
}

proptest! {
    /// Rates that a third or a half of a nanosecond holds: every answer is that of the exact bucket.
    #[test]
    fn exact_rates_answer_as_an_exact_bucket(
        ticks in 1..4_u64, interval in 1..4_000_u64, permits in 1..50_u64, burst in 1..12_u64,
        start in prop_oneof![0..10_u64, Just(Nanos::MAX.as_nanos() - (1 << 40))], steps in steps(),
    ) {
        let (limit, per) = (permits * ticks, interval.max(ticks) * permits);
        let (stated, exact) = (Tokens::stated(limit, per, burst), Tokens::exact(limit, per, burst));
        prop_assert_eq!(stated.rate * exact.token, exact.rate * stated.token);
        agrees(limit, per, burst, start, &steps)?;
    }

    /// Any rate: every answer is that of a bucket whose interval is rounded up to a third of a nanosecond.
    #[test]
    fn all_rates_answer_as_a_bucket_with_the_stated_interval(
        limit in 1..2_000_u64, per in 0..100_000_u64, burst in 1..12_u64, steps in steps(),
    ) {
        agrees(limit, limit + per, burst, 0, &steps)?;
    }

    /// What it admits, an exact bucket of the rate asked for admits too.
    #[test]
    fn rounding_never_admits_more(
        limit in 1..2_000_u64, per in 0..100_000_u64, burst in 1..12_u64, steps in steps(),
    ) {
        let per = limit + per;
        let bucket = gcra(limit, Duration::from_nanos(per), burst);
        let mut tokens = Tokens::exact(limit, per, burst);
        let mut now = 0;
        for (go, cost) in steps {
            now += match go { Go::Ahead(span) | Go::Back(span) => span, _ => 0 };
            let admitted = bucket.try_acquire_at(cost, at(now));
            prop_assert!(!admitted || cost == 0 || tokens.take(cost, now), "cost {cost} at {now}");
        }
    }
}
