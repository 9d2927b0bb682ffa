//! Limits that change while callers call.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use tollgate::{
    Algorithm, ByRules, Changing, Compact, ConfigError, Coverage, Fixed, Live, Log, Nanos, Reason, Rule,
    TwoWindow, Window,
};

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn live<A: Changing>(algorithm: A) -> Live<A> {
    Live::new(algorithm).unwrap()
}

/// What one call of a property does.
#[derive(Clone, Debug)]
enum Step {
    /// Asks for so many permits, so much later.
    Call { cost: u64, later: u64 },
    /// Another limit and window.
    Rule { limit: u64, window: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (0..5_u64, 0..9_u64).prop_map(|(cost, later)| Step::Call { cost, later });
    let rule = (0..=8_u64, 1..=6_u64).prop_map(|(limit, window)| Step::Rule { limit, window });
    vec(prop_oneof![6 => call, 1 => rule], 1..120)
}

/// A list of admissions under whatever rule is the present one. Windows in buckets of `width`; an admission is
/// remembered `late` buckets longer than its window.
struct Model {
    width: u64,
    late: u64,
    rule: (u64, u64),
    /// The most that are told apart.
    capacity: u64,
    admitted: Vec<(u64, u64)>,
}

impl Model {
    fn used(&self, now: u64) -> u64 {
        let leaves = |t: u64| (t / self.width + self.rule.1 + self.late) * self.width;
        self.admitted.iter().filter(|&&(t, _)| leaves(t) > now).map(|&(_, cost)| cost).sum()
    }

    fn fits(&self, cost: u64, now: u64) -> bool {
        cost == 0 || cost <= self.rule.0 && self.used(now) + cost <= self.rule.0
    }

    /// Every answer of `limiter` is this model's.
    fn agrees(mut self, limiter: &dyn Algorithm, set: &dyn Fn(Rule), steps: Vec<Step>) {
        let mut now = 0;
        for step in steps {
            match step {
                Step::Rule { limit, window } => {
                    self.rule = (limit, window);
                    set(Rule::new(limit, nanos(window * self.width)));
                    assert_eq!(limiter.rules()[..], [Rule::new(limit, nanos(window * self.width))]);
                }
                Step::Call { cost, later } => {
                    now += later;
                    let time = Nanos::from_nanos(now);
                    let (used, fits) = (self.used(now), self.fits(cost, now));
                    assert_eq!(limiter.usage_at(0, time), Some(used.min(self.capacity)));
                    let peek = limiter.peek_at(cost, time);
                    let quota = peek.as_ref().map_or_else(|denied| denied.quota, |quota| *quota);
                    assert_eq!((peek.is_ok(), quota.remaining), (fits, self.rule.0.saturating_sub(used)));
                    if let Err(denied) = peek {
                        let wait = (1..10_000).find(|wait| self.fits(cost, now + wait));
                        assert_eq!(denied.retry_after().map(Nanos::as_nanos), wait, "{denied}");
                    }
                    assert_eq!(limiter.try_acquire_at(cost, time), fits, "cost {cost} at {now}");
                    if fits && cost > 0 {
                        self.admitted.push((now, cost));
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    /// Any limit up to the capacity and any window: the use so far counts under the rule of the moment.
    #[test]
    fn a_log_keeps_its_use_through_every_change(steps in steps(), limit in 0..=8_u64, window in 1..=6_u64) {
        let log = live(Log::builder(limit, nanos(window)).capacity(8).build().unwrap());
        let model = Model { width: 1, late: 0, rule: (limit, window), capacity: 8, admitted: vec![] };
        model.agrees(&log, &|rule| log.set_rules(&[rule]).unwrap(), steps);
    }

    #[test]
    fn a_log_of_single_permits_does_too(steps in steps(), limit in 0..=8_u64, window in 1..=6_u64) {
        let single = |step| match step {
            Step::Call { cost, later } => Step::Call { cost: if cost > 8 { cost } else { cost.min(1) }, later },
            rule => rule,
        };
        let log = live(Log::builder(limit, nanos(window)).capacity(8).max_cost(1).build().unwrap());
        let model = Model { width: 1, late: 0, rule: (limit, window), capacity: 8, admitted: vec![] };
        model.agrees(&log, &|rule| log.set_rules(&[rule]).unwrap(), steps.into_iter().map(single).collect());
    }

    /// Its limit alone.
    #[test]
    fn a_compact_log_does_too(steps in steps(), limit in 0..=8_u64, window in 1..=6_u64) {
        let fixed = |step| match step {
            Step::Rule { limit, .. } => Step::Rule { limit, window },
            call => call,
        };
        let log = live(Compact::builder(limit, nanos(window)).capacity(8).build().unwrap());
        let model = Model { width: 1, late: 0, rule: (limit, window), capacity: 8, admitted: vec![] };
        model.agrees(&log, &|rule| log.set_rules(&[rule]).unwrap(), steps.into_iter().map(fixed).collect());
    }

    /// Windows within the ring.
    #[test]
    fn a_counter_does_too(steps in steps(), limit in 0..=8_u64, window in 1..=6_u64, textbook in any::<bool>()) {
        let width = 1_000;
        let coverage = if textbook { Coverage::Textbook } else { Coverage::Full };
        let counter = Window::builder(limit, nanos(window * width)).buckets(window).coverage(coverage);
        let counter = live(counter.window_max(nanos(6 * width)).build().unwrap());
        let late = u64::from(!textbook);
        let model = Model { width, late, rule: (limit, window), capacity: u64::MAX, admitted: vec![] };
        let steps = steps.into_iter().map(|step| match step {
            Step::Call { cost, later } => Step::Call { cost, later: later * 300 },
            rule => rule,
        });
        model.agrees(&counter, &|rule| counter.set_rules(&[rule]).unwrap(), steps.collect());
    }

    /// Totals that fill their bits are not lost when the window grows to the whole ring.
    #[test]
    fn a_counter_near_the_end_of_its_range_loses_no_use(steps in steps(), limit in 1..=8_u64) {
        // Buckets of 8 ns leave four bits: 15, of which changes may use 7 over the whole ring.
        let counter = live(Window::builder(1, nanos(8)).buckets(1).window_max(nanos(48)).build().unwrap());
        let model = Model { width: 8, late: 1, rule: (1, 1), capacity: u64::MAX, admitted: vec![] };
        let set = |rule: Rule| if let Err(ConfigError::Limit { max, .. }) = counter.set_rules(&[rule]) {
            assert!(max <= 7, "{max}");
            counter.set_rules(&[Rule { limit: max, ..rule }]).unwrap();
        };
        let steps = steps.into_iter().map(|step| match step {
            // The largest limit there is for that window, as the counter tells.
            Step::Rule { window, .. } => Step::Rule { limit: largest(window).min(limit), window },
            call => call,
        });
        model.agrees(&counter, &set, steps.collect());
    }

    /// Shards under one rule at a time: as one history, once no shard holds more than its part.
    #[test]
    fn a_sharded_log_takes_up_to_its_new_limit(limits in vec(0..=12_u64, 1..12), shards in 1..5_usize) {
        let window = nanos(1_000_000);
        let log = live(Log::builder(5, window).capacity(12).build_sharded(shards).unwrap());
        let mut now = Nanos::ZERO;
        for limit in limits {
            log.set_rules(&[Rule::new(limit, window)]).unwrap();
            let before = log.usage_at(0, now).unwrap();
            let free = log.peek_at(0, now).unwrap().remaining;
            let taken = (0..20).filter(|_| log.try_acquire_at(1, now)).count() as u64;
            prop_assert_eq!((taken, log.usage_at(0, now)), (free, Some(before + taken)));
            prop_assert!(before + taken <= limit.max(before) || free == 0 || before + taken <= 12);
            now = now + Nanos::from_nanos(600_000);
        }
    }
}

/// The largest limit that changes may give a window of so many of six buckets with four bits of total.
fn largest(window: u64) -> u64 {
    7 / 7_u64.div_ceil(window + 1)
}

#[test]
fn f005_the_wait_after_the_limit_was_lowered_below_the_present_use() {
    let minute = 60 * SECOND;
    fn lowered<A: ByRules>(log: &Live<A>, minute: Duration) {
        assert!((0..5).all(|n| log.try_acquire_at(1, at(10 * n))));
        log.set_rules(&[Rule::new(2, minute)]).unwrap();
        let denied = log.check_at(1, at(50)).unwrap_err();
        assert_eq!((denied.retry_after(), denied.quota.remaining), (Some(at(40)), 0));
        assert!(!log.try_acquire_at(1, Nanos::from_millis(89_999)) && log.try_acquire_at(1, at(90)));
    }
    lowered(&live(Log::builder(5, minute).build().unwrap()), minute);
    lowered(&live(Log::builder(5, minute).max_cost(1).build().unwrap()), minute);
    lowered(&live(Compact::builder(5, minute).build().unwrap()), minute);
}

#[test]
fn f018_limit_changed_up_to_zero_and_up_again() {
    let minute = 60 * SECOND;
    fn changed<A: ByRules>(limiter: &Live<A>, minute: Duration) {
        let remaining = |limit, now| {
            limiter.set_rules(&[Rule::new(limit, minute)]).unwrap();
            let peek = limiter.peek_at(1, at(now));
            (peek.is_ok(), peek.map_or_else(|denied| denied.quota.remaining, |quota| quota.remaining))
        };
        assert!(limiter.try_acquire_at(30, at(0)));
        assert_eq!(remaining(150, 10), (true, 120));
        assert_eq!(remaining(0, 20), (false, 0));
        assert_eq!(limiter.check_at(1, at(20)).unwrap_err().reason, Reason::Never);
        assert!(limiter.try_acquire_at(0, at(20)) && !limiter.try_acquire_at(1, at(20)));
        assert_eq!(remaining(40, 30), (true, 10));
        assert!(limiter.try_acquire_at(10, at(30)) && !limiter.try_acquire_at(1, at(30)));
        assert_eq!(limiter.usage_at(0, at(30)), Some(40));
    }
    changed(&live(Log::builder(30, minute).capacity(150).build().unwrap()), minute);
    changed(&live(Window::builder(30, minute).build().unwrap()), minute);
    changed(&live(Fixed::builder(30, minute).build().unwrap()), minute);
    changed(&live(Compact::builder(30, minute).capacity(150).build().unwrap()), minute);
    changed(&live(TwoWindow::builder(30, minute).build().unwrap()), minute);
    changed(&live(Window::builder(30, minute).build_sharded(1).unwrap()), minute);
}

#[test]
fn f019_lowering_the_limit_in_the_middle_of_a_window() {
    fn lowered<A: ByRules>(limiter: &Live<A>) {
        let now = Nanos::from_millis(100);
        assert!((0..3).all(|_| limiter.try_acquire_at(1, now)));
        limiter.set_rules(&[Rule::new(5, SECOND)]).unwrap();
        assert_eq!((0..5).filter(|_| limiter.try_acquire_at(1, now)).count(), 2);
        // Below the use: nothing, and no wrap.
        limiter.set_rules(&[Rule::new(1, SECOND)]).unwrap();
        assert!(!limiter.try_acquire_at(1, now) && !limiter.try_acquire_at(2, now));
        assert_eq!((limiter.peek_at(0, now).unwrap().remaining, limiter.usage_at(0, now)), (0, Some(5)));
    }
    lowered(&live(Log::builder(10, SECOND).build().unwrap()));
    lowered(&live(Log::builder(10, SECOND).max_cost(1).build().unwrap()));
    lowered(&live(Window::builder(10, SECOND).build().unwrap()));
    lowered(&live(Fixed::builder(10, SECOND).build().unwrap()));
    lowered(&live(Compact::builder(10, SECOND).build().unwrap()));
    lowered(&live(TwoWindow::builder(10, SECOND).build().unwrap()));
    lowered(&live(Log::builder(10, SECOND).build_sharded(1).unwrap()));
}

/// A rule of one permit, or of none, says nothing of the costs that the rules after it allow.
#[test]
fn a_rule_of_one_permit_gives_way_to_larger_costs() {
    for least in [0, 1] {
        let log = live(Log::builder(5, SECOND).rule(least, SECOND / 100).build().unwrap());
        assert_eq!(log.check_at(3, at(1)).unwrap_err().reason, Reason::Never);
        log.set_rules(&[Rule::new(5, SECOND)]).unwrap();
        assert!(
            log.try_acquire_at(3, at(1)) && !log.try_acquire_at(3, at(1)) && log.try_acquire_at(2, at(1))
        );
    }
}

/// What is known to be full under one limit is not under a higher one.
#[test]
fn a_raise_ends_what_was_refused_until_then() {
    let log = live(Log::builder(4, SECOND).capacity(6).build_sharded(2).unwrap());
    let now = at(1);
    assert_eq!((0..9).filter(|_| log.try_acquire_at(1, now)).count(), 4);
    log.set_rules(&[Rule::new(6, SECOND)]).unwrap();
    assert_eq!((0..9).filter(|_| log.try_acquire_at(1, now)).count(), 2);
    log.set_rules(&[Rule::new(2, SECOND)]).unwrap();
    assert!(!log.try_acquire_at(1, now) && log.check_at(2, now).unwrap_err().reason == Reason::Never);
}

#[test]
fn what_a_limiter_can_not_become_is_named_and_changes_nothing() {
    let second: Duration = SECOND;
    let log = live(Log::builder(3, second).capacity(5).build().unwrap());
    let error = log.set_rules(&[Rule::new(6, second)]);
    assert_eq!(error, Err(ConfigError::Limit { got: 6, max: 5 }));
    assert_eq!(log.set_rules(&[]), Err(ConfigError::Rules { got: 0, max: 8 }));
    assert_eq!(log.set_rules(&[Rule::new(1, second); 9]), Err(ConfigError::Rules { got: 9, max: 8 }));
    assert!(matches!(log.set_rules(&[Rule::new(1, nanos(0))]), Err(ConfigError::Window { .. })));
    assert_eq!(log.rules()[..], [Rule::new(3, second)]);
    assert!(log.try_acquire_at(3, at(1)));

    let counter = live(Window::builder(3, second).buckets(10).build().unwrap());
    let ragged = ConfigError::Ragged { window: nanos(150_000_000), width: nanos(100_000_000) };
    assert_eq!(counter.set_rules(&[Rule::new(3, nanos(150_000_000))]), Err(ragged));
    let long = ConfigError::Buckets { got: 20, min: 1, max: 10 };
    assert_eq!(counter.set_rules(&[Rule::new(3, 2 * second)]), Err(long));
    assert!(matches!(counter.set_rules(&[Rule::new(1, nanos(0))]), Err(ConfigError::Window { .. })));

    let fixed = live(Fixed::builder(3, second).build().unwrap());
    let window = ConfigError::Window { got: 2 * second, min: second, max: second };
    assert_eq!(fixed.set_rules(&[Rule::new(3, 2 * second)]), Err(window));
    assert_eq!(fixed.set_rules(&[Rule::new(3, second); 2]), Err(ConfigError::Rules { got: 2, max: 1 }));
    assert!(matches!(fixed.set_rules(&[Rule::new(1 << 40, second)]), Err(ConfigError::Limit { .. })));

    let compact = live(Compact::builder(3, second).capacity(5).build().unwrap());
    assert_eq!(compact.set_rules(&[Rule::new(6, second)]), Err(ConfigError::Limit { got: 6, max: 5 }));
    assert_eq!(compact.set_rules(&[Rule::new(3, 2 * second)]), Err(window));
    let above = Compact::builder(6, second).capacity(5).build().err();
    assert_eq!(above, Some(ConfigError::Limit { got: 6, max: 5 }));

    let shards = live(Log::builder(3, second).capacity(10).build_sharded(4).unwrap());
    assert_eq!(shards.set_rules(&[Rule::new(13, second)]), Err(ConfigError::Limit { got: 13, max: 12 }));
    assert_eq!(shards.rules()[..], [Rule::new(3, second)]);

    let uneven = Live::new(Log::builder(5, second).build_sharded(2).unwrap()).err();
    assert_eq!(uneven, Some(ConfigError::Uneven { limit: 5, shards: 2 }));
    let built = |limit| Log::builder(limit, second).capacity(9).build().unwrap();
    let first = live(built(4));
    assert_eq!(Live::follow(built(5), first.handle()).err(), Some(ConfigError::Unlike));
    assert!(Live::follow(built(4), first.handle()).is_ok());
}

/// A counter's total has room for all that short windows may have let in over the longest: a larger limit is refused.
#[test]
fn a_limit_leaves_room_for_what_a_longer_window_may_find() {
    let (ms, largest) = (nanos(1_000_000), 1_048_575 / 2 / 4); // One bucket and its part: 4 times in 6 and a part.
    let counter = live(Window::builder(1, ms).buckets(1).window_max(6 * ms).build().unwrap());
    let above = ConfigError::Limit { got: largest + 1, max: largest };
    assert_eq!(counter.set_rules(&[Rule::new(largest + 1, ms)]), Err(above));
    counter.set_rules(&[Rule::new(largest, ms)]).unwrap();
    assert!([10, 12, 14, 16].iter().all(|&ms| counter.try_acquire_at(largest, Nanos::from_millis(ms))));
    counter.set_rules(&[Rule::new(largest, 6 * ms)]).unwrap();
    let now = Nanos::from_millis(16);
    assert_eq!(counter.usage_at(0, now), Some(4 * largest));
    assert!(!counter.try_acquire_at(1, now));
}

/// Threads take while the rules go to and fro: each reading is whole, and nobody exceeds the larger limit.
#[test]
fn a_change_is_seen_whole_or_not_at_all() {
    let rules = [Rule::new(5, nanos(1_000)), Rule::new(9, nanos(2_000))];
    let log = live(Log::builder(5, nanos(1_000)).capacity(9).build().unwrap());
    let (done, log) = (&AtomicBool::new(false), &log);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let (mut taken, mut seen) = (0, [0; 2]);
                    // Some rounds even if all was over before this thread began.
                    for round in 0.. {
                        if round >= 9 && done.load(Relaxed) {
                            break;
                        }
                        taken += u64::from(log.try_acquire_at(1, Nanos::from_nanos(7)));
                        let now = log.rules();
                        seen[rules.iter().position(|rule| now[..] == [*rule]).expect("one or the other")] +=
                            1;
                    }
                    (taken, seen)
                })
            })
            .collect();
        for turn in 1..20_000 {
            log.set_rules(&[rules[turn % 2]]).unwrap();
        }
        done.store(true, Relaxed);
        let results: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let taken: u64 = results.iter().map(|(taken, _)| taken).sum();
        assert!((5..=9).contains(&taken), "{taken}");
        assert!(results.iter().all(|(_, seen)| seen.iter().sum::<u64>() > 0));
    });
    log.set_rules(&[rules[1]]).unwrap();
    while log.try_acquire_at(1, Nanos::from_nanos(7)) {}
    assert_eq!(log.usage_at(0, Nanos::from_nanos(7)), Some(9));
}
