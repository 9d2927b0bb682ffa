//! Faults that buckets had in the field, and the right result. Those that need threads are in `threads`.

use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Gcra, LeakyBucket, Nanos, Reason};

use crate::{S, SECOND, at, gcra};

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

// F048 and F049 change the limits of a bucket in use, F050 cancels a waiter: neither exists here.

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
