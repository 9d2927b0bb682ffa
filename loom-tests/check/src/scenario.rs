//! What is run: calls before, calls at once, calls after.

use crate::limiter::{Call, acquire, acquire_by_clock};

/// Threads and their calls. `setup` runs alone before the threads, `after` alone once they are done.
///
/// At most [`THREADS_MAX`] threads, the clock's among them. Executions grow exponentially with threads and calls: two
/// or three threads with one or two calls each find nearly everything.
///
/// # Examples
/// ```
/// use tollgate_check::{Scenario, acquire};
///
/// let scenario = Scenario::new("last permit")
///     .setup([acquire(1, 10)])
///     .thread([acquire(1, 10)])
///     .thread([acquire(1, 11), acquire(1, 20)])
///     .after([acquire(1, 21)]);
/// assert_eq!(scenario.name(), "last permit");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) setup: Vec<Call>,
    pub(crate) threads: Vec<Vec<Call>>,
    pub(crate) after: Vec<Call>,
    /// What the clock shows: first before the threads start, then stored one after the other by a thread.
    pub(crate) clock: Vec<u64>,
}

/// The most threads of a scenario, the clock's among them (loom has five, and one joins the others).
pub const THREADS_MAX: usize = 4;

/// Ready-made scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Suite;

// === impl Scenario ===

impl Scenario {
    /// An empty scenario.
    pub fn new(name: impl Into<String>) -> Scenario {
        Scenario { name: name.into(), setup: vec![], threads: vec![], after: vec![], clock: vec![] }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls made before the threads start.
    pub fn setup(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.setup.extend(calls);
        self
    }

    /// One more thread.
    pub fn thread(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.threads.push(calls.into_iter().collect());
        self
    }

    /// Calls made after the threads have finished (or died): they show what state was left.
    pub fn after(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.after.extend(calls);
        self
    }

    /// A clock that shows the first of these times and is moved on to the others by a thread of its own. Calls
    /// read it if they say so ([`acquire_by_clock`](crate::acquire_by_clock)).
    pub fn clock(mut self, times: impl IntoIterator<Item = u64>) -> Self {
        self.clock.extend(times);
        self
    }

    /// All its calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.setup.iter().chain(self.threads.iter().flatten()).chain(&self.after)
    }

    /// Why this can not be run.
    pub(crate) fn fault(&self) -> Option<String> {
        let threads = self.threads.len() + usize::from(self.clock.len() > 1);
        let by_clock = |call: &Call| call.when() == Some(crate::When::Clock);
        if threads > THREADS_MAX {
            Some(format!("{threads} threads, at most {THREADS_MAX}"))
        } else if self.calls().count() > 32 {
            Some(format!("{} calls, at most 32", self.calls().count()))
        } else if self.clock.is_empty() && self.calls().any(by_clock) {
            Some("a call reads the clock, but there is none".into())
        } else {
            None
        }
    }

    /// Scenarios with one call or one thread less.
    pub(crate) fn smaller(&self) -> Vec<Scenario> {
        let mut smaller = Vec::new();
        let mut push = |change: &dyn Fn(&mut Scenario)| {
            let mut scenario = self.clone();
            change(&mut scenario);
            smaller.push(scenario);
        };
        for t in 0..self.threads.len() {
            push(&|s| drop(s.threads.remove(t)));
            for c in 0..self.threads[t].len() {
                if self.threads[t].len() > 1 {
                    push(&|s| drop(s.threads[t].remove(c)));
                }
            }
        }
        for c in 0..self.after.len() {
            push(&|s| drop(s.after.remove(c)));
        }
        for c in 0..self.setup.len() {
            push(&|s| drop(s.setup.remove(c)));
        }
        if self.clock.len() > 1 {
            push(&|s| s.clock.truncate(s.clock.len() - 1));
        }
        smaller
    }
}

// === impl Suite ===

impl Suite {
    /// The scenarios that break most limiters, for `limit` permits in any `window`: the last permit, a full ring
    /// that expires at once, the two ticks around the boundary, two calls each, a thread that a whole lap passes
    /// by, a pause of many windows, a clock that is late, a clock that ticks meanwhile, the first use, more than the
    /// limit at once, and weights. Limits of 1 to 3 show all there is; a window of at least 4 ticks.
    pub fn standard(limit: u64, window: u64) -> Vec<Scenario> {
        let t = 10 * window;
        let full = || (0..limit).map(|_| acquire(1, t));
        let mut suite = vec![
            Scenario::new("last permit")
                .setup(full().skip(1))
                .thread([acquire(1, t)])
                .thread([acquire(1, t)])
                .thread([acquire(1, t)]),
            Scenario::new("all expired at once")
                .setup(full())
                .thread([acquire(1, t + window)])
                .thread([acquire(1, t + window)])
                .after((0..limit).map(|_| acquire(1, t + window))),
            Scenario::new("one tick before the boundary")
                .setup(full())
                .thread([acquire(1, t + window - 1)])
                .thread([acquire(1, t + window)])
                .after([acquire(1, t + window)]),
            Scenario::new("two calls each")
                .thread([acquire(1, t), acquire(1, t + window)])
                .thread([acquire(1, t), acquire(1, t + window)]),
            Scenario::new("a lap behind")
                .setup(full())
                .thread([acquire(1, t + window)])
                .thread((0..=limit).map(|n| acquire(1, t + window + n * window / limit.max(1))))
                .after([acquire(1, t + 2 * window)]),
            Scenario::new("a long pause")
                .setup(full())
                .thread([acquire(1, t + 10 * window)])
                .thread([acquire(1, t + 10 * window + window / 2)])
                .after((0..limit).map(|_| acquire(1, t + 10 * window + window / 2))),
            Scenario::new("late clock")
                .setup(full().skip(1))
                .thread([acquire(1, t + window / 2)])
                .thread([acquire(1, t)])
                .after([acquire(1, t + window), acquire(1, t + window + window / 2)]),
            Scenario::new("ticking clock")
                .setup(full())
                .clock([t + window - 1, t + window])
                .thread([acquire_by_clock(1)])
                .thread([acquire_by_clock(1)]),
            Scenario::new("first use").thread([acquire(limit, 0)]).thread([acquire(1, 0)]),
            Scenario::new("more than the limit")
                .thread([acquire(limit + 1, t)])
                .thread([acquire(1, t)])
                .after([acquire(limit + 1, t + 10 * window)]),
        ];
        if limit >= 2 {
            suite.push(
                Scenario::new("weights")
                    .setup(full().skip(2))
                    .thread([acquire(2, t)])
                    .thread([acquire(1, t)])
                    .thread([acquire(1, t)]),
            );
        }
        suite
    }
}
