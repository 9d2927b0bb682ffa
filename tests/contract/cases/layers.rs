//! F068, F069, F072, F073: stacked limits.

use std::time::Duration;

use tollgate::{Algorithm, Layer, Layers, Log, Nanos, Reason, Window};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn at(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

fn log(limit: u64, window: u64) -> Log {
    Log::builder(limit, secs(window)).build().unwrap()
}

#[test]
fn f068_one_limit_keeps_counting_while_the_other_rejects() {
    let logs = [log(10, 60), log(30, 1_800), log(30, 1_800), log(10, 60)];
    let rules = Log::builder(10, secs(60)).rule(30, secs(1_800)).build().unwrap();
    let stacked: [&dyn Layer; 3] =
        [&Layers::new([&logs[0], &logs[1]]), &Layers::new([&logs[2], &logs[3]]), &rules];
    for limiter in stacked {
        let admitted = [0, 60, 120, 180].map(|t| (0..25).filter(|_| limiter.take_at(1, at(t))).count());
        assert_eq!(admitted, [10, 10, 10, 0]);
        let denied = limiter.decide_at(1, at(240)).unwrap_err();
        assert_eq!(denied.retry_after(), Some(at(1_560)));
    }
    assert_eq!((logs[0].usage_at(0, at(179)), logs[1].usage_at(0, at(240))), (Some(10), Some(30)));
}

#[test]
fn f069_a_throttled_client_drains_the_shared_quota() {
    for global_first in [true, false] {
        let global = log(10, 60);
        let users: Vec<Log> = (0..=10).map(|_| log(1, 60)).collect();
        let call = |user: usize| {
            let layers: [&dyn Layer; 2] =
                if global_first { [&global, &users[user]] } else { [&users[user], &global] };
            Layers::new(layers).try_acquire_at(1, at(1))
        };
        assert_eq!((0..20).filter(|_| call(0)).count(), 1);
        assert!((1..=9).all(call));
        assert!(!call(10));
        assert_eq!((global.usage_at(0, at(1)), users[10].usage_at(0, at(1))), (Some(10), Some(0)));
    }
}

#[test]
fn f072_which_limit_do_the_headers_speak_of() {
    for a_is_full in [false, true] {
        let (a, b) = (log(100, 60), log(2, 60));
        assert!(a.try_acquire_at(if a_is_full { 100 } else { 1 }, at(if a_is_full { 30 } else { 0 })));
        assert!(b.try_acquire_at(1, at(0)) && b.try_acquire_at(1, at(10)));
        let (layer, decision) = Layers::new([&a, &b]).check_at(1, at(20));
        let denied = decision.unwrap_err();
        let told = (layer, denied.quota.limit, denied.quota.remaining, denied.retry_after());
        // A is full from 30 on, which is then the time it judges at: free at 90, 70 s from the call.
        let until = denied.quota.at + denied.retry_after().unwrap();
        if a_is_full {
            assert_eq!((layer, denied.quota.limit, until), (0, 100, at(90)));
        } else {
            assert_eq!(told, (1, 2, 0, Some(at(40))));
        }
    }
    // A passes: the figures are those of the limit with the least left.
    let (a, b) = (log(100, 60), log(2, 60));
    let (layer, quota) = Layers::new([&a, &b]).check_at(1, at(20));
    assert_eq!((layer, quota.map(|quota| (quota.limit, quota.remaining))), (1, Ok((2, 1))));
}

#[test]
fn f073_the_shared_limit_charged_twice_for_one_call() {
    for application in [1, 10, 60].map(|n| Window::builder(600, secs(60)).buckets(n).build().unwrap()) {
        let route = Window::builder(300, secs(60)).build().unwrap();
        let layers = Layers::new([&application, &route]);
        assert!((0..300).all(|_| layers.try_acquire_at(1, at(1))));
        assert_eq!(application.usage_at(0, at(1)), Some(300));
        let (layer, decision) = layers.check_at(1, at(1));
        assert!(layer == 1 && matches!(decision.unwrap_err().reason, Reason::Limit { .. }));
    }
}
