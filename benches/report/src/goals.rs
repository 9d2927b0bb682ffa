//! The goals, each met or refuted by what was measured.

use tollgate_benches::Axis;

use crate::{
    Report, count, crowd,
    drive::{Path, Time},
    keyed, lineup,
    markdown::{Table, times},
    memory, shape, single,
};

/// A goal: what for, how much at most (or at least), and what was measured.
struct Goal {
    what: String,
    measured: f64,
    bound: f64,
    at_least: bool,
}

const LOGS: [&str; 2] = ["log", "log of single permits"];

impl Goal {
    fn at_most(what: impl Into<String>, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, at_least: false }
    }

    fn at_least(what: impl Into<String>, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, at_least: true }
    }

    fn verdict(&self) -> &'static str {
        match () {
            () if self.measured.is_nan() => "not measured",
            () if self.at_least == (self.measured >= self.bound) || self.measured == self.bound => "met",
            () => "**refuted**",
        }
    }
}

/// Times the floor, one thread.
fn over_floor(report: &Report, name: &'static str, path: Path, time: Time) -> f64 {
    let label = single::Label { name, path, time };
    report.singles.ratio(&label, &single::Label { name: lineup::floor(path), ..label })
}

fn alone(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut all = |path, time, bounds: [f64; 3]| {
        for (name, bound) in ["counter", LOGS[0], LOGS[1]].into_iter().zip(bounds) {
            let what = format!("{name}, {path:?}, {time:?} clock, 1 thread, x floor");
            goals.push(Goal::at_most(what, over_floor(report, name, path, time), bound));
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
    let made =
        |name: &str, limit| memory::find(&report.bytes, name, limit).map_or(f64::NAN, |row| row.made as f64);
    for limit in memory::LIMITS {
        let (log, what) = (8 * limit + 256, format!("log of {limit}, bytes of configuration and state"));
        goals.push(Goal::at_most(what, made(LOGS[0], limit), log as f64));
    }
    for (name, buckets) in [("counter, 10 buckets", 10_u64), ("counter, 1,000 buckets", 1_000)] {
        let bound = 8 * (buckets + 1).next_power_of_two() + 256;
        let what = format!("{name}, bytes of configuration and state");
        goals.push(Goal::at_most(what, made(name, 10_000), bound as f64));
    }
    let bounds = [("counter", [30.0, 20.0]), (LOGS[0], [40.0, 25.0]), (LOGS[1], [40.0, 25.0])];
    for (name, bounds) in bounds {
        for (path, bound) in Path::BOTH.into_iter().zip(bounds) {
            let counted = count::find(&report.counts, name, path).map_or(f64::NAN, |count| count as f64);
            goals.push(Goal::at_most(format!("{name}, {path:?}, instructions"), counted, bound));
        }
    }
    goals
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
        goals.push(Goal::at_most(format!("{name}, by {axis:?}, greatest x least"), spread, 1.3));
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

fn keys(report: &Report) -> Vec<Goal> {
    let (mut goals, keyed) = (Vec::new(), &report.keyed);
    for keys in keyed::KEYS {
        for path in Path::BOTH {
            let label = |name| keyed::Label { name, keys, path, threads: 1 };
            let ratio = keyed.times.ratio(&label(keyed::OURS), &label(keyed::GOVERNOR));
            goals.push(Goal::at_most(format!("{keys} keys, token bucket, {path:?}, x governor"), ratio, 1.0));
        }
        let bytes = keyed.bytes(keyed::OURS, keys) / keyed.bytes(keyed::GOVERNOR, keys);
        goals.push(Goal::at_most(format!("{keys} keys, bytes a key, x governor"), bytes, 1.0));
    }
    let allocations: u64 =
        report.bytes.iter().filter(|row| memory::is_ours(row.name)).map(|row| row.allocations).sum();
    goals.push(Goal::at_most("allocations of all calls of ours", allocations as f64, 0.0));
    goals
}

/// All goals.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new(&["goal", "measured", "at most", "at least", ""]);
    let goals = [alone(report), together(report), sizes(report), flat(report), keys(report)];
    for goal in goals.into_iter().flatten() {
        let figure = |value: f64| if value.abs() < 100.0 { times(value) } else { format!("{value:.0}") };
        let (bound, verdict) = (figure(goal.bound), goal.verdict().to_owned());
        let bounds = if goal.at_least { [String::new(), bound] } else { [bound, String::new()] };
        let [most, least] = bounds;
        table.row([goal.what, figure(goal.measured), most, least, verdict]);
    }
    table.to_string()
}
