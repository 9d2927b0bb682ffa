//! F008 to F017: the window counter.

use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Coverage, Log, Nanos, Rule, Window};

use crate::{
    examples::burst,
    forms,
    threads::{from_a_barrier, sum},
};

const SECOND: Duration = Duration::from_secs(1);
const COVERAGES: [Coverage; 2] = [Coverage::Full, Coverage::Textbook];

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn counter(limit: u64, window: Duration, buckets: u64, coverage: Coverage) -> Window {
    forms::window(&[Rule::new(limit, window)], buckets, coverage)
}

#[test]
fn f008_a_slot_of_the_next_lap_forgets_the_old_count_at_once() {
    for coverage in COVERAGES {
        let keys: Vec<Window> = (0..10_000).map(|_| counter(10, SECOND, 2, coverage)).collect();
        for key in &keys {
            assert_eq!(burst(key, 10, ms(0)), 10);
        }
        let admitted = from_a_barrier(8, keys.len(), |_, round| burst(&keys[round], 2, ms(2_000)));
        for (key, admitted) in keys.iter().zip(sum(&admitted)) {
            assert_eq!((admitted, key.usage_at(0, ms(2_000))), (10, Some(10)), "{coverage:?}");
        }
    }
}

#[test]
fn f010_twice_the_limit_at_the_seam() {
    let minute = Duration::from_secs(60);
    let seam = |limiter: &dyn Algorithm| (burst(limiter, 60, ms(59_900)), burst(limiter, 60, ms(60_000)));

    assert_eq!(seam(&counter(60, minute, 1, Coverage::Textbook)), (60, 60), "the fixed window");
    for log in forms::logs(60, minute) {
        assert_eq!(seam(&log), (60, 0));
        let denied = log.check_at(1, ms(60_000)).expect_err("full");
        assert_eq!(denied.quota.at + denied.retry_after().expect("a wait"), ms(119_900));
    }
    for buckets in [2, 6, 60] {
        for coverage in COVERAGES {
            assert_eq!(seam(&counter(60, minute, buckets, coverage)), (60, 0), "{buckets} {coverage:?}");
        }
    }
}

#[test]
fn f011_two_slots_do_not_forget_early() {
    let full = counter(5, SECOND, 2, Coverage::Full);
    assert_eq!(burst(&full, 5, ms(300)), 5);
    assert_eq!(burst(&full, 1, ms(1_000)), 0);
    assert_eq!(burst(&full, 1, ms(1_299)), 0);
    assert_eq!(burst(&full, 1, ms(1_499)), 0);
    assert_eq!(burst(&full, 5, ms(1_500)), 5);

    // The textbook form promises less: at most one slot's hits over, here 10 within any second.
    let textbook = counter(5, SECOND, 2, Coverage::Textbook);
    let admitted: Vec<u64> = (0..6_000)
        .flat_map(|t| std::iter::repeat_n(t, usize::try_from(burst(&textbook, 9, ms(t))).unwrap()))
        .collect();
    let most = (0..6_000).map(|t| admitted.iter().filter(|&&a| a <= t && a + 1_000 > t).count()).max();
    assert!(most <= Some(10));
    let early = counter(5, SECOND, 2, Coverage::Textbook);
    assert_eq!(burst(&early, 9, ms(300)) + burst(&early, 9, ms(1_000)), 10, "the bound is reached");
}

#[test]
fn f012_windows_before_the_last_one_weigh_nothing() {
    for buckets in [1, 2, 10] {
        for coverage in COVERAGES {
            let limiter = counter(10, Duration::from_secs(10), buckets, coverage);
            assert_eq!(burst(&limiter, 11, ms(5_000)), 10);
            assert_eq!(burst(&limiter, 11, ms(35_000)), 10, "{buckets} {coverage:?}");
        }
    }
}

#[test]
fn f013_a_window_that_the_slots_do_not_divide_is_refused() {
    let build = |window, buckets| Window::builder(1, window).buckets(buckets).build().err();
    assert!(matches!(build(SECOND, 3), Some(ConfigError::Ragged { window: SECOND, .. })));
    assert!(build(Duration::from_nanos(5), 10).is_some());
    assert!(matches!(build(SECOND, 0), Some(ConfigError::Buckets { got: 0, min: 1, .. })));
    assert!(matches!(build(Duration::ZERO, 10), Some(ConfigError::Window { got: Duration::ZERO, .. })));
    assert_eq!(build(Duration::from_millis(999), 3), None);

    // A second rule must fit the buckets of the shortest window.
    let ragged = Window::builder(1, SECOND).rule(1, Duration::from_millis(1_050)).buckets(10).build().err();
    let window = Duration::from_millis(1_050);
    assert_eq!(ragged, Some(ConfigError::Ragged { window, width: Duration::from_millis(100) }));
}

#[test]
fn f014_a_longer_span_is_not_counted_round_the_ring() {
    for coverage in COVERAGES {
        let rules = [Rule::new(9, Duration::from_secs(10)), Rule::new(9, Duration::from_secs(25))];
        let limiter = forms::window(&rules, 10, coverage);
        assert_eq!(burst(&limiter, 3, ms(500)), 3);
        for t in [500, 9_999] {
            assert_eq!((limiter.usage_at(0, ms(t)), limiter.usage_at(1, ms(t))), (Some(3), Some(3)));
        }
        // The longer span is a rule with slots of its own; what is not a rule can not be asked for.
        assert_eq!((limiter.usage_at(0, ms(24_999)), limiter.usage_at(1, ms(24_999))), (Some(0), Some(3)));
        assert_eq!(limiter.usage_at(2, ms(500)), None);
    }
}

#[test]
fn f015_the_reading_falls_to_zero_within_two_periods() {
    for period in [100, 1_000, 10_000, 3_600_000] {
        for buckets in [1, 2, 10] {
            for coverage in COVERAGES {
                let limiter = counter(5, Duration::from_millis(period), buckets, coverage);
                let hit = period * 3 / 100;
                assert_eq!(burst(&limiter, 5, ms(hit)), 5);
                let readings: Vec<u64> =
                    (0..=200).map(|n| limiter.usage_at(0, ms(hit + period * n / 100)).unwrap()).collect();
                assert_eq!((readings[0], readings[200]), (5, 0), "{period} ms {buckets} {coverage:?}");
                assert!(readings.is_sorted_by(|a, b| a >= b), "{period} ms {buckets} {coverage:?}");
            }
        }
    }
}

#[test]
fn f016_an_event_late_for_its_slot_is_counted() {
    for (name, limiter) in forms::all(10, SECOND, 10) {
        assert_eq!(burst(&*limiter, 5, ms(1_000)), 5, "{name}");
        assert_eq!(burst(&*limiter, 5, ms(999)), 5, "{name}");
        assert_eq!(limiter.usage_at(0, ms(1_000)), Some(10), "{name}");
        assert_eq!(burst(&*limiter, 1, ms(1_000)), 0, "{name}");
        assert_eq!(burst(&*limiter, 1, ms(999)), 0, "{name}");
    }
}

#[test]
fn f017_the_largest_limit() {
    for coverage in COVERAGES {
        let build = |limit| Window::builder(limit, SECOND).coverage(coverage).build();
        let max = forms::largest_limit(SECOND / 10, Duration::ZERO);
        assert_eq!(build(u64::MAX).err(), Some(ConfigError::Limit { got: u64::MAX, max }));
        let limiter = build(max).expect("the largest limit");
        assert_eq!(burst(&limiter, 3, ms(0)), 3);
        assert_eq!(limiter.usage_at(0, ms(0)), Some(3));

        let limiter = build(max).expect("the largest limit");
        assert!(limiter.try_acquire_at(max, ms(0)));
        assert!(!limiter.try_acquire_at(max, ms(0)));
        assert!(!limiter.try_acquire_at(1, ms(0)));
        assert_eq!(limiter.usage_at(0, ms(0)), Some(max));
        // The total wraps; the use does not.
        assert!(limiter.try_acquire_at(max, ms(1_100)));
        assert!(!limiter.try_acquire_at(1, ms(1_100)));
    }
    // A log of that limit would need that much memory.
    assert!(Log::builder(u64::MAX, SECOND).build().is_err());
}
