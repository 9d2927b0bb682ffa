//! Every answer against a naive model, and both bounds against lists of admissions.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{ConfigError, Decision, Nanos, Reason};

use crate::{F, Kind, T, build, build_with, ns};

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
