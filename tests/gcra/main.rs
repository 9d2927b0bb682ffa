//! The bucket against an exact one, at the edges of its range, and under threads.

mod cases;
mod live;
mod properties;
mod threads;

use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Gcra, LeakyBucket, Nanos, Reason, TokenBucket};

const S: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn at(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

fn gcra(limit: u64, per: Duration, burst: u64) -> Gcra {
    Gcra::builder(limit, per).burst(burst).build().unwrap()
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
    assert_eq!(bucket.rules()[..], [tollgate::Rule::new(1, SECOND)]);
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
