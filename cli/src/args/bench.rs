//! `tollgate bench`: its options and what they ask for.

use std::time::Duration;

use clap::Args;

use super::{names, parse::parse_count};
use crate::lineup::{Choice, Name};

const THREADS_MAX: u64 = 1_024;
const SECONDS_MAX: f64 = 3_600.0;

/// What `--help` says beyond the options.
pub(super) const HELP: &str = "\
Figures:
  ns                 time of one call by one thread, clock and virtual call included: the median of
                     the means of batches of 1,000, so what else the machine does hardly counts
  M/s                calls of all threads together, in millions a second by the clock on the wall, so
                     what else the machine does counts in full
  x CAS              that time over that of a bare load and compare-and-swap by as many threads on
                     one word, right before
  admitted, refused  all calls go the way that the column says, a thousandth at most excepted; a row that went
                     another way three times over is an error
  coarse, precise    the library's cached clock (kept fresh every 100 us), the processor's counter
  peak               the most admissions that surely lie in one true window (t - W, t], after all threads
                     asked a limiter of 1,000 per 10 ms as fast as they could: every admission is written
                     down with the caller's time and the limiter's, and counted afterwards
  bound              what the algorithm promises for that; a peak above it is an error

Verdict:
  An algorithm that takes more than 100 ns to admit, with one thread and the coarse clock, admits less
  than 10 million times a second on one core and is named as slow: a failure to explain, on a slow
  machine by the machine (see x CAS).

Examples:
  tollgate bench
  tollgate bench --threads 1,2,4 --seconds 10 --algorithm log --algorithm window
  tollgate bench --json > bench.json

Exit codes:
  0    done, slow or not, or the reader of the output went away
  1    a limiter went over its bound, or a row did not go the way it names; the output could not be
       written; no cached clock
  2    the command line is wrong
  130  interrupted (Ctrl-C)";

/// The options of `tollgate bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Numbers of threads to try.
    #[arg(long, value_name = "N,..", default_value = "1,2", value_delimiter = ',', value_parser = parse_threads)]
    threads: Vec<u64>,

    /// Seconds spent on each algorithm with each number of threads, such as 2 or 0.5, spread over its rows; a row ends at
    /// 268 million calls in any case.
    #[arg(long, value_name = "S", default_value = "2", value_parser = parse_seconds)]
    seconds: Duration,

    /// Algorithm to measure; may be repeated.
    #[arg(long = "algorithm", value_name = "NAME", value_enum, default_value = "all")]
    algorithms: Vec<Choice>,

    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
}

/// A benchmark that is ready to start.
pub(crate) struct BenchJob {
    pub(crate) threads: Vec<usize>,
    pub(crate) seconds: Duration,
    pub(crate) names: Vec<Name>,
    pub(crate) json: bool,
}

// === impl BenchArgs ===

impl BenchArgs {
    /// What these options ask for. Each number of threads counts once, where it is named first.
    pub(crate) fn job(self) -> BenchJob {
        let mut threads = Vec::new();
        for &more in &self.threads {
            if !threads.contains(&(more as usize)) {
                threads.push(more as usize);
            }
        }
        BenchJob { threads, seconds: self.seconds, names: names(&self.algorithms).0, json: self.json }
    }
}

fn parse_threads(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(threads @ 1..=THREADS_MAX) => Ok(threads),
        _ => Err(format!("`{text}` is not a number of threads from 1 to {THREADS_MAX}")),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=SECONDS_MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a number of seconds from 0.01 to {SECONDS_MAX}")),
    }
}
