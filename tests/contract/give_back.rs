//! Permits given back: nobody gets more for it than the documentation says.

use std::{collections::HashMap, time::Duration};

use proptest::{collection::vec, prelude::*, sample::Index};
use tollgate::{Algorithm, Gcra, Lapsed, Nanos, Permit, Window};

use crate::threads::{from_a_barrier, sum};

/// A step of time, a cost, and perhaps a permit got before that is given back first.
type Step = (u64, u64, Option<Index>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((0..4_u64, 0..4_u64, prop::option::of(any::<Index>())), 1..80)
}

fn give_back<R>(permits: &mut Vec<R>, which: Option<Index>) -> Option<R> {
    which.filter(|_| !permits.is_empty()).map(|which| permits.remove(which.index(permits.len())))
}

proptest! {
    /// The counter decides as one to which they never came.
    #[test]
    fn the_counter_forgets_what_is_given_back(steps in steps()) {
        let build = || Window::builder(5, Duration::from_micros(8)).buckets(4).build().unwrap();
        let (counter, mut now, mut newest) = (build(), 100_000, 0);
        let mut permits: Vec<(Permit, usize)> = Vec::new();
        // What was admitted and not given back: time and cost.
        let mut kept: HashMap<usize, (u64, u64)> = HashMap::new();
        for (place, (forward, cost, which)) in steps.into_iter().enumerate() {
            now += forward * 700;
            if let Some((permit, of)) = give_back(&mut permits, which) {
                let bucket = kept.get(&of).map(|kept| kept.0 / 2_000);
                let cost = permit.cost();
                match counter.give_back(permit) {
                    Ok(()) => drop(kept.remove(&of)),
                    // Only what others were admitted after, in a later bucket, is past.
                    Err(Lapsed::Passed) => prop_assert!(cost > 0 && bucket < Some(newest)),
                    Err(other) => prop_assert!(false, "{:?}", other),
                }
            }
            let at = Nanos::from_nanos(now);
            let fresh = build();
            let mut all: Vec<_> = kept.values().copied().collect();
            all.sort_unstable();
            for (then, cost) in all {
                prop_assert!(fresh.try_acquire_at(cost, Nanos::from_nanos(then)));
            }
            prop_assert_eq!(counter.usage_at(0, at), fresh.usage_at(0, at));
            match (counter.acquire_at(cost, at), fresh.check_at(cost, at)) {
                (Ok(permit), Ok(_)) => {
                    if cost > 0 {
                        kept.insert(place, (now, cost));
                        newest = now / 2_000;
                    }
                    permits.push((permit, place));
                }
                (Err(denied), Err(expected)) => prop_assert_eq!(denied.reason, expected.reason),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    /// In any span: what was admitted less what was given back in it, at most the burst and the rate.
    #[test]
    fn given_back_within_the_bound(steps in steps()) {
        let (burst, interval) = (3, 1_000);
        let bucket = Gcra::builder(1, Duration::from_nanos(interval)).burst(burst).build().unwrap();
        let (mut now, mut permits, mut moves) = (100_000, Vec::new(), Vec::new());
        for (forward, cost, which) in steps {
            now += forward * 300;
            let at = Nanos::from_nanos(now);
            let left = |at| bucket.check_at(0, at).map_or(0, |quota| quota.remaining);
            if let Some(permit) = give_back(&mut permits, which) {
                let (before, cost): (u64, u64) = (left(at), Permit::cost(&permit));
                let given = bucket.give_back(permit, at);
                let gained = left(at) - before;
                match given {
                    Ok(()) => prop_assert!(gained == cost || before + gained == burst, "{} for {}", gained, cost),
                    Err(why) => prop_assert_eq!((why, gained), (Lapsed::Passed, 0)),
                }
                if given.is_ok() {
                    moves.push((now, -i128::from(cost)));
                }
            }
            if let Ok(permit) = bucket.acquire_at(cost, at) {
                moves.push((now, cost.into()));
                permits.push(permit);
            }
        }
        for first in 0..moves.len() {
            let mut net = 0;
            for &(time, change) in &moves[first..] {
                net += change;
                let bound = i128::from(burst) + i128::from((time - moves[first].0) / interval);
                prop_assert!(net <= bound, "{} above {}: {:?}", net, bound, moves);
            }
        }
    }
}

/// Four threads take and give back all the time: in the end exactly what was kept is charged.
#[test]
fn threads_that_give_back_lose_nothing() {
    let rounds = 2_000;
    let second = Duration::from_secs(1);
    let counters: Vec<_> = (0..rounds).map(|_| Window::builder(2, second).build().unwrap()).collect();
    let now = Nanos::from_secs(5);
    let kept = from_a_barrier(4, rounds, |thread, round| match counters[round].acquire_at(1, now) {
        Ok(permit) if thread % 2 == 0 => u64::from(counters[round].give_back(permit).is_err()),
        Ok(_) => 1,
        Err(_) => 0,
    });
    for (counter, kept) in counters.iter().zip(sum(&kept)) {
        assert_eq!(counter.usage_at(0, now), Some(kept));
        assert!(kept <= 2);
    }
}

/// A permit of one limiter does no more harm to another than its cost.
#[test]
fn a_strangers_permit_takes_back_no_more_than_there_is() {
    let second = Duration::from_secs(1);
    let build = |limit| Window::builder(limit, second).buckets(1).build().unwrap();
    let (one, other, now) = (build(9), build(3), Nanos::from_secs(5));
    let permit = one.acquire_at(5, now).unwrap();
    assert!(other.try_acquire_at(2, now));
    assert_eq!((other.give_back(permit), other.usage_at(0, now)), (Err(Lapsed::Passed), Some(2)));
}

/// What had drained before stays drained: a caller with an older time finds no more room for it than at the time of the refund.
#[test]
fn nothing_is_given_back_to_the_past() {
    let bucket = Gcra::builder(1, Duration::from_secs(1)).burst(5).build().unwrap();
    let at = Nanos::from_secs;
    let permit = bucket.acquire_at(2, at(10)).unwrap();
    assert_eq!(bucket.give_back(permit, at(11)), Ok(()));
    assert_eq!([10, 11].map(|t| bucket.usage_at(0, at(t))), [Some(1), Some(0)]);
}

/// What was taken before a reset is no longer charged: to take it back would take from those who came after it.
#[test]
fn a_reset_voids_what_was_taken_before() {
    let (second, now) = (Duration::from_secs(1), Nanos::from_secs(5));
    let mut counter = Window::builder(5, second).build().unwrap();
    let mut bucket = Gcra::builder(5, second).build().unwrap();
    let (one, two) = (counter.acquire_at(3, now).unwrap(), bucket.acquire_at(3, now).unwrap());
    counter.reset();
    bucket.reset();
    assert!(counter.try_acquire_at(5, now) && bucket.try_acquire_at(5, now));
    assert_eq!(
        (counter.give_back(one), bucket.give_back(two, now)),
        (Err(Lapsed::Passed), Err(Lapsed::Passed))
    );
    assert_eq!((counter.usage_at(0, now), bucket.usage_at(0, now)), (Some(5), Some(5)));
}
