//! The timing wheel: exact to its fine slot.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Nanos, Reason, Wheel};

use crate::{
    ms,
    naive::{as_the_naive_log, calls},
    ns, secs,
};

const MINUTE: Duration = Duration::from_secs(60);
const MILLI: Duration = Duration::from_millis(1);

fn wheel(limit: u64, window: u64, (coarse, fine, width): (u32, u32, u64)) -> Wheel {
    let built = Wheel::builder(limit, Duration::from_nanos(window));
    built.geometry(coarse, fine, Duration::from_nanos(width)).build().unwrap()
}

fn example(limit: u64) -> Wheel {
    Wheel::builder(limit, MINUTE).geometry(60, 1_000, MILLI).build().unwrap()
}

proptest! {
    /// Windows of the whole round, of less than a turn, of one slot, and between.
    #[test]
    fn as_the_naive_log_to_the_fine_slot(
        (limit, window, geometry, calls) in (1_u64..9, 1_u32..7, 1_u32..7, 1_u64..40)
            .prop_flat_map(|(limit, coarse, fine, width)| {
                let round = u64::from(coarse * fine) * width;
                let window = prop_oneof![2 => Just(round), 2 => width..=round, 1 => Just(width)];
                (Just(limit), window, Just((coarse, fine, width)))
            })
            .prop_flat_map(|(limit, window, geometry)| {
                (Just(limit), Just(window), Just(geometry), calls(window, limit, &[1 << 31, 1 << 40]))
            })
    ) {
        let width = geometry.2;
        let leaves = |at: u64| (at + window).div_ceil(width) * width;
        as_the_naive_log(&wheel(limit, window, geometry), &calls, width, leaves);
    }
}

#[test]
fn the_example_is_exact_to_the_millisecond_not_the_second() {
    let wheel = example(1);
    assert_eq!(wheel.slot(), ms(1));
    assert!(wheel.try_acquire_at(1, ns(1)));
    let denied = wheel.check_at(1, secs(60)).unwrap_err();
    assert_eq!(denied.retry_after(), Some(ms(1)));
    // 999,999 ns late: the bound, reached.
    assert!(!wheel.try_acquire_at(1, ms(60_001) - ns(1)));
    assert!(wheel.try_acquire_at(1, ms(60_001)));
    // A whole millisecond is exact, and the longest wait is the window and a slot, less one nanosecond.
    assert!(wheel.try_acquire_at(1, ms(120_001)));
    assert!(wheel.try_acquire_at(1, ms(180_001) + ns(1)));
    assert_eq!(wheel.check_at(1, ns(0)).unwrap_err().retry_after(), Some(secs(60) + ms(1) - ns(1)));
}

#[test]
fn bytes_of_the_example() {
    let fixed = example(0).state_bytes();
    assert!((8 * 1_000 + 4 * 61..8 * 1_000 + 4 * 61 + 256).contains(&fixed), "{fixed}");
    assert_eq!(example(100).state_bytes(), fixed + 16 * 100);
    // From 60,001 permits on, the slots of the window bound the timers.
    assert_eq!(example(1_000_000).state_bytes(), fixed + 16 * 60_001);
}

/// A timer for every permit, all fired by one call; and none is ever lacking, lap after lap.
#[test]
fn the_worst_call_fires_every_timer_at_once() {
    let wheel = example(60_001);
    for lap in 0..3 {
        let start = secs(3_600 * lap) + ns(1);
        for n in 0..60_000 {
            assert!(wheel.try_acquire_at(1, start + ms(n)));
        }
        // The first is due at the next millisecond only: one timer more.
        assert!(wheel.try_acquire_at(1, start + ms(60_000) - ns(1)));
        assert_eq!(wheel.usage_at(0, start + ms(60_000) - ns(1)), Some(60_001));
        let long = start + secs(200);
        assert!(wheel.try_acquire_at(60_001, long));
        assert!(!wheel.try_acquire_at(1, long + secs(60)));
    }
}

/// A wheel that turned slot by slot would take years over this.
#[test]
fn a_gap_of_a_century_turns_each_wheel_once() {
    let wheel = example(3);
    for now in [0, 1, 100, 1 << 40, (1 << 61) + 5, Nanos::MAX.as_nanos()] {
        assert!(wheel.try_acquire_at(1, ns(now)));
        assert!(wheel.usage_at(0, ns(now)).unwrap() <= 3);
    }
    assert_eq!(wheel.usage_at(0, Nanos::MAX), Some(1));
}

#[test]
fn many_permits_at_once_share_a_timer() {
    let wheel = example(u64::MAX);
    assert!((0..100_000).all(|n| wheel.try_acquire_at(1 << 40, ns(n))));
    assert_eq!(wheel.usage_at(0, ms(1)), Some(100_000 << 40));
    assert_eq!(wheel.usage_at(0, ms(60_001)), Some(0));
}

#[test]
fn a_geometry_that_can_not_hold_the_window_is_refused() {
    let build = |coarse, fine, width| Wheel::builder(1, MINUTE).geometry(coarse, fine, width).build().err();
    let slots = |got| Some(ConfigError::Buckets { got, min: 1, max: 32_768 });
    assert_eq!(build(0, 1_000, MILLI), slots(0));
    assert_eq!(build(60, 0, MILLI), slots(0));
    assert_eq!(build(32_769, 1, MILLI), slots(32_769));
    let narrow = Duration::from_nanos(999_999);
    assert_eq!(build(60, 1_000, narrow), Some(ConfigError::Tick { got: narrow, min: MILLI, max: MINUTE }));
    let wide = MINUTE + MILLI;
    assert_eq!(build(60, 1_000, wide), Some(ConfigError::Tick { got: wide, min: MILLI, max: MINUTE }));
    assert_eq!(build(60, 1_000, MILLI), None);
}

#[test]
fn a_cost_above_the_largest_declared_is_refused() {
    let wheel = Wheel::builder(10, MINUTE).max_cost(3).build().unwrap();
    assert!(wheel.try_acquire_at(3, ms(0)));
    assert_eq!(wheel.check_at(4, ms(0)).unwrap_err().reason, Reason::MaxCost { max: 3 });
    assert!(!wheel.try_acquire_at(4, ms(0)));
    let error = Wheel::builder(10, MINUTE).max_cost(0).build().unwrap_err();
    assert_eq!(error, ConfigError::MaxCost { got: 0, min: 1 });
}

#[test]
fn the_default_is_sixty_over_a_thousand_with_a_decimal_slot() {
    let slot = |window| Wheel::builder(1, window).build().unwrap().slot();
    assert_eq!(slot(MINUTE), ms(1));
    assert_eq!(slot(Duration::from_secs(1)), ns(100_000));
    assert_eq!(slot(Duration::from_nanos(1)), ns(1));
    assert_eq!(slot(Duration::from_nanos(60_001)), ns(10));
}
