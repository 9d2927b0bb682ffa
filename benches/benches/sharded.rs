//! sharded: what does a call cost beside another thread's, on one history and on two shards? The goal: no more than 1.3 of what
//! it costs alone, and 2 ns for a refusal.

use std::{
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Algorithm, Log, LogBuilder, Nanos, Window, WindowBuilder};
use tollgate_benches::START;

const SECOND: Duration = Duration::from_secs(1);

/// Permits a second. Threads come for half of them.
const LOG: u64 = 1 << 18;
const COUNTER: u64 = 1 << 26;

/// Calls of a thread before it waits for the other: so far apart can their times be, for which a quarter of the limit has room.
const ROUND: u64 = 1 << 15;

/// Threads that call one limiter, and are all answered alike.
struct Crowd<A> {
    name: String,
    admits: bool,
    threads: u64,
    algorithm: A,
    now: Nanos,
    step: Nanos,
}

impl<A: Algorithm> Crowd<A> {
    fn admitted(name: &str, threads: u64, algorithm: A) -> Self {
        let step = Nanos::from(SECOND * 2 * threads as u32 / algorithm.rules()[0].limit as u32);
        Self { name: format!("{name}, admitted"), admits: true, threads, algorithm, now: START, step }
    }

    fn refused(name: &str, threads: u64, algorithm: A) -> Self {
        while algorithm.try_acquire_at(1, START) {}
        let step = Nanos::ZERO;
        Self { name: format!("{name}, refused"), admits: false, threads, algorithm, now: START, step }
    }

    /// So many calls of each thread: their time, of the mean thread. Threads start, and wait for each other, outside of it.
    fn time(&mut self, calls: u64) -> Duration {
        let together = Barrier::new(self.threads as usize);
        let hand = || {
            let (mut now, mut left, mut admitted, mut time) = (self.now, calls, 0, Duration::ZERO);
            while left > 0 {
                let round = left.min(ROUND);
                together.wait();
                let start = Instant::now();
                for _ in 0..round {
                    admitted += u64::from(black_box(&self.algorithm).try_acquire_at(1, black_box(now)));
                    now = now + self.step;
                }
                time += start.elapsed();
                left -= round;
            }
            let expected = if self.admits { calls } else { 0 };
            assert_eq!(admitted, expected, "{}: of {calls} calls, not the path it names", self.name);
            (now, time)
        };
        let hands: Vec<_> = thread::scope(|scope| {
            let hands: Vec<_> = (0..self.threads).map(|_| scope.spawn(hand)).collect();
            hands.into_iter().map(|hand| hand.join().expect("the path it names")).collect()
        });
        self.now = hands[0].0;
        hands.iter().map(|(_, time)| *time).sum::<Duration>() / self.threads as u32
    }

    fn bench(mut self, criterion: &mut Criterion) {
        let threads = if self.threads == 1 { "alone" } else { "2 threads" };
        let name = format!("{}, {threads}", self.name);
        criterion.bench_function(&name, |bencher| bencher.iter_custom(|calls| self.time(calls)));
    }
}

/// One history alone, and beside another thread; two shards beside another thread.
fn three<B: Copy, A: Algorithm, S: Algorithm>(
    criterion: &mut Criterion,
    name: &str,
    builder: B,
    whole: fn(B) -> A,
    sharded: fn(B) -> S,
) {
    for threads in [1, 2] {
        Crowd::admitted(name, threads, whole(builder)).bench(criterion);
        Crowd::refused(name, threads, whole(builder)).bench(criterion);
    }
    let name = format!("{name} in 2 shards");
    Crowd::admitted(&name, 2, sharded(builder)).bench(criterion);
    Crowd::refused(&name, 2, sharded(builder)).bench(criterion);
}

fn calls(criterion: &mut Criterion) {
    tollgate_benches::floors().into_iter().for_each(|floor| floor.bench(criterion));
    let log = |it: LogBuilder| it.max_cost(1).build().unwrap();
    let logs = |it: LogBuilder| it.max_cost(1).build_sharded(2).unwrap();
    three(criterion, "log of single permits", Log::builder(LOG, SECOND), log, logs);
    let counter = |it: WindowBuilder| it.build().unwrap();
    let counters = |it: WindowBuilder| it.build_sharded(2).unwrap();
    three(criterion, "counter", Window::builder(COUNTER, SECOND), counter, counters);
}

criterion_group!(benches, calls);
criterion_main!(benches);
