//! keyed: what does a call cost that first has to find its key, among one, a thousand, a million; evenly or by Zipf's law?

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Class, Gcra, Keyed, Log, WhenFull};
use tollgate_benches::{Row, START, uniform, zipf};

fn keyed(class: Class, keys: u64) -> Keyed<u64> {
    Keyed::builder(class, keys + keys / 4).when_full(WhenFull::Refuse).build().unwrap()
}

fn row(name: String, admits: bool, limiter: Keyed<u64>, calls: Vec<u64>) -> Row {
    let mut calls = calls.into_iter().cycle();
    Row::acts(name, admits, Duration::from_nanos(50), move |now| {
        let key = calls.next().expect("endless");
        black_box(&limiter).try_acquire_at(&key, 1, now)
    })
}

fn calls(criterion: &mut Criterion) {
    tollgate_benches::floors().into_iter().for_each(|floor| floor.bench(criterion));
    let hour = Duration::from_secs(3_600);
    for keys in [1, 1_000, 1_000_000] {
        for (law, draw) in [("uniform", uniform as fn(u64) -> Vec<u64>), ("zipf", zipf)] {
            // A permit a nanosecond: never refused.
            let bucket = Gcra::builder(hour.as_nanos() as u64, hour).config().unwrap();
            let limiter = keyed(bucket.into(), keys);
            row(format!("token bucket, admitted, {keys} keys, {law}"), true, limiter, draw(keys))
                .bench(criterion);

            let log = Log::builder(5, 24 * hour).config().unwrap();
            let limiter = keyed(log.into(), keys);
            assert!((0..keys).all(|key| limiter.try_acquire_at(&key, 5, START)));
            row(format!("log of 5, refused, {keys} keys, {law}"), false, limiter, draw(keys))
                .bench(criterion);
        }
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
