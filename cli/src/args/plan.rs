//! `tollgate plan`: its options and what they ask for.

use std::path::PathBuf;

use clap::Args;

use super::{
    Capacity, InputArgs, Share,
    parse::{parse_count, parse_rate, parse_share, parse_svg, parse_window},
};
use crate::input::{KeySpec, Options, Order};

/// What `--help` says beyond the options.
pub(super) const HELP: &str = "\
Examples:
  tollgate plan access.log                                    a limit for each client
  tollgate plan access.log.* --html report.html               with pictures, in one file
  tollgate plan access.log --windows 1s,1h --refuse-at-most 5%
  tollgate plan access.log --key none --capacity 1200/s --headroom 25%
  tollgate simulate --arrivals burst:40/2s | tollgate plan - --plot plan.svg

Figures (all exact, by the times in the log; no sketch and no sample anywhere):
  p50 .. max         over the keys, each key's busiest true window (t - W, t]: the least number that
                     so many of the keys do not pass
  all keys           the busiest window of all keys together
  x mean             that, over the mean of all windows
  alive              the most keys that had a request within one window
  by requests        the smallest limit at which the exact log refuses at most the share asked for
                     of the requests
  by keys            the smallest limit that at most that share of the keys would ever meet: the others
                     never pass it
  limit              the larger of the two
  refused            what the exact log would refuse at a limit. One pass tells it for every limit: a
                     log of L + 1 admits all that a log of L admits, so each request has a smallest
                     limit that admits it, and those are counted
  refused by K       what the window counter with K buckets would refuse at the limit, replayed over
                     4 places of the bucket edges

Choice:
  The window counter, from the usual preset (10 buckets below 5 s, 50 below 30 s, else 60), with more
  buckets until it keeps the share asked for wherever its edges lie; fewer never, as tomorrow may be
  sharper than today. The exact log where it takes no more memory, where it takes at most 16 MiB in all, or
  where no number of buckets keeps the share.

Order:
  sorted by the line's stamp, less the request's duration where the format has it; equal times keep
  the order of the lines

Memory:
  about 100 MiB for sorting; for each length of window, about 60 bytes for each request within one;
  about 200 bytes for each key; for a log of more than some million lines a nameless temporary file
  (in TMPDIR; where that is not set, in /var/tmp) of some 10 bytes a line

Exit codes:
  0    done, also when some lines could not be read (they are counted and the first ones shown),
       or when the reader of the output went away
  1    an input could not be read or an output not written; with --strict: a line could not be
       read; no memory for the limiters
  2    the command line is wrong
  130  interrupted (Ctrl-C): no file is left half-written";

/// The options of `tollgate plan`.
#[derive(Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    input: InputArgs,

    /// What has a limit of its own: none (one limit for all), client, path, user, header:NAME, regex:RE
    /// (its first group, else the match), csv:N (column). A line without its key counts as one that can not be read.
    #[arg(long, value_name = "KEY", default_value = "client")]
    key: KeySpec,

    /// Lengths of window to look at, at most 8; the snippet and the pictures are for the first.
    #[arg(
        long,
        value_name = "SPAN,..",
        default_value = "1s,10s,1m",
        value_delimiter = ',',
        value_parser = parse_window,
        allow_hyphen_values = true
    )]
    windows: Vec<u64>,

    /// The largest share of requests, and of keys, that may be refused.
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = parse_share)]
    refuse_at_most: Share,

    /// What the service can take in all, such as 1200/s: adds a limit for all keys together.
    #[arg(long, value_name = "N/SPAN", value_parser = parse_rate, allow_hyphen_values = true)]
    capacity: Option<Capacity>,

    /// The part of the capacity to keep free [default: 0%].
    #[arg(long, value_name = "SHARE", requires = "capacity", value_parser = parse_share)]
    headroom: Option<Share>,

    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,

    /// Writes the report with its pictures into this HTML file, which needs no network and appears when complete.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Draws the pictures into this SVG file, which appears when it is complete.
    #[arg(long, value_name = "FILE", value_parser = parse_svg)]
    plot: Option<PathBuf>,

    /// How many of the keys refused most are named.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_count)]
    top: u64,
}

/// A plan that is ready to be made.
pub(crate) struct PlanJob {
    pub(crate) input: Options,
    /// In nanoseconds, each once.
    pub(crate) windows: Vec<u64>,
    pub(crate) refuse_at_most: Share,
    pub(crate) capacity: Option<Capacity>,
    pub(crate) headroom: Share,
    pub(crate) json: bool,
    pub(crate) html: Option<PathBuf>,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) top: usize,
}

// === impl PlanArgs ===

impl PlanArgs {
    /// What these options ask for. Each window counts once, where it is named first.
    pub(crate) fn job(self) -> PlanJob {
        let mut windows = Vec::new();
        for window in self.windows {
            if !windows.contains(&window) {
                windows.push(window);
            }
        }
        PlanJob {
            input: self.input.options(self.key, Order::Time),
            windows,
            refuse_at_most: self.refuse_at_most,
            capacity: self.capacity,
            headroom: self.headroom.unwrap_or_default(),
            json: self.json,
            html: self.html,
            plot: self.plot,
            top: usize::try_from(self.top).unwrap_or(usize::MAX),
        }
    }
}
