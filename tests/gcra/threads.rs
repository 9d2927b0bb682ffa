//! Threads from a barrier, with clocks that move between rounds; and with clocks of their own.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tollgate::{Algorithm, Gcra};

use crate::{S, SECOND, at, gcra};

/// Rounds of `tries` by each of `threads` threads from a barrier, at the times given; admissions per round.
fn race(bucket: &Gcra, threads: usize, tries: usize, times: impl Iterator<Item = u64>) -> Vec<u64> {
    let (now, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
    let (start, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    start.wait();
                    let now = now.load(Relaxed);
                    if now == u64::MAX {
                        break;
                    }
                    let passed = (0..tries).filter(|_| bucket.try_acquire_at(1, at(now))).count();
                    admitted.fetch_add(passed as u64, Relaxed);
                    end.wait();
                }
            });
        }
        let rounds = times
            .map(|time| {
                now.store(time, Relaxed);
                start.wait();
                end.wait();
                admitted.swap(0, Relaxed)
            })
            .collect();
        now.store(u64::MAX, Relaxed);
        start.wait();
        rounds
    })
}

#[test]
fn f020_a_freshly_refilled_token_is_stolen_before_the_refiller_takes_it() {
    let bucket = gcra(1, Duration::from_millis(10), 1);
    assert!(bucket.try_acquire_at(1, at(0)));
    let rounds = race(&bucket, 8, 1, (1..=100).map(|step| step * S / 100));
    assert_eq!(rounds, [1; 100]);
}

#[test]
fn f021_a_stale_snapshot_written_back_wedges_the_bucket_for_good() {
    // Hammered when full, when a token has come back, and after a pause.
    let bucket = gcra(1, Duration::from_millis(10), 2);
    let times = (0..1_000).flat_map(|round| [0, 10, 500].map(|ms| round * S + ms * 1_000_000));
    let rounds = race(&bucket, 16, 4, times);
    assert_eq!(rounds, [2, 1, 2].repeat(1_000));
}

#[test]
fn f022_phantom_or_lost_tokens_from_a_two_step_saturating_add() {
    let bucket = gcra(10, Duration::from_millis(100), 10);
    let rounds = race(&bucket, 8, 4, (0..=200).map(|step| step * S / 10));
    assert_eq!(rounds, [10; 201]);
}

#[test]
fn f023_two_callers_one_token() {
    let bucket = gcra(1, SECOND, 1);
    let rounds = race(&bucket, 2, 1, (0..10_000).map(|round| round * S));
    assert_eq!(rounds.len(), 10_000);
    assert!(rounds.iter().all(|&admitted| admitted == 1));
    assert_eq!(bucket.usage_at(0, at(9_999 * S)), Some(1));
}

/// Threads with clocks of their own, some late: never more than the burst and what drains in the whole span.
#[test]
fn free_running_clocks_never_admit_more() {
    let bucket = gcra(1_000, SECOND, 50);
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for late in 0..4 {
            let (bucket, admitted) = (&bucket, &admitted);
            scope.spawn(move || {
                let passed = (100..100_100_u64)
                    .map(|tick| at((tick - late * 20) * 10_000))
                    .filter(|&now| bucket.try_acquire_at(1, now))
                    .count();
                admitted.fetch_add(passed as u64, Relaxed);
            });
        }
    });
    // From the earliest call at 400 us to the last at 1,001 ms.
    let admitted = admitted.into_inner();
    assert!((1_000..=1_050).contains(&admitted), "{admitted}");
}
