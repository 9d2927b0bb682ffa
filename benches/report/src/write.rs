//! RESULTS.md.

use std::{error::Error, fs, path::Path as File};

use tollgate_benches::Axis;

use crate::{Report, choosing, clocks, count, crowd, goals, machine, memory, shape, single};

const PEERS: [&str; 7] =
    ["governor", "ratelimit", "better-bucket", "leaky-bucket", "pingora-limits", "parking_lot", "quanta"];

/// Writes the whole report.
pub(crate) fn write(report: &Report, file: &File) -> Result<(), Box<dyn Error>> {
    let parts = [
        head(report),
        format!("## Goals\n\n{GOALS}\n\n{}\n", goals::table(report)),
        format!(
            "## One thread\n\n{ONE}\n\n![ns per check by algorithm](plots/algorithms.svg)\n\n{}\n",
            clocks::table(&report.clocks)
        ),
        single::tables(&report.singles),
        format!("### Instructions\n\n{COUNTS}\n\n{}\n", count::table(&report.counts)),
        format!("{MISSES}\n\n{}\n", count::misses_table(&report.misses)),
        format!("## Threads\n\n{THREADS}\n\n![Throughput by threads](plots/threads.svg)\n\n"),
        crowd::tables(&report.crowds),
        format!("### Single calls\n\n{SPANS}\n\n{}\n", crowd::spans_table(&report.spans)),
        shapes(report),
        format!("## Keys\n\n{KEYS}\n\n{}\n", report.keyed.table()),
        format!(
            "## Bytes\n\n{BYTES}\n\n![Bytes by limit](plots/memory.svg)\n\n{}\n",
            memory::table(&report.bytes)
        ),
        format!("## Choosing\n\n{CHOOSING}\n\n{}\n{}\n", choosing::table(report), choosing::shares(report)),
        format!("## From C\n\n{NATIVE}\n\n{}", report.native),
    ];
    fs::write(file, parts.concat())?;
    Ok(())
}

fn head(report: &Report) -> String {
    let disturbed = [
        ("One thread", report.singles.disturbances()),
        ("threads", report.crowds.disturbances()),
        ("single calls", report.spans.disturbances()),
        ("shapes", report.shapes.disturbances()),
        ("keys", report.keyed.times.disturbances()),
    ];
    let disturbed = disturbed.map(|(what, said)| format!("- {what}: {said}")).join("\n");
    format!(
        "# Results\n\n{HEAD}\n\n{}\n- {}\n{disturbed}\n\n",
        machine::describe(),
        machine::versions(&PEERS)
    )
}

fn shapes(report: &Report) -> String {
    let tables = [
        (Axis::Limit, "by limit"),
        (Axis::Buckets, "by buckets"),
        (Axis::Window, "by window (the log's limit a million)"),
        (Axis::GapOf10, "after empty buckets, of 10 in a window"),
        (Axis::GapOf1000, "after empty buckets, of 1,000"),
    ];
    let tables: Vec<String> =
        tables.into_iter().map(|(axis, name)| report.shapes.table(axis, name)).collect();
    let expired = shape::expiry_table(&report.expired);
    let picture = "![Cost by limit and by buckets](plots/shapes.svg)";
    format!(
        "## Limits, buckets, windows\n\n{SHAPES}\n\n{picture}\n\n{}\n{EXPIRY}\n\n{expired}\n",
        tables.join("\n")
    )
}

const HEAD: &str = "\
Written by `cargo run --release --manifest-path benches/report/Cargo.toml`; edit nothing here. Every figure is the median
of 15 rounds in which all rows take turns; a ratio is the median of the rounds' ratios, so its floor or peer was measured
in the same round. Every row asserts that each of its calls was answered as it says: no admission hides among refusals.
Threads start outside the clock.";

const GOALS: &str = "\
The *floor* is the same clock, in the same round, and a load with a compare (refused) or one CAS on one line that is tried until
it succeeds (admitted). Goals of one round of medians; on a noisy machine a goal missed by little may be met by the next run.";

const ONE: &str = "\
*Time passed*: a number, as from an event loop that has read the clock already. *Precise*: the time-stamp counter, scaled, by
`quanta`. *Coarse*: its cached time, renewed every millisecond. All limiters get the same clock's time; `leaky-bucket` and
`pingora-limits` read one of their own (`Instant`), so they stand with the precise clock alone. `pingora-limits` counts what it refuses,
too, and decides by an estimate. *Best peer*: the peer with the least median of that column.";

const COUNTS: &str = "\
By callgrind, of a call that is not inlined, the time passed in; the same in every run. For ours `ci/instructions.sh` holds them to
`benches/instructions.txt`.";

const MISSES: &str = "\
By callgrind's model of this machine's caches, lines of 64 bytes: what a ring that no longer fits the first cache makes an admission wait
for. Admissions go through it in order.";

const THREADS: &str = "\
All threads call one limiter, for 20 ms with as many threads as processors or fewer, else 60 ms. Throughput is that of all threads
together. *Packed head and count* is the ring taken literally: it is wrong between threads (see its source) and is here for its
cost.";

const SPANS: &str = "\
Each call between two readings of the precise clock, of which one is part of the figure. With more threads than processors the tail is
that of a thread which lost its processor within a call; under a lock, that of all who wait for it.";

const SHAPES: &str = "\
One thread, time passed in; one thing is varied at a time. Memory beyond the caches shows: a log of a million is 8 MB, and its calls
read and write a slot or two of it in order.";

const EXPIRY: &str = "\
All entries of a full log expire, then one call is made. The clock's own reading is part of each figure.";

const KEYS: &str = "\
Keys are `u64`, drawn evenly. *Token bucket* and *governor* have the same quota, and the same hasher: SipHash, which is the default of both,
or foldhash, which promises nothing against clients who choose their keys; *x governor* is that with the same hasher. The floors find no key:
a table as large, a lock for as many keys. Refused: every key's permits are taken. Admitted: no key is ever idle. Bytes: what the
allocator gave, after every key was seen.";

const BYTES: &str = "\
Taken from a counting allocator. *Itself*: its configuration, and what state has no ring; part of the figures beside it, the rest of which
is its state on the heap. *Resident when made*: pages of memory that its construction
touched; zeroed memory is not touched before it is used, where the system gives it so. *Allocations of calls*: those after
construction, while the window filled up and passed.";

const CHOOSING: &str = "\
For [docs/choosing.md](../docs/choosing.md). Bytes: of a full limiter, all of it. *Idle*: what is resident while nothing was admitted yet, for
those above 1 MiB, else all of it. The counter's times are those with 10 buckets, which are those with more (see above).";

const NATIVE: &str = "\
`ffi/bench/run.sh`, against an installation of its own; the empty call is the bare `extern \"C\"` call.";
