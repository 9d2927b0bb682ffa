//! The bucket against an exact one, at the edges of its range, and under threads.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Gcra, LeakyBucket, Nanos, Reason, TokenBucket};

const S: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn at(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

fn gcra(limit: u64, per: Duration, burst: u64) -> Gcra {
    Gcra::builder(limit, per).burst(burst).build().unwrap()
}

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
fn first(most: u64, pass: impl Fn(u64) -> bool) -> Option<u64> {
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

/// The other side of the bound: a bucket that is never idle falls behind by the rounding of each permit, and no
/// further. 3 s / 7 is 1,285,714,285 and 5/7 thirds of a nanosecond: 2/21 ns are lost per permit.
#[test]
fn rounding_delays_the_nth_permit_by_n_times_the_stated_part() {
    let bucket = gcra(7, 3 * SECOND, 2);
    assert!(bucket.try_acquire_at(2, at(0)));
    for n in 1..=21_000_u64 {
        let exact = (n * 3 * S).div_ceil(7);
        let stated = (n * 1_285_714_286).div_ceil(3);
        assert!(!bucket.try_acquire_at(1, at(stated - 1)), "permit {n}");
        assert!(bucket.try_acquire_at(1, at(stated)), "permit {n}");
        assert!(stated - exact <= n.div_ceil(3));
    }
    assert_eq!((21_000 * 1_285_714_286_u64).div_ceil(3) - 21_000 * 3 * S / 7, 2_000);
}

#[test]
fn last_moments() {
    let last = Nanos::MAX;
    for limit in [1, 2, 3, 7, 1 << 40, last.as_nanos() - 1, last.as_nanos()] {
        let Some(ConfigError::Burst { got: u64::MAX, min: 1, max }) =
            Gcra::builder(limit, last.into()).burst(u64::MAX).build().err()
        else {
            panic!("{limit}: a burst without bound was accepted")
        };
        let error = Gcra::builder(limit, last.into()).burst(max + 1).build().err();
        assert_eq!(error, Some(ConfigError::Burst { got: max + 1, min: 1, max }));
        let bucket = gcra(limit, last.into(), max);
        assert!(bucket.try_acquire_at(max, last), "limit {limit}");
        let denied = bucket.check_at(max, last).unwrap_err();
        assert_eq!(denied.retry_after(), Some(denied.quota.reset_after));
        assert_eq!(denied.quota.remaining, 0);
        // 48 years at the least.
        assert!(denied.quota.reset_after >= Nanos::from_secs(48 * 365 * 86_400) || max < 3 * limit);
        assert!(bucket.check_at(1, at(0)).is_err());
    }
    let bucket = gcra(1, SECOND, 1);
    let late = bucket.check_at(1, at(1 << 62)).unwrap_err();
    assert_eq!(late.reason, Reason::TimeOutOfRange);
    assert!(!bucket.try_acquire_at(1, at(u64::MAX)));
    assert!(!bucket.try_acquire_at(0, at(u64::MAX)));
    assert_eq!(bucket.usage_at(0, last), Some(0));
    assert!(bucket.try_acquire_at(1, last));
}

#[test]
fn configurations_that_are_refused() {
    let error = |builder: tollgate::GcraBuilder| builder.build().err();
    assert!(matches!(error(Gcra::builder(1, Duration::ZERO)), Some(ConfigError::Window { .. })));
    assert!(matches!(error(Gcra::builder(1, Duration::MAX)), Some(ConfigError::Window { .. })));
    let max = 18_446_744_073_709_551_615 - Nanos::MAX.as_nanos();
    let burst = Some(ConfigError::Burst { got: 0, min: 1, max: max / S });
    assert_eq!(error(Gcra::builder(1, SECOND).burst(0)), burst);
    let cost = Some(ConfigError::MaxCost { got: 0, min: 1 });
    assert_eq!(error(Gcra::builder(1, SECOND).max_cost(0)), cost);
    assert_eq!(error(Gcra::builder(0, SECOND).burst(0)), None);
    assert_eq!(error(Gcra::builder(S, SECOND)), None);
    assert_eq!(error(Gcra::builder(S + 1, SECOND)), Some(ConfigError::Limit { got: S + 1, max: S }));
}

#[test]
fn a_largest_cost_below_the_burst() {
    let bucket = Gcra::builder(10, SECOND).max_cost(4).build().unwrap();
    assert!(!bucket.try_acquire_at(5, at(0)));
    let denied = bucket.check_at(5, at(0)).unwrap_err();
    assert_eq!((denied.reason, denied.quota.remaining), (Reason::MaxCost { max: 4 }, 10));
    assert_eq!(bucket.check_at(11, at(0)).unwrap_err().reason, Reason::Never);
    assert!(bucket.try_acquire_at(4, at(0)));
}

#[test]
fn reset_makes_a_new_limiter() {
    let mut bucket = gcra(1, SECOND, 3);
    assert!(bucket.try_acquire_at(3, at(9 * S)));
    bucket.reset();
    assert_eq!(bucket.usage_at(0, at(0)), Some(0));
    assert!(bucket.try_acquire_at(3, at(0)));
    assert_eq!(bucket.rules(), [tollgate::Rule::new(1, SECOND)]);
    assert_eq!(bucket.state_bytes(), align_of::<Gcra>());
}

#[test]
fn its_other_names_are_the_same_type() {
    let buckets: [Gcra; 2] =
        [TokenBucket::builder(1, SECOND).build().unwrap(), LeakyBucket::builder(1, SECOND).build().unwrap()];
    for bucket in &buckets as &[Gcra] {
        let bucket: &dyn Algorithm = bucket;
        assert!(bucket.try_acquire_at(1, at(0)) && !bucket.try_acquire_at(1, at(S - 1)));
    }
}

#[test]
fn f024_a_caller_with_an_old_now_rewinds_the_refill_clock() {
    let bucket = gcra(10, SECOND, 1_000);
    assert!(bucket.try_acquire_at(1_000, at(10 * S)));
    assert!(!bucket.try_acquire_at(1, at(9 * S)));
    assert_eq!(bucket.usage_at(0, at(11 * S)), Some(990));
}

#[test]
fn f025_frequent_polling_starves_the_refill() {
    let bucket = gcra(1, SECOND, 10);
    assert!(bucket.try_acquire_at(10, at(0)));
    let admitted: Vec<_> = (1..=100).filter(|&i| bucket.try_acquire_at(1, at(i * S / 10))).collect();
    assert_eq!(admitted, (1..=10).map(|s| s * 10).collect::<Vec<_>>());
}

#[test]
fn f026_a_rate_that_binary_floats_can_not_hold() {
    let bucket = gcra(10, 13 * SECOND, 1);
    for n in 0..1_000 {
        let due = n * 1_300_000_000;
        assert!(due == 0 || !bucket.try_acquire_at(1, at(due - 1)), "admission {n}");
        assert!(bucket.try_acquire_at(1, at(due)), "admission {n}");
    }
    assert!(!bucket.try_acquire_at(1, at(1_300 * S - 1)));
    assert!(bucket.try_acquire_at(1, at(1_300 * S)));
}

#[test]
fn f027_one_per_hour() {
    let bucket = gcra(1, 3_600 * SECOND, 1);
    assert!(bucket.try_acquire_at(1, at(0)));
    for poll in [S / 10, 7 * S, 1_979_657_728_000, 3_599_999_999_999] {
        assert!(!bucket.try_acquire_at(1, at(poll)), "{poll} ns");
    }
    assert!(bucket.try_acquire_at(1, at(3_600 * S)));
}

#[test]
fn f028_tokens_times_elapsed_overflows_after_a_night_of_silence() {
    for idle in [12 * 3_600 * S, 10 * 366 * 86_400 * S] {
        let bucket = gcra(1_000_000, SECOND, 1_000_000);
        assert!(bucket.try_acquire_at(1_000_000, at(0)));
        let quota = bucket.peek_at(1, at(idle)).unwrap();
        assert_eq!((quota.remaining, quota.reset_after), (1_000_000, Nanos::ZERO));
        assert!(bucket.try_acquire_at(1_000_000, at(idle)));
        assert!(!bucket.try_acquire_at(1, at(idle)));
    }
}

#[test]
fn f029_a_very_large_limit_turns_into_a_small_or_negative_one() {
    // More than one per nanosecond is refused, by name of the bound; the same limits per longer windows work.
    for limit in [(1 << 32) + 5, 1 << 41, u64::MAX] {
        let error = Gcra::builder(limit, SECOND).burst(limit).build().err();
        assert_eq!(error, Some(ConfigError::Limit { got: limit, max: S }));
    }
    for (limit, per) in
        [((1 << 32) + 5, 60 * SECOND), (1 << 41, 3_600 * SECOND), (1 << 62, Nanos::MAX.into())]
    {
        let limit = limit.min(Nanos::MAX.as_nanos());
        let bucket = Gcra::builder(limit, per).build().unwrap();
        let quota = bucket.check_at(1_048_576, at(0)).unwrap();
        assert_eq!((quota.limit, quota.remaining), (limit, limit - 1_048_576));
    }
}

#[test]
fn f030_a_cost_equal_to_the_capacity_is_told_never() {
    let bucket = gcra(1, 60 * SECOND, 5);
    assert!(bucket.try_acquire_at(1, at(0)));
    let denied = bucket.check_at(5, at(0)).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Nanos::from_secs(60)));
    assert!(!bucket.try_acquire_at(5, at(60 * S - 1)));
    assert!(bucket.try_acquire_at(5, at(60 * S)));
}

#[test]
fn f031_one_more_than_the_burst_waits_for_ever() {
    let bucket = gcra(1, SECOND, 10);
    let denied = bucket.check_at(11, at(0)).unwrap_err();
    assert_eq!((denied.reason, denied.retry_after()), (Reason::Never, None));
    assert!(!bucket.try_acquire_at(11, at(0)));
    assert!(bucket.try_acquire_at(10, at(0)));
}

#[test]
fn f032_a_finite_wait_for_something_impossible() {
    let bucket = gcra(3, 2 * SECOND, 3);
    let denied = bucket.check_at(4, at(0)).unwrap_err();
    assert_eq!((denied.reason, denied.retry_after()), (Reason::Never, None));
    assert_eq!((denied.quota.remaining, denied.quota.limit), (3, 3));
    assert_eq!((denied.quota.next_after, denied.quota.reset_after), (Nanos::ZERO, Nanos::ZERO));
}

#[test]
fn f033_the_part_of_a_token_already_earned_is_left_out_of_the_wait() {
    let bucket = gcra(1, SECOND, 1);
    assert!(bucket.try_acquire_at(1, at(0)));
    for (now, wait) in [(200_000_000, 800_000_000), (999_999_999, 1)] {
        assert_eq!(bucket.check_at(1, at(now)).unwrap_err().retry_after(), Some(at(wait)));
    }
}

#[test]
fn f034_unused_time_piles_up_beyond_the_capacity() {
    let bucket = gcra(1, SECOND, 1);
    assert!(bucket.try_acquire_at(1, at(0)));
    assert_eq!((0..31).filter(|_| bucket.try_acquire_at(1, at(30 * S))).count(), 1);
    let later: Vec<_> = (301..=330).filter(|&i| bucket.try_acquire_at(1, at(i * S / 10))).collect();
    assert_eq!(later, [310, 320, 330]);
}

#[test]
fn f035_the_interval_per_token_rounds_to_zero_or_a_slow_rate_is_rounded_up() {
    let fast = gcra(2_000, SECOND, 1);
    let admitted: Vec<_> = (0..=1_000_000_u64).filter(|us| fast.try_acquire_at(1, at(us * 1_000))).collect();
    assert_eq!(admitted, (0..=2_000).map(|n| n * 500).collect::<Vec<_>>());
    let slow = gcra(1, SECOND, 1);
    assert_eq!((0..=1_200).filter(|i| slow.try_acquire_at(1, at(i * S / 20))).count(), 61);
    // A rate that can not be held is a build error.
    assert!(Gcra::builder(2, Duration::from_nanos(1)).build().is_err());
}

#[test]
fn f036_a_large_limit_makes_remaining_jump_down() {
    let bucket = Gcra::builder(65_535, SECOND).build().unwrap();
    for call in 0..12 {
        assert_eq!(bucket.check_at(1, at(call * S / 10)).unwrap().remaining, 65_534, "call {call}");
    }
    let bucket = Gcra::builder(65_535, SECOND).build().unwrap();
    for left in (0..65_535).rev() {
        assert_eq!(bucket.check_at(1, at(0)).unwrap().remaining, left);
    }
    assert!(!bucket.try_acquire_at(1, at(0)));
}

#[test]
fn f037_a_limit_or_rate_of_zero() {
    for builder in [Gcra::builder(0, SECOND), Gcra::builder(0, SECOND).burst(1)] {
        let bucket = builder.build().unwrap();
        for now in [0, S, 1 << 61] {
            let denied = bucket.check_at(1, at(now)).unwrap_err();
            assert_eq!((denied.reason, denied.quota.remaining), (Reason::Never, 0));
            assert!(!bucket.try_acquire_at(1, at(now)));
            assert!(bucket.try_acquire_at(0, at(now)) && bucket.check_at(0, at(now)).is_ok());
        }
    }
}

#[test]
fn f038_the_advised_wait_must_be_enough_and_not_a_lie_of_zero() {
    let slow = gcra(1, 2 * SECOND, 50);
    assert!(slow.try_acquire_at(42, at(0)));
    assert_eq!(slow.check_at(42, at(0)).unwrap_err().retry_after(), Some(Nanos::from_secs(68)));
    assert!(!slow.try_acquire_at(42, at(68 * S - 1)));
    assert!(slow.try_acquire_at(42, at(68 * S)));
    let fast = gcra(1_000_000, SECOND, 1);
    assert!(fast.try_acquire_at(1, at(5)));
    assert_eq!(fast.check_at(1, at(5)).unwrap_err().retry_after(), Some(at(1_000)));
    assert!(!fast.try_acquire_at(1, at(1_004)));
    assert!(fast.try_acquire_at(1, at(1_005)));
}

#[test]
fn f039_the_first_level_must_not_depend_on_the_machines_up_time() {
    for built in [0, 3_760 * S, 1_000_000_000 * S] {
        let bucket = gcra(1, 10_000 * SECOND, 1);
        assert_eq!(bucket.peek_at(1, at(built)).unwrap().remaining, 1);
        assert!(bucket.try_acquire_at(1, at(built)), "clock at {built}");
        let wait = bucket.check_at(1, at(built)).unwrap_err().retry_after();
        assert_eq!(wait, Some(Nanos::from_secs(10_000)));
    }
}

#[test]
fn f040_a_leaky_bucket_under_steady_hits() {
    let bucket = LeakyBucket::builder(3, SECOND).build().unwrap();
    let admitted: Vec<_> =
        (0..=30).map(|i| i * 100).filter(|&ms| bucket.try_acquire_at(1, Nanos::from_millis(ms))).collect();
    assert_eq!(admitted, [0, 100, 200, 400, 700, 1_000, 1_400, 1_700, 2_000, 2_400, 2_700, 3_000]);
    let bucket = LeakyBucket::builder(10, 30 * SECOND).build().unwrap();
    let remaining: Vec<_> = (0..=10).map(|s| bucket.check_at(1, at(s * S)).unwrap().remaining).collect();
    assert_eq!(remaining, [9, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2]);
}

#[test]
fn f041_reset_time_with_a_cost_above_one() {
    let bucket = gcra(1, SECOND, 10);
    assert_eq!(bucket.check_at(5, at(0)).unwrap().reset_after, Nanos::from_secs(5));
    assert_eq!(bucket.usage_at(0, at(5 * S - 1)), Some(1));
    assert_eq!(bucket.usage_at(0, at(5 * S)), Some(0));
}

#[test]
fn f042_remaining_always_shows_the_full_capacity() {
    let bucket = gcra(10, 60 * SECOND, 10);
    for left in (0..10).rev() {
        assert_eq!(bucket.check_at(1, at(0)).unwrap().remaining, left);
    }
    assert_eq!(bucket.check_at(1, at(0)).unwrap_err().quota.remaining, 0);
    assert_eq!(bucket.check_at(1, at(6 * S)).unwrap().remaining, 0);
}

// F043, taking as much as there is from a debt: there is no forced charge, hence no level below zero.

#[test]
fn f044_negative_and_zero_costs() {
    // A cost has no sign.
    let bucket = gcra(1, SECOND, 3);
    assert!(bucket.try_acquire_at(3, at(S)));
    for now in [S, S / 2, 3 * S / 2] {
        assert!(bucket.try_acquire_at(0, at(now)));
        assert_eq!(bucket.check_at(0, at(now)).unwrap().remaining, 0);
        assert!(!bucket.try_acquire_at(1, at(now)));
    }
    assert_eq!(bucket.check_at(1, at(S)).unwrap_err().retry_after(), Some(at(S)));
}

#[test]
fn f045_more_initial_tokens_than_the_bucket_holds() {
    // A bucket starts with its burst: no other first level can be asked for.
    let bucket = gcra(1, SECOND, 10);
    assert_eq!((0..20).filter(|_| bucket.try_acquire_at(1, at(0))).count(), 10);
    assert_eq!((0..20).filter(|_| bucket.try_acquire_at(1, at(S))).count(), 1);
}

#[test]
fn f046_a_rate_below_one_per_second_with_a_unit_cost() {
    let bucket = gcra(1, 2 * SECOND, 1);
    let admitted: Vec<_> = (0..=20).filter(|&i| bucket.try_acquire_at(1, at(i * S / 2))).collect();
    assert_eq!(admitted, [0, 4, 8, 12, 16, 20]);
    assert!(matches!(Gcra::builder(1, 2 * SECOND).burst(0).build(), Err(ConfigError::Burst { got: 0, .. })));
}

#[test]
fn f047_how_much_passes_in_the_first_window() {
    let bucket = gcra(10, SECOND, 10);
    assert_eq!((0..=1_000).filter(|&ms| bucket.try_acquire_at(1, Nanos::from_millis(ms))).count(), 20);
}

#[test]
fn f051_a_leaky_bucket_without_delay_lets_the_burst_through() {
    // One in service and five that a queue would make wait.
    let bucket = LeakyBucket::builder(1, SECOND).burst(6).build().unwrap();
    assert_eq!((0..8).filter(|_| bucket.try_acquire_at(1, at(0))).count(), 6);
    assert_eq!(bucket.check_at(1, at(0)).unwrap_err().retry_after(), Some(at(S)));
    assert!(bucket.try_acquire_at(1, at(S)));
}

#[test]
fn f052_the_clock_steps_back() {
    // Documented: judged as it stands. Nothing is minted, and nobody passes until the clock returns.
    let bucket = gcra(10, SECOND, 10);
    assert!(bucket.try_acquire_at(3, at(100 * S)));
    for now in [89 * S, 90 * S, 99 * S] {
        let denied = bucket.check_at(1, at(now)).unwrap_err();
        assert!(denied.retry_after().unwrap() <= Nanos::from_secs(1), "at {now}");
    }
    // A step back within the drain time leaves what it can prove to be free.
    assert_eq!(bucket.peek_at(1, at(99_900_000_000)).unwrap().remaining, 6);
    assert_eq!((0..20).filter(|_| bucket.try_acquire_at(1, at(100 * S))).count(), 7);
}

#[test]
fn f053_the_wait_after_a_step_back_is_longer_than_the_window() {
    let bucket = gcra(1, 60 * SECOND, 1);
    assert!(bucket.try_acquire_at(1, at(1_000 * S)));
    let denied = bucket.check_at(1, at(700 * S)).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Nanos::from_secs(60)));
    assert_eq!(denied.quota.at, at(1_000 * S));
}

#[test]
fn f054_a_32_bit_millisecond_clock_after_24_and_49_days() {
    let bucket = gcra(10, SECOND, 10);
    for wrap in [1 << 31, 1_u64 << 32] {
        let ms = Nanos::from_millis;
        assert!(bucket.try_acquire_at(10, ms(wrap - 6)));
        assert!(!bucket.try_acquire_at(1, ms(wrap + 4)));
        assert!(!bucket.try_acquire_at(10, ms(wrap + 993)));
        assert!(bucket.try_acquire_at(10, ms(wrap + 994)));
        for days in [25, 50] {
            assert_eq!(bucket.usage_at(0, ms(wrap + days * 86_400_000)), Some(0));
        }
    }
}

#[test]
fn f055_the_largest_duration_as_for_ever() {
    for per in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(300 * 365 * 86_400)] {
        let max = Nanos::MAX.into();
        let error = Gcra::builder(1, per).build().err();
        let got = Nanos::from(per).into();
        assert_eq!(error, Some(ConfigError::Window { got, min: Duration::from_nanos(1), max }));
    }
    let bucket = gcra(1, Nanos::MAX.into(), 1);
    assert!(bucket.try_acquire_at(1, at(7)));
    assert_eq!(bucket.check_at(1, at(7)).unwrap_err().retry_after(), Some(Nanos::MAX));
}

/// Rounds of `tries` by each of `threads` threads from a barrier, at the times given; admissions per round.
fn race(bucket: &Gcra, threads: usize, tries: usize, times: impl Iterator<Item = u64>) -> Vec<u64> {
    let (now, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
    let (start, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    start.wait();
                    let now = now.load(Relaxed);
                    if now == u64::MAX {
                        break;
                    }
                    let passed = (0..tries).filter(|_| bucket.try_acquire_at(1, at(now))).count();
                    admitted.fetch_add(passed as u64, Relaxed);
                    end.wait();
                }
            });
        }
        let rounds = times
            .map(|time| {
                now.store(time, Relaxed);
                start.wait();
                end.wait();
                admitted.swap(0, Relaxed)
            })
            .collect();
        now.store(u64::MAX, Relaxed);
        start.wait();
        rounds
    })
}

#[test]
fn f020_a_freshly_refilled_token_is_stolen_before_the_refiller_takes_it() {
    let bucket = gcra(1, Duration::from_millis(10), 1);
    assert!(bucket.try_acquire_at(1, at(0)));
    let rounds = race(&bucket, 8, 1, (1..=100).map(|step| step * S / 100));
    assert_eq!(rounds, [1; 100]);
}

#[test]
fn f021_a_stale_snapshot_written_back_wedges_the_bucket_for_good() {
    // Hammered when full, when a token has come back, and after a pause.
    let bucket = gcra(1, Duration::from_millis(10), 2);
    let times = (0..1_000).flat_map(|round| [0, 10, 500].map(|ms| round * S + ms * 1_000_000));
    let rounds = race(&bucket, 16, 4, times);
    assert_eq!(rounds, [2, 1, 2].repeat(1_000));
}

#[test]
fn f022_phantom_or_lost_tokens_from_a_two_step_saturating_add() {
    let bucket = gcra(10, Duration::from_millis(100), 10);
    let rounds = race(&bucket, 8, 4, (0..=200).map(|step| step * S / 10));
    assert_eq!(rounds, [10; 201]);
}

#[test]
fn f023_two_callers_one_token() {
    let bucket = gcra(1, SECOND, 1);
    let rounds = race(&bucket, 2, 1, (0..10_000).map(|round| round * S));
    assert_eq!(rounds.len(), 10_000);
    assert!(rounds.iter().all(|&admitted| admitted == 1));
    assert_eq!(bucket.usage_at(0, at(9_999 * S)), Some(1));
}

/// Threads with clocks of their own, some late: never more than the burst and what drains in the whole span.
#[test]
fn free_running_clocks_never_admit_more() {
    let bucket = gcra(1_000, SECOND, 50);
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for late in 0..4 {
            let (bucket, admitted) = (&bucket, &admitted);
            scope.spawn(move || {
                let passed = (100..100_100_u64)
                    .map(|tick| at((tick - late * 20) * 10_000))
                    .filter(|&now| bucket.try_acquire_at(1, now))
                    .count();
                admitted.fetch_add(passed as u64, Relaxed);
            });
        }
    });
    // From the earliest call at 400 us to the last at 1,001 ms.
    let admitted = admitted.into_inner();
    assert!((1_000..=1_050).contains(&admitted), "{admitted}");
}
