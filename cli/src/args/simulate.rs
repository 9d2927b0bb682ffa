//! `tollgate simulate`: its options and what they ask for.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tollgate::Rule;

use super::{
    names,
    parse::{parse_count, parse_span, parse_svg},
};
use crate::{
    input::parse_moment,
    lineup::{Choice, Name, Settings},
    simulate::Arrivals,
};

/// The longest simulation: a leap year.
const SECONDS_MAX: u64 = 366 * 86_400;

/// What `--help` says beyond the options.
pub(super) const HELP: &str = "\
Arrivals (settings in brackets have the value shown where they are left out):
  poisson:RATE[,senders=100]
      independent arrivals at RATE, such as 500/s
  burst:N/SPAN[,senders=100]
      N arrivals within the first hundredth of every SPAN
  diurnal:RATE[,swing=80%,day=DURATION,senders=100]
      RATE on average, up and down by `swing` in the course of a `day`, least at its beginning
  edge-attack:N/SPAN[,jitter=2%,senders=100]
      every other edge of a window of SPAN: N arrivals in the last tenth before it, N in the first
      after it; each sender's clock is off by up to `jitter` of SPAN
  flash-sale:base=RATE[,factor=100,users=1000000,abusers=1%,greed=100]
      calm at `base` for a sixth of the time, then `factor` times as much (A..B: drawn between the two); of
      the users `abusers` (a share, or how many) send `greed` times as often as the others

Lines:
  one arrival each, in the order of time: seconds since 1970 with nine decimals, then the sender
  (sender-7, user-7, abuser-7). `replay -` and `plan -` read them; --key client is the sender. The
  same options and seed give the same lines (on one kind of machine: exponential gaps use its floating point).

With --limit nothing is written: the arrivals are judged at once, and a table tells for each algorithm
what it admitted, its peak in true windows as the limiter recorded it, the peak as the senders see it, and
the share refused of each kind of sender.

  The senders' peak is larger, and for exact algorithms above the limit, because nobody sees the
  limiter's times: each answer comes back after a delay of its own (--delay: exponential with this
  mean), so admissions of two windows arrive within one; and a sender that counts whole seconds of
  its own clock cuts elsewhere. Both count right. What is limited are recorded times.

Examples:
  tollgate simulate --arrivals poisson:500/s --seconds 60 | tollgate plan -
  tollgate simulate --arrivals edge-attack:500/1s --limit 500 --plot edge.svg
  tollgate simulate --arrivals flash-sale:base=1000/s,factor=500 --seconds 24 \\
      --limit 5 --per 10s --key sender --algorithm log --algorithm window

Exit codes:
  0    done, or the reader of the lines went away
  1    the output could not be written; no memory for the limiters
  2    the command line is wrong, or an algorithm asked for does not take the rule
  130  interrupted (Ctrl-C): no file is left half-written";

/// The options of `tollgate simulate`.
#[derive(Args)]
pub(crate) struct SimulateArgs {
    /// What arrives (see below).
    #[arg(long, value_name = "KIND:SETTINGS")]
    arrivals: Arrivals,

    /// How long, in seconds.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = parse_seconds)]
    seconds: u64,

    /// What chance begins with.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_count)]
    seed: u64,

    /// When the first second begins: RFC 3339, a date, or seconds since 1970.
    #[arg(long, value_name = "TIME", default_value = "2026-01-01", value_parser = parse_moment)]
    start: u64,

    /// Judges the arrivals against this limit in place of writing them.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Length of the window: 100ms, 1s, 5m.
    #[arg(
        long, value_name = "SPAN", default_value = "1s", requires = "limit", value_parser = parse_span,
        allow_hyphen_values = true
    )]
    per: Duration,

    /// What has a limit of its own: none (one limit for all) or sender.
    #[arg(long, value_name = "KEY", default_value = "none", requires = "limit", value_parser = ["none", "sender"])]
    key: String,

    /// Algorithm to judge; may be repeated.
    #[arg(long = "algorithm", value_name = "NAME", value_enum, default_value = "all", requires = "limit")]
    algorithms: Vec<Choice>,

    /// Buckets per window of the window counter [default: 10].
    #[arg(long, value_name = "K", requires = "limit", value_parser = parse_count)]
    buckets: Option<u64>,

    /// Capacity of token and leaky, places in the paced queue [default: the limit].
    #[arg(long, value_name = "N", requires = "limit", value_parser = parse_count)]
    burst: Option<u64>,

    /// How long answers take on average to get back to the senders.
    #[arg(
        long, value_name = "SPAN", default_value = "20ms", requires = "limit", value_parser = parse_span,
        allow_hyphen_values = true
    )]
    delay: Duration,

    /// Prints the report as JSON.
    #[arg(long, requires = "limit")]
    json: bool,

    /// Draws what happened over time into this SVG file, which appears when it is complete.
    #[arg(long, value_name = "FILE", requires = "limit", value_parser = parse_svg)]
    plot: Option<PathBuf>,
}

/// A simulation that is ready to start.
pub(crate) struct SimulateJob {
    pub(crate) arrivals: Arrivals,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) start: u64,
    /// `None`: the arrivals are written.
    pub(crate) trial: Option<Trial>,
}

/// How arrivals are judged.
pub(crate) struct Trial {
    pub(crate) settings: Settings,
    pub(crate) names: Vec<Name>,
    /// Whether the names are those of `all`, hence may be left out.
    pub(crate) all: bool,
    pub(crate) by_sender: bool,
    pub(crate) delay: Duration,
    pub(crate) json: bool,
    pub(crate) plot: Option<PathBuf>,
}

// === impl SimulateArgs ===

impl SimulateArgs {
    /// What these options ask for.
    pub(crate) fn job(self) -> SimulateJob {
        let (names, all) = names(&self.algorithms);
        let trial = self.limit.map(|limit| Trial {
            settings: Settings {
                rules: vec![Rule::new(limit, self.per)],
                buckets: self.buckets,
                burst: self.burst,
            },
            names,
            all,
            by_sender: self.key == "sender",
            delay: self.delay,
            json: self.json,
            plot: self.plot,
        });
        let Self { arrivals, seconds, seed, start, .. } = self;
        SimulateJob { arrivals, seconds, seed, start, trial }
    }
}

/// A number of seconds that a simulation can take.
fn parse_seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=SECONDS_MAX) => Ok(seconds),
        _ => Err(format!("`{text}` is not a whole number from 1 to {SECONDS_MAX}")),
    }
}
