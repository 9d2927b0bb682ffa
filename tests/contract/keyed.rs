//! Many limiters by key against one naive model for each key that ever came: no model is ever forgotten.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use tollgate::{
    Class, Denied, Gcra, Keyed, Layers, Limiter, Log, Manual, Nanos, Reason, Rule, WhenFull, Window,
};

use crate::{
    oracle::{Answer, Naive, Oracle, Verdict},
    threads::rounds,
};

/// Keys up to here are limited by a log, those above by a counter.
const LOGS: u64 = 4;
const ROOM: [u64; 2] = [3, 2];

fn rule() -> Rule {
    Rule::new(2, Duration::from_micros(12))
}

fn class(key: &u64) -> usize {
    usize::from(*key >= LOGS)
}

fn limiter() -> Keyed<u64> {
    let (limit, window) = (rule().limit, rule().window.into());
    let counter = Window::builder(limit, window).buckets(4).config().unwrap();
    Keyed::builder(Log::builder(limit, window).config().unwrap(), ROOM[0])
        .class(counter, ROOM[1])
        .choose(class)
        .when_full(WhenFull::Refuse)
        .build()
        .unwrap()
}

fn model(key: u64) -> Naive {
    let rules = [rule()];
    if key < LOGS { Naive::log(&rules) } else { Naive::window(&rules, 4, 1, Duration::ZERO) }
}

fn is_full(decision: &Result<tollgate::Quota, Denied>) -> bool {
    matches!(decision, Err(Denied { reason: Reason::Full { .. }, .. }))
}

proptest! {
    /// Time does not step back. Keys leave, and nobody can tell: but by a refusal of a new key when there is no room.
    #[test]
    fn keyed_agrees(calls in vec((0..8_u64, 0..4_u64, 0..5_u64, any::<bool>()), 1..120)) {
        let (limiter, mut models, mut now) = (limiter(), HashMap::new(), 100_000);
        for (key, cost, forward, quick) in calls {
            now += forward * 1_500;
            let at = Nanos::from_nanos(now);
            let in_use = models
                .iter()
                .filter(|(other, model): &(&u64, &Naive)| {
                    class(other) == class(&key) && model.usage(0, now) > Some(0)
                })
                .count() as u64;
            let model = models.entry(key).or_insert_with(|| model(key));
            let is_new = model.usage(0, now) == Some(0);
            let refused_for_room = is_new && in_use == ROOM[class(&key)] && (1..=2).contains(&cost);

            let peeked = limiter.peek_at(&key, cost, at);
            if refused_for_room {
                prop_assert!(is_full(&peeked), "{peeked:?} with {in_use} in use");
                prop_assert!(peeked.unwrap_err().retry_after() > Some(Nanos::ZERO));
                prop_assert!(!limiter.try_acquire_at(&key, cost, at));
                prop_assert!(is_full(&limiter.check_at(&key, cost, at)));
            } else {
                prop_assert_eq!(Answer::from(peeked), model.peek(cost, now));
                let expected = model.check(cost, now);
                if quick {
                    let admitted = expected.verdict == Verdict::Admitted;
                    prop_assert_eq!(limiter.try_acquire_at(&key, cost, at), admitted);
                } else {
                    prop_assert_eq!(Answer::from(limiter.check_at(&key, cost, at)), expected);
                }
            }
            prop_assert_eq!(limiter.usage_at(&key, 0, at), model.usage(0, now));
            prop_assert!(limiter.len() as u64 <= limiter.capacity());
        }
    }

    /// Time steps back and forth, keys leave: still no window of recorded times holds more than the limit.
    #[test]
    fn late_callers_never_go_over(calls in vec((0..6_u64, 0..40_u64), 1..200)) {
        let (limiter, mut admitted) = (limiter(), HashMap::<u64, Vec<u64>>::new());
        for (place, (key, back)) in calls.into_iter().enumerate() {
            let now = Nanos::from_micros(100 + place as u64 - back.min(20));
            if let Ok(quota) = limiter.check_at(&key, 1, now) {
                admitted.entry(key).or_default().push(quota.at.as_nanos());
            }
        }
        let window = rule().window.as_nanos();
        for times in admitted.values() {
            for &end in times {
                let held = times.iter().filter(|&&t| t <= end && t + window > end).count();
                prop_assert!(held <= 2, "{held} in the window that ends at {end}: {times:?}");
            }
        }
    }
}

#[test]
fn keys_without_room_share_one_limiter() {
    let bucket = Gcra::builder(2, Duration::from_secs(10)).config().unwrap();
    let limiter = Keyed::<u64>::builder(bucket, 3).build().unwrap();
    let now = Nanos::from_secs(100);
    assert!((0..3).all(|key| limiter.try_acquire_at(&key, 1, now)));
    // Three strangers have two permits between them; who was there before is not touched.
    let strangers = [3, 4, 5].map(|key| limiter.check_at(&key, 1, now).is_ok());
    assert_eq!((strangers, limiter.len()), ([true, true, false], 3));
    assert!(limiter.peek_at(&6, 1, now).is_err());
    assert!((0..3).all(|key| limiter.try_acquire_at(&key, 1, now)));
    // A stranger who gets a place has a whole quota there: once more, as stated.
    let later = now + Nanos::from_secs(10);
    assert!(limiter.try_acquire_at(&3, 2, later) && !limiter.try_acquire_at(&3, 1, later));
    assert_eq!((limiter.usage_at(&3, 0, later), limiter.try_acquire_at(&7, 2, later)), (Some(2), true));
}

#[test]
fn looking_makes_no_key_and_a_refusal_neither() {
    let limiter = limiter();
    let now = Nanos::from_secs(1);
    assert!(limiter.peek_at(&1, 1, now).is_ok() && limiter.usage_at(&1, 0, now) == Some(0));
    assert_eq!(limiter.usage_at(&1, 1, now), None);
    assert!(limiter.try_acquire_at(&1, 0, now) && limiter.check_at(&1, 3, now).is_err());
    let beyond = Nanos::MAX + Nanos::from_nanos(1);
    assert_eq!(limiter.check_at(&1, 1, beyond).unwrap_err().reason, Reason::TimeOutOfRange);
    assert!(!limiter.try_acquire_at(&1, 1, beyond) && !limiter.remove(&1));
    assert!(limiter.is_empty() && limiter.busiest_at(9, now).is_empty());
}

#[test]
fn a_key_is_forgiven_and_the_busiest_are_told() {
    let log = Log::builder(9, Duration::from_secs(10)).config().unwrap();
    let limiter = Limiter::new(Keyed::<str>::builder(log, 1_000).build().unwrap(), Manual::new());
    for (key, uses) in [("a", 3), ("b", 9), ("c", 1), ("d", 5)] {
        assert!((0..uses).all(|_| limiter.try_acquire(key)));
    }
    let (keyed, now) = (limiter.algorithm(), Nanos::ZERO);
    let busiest = |n| keyed.busiest_at(n, now);
    assert_eq!(busiest(2), [("b".to_owned(), 9), ("d".to_owned(), 5)]);
    assert_eq!((busiest(0).len(), busiest(9).len()), (0, 4));
    assert!(limiter.check("b").is_err() && keyed.remove("b") && !keyed.remove("b"));
    assert_eq!(limiter.check_n("b", 9).map(|quota| quota.remaining), Ok(0));
    keyed.retain_at(now, |key, used| key == "c" || used >= 9);
    assert_eq!((keyed.len(), limiter.usage("b", 0), limiter.usage("a", 0)), (2, Some(9), Some(0)));
    assert!(limiter.peek("a", 9).is_ok());
}

/// Keys whose number of class is not there are of the first; a class without limits keeps nothing.
#[test]
fn classes() {
    let log = |limit| Log::builder(limit, Duration::from_secs(1)).config().unwrap();
    let limiter = Keyed::<u64>::builder(log(1), 10)
        .class(log(3), 10)
        .class(Class::unlimited(), 0)
        .choose(|key| *key as usize)
        .build()
        .unwrap();
    let now = Nanos::from_secs(1);
    let admitted = |key| (0..9).filter(|_| limiter.try_acquire_at(&key, 1, now)).count();
    assert_eq!([0, 1, 2, 3].map(admitted), [1, 3, 9, 1]);
    assert_eq!((limiter.usage_at(&2, 0, now), limiter.len()), (None, 3));
    assert!(limiter.check_at(&2, u64::MAX, now).is_ok() && limiter.peek_at(&2, 1, now).is_ok());
    let beyond = Nanos::MAX + Nanos::from_nanos(1);
    assert_eq!(limiter.check_at(&2, 1, beyond).unwrap_err().reason, Reason::TimeOutOfRange);
    let error = Keyed::<u64>::builder(log(1), 0).build().unwrap_err();
    assert_eq!(error.to_string(), "room for 0 keys is below 1");
}

/// One key's limiter is a layer.
#[test]
fn keyed_layers() {
    let second = Duration::from_secs(1);
    let global = Window::builder(6, second).buckets(20).build().unwrap();
    let tenants = Keyed::<str>::builder(Log::builder(4, second).config().unwrap(), 100).build().unwrap();
    let users = Keyed::<u64>::builder(Log::builder(2, second).config().unwrap(), 100).build().unwrap();
    let now = Nanos::from_secs(1);
    let call = |tenant: &str, user: u64| {
        let (tenant, user) = (tenants.of(tenant), users.of(&user));
        let (layer, decision) = Layers::new([&global, &tenant, &user]).check_at(1, now);
        decision.map_err(|_| layer).map(|quota| (layer, quota.remaining))
    };
    assert_eq!([call("a", 1), call("a", 1), call("a", 1)], [Ok((2, 1)), Ok((2, 0)), Err(2)]);
    assert_eq!([call("a", 2), call("a", 2), call("a", 3)], [Ok((1, 1)), Ok((1, 0)), Err(1)]);
    assert_eq!([call("b", 4), call("b", 5), call("b", 6)], [Ok((0, 1)), Ok((0, 0)), Err(0)]);
    assert_eq!((users.usage_at(&3, 0, now), users.usage_at(&6, 0, now), users.len()), (Some(0), Some(0), 4));
}

/// Eight threads, three keys to a place, a clock that creeps and of which each thread is a little late: no window of the
/// recorded times of any key holds more than the limit, and the limiter is at work.
#[test]
fn soak_of_eight_threads() {
    let (limit, window, room) = (2, Duration::from_micros(40), 8);
    let log = Log::builder(limit as u64, window).max_cost(1).config().unwrap();
    rounds(|seed| {
        let limiter = Keyed::<u64>::builder(log, room).when_full(WhenFull::Refuse).build().unwrap();
        let clock = AtomicU64::new(1_000_000);
        let run = &|thread: u64| {
            let mut admitted = Vec::new();
            for n in 0..5_000 {
                let now = clock.fetch_add(100, Relaxed) - (n * 37 + seed) % 7 * 1_000;
                let key = (n * n + 13 * thread + seed) % (3 * room);
                if let Ok(quota) = limiter.check_at(&key, 1, Nanos::from_nanos(now)) {
                    admitted.push((key, quota.at.as_nanos()));
                }
            }
            admitted
        };
        let mut admitted: Vec<_> = thread::scope(|scope| {
            let hands: Vec<_> = (0..8).map(|thread| scope.spawn(move || run(thread))).collect();
            hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
        });
        admitted.sort_unstable();
        assert!(admitted.len() > 1_000, "only {} were admitted", admitted.len());
        for three in admitted.windows(limit + 1) {
            let ((key, first), (other, last)) = (three[0], three[limit]);
            assert!(key != other || last - first >= window.as_nanos() as u64, "key {key}: {three:?}");
        }
    });
}

thread_local! {
    /// After so many calls of its key's own code a thread unwinds; 0 is never.
    static FUSE: Cell<u64> = const { Cell::new(0) };
}

/// A key whose code may fail at any time, and whose hashes collide.
#[derive(Debug)]
struct Bomb(u64, Arc<()>);

fn burn() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    if left == 1 {
        // As a panic, but without a word.
        resume_unwind(Box::new(()));
    }
}

impl Clone for Bomb {
    fn clone(&self) -> Self {
        burn();
        Self(self.0, self.1.clone())
    }
}

impl PartialEq for Bomb {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.0 == other.0
    }
}

impl Eq for Bomb {}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        (self.0 % 5).hash(state);
    }
}

/// Wherever the key's own code, or `keep`, unwinds out of a call: no lock is kept, and no key is lost, or there twice.
#[test]
fn keys_that_panic_leave_the_limiter_whole() {
    let (window, room, alive) = (Duration::from_nanos(50), 9, Arc::new(()));
    let classes: [Class; 2] =
        [Gcra::builder(2, window).config().unwrap().into(), Log::builder(2, window).config().unwrap().into()];
    for class in classes {
        let limiter = Keyed::<Bomb>::builder(class, room).build().unwrap();
        let mut failed = 0;
        for n in 0..20_000_u64 {
            let (now, key) = (Nanos::from_nanos(n * 7), Bomb(n * n % 31, alive.clone()));
            FUSE.set(n / 3 % 12);
            let call = AssertUnwindSafe(|| match n % 7 {
                0 => drop(limiter.peek_at(&key, 1, now)),
                1 => drop(limiter.remove(&key)),
                2 => limiter.retain_at(now, |key, used| {
                    burn();
                    key.0 % 2 == 0 || used < 2
                }),
                3 => drop(limiter.busiest_at(2, now)),
                _ => drop(limiter.check_at(&key, 1, now)),
            });
            failed += u64::from(catch_unwind(call).is_err());
            FUSE.set(0);
        }
        assert!(failed > 1_000, "{failed}");
        let mut keys = HashSet::new();
        limiter.retain_at(Nanos::ZERO, |key, _| keys.insert(key.0));
        assert_eq!((limiter.len(), Arc::strong_count(&alive)), (keys.len(), keys.len() + 1));
        assert!(limiter.len() > 1 && limiter.len() as u64 <= limiter.capacity());
    }
}
