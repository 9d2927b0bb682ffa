//! Threads: exact totals while time stands still, and no window over its limit while it runs.
//!
//! Every test is a round; `ci/stress.sh` sets `TOLLGATE_STRESS_MS`, and rounds follow one another for so long.

use std::{
    env, hint,
    sync::{
        Barrier,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
    thread,
    time::{Duration, Instant},
};

use tollgate::{Algorithm, Coverage, Nanos, Rule};

use crate::{
    forms,
    oracle::{Grain, Naive, Oracle},
};

/// Runs `round` once; under stress again and again, each time with another number.
pub(crate) fn rounds(mut round: impl FnMut(u64)) {
    let length = env::var("TOLLGATE_STRESS_MS").ok().map(|ms| ms.parse().expect("milliseconds"));
    let (start, length) = (Instant::now(), Duration::from_millis(length.unwrap_or(0)));
    let mut done = 0;
    while done == 0 || start.elapsed() < length {
        round(done);
        done += 1;
    }
    if !length.is_zero() {
        println!("{}: {done} rounds", thread::current().name().unwrap_or("main"));
    }
}

/// Runs `call(thread, round)` on that many threads, every round from a barrier; the results by thread and round.
///
/// The barrier spins: sleepers wake one after the other, long after the first has made its call.
pub(crate) fn from_a_barrier(
    threads: usize,
    rounds: usize,
    call: impl Fn(usize, usize) -> u64 + Sync,
) -> Vec<Vec<u64>> {
    let (call, arrived) = (&call, &AtomicUsize::new(0));
    let run = move |thread| {
        let round = |round| {
            arrived.fetch_add(1, AcqRel);
            let mut spins = 0;
            while arrived.load(Acquire) < threads * (round + 1) {
                spins += 1;
                // More threads than cores: somebody still has to get there.
                if spins % 512 == 0 { thread::yield_now() } else { hint::spin_loop() }
            }
            call(thread, round)
        };
        (0..rounds).map(round).collect()
    };
    thread::scope(|scope| {
        let hands: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        hands.into_iter().map(|hand| hand.join().expect("a thread panicked")).collect()
    })
}

/// The total of each round over all threads.
pub(crate) fn sum(results: &[Vec<u64>]) -> impl Iterator<Item = u64> {
    (0..results[0].len()).map(move |round| results.iter().map(|thread| thread[round]).sum())
}

pub(crate) const RULES: [(u64, u64); 2] = [(7, 40), (12, 120)];

fn rules() -> Vec<Rule> {
    RULES.map(|(limit, window)| Rule::new(limit, Duration::from_nanos(window))).into()
}

/// Every form of the histories, with its model.
fn subjects() -> Vec<(&'static str, Box<dyn Algorithm>, Naive, u64)> {
    let rules = rules();
    let counter = |coverage| -> (Box<dyn Algorithm>, Naive) {
        let model = Naive::window(&rules, 5, forms::late(coverage), Duration::ZERO);
        (Box::new(forms::window(&rules, 5, coverage)), model)
    };
    let (full, full_model) = counter(Coverage::Full);
    let (textbook, textbook_model) = counter(Coverage::Textbook);
    vec![
        ("log, any cost", Box::new(forms::log(&rules, None)), Naive::log(&rules), 3),
        ("log, cost up to 3", Box::new(forms::log(&rules, Some(3))), Naive::log(&rules), 3),
        ("log, cost 1", Box::new(forms::log(&rules, Some(1))), Naive::log(&rules), 1),
        ("counter, full", full, full_model, 3),
        ("counter, textbook", textbook, textbook_model, 3),
    ]
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(0x7011_6A7E ^ seed << 32)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The clock of each round: it stands, creeps, meets the edges, leaps, and at times steps back.
pub(crate) fn clock(rounds: usize, seed: u64) -> Vec<u64> {
    let (mut noise, mut now) = (Noise::new(seed), 1_000_u64);
    let mut step = |_| {
        now = match noise.below(16) {
            0..2 => now,
            2..8 => now + noise.below(8),
            8..12 => now + 19 + noise.below(3),
            12..14 => now + 59 + noise.below(6),
            14 => now + 1_000 + noise.below(1_000),
            _ => now - noise.below(30),
        };
        now
    };
    (0..rounds).map(&mut step).collect()
}

/// Threads take what is free, most of it dear, until nothing is: together exactly what the model has free.
fn exact_totals(
    (name, limiter, mut model, dearest): (&str, Box<dyn Algorithm>, Naive, u64),
    threads: usize,
    times: &[u64],
) {
    // Time moves between the barriers: a thread passes the next one once all have ended the round.
    let results = from_a_barrier(threads, times.len(), |thread, round| {
        let now = Nanos::from_nanos(times[round]);
        let dear = 1 + thread as u64 % dearest;
        let mut taken = 0;
        for cost in [dear, 1] {
            while limiter.try_acquire_at(cost, now) {
                taken += cost;
            }
        }
        taken
    });
    for (round, (total, now)) in sum(&results).zip(times).enumerate() {
        let free = model.peek(0, *now).remaining;
        assert_eq!(total, free, "{name}, {threads} threads, round {round} at {now}");
        if free > 0 {
            model.record(free, *now);
        }
    }
}

#[test]
fn two_threads_take_exactly_what_is_free() {
    rounds(|n| subjects().into_iter().for_each(|subject| exact_totals(subject, 2, &clock(2_000, n))));
}

#[test]
fn four_threads_take_exactly_what_is_free() {
    rounds(|n| subjects().into_iter().for_each(|subject| exact_totals(subject, 4, &clock(1_000, n))));
}

#[test]
fn eight_threads_take_exactly_what_is_free() {
    rounds(|n| subjects().into_iter().for_each(|subject| exact_totals(subject, 8, &clock(500, n))));
}

/// The head of so large a log holds 42 bits of a time: the clock leaves its base behind again and again.
#[test]
fn threads_take_exactly_what_is_free_from_a_large_log_that_jumps() {
    let scale = 1 << 38;
    let window = |n: u64| Duration::from_nanos(n * scale);
    let rules = [Rule::new(7, window(20)), Rule::new(12, window(60)), Rule::new(1 << 20, window(60))];
    rounds(|n| {
        let times: Vec<u64> = clock(400, n).into_iter().map(|t| t * scale).collect();
        for threads in [2, 4, 8] {
            let log = Box::new(forms::log(&rules, None));
            exact_totals(("large log", log, Naive::log(&rules), 3), threads, &times);
        }
    });
}

/// Every round the limiter is empty again, and the threads together ask for exactly the limit: nobody is refused,
/// however the calls meet.
#[test]
fn no_caller_is_refused_while_there_is_room_for_all() {
    let rules = [Rule::new(24, Duration::from_nanos(100)), Rule::new(48, Duration::from_nanos(200))];
    let forms: [(&str, Box<dyn Algorithm>, u64); 5] = [
        ("log, any cost", Box::new(forms::log(&rules[..1], None)), 3),
        ("log, cost 1", Box::new(forms::log(&rules[..1], Some(1))), 1),
        ("log, two rules", Box::new(forms::log(&rules, None)), 1),
        ("log, cost 1, two rules", Box::new(forms::log(&rules, Some(1))), 1),
        ("counter", Box::new(forms::window(&rules, 2, Coverage::Full)), 3),
    ];
    // Three windows on in each turn, and later in each turn of the threads than in the one before.
    let turn = AtomicU64::new(0);
    rounds(|_| {
        for threads in [2, 4, 8] {
            let first = turn.fetch_add(4_000, Relaxed);
            for (name, limiter, cost) in &forms {
                let tries = 24 / cost / threads as u64;
                let refused = from_a_barrier(threads, 4_000, |_, round| {
                    let now = Nanos::from_nanos((first + round as u64 + 1) * 300);
                    (0..tries).map(|_| u64::from(!limiter.try_acquire_at(*cost, now))).sum()
                });
                assert_eq!(sum(&refused).sum::<u64>(), 0, "{name}, {threads} threads");
            }
        }
    });
}

/// A call while time runs. An admission was recorded at some time from `from`, which the caller passed, to `to`,
/// the newest time seen after it; a refusal was judged at `to`.
pub(crate) struct Event {
    pub(crate) admitted: bool,
    pub(crate) cost: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Calls as fast as the threads can, each at the time that `clock` gives to that thread.
pub(crate) fn free_running(
    limiter: &dyn Algorithm,
    dearest: u64,
    threads: usize,
    calls: usize,
    clock: &(dyn Fn(usize) -> u64 + Sync),
) -> Vec<Event> {
    let barrier = &Barrier::new(threads);
    let run = move |thread: usize| {
        let one = |n: usize| {
            let cost = 1 + n as u64 % dearest;
            let from = clock(thread);
            let now = Nanos::from_nanos(from);
            // Both doors: the full answer, and the quick one with the time read afterwards.
            let (admitted, quota) = match (n / 4).is_multiple_of(2) {
                true => match limiter.check_at(cost, now) {
                    Ok(quota) => (true, quota),
                    Err(denied) => (false, denied.quota),
                },
                false if limiter.try_acquire_at(cost, now) => {
                    (true, limiter.peek_at(0, now).expect("cost 0"))
                }
                false => return None,
            };
            Some(Event { admitted, cost, from, to: quota.at.as_nanos() })
        };
        barrier.wait();
        (0..calls).filter_map(one).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let hands: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        hands.into_iter().flat_map(|hand| hand.join().expect("a thread panicked")).collect()
    })
}

/// The spans of time in which costs count, for sums at an instant.
pub(crate) struct Spans {
    /// Starts and ends with the sum of all costs up to each.
    starts: Vec<(i128, u64)>,
    ends: Vec<(i128, u64)>,
}

impl Spans {
    pub(crate) fn new(spans: impl Iterator<Item = (i128, i128, u64)> + Clone) -> Self {
        let summed = |mut list: Vec<(i128, u64)>| {
            list.sort_unstable();
            let mut total = 0;
            list.iter_mut().for_each(|(_, cost)| {
                total += *cost;
                *cost = total;
            });
            list
        };
        let spans = spans.filter(|&(start, end, _)| start < end);
        Self {
            starts: summed(spans.clone().map(|(start, _, cost)| (start, cost)).collect()),
            ends: summed(spans.map(|(_, end, cost)| (end, cost)).collect()),
        }
    }

    /// The sum of the costs whose spans hold `t`.
    pub(crate) fn at(&self, t: i128) -> u64 {
        let upto = |list: &[(i128, u64)]| {
            list.partition_point(|&(edge, _)| edge <= t).checked_sub(1).map_or(0, |last| list[last].1)
        };
        upto(&self.starts) - upto(&self.ends)
    }

    /// The largest sum at any instant.
    pub(crate) fn most(&self) -> u64 {
        self.starts.iter().map(|&(t, _)| self.at(t)).max().unwrap_or(0)
    }
}

/// Checks every window and every refusal of a free run against the two ends of what may have been charged.
pub(crate) fn audit(name: &str, events: &[Event], grain: Grain, rules: &[(u64, u64)]) {
    let admitted = events.iter().filter(|event| event.admitted);
    let charge = |&(limit, window): &(u64, u64)| {
        // Whatever the interleaving, it was charged at least from `to`, at most until `to` leaves.
        let surely = admitted.clone().map(|e| (e.to.into(), grain.leaves(e.from, window), e.cost));
        let possibly = admitted.clone().map(|e| (grain.start(e.from), grain.leaves(e.to, window), e.cost));
        let most = Spans::new(surely).most();
        assert!(most <= limit, "{name}: {most} permits within a window of {window}, limit {limit}");
        (limit, Spans::new(possibly))
    };
    let charged: Vec<_> = rules.iter().map(charge).collect();
    for denied in events.iter().filter(|event| !event.admitted) {
        let full = |(limit, charged): &(u64, Spans)| charged.at(denied.to.into()) + denied.cost > *limit;
        assert!(charged.iter().any(full), "{name}: refused {} at {} with room", denied.cost, denied.to);
    }
    assert!(admitted.count() > 100, "{name}: the run must go through many windows");
}

/// The time that each thread reads, made anew for each run.
pub(crate) type MakeClock = fn() -> Box<dyn Fn(usize) -> u64 + Sync>;

pub(crate) const EVERY_CALL_TICKS: MakeClock = || {
    let ticks = AtomicU64::new(1_000);
    Box::new(move |_| ticks.fetch_add(1, Relaxed))
};

/// Time moves on every fourth call of the first thread; the others read what is there.
pub(crate) const A_SHARED_CLOCK: MakeClock = || {
    let (ticks, calls) = (AtomicU64::new(1_000), AtomicU64::new(0));
    Box::new(move |thread| {
        if thread == 0 && calls.fetch_add(1, Relaxed).is_multiple_of(4) {
            ticks.fetch_add(3, Relaxed);
        }
        ticks.load(Relaxed)
    })
};

pub(crate) const CLOCKS_THAT_DISAGREE: MakeClock = || {
    let ticks = AtomicU64::new(1_000);
    Box::new(move |thread| ticks.fetch_add(1, Relaxed) - 9 * thread as u64)
};

/// In units of a quarter of a microsecond, to fit the windows.
pub(crate) const REAL_TIME: MakeClock = || {
    let start = Instant::now();
    Box::new(move |_| u64::try_from(start.elapsed().as_nanos() / 250).expect("a short run"))
};

/// Free runs of every form on 2, 4 and 8 threads.
fn audit_all(calls: usize, clock: MakeClock) {
    rounds(|_| {
        for threads in [2, 4, 8] {
            for (name, limiter, model, dearest) in subjects() {
                let events = free_running(&*limiter, dearest, threads, calls / threads, &clock());
                audit(&format!("{name}, {threads} threads"), &events, model.grain(), &RULES);
            }
        }
    });
}

#[test]
fn no_window_is_over_and_no_refusal_false_while_every_call_ticks() {
    audit_all(20_000, EVERY_CALL_TICKS);
}

#[test]
fn no_window_is_over_and_no_refusal_false_while_a_shared_clock_is_read() {
    audit_all(40_000, A_SHARED_CLOCK);
}

#[test]
fn no_window_is_over_and_no_refusal_false_with_clocks_that_disagree() {
    audit_all(20_000, CLOCKS_THAT_DISAGREE);
}

#[test]
fn no_window_is_over_and_no_refusal_false_in_real_time() {
    audit_all(20_000, REAL_TIME);
}
