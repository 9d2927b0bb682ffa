//! What a call costs beside those of other threads: throughput, shares, and the time of single calls.

use std::{sync::Mutex, time::Duration};

use hdrhistogram::Histogram;

use crate::{
    drive::{Crowd, Path, Time},
    lineup::{self, Contestant, Side},
    machine,
    markdown::{Table, ns, times},
    measure::{Bench, Figure, Measured},
};

/// A row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) path: Path,
    pub(crate) threads: usize,
}

/// Nanoseconds a call of all threads together, and the least and the greatest share of a thread, of an even one.
pub(crate) type Crowds = Measured<Label, 3>;

/// Nanoseconds of single calls, the clock's reading among them: p50, p99, p99.9, p99.99.
pub(crate) type Spans = Measured<Label, 4>;

pub(crate) const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Who refuses a caller whose time has been taken by another, and so is not asked by a crowd.
const ALONE: [&str; 2] = ["pacing queue", lineup::LOG_FLOOR];
const SPANS: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];
/// Whose admissions are timed beside other threads', and for longer: a tail is made of what is rare.
const TIMED: [&str; 10] = [
    "one CAS",
    "log",
    "log of single permits",
    "counter",
    "sharded counter",
    "wheel",
    "governor",
    "deque, std mutex",
    "deque, parking_lot",
    "buckets, running total",
];

fn contestants() -> impl Iterator<Item = &'static Contestant> {
    lineup::ALL.iter().filter(|it| !ALONE.contains(&it.name))
}

/// How long a row runs: longer where threads have to take turns.
fn duration(threads: usize, short: Duration) -> Duration {
    if threads > machine::cores() { short * 3 } else { short }
}

fn bench(
    contestant: &'static Contestant,
    path: Path,
    threads: usize,
    short: Duration,
) -> Option<Bench<Label, 3>> {
    let name = contestant.name;
    contestant.build(path)?;
    Some(Bench::new(Label { name, path, threads }, move || {
        let subject = contestant.build(path).expect("built before");
        if path == Path::Refused {
            subject.fill(Time::Precise);
        }
        let crowd = Crowd::run(threads, duration(threads, short), |stop, _| {
            let (calls, admitted) = subject.until(stop);
            path.check(name, calls, admitted);
            calls
        });
        let [least, most] = crowd.shares();
        let disturbed = crowd.disturbed && threads <= machine::cores();
        Figure { values: [crowd.ns(), least, most], disturbed }
    }))
}

/// All rows, by the precise clock.
pub(crate) fn measure(rounds: usize, short: Duration) -> Crowds {
    let mut benches = Vec::new();
    for path in Path::BOTH {
        for threads in THREADS {
            benches.extend(contestants().filter_map(|it| bench(it, path, threads, short)));
        }
    }
    Measured::rounds(rounds, benches)
}

fn bench_spans(
    contestant: &'static Contestant,
    path: Path,
    threads: usize,
    short: Duration,
) -> Option<Bench<Label, 4>> {
    let name = contestant.name;
    contestant.build(path)?;
    let new = || Histogram::<u64>::new_with_bounds(1, 10_000_000_000, 2).expect("bounds that are valid");
    let histograms: Vec<_> = (0..threads).map(|_| Mutex::new(new())).collect();
    Some(Bench::new(Label { name, path, threads }, move || {
        let subject = contestant.build(path).expect("built before");
        if path == Path::Refused {
            subject.fill(Time::Precise);
        }
        let crowd = Crowd::run(threads, duration(threads, short), |stop, thread| {
            let mut spans = histograms[thread].lock().expect("its thread alone");
            spans.reset();
            let admitted = subject.until_timed(stop, &mut spans);
            path.check(name, spans.len(), admitted);
            spans.len()
        });
        let mut all = new();
        for spans in &histograms {
            all.add(&*spans.lock().expect("no thread is left")).expect("the same bounds");
        }
        let disturbed = crowd.disturbed && threads <= machine::cores();
        Figure { values: SPANS.map(|part| all.value_at_quantile(part) as f64), disturbed }
    }))
}

/// Single calls of everybody alone, and the admissions of some beside other threads.
pub(crate) fn measure_spans(rounds: usize, short: Duration) -> Spans {
    let alone = Path::BOTH.into_iter().flat_map(|path| contestants().map(move |it| (it, path, 1)));
    let crowded = [2, 8]
        .into_iter()
        .flat_map(|threads| TIMED.map(|name| (lineup::named(name), Path::Admitted, threads)));
    let benches = alone.chain(crowded).filter_map(|(it, path, threads)| {
        let long = if TIMED.contains(&it.name) && path == Path::Admitted { 3 * short } else { short };
        bench_spans(it, path, threads, long)
    });
    Measured::rounds(rounds, benches.collect())
}

/// One table for each path, and the shares.
pub(crate) fn tables(crowds: &Crowds) -> String {
    let mut text = String::new();
    for path in Path::BOTH {
        text += &format!("### {path:?}, one limiter, precise clock\n\n");
        let mut table = Table::new(&[
            "million calls/s",
            "1 thread",
            "x floor",
            "x best peer",
            "2 threads",
            "x floor",
            "x best peer",
            "4 threads",
            "x floor",
            "x best peer",
            "8 threads",
            "x floor",
            "x best peer",
        ]);
        let mut shares =
            Table::new(&["a thread's share, of an even one", "2 threads", "4 threads", "8 threads"]);
        for it in contestants().filter(|it| it.build(path).is_some()) {
            let (mut cells, mut share) = (vec![it.name.to_owned()], vec![it.name.to_owned()]);
            for threads in THREADS {
                let label = Label { name: it.name, path, threads };
                let floor = Label { name: lineup::floor(path), ..label };
                let peer = crowds.fastest(lineup::peers().map(|name| Label { name, ..label }));
                let of_peer = peer
                    .filter(|_| it.side != Side::Floor)
                    .map_or(f64::NAN, |peer| crowds.ratio(&label, &peer));
                let millions = 1e3 / crowds.median(&label);
                cells.extend([ns(millions), times(crowds.ratio(&label, &floor)), times(of_peer)]);
                if let Some(series) = crowds.find(&label).filter(|_| threads > 1) {
                    share.push(format!("{:.2} to {:.2}", series.median(1), series.median(2)));
                }
            }
            table.row(cells);
            shares.row(share);
        }
        text += &format!("{table}\n");
        if path == Path::Admitted {
            text += &format!(
                "Least and greatest share of a thread in the admissions, of an even share:\n\n{shares}\n"
            );
        }
    }
    text
}

/// The table of single calls.
pub(crate) fn spans_table(spans: &Spans) -> String {
    let mut table = Table::new(&["a call, ns", "", "threads", "p50", "p99", "p99.9", "p99.99"]);
    for series in &spans.series {
        let Label { name, path, threads } = series.label;
        let figures = (0..SPANS.len()).map(|figure| format!("{:.0}", series.median(figure)));
        let path = if path == Path::Admitted { "admitted" } else { "refused" };
        table.row([name.to_owned(), path.to_owned(), threads.to_string()].into_iter().chain(figures));
    }
    table.to_string()
}
