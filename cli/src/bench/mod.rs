//! How fast every algorithm is on this machine, and the proof that none of them let too much through.
//!
//! # What
//! A row is one algorithm, one answer, one clock, so many threads, which all ask one limiter until their time is up; the
//! floor beside it is a bare compare-and-swap by as many threads on one word. Afterwards [`proof`] records what limiters
//! admit and counts it.

mod proof;
pub(crate) mod report;

use std::{
    fmt,
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use serde::Serialize;
use tollgate::{Clock, Coarse, CoarseError, Precise, Rule};

pub(crate) use self::proof::{Proof, prove};
use crate::lineup::{Limiter, Name, Settings, Unfit};

/// How often the cached time is renewed.
const RESOLUTION: Duration = Duration::from_micros(100);

/// Calls between two looks at the time.
const BATCH: u64 = 1_000;

/// How often a row is tried that something else on the machine spoils.
const TRIES: u32 = 3;

/// Permits of a log in a millisecond: more than anybody asks for, and not much memory.
const PLENTY: u64 = 1 << 20;

/// The most calls of a row: fewer than any counter has room for.
const CALLS: u64 = 1 << 28;

/// Five years, in ten buckets.
const AGES: Duration = Duration::from_nanos(10 << 54);

/// Admissions a second of one thread with the cached clock: below is a failure to explain.
const ENOUGH: f64 = 10e6;

/// Which way a row's calls go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Admitted,
    Refused,
}

/// What a row's calls read the time from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Time {
    Coarse,
    Precise,
}

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct BenchReport {
    /// By number of threads: nanoseconds of a bare load and compare-and-swap of one thread.
    pub(crate) floors: Vec<Floor>,
    pub(crate) rows: Vec<Row>,
    /// Algorithms that admit less than 10 million times a second with one thread and the cached clock.
    pub(crate) slow: Vec<&'static str>,
    pub(crate) proofs: Vec<Proof>,
}

/// What nothing can be faster than.
#[derive(Serialize)]
pub(crate) struct Floor {
    pub(crate) threads: usize,
    pub(crate) ns: f64,
}

/// One algorithm, one way.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) algorithm: &'static str,
    pub(crate) threads: usize,
    pub(crate) clock: Time,
    pub(crate) answer: Answer,
    pub(crate) calls: u64,
    /// Of one thread: the median of the means of batches.
    pub(crate) ns_per_check: f64,
    /// Of all threads together, by the clock on the wall.
    pub(crate) checks_per_second: f64,
    pub(crate) x_cas: f64,
}

/// Why there is nothing to report.
#[derive(Debug)]
pub(crate) enum Error {
    /// There is no cached clock.
    Clock(CoarseError),
    /// A limiter could not be had.
    Unfit { name: Name, why: Unfit },
    /// A row's calls went another way, three times over.
    Astray { name: Name, answer: Answer, went: u64, calls: u64 },
    /// A limiter went over what it promises.
    Over { name: Name, peak: u64, bound: u64 },
}

/// What all threads of a row did.
struct Run {
    calls: u64,
    admitted: u64,
    time: Duration,
    /// The mean time of a call in each batch of each thread, in picoseconds.
    paces: Histogram<u64>,
}

/// Measures one row: so many threads for so long.
///
/// # Errors
/// [`Error::Clock`], [`Error::Unfit`], [`Error::Astray`].
pub(crate) fn row(
    name: Name,
    answer: Answer,
    clock: Time,
    threads: usize,
    time: Duration,
    floor: &Floor,
) -> Result<Row, Error> {
    for tried in 1.. {
        let limiter = limiter(name, answer)?;
        let run = match clock {
            Time::Precise => timed(threads, time, &limiter, &Precise::new()),
            Time::Coarse => {
                let guard = Coarse::start(RESOLUTION).map_err(Error::Clock)?;
                timed(threads, time, &limiter, &guard.clock())
            }
        };
        let went = if answer == Answer::Admitted { run.admitted } else { run.calls - run.admitted };
        if run.calls - went <= run.calls / 1_000 {
            let ns_per_check = run.ns();
            return Ok(Row {
                algorithm: name.as_str(),
                threads,
                clock,
                answer,
                calls: run.calls,
                ns_per_check,
                checks_per_second: run.calls as f64 / run.time.as_secs_f64(),
                x_cas: ns_per_check / floor.ns,
            });
        }
        if tried == TRIES {
            return Err(Error::Astray { name, answer, went, calls: run.calls });
        }
    }
    unreachable!("the last try returns")
}

/// Measures a bare load and compare-and-swap by so many threads on one word.
pub(crate) fn floor(threads: usize, time: Duration) -> Floor {
    let word = AtomicU64::new(0);
    let run = on_threads(threads, time, || {
        let seen = black_box(&word).load(Ordering::Acquire);
        word.compare_exchange(seen, seen.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    });
    Floor { threads, ns: run.ns() }
}

/// The algorithms that are too slow to need no explanation.
pub(crate) fn slow(rows: &[Row]) -> Vec<&'static str> {
    let counts = |row: &&Row| row.threads == 1 && row.clock == Time::Coarse && row.answer == Answer::Admitted;
    let slow = |row: &&Row| row.ns_per_check > 1e9 / ENOUGH;
    rows.iter().filter(counts).filter(slow).map(|row| row.algorithm).collect()
}

/// A limiter whose calls all go one way.
fn limiter(name: Name, answer: Answer) -> Result<Limiter, Error> {
    match (answer, name) {
        (Answer::Admitted, Name::Log | Name::Compact | Name::Sampled | Name::Wheel) => {
            build(name, PLENTY, Duration::from_millis(1))
        }
        // Those that only count: as many as they can, in a window that does not end.
        (Answer::Admitted, _) => {
            let built = CALLS.ilog2() + 1..62;
            let built = built.rev().find_map(|bits| build(name, 1 << bits, AGES).ok());
            built.map_or_else(|| build(name, CALLS, AGES), Ok)
        }
        (Answer::Refused, _) => {
            // So long that nothing comes back meanwhile.
            let limiter = build(name, 1_000, Duration::from_secs(30 * 86_400))?;
            let now = Precise::new().now();
            // At most two windows' worth, and a queue: less than a hundred thousand.
            let full = (0..100_000).any(|_| !limiter.admits_at(now));
            let astray = Error::Astray { name, answer, went: 0, calls: 100_000 };
            if full { Ok(limiter) } else { Err(astray) }
        }
    }
}

fn build(name: Name, limit: u64, window: Duration) -> Result<Limiter, Error> {
    let settings = Settings { rules: vec![Rule::new(limit, window)], buckets: None, burst: None };
    settings.build(name, 0).map_err(|why| Error::Unfit { name, why })
}

fn timed(threads: usize, time: Duration, limiter: &Limiter, clock: &(impl Clock + Sync)) -> Run {
    on_threads(threads, time, || black_box(limiter).admits_at(clock.now()))
}

/// Calls `ask` from so many threads at once until the time, or the calls, are up.
fn on_threads(threads: usize, time: Duration, ask: impl Fn() -> bool + Sync) -> Run {
    let gate = Barrier::new(threads);
    let work = || {
        gate.wait();
        let start = Instant::now();
        let mut run = Run { calls: 0, admitted: 0, time: Duration::ZERO, paces: paces() };
        while run.time < time && run.calls < CALLS / threads as u64 {
            for _ in 0..BATCH {
                run.admitted += u64::from(ask());
            }
            run.calls += BATCH;
            let now = start.elapsed();
            let pace = (now - run.time).as_nanos() * 1_000 / u128::from(BATCH);
            // Never fails: a histogram made by `new` grows to take any value.
            let _ = run.paces.record(u64::try_from(pace).unwrap_or(u64::MAX));
            run.time = now;
        }
        run
    };
    let runs: Vec<Run> = thread::scope(|scope| {
        let hands: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        hands.into_iter().map(|hand| hand.join().expect("nothing in there panics")).collect()
    });
    let mut all = Run { calls: 0, admitted: 0, time: Duration::ZERO, paces: paces() };
    for run in runs {
        all.calls += run.calls;
        all.admitted += run.admitted;
        all.time = all.time.max(run.time);
        let _ = all.paces.add(&run.paces); // As above.
    }
    all
}

fn paces() -> Histogram<u64> {
    Histogram::new(3).expect("3 digits are few enough")
}

// === impl Run ===

impl Run {
    /// The time of a call, in nanoseconds: the median, since now and then the system runs something else in the middle
    /// of a batch.
    fn ns(&self) -> f64 {
        self.paces.value_at_quantile(0.5) as f64 / 1e3
    }
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock(error) => write!(f, "no cached clock: {error}"),
            Self::Unfit { name, why } => write!(f, "{name}: {why}"),
            Self::Astray { name, answer, went, calls } => {
                let answer = if *answer == Answer::Admitted { "admitted" } else { "refused" };
                write!(
                    f,
                    "{name}: of {calls} calls only {went} were {answer}: this machine is too busy to tell"
                )
            }
            Self::Over { name, peak, bound } => {
                write!(f, "{name}: {peak} admissions within one window, and {bound} is its bound")
            }
        }
    }
}

impl std::error::Error for Error {}

// === time ===

impl Time {
    /// In tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Coarse => "coarse",
            Self::Precise => "precise",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    /// Every algorithm, both ways: what a row says is what its calls did.
    #[test]
    fn rows_go_the_way_they_name() {
        let floor = floor(1, SHORT);
        assert!(floor.ns > 0.0);
        for name in Name::ALL {
            for answer in [Answer::Admitted, Answer::Refused] {
                let row = row(name, answer, Time::Precise, 1, SHORT, &floor).unwrap();
                assert!(row.calls >= BATCH && row.ns_per_check > 0.0, "{name}");
            }
        }
    }

    #[test]
    fn slow_is_less_than_ten_million_a_second_with_one_thread_and_the_coarse_clock() {
        let row = |algorithm, threads, clock, answer, ns_per_check| Row {
            algorithm,
            threads,
            clock,
            answer,
            calls: 1,
            ns_per_check,
            checks_per_second: 1.0,
            x_cas: 1.0,
        };
        let rows = [
            row("log", 1, Time::Coarse, Answer::Admitted, 100.0),
            row("wheel", 1, Time::Coarse, Answer::Admitted, 100.1),
            row("a", 2, Time::Coarse, Answer::Admitted, 900.0),
            row("b", 1, Time::Precise, Answer::Admitted, 900.0),
            row("c", 1, Time::Coarse, Answer::Refused, 900.0),
        ];
        assert_eq!(slow(&rows), ["wheel"]);
    }
}
