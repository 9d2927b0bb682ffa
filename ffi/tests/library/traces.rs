//! The answers of the naive models (`tests/contract/oracle.rs` of the core), and of the core's own types where the models
//! have none, asked from C.

use std::{ffi::OsStr, fmt::Write, fs, path::Path, time::Duration};

use tollgate::{Algorithm, Compact, Decision, Gcra, Nanos, Pacing, Rule, Sampled, TwoWindow, Wheel};

use crate::{
    cc::{Link, compile_and_run, has},
    oracle::{Answer, Naive, Oracle, Verdict},
};

/// The numbers of the header.
const LOG: u64 = 1;
const WINDOW: u64 = 2;
const FIXED: u64 = 3;
const TWO_WINDOW: u64 = 4;
const GCRA: u64 = 5;
const PACING: u64 = 6;
const COMPACT: u64 = 7;
const SAMPLED: u64 = 8;
const WHEEL: u64 = 9;
const TEXTBOOK: u64 = 1;
const BERNOULLI: u64 = 4;

/// What knows the right answers.
trait Judge {
    fn take(&mut self, cost: u64, now: u64) -> bool;
    fn check(&mut self, cost: u64, now: u64) -> Answer;
    fn peek(&self, cost: u64, now: u64) -> Answer;
    fn usage(&self, rule: usize, now: u64) -> Option<u64>;
}

/// The core's own type.
struct Core<A>(A);

/// A limiter as a line of the trace, but for its rules.
#[derive(Clone, Copy, Default)]
struct Shape {
    algorithm: u64,
    buckets: u64,
    flags: u64,
    max_cost: u64,
    burst: u64,
    word: u64,
    shards: u64,
}

/// A trace under construction.
struct Trace {
    text: String,
    seed: u64,
    limiters: usize,
    calls: usize,
    /// Whether time never steps back and no cost is above 1: then shards answer as one history.
    is_plain: bool,
}

impl Judge for Naive {
    fn take(&mut self, cost: u64, now: u64) -> bool {
        Oracle::check(self, cost, now).verdict == Verdict::Admitted
    }

    fn check(&mut self, cost: u64, now: u64) -> Answer {
        Oracle::check(self, cost, now)
    }

    fn peek(&self, cost: u64, now: u64) -> Answer {
        Oracle::peek(self, cost, now)
    }

    fn usage(&self, rule: usize, now: u64) -> Option<u64> {
        Oracle::usage(self, rule, now)
    }
}

impl<A: Algorithm> Judge for Core<A> {
    fn take(&mut self, cost: u64, now: u64) -> bool {
        self.0.try_acquire_at(cost, Nanos::from_nanos(now))
    }

    fn check(&mut self, cost: u64, now: u64) -> Answer {
        self.0.check_at(cost, Nanos::from_nanos(now)).into()
    }

    fn peek(&self, cost: u64, now: u64) -> Answer {
        self.0.peek_at(cost, Nanos::from_nanos(now)).into()
    }

    fn usage(&self, rule: usize, now: u64) -> Option<u64> {
        self.0.usage_at(rule, Nanos::from_nanos(now))
    }
}

/// Status and reason of a verdict, and the wait.
fn outcome(verdict: Verdict) -> (u64, u64, u64) {
    match verdict {
        Verdict::Admitted => (0, 0, 0),
        Verdict::Wait(wait) => (1, 1, wait),
        Verdict::Never => (2, 2, u64::MAX),
        Verdict::MaxCost(_) => (2, 3, u64::MAX),
        Verdict::OutOfRange => (INVALID, 0, 0),
    }
}

/// `TOLLGATE_E_INVALID`, as a word.
const INVALID: u64 = -2_i64 as u64;

impl Trace {
    fn new() -> Self {
        Self { text: String::new(), seed: 1, limiters: 0, calls: 0, is_plain: false }
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % bound
    }

    fn limiter(&mut self, shape: Shape, rules: &[Rule]) {
        let Shape { algorithm, buckets, flags, max_cost, burst, word, shards } = shape;
        let count = rules.len();
        write!(self.text, "limiter {algorithm} {count} {buckets} {flags} {max_cost} {burst} {word} {shards}")
            .unwrap();
        for rule in rules {
            write!(self.text, " {} {}", rule.limit, rule.window.as_nanos()).unwrap();
        }
        self.text.push('\n');
        self.limiters += 1;
    }

    /// The next time: near the last one, around an edge of the window, back, or anywhere.
    fn time(&mut self, now: u64, window: u64) -> u64 {
        match self.below(40) {
            0..16 => now,
            16..28 => now + self.below(window / 4 + 2),
            28..33 => now + window - 1 + self.below(3),
            33..38 if !self.is_plain => now.saturating_sub(self.below(window + 1)),
            33..38 => now + 1,
            38 => now + (1 << self.below(40)),
            _ => now + 5 * window,
        }
    }

    fn calls(&mut self, count: usize, judge: &mut impl Judge, rules: &[Rule]) {
        let (window, limit) = (rules[0].window.as_nanos(), rules[0].limit);
        let mut now = self.below(3) * window;
        for _ in 0..count {
            now = self.time(now, window).min(Nanos::MAX.as_nanos());
            let at = if self.below(50) == 0 { (1 << 62) + self.below(9) } else { now };
            let cost = match self.below(20) {
                0 => 0,
                _ if self.is_plain => 1,
                1 => limit + self.below(2),
                2..6 => 1 + self.below(limit.max(1)),
                _ => 1,
            };
            self.call(judge, rules.len(), cost, at);
        }
        self.calls += count;
    }

    fn call(&mut self, judge: &mut impl Judge, rules: usize, cost: u64, now: u64) {
        let text = match self.below(8) {
            0..4 => format!("take {cost} {now} {}", u8::from(judge.take(cost, now))),
            4..6 => format!("check {cost} {now} {}", decision(judge.check(cost, now))),
            6 => format!("peek {cost} {now} {}", decision(judge.peek(cost, now))),
            _ => {
                let rule = self.below(rules as u64 + 1);
                match judge.usage(rule as usize, now) {
                    Some(used) => format!("usage {rule} {now} 0 {used}"),
                    None => format!("usage {rule} {now} {INVALID} 0"),
                }
            }
        };
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Asks all of it from C.
    fn ask(self, name: &str) {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, &self.text).unwrap();
        let said = compile_and_run("traces", Link::Static, &[OsStr::new(&path)]);
        assert_eq!(said.trim(), format!("{} limiters {} calls", self.limiters, self.calls));
    }
}

/// A decision as a line has it; an error writes none.
fn decision(answer: Answer) -> String {
    let (status, reason, retry) = outcome(answer.verdict);
    if answer.verdict == Verdict::OutOfRange {
        return format!("{status} 0 0 0 0 0 0 0 0");
    }
    let Answer { rule, limit, remaining, next_after, reset_after, at, .. } = answer;
    format!("{status} {reason} {rule} {limit} {remaining} {retry} {next_after} {reset_after} {at}")
}

fn rule(limit: u64, window: u64) -> Rule {
    Rule::new(limit, Duration::from_nanos(window))
}

#[test]
fn log_window_and_fixed_answer_as_the_naive_models() {
    let mut trace = Trace::new();
    for round in 0..60 {
        let (limit, scale) = (trace.below(9), [60, 1_000, 1_000_000][round % 3]);
        let window = scale * 10 * (1 + trace.below(20));
        let mut rules = vec![rule(limit, window)];
        for times in 0..trace.below(3) {
            rules.push(rule(limit + 1 + trace.below(9), window * (times + 2)));
        }
        for max_cost in [0, 1, 1 + trace.below(6)] {
            let declared = if max_cost == 0 { u64::MAX } else { max_cost };
            let shape = Shape { algorithm: LOG, max_cost, ..Shape::default() };
            trace.limiter(shape, &rules);
            trace.calls(120, &mut Naive::log(&rules).max_cost(declared), &rules);

            let width = window / 10;
            for (flags, late, buckets) in [(0, 1, 0), (TEXTBOOK, 0, 10)] {
                let phase = trace.below(width);
                let shape =
                    Shape { algorithm: WINDOW, buckets, flags, max_cost, word: phase, ..Shape::default() };
                let mut naive =
                    Naive::window(&rules, 10, late, Duration::from_nanos(phase)).max_cost(declared);
                trace.limiter(shape, &rules);
                trace.calls(120, &mut naive, &rules);
            }

            let phase = trace.below(window);
            let shape = Shape { algorithm: FIXED, max_cost, word: phase, ..Shape::default() };
            let mut naive = Naive::window(&rules[..1], 1, 0, Duration::from_nanos(phase)).max_cost(declared);
            trace.limiter(shape, &rules[..1]);
            trace.calls(120, &mut naive, &rules[..1]);
        }
    }
    trace.ask("naive.trace");
}

#[test]
fn shards_answer_single_permits_as_one_history() {
    if !has("shards") {
        return;
    }
    let mut trace = Trace { is_plain: true, ..Trace::new() };
    for round in 0..60 {
        let (limit, shards) = (trace.below(12), 2 + trace.below(6));
        let window = [60, 1_000, 1_000_000][round % 3] * 10 * (1 + trace.below(20));
        let rules = [rule(limit, window)];
        for max_cost in [0, 1] {
            let shape = Shape { algorithm: LOG, max_cost, shards, ..Shape::default() };
            trace.limiter(shape, &rules);
            trace.calls(150, &mut Naive::log(&rules), &rules);
            let phase = trace.below(window / 10);
            let shape = Shape { algorithm: WINDOW, max_cost, shards, word: phase, ..Shape::default() };
            trace.limiter(shape, &rules);
            trace.calls(150, &mut Naive::window(&rules, 10, 1, Duration::from_nanos(phase)), &rules);
        }
    }
    trace.ask("shards.trace");
}

#[test]
fn the_others_answer_as_the_core() {
    let mut trace = Trace::new();
    let plain = |algorithm| Shape { algorithm, ..Shape::default() };
    for _ in 0..40 {
        let limit = 1 + trace.below(12);
        let window = 1_000 * (1 + trace.below(50));
        let rules = [rule(limit, window)];
        let span = Duration::from_nanos(window);

        trace.limiter(plain(TWO_WINDOW), &rules);
        trace.calls(100, &mut Core(TwoWindow::builder(limit, span).build().unwrap()), &rules);
        trace.limiter(plain(GCRA), &rules);
        trace.calls(100, &mut Core(Gcra::builder(limit, span).build().unwrap()), &rules);
        let burst = 1 + trace.below(20);
        trace.limiter(Shape { burst, ..plain(GCRA) }, &rules);
        trace.calls(100, &mut Core(Gcra::builder(limit, span).burst(burst).build().unwrap()), &rules);
        trace.limiter(Shape { burst, ..plain(PACING) }, &rules);
        trace.calls(100, &mut Core(Pacing::builder(limit, span).queue(burst).build().unwrap()), &rules);
        if !has("std") {
            continue;
        }

        let tick = Duration::from_nanos(window / 1_000);
        trace.limiter(plain(COMPACT), &rules);
        trace.calls(100, &mut Core(Compact::builder(limit, span).build().unwrap()), &rules);
        trace.limiter(Shape { buckets: 1_000, ..plain(COMPACT) }, &rules);
        trace.calls(100, &mut Core(Compact::builder(limit, span).tick(tick).build().unwrap()), &rules);
        trace.limiter(plain(SAMPLED), &rules);
        trace.calls(100, &mut Core(Sampled::builder(limit, span).build().unwrap()), &rules);
        let sampled = Sampled::builder(limit, span).every(limit).build().unwrap();
        trace.limiter(Shape { buckets: limit, ..plain(SAMPLED) }, &rules);
        trace.calls(100, &mut Core(sampled), &rules);
        let by_chance = Sampled::builder(limit, span).bernoulli(limit, 99).build().unwrap();
        trace.limiter(Shape { buckets: limit, flags: BERNOULLI, word: 99, ..plain(SAMPLED) }, &rules);
        trace.calls(100, &mut Core(by_chance), &rules);
        trace.limiter(plain(WHEEL), &rules);
        trace.calls(100, &mut Core(Wheel::builder(limit, span).build().unwrap()), &rules);
        let wheel = Wheel::builder(limit, span).geometry(1, 1_000, tick).build().unwrap();
        trace.limiter(Shape { buckets: 1_000, ..plain(WHEEL) }, &rules);
        trace.calls(100, &mut Core(wheel), &rules);
    }
    trace.ask("core.trace");
}

#[test]
fn places_in_a_queue_are_those_of_the_core() {
    let mut trace = Trace::new();
    for _ in 0..40 {
        let (limit, window, burst) = (1 + trace.below(12), 1_000 * (1 + trace.below(50)), 1 + trace.below(9));
        let pacing = Pacing::builder(limit, Duration::from_nanos(window)).queue(burst).build().unwrap();
        let mut now = 0;
        trace.limiter(Shape { algorithm: PACING, burst, ..Shape::default() }, &[rule(limit, window)]);
        for _ in 0..100 {
            now = trace.time(now, window / limit + 1);
            let cost = trace.below(burst + 3);
            let (status, wait) = match pacing.reserve_at(cost, Nanos::from_nanos(now)) {
                Ok(place) => (0, place.wait().as_nanos()),
                Err(denied) => {
                    let (status, _, wait) = outcome(Answer::from(Decision::Err(denied)).verdict);
                    (status, wait)
                }
            };
            writeln!(trace.text, "reserve {cost} {now} {status} {wait}").unwrap();
        }
        trace.calls += 100;
    }
    trace.ask("queue.trace");
}
