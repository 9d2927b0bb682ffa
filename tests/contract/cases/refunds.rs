//! F070, F071: what is given back. The pacing queue holds F071's reservations.

use std::time::Duration;

use tollgate::{Algorithm, Gcra, Lapsed, Log, Nanos, TokenBucket, Window};

/// A second refund of one permit does not compile: it is given back by value.
#[test]
fn f070_a_refund_larger_than_what_was_taken() {
    let (second, now) = (Duration::from_secs(1), Nanos::from_secs(7));
    let bucket = TokenBucket::builder(10, second).build().unwrap();
    let counter = Window::builder(10, second).build().unwrap();
    let full = Log::builder(0, second).build().unwrap();
    for _ in 0..20 {
        let (one, two) = (bucket.acquire_at(1, now).unwrap(), counter.acquire_at(1, now).unwrap());
        assert!(!full.try_acquire_at(1, now));
        assert_eq!((bucket.give_back(one, now), counter.give_back(two)), (Ok(()), Ok(())));
        assert_eq!(bucket.peek_at(0, now).map(|quota| quota.remaining), Ok(10));
        assert_eq!(counter.peek_at(0, now).map(|quota| quota.remaining), Ok(10));
    }
    // Into a bucket that is full again.
    let five = bucket.acquire_at(5, now).unwrap();
    let later = now + Nanos::from_millis(500);
    assert_eq!(bucket.give_back(five, later), Err(Lapsed::Passed));
    assert_eq!(bucket.peek_at(0, later).map(|quota| quota.remaining), Ok(10));
}

#[test]
fn f071_cancelling_does_not_restore_the_start() {
    for (limit, window) in [(30, 1), (60, 1), (100, 1), (7, 3)] {
        let bucket = Gcra::builder(limit, Duration::from_secs(window)).burst(3).build().unwrap();
        let now = Nanos::from_secs(9);
        let permits = [0; 3].map(|_| bucket.acquire_at(1, now).unwrap());
        for (given, permit) in permits.into_iter().rev().enumerate() {
            assert_eq!(bucket.give_back(permit, now), Ok(()));
            assert_eq!(bucket.peek_at(0, now).map(|quota| quota.remaining), Ok(given as u64 + 1));
        }
        assert!(bucket.try_acquire_at(3, now));
    }
}
