//! Counts of what a limiter answered.

use std::{
    thread,
    time::{Duration, Instant},
};

use tollgate::{
    Algorithm, AnyLayers, Counted, Decision, Denied, Gcra, Keyed, Layers, Limiter, Live, Log, Manual, Nanos,
    Quota, Reason, Rule, Rules, Window,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_answer_is_counted_once_under_its_reason() {
    let log = Log::builder(5, SECOND).rule(7, 2 * SECOND).max_cost(3).build().unwrap();
    let counted = Counted::with_lines(log, 1);
    let at = Nanos::from_millis;
    for quick in [true, false] {
        let ask = |cost, now| {
            if quick { counted.try_acquire_at(cost, now) } else { counted.check_at(cost, now).is_ok() }
        };
        let start = if quick { 10_000 } else { 20_000 };
        assert!(ask(3, at(start)) && ask(2, at(start)) && ask(0, at(start)));
        assert!(!ask(1, at(start)), "the first rule");
        assert!(ask(2, at(start + 1_000)) && !ask(1, at(start + 1_000)), "the second rule");
        assert!(!ask(6, at(start + 1_000)) && !ask(8, at(start + 1_000)), "never, by the first rule");
        assert!(!ask(4, at(start + 1_000)), "above the largest cost");
        assert!(!ask(1, Nanos::from_nanos(u64::MAX)), "no time");
        assert!(!ask(1, at(start)), "a step back");
    }
    let seen = counted.statistics();
    assert_eq!((seen.admitted, seen.permits), (2 * 4, 2 * 7));
    assert_eq!(seen.refused_by[..3], [2 * 3, 2 * 2, 0], "the step back is judged at the newest time");
    assert_eq!((seen.max_cost, seen.out_of_range, seen.clock_regressions), (2, 2, 2));
    assert_eq!(seen.refused(), 2 * 7);
    assert!(counted.peek_at(1, at(0)).is_err() && counted.usage_at(0, at(0)).is_some());
    assert_eq!(counted.statistics(), seen, "looking is not counted");
}

#[test]
fn threads_lose_no_count() {
    let counted = Counted::with_lines(Window::builder(1_000, SECOND).build_sharded(2).unwrap(), 2);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5_000).filter(|_| counted.try_acquire_at(1, Nanos::from_secs(1))).count());
        }
    });
    let seen = counted.statistics();
    assert_eq!((seen.admitted, seen.permits, seen.refused_by[0]), (1_000, 1_000, 19_000));
    assert_eq!((seen.refused(), seen.clock_regressions), (19_000, 0));
}

/// Two threads on one history meet sooner or later; one thread alone loses nothing.
#[test]
fn tries_that_were_lost_are_counted() {
    let limit = 1 << 20;
    let log = Log::builder(limit, SECOND);
    let histories: [(&str, Box<dyn Algorithm>); 4] = [
        ("gcra", Box::new(Gcra::builder(1_000_000_000, SECOND).build().unwrap())),
        ("log of single permits", Box::new(log.max_cost(1).build().unwrap())),
        ("log", Box::new(log.build().unwrap())),
        ("counter", Box::new(Window::builder(limit, SECOND).build().unwrap())),
    ];
    for (name, history) in histories {
        let counted = Counted::new(history);
        // The times go on, so that no limit is ever reached for long.
        let hammer = |from: u64| {
            (0..1_000).filter(|ms| counted.try_acquire_at(1, Nanos::from_millis(from + ms))).count()
        };
        assert_eq!((hammer(0), counted.statistics().contention_retries), (1_000, 0), "{name}");
        let start = Instant::now();
        let mut from = 0;
        while counted.statistics().contention_retries == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "{name}: they never met");
            from += 1_000;
            thread::scope(|scope| {
                scope.spawn(|| hammer(from));
                scope.spawn(|| hammer(from));
            });
        }
    }
}

#[test]
fn keys_are_counted_together() {
    let log = Log::builder(2, SECOND).max_cost(1).config().unwrap();
    let users = Counted::new(Keyed::<str>::builder(log, 100).build().unwrap());
    let now = Nanos::from_secs(1);
    for user in ["alice", "bob"] {
        assert!((0..2).all(|_| users.try_acquire_at(user, 1, now)) && users.check_at(user, 1, now).is_err());
    }
    assert!(!users.try_acquire_at("alice", 1, now) && !users.try_acquire_at("alice", 2, now));
    let seen = users.statistics();
    assert_eq!((seen.admitted, seen.refused_by[0], seen.max_cost, seen.refused()), (4, 3, 1, 4));
    assert_eq!((users.algorithm().len(), users.algorithm().evicted()), (2, 0));
    // A clock may be joined with it, and looking is not counted.
    let users = Limiter::new(users, Manual::at(now));
    assert!(!users.try_acquire("alice") && users.check("bob").is_err() && users.peek("carol", 1).is_ok());
    assert_eq!((users.usage("alice", 0), users.algorithm().statistics().refused()), (Some(2), 6));
    let (users, _) = users.into_parts();
    // The hand goes round in ordinary calls: both leave.
    for second in 3..300 {
        assert!(users.try_acquire_at("carol", 1, Nanos::from_secs(second)));
    }
    assert!(users.algorithm().evicted() >= 2 && users.algorithm().len() <= 1);
}

/// As one: what all took, and which layer refused, whoever its user is and however it was asked.
#[test]
fn layers_are_counted_by_layer() {
    let global = Window::builder(4, SECOND).build().unwrap();
    let users = Keyed::<str>::builder(Log::builder(2, SECOND).config().unwrap(), 100).build().unwrap();
    for quick in [true, false] {
        let counted = Counted::new(AnyLayers);
        let now = Nanos::from_secs(if quick { 10 } else { 20 });
        let ask = |user: &str, cost, now| {
            let user = users.of(user);
            let layers = Layers::new([&global, &user]);
            if quick {
                counted.try_acquire_at(&layers, cost, now)
            } else {
                counted.check_at(&layers, cost, now).1.is_ok()
            }
        };
        assert!(ask("alice", 2, now) && !ask("alice", 1, now) && ask("bob", 2, now) && !ask("carol", 1, now));
        assert!(!ask("dave", 3, now) && !ask("dave", 1, Nanos::from_nanos(u64::MAX)));
        let seen = counted.statistics();
        assert_eq!((seen.admitted, seen.permits, &seen.refused_by[..3]), (2, 4, &[1, 2, 0][..]));
        assert_eq!((seen.out_of_range, seen.refused()), (1, 4));
    }
    let layers = Layers::new([&global]);
    let (counted, now) = (Counted::new(AnyLayers), Nanos::from_secs(30));
    let same = |(layer, decision): (usize, Decision)| (layer, decision.map(|quota| quota.rule));
    assert_eq!(same(counted.check_at(&layers, 4, now)), (0, Ok(0)));
}

/// Where a thread was admitted last in a limiter with shards is not forgotten for being counted.
#[test]
fn a_counted_limiter_with_shards_begins_where_it_was_admitted_last() {
    let counted = Counted::new(Log::builder(4, 10 * SECOND).build_sharded(2).unwrap());
    let at = Nanos::from_secs;
    assert!((0..2).all(|_| counted.try_acquire_at(1, at(0))), "all that is at home");
    assert!(counted.try_acquire_at(1, at(5)) && counted.try_acquire_at(1, at(10)), "of the other, twice");
    assert!(counted.try_acquire_at(2, at(10)), "so that at home two are free");
}

#[test]
fn counts_outlive_a_reset_and_a_change_of_rules() {
    let mut counted = Counted::new(Live::new(Log::builder(1, SECOND).capacity(3).build().unwrap()).unwrap());
    let now = Nanos::from_secs(1);
    assert!(counted.try_acquire_at(1, now) && !counted.try_acquire_at(1, now));
    let both = [Rule::new(3, SECOND), Rule::new(2, 2 * SECOND)];
    counted.algorithm().set_rules(&both).unwrap();
    assert!(counted.try_acquire_at(1, now) && !counted.try_acquire_at(1, now));
    let seen = counted.statistics();
    assert_eq!((seen.admitted, &seen.refused_by[..2]), (2, &[1, 1][..]));
    counted.reset();
    assert!(counted.statistics() == seen && counted.try_acquire_at(1, now));
    assert!(counted.state_bytes() >= 16 * 128);
}

/// Memory of one limiter becomes that of another with fewer lines, where the same thread counts.
#[test]
fn a_limiter_where_a_larger_one_lay_counts_on_lines_of_its_own() {
    for _ in 0..32 {
        let count = || {
            for lines in [2_000, 2_048, 1_999, 1_100, 1_024, 1_900, 1_030] {
                let counted = Counted::with_lines(Log::builder(2, SECOND).build().unwrap(), lines);
                assert!(counted.try_acquire_at(1, Nanos::ZERO));
                assert_eq!(counted.statistics().admitted, 1);
            }
        };
        thread::scope(|scope| scope.spawn(count).join().unwrap());
    }
}

/// An algorithm of the caller's that names a rule beyond all that are counted.
struct Stranger;

impl Algorithm for Stranger {
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        self.peek_at(cost, now).is_ok()
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        self.peek_at(cost, now)
    }

    fn peek_at(&self, _cost: u64, now: Nanos) -> Decision {
        let mut quota = Quota::new(1, now);
        quota.rule = 40;
        Err(Denied::new(Reason::Never, quota))
    }

    fn usage_at(&self, _rule: usize, _now: Nanos) -> Option<u64> {
        None
    }

    fn rules(&self) -> Rules {
        Rules::of(&[Rule::new(1, SECOND); 41])
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn reset(&mut self) {}
}

#[test]
fn refusals_by_a_rule_beyond_all_are_counted_in_the_last_place() {
    let counted = Counted::new(Stranger);
    assert!(!counted.try_acquire_at(1, Nanos::ZERO) && counted.check_at(1, Nanos::ZERO).is_err());
    let seen = counted.statistics();
    assert_eq!((seen.refused_by[7], seen.refused()), (2, 2));
}
