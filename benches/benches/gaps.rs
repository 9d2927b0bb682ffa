//! gaps: what does the counter pay for the empty buckets before a call? It puts their start totals, at most as many
//! as the window has: the goal is 4 ns for each.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::Window;
use tollgate_benches::Row;

fn gaps(criterion: &mut Criterion) {
    for buckets in [10, 1_000] {
        for gap in [1, 10, 100, 1_000, 10_000] {
            let window = Duration::from_secs(1);
            let counter = Window::builder(1_000, window).buckets(buckets).build().unwrap();
            let step = Duration::from(counter.width()) * gap;
            Row::admitted(format!("counter of {buckets} buckets, after {gap}"), counter, step)
                .bench(criterion);
        }
    }
}

criterion_group!(benches, gaps);
criterion_main!(benches);
