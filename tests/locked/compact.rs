//! The compact log: exact to its tick, at four bytes a permit.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Compact, ConfigError, Nanos};

use crate::{
    ms,
    naive::{as_the_naive_log, calls},
    ns, secs,
};

const WRAPS: &[i64] = &[1 << 31, 1 << 32];

fn compact(limit: u64, window: u64, tick: u64) -> Compact {
    let window = Duration::from_nanos(window);
    Compact::builder(limit, window).tick(Duration::from_nanos(tick)).build().unwrap()
}

proptest! {
    #[test]
    fn as_the_naive_log_to_the_tick(
        (limit, window, tick, calls) in (1_u64..9, 1_u64..2_000)
            .prop_flat_map(|(limit, window)| {
                (Just(limit), Just(window), 1..=window.min(300), calls(window, limit, WRAPS))
            })
    ) {
        let leaves = |at: u64| at.div_ceil(tick) * tick + window;
        as_the_naive_log(&compact(limit, window, tick), &calls, tick, leaves);
    }

    #[test]
    fn as_the_naive_log_with_the_longest_window(
        (limit, calls) in (1_u64..9).prop_flat_map(|limit| (Just(limit), calls((1 << 30) - 1, limit, WRAPS)))
    ) {
        let window = (1 << 30) - 1;
        as_the_naive_log(&compact(limit, window, 1), &calls, 1, |at| at + window);
    }
}

/// The ring is only partly written anew in each lap, so that its oldest entries come round many times.
#[test]
fn gaps_of_whole_laps_of_the_slot_revive_nothing() {
    for lap in [1_u64 << 31, 1 << 32, 1 << 33, 1 << 45] {
        for off in [-1_i64, 0, 1] {
            let log = compact(8, 100, 1);
            let mut now = 0;
            assert!(log.try_acquire_at(8, ns(now)));
            for round in 0..30 {
                now = now.wrapping_add_signed(lap as i64 + off);
                let cost = 1 + round % 3;
                assert_eq!(log.usage_at(0, ns(now)), Some(0), "lap {lap} {off}");
                assert!(log.try_acquire_at(cost, ns(now)));
                assert_eq!(log.usage_at(0, ns(now + 99)), Some(cost));
                assert_eq!(log.check_at(9 - cost, ns(now + 1)).unwrap_err().retry_after(), Some(ns(99)));
            }
        }
    }
}

/// No gap is long, but together they are: the first of a hundred entries is ten laps old before it is overwritten.
#[test]
fn gaps_of_less_than_a_lap_add_up_to_many() {
    let window = (1 << 30) - 1;
    for step in [window, (1 << 30) + 1, (1 << 31) - 1, 1 << 31] {
        let log = compact(100, window, 1);
        for n in 0..1_000 {
            let now = ns(n * step);
            assert_eq!(log.usage_at(0, now), Some(0));
            assert!(log.try_acquire_at(1, now));
            assert_eq!(log.check_at(100, now).unwrap_err().retry_after(), Some(ns(window)));
        }
    }
}

#[test]
fn a_permit_may_come_back_one_nanosecond_short_of_a_tick_late() {
    let log = compact(1, 100, 10);
    assert!(log.try_acquire_at(1, ns(1)));
    // In the true window, and the latest that it is refused after.
    let denied = log.check_at(1, ns(101)).unwrap_err();
    assert_eq!(denied.retry_after(), Some(ns(9)));
    assert!(!log.try_acquire_at(1, ns(109)));
    assert!(log.try_acquire_at(1, ns(110)));
    // The longest wait: the window and a tick, less one nanosecond.
    let log = compact(1, 100, 10);
    assert!(log.try_acquire_at(1, ns(11)));
    assert_eq!(log.check_at(1, ns(0)).unwrap_err().retry_after(), Some(ns(109)));
}

#[test]
fn four_bytes_a_permit() {
    let small = compact(1, 100, 1).state_bytes();
    assert!(small < 128, "{small}");
    assert_eq!(compact(1_000_001, 100, 1).state_bytes(), small + 4_000_000);
}

#[test]
fn the_horizon_is_enforced() {
    let horizon = (1 << 30) - 1;
    let build = |window: u64, tick: u64| {
        let built =
            Compact::builder(1, Duration::from_nanos(window)).tick(Duration::from_nanos(tick)).build();
        built.map(|log| log.tick())
    };
    let tick = |got, min, max| {
        let [got, min, max] = [got, min, max].map(Duration::from_nanos);
        Err(ConfigError::Tick { got, min, max })
    };
    assert_eq!(build(horizon, 1), Ok(ns(1)));
    assert_eq!(build(horizon + 1, 1), tick(1, 2, horizon + 1));
    assert_eq!(build(horizon + 1, 2), Ok(ns(2)));
    assert_eq!(build(10, 0), tick(0, 1, 10));
    assert_eq!(build(10, 11), tick(11, 1, 10));
    assert_eq!(build(Nanos::MAX.as_nanos(), 1 << 32), tick(1 << 32, (1 << 32) + 5, Nanos::MAX.as_nanos()));
}

#[test]
fn the_tick_is_decimal_by_default() {
    let tick = |window| Compact::builder(1, window).build().unwrap().tick();
    assert_eq!(tick(Duration::from_nanos(1)), ns(1));
    assert_eq!(tick(Duration::from_secs(1)), ns(1));
    assert_eq!(tick(Duration::from_secs(60)), ns(100));
    assert_eq!(tick(Duration::from_secs(3_600)), ns(10_000));
    assert_eq!(tick(Duration::from_secs(86_400)), ns(100_000));
    assert_eq!(tick(Nanos::MAX.into()), secs(10));
}

#[test]
fn a_cost_above_the_largest_declared_is_refused() {
    let log = Compact::builder(10, Duration::from_secs(1)).max_cost(3).build().unwrap();
    assert!(log.try_acquire_at(3, ms(0)));
    assert!(!log.try_acquire_at(4, ms(0)));
    assert_eq!(log.check_at(4, ms(0)).unwrap_err().reason, tollgate::Reason::MaxCost { max: 3 });
    let error = Compact::builder(10, Duration::from_secs(1)).max_cost(0).build().err();
    assert_eq!(error, Some(ConfigError::MaxCost { got: 0, min: 1 }));
}
