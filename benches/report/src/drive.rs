//! How a limiter is called: alone or by a crowd, with the time passed in or read from a clock.

use std::{
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tollgate::{Clock, Coarse, Nanos, Precise};
use tollgate_benches::START;

use crate::{machine::Switches, peers::Limits};

/// What a row's calls come to: each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    Admitted,
    Refused,
}

/// Where a call's time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    /// It is passed in: a number.
    Passed,
    /// The time-stamp counter, scaled.
    Precise,
    /// A cached reading, renewed every millisecond.
    Coarse,
}

/// What a thread of a crowd did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand {
    pub(crate) calls: u64,
    begin: Instant,
    end: Instant,
    switches: u64,
}

/// What a crowd did: each thread, and whether the machine took the processor away from one.
pub(crate) struct Crowd {
    pub(crate) hands: Vec<Hand>,
    pub(crate) disturbed: bool,
}

/// A limiter whose calls all go one way.
pub(crate) trait Subject: Send + Sync {
    /// Takes half the limit long ago, and then what there is.
    fn fill(&self, time: Time);
    /// So many calls, from a time on, every `step`: those admitted.
    fn batch(&self, time: Time, calls: u64, from: Nanos, step: Nanos) -> u64;
    /// Calls through [`one_call`], the time passed in.
    fn batch_counted(&self, calls: u64, from: Nanos, step: Nanos) -> u64;
    /// Calls by the precise clock until told to stop: calls, and those admitted.
    fn until(&self, stop: &AtomicBool) -> (u64, u64);
    /// The same, each timed; the calls are in the histogram.
    fn until_timed(&self, stop: &AtomicBool, spans: &mut Histogram<u64>) -> u64;
}

/// Passes time in: no clock at all.
struct Passed;

/// Most permits taken to fill a limiter.
const FILL_MAX: u64 = 100_000_000;

/// Calls between two looks at the sign to stop.
const STRIDE: u64 = 64;

/// The call whose instructions are counted.
#[inline(never)]
fn one_call<L: Limits>(limiter: &L, now: Nanos) -> bool {
    limiter.try_acquire(now)
}

impl Clock for Passed {
    #[inline(always)]
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
}

#[inline(always)]
fn call<L: Limits>(limiter: &L, clock: &impl Clock, at: Nanos) -> bool {
    let now = if L::OWN_CLOCK { at } else { clock.now() + at };
    black_box(limiter).try_acquire(now)
}

fn fill<L: Limits>(limiter: &L, clock: &impl Clock) {
    let (mut taken, long_ago) = (0, Nanos::from_nanos(START.as_nanos() / 2));
    while taken < 500 && call(limiter, clock, long_ago) {
        taken += 1;
    }
    while call(limiter, clock, START) {
        taken += 1;
        assert!(taken < FILL_MAX, "what is never full can refuse nothing");
    }
}

fn batch<L: Limits>(limiter: &L, clock: &impl Clock, calls: u64, from: Nanos, step: Nanos) -> u64 {
    let (mut at, mut admitted) = (from, 0);
    for _ in 0..calls {
        admitted += u64::from(call(limiter, clock, black_box(at)));
        at = at + step;
    }
    admitted
}

impl<L: Limits> Subject for L {
    fn fill(&self, time: Time) {
        match time {
            Time::Passed => fill(self, &Passed),
            Time::Precise => fill(self, &Precise::new()),
            Time::Coarse => fill(self, &Coarse::new()),
        }
    }

    fn batch(&self, time: Time, calls: u64, from: Nanos, step: Nanos) -> u64 {
        match time {
            Time::Passed => batch(self, &Passed, calls, from, step),
            Time::Precise => batch(self, &Precise::new(), calls, from, step),
            Time::Coarse => batch(self, &Coarse::new(), calls, from, step),
        }
    }

    fn batch_counted(&self, calls: u64, from: Nanos, step: Nanos) -> u64 {
        let (mut at, mut admitted) = (from, 0);
        for _ in 0..calls {
            admitted += u64::from(one_call(black_box(self), at));
            at = at + step;
        }
        admitted
    }

    fn until(&self, stop: &AtomicBool) -> (u64, u64) {
        let (clock, mut calls, mut admitted) = (Precise::new(), 0, 0);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..STRIDE {
                admitted += u64::from(call(self, &clock, START));
            }
            calls += STRIDE;
        }
        (calls, admitted)
    }

    fn until_timed(&self, stop: &AtomicBool, spans: &mut Histogram<u64>) -> u64 {
        let (clock, mut admitted) = (Precise::new(), 0);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..STRIDE {
                let begin = clock.now();
                admitted += u64::from(black_box(self).try_acquire(begin + START));
                spans.saturating_record((clock.now() - begin).as_nanos());
            }
        }
        admitted
    }
}

// === impl Path ===

impl Path {
    pub(crate) const BOTH: [Self; 2] = [Self::Admitted, Self::Refused];

    /// # Panics
    /// If a call went the other way.
    pub(crate) fn check(self, name: &str, calls: u64, admitted: u64) {
        let expected = if self == Self::Admitted { calls } else { 0 };
        assert_eq!(admitted, expected, "{name}: of {calls} calls, not the path it names: {self:?}");
    }
}

// === impl Crowd ===

impl Crowd {
    /// Each of so many threads calls until the time is up. They begin at a barrier, outside the time.
    pub(crate) fn run(
        threads: usize,
        time: Duration,
        work: impl Fn(&AtomicBool, usize) -> u64 + Sync,
    ) -> Self {
        let (gate, stop) = (&Barrier::new(threads + 1), &AtomicBool::new(false));
        let work = &work;
        let hands: Vec<Hand> = thread::scope(|scope| {
            let hands: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        gate.wait();
                        let (switches, begin) = (Switches::of_thread(), Instant::now());
                        let calls = work(stop, thread);
                        let end = Instant::now();
                        Hand { calls, begin, end, switches: Switches::of_thread().since(switches) }
                    })
                })
                .collect();
            gate.wait();
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            hands.into_iter().map(|hand| hand.join().expect("a thread panicked")).collect()
        });
        let disturbed = hands.iter().any(|hand| hand.switches > 0);
        Self { hands, disturbed }
    }

    /// Nanoseconds a call, of all threads together: the span in which they ran, by the calls of all.
    pub(crate) fn ns(&self) -> f64 {
        let begin = self.hands.iter().map(|hand| hand.begin).min();
        let end = self.hands.iter().map(|hand| hand.end).max();
        let (Some(begin), Some(end)) = (begin, end) else { return f64::NAN };
        (end - begin).as_nanos() as f64 / self.calls() as f64
    }

    /// The least share of a thread and the greatest, of an even share.
    pub(crate) fn shares(&self) -> [f64; 2] {
        let even = self.calls() as f64 / self.hands.len() as f64;
        let share = |calls: Option<u64>| calls.unwrap_or(0) as f64 / even;
        let calls = || self.hands.iter().map(|hand| hand.calls);
        [share(calls().min()), share(calls().max())]
    }

    fn calls(&self) -> u64 {
        self.hands.iter().map(|hand| hand.calls).sum()
    }
}
