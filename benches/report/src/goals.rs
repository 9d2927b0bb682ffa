//! The goals, each met or refuted by what was measured; and beside what is refuted the floor that was measured for it.

use tollgate_benches::Axis;

use crate::{
    Report, count, crowd,
    drive::{Path, Time},
    keyed, lineup,
    markdown::{Table, ns, times},
    memory, shape, single,
};

/// A goal: what for, how much at most (or at least), and what was measured.
struct Goal {
    what: String,
    measured: f64,
    bound: f64,
    at_least: bool,
    /// What stands in the way, should it be refuted: what the floor is, by the figures of this run.
    why: String,
}

const REFUTED: &str = "**refuted**";
const LOGS: [&str; 2] = ["log", "log of single permits"];

impl Goal {
    fn at_most(what: impl Into<String>, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, at_least: false, why: String::new() }
    }

    fn at_least(what: impl Into<String>, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, at_least: true, why: String::new() }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    fn verdict(&self) -> &'static str {
        match () {
            () if self.measured.is_nan() => "not measured",
            () if self.at_least == (self.measured >= self.bound) || self.measured == self.bound => "met",
            () => REFUTED,
        }
    }
}

/// Times the floor, one thread.
fn over_floor(report: &Report, name: &'static str, path: Path, time: Time) -> f64 {
    let label = single::Label { name, path, time };
    report.singles.ratio(&label, &single::Label { name: lineup::floor(path), ..label })
}

/// What an exact log can not do without, beside one of ours.
fn log_floor(report: &Report, name: &'static str, path: Path, time: Time) -> String {
    let label = single::Label { name, path, time };
    let floor = single::Label { name: lineup::LOG_FLOOR, ..label };
    let of_all = single::Label { name: lineup::floor(path), ..label };
    let counted = |name| count::find(&report.counts, name, path).map_or("?".to_owned(), |it| it.to_string());
    let does = match path {
        Path::Admitted => "one CAS on its head and one on a slot, after a look at that slot,",
        Path::Refused => "a look at its head and at the slot a lap back",
    };
    format!(
        "The least that an exact log does, {does} takes {} ns and {} instructions: {} x the floor of all. Ours takes {} ns and {} \
         instructions, {} x that. {}",
        ns(report.singles.median(&floor)),
        counted(lineup::LOG_FLOOR),
        times(report.singles.ratio(&floor, &of_all)),
        ns(report.singles.median(&label)),
        counted(name),
        times(report.singles.ratio(&label, &floor)),
        if path == Path::Admitted { ADMITTED_ABOVE } else { REFUSED_ABOVE },
    )
}

const REFUSED_ABOVE: &str = "The rest tells laps apart, judges late callers at the newest time, and looks at the head again: without that \
    a rival's admission in between is a false refusal.";
const ADMITTED_ABOVE: &str = "The rest tells laps apart, admits any cost by one CAS, and writes the slot of the admission before, whose \
    caller may be dead, having made sure that the head still names its time.";

fn alone(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut all = |path, time, bounds: [f64; 3]| {
        for (name, bound) in ["counter", LOGS[0], LOGS[1]].into_iter().zip(bounds) {
            let what = format!("{name}, {path:?}, {time:?} clock, 1 thread, x floor");
            let goal = Goal::at_most(what, over_floor(report, name, path, time), bound);
            goals.push(if name == "counter" {
                goal
            } else {
                goal.because(log_floor(report, name, path, time))
            });
        }
    };
    all(Path::Refused, Time::Precise, [1.1; 3]);
    all(Path::Refused, Time::Coarse, [2.0; 3]);
    all(Path::Admitted, Time::Precise, [1.15, 1.2, 1.2]);
    all(Path::Admitted, Time::Coarse, [1.6, 2.2, 2.2]);
    goals
}

fn together(report: &Report) -> Vec<Goal> {
    let crowds = &report.crowds;
    let label = |name, path, threads| crowd::Label { name, path, threads };
    let scale = |name, path| crowds.ratio(&label(name, path, 1), &label(name, path, 2));
    let mut goals = Vec::new();
    for name in ["counter", LOGS[0], LOGS[1]] {
        let what = format!("{name}, Refused, throughput of 2 threads, x 1 thread");
        goals.push(Goal::at_least(what, scale(name, Path::Refused), 1.9));
    }
    let floor = label(lineup::floor(Path::Admitted), Path::Admitted, 2);
    for (name, bound) in [("counter", 1.25), (LOGS[1], 1.5), (LOGS[0], 2.0)] {
        let what = format!("{name}, Admitted, 2 threads on one limiter, precise clock, x floor");
        goals.push(Goal::at_most(what, crowds.ratio(&label(name, Path::Admitted, 2), &floor), bound));
    }
    let deque = label("deque, parking_lot", Path::Admitted, 2);
    let unit = crowds.ratio(&label(LOGS[1], Path::Admitted, 2), &deque);
    goals.push(Goal::at_most(
        "log of single permits, Admitted, 2 threads, x deque under parking_lot",
        unit,
        1.0,
    ));
    for name in ["sharded counter", "sharded log of single permits"] {
        let what = format!("{name}, Admitted, throughput of 2 threads, x 1 thread");
        goals.push(Goal::at_least(what, scale(name, Path::Admitted), 1.9));
    }
    let p9999 =
        |name| report.spans.find(&label(name, Path::Admitted, 8)).map_or(f64::NAN, |row| row.median(3));
    for name in ["counter", LOGS[0], LOGS[1]] {
        let what = format!("{name}, p99.99 of an admission, 8 threads, x deque under parking_lot");
        goals.push(Goal::at_most(what, p9999(name) / p9999("deque, parking_lot"), 0.25));
    }
    goals
}

fn sizes(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for name in LOGS {
        let ns = report.expired.median(&name) - report.expired.median(&shape::CLOCK);
        goals.push(Goal::at_most(
            format!("{name}, a million entries expire before one call, ns"),
            ns,
            1_000.0,
        ));
    }
    let bytes = |name: &str, limit| memory::find(&report.bytes, name, limit);
    let mut size = |what: String, name: &str, limit: u64, bound: u64| {
        let (state, all) =
            bytes(name, limit).map_or((f64::NAN, f64::NAN), |row| (row.state() as f64, row.made as f64));
        let beside = format!(
            "The state, in memory of the caller's or of a mapping, is {state} bytes of that. The configuration beside it takes {}, whatever the \
             limit: what up to {} rules look back by, precomputed, so that a call computes nothing twice. Many states can share one.",
            all - state,
            tollgate::RULES_MAX,
        );
        goals.push(Goal::at_most(format!("{what}, bytes of state"), state, bound as f64));
        goals.push(
            Goal::at_most(format!("{what}, bytes of state and configuration"), all, bound as f64)
                .because(beside),
        );
    };
    for limit in memory::LIMITS {
        size(format!("log of {limit}"), LOGS[0], limit, 8 * limit + 256);
    }
    for (name, buckets) in [("counter, 10 buckets", 10_u64), ("counter, 1,000 buckets", 1_000)] {
        size(name.to_owned(), name, 10_000, 8 * (buckets + 1).next_power_of_two() + 256);
    }
    let bounds = [("counter", [30.0, 20.0]), (LOGS[0], [40.0, 25.0]), (LOGS[1], [40.0, 25.0])];
    for (name, bounds) in bounds {
        for (path, bound) in Path::BOTH.into_iter().zip(bounds) {
            let counted = count::find(&report.counts, name, path).map_or(f64::NAN, |count| count as f64);
            let goal = Goal::at_most(format!("{name}, {path:?}, instructions"), counted, bound);
            let is_log = LOGS.contains(&name);
            goals.push(if is_log { goal.because(log_floor(report, name, path, Time::Passed)) } else { goal });
        }
    }
    goals
}

/// How the least that an exact log does goes with its limit, beside one of ours.
fn ring_floor(report: &Report, series: &'static str) -> String {
    let name = series.split(',').next().unwrap_or_default();
    let spread = |series, most| report.shapes.spread(series, Axis::Limit, most);
    let missing = |name, limit| format!("{:.2}", count::missing(&report.misses, name, limit));
    format!(
        "Up to a limit of 10,000 it is {}. Beyond, the ring no longer fits the caches near the processor: an admission finds {} lines \
         missing in the first of them at a limit of a million ({} at 1,000), and its CAS waits for them. The least that an exact log does \
         misses {} and spreads {} over the same limits.",
        times(spread(series, 10_000)),
        missing(name, 1_000_000),
        missing(name, 1_000),
        missing(lineup::LOG_FLOOR, 1_000_000),
        times(spread(shape::LOG_FLOOR_ADMITTED, u64::MAX)),
    )
}

fn flat(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    let series = [
        ("log, admitted", Axis::Limit),
        ("log, refused", Axis::Limit),
        ("log of single permits, admitted", Axis::Limit),
        ("log of single permits, refused", Axis::Limit),
        ("counter, refused", Axis::Limit),
        ("counter, admitted", Axis::Buckets),
        ("counter, refused", Axis::Buckets),
        ("log, admitted", Axis::Window),
        ("log, refused", Axis::Window),
        ("counter, admitted", Axis::Window),
        ("counter, refused", Axis::Window),
    ];
    for (name, axis) in series {
        let spread = report.shapes.spread(name, axis, u64::MAX);
        let goal = Goal::at_most(format!("{name}, by {axis:?}, greatest x least"), spread, 1.3);
        let fills = axis == Axis::Limit && name.ends_with(", admitted");
        goals.push(if fills { goal.because(ring_floor(report, name)) } else { goal });
    }
    for (buckets, axis) in [(10, Axis::GapOf10), (1_000, Axis::GapOf1000)] {
        for gap in [10, 100, 1_000] {
            let label = |at| shape::Label { series: "counter, admitted", axis, at };
            let passed = gap.min(buckets);
            let ns =
                (report.shapes.median(&label(gap)) - report.shapes.median(&label(1))) / (passed - 1) as f64;
            let what = format!(
                "counter of {buckets} buckets after {gap}, ns for each bucket passed after the first"
            );
            goals.push(Goal::at_most(what, ns, 4.0));
        }
    }
    goals
}

/// What a limiter for each key can not do without, step by step.
fn keys_floor(report: &Report, keys: u64, path: Path, ours: &'static str) -> String {
    let took = |name| ns(report.keyed.times.median(&keyed::Label { name, keys, path, threads: 1 }));
    let floors = if ours == keyed::OURS_FAST { keyed::FLOORS_FAST } else { keyed::FLOORS };
    let [hash, lines, lock] = floors.map(took);
    format!(
        "The hash alone takes {hash} ns, with the two cache lines of the key and its state {lines}, with a lock around them {lock}; ours takes {}, and \
         governor {}. Ours looks besides, every few calls, for a key that is idle, in a row that no cache holds when the keys are many; \
         governor's keys stay until they are told to go.",
        took(ours),
        took(keyed::partner(ours)),
    )
}

fn keys(report: &Report) -> Vec<Goal> {
    let (mut goals, keyed) = (Vec::new(), &report.keyed);
    for keys in keyed::KEYS {
        for (ours, hasher) in [(keyed::OURS, "SipHash"), (keyed::OURS_FAST, "foldhash")] {
            for path in Path::BOTH {
                let label = |name| keyed::Label { name, keys, path, threads: 1 };
                let ratio = keyed.times.ratio(&label(ours), &label(keyed::partner(ours)));
                let what = format!("{keys} keys, token bucket, {hasher}, {path:?}, x governor");
                goals.push(Goal::at_most(what, ratio, 1.0).because(keys_floor(report, keys, path, ours)));
            }
        }
        let bytes = keyed.bytes(keyed::OURS, keys) / keyed.bytes(keyed::GOVERNOR, keys);
        goals.push(Goal::at_most(format!("{keys} keys, bytes a key, x governor"), bytes, 1.0));
    }
    let allocations: u64 =
        report.bytes.iter().filter(|row| memory::is_ours(row.name)).map(|row| row.allocations).sum();
    goals.push(Goal::at_most("allocations of all calls of ours", allocations as f64, 0.0));
    goals
}

/// All goals, and why those are refuted that are.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new(&["goal", "measured", "at most", "at least", ""]);
    let mut reasons = String::new();
    let goals = [alone(report), together(report), sizes(report), flat(report), keys(report)];
    for goal in goals.into_iter().flatten() {
        let figure = |value: f64| if value.abs() < 100.0 { times(value) } else { format!("{value:.0}") };
        let (bound, verdict) = (figure(goal.bound), goal.verdict());
        if verdict == REFUTED {
            let why = if goal.why.is_empty() { "No floor was measured for it." } else { &goal.why };
            reasons += &format!("- *{}*: {why}\n", goal.what);
        }
        let bounds = if goal.at_least { [String::new(), bound] } else { [bound, String::new()] };
        let [most, least] = bounds;
        table.row([goal.what, figure(goal.measured), most, least, verdict.to_owned()]);
    }
    format!("{table}\n### What the floor of the refuted ones is\n\n{reasons}")
}
