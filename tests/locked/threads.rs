//! Threads released together: totals are exact, never one less or one more.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
};

use tollgate::{Algorithm, Compact, Sampled, Wheel};

use crate::{SECOND, ms};

/// A barrier that yields instead of sleeping: rounds are many and short.
pub(crate) struct Gate {
    size: u64,
    arrived: AtomicU64,
}

impl Gate {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, arrived: AtomicU64::new(0) }
    }

    /// Waits until all threads of this round are here.
    pub(crate) fn pass(&self) {
        let round = self.arrived.fetch_add(1, SeqCst) / self.size;
        while self.arrived.load(SeqCst) / self.size == round {
            thread::yield_now();
        }
    }
}

/// Runs `work` in so many threads at once, each with its number.
pub(crate) fn together(threads: u64, work: impl Fn(u64) + Sync) {
    thread::scope(|s| {
        for thread in 0..threads {
            let work = &work;
            s.spawn(move || work(thread));
        }
    });
}

/// In each round all threads ask until refused, and every round must admit exactly `limit`.
fn exact_totals(limiter: &dyn Algorithm, limit: u64, costs: &[u64]) {
    const ROUNDS: u64 = 200;
    for threads in [2, 4, 8] {
        let admitted: Vec<_> = (0..ROUNDS).map(|_| AtomicU64::new(0)).collect();
        let gate = Gate::new(threads);
        // Time moves between the rounds only, and from one number of threads to the next.
        let base = threads * 1_000_000;
        together(threads, |thread| {
            let cost = costs[thread as usize % costs.len()];
            for (round, admitted) in (0..ROUNDS).zip(&admitted) {
                gate.pass();
                // One more than can pass ends the round of a limiter that never refuses.
                let tries =
                    (0..=limit).take_while(|_| limiter.try_acquire_at(cost, ms(base + 1_000 * round)));
                admitted.fetch_add(cost * tries.count() as u64, SeqCst);
                gate.pass();
            }
        });
        for admitted in admitted {
            assert_eq!(admitted.into_inner(), limit, "{threads} threads");
        }
    }
}

#[test]
fn compact_admits_exactly_its_limit() {
    exact_totals(&Compact::builder(100, SECOND).build().unwrap(), 100, &[1]);
}

#[test]
fn compact_admits_exactly_its_limit_whatever_the_costs() {
    // Ones fill the gap that is too small for a five.
    exact_totals(&Compact::builder(103, SECOND).build().unwrap(), 103, &[1, 5]);
}

#[test]
fn sampled_admits_exactly_its_limit() {
    exact_totals(&Sampled::builder(103, SECOND).every(10).build().unwrap(), 103, &[1, 5]);
}

#[test]
fn wheel_admits_exactly_its_limit() {
    exact_totals(&Wheel::builder(103, SECOND).build().unwrap(), 103, &[1, 5]);
}

/// Which thread draws does not matter: the n-th admission draws the n-th number.
#[test]
fn bernoulli_admits_together_what_it_admits_alone() {
    let build = || Sampled::builder(1_000, SECOND).bernoulli(10, 42).build().unwrap();
    let alone = build();
    let expected = (0..10_000).take_while(|_| alone.try_acquire_at(1, ms(0))).count() as u64;
    exact_totals_once(&build(), expected);
}

fn exact_totals_once(limiter: &dyn Algorithm, total: u64) {
    let (admitted, gate) = (AtomicU64::new(0), Gate::new(8));
    together(8, |_| {
        gate.pass();
        let tries = (0..=total).take_while(|_| limiter.try_acquire_at(1, ms(0)));
        admitted.fetch_add(tries.count() as u64, SeqCst);
    });
    assert_eq!(admitted.into_inner(), total);
}

/// Time runs free, forth and back: no window of the times judged holds more than the limit.
fn never_over(limiter: &dyn Algorithm, limit: usize) {
    let clock = AtomicU64::new(0);
    let times = std::sync::Mutex::new(Vec::new());
    together(4, |thread| {
        let mut mine = Vec::new();
        for step in 0..20_000 {
            let now = clock.fetch_add(step % 7 * 1_000_000, SeqCst).saturating_sub(thread * 3_000_000);
            // What is recorded is the time judged, which is at least this.
            if limiter.try_acquire_at(1, tollgate::Nanos::from_nanos(now)) {
                let recorded = limiter.peek_at(0, tollgate::Nanos::ZERO).unwrap().at.as_nanos();
                mine.push((now, recorded));
            }
        }
        times.lock().unwrap().extend(mine);
    });
    let mut times = times.into_inner().unwrap();
    times.sort_unstable();
    assert!(times.len() > 20 * limit);
    // Each was recorded between `now` and `recorded`: so many that surely lie in one window are too many.
    for (first, &(earliest, _)) in times.iter().enumerate() {
        let end = earliest + 1_000_000_000;
        let near = times[first..].iter().take_while(|&&(now, _)| now < end);
        let within = near.filter(|&&(_, recorded)| recorded < end).count();
        assert!(within <= limit, "{within} in the second from {earliest}");
    }
}

#[test]
fn compact_is_never_over_while_time_runs() {
    never_over(&Compact::builder(50, SECOND).build().unwrap(), 50);
}

#[test]
fn sampled_is_never_over_while_time_runs() {
    never_over(&Sampled::builder(50, SECOND).every(7).build().unwrap(), 50);
}

#[test]
fn wheel_is_never_over_while_time_runs() {
    never_over(&Wheel::builder(50, SECOND).build().unwrap(), 50);
}
