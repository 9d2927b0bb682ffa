//! Runs the models, and the memory orders weakened.
//!
//! ```text
//! tollgate-models [run | kill | orders | deep] [--bound N] [--long] [--processes N] [--seconds N] [--seed N] [--runs N] [NAME..]
//! ```
//! `run` prints the table of models; `kill` stops at the first that breaks (tried first: `--first NAME`, a whole name), and fails if none does; `orders` weakens
//! every memory order in turn; `deep` runs random schedules, so many for each row. Names select models that contain all of them.

use std::{process::ExitCode, time::Duration};

use tollgate_models::{Options, deep, kill, orders, run};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let command = match args.peek().map(String::as_str) {
        Some("run") => run,
        Some("kill") => kill,
        Some("orders") => orders,
        Some("deep") => deep,
        _ => {
            eprintln!(
                "tollgate-models [run | kill | orders | deep] [--bound N] [--long] [--processes N] [--seconds N] [--seed N] [--runs N] [NAME..]"
            );
            return ExitCode::from(2);
        }
    };
    args.next();
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok());
        match arg.as_str() {
            "--long" => options.long = true,
            "--bound" => options.bound = number().unwrap_or(2) as u8,
            "--seed" => options.seed = number().unwrap_or(0),
            "--runs" => options.runs = number().unwrap_or(1),
            "--processes" => options.processes = number().unwrap_or(1) as usize,
            "--first" => options.first.extend(args.next()),
            "--seconds" => options.max_time = Duration::from_secs(number().unwrap_or(600)),
            _ => options.only.push(arg),
        }
    }
    match command(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tollgate-models: {why}");
            ExitCode::FAILURE
        }
    }
}
