//! Limiters by key: each as its algorithm says, whichever keys come and go.

use std::{collections::HashMap, sync::Mutex, thread, time::Duration};

use proptest::prelude::*;
use tollgate::{
    Algorithm, Config, Gcra, Log, LogConfig, Nanos, Reason, WhenFull, Window,
    shared::{Region, RegionBuilder, Time},
};

const WINDOW: Duration = Duration::from_nanos(20);
const SLOTS: u64 = 14;

fn log(limit: u64) -> LogConfig {
    Log::builder(limit, WINDOW).config().unwrap()
}

/// One bucket, and calls that pass the time.
fn one_bucket<C: Config>(config: C) -> RegionBuilder<C> {
    Region::builder(config).keys(SLOTS / 2).time(Time::Caller).when_full(WhenFull::Refuse)
}

fn key(n: u64) -> [u8; 8] {
    n.to_le_bytes()
}

fn nanos(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

#[test]
fn as_many_keys_as_there_are_places_and_then_idle_ones_leave() {
    let (region, _file) = one_bucket(log(2)).memfd("keys").unwrap();
    let keys = region.keys().unwrap();
    assert_eq!((keys.capacity(), keys.len()), (SLOTS, 0));
    for n in 0..SLOTS {
        assert!(keys.try_acquire_at(&key(n), 1, nanos(100 + n)));
    }
    assert_eq!(keys.len(), SLOTS);

    // The first is in use until 120.
    let denied = keys.check_at(&key(99), 1, nanos(115)).unwrap_err();
    assert_eq!(denied.reason, Reason::Full { retry_after: nanos(5) });
    assert_eq!((denied.quota.remaining, denied.quota.limit), (0, 2));
    assert_eq!(keys.peek_at(&key(99), 1, nanos(115)), Err(denied));
    assert!(!keys.try_acquire_at(&key(99), 1, nanos(119)));
    assert!(keys.try_acquire_at(&key(0), 1, nanos(119)), "who has a place keeps it");
    assert!(!keys.try_acquire_at(&key(99), 1, nanos(120)), "now the second is the first to leave");
    assert!(keys.try_acquire_at(&key(99), 2, nanos(121)));
    assert_eq!(keys.len(), SLOTS);
    assert_eq!(keys.usage_at(&key(99), 0, nanos(121)), Some(2));
    assert_eq!(keys.usage_at(&key(1), 0, nanos(121)), Some(0), "it has left");
    assert_eq!(keys.usage_at(&key(0), 0, nanos(121)), Some(1));
}

#[test]
fn keys_without_room_share_one_limiter() {
    let (region, _file) = one_bucket(log(2)).when_full(WhenFull::Share).memfd("share").unwrap();
    let keys = region.keys().unwrap();
    for n in 0..SLOTS {
        assert!(keys.try_acquire_at(&key(n), 2, nanos(100)));
    }
    assert!(keys.try_acquire_at(&key(50), 1, nanos(100)));
    assert!(keys.try_acquire_at(&key(51), 1, nanos(100)));
    assert!(!keys.try_acquire_at(&key(52), 1, nanos(100)));
    assert!(keys.peek_at(&key(50), 1, nanos(100)).is_err());
    assert_eq!(keys.peek_at(&key(50), 1, nanos(120)).unwrap().remaining, 2);
}

#[test]
fn what_can_take_nothing_makes_no_key() {
    let (region, _file) = one_bucket(log(2)).memfd("nothing").unwrap();
    let keys = region.keys().unwrap();
    assert!(keys.try_acquire_at(b"a", 0, nanos(5)));
    assert!(!keys.try_acquire_at(b"a", 3, nanos(5)));
    assert_eq!(keys.check_at(b"a", 3, nanos(5)).unwrap_err().reason, Reason::Never);
    assert_eq!(keys.check_at(b"a", 1, nanos(1 << 62)).unwrap_err().reason, Reason::TimeOutOfRange);
    assert_eq!(keys.peek_at(b"a", 1, nanos(5)).unwrap().remaining, 2);
    assert_eq!(keys.usage_at(b"a", 0, nanos(5)), Some(0));
    assert!(keys.is_empty());
    assert!(Region::builder(log(2)).limiters(1).memfd("none").unwrap().0.keys().is_none());
}

/// The key of an older call left at 140. Judged at its own time, 121, it would be admitted beside what it took at 119.
#[test]
fn a_late_caller_is_judged_when_a_place_was_last_taken_over() {
    let (region, _file) = one_bucket(log(1)).memfd("late").unwrap();
    let keys = region.keys().unwrap();
    for n in 0..SLOTS {
        assert!(keys.try_acquire_at(&key(n), 1, nanos(119)));
    }
    for n in 0..SLOTS {
        assert!(keys.try_acquire_at(&key(100 + n), 1, nanos(140)), "all places change hands");
    }
    let denied = keys.check_at(&key(0), 1, nanos(121)).unwrap_err();
    assert_eq!(denied.reason, Reason::Full { retry_after: nanos(20) });
    let quota = keys.check_at(&key(0), 1, nanos(160)).unwrap();
    assert_eq!(quota.at, nanos(160));
    let quota = keys.check_at(&key(1), 1, nanos(121)).unwrap();
    assert_eq!(quota.at, nanos(160), "not 121, at which the admission of 119 was in view");
}

/// With a share of places free, how often a new key finds its bucket full: as the documentation says.
#[test]
fn buckets_are_seldom_full() {
    let config = Gcra::builder(1, Duration::from_secs(1)).config().unwrap();
    let room = 20_000;
    let builder = Region::builder(config).keys(room).time(Time::Caller).when_full(WhenFull::Refuse);
    let (region, _file) = builder.memfd("room").unwrap();
    let keys = region.keys().unwrap();
    assert!(keys.capacity() >= 2 * room);
    let mut full = [0_u64; 2];
    for n in 0..room {
        let admitted = keys.try_acquire_at(&key(n), 1, nanos(5));
        full[usize::from(n >= room / 2)] += u64::from(!admitted);
    }
    let all = full[0] + full[1];
    println!("of {room} keys {all} found no room, {} of the first half", full[0]);
    assert!(full[0] <= room / 2 / 1_000 && all <= room / 200, "{full:?}");
    assert_eq!(keys.len(), room - all);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a map of limiters that never forgets: the same answers, but for keys that find no room.
    #[test]
    fn keys_answer_as_limiters_of_their_own(
        calls in proptest::collection::vec((0..20_u64, 0..4_u64, 0..6_u64, 0..5_u8), 1..300),
        kind in 0..4,
    ) {
        fn agree<C: Config>(
            config: C,
            calls: &[(u64, u64, u64, u8)],
            make: impl Fn() -> Box<dyn Algorithm>,
        ) -> Result<(), TestCaseError> {
            let (region, _file) = one_bucket(config).memfd("agree").unwrap();
            let keys = region.keys().unwrap();
            let mut expected: HashMap<u64, Box<dyn Algorithm>> = HashMap::new();
            let mut clock = 100;
            for &(n, cost, step, kind) in calls {
                clock += step;
                let (name, now) = (key(n), nanos(clock));
                let own = expected.entry(n).or_insert_with(&make);
                let peeked = keys.peek_at(&name, cost, now);
                if peeked.is_err_and(|denied| matches!(denied.reason, Reason::Full { .. })) {
                    prop_assert!(!keys.try_acquire_at(&name, cost, now));
                    prop_assert_eq!(own.usage_at(0, now), Some(0), "only new keys find no room");
                    continue;
                }
                prop_assert_eq!(peeked, own.peek_at(cost, now));
                match kind {
                    0 => prop_assert_eq!(keys.check_at(&name, cost, now), own.check_at(cost, now)),
                    1 => prop_assert_eq!(keys.usage_at(&name, 0, now), own.usage_at(0, now)),
                    _ => prop_assert_eq!(keys.try_acquire_at(&name, cost, now), own.try_acquire_at(cost, now)),
                }
            }
            Ok(())
        }
        let (log, window) = (Log::builder(3, WINDOW), Window::builder(3, WINDOW).buckets(5));
        match kind {
            0 => agree(log.config().unwrap(), &calls, || Box::new(log.build().unwrap()))?,
            1 => {
                let log = log.max_cost(1);
                agree(log.config().unwrap(), &calls, || Box::new(log.build().unwrap()))?;
            }
            2 => agree(window.config().unwrap(), &calls, || Box::new(window.build().unwrap()))?,
            _ => {
                let gcra = Gcra::builder(3, WINDOW);
                agree(gcra.config().unwrap(), &calls, || Box::new(gcra.build().unwrap()))?;
            }
        }
    }
}

/// More keys than places, all the time, from several threads: no key over its limit in any window of recorded times.
#[test]
fn no_key_is_over_while_places_change_hands() {
    const KEYS: u64 = 24;
    let (region, _file) = one_bucket(log(2)).memfd("storm").unwrap();
    let admitted = Mutex::new(vec![Vec::new(); KEYS as usize]);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (region, admitted) = (&region, &admitted);
            scope.spawn(move || {
                let keys = region.keys().unwrap();
                let mut own = Vec::new();
                for call in 0..60_000_u64 {
                    let n = (call.wrapping_mul(0x9e37_79b9) >> 7 ^ thread) % KEYS;
                    // Threads a few steps ahead of others.
                    let now = nanos(call / 8 + 7 * thread);
                    if let Ok(quota) = keys.check_at(&key(n), 1, now) {
                        own.push((n, quota.at.as_nanos()));
                    }
                }
                let mut admitted = admitted.lock().unwrap();
                own.into_iter().for_each(|(n, at)| admitted[n as usize].push(at));
            });
        }
    });
    let mut all = 0;
    for (n, mut times) in admitted.into_inner().unwrap().into_iter().enumerate() {
        times.sort_unstable();
        all += times.len();
        for three in times.windows(3) {
            assert!(three[2] - three[0] >= 20, "key {n}: {three:?}");
        }
    }
    assert!(all > 5_000, "{all}: places do change hands");
}
