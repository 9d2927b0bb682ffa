//! Prints the calls' times as ratios to the floors of the same rounds, as a Markdown table: `ratios [ROUNDS]`.
//!
//! Rows take turns, so what else the machine does strikes all alike; a ratio is the median of its rounds' ratios.

use std::{env, process::Command};

use tollgate_benches::Row;

const CALLS: u64 = 100_000;

fn main() {
    let rounds: usize = env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(31);
    let mut rows = tollgate_benches::floors();
    rows.extend(tollgate_benches::calls());
    rows.iter_mut().for_each(|row| row.make_counted(CALLS)); // Warms up.
    let times: Vec<Vec<f64>> = (0..rounds.max(1)).map(|_| rows.iter_mut().map(time).collect()).collect();

    println!("{}\n", machine());
    println!("| call | ns | x load | x CAS |\n|---|---:|---:|---:|");
    let place = |name| rows.iter().position(|row| row.name() == name).expect("a floor");
    let (load, cas) = (place("load"), place("cas"));
    for (at, row) in rows.iter().enumerate() {
        let over = |floor: usize| median(times.iter().map(|round| round[at] / round[floor]));
        let ns = median(times.iter().map(|round| round[at]));
        println!("| {} | {ns:.2} | {:.1} | {:.2} |", row.name(), over(load), over(cas));
    }
}

/// Nanoseconds of one call.
fn time(row: &mut Row) -> f64 {
    row.time(CALLS).as_nanos() as f64 / CALLS as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What the figures were measured on.
fn machine() -> String {
    let read = |command: &str, arguments: &[&str]| {
        let output = Command::new(command).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| {
        let line = info.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {threads} threads, {}, {}; `cargo run --release -p tollgate-benches --bin ratios`",
        cpu.as_deref().unwrap_or("unknown processor"),
        read("rustc", &["--version"]).unwrap_or_default(),
        read("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default(),
    )
}
