//! The fixed window and the weighted two-window counter: against a naive model, at their bounds, in the field.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Decision, Fixed, Nanos, Reason, TwoWindow};

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

// === the naive model ===

/// Every admission in a list; windows by wide signed division; waits by trying one nanosecond after the other.
struct Naive {
    kind: Kind,
    limit: u64,
    window: i128,
    phase: i128,
    max_cost: u64,
    taken: Vec<(i128, u64)>,
}

impl Naive {
    fn window_of(&self, t: i128) -> i128 {
        (t - self.phase).div_euclid(self.window)
    }

    fn start(&self, window: i128) -> i128 {
        window * self.window + self.phase
    }

    /// An older call is judged at the start of the newest window.
    fn judged(&self, now: i128) -> i128 {
        let newest = self.taken.iter().map(|&(t, _)| self.window_of(t)).max();
        match newest {
            Some(newest) if newest > self.window_of(now) => self.start(newest),
            _ => now,
        }
    }

    fn used(&self, at: i128) -> u64 {
        let window = self.window_of(at);
        let sum = |w| self.taken.iter().filter(|e| self.window_of(e.0) == w).map(|e| e.1).sum::<u64>();
        match self.kind {
            F => sum(window),
            T => {
                let in_view = self.window - (at - self.start(window));
                let weighted = i128::from(sum(window - 1)) * in_view;
                ((weighted + self.window - 1) / self.window) as u64 + sum(window)
            }
        }
    }

    fn wait(&self, at: i128, keep: u64) -> Nanos {
        ns((0..).find(|&w| self.used(at + i128::from(w)) <= keep).unwrap())
    }

    fn take(&mut self, cost: u64, now: i128) {
        let at = self.judged(now);
        let fits = cost > 0 && cost <= self.max_cost && self.used(at) + cost <= self.limit;
        if fits {
            self.taken.push((at, cost));
        }
    }

    /// The figures of an answer: reason, then remaining, next_after, reset_after and the time judged.
    fn answer(&self, cost: u64, now: i128) -> (Option<Reason>, u64, Nanos, Nanos, Nanos) {
        let at = self.judged(now);
        let used = self.used(at);
        let remaining = self.limit.saturating_sub(used);
        let reason = if cost > self.limit {
            Some(Reason::Never)
        } else if cost > self.max_cost {
            Some(Reason::MaxCost { max: self.max_cost })
        } else if cost > 0 && used + cost > self.limit {
            Some(Reason::Limit { retry_after: self.wait(at, self.limit - cost) })
        } else {
            None
        };
        let next = (self.limit - remaining).checked_sub(1).map_or(Nanos::ZERO, |keep| self.wait(at, keep));
        (reason, remaining, next, self.wait(at, 0), ns(at as u64))
    }
}

fn figures(decision: Decision) -> (Option<Reason>, u64, Nanos, Nanos, Nanos) {
    let (reason, q) = match decision {
        Ok(quota) => (None, quota),
        Err(denied) => (Some(denied.reason), denied.quota),
    };
    (reason, q.remaining, q.next_after, q.reset_after, q.at)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Stay,
    On(u64),
    Jump(u64),
    Back(u64),
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64, u8)>> {
    let step = prop_oneof![
        2 => Just(Step::Stay),
        4 => (0..40u64).prop_map(Step::On),
        1 => (0..400u64).prop_map(Step::Jump),
        1 => (0..200u64).prop_map(Step::Back),
    ];
    prop::collection::vec((step, 0..8u64, 0..4u8), 1..50)
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(F), Just(T)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every answer equals the model's, whatever the limit, window, phase, costs and times.
    #[test]
    fn every_answer_is_the_naive_models(
        kind in kinds(),
        window in 1..=64u64,
        limit in 0..=15u64,
        phase in 0..64u64,
        max_cost in prop_oneof![3 => Just(u64::MAX), 1 => 1..6u64],
        origin in prop_oneof![Just(0u64), Just(1_000), Just((1 << 62) - 40_000)],
        steps in steps(),
    ) {
        let (span, phase) = (Duration::from_nanos(window), phase % window);
        let edges = Duration::from_nanos(phase);
        let (limit, built) = match build_with(kind, limit, span, edges, max_cost) {
            Ok(built) => (limit, built),
            Err(ConfigError::Limit { max, .. }) => {
                (max, build_with(kind, max, span, edges, max_cost).unwrap())
            }
            Err(other) => panic!("{other}"),
        };
        let (window, phase) = (window.into(), phase.into());
        let mut naive = Naive { kind, limit, window, phase, max_cost, taken: Vec::new() };
        let mut now = origin;
        for (step, cost, call) in steps {
            now = match step {
                Step::Stay => now,
                Step::On(by) | Step::Jump(by) => now + by,
                Step::Back(by) => now.saturating_sub(by),
            };
            let (t, wide) = (ns(now), i128::from(now));
            let expected = naive.answer(cost, wide);
            prop_assert_eq!(figures(built.peek_at(cost, t)), expected);
            prop_assert_eq!(built.usage_at(0, t), Some(naive.used(naive.judged(wide))));
            match call {
                0 => {} // A look only.
                1 => {
                    prop_assert_eq!(built.try_acquire_at(cost, t), expected.0.is_none());
                    naive.take(cost, wide);
                }
                _ => {
                    naive.take(cost, wide);
                    let decision = figures(built.check_at(cost, t));
                    prop_assert_eq!(decision.0, expected.0);
                    let after = naive.answer(0, wide);
                    prop_assert_eq!((decision.1, decision.2, decision.3, decision.4), (after.1, after.2, after.3, after.4));
                }
            }
        }
    }

    /// F038 for windows too long to try every nanosecond: one before the wait refused, at it admitted.
    #[test]
    fn f038_the_wait_is_enough_and_not_too_much(
        kind in kinds(),
        window in 1_000_000..=(1u64 << 60),
        limit in 1..=1_000u64,
        calls in prop::collection::vec((1..=1_000u64, 0..=64u64), 1..40),
    ) {
        let a = build(kind, limit, Duration::from_nanos(window)).unwrap();
        let mut now = 0;
        for (cost, part) in calls {
            let cost = (cost - 1) % limit + 1;
            now += window / 64 * part;
            if now > 1 << 61 {
                break;
            }
            if let Err(denied) = a.check_at(cost, ns(now)) {
                let wait = denied.retry_after().unwrap();
                let longest = if kind == F { window } else { 2 * window };
                prop_assert!(wait > Nanos::ZERO && wait <= ns(longest));
                prop_assert_eq!(denied.quota.at, ns(now));
                prop_assert!(a.peek_at(cost, ns(now) + wait - ns(1)).is_err());
                prop_assert!(a.peek_at(cost, ns(now) + wait).is_ok());
            }
        }
    }

    /// Both bounds of both kinds, in every true window, for traffic that crowds at the edges.
    #[test]
    fn no_window_holds_more_and_no_refusal_is_worse_than_stated(
        kind in kinds(),
        window in prop_oneof![20..=64u64, 1_000..=1_010u64],
        limit in 1..=15u64,
        calls in prop::collection::vec((0..30u64, 0..5u64, 0..5u64, 1..=4u64), 1..120),
    ) {
        let Ok(a) = build(kind, limit, Duration::from_nanos(window)) else { return Ok(()) };
        let mut times: Vec<_> = calls
            .into_iter()
            .map(|(w, near, far, cost)| {
                // Around an edge, at its third, anywhere close to it.
                let spot = [near, window / 3, window - 1 - near, window - 1 - near * far, near * far][far as usize];
                (w / 3 * window + spot, cost)
            })
            .collect();
        times.sort_unstable();
        let (most, memory) = match kind {
            F => (2 * limit, window),
            T => (limit + limit * window.saturating_sub(2) / window, 2 * window),
        };
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let within = |taken: &[(u64, u64)], span: u64, t: u64| -> u64 {
            taken.iter().filter(|e| e.0 + span > t).map(|e| e.1).sum()
        };
        for (t, cost) in times {
            if a.try_acquire_at(cost, ns(t)) {
                taken.push((t, cost));
                prop_assert!(within(&taken, window, t) <= most);
            } else {
                prop_assert!(within(&taken, memory, t) + cost > limit, "refused {} at {}: {:?}", cost, t, taken);
            }
        }
    }
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

// === field cases ===

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
