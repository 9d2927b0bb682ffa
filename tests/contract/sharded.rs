//! Shards: one limit in parts is one limit.

use std::{ops::Range, time::Duration};

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Coverage, Log, Nanos, Reason, Rule, Shard, Sharded, Window};

use crate::{
    agrees::{Call, agrees},
    forms,
    oracle::{Naive, Oracle},
    properties::{calls, limit, origin, scale, steps},
    threads::{Noise, from_a_barrier, rounds, sum},
};

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn log(limit: u64, window: u64, max_cost: Option<u64>, shards: usize) -> Sharded<Log> {
    let builder = Log::builder(limit, nanos(window));
    let builder = max_cost.map_or(builder, |max| builder.max_cost(max));
    builder.build_sharded(shards).unwrap()
}

fn counter(limit: u64, window: u64, buckets: u64, coverage: Coverage, shards: usize) -> Sharded<Window> {
    let builder = Window::builder(limit, nanos(window)).buckets(buckets).coverage(coverage);
    builder.build_sharded(shards).unwrap()
}

/// Single permits, nothing, or more than can ever be had, and times that do not step back.
fn plain(calls: Vec<Call>, limit: u64) -> Vec<Call> {
    let mut newest = 0;
    let plain = |call: Call| {
        let cost = if call.cost > limit { call.cost } else { call.cost.min(1) };
        if call.now > Nanos::MAX.as_nanos() {
            return Call { cost, ..call };
        }
        newest = newest.max(call.now);
        Call { cost, now: newest, ..call }
    };
    calls.into_iter().map(plain).collect()
}

/// An answer of an oracle to single permits says that any other cost can not pass, whatever the part.
fn one_permit(model: Naive) -> Naive {
    model.max_cost(1)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    /// For single permits and times that do not step back, every answer is that of one history.
    #[test]
    fn sharded_logs_are_one_log(
        limit in limit(),
        window in 1..40_u64,
        shards in 1..6_usize,
        steps in steps(),
        scale in scale(),
        origin in origin(),
    ) {
        let window = window * scale;
        let calls = plain(calls(steps, origin, scale, &[window], 1), limit);
        let rules = [Rule::new(limit, nanos(window))];
        let mut model = one_permit(Naive::log(&rules));
        agrees(&log(limit, window, Some(1), shards), &mut model, calls);
    }

    #[test]
    fn sharded_counters_are_one_counter(
        limit in limit(),
        width in 1..8_u64,
        buckets in 1..5_u64,
        textbook in any::<bool>(),
        shards in 1..6_usize,
        steps in steps(),
        scale in scale(),
        origin in origin(),
    ) {
        let (width, coverage) = (width * scale, if textbook { Coverage::Textbook } else { Coverage::Full });
        let window = width * buckets;
        let calls = plain(calls(steps, origin, scale, &[window], width), limit);
        let rules = [Rule::new(limit, nanos(window))];
        let built = Window::builder(limit, nanos(window)).buckets(buckets).coverage(coverage).max_cost(1);
        let Ok(limiter) = built.build_sharded(shards) else { return Ok(()) };
        let mut model = one_permit(Naive::window(&rules, buckets, forms::late(coverage), Duration::ZERO));
        agrees(&limiter, &mut model, calls);
    }

    /// Wherever calls begin, single permits are admitted as from one log.
    #[test]
    fn any_home_will_do(
        limit in limit(),
        window in 1..40_u64,
        shards in 1..6_usize,
        steps in steps(),
        homes in proptest::collection::vec(any::<usize>(), 160),
        scale in scale(),
    ) {
        let window = window * scale;
        for unit in [Some(1), None] {
            let limiter = log(limit, window, unit, shards);
            let mut model = Naive::log(&[Rule::new(limit, nanos(window))]);
            let calls = plain(calls(steps.clone(), 0, scale, &[window], 1), limit);
            for (call, &home) in calls.iter().zip(&homes) {
                let Call { cost, now, .. } = *call;
                let admitted = limiter.try_acquire_from(home, cost, Nanos::from_nanos(now));
                prop_assert_eq!(admitted, model.check(cost, now).verdict == crate::oracle::Verdict::Admitted);
            }
        }
    }

    /// Any costs, any times: never over, and a refusal leaves less free than could be scattered.
    #[test]
    fn costs_are_never_over_and_refused_only_when_scattered(
        limit in 1..40_u64,
        window in 1..40_u64,
        shards in 1..6_usize,
        steps in steps(),
        homes in proptest::collection::vec(any::<usize>(), 160),
        scale in scale(),
    ) {
        let window = window * scale;
        let limiter = log(limit, window, None, shards);
        let smallest = (limit / shards as u64).max(1);
        let calls = calls(steps, 0, scale, &[window], 1);
        let mut newest = 0;
        for (call, &home) in calls.iter().zip(&homes) {
            let (cost, at) = (call.cost, Nanos::from_nanos(call.now));
            let before = limiter.peek_at(0, at);
            let admitted = limiter.try_acquire_from(home, cost, at);
            if call.now > Nanos::MAX.as_nanos() {
                prop_assert!(!admitted);
                continue;
            }
            prop_assert!(limiter.usage_at(0, at).unwrap() <= limit);
            let free = before.unwrap().remaining;
            let stepped_back = call.now < newest;
            newest = newest.max(call.now);
            if cost > smallest {
                prop_assert!(!admitted);
                let denied = limiter.peek_at(cost, at).unwrap_err();
                prop_assert!(matches!(denied.reason, Reason::Never | Reason::MaxCost { .. }), "{denied}");
            } else if !admitted && !stepped_back {
                prop_assert!(free <= shards as u64 * (cost - 1), "{free} free, {cost} refused");
                let denied = limiter.peek_at(cost, at).unwrap_err();
                let wait = denied.retry_after().unwrap();
                if (denied.quota.at + wait).in_range() {
                    let due = denied.quota.at + wait;
                    prop_assert!(limiter.peek_at(cost, due).is_ok());
                    prop_assert!(limiter.peek_at(cost, due - Nanos::from_nanos(1)).is_err());
                }
            }
        }
    }
}

#[test]
fn the_parts_add_up_and_shards_beyond_the_limit_have_nothing() {
    let now = Nanos::from_secs(9);
    for (limit, shards) in [(10, 4), (2, 5), (0, 3), (7, 7), (1, 1), (1_000, 7)] {
        let all: [&dyn Algorithm; 2] =
            [&log(limit, 1_000, None, shards), &counter(limit, 1_000, 4, Coverage::Full, shards)];
        for limiter in all {
            assert_eq!((0..2 * limit + 2).filter(|_| limiter.try_acquire_at(1, now)).count() as u64, limit);
            assert_eq!(limiter.usage_at(0, now), Some(limit));
            let denied = limiter.check_at(1, now).unwrap_err();
            let reason = if limit == 0 { Reason::Never } else { denied.reason };
            assert_eq!((denied.reason, denied.retry_after().is_some()), (reason, limit > 0));
            assert!(limiter.check_at(0, now).is_ok() && limiter.try_acquire_at(0, now));
        }
    }
}

#[test]
fn what_can_not_be_sharded_is_named() {
    let log = || Log::builder(10, nanos(100));
    let error = |built: Result<Sharded<Log>, ConfigError>| built.err().unwrap();
    assert_eq!(error(log().build_sharded(0)), ConfigError::Shards { got: 0, min: 1, max: 65_536 });
    assert_eq!(error(log().build_sharded(65_537)), ConfigError::Shards { got: 65_537, min: 1, max: 65_536 });
    assert_eq!(error(log().max_cost(3).build_sharded(4)), ConfigError::Part { max_cost: 3, part: 2 });
    assert_eq!(error(log().max_cost(0).build_sharded(4)), ConfigError::MaxCost { got: 0, min: 1 });
    let two = log().rule(5, nanos(10));
    assert_eq!(error(two.build_sharded(2)), ConfigError::Rules { got: 2, max: 1 });
    assert!(matches!(error(Log::builder(1 << 40, nanos(9)).build_sharded(2)), ConfigError::Limit { .. }));
    assert!(matches!(error(Log::builder(1, nanos(0)).build_sharded(2)), ConfigError::Window { .. }));
}

/// A later time frees permits: what was known to be full until then must not refuse those who come late.
#[test]
fn a_time_past_until_takes_the_refusals_back() {
    let limiter = log(2, 100_000, Some(1), 2);
    let at = Nanos::from_nanos;
    assert!(limiter.try_acquire_from(0, 1, at(100)) && limiter.try_acquire_from(1, 1, at(100)));
    assert!((0..5).all(|t| !limiter.try_acquire_from(0, 1, at(100 + t))));
    assert!(limiter.try_acquire_from(0, 1, at(100_100)));
    // The other shard is full by its own time: what the first knows is looked at, and it is judged at that. The time is far
    // enough back to be refused at once by a word that still stood.
    assert!(limiter.try_acquire_from(1, 1, at(50_000)));
    assert!(!limiter.try_acquire_from(1, 1, at(100_100)));
}

#[test]
fn reset_forgets_what_was_refused() {
    let mut limiter = log(4, 1_000_000, Some(1), 2);
    let now = Nanos::from_secs(1);
    for _ in 0..2 {
        assert_eq!((0..9).filter(|_| limiter.try_acquire_at(1, now)).count(), 4);
        limiter.reset();
    }
}

/// Threads take what is free, each from a home of its own, until nothing is: together exactly what one history has.
fn exact_totals<A: Shard>(limiter: &Sharded<A>, mut model: Naive, threads: usize, times: &[u64]) {
    let results = from_a_barrier(threads, times.len(), |thread, round| {
        let now = Nanos::from_nanos(times[round]);
        let calls = 0..;
        calls.take_while(|_| limiter.try_acquire_from(thread, 1, now)).count() as u64
    });
    for (round, (total, now)) in sum(&results).zip(times).enumerate() {
        let free = model.peek(0, *now).remaining;
        assert_eq!(total, free, "{threads} threads, round {round} at {now}");
        if free > 0 {
            model.record(free, *now);
        }
    }
}

/// A clock that stands, creeps and leaps, in units long enough for refusals to be remembered.
fn clock(rounds: usize, seed: u64) -> Vec<u64> {
    let (mut noise, mut now) = (Noise::new(seed), 1_000);
    let step = |_: usize| {
        let by: Range<u64> = match noise.below(8) {
            0..3 => 0..1,
            3..6 => 0..8_000,
            6 => 19_000..22_000,
            _ => 30_000..90_000,
        };
        now += by.start + noise.below(by.end - by.start);
        now
    };
    (0..rounds).map(step).collect()
}

#[test]
fn threads_take_exactly_what_one_history_has_free() {
    rounds(|n| {
        for (threads, shards) in [(2, 2), (4, 3), (4, 7)] {
            let times = clock(500, n);
            let rules = [Rule::new(7, nanos(40_000))];
            exact_totals(&log(7, 40_000, Some(1), shards), Naive::log(&rules), threads, &times);
            exact_totals(&log(7, 40_000, None, shards), Naive::log(&rules), threads, &times);
            let model = Naive::window(&rules, 5, 1, Duration::ZERO);
            exact_totals(&counter(7, 40_000, 5, Coverage::Full, shards), model, threads, &times);
        }
    });
}
