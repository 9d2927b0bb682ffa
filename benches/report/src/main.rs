//! Measures every limiter beside what it is compared with, and writes RESULTS.md and its pictures: one command, about ten
//! minutes. With `--quick` it measures next to nothing, and writes below the system's temporary folder: that each row
//! takes the path it names. With `one`, `threads` or `keys` it measures these alone, and prints them.

mod choosing;
mod clocks;
mod count;
mod crowd;
mod drive;
mod goals;
mod keyed;
mod lineup;
mod machine;
mod markdown;
mod measure;
mod memory;
mod native;
mod peers;
mod plot;
mod shape;
mod single;
mod write;

use std::{env, error::Error, path::PathBuf, process::ExitCode, time::Duration, time::Instant};

use drive::Path;
use tollgate::Coarse;

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;

/// How much is measured.
struct Effort {
    rounds: usize,
    calls: u64,
    keyed_calls: usize,
    crowd: Duration,
    native: (usize, u64),
    counts: bool,
}

/// Everything that was measured.
struct Report {
    clocks: clocks::Clocks,
    singles: single::Singles,
    crowds: crowd::Crowds,
    spans: crowd::Spans,
    shapes: shape::Shapes,
    expired: shape::Expired,
    keyed: keyed::KeyedFigures,
    bytes: Vec<memory::Bytes>,
    counts: count::Counts,
    misses: count::Misses,
    native: String,
}

const FULL: Effort = Effort {
    rounds: 15,
    calls: 100_000,
    keyed_calls: 200_000,
    crowd: Duration::from_millis(20),
    native: (31, 50_000),
    counts: true,
};

const QUICK: Effort = Effort {
    rounds: 1,
    calls: 2_000,
    keyed_calls: 2_000,
    crowd: Duration::from_micros(500),
    native: (0, 0),
    counts: false,
};

/// Measures all of it, and says meanwhile where it is.
fn measure(effort: &Effort) -> Report {
    let begin = Instant::now();
    let stage = |name: &str| eprintln!("{:>4} s  {name}", begin.elapsed().as_secs());
    let Effort { rounds, calls, keyed_calls, crowd: short, native: (native_rounds, native_calls), counts } =
        *effort;
    stage("bytes");
    let bytes = memory::measure();
    stage("one thread");
    let clocks = clocks::measure(rounds, calls);
    let singles = single::measure(rounds, calls);
    stage("threads");
    let crowds = crowd::measure(rounds, short);
    stage("single calls");
    let spans = crowd::measure_spans(rounds, short);
    stage("limits, buckets, windows, gaps");
    let shapes = shape::measure(rounds, calls);
    stage("expiry");
    let expired = shape::measure_expiry(rounds);
    stage("keys");
    let keyed = keyed::measure(rounds, keyed_calls);
    stage("instructions");
    let (counts, misses) =
        if counts { (count::measure(), count::measure_misses()) } else { (Vec::new(), Vec::new()) };
    stage("from C");
    let native =
        if native_rounds > 0 { native::measure(&root(), native_rounds, native_calls) } else { String::new() };
    stage("done");
    Report { clocks, singles, crowds, spans, shapes, expired, keyed, bytes, counts, misses, native }
}

/// Where the sources of all crates lie.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match arguments {
        ["count", name, path, calls] => {
            let path = if *path == "admitted" { Path::Admitted } else { Path::Refused };
            count::make_calls(name, path, calls.parse()?);
            Ok(())
        }
        ["misses", name, limit, calls] => {
            count::make_log_calls(name, limit.parse()?, calls.parse()?);
            Ok(())
        }
        [] | ["--quick"] => {
            let quick = !arguments.is_empty();
            let guard = Coarse::start(Duration::from_millis(1))?;
            let report = measure(if quick { &QUICK } else { &FULL });
            drop(guard);
            let folder = if quick { env::temp_dir().join("tollgate-report") } else { root().join("benches") };
            plot::draw(&report, &folder.join("plots"))?;
            write::write(&report, &folder.join("RESULTS.md"))?;
            eprintln!("wrote {}", folder.join("RESULTS.md").display());
            Ok(())
        }
        ["one"] => {
            let _fresh = Coarse::start(Duration::from_millis(1))?;
            println!("{}", single::tables(&single::measure(FULL.rounds, FULL.calls)));
            Ok(())
        }
        ["threads"] => {
            println!("{}", crowd::tables(&crowd::measure(FULL.rounds, FULL.crowd)));
            Ok(())
        }
        ["keys"] => {
            println!("{}", keyed::measure(FULL.rounds, FULL.keyed_calls).table());
            Ok(())
        }
        _ => Err("usage: tollgate-report [--quick | one | threads | keys]".into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}
