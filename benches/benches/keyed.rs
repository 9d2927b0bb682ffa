//! keyed: what does a call cost that first has to find its key, among one, a thousand, a million; evenly or by Zipf's law?

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Class, Gcra, Keyed, Log, WhenFull};
use tollgate_benches::{Row, START};

/// Calls before the keys come again in the same order.
const ROUND: usize = 1 << 20;

/// Numbers without a pattern that matters here.
struct Random(u64);

impl Random {
    /// A number from 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Keys that are all as likely.
fn uniform(keys: u64) -> Vec<u64> {
    let mut random = Random(1);
    (0..ROUND).map(|_| (random.next() * keys as f64) as u64).collect()
}

/// Keys of which the n-th is as likely as 1 / n.
fn zipf(keys: u64) -> Vec<u64> {
    let mut random = Random(1);
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|n| {
            total += 1.0 / n as f64;
            total
        })
        .collect();
    let mut draw = || {
        let drawn = random.next() * total;
        sums.partition_point(|&sum| sum <= drawn) as u64 % keys
    };
    (0..ROUND).map(|_| draw()).collect()
}

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
