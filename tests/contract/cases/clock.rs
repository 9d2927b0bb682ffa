//! F052 to F055: clocks that step back, wrap, or speak of for ever.

use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Coverage, Log, Nanos, Rule, Window};

use crate::{examples::burst, forms};

const SECOND: Duration = Duration::from_secs(1);

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

#[test]
fn f052_the_clock_steps_back() {
    for (name, limiter) in forms::all(10, SECOND, 10) {
        assert_eq!(burst(&*limiter, 3, ms(100_000)), 3, "{name}");
        assert_eq!(burst(&*limiter, 8, ms(89_000)), 7, "{name}: what was free still is, and no more");
        // Nothing frees until the clock passes the newest time, and each answer says when that is.
        let denied = limiter.check_at(1, ms(90_000)).expect_err(name);
        assert_eq!(denied.quota.at, ms(100_000), "{name}");
        let due = denied.quota.at + denied.retry_after().expect("a wait");
        assert!(due <= ms(101_100), "{name}: one window, and a bucket for the counter");
        assert!(!limiter.try_acquire_at(1, due - Nanos::from_nanos(1)), "{name}");
        assert_eq!(burst(&*limiter, 11, due), 10, "{name}");
    }
}

#[test]
fn f053_the_wait_after_a_step_back_stays_within_the_window() {
    for (name, limiter) in forms::all(1, Duration::from_secs(60), 10) {
        assert!(limiter.try_acquire_at(1, ms(1_000_000)), "{name}");
        let wait = limiter.check_at(1, ms(700_000)).expect_err(name).retry_after().expect(name);
        let bound = if name == "counter, full" { 66_000 } else { 60_000 };
        assert!(wait > Nanos::ZERO && wait <= ms(bound), "{name}: {wait:?}");
    }
}

#[test]
fn f054_no_clock_wraps_after_24_or_49_days() {
    let day = 86_400_000;
    for edge in [1_u64 << 31, 1 << 32] {
        for (name, limiter) in forms::all(10, SECOND, 10) {
            assert_eq!(burst(&*limiter, 11, ms(edge - 6)), 10, "{name}");
            assert_eq!(burst(&*limiter, 1, ms(edge + 4)), 0, "{name}");
            // The counter that remembers a bucket longer admits up to 100 ms later.
            let due = if name == "counter, full" { edge + 1_094 } else { edge + 994 };
            assert_eq!(burst(&*limiter, 10, ms(due)), 10, "{name}");
            assert_eq!(burst(&*limiter, 1, ms(due)), 0, "{name}");
            for silence in [25 * day, 50 * day] {
                assert_eq!(limiter.usage_at(0, ms(due + silence)), Some(0), "{name}");
            }
            assert_eq!(burst(&*limiter, 11, ms(due + 25 * day)), 10, "{name}");
            assert_eq!(burst(&*limiter, 11, ms(due + 75 * day)), 10, "{name}");
        }
    }
}

#[test]
fn f055_the_largest_duration() {
    let years = Duration::from_secs(300 * 365 * 86_400);
    for window in [Duration::MAX, Duration::from_nanos(u64::MAX), years] {
        // A window beyond 64 bits is shown as the longest span that 64 bits hold.
        let got = window.min(Duration::from_nanos(u64::MAX));
        let error = ConfigError::Window { got, min: Duration::from_nanos(1), max: Nanos::MAX.into() };
        assert_eq!(Log::builder(1, window).build().err(), Some(error));
        assert_eq!(Log::builder(1, window).max_cost(1).build().err(), Some(error));
        assert_eq!(Window::builder(1, window).buckets(1).build().err(), Some(error));
    }

    // The longest window there is: exact, at both ends of time.
    let (longest, end) = (Duration::from(Nanos::MAX), Nanos::MAX);
    for start in [Nanos::ZERO, end] {
        // 2^62 - 1 is a multiple of 3.
        for (name, limiter) in forms::all(1, longest, 3) {
            assert!(limiter.try_acquire_at(1, start), "{name}");
            let denied = limiter.check_at(1, end - Nanos::from_nanos(1)).expect_err(name);
            let wait = denied.retry_after().expect(name);
            assert!(
                wait > Nanos::ZERO && wait <= end + Nanos::from_nanos(end.as_nanos() / 3),
                "{name}: {wait:?}"
            );
        }
    }
    let [any, unit] = forms::logs(1, longest);
    for log in [any, unit] {
        assert!(log.try_acquire_at(1, Nanos::ZERO));
        assert!(log.try_acquire_at(1, end), "exactly one window old");
    }
    let rules = [Rule::new(1, longest)];
    let textbook = forms::window(&rules, 1, Coverage::Textbook);
    assert!(textbook.try_acquire_at(1, Nanos::ZERO) && textbook.try_acquire_at(1, end));
}
