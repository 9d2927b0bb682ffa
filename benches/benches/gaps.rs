//! gaps: what does the counter pay for the empty buckets before a call? It puts their start totals, at most as many
//! as the window has: the goal is 4 ns for each.

use criterion::{Criterion, criterion_group, criterion_main};

fn gaps(criterion: &mut Criterion) {
    tollgate_benches::gaps().into_iter().for_each(|point| point.row.bench(criterion));
}

criterion_group!(benches, gaps);
criterion_main!(benches);
