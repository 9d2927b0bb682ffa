//! layers: what do one, two and three of them cost, when all have room and when the innermost has none?

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Algorithm, Gcra, Layers, Log, Window};
use tollgate_benches::{Row, START};

const SECOND: Duration = Duration::from_secs(1);

/// A counter over a token bucket over a log. Calls come every 10 us: half of what all of them let through, unless the
/// log is full for a day.
fn stack(full: bool) -> (Window, Gcra, Log) {
    let global = Window::builder(200_000, SECOND).buckets(20).build().unwrap();
    let tenant = Gcra::builder(200_000, SECOND).build().unwrap();
    let (limit, window) = if full { (5, 24 * 3_600 * SECOND) } else { (1_000, SECOND / 200) };
    (global, tenant, Log::builder(limit, window).build().unwrap())
}

fn row(name: &str, depth: usize, full: bool) -> Row {
    let (global, tenant, user) = stack(full);
    while full && user.try_acquire_at(1, START) {}
    Row::acts(format!("{name}, {depth} layers"), !full, Duration::from_micros(10), move |now| {
        let (global, tenant, user) = (black_box(&global), black_box(&tenant), black_box(&user));
        match depth {
            1 => Layers::new([user]).try_acquire_at(1, now),
            2 => Layers::new([tenant, user]).try_acquire_at(1, now),
            _ => Layers::new([global, tenant, user]).try_acquire_at(1, now),
        }
    })
}

fn calls(criterion: &mut Criterion) {
    tollgate_benches::floors().into_iter().for_each(|floor| floor.bench(criterion));
    for depth in 1..=3 {
        row("admitted", depth, false).bench(criterion);
        row("refused by the innermost", depth, true).bench(criterion);
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
