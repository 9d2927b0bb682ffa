//! Rates that change while the bucket is in use.

use std::{sync::Barrier, thread, time::Duration};

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Gcra, Live, Nanos, Reason, Rule};

use crate::{S, SECOND, at, gcra, properties::first};

fn live(limit: u64, per: Duration, burst: u64, max: u64) -> Live<Gcra> {
    Live::new(Gcra::builder(limit, per).burst(burst).rate_max(max, per).build().unwrap()).unwrap()
}

/// A full bucket whose capacity is lowered holds the new one, and no level beyond it.
#[test]
fn f045_more_initial_tokens_than_the_bucket_holds() {
    let bucket = live(1, SECOND, 20, 1);
    assert_eq!(bucket.usage_at(0, at(S)), Some(0));
    bucket.set_rate_at(Rule::new(1, SECOND), 10, at(S)).unwrap();
    assert_eq!((0..20).filter(|_| bucket.try_acquire_at(1, at(S))).count(), 10);
    assert_eq!((0..20).filter(|_| bucket.try_acquire_at(1, at(2 * S))).count(), 1);
}

#[test]
fn f048_a_new_limit_is_used_for_one_check_and_the_old_one_for_another() {
    let bucket = live(20, SECOND, 20, 20);
    bucket.set_rate_at(Rule::new(20, SECOND), 10, at(S)).unwrap();
    assert_eq!(bucket.peek_at(1, at(S)).map(|quota| (quota.limit, quota.remaining)), Ok((10, 10)));
    assert_eq!(bucket.check_at(12, at(S)).unwrap_err().reason, Reason::Never);
    assert!(!bucket.try_acquire_at(12, at(S)) && bucket.try_acquire_at(10, at(S)));
    assert!(!bucket.try_acquire_at(1, at(S)));
}

#[test]
fn f049_raising_the_rate_alone() {
    let fast = Rule::new(100, SECOND);
    for (burst, passed) in [(1, 1), (100, 100)] {
        let bucket = live(1, SECOND, 1, 100);
        bucket.set_rate_at(fast, burst, at(5 * S)).unwrap();
        assert_eq!((0..100).filter(|_| bucket.try_acquire_at(1, at(6 * S))).count(), passed);
    }
}

/// To zero and back: what is owed drains on, at the rate there was, and nothing is handed out meanwhile.
#[test]
fn a_limit_of_zero_closes_the_bucket_and_keeps_what_it_owes() {
    let bucket = live(2, SECOND, 8, 4);
    assert!(bucket.try_acquire_at(8, at(S)));
    bucket.set_rate_at(Rule::new(0, SECOND), 8, at(S)).unwrap();
    let denied = bucket.check_at(1, at(2 * S)).unwrap_err();
    assert_eq!((denied.reason, denied.quota.remaining, denied.quota.limit), (Reason::Never, 0, 0));
    assert!(bucket.try_acquire_at(0, at(2 * S)) && !bucket.try_acquire_at(1, at(90 * S)));
    assert_eq!(bucket.usage_at(0, at(2 * S)), Some(6));
    bucket.set_rate_at(Rule::new(4, SECOND), 8, at(2 * S)).unwrap();
    assert_eq!((bucket.usage_at(0, at(3 * S)), bucket.rules()[0].limit), (Some(2), 4));
    assert!(bucket.try_acquire_at(6, at(3 * S)) && !bucket.try_acquire_at(1, at(3 * S)));
}

/// The bucket drains at the new rate from the time of the change on, and not from a time before it.
#[test]
fn a_change_has_one_moment() {
    let bucket = live(1, SECOND, 10, 10);
    assert!(bucket.try_acquire_at(10, at(0)));
    bucket.set_rate_at(Rule::new(10, SECOND), 10, at(4 * S)).unwrap();
    assert_eq!(bucket.usage_at(0, at(4 * S)), Some(6));
    // An older call is judged at the change, and an older change takes place then.
    assert_eq!(bucket.peek_at(1, at(0)).map(|quota| (quota.at, quota.remaining)), Ok((at(4 * S), 4)));
    bucket.set_rate_at(Rule::new(5, SECOND), 2, at(S)).unwrap();
    assert_eq!(bucket.usage_at(0, at(4 * S)), Some(6));
    // Below what is owed: until 4 permits of the 6 and the one asked for have drained.
    let denied = bucket.check_at(1, at(4 * S)).unwrap_err();
    assert_eq!((denied.retry_after(), denied.quota.remaining), (Some(Nanos::from_secs(1)), 0));
    assert_eq!(denied.quota.reset_after, Nanos::from_millis(1_200));
    assert!(!bucket.try_acquire_at(1, at(5 * S - 1)) && bucket.try_acquire_at(1, at(5 * S)));
}

#[test]
fn what_a_bucket_can_not_become_is_named_and_changes_nothing() {
    let bucket = live(10, SECOND, 5, 20);
    let set = |limit, per, burst, now| bucket.set_rate_at(Rule::new(limit, per), burst, at(now));
    assert_eq!(set(21, SECOND, 5, 0), Err(ConfigError::Limit { got: 21, max: 20 }));
    assert_eq!(set(11, SECOND / 2, 5, 0), Err(ConfigError::Limit { got: 11, max: 10 }));
    assert!(matches!(set(1, Duration::ZERO, 5, 0), Err(ConfigError::Window { .. })));
    assert!(matches!(set(1, SECOND, 0, 0), Err(ConfigError::Burst { got: 0, min: 1, .. })));
    assert!(matches!(set(1, SECOND, u64::MAX, 0), Err(ConfigError::Burst { got: u64::MAX, .. })));
    let moment = ConfigError::Moment { got: at(1 << 62), max: Nanos::MAX };
    assert_eq!(set(1, SECOND, 5, 1 << 62), Err(moment));
    assert_eq!((bucket.rules()[0], bucket.peek_at(0, at(0)).unwrap().limit), (Rule::new(10, SECOND), 5));
    let slower = Gcra::builder(2, SECOND).rate_max(1, SECOND).build().err();
    assert_eq!(slower, Some(ConfigError::Limit { got: 2, max: 1 }));
    let no_window = Gcra::builder(2, SECOND).rate_max(1, Duration::ZERO).build().err();
    assert!(matches!(no_window, Some(ConfigError::Window { .. })));
}

#[test]
fn many_buckets_follow_one_rate() {
    let build = || Gcra::builder(1, SECOND).burst(4).rate_max(2, SECOND).build().unwrap();
    let first = Live::new(build()).unwrap();
    let second = Live::follow(build(), first.handle()).unwrap();
    assert!(first.try_acquire_at(4, at(0)) && second.try_acquire_at(2, at(0)));
    first.handle().set_rate_at(Rule::new(2, SECOND), 6, at(S)).unwrap();
    assert_eq!((first.usage_at(0, at(2 * S)), second.usage_at(0, at(2 * S))), (Some(1), Some(0)));
    assert!(second.try_acquire_at(6, at(2 * S)));
    assert_eq!(Live::follow(gcra(1, SECOND, 4), first.handle()).err(), Some(ConfigError::Unlike));
}

#[test]
fn at_the_last_moments() {
    let bucket = live(1, SECOND, 1, S);
    let last = Nanos::MAX.as_nanos();
    let Err(ConfigError::Burst { max, .. }) = bucket.set_rate_at(Rule::new(S, SECOND), u64::MAX, at(1))
    else {
        panic!("a burst without bound was accepted")
    };
    bucket.set_rate_at(Rule::new(S, SECOND), max, at(1)).unwrap();
    assert!(bucket.try_acquire_at(max, at(last)) && !bucket.try_acquire_at(1, at(last)));
    bucket.set_rate_at(Rule::new(1, Nanos::MAX.into()), 1, at(last)).unwrap();
    let denied = bucket.check_at(1, at(last)).unwrap_err();
    assert!(denied.retry_after() > Some(Nanos::MAX) && !bucket.try_acquire_at(1, at(u64::MAX)));
}

/// The clock by its definition, in exact arithmetic: whole ticks since the change, at `limit` per `window`.
#[derive(Clone, Copy)]
struct Model {
    permit: u128,
    rule: (u64, u64),
    burst: u64,
    since: u64,
    drained: u128,
    /// When the bucket is empty, by its clock.
    tat: u128,
}

impl Model {
    fn clock(&self, now: u64) -> u128 {
        let (limit, window) = self.rule;
        let span = u128::from(now.saturating_sub(self.since));
        self.drained + span * self.permit * u128::from(limit) / u128::from(window)
    }

    fn owed(&self, now: u64) -> u128 {
        self.tat.saturating_sub(self.clock(now))
    }

    fn take(&mut self, cost: u64, now: u64) -> bool {
        let all = u128::from(self.burst) * self.permit;
        let cost_ticks = u128::from(cost) * self.permit;
        let fits = cost == 0 || cost <= self.burst && self.owed(now) + cost_ticks <= all;
        if fits && cost > 0 {
            self.tat = self.tat.max(self.clock(now)) + cost_ticks;
        }
        fits
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Call { cost: u64, later: i64 },
    Rate { limit: u64, window: u64, burst: u64, later: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let later = || prop_oneof![9 => 0..40_i64, 1 => -60..0_i64];
    let call = (0..7_u64, later()).prop_map(|(cost, later)| Step::Call { cost, later });
    let rate = (1..=12_u64, 12..90_u64, 1..=6_u64, later())
        .prop_map(|(limit, window, burst, later)| Step::Rate { limit, window, burst, later });
    prop::collection::vec(prop_oneof![6 => call, 1 => rate], 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Every answer is that of the clock in exact arithmetic, and a change alters nothing that is owed.
    #[test]
    fn what_is_owed_is_kept_through_every_change(steps in steps(), start in 0..1_000_000_000_000_u64) {
        // One permit a nanosecond at most, or one in 12: ticks of one nanosecond, one or 12 to the permit.
        for permit in [1, 12] {
            let built = Gcra::builder(1, Duration::from_nanos(12)).burst(3);
            let bucket = Live::new(built.rate_max(1, Duration::from_nanos(permit)).build().unwrap()).unwrap();
            let mut model = Model { permit: permit.into(), rule: (1, 12), burst: 3, since: 0, drained: 0, tat: 0 };
            let mut now = start;
            for &step in &steps {
                match step {
                    Step::Rate { limit, window, burst, later } => {
                        now = now.saturating_add_signed(later);
                        // No faster than the fastest.
                        let window = window.max(limit * permit);
                        let since = now.max(model.since);
                        let before = bucket.usage_at(0, at(since));
                        bucket.set_rate_at(Rule::new(limit, Duration::from_nanos(window)), burst, at(now)).unwrap();
                        prop_assert_eq!(bucket.usage_at(0, at(since)), before);
                        model = Model { drained: model.clock(now), since, rule: (limit, window), burst, ..model };
                    }
                    Step::Call { cost, later } => {
                        now = now.saturating_add_signed(later);
                        let peek = bucket.peek_at(cost, at(now));
                        if let Err(denied) = peek {
                            let at = denied.quota.at.as_nanos();
                            let wait = first(100_000, |wait| model.clone().take(cost, at + wait));
                            prop_assert_eq!(denied.retry_after().map(Nanos::as_nanos), wait);
                        }
                        let quota = peek.unwrap_or_else(|denied| denied.quota);
                        let owed = model.owed(quota.at.as_nanos()).div_ceil(model.permit) as u64;
                        prop_assert_eq!(quota.remaining, model.burst.saturating_sub(owed));
                        let fits = model.take(cost, now);
                        prop_assert_eq!(peek.is_ok(), fits);
                        prop_assert_eq!(bucket.try_acquire_at(cost, at(now)), fits, "cost {} at {}", cost, now);
                    }
                }
            }
        }
    }

    /// At the fastest rate there is no difference, whatever the rate was meanwhile.
    #[test]
    fn at_the_fastest_rate_it_is_a_plain_bucket(
        limit in 1_u64.., per in 1..=100_000_000_000_u64, burst in 1..9_u64,
        steps in prop::collection::vec((0..9_u64, any::<u64>()), 1..60),
    ) {
        let limit = 1 + (limit - 1) % per;
        let per = Duration::from_nanos(per);
        let (live, plain) = (live(limit, per, burst, limit), gcra(limit, per, burst));
        let mut now = 0;
        for (turn, &(cost, later)) in steps.iter().enumerate() {
            now += later % (2 * per.as_nanos() as u64 / limit * burst + 1);
            prop_assert_eq!(live.peek_at(cost, at(now)), plain.peek_at(cost, at(now)));
            prop_assert_eq!(live.check_at(cost, at(now)), plain.check_at(cost, at(now)));
            prop_assert_eq!(live.usage_at(0, at(now)), plain.usage_at(0, at(now)));
            if turn % 7 == 3 {
                live.set_rate_at(Rule::new(0, SECOND), 1, at(now)).unwrap();
                live.set_rate_at(Rule::new(limit, per), burst, at(now)).unwrap();
            }
        }
    }

    /// The bound that is stated: in any span what drains in it, the burst, and a tick.
    #[test]
    fn a_slow_rate_is_exceeded_by_less_than_a_tick(
        window in 12..400_u64, burst in 1..5_u64, steps in prop::collection::vec(0..300_u64, 2..80),
    ) {
        let permit = 12;
        let built = Gcra::builder(1, Duration::from_nanos(window)).burst(burst);
        let bucket = Live::new(built.rate_max(1, Duration::from_nanos(permit)).build().unwrap()).unwrap();
        let (mut now, mut admitted) = (0, vec![]);
        for later in steps {
            now += later;
            while bucket.try_acquire_at(1, at(now)) {
                admitted.push(now);
            }
        }
        for (first, &from) in admitted.iter().enumerate() {
            for (last, &to) in admitted.iter().enumerate().skip(first) {
                // In parts of a tick, of which there are as many as the window is long.
                let ticks = (last - first + 1) as u64 * permit * window;
                prop_assert!(ticks < burst * permit * window + (to - from) * permit + window);
            }
        }
    }
}

/// Threads take while the rate goes to and fro at one moment: as many permits as the larger burst has, and all of them.
#[test]
fn threads_never_take_more_than_the_larger_burst() {
    let bucket = &live(1, SECOND, 500, 2);
    let gate = &Barrier::new(3);
    let taken: u64 = thread::scope(|scope| {
        let callers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    gate.wait();
                    (0..20_000).filter(|_| bucket.try_acquire_at(1, at(S))).count() as u64
                })
            })
            .collect();
        gate.wait();
        for turn in 0..2_000 {
            bucket.set_rate_at(Rule::new(1 + turn % 2, SECOND), 500 + turn % 2 * 300, at(S)).unwrap();
        }
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    let rest = (0..2_000).filter(|_| bucket.try_acquire_at(1, at(S))).count() as u64;
    assert_eq!((taken + rest, bucket.usage_at(0, at(S))), (800, Some(800)));
}
