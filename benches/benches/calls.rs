//! calls: what does a call cost when it is admitted, and when it is refused? Beside the floors, every algorithm.

use criterion::{Criterion, criterion_group, criterion_main};

fn calls(criterion: &mut Criterion) {
    let rows = tollgate_benches::floors().into_iter().chain(tollgate_benches::calls());
    rows.for_each(|row| row.bench(criterion));
}

criterion_group!(benches, calls);
criterion_main!(benches);
