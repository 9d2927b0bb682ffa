//! expiry: what does the call cost before which everything in a full log expires? The deque of the textbook, beside
//! it, removes it all in that very call.

use std::{
    collections::VecDeque,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Algorithm, Log, Nanos};
use tollgate_benches::START;

const LIMIT: u64 = 65_536;
const WINDOW: Nanos = Nanos::from_secs(1);

/// The textbook's log.
#[derive(Default)]
struct Deque(VecDeque<Nanos>);

impl Deque {
    fn try_acquire_at(&mut self, now: Nanos) -> bool {
        while self.0.front().is_some_and(|&oldest| oldest + WINDOW <= now) {
            self.0.pop_front();
        }
        let admits = (self.0.len() as u64) < LIMIT;
        if admits {
            self.0.push_back(now);
        }
        admits
    }
}

/// The time of one call, before which all that the others filled expires, as often as asked.
fn last_of(times: u64, mut call: impl FnMut(Nanos) -> bool) -> Duration {
    let mut now = START;
    let mut timed = Duration::ZERO;
    for _ in 0..times {
        while call(now) {}
        now = now + WINDOW;
        let start = Instant::now();
        let admitted = black_box(call(black_box(now)));
        timed += start.elapsed();
        assert!(admitted);
    }
    timed
}

fn expiry(criterion: &mut Criterion) {
    for (name, max_cost) in [("log", u64::MAX), ("log of single permits", 1)] {
        let log = Log::builder(LIMIT, WINDOW.into()).max_cost(max_cost).build().unwrap();
        criterion.bench_function(&format!("{LIMIT} expire, {name}"), |bencher| {
            bencher.iter_custom(|times| last_of(times, |now| log.try_acquire_at(1, now)));
        });
    }
    let mut deque = Deque::default();
    criterion.bench_function(&format!("{LIMIT} expire, deque"), |bencher| {
        bencher.iter_custom(|times| last_of(times, |now| deque.try_acquire_at(now)));
    });
    criterion.bench_function("nothing, the clock alone", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| Instant::now().elapsed()).sum());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = expiry
}
criterion_main!(benches);
