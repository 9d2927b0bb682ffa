//! flat: does a call in the newest bucket cost the same whatever the limit, the buckets and the window? One is
//! varied at a time. (A log that no longer fits a cache pays its misses, a slot or two per call, read in order.)

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Log, Window};
use tollgate_benches::Row;

const SECOND: Duration = Duration::from_secs(1);

fn log(limit: u64, window: Duration) -> Log {
    Log::builder(limit, window).build().unwrap()
}

fn counter(limit: u64, buckets: u64, window: Duration) -> Window {
    Window::builder(limit, window).buckets(buckets).build().unwrap()
}

fn limits(criterion: &mut Criterion) {
    for limit in (1..=7).map(|digits| 10u64.pow(digits)) {
        let step = SECOND * 2 / limit as u32;
        Row::admitted(format!("log, limit {limit}, admitted"), log(limit, SECOND), step).bench(criterion);
        Row::refused(format!("log, limit {limit}, refused"), log(limit, SECOND)).bench(criterion);
        Row::refused(format!("counter, limit {limit}, refused"), counter(limit, 10, SECOND)).bench(criterion);
    }
}

fn buckets(criterion: &mut Criterion) {
    for buckets in [2, 10, 100, 1_000, 10_000] {
        let name = format!("counter, {buckets} buckets");
        // Twenty nanoseconds a call: a bucket of the narrowest kind still holds 5,000.
        let limit = 100_000_000.min(counter_limit(SECOND / buckets));
        let step = SECOND * 2 / limit as u32;
        Row::admitted(format!("{name}, admitted"), counter(limit, buckets.into(), SECOND), step)
            .bench(criterion);
        Row::refused(format!("{name}, refused"), counter(1_000, buckets.into(), SECOND)).bench(criterion);
    }
}

fn windows(criterion: &mut Criterion) {
    for (name, window) in [
        ("1 ms", SECOND / 1_000),
        ("1 s", SECOND),
        ("1 min", SECOND * 60),
        ("1 h", SECOND * 3_600),
        ("1 day", SECOND * 86_400),
    ] {
        let step = window * 2 / 1_000;
        Row::admitted(format!("log, window {name}, admitted"), log(1_000, window), step).bench(criterion);
        Row::refused(format!("log, window {name}, refused"), log(1_000, window)).bench(criterion);
        let limit = counter_limit(window / 10).min(1 << 27);
        let step = (window * 2 / limit as u32).max(Duration::from_nanos(1));
        let row =
            Row::admitted(format!("counter, window {name}, admitted"), counter(limit, 10, window), step);
        row.bench(criterion);
        Row::refused(format!("counter, window {name}, refused"), counter(1_000, 10, window)).bench(criterion);
    }
}

/// The largest limit that a counter takes for buckets of this width.
fn counter_limit(width: Duration) -> u64 {
    match Window::builder(u64::MAX, width).buckets(1).build() {
        Err(tollgate::ConfigError::Limit { max, .. }) => max,
        other => panic!("no limit is as large as that: {:?}", other.err()),
    }
}

criterion_group!(benches, limits, buckets, windows);
criterion_main!(benches);
