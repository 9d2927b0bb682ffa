//! Faults that others met in the field, each with the right result for these two.

use std::time::Duration;

use tollgate::{ConfigError, Nanos, Reason};

use crate::{F, SECOND, T, build, ms, ns, pass, wait};

#[test]
fn f010_twice_the_limit_at_the_seam_of_two_fixed_windows() {
    let minute = Duration::from_secs(60);
    let fixed = build(F, 60, minute).unwrap();
    assert_eq!(pass(&*fixed, 60, ms(59_900)) + pass(&*fixed, 60, ms(60_000)), 120);
    // Two windows: the first 60 are still in view; one permit is back after a sixtieth of the window.
    let two = build(T, 60, minute).unwrap();
    assert_eq!(pass(&*two, 60, ms(59_900)) + pass(&*two, 60, ms(60_000)), 60);
    assert_eq!(wait(&*two, 1, ms(60_000)), ms(1_000));
}

#[test]
fn f012_the_window_before_the_last_weighs_nothing() {
    let a = build(T, 10, Duration::from_secs(10)).unwrap();
    assert_eq!(pass(&*a, 10, Nanos::from_secs(5)), 10);
    assert_eq!(pass(&*a, 10, Nanos::from_secs(35)), 10);
}

#[test]
fn f015_a_reading_falls_steadily_to_zero() {
    for period in [Duration::from_millis(100), SECOND, Duration::from_secs(10), Duration::from_secs(3_600)] {
        let a = build(T, 1_000, period).unwrap();
        let part = |n: u64| ns(period.as_nanos() as u64 / 100 * n);
        assert_eq!(pass(&*a, 5, part(3)), 5);
        let readings: Vec<u64> = (3..=203).map(|n| a.usage_at(0, part(n)).unwrap()).collect();
        assert!(readings.is_sorted_by(|a, b| a >= b), "{readings:?}");
        assert_eq!(readings[..=97], [5; 98]); // Up to the period's end.
        for (n, left) in [(120, 4), (140, 3), (160, 2), (180, 1), (199, 1), (200, 0), (203, 0)] {
            assert_eq!(readings[n - 3], left, "{period:?} at {n} %");
        }
    }
}

#[test]
fn f017_the_largest_limit_and_the_largest_cost() {
    for (kind, largest) in [(F, (1u64 << 31) - 1), (T, (1 << 15) - 1)] {
        let error = build(kind, u64::MAX, SECOND).err().unwrap();
        assert_eq!(error, ConfigError::Limit { got: u64::MAX, max: largest });
        let a = build(kind, largest, SECOND).unwrap();
        assert_eq!(pass(&*a, 3, ms(1)), 3);
        let a = build(kind, largest, SECOND).unwrap();
        assert!(a.try_acquire_at(largest, ms(1)));
        assert!(!a.try_acquire_at(largest, ms(1)));
        assert!(!a.try_acquire_at(u64::MAX, ms(1)));
        assert_eq!(a.check_at(u64::MAX, ms(1)).unwrap_err().reason, Reason::Never);
        // Through the next edge too, where the count changes places.
        assert_eq!(a.try_acquire_at(largest, ms(1_000)), kind == F);
        assert_eq!(a.usage_at(0, ms(1_000)), Some(largest));
    }
}

#[test]
fn f029_a_very_large_limit_is_exact_or_refused() {
    const COST: u64 = 1_048_576;
    let hour = Duration::from_secs(3_600);
    for kind in [F, T] {
        for window in [SECOND, hour] {
            for limit in [(1 << 32) + 5, 1 << 41, u64::MAX] {
                match build(kind, limit, window) {
                    Ok(a) => assert_eq!(a.check_at(COST, ms(1)).unwrap().remaining, limit - COST),
                    Err(error) => {
                        assert!(matches!(error, ConfigError::Limit { got, max } if got == limit && max < got))
                    }
                }
            }
        }
    }
    assert!(build(F, 1 << 41, hour).is_ok());
}

#[test]
fn f037_a_limit_of_zero_refuses_for_ever() {
    for kind in [F, T] {
        let a = build(kind, 0, SECOND).unwrap();
        for t in [0, 500, 100_000] {
            assert!(!a.try_acquire_at(1, ms(t)));
            let denied = a.check_at(1, ms(t)).unwrap_err();
            assert_eq!((denied.reason, denied.quota.remaining), (Reason::Never, 0));
            assert!(a.try_acquire_at(0, ms(t)));
            assert_eq!(a.check_at(0, ms(t)).unwrap().next_after, Nanos::ZERO);
        }
    }
}

#[test]
fn f044_a_cost_of_zero_changes_nothing() {
    for kind in [F, T] {
        let a = build(kind, 5, SECOND).unwrap();
        assert_eq!(pass(&*a, 9, ms(100)), 5);
        let before = a.check_at(0, ms(100)).unwrap();
        // Also from a later window: had it moved the time, the older call would be judged there.
        assert!(a.try_acquire_at(0, ms(5_000)) && a.check_at(0, ms(5_000)).is_ok());
        assert_eq!(a.check_at(0, ms(100)).unwrap(), before);
        assert!(!a.try_acquire_at(1, ms(100)));
        assert_eq!(a.usage_at(0, ms(100)), Some(5));
    }
}

#[test]
fn f052_a_clock_that_steps_back_mints_nothing() {
    for kind in [F, T] {
        let a = build(kind, 10, SECOND).unwrap();
        assert_eq!(pass(&*a, 3, Nanos::from_secs(100)), 3);
        assert_eq!(pass(&*a, 8, Nanos::from_secs(89)), 7);
        // Judged at the newest window's start, whatever the clock says until it is back there.
        let denied = a.check_at(1, Nanos::from_secs(90)).unwrap_err();
        assert_eq!(denied.quota.at, Nanos::from_secs(100));
        let expected = if kind == F { ms(1_000) } else { ms(1_100) };
        assert_eq!(denied.retry_after(), Some(expected));
        assert!(a.try_acquire_at(1, Nanos::from_secs(100) + expected));
    }
}

#[test]
fn f053_the_wait_after_a_step_back_is_not_longer() {
    for (kind, longest) in [(F, 60), (T, 120)] {
        let a = build(kind, 1, Duration::from_secs(60)).unwrap();
        assert!(a.try_acquire_at(1, Nanos::from_secs(1_000)));
        let denied = a.check_at(1, Nanos::from_secs(700)).unwrap_err();
        // The window that holds 1,000 s began at 960 s; two windows keep a lone permit for two of them.
        assert_eq!(denied.quota.at, Nanos::from_secs(960));
        assert_eq!(denied.retry_after(), Some(Nanos::from_secs(longest)));
    }
}

#[test]
fn f054_milliseconds_around_the_ends_of_32_bits() {
    for kind in [F, T] {
        for end in [1u64 << 31, 1 << 32] {
            let a = build(kind, 10, SECOND).unwrap();
            assert_eq!(pass(&*a, 10, ms(end - 6)), 10);
            let in_same_window = (end - 6) / 1_000 == (end + 4) / 1_000;
            assert!(in_same_window && !a.try_acquire_at(1, ms(end + 4)));
            assert!(a.try_acquire_at(1, ms(end + 994)), "{kind:?}");
            for days in [25, 50] {
                assert_eq!(a.usage_at(0, ms(end + days * 86_400_000)), Some(0));
            }
        }
    }
}

#[test]
fn f055_the_largest_duration_as_for_ever() {
    for kind in [F, T] {
        let years = Duration::from_secs(300 * 31_557_600);
        for window in [Duration::MAX, Duration::from_nanos(u64::MAX), years, Duration::ZERO] {
            let error = build(kind, 1, window).err().unwrap();
            assert!(matches!(error, ConfigError::Window { .. }), "{window:?}: {error}");
        }
        let a = build(kind, 1, Nanos::MAX.into()).unwrap();
        assert!(a.try_acquire_at(1, ns(0)));
        assert!(!a.try_acquire_at(1, Nanos::MAX - ns(1)));
        let longest = ns(Nanos::MAX.as_nanos() * if kind == F { 1 } else { 2 });
        assert_eq!(wait(&*a, 1, ns(0)), longest);
    }
}
