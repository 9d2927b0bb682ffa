//! From C: the library's call beside the same call in Rust, an empty call, and a log under a pthread mutex. The work is
//! that of `ffi/bench/run.sh`, against an installation of its own.

use std::{
    env, fs, io,
    path::Path,
    process::{self, Command},
};

/// What the C benchmark prints of the library linked statically and shared; or why it did not run.
pub(crate) fn measure(root: &Path, rounds: usize, calls: u64) -> String {
    let prefix = env::temp_dir().join(format!("tollgate-report-{}", process::id()));
    let printed = run(root, &prefix, rounds, calls);
    let removed = fs::remove_dir_all(&prefix);
    match (printed, removed) {
        (Ok(printed), Ok(())) => printed,
        (Err(error), _) | (_, Err(error)) => format!("Not measured: {error}\n"),
    }
}

fn run(root: &Path, prefix: &Path, rounds: usize, calls: u64) -> io::Result<String> {
    fs::create_dir_all(prefix)?;
    said_by(Command::new(root.join("ffi/install.sh")).env("PREFIX", prefix))?;
    let arguments = [rounds.to_string(), calls.to_string()];
    let said = said_by(Command::new(root.join("ffi/bench/run.sh")).arg(prefix).args(arguments))?;
    // Machine and compilers are told once, above all tables.
    Ok(said.split_once("\n\n").map_or(said.clone(), |(_, tables)| tables.to_owned()))
}

fn said_by(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{command:?}: {}", said.lines().last().unwrap_or_default())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
