//! expiry: what does the call cost before which everything in a full log expires?

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate_benches::{clock_alone, expiries};

const LIMIT: u64 = 65_536;

fn expiry(criterion: &mut Criterion) {
    for mut expiry in expiries(LIMIT) {
        let name = format!("{LIMIT} expire, {}", expiry.name);
        criterion.bench_function(&name, |bencher| bencher.iter_custom(|times| expiry.time(times)));
    }
    criterion.bench_function("nothing, the clock alone", |bencher| bencher.iter_custom(clock_alone));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = expiry
}
criterion_main!(benches);
