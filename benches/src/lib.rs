//! What the benchmarks share: rows, each a limiter whose calls all go one way, and the floors beside them.
//!
//! Time is passed in, one thread calls, and every run asserts the answer that its row names: an admission never
//! hides among refusals.

mod expiry;
mod keys;
mod shapes;

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use criterion::Criterion;
use tollgate::{
    Algorithm, Compact, Counted, Fixed, Gcra, Live, Log, Nanos, Pacing, Sampled, TokenBucket, TwoWindow,
    Wheel, Window,
};

pub use crate::{
    expiry::{Expiry, clock_alone, expiries},
    keys::{uniform, zipf},
    shapes::{Axis, Point, flat, gaps},
};

/// When the rows' calls begin: well after the clock's zero, like a limiter at work.
pub const START: Nanos = Nanos::from_secs(1_000);
const SECOND: Duration = Duration::from_secs(1);

/// Something to time, whose calls all go the way that `admits` names.
pub struct Row {
    name: String,
    admits: bool,
    subject: Box<dyn Subject>,
}

/// One kind of call, many times over.
trait Subject {
    /// Calls as callers do, inlined; the number admitted.
    fn batch(&mut self, calls: u64) -> u64;
    /// Calls through [`one_call`]; the number admitted.
    fn batch_counted(&mut self, calls: u64) -> u64;
}

/// Calls an algorithm once for every `step` of time.
struct Calls<A> {
    algorithm: A,
    now: Nanos,
    step: Nanos,
}

/// Any call, once for every `step` of time.
struct Acts<F> {
    act: F,
    now: Nanos,
    step: Nanos,
}

/// Does something to a word that no limiter is part of.
struct Floor<F>(F, AtomicU64);

/// The call whose instructions are counted.
#[inline(never)]
pub fn one_call<A: Algorithm>(algorithm: &A, now: Nanos) -> bool {
    algorithm.try_acquire_at(1, now)
}

// === impl Row ===

impl Row {
    /// Calls at `START` and from there on every `step`, each of which is admitted.
    pub fn admitted<A: Algorithm + 'static>(name: impl Into<String>, algorithm: A, step: Duration) -> Self {
        Self::new(name, true, algorithm, START, step.into())
    }

    /// Calls at one time, none of which is admitted: half the limit was taken long before, then all of it.
    pub fn refused<A: Algorithm + 'static>(name: impl Into<String>, algorithm: A) -> Self {
        let limit = algorithm.rules()[0].limit;
        let before = START - algorithm.rules()[0].window - algorithm.rules()[0].window;
        let admitted = (0..limit / 2).filter(|_| one_call(&algorithm, before)).count();
        assert!(admitted > 0 || limit < 2);
        while one_call(&algorithm, START) {}
        Self::new(name, false, algorithm, START, Nanos::ZERO)
    }

    /// Calls of any kind, at `START` and from there on every `step`, which all go one way.
    pub fn acts(
        name: impl Into<String>,
        admits: bool,
        step: Duration,
        act: impl FnMut(Nanos) -> bool + 'static,
    ) -> Self {
        Self { name: name.into(), admits, subject: Box::new(Acts { act, now: START, step: step.into() }) }
    }

    fn new<A: Algorithm + 'static>(
        name: impl Into<String>,
        admits: bool,
        algorithm: A,
        now: Nanos,
        step: Nanos,
    ) -> Self {
        Self { name: name.into(), admits, subject: Box::new(Calls { algorithm, now, step }) }
    }

    fn floor(name: &str, act: impl Fn(&AtomicU64) -> bool + 'static) -> Self {
        Self { name: name.into(), admits: true, subject: Box::new(Floor(act, AtomicU64::new(0))) }
    }

    /// What it times.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The time of so many calls.
    ///
    /// # Panics
    /// If a call went the other way.
    pub fn time(&mut self, calls: u64) -> Duration {
        let start = Instant::now();
        let admitted = self.subject.batch(calls);
        let time = start.elapsed();
        self.assert_path(admitted, calls);
        time
    }

    /// Makes so many calls through [`one_call`].
    ///
    /// # Panics
    /// If a call went the other way.
    pub fn make_counted(&mut self, calls: u64) {
        let admitted = self.subject.batch_counted(calls);
        self.assert_path(admitted, calls);
    }

    /// Adds it to a report of criterion.
    pub fn bench(mut self, criterion: &mut Criterion) {
        let name = self.name.clone();
        criterion.bench_function(&name, |bencher| bencher.iter_custom(|calls| self.time(calls)));
    }

    fn assert_path(&self, admitted: u64, calls: u64) {
        let expected = if self.admits { calls } else { 0 };
        assert_eq!(admitted, expected, "{}: of {calls} calls, not the path it names", self.name);
    }
}

impl<A: Algorithm> Subject for Calls<A> {
    fn batch(&mut self, calls: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..calls {
            admitted += u64::from(black_box(&self.algorithm).try_acquire_at(1, black_box(self.now)));
            self.now = self.now + self.step;
        }
        admitted
    }

    fn batch_counted(&mut self, calls: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..calls {
            admitted += u64::from(one_call(black_box(&self.algorithm), self.now));
            self.now = self.now + self.step;
        }
        admitted
    }
}

impl<F: FnMut(Nanos) -> bool> Subject for Acts<F> {
    fn batch(&mut self, calls: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..calls {
            admitted += u64::from((self.act)(black_box(self.now)));
            self.now = self.now + self.step;
        }
        admitted
    }

    fn batch_counted(&mut self, calls: u64) -> u64 {
        self.batch(calls)
    }
}

impl<F: Fn(&AtomicU64) -> bool> Subject for Floor<F> {
    fn batch(&mut self, calls: u64) -> u64 {
        let Self(act, word) = self;
        (0..calls).map(|_| u64::from(act(black_box(word)))).sum()
    }

    fn batch_counted(&mut self, calls: u64) -> u64 {
        self.batch(calls)
    }
}

// === rows ===

fn load(word: &AtomicU64) -> bool {
    word.load(Ordering::Acquire) < u64::MAX
}

fn cas(word: &AtomicU64) -> bool {
    let seen = word.load(Ordering::Acquire);
    word.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

fn two_cas(word: &AtomicU64) -> bool {
    cas(word) && cas(word)
}

/// What no limiter can be faster than: a bare load; a load and one CAS, alone on its line; two of those.
pub fn floors() -> Vec<Row> {
    vec![Row::floor("load", load), Row::floor("cas", cas), Row::floor("two cas", two_cas)]
}

/// An admission and a refusal of every algorithm; single permits, one rule.
pub fn calls() -> Vec<Row> {
    let mut rows = Vec::new();
    // Admissions come at half the rate that the limit allows, so none is ever refused. A counter's limit is large,
    // so that nearly all fall into the newest bucket, as they do where millions are checked.
    macro_rules! pair {
        ($name:literal, $limit:expr, $build:expr) => {{
            let build: fn(u64) -> _ = $build;
            rows.push(Row::admitted(concat!($name, ", admitted"), build($limit), SECOND * 2 / $limit));
            rows.push(Row::refused(concat!($name, ", refused"), build(1_000)));
        }};
    }
    pair!("log", 1_000, |limit| Log::builder(limit, SECOND).build().unwrap());
    pair!("log of single permits", 1_000, |limit| Log::builder(limit, SECOND).max_cost(1).build().unwrap());
    pair!("counter", 100_000_000, |limit| Window::builder(limit, SECOND).build().unwrap());
    pair!("fixed", 100_000_000, |limit| Fixed::builder(limit, SECOND).build().unwrap());
    pair!("two-window", 10_000, |limit| TwoWindow::builder(limit, SECOND).build().unwrap());
    pair!("gcra", 1_000, |limit| Gcra::builder(limit, SECOND).build().unwrap());
    pair!("token bucket", 1_000, |limit| TokenBucket::builder(limit, SECOND).build().unwrap());
    pair!("pacing queue", 1_000, |limit| Pacing::builder(limit, SECOND).build().unwrap());
    pair!("compact log", 1_000, |limit| Compact::builder(limit, SECOND).build().unwrap());
    pair!("sampling log", 1_000, |limit| Sampled::builder(limit, SECOND).build().unwrap());
    pair!("wheel", 1_000, |limit| Wheel::builder(limit, SECOND).build().unwrap());
    pair!("sharded log of single permits", 2_000, |limit| {
        Log::builder(limit, SECOND).max_cost(1).build_sharded(2).unwrap()
    });
    pair!("sharded counter", 100_000_000, |limit| Window::builder(limit, SECOND).build_sharded(2).unwrap());
    pair!("live log of single permits", 1_000, |limit| {
        Live::new(Log::builder(limit, SECOND).max_cost(1).build().unwrap()).unwrap()
    });
    pair!("live counter", 50_000_000, |limit| {
        Live::new(Window::builder(limit, SECOND).build().unwrap()).unwrap()
    });
    pair!("counted counter", 100_000_000, |limit| {
        Counted::new(Window::builder(limit, SECOND).build().unwrap())
    });
    rows
}
