//! F001 to F007: the exact log.

use std::time::{Duration, Instant};

use tollgate::{Algorithm, Log, Nanos, Reason};

use crate::{
    forms,
    threads::{from_a_barrier, sum},
};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn at(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

#[test]
fn f001_check_then_add_by_ten_callers_at_once() {
    for form in [0, 1] {
        let keys: Vec<Log> =
            (0..1_000).map(|_| forms::logs(5, secs(60)).into_iter().nth(form).unwrap()).collect();
        let admitted = from_a_barrier(10, keys.len(), |_, round| keys[round].try_acquire_at(1, at(1)).into());
        for (key, admitted) in keys.iter().zip(sum(&admitted)) {
            assert_eq!((admitted, key.usage_at(0, at(1))), (5, Some(5)));
        }
    }
}

#[test]
fn f002_an_entry_exactly_one_window_old() {
    for log in forms::logs(1, secs(10)) {
        assert!(log.try_acquire_at(1, at(0)));
        let nearly = at(10) - Nanos::from_nanos(1);
        let denied = log.check_at(1, nearly).expect_err("still inside");
        assert_eq!(denied.retry_after(), Some(Nanos::from_nanos(1)));
        assert!(log.check_at(1, at(10)).is_ok());
    }
}

#[test]
fn f003_old_entries_are_not_counted() {
    for log in forms::logs(3, secs(10)) {
        for _ in 0..3 {
            assert!(log.try_acquire_at(1, at(0)));
        }
        let later = Nanos::from_millis(10_500);
        assert!(log.try_acquire_at(1, later));
        assert_eq!(log.usage_at(0, later), Some(1));
    }
}

#[test]
fn f004_refused_calls_do_not_extend_the_block() {
    for log in forms::logs(1, secs(5)) {
        let admitted: Vec<u64> = (0..=60).filter(|&t| log.try_acquire_at(1, at(t))).collect();
        assert_eq!(admitted, (0..=60).step_by(5).collect::<Vec<u64>>());
        assert_eq!(admitted.len(), 13);
    }
}

#[test]
fn f006_a_cost_above_the_limit_never_passes() {
    let [any, unit] = forms::logs(10, secs(60));
    assert!(any.try_acquire_at(5, at(0)));
    let denied = any.check_at(100, at(0)).expect_err("above the limit");
    assert_eq!((denied.reason, denied.retry_after()), (Reason::Never, None));
    assert!(!any.try_acquire_at(100, at(0)));
    assert_eq!(any.usage_at(0, at(0)), Some(5));
    assert!(any.try_acquire_at(5, at(0)));

    assert_eq!(unit.check_at(100, at(0)).expect_err("above the limit").reason, Reason::Never);
    assert_eq!(unit.check_at(5, at(0)).expect_err("not declared").reason, Reason::MaxCost { max: 1 });
    assert_eq!(unit.usage_at(0, at(0)), Some(0));
}

/// Fills a log and measures 10,000 refusals, best of several runs so that a busy machine does not decide.
fn refusals(log: &Log, limit: u64) -> Duration {
    for n in 0..limit {
        assert!(log.try_acquire_at(1, Nanos::from_nanos(n)));
    }
    let run = || {
        let start = Instant::now();
        for n in 0..10_000 {
            assert!(!log.try_acquire_at(1, Nanos::from_nanos(limit + n)));
        }
        start.elapsed()
    };
    (0..7).map(|_| run()).min().expect("seven runs")
}

#[test]
fn f007_a_large_limit_costs_no_more_per_call() {
    let day = secs(86_400);
    for (large, small) in forms::logs(70_000, day).into_iter().zip(forms::logs(70, day)) {
        let bytes = large.state_bytes();
        let (slow, fast) = (refusals(&large, 70_000), refusals(&small, 70));
        // A thousand times the limit; a walk along the list would take about that much longer.
        assert!(slow < fast * 10, "{slow:?} against {fast:?}");
        assert_eq!(large.state_bytes(), bytes);
        assert!(bytes <= 8 * 70_000 + 1_024, "{bytes} bytes");
    }
}
