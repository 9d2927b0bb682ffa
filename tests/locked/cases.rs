//! Cases from the field, each with its right answer, for every form that takes a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use tollgate::{Algorithm, ConfigError, Nanos, Reason};

use crate::{
    Build, SECOND, a_bernoulli_log, a_compact_log, a_sampled_log, a_wheel, ms, ns, secs,
    threads::{Gate, together},
};

/// One test for each case and kind.
macro_rules! cases {
    ($($case:ident)*) => {
        $(mod $case {
            use super::*;
            #[test]
            fn compact() { super::$case(a_compact_log) }
            #[test]
            fn sampled() { super::$case(a_sampled_log) }
            #[test]
            fn bernoulli() { super::$case(a_bernoulli_log) }
            #[test]
            fn wheel() { super::$case(a_wheel) }
        })*
    };
}

cases! {
    f001_check_then_add_by_ten_callers_at_once
    f002_an_entry_exactly_one_window_old
    f003_old_entries_counted_before_they_are_removed
    f004_rejected_calls_extend_the_block
    f006_a_cost_above_the_limit_answered_yes
    f007_a_large_limit_costs_no_more_per_call
    f008_a_slot_seen_with_its_new_start_and_its_old_count
    f016_an_event_a_little_late_for_its_slot
    f017_limit_plus_one_with_the_largest_limit
    f029_a_very_large_limit_turns_small
    f037a_a_limit_of_zero
    f038_the_advised_wait_is_enough_and_not_zero
    f044_zero_costs
    f052_the_clock_steps_back
    f053_the_wait_after_a_step_back
    f054_a_32_bit_millisecond_clock
    f055_the_largest_duration_as_for_ever
    the_textbook_trace
    the_edge_burst_does_not_pass
    reset_forgets_everything
}

fn built(build: Build, limit: u64, window: Duration) -> Box<dyn Algorithm> {
    build(limit, window).expect("a valid configuration")
}

/// The wait of a call that is refused for now.
fn wait(limiter: &dyn Algorithm, cost: u64, now: Nanos) -> Nanos {
    let denied = limiter.check_at(cost, now).expect_err("refused");
    denied.retry_after().expect("a finite wait")
}

fn f001_check_then_add_by_ten_callers_at_once(build: Build) {
    let limiters: Vec<_> = (0..1_000).map(|_| built(build, 5, Duration::from_secs(60))).collect();
    let admitted: Vec<_> = limiters.iter().map(|_| AtomicU64::new(0)).collect();
    let gate = Gate::new(10);
    together(10, |_| {
        for (limiter, admitted) in limiters.iter().zip(&admitted) {
            gate.pass();
            admitted.fetch_add(limiter.try_acquire_at(1, secs(1)).into(), Relaxed);
        }
    });
    for (limiter, admitted) in limiters.iter().zip(admitted) {
        assert_eq!((admitted.into_inner(), limiter.usage_at(0, secs(1))), (5, Some(5)));
    }
}

fn f002_an_entry_exactly_one_window_old(build: Build) {
    let limiter = built(build, 1, Duration::from_secs(10));
    assert!(limiter.try_acquire_at(1, Nanos::ZERO));
    assert_eq!(wait(&*limiter, 1, secs(10) - ns(1)), ns(1));
    assert!(limiter.try_acquire_at(1, secs(10)));
}

fn f003_old_entries_counted_before_they_are_removed(build: Build) {
    let limiter = built(build, 3, Duration::from_secs(10));
    assert!(limiter.try_acquire_at(3, Nanos::ZERO));
    assert!(limiter.try_acquire_at(1, ms(10_500)));
    assert_eq!(limiter.usage_at(0, ms(10_500)), Some(1));
}

fn f004_rejected_calls_extend_the_block(build: Build) {
    let limiter = built(build, 1, Duration::from_secs(5));
    let admitted: Vec<u64> = (0..=60).filter(|&t| limiter.try_acquire_at(1, secs(t))).collect();
    assert_eq!(admitted, (0..=60).step_by(5).collect::<Vec<_>>());
}

fn f006_a_cost_above_the_limit_answered_yes(build: Build) {
    let limiter = built(build, 10, Duration::from_secs(60));
    assert!(limiter.try_acquire_at(5, Nanos::ZERO));
    let denied = limiter.check_at(100, Nanos::ZERO).unwrap_err();
    assert_eq!((denied.reason, denied.retry_after()), (Reason::Never, None));
    assert!(!limiter.try_acquire_at(100, Nanos::ZERO));
    assert_eq!(limiter.usage_at(0, Nanos::ZERO), Some(5));
    assert!(limiter.try_acquire_at(5, Nanos::ZERO));
}

fn f007_a_large_limit_costs_no_more_per_call(build: Build) {
    let day = Duration::from_secs(86_400);
    let full = |limit: u64| {
        let limiter = built(build, limit, day);
        for n in 0..limit {
            assert!(limiter.try_acquire_at(1, ms(n)));
        }
        limiter
    };
    let (small, large) = (full(70), full(70_000));
    let bytes = large.state_bytes();
    // The quickest of many rounds: what the machine does beside this only ever adds.
    let quickest = |limiter: &dyn Algorithm| {
        let round = || {
            let start = Instant::now();
            assert!((0..500).all(|_| !limiter.try_acquire_at(1, secs(100))));
            start.elapsed()
        };
        (0..20).map(|_| round()).min().unwrap()
    };
    let (small, large_time) = (quickest(&*small), quickest(&*large));
    // A walk over the entries would take a thousand times as long. The wheel walks one slot between 70 s and 100 s.
    assert!(large_time < 60 * small, "{large_time:?} against {small:?}");
    assert_eq!(large.state_bytes(), bytes);
    assert_eq!(large.usage_at(0, secs(100)), Some(70_000));
}

fn f008_a_slot_seen_with_its_new_start_and_its_old_count(build: Build) {
    const ROUNDS: u64 = 10_000;
    let limiter = built(build, 10, SECOND);
    let admitted: Vec<_> = (0..ROUNDS).map(|_| AtomicU64::new(0)).collect();
    let gate = Gate::new(8);
    together(8, |thread| {
        for (round, admitted) in (0..ROUNDS).zip(&admitted) {
            let start = 4_000 * round;
            if thread == 0 {
                assert!(limiter.try_acquire_at(10, ms(start)));
            }
            gate.pass();
            for _ in 0..2 {
                admitted.fetch_add(limiter.try_acquire_at(1, ms(start + 2_000)).into(), Relaxed);
            }
            gate.pass();
        }
    });
    assert!(admitted.into_iter().all(|admitted| admitted.into_inner() == 10));
}

fn f016_an_event_a_little_late_for_its_slot(build: Build) {
    let limiter = built(build, 10, SECOND);
    for late in [0, 1] {
        assert!((0..5).all(|_| limiter.try_acquire_at(1, ms(1_000 - late))));
    }
    assert!(!limiter.try_acquire_at(1, ms(1_000)));
    assert_eq!(limiter.usage_at(0, ms(1_000)), Some(10));
}

fn f017_limit_plus_one_with_the_largest_limit(build: Build) {
    match build(u64::MAX, SECOND) {
        Ok(limiter) => {
            assert!((0..3).all(|_| limiter.try_acquire_at(1, Nanos::ZERO)));
            assert_eq!(limiter.check_at(0, Nanos::ZERO).unwrap().remaining, u64::MAX - 3);
        }
        Err(error) => assert_eq!(error, ConfigError::Memory { bytes: usize::MAX }),
    }
    if let Ok(limiter) = build(u64::MAX, SECOND) {
        assert!(limiter.try_acquire_at(u64::MAX, Nanos::ZERO));
        assert!(!limiter.try_acquire_at(u64::MAX, Nanos::ZERO));
        assert!(!limiter.try_acquire_at(1, ms(999)));
        assert!(limiter.try_acquire_at(u64::MAX, ms(1_000)));
    }
}

fn f029_a_very_large_limit_turns_small(build: Build) {
    const COST: u64 = 1 << 20;
    for limit in [(1 << 32) + 5, 1 << 41, u64::MAX] {
        match build(limit, SECOND) {
            Ok(limiter) => {
                assert_eq!(limiter.check_at(COST, Nanos::ZERO).unwrap().remaining, limit - COST);
            }
            Err(ConfigError::Memory { bytes }) => assert!(bytes as u64 >= limit),
            Err(other) => panic!("{other}"),
        }
    }
}

fn f037a_a_limit_of_zero(build: Build) {
    let limiter = built(build, 0, SECOND);
    for now in [Nanos::ZERO, secs(5), Nanos::MAX] {
        assert!(!limiter.try_acquire_at(1, now));
        assert_eq!(limiter.check_at(1, now).unwrap_err().reason, Reason::Never);
        assert!(limiter.try_acquire_at(0, now));
        assert_eq!(limiter.check_at(0, now).unwrap().remaining, 0);
    }
}

fn f038_the_advised_wait_is_enough_and_not_zero(build: Build) {
    let limiter = built(build, 50, Duration::from_secs(100));
    for t in 0..42 {
        assert!(limiter.try_acquire_at(1, secs(t)));
    }
    // 34 permits must leave; the 34th was taken at 33 s.
    assert_eq!(wait(&*limiter, 42, secs(42)), secs(91));
    assert!(!limiter.try_acquire_at(42, secs(133) - ns(1)));
    assert!(limiter.try_acquire_at(42, secs(133)));

    let fast = built(build, 1, Duration::from_micros(1));
    assert!(fast.try_acquire_at(1, Nanos::ZERO));
    assert_eq!(wait(&*fast, 1, Nanos::ZERO), ns(1_000));
}

fn f044_zero_costs(build: Build) {
    let limiter = built(build, 3, SECOND);
    assert!(limiter.try_acquire_at(3, ms(100)));
    let before = limiter.peek_at(1, ms(200));
    assert!(limiter.try_acquire_at(0, ms(900)));
    assert_eq!(limiter.check_at(0, ms(900)).unwrap().remaining, 0);
    assert_eq!(limiter.peek_at(1, ms(200)), before);
    assert!(!limiter.try_acquire_at(1, ms(900)));
}

/// The choice made: time stands still until the clock has passed the newest time; free permits are handed out.
fn f052_the_clock_steps_back(build: Build) {
    let limiter = built(build, 10, SECOND);
    assert!(limiter.try_acquire_at(3, secs(100)));
    assert_eq!((0..8).filter(|_| limiter.try_acquire_at(1, secs(89))).count(), 7);
    let denied = limiter.check_at(1, secs(90)).unwrap_err();
    assert_eq!((denied.quota.at, denied.retry_after()), (secs(100), Some(secs(1))));
    assert!(!limiter.try_acquire_at(1, secs(101) - ns(1)));
    assert!(limiter.try_acquire_at(10, secs(101)));
}

fn f053_the_wait_after_a_step_back(build: Build) {
    let limiter = built(build, 1, Duration::from_secs(60));
    assert!(limiter.try_acquire_at(1, secs(1_000)));
    assert_eq!(wait(&*limiter, 1, secs(700)), secs(60));
}

fn f054_a_32_bit_millisecond_clock(build: Build) {
    for wrap in [1 << 31, 1 << 32] {
        let limiter = built(build, 10, SECOND);
        assert!((0..10).all(|_| limiter.try_acquire_at(1, ms(wrap - 6))));
        assert!(!limiter.try_acquire_at(1, ms(wrap + 4)));
        assert!(!limiter.try_acquire_at(1, ms(wrap + 993)));
        assert!(limiter.try_acquire_at(1, ms(wrap + 994)));
    }
    for days in [25, 50] {
        let limiter = built(build, 10, SECOND);
        assert!((0..10).all(|_| limiter.try_acquire_at(1, secs(1))));
        assert_eq!(limiter.usage_at(0, secs(1 + days * 86_400)), Some(0));
        assert!(limiter.try_acquire_at(10, secs(1 + days * 86_400)));
    }
}

fn f055_the_largest_duration_as_for_ever(build: Build) {
    for window in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(300 * 365 * 86_400)] {
        assert!(matches!(build(1, window), Err(ConfigError::Window { .. })));
    }
    assert!(matches!(build(1, Duration::ZERO), Err(ConfigError::Window { .. })));
    let limiter = built(build, 1, Nanos::MAX.into());
    assert!(limiter.try_acquire_at(1, Nanos::MAX));
    let wait = wait(&*limiter, 1, Nanos::MAX);
    // The window, and the slot that it ends in: at most a thousandth.
    assert!(wait >= Nanos::MAX && wait < Nanos::MAX + ns(Nanos::MAX.as_nanos() / 1_000), "{wait:?}");
    let late = limiter.check_at(1, Nanos::MAX + ns(1)).unwrap_err();
    assert_eq!(late.reason, Reason::TimeOutOfRange);
}

fn the_textbook_trace(build: Build) {
    let limiter = built(build, 3, SECOND);
    let admitted = [100, 400, 800, 900, 1_200, 1_500, 1_600, 1_900].map(|t| limiter.try_acquire_at(1, ms(t)));
    assert_eq!(admitted, [true, true, true, false, true, true, false, true]);
}

fn the_edge_burst_does_not_pass(build: Build) {
    let limiter = built(build, 100, SECOND);
    let admitted = (900..1_100).filter(|&t| limiter.try_acquire_at(1, ms(t))).count();
    assert_eq!(admitted, 100);
}

fn reset_forgets_everything(build: Build) {
    let mut limiter = built(build, 4, SECOND);
    let fresh = limiter.peek_at(1, Nanos::ZERO);
    let bytes = limiter.state_bytes();
    for round in 1..4 {
        for t in 0..20 * round {
            limiter.try_acquire_at(1, ms(300 * t));
        }
        limiter.reset();
        assert_eq!((limiter.peek_at(1, Nanos::ZERO), limiter.state_bytes()), (fresh, bytes));
    }
    assert!(limiter.try_acquire_at(4, Nanos::ZERO));
    assert!(!limiter.try_acquire_at(1, ms(999)));
    assert!(limiter.try_acquire_at(1, ms(1_000)));
}
