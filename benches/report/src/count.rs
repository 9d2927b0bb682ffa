//! Instructions of a call, by callgrind: without noise. This program runs itself under it.

use std::{env, process::Command};

use tollgate::Nanos;
use tollgate_benches::START;

use crate::{
    drive::{Path, Time},
    lineup::{self, Contestant, Side},
    markdown::Table,
};

/// Calls of the shorter run; the longer one has twice as many, and the difference counts.
const CALLS: u64 = 5_000;

/// Instructions of a call, rounded up.
pub(crate) type Counts = Vec<(&'static str, Path, u64)>;

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

/// Counts all limiters that take the time; nothing where callgrind is not there.
pub(crate) fn measure() -> Counts {
    let takes_time = |it: &&Contestant| it.side != Side::Floor && !it.own_clock;
    let mut counts = Vec::new();
    for it in lineup::ALL.iter().filter(takes_time) {
        for path in Path::BOTH {
            let one = |calls| count(it.name, path, calls);
            if let (Some(once), Some(twice)) = (one(CALLS), one(2 * CALLS)) {
                counts.push((it.name, path, (twice - once).div_ceil(CALLS)));
            }
        }
    }
    counts
}

fn count(name: &str, path: Path, calls: u64) -> Option<u64> {
    let path = if path == Path::Admitted { "admitted" } else { "refused" };
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*one_call*"])
        .arg(env::current_exe().ok()?)
        .args(["count", name, path, &calls.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

/// What was counted for one of them.
pub(crate) fn find(counts: &Counts, name: &str, path: Path) -> Option<u64> {
    counts.iter().find(|it| (it.0, it.1) == (name, path)).map(|it| it.2)
}

pub(crate) fn table(counts: &Counts) -> String {
    let mut table = Table::new(&["instructions a call", "admitted", "refused"]);
    for it in lineup::ALL.iter().filter(|it| it.side != Side::Floor && !it.own_clock) {
        let cell = |path| find(counts, it.name, path).map_or_else(String::new, |count| count.to_string());
        table.row([it.name.to_owned(), cell(Path::Admitted), cell(Path::Refused)]);
    }
    table.to_string()
}
