//! `tollgate replay`: its options and what they ask for.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tollgate::Rule;

use super::{
    InputArgs, names,
    parse::{parse_count, parse_rule, parse_span},
};
use crate::{
    input::{KeySpec, Options, Order},
    lineup::{Choice, Name, Settings},
};

/// What `--help` says beyond the options.
pub(super) const HELP: &str = "\
Examples:
  tollgate replay access.log --key client                     100 per second for each client
  tollgate replay access.log.gz --limit 500 --rule 50/100ms   two rules, for all together
  tollgate replay - --format epoch --json < times.txt
  tollgate replay access.log --key client --plot replay.svg

Figures (all by the times in the log, none by this machine's clock):
  admitted, refused  what the algorithm answered
  peak               the largest number of one key admitted in any true window (t - W, t]
  over               peak less the limit, never below 0
  false refusals     refusals made while the key's own admissions in the true window
                     (t - W, t] left room, under every rule
  bytes/key          what the state of one limiter takes, padding to cache lines included; the
                     configuration, the same for every key, apart
  ns/check           time of one call of the library, reading and counting apart: the median
                     of the means of batches of 4,096; the only figure that differs from run
                     to run

  They are counted by a plain list of admissions, not by the algorithm judged. With several
  rules, peak and over are told for each, and only log and window take part.
  Where bucket edges matter (window, fixed, two-window) the table's figures are for edges at
  multiples of the bucket's width since 1970; the range over 4 places is told below it.
  The paced queue admits at arrival + wait: its peak counts those later times, and a drop is
  false when fewer than the limit had passed in the window that ends at the arrival (so drops a
  queue that fills up at once after a calm). Its waits are told to three digits.

Order:
  time  sorted by the line's stamp, less the request's duration where the format has it (servers
        write a line when a request ends); equal times keep the order of the lines; what does not
        fit into memory is sorted in a nameless temporary file (in TMPDIR; where that is not set, in
        /var/tmp if it can be used, else in the system's default)
  file  as the lines stand; a key's time never goes back: an older line takes the newest time of
        its key

Memory:
  about 100 MiB for sorting; for each algorithm, 4 times where bucket edges matter, bytes/key for
  each key alive within a window (log: about 8 bytes x limit, of a large limit only what is used)

Exit codes:
  0    done, also when some lines could not be read (they are counted and the first ones shown),
       or when the reader of the output went away
  1    an input could not be read or the output not written; with --strict: a line could not be
       read; no memory for the limiters
  2    the command line is wrong, or an algorithm asked for does not take the rules
  130  interrupted (Ctrl-C): no file is left half-written";

/// The options of `tollgate replay`.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Permits per key and window; 0 refuses everything.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = parse_count)]
    limit: u64,

    /// Length of the window: 100ms, 1s, 5m, 1h, 1d.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = parse_span, allow_hyphen_values = true)]
    per: Duration,

    /// A further rule that must hold as well, such as 200/100ms; may be repeated.
    #[arg(long = "rule", value_name = "N/SPAN", value_parser = parse_rule, allow_hyphen_values = true)]
    rules: Vec<Rule>,

    /// What has a limit of its own: none (one limit for all), client, path, user, header:NAME, regex:RE
    /// (its first group, else the match), csv:N (column). A line without its key counts as one that can not be read.
    #[arg(long, value_name = "KEY", default_value = "none")]
    key: KeySpec,

    /// Algorithm to replay; may be repeated.
    #[arg(long = "algorithm", value_name = "NAME", value_enum, default_value = "all")]
    algorithms: Vec<Choice>,

    /// Buckets per (shortest) window of the window counter [default: 10].
    #[arg(long, value_name = "K", value_parser = parse_count)]
    buckets: Option<u64>,

    /// Capacity of token and leaky, places in the paced queue [default: the limit].
    #[arg(long, value_name = "N", value_parser = parse_count)]
    burst: Option<u64>,

    /// Order of the requests: time or file (see below).
    #[arg(long, value_name = "ORDER", default_value = "time")]
    order: Order,

    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,

    /// Draws what happened over time into this SVG file, which appears when it is complete.
    #[arg(long, value_name = "FILE", value_parser = super::parse::parse_svg)]
    plot: Option<PathBuf>,

    /// How many of the keys refused most are named.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_count)]
    top: u64,
}

/// A replay that is ready to start.
pub(crate) struct ReplayJob {
    pub(crate) input: Options,
    pub(crate) settings: Settings,
    pub(crate) names: Vec<Name>,
    /// Whether the names are those of `all`, hence may be left out.
    pub(crate) all: bool,
    pub(crate) json: bool,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) top: usize,
}

// === impl ReplayArgs ===

impl ReplayArgs {
    /// What these options ask for.
    pub(crate) fn job(self) -> ReplayJob {
        let (names, all) = names(&self.algorithms);
        let mut rules = vec![Rule::new(self.limit, self.per)];
        rules.extend(self.rules);
        ReplayJob {
            input: self.input.options(self.key, self.order),
            settings: Settings { rules, buckets: self.buckets, burst: self.burst },
            names,
            all,
            json: self.json,
            plot: self.plot,
            top: usize::try_from(self.top).unwrap_or(usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{
        super::{Cli, Command},
        *,
    };

    #[test]
    fn the_first_value_named_is_the_default() {
        let Command::Replay(args) = Cli::parse_from(["tollgate", "replay", "x.log"]).command else {
            panic!("another command")
        };
        let job = args.job();
        assert_eq!(job.settings.rules, [Rule::new(100, Duration::from_secs(1))]);
        assert_eq!((job.settings.buckets, job.settings.burst), (None, None));
        assert_eq!((job.names.as_slice(), job.all), (&Name::ALL[..], true));
        assert_eq!((job.top, job.json, job.plot), (10, false, None));
        let Options { format, key, order, from: None, to: None, strict: false, .. } = job.input else {
            panic!("more is asked of the input than nothing");
        };
        assert_eq!([format.to_string(), key.to_string(), order.to_string()], ["auto", "none", "time"]);
    }
}
