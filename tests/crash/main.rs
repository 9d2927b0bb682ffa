//! Processes killed and stopped at every instruction, in every order, and at random, while they share limiters.
//!
//! `cargo test --profile crash --features shared --test crash -- [PART..] [--long] [--seconds N]`, parts: `kill`, `stop`,
//! `pairs`, `make`, `system`, `storm`, `changes`; without any, all. Without `--long` stops and pairs are a sample, another each day.

#![cfg(target_arch = "x86_64")]

mod made;
mod steps;
mod storm;
mod trace;
mod world;

use std::time::{Duration, Instant};

/// What to run.
struct Options {
    parts: Vec<String>,
    /// All stops and all pairs of instructions.
    long: bool,
    /// Of a storm.
    seconds: u64,
}

impl Options {
    fn read() -> Self {
        let mut options = Self { parts: Vec::new(), long: false, seconds: 6 };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--long" => options.long = true,
                "--seconds" => {
                    options.seconds = args.next().and_then(|n| n.parse().ok()).expect("--seconds N");
                }
                part => options.parts.push(part.to_owned()),
            }
        }
        options
    }

    fn run(&self, part: &str, run: impl FnOnce() -> String) {
        if self.parts.is_empty() || self.parts.iter().any(|it| it == part) {
            let start = Instant::now();
            trace::pin(!["storm", "changes"].contains(&part));
            let told = run();
            println!("{part}: {told} ({:.1} s)", start.elapsed().as_secs_f32());
        }
    }
}

fn main() {
    let options = Options::read();
    options.run("kill", steps::kill_at_every_instruction);
    options.run("stop", || steps::stop_at_every_instruction(options.long));
    options.run("pairs", || steps::every_order_of_two(options.long));
    options.run("make", made::kill_makers_at_every_write);
    options.run("system", made::kill_at_every_system_call);
    options.run("storm", || storm::run(Duration::from_secs(options.seconds)));
    options.run("changes", || storm::run_with_changes(Duration::from_secs(options.seconds)));
}
