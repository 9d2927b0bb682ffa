//! flat: does a call in the newest bucket cost the same whatever the limit, the buckets and the window? One is
//! varied at a time.

use criterion::{Criterion, criterion_group, criterion_main};

fn flat(criterion: &mut Criterion) {
    tollgate_benches::flat().into_iter().for_each(|point| point.row.bench(criterion));
}

criterion_group!(benches, flat);
criterion_main!(benches);
