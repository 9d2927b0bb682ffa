//! The command line: every option, its default and its meaning, checked before a line is read.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use jiff::{Span, SpanRelativeTo};
use tollgate::Rule;

use crate::{
    input::{self, Format, KeySpec, Options, Order},
    lineup::{Choice, Name, Settings},
};

/// What `--help` says beyond the options.
const FIGURES: &str = "\
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
  130  interrupted (Ctrl-C)";

/// Chooses a rate limit by replaying the traffic that was really there.
#[derive(Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replays access logs through every algorithm and tells the truth about each.
    #[command(after_long_help = FIGURES, allow_negative_numbers = true)]
    Replay(ReplayArgs),
}

/// The options of `tollgate replay`.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Logs to read: files, gzip and zstd files, or - for standard input. What follows the last gzip member is left
    /// alone, with a note unless it is zeros.
    #[arg(value_name = "LOG", required = true)]
    files: Vec<PathBuf>,

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

    /// How lines are written: auto, combined, common, nginx:'LOG_FORMAT', json:FIELD (of the time), csv:N
    /// (column of the time), epoch (each line begins with a time, then the key).
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    format: Format,

    /// Leaves out requests before this time: RFC 3339, a date, or seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = input::parse_moment)]
    from: Option<u64>,

    /// Leaves out requests from this time on.
    #[arg(long, value_name = "TIME", value_parser = input::parse_moment)]
    to: Option<u64>,

    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,

    /// How many of the keys refused most are named.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_count)]
    top: u64,

    /// Stops at the first line that can not be read: one without a time or its key, and so the heading of a CSV file.
    #[arg(long)]
    strict: bool,
}

/// A replay that is ready to start.
pub(crate) struct Plan {
    pub(crate) input: Options,
    pub(crate) settings: Settings,
    /// `Choice::All` only if nothing else was asked for.
    pub(crate) names: Vec<Name>,
    /// Whether the names are those of `all`, hence may be left out.
    pub(crate) all: bool,
    pub(crate) json: bool,
    pub(crate) top: usize,
}

// === impl ReplayArgs ===

impl ReplayArgs {
    /// What these options ask for. Each name counts once, where it is named first.
    pub(crate) fn plan(self) -> Plan {
        let all = self.algorithms.contains(&Choice::All);
        let mut names = Vec::new();
        for choice in &self.algorithms {
            let more = match choice {
                Choice::All => &Name::ALL[..],
                Choice::One(name) => &[*name],
            };
            for &name in more {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let mut rules = vec![Rule::new(self.limit, self.per)];
        rules.extend(self.rules);
        Plan {
            input: Options {
                files: self.files,
                format: self.format,
                key: self.key,
                order: self.order,
                from: self.from,
                to: self.to,
                strict: self.strict,
            },
            settings: Settings { rules, buckets: self.buckets, burst: self.burst },
            names,
            all,
            json: self.json,
            top: usize::try_from(self.top).unwrap_or(usize::MAX),
        }
    }
}

/// A whole number; the standard library's own messages name no bound.
fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u64::MAX))
}

/// A span such as `100ms`, `1s`, `1m 30s`, `1d` (24 hours).
fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span such as 100ms, 1s, 5m, 1h, 1d");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let span = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if span.is_zero() || span.is_negative() {
        return Err(format!("`{text}` is not above 0"));
    }
    Duration::try_from(span).map_err(|_| wrong())
}

/// A rule such as `200/100ms`.
fn parse_rule(text: &str) -> Result<Rule, String> {
    let wrong = || format!("`{text}` is not a rule such as 200/100ms");
    let (limit, window) = text.split_once('/').ok_or_else(wrong)?;
    let limit = parse_count(limit.trim()).map_err(|why| format!("{}: {why}", wrong()))?;
    Ok(Rule::new(limit, parse_span(window.trim()).map_err(|why| format!("{}: {why}", wrong()))?))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn plan(options: &[&str]) -> Plan {
        let words = ["tollgate", "replay", "x.log"].iter().chain(options);
        match Cli::try_parse_from(words) {
            Ok(Cli { command: Command::Replay(args) }) => args.plan(),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_first_value_named_is_the_default() {
        let plan = plan(&[]);
        assert_eq!(plan.settings.rules, [Rule::new(100, Duration::from_secs(1))]);
        assert_eq!((plan.settings.buckets, plan.settings.burst), (None, None));
        assert_eq!((plan.names.as_slice(), plan.all), (&Name::ALL[..], true));
        assert_eq!((plan.top, plan.json), (10, false));
        let Options { format, key, order, from: None, to: None, strict: false, .. } = plan.input else {
            panic!("more is asked of the input than nothing");
        };
        assert_eq!([format.to_string(), key.to_string(), order.to_string()], ["auto", "none", "time"]);
    }

    #[test]
    fn spans_are_read_to_the_nanosecond() {
        for (text, ns) in [
            ("1ns", 1),
            ("100ms", 100_000_000),
            ("1s", 1_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1m", 60_000_000_000),
            ("1m 30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["", "1", "s", "1 fortnight", "1e9s", "9999999999999999999s", "1y"] {
            assert_eq!(
                parse_span(text),
                Err(format!("`{text}` is not a span such as 100ms, 1s, 5m, 1h, 1d")),
                "{text}"
            );
        }
        for text in ["0s", "-1s"] {
            assert_eq!(parse_span(text), Err(format!("`{text}` is not above 0")));
        }
    }

    #[test]
    fn rules_are_a_limit_and_a_span() {
        assert_eq!(parse_rule("200/100ms"), Ok(Rule::new(200, Duration::from_millis(100))));
        assert_eq!(parse_rule("0/1d"), Ok(Rule::new(0, Duration::from_secs(86_400))));
        for text in ["", "200", "200/", "/1s", "-1/1s", "1.5/1s", "200/0s", "99999999999999999999/1s"] {
            assert!(parse_rule(text).is_err_and(|why| why.contains(text)), "{text}");
        }
    }

    #[test]
    fn names_keep_the_order_asked_for_and_come_once() {
        let plan = plan(&["--algorithm", "wheel", "--algorithm", "log", "--algorithm", "wheel"]);
        assert_eq!((plan.names.as_slice(), plan.all), (&[Name::Wheel, Name::Log][..], false));
    }
}
