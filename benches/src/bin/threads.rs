//! Prints what a call costs with one thread and with two, sharded and not, as a Markdown table: `threads [ROUNDS]`.
//!
//! Each thread passes times of its own, and begins at a barrier. Rows take turns; a figure is the median of its rounds,
//! of the slower thread. A round counts only if its threads ran at once for nine tenths of it: on a busy machine one
//! often ends before the other gets a processor. Every round asserts the answers that its row names.

use std::{
    env,
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use tollgate::{Algorithm, Log, Nanos, Window};
use tollgate_benches::START;

const CALLS: u64 = 200_000;
const SECOND: Duration = Duration::from_secs(1);

/// A limiter, built anew for every round, and how its calls go.
struct Row {
    name: &'static str,
    threads: usize,
    admits: bool,
    build: fn() -> Box<dyn Round>,
}

/// So many calls by each of so many threads; the nanoseconds a call of the slower one, if they ran at once.
trait Round {
    fn run(&self, threads: usize, admits: bool) -> Option<f64>;
}

impl<A: Algorithm> Round for A {
    fn run(&self, threads: usize, admits: bool) -> Option<f64> {
        while !admits && self.try_acquire_at(1, START) {}
        let barrier = &Barrier::new(threads);
        let calls = move || {
            barrier.wait();
            let (begin, mut now, mut admitted) = (Instant::now(), START, 0);
            for _ in 0..CALLS {
                admitted += u64::from(black_box(self).try_acquire_at(1, black_box(now)));
                now = now + Nanos::from_nanos(if admits { 20 } else { 0 });
            }
            let end = Instant::now();
            assert_eq!(admitted, if admits { CALLS } else { 0 }, "not the path it names");
            (begin, end)
        };
        let spans: Vec<(Instant, Instant)> = thread::scope(|scope| {
            let hands: Vec<_> = (0..threads).map(|_| scope.spawn(calls)).collect();
            hands.into_iter().map(|hand| hand.join().expect("a thread panicked")).collect()
        });
        let slower = spans.iter().map(|(begin, end)| *end - *begin).max()?;
        let (last, first) = (spans.iter().map(|span| span.0).max()?, spans.iter().map(|span| span.1).min()?);
        let at_once = first.saturating_duration_since(last) * 10 >= slower * 9;
        at_once.then(|| slower.as_nanos() as f64 / CALLS as f64)
    }
}

fn rows() -> Vec<Row> {
    // As many permits as two threads ask for, and one more thread's.
    const ALL: u64 = 3 * CALLS;
    let mut rows = Vec::new();
    macro_rules! row {
        ($name:literal, $limit:expr, $admits:expr, $build:expr) => {
            for threads in [1, 2] {
                let build: fn() -> Box<dyn Round> = || {
                    let build: fn(u64) -> _ = $build;
                    Box::new(build($limit))
                };
                rows.push(Row { name: $name, threads, admits: $admits, build });
            }
        };
    }
    row!("counter, admitted", ALL, true, |limit| Window::builder(limit, SECOND).build().unwrap());
    row!("sharded counter, admitted", 2 * ALL, true, |limit| {
        Window::builder(limit, SECOND).build_sharded(2).unwrap()
    });
    row!("log of single permits, admitted", ALL, true, |limit| {
        Log::builder(limit, SECOND).max_cost(1).build().unwrap()
    });
    row!("sharded log of single permits, admitted", 2 * ALL, true, |limit| {
        Log::builder(limit, SECOND).max_cost(1).build_sharded(2).unwrap()
    });
    row!("counter, refused", 1_000, false, |limit| Window::builder(limit, SECOND).build().unwrap());
    row!("sharded counter, refused", 1_000, false, |limit| {
        Window::builder(limit, SECOND).build_sharded(2).unwrap()
    });
    row!("sharded log of single permits, refused", 1_000, false, |limit| {
        Log::builder(limit, SECOND).max_cost(1).build_sharded(2).unwrap()
    });
    rows
}

fn main() {
    let rounds: usize = env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(31);
    let rows = rows();
    let one = |row: &Row| (row.build)().run(row.threads, row.admits);
    let times: Vec<Vec<Option<f64>>> = (0..rounds.max(1)).map(|_| rows.iter().map(one).collect()).collect();
    println!("| call | threads | rounds | ns, median | ns, least |\n|---|---:|---:|---:|---:|");
    for (at, row) in rows.iter().enumerate() {
        let mut round: Vec<f64> = times.iter().filter_map(|round| round[at]).collect();
        round.sort_by(f64::total_cmp);
        let figure = |at: usize| round.get(at).map_or_else(|| "-".into(), |ns| format!("{ns:.1}"));
        let (name, threads, rounds) = (row.name, row.threads, round.len());
        println!("| {name} | {threads} | {rounds} | {} | {} |", figure(rounds / 2), figure(0));
    }
}
