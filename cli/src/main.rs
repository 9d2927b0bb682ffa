//! `tollgate`: choose a limit from the traffic that was really there.

mod args;
mod bench;
mod commands;
mod failure;
mod input;
mod json;
mod keys;
mod lineup;
mod load;
mod output;
mod picture;
mod plan;
mod progress;
mod replay;
mod report;
mod simulate;
mod text;
mod timeline;
mod truth;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    args::{Cli, Command},
    failure::Failure,
};

fn main() -> ExitCode {
    // What is spilled to disk has no name there and ends with the process. Where interrupts are ignored from the start
    // (a script's background job) they stay so.
    let _ = ctrlc::try_set_handler(|| output::interrupted());
    let Err(failure) = run(Cli::parse().command) else { return ExitCode::SUCCESS };
    if failure.is_enough() {
        return ExitCode::SUCCESS;
    }
    // Not eprintln: it panics when standard error is closed.
    let _ = writeln!(io::stderr(), "error: {failure}");
    ExitCode::from(if failure.is_usage() { 2 } else { 1 })
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Replay(args) => commands::replay(&args.job()),
        Command::Plan(args) => commands::plan(&args.job()),
        Command::Simulate(args) => commands::simulate(&args.job()),
        Command::Bench(args) => commands::bench(&args.job()),
        Command::Completions { shell } => commands::completions(shell),
        Command::Man { command } => commands::man(command.as_deref()),
    }
}
