//! The command line: every option, its default and its meaning, checked before a line is read.

mod bench;
mod parse;
mod plan;
mod replay;
mod simulate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::{
    bench::{BenchArgs, BenchJob},
    parse::{Capacity, Share, parse_count, parse_rate, parse_share, parse_span},
    plan::{PlanArgs, PlanJob},
    replay::{ReplayArgs, ReplayJob},
    simulate::{SimulateArgs, SimulateJob, Trial},
};
use crate::{
    input::{self, Format, KeySpec, Options, Order},
    lineup::{Choice, Name},
};

/// Chooses a rate limit from the traffic that was really there.
#[derive(Parser)]
#[command(
    name = "tollgate",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  tollgate plan access.log --html report.html     a limit, its reasons, pictures, a snippet
  tollgate replay access.log --key client         what each algorithm would have done
  tollgate simulate --arrivals poisson:500/s | tollgate plan -
  tollgate bench                                  how fast each algorithm is on this machine
  tollgate completions bash > /etc/bash_completion.d/tollgate
  tollgate man plan | man -l -

Each command's --help has more, and its exit codes."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replays access logs through every algorithm and tells the truth about each.
    #[command(after_long_help = replay::HELP, allow_negative_numbers = true)]
    Replay(ReplayArgs),
    /// Proposes limits from access logs: the smallest that refuse at most the share you name.
    #[command(after_long_help = plan::HELP, allow_negative_numbers = true)]
    Plan(PlanArgs),
    /// Makes arrivals for people without a log, as lines or, with a limit, judged at once.
    #[command(after_long_help = simulate::HELP, allow_negative_numbers = true)]
    Simulate(SimulateArgs),
    /// Measures every algorithm on this machine, then proves that none went over.
    #[command(after_long_help = bench::HELP, allow_negative_numbers = true)]
    Bench(BenchArgs),
    /// Prints the completions for a shell.
    #[command(after_long_help = SHELL_HELP)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints a manual page, in troff.
    #[command(after_long_help = SHELL_HELP)]
    Man {
        /// The command that it is about; without it, the tool.
        #[arg(value_parser = ["replay", "plan", "simulate", "bench"])]
        command: Option<String>,
    },
}

/// What `--help` of the two smallest commands says beyond the options.
const SHELL_HELP: &str = "\
Examples:
  tollgate completions bash > ~/.local/share/bash-completion/completions/tollgate
  tollgate completions zsh > ~/.zfunc/_tollgate
  tollgate man > /usr/local/share/man/man1/tollgate.1
  tollgate man plan | man -l -

Exit codes:
  0  done
  1  the output could not be written
  2  the command line is wrong";

/// What to read: the options that every command which reads logs has.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// Logs to read: files, gzip and zstd files, or - for standard input. What follows the last gzip member is left
    /// alone, with a note unless it is zeros.
    #[arg(value_name = "LOG", required = true)]
    files: Vec<PathBuf>,

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

    /// Stops at the first line that can not be read: one without a time or its key, and so the heading of a CSV file.
    #[arg(long)]
    strict: bool,
}

// === impl InputArgs ===

impl InputArgs {
    fn options(self, key: KeySpec, order: Order) -> Options {
        let Self { files, format, from, to, strict } = self;
        Options { files, format, key, order, from, to, strict }
    }
}

/// The algorithms chosen, each once, where it is named first; and whether they are those of `all`.
fn names(choices: &[Choice]) -> (Vec<Name>, bool) {
    let mut names = Vec::new();
    for choice in choices {
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
    (names, choices.contains(&Choice::All))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn names_keep_the_order_asked_for_and_come_once() {
        let one = Choice::One;
        let asked = [one(Name::Wheel), one(Name::Log), one(Name::Wheel)];
        assert_eq!(names(&asked), (vec![Name::Wheel, Name::Log], false));
        assert_eq!(names(&[Choice::All, one(Name::Log)]), (Name::ALL.to_vec(), true));
    }
}
