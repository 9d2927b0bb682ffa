//! The fixed window and the weighted two-window counter: against a naive model, at their bounds, in the field.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

mod cases;
mod model;

use tollgate::{Algorithm, ConfigError, Fixed, Nanos, Reason, TwoWindow};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fixed,
    TwoWindow,
}
use Kind::{Fixed as F, TwoWindow as T};

fn build(kind: Kind, limit: u64, window: Duration) -> Result<Box<dyn Algorithm>, ConfigError> {
    build_with(kind, limit, window, Duration::ZERO, u64::MAX)
}

fn build_with(
    kind: Kind,
    limit: u64,
    window: Duration,
    phase: Duration,
    max_cost: u64,
) -> Result<Box<dyn Algorithm>, ConfigError> {
    Ok(match kind {
        F => Box::new(Fixed::builder(limit, window).phase(phase).max_cost(max_cost).build()?),
        T => Box::new(TwoWindow::builder(limit, window).phase(phase).max_cost(max_cost).build()?),
    })
}

const SECOND: Duration = Duration::from_secs(1);

fn ns(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

/// How many calls of cost 1 pass at one moment, up to `calls`.
fn pass(a: &dyn Algorithm, calls: u64, now: Nanos) -> u64 {
    (0..calls).filter(|_| a.try_acquire_at(1, now)).count() as u64
}

/// The wait that a refusal tells.
fn wait(a: &dyn Algorithm, cost: u64, now: Nanos) -> Nanos {
    a.peek_at(cost, now).unwrap_err().retry_after().unwrap()
}

// === the bounds, reached ===

#[test]
fn the_edge_burst_of_a_fixed_window_is_twice_the_limit() {
    let a = build(F, 100, SECOND).unwrap();
    // 200 in 200 ms around an edge.
    assert_eq!(pass(&*a, 150, ms(900)), 100);
    assert_eq!(pass(&*a, 150, ms(1_099)), 100);
    // And in one nanosecond more than none.
    assert_eq!(pass(&*a, 150, Nanos::from_secs(2) - ns(1)), 0);
    assert_eq!(pass(&*a, 150, Nanos::from_secs(3) - ns(1)), 100);
    assert_eq!(pass(&*a, 150, Nanos::from_secs(3)), 100);
}

#[test]
fn two_windows_reach_their_bound_above_the_limit() {
    // L in a window's last tick and all that passes one tick before its age is W: L + floor(L (W - 2) / W).
    for (limit, window) in [(100, 1_000_000_000u64), (31, 1_000), (3, 10), (7, 16), (1, 3)] {
        let a = build(T, limit, Duration::from_nanos(window)).unwrap();
        let (first, last) = (window - 1, 2 * window - 2);
        assert_eq!(pass(&*a, limit + 1, ns(first)), limit);
        assert_eq!(pass(&*a, limit + 1, ns(last)), limit * (window - 2) / window, "L={limit} W={window}");
        if window >= 2 * limit {
            assert_eq!(limit + limit * (window - 2) / window, 2 * limit - 1);
        }
    }
}

#[test]
fn two_windows_reach_their_bound_of_false_refusal() {
    let a = build(T, 100, SECOND).unwrap();
    assert!(a.try_acquire_at(100, ns(0)));
    // One window later all 100 have left the true window, and not one is free again until 1 % of the next.
    assert!(!a.try_acquire_at(1, Nanos::from_secs(1)));
    assert!(!a.try_acquire_at(1, ms(1_010) - ns(1)));
    assert!(a.peek_at(1, ms(1_010)).is_ok());
    // The last comes back two windows after it went: a whole window late.
    assert_eq!(wait(&*a, 100, ns(0)), Nanos::from_secs(2));
    assert!(!a.try_acquire_at(100, Nanos::from_secs(2) - ns(1)));
    assert!(a.try_acquire_at(100, Nanos::from_secs(2)));
}

#[test]
fn two_windows_are_right_to_one_permit_when_the_last_was_even() {
    let (window, count) = (1_000_000u64, 40);
    let a = build(T, 500, Duration::from_nanos(window)).unwrap();
    let times: Vec<u64> = (0..count).map(|k| k * window / count).collect();
    assert!(times.iter().all(|&t| a.try_acquire_at(1, ns(t))));
    for t in (window..2 * window).step_by(997) {
        let truly = times.iter().filter(|&&at| at + window > t).count() as u64;
        let charged = a.usage_at(0, ns(t)).unwrap();
        assert!(charged == truly || charged == truly + 1, "{charged} for {truly} at {t}");
    }
}

#[test]
fn the_textbook_edge_sum_of_two_windows() {
    // 84 last window, 36 in this one, a quarter in: 84 * 3/4 + 36 = 99.
    let a = build(T, 100, Duration::from_secs(60)).unwrap();
    assert!(a.try_acquire_at(84, Nanos::from_secs(30)));
    assert!(a.try_acquire_at(36, Nanos::from_secs(75)));
    assert_eq!(a.usage_at(0, Nanos::from_secs(75)), Some(99));
    assert_eq!(pass(&*a, 5, Nanos::from_secs(75)), 1);
}

// === configuration and time ===

#[test]
fn a_phase_moves_the_window_edges() {
    for kind in [F, T] {
        let a = build_with(kind, 5, SECOND, Duration::from_millis(300), u64::MAX).unwrap();
        assert!(a.try_acquire_at(5, ms(299)));
        let wait = wait(&*a, 1, ms(299));
        assert_eq!(wait, if kind == F { ms(1) } else { ms(201) });
        let error = build_with(kind, 5, SECOND, SECOND, u64::MAX).err().unwrap();
        assert_eq!(error, ConfigError::Phase { got: SECOND, width: SECOND });
    }
}

#[test]
fn a_largest_cost_is_a_refusal_of_its_own() {
    for kind in [F, T] {
        let a = build_with(kind, 10, SECOND, Duration::ZERO, 3).unwrap();
        assert!(!a.try_acquire_at(4, ns(0)));
        assert_eq!(a.check_at(4, ns(0)).unwrap_err().reason, Reason::MaxCost { max: 3 });
        assert_eq!(a.check_at(11, ns(0)).unwrap_err().reason, Reason::Never);
        assert!(a.try_acquire_at(3, ns(0)));
        assert_eq!(a.usage_at(0, ns(0)), Some(3));
        let error = build_with(kind, 10, SECOND, Duration::ZERO, 0).err().unwrap();
        assert_eq!(error, ConfigError::MaxCost { got: 0, min: 1 });
    }
}

#[test]
fn the_last_moment_is_in_range_and_the_next_is_not() {
    for kind in [F, T] {
        for window in [Duration::from_nanos(1), SECOND, Nanos::MAX.into()] {
            for phase in [Duration::ZERO, window / 2, window - Duration::from_nanos(1)] {
                let a = build_with(kind, 1, window, phase, u64::MAX).unwrap();
                let beyond = Nanos::MAX + ns(1);
                assert!(!a.try_acquire_at(1, beyond));
                assert_eq!(a.check_at(0, beyond).unwrap_err().reason, Reason::TimeOutOfRange);
                assert_eq!(a.usage_at(0, beyond), None);
                assert!(a.try_acquire_at(1, Nanos::MAX), "{kind:?} {window:?} {phase:?}");
                assert!(!a.try_acquire_at(1, Nanos::MAX));
                assert_eq!(a.usage_at(0, ns(0)), Some(1));
            }
        }
    }
}

#[test]
fn a_reset_forgets_every_admission() {
    let mut all = [build(F, 3, SECOND).unwrap(), build(T, 3, SECOND).unwrap()];
    for a in &mut all {
        assert_eq!(pass(&**a, 9, ms(5_500)), 3);
        a.reset();
        assert_eq!(a.usage_at(0, ns(0)), Some(0));
        assert_eq!(a.peek_at(3, ns(0)).unwrap().at, ns(0));
        assert_eq!(pass(&**a, 9, ns(0)), 3);
        assert_eq!((a.rules()[0].limit, a.state_bytes() % 8), (3, 0));
    }
}

// === threads ===

/// Threads from a barrier at one moment take exactly what a single one could; time moves between the barriers.
#[test]
fn threads_take_exactly_the_limit() {
    const L: u64 = 100;
    // In mid-window; every fifth round skips a window.
    let moment = |round: u64| ms(1_000 * (round + round / 5) + 500);
    for kind in [F, T] {
        for threads in [2, 4, 8] {
            let a = build(kind, L, SECOND).unwrap();
            let gate = Barrier::new(threads);
            let totals: Vec<AtomicU64> = (0..200).map(|_| AtomicU64::new(0)).collect();
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for (round, total) in totals.iter().enumerate() {
                            gate.wait();
                            total.fetch_add(pass(&*a, L, moment(round as u64)), Relaxed);
                        }
                    });
                }
            });
            let mut last = 0;
            for (round, total) in totals.iter().enumerate() {
                let fresh = kind == F || round % 5 == 0;
                let expected = if fresh { L } else { L - u64::div_ceil(last, 2) };
                last = total.load(Relaxed);
                assert_eq!(last, expected, "{kind:?}, {threads} threads, round {round}");
            }
        }
    }
}

/// Costs of several sizes race for the last permits: never above the limit, and never a permit left that the
/// smallest cost could have had.
#[test]
fn threads_of_several_costs_fill_the_limit() {
    for kind in [F, T] {
        for round in 0..200 {
            let a = build(kind, 50, SECOND).unwrap();
            let (gate, now) = (Barrier::new(4), ms(round * 17));
            let total: u64 = thread::scope(|scope| {
                let hands: Vec<_> = (1..=4u64)
                    .map(|cost| {
                        let (a, gate) = (&a, &gate);
                        scope.spawn(move || {
                            gate.wait();
                            (0..50).filter(|_| a.try_acquire_at(cost, now)).count() as u64 * cost
                        })
                    })
                    .collect();
                hands.into_iter().map(|hand| hand.join().unwrap()).sum()
            });
            assert_eq!(total, 50, "{kind:?}");
            assert_eq!(a.usage_at(0, now), Some(50));
        }
    }
}
