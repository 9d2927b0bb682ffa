//! `tollgate`: choose a limit by replaying the traffic that was really there.

mod args;
mod input;
mod json;
mod lineup;
mod progress;
mod replay;
mod report;
mod truth;

use std::{
    env, fmt,
    io::{self, IsTerminal, Write},
    process::{self, ExitCode},
};

use clap::Parser;
use jiff::Timestamp;

use crate::{
    args::{Cli, Command, Plan},
    input::{KeySpec, Order},
    json::{Input, LeftOut, Report, Rule},
    lineup::Unfit,
    progress::Bar,
    replay::{Replay, Stopped},
};

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Why there is no report.
enum Failure {
    /// The options do not go together, or an algorithm that was asked for does not take the rules.
    Usage(String),
    Input(input::Error),
    Stopped(Stopped),
    Output(io::Error),
}

fn main() -> ExitCode {
    // Nothing needs cleaning up: what is spilled to disk has no name there and ends with the process. Where
    // interrupts are ignored from the start (a script's background job) they stay so.
    let _ = ctrlc::try_set_handler(|| {
        if io::stderr().is_terminal() {
            let _ = writeln!(io::stderr()); // The shell's prompt starts below the bar.
        }
        process::exit(INTERRUPTED)
    });
    let Command::Replay(args) = Cli::parse().command;
    let failure = match replay(args.plan()) {
        Ok(()) => return ExitCode::SUCCESS,
        // The reader has seen enough (`| head`).
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    // Not eprintln: it panics when standard error is closed.
    let _ = writeln!(io::stderr(), "error: {failure}");
    ExitCode::from(if failure.is_usage() { 2 } else { 1 })
}

/// Reads the input through the algorithms and prints the report.
fn replay(plan: Plan) -> Result<(), Failure> {
    let (mut replay, left_out) = lineup(&plan)?;
    let bar = Bar::new(&plan.input.files);
    let mut take = |request: input::Request<'_>| {
        bar.request();
        replay.take(request.key, request.time).map_err(Failure::from)
    };
    let summary = input::read::<Failure>(&plan.input, &bar, &mut take)?;
    replay.flush()?;
    drop(bar);

    let span = replay.span();
    let named = !matches!(plan.input.key, KeySpec::None);
    let report = Report {
        input: Input {
            files: summary.files,
            lines: summary.lines,
            requests: summary.requests,
            skipped: summary.skipped,
            filtered: summary.filtered,
            keys: replay.keys(),
            first: span.map(|(first, _)| rfc3339(first)),
            last: span.map(|(_, last)| rfc3339(last)),
            order: plan.input.order.to_string(),
            out_of_order: summary.out_of_order,
            zone_assumed: summary.zone_assumed,
            bad: summary.bad.into_iter().map(json::BadLine::from).collect(),
            trailing_garbage: summary.trailing_garbage,
        },
        rules: plan.settings.rules.iter().map(Rule::from).collect(),
        results: replay.outcomes(),
        left_out,
        top_refused: if named { replay.top_refused(plan.top) } else { Vec::new() },
    };
    print(&report, &plan).map_err(Failure::Output)
}

/// Checks what the options say together, and gathers the algorithms that take part: what `all` names may be left
/// out, unless a value given to an option is to blame; what was asked for by name may not.
fn lineup(plan: &Plan) -> Result<(Replay, Vec<LeftOut>), Failure> {
    if let (Some(from), Some(to)) = (plan.input.from, plan.input.to)
        && from >= to
    {
        let times = format!("--from {} is not before --to {}", rfc3339(from), rfc3339(to));
        return Err(Failure::Usage(times));
    }
    let mut replay = Replay::new(&plan.settings, plan.input.order == Order::Time);
    let (mut takes_part, mut left_out) = (false, Vec::new());
    for &name in &plan.names {
        match replay.add(name) {
            Ok(()) => takes_part = true,
            Err(why) if plan.all => {
                if let Some(option) = plan.settings.to_blame(&why) {
                    return Err(Failure::Usage(format!("{name}: {why} ({option})")));
                }
                left_out.push(LeftOut { algorithm: name.as_str(), why: why.to_string() });
            }
            Err(why @ Unfit::OneRule(_)) => {
                let who = format!("--algorithm {name}: {name} {why}");
                return Err(Failure::Usage(format!("{who} (only log and window take several)")));
            }
            Err(why) => return Err(Failure::Usage(format!("--algorithm {name}: {why}"))),
        }
    }
    match left_out.first() {
        Some(first) if !takes_part => {
            Err(Failure::Usage(format!("no algorithm takes these rules: {}: {}", first.algorithm, first.why)))
        }
        _ => Ok((replay, left_out)),
    }
}

fn print(report: &Report, plan: &Plan) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if plan.json {
        json::write(report, &mut out)?;
    } else {
        // NO_COLOR counts when it is not empty.
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = io::stdout().is_terminal() && !plain;
        out.write_all(report::render(report, &plan.input.key.to_string(), colour).as_bytes())?;
    }
    out.flush()
}

/// A moment in UTC, with as many digits of the second as it needs.
fn rfc3339(ns: u64) -> String {
    // Every u64 of nanoseconds is a year before 2555.
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::MAX).to_string()
}

// === impl Failure ===

impl Failure {
    /// Whether the options alone are to blame, whatever the files hold.
    fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) => true,
            Self::Input(input::Error::Format { file, .. }) => file.is_empty(),
            _ => false,
        }
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<input::Error> for Failure {
    fn from(error: input::Error) -> Self {
        Self::Input(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) => write!(f, "{why}"),
            Self::Input(error) => write!(f, "{error}"),
            Self::Stopped(stopped) => write!(f, "{stopped}"),
            Self::Output(error) => write!(f, "standard output: {error}"),
        }
    }
}

// === impl json ===

impl From<&tollgate::Rule> for Rule {
    fn from(rule: &tollgate::Rule) -> Self {
        Self { limit: rule.limit, window_ns: rule.window.as_nanos() }
    }
}

impl From<input::BadLine> for json::BadLine {
    fn from(bad: input::BadLine) -> Self {
        Self { file: bad.file, line: bad.line, why: bad.why.into(), text: bad.text }
    }
}
