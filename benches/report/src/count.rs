//! Instructions of a call, and what of its memory no first cache holds, by callgrind: without noise. This program runs
//! itself under it.

use std::{env, process::Command};

use tollgate::Nanos;
use tollgate_benches::START;

use crate::{
    drive::{Path, Time},
    lineup,
    markdown::Table,
};

/// Calls of the shorter run; the longer one has twice as many, and the difference counts.
const CALLS: u64 = 5_000;

/// Instructions of a call, rounded up.
pub(crate) type Counts = Vec<(&'static str, Path, u64)>;

/// Cache lines that a call of a log of so many permits finds missing in the first cache, of 64 bytes each.
pub(crate) type Misses = Vec<(&'static str, u64, f64)>;

/// The logs whose misses are counted, and their limits.
const MISSING: [(&str, u64); 6] = [
    (lineup::LOG_FLOOR, 1_000),
    (lineup::LOG_FLOOR, 1_000_000),
    ("log", 1_000),
    ("log", 1_000_000),
    ("log of single permits", 1_000),
    ("log of single permits", 1_000_000),
];

/// What the counted program does: so many calls of one limiter.
pub(crate) fn make_calls(name: &str, path: Path, calls: u64) {
    let contestant = lineup::named(name);
    let subject = contestant.build(path).expect("a path that there is");
    if path == Path::Refused {
        subject.fill(Time::Passed);
    }
    let step = if path == Path::Admitted { contestant.step } else { Nanos::ZERO };
    path.check(name, calls, subject.batch_counted(calls, START, step));
}

/// Counts all that take the time, the floors among them; nothing where callgrind is not there.
pub(crate) fn measure() -> Counts {
    let mut counts = Vec::new();
    for it in lineup::ALL.iter().filter(|it| !it.own_clock) {
        for path in Path::BOTH.into_iter().filter(|&path| it.build(path).is_some()) {
            let one = |calls| count(it.name, path, calls);
            if let (Some(once), Some(twice)) = (one(CALLS), one(2 * CALLS)) {
                counts.push((it.name, path, (twice - once).div_ceil(CALLS)));
            }
        }
    }
    counts
}

/// What the program does whose misses are counted: so many admissions of a log.
pub(crate) fn make_log_calls(name: &str, limit: u64, calls: u64) {
    let (log, step) = (lineup::log(name, limit), lineup::named(name).step);
    Path::Admitted.check(name, calls, log.batch_counted(calls, START, step));
}

/// Counts the misses of logs; nothing where callgrind is not there.
pub(crate) fn measure_misses() -> Misses {
    let of = |name: &str, limit: u64, calls: u64| {
        let events = collect("yes", &["misses", name, &limit.to_string(), &calls.to_string()])?;
        // Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw; zeros at the end are not printed.
        Some(events.iter().skip(4).take(2).sum::<u64>())
    };
    let rows = MISSING.into_iter().filter_map(|(name, limit)| {
        let more = of(name, limit, 2 * CALLS)?.checked_sub(of(name, limit, CALLS)?)?;
        Some((name, limit, more as f64 / CALLS as f64))
    });
    rows.collect()
}

fn count(name: &str, path: Path, calls: u64) -> Option<u64> {
    let path = if path == Path::Admitted { "admitted" } else { "refused" };
    collect("no", &["count", name, path, &calls.to_string()])?.first().copied()
}

/// The events that callgrind counts of this program's counted calls, with its model of the caches or not.
fn collect(caches: &str, arguments: &[&str]) -> Option<Vec<u64>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*one_call*"])
        .arg(format!("--cache-sim={caches}"))
        .arg(env::current_exe().ok()?)
        .args(arguments)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let events = said.lines().find_map(|line| line.split_once("Collected :"))?.1;
    events.split_whitespace().map(|event| event.parse().ok()).collect()
}

/// What was counted for one of them.
pub(crate) fn find(counts: &Counts, name: &str, path: Path) -> Option<u64> {
    counts.iter().find(|it| (it.0, it.1) == (name, path)).map(|it| it.2)
}

pub(crate) fn table(counts: &Counts) -> String {
    let mut table = Table::new(&["instructions a call", "admitted", "refused"]);
    for it in lineup::ALL.iter().filter(|it| !it.own_clock) {
        let cell = |path| find(counts, it.name, path).map_or_else(String::new, |count| count.to_string());
        table.row([it.name.to_owned(), cell(Path::Admitted), cell(Path::Refused)]);
    }
    table.to_string()
}

/// What was counted of a log's misses.
pub(crate) fn missing(misses: &Misses, name: &str, limit: u64) -> f64 {
    misses.iter().find(|it| (it.0, it.1) == (name, limit)).map_or(f64::NAN, |it| it.2)
}

pub(crate) fn misses_table(misses: &Misses) -> String {
    let mut table =
        Table::new(&["lines missing in the first cache, an admission", "limit 1,000", "1,000,000"]);
    for (name, limit, few) in misses.iter().filter(|it| it.1 == 1_000) {
        let many = missing(misses, name, 1_000 * limit);
        table.row([(*name).to_owned(), format!("{few:.3}"), format!("{many:.3}")]);
    }
    table.to_string()
}
