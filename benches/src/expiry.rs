//! The call before which everything in a full log expires. The deque of the textbook removes it all in that very call.

use std::{
    collections::VecDeque,
    hint::black_box,
    time::{Duration, Instant},
};

use tollgate::{Algorithm, Log, Nanos, Wheel};

use crate::START;

const WINDOW: Nanos = Nanos::from_secs(1);

/// Something full, time and again, at the time up to which it has come.
pub struct Expiry {
    /// What is called.
    pub name: &'static str,
    now: Nanos,
    call: Box<dyn FnMut(Nanos) -> bool>,
}

/// The textbook's log.
struct Deque {
    limit: usize,
    times: VecDeque<Nanos>,
}

impl Deque {
    fn try_acquire_at(&mut self, now: Nanos) -> bool {
        while self.times.front().is_some_and(|&oldest| oldest + WINDOW <= now) {
            self.times.pop_front();
        }
        let admits = self.times.len() < self.limit;
        if admits {
            self.times.push_back(now);
        }
        admits
    }
}

impl Expiry {
    fn new(name: &'static str, call: impl FnMut(Nanos) -> bool + 'static) -> Self {
        Self { name, now: START, call: Box::new(call) }
    }

    /// The time of one call, before which all that the others filled expires, as often as asked.
    ///
    /// # Panics
    /// If that call was refused.
    pub fn time(&mut self, times: u64) -> Duration {
        let mut timed = Duration::ZERO;
        for _ in 0..times {
            while (self.call)(self.now) {}
            self.now = self.now + WINDOW;
            let start = Instant::now();
            let admitted = black_box((self.call)(black_box(self.now)));
            timed += start.elapsed();
            assert!(admitted, "{}", self.name);
        }
        timed
    }
}

/// Both logs, the wheel and the deque, of so many permits.
pub fn expiries(limit: u64) -> Vec<Expiry> {
    let log = |max_cost| {
        let log = Log::builder(limit, WINDOW.into()).max_cost(max_cost).build().unwrap();
        move |now| log.try_acquire_at(1, now)
    };
    let wheel = Wheel::builder(limit, WINDOW.into()).build().unwrap();
    let mut deque = Deque { limit: limit as usize, times: VecDeque::new() };
    vec![
        Expiry::new("log", log(u64::MAX)),
        Expiry::new("log of single permits", log(1)),
        Expiry::new("wheel", move |now| wheel.try_acquire_at(1, now)),
        Expiry::new("deque", move |now| deque.try_acquire_at(now)),
    ]
}

/// The time of so many readings of the clock, one after the other: what a call's time holds beside the call.
pub fn clock_alone(times: u64) -> Duration {
    (0..times).map(|_| Instant::now().elapsed()).sum()
}
