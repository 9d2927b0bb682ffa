//! What the chapter "Choosing" (docs/choosing.md) needs of figures.

use crate::{
    Report, crowd,
    drive::{Path, Time},
    markdown::{Table, ns},
    memory, single,
};

/// An algorithm: its name among the bytes and among the times, its precision, what it does to a burst, its form on Redis.
struct Choice {
    bytes: &'static str,
    times: &'static str,
    precision: &'static str,
    burst: &'static str,
    redis: &'static str,
}

macro_rules! choice {
    ($bytes:literal, $times:literal, $precision:literal, $burst:literal, $redis:literal) => {
        Choice { bytes: $bytes, times: $times, precision: $precision, burst: $burst, redis: $redis }
    };
}

const CHOICES: [Choice; 14] = [
    choice!(
        "log",
        "log",
        "exact, to the nanosecond; any cost",
        "the limit at once, then as it leaves",
        "`Ring`, `Zset`"
    ),
    choice!(
        "log of single permits",
        "log of single permits",
        "exact, to the nanosecond",
        "the same",
        "`Ring`, `Zset`"
    ),
    choice!("compact log", "compact log", "exact, to a tick", "the same", "-"),
    choice!(
        "counter, 10 buckets",
        "counter",
        "never over; a permit returns up to 1/10 late",
        "the limit at once",
        "`Counter`"
    ),
    choice!(
        "counter, 100 buckets",
        "counter",
        "never over; up to 1/100 late",
        "the limit at once",
        "`Counter`"
    ),
    choice!(
        "counter, 1,000 buckets",
        "counter",
        "never over; up to 1/1000 late",
        "the limit at once",
        "`Counter`"
    ),
    choice!("wheel", "wheel", "never over; up to a slot late", "the limit at once", "-"),
    choice!("sampling log", "sampling log", "off by less than m", "the limit and m at once", "-"),
    choice!(
        "two-window",
        "two-window",
        "an estimate, off both ways",
        "the limit, twice at worst",
        "`TwoWindow`"
    ),
    choice!("fixed", "fixed", "twice the limit around an edge", "the limit, twice around an edge", "-"),
    choice!("token bucket", "token bucket", "exact rate, and the burst", "the burst at once", "`Gcra`"),
    choice!("pacing queue", "pacing queue", "one start an interval", "spread out: callers wait", "-"),
    choice!("deque", "deque, parking_lot", "exact", "the limit at once", "-"),
    choice!(
        "buckets, running total, 10",
        "buckets, running total",
        "to the bucket, over by one's admissions",
        "the limit at once",
        "-"
    ),
];

/// All algorithms, with what was measured of them.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new(&[
        "",
        "precision",
        "a burst",
        "bytes at a limit of 100",
        "of 10,000",
        "of 1,000,000",
        "idle, made for 1,000,000",
        "admitted, ns",
        "refused, ns",
        "on Redis",
    ]);
    for it in &CHOICES {
        let full = |limit| {
            let row = memory::find(&report.bytes, it.bytes, limit);
            row.map_or_else(String::new, |row| row.full.to_string())
        };
        let idle = memory::find(&report.bytes, it.bytes, 1_000_000).map(memory::Bytes::idle);
        let idle = idle.map_or_else(String::new, |bytes| bytes.to_string());
        let time = |path| {
            let label = single::Label { name: it.times, path, time: Time::Passed };
            ns(report.singles.median(&label))
        };
        let [admitted, refused] = Path::BOTH.map(time);
        let mut cells = vec![it.bytes.to_owned(), it.precision.to_owned(), it.burst.to_owned()];
        cells.extend(memory::LIMITS.map(full));
        cells.extend([idle, admitted, refused, it.redis.to_owned()]);
        table.row(cells);
    }
    table.to_string()
}

/// What so small a part of the processors buys.
pub(crate) fn shares(report: &Report) -> String {
    let mut table = Table::new(&[
        "what 1 % of a core buys, thousand checks a second",
        "1 thread",
        "2 threads on one limiter",
        "8 threads",
        "longest in 10,000 admissions, 8 threads, us",
    ]);
    for name in
        ["log of single permits", "counter", "sharded counter", "deque, parking_lot", "deque, std mutex"]
    {
        let label = |threads| crowd::Label { name, path: Path::Admitted, threads };
        // Of a core: all threads' time for one call, as many cores as run at once.
        let cores = |threads: usize| threads.min(crate::machine::cores()) as f64;
        let thousands = |threads| 1e4 / (report.crowds.median(&label(threads)) * cores(threads));
        let longest = report.spans.find(&label(8)).map_or(f64::NAN, |row| row.median(3) / 1e3);
        let figures = [1, 2, 8].map(|threads| format!("{:.0}", thousands(threads)));
        table.row([name.to_owned()].into_iter().chain(figures).chain([ns(longest)]));
    }
    table.to_string()
}
